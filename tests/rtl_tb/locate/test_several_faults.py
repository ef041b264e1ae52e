"""What a change of the text leaves wrong, explained by a hypothesis, and the other way round; and how it is
listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repaired_dot import planted

from golden.identify.diagnosis import Diagnosis, Fault, Hypothesis
from golden.vectors.vectorset import default_set
from rtl_tb.engines.job import Job, Outcome
from rtl_tb.errors import RtlError
from rtl_tb.locate import several_faults
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.result import Edit, Repair
from rtl_tb.locate.several_faults import remaining_faults_of
from rtl_tb.runs.verdict import Verdict, judge


def answered(folder: Path, fault: Any) -> tuple[Verdict, Job]:
    """The verdict of a unit whose results have a fault, made without a simulator."""
    dut = planted(folder)
    vectors = default_set(dut.instruction, 1000, 1, dut.level)
    codes = fault(vectors)
    outcome = Outcome("fast", "none", "0", codes, np.ones(len(codes), bool), np.zeros(len(codes), bool))
    return judge(vectors, outcome, dut.compare), Job(dut, folder / "build", vectors)


def without_element_2(vectors: Any) -> Any:
    a = vectors.operands["a"].copy()
    a[:, 2] = 0
    return vectors.instruction.dot(**vectors.operands | {"a": a})


def test_what_is_left_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_faults, "_example", lambda *_: None)
    verdict, job = answered(tmp_path, without_element_2)
    (one,) = remaining_faults_of(verdict, job, job, lambda: None)
    assert "k = 2 left out" in one.text and one.explains == int(verdict.failed.sum()) > 0
    edit = Edit(Path("x.sv"), 3, "y = a;", "a", "b")
    repair = Repair((edit,), 5, 9, 0, 1000, rest=(one,))
    assert repair.explained and not repair.whole and "no change" not in repair.sentence()
    assert one.text in repair.sentence() and one.text in repair.as_dict()["faults"][-1]["text"]


def test_no_hypothesis_is_asked_when_the_time_is_over(tmp_path: Path) -> None:
    """A diagnosis that has begun ends then, too; hypotheses have some seconds more than changes."""
    verdict, job = answered(tmp_path, without_element_2)
    asked = 0

    def look() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:  # once before the diagnosis, and then in it
            raise RtlError("over")

    with pytest.raises(RtlError, match="over"):
        remaining_faults_of(verdict, job, job, look)
    with pytest.raises(RtlError, match="time"):
        Budget(1e-9).look()


def test_what_no_hypothesis_explains_wholly_is_not_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict, job = answered(tmp_path, without_element_2)
    near = Hypothesis("x", "x", job.dut.instruction, remaining=1, total=1000)
    far = Diagnosis(job.dut.instruction, (near,), 900, 1000, faults=(Fault("x", "x", 899),))
    monkeypatch.setattr(several_faults, "explain_results", lambda *_: far)
    assert verdict.failed.any() and remaining_faults_of(verdict, job, job, lambda: None) == ()
