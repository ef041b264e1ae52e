"""Which instructions an architecture has: families (names, shapes, types) joined with the program that
computes them.

`spec/families` says what instructions exist; `spec/architectures/NAME.yaml` says, family by family, what the
chip computes for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from golden import yamlfile
from golden.catalog import evidence_file
from golden.catalog.families import Family, Variables, families
from golden.catalog.vendors import Vendor, take_vendor
from golden.errors import UnknownNameError, nearest
from golden.number.format_words import format_word, plain_word
from golden.paths import spec_folder, vector_file
from golden.registers import layouts
from golden.yamlfile import Section

EVIDENCE = ("captured", "published", "derived")


@dataclass(frozen=True)
class Entry:
    """What one architecture says of (a part of) one family."""

    family: Family
    where: dict[str, tuple[str, ...]]
    sass: tuple[str, ...]
    emulated: bool
    program: list[Any]
    evidence: dict[str, str]
    section: Section
    layout: str | None

    def variants(self) -> Iterator[Variables]:
        """Yields the variables of every variant that this entry covers."""
        return _chosen(self.family, self.where)


def _chosen(family: Family, where: Mapping[str, tuple[str, ...]]) -> Iterator[Variables]:
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

    def names(self) -> Iterator[str]:
        """Yields the name of every variant."""
        for variables in _chosen(self.family, self.where):
            yield self.family.template.format(**variables)


@dataclass(frozen=True)
class Architecture:
    """One architecture: targets, devices, sources, its instruction entries, and the instructions that move
    matrices between memory and registers.

    `line`: the vendor's product line, in which generations follow one another. `also_named`: words that mean
    it beside its name, title, targets and devices. `unknown`: instructions that it has, but whose arithmetic
    nobody has told.
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

    def spelled(self, name: str) -> str | None:
        """The name under which the spec lists what `name` means, None where it means no instruction of the
        architecture."""
        return name if name in self.names() else _other_names(self.name).get(name)

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


@cache
def _other_names(architecture: str) -> dict[str, str]:
    """The listed name for every other spelling."""
    return {
        spelling: name
        for name, (entry, variables) in _names(architecture).items()
        if entry.family.also_named
        for spelling in entry.family.spellings(variables)[1:]
    }


def _take_family(item: Section) -> tuple[Family, dict[str, tuple[str, ...]]]:
    """The keys `family` and `where`: a family, and the values of variables that choose from it."""
    name = item.take("family", str)
    if name not in families():
        raise item.error(f"unknown family '{name}'{nearest(name, families())}", "family")
    family = families()[name]
    where = item.take("where", Section, None) or {}
    for key in where:
        if any(key not in variables for variables in family.variants):
            raise item.error(f"'{key}' is no variable of family {name}", "where")
    return family, {
        key: tuple(str(v) for v in (value if isinstance(value, list) else [value]))
        for key, value in where.items()
    }


def _load_unknown(item: Section) -> Unknown:
    family, where = _take_family(item)
    unknown = Unknown(family, where, item.take("why", str))
    item.done()
    if not any(unknown.names()):
        raise item.error(f"family {family.name} has no such variant", "where")
    return unknown


def _load_entry(item: Section, programs: dict[str, Any]) -> Entry:
    family, chosen = _take_family(item)
    program = item.take("program", str)
    if program not in programs:
        raise item.error(f"unknown program '{program}'{nearest(program, programs)}", "program")
    evidence = item.take("evidence", Section)
    evidence.take_choice("kind", EVIDENCE[1:])  # "captured" follows from spec/evidence, nobody claims it
    evidence.take("source", str)
    entry = Entry(
        family,
        chosen,
        tuple(item.take_names("sass", [])),
        item.take("emulated", bool, False),
        programs[program],
        dict(evidence),
        item,
        _layout(item, family),
    )
    item.done()
    return entry


def _layout(item: Section, family: Family) -> str | None:
    """The register layout: the family's, unless the architecture has another or none that is known."""
    layout = item.take_choice("layout", (*layouts.names(), "none"), family.layout)
    return None if layout == "none" else layout


@lru_cache(maxsize=1)
def _files() -> dict[str, Section]:
    loaded = {path.stem: yamlfile.read(path) for path in (spec_folder() / "architectures").glob("*.yaml")}
    return dict(sorted(loaded.items(), key=lambda item: item[1].take_int("order", 1, 1000)))


@cache
def get_architecture(name: str) -> Architecture:
    """Returns the architecture of that very name (`called` knows the words that mean one).

    Raises:
        UnknownNameError: there is none; the message names near ones.
    """
    if name not in _files():
        raise _unknown(name)
    document = _files()[name]
    parts = [
        yamlfile.read(spec_folder() / "architectures" / "common" / f"{part}.yaml")
        for part in document.take_names("include", [])
    ]
    parts.append(document)
    programs: dict[str, Any] = {}
    for part in parts:
        programs |= part.take("programs", Section, None) or {}
    items = [item for part in parts for item in part.take("instructions", list, [])]
    unknown = [item for part in parts for item in part.take("unknown", list, [])]
    sources = [part.take("source", str) for part in parts]
    built = Architecture(
        document.take("architecture", str),
        document.take("title", str),
        take_vendor(document),
        document.take("order", int),
        tuple(document.take_names("targets")),
        tuple(document.take_names("devices")),
        sources[-1],
        tuple(document.take_names("notes", [])),
        tuple(_load_entry(item, programs) for item in items),
        tuple(document.take_names("movement", [])),
        document.take_name("line", ""),
        tuple(_load_unknown(item) for item in unknown),
        tuple(document.take_names("also_named", [])),
    )
    for part in parts:
        part.done()
    known = built.unknown_names().keys() & {
        entry.family.template.format(**variables) for entry in built.entries for variables in entry.variants()
    }
    if known:
        raise document.error(f"'{min(known)}' is both under 'instructions' and 'unknown'", "unknown")
    return built


def _unknown(word: str) -> UnknownNameError:
    known = _files()
    meant = _words().get(plain_word(word))
    if format_word(word) is not None:
        hint = f"; '{word}' is a type of operands: mmagold list {word} lists the instructions that have it"
    else:
        hint = nearest(word, known_words()) if meant is None else f"; nearest: {meant}"
    expected = "" if hint else f", expected one of {', '.join(known)}"  # the list alone fills three lines
    return UnknownNameError(f"unknown architecture '{word}'{expected}{hint}")


@lru_cache(maxsize=1)
def _words() -> dict[str, str]:
    """The architecture that each word means, words as `plain_word` spells them."""
    found = {plain_word(name): name for name in _files()}
    for name in _files():
        for word in map(plain_word, get_architecture(name).words):
            if found.setdefault(word, name) != name:
                raise _files()[name].error(f"'{word}' means {found[word]} as well, expected one of the two")
    return found


def known_words() -> list[str]:
    """The words that mean an architecture."""
    return [*_files(), *_words()]


def meant(word: str) -> str | None:
    """The name of the architecture that a word means: its own, a card's (h100, RTX 5090), a target's (sm_90);
    None where it means none."""
    return word if word in _files() else _words().get(plain_word(word))


def called(word: str) -> str:
    """Returns the name of the architecture that a word means (see `meant`).

    Raises:
        UnknownNameError: it means none; the message names near ones.
    """
    name = meant(word) if isinstance(word, str) else None
    if name is None:
        raise _unknown(str(word))
    return name


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
