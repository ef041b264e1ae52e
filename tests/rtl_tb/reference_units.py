"""What the tests of the reference units in rtl_tb/rtl share: descriptions by name, runs under busy traffic,
what failed.

A test run simulates a few units. With MMAGOLD_FULL=1 it is all of them, with 10**6 vectors on `fast` and
20,000 elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import rtl_tb
from golden.number.formats import Format
from golden.vectors import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.runs.verdict import Verdict, judge
from rtl_tb.simulators import simulators

FULL = bool(os.environ.get("MMAGOLD_FULL"))
FAST_COUNT, SLOW_COUNT = (1_000_000, 20_000) if FULL else (28_000, 700)
BUSY = Traffic(idle=0.2, backpressure=0.3, resets=3, seed=11)
_DUTS = Path(rtl_tb.__file__).parent / "rtl" / "duts"
_ALL_RUNS = [
    ("fast", "verilator"),
    ("selfcheck", "verilator"),
    ("selfcheck", "icarus"),
    ("cocotb", "verilator"),
    ("cocotb", "icarus"),
]
_SPECIALS = {"none": 0, "ieee": 1, "all_ones_nan": 2, "negative_zero_nan": 3}

Run = tuple[str, str, str]
"""(unit, engine, simulator)"""


def load(name: str) -> Dut:
    return load_dut(_DUTS / f"{name}.yaml")


def names(tops: tuple[str, ...]) -> list[str]:
    """The descriptions of the given top modules."""
    return sorted(path.stem for path in _DUTS.glob("*.yaml") if load_dut(path).top in tops)


def runs(units: list[str], few: list[Run]) -> list[Run]:
    """The few runs, or in a full test every unit on every engine."""
    return [(name, *run) for name in units for run in _ALL_RUNS] if FULL else few


def element(letter: str, fmt: Format) -> dict[str, int]:
    """The parameters that describe the format of an operand of product_array.sv."""
    values = (fmt.exponent_bits, fmt.fraction_bits, fmt.ignored_low, fmt.bias, _SPECIALS[fmt.specials])
    return dict(
        zip((f"{letter}_{key}" for key in ("EXP", "FRAC", "DROP", "BIAS", "SPECIALS")), values, strict=True)
    )


def simulate(
    dut: Dut, engine: str, simulator: str, vectors: VectorSet, build: Path, traffic: Traffic = BUSY
) -> Outcome:
    return engines.run(engine, Job(dut, build, vectors, simulator, traffic))


def complaints(verdict: Verdict) -> dict[str, Any]:
    """What failed, kind by kind, and how the handshake was broken; empty when the unit passed."""
    found: dict[str, Any] = {row.kind: row.failed for row in verdict.by_kind() if row.failed}
    return found | {failure.kind: failure.text for failure in verdict.outcome.failures}


def assert_golden(name: str, engine: str, simulator: str, build: Path) -> None:
    """The unit answers every vector as golden does, under busy traffic."""
    dut = load(name)
    vectors = default_set(dut.instruction, FAST_COUNT if engine == "fast" else SLOW_COUNT, seed=3)
    assert complaints(judge(vectors, simulate(dut, engine, simulator, vectors, build), dut.compare)) == {}


def assert_lint_clean(name: str, folder: Path) -> None:
    """Verilator -Wall has nothing to say about the unit with its parameters."""
    dut = load(name)
    parameters = [f"-G{key}={value}" for key, value in dut.parameters.items()]
    options = ["--lint-only", "-Wall", "--top-module", dut.top, *parameters, *dut.sources]
    assert "%Warning" not in simulators.elaborate(simulators.verilator(), options, folder=folder, what=name)
