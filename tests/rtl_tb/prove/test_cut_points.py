"""cut_points of a dut.yaml: what they name is tried first, and a wrong one proves nothing."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from proved_units import REGISTERED, SUM, unit

from golden.errors import SpecError
from golden.proof.sweep import PROVED, REFUTED, Sweep
from golden.proof.verdict import verdict_of
from rtl_tb.prove.netlist import Unreadable
from rtl_tb.prove.problem import problem_of

pytest.importorskip("bitwuzla")
pytest.importorskip("pyosys")

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "proving.md").read_text(encoding="utf-8")
EXAMPLE = next(re.finditer(r"^cut_points:\n(?:  .*\n)+", PAGE, re.MULTILINE))[0]
"""The example of the page, which is about a sum that stands three places up."""
MOVED = """
    logic signed [38:0] scaled;
    always_comb begin
        scaled = 39'($signed(c)) <<< 3;
        for (int k = 0; k < 4; k++) scaled = scaled + (39'($signed(a[8*k+:8]) * $signed(b[8*k+:8])) <<< 3);
    end
    wire high = !scaled[38] && |scaled[37:34], low = scaled[38] && !(&scaled[37:34]);
    wire [31:0] right = high ? 32'h7fffffff : low ? 32'h80000000 : scaled[34:3];
"""


def test_the_example_of_the_page_names_a_register_in_another_frame(tmp_path: Path) -> None:
    problem, _ = problem_of(unit(MOVED + REGISTERED, tmp_path, more=EXAMPLE))
    ((signal, registers),) = [(word, each) for word, each in problem.hints.items() if word.width == 39]
    assert registers == [problem.points["sum"]]
    sweep = Sweep(problem, time.monotonic() + 60)
    sweep._learn(sweep.vectors)
    first = sweep._candidates(signal, sweep.values[signal])[0]
    assert first.base is problem.points["sum"] and first.word.width == 39
    assert verdict_of(Sweep(problem, time.monotonic() + 60))[0] == PROVED


def test_a_wrong_cut_point_changes_no_verdict(tmp_path: Path) -> None:
    wrong = "cut_points: {sum: [high, right], rounded: sum}\n"
    right, _ = problem_of(unit(SUM + REGISTERED, tmp_path, more=wrong))
    assert right.hints and verdict_of(Sweep(right, time.monotonic() + 60))[0] == PROVED
    faulty = SUM.replace("high ?", "high && c != 32'h7fffffff ?")
    fault, _ = problem_of(unit(faulty + REGISTERED, tmp_path, more=wrong))
    assert verdict_of(Sweep(fault, time.monotonic() + 60))[0] == REFUTED


def test_an_index_stands_for_all(tmp_path: Path) -> None:
    product = "$signed(a[8*k+:8]) * $signed(b[8*k+:8])"
    copies = f"for (genvar k = 0; k < 4; k++) begin : g\n wire signed [15:0] p = {product};\nend\n"
    total = " + ".join(["36'($signed(c))", *(f"36'(g[{k}].p)" for k in range(4))])
    body = copies + SUM.replace(f"36'({product})", "0").replace("36'($signed(c));", f"{total};")
    problem, _ = problem_of(unit(body + REGISTERED, tmp_path, more='cut_points: {"product[*]": "g[*].p"}\n'))
    names = {
        name
        for each in problem.hints.values()
        for word in each
        for name, one in problem.points.items()
        if one is word
    }
    assert names == {f"product[{k}]" for k in range(4)}


@pytest.mark.parametrize(
    ("more", "error", "why"),
    [
        ("cut_points: {summ: sum}\n", SpecError, "no register 'summ'; nearest: sum"),
        ("cut_points: {sum: summ}\n", Unreadable, "no signal 'summ'.*nearest: sum"),
        ("cut_points: {sum: 'sum[40:1]'}\n", Unreadable, "'sum.40:1.' is of a signal of 36 bits"),
    ],
)
def test_a_name_that_does_not_exist_is_one_line(
    more: str, error: type[Exception], why: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=why):
        problem_of(unit(SUM + REGISTERED, tmp_path, more=more))
