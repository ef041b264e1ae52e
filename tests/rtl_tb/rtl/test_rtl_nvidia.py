"""The reference units of NVIDIA's algorithms: their parameters against the specification, their results
against golden.

Every description is checked against the specification and linted;
a few are simulated (see reference_units.py).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from long_run import long_after
from reference_units import assert_golden, assert_lint_clean, complaints, element, load, names, runs, simulate

from golden import stimuli
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.vectors import VectorSet, default_set
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Traffic
from rtl_tb.runs.verdict import judge

TOPS = ("fda", "fda_chain", "scaled_fda", "gdfs")
NAMES = names(TOPS)
FEW_RUNS = [  # every module, each kind of operand format, of rounding and of engine in one of them at least
    ("fda_hopper_bf16", "fast", "verilator"),
    ("fda_chain_ampere_f16_f16", "fast", "verilator"),
    ("scaled_fda_mxfp8_e5m2", "fast", "verilator"),
    ("fda_ada_e4m3", "selfcheck", "icarus"),
    ("gdfs_mxfp4", "selfcheck", "icarus"),
    ("fda_volta_mixed", "cocotb", "icarus"),
    ("gdfs_nvfp4", "fast", "verilator"),
]


def specified(ins: Instruction, top: str) -> dict[str, Any]:
    """The parameters that the specification gives a unit."""
    operations = ins.program.operations
    align, last = (next(step for step in operations[0].steps if step.op == op) for op in ("align", "round"))
    c, d = ins.formats["c"], ins.formats["d"]
    wanted: dict[str, Any] = {"K": ins.k, "F": dict(align.fraction_bits)["c"], "FLOOR": align.floor}
    wanted |= {
        "C_EXP": c.exponent_bits,
        "C_FRAC": c.fraction_bits,
        "D_EXP": d.exponent_bits,
        "D_FRAC": d.fraction_bits,
    }
    wanted |= {
        "D_KEEP": last.result_fraction_bits or d.fraction_bits,
        "NEAREST": int(last.rounding == "nearest_even"),
    }
    wanted |= {"STEP": len(operations[0].k_index)}
    if top == "gdfs":
        scale = ins.formats["scale_a"]
        return wanted | {
            "S_EXP": scale.exponent_bits,
            "S_FRAC": scale.fraction_bits,
            "BLOCK": ins.scale_block,
        }
    return wanted | element("A", ins.formats["a"]) | element("B", ins.formats["b"])


def described(dut: Dut) -> dict[str, Any]:
    """The parameters of a description; a missing one as the module's default makes it of the others."""
    given: dict[str, Any] = dict(dut.parameters)
    if dut.top != "gdfs":
        given = {"A_DROP": 0, "A_SPECIALS": 1} | given
        given = {f"B_{key}": given[f"A_{key}"] for key in ("EXP", "FRAC", "DROP", "SPECIALS")} | given
        given = {f"{x}_BIAS": 2 ** (given[f"{x}_EXP"] - 1) - 1 for x in "AB"} | given
    given = {"STEP": given["K"], "D_EXP": 8, "D_FRAC": 23} | given
    given = {"C_EXP": given["D_EXP"], "C_FRAC": given["D_FRAC"], "NEAREST": int(given["D_EXP"] == 5)} | given
    return {"D_KEEP": given["D_FRAC"]} | given


def test_every_kind_of_unit_is_described() -> None:
    assert {load(name).top for name in NAMES} == set(TOPS)
    assert {load(name).parameters["K"] for name in NAMES if load(name).top == "fda"} == {4, 8, 16, 32}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_the_specification(name: str) -> None:
    dut = load(name)
    assert described(dut) == specified(dut.instruction, dut.top)


@pytest.mark.parametrize("name", long_after(4, NAMES))
def test_lint_finds_nothing(name: str, tmp_path: Path) -> None:
    assert_lint_clean(name, tmp_path)


@pytest.mark.parametrize(("name", "engine", "simulator"), long_after(1, runs(NAMES, FEW_RUNS)))
def test_results_are_those_of_golden(name: str, engine: str, simulator: str, tmp_path: Path) -> None:
    assert_golden(name, engine, simulator, tmp_path)


def test_one_result_a_cycle(tmp_path: Path) -> None:
    """Chains too: their waiting registers are as long as the steps that they wait for."""
    dut = load("fda_chain_ampere_f16_f16")
    vectors = default_set(dut.instruction, 2000, seed=4)
    whole, half = (
        simulate(dut, "selfcheck", "icarus", part, tmp_path, Traffic()) for part in (vectors, vectors[:1000])
    )
    assert judge(vectors, whole, dut.compare).passed
    assert whole.cycles - half.cycles == 1000


@pytest.mark.parametrize(
    ("parameter", "wrong", "seen_in"),
    [("F", 23, "alignment_edge"), ("NAN_WORD", 0x7FC00000, "special_values")],
)
def test_a_wrong_parameter_is_found(parameter: str, wrong: int, seen_in: str, tmp_path: Path) -> None:
    dut = load("fda_ampere_tf32")
    changed = dataclasses.replace(dut, parameters=dut.parameters | {parameter: wrong})
    vectors = default_set(dut.instruction, 2_000, seed=5)
    found = complaints(
        judge(vectors, simulate(changed, "selfcheck", "icarus", vectors, tmp_path, Traffic()), dut.compare)
    )
    assert seen_in in found


def power(
    fmt: Format, exponents: npt.NDArray[np.int64], negative: int = 0, half: int = 0
) -> npt.NDArray[Any]:
    """Codes of (-1)**negative * (1 + half / 2) * 2**exponents."""
    flags = np.full(exponents.shape, negative)
    return stimuli.encode(fmt, flags, exponents, np.full(exponents.shape, half << 63, np.uint64))


def floor_vectors(dut: Dut) -> VectorSet:
    """Vectors at the exponent that zeros hold: c is 0, one product lies on a rounding boundary of d, a tiny
    one below it.

    Whether the tiny one is kept depends on FLOOR alone: the last bit that is kept weighs 2**(FLOOR - F), and
    every other exponent lies below FLOOR. One unit's four vectors have tiny products of 2**(FLOOR - F - 2 ..
    FLOOR - F + 1).
    """
    ins, floor = dut.instruction, int(dut.parameters["FLOOR"])
    a, b, d = (ins.formats[name] for name in "abd")
    tie = int(d.name == "f16")  # to nearest: half-way between two numbers; toward zero: on a number
    tiny = floor - int(dut.parameters["F"]) + np.arange(-2, 2)
    targets = np.stack([np.full(4, d.min_exponent - d.fraction_bits), tiny], axis=1)
    operands = {name: np.zeros((4, ins.k), ins.formats[name].dtype) for name in "ab"} | {
        "c": np.zeros(4, ins.formats["c"].dtype)
    }
    scale = np.zeros_like(targets)
    if "scale_a" in ins.formats:
        # The products of a block are as far apart as their targets, the scales do the rest; with two blocks
        # they do it all.
        blocks = ins.k // ins.scale_block
        scale = targets if blocks == 2 else np.repeat(targets[:, :1] + 4, 2, axis=1)
        for name, part in (
            ("scale_a", scale[:, :blocks] // 2),
            ("scale_b", scale[:, :blocks] - scale[:, :blocks] // 2),
        ):
            operands[name] = power(ins.formats[name], part)
    left = targets - scale
    places = (0, ins.k - 1)
    for term, negative in enumerate((0, 1)):
        first = left[:, term] // 2
        operands["a"][:, places[term]] = power(a, first, negative, half=0 if negative else tie)
        operands["b"][:, places[term]] = power(b, left[:, term] - first)
    return VectorSet(ins, "dot", operands, ins.dot(**operands), np.zeros(4, np.uint8), 0)


@pytest.mark.parametrize(
    "name", ["fda_ampere_tf32", "fda_volta_f16_f16", "scaled_fda_mxfp8_e5m2", "gdfs_mxfp4"]
)
def test_the_exponent_of_zeros(name: str, tmp_path: Path) -> None:
    """Random vectors hardly ever see an exponent floor that is off by one; these do."""
    dut = load(name)
    vectors = floor_vectors(dut)
    for offset in (0, 1, -1):
        changed = dataclasses.replace(
            dut, parameters=dut.parameters | {"FLOOR": int(dut.parameters["FLOOR"]) + offset}
        )
        outcome = simulate(changed, "selfcheck", "icarus", vectors, tmp_path / str(offset), Traffic())
        assert judge(vectors, outcome, dut.compare).wrong.sum() == abs(offset), offset
