"""The change of a unit's text that makes its results right: the build of all choices is the unit, planted
faults are found by file and line, and the search ends with its time."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after
from repaired_dot import UNIT, judged, line_of, planted

from golden.identify.diagnose.ranking import HypothesisSearch
from golden.identify.diagnosis import Diagnosis, Hypothesis
from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.check import explain, reasons
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.check.report import markdown
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import fast
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.errors import RtlError
from rtl_tb.locate import search
from rtl_tb.locate.budget import ALL, Budget
from rtl_tb.locate.candidates import room_of
from rtl_tb.locate.changes import Changes, Choice, find_changes
from rtl_tb.locate.choices import _not_blamed, new_names
from rtl_tb.locate.flow import Together, Wires
from rtl_tb.locate.kinds import Change
from rtl_tb.locate.policy import SearchPolicy
from rtl_tb.locate.result import Edit, Repair
from rtl_tb.locate.score import Score, order
from rtl_tb.locate.search import Search, find_repairs
from rtl_tb.locate.selector import with_selector
from rtl_tb.locate.sources import Place, Within
from rtl_tb.locate.spectrum import Spectrum, ranked, ranked_constants, suspicious_lines
from rtl_tb.locate.texts import Texts
from rtl_tb.runs.verdict import Verdict, judge
from rtl_tb.simulators import simulators

SHORT = ("logic signed [31:0] sum;", "logic signed [27:0] sum;")
"""A sum that is four bits short."""


TWICE = """module half (input logic [7:0] x, output logic [7:0] y);
  assign y = x ^ 8'd1;
endmodule
module twice (input logic [7:0] a, b, output logic [7:0] d);
  logic [7:0] x, y;
  half one (.x(a), .y(x));
  half other (.x(b), .y(y));
  assign d = x + y;
endmodule
"""
TWICE_UNIT = """unit: twice
shape: {k: 1}
formats: {a: u8, c: u8, d: u8}
steps:
  - sum: {of: [a, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""
TWICE_DUT = """top: twice
sources: [twice.sv]
unit: unit.yaml
handshake: {kind: combinational}
ports: {a: a, c: b, d: d}
"""


def twice(folder: Path, text: str) -> tuple[Dut, Changes]:
    """A unit of two instances, and its changes."""
    for name, content in (("twice.sv", text), ("unit.yaml", TWICE_UNIT), ("dut.yaml", TWICE_DUT)):
        (folder / name).write_text(content)
    dut = load_dut(folder / "dut.yaml")
    return dut, find_changes(dut)


@pytest.mark.parametrize(("missing", "every"), long_after(1, [(False, 3), (False, 1), (True, 1)]))
def test_number_0_is_the_unit_itself(tmp_path: Path, missing: bool, every: int) -> None:
    """With one choice in three in the text, and with all of them."""
    dut = planted(tmp_path)
    found = find_changes(dut)
    _, job = judged(dut, tmp_path)
    listed = found.missing(lambda _: True)[:3000] if missing else [*found.probes, *found.choices][::every]
    instrumented = with_selector(dut, found, listed, tmp_path / "choices")
    verdict = judge(job.vectors, engines.run("fast", replace(job, dut=instrumented)), dut.compare)
    assert verdict.passed


def test_changes_at_a_place_are_those_of_the_whole_text_there(tmp_path: Path) -> None:
    """A large text is read for the likeliest places alone; slang reads its files as one."""
    ports = "input [7:0] a, b, output [7:0] d"
    part = f"// Part of it.\nmodule part({ports}); assign d = a & ~b; endmodule\n"
    text = f"module twice({ports}); wire [7:0] e; part p(a, b, e); assign d = e + a; endmodule"
    description = TWICE_DUT.replace("[twice.sv]", "[twice.sv, part.sv]")
    files = {"twice.sv": text, "part.sv": part, "unit.yaml": TWICE_UNIT, "dut.yaml": description}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    found = find_changes(load_dut(tmp_path / "dut.yaml"))
    for one in found.probes:
        whole = found.statement(one.site)
        within = Within([whole])
        there = [each for each in found.choices if within(each.change.place)]
        assert there and {*there} <= {*found.at(within)} < {*found.choices} and found.missing(within)
    assert found.at(Within([found.statement(one.site) for one in found.probes])) == found.choices


def test_a_step_of_a_variable_is_no_value(tmp_path: Path) -> None:
    """`d += 1` as a text has no complement."""
    ports = "input [7:0] a, b, output logic [7:0] d"
    text = f"module twice({ports}); always_comb begin d = a & b; d += 1; end endmodule"
    _, found = twice(tmp_path, text)
    assert [one.change.before for one in found.probes if one.site.file.name == "twice.sv"] == ["a & b", "1"]


LOOPS = """module half (input clk, input [7:0] x, output [7:0] y, output logic [7:0] held);
  assign y = x + 8'd1;
  always @(posedge clk) held <= x;
endmodule
module twice (input [7:0] a, b, output [7:0] d);
  localparam int LAST = 3, MASK = 32'h7fc00000;
  wire [7:0] in, out, kept, free;
  logic [7:0] e, f;
  assign in = a ^ b;
  half u (.clk(a[0]), .x(in), .y(out), .held(kept));
  always_comb begin e = out; f = e & kept; end
  assign free = b - a;
  assign d = {f[7:4], free[LAST:0]};
endmodule
"""


def test_no_build_closes_a_loop(tmp_path: Path) -> None:
    """Through an instance, through a procedure, and through two texts together; registers end a loop."""
    _, found = twice(tmp_path, LOOPS)
    names = {(found.line(one.change), one.change.after) for one in found.choices if one.change.kind == "name"}
    into = {after for line, after in names if line == 9}
    assert {"kept", "free"} <= into and not {"out", "e", "f", "in"} & into
    into = {after for line, after in names if line == 11}
    assert {"e", "in", "free"} <= into, "own signals that have a value already"
    at_e = {
        one.change.after for one in found.choices if one.change.before == "out" and one.change.kind == "name"
    }
    assert "free" in at_e and not {"e", "f", "d"} & at_e
    together = Together(found.flow)
    assert together.fits(Wires("twice", frozenset({"free"}), frozenset({"out"})))
    assert not together.fits(Wires("twice", frozenset({"in"}), frozenset({"free"})))
    assert together.fits(Wires("twice", frozenset({"in"}), frozenset({"kept"})))


def test_a_bound_stays_near_its_vector(tmp_path: Path) -> None:
    """A range of 2^31 bits takes hours, also where it is not chosen."""
    _, found = twice(tmp_path, LOOPS)
    assert "MASK" in LOOPS and not [one for one in found.choices if one.change.after == "MASK"]


def test_a_refused_line_costs_its_own_choice_alone(tmp_path: Path) -> None:
    """A compiler says the line; the columns that Verilator says are those of the text without macros."""
    dut = planted(tmp_path)
    found = find_changes(dut)
    listed = found.choices
    with_selector(dut, found, listed, tmp_path)
    file = tmp_path / "0_dot4.sv"
    lines = file.read_text().split("\n")
    alone = [number for number, one in enumerate(listed, 1) if not one.change.term][-1]
    line = next(at for at, text in enumerate(lines, 1) if f"is[{alone}]" in text)
    kept = _not_blamed(listed, f"%Error: {file}:{line}:7: syntax error")
    assert kept == [*listed[: alone - 1], *listed[alone:]]
    name = next(name for one in listed for name in sorted(new_names(one.change)))
    log = f"%Error-BLKANDNBLK: {file}:1:1: assignments to one variable: 'u.{name}'\n"
    by_line, by_name = _not_blamed(listed, log), _not_blamed(listed, log, names=True)
    assert by_name == [one for one in by_line if name not in new_names(one.change)] != by_line


@pytest.mark.long
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("sum + c", "sum - c"),
        ("sum + c", "sum"),
        ("b[8*k +: 8])", "b[4*k +: 8])"),
        ("localparam int BITS = 2 * W", "localparam int BITS = 1 * W"),
        SHORT,
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    """An operator, a missing term, a constant of an expression, one of the elaboration, a width."""
    verdict, job = judged(planted(tmp_path, (right, wrong)), tmp_path)
    assert verdict.wrong.any()
    found = find_repairs(verdict, job, 60)
    assert found and all(repair.whole for repair in found)
    lines = {line_of(right)} | (
        {line_of("sum + c")} if (right, wrong) == SHORT else set()
    )  # where it is read
    assert lines & {repair.edits[0].line for repair in found}, "others may be equally consistent"
    assert (tmp_path / "dot4.sv").read_text() == UNIT.replace(right, wrong), "the file stays as it is"


@pytest.mark.long
def test_two_faults_are_found_together(tmp_path: Path) -> None:
    """Each is wrong under a condition of its own in half of the vectors: a quarter shows it alone."""
    faults = (
        ("d <= sum + c;", "d <= c[31] ? sum - c : sum + c;"),
        ("+ 32'(product[1]);", "+ (a[0] ? 32'(product[2]) : 32'(product[1]));"),
    )
    verdict, job = judged(planted(tmp_path, *faults), tmp_path)
    (found, *_) = find_repairs(verdict, job, 300)
    lines = {edit.line for edit in found.edits}
    assert lines == {line_of(right) for right, _ in faults} and found.whole


def test_a_place_on_which_no_failing_vector_depends_comes_last() -> None:
    """Ochiai, and before it what the complement itself makes right."""
    failing = np.array([True, True, False, False])
    bits = failing[:, None]
    here, there, third, never = (Place(Path("x.sv"), at, at + 1) for at in range(4))
    spectrum = Spectrum(bits)
    spectrum.note(here, bits, failing)
    spectrum.note(there, bits | True, failing)
    spectrum.note(third, bits | True, ~failing)
    spectrum.note(never, ~bits, failing)
    scores = [spectrum.score(one) for one in (third, here, there, never)]
    assert scores == sorted(scores, reverse=True) and scores[3] == 0 and scores[1] == 1
    assert spectrum.score(Place(Path("x.sv"), 0, 3)) == scores[0], "of a case the likeliest place in it"
    mean = np.sqrt(np.mean(np.square(scores)))
    assert spectrum.score(Place(Path("y.sv"), 0, 3)) == pytest.approx(mean), "of one without a probe"
    assert Spectrum(bits).score(here) == 0.5
    listed = [Choice(Change("name", one, "a", "b"), one, "b", root=one) for one in (never, there, here)]
    assert [one.site for one in ranked(listed, spectrum)] == [here, there, never]


def test_what_repairs_failing_vectors_ranks_places_and_operands() -> None:
    """Also where the complement of a number repairs nothing."""
    wrong = np.array([[True], [True], [False]])
    here, there = (Place(Path("x.sv"), 10 * at, 10 * at + 9) for at in range(2))
    spectrum = Spectrum(wrong)
    for place in (here, there):
        spectrum.note(place, wrong, wrong[:, 0], Change("probe", place, "v", "~v"))
    assert spectrum.score(here) == spectrum.score(there) and not spectrum.suspects()
    operand = Place(here.file, here.start, here.start + 1)
    repair = Change("name", operand, "v", "w")
    spectrum.note_repairs({here: (0.5, repair)}, {operand: 0.5})
    assert spectrum.suspects() == [(here, 0.5, repair)] and spectrum.score(here) > spectrum.score(there)
    others = [Change("name", place, "a", "b") for place in (there, Place(here.file, 4, 5), operand)]
    listed = [Choice(one, one.place, "b", root=here if at else there) for at, one in enumerate(others)]
    assert [one.change for one in ranked(listed, spectrum)] == others[::-1]


def test_the_places_near_a_change_make_or_read_its_signals(tmp_path: Path) -> None:
    found = find_changes(planted(tmp_path))
    text = found.sources.texts
    (place,) = (one.site for one in found.probes if found.sources.text(one.site) == "sum + c")
    near = {found.sources.text(one) for one in found.neighbours(place)}
    assert any("product" in (one or "") for one in near) and text, "what makes the sum"


def test_a_build_has_room_for_what_its_time_allows() -> None:
    """By two builds: 1 s for the design, 1 s for 20,000 characters; of one build half for the design."""
    assert room_of([(20_000, 2.0), (40_000, 3.0)], 5.0) == pytest.approx(80_000)
    assert room_of([(20_000, 2.0)], 3.0) == pytest.approx(40_000)


def test_the_wrong_bits_rank_places_on_which_every_vector_depends() -> None:
    wrong = np.array([[True, False], [True, False], [False, False]])
    low, both = (Place(Path("x.sv"), at, at + 1) for at in range(2))
    spectrum = Spectrum(wrong)
    spectrum.note(low, np.array([[True, False]] * 3), wrong.any(axis=1))
    spectrum.note(both, np.array([[True, True]] * 3), wrong.any(axis=1))
    assert spectrum.score(low) > spectrum.score(both) > 0


def test_a_choice_that_loops_multiply_comes_later() -> None:
    once, often = Place(Path("x.sv"), 0, 1), Place(Path("x.sv"), 2, 3)
    listed = [
        Choice(Change("name", at, "a", "b"), at, "b", copies=copies)
        for at, copies in ((often, 400), (once, 1))
    ]
    assert [one.site for one in ranked(listed, Spectrum(np.ones((1, 1), np.bool_)))] == [once, often]


def test_instances_of_a_module_share_its_choices(tmp_path: Path) -> None:
    """A choice costs the same in two instances as in one: the compiled function is one."""

    def sizes(found: Changes) -> list[int]:
        return [one.size for one in found.choices if one.site.start < TWICE.index("module twice")]

    _, once = twice(tmp_path, TWICE.replace("half other (.x(b), .y(y))", "assign y = b ^ 8'd1"))
    dut, found = twice(tmp_path, TWICE)
    assert not once.several and found.several == ["half"]
    assert sizes(found) == sizes(once)
    chosen = with_selector(dut, found, found.choices, tmp_path / "choices")
    job = Job(dut=chosen, vectors=default_set(dut.instruction, 20), build=tmp_path, traffic=Traffic())
    program = fast.build_once(job, simulators.verilator(), wrapper_of(dut), fast.FOR_TRIALS)
    assert list((program.parent / "objects").glob("*_half*.h")), "a class of its own"


def test_a_unit_that_no_longer_answers_depends_on_the_place() -> None:
    spectrum = Spectrum(np.array([[True], [False]]))
    place = Place(Path("x.sv"), 0, 1)
    spectrum.note(place, None, None)
    assert spectrum.depends[place].all() and not spectrum.suspects()


def test_lines_that_the_lint_warns_of_come_first(tmp_path: Path) -> None:
    dut = planted(tmp_path, SHORT)
    found = find_changes(dut)
    hinted = suspicious_lines(dut, found)
    line = line_of(SHORT[0])
    assert (tmp_path / "dot4.sv", line) in hinted
    listed = ranked_constants(found, found.constants, None, hinted)
    there = [(one.place.file, found.line(one)) in hinted for one in listed]
    assert there == sorted(there, reverse=True)
    assert any(found.line(one) == line and one.before == "27" for one in listed)


def test_a_text_is_run_with_its_changes(tmp_path: Path) -> None:
    """In Icarus: what is right leaves no vector wrong, what Icarus refuses gives no answer."""
    cast, plain = "BITS'(signed'({}[8*k +: 8]))", "$signed({}[8*k +: 8])"
    read = [(cast.format(name), plain.format(name)) for name in "ab"]
    verdict, job = judged(planted(tmp_path, ("sum + c", "sum - c"), *read), tmp_path)
    changes = find_changes(job.dut)
    texts = Texts(changes, job, Budget(60), tmp_path / "texts", SearchPolicy())
    assert texts.icarus is not None
    (right,) = (one.change for one in changes.choices if (one.change.before, one.change.after) == ("-", "+"))
    as_it_is, repaired = texts.wrong((), ALL, "a"), texts.wrong((right,), ALL, "b")
    assert as_it_is is not None and np.array_equal(as_it_is, verdict.wrong) and as_it_is.any()
    assert repaired is not None and not repaired.any()
    refused = Change("name", right.place, "-", "nothing")
    assert texts.wrong((refused,), ALL, "c") is None
    assert not list((tmp_path / "texts").glob("[abc]")), "the files of a run are gone behind it"


def test_of_equal_changes_the_likeliest_comes_first() -> None:
    """What changes a token before what adds one, then the likelier place."""
    there = Place(Path("x.sv"), 20, 22)
    named, term = Change("name", there, "s1", "p1"), Change("missing term", there, "s1", "(s1 + p1)")
    scores = [Score((term,), 9, 0, 9, 1.0), Score((named,), 9, 0, 9, 0.5)]
    scores.append(Score((replace(named, after="q1"),), 9, 0, 9, 0.9))
    ordered = [one.changes[0].after for one in sorted(scores, key=order)]
    assert ordered == ["q1", "p1", "(s1 + p1)"]


def test_every_place_has_its_turn() -> None:
    here, there = Place(Path("x.sv"), 0, 1), Place(Path("x.sv"), 2, 3)
    listed = [
        Choice(Change("name", at, "a", after), at, after)
        for at, after in ((here, "b"), (here, "c"), (there, "d"), (there, "e"))
    ]
    same = Spectrum(np.ones((1, 1), np.bool_))
    assert [one.text for one in ranked(listed, same)] == ["b", "d", "c", "e"]


@pytest.mark.parametrize("seconds", [0.1, pytest.param(4, marks=pytest.mark.long)])
def test_the_time_bounds_the_search(tmp_path: Path, seconds: float) -> None:
    """The build of all choices, too: it is ended."""
    verdict, job = judged(planted(tmp_path, ("sum + c", "sum - c")), tmp_path)
    start = time.monotonic()
    with contextlib.suppress(RtlError):
        find_repairs(verdict, job, seconds)
    assert time.monotonic() - start < seconds + 15, "a run may last 5 seconds, a program 2 to end"


def test_the_thread_aside_ends_alone() -> None:
    budget = Budget(60)
    aside = budget.aside()
    aside.end()
    assert aside.over() and not budget.over()
    with pytest.raises(RtlError, match="was up"):
        aside.look()


def test_equally_consistent_lines_are_counted() -> None:
    edit = Edit(Path("x.sv"), 1, "d = a;", "a", "b")
    repair = Repair((edit,), repaired=9, wrong=9, broken=0, vectors=100, rivals=2)
    assert "(2 other lines are equally consistent)" in repair.sentence()
    assert not replace(repair, broken=1).whole
    doubted = replace(repair, further=50, further_wrong=3)
    assert repair.sure and not doubted.sure and "but 3 of 50 others" in doubted.sentence()
    broken = replace(repair, broken=2).sentence()
    assert broken.endswith("and 2 right ones are wrong; no change that was tried makes all right"), broken


@pytest.mark.long
def test_the_report_says_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a search that is not made."""
    dut, asked = planted(tmp_path, ("b[8*k +: 8])", "b[4*k +: 8])")), list[float]()
    edit = Edit(dut.sources[0], line_of("b[8*k +: 8])"), "b[4*k +: 8])", "4", "8")

    def found(verdict: Verdict, job: Job, budget: Budget, *_: object) -> list[Repair]:
        asked.append(budget.seconds)
        wrong = int(verdict.wrong.sum())
        return [Repair((edit,), repaired=wrong, wrong=wrong, broken=0, vectors=len(job.vectors))]

    monkeypatch.setattr(search, "find_repairs", found)
    options = Options(count=500, repair=120, failures=None, build=tmp_path / "build")
    result = check(tmp_path / "dut.yaml", options)
    assert asked == [120] and not result.passed
    repair = result.as_dict()["repairs"][0]
    assert repair["whole"] and repair["edits"][0]["line"] == line_of("b[8*k +: 8])")
    assert repair["sentence"].startswith("dot4.sv:13: with `8` for `4` in ")
    assert "What fixes it" in markdown(result.as_dict())


def test_every_byte_of_a_source_counts(tmp_path: Path) -> None:
    """Ends of lines as in Windows, and letters that are no UTF-8."""

    def texts(found: Changes) -> set[tuple[str, str]]:
        return {(one.change.before, one.change.after) for one in found.choices}

    dut = planted(tmp_path)
    plain = texts(find_changes(dut))
    text = (tmp_path / "dot4.sv").read_text().replace("// a comment", "// \xb5\xe9 comment")
    (tmp_path / "dot4.sv").write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    dut = load_dut(dut.file)
    found = find_changes(dut)
    assert texts(found) == plain
    instrumented = with_selector(dut, found, found.choices, tmp_path / "choices")
    assert b"\xb5\xe9" in instrumented.sources[1].read_bytes()


@pytest.mark.long
def test_sources_with_includes_beside_them(tmp_path: Path) -> None:
    """A file that moves still finds what it includes; a place in a header is none."""
    dut = planted(tmp_path)
    text = (tmp_path / "dot4.sv").read_text().replace("d <= sum + c;", '`include "last.svh"')
    (tmp_path / "dot4.sv").write_text(text)
    (tmp_path / "last.svh").write_text("d <= sum + c;\n")
    found = find_changes(dut)
    assert {one.change.place.file.name for one in (*found.choices, *found.missing(lambda _: True))} == {
        "dot4.sv"
    }
    instrumented = with_selector(dut, found, found.choices, tmp_path / "choices")
    verdict, _ = judged(instrumented, tmp_path)
    assert verdict.passed


@pytest.mark.long
def test_on_one_processor_the_text_has_its_turn_before_slow_hypotheses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quick hypotheses, the text alone, and then changed signals, which a change that was found ends."""
    verdict, job = judged(planted(tmp_path, ("sum + c", "sum | c")), tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    turns: list[object] = []

    def noted(owner: type, name: str, after: bool = False) -> None:
        function = getattr(owner, name)

        def called(self: Any, *arguments: Any) -> Any:
            turns.append(name)
            found = function(self, *arguments)
            turns.extend([self.over()] if after else [])
            return found

        monkeypatch.setattr(owner, name, called)

    noted(HypothesisSearch, "plain")
    noted(HypothesisSearch, "signals")
    noted(Search, "_passes")
    noted(explain._AfterTheText, "begin", after=True)
    result = Check(job.dut, Options(repair=200), verdict, job.traffic, job.vectors, job=job)
    result = explain.explain(result, lambda *_: None, Budget(300), lambda *_: None)
    assert turns[:5] == ["plain", "signals", "begin", "_passes", True]
    assert result.repairs[0].edits[0].line == line_of("sum + c")


@pytest.mark.long
def test_one_change_of_the_text_is_more_than_several_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of results that a hypothesis of two parts explains the text is asked, too; one change that makes all
    right is what the unit has. So are two where the hypothesis leaves some; where it leaves most, nothing was
    said."""
    verdict, job = judged(planted(tmp_path, ("sum + c", "sum - c")), tmp_path)
    edit = Edit(Path("x.sv"), 1, "d = a;", "a", "b")
    monkeypatch.setattr(explain, "smallest", lambda *_: None)
    for name in ("examples_of_faults", "hints"):
        monkeypatch.setattr(reasons, name, lambda *_: [])
    for edits, left, outdone in ((1, 0, True), (2, 0, False), (2, 1, True), (1, 5, False)):
        two = Hypothesis("x+y", "x and y", None, remaining=left)
        found = Diagnosis(job.dut.instruction, (two,), 9, 9)
        repair = Repair((edit,) * edits, repaired=9, wrong=9, broken=0, vectors=9)
        monkeypatch.setattr(explain, "explain_results", lambda *_, found=found: found)
        monkeypatch.setattr(explain, "repair", lambda *_, said=repair, **__: ([said], []))
        result = Check(job.dut, Options(repair=60), verdict, job.traffic, job.vectors, job=job)
        result = explain.explain(result, lambda *_: None, Budget(60), lambda *_: None)
        assert result.repairs and (result.diagnosis is None) == outdone
