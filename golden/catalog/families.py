"""Families of instructions (spec/families): names, operand types, shapes, and the traits that no architecture
changes.

A variant is one point of a family's axes; it stays a small dict of variables until somebody asks for it. What
a file's families have in common may stand once, at the top of the file.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, replace
from functools import lru_cache
from string import Formatter
from typing import Any

from golden import yamlfile
from golden.catalog.vendors import VENDOR, Vendor, vendors
from golden.errors import nearest
from golden.paths import spec_folder
from golden.registers import layouts
from golden.registers.sparsity import PATTERNS, Pattern
from golden.traits import PLACES, SOURCES, Traits
from golden.values import WORD, Choice, Either, Flag, Integer, Key, Many, Mapping, Table, Text, Value
from golden.yamlfile import Section

SCALES = "scales"
"""`pages_by` of a family whose pages differ by its scales."""
OPERANDS = ("a", "b", "c", "d", "metadata", "scale_a", "scale_b")
NO_SOURCE = "none"
"""Said of an operand that has no modifiers in some variants of a family that has them in others."""
_SHAPE = re.compile(r"m?(\d+)[nx](\d+)[kx](\d+)$")
_METADATA_ORDERS = ("ascending", "any")
Variables = dict[str, str]
MOST = 4096
"""Of a size, a count or the value of an axis: sixteen times the largest N of an instruction."""


def _followed(value: Value) -> Either:
    """A value, or one that follows a variable."""
    return Either(value, FOLLOWED)


_BY_VALUE = Table(Either(Text(), Integer(0, MOST)))
FOLLOWED = Mapping(
    (
        Key("variable", Text(), "the variable that is looked up"),
        Key("values", _BY_VALUE, "what stands for each of its values; without it the value itself", None),
    )
)
SWEEP = Mapping(
    tuple(Key(word, Integer(1, MOST), "bounds and step of a range") for word in ("from", "to", "step"))
)
_NAME = Either(Text(), Integer(0, MOST))
_MODIFIERS = _followed(Choice((*SOURCES, NO_SOURCE)))
_OPERAND, _MATRIX = Choice(OPERANDS), Choice(OPERANDS[:4])
FAMILY = Mapping(
    (
        Key("name", Text(), 'the name, with variables in braces: `"v_mfma_{d}_{shape}{count}_{ab}"`'),
        Key("also_named", Many(Text(), alone=True), "other spellings that mean the same instruction", ()),
        Key("words", Many(Text(), alone=True), "words for the feature that has it: AMX, VNNI", ()),
        Key("title", Text(), "the title of its pages, before the types; `{shapes}` stands for the shapes"),
        Key(
            "pages_by",
            Choice((*"abcd", SCALES)),
            "the operand (`a` to `d`) by whose type the family has separate pages, if one family has all "
            "types; `scales`: each kind of scale has a page",
            None,
        ),
        Key("formats", Table(Text(), _OPERAND), "the format of each operand"),
        Key(
            "layout",
            Choice(known=layouts.names, what="a layout"),
            "the file of spec/layouts that places its operands in registers; without it they are in no "
            "register, or their place is unknown",
            None,
        ),
        Key("sparse", Choice(tuple(PATTERNS)), "how A is sparse; without it A is dense", None),
        Key(
            "metadata_order",
            _followed(Choice(_METADATA_ORDERS)),
            "the two indices of a metadata nibble: `ascending`, or `any`",
            "ascending",
        ),
        Key("blocks", _followed(Integer(1, MOST)), "independent products of one instruction", 1),
        Key("scale_block", _followed(Integer(1, MOST)), "elements that share a scale", None),
        Key(
            "lanes",
            _followed(Integer(1, MOST)),
            "threads that execute one instruction together: 32 in a warp, 64 in a wave, 1 where a thread "
            "does it alone",
        ),
        Key("toolkit", _followed(Text()), "the first version of the compiler that knows it", None),
        Key("kind", Text(), "the word that `spec/layouts/register_containers.yaml` is looked up by", ""),
        Key(
            "order",
            Table(Text(), _MATRIX),
            "which way memory holds a matrix, `row` or `col`, where the name says it",
            {},
        ),
        Key(
            "source_modifiers",
            Table(_MODIFIERS, _MATRIX),
            "by operand, what [modifiers of the encoding](modifiers.md) do to it; `golden/traits.py` "
            "explains the words",
            {},
        ),
        Key(
            "places",
            Table(Many(Choice(tuple(PLACES)), 1, alone=True), _OPERAND),
            "for operands that are not in registers: where they are, or a list of what the program can "
            "choose from",
            {},
        ),
        Key("in_place", Flag(), "`true` where D takes the place of C", False),
        Key("placement", Text(), "a sentence about operands that are not in registers", ""),
        Key(
            "kernel",
            WORD,
            "the generator of hw_capture that makes its kernels: `mma`, `wmma`, `wgmma` or `tcgen05`, for "
            "AMD `mfma`, `wmma_wave` or `lane_dot`, for CPUs `amx` or `avx512`; without it there is none",
            None,
        ),
        Key(
            "plain",
            Table(Many(Text(), alone=True)),
            "variables and values that make the name the plain one of several that mean the same",
            {},
        ),
        Key(
            "other_form",
            Text(),
            "a word for instructions that the compiler makes of another family, such as `wmma`",
            "",
        ),
        Key(
            "variants",
            Many(Table(Either(*_NAME.kinds, SWEEP, Many(_NAME))), what="a list of mappings"),
            "a list of points: each variable with its value, a list of values, or `{from: 8, to: 256, step: "
            "8}`",
        ),
    )
)
"""One family of a file of spec/families."""
_OF_ONE = ("name", "also_named", "formats", "blocks", "scale_block", "variants")
SHARED = tuple(name for name in FAMILY.names if name not in _OF_ONE)
"""What may stand at the top of a file for all of its families."""
FAMILIES = Mapping(
    (
        Key("source", Text(), "where the facts come from"),
        Key("vendor", VENDOR, "the vendor, a file of spec/vendors"),
        *(replace(FAMILY[name], default=None) for name in SHARED),
        Key(
            "families",
            Table(
                Mapping(
                    tuple(replace(key, default=None) if key.name in SHARED else key for key in FAMILY.keys)
                )
            ),
            "the families, by their names",
        ),
    )
)
"""A file of spec/families."""


@dataclass(frozen=True)
class Family:
    """One family of instructions: name templates, operand formats, traits, and the axes its variants multiply
    out.

    `title` is a page's title without the types: a template that also has {shapes}; pages differ by
    the type of operand `pages_by`, or by their scales, where that is given. Whatever is `Any` may follow a
    variable (see `fill`).
    """

    name: str
    vendor: Vendor
    template: str
    also_named: tuple[str, ...]
    words: tuple[str, ...]
    title: str
    pages_by: str | None
    formats: dict[str, str]
    layout: str | None
    pattern: Pattern | None
    metadata_order: Any
    blocks: Any
    scale_block: Any
    lanes: Any
    toolkit: Any
    kind: str
    order: dict[str, str]
    sources: dict[str, Any]
    fixed: Traits
    plain: dict[str, tuple[str, ...]]
    source: str
    variants: tuple[Variables, ...]

    @property
    def sparse(self) -> bool:
        """Whether A is sparse."""
        return self.pattern is not None

    def spellings(self, variables: Variables) -> tuple[str, ...]:
        """The name of a variant as the spec lists it, then the others that mean it."""
        return tuple(dict.fromkeys(name.format(**variables) for name in (self.template, *self.also_named)))

    def is_plain(self, variables: Variables) -> bool:
        """Whether the variant's name is the plain spelling of its machine code."""
        return self.is_plainest(variables) and not self.fixed.swept

    def is_plainest(self, variables: Variables) -> bool:
        """The same, also where each N has a name of its own."""
        listed = all(variables[key] in values for key, values in self.plain.items())
        return listed and not self.fixed.other_form

    def ordered(self, variables: Variables) -> bool:
        """Whether the two indices of a metadata nibble must ascend."""
        return bool(fill(self.metadata_order, variables) == "ascending")

    def traits(self, variables: Variables) -> Traits:
        """The traits of a variant."""
        known = self.vendor.modifiers
        words = [known[key][value] for key, value in variables.items() if key in known]
        sources = {operand: fill(rule, variables) for operand, rule in self.sources.items()}
        return Traits(
            **{
                **vars(self.fixed),
                "lanes": fill(self.lanes, variables),
                "toolkit": fill(self.toolkit, variables),
                "kind": self.kind.format(**variables),
                "order": {operand: text.format(**variables) for operand, text in self.order.items()},
                "modifiers": tuple(word for word in words if word),
                "sources": {operand: rule for operand, rule in sources.items() if rule != NO_SOURCE},
                "plain": self.is_plain(variables),
            }
        )


# Variables --------------------------------------------------------------------------------------------------


def fill(value: Any, variables: Variables) -> Any:
    """Fills variables into a YAML value: "{d}" inside strings, and mappings {variable: v, values: {...}}
    by lookup."""
    if isinstance(value, str):
        return value.format(**variables) if "{" in value else value
    if isinstance(value, list):
        return [fill(item, variables) for item in value]
    if not isinstance(value, Section):
        return value
    if "variable" in value:
        return _look_up(value, variables)
    copy = Section(value.file, value.line)
    copy.lines = value.lines
    for key in value:
        copy[key] = fill(value[key], variables)
    return copy


def _look_up(section: Section, variables: Variables) -> Any:
    name = section["variable"]
    if name not in variables:
        raise section.error(f"'{name}' is no variable of this family{nearest(name, variables)}", "variable")
    picked = variables[name]
    values = section.get("values")
    if values is None:
        return int(picked) if picked.isdigit() else picked
    if picked not in values:
        raise section.error(f"no value for {name} = '{picked}'", "values")
    return values[picked]


def shape_of(variables: Variables, section: Section) -> tuple[int, int, int]:
    """Reads (m, n, k) from the variable `shape`, "m16n8k16" or "32x32x8"."""
    match = _SHAPE.match(variables.get("shape", ""))
    if match is None:
        raise section.error(f"variable 'shape' is '{variables.get('shape')}', expected m16n8k16 or 32x32x8")
    return int(match[1]), int(match[2]), int(match[3])


def _expand(axes: Section) -> Iterator[Variables]:
    """Multiplies out one entry of `variants:`; values that copy others ("{d}") are filled in last."""
    lists = {key: _axis(axes, key) for key in axes}
    for point in itertools.product(*lists.values()):
        variables = dict(zip(lists, point, strict=True))
        yield {key: value.format(**variables) if "{" in value else value for key, value in variables.items()}


def _axis(axes: Section, key: str) -> list[str]:
    value = axes[key]
    if isinstance(value, Section):
        return [str(n) for n in range(value["from"], value["to"] + 1, value["step"])]
    return [str(item) for item in (value if isinstance(value, list) else [value])]


# Reading ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def families() -> AnyMapping[str, Family]:
    """Every family by name. Raises SpecError with file, line, key and what was expected; what is wrong inside
    a family when it is looked up."""
    found: dict[str, _Reader] = {}
    for path in sorted((spec_folder() / "families").glob("*.yaml")):
        found |= _readers(yamlfile.read(path))
    return _Families(found)


def read_families(document: Section) -> dict[str, Family]:
    """The families of one parsed file."""
    return dict(_Families(_readers(document)))


def _readers(document: Section) -> dict[str, _Reader]:
    given = FAMILIES.read(document)
    found = {}
    for name, section in document["families"].items():
        for key in SHARED:
            if key in document and key not in section:
                section[key], section.lines[key] = document[key], document.lines[key]
        found[name] = _Reader(name, section, vendors()[given["vendor"]], given["source"])
    return found


class _Families(AnyMapping[str, Family]):
    """Families that are read when they are first looked up: one architecture has a few of them."""

    def __init__(self, readers: dict[str, _Reader]) -> None:
        self._readers, self._read = readers, dict[str, Family]()

    def __getitem__(self, name: str) -> Family:
        if name not in self._read:
            self._read[name] = self._readers[name].family()
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._readers

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


class _Reader:
    """Reads one family and checks it against its own variables."""

    def __init__(self, name: str, section: Section, vendor: Vendor, source: str) -> None:
        self.name, self.section, self.vendor, self.source = name, section, vendor, source

    def family(self) -> Family:
        """The family; raises SpecError."""
        section = self.section
        given = self.given = FAMILY.read(section)
        axes = section["variants"]
        self.swept = any(isinstance(value, Section) for axis in axes for value in axis.values())
        self.variants = tuple(variables for axis in axes for variables in _expand(axis))
        self.values: dict[str, set[str]] = {}
        for variables in self.variants:
            for key, value in variables.items():
                self.values.setdefault(key, set()).add(value)
        self.everywhere = {key for key in self.values if all(key in each for each in self.variants)}

        family = Family(
            self.name,
            self.vendor,
            self.filled(given["name"], "name"),
            tuple(self.filled(text, "also_named") for text in given["also_named"]),
            given["words"],
            self.filled(given["title"], "title", ("shapes",)),
            given["pages_by"],
            {key: self.filled(text, "formats") for key, text in given["formats"].items()},
            given["layout"],
            PATTERNS.get(given["sparse"]),
            self.followed("metadata_order"),
            self.followed("blocks"),
            self.followed("scale_block"),
            self.followed("lanes"),
            self.followed("toolkit"),
            self.filled(given["kind"], "kind"),
            self.orders(),
            {
                operand: self.followed(operand, self.table("source_modifiers"))
                for operand in given["source_modifiers"]
            },
            self.traits(),
            self.plain(),
            self.source,
            self.variants,
        )
        self.check_modifiers()
        return family

    def filled(self, text: str, key: str, more: Iterable[str] = ()) -> str:
        """`text`, whose {words} must be variables of every variant (or one of `more`)."""
        known = {*self.everywhere, *more}
        for _, word, _, _ in Formatter().parse(text):
            if word is not None and word not in known:
                raise self.section.error(
                    f"key '{key}' is '{text}': '{word}' is no variable of family {self.name}, expected one "
                    f"of {', '.join(sorted(known))}{nearest(word, known)}",
                    key,
                )
        return text

    def followed(self, key: str, section: Section | None = None) -> Any:
        """A value, or one that follows a variable, {variable: v, values: {...}}: as YAML has it, checked."""
        section = self.section if section is None else section
        value = section.get(key, FAMILY[key].default if section is self.section else None)
        if isinstance(value, str):
            self.filled(value, key)
        if isinstance(value, Section):
            kind = FAMILY[key].value if section is self.section else _MODIFIERS
            for variables in self.variants:
                picked = fill(value, variables)  # says which value is missing
                kind.check(picked, lambda message: section.error(f"key '{key}' {message}", key), "holds")
        return value

    def table(self, key: str) -> Section:
        """A mapping as YAML has it, an empty one where the family has none."""
        found: Section = self.section.get(key) or Section(self.section.file, self.section.line)
        return found

    def traits(self) -> Traits:
        """What is the same for all variants."""
        plain = {key: self.given[key] for key in ("kernel", "in_place", "placement", "other_form", "places")}
        return Traits(swept=self.swept, **plain)

    def orders(self) -> dict[str, str]:
        """Which way matrices lie in memory: row or col, or a variable that says so."""
        found: dict[str, str] = self.given["order"]
        for operand, text in found.items():
            self.filled(text, "order")
            wrong = {text.format(**variables) for variables in self.variants} - {"row", "col"}
            if wrong:
                raise self.table("order").error(
                    f"key '{operand}' gives '{min(wrong)}', expected row or col", operand
                )
        return found

    def plain(self) -> dict[str, tuple[str, ...]]:
        """The values of variables that make a name the plain one."""
        table = self.table("plain")
        for word in table:
            if word not in self.everywhere:
                listed = f"{', '.join(sorted(self.everywhere))}{nearest(word, self.everywhere)}"
                raise table.error(f"unknown key '{word}', expected one of {listed}", word)
        found: dict[str, tuple[str, ...]] = self.given["plain"]
        return found

    def check_modifiers(self) -> None:
        """Every value of a variable that the vendor calls a modifier has a word."""
        for key in self.vendor.modifiers.keys() & self.values.keys():
            wrong = self.values[key] - self.vendor.modifiers[key].keys()
            if wrong:
                raise self.section.error(
                    f"variable '{key}' is '{min(wrong)}', and 'modifiers' of {self.vendor.name} "
                    f"(spec/vendors) has {', '.join(repr(word) for word in self.vendor.modifiers[key])}",
                    "variants",
                )
