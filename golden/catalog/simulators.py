"""Writes measured cycle counts as cycle-level simulators of GPUs read them: a part of their configuration.

    print(fragment("accel-sim", load("hopper_h200")).text)       # golden.catalog.timing.load

Which option takes the figure of which instruction stands in spec/simulators. An option is written only when
every figure that it takes was measured; else a comment says what is missing, and the simulator's own file
stays as it is. Where no interval was measured, but throughputs, the highest one gives it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from golden.catalog.timing import Figure, sections
from golden.errors import UnknownNameError, nearest
from golden.paths import spec_folder
from golden.yamlfile import Section, read

LATENCY, INTERVAL = "completion_latency", "issue_interval"
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")
_WHAT = {"latency": (LATENCY,), "interval": (INTERVAL,), "both": (LATENCY, INTERVAL)}


@dataclass(frozen=True)
class Option:
    """One line of a configuration: its quantities of each instruction in turn, with commas between."""

    name: str
    quantities: tuple[str, ...]
    instructions: tuple[str, ...]


@dataclass(frozen=True)
class Simulator:
    """One simulator: the file that the fragment belongs into, and its options."""

    name: str
    file: str
    source: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Fragment:
    """The text, how many options it sets, and sentences about options that it cannot set."""

    text: str
    written: int
    missing: tuple[str, ...]


@lru_cache(maxsize=1)
def simulators() -> dict[str, Simulator]:
    """Every simulator by its name.

    Raises:
        SpecError: a file of spec/simulators is wrong; file and line.
    """
    found: dict[str, Simulator] = {}
    for path in sorted((spec_folder() / "simulators").glob("*.yaml")):
        top = read(path)
        source = " ".join(top.take("source", str).split())
        entries = top.take("simulators", Section)
        for name in entries:
            entry = entries.take(name, Section)
            options = tuple(_option(item) for item in sections(entry, "options"))
            found[name] = Simulator(name, entry.take("file", str), source, options)
            entry.done()
        top.done()
    return found


def _option(item: Section) -> Option:
    what = item.take_choice("what", _WHAT)
    option = Option(item.take("option", str), _WHAT[what], tuple(item.take_names("of")))
    item.done()
    return option


def get_simulator(name: str) -> Simulator:
    """Returns one simulator; raises UnknownNameError naming near ones."""
    known = simulators()
    if name not in known:
        raise UnknownNameError(
            f"unknown simulator '{name}', expected one of {', '.join(known)}{nearest(name, known)}"
        )
    return known[name]


def fragment(name: str, figures: Sequence[Figure]) -> Fragment:
    """Returns the options of a simulator with the figures of one device; of several figures of an instruction
    the first counts. Cycles are whole numbers of at least 1.

    Raises:
        UnknownNameError: no such simulator.
    """
    simulator = get_simulator(name)
    values: dict[tuple[str, str], float] = {}
    for figure in figures:
        if figure.value is not None and not figure.key.variant:
            values.setdefault((figure.instruction, figure.quantity), figure.value)
    derived = _intervals(figures)
    values = {(ins, INTERVAL): value for ins, (value, _) in derived.items()} | values
    lines, missing = [], []
    for option in simulator.options:
        wanted = [(ins, quantity) for ins in option.instructions for quantity in option.quantities]
        absent = [key for key in wanted if key not in values]
        if absent:
            ins, quantity = absent[0]
            missing.append(f"{option.name}: no {quantity.replace('_', ' ')} of {ins}")
            lines.append(f"# {missing[-1]}")
            continue
        numbers = ",".join(_cycles(values[key]) for key in wanted)
        lines += [_comment(option, values), *_said(option, derived, values), f"{option.name} {numbers}"]
    text = _head(simulator, figures) + "\n".join(lines) + "\n"
    return Fragment(text, len(simulator.options) - len(missing), tuple(missing))


def _intervals(figures: Sequence[Figure]) -> dict[str, tuple[float, str]]:
    """By instruction, the cycles from one to the next of a sub-core that the highest throughput of a
    multiprocessor implies, and how."""
    found: dict[str, tuple[float, str]] = {}
    # Sub-cores of a multiprocessor, each with one matrix unit: of every NVIDIA GPU since Volta.
    sub_cores = 4
    for figure in figures:
        ins, rate, shape = figure.instruction, figure.value, _SHAPE.search(figure.instruction)
        counts = figure.unit == "FMA/clk/SM" and figure.key.quantity == "throughput"
        if not (counts and rate and shape) or figure.key.variant:
            continue
        products = math.prod(map(int, shape.groups()))
        interval = sub_cores * products / rate
        if ins not in found or interval < found[ins][0]:
            found[ins] = interval, f"{sub_cores} sub-cores * {products} FMA / {rate:g} FMA/clk/SM"
    return found


def _said(
    option: Option, derived: dict[str, tuple[float, str]], values: dict[tuple[str, str], float]
) -> list[str]:
    """A comment where an interval follows from a throughput."""
    used = (ins for ins in option.instructions if INTERVAL in option.quantities and ins in derived)
    return [
        f"# the interval of {ins}: {derived[ins][1]}"
        for ins in used
        if values[ins, INTERVAL] == derived[ins][0]
    ]


def _head(simulator: Simulator, figures: Sequence[Figure]) -> str:
    devices = ", ".join(dict.fromkeys(figure.device for figure in figures))
    sources = "; ".join(dict.fromkeys(figure.source for figure in figures))
    return (
        f"# Part of {simulator.file} for {simulator.name}: latencies and initiation intervals in cycles.\n"
        f"# {devices}: {sources}.\n"
        f"# Options as in {simulator.source}.\n"
    )


def _comment(option: Option, values: dict[tuple[str, str], float]) -> str:
    measured = "; ".join(
        f"{ins} {' and '.join(f'{values[ins, quantity]:.4g}' for quantity in option.quantities)}"
        for ins in option.instructions
    )
    return f"# {measured}"


def _cycles(value: float) -> str:
    return str(max(1, round(value)))
