"""Which part of the traffic a failure takes is said where the unit is right without it, and there alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from changed_unit import changed

from rtl_tb import engines
from rtl_tb.check.under_traffic import apart
from rtl_tb.check.verdict import judge
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Traffic

ALWAYS_READY = ("assign rdy_o = !vld_o || rdy_i;", "assign rdy_o = 1'b1;")
KEPT = [("if (reset) vld_o", "if (reset && !vld_o) vld_o"), ("endmodule", "initial vld_o = 0;\nendmodule")]
ONE_LESS = ("sum = 36'(acc);", "sum = 36'(acc) - 36'(acc == 7);")


def test_what_backpressure_loses_is_no_arithmetic(tmp_path: Path) -> None:
    result = changed(tmp_path, ALWAYS_READY, explain=True, count=400, idle=0.2, backpressure=0.3, resets=2)
    assert not result.passed and result.diagnosis is None
    assert result.hints[0] == (
        "all 400 vectors are right without backpressure: "
        "look at what has to stand still until a result is taken"
    )


@pytest.mark.parametrize(
    ("traffic", "patches", "said"),
    [
        (Traffic(resets=3), KEPT, "without resets: look at what a reset has to set"),
        (
            Traffic(idle=0.3, backpressure=0.3),
            [ONE_LESS, ALWAYS_READY],
            "vectors are right without backpressure: look at what has to stand still until",
        ),
        (Traffic(idle=0.3, backpressure=0.3), [ONE_LESS], None),
        pytest.param(
            Traffic(resets=3),
            [ONE_LESS, *KEPT],
            "without resets: look at what a reset has to set",
            marks=pytest.mark.long,
        ),
    ],
)
def test_it_is_said_of_what_traffic_alone_makes_wrong(
    tmp_path: Path, traffic: Traffic, patches: list[tuple[str, str]], said: str | None
) -> None:
    vectors = changed(tmp_path, *patches, count=400).verdict.vectors
    vectors.operands["c"][300] = 7
    vectors = replace(vectors, d=vectors.instruction.dot(**vectors.operands))
    job = Job(load_dut(tmp_path / "dut.yaml"), tmp_path / "build", vectors, traffic=traffic)
    verdict = judge(vectors, engines.run("fast", job), job.dut.compare)
    assert not verdict.passed
    found = apart(verdict, "fast", job)
    assert (found is None) if said is None else found is not None and said in found.sentence
    if found is not None and ONE_LESS in patches:  # each fault by itself
        assert found.verdict.failed[300] and found.verdict.failed.sum() < 9
        assert not found.verdict.outcome.failures
    if found is not None and ALWAYS_READY in patches:
        held = found.held_to(verdict)
        assert held is not None and held.wrong.sum() > found.verdict.failed.sum()
        assert (held.failed | found.verdict.failed)[verdict.failed].all()


@pytest.mark.long
def test_no_change_mends_what_a_reset_cannot_mend(tmp_path: Path) -> None:
    """They are tried with resets, as none shows anything without."""
    result = changed(tmp_path, *KEPT, explain=True, count=400, repair=60.0, resets=3)
    assert "right without resets" in result.hints[0] and not result.repairs
    assert any("no change of the text that was tried makes" in x for x in result.hints)
