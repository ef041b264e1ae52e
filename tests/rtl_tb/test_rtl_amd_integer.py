"""The reference units of AMD's algorithms, of integers and of FMA chains: their parameters against the specification, their
results against golden.

Every description is checked against the specification and linted. Simulated here are a few units of different kinds; with
MMAGOLD_FULL=1 it is all of them, with 10**6 vectors, on every engine and simulator.
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import pytest

import rtl_tb
from golden.formats import Format
from golden.instruction import Instruction
from golden.program import Step
from golden.vectors import VectorSet, default_set
from rtl_tb import engines, simulators
from rtl_tb.dut import Dut, load_dut
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.verdict import judge

FULL = bool(os.environ.get("MMAGOLD_FULL"))
RTL = Path(rtl_tb.__file__).parent / "rtl"
TOPS = ("fdrda", "gfdrda", "gps", "integer_dot", "fma_chain")
NAMES = sorted(path.stem for path in (RTL / "duts").glob("*.yaml") if load_dut(path).top in TOPS)

ON_FAST = NAMES if FULL else ["fdrda_chain_bf16", "gfdrda_chain_fp8_bf8", "gps_bf16", "fma_f64_dmma", "integer_s8_saturate"]
ON_ICARUS = NAMES if FULL else ["gfdrda_fp8", "gps_f16", "fma_f32", "integer_s8_wrap"]
OTHER_ENGINES = [("selfcheck", "verilator"), ("cocotb", "icarus"), ("cocotb", "verilator")] if FULL else []
FAST_COUNT, SLOW_COUNT = (1_000_000, 20_000) if FULL else (28_000, 700)
BUSY = Traffic(idle=0.2, backpressure=0.3, resets=3, seed=11)

SPECIALS = {"none": 0, "ieee": 1, "all_ones_nan": 2, "negative_zero_nan": 3}


def load(name: str) -> Dut:
    return load_dut(RTL / "duts" / f"{name}.yaml")


def described(dut: Dut) -> dict[str, int]:
    """The value of every parameter of the top module: what the description gives, otherwise the module's default."""
    text = dut.sources[-1].read_text().split("\n);", 1)[0]
    values: dict[str, int] = {}
    for name, default in re.findall(r"parameter int (\w+) += (\w+)", text):
        values[name] = int(dut.parameters.get(name, default if default.isdigit() else values[default]))
    assert set(dut.parameters) <= set(values)
    return values


def element(letter: str, fmt: Format) -> dict[str, int]:
    """The parameters that describe the format of an operand of product_array.sv."""
    values = (fmt.exponent_bits, fmt.fraction_bits, fmt.ignored_low, fmt.bias, SPECIALS[fmt.specials])
    return dict(zip((f"{letter}_{key}" for key in ("EXP", "FRAC", "DROP", "BIAS", "SPECIALS")), values, strict=True))


def steps_of(ins: Instruction, op: str) -> list[Step]:
    return [step for step in ins.program.operations[0].steps if step.op == op]


def specified(ins: Instruction, top: str) -> dict[str, int]:
    """The parameters that the specification gives a unit."""
    a, b, c = (ins.formats[name] for name in "abc")
    if top in ("fdrda", "gfdrda"):
        first, last = steps_of(ins, "align")[0], steps_of(ins, "align")[-1]
        wanted = {"K": ins.k, "P": len(ins.program.operations[0].k_index)} | element("A", a) | element("B", b)
        wanted |= {"F": dict(first.fraction_bits)["products"], "F2": dict(last.fraction_bits)["dot"]}
        wanted |= {"KEEP": dict(steps_of(ins, "normalize")[0].fraction_bits)["total"]}
        return wanted | ({"C_WINDOW": dict(last.window)["c"]} if top == "gfdrda" else {})
    if top == "integer_dot":
        saturate = steps_of(ins, "round")[0].overflow == "saturate"
        signed = {"A_SIGNED": int(a.signed), "B_SIGNED": int(b.signed)}
        return {"K": ins.k, "AW": a.bits, "BW": b.bits, "CW": c.bits, "SATURATE": int(saturate)} | signed
    shape = {"K": ins.k, "EXP": a.exponent_bits, "FRAC": a.fraction_bits}
    if top == "gps":
        group = steps_of(ins, "sum")[0].group
        assert group is not None
        return shape | {"G": group[1]}
    fma = steps_of(ins, "fma")[0]
    assert fma.nan is not None
    return shape | {"HAND_ON": int(fma.nan_order == ("b", "c", "a")), "NAN_SIGN": fma.nan >> c.sign_shift}


def simulate(dut: Dut, engine: str, simulator: str, vectors: VectorSet, build: Path) -> Outcome:
    return engines.run(engine, Job(dut, build, vectors, simulator, BUSY))


def complaints(dut: Dut, vectors: VectorSet, outcome: Outcome) -> dict[str, Any]:
    """What failed, kind by kind, and how the handshake was broken; empty when the unit passed."""
    failed: dict[str, Any] = {row.kind: row.failed for row in judge(vectors, outcome, dut.compare).by_kind() if row.failed}
    return failed | {failure.kind: failure.text for failure in outcome.failures}


def check(name: str, engine: str, simulator: str, count: int, build: Path) -> None:
    dut = load(name)
    vectors = default_set(dut.instruction, count, seed=3)
    outcome = simulate(dut, engine, simulator, vectors, build)
    assert bool(outcome.received.all())
    assert complaints(dut, vectors, outcome) == {}


def test_every_unit_is_described() -> None:
    assert {load(name).top for name in NAMES} == set(TOPS)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_the_specification(name: str) -> None:
    dut = load(name)
    assert described(dut) == specified(dut.instruction, dut.top)


@pytest.mark.parametrize("name", NAMES)
def test_lint_finds_nothing(name: str, tmp_path: Path) -> None:
    dut = load(name)
    parameters = [f"-G{key}={value}" for key, value in dut.parameters.items()]
    options = ["--lint-only", "-Wall", "--top-module", dut.top, *parameters, *dut.sources]
    printed = simulators.elaborate(simulators.verilator(), options, folder=tmp_path, what=name)
    assert "%Warning" not in printed


@pytest.mark.parametrize("name", ON_FAST)
def test_fast(name: str, tmp_path: Path) -> None:
    check(name, "fast", "verilator", FAST_COUNT, tmp_path)


@pytest.mark.parametrize("name", ON_ICARUS)
def test_selfcheck_on_icarus(name: str, tmp_path: Path) -> None:
    check(name, "selfcheck", "icarus", SLOW_COUNT, tmp_path)


@pytest.mark.parametrize(("engine", "simulator"), OTHER_ENGINES)
@pytest.mark.parametrize("name", NAMES if FULL else [])
def test_other_engines(name: str, engine: str, simulator: str, tmp_path: Path) -> None:
    check(name, engine, simulator, SLOW_COUNT, tmp_path)


@pytest.mark.parametrize(
    ("name", "parameter", "wrong", "seen_in"),
    [
        ("fdrda_chain_f16", "KEEP", 30, "alignment_edge"),
        ("gfdrda_fp8", "C_WINDOW", 0, "alignment_edge"),
    ],
)
def test_a_wrong_parameter_is_found(name: str, parameter: str, wrong: int, seen_in: str, tmp_path: Path) -> None:
    """The vectors tell units apart that differ in one parameter."""
    dut = load(name)
    changed = dataclasses.replace(dut, parameters=dut.parameters | {parameter: wrong})
    vectors = default_set(dut.instruction, 28_000, seed=5)
    outcome = simulate(changed, "fast", "verilator", vectors, tmp_path)
    assert seen_in in complaints(dut, vectors, outcome)
