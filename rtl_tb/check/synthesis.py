"""Gate-level simulation: a unit that passed is run once more as the netlist that synthesis makes of it.

A simulator heeds delays, lists of signals and the order of processes, reads what stands behind `ifdef
VERILATOR` or between `translate_off` and `translate_on`, takes zeros beyond a vector and the first of several
branches. A chip does none of it. So the same vectors run on the netlist (rtl_tb/check/gate_level.py), with
undefined bits zero, one and random. A unit that is wrong there is wrong, and that run is the verdict.

Initial values of signals are another matter: synthesis for FPGAs keeps them, that for ASICs does not. A unit
that is wrong without them passes with a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from golden.budget import Budget
from golden.errors import listed
from rtl_tb import engines
from rtl_tb.check.gate_level import Netlist, declared, other_choices, synthesise, without_initials
from rtl_tb.check.initial_values import SHOWN, UndrivenSignals
from rtl_tb.check.source_text import SYNTHESIS, SourceText, on_text, read, undeclared
from rtl_tb.engines.job import INITIAL_VALUES, Job
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict, verdict_of
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import LONGEST_BUILD

Progress = Callable[[str, int, int], None]
POLICIES = ("try", "require", "off")
"""What happens if a unit passes and cannot be run as synthesis reads it: the report says so, or there is no
verdict; or synthesis is not tried."""
_AS_SIMULATED = "as simulated"
_FOR = re.compile(r"\bfor\s*\([^)]*\)")
_CLOCKED = r"\balways(?:_ff)?\s*@[^;]*?\b(?:pos|neg)edge\b"
_CHOICE = re.compile(r"\b(?:unique0?|priority)\b|\b(?:full|parallel)_case\b")
"""Declarations that let synthesis leave no bit undefined in its netlist."""
_DELAYS = "delays left out"
_IGNORED = {
    _DELAYS: re.compile(
        r"#\s*[\d.]|(?:[=;)]|\b(?:assign|begin|else))\s*#\s*"
        r"(?:[A-Za-z_]|\((?!\s*(?:parameter|localparam|type|int|bit|logic)\b))"
    ),
    "lists of signals read as @*": re.compile(
        r"\balways\s*@\s*(?:\(\s*)*(?!posedge|negedge|edge)[A-Za-z_\\]"
    ),
    "registers where = and processes of one edge race": re.compile(
        _CLOCKED + r"(?:(?!\b(?:always\w*|initial|assign|end(?:module|generate))\b).)*?"
        r"[\w\]}]\s*[-+*/%&|^]?=(?!=)",
        re.DOTALL,
    ),
}
"""Constructs that simulators obey and synthesis does not. A text that may have one of these is run in any
case."""


@dataclass(frozen=True)
class Synthesis:
    """The result for a unit as synthesis reads it.

    Attributes:
        by: "synthesis", or "Yosys" if it has a text of its own.
        place: where the two texts first differ, "file:line".
        tried, failed: vectors.
        refused: why it was not run, or "".
        change: constructs that simulators obey and synthesis does not, in words.
    """

    by: str
    place: str
    tried: int
    failed: int
    refused: str = ""
    change: str = ""

    @property
    def sentence(self) -> str:
        """One sentence for the reader."""
        change = f": {self.change}" if self.change else ""
        other = f"{self.by} reads another text than the simulator (first at {self.place}{change}"
        if not self.place and self.refused:
            return f"whether {self.by} reads another text is not known: {self.refused}"
        if self.refused:
            return f"{other}), and that was not checked: {self.refused}"
        if self.failed:
            return f"{other}), and as it reads it {self.failed:,} of {self.tried:,} vectors fail"
        return f"{other}); as it reads it {self.tried:,} vectors are right"

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        names = ("by", "place", "tried", "failed", "refused", "sentence")
        return {name: getattr(self, name) for name in names}


@dataclass
class SynthesisResult:
    """The result of gate-level simulation.

    Attributes:
        job, verdict: those of the first run that is wrong, or the given ones.
        texts: the result for each text that differs, or the reason why it is not known.
        unset: the undefined bits that decide the result, or None.
        notes: results that depend on initial values.
    """

    job: Job
    verdict: Verdict
    texts: list[Synthesis] = field(default_factory=list)
    unset: UndrivenSignals | None = None
    notes: list[str] = field(default_factory=list)


def compare_netlists(
    job: Job,
    verdict: Verdict,
    plain: SourceText,
    budget: Budget | None = None,
    report: Progress | None = None,
) -> SynthesisResult:
    """Runs the vectors of a job on the netlist of each text that synthesis may read, if it may differ from
    the one that the simulator read, `plain`. What was not compiled when the budget ended is a note."""
    budget = budget or Budget(float("inf"))
    whole = int(budget.seconds) if budget.seconds < float("inf") else 0

    def tick() -> None:
        if report is not None:
            report("checking the netlist that synthesis makes of it, in seconds", int(budget.spent), whole)

    with simulators.longest_build(min(budget.left(), LONGEST_BUILD), tick=tick):
        return _ask_synthesis(job, verdict, plain, budget)


def _ask_synthesis(job: Job, verdict: Verdict, plain: SourceText, budget: Budget) -> SynthesisResult:
    result, seen = SynthesisResult(job, verdict), list[SourceText]()
    traffic = replace(job.traffic, resets=min(job.traffic.resets, 1))
    job = replace(job, traffic=traffic)
    for by, options in SYNTHESIS.items():
        text, differs = None, _Difference(by)
        try:
            text = read(job.dut, options, pragmas=True)
            if text is None or not all(other.differs(text) for other in seen):
                continue
            seen.append(text)
            differs = _difference(by, plain, text)
            _ask_netlist(result, job, text, differs)
        except RtlError as error:
            more = "; --budget gives more" if budget.over() else ""
            _refused(result, job, text, differs, " ".join(str(error).split()) + more)
        if not result.verdict.passed or budget.over():
            return result
    return result


@dataclass(frozen=True)
class _Difference:
    """A difference between the text for synthesis and the text for the simulator.

    Attributes:
        by: who reads it.
        text: where its text is another, "file:line", or "".
        place: where that is, or where something is that a netlist does not have.
        change: the difference, in words.
    """

    by: str
    text: str = ""
    place: str = ""
    change: str = ""

    def came(self, tried: int, failed: int, refused: str = "") -> Synthesis:
        return Synthesis(self.by, self.place, tried, failed, refused, self.change)


def _difference(by: str, plain: SourceText, text: SourceText) -> _Difference:
    at = place = plain.differs(text)
    changes = []
    code = _FOR.sub(lambda loop: re.sub(r"[^\n]", " ", loop[0]), text.text)
    for what, pattern in _IGNORED.items():
        found = pattern.search(code)
        if found is not None:
            changes.append(what)
            place = place or text.place(found.start())
    return _Difference(by, at, place, "; ".join(changes))


def _ask_netlist(result: SynthesisResult, job: Job, text: SourceText, differs: _Difference) -> None:
    """Runs a text as gates, if that may show a difference."""
    said = declared(text.text)
    either = list(dict.fromkeys([said, other_choices(said)]))
    for each in either:
        netlist = synthesise(job, each)
        if differs.place or netlist.undefined or len(either) > 1:
            _run_netlist(result, netlist, text, differs)
        if not result.verdict.passed:
            return
    if differs.text or _DELAYS in differs.change:
        result.texts.append(differs.came(len(job.vectors), 0))
    bare, initials = without_initials(said)
    if not initials:
        return
    for _, (_, run) in _runs(synthesise(job, bare).job):
        if not run.passed:
            result.notes.append(_of_initials(run, initials, text))
            return


def _run_netlist(result: SynthesisResult, netlist: Netlist, text: SourceText, differs: _Difference) -> None:
    """Runs a netlist from each start of its undefined bits."""
    runs = dict(_runs(netlist.job))
    wrong = {start: _failed(run) for start, (_, run) in runs.items()}
    failing = next((start for start, count in wrong.items() if count), None)
    if failing is None:
        return
    result.job, result.verdict = runs[failing]
    count = len(result.verdict.vectors)
    # What is wrong from every start is the fault of the text, not of bits that it leaves undefined.
    if differs.place and all(wrong.values()) and (differs.change or len(set(wrong.values())) == 1):
        result.texts.append(differs.came(count, wrong[failing]))
    else:
        by = differs.by if differs.place else ""
        result.unset = _unset(netlist, text, {_AS_SIMULATED: 0} | wrong, count, by)


def _runs(job: Job) -> Iterator[tuple[str, tuple[Job, Verdict]]]:
    """A job and its verdict for each start of the undriven bits."""
    job = engines.built("fast", job)
    for start in INITIAL_VALUES:
        mine = replace(job, start=start)
        yield start, (mine, verdict_of("fast", mine))


def _failed(verdict: Verdict) -> int:
    return 0 if verdict.passed else int(verdict.failed.sum()) or len(verdict.outcome.failures)


def _unset(netlist: Netlist, text: SourceText, wrong: dict[str, int], tried: int, by: str) -> UndrivenSignals:
    chosen = [text.place(found.start()) for found in _CHOICE.finditer(text.text)]
    places = tuple(dict.fromkeys([*netlist.places, *chosen]))
    return UndrivenSignals(wrong, tried, _shown(places, text), of_text=True, by=by)


def _shown(places: tuple[str, ...], text: SourceText) -> tuple[str, ...]:
    """Places with their lines of code."""
    code = {place: line for line, place in text.lines()}
    return tuple(f"{place}: {code[place]}" if place in code else place for place in places)


def _of_initials(verdict: Verdict, initials: list[int], text: SourceText) -> str:
    places = _shown(tuple(dict.fromkeys(map(text.place, initials))), text)
    return (
        "the result depends on initial values of signals, which synthesis for an ASIC drops: with others "
        f"{_failed(verdict):,} of {len(verdict.vectors):,} vectors fail; given: "
        f"{listed(places, SHOWN, '; ')}"
    )


def _refused(
    result: SynthesisResult, job: Job, text: SourceText | None, differs: _Difference, why: str
) -> None:
    """Reports that a text did not run as gates; if it differs from the simulator's text, it is simulated
    itself, if possible."""
    if text is None or differs.text:
        try:
            if text is None:
                raise RtlError(why)
            mine = on_text(job, undeclared(text.text), differs.by.lower())
            mine = engines.built("fast", mine)
            judged = verdict_of("fast", mine)
        except RtlError:
            said = differs.came(0, 0, why)
            result.texts += [said] if all(each.refused != why for each in result.texts) else []
            return
        result.texts.append(differs.came(len(mine.vectors), _failed(judged)))
        if not judged.passed:
            result.job, result.verdict = mine, judged
            return
    note = f"whether it leaves bits open is not known: {why}"
    result.notes += [note] if note not in result.notes else []


def unknown(error: Exception) -> Synthesis:
    """The message if no text could be read."""
    return Synthesis("synthesis", "", 0, 0, " ".join(str(error).split()))
