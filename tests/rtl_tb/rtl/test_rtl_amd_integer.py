"""The reference units of AMD's algorithms, of integers and of FMA chains: their parameters against the
specification, their results against golden.

Every description is checked against the specification and linted;
a few are simulated (see reference_units.py).
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from long_run import long_after
from reference_units import assert_golden, assert_lint_clean, complaints, element, load, names, runs, simulate

from golden.model.instruction import Instruction
from golden.vectors import default_set
from rtl_tb.dut.description import Dut
from rtl_tb.runs.verdict import judge

TOPS = ("fdrda", "gfdrda", "gps", "integer_dot", "fma_chain")
NAMES = names(TOPS)
FEW_RUNS = [
    *((name, "selfcheck", "icarus") for name in ("gfdrda_fp8", "gps_f16", "fma_f32", "integer_s8_wrap")),
    *((name, "fast", "verilator") for name in ("fdrda_chain_bf16", "integer_s8_saturate")),
    *((name, "fast", "verilator") for name in ("gfdrda_chain_fp8_bf8", "gps_bf16", "fma_f64_dmma")),
]


def described(dut: Dut) -> dict[str, int]:
    """The value of every parameter of the top module: what the description gives,
    otherwise the module's default."""
    text = dut.sources[-1].read_text().split("\n);", 1)[0]
    values: dict[str, int] = {}
    for name, default in re.findall(r"parameter int (\w+) += (\w+)", text):
        values[name] = int(dut.parameters.get(name, default if default.isdigit() else values[default]))
    assert set(dut.parameters) <= set(values)
    return values


def steps_of(ins: Instruction, op: str) -> list[Any]:
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


def test_every_unit_is_described() -> None:
    assert {load(name).top for name in NAMES} == set(TOPS)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_the_specification(name: str) -> None:
    dut = load(name)
    assert described(dut) == specified(dut.instruction, dut.top)


@pytest.mark.parametrize("name", long_after(2, NAMES))
def test_lint_finds_nothing(name: str, tmp_path: Path) -> None:
    assert_lint_clean(name, tmp_path)


@pytest.mark.parametrize(("name", "engine", "simulator"), long_after(1, runs(NAMES, FEW_RUNS)))
def test_results_are_those_of_golden(name: str, engine: str, simulator: str, tmp_path: Path) -> None:
    assert_golden(name, engine, simulator, tmp_path)


@pytest.mark.parametrize(
    ("name", "parameter", "wrong", "seen_in"),
    long_after(
        0,
        [
            ("gfdrda_fp8", "C_WINDOW", 0, "alignment_edge"),
            ("fdrda_chain_f16", "KEEP", 30, "alignment_edge"),
        ],
    ),
)
def test_a_wrong_parameter_is_found(
    name: str, parameter: str, wrong: int, seen_in: str, tmp_path: Path
) -> None:
    """The vectors tell units apart that differ in one parameter."""
    dut = load(name)
    changed = dataclasses.replace(dut, parameters=dut.parameters | {parameter: wrong})
    vectors = default_set(dut.instruction, 28_000, seed=5)
    outcome = simulate(changed, "fast", "verilator", vectors, tmp_path)
    assert seen_in in complaints(judge(vectors, outcome, dut.compare))
