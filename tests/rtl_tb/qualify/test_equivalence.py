"""Equivalence: what is called equal is, operands that are called a counterexample are one, in a simulator."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines.job import Job
from rtl_tb.qualify.equivalence import DIFFERS, EQUIVALENT, SAME, Found, _Pair, _Solver, _Values, compare
from rtl_tb.qualify.mutants import UNITS, Mutant, Patch, Traffic
from rtl_tb.qualify.netlist import Graph, Netlist, Node, compute, in_order, read
from rtl_tb.qualify.ranges import Ranges
from rtl_tb.runs.verdict import judge

pytest.importorskip("bitwuzla")


def mutant(unit: str, file: str, find: str, replace: str, folder: Path) -> tuple[Dut, Dut]:
    """A unit and the same with one replacement."""
    path = UNITS / f"{unit}.yaml"
    planted = Mutant("x", path, "", "arithmetic", (Patch(file, find, replace),), {}, None, Traffic(), "")
    return load_dut(path), planted.plant(folder)


def words(dut: Dut, count: int) -> list[int]:
    """Operand words of default vectors."""
    packed = dut.layout.pack_operands(default_set(dut.instruction, count, 1, dut.level).operands)
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def compared(unit: str, file: str, find: str, replace: str, folder: Path) -> tuple[Found, Dut, Dut]:
    """What `compare` says of a replacement."""
    one, other = mutant(unit, file, find, replace, folder)
    return compare(one, other, words(one, 64), 60), one, other


@pytest.mark.parametrize(
    ("unit", "file", "find", "replace", "how"),
    [
        # Of two equal exponents either is the largest.
        ("fda_volta_f16", "max_exponent.sv", "]) > maximum)", "]) >= maximum)", "proved"),
        # The sum of 32 products has a bit to spare.
        ("integer_s8_saturate", "integer_dot.sv", "[SW-1:0] sum, sum_1", "[SW-2:0] sum, sum_1", "proved"),
        # A default that the unit overrides.
        ("fda_volta_f16", "fp_round.sv", "KEEP        = D_FRAC", "KEEP        = D_FRAC + 1", SAME),
    ],
)
def test_a_change_without_effect_is_proved_to_have_none(
    unit: str, file: str, find: str, replace: str, how: str, tmp_path: Path
) -> None:
    found, _, _ = compared(unit, file, find, replace, tmp_path)
    assert found.result == EQUIVALENT and how in found.how


@pytest.mark.parametrize(
    ("unit", "file", "find", "replace"),
    [
        # One sum of 2**27.
        ("fda_volta_f16", "fused_sum.sv", "sum3     <= sum;", "sum3 <= sum == 28'h5a5a5a5 ? 28'h0 : sum;"),
        ("integer_u8_s8_saturate", "integer_dot.sv", "!fits ? limit", "!fits && sum_1 != 77 ? limit"),
        ("gps_bf16", "gps_product.sv", "field >= 255", "field > 255"),
    ],
)
def test_a_rare_difference_gives_operands_on_which_the_simulator_differs(
    unit: str, file: str, find: str, replace: str, tmp_path: Path
) -> None:
    found, one, other = compared(unit, file, find, replace, tmp_path / "rtl")
    assert found.result == DIFFERS and found.word is not None
    size = (one.layout.operand_width + 7) // 8
    word = np.frombuffer(found.word.to_bytes(size, "little"), np.uint8)[None]
    operands = one.layout.unpack_operands(word)
    kinds = np.zeros(1, np.uint8)
    vectors = VectorSet.of(one.instruction, one.level, operands, one.instruction.answers(operands), kinds, 1)
    for dut, right in ((one, True), (other, False)):
        outcome = engines.run("fast", Job(dut, tmp_path / "build", vectors))
        assert judge(vectors, outcome, dut.compare).passed == right


def graph_of(unit: str) -> tuple[Dut, Node]:
    """A reference unit as a graph."""
    dut = load_dut(UNITS / f"{unit}.yaml")
    elements = [(f.lsb + at * f.bits, f.bits) for f in dut.layout.operand_fields for at in range(f.elements)]
    return dut, Netlist(read(dut, wrapper_of(dut)), Graph(), "unit", elements).result()


@pytest.mark.parametrize("unit", ["fda_chain_ampere_f16", "gps_bf16", "gdfs_nvfp4", "fma_f64_cdna3"])
def test_the_graph_of_a_unit_answers_as_the_model_and_stays_within_its_bounds(unit: str) -> None:
    dut, result = graph_of(unit)
    vectors = default_set(dut.instruction, 200, 5, dut.level)
    packed = dut.layout.pack_operands(vectors.operands)
    pair = _Pair(
        Graph(),
        result,
        result,
        _Values([int.from_bytes(row.tobytes(), "little") for row in packed], result),
        0,
    )
    pair._simulate([result])
    right = [int.from_bytes(row.tobytes(), "little") for row in dut.layout.pack_results(vectors.results)]
    assert pair.columns[result.number] == right
    ranges = Ranges()
    for node in in_order([result]):
        bounds, half = ranges.of(node), 1 << (node.width - 1)
        for value in pair.columns[node.number]:
            assert bounds.low <= value <= bounds.high
            assert bounds.least <= (value ^ half) - half <= bounds.most


@pytest.mark.parametrize(
    "kind",
    [
        *("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr"),
        *("eq", "ult", "slt", "not", "ite", "cat", "part", "sext"),
    ],
)
def test_the_solver_takes_each_operation_as_the_simulation_does(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(20):
        graph, width = Graph(), rng.randrange(2, 9)
        widths = {"ite": [1, width, width], "cat": [width, 3]}.get(kind, [width, width])
        widths = widths[: 1 if kind in ("not", "part", "sext") else 3]
        out = {"eq": 1, "ult": 1, "slt": 1, "cat": width + 3, "part": 1, "sext": width + 2}.get(kind, width)
        args = [graph.var(f"x{at}", size) for at, size in enumerate(widths)]
        values = [rng.getrandbits(size) for size in widths]
        low = rng.randrange(width) if kind == "part" else None
        node = graph.part(args[0], low, 1) if low is not None else graph.make(kind, out, *args)
        here = graph.const(1, 1)
        for arg, value in zip(args, values, strict=True):
            here = graph.make("and", 1, here, graph.make("eq", 1, arg, graph.const(value, arg.width)))
        constant = graph.const(compute(kind, out, low, values, widths), out)
        there = graph.make("ite", out, here, node, constant)
        assert _Solver().equal(there, constant, frozenset(), 10)[0] == EQUIVALENT
