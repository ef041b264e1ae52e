"""Confirms changes: the designer's own text with them, built and run as any unit, has to give every vector of
the check right.

How a change was found proves nothing, since a build of choices is another text. Only this run does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np

from golden.errors import MmagoldError
from rtl_tb import engines
from rtl_tb.dut.description import Dut
from rtl_tb.dut.drivers import several_drivers
from rtl_tb.dut.text import shown
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import fast
from rtl_tb.engines.builds import design_of
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.changes import Changes
from rtl_tb.locate.kinds import Change
from rtl_tb.locate.result import Edit, Repair, SingleFault
from rtl_tb.locate.score import Score
from rtl_tb.locate.several_faults import example_of_fault
from rtl_tb.locate.texts import with_changes
from rtl_tb.locate.vhdl import Origin
from rtl_tb.runs.verdict import Verdict, judge, verdict_of
from rtl_tb.simulators import simulators


@dataclass
class Confirmed:
    """Changes, the unit with them, and its answers to the vectors of the check."""

    changes: tuple[Change, ...]
    job: Job
    verdict: Verdict
    repair: Repair


class Confirmation:
    """Runs changes on all vectors of a check, and keeps what came of it.

    Args:
        verdict, job: the wrong results, and the run that showed them.
        few: vectors of a trial; what repairs these alone is often another line than the wrong one.
        origin: of a text that was made of VHDL, the line of that for the number of a line.
        fresh: makes a run of other vectors under traffic, for the changes that make every vector right.

    Attributes:
        confirmed: what was run, by its edits.
        refuted: changes that repair every vector of a trial, but not all of the check.
        unanswered: changes that repair every vector of many, with their number, and could not be run on all.
    """

    def __init__(
        self,
        verdict: Verdict,
        job: Job,
        changes: Changes,
        folder: Path,
        few: int,
        origin: Callable[[int], Origin | None] | None = None,
        fresh: Callable[[], Job] | None = None,
    ) -> None:
        self.verdict, self.original, self.dut, self.changes = verdict, job, job.dut, changes
        self.folder, self.few, self.origin, self.fresh = folder, few, origin, fresh
        self.confirmed: dict[tuple[Edit, ...], Confirmed] = {}
        self.refuted: set[tuple[Change, ...]] = set()
        self.unanswered: dict[tuple[Change, ...], int] = {}
        self._folders = count()

    def of(self, score: Score, budget: Budget) -> Repair | None:
        """The effect of changes on all vectors of the check; None if they are refuted, or cannot be run."""
        try:
            repair = self._run(score.changes, budget)
        except ElaborationError:  # a choice that is no valid text: the designer could not write it
            self.refuted.add(score.changes)
            return None
        except MmagoldError:
            # What repairs a few hundred vectors is often another line.
            if score.clean and score.tried > self.few:
                self.unanswered[score.changes] = score.tried
            return None
        self.unanswered.pop(score.changes, None)
        if repair is None or (score.clean and not repair.sure):
            self.refuted.add(score.changes)
        return repair

    def by_fault(self, repair: Repair, budget: Budget) -> Repair:
        """A repair with the effect of each of its changes by itself; unchanged if the time ends before."""
        if repair.by_one:
            return repair
        found: list[SingleFault] = []
        for change in self.confirmed[repair.edits].changes:
            edit = self.edit(change)
            try:
                self._run((change,), budget)
                one = self.confirmed[edit,]
            except (MmagoldError, KeyError):
                return repair
            only, example = self.verdict.wrong & ~one.verdict.failed, None
            with suppress(MmagoldError), budget.builds():
                example = example_of_fault(self.verdict, self.original, one.job, only, budget.look)
            broken = int((one.verdict.failed & ~self.verdict.failed).sum())
            found.append(
                SingleFault(edit, int((self.verdict.failed & ~one.verdict.failed).sum()), broken, example)
            )
        return replace(repair, faults=tuple(sorted(found, key=lambda one: -one.repaired)))

    def not_run(self, shown: int) -> str:
        """What repairs every vector of many and could not be run on all, one change of each line, at most
        `shown`; "": nothing."""
        if not self.unanswered:
            return ""
        lines: dict[tuple[Path, int], str] = {}
        for changes in self.unanswered:
            edits = [self.edit(one) for one in changes]
            lines.setdefault((edits[0].file, edits[0].line), " and ".join(each.phrase() for each in edits))
        first, *others = lines.values()
        many = f"all {min(self.unanswered.values()):,} vectors on which it was tried are right"
        also = f". Equally consistent: {'; '.join(others[: shown - 1])}" if others else ""
        return f"{first}: {many}, the whole check was not run (--repair gives more time){also}"

    def is_constant(self, repair: Repair) -> bool:
        """Whether a change repairs vectors of one result alone, such as zero, where others are wrong, too: a
        constant does that, whatever the fault is."""
        failed, answers = self.verdict.failed, self.verdict.vectors.d.reshape(len(self.verdict.failed), -1)
        fixed = failed & ~self.confirmed[repair.edits].verdict.failed
        several = len(np.unique(answers[failed], axis=0)) > 1
        return bool(several and len(np.unique(answers[fixed], axis=0)) < 2)

    def edit(self, change: Change) -> Edit:
        """A change as a report shows it: in the designer's text, in VHDL where that is VHDL."""
        edit = self._edit_here(change)
        if self.origin is None or (origin := self.origin(edit.line)) is None:
            return edit
        return replace(edit, file=origin.file, line=origin.line, made_of=shown(origin.text))

    def _edit_here(self, change: Change) -> Edit:
        file, line = change.place.file, self.changes.line(change)
        text = shown(self.changes.texts[file].split("\n")[line - 1].strip())
        after = shown(change.written.strip() if change.form else change.after)
        if change.kind == "missing condition":  # the statement stays
            return Edit(file, line, text, "", after.removeprefix("begin ").split(f" {change.before}")[0])
        return Edit(file, line, text, shown(change.before), after)

    def _run(self, chosen: Sequence[Change], budget: Budget) -> Repair | None:
        """Changes as the designer would write them, run as the check ran the unit; None if they break the
        handshake, or give a net a second driver, of which Verilator takes one.

        Raises:
            RtlError: the time is over, among others.
        """
        edits = tuple(self.edit(change) for change in chosen)
        known = self.confirmed.get(edits)
        if known is not None and known.changes == tuple(chosen):  # one line may have two places
            return known.repair
        budget.look()
        folder = self.folder / f"confirmed_{next(self._folders)}"
        dut = with_changes(self.dut, self.changes, chosen, folder)
        if _shared_nets(dut) - _shared_nets(self.dut):
            return None
        job = replace(self.original, dut=dut, build=folder / "build", program=None, waves=None)
        engine = self.verdict.outcome.engine
        with budget.builds():
            if engine == "fast":  # one run: what the compiler saves is more than the run takes longer
                program = fast.build_once(job, simulators.verilator(), wrapper_of(dut), fast.FOR_TRIALS)
                job = replace(job, program=program)
            job = replace(job, wall_timeout=min(job.wall_timeout, budget.left()))
            outcome = engines.run(engine, job, lambda _done, _all: budget.look())
        if outcome.failures:
            return None
        verdict = judge(self.verdict.vectors, outcome, self.dut.compare)
        repair = Repair(
            edits,
            int((self.verdict.failed & ~verdict.failed).sum()),
            int(self.verdict.failed.sum()),
            int((verdict.failed & ~self.verdict.failed).sum()),
            len(self.verdict.vectors),
        )
        if repair.whole and self.fresh is not None:
            other = self.fresh()
            same = other.dut.watched == dut.watched
            dut = replace(dut, watched=other.dut.watched, compare=other.dut.compare)
            other = replace(other, dut=dut, build=job.build, program=job.program if same else None)
            found = verdict_of(engine, other)
            wrong = max(int(found.failed.sum()), int(bool(found.outcome.failures)))
            repair = replace(repair, further=len(other.vectors), further_wrong=wrong)
        self.confirmed[edits] = Confirmed(tuple(chosen), job, verdict, repair)
        return repair


def _shared_nets(dut: Dut) -> set[str]:
    return {name for _, name, _ in several_drivers(design_of(dut))}
