"""Which instructions an architecture has: families (names, shapes, types) joined with the program that
computes them.

`spec/families` says what instructions exist; `spec/architectures/NAME.yaml` says, family by family, what the
chip computes for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.catalog import evidence_file
from golden.catalog.families import Family, Variables, families
from golden.catalog.vendors import VENDOR, Vendor, vendors
from golden.errors import UnknownNameError, nearest
from golden.paths import spec_folder, vector_file
from golden.program.keys import STATUS
from golden.registers import layouts
from golden.values import WORD, Anything, Choice, Flag, Integer, Key, Line, Many, Mapping, Table, Text
from golden.yamlfile import Section

EVIDENCE = ("captured", "published", "derived")
_OF_FAMILY = (
    Key("family", Text(), "a family of spec/families"),
    Key("where", Table(Anything("a word or a list of words")), "which of its variants", None),
)
ENTRY = Mapping(
    (
        *_OF_FAMILY,
        Key("program", Text(), "a name under `programs`"),
        Key(
            "evidence",
            Mapping(
                (
                    # "captured" follows from spec/evidence: nobody claims it
                    Key("kind", Choice(EVIDENCE[1:]), "how the arithmetic is known"),
                    Key("source", Text(), "from where"),
                )
            ),
            "how the arithmetic is known",
        ),
        Key("sass", Many(Text(), alone=True), "what it becomes in SASS", ()),
        Key(
            "flags",
            Many(Choice(STATUS.words), 1, len(STATUS.words), different=True, alone=True),
            "the status flags that it can raise, the lowest bit first: as of a [unit](spec-schema.md#flags)",
            (),
        ),
        Key("emulated", Flag(), "whether the compiler makes it of other instructions", False),
        Key(
            "layout",
            Choice(known=lambda: (*layouts.names(), "none"), what="a layout, or `none`"),
            "if the family's registers have another layout on this chip",
            None,
        ),
    )
)
UNKNOWN = Mapping((*_OF_FAMILY, Key("why", Text(), "why nobody knows what they compute")))
RELATIVE = Mapping(
    (
        Key("names", Many(Text(), 1, alone=True), "words that mean it"),
        Key("why", Text(), "what is known of it, and what is not"),
        Key("families", Many(Text(), alone=True), "which families it has; without it all", None),
    )
)
LEFT_OUT = Mapping(
    (
        Key("names", Many(Text(), 1, alone=True), "their names"),
        Key("why", Text(), "why they are not here"),
    )
)
_SHARED = (
    Key("source", Text(), "where the facts come from"),
    Key(
        "programs",
        Table(Anything("a list of operations", (list,), {"type": "array"})),
        "a name for each program: a list of [operations](spec-schema.md#several-operations)",
        {},
    ),
    Key(
        "instructions",
        Many(ENTRY),
        "a family, which of its variants (`where`), the program, SASS names, the evidence; `layout` where "
        "the family's registers have another layout on this chip",
        (),
    ),
    Key(
        "unknown",
        Many(UNKNOWN),
        "a family, which of its variants, and `why` it is not known what they compute: they are listed, and "
        "every command refuses them",
        (),
    ),
    Key(
        "out_of_scope",
        Many(LEFT_OUT),
        "matrix and dot-product instructions that it has and that are not here, with `why`: they are listed "
        "with the unknown ones",
        (),
    ),
)
COMMON = Mapping(_SHARED)
"""A file of spec/architectures/common: what several architectures share."""
ARCHITECTURE = Mapping(
    (
        Key("architecture", WORD, "the name in `golden.instruction(name, ...)`"),
        Key("title", Line(), "the name for people"),
        Key("vendor", VENDOR, "a file of spec/vendors"),
        Key("order", Integer(1, 1000), "the place in lists"),
        Key(
            "line",
            Line(),
            "the vendor's product line, where it has several: a generation is compared with the one before "
            "in its line",
            "",
        ),
        Key("targets", Many(Text(), alone=True), "compiler targets"),
        Key("devices", Many(Text(), alone=True), "cards"),
        Key(
            "also_named",
            Many(Text(), alone=True),
            "other words that mean it: cards of the same chip, the chip, the target without its suffix; no "
            "word may mean two",
            (),
        ),
        Key(
            "groups",
            Many(Text(), alone=True),
            "words that mean it among others, as a brand of several generations: a search finds all of them",
            (),
        ),
        Key(
            "relatives",
            Many(RELATIVE),
            "chips that have its instructions, or some of them, and are not known to compute alike: a search "
            "finds them with a remark, every other command refuses them",
            (),
        ),
        Key("matrix_units", Text(), "what the vendor says of the units of a multiprocessor, and where", ""),
        Key("notes", Many(Text(), alone=True), "what is not known", ()),
        Key("include", Many(Text(), alone=True), "files of `common/`", ()),
        Key(
            "movement",
            Many(Text(), alone=True),
            "which of ldmatrix, stmatrix and movmatrix the architecture has, for [timing](timing.md)",
            (),
        ),
        *_SHARED,
    )
)
"""A file of spec/architectures."""


@dataclass(frozen=True)
class Entry:
    """What one architecture says about (a part of) one family."""

    family: Family
    where: dict[str, tuple[str, ...]]
    sass: tuple[str, ...]
    emulated: bool
    program: list[Any]
    evidence: dict[str, str]
    section: Section
    layout: str | None
    status: tuple[str, ...] = ()

    def variants(self) -> Iterator[Variables]:
        """Yields the variables of every variant that this entry covers."""
        return _chosen(self.family, self.where)


def _chosen(family: Family, where: AnyMapping[str, tuple[str, ...]]) -> Iterator[Variables]:
    return (
        variables
        for variables in family.variants
        if all(variables[key] in values for key, values in where.items())
    )


@dataclass(frozen=True)
class Unknown:
    """(A part of) a family that one architecture has, and why nobody knows what it computes."""

    family: Family
    where: dict[str, tuple[str, ...]]
    why: str

    def names(self) -> dict[str, tuple[str, ...]]:
        """The name of every variant, each with all spellings that mean it."""
        spelled = map(self.family.spellings, _chosen(self.family, self.where))
        return {spellings[0]: spellings for spellings in spelled}


@dataclass(frozen=True)
class Relative:
    """A chip with instructions of an architecture that is not known to compute alike: words that mean it,
    why, and the families that it has, None for all."""

    names: tuple[str, ...]
    why: str
    families: tuple[str, ...] | None


@dataclass(frozen=True)
class Architecture:
    """One architecture: targets, devices, sources, its instruction entries, and the instructions that move
    matrices between memory and registers.

    `line`: the vendor's product line, in which generations follow one another. `also_named`: words that mean
    it, in addition to its name, title, targets and devices. `unknown`: instructions that it has, but whose
    arithmetic is not public. `left_out`: instructions that it has and that are not here, each with why.
    `matrix_units`: what the vendor says about the units of a multiprocessor, or "".
    """

    name: str
    title: str
    maker: Vendor
    order: int
    targets: tuple[str, ...]
    devices: tuple[str, ...]
    source: str
    notes: tuple[str, ...]
    entries: tuple[Entry, ...]
    movement: tuple[str, ...]
    line: str = ""
    unknown: tuple[Unknown, ...] = ()
    also_named: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    relatives: tuple[Relative, ...] = ()
    left_out: AnyMapping[str, str] = field(default_factory=dict)
    matrix_units: str = ""

    @property
    def document(self) -> Section:
        """The file that describes it, for messages."""
        return _document(self.name)

    @property
    def words(self) -> tuple[str, ...]:
        """Every word that means the architecture: H100, sm_90, GH100."""
        return self.title, self.short_title, *self.targets, *self.devices, *self.also_named

    @property
    def vendor(self) -> str:
        """The vendor's name."""
        return self.maker.name

    @property
    def short_title(self) -> str:
        """The title without the vendor, "RTX Blackwell", where what is left is a name."""
        rest = self.title.removeprefix(f"{self.vendor} ")
        return rest if rest[:1].isupper() else self.title

    def names(self) -> dict[str, tuple[Entry, Variables]]:
        """Returns every instruction name with its entry and variables, in the order of the spec."""
        return _names(self.name)

    def unknown_names(self) -> dict[str, str]:
        """Instructions that the architecture has and whose arithmetic is unknown, each with why."""
        return {name: one.why for one in self.unknown for name in one.names()}

    def spellings(self, name: str) -> tuple[str, ...]:
        """A listed name, then the others that mean the same instruction."""
        entry, variables = self.names()[name]
        return entry.family.spellings(variables)


@cache
def _names(architecture: str) -> dict[str, tuple[Entry, Variables]]:
    return {
        entry.family.template.format(**variables): (entry, variables)
        for entry in get_architecture(architecture).entries
        for variables in entry.variants()
    }


def _family(item: Section, given: dict[str, Any]) -> tuple[Family, dict[str, tuple[str, ...]]]:
    """The keys `family` and `where`: a family, and the values of variables that choose from it."""
    name = given["family"]
    if name not in families():
        raise item.error(f"unknown family '{name}'{nearest(name, families())}", "family")
    family = families()[name]
    where = given["where"] or {}
    for key in where:
        if any(key not in variables for variables in family.variants):
            raise item.error(f"'{key}' is no variable of family {name}", "where")
    return family, {
        key: tuple(str(v) for v in (value if isinstance(value, list) else [value]))
        for key, value in where.items()
    }


def _load_unknown(item: Section) -> Unknown:
    given = UNKNOWN.read(item)
    unknown = Unknown(*_family(item, given), given["why"])
    if not any(unknown.names()):
        raise item.error(f"family {unknown.family.name} has no such variant", "where")
    return unknown


def _load_entry(item: Section, programs: dict[str, Any]) -> Entry:
    given = ENTRY.read(item)
    family, chosen = _family(item, given)
    program = given["program"]
    if program not in programs:
        raise item.error(f"unknown program '{program}'{nearest(program, programs)}", "program")
    layout = given["layout"] or family.layout
    return Entry(
        family,
        chosen,
        given["sass"],
        given["emulated"],
        programs[program],
        given["evidence"],
        item,
        None if layout == "none" else layout,
        tuple(given["flags"]),
    )


def _path(name: str) -> Path:
    return spec_folder() / "architectures" / f"{name}.yaml"


@cache
def _document(name: str) -> Section:
    return yamlfile.read(_path(name))


def is_architecture(name: str) -> bool:
    """Whether `name` is an architecture's own name; reads no file."""
    return name.isidentifier() and _path(name).is_file()


@lru_cache(maxsize=1)
def _files() -> dict[str, Section]:
    names = (path.stem for path in (spec_folder() / "architectures").glob("*.yaml"))
    loaded = {name: _document(name) for name in names}
    return dict(sorted(loaded.items(), key=lambda item: item[1].take_int("order", 1, 1000)))


@cache
def get_architecture(name: str) -> Architecture:
    """Returns the architecture of that very name (golden.catalog.resolver knows the words that mean one).

    Raises:
        UnknownNameError: there is none; the message names near ones.
    """
    if not is_architecture(name):
        expected = nearest(name, _files()) or f", expected one of {', '.join(_files())}"
        raise UnknownNameError(f"unknown architecture '{name}'{expected}")
    document = _document(name)
    parts = [
        yamlfile.read(spec_folder() / "architectures" / "common" / f"{part}.yaml")
        for part in document.take_names("include", [])
    ]
    parts.append(document)
    given = ARCHITECTURE.read(document)
    read = [*(COMMON.read(part) for part in parts[:-1]), given]
    programs = {name: program for part in read for name, program in part["programs"].items()}
    items = [item for part in parts for item in part.get("instructions", [])]
    unknown = [item for part in parts for item in part.get("unknown", [])]
    built = Architecture(
        given["architecture"],
        given["title"],
        vendors()[given["vendor"]],
        given["order"],
        given["targets"],
        given["devices"],
        given["source"],
        given["notes"],
        tuple(_load_entry(item, programs) for item in items),
        given["movement"],
        given["line"],
        tuple(_load_unknown(item) for item in unknown),
        given["also_named"],
        given["groups"],
        tuple(
            Relative(tuple(one["names"]), one["why"], one["families"] and tuple(one["families"]))
            for one in given["relatives"]
        ),
        {name: one["why"] for part in read for one in part["out_of_scope"] for name in one["names"]},
        given["matrix_units"],
    )
    known = built.unknown_names().keys() & {
        entry.family.template.format(**variables) for entry in built.entries for variables in entry.variants()
    }
    if known:
        raise document.error(f"'{min(known)}' is both under 'instructions' and 'unknown'", "unknown")
    return built


@dataclass(frozen=True)
class Captures:
    """What was recorded on a real GPU of one architecture: the device and, by instruction name, the vector
    file."""

    device: str
    vectors: dict[str, str]
    manifest_sha256: str = ""


@cache
def captures(architecture: str) -> Captures:
    """Returns the captured instructions of an architecture from spec/evidence (none where there is no such
    file)."""
    document = evidence_file.read(architecture)
    if document is None:
        return Captures("", {})
    folder, table = document.take("vectors", str), document.take("captured", Section)
    vectors = {name: f"{folder}/{vector_file(name)}" for name in table}
    return Captures(document.take("device", str), vectors, document.take("manifest_sha256", str))


def architectures() -> list[str]:
    """Returns the names of the architectures, vendor by vendor, each by age."""
    return list(_files())
