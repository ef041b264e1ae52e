"""regress.yaml: which units run on which engines, with which kinds of vectors and seeds.

    regress: nightly
    units: [units/*.yaml, {dut: big.yaml, engines: [fast]}]
    engines: [fast, {engine: selfcheck, sim: icarus, count: 2000}]
    kinds: {usual: all, ties: {tie: 2, narrow: 1}}
    seeds: [1, 2, 3]

docs/regress.md explains every key.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.errors import MmagoldError, SpecError
from golden.files.inputs import elsewhere
from golden.stimuli import INTEGER_KINDS, KINDS
from golden.values import Choice, Either, Integer, Key, Many, Mapping, Number, Table, Text
from golden.vectors.vectorset import MOST, MOST_AT_ONCE, shares_of
from golden.yamlfile import Section
from rtl_tb import engines
from rtl_tb.check.options import DEFAULT_COUNTS, Options
from rtl_tb.check.synthesis import POLICIES
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.sources import matching
from rtl_tb.engines.job import SIMULATORS, Traffic

NAME = Text(r"[A-Za-z0-9][\w.+-]{0,59}", "letters, digits and . _ + -")
"""Of a regression, and of a mix of kinds."""
ENGINE_NAMES = tuple(
    name for engine in engines.ENGINES for name in (engine, *(f"{engine}/{one}" for one in SIMULATORS))
)
"""An engine, on a simulator where it is not Verilator."""
_MOST_CYCLES = 2**31 - 1
"""Of a reset in mid-flight, and of a timeout."""
SETTINGS = (
    Key("idle", Number(0), "share of cycles without operands; by default that of `rtl check`", None),
    Key("backpressure", Number(0), "share of cycles in which no result is taken; by default the same", None),
    Key("resets", Integer(0, _MOST_CYCLES), "resets in mid-flight", None),
    Key("timeout_cycles", Integer(1, _MOST_CYCLES), "as `--timeout`", None),
    Key("wall_timeout", Number(0), "as `--wall-timeout`, in seconds", None),
    Key(
        "synthesis",
        Choice(POLICIES),
        "as [`--synthesis`](simulators.md#what-synthesis-reads); notes of units that pass stand in every "
        "report",
        None,
        instead="`try`",
    ),
)
ENGINE = Mapping(
    (
        Key("engine", Choice(engines.ENGINES), "as in [Simulators and engines](simulators.md)"),
        Key("sim", Choice(SIMULATORS), "the simulator", "verilator"),
        Key(
            "count",
            Integer(1, MOST),
            "vectors for each seed and mix",
            None,
            instead=", ".join(f"{engine} {count:,}" for engine, count in DEFAULT_COUNTS.items()),
        ),
        Key(
            "shard",
            Integer(1, MOST_AT_ONCE),
            "vectors of a shard, made up to whole blocks of the seed's stream (16,384 dot products, 8,192 of "
            "a unit that keeps its accumulator)",
            None,
            instead="the same",
        ),
        *SETTINGS,
    )
)
"""An engine of a regression."""
_ALL = Choice(("all",))
_CHOICES = (
    Key(
        "engines",
        Many(Either(Choice(ENGINE_NAMES, what="`fast`, `selfcheck/icarus`, ..."), ENGINE), 1, alone=True),
        "engines, each by its name or as [a mapping](#an-engine)",
        ("fast",),
    ),
    Key(
        "kinds",
        Either(_ALL, Table(Either(_ALL, Table(Number(0), Choice((*KINDS, *INTEGER_KINDS)))), NAME)),
        "mixes of [kinds](vectors.md#kinds): `all`, the default mix, or shares by the name of the mix",
        "all",
    ),
    Key(
        "seeds",
        Either(Integer(1, 100_000), Many(Integer(0, 2**32 - 1), 1, different=True)),
        "how many seeds, or which",
        1,
    ),
)
REGRESS = Mapping(
    (
        Key("regress", NAME, "name in reports; by default the file's", None),
        Key(
            "units",
            Many(Either(Text(), Mapping((Key("dut", Text(), "dut.yaml file, or a pattern"), *_CHOICES))), 1),
            "dut.yaml files and patterns, relative to this file; a mapping with `dut` for a unit with "
            "choices of its own",
        ),
        *_CHOICES,
    )
)
"""A regress.yaml."""


@dataclass(frozen=True)
class Engine:
    """An engine on a simulator, how many vectors it runs for each seed, how many of them make a shard, and
    under which traffic (see rtl_tb.check.check.Options)."""

    engine: str
    simulator: str
    count: int
    shard: int
    settings: AnyMapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As reports call it."""
        return f"{self.engine}/{self.simulator}"


@dataclass(frozen=True)
class Unit:
    """A DUT and what runs on it; `kinds` are shares by the name of the mix, None: the default mix."""

    name: str
    dut: Dut
    engines: tuple[Engine, ...]
    kinds: AnyMapping[str, AnyMapping[str, float] | None]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """A regression: its name and its units."""

    name: str
    file: Path
    units: tuple[Unit, ...]


def load_plan(path: str | Path) -> Plan:
    """Reads a regress.yaml, and the dut.yaml of each of its units.

    Raises:
        SpecError: one of these files is wrong; with file, line, key and what was expected.
    """
    document, path = yamlfile.read(path), Path(path).absolute()
    given = REGRESS.read(document)
    usual = _choices(document, given, {})
    found: dict[Path, tuple[dict[str, Any], Section]] = {}
    for entry, unit in zip(document["units"], given["units"], strict=True):
        section, pattern = (document, unit) if isinstance(unit, str) else (entry, unit["dut"])
        choices = usual if isinstance(unit, str) else _choices(entry, unit, usual)
        for file in _files(section, path.parent, pattern):
            if file in found:
                raise section.error(f"{file} is named twice", "units" if section is document else "dut")
            found[file] = choices, section
    units = _units(path.parent, {file: choices for file, (choices, _) in found.items()})
    return Plan(given["regress"] or path.stem, path, units)


def _files(section: Section, folder: Path, pattern: str) -> list[Path]:
    key = "dut" if "dut" in section else "units"
    try:
        files = [Path(os.path.abspath(file)) for file in matching(folder, pattern, ())]
    except SpecError as error:
        raise section.error(f"key '{key}': {error}", key) from None
    if not files:
        near = elsewhere(folder / pattern)
        raise section.error(f"key '{key}': '{pattern}' is no file in {folder}{near}", key)
    return files


def _units(folder: Path, found: AnyMapping[Path, dict[str, Any]]) -> tuple[Unit, ...]:
    """The units with names that distinguish them: the DUT's own, or its file's where two have the same."""
    duts = {file: load_dut(file) for file in found}
    places = {file: os.path.relpath(file, folder) for file in found}
    counts = Counter([*(dut.name for dut in duts.values()), *places.values()])
    units = []
    for file, dut in duts.items():
        name = dut.name if counts[dut.name] == 1 else places[file]
        units.append(Unit(name, dut, **found[file]))
    _check_instructions(units)
    return tuple(units)


def _check_instructions(units: list[Unit]) -> None:
    """Coverage is merged by the instruction's name: two units of one's own must not share one."""
    seen: dict[tuple[str, str], Dut] = {}
    for unit in units:
        ins = unit.dut.instruction
        other = seen.setdefault((ins.architecture, ins.name), unit.dut)
        if other.instruction.program != ins.program or other.instruction.formats != ins.formats:
            raise SpecError(
                f"{unit.dut.file}: its unit is called {ins.name}, and another one of {other.file} is, too; "
                "expected one name for each (key 'unit' of the unit's file)"
            )


def _choices(section: Section, given: dict[str, Any], usual: AnyMapping[str, Any]) -> dict[str, Any]:
    """The keys that may stand for all units and for one: engines, kinds, seeds."""
    readers = {"engines": _engines, "kinds": _kinds, "seeds": _seeds}
    return {
        key: usual[key] if usual and key not in section else read(section, given[key])
        for key, read in readers.items()
    }


def _engines(section: Section, given: tuple[Any, ...]) -> tuple[Engine, ...]:
    written = section.get("engines")
    entries = written if isinstance(written, list) else [section]
    found = tuple(
        _engine(entry if isinstance(entry, Section) else section, one)
        for entry, one in zip(entries, given, strict=True)
    )
    twice = [name for name, count in Counter(engine.name for engine in found).items() if count > 1]
    if twice:
        raise section.error(f"key 'engines' holds {twice[0]} twice", "engines")
    return found


def _engine(section: Section, given: Any) -> Engine:
    if isinstance(given, str):
        name, simulator = split_engine(given)
        given = {"engine": name, "sim": simulator}
    engine, simulator = given["engine"], given["sim"]
    settings = {key.name: given[key.name] for key in SETTINGS if given.get(key.name) is not None}
    try:
        engines.check_choice(engine, simulator)
        Options(engine, simulator, **settings).traffic(Traffic())
    except MmagoldError as error:
        raise section.error(str(error), "engines") from None
    count, shard = (given.get(key) or DEFAULT_COUNTS[engine] for key in ("count", "shard"))
    return Engine(engine, simulator, count, shard, settings)


def split_engine(text: str) -> tuple[str, str]:
    """Engine and simulator of "selfcheck/icarus" or "fast"."""
    name, _, simulator = text.partition("/")
    return name, simulator or "verilator"


def _kinds(section: Section, given: Any) -> dict[str, AnyMapping[str, float] | None]:
    if given == "all" or not given:
        return {"all": None}
    mixes = section["kinds"]
    return {name: None if mix == "all" else _mix(mixes[name], mix) for name, mix in given.items()}


def _mix(section: Section, given: dict[str, float]) -> AnyMapping[str, float]:
    try:
        shares_of(given)
    except MmagoldError as error:
        raise section.error(str(error)) from None
    return given


def _seeds(section: Section, given: int | tuple[int, ...]) -> tuple[int, ...]:
    return given if isinstance(given, tuple) else tuple(range(1, given + 1))
