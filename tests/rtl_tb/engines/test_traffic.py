"""One plan of the traffic: every dimension is drawn, and all engines play it cycle by cycle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from integer_dot import planted
from long_run import long_after

from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.engines import traffic
from rtl_tb.engines.job import Job, Traffic

BUSY = Traffic(idle=0.3, backpressure=0.3, resets=40, seed=9)
PROBE = """// d: cycles without a vector before this one, cycles in which results waited so far, resets so far.
module dot2 (input clk, input rst_n, input in_valid, output in_ready, input [15:0] a, input [15:0] b, input [31:0] c,
    output out_valid, input out_ready, output [31:0] d);
    reg v1 = 0, v2 = 0;
    reg [31:0] d1, d2;
    reg [11:0] gap = 0, waited = 0;
    reg [7:0] resets = 0;
    reg was = 1;
    assign in_ready = !v1 || !v2 || out_ready;
    assign out_valid = v2;
    assign d = d2;
    always @(posedge clk) begin
        was <= rst_n;
        if (was && !rst_n) resets <= resets + 1;
        gap <= !rst_n || (in_valid && in_ready) ? 0 : gap + 1;
        if (rst_n && v2 && !out_ready) waited <= waited + 1;
        if (!rst_n) {v1, v2} <= 0;
        else begin
            if (in_ready) begin
                v1 <= in_valid;
                d1 <= {resets, waited, gap};
            end
            if (!v2 || out_ready) begin
                v2 <= v1;
                d2 <= d1;
            end
        end
    end
endmodule
"""  # noqa: E501


def seen(folder: Path, engine: str, simulator: str, count: int = 900) -> np.ndarray:
    dut = planted(folder, 2, PROBE)
    vectors = default_set(dut.instruction, count, 1)
    outcome = engines.run(engine, Job(dut, folder / "build", vectors, simulator, BUSY))
    assert outcome.received.all() and outcome.resets == BUSY.resets
    assert {each.kind for each in outcome.failures} <= {"changed_answer"}
    return np.asarray(outcome.actual)


@pytest.mark.parametrize(
    ("engine", "simulator"),
    long_after(1, [("selfcheck", "icarus"), ("cocotb", "icarus"), ("cocotb", "verilator")]),
)
def test_all_engines_play_the_same(tmp_path: Path, engine: str, simulator: str) -> None:
    wanted, found = (seen(tmp_path, *each) for each in (("fast", "verilator"), (engine, simulator)))
    waited = (wanted >> 12 & 0xFFF) - (wanted[0] >> 12 & 0xFFF)
    assert np.unique(waited).size > 50 and (wanted & 0xFFF).max() > 300
    np.testing.assert_array_equal(found[1:], wanted[1:])


@pytest.mark.parametrize(("count", "longest"), [(900, 300), (20_000, 2_049), (200_000, 16_385)])
def test_the_longest_waits_are_where_no_reset_cuts_them_short(count: int, longest: int) -> None:
    plan = traffic.plan(Traffic(idle=0.2, backpressure=0.2, resets=count // 25, seed=1), count)
    last = slice(count * 3 // 4, count)
    assert np.count_nonzero(plan.reset) == count // 25 and not plan.reset[last].any()
    for waits in (plan.gap, plan.stall):
        found = np.sort(waits % traffic.ENGAGED)[::-1]
        assert (waits[last] % traffic.ENGAGED).max() == found[0] == longest
        # one of half its length, of a quarter, ..., as far as these are longer than any that is drawn
        halves = [((longest - 1) >> by) + 1 for by in range(8)]
        assert [length for length in found if length > 1_025] == [each for each in halves if each > 1_025]
