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
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.errors import MmagoldError, SpecError, nearest
from golden.vectors.vectorset import MOST, MOST_AT_ONCE, shares_of
from golden.yamlfile import Section
from rtl_tb import engines
from rtl_tb.check.check import DEFAULT_COUNTS, Options
from rtl_tb.check.synthesis import POLICIES
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.sources import matching
from rtl_tb.engines.job import SIMULATORS, Traffic

MOST_SEEDS = 100_000
_KEYS = ("engines", "kinds", "seeds")
NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,59}", re.ASCII)
"""Of a regression, and of a mix of kinds."""
WHOLE_SETTINGS = {"resets": 0, "timeout_cycles": 1}
"""Traffic of an engine that is counted, with the least of it."""
REAL_SETTINGS = ("idle", "backpressure", "wall_timeout")
"""Traffic of an engine that is measured."""


@dataclass(frozen=True)
class Engine:
    """An engine on a simulator, how many vectors it runs for each seed, how many of them make a shard, and
    under which traffic (see rtl_tb.check.check.Options)."""

    engine: str
    simulator: str
    count: int
    shard: int
    settings: Mapping[str, Any] = field(default_factory=dict)

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
    kinds: Mapping[str, Mapping[str, float] | None]
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
    name = document.take("regress", str, path.stem)
    if not NAME.fullmatch(name):
        raise document.error(
            f"key 'regress' is {name[:60]!a}, expected letters, digits and . _ + -", "regress"
        )
    usual = _choices(document, None)
    found: dict[Path, tuple[dict[str, Any], Section]] = {}
    for entry in document.take("units", list):
        section, choices = document, usual
        if isinstance(entry, Section):
            section, choices = entry, _choices(entry, usual)
        pattern = entry.take("dut", str) if isinstance(entry, Section) else entry
        if not isinstance(pattern, str):
            raise document.error(
                f"key 'units' holds {entry!r}, expected files or mappings with 'dut'", "units"
            )
        for file in _files(section, path.parent, pattern):
            if file in found:
                raise section.error(f"{file} is named twice", "units" if section is document else "dut")
            found[file] = choices, section
        if isinstance(entry, Section):
            entry.done()
    document.done()
    if not found:
        raise document.error("key 'units' is empty; a regression of nothing proves nothing", "units")
    return Plan(name, path, _units(path.parent, {file: choices for file, (choices, _) in found.items()}))


def _files(section: Section, folder: Path, pattern: str) -> list[Path]:
    key = "dut" if "dut" in section else "units"
    try:
        files = [Path(os.path.abspath(file)) for file in matching(folder, pattern, ())]
    except SpecError as error:
        raise section.error(f"key '{key}': {error}", key) from None
    if not files:
        siblings = [entry.name for entry in (folder / pattern).parent.glob("*.yaml")]
        raise section.error(
            f"key '{key}': '{pattern}' is no file in {folder}{nearest(Path(pattern).name, siblings)}", key
        )
    return files


def _units(folder: Path, found: Mapping[Path, dict[str, Any]]) -> tuple[Unit, ...]:
    """The units with names that tell them apart: the DUT's own, or its file's where two have the same."""
    duts = {file: load_dut(file) for file in found}
    counts = Counter(dut.name for dut in duts.values())
    units = []
    for file, dut in duts.items():
        name = dut.name if counts[dut.name] == 1 else os.path.relpath(file, folder)
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


def _choices(section: Section, usual: Mapping[str, Any] | None) -> dict[str, Any]:
    """The keys that may stand for all units and for one: engines, kinds, seeds."""
    found = dict(usual or {})
    readers = {"engines": _engines, "kinds": _kinds, "seeds": _seeds}
    for key in _KEYS:
        if key in section or usual is None:
            found[key] = readers[key](section)
    return found


def _engines(section: Section) -> tuple[Engine, ...]:
    entries = section.take("engines", (str, list), ["fast"])
    entries = [entries] if isinstance(entries, str) else entries
    found = tuple(_engine(section, entry) for entry in entries)
    twice = [name for name, count in Counter(engine.name for engine in found).items() if count > 1]
    if twice or not found:
        raise section.error(
            f"key 'engines' holds {twice[0]} twice" if twice else "key 'engines' is empty", "engines"
        )
    return found


def _engine(section: Section, entry: Any) -> Engine:
    if isinstance(entry, str):
        name, simulator = split_engine(entry)
        entry = Section(section.file, section.lines.get("engines", section.line))
        entry |= {"engine": name, "sim": simulator}
    if not isinstance(entry, Section):
        raise section.error(f"key 'engines' holds {entry!r}, expected a name or a mapping", "engines")
    engine = entry.take_choice("engine", engines.ENGINES)
    simulator = entry.take_choice("sim", SIMULATORS, "verilator")
    count = entry.take_int("count", 1, MOST, DEFAULT_COUNTS[engine])
    shard = entry.take_int("shard", 1, MOST_AT_ONCE, DEFAULT_COUNTS[engine])
    settings = {key: entry.take_int(key, low, 2**31 - 1, None) for key, low in WHOLE_SETTINGS.items()}
    settings |= {key: entry.take(key, (int, float), None) for key in REAL_SETTINGS}
    settings["synthesis"] = entry.take_choice("synthesis", POLICIES, None)
    entry.done()
    given = {key: value for key, value in settings.items() if value is not None}
    try:
        engines.check_choice(engine, simulator)
        Options(engine, simulator, **given).traffic(Traffic())
    except MmagoldError as error:
        raise entry.error(str(error)) from None
    return Engine(engine, simulator, count, shard, given)


def split_engine(text: str) -> tuple[str, str]:
    """Engine and simulator of "selfcheck/icarus" or "fast"."""
    name, _, simulator = text.partition("/")
    return name, simulator or "verilator"


def _kinds(section: Section) -> dict[str, Mapping[str, float] | None]:
    mixes = section.take("kinds", (str, Section), None)
    if mixes is None or mixes == "all":
        return {"all": None}
    if isinstance(mixes, str):
        raise section.error(
            f"key 'kinds' is '{mixes}', expected all, or shares by the name of a mix", "kinds"
        )
    return {name: _mix(mixes, name) for name in mixes} or {"all": None}


def _mix(mixes: Section, name: str) -> Mapping[str, float] | None:
    if not NAME.fullmatch(name):
        raise mixes.error(f"{name[:60]!a} in 'kinds' is no name: expected letters, digits and . _ + -", name)
    mix = mixes.take(name, (str, Section))
    if mix == "all":
        return None
    if isinstance(mix, str):
        raise mixes.error(f"mix '{name}' is '{mix}', expected all, or shares such as {{tie: 2}}", name)
    weights = {kind: float(mix.take(kind, (int, float))) for kind in mix}
    try:
        shares_of(weights)
    except MmagoldError as error:
        raise mix.error(str(error)) from None
    return weights


def _seeds(section: Section) -> tuple[int, ...]:
    if isinstance(section.get("seeds"), list):
        found = section.take_ints("seeds", 0, 2**32 - 1)
        if not found:
            raise section.error("key 'seeds' is empty", "seeds")
        return tuple(found)
    return tuple(range(1, section.take_int("seeds", 1, MOST_SEEDS, 1) + 1))
