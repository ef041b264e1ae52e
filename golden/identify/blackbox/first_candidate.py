"""The first candidate: the skeletons of the order that masks showed, fitted to the first questions.

The nearest come first, and the best starts get more time if none explains all questions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from golden.identify.blackbox import fitting, starting_points
from golden.identify.blackbox.asking import ORDINARY, Asking
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.candidates import candidate as made_candidate
from golden.identify.blackbox.one_term import subtracted_products, with_register_limits
from golden.identify.blackbox.parts import Pass
from golden.identify.blackbox.policy import STARTS, TIMES
from golden.identify.blackbox.product_groups import Groups
from golden.identify.blackbox.templates import grouped, of_both_signs, skeletons


@dataclass(eq=False)
class Starting(Asking):
    """A search up to its first candidate; `state.fit` is the nearest one."""

    mode_before: Candidate | None = None
    near: Candidate | None = None

    orders: list[fitting.Fit] = field(init=False, default_factory=list)
    groups: Groups = field(init=False, default_factory=Groups)
    passes: list[tuple[Pass, ...]] = field(init=False, default_factory=list)

    def _begin_near(self) -> None:
        """Starts with the nearest of the intended unit and the candidate of another mode, after single
        changes."""
        starts = [one for one in (self.near, self.mode_before) if one is not None]
        made = [made_candidate(self.takes, one.operations, one.order) for one in starts]
        fits = [fitting.Fit(one, fitting.wrong_of(self.bank, one)) for one in made if one is not None]
        if fits:
            first = min(fits, key=lambda one: one.wrong)
            self.state.fit = fitting.fit(self.bank, first, time.monotonic() + self.dense.left / TIMES.sharers)

    def _first_candidate(self) -> None:
        kept = self.state.fit
        ordinary = self.bank.of_kinds(frozenset(ORDINARY)) if self.takes.formats["d"].is_float else self.bank
        if kept is not None and not kept.wrong:
            if self.near is not None:  # the intended unit has to compete with other orders, as any start
                self._rank(ordinary, self._made())
            return
        self._report_progress("fitting orders of the sum", 0, 1)
        # 1. Groups that questions showed: fewer orders, so they are tried before all others.
        of_groups = starting_points.counted(self.bank, grouped(self.takes, self.groups), self.passes)
        if of_groups:
            kept = self._begun(ordinary, of_groups, kept, quick=False)
            if kept is not None and not kept.wrong:
                return
        made = self._made()
        self._begun(ordinary, made, kept)
        # 2. All orders of the tree. `orders` keeps the ranking for restarts.
        starts = fitting.various(self.orders, STARTS.fits)
        # 3. The keys found so far in other orders; then the nearest orders themselves.
        now = self._reordered(made)
        if now is not None and now.wrong:  # the order is wrong, or something apart from the order
            self._refit([now, *starts], quick=True)
        # 4. More time for the best starts. After this stage `fit` is the candidate with the fewest wrong
        # answers.
        if self.state.fit is not None and self.state.fit.wrong:
            self._refit(self.ranked[: STARTS.fits // 2])

    def _rank(self, ordinary: Bank, made: list[Candidate]) -> None:
        """Ranks skeletons by their wrong answers: the starts, now and later."""
        self.ranked = self.orders = fitting.rank(ordinary, self.bank, made, self.deadline)

    def _made(self) -> list[Candidate]:
        """The skeletons of the order that masks showed."""
        signed = of_both_signs(self.takes, subtracted_products(self.bank))
        shapes = [*signed, *skeletons(self.takes, self.state.tree)]
        return with_register_limits(self.bank, starting_points.counted(self.bank, shapes, self.passes))

    def _begun(
        self, ordinary: Bank, made: list[Candidate], kept: fitting.Fit | None, quick: bool = True
    ) -> fitting.Fit | None:
        """The result of the nearest skeletons, or of a candidate that was kept."""
        self._rank(ordinary, made)
        first = fitting.of_both_kinds(self.ranked, STARTS.first)
        self._refit([kept, *first] if kept is not None else first, quick)
        now = self.state.fit
        if now is not None and now.wrong:
            self._ask_wrong_again(now.candidate)
        return now

    def _reordered(self, made: list[Candidate]) -> fitting.Fit | None:
        """The result of the first starts, or another order with the same ends if that explains more."""
        now = self.state.fit
        if now is not None and now.wrong:
            until = time.monotonic() + min(TIMES.orders, self.dense.left / 8)
            self._also(starting_points.reordered(self.bank, now, made, until)[: STARTS.first])
        return self.state.fit

    def _also(self, starts: list[fitting.Fit]) -> None:
        """Fits more starts, each for a short time, and ranks them with the earlier ones."""
        now, before = self.state.fit, self.ranked
        if starts and now is not None:
            self._refit([*starts, now], quick=True)
            every = {one.candidate.operations: one for one in (*before, *self.ranked)}
            self.ranked = sorted(every.values(), key=lambda one: one.wrong)

    def _refit(self, starts: list[fitting.Fit], quick: bool = False) -> None:
        """Fits candidates until one explains the bank; without one keeps the nearest, and ranks the others
        behind it. `quick`: each start gets a short time, and the best continue; one that is near continues at
        once."""
        best: fitting.Fit | None = None
        fits: list[fitting.Fit] = []
        # Fits leave the reserve: without a round of new questions a candidate is worth nothing.
        end = time.monotonic() + TIMES.fits * (self.dense.left - self.reserve)
        for turn, start in enumerate(starts):
            # The first start is counted even if no time is left: some candidate is better than none.
            if time.monotonic() > end and (fits or self.state.fit is not None):
                break
            self._report_progress(f"fitting: {start.candidate.order}", turn, len(starts))
            # The bank may have grown since the start was counted.
            now = fitting.Fit(start.candidate, fitting.wrong_of(self.bank, start.candidate), start.changes)
            # The time left is shared: no start takes it all, and the best ones continue later.
            here = time.monotonic()
            until = here + (end - here) / (
                min(len(starts) - turn, TIMES.sharers) if not quick else TIMES.quick
            )
            done = fitting.fit(self.bank, now, until)
            if quick and 0 < done.wrong < len(self.bank) // STARTS.near:  # costs nothing if no change helped
                until = time.monotonic() + (end - time.monotonic()) / TIMES.sharers
                done = fitting.fit(self.bank, done, until)
            fits.append(done)
            if best is None or done.wrong < best.wrong:
                best = done
            if best.wrong == 0:
                break
        # Afterwards the candidate has the fewest wrong answers of all these starts.
        self.state.fit = best or self.state.fit
        if len(fits) > 1:
            self.ranked = sorted(fits, key=lambda one: one.wrong)
