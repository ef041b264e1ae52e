"""Equivalence: what is called equal is, operands that are called a counterexample are one, in a simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden.proof.sweep import OPEN, PROVED
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.qualify.mutants import UNITS, Mutant, Patch, Traffic
from rtl_tb.qualify.qualification import SAME, Equivalence, compare

pytest.importorskip("bitwuzla")
pytest.importorskip("pyosys")


def mutant(unit: str, file: str, find: str, replace: str, folder: Path) -> tuple[Dut, Dut]:
    """A unit and the same with one replacement."""
    path = UNITS / f"{unit}.yaml"
    planted = Mutant("x", path, "", "arithmetic", (Patch(file, find, replace),), {}, None, Traffic(), "")
    return load_dut(path), planted.plant(folder)


def compared(unit: str, file: str, find: str, replace: str, folder: Path) -> tuple[Equivalence, Dut, Dut]:
    """What `compare` says of a replacement."""
    one, other = mutant(unit, file, find, replace, folder)
    return compare(one, other, 60, folder / "build"), one, other


@pytest.mark.parametrize(
    ("unit", "file", "find", "replace", "how"),
    [
        # Of two equal exponents either is the largest.
        pytest.param(
            *("fda_volta_f16", "max_exponent.sv", "]) > maximum)", "]) >= maximum)", "lemmas"),
            marks=pytest.mark.long,
        ),
        # The sum of 32 products has a bit to spare.
        ("integer_s8_saturate", "integer_dot.sv", "[SW-1:0] sum, sum_1", "[SW-2:0] sum, sum_1", "lemmas"),
        # A default that the unit overrides.
        ("fda_volta_f16", "fp_round.sv", "KEEP        = D_FRAC", "KEEP        = D_FRAC + 1", SAME),
    ],
)
def test_a_change_without_effect_is_proved_to_have_none(
    unit: str, file: str, find: str, replace: str, how: str, tmp_path: Path
) -> None:
    found, _, _ = compared(unit, file, find, replace, tmp_path)
    assert found.verdict == PROVED and how in found.how


def test_what_a_later_transaction_may_do_is_open(tmp_path: Path) -> None:
    """A fault in the 1,024th word after the reset: the first result is right for all operands."""
    count = "logic [9:0] n; always_ff @(posedge clk) n <= !rst_n ? 0 : n + 10'(in_valid && in_ready);\n"
    find = "    assign total    = TW'(sum_1) + TW'(c_1);"
    put = count + find.replace(";", " + TW'(n == 1023);")
    found, _, _ = compared("integer_s8_wrap", "integer_dot.sv", find, put, tmp_path)
    assert found.verdict == OPEN and "others may differ" in found.how


def test_what_is_no_transaction_is_open_and_says_why(tmp_path: Path) -> None:
    find, put = "out_valid <= in_valid;", "out_valid <= in_valid && in_data[0];"
    found, _, _ = compared("gps_bf16", "pipe_stage.sv", find, put, tmp_path)
    assert found.verdict == OPEN and "not read: " in found.how and "no fixed latency" in found.how
