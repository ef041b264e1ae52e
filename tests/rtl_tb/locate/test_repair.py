"""The change of a unit's text that makes its results right: which places are tried, that the build of all
choices is the unit, and that planted faults are found by file and line."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from long_run import long_after
from repaired_dot import UNIT, judged, line_of, planted

from golden.identify.diagnosis import Diagnosis, Hypothesis
from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.check import check as checks
from rtl_tb.check import reasons
from rtl_tb.check.check import Options, check
from rtl_tb.check.report import markdown
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.errors import ElaborationError, MachineError, RtlError
from rtl_tb.locate import choices, search
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.changes import Change, Changes, Group, Place, find_changes, in_turn, literals
from rtl_tb.locate.result import Edit, Repair
from rtl_tb.locate.search import (
    Unfinished,
    _Constants,
    _edit,
    _Pass,
    _Ran,
    _Score,
    _Search,
    _Trials,
    find_repairs,
)
from rtl_tb.locate.selector import with_selector
from rtl_tb.locate.texts import Texts
from rtl_tb.runs.unit import DutRun
from rtl_tb.runs.verdict import Verdict, judge

FAULTS = (("sum + c", "sum - c"), ("product[0]", "product[1]"))


def texts(changes: Changes) -> set[str]:
    return {change.before for change in changes.of_choices()}


def test_places_are_those_that_the_unit_computes_with(tmp_path: Path) -> None:
    """No comment, macro, or branch that a parameter leaves out; parameters are constants."""
    found = find_changes(planted(tmp_path))
    choices = texts(found)
    assert {"sum + c", "!out_valid || out_ready", "in_valid"} <= choices
    assert not any("SUM" in text or "a > b" in text for text in choices)
    assert "a + b" not in choices
    assert found.line(found.of_constants()[0]) == 2, "values of parameters come first"


def test_a_clock_is_no_data(tmp_path: Path) -> None:
    """Whatever of the usual names it has: no signal of one bit is tried as it."""
    clocked = [("            d <= sum + c;", "            d <= sum + c; busy <= sum[0] & in_valid;")]
    found = find_changes(
        planted(tmp_path, *clocked, ("logic signed [31:0] sum;", "logic signed [31:0] sum; logic busy, ck;"))
    )
    tried = {change.after for change in found.of_choices() if change.before == "in_valid"}
    assert "busy" in tried and not {"clk", "ck"} & tried


def test_a_place_is_a_choice_or_a_constant(tmp_path: Path) -> None:
    found = find_changes(planted(tmp_path))
    assert not found.choices.keys() & found.constants.keys()


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("3", {"4", "2", "6", "1", "0", "7", "11"}),
        ("1'b0", {"1'h1"}),
        ("8'hff", {"8'hfe", "8'h7f", "8'h0", *(f"8'h{0xFF ^ 1 << bit:x}" for bit in range(8))}),
        ("4'sd1", {"4'sh2", "4'sh0", "4'sh3", "4'sh5", "4'sh9"}),
        ("x", set()),
        ("'x", set()),
    ],
)
def test_literals_keep_their_width(text: str, near: set[str]) -> None:
    assert set(literals(text)) == near


@pytest.mark.long
def test_number_0_is_the_unit_itself(tmp_path: Path) -> None:
    """The build that holds every choice answers as the unit does where none is made."""
    dut = planted(tmp_path)
    found = find_changes(dut)
    _, job = judged(dut, tmp_path)
    instrumented = with_selector(dut, found, found.of_choices(), tmp_path / "choices")
    verdict = judge(job.vectors, engines.run("fast", replace(job, dut=instrumented)), dut.compare)
    assert verdict.passed


@pytest.mark.parametrize(
    ("right", "wrong", "before", "after"),
    long_after(
        0,
        [
            ("sum + c", "sum - c", "sum - c", "sum + c"),
            ("b[8*k +: 8])", "b[4*k +: 8])", "4", "8"),
            ("localparam int BITS = 2 * W", "localparam int BITS = 1 * W", "1", "2"),
        ],
    ),
)
def test_a_planted_fault_is_found(tmp_path: Path, right: str, wrong: str, before: str, after: str) -> None:
    """An operator, a constant of an expression, a constant of the elaboration."""
    verdict, job = judged(planted(tmp_path, (right, wrong)), tmp_path)
    assert verdict.wrong.any()
    found = find_repairs(verdict, job, 300)
    assert found and all(repair.whole and repair.edits[0].line == line_of(right) for repair in found)
    assert (before, after) in {(repair.edits[0].before, repair.edits[0].after) for repair in found}
    assert (tmp_path / "dot4.sv").read_text() == UNIT.replace(right, wrong), (
        "the designer's file stays as it is"
    )


def test_what_gives_a_net_a_second_driver_is_no_repair(tmp_path: Path) -> None:
    """Verilator takes one of the two, which may be the right one."""
    nets = "wire [31:0] y [2]; assign y[1] = sum - c; assign y[0] = sum + c;\n    always_ff"
    verdict, job = judged(planted(tmp_path, ("always_ff", nets), ("d <= sum + c", "d <= y[1]")), tmp_path)
    changes = find_changes(job.dut)
    search = _Search(verdict, job, Budget(60), None)
    place = job.dut.sources[0].read_text().index("y[0]") + 2
    (second,) = (one for one in changes.of_constants() if one.place.start == place and one.after == "1")
    assert search._confirm(changes, (second,), tmp_path / "second") is None


@pytest.mark.long
def test_two_faults_are_mended_together(tmp_path: Path) -> None:
    """One change alone does not mend both, and none is said to."""
    dut = planted(tmp_path, *FAULTS)
    verdict, job = judged(dut, tmp_path)
    found = find_repairs(verdict, job, 300)
    assert found and found[0].whole
    lines = {edit.line for edit in found[0].edits}
    assert lines == {line_of("sum + c"), line_of("product[0]")}
    assert found[0].sentence().count("with `") == 2
    assert {fault.edit for fault in found[0].faults} == set(found[0].edits)
    for fault in found[0].faults:  # each by itself, held to the unit with that fault alone
        kept = next(edit for edit in found[0].edits if edit != fault.edit)
        left = planted(tmp_path, next(pair for pair in FAULTS if line_of(pair[0]) == kept.line))
        other, job_of_other = judged(left, tmp_path / "one")
        assert fault.mended == int((verdict.wrong & ~other.wrong).sum()) > 0
        assert fault.broken == int((other.wrong & ~verdict.wrong).sum())
        assert fault.example is not None
        answer = DutRun(job_of_other, "fast").alone(fault.example.operands)[0]
        assert answer is not None and answer["d"] == fault.example.expected != fault.example.actual


@pytest.mark.long
def test_pairs_are_looked_for_in_what_one_change_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault p is mended by one change, fault q by another; a third mends a few of both."""
    dut = planted(tmp_path)
    found = find_changes(dut)
    listed = found.of_choices()
    job = Job(dut, tmp_path, default_set(dut.instruction, 12, 1, dut.level))
    vectors, last = np.arange(12), len(listed)
    middle = last // 2
    p, q, some = vectors < 6, vectors >= 5, vectors % 4 == 0

    def whole(*numbers: int) -> np.ndarray:
        return (p & (1 not in numbers) | q & (last not in numbers)) & ~(some & (middle in numbers))

    search = _Search(judge(job.vectors, right(job), dut.compare), job, Budget(60), None)
    monkeypatch.setattr(search, "_trial", lambda *_: whole)
    trials = _Trials(job, listed, tmp_path, whole, whole(), tmp_path)
    assert not search._scores(trials), "none mends all of the few"
    singles = search._partly(trials)
    assert [listed.index(score.changes[0]) + 1 for score in singles] == [last, 1, middle]
    texts = Texts(found, job, search.budget, tmp_path / "texts")
    search.hinted = set()
    pair = search._pairs(found, singles, trials, texts, tmp_path)[0]
    assert {listed.index(change) + 1 for change in pair.changes} == {1, last}
    assert (pair.mended, pair.broken) == (12, 0)
    both = search._united(singles, [trials], texts)
    assert both[0].changes == pair.changes and both[0].clean, "each mends what the other leaves"
    assert found.applied(pair.changes).keys() == {tmp_path / "dot4.sv"}


def test_what_has_right_vectors_wrong_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One change mends 3 of 12 wrong vectors; another one mends more, and has those wrong that are right."""
    dut = planted(tmp_path)
    vectors = default_set(dut.instruction, 60, 1, dut.level)
    job, at = Job(dut, tmp_path, vectors), {key: number for number, key in enumerate(keys(vectors))}
    search = _Search(judge(vectors, right(job), dut.compare), job, Budget(60), None)

    def trial(job: Job, *_: object) -> Callable[..., np.ndarray]:
        here = np.array([at[key] for key in keys(job.vectors)])
        left = {1: here < 9, 2: here > 7}
        return lambda *numbers: left[numbers[0]] if numbers else here < 12

    counted: list[int] = []

    def whole(*numbers: int) -> np.ndarray:
        counted.extend(numbers)
        return trial(job)(*numbers)

    monkeypatch.setattr(search, "_trial", trial)
    listed = find_changes(dut).of_choices()[:2]
    trials = _Trials(job, listed, tmp_path, whole, trial(job)(), tmp_path, partly=[(4, (2,)), (9, (1,))])
    (one,) = search._partly(trials)
    assert one.changes == (listed[0],) and (one.mended, one.broken) == (3, 0) and counted == [1]


def test_all_vectors_are_asked_where_a_change_leaves_few(tmp_path: Path) -> None:
    """Of 30,000 wrong vectors it leaves 3, which are hardly among some of them."""
    dut = planted(tmp_path)
    vectors = default_set(dut.instruction, 30_100, 1, dut.level)
    job, outcome = Job(dut, tmp_path, vectors), right(Job(dut, tmp_path, vectors))
    outcome = replace(outcome, actual=outcome.actual ^ (np.arange(30_100) < 30_000))
    search = _Search(judge(vectors, outcome, dut.compare), job, Budget(60), None)
    rare = set(keys(vectors[[9_000, 17_001, 29_000]]))

    def wrong(job: Job) -> np.ndarray:
        return np.array([key in rare for key in keys(job.vectors)])

    probe = search._beside(replace(job, vectors=vectors[:50]), wrong)
    assert rare <= set(keys(probe.vectors)) and len(probe.vectors) < 1_000


@pytest.mark.long
def test_a_second_change_is_looked_for_where_the_first_leaves_vectors_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault q shows in 3 of 1,000 wrong vectors, none of which is among those that were tried first."""
    dut = planted(tmp_path)
    found = find_changes(dut)
    listed = found.of_choices()
    vectors = default_set(dut.instruction, 1200, 1, dut.level)
    job, last = Job(dut, tmp_path, vectors), len(listed)
    numbered = {key: number for number, key in enumerate(keys(vectors))}
    outcome = right(job)
    outcome = replace(outcome, actual=outcome.actual ^ (np.arange(1200) < 1000))
    search = _Search(judge(vectors, outcome, dut.compare), job, Budget(60), None)
    picked = search._picked()
    tried = {keys(vectors)[number] for number in picked}
    rare = [number for key, number in numbered.items() if number < 1000 and key not in tried][-3:]

    def trial(job: Job, *_: object) -> Callable[..., np.ndarray]:
        at = np.array([numbered[key] for key in keys(job.vectors)])
        p, q = at < 1000, np.isin(at, rare)
        return lambda *numbers: p & ~q & (1 not in numbers) | q & (last not in numbers)

    monkeypatch.setattr(search, "_trial", trial)
    probe = replace(job, vectors=vectors[picked])
    whole = trial(probe)
    trials = _Trials(probe, listed, tmp_path, whole, whole(), tmp_path)
    singles = search._scores(trials)
    assert [listed.index(score.changes[0]) + 1 for score in singles] == [1] and singles[0].clean
    texts = Texts(found, probe, search.budget, tmp_path / "texts")
    search.hinted = set()
    pair = search._pairs(found, singles, trials, texts, tmp_path)[0]
    assert {listed.index(change) + 1 for change in pair.changes} == {1, last} and pair.clean


def test_pairs_that_mend_most_of_all_are_tried_early() -> None:
    """Of 20 wrong vectors one change mends 12, another one 6 others, a third one 4 of these."""
    at = np.arange(20)
    listed = [Change(Place(Path("x.sv"), start, start + 1), "a", "b") for start in (0, 2, 4)]
    mends = (at < 12, (at >= 12) & (at < 18), (at >= 12) & (at < 16))
    scores = [
        _Score((one,), int(those.sum()), 0, 20, those) for one, those in zip(listed, mends, strict=True)
    ]
    assert search._complements(scores, 0.85) == [tuple(listed[:2])]
    assert search._complements(scores) == [tuple(listed[:2]), (listed[0], listed[2])]
    assert search._complements(scores, 0.95) == []


def test_the_first_of_each_place_keeps_its_rank() -> None:
    """The first mends most; another change of its place, and one that mends the same, mend least."""
    one, two = (Place(Path("x.sv"), start, start + 1) for start in (0, 2))
    scores = [
        _Score((Change(place, "a", f"{n}"),), mended, 0, 9, np.arange(9) < mended)
        for n, (place, mended) in enumerate(((one, 8), (two, 5), (one, 1), (two, 8)))
    ]
    assert search._of_places(scores) == scores[:2]
    assert search._of_vectors(scores) == scores


def test_a_change_that_is_refused_costs_no_other_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that breaks the handshake, or drives a net twice, beside a hypothesis."""
    dut = planted(tmp_path)
    vectors, found = default_set(dut.instruction, 20, 1, dut.level), find_changes(dut)
    job = Job(dut, tmp_path, vectors)
    search = _Search(judge(vectors, right(job), dut.compare), job, Budget(60), None)
    monkeypatch.setattr(search, "_confirm", lambda *_: None)
    scores = [_Score((found.of_choices()[0],), 4, 0, 4, np.ones(20, np.bool_))]
    assert scores[0].clean and search._beside_hypothesis(found, scores, tmp_path) == []


@pytest.mark.parametrize("second", [pytest.param(False, marks=pytest.mark.long), True])
def test_other_choices_are_built_where_one_mends_every_wrong_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: bool
) -> None:
    """Of 20 wrong vectors one change mends 12, another one all and breaks 30: on its line the groups that
    were not built are, once; and alone or beside the first one what is found there counts."""
    dut = planted(tmp_path)
    found = find_changes(dut)
    vectors, listed = default_set(dut.instruction, 60, 1, dut.level), found.of_choices([Group.TOKENS])
    job, at = Job(dut, tmp_path, vectors), {key: number for number, key in enumerate(keys(vectors))}
    outcome = right(job)
    outcome = replace(outcome, actual=outcome.actual ^ (np.arange(60) < 20))
    search = _Search(judge(vectors, outcome, dut.compare), job, Budget(60), None)
    forms = found.of_choices([Group.FORMS])
    mends = next(number for number, one in enumerate(forms, 1) if not one.meets(listed[0]))
    site = len(listed)

    def trial(job: Job, program: Path, folder: Path) -> Callable[..., np.ndarray]:
        if folder != tmp_path:
            folder.mkdir()
        here = np.array([at[key] for key in keys(job.vectors)])
        if program.name == "there":
            return lambda *numbers: (here < 20) & ~((here < 12) & second) & (mends not in numbers)
        return lambda *numbers: (
            (here >= 30) if site in numbers else (here < 20) & ~((here < 12) & (1 in numbers))
        )

    asked: list[Any] = []

    def choices(
        _c: object,
        probe: Job,
        folder: Path,
        _b: object,
        made: tuple[Change, ...],
        groups: object,
        lines: object,
    ) -> _Trials:
        folder.mkdir()
        asked.append((made, groups, lines))
        of = trial(probe, tmp_path / "there", tmp_path)
        return _Trials(probe, forms, tmp_path / "there", of, of(), folder, made)

    monkeypatch.setattr(search, "_trial", trial)
    monkeypatch.setattr(search, "_choices", choices)
    trials = _Trials(job, listed, tmp_path, trial(job, tmp_path, tmp_path), np.arange(60) < 20, tmp_path)
    (first,) = trials.counted([(1,)])
    search._scores(trials)
    if second:
        search._early([first], [trials], cast(Texts, None))
        trials = search.beside_first[first.changes[0]]
    beside, texts = first.changes[0] if second else None, cast(Texts, cast(object, _Texts(job)))
    got = search._at_sites(found, trials, beside, texts, tmp_path / "sites")
    assert got[0].clean and len(got[0].changes) == 1 + second
    line = (listed[-1].place.file, found.line(listed[-1]))
    ((made, groups, lines),) = asked
    assert line in lines and Group.TOKENS not in groups and made == ((beside,) if second else ())
    assert search._at_sites(found, trials, beside, texts, tmp_path / "sites") == [], "once"


@dataclass
class _Texts:
    job: Job


def bare_search() -> _Search:
    """One with time, and without a unit."""
    search = _Search.__new__(_Search)
    search.budget, search.progress, search.ran = Budget(60), None, {}
    search.refuted, search.unanswered = set(), {}
    search.made, search.not_built = {}, set()
    return search


@pytest.mark.parametrize(
    ("errors", "built"),
    [
        ([MachineError("killed")], [["TOKENS", "FORMS"], ["TOKENS", "FORMS"]]),
        ([ElaborationError("refused")], [["TOKENS", "FORMS"], ["TOKENS"]]),
        ([ElaborationError("refused")] * 3, [["TOKENS", "FORMS"], ["TOKENS"], ["FORMS"]]),
        ([], [["TOKENS", "FORMS"]]),
    ],
)
def test_what_broke_off_is_built_anew_beside_a_first_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: list[RtlError], built: list[list[str]]
) -> None:
    """What the machine ended has a second go; a text that is refused has none, but each of its groups."""
    search, first, asked = bare_search(), Change(Place(Path("x.sv"), 0, 1), "a", "b"), list[list[str]]()
    score = _Score((first,), 9, 0, 9)

    def choices(*arguments: Any) -> Any:
        asked.append([group.name for group in arguments[5]])
        if len(asked) <= len(errors):
            raise errors[len(asked) - 1]

    monkeypatch.setattr(search, "_choices", lambda *arguments: choices(*arguments) or "built")
    monkeypatch.setattr(search, "_beside_first", lambda *_: _Pass([(1,)], lambda _: [score]))
    texts = cast(Texts, cast(object, _Texts(cast(Job, None))))
    for place in ("one", "two"):
        found = search._second_choices(Changes(), None, first, texts, tmp_path / place)
    assert asked == built and found == ([score] if len(errors) < 3 else [])


def test_choices_of_which_the_compiler_was_killed_are_said() -> None:
    """Behind what was found, too; not those of which the time ended: the hint says that more of it helps."""
    search = bare_search()
    search.not_compiled = {Group.FORMS: MachineError("g++ was killed"), Group.TERMS: RtlError("time was up")}
    with pytest.raises(Unfinished, match=r"^all but other forms of expressions: g\+\+ was killed$"):
        search._say_what_was_not_tried(9, True)
    part = Repair((), 3, 9, 0, 20, untried=search._untried())
    assert "fixes more (not tried: other forms of expressions: g++ was killed)" in part.sentence()
    search.not_compiled.pop(Group.FORMS)
    search._say_what_was_not_tried(9, True)
    search.not_compiled[Group.TOKENS] = ElaborationError("refused")
    with pytest.raises(Unfinished, match=r"^all but operators, signals and numbers: refused"):
        search._say_what_was_not_tried(9, True)
    with pytest.raises(Unfinished, match=r"^9 numbers and widths: refused"):
        search._say_what_was_not_tried(9, False)


def test_what_cannot_be_run_costs_no_other_what_was_found() -> None:
    """Change 3 of 8 raises, once, and the others count; alone it is an error."""
    place = Place(Path("x.sv"), 0, 1)
    scores = {n: _Score((Change(place, "a", f"{n}"),), n, 0, 9) for n in range(1, 9)}
    ran: list[tuple[int, ...]] = []

    def run(many: Sequence[tuple[int, ...]]) -> list[_Score]:
        ran.extend(many)
        if (3,) in many:
            raise RtlError("no room on the disk")
        return [scores[number] for (number,) in many]

    work = _Pass([(n,) for n in scores], run, at_once=1)
    for _ in range(2):
        assert bare_search()._go_on(work, 1.0) == [scores[n] for n in (8, 7, 6, 5, 4, 2, 1)]
    assert sorted(ran) == work.many, "each once"
    with pytest.raises(RtlError, match="no room"):
        bare_search()._go_on(_Pass([(3,)], run), 1.0)


def test_what_is_right_on_some_vectors_alone_ends_no_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes 2 and 5 mend all that they are tried on; built and run on all, 2 does not."""
    place, search = Place(Path("x.sv"), 0, 1), bare_search()
    scores = [_Score((Change(place, "a", f"{n}"),), 9 if n in (2, 5) else 1, 0, 9) for n in range(8)]
    work = _Pass([(n,) for n in range(8)], lambda many: [scores[n] for (n,) in many], 1, search._is_clean)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    whole = Repair((), 9, 9, 0, 20)

    def confirm(_changes: object, clean: Sequence[_Score], _folder: object) -> list[Repair]:
        return [whole for one in clean if one is scores[5]]

    monkeypatch.setattr(search, "_confirmed", confirm)
    search._go_on(work, 1.0)
    few = list(work.scores)
    if scores[5] in few:  # the next were under way
        few.remove(scores[5])
    assert search._whole(Changes(), few, tmp_path) == [] and not search._is_clean(scores[2])
    assert search._whole(Changes(), search._go_on(work, 1.0), tmp_path) == [whole]


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("x.sv:2:485: Can't find definition of variable: 'k'; and 1 more", {"a", "!b", "c"}),
        ("x.sv:2:485: syntax error", {"c"}),
    ],
)
def test_a_change_that_is_refused_takes_no_other_line_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, left: set[str]
) -> None:
    """Of four, two of which stand on the line that Verilator names, one with the name that it says."""
    file = tmp_path / "x.sv"
    file.write_text("x = a;\ny = b;\nz = c;\n")
    changes = Changes(texts={file: file.read_text()})
    places = {text: Place(file, at, at + 1) for text, at in (("a", 4), ("b", 11), ("c", 18))}
    listed = [Change(places["b"], "b", after) for after in ("k", "!b")] + [Change(places["c"], "c", "c")]
    listed += [Change(places["b"], "b", "a")] if left != {"c"} else []
    dut = planted(tmp_path)
    search = bare_search()
    search.dut = replace(dut, sources=(file,))
    built: list[set[str]] = []

    def build(*_: object) -> Path:
        if len(built) < 2:
            raise ElaborationError(f"Verilator refused the module: /tmp/choices0/0_{said}")
        return tmp_path

    def instrumented(dut: Dut, _changes: object, listed: Sequence[Change], *_: object) -> Dut:
        built.append({one.after for one in listed})
        return dut

    monkeypatch.setattr("rtl_tb.locate.choices.with_selector", instrumented)
    monkeypatch.setattr("rtl_tb.locate.choices.fast.build", build)
    job = Job(dut, tmp_path, default_set(dut.instruction, 4, 1, dut.level))
    assert choices.build(search.dut, changes, listed, job, tmp_path, search.budget) is not None
    assert built[1] == left


def test_all_changes_of_a_place_are_tried_where_one_mends_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of nine does, and the search ends there: two more are in its place or around it, and one of
    these, with no other name, comes before it."""
    here, around, elsewhere = (Place(Path("x.sv"), *span) for span in ((2, 3), (0, 9), (20, 21)))
    listed = [Change(elsewhere, "a", f"{n}") for n in range(9)]
    listed[2], listed[6], listed[8] = (
        Change(here, "a", "b"),
        Change(here, "a", "!a"),
        Change(around, "a", "c"),
    )
    scores = [_Score((one,), 9 if n in (2, 6) else 1, 0, 9) for n, one in enumerate(listed)]
    search, asked = bare_search(), list[int]()
    monkeypatch.setattr(search, "_tried", lambda some, *_: [some(range(n, n + 1)) for n in range(3)])

    def run(many: Sequence[tuple[int, ...]]) -> list[_Score]:
        asked.extend(n for (n,) in many)
        return [scores[n] for (n,) in many]

    work = _Pass([(n,) for n in range(9)], run, 1, lambda score: score.clean, listed)
    found = search._go_on(work, 1.0)
    assert found[:2] == [scores[6], scores[2]] and asked == [0, 1, 2, 6, 8]


@pytest.mark.parametrize(
    ("error", "again"), [(MachineError("it was killed"), True), (ElaborationError("refused"), False)]
)
def test_what_could_not_be_run_is_not_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: RtlError, again: bool
) -> None:
    """Change 1 of 6 that mend all that they were tried on cannot be run on all vectors at first: it ends no
    search, and is asked again behind the others. A text that is refused is asked once."""
    place, search = Place(Path("x.sv"), 0, 1), bare_search()
    scores = [_Score((Change(place, "a", f"{n}"),), 9, 0, 9) for n in range(6)]
    asked: list[str] = []

    def confirm(_changes: object, chosen: Sequence[Change], _folder: object) -> Repair | None:
        asked.append(chosen[0].after)
        if asked == ["0", "1"]:
            raise error
        return Repair((), 9, 9, 0, 20) if chosen[0].after == "1" else None

    monkeypatch.setattr(search, "_confirm", confirm)
    changes = Changes()
    changes.texts = {Path("x.sv"): "x"}
    assert search._whole(changes, scores, tmp_path) == []
    assert [search._is_clean(one) for one in scores] == [False] * 4 + [True] * 2
    if again:  # what was found is said, with what is not known of it
        search.picked, search.not_compiled = np.arange(250), {}
        said = r"^all but 1 that make the 250 vectors .* could not be run .*x.sv:1: with `1` for `a` in `x`$"
        with pytest.raises(Unfinished, match=said):
            search._say_what_was_not_tried(9, True)
    assert bool(search._whole(changes, scores, tmp_path)) == again
    assert asked == [*"012345", *(["1"] if again else [])]


@pytest.mark.parametrize(
    ("mended", "broken", "beside"), [(95, 0, True), (100, 0, True), (89, 0, False), (95, 1, False)]
)
def test_choices_are_tried_beside_a_number_that_mends_nearly_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mended: int, broken: int, beside: bool
) -> None:
    """Before other numbers, but for those of its place: one of 12, of two a place, mends so much of 100. Of
    all vectors it leaves some in any case."""
    asked, file = bare_search(), Path("x.sv")
    listed = [Change(Place(file, at // 2, at // 2 + 1), "a", f"{at}") for at in range(12)]
    monkeypatch.setattr(search.os, "sched_getaffinity", lambda _: {0})
    at = np.arange(200)

    @dataclass
    class Vectors:
        def wrong(self, chosen: Sequence[Change], *_: object) -> np.ndarray:
            time.sleep(0.01)
            some = ((at >= mended) & (at < 100)) | (at >= 200 - broken)
            return some if chosen[0].after == "2" else at < 100

    texts = cast(Texts, cast(object, Vectors()))
    constants = _Constants(listed, (), texts, at < 100)
    pair = _Score((listed[2], listed[7]), 100, 0, 100)
    asks: list[Change] = []

    def second(_changes: object, _trials: object, first: Change, *_: object) -> list[_Score]:
        asks.append(first)
        assert len(constants.done) < len(listed) and 3 in constants.done
        return [pair]

    monkeypatch.setattr(asked, "_second_choices", second)
    whole = Repair((), 100, 100, 0, 200)
    monkeypatch.setattr(asked, "_whole", lambda _c, scores, _f: [whole] if pair in scores else [])
    monkeypatch.setattr(asked, "_by_fault", lambda _c, repair, _f: repair)
    found = asked._beside_constant(Changes(), texts, constants, tmp_path / "numbers")
    assert bool(found) == beside and asks == ([listed[2]] if beside else [])
    assert beside or len(constants.done) == len(listed)


def test_two_changes_of_one_line_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`a + a`: either a has to be b, and what is written of both is the same."""
    file = tmp_path / "x.sv"
    found = Changes(texts={file: "assign d = a + a;"})
    one, two = (Change(Place(file, at, at + 1), "a", "b") for at in (11, 15))
    search = bare_search()
    search.dut = planted(tmp_path)
    known = Repair((_edit(found, one),), 4, 4, 0, 9)
    search.ran = {known.edits: _Ran((one,), cast(Job, None), cast(Verdict, None), known)}
    asked: list[Sequence[Change]] = []

    def write(_dut: object, _changes: Changes, chosen: Sequence[Change], _folder: Path) -> object:
        asked.append(chosen)
        raise RtlError("it is built")

    monkeypatch.setattr("rtl_tb.locate.search.with_changes", write)
    assert search._confirm(found, (one,), tmp_path) is known
    with pytest.raises(RtlError, match="it is built"):
        search._confirm(found, (two,), tmp_path)
    assert asked == [(two,)]


@pytest.mark.parametrize("shown", [16, 9])
def test_a_second_change_is_looked_for_at_once_beside_one_that_mends_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: int
) -> None:
    """Of 20 wrong vectors; beside one that mends less than half of them all others are tried alone first."""
    dut = planted(tmp_path)
    vectors, listed = default_set(dut.instruction, 60, 1, dut.level), find_changes(dut).of_choices()
    job, at = Job(dut, tmp_path, vectors), {key: number for number, key in enumerate(keys(vectors))}
    outcome = right(job)
    outcome = replace(outcome, actual=outcome.actual ^ (np.arange(60) < 20))
    search = _Search(judge(vectors, outcome, dut.compare), job, Budget(60), None)

    def trial(job: Job, *_: object) -> Callable[..., np.ndarray]:
        here = np.array([at[key] for key in keys(job.vectors)])
        p, q = here < shown, (here >= shown - 2) & (here < 20)
        return lambda *numbers: p & (1 not in numbers) | q & (len(listed) not in numbers)

    monkeypatch.setattr(search, "_trial", trial)
    trials = _Trials(job, listed, tmp_path, trial(job), trial(job)(), tmp_path)
    (first,) = trials.counted([(1,)])
    found = search._early([first], [trials], cast(Texts, None))
    assert [one.changes for one in found if one.clean] == ([(listed[0], listed[-1])] if shown > 10 else [])


@pytest.mark.parametrize("resets", [5, 0])
def test_what_shows_behind_resets_alone_is_tried_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resets: int
) -> None:
    dut = planted(tmp_path)
    vectors, found = default_set(dut.instruction, 20, 1, dut.level), find_changes(dut)
    job = Job(dut, tmp_path, vectors, traffic=Traffic(idle=0.1, resets=resets))
    search = _Search(judge(vectors, right(job), dut.compare), job, Budget(60), None)
    monkeypatch.setattr("rtl_tb.locate.search.build", lambda _dut, _changes, listed, *_: (listed, tmp_path))
    monkeypatch.setattr(
        search, "_trial", lambda job, *_: lambda *_: np.full(len(job.vectors), job.traffic.resets > 0)
    )
    trials = search._choices(found, search.job, tmp_path / "built", search.budget)
    assert search.job.traffic.resets == 0 and search.unseen == (not resets)
    assert trials.probe.traffic == job.traffic if trials is not None else not resets


@pytest.mark.parametrize("later", [True, False])
def test_two_faults_are_said_where_no_one_change_does_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    """Two are found with the first group of changes, one change with the third."""
    dut = planted(tmp_path)
    job = Job(dut, tmp_path, default_set(dut.instruction, 20, 1, dut.level))
    asked = _Search(judge(job.vectors, right(job), dut.compare), job, Budget(60), None)
    one, two = Repair((), 3, 3, 0, 20), Repair((), 3, 3, 0, 20)
    looked: list[str] = []

    def found_two(*at: object) -> list[Repair]:
        looked.append(cast(Path, at[5]).name)
        return [two]

    for owner, name, instead in (
        (search, "suspicious_lines", lambda *_: set()),
        (search, "Texts", lambda *_: None),
        (asked, "_choices", lambda *_: object()),
        (asked, "_try_constants", lambda *_: None),
        (asked, "_scores", lambda *_: []),
        (asked, "_partly", lambda *_: []),
        (asked, "_at_sites", lambda *_: []),
        (asked, "_whole", lambda *at: [one] if later and at[-1].name == "of_TERMS" else []),
        (asked, "_two", found_two),
    ):
        monkeypatch.setattr(owner, name, instead)
    (found,) = asked._either(Changes(), asked.job, tmp_path)
    assert found is (one if later else two) and looked == ["at_FORMS"]


def test_one_change_is_not_waited_for_without_end_where_two_mend_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build of terms takes all the time that it is given."""
    dut = planted(tmp_path)
    job = Job(dut, tmp_path, default_set(dut.instruction, 20, 1, dut.level))
    asked = _Search(judge(job.vectors, right(job), dut.compare), job, Budget(60), None)
    two = Repair((), 3, 3, 0, 20)

    def build(*at: object) -> object:
        while at[5] == (Group.TERMS,) and not cast(Budget, at[3]).over():
            time.sleep(0.01)
        return object()

    for owner, name, instead in (
        (search, "suspicious_lines", lambda *_: set()),
        (search, "Texts", lambda *_: None),
        (search, "_MORE_FOR_ONE", 0.001),
        (asked, "_choices", build),
        (asked, "_try_constants", lambda *_: None),
        (asked, "_scores", lambda *_: []),
        (asked, "_partly", lambda *_: []),
        (asked, "_at_sites", lambda *_: []),
        (asked, "_whole", lambda *_: []),
        (asked, "_two", lambda *_: [two]),
    ):
        monkeypatch.setattr(owner, name, instead)
    (found,) = asked._either(Changes(), asked.job, tmp_path)
    assert found is two and asked.budget.left() > 40


def test_choices_that_are_ready_do_not_wait_for_two_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What two faults may be is tried while the next build is compiled, and goes on from there: 70 changes
    that mend a part each, counted 8 at a time."""
    dut = planted(tmp_path)
    job = Job(dut, tmp_path, default_set(dut.instruction, 20, 1, dut.level))
    asked = _Search(judge(job.vectors, right(job), dut.compare), job, Budget(60), None)
    monkeypatch.setattr(search.os, "sched_getaffinity", lambda _: {0})
    tried: list[tuple[int, ...]] = []

    def run(some: Sequence[tuple[int, ...]]) -> list[_Score]:
        tried.extend(some)
        return []

    work = _Pass([(number,) for number in range(70)], run, at_once=8)
    trials = _Trials(job, [], tmp_path, lambda *_: None, np.ones(20, np.bool_), tmp_path / "TOKENS")
    monkeypatch.setattr(asked, "_pass", lambda *_: work)

    def two(name: str, done: Callable[[], bool] | None) -> None:
        texts = cast(Texts, None)
        assert asked._two(Changes(), [], [trials], [], texts, tmp_path / name, done) == []

    for name, ready in (("first", 0), ("second", 20), ("third", 50)):
        two(name, lambda ready=ready: len(tried) >= ready)  # type: ignore[misc]
        assert ready <= len(tried) < ready + 16
    two("last", None)
    assert tried == list(work.many), "each once"


@pytest.mark.parametrize("beside", [0, 1])
def test_a_build_keeps_a_processor_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: int
) -> None:
    """Of two; what is tried meanwhile runs on the other one."""
    dut = planted(tmp_path)
    job = Job(dut, tmp_path, default_set(dut.instruction, 20, 1, dut.level))
    asked = _Search(judge(job.vectors, right(job), dut.compare), job, Budget(60), None)
    monkeypatch.setattr(search.os, "sched_getaffinity", lambda _: {0, 1})
    both = threading.Barrier(2)

    def some(_: range) -> list[_Score]:
        if not beside:
            both.wait(30)  # two at a time, or it breaks
        return threads.append(threading.get_ident()) or []  # type: ignore[func-returns-value]

    threads: list[int] = []
    assert asked._tried(some, 4, beside=beside) == [] and len(set(threads)) == 2 - beside


def test_two_faults_have_a_share_of_the_time_meanwhile(tmp_path: Path) -> None:
    dut = planted(tmp_path)
    job, budget = Job(dut, tmp_path, default_set(dut.instruction, 20, 1, dut.level)), Budget(100)
    asked = _Search(judge(job.vectors, right(job), dut.compare), job, budget, None)
    stop = asked._until(lambda: False, 0.1)
    assert not stop()
    budget.start -= 11
    assert stop() and asked._until(lambda: True, 0.1)()


def test_an_index_stays_within_its_array(tmp_path: Path) -> None:
    found = find_changes(planted(tmp_path))
    start = UNIT.index("product[0]") + len("product[")
    assert {one.after for one in found.of_choices() if one.place.start == start} == {"1", "2"}


def test_every_place_has_its_turn() -> None:
    here, there = Place(Path("x.sv"), 0, 1), Place(Path("x.sv"), 2, 3)
    terms = [Change(there, "b", f"b || {term}", pattern="b || \0", term=term) for term in "cd"]
    listed = [Change(here, "a", after) for after in ("~a", "b", "c")] + terms
    assert in_turn(listed) == [0, 3, 1, 4, 2]


def keys(vectors: VectorSet) -> list[bytes]:
    """What tells vectors apart."""
    return [b"".join(codes[n].tobytes() for codes in vectors.operands.values()) for n in range(len(vectors))]


def right(job: Job) -> engines.Outcome:
    count = len(job.vectors)
    known = {"received": np.ones(count, bool), "unknown": np.zeros(count, bool)}
    return engines.Outcome("fast", "verilator", "", job.vectors.d, **known)


@pytest.mark.parametrize("seconds", [0.1, pytest.param(4, marks=pytest.mark.long)])
def test_the_time_bounds_the_search(tmp_path: Path, seconds: float) -> None:
    """The build of all choices, too: it is ended."""
    verdict, job = judged(planted(tmp_path, ("sum + c", "sum - c")), tmp_path)
    start = time.monotonic()
    with contextlib.suppress(RtlError):
        find_repairs(verdict, job, seconds)
    assert time.monotonic() - start < seconds + 15, "a run may last 5 seconds, a program 2 to end"


def test_what_breaks_a_right_vector_is_no_repair() -> None:
    edit = Edit(Path("x.sv"), 1, "d = a;", "a", "b")
    repair = Repair((edit,), mended=9, wrong=9, broken=1, vectors=100)
    assert not repair.whole


def test_the_report_says_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a search that is not made; the next test makes it."""
    dut, asked = planted(tmp_path, ("b[8*k +: 8])", "b[4*k +: 8])")), list[float]()
    edit = Edit(dut.sources[0], line_of("b[8*k +: 8])"), "b[4*k +: 8])", "4", "8")

    def found(verdict: Verdict, job: Job, budget: Budget, *_: object) -> list[Repair]:
        asked.append(budget.seconds)
        wrong = int(verdict.wrong.sum())
        return [Repair((edit,), mended=wrong, wrong=wrong, broken=0, vectors=len(job.vectors))]

    monkeypatch.setattr(search, "find_repairs", found)
    options = Options(count=500, repair=120, failures=None, build=tmp_path / "build")
    result = check(tmp_path / "dut.yaml", options)
    assert asked == [120] and not result.passed
    repair = result.as_dict()["repairs"][0]
    assert repair["whole"] and repair["edits"][0]["line"] == line_of("b[8*k +: 8])")
    assert repair["sentence"].startswith("dot4.sv:13: with `8` for `4` in ")
    assert "What fixes it" in markdown(result.as_dict())


@pytest.mark.long
def test_the_check_reports_it(tmp_path: Path) -> None:
    """Where no hypothesis explains the results; the report names file, line and change."""
    planted(tmp_path, ("b[8*k +: 8])", "b[4*k +: 8])"))
    options = Options(count=2000, repair=120, failures=None, build=tmp_path / "build")
    result = check(tmp_path / "dut.yaml", options)
    assert not result.passed
    repair = result.as_dict()["repairs"][0]
    assert repair["whole"] and repair["edits"][0]["line"] == line_of("b[8*k +: 8])")
    assert repair["sentence"].startswith("dot4.sv:13: with `8` for `4` in ")
    assert "What fixes it" in markdown(result.as_dict())


def test_without_a_time_for_it_nothing_is_tried(tmp_path: Path) -> None:
    planted(tmp_path, ("b[8*k +: 8])", "b[4*k +: 8])"))
    result = check(tmp_path / "dut.yaml", Options(count=500, failures=None, build=tmp_path / "build"))
    assert not result.repairs


def test_every_byte_of_a_source_counts(tmp_path: Path) -> None:
    """Ends of lines as in Windows, and letters that are no UTF-8."""
    dut = planted(tmp_path)
    text = (tmp_path / "dot4.sv").read_text().replace("// a comment", "// \xe9 comment")
    (tmp_path / "dot4.sv").write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    found = find_changes(dut)
    assert texts(found) == texts_of_plain(tmp_path)
    instrumented = with_selector(dut, found, found.of_choices(), tmp_path / "choices")
    assert b"\xe9" in instrumented.sources[1].read_bytes()


def texts_of_plain(folder: Path) -> set[str]:
    """What is tried in the unit as it is written above."""
    other = folder / "plain"
    other.mkdir()
    return texts(find_changes(planted(other)))


@pytest.mark.long
def test_a_function_that_a_constant_needs_is_no_choice(tmp_path: Path) -> None:
    """Verilator refuses the build of all choices; without those of functions it takes it."""
    function = (
        "function automatic int twice(int x); return 2 * x; endfunction\n    localparam int TWO = twice(1);\n"
    )
    dut = planted(tmp_path, ("sum + c", "sum - c"), ("assign in_ready", f"{function}    assign in_ready"))
    verdict, job = judged(dut, tmp_path)
    assert any(repair.whole for repair in find_repairs(verdict, job, 120))


def test_loops_end(tmp_path: Path) -> None:
    """What a loop does after each turn is left alone: changed, it would never end."""
    found = find_changes(planted(tmp_path))
    step = UNIT.index("k++")
    assert not any(step <= change.place.start < step + 3 for change in found.of_constants())


@pytest.mark.long
def test_what_the_engine_of_the_check_sees_is_asked_again(tmp_path: Path) -> None:
    """A bit that nothing drives is X in Icarus alone: a change that mends the rest does not mend the unit."""
    dut = planted(tmp_path, ("d <= sum + c;", "d <= a[0] ? sum - c : (sum + c) + (unset ^ unset);"))
    (tmp_path / "dot4.sv").write_text(
        (tmp_path / "dot4.sv")
        .read_text()
        .replace("logic signed [31:0] sum;", "logic signed [31:0] sum; logic [31:0] unset;")
    )
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 300, 1, dut.level), "icarus")
    verdict = judge(job.vectors, engines.run("selfcheck", job), dut.compare)
    assert verdict.wrong.any() and verdict.unknown.any()
    with contextlib.suppress(RtlError):  # its time is over before the choices are built
        assert not any(repair.whole for repair in find_repairs(verdict, job, 20))


@pytest.mark.long
def test_no_fault_of_the_search_changes_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("odd text")

    monkeypatch.setattr("rtl_tb.locate.search.find_changes", broken)
    planted(tmp_path, ("b[8*k +: 8])", "b[4*k +: 8])"))
    options = Options(count=500, repair=9, failures=tmp_path / "failures", build=tmp_path / "build")
    result = check(tmp_path / "dut.yaml", options)
    assert not result.passed and result.capsule is not None
    assert any(
        "no change of the text was tried to make these results right: a fault of mmagold itself" in hint
        for hint in result.hints
    )


@pytest.mark.long
def test_sources_with_includes_beside_them(tmp_path: Path) -> None:
    """A file that moves still finds what it includes; a place in a header is none."""
    dut = planted(tmp_path)
    text = (tmp_path / "dot4.sv").read_text().replace("d <= sum + c;", '`include "last.svh"')
    (tmp_path / "dot4.sv").write_text(text)
    (tmp_path / "last.svh").write_text("d <= sum + c;\n")
    found = find_changes(dut)
    assert "sum + c" not in texts(found)
    instrumented = with_selector(dut, found, found.of_choices(), tmp_path / "choices")
    verdict, _ = judged(instrumented, tmp_path)
    assert verdict.passed


def test_one_change_of_the_text_is_more_than_several_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of results that a hypothesis of two parts explains the text is asked, too; one change that mends all is
    what the unit has. So are two where the hypothesis leaves some; where it leaves most, nothing was said."""
    verdict, job = judged(planted(tmp_path, ("sum + c", "sum - c")), tmp_path)
    edit = Edit(Path("x.sv"), 1, "d = a;", "a", "b")
    monkeypatch.setattr(checks, "smallest", lambda *_: None)
    for name in ("shown", "hints"):
        monkeypatch.setattr(reasons, name, lambda *_: [])
    for edits, left, outdone in ((1, 0, True), (2, 0, False), (2, 1, True), (1, 5, False)):
        two = Hypothesis("x+y", "x and y", None, remaining=left)
        found = Diagnosis(job.dut.instruction, (two,), 9, 9)
        repair = Repair((edit,) * edits, mended=9, wrong=9, broken=0, vectors=9)
        monkeypatch.setattr(checks, "explain_results", lambda *_, found=found: found)
        monkeypatch.setattr(checks, "mend", lambda *_, said=repair, **__: [said])
        result = checks.Check(job.dut, Options(repair=60), verdict, job.traffic, job.vectors)
        checks.explain(result, job, lambda *_: None, Budget(60), lambda *_: None)
        assert result.repairs and (result.diagnosis is None) == outdone


def test_changes_that_differ_in_blanks_are_one(tmp_path: Path) -> None:
    """`a+b` and `a + b` are the same text to a designer: one is run and listed."""
    file = tmp_path / "one.sv"
    changes = Changes(texts={file: "assign y = a-b;"})
    place = Place(file, 11, 14)
    scores = [_Score((Change(place, "a-b", after),), 5, 0, 5) for after in ("a+b", "a + b", "b + a")]
    ran: list[str] = []

    class Alone:
        unanswered: dict[Any, Any] = {}  # noqa: RUF012

        def _confirm(self, _changes: Changes, chosen: Sequence[Change], _folder: Path) -> Repair:
            ran.append(chosen[0].after)
            return Repair((_edit(changes, chosen[0]),), 5, 5, 0, 9)

    found = _Search._confirmed(cast(_Search, Alone()), changes, scores, tmp_path)
    assert ran == ["a+b", "b + a"] and len(found) == 2
