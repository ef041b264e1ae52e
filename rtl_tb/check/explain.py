"""The explanation of a failed check: the smallest operands that fail, the hypothesis about the arithmetic, a
change of the text, and the unit that the DUT is.

The verdict stands, whatever goes wrong here. Like the stages of the verdict, each stage takes the record and
returns a new one; each has its share of the budget.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from golden.boundary import exception_line
from golden.budget import ALL
from golden.errors import MmagoldError
from golden.vectors.vectorset import default_set
from rtl_tb.check import reasons
from rtl_tb.check.options import TRAFFIC, affordable
from rtl_tb.check.record import DIAGNOSIS, EXAMPLE, Check
from rtl_tb.check.text_rules import declaration_initialisers, unreset_registers
from rtl_tb.check.under_traffic import TrafficFault, isolate_traffic
from rtl_tb.engines.job import Job
from rtl_tb.locate.budget import Budget
from rtl_tb.runs.example import run_of, smallest
from rtl_tb.runs.hypotheses import explain_results
from rtl_tb.runs.initiation_interval import initiation_interval
from rtl_tb.runs.verdict import Verdict

if TYPE_CHECKING:
    from golden.explain.first_difference import Difference
    from golden.identify.diagnosis import Diagnosis
    from rtl_tb.locate.result import Repair
    from rtl_tb.locate.search import Search
    from rtl_tb.locate.vhdl import Synthesised

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, done, total); total 0 when unknown."""
OnPart = Callable[[Check, str], None]
"""Called with the record of a check and one of REPORT_PARTS, as soon as that part is known."""


@dataclass(frozen=True)
class _Ends:
    """Shares of the budget at which the stages of an explanation end; the rest is for the capsule.

    Attributes:
        example: the smallest operands that fail.
        hypotheses: the diagnosis, where it runs on a processor of its own.
        description: handshakes that dut.yaml may lack: a simulator may take a second for each.
        text: the search in the text of the RTL; `explained`: if the diagnosis explains all by one fault.
        single_changes: on one processor, the search in the text has it alone until then, which is when its
            single changes end (SearchPolicy.searching of `text`).
        late_hypotheses: on one processor, the diagnosis, which runs after the single changes.
    """

    example: float = 0.25
    hypotheses: float = 0.5
    description: float = 0.6
    text: float = 0.9
    explained: float = 0.5
    single_changes: float = 0.77
    late_hypotheses: float = 0.9


_ENDS = _Ends()


@dataclass
class _Work:
    """State that the stages share.

    Attributes:
        verdict, job: the run to explain: the one without traffic, if the arithmetic also fails there.
        calm: that run; None if traffic changes nothing.
        search: the search in the text, which begins while hypotheses are tried.
        synthesised: of a unit in VHDL, the Verilog of its synthesis, if that has the same results. All stages
            run it, since it is a hundred times as fast.
        notes: what could not be done, as hints.
    """

    verdict: Verdict
    job: Job
    report: Progress
    budget: Budget
    calm: TrafficFault | None = None
    search: Search | None = None
    synthesised: Synthesised | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def arithmetic(self) -> bool:
        """Whether the arithmetic is wrong, and not only the handshake."""
        return self.calm is None or bool(self.calm.verdict.failed.any())

    @property
    def handshake_alone(self) -> bool:
        """Whether every result is right, and the handshake is broken."""
        return bool(self.verdict.outcome.failures) and not self.verdict.failed.any()

    @property
    def in_verilog(self) -> bool:
        """Whether the run to explain is one of the synthesised text."""
        return self.synthesised is not None and self.job.dut.vhdl is None

    @property
    def _of_the_text(self) -> tuple[Verdict, Job]:
        """The run of the text in which changes are tried."""
        if self.synthesised is None or self.in_verilog:
            return self.verdict, self.job
        return self.synthesised.verdict, self.synthesised.job

    @property
    def to_repair(self) -> Verdict:
        """The verdict for the search in the text. A run that breaks the handshake counts there as one without
        answers, so that a change has to keep the handshake."""
        verdict, _ = self._of_the_text
        if not self.handshake_alone:
            return verdict
        return replace(verdict, missing=np.ones(len(verdict.vectors), np.bool_))

    @property
    def job_to_repair(self) -> Job:
        """The run that shows it. A trial of a change ends with its last result; so idle cycles before others
        have to show a result that belongs to no vector."""
        _, job = self._of_the_text
        if not self.handshake_alone or job.traffic.idle:
            return job
        return replace(job, traffic=replace(job.traffic, idle=TRAFFIC.idle))

    @property
    def engine(self) -> str:
        """The engine of the run to explain."""
        return self.verdict.outcome.engine

    @property
    def takes_turns(self) -> bool:
        """Whether hypotheses and the search in the text have one processor."""
        return self.search is not None and len(os.sched_getaffinity(0)) == 1

    @contextmanager
    def given_up(self, what: str) -> Iterator[None]:
        """Turns an error in the block into a hint that begins with `what`."""
        try:
            yield
        except Exception as error:
            self.notes.append(f"{what}: {error_line(error)}")


def explain(state: Check, report: Progress, budget: Budget, on_part: OnPart) -> Check:
    """Adds the explanation to a failed check, stage by stage, as far as the budget goes; `on_part` gets the
    smallest operands and the diagnosis as soon as they are there."""
    work = _Work(state.verdict, state.run, report, budget)
    if not state.options.diagnosed:
        return smallest_operands(state, work)
    if state.other_outputs is not None:
        return lines_of_other_outputs(state, work)
    _synthesise(state, work)
    # X and Z, and what happens in single cycles, are explained by the unit itself.
    made, of_cycles = work.synthesised, work.verdict.unknown.any() or work.verdict.outcome.failures
    if made is not None and not made.without and not of_cycles:
        work.verdict, work.job = made.verdict, made.job
    state = without_traffic(state, work)
    if work.handshake_alone:
        state = state.hinted(reasons.handshake_hint(work.verdict))
    if reasons.too_few(work.verdict):
        state = state.hinted(reasons.never_answered(work.verdict))
        with _search_begun(state, work):
            return search_in_the_text(state, work)
    state = smallest_operands(state, work)
    on_part(state, EXAMPLE)
    with _search_begun(state, work):
        for stage in (try_hypotheses, examples_of_faults, look_at_the_description):
            state = stage(state, work)
        on_part(state, DIAGNOSIS)
        return search_in_the_text(state, work)


def lines_of_other_outputs(state: Check, work: _Work) -> Check:
    """A change of the text that makes another output right, for a unit whose results are all right. Not of a
    unit that keeps its accumulator: trials run some of the vectors, from what the result before them left."""
    assert state.other_outputs is not None
    if state.dut.instruction.state:
        return state
    work.job, work.verdict = state.other_outputs.runs[0]
    with _search_begun(state, work):
        return search_in_the_text(state, work)


def without_traffic(state: Check, work: _Work) -> Check:
    """Runs without idle cycles, backpressure and resets: vectors that are then right are the
    handshake's fault, vectors that are still wrong the arithmetic's. The two are explained separately."""
    work.report("looking at what traffic does", 0, 0)
    with work.given_up("what traffic does is not known"):
        work.calm = isolate_traffic(work.verdict, work.engine, work.job)
    if work.calm is not None and work.arithmetic:
        work.verdict, work.job = work.calm.verdict, work.calm.job
    hints = [] if work.calm is None else [work.calm.sentence]
    if work.calm is not None and "resets" in work.calm.without:
        with work.given_up("which registers a reset leaves alone is not known"):
            hints += unreset_registers(state.run.dut)
    return _hinted(state, work, hints)


def smallest_operands(state: Check, work: _Work) -> Check:
    """The smallest operands that fail."""
    if not (work.verdict.wrong.any() or work.verdict.unknown.any()):
        return state
    work.report("looking for the smallest operands that fail", 0, 0)
    minimising = partial(work.report, "minimising")
    with work.given_up("the smallest operands that fail are not known"):
        example = smallest(work.verdict, work.engine, work.job, minimising, work.budget.rest(_ENDS.example))
        if work.in_verilog and not example.is_of(run_of(state.engine, state.run, example.place)):
            left = work.budget.rest(_ENDS.example)
            example = smallest(state.verdict, state.engine, state.run, minimising, left)
        state = replace(state, example=example)
    return _hinted(state, work)


def try_hypotheses(state: Check, work: _Work) -> Check:
    """The hypothesis about the arithmetic that explains the wrong results."""
    work.report("looking for the reason", 0, 0)
    # Seconds of the processor for hypotheses of several faults.
    combining_seconds = 20.0
    if work.arithmetic:
        with work.given_up("whether a hypothesis explains it is not known"):
            trying = partial(work.report, "trying hypotheses")
            budget = _for_hypotheses(state, work)
            if work.takes_turns:
                budget = _AfterTheText(budget.seconds, work)
            combining = _AfterTheText(combining_seconds, work, time.thread_time)
            found = explain_results(work.verdict, work.job, trying, budget, combining, state.example)
            state = replace(state, diagnosis=found)
    return _hinted(state, work)


def examples_of_faults(state: Check, work: _Work) -> Check:
    """The step at which the diagnosed unit first differs; for several faults an example each."""
    found = state.diagnosis
    if found is None:
        return state
    work.report("looking for the smallest operands of each fault", 0, 0)
    with work.given_up("the smallest operands of each fault are not known"):
        state = replace(state, difference=find_difference(state))
        each = reasons.examples_of_faults(
            work.verdict, work.engine, work.job, found, _for_hypotheses(state, work)
        )
        state = replace(state, faults=tuple(each))
    return _hinted(state, work)


def look_at_the_description(state: Check, work: _Work) -> Check:
    """Possible errors in dut.yaml: latency, order of ports, interval; and declarations with an
    unintended meaning."""
    work.report("looking at the description", 0, 0)
    found, verdict, job = state.diagnosis, work.verdict, work.job
    hints: list[str] = []
    with work.given_up("whether the description is wrong is not known"):
        hints += reasons.hints(verdict, job, found, work.budget.rest(_ENDS.late_hypotheses))
        hints += reasons.swapped_ports(job.dut, found)
        # A fault of the arithmetic that has a name is none of the handshake, as long as that is kept.
        unit = (state.verdict, state.engine, state.run) if work.in_verilog else (verdict, work.engine, job)
        if (found is None or not found.explains or verdict.outcome.failures) and not state.run.dut.netlist:
            further_apart = initiation_interval(*unit, work.budget.rest(_ENDS.description))
            hints[:0] = [] if further_apart is None else [further_apart.sentence]
        hints += declaration_initialisers(verdict, state.run.dut) if verdict.wrong.any() else []
    return _hinted(state, work, hints)


def search_in_the_text(state: Check, work: _Work) -> Check:
    """A change of the text that makes the results right: also a diagnosis that explains them has no line, and
    another fault may have the same effect. Then a further change for what traffic makes wrong, and last the
    unit that the DUT is, if that was requested."""
    dut, found, budget = state.run.dut, state.diagnosis, _for_text(state, work)
    unexplained = _differs(work.to_repair) and (found is None or not found.explains)
    vague = found is not None and (not found.explained_by_one or found.explained_by_symptom)
    if _searched(state, work) and (unexplained or found is not None):
        budget = budget if unexplained or vague else _for_text(state, work, _ENDS.explained)
        made = "the unit keep the handshake" if work.handshake_alone else "these results right"
        repairs, hints = repair(
            work.to_repair, work.job_to_repair, work.report, budget, unexplained, made, work.search
        )
        if work.handshake_alone:
            repairs = [one.held_to("answered, and the handshake is kept") for one in repairs]
        state = replace(state, repairs=tuple(repairs)).hinted(*(hints if unexplained or vague else ()))
        if _outdone(repairs, found):
            state = replace(state, diagnosis=None, difference=None, faults=())
    if work.calm is not None and work.arithmetic and _searched(state, work) and dut.vhdl is None:
        held = [one.held_to(f"right {work.calm.without}") for one in state.repairs]
        state = replace(state, repairs=tuple(held))
        repairs, hints = repair_traffic(state, work.calm, state.run, work.report, budget.rest())
        state = replace(state, repairs=(*state.repairs, *repairs)).hinted(*hints)
    if unexplained and not state.repairs:
        with work.given_up("what the lint says is not known"):
            state = state.hinted(*reasons.lint(work.verdict, dut, work.budget))
    if state.options.dissect and unexplained:
        from rtl_tb.check import dissection

        with work.given_up("the DUT was not dissected"):
            unit = dissection.dissect(state.run, state.engine, state.options.dissect, work.report)
            state = replace(state, dissection=unit)
    return _hinted(state, work)


# What the stages need ---------------------------------------------------------------------------------------


def _hinted(state: Check, work: _Work, hints: list[str] | None = None) -> Check:
    """Adds hints, and notes on what could not be done."""
    state = state.hinted(*(hints or []), *work.notes)
    work.notes.clear()
    return state


def _for_hypotheses(state: Check, work: _Work) -> Budget:
    """The time for hypotheses: a part of the budget, or all of it if the search in the text has its own."""
    share = _ENDS.late_hypotheses if work.takes_turns else _ENDS.hypotheses
    return work.budget.rest(share if state.options.repair is None else 1.0)


def _for_text(state: Check, work: _Work, share: float = _ENDS.text) -> Budget:
    """The time for the search in the text: `repair` of the options, or what the budget leaves until the
    capsule."""
    requested = state.options.repair
    return work.budget.rest(share) if requested is None else Budget(requested)


class _AfterTheText(Budget):
    """The time for hypotheses that take long: changed signals and several faults. One change of the text that
    makes every result right says as much as they do, so they end with it. Where both have one processor, the
    search in the text begins when they are due, and they begin after most of it."""

    def __init__(self, seconds: float, work: _Work, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(seconds, clock=clock)
        self.work, self.turn = work, work.budget.rest(_ENDS.single_changes)

    def begin(self) -> None:
        """Waits for the search in the text, where both have one processor."""
        if self.work.search is not None and self.work.takes_turns:
            self.work.search.start()
            self.work.search.wait(self.turn)

    def left(self, part: float = ALL) -> float:
        """Seconds; 0 once a change of the text was found."""
        found = self.work.search is not None and self.work.search.repaired
        return 0.0 if found else super().left(part)


@contextmanager
def _search_begun(state: Check, work: _Work) -> Iterator[None]:
    """Begins the search in the text, if there will be one, while hypotheses are tried."""
    from rtl_tb.locate.search import Search

    if not _searched(state, work) or not _differs(work.to_repair):
        yield
        return
    several = len(os.sched_getaffinity(0)) > 1
    origin = None if work.synthesised is None else work.synthesised.origin
    whole = work.synthesised is None or not work.synthesised.without
    drawn = work.to_repair.outcome.engine == "fast" and state.options.vectors is None and whole
    # A change that makes another output right keeps the results.
    kept = state.run if state.other_outputs is not None else work.job_to_repair
    fresh: Callable[[], Job] | None = partial(_fresh, state, kept) if drawn else None
    if fresh is None and state.other_outputs is not None:
        fresh = partial(replace, state.run)
    work.search = Search(
        work.to_repair,
        work.job_to_repair,
        _for_text(state, work),
        several,
        origin,
        fresh=fresh,
    )
    try:
        yield
    finally:
        work.search.end()


def _searched(state: Check, work: _Work) -> bool:
    """Whether changes are tried in the text: it is the designer's, not one made of it, and Verilog, or there
    is Verilog with the same results."""
    dut = work.job_to_repair.dut
    return state.options.repair != 0 and state.run.dut.sources == state.dut.sources and dut.vhdl is None


def _fresh(state: Check, job: Job) -> Job:
    """A run of vectors of the next seed, under the traffic that the check gives a unit that passes."""
    # Vectors of another seed that a repaired unit has to give right: half a second. GHDL ran fewer.
    fresh = 20_000
    count = fresh if state.dut.vhdl is not None else min(len(job.vectors), fresh)
    vectors = default_set(job.dut.instruction, count, job.vectors.seed + 1, job.dut.level)
    if job.dut.exclude is not None:
        vectors = job.dut.exclude.replaced(vectors)
    return replace(job, vectors=vectors, traffic=affordable(state.options.traffic(TRAFFIC, count), vectors))


def _synthesise(state: Check, work: _Work) -> None:
    """Makes the Verilog of a unit in VHDL, if changes are to be tried."""
    from rtl_tb.locate.vhdl import synthesised

    dut = work.job.dut
    if state.options.repair == 0 or dut.vhdl is None or dut.sources != state.dut.sources:
        return
    work.report("reading GHDL's synthesis", 0, 0)
    with work.given_up("no change of the text was tried in what GHDL's synthesis makes of the unit"):
        # Vectors for which GHDL's synthesis has other results than the unit, as long as most have the same:
        # GHDL 2.0 writes single values wrongly.
        most = 0.1
        folder = work.job.build.absolute() / "synthesised"
        work.synthesised = synthesised(work.job, work.verdict, folder, most)
        if work.synthesised.without:
            work.notes.append(
                f"changes of the text were tried without {work.synthesised.without:,} vectors, for which "
                "what GHDL's synthesis makes of the unit has other results"
            )


def _differs(verdict: Verdict) -> bool:
    """Whether results are wrong or never come; X and Z exist in no program of choices."""
    return bool((verdict.wrong | verdict.missing).any())


def error_line(error: Exception) -> str:
    """The text of an error for a report, in one line."""
    return " ".join(str(error).split()) if isinstance(error, MmagoldError) else exception_line(error)


def _outdone(repairs: list[Repair], found: Diagnosis | None) -> bool:
    """Whether a change of the text, with which all vectors are right, says more than a hypothesis that leaves
    some wrong; or a single change more than a hypothesis of several faults."""
    if found is None or not repairs or not repairs[0].explained:
        return False
    if found.explains:
        return repairs[0].by_one and not found.explained_by_one
    return bool(found.hypotheses) and found.hypotheses[0].accepted(found.failing)


def repair_traffic(
    state: Check, calm: TrafficFault, job: Job, report: Progress, budget: Budget
) -> tuple[list[Repair], list[str]]:
    """The changes of the text with which a unit answers as it does without traffic, in addition to a fault of
    its arithmetic, and hints. They have the time that the first search left."""
    held, are = calm.held_to(state.verdict), f"what they are {calm.without}"
    if job.dut.sources != state.dut.sources or held is None or not held.wrong.any():
        return [], []
    # Seconds below which no change of the text is tried: nothing compiles in less.
    least_repair = 1.0
    if budget.left() < least_repair:
        return [], [
            f"no change of the text was tried to make all vectors {are}: "
            "the time was up (--repair gives more)"
        ]
    found, hints = repair(held, job, report, budget, False, f"all vectors {are}")
    return [one.held_to(are) for one in found], hints


def repair(
    verdict: Verdict,
    job: Job,
    report: Progress,
    budget: Budget,
    hypotheses: bool = True,
    made: str = "these results right",
    begun: Search | None = None,
) -> tuple[list[Repair], list[str]]:
    """The changes of the text that make the results of a verdict right, until the budget ends, and hints if
    there are none. `hypotheses`: also explain what a change leaves wrong; `made`: the results that are
    wanted, in words; `begun`: the search, if it began before."""
    from rtl_tb.locate.search import Unconfirmed, Unfinished, find_repairs

    report("looking for a change of the text that fixes it", 0, 0)
    tried = 0

    def trying(done: int, total: int) -> None:
        nonlocal tried
        tried = max(tried, done)
        report("trying changes of the text", done, total)

    try:
        if found := find_repairs(verdict, job, budget, trying, hypotheses, begun):
            return found, []
        said = f"no change of the text that was tried makes {made} (--repair looks longer)"
    except Unconfirmed as error:
        said = f"a candidate that was not confirmed: {error}; another line may be the cause"
    except Unfinished as error:
        said = f"no change of the text that was tried makes {made}; not tried: {error}"
    except Exception as error:  # whatever becomes of the search, the verdict stands
        what = error_line(error)
        said = f"no change of the text was tried to make {made}: {what}"
        if tried:
            said = (
                f"the search for a change of the text that makes {made} ended before all were tried: {what}"
            )
    return [], [said, *_suspects(begun)]


def _suspects(search: Search | None) -> list[str]:
    """The hint that names the likeliest places; none without a ranking."""
    places = [] if search is None else search.suspects()
    return [f"the likeliest places, by a few vectors alone: {'; '.join(places)}"] if places else []


def find_difference(state: Check) -> Difference | None:
    """The step of the smallest example at which the diagnosed unit first differs, where it answers as the
    DUT did."""
    from golden.explain.first_difference import first_difference

    example, best = state.example, state.diagnosis.hypotheses[:1] if state.diagnosis else ()
    if example is None or not best or best[0].instruction is None or not best[0].has_words:
        return None
    unit, operands = example.instruction.in_mode_of(example.operands)
    if state.diagnosis is not None and state.diagnosis.instruction.name != unit.name:
        return None  # the diagnosis is of another mode
    if int(best[0].instruction.dot(**operands)) != example.actual:
        return None
    return first_difference(unit, best[0].instruction, operands)
