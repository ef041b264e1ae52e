"""What a change of the text leaves wrong, explained by a hypothesis, and the other way round; and how it is
listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repaired_dot import judged, planted

from golden.identify.diagnose.mutations.ports import ports
from golden.identify.diagnosis import Diagnosis, Fault, Hypothesis, diagnose
from golden.vectors.vectorset import default_set
from rtl_tb.check.check import Options, check_dut
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Outcome
from rtl_tb.errors import RtlError
from rtl_tb.locate import rest
from rtl_tb.locate.budget import CONSTANTS, Budget
from rtl_tb.locate.changes import Changes
from rtl_tb.locate.goals import goals_of
from rtl_tb.locate.rest import rest_of
from rtl_tb.locate.result import Edit, Repair, Rest
from rtl_tb.locate.search import _Search, find_repairs
from rtl_tb.qualify.mutants import FOLDER
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
    monkeypatch.setattr(rest, "_example", lambda *_: None)
    verdict, job = answered(tmp_path, without_element_2)
    (one,) = rest_of(verdict, job, job, lambda: None)
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
        rest_of(verdict, job, job, look)
    with pytest.raises(RtlError, match="time"):
        Budget(1e-9).look()


def test_one_change_is_looked_for_a_while_where_two_mend_all() -> None:
    search = _Search.__new__(_Search)
    search.budget = Budget(100)
    two = Repair((), 1, 1, 0, 10)
    assert search._part_of_one([]) == CONSTANTS
    assert abs(search._part_of_one([two]) - 0.25) < 0.05
    search.budget.start -= 70
    assert search._part_of_one([two]) == CONSTANTS


def test_what_no_hypothesis_explains_wholly_is_not_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict, job = answered(tmp_path, without_element_2)
    near = Hypothesis("x", "x", job.dut.instruction, remaining=1, total=1000)
    far = Diagnosis(job.dut.instruction, (near,), 900, 1000, faults=(Fault("x", "x", 899),))
    monkeypatch.setattr(rest, "explain_results", lambda *_: far)
    assert verdict.failed.any() and rest_of(verdict, job, job, lambda: None) == ()


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


def two_faults(vectors: Any) -> Any:
    """Element 2 is left out; and a pattern of a, which no hypothesis knows, turns bits of the result."""
    odd = (vectors.operands["a"][:, 1] % 3 == 1) & (vectors.operands["b"][:, 0] % 5 == 2)
    return without_element_2(vectors) ^ (odd * np.uint32(0x1553)).astype(vectors.d.dtype)


def partial(verdict: Verdict) -> Any:
    vectors, actual = verdict.vectors, verdict.outcome.actual
    return diagnose(vectors.instruction, vectors.operands, actual, budget_seconds=0).partial


def test_a_hypothesis_is_asked_to_have_no_right_result_wrong(tmp_path: Path) -> None:
    """What it leaves is the other fault alone, and a goal holds what it has to give without that one."""
    verdict, job = answered(tmp_path, two_faults)
    vectors, found = verdict.vectors, partial(verdict)
    assert found[0].slug == "a-2-left-out" or "k = 2 left out" in found[0].text
    said, other = found[0].results(vectors.operands), two_faults(vectors) != without_element_2(vectors)
    assert ((said != verdict.outcome.actual) == other).all() and other.any()
    goal = goals_of(verdict, job.dut, found)[0]
    assert (goal.d == without_element_2(goal)).all()
    left = two_faults(goal) != goal.d
    assert left.any() and not left.all()


def test_of_a_unit_with_modes_a_goal_holds_one_mode() -> None:
    """Product 1 is left out in every mode, and some results have another fault; a hypothesis is of one."""
    dut = load_dut(FOLDER / "units" / "mode_inputs" / "dut.yaml")
    vectors = default_set(dut.instruction, 600, 1, dut.level)
    without = vectors.operands | {"a": vectors.operands["a"] * np.array([1, 0], np.uint16)}
    odd = vectors.operands["b"][:, 0] % 5 == 2
    codes = dut.instruction.dot(**without) ^ (odd * np.uint16(0x155)).astype(vectors.d.dtype)
    outcome = Outcome("fast", "none", "0", codes, np.ones(len(codes), bool), np.zeros(len(codes), bool))
    verdict = judge(vectors, outcome, dut.compare)
    unit, _, places = list(dut.instruction.by_mode(vectors.operands))[3]
    (wire,) = (one for one in ports(unit) if one.slug == "element-1-dropped")
    one = Hypothesis(wire.slug, wire.text, unit, mutations=(wire,))
    (goal,) = goals_of(verdict, dut, [one])
    assert set(goal.operands["mode"]) == {vectors.operands["mode"][places[0]]}
    right = dut.instruction.dot(**goal.operands | {"a": goal.operands["a"] * np.array([1, 0], np.uint16)})
    assert (goal.d == right).all()


def test_what_explains_everything_is_no_part(tmp_path: Path) -> None:
    verdict, job = answered(tmp_path, without_element_2)
    assert partial(verdict) == () and goals_of(verdict, job.dut, ()) == []


@pytest.mark.long
def test_a_change_is_found_beside_a_hypothesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change back of the hypothesis' fault is not among those that are tried, and that of the other one
    mends few vectors by itself."""
    everything = Changes.of_choices
    faults = (
        ("sum + c", "(sum + c) | 32'd4"),
        ("signed'(b[8*k +: 8])", "signed'(b[8*k +: 8] + (c[6:0] == 0))"),
    )

    def some(self: Changes, *groups: Any) -> Any:
        return [one for one in everything(self, *groups) if "c[6:0]" in one.before]

    monkeypatch.setattr(Changes, "of_choices", some)
    monkeypatch.setattr(Changes, "of_constants", lambda *_: [])
    monkeypatch.setattr("rtl_tb.locate.search._Search._pairs", lambda *_: [])
    dut = planted(tmp_path, *faults)
    judged(dut, tmp_path)
    found = check_dut(dut, Options(count=2000, repair=120, failures=None, build=tmp_path / "build"))
    assert found.repairs[0].rest and "bit 2" in found.repairs[0].rest[0].text and found.repairs[0].explained
