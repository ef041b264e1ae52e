"""Which part of the traffic a failure takes is said where the unit is right without it, and there alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from changed_unit import changed, described
from repaired_dot import planted

from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.check import explain
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.check.under_traffic import TrafficFault, _blamed, _Part, isolate_traffic
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Outcome, ProtocolFailure, Traffic
from rtl_tb.errors import MachineError, RtlError
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.result import Edit, Repair, SingleFault
from rtl_tb.locate.search import Unfinished
from rtl_tb.runs.verdict import Verdict, judge

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
    found = isolate_traffic(verdict, "fast", job)
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


def answers(job: Job, wrong: range, broken: bool = False) -> Verdict:
    """The verdict of a unit that answers one more where it is wrong, made without a simulator."""
    codes = job.vectors.d.copy()
    codes[wrong.start : wrong.stop] += 1
    count = len(codes)
    failures = [ProtocolFailure("stable", 9, 3, "it moved")] * broken
    outcome = Outcome("fast", "none", "0", codes, np.ones(count, bool), np.zeros(count, bool), failures)
    return judge(job.vectors, outcome, job.dut.compare)


EDIT = Edit(Path("x.sv"), 3, "y = a;", "a", "b")


@pytest.mark.parametrize(
    ("error", "seconds", "said"),
    [
        (MachineError("it was killed"), 9, "no change of the text was tried to make all vectors what they"),
        (Unfinished("9 numbers"), 9, "no change of the text that was tried makes all vectors what they"),
        (ZeroDivisionError("half"), 0.0, "what they are without backpressure: the time was up"),
    ],
)
def test_what_ends_the_search_for_the_traffic_leaves_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, seconds: float, said: str
) -> None:
    """The change that mends the arithmetic is not said to mend the traffic, too."""

    def ends(*_: object) -> None:
        raise error

    dut = planted(tmp_path)
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 40, 1, dut.level))
    calm = TrafficFault("", "without backpressure", answers(job, range(4)), job)
    found = Repair((EDIT,), 4, 4, 0, 40)
    result = Check(dut, Options(repair=9), answers(job, range(9)), job.traffic, job.vectors, repairs=(found,))
    monkeypatch.setattr("rtl_tb.locate.search.find_repairs", ends)
    repairs, (hint,) = explain.repair_traffic(result, calm, job, lambda *_: None, Budget(seconds))
    assert repairs == [] and said in hint


def test_a_part_is_what_it_is_held_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a unit answers without traffic is not right by that."""
    part = Repair((EDIT,), 3, 9, 1, 40, (SingleFault(EDIT, 3, 1),))
    assert "3 of the 9 wrong vectors are right, and 1 right one is wrong" in part.sentence()
    dut = planted(tmp_path)
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 40, 1, dut.level))
    calm = TrafficFault("", "without resets", answers(job, range(4)), job)
    result = Check(dut, Options(), answers(job, range(9)), job.traffic, job.vectors)
    monkeypatch.setattr("rtl_tb.locate.search.find_repairs", lambda *_: [part])
    (held,), hints = explain.repair_traffic(result, calm, job, lambda *_: None, Budget(9))
    said = held.as_dict()
    assert said["are"] == "what they are without resets" and not hints
    assert "3 of the 9 wrong vectors are what they are without resets, and 1 others no" in said["sentence"]
    assert "3 of the wrong vectors what they are without resets, and 1 others" in said["faults"][0]["text"]


def test_what_was_tried_before_an_error_is_not_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(_verdict: object, _job: object, _seconds: float, trying: Callable[[int, int], None], *_: object):
        trying(3200, 9000)
        raise RtlError("its time was up")

    dut = planted(tmp_path)
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 40, 1, dut.level))
    result = Check(dut, Options(), answers(job, range(9)), job.traffic, job.vectors)
    monkeypatch.setattr("rtl_tb.locate.search.find_repairs", ends)
    found, (hint,) = explain.repair(result.verdict, job, lambda *_: None, Budget(9))
    assert found == []
    assert "ended before all were tried: its time was up" in hint and "no change" not in hint


IDLE, BACKPRESSURE, NONE = (0.2, 0), (0, 0.3), (0, 0)
BOTH = (0.2, 0.3)


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({BOTH: (0, 301), NONE: (0, 300)}, None),  # one more of many tells nothing
        ({BOTH: (1, 309), NONE: (0, 300), IDLE: (0, 300), BACKPRESSURE: (1, 309)}, None),  # now so, now so
        (
            {BOTH: (0, 308), NONE: (0, 300), IDLE: (0, 301), BACKPRESSURE: (0, 308)},
            "8 of the 308 failing vectors are right without backpressure: look at what has to stand",
        ),
        (
            {BOTH: (0, 1), NONE: (0, 0), IDLE: (0, 1), BACKPRESSURE: (0, 1)},
            "all 400 vectors are right without backpressure and idle cycles, each of which makes some wrong:",
        ),
        (
            {BOTH: (0, 9), NONE: (0, 0), IDLE: (0, 0), BACKPRESSURE: (0, 0)},
            "backpressure and idle cycles, and none of them alone shows it",
        ),
        (
            {BOTH: (0, 301, True), NONE: (0, 300), IDLE: (0, 320), BACKPRESSURE: (0, 300, True)},
            "the handshake is kept without backpressure: look at what has to stand still",
        ),
        (
            {BOTH: (0, 9), NONE: (0, 0), IDLE: None, BACKPRESSURE: (0, 9)},
            "right without backpressure and idle cycles: look at what has to stand still until a result is "
            "taken; what idle cycles alone would do is not known: it hung",
        ),
    ],
)
def test_what_chance_does_is_no_traffic(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    runs: dict[tuple[float, float], tuple[int, int] | tuple[int, int, bool] | None],
    said: str | None,
) -> None:
    """By traffic: which vectors a unit has wrong, whether it breaks the handshake; None: it does not run."""

    def judged(_engine: str, job: Job) -> Verdict:
        found = runs[job.traffic.idle, job.traffic.backpressure]
        if found is None:
            raise RtlError("it hung")
        return answers(job, range(*found[:2]), *found[2:])

    monkeypatch.setattr("rtl_tb.check.under_traffic.verdict_of", judged)
    dut = load_dut(described(tmp_path))
    job = Job(
        dut, tmp_path / "build", default_set(dut.instruction, 400, 1, dut.level), traffic=Traffic(*BOTH)
    )
    calm = isolate_traffic(judged("fast", job), "fast", job)
    assert (calm is None) if said is None else calm is not None and said in calm.sentence
    assert calm is None or calm.without in calm.sentence


def test_cycles_without_a_vector_are_not_the_fault_of_the_reset_that_brings_them(tmp_path: Path) -> None:
    """An enable that is lost: the unit takes what stands at its inputs in idle cycles and behind a reset."""
    dut = load_dut(described(tmp_path))
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 40, 1, dut.level))
    parts = {name: _Part("fast", job, does=True) for name in ("resets", "idle")}
    said = _blamed(parts, True, False)
    assert said.endswith(
        "look at what must not move, or be taken, in a cycle without a vector (a reset has such cycles, too)"
    )
    assert "what a reset has to set" in _blamed(parts | {"idle": _Part("fast", job)}, True, False)
