"""What a change of the text leaves wrong, explained by a hypothesis; and how it is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repaired_dot import judged, planted

from golden.dissect.diagnosis import Diagnosis, Fault, Hypothesis
from golden.vectors.vectorset import default_set
from rtl_tb.check.repair import rest
from rtl_tb.check.repair.changes import Changes
from rtl_tb.check.repair.rest import rest_of
from rtl_tb.check.repair.result import Edit, Repair, Rest
from rtl_tb.check.repair.search import find_repairs
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.engines.job import Job, Outcome


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
    monkeypatch.setattr(rest, "_example", lambda *_: None)
    verdict, job = answered(tmp_path, without_element_2)
    (one,) = rest_of(verdict, job, job)
    assert "k = 2 left out" in one.text and one.explains == int(verdict.failed.sum()) > 0
    edit = Edit(Path("x.sv"), 3, "y = a;", "a", "b")
    repair = Repair((edit,), 5, 9, 0, 1000, rest=(one,))
    assert repair.explained and not repair.whole and "no change" not in repair.sentence()
    assert one.text in repair.sentence() and one.text in repair.as_dict()["faults"][-1]["text"]


def test_what_no_hypothesis_explains_wholly_is_not_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict, job = answered(tmp_path, without_element_2)
    near = Hypothesis("x", "x", job.dut.instruction, remaining=1, total=1000)
    far = Diagnosis(job.dut.instruction, (near,), 900, 1000, faults=(Fault("x", "x", 899),))
    monkeypatch.setattr(rest, "reasons", lambda *_: far)
    assert verdict.failed.any() and rest_of(verdict, job, job) == ()


@pytest.mark.long
def test_a_line_and_a_hypothesis_are_listed_as_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change back of one fault alone is among those that are tried; the other one has a name."""
    everything = Changes.of_choices

    def some(self: Changes, *groups: Any) -> Any:
        return [one for one in everything(self, *groups) if one.before == "sum - c"]

    monkeypatch.setattr(Changes, "of_choices", some)
    monkeypatch.setattr(Changes, "of_constants", lambda *_: [])
    dut = planted(tmp_path, ("sum + c", "(sum - c) | 32'd4"))
    verdict, job = judged(dut, tmp_path)
    found = find_repairs(verdict, job, 120)
    assert found[0].edits[0].after == "sum + c" and isinstance(found[0].rest[0], Rest)
    assert "bit 2" in found[0].rest[0].text and found[0].rest[0].example is not None
