"""Which instructions an architecture has: families (names, shapes, types) joined with the program that
computes them.

`spec/families` says what instructions exist; `spec/architectures/NAME.yaml` says, family by family, what the
chip computes for them. A variant is one point of a family's axes; it stays a small dict until somebody asks
for it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from golden import yamlfile
from golden.catalog import evidence_file
from golden.errors import UnknownNameError, nearest
from golden.paths import spec_folder, vector_file
from golden.yamlfile import Section

EVIDENCE = ("captured", "published", "derived")
_SHAPE = re.compile(r"m?(\d+)[nx](\d+)[kx](\d+)$")


@dataclass(frozen=True)
class Family:
    """One family of instructions: a name template, operand formats, and the axes its variants multiply
    out."""

    name: str
    template: str
    formats: dict[str, str]
    layout: str | None
    sparse: bool
    blocks: Any
    scale_block: Any
    source: str
    variants: tuple[dict[str, str], ...]


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

    def variants(self) -> Iterator[dict[str, str]]:
        """Yields the variables of every variant that this entry covers."""
        for variables in self.family.variants:
            if all(variables[key] in values for key, values in self.where.items()):
                yield variables


@dataclass(frozen=True)
class Architecture:
    """One GPU architecture: targets, devices, sources and its instruction entries."""

    name: str
    title: str
    vendor: str
    order: int
    targets: tuple[str, ...]
    devices: tuple[str, ...]
    source: str
    notes: tuple[str, ...]
    entries: tuple[Entry, ...]

    def names(self) -> dict[str, tuple[Entry, dict[str, str]]]:
        """Returns every instruction name with its entry and variables, in the order of the spec."""
        return _names(self.name)

    def spelled(self, name: str) -> str | None:
        """The name under which the spec lists what `name` means, None where it means no instruction of the
        architecture."""
        return next((spelling for spelling in spellings(name) if spelling in self.names()), None)


def spellings(name: str) -> tuple[str, ...]:
    """A PTX name as it stands, then its other spelling, where it has one.

    ptxas 13.0 takes `.satfinite` of mma, wgmma and wmma before the type of d, as PTX prints that of mma, and
    at the end of the name, as it prints that of wgmma; both mean the same instruction.
    """
    before = re.fullmatch(r"(\w*mma[.:\w]*?)\.satfinite(\.s32\.[.\w]*)", name)
    if before is not None and ".satfinite" not in before[1] + before[2]:
        return name, f"{before[1]}{before[2]}.satfinite"
    after = re.fullmatch(r"(\w*mma[.:\w]*?)(\.s32\.[.\w]*)\.satfinite", name)
    if after is not None and ".satfinite" not in after[1] + after[2]:
        return name, f"{after[1]}.satfinite{after[2]}"
    return (name,)


@lru_cache(maxsize=16)
def _names(architecture: str) -> dict[str, tuple[Entry, dict[str, str]]]:
    return {
        entry.family.template.format(**variables): (entry, variables)
        for entry in get_architecture(architecture).entries
        for variables in entry.variants()
    }


def fill(value: Any, variables: dict[str, str]) -> Any:
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


def _look_up(section: Section, variables: dict[str, str]) -> Any:
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


def _expand(axes: Section) -> Iterator[dict[str, str]]:
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


def _load_family(name: str, section: Section, source: str) -> Family:
    template = section.take("name", str)
    formats = section.take("formats", Section)
    variants = section.take("variants", list)
    family = Family(
        name,
        template,
        dict(formats),
        section.take("layout", str, None),
        section.take("sparse", bool, False),
        section.take("blocks", (int, Section), 1),
        section.take("scale_block", (int, Section), None),
        source,
        tuple(variables for axes in variants for variables in _expand(axes)),
    )
    section.done()
    return family


@lru_cache(maxsize=1)
def _families() -> dict[str, Family]:
    families: dict[str, Family] = {}
    for path in sorted((spec_folder() / "families").glob("*.yaml")):
        document = yamlfile.read(path)
        source, table = document.take("source", str), document.take("families", Section)
        document.done()
        families |= {name: _load_family(name, table.take(name, Section), source) for name in table}
    return families


def _load_entry(item: Section, programs: dict[str, Any]) -> Entry:
    name = item.take("family", str)
    if name not in _families():
        raise item.error(f"unknown family '{name}'{nearest(name, _families())}", "family")
    family = _families()[name]
    where = item.take("where", Section, None) or {}
    program = item.take("program", str)
    if program not in programs:
        raise item.error(f"unknown program '{program}'{nearest(program, programs)}", "program")
    evidence = item.take("evidence", Section)
    evidence.take_choice("kind", EVIDENCE[1:])  # "captured" follows from spec/evidence, nobody claims it
    evidence.take("source", str)
    for key in where:
        if any(key not in variables for variables in family.variants):
            raise item.error(f"'{key}' is no variable of family {name}", "where")
    chosen = {
        key: tuple(str(v) for v in (value if isinstance(value, list) else [value]))
        for key, value in where.items()
    }
    entry = Entry(
        family,
        chosen,
        tuple(item.take_names("sass", [])),
        item.take("emulated", bool, False),
        programs[program],
        dict(evidence),
        item,
        item.take("layout", str, family.layout),
    )
    item.done()
    return entry


@lru_cache(maxsize=1)
def _files() -> dict[str, Section]:
    loaded = {path.stem: yamlfile.read(path) for path in (spec_folder() / "architectures").glob("*.yaml")}
    return dict(sorted(loaded.items(), key=lambda item: item[1].take_int("order", 1, 1000)))


@lru_cache(maxsize=16)
def get_architecture(name: str) -> Architecture:
    """Returns one architecture; raises UnknownNameError naming near ones."""
    if name not in _files():
        raise UnknownNameError(
            f"unknown architecture '{name}', expected one of {', '.join(_files())}{nearest(name, _files())}"
        )
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
    sources = [part.take("source", str) for part in parts]
    built = Architecture(
        document.take("architecture", str),
        document.take("title", str),
        document.take("vendor", str),
        document.take("order", int),
        tuple(document.take_names("targets")),
        tuple(document.take_names("devices")),
        sources[-1],
        tuple(document.take_names("notes", [])),
        tuple(_load_entry(item, programs) for item in items),
    )
    for part in parts:
        part.done()
    return built


@dataclass(frozen=True)
class Captures:
    """What was recorded on a real GPU of one architecture: the device and, by instruction name, the vector
    file."""

    device: str
    vectors: dict[str, str]
    manifest_sha256: str = ""


@lru_cache(maxsize=16)
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
    """Returns the names of the architectures, NVIDIA by age, then AMD by age."""
    return list(_files())


def shape_of(variables: dict[str, str], section: Section) -> tuple[int, int, int]:
    """Reads (m, n, k) from the variable `shape`, "m16n8k16" or "32x32x8"."""
    match = _SHAPE.match(variables.get("shape", ""))
    if match is None:
        raise section.error(f"variable 'shape' is '{variables.get('shape')}', expected m16n8k16 or 32x32x8")
    return int(match[1]), int(match[2]), int(match[3])
