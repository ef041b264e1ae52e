"""Families of instructions (spec/families): names, operand types, shapes, and the traits that no architecture
changes.

A variant is one point of a family's axes; it stays a small dict of variables until somebody asks for it. What
a file's families have in common may stand once, at the top of the file.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter
from typing import Any

from golden import yamlfile
from golden.catalog.vendors import Vendor, take_vendor
from golden.errors import nearest
from golden.paths import spec_folder
from golden.registers import layouts
from golden.registers.sparsity import PATTERNS, Pattern
from golden.traits import PLACES, SOURCES, Traits
from golden.yamlfile import Section

SHARED = (
    "title",
    "layout",
    "sparse",
    "metadata_order",
    "lanes",
    "kernel",
    "toolkit",
    "in_place",
    "places",
    "placement",
    "kind",
    "order",
    "source_modifiers",
    "plain",
    "other_form",
    "pages_by",
)
"""What may stand at the top of a file for all of its families."""
SCALES = "scales"
"""`pages_by` of a family whose pages are told apart by its scales."""
OPERANDS = ("a", "b", "c", "d", "metadata", "scale_a", "scale_b")
NO_SOURCE = "none"
"""Said of an operand that has no modifiers in some variants of a family that has them in others."""
_SHAPE = re.compile(r"m?(\d+)[nx](\d+)[kx](\d+)$")
_METADATA_ORDERS = ("ascending", "any")
Variables = dict[str, str]


@dataclass(frozen=True)
class Family:
    """One family of instructions: name templates, operand formats, traits, and the axes its variants multiply
    out.

    `title` is a page's title without the types: a template that also has {shapes}; pages are told apart by
    the type of operand `pages_by`, or by their scales, where that is given. Whatever is `Any` may follow a
    variable (see `fill`).
    """

    name: str
    vendor: Vendor
    template: str
    also_named: tuple[str, ...]
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
        listed = all(variables[key] in values for key, values in self.plain.items())
        return listed and not (self.fixed.other_form or self.fixed.swept)

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
        steps = range(
            value.take_int("from", 1, 4096),
            value.take_int("to", 1, 4096) + 1,
            value.take_int("step", 1, 4096),
        )
        value.done()
        return [str(n) for n in steps]
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(item, (str, int)) for item in values):
        raise axes.error(f"axis '{key}' holds something that is neither a name nor a number", key)
    return [str(item) for item in values]


# Reading ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def families() -> dict[str, Family]:
    """Every family by name. Raises SpecError with file, line, key and what was expected."""
    found: dict[str, Family] = {}
    for path in sorted((spec_folder() / "families").glob("*.yaml")):
        found |= read_families(yamlfile.read(path))
    return found


def read_families(document: Section) -> dict[str, Family]:
    """The families of one parsed file."""
    source, table = document.take("source", str), document.take("families", Section)
    vendor = take_vendor(document)
    shared = [key for key in SHARED if key in document]
    for key in shared:
        document.take(key, (str, int, bool, list, Section))
    document.done(SHARED)
    found = {}
    for name in table:
        section = table.take(name, Section)
        for key in shared:
            if key not in section:
                section[key], section.lines[key] = document[key], document.lines[key]
        found[name] = _Reader(name, section, vendor, source).family()
    return found


class _Reader:
    """Reads one family and checks it against its own variables."""

    def __init__(self, name: str, section: Section, vendor: Vendor, source: str) -> None:
        self.name, self.section, self.vendor, self.source = name, section, vendor, source
        axes = section.take("variants", list)
        self.swept = any(isinstance(value, Section) for axis in axes for value in axis.values())
        self.variants = tuple(variables for axis in axes for variables in _expand(axis))
        self.values: dict[str, set[str]] = {}
        for variables in self.variants:
            for key, value in variables.items():
                self.values.setdefault(key, set()).add(value)
        self.everywhere = {key for key in self.values if all(key in each for each in self.variants)}

    def family(self) -> Family:
        """The family; raises SpecError."""
        section = self.section
        pattern = section.take_choice("sparse", PATTERNS, None)
        family = Family(
            self.name,
            self.vendor,
            self.template("name"),
            tuple(self.filled(text, "also_named") for text in section.take_names("also_named", [])),
            self.template("title", ("shapes",)),
            section.take_choice("pages_by", (*"abcd", SCALES), None),
            {key: self.filled(text, "formats") for key, text in section.take("formats", Section).items()},
            section.take_choice("layout", layouts.names(), None),
            None if pattern is None else PATTERNS[pattern],
            self.followed("metadata_order", str, "ascending", _METADATA_ORDERS),
            self.followed("blocks", int, 1),
            self.followed("scale_block", int, None),
            self.followed("lanes", int),
            self.followed("toolkit", str, None),
            self.template("kind", default=""),
            self.orders(),
            self.sources(),
            self.traits(),
            self.plain(),
            self.source,
            self.variants,
        )
        section.done()
        self.check_modifiers()
        return family

    def template(self, key: str, more: Iterable[str] = (), default: Any = yamlfile.MISSING) -> str:
        """Text with variables of the family."""
        return self.filled(self.section.take(key, str, default), key, more)

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

    def followed(
        self,
        key: str,
        kind: type,
        default: Any = yamlfile.MISSING,
        choices: Iterable[str] | None = None,
        section: Section | None = None,
    ) -> Any:
        """A value, or one that follows a variable: {variable: v, values: {...}}."""
        section = self.section if section is None else section
        value = section.take(key, (kind, Section), default)
        if isinstance(value, str) and value is not default:
            self.filled(value, key)
        if isinstance(value, Section):
            value.take("variable", str)
            value.take("values", Section, None)
            value.done()
        for variables in self.variants if isinstance(value, Section) else ():
            fill(value, variables)  # says which value is missing
        given = value.get("values", {}).values() if isinstance(value, Section) else [value]
        wrong = next((item for item in given if choices and item not in choices), None)
        if wrong is not None:
            raise section.error(
                f"key '{key}' holds '{wrong}', expected {' or '.join(choices or ())}"
                f"{nearest(str(wrong), list(choices or ()))}",
                key,
            )
        return value

    def table(self, key: str, known: Iterable[str]) -> Section:
        """A mapping of known keys; an empty one where the family has none."""
        section = self.section
        table: Section = section.take(key, Section, Section(section.file, section.line))
        for word in table:
            if word not in known:
                listed = f"{', '.join(sorted(known))}{nearest(word, known)}"
                raise table.error(f"unknown key '{word}', expected one of {listed}", word)
        return table

    def traits(self) -> Traits:
        """What is the same for all variants."""
        section = self.section
        return Traits(
            kernel=section.take_word("kernel", None),
            in_place=section.take("in_place", bool, False),
            placement=section.take("placement", str, ""),
            swept=self.swept,
            other_form=section.take("other_form", str, ""),
            places=self.places(),
        )

    def places(self) -> dict[str, tuple[str, ...]]:
        """Where operands live that are not in registers alone."""
        table = self.table("places", OPERANDS)
        for operand in table:
            for place in table.take_names(operand):
                if place not in PLACES:
                    raise table.error(
                        f"key '{operand}' holds '{place}', expected one of {', '.join(PLACES)}"
                        f"{nearest(place, PLACES)}",
                        operand,
                    )
        return {operand: tuple(table.take_names(operand)) for operand in table}

    def orders(self) -> dict[str, str]:
        """Which way matrices lie in memory: row or col, or a variable that says so."""
        table = self.table("order", OPERANDS[:4])
        found = {operand: self.filled(table.take(operand, str), "order") for operand in table}
        for operand, text in found.items():
            wrong = {text.format(**variables) for variables in self.variants} - {"row", "col"}
            if wrong:
                raise table.error(f"key '{operand}' gives '{min(wrong)}', expected row or col", operand)
        return found

    def sources(self) -> dict[str, Any]:
        """What the encoding's modifiers of each operand do, which may follow a variable."""
        table = self.table("source_modifiers", OPERANDS[:4])
        choices = (*SOURCES, NO_SOURCE)
        return {operand: self.followed(operand, str, choices=choices, section=table) for operand in table}

    def plain(self) -> dict[str, tuple[str, ...]]:
        """The values of variables that make a name the plain one."""
        table = self.table("plain", self.everywhere)
        return {key: tuple(table.take_names(key)) for key in table}

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
