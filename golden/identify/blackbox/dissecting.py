"""The dissection: query the box, fit a candidate, query again until no answer contradicts the candidate.

First the box itself is checked (does the same query always have the same answer?). Masks then show the order
of the sum, and operands of every kind the rest. The skeletons of that order are fitted to all answers. The
best candidate is checked on operands drawn for it; each counterexample is shrunk, joins the bank, and the
candidate is fitted again. The final candidate has been compared with every recorded answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from golden import processes, stimuli, yamlfile
from golden.catalog.relatives import relatives
from golden.catalog.unit_files import build_instruction
from golden.catalog.unit_text import unit_text
from golden.errors import OperandError, SpecError
from golden.files import output
from golden.identify.blackbox import discriminate, fitting, memory
from golden.identify.blackbox.asking import Inconsistent, Progress
from golden.identify.blackbox.box import (
    Box,
    BudgetEnded,
    dense_view,
    mode_view,
    with_accumulator,
    with_box_operands,
)
from golden.identify.blackbox.candidates import Candidate, candidate_of
from golden.identify.blackbox.checking import Checking
from golden.identify.blackbox.evidence import Evidence, Property, forced, simplest
from golden.identify.blackbox.ignored_bits import find_ignored_bits
from golden.identify.blackbox.missing_operands import as_own, with_all
from golden.identify.blackbox.naming import nearest, with_names
from golden.identify.blackbox.parts import as_read, find_passes
from golden.identify.blackbox.policy import QUESTIONS
from golden.identify.blackbox.product_groups import Groups, find_product_groups
from golden.identify.blackbox.recordings import Recording, dissect_recording
from golden.identify.blackbox.report import IN_TURNS, Example, Found, of_modes, shortened
from golden.identify.blackbox.unexplained import broken, unexplained
from golden.identify.sample import joined, picked
from golden.identify.search import seldom_collected
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.program import ABSENT
from golden.unit import Function, FunctionUnit, Unit, name_of, signature_of

_NO_WORDS = "the schema of units has no words for the candidate"


_RESUME = "argument 'resume' (option --continue)"


@seldom_collected()
def dissect(
    box: Unit | Function | Recording,
    formats: Mapping[str, str | Format] | None = None,
    k: int | None = None,
    *,
    seconds: float = 60,
    asks: int = 400_000,
    seed: int = 0,
    progress: Progress | None = None,
    resume: str | Path | None = None,
    near: Instruction | None = None,
    solver: float = 0.0,
    **more: Any,
) -> Found:
    """Finds the specification of a black box.

    Args:
        box: a unit or a recording (`formats` and `k` are their own), or a function f(a, b, c[, scale_a,
            scale_b, metadata]) -> d on arrays of raw codes, a and b (n, k), c and d (n,).
        formats: of a function: names or formats by operand, {"a": "f16", "b": "f16", "c": "f32", "d": "f32"};
            with scales scale_a and scale_b, too.
        k: of a function: products of one dot product.
        seconds: no query is sent after this time.
        asks: the query budget in dot products, at least 500; a small budget decides little.
        seed: of the random operands; equal seeds send a box the same queries, as long as its answers are
            the same and no time limit interferes.
        progress: called with (what is done, done, all).
        resume: a file of questions, answers and the candidate. If it exists, its dissection is continued with
            a new budget of `seconds` and `asks`; it is written at the end.
        near: what the box is meant to be: the first start, with no more credit than any other.
        solver: seconds for a solver, of `seconds`, with values of keys that no question separates: it proves
            that they give the same unit, or finds operands for a query. 0: none; nor if it is not installed
            (`mmagold[prove]`).
        more: of a function: scale_block and pattern, as Signature has them.

    Raises:
        OperandError: the box cannot be queried this way, does not answer, or contradicts an answer in
            `resume`; `near` takes other operands. FileFormatError: `resume` is of another box or version, or
            cannot be written.
    """
    if isinstance(box, Recording):
        if near is not None:
            raise OperandError(f"{box.name} is a recording: argument 'near' (option --near) is for units")
        if formats is not None or k is not None or more or resume is not None:
            if resume is not None:
                raise OperandError(
                    f"{box.name} is a recording, which is not continued: {_RESUME} is for units"
                )
            raise OperandError(
                f"{box.name} is a recording, which has formats and k of its own: leave them out"
            )
        if not seconds > 0:
            raise OperandError(f"argument 'seconds' is {seconds}, expected more than 0")
        return dissect_recording(box, seconds, seed, progress)
    unit = _as_unit(box, formats, k, more)
    if asks < QUESTIONS.smallest:
        raise OperandError(f"argument 'asks' is {asks}, expected {QUESTIONS.smallest} or more")
    if not seconds > 0:
        raise OperandError(f"argument 'seconds' is {seconds}, expected more than 0")
    if signature_of(unit).modes is not None:
        if resume is not None:
            raise OperandError(f"{name_of(unit)} has modes: {_RESUME} is for a unit of one mode")
        return _mode_by_mode(unit, seconds, asks, seed, progress, near, solver)
    if near is not None and near.mode_units:
        raise OperandError(f"argument 'near' has modes, {name_of(unit)} has none: name a unit without")
    unit = with_all(unit)
    start = None if near is None else _meant(unit, near)
    if resume is not None:
        output.check(resume)
    begun = time.monotonic()
    unread = find_ignored_bits(unit, asks, seconds, lambda *numbers: np.random.default_rng([seed, *numbers]))
    seconds -= time.monotonic() - begun
    search = _Search(unread.unit, seconds, asks - unread.queries, seed, progress, near=start, solver=solver)
    if resume is not None and Path(resume).exists():
        search.remember(resume)
    try:
        found = search.run()
    finally:  # also of one that was interrupted
        if resume is not None:
            search.keep(resume)
    undecided = (*found.undecided, *unread.open)
    return replace(found, not_read=unread.said, undecided=undecided, asked=found.asked + unread.queries)


def _as_unit(
    box: Any, formats: Mapping[str, str | Format] | None, k: int | None, more: dict[str, Any]
) -> Unit:
    if hasattr(box, "dot") and hasattr(box, "formats"):
        if formats is not None or k is not None or more:
            raise OperandError("arguments 'formats' and 'k' are for a function; a unit has its own")
        unit: Unit = box
    elif not callable(box):
        raise OperandError(f"argument 'box' is {type(box).__name__}, expected a unit or a function")
    elif formats is None or k is None:
        raise OperandError("arguments 'formats' and 'k' are missing, expected both with a function")
    else:
        missing = [name for name in "ad" if name not in formats]
        if missing:
            raise OperandError(
                f"argument 'formats' lacks {', '.join(missing)}, expected a, d, and b and c where the "
                "function takes them"
            )
        unit = FunctionUnit(box, {**ABSENT, **formats}, k, getattr(box, "__name__", "function"), **more)
    # What no search knows yet is refused before the first query.
    takes = signature_of(unit)
    if takes.state and takes.pattern is not None:
        raise OperandError(f"{takes.name} keeps its accumulator and is sparse, expected one or the other")
    return unit


def _meant(unit: Unit, near: Instruction) -> Candidate:
    return candidate_of(signature_of(dense_view(unit)), near)


def _mode_by_mode(
    unit: Unit,
    seconds: float,
    asks: int,
    seed: int,
    progress: Progress | None,
    near: Instruction | None,
    solver: float,
) -> Found:
    """Dissects a unit mode by mode. Each search begins with the result of the mode before, and with what the
    mode is meant to be. At the end the queries switch modes, which no search of one mode does."""
    modes, started = signature_of(unit).modes, time.monotonic()
    assert modes is not None
    codes = [code for code, _ in modes.codes()]
    if asks < QUESTIONS.smallest * len(codes):
        raise OperandError(
            f"argument 'asks' is {asks}, expected {QUESTIONS.smallest} or more for each of {len(codes)} modes"
        )
    views = {code: with_all(mode_view(unit, code)) for code in codes}
    own = (
        {} if near is None else {code: _meant(views[code], near.mode_units.get(code, near)) for code in codes}
    )
    found: dict[int, Found] = {}
    before: Candidate | None = None
    # A part of the budget is kept for switching between modes.
    share = min(asks // QUESTIONS.in_turns, 2 * len(stimuli.KINDS) * QUESTIONS.last)
    for turn, code in enumerate(codes):
        # The time left is shared by the modes left; a mode begins with the result of the one before.
        left = (started + seconds - time.monotonic()) / (len(codes) - turn + 1 / QUESTIONS.in_turns)
        each = (asks - share) // len(codes)
        search = _Search(views[code], left, each, seed, progress, before, own.get(code), solver)
        found[code] = search.run()
        before = before if search.state.fit is None else search.state.fit.candidate
    whole = of_modes(name_of(unit), modes, found)
    return whole if whole.instruction is None else _in_turns(unit, whole, share, started + seconds, seed)


def _in_turns(unit: Unit, found: Found, asks: int, deadline: float, seed: int) -> Found:
    """Queries that switch the mode from one dot product to the next, compared with the results of each
    mode."""
    assert found.instruction is not None
    box, own = Box(unit, asks, deadline), found.instruction
    count = asks // len(stimuli.KINDS)
    try:
        parts = [
            stimuli.generate(box.own, kind, count, np.random.default_rng([seed, place]))
            for place, kind in enumerate(stimuli.KINDS)
        ]
        operands = joined(parts)
        answers = box.answer(operands)
    except BudgetEnded:
        said = "the time ended before the modes were tried in turns: no query followed one in another mode"
        return replace(found, undecided=(*found.undecided, said))
    wrong = int((own.stateless.dot(**box.own.resolve(operands, answers)) != answers).sum())
    return replace(
        found,
        differing={**found.differing, IN_TURNS: (wrong, len(answers))},
        asked=found.asked + len(answers),
        fresh=found.fresh + len(answers),
    )


@dataclass(eq=False)
class _Search(Checking):
    """One dissection."""

    remembered: bool = field(init=False, default=False)

    def remember(self, path: str | Path) -> None:
        """Continues the dissection of a file.

        Raises:
            FileFormatError: it is of another box or version. OperandError: the box has other answers now.
        """
        kept = memory.load(path, name_of(self.box.unit), self.own, self.takes)
        # Some of the old questions again: answers of another box would mislead every fit.
        some = np.random.default_rng([self.seed, kept.turn]).permutation(len(kept.bank))[: QUESTIONS.resumed]
        if len(some):
            part = kept.bank.part(some)
            try:
                given, answers = self.dense.ask(part.operands)
                again = answers != part.answers
                wrong = int((again & (given["c"] == part.operands["c"])).sum())
            except BudgetEnded:
                raise OperandError(f"{path}: the limits leave no time to repeat its questions") from None
            if wrong:
                said = f"{wrong} of {len(some)} of its questions, repeated, had another answer"
                raise OperandError(f"{path}: {said}: the box is not deterministic, or not the one recorded")
        self.bank, self.state.tree, self.groups = kept.bank, kept.tree, Groups(kept.groups)
        self.passes = kept.passes
        self.turn = kept.turn
        self.codes.add(kept.bank.operands)
        self.remembered, self.before = len(kept.bank) > 0, kept.queries
        # Earlier checks of the candidate count only if it still explains all questions.
        candidate = kept.candidate()
        if candidate is not None:
            wrong = fitting.wrong_of(self.bank, candidate)
            self.state.fit = fitting.Fit(candidate, wrong, list(kept.changes))
            self.state.differing = {} if wrong else kept.differing

    def keep(self, path: str | Path) -> None:
        """Writes the state of the search to a file; nothing for a box that is not deterministic."""
        if self.changed is not None or not len(self.bank):
            return
        fit = self.state.fit
        text = None if fit is None else self._text(fit.candidate, "continued")[0]
        shown = self.state.tree, self.groups.members, self.passes
        known = memory.Memory(self.bank, *shown, text, queries=self._queries, turn=self.turn)
        if fit is not None and text is not None:
            known.order, known.changes = fit.candidate.order, fit.changes
            known.differing = self.state.differing
        memory.save(path, name_of(self.box.unit), self.own, known)

    def run(self) -> Found:
        """The whole search, or as much of it as the limits allow."""
        state = self.state
        try:
            # 1. Every later stage assumes that an answer depends on the operands alone; if not, stop here.
            self._check_repeatability()
            if not self.remembered:
                # 2. What is read of the operands, the order of the sum, then the first questions: the bank
                # holds answers of every kind.
                self._report_progress("finding the order of the sum", 0, 1)
                self.passes = find_passes(self.dense, self.bank, self._rng(1, len(stimuli.KINDS) + 1))
                read = as_read(self.dense, self.passes)
                state.tree = self._order(read)
                self.groups = find_product_groups(read, self.bank, state.tree)
                self._first_questions()
                self._start_near()
            # 3. A candidate with the fewest wrong answers in the bank; not yet checked on other questions.
            self._first_candidate()
            # 4. After a check that returns True, the last candidate was queried in at least one full round.
            checked = self._check()
            # 5. The evidence may refute the candidate; then it is fitted and checked again.
            while self._shown_wrong() or self.kept_back:
                self.kept_back = 0
                checked = self._check() or checked
            # 6. The box still answers as at the start, so the bank describes one box.
            self._ask_early_again()
        except BudgetEnded:
            checked = False
        except Inconsistent:
            checked = True
        if not checked:
            late = self.dense.left < self.reserve or self.dense.asks < self.asks
            what = "time" if late else "number of questions"
            state.undecided.append(f"the {what} that was given ended before the search did")
        return self._found()

    def _found(self) -> Found:
        state, fit = self.state, self.state.fit
        name = name_of(self.box.unit)
        common: dict[str, Any] = {}
        if state.tree is not None:
            common = {"order": state.tree.brackets()}
        if fit is None:
            undecided = tuple(state.undecided) or ("no order of the sum could be tried",)
            seconds = time.monotonic() - self.started
            more: dict[str, Any] = {"asked": self._queries, "changed": self.changed, "seconds": seconds}
            more["waited"] = processes.waited() - self.waited
            return Found(name, None, None, {}, undecided, **more, **common)
        self._recall(fit.candidate)
        # Evidence is worth its queries only for a candidate that no recorded answer contradicts.
        clean = not any(count for count, _ in self._all_counts(fit.candidate).values())
        evidence = self._weigh(fit) if clean else Evidence()
        differing = self._all_counts(fit.candidate)
        wrong = any(count for count, _ in differing.values())
        evidence = Evidence() if wrong else evidence  # a query for the evidence refuted the candidate
        alternatives = {one.key: one.undecided for one in evidence.properties if one.undecided}
        # The unit with the operands of the box, as text, and the instructions of the catalogue that it may
        # be.
        unit = as_own(with_box_operands(fit.candidate.instruction, self.own), self.own)
        text, unwritten = self._text(fit.candidate, f"dissected: {name}")
        known = () if wrong else self._known(unit)
        near = None if known or not evidence.properties else nearest(unit.stateless, alternatives)
        if text is not None and (known or near is not None):
            own = as_own(with_accumulator(fit.candidate.instruction, self.own), self.own)
            text = with_names(own, text, f"dissected: {name}", known, near)
        found = Found(
            name,
            unit,
            text,
            differing,
            (
                *state.undecided,
                *filter(None, [unwritten]),
                *self._open(differing, alternatives),
                *_untried(evidence),
                *self.codes.said(),
            ),
            rules=(fit.candidate.order, *fit.changes),
            forced=tuple(forced(fit.changes, self.bank) if wrong else self.forced),
            unwritten=unwritten,
            changed=self.changed,
            known=known,
            near=near,
            example=self._example(fit.candidate) if wrong else None,
            laws=broken(self.bank) if wrong else (),
            alternatives=alternatives,
            fresh=sum(count for _, count in state.differing.values()),
            properties=self._with_repeated(evidence.properties),
            asked=self._queries,
            seconds=time.monotonic() - self.started,
            waited=processes.waited() - self.waited,
            **common,
        )
        return found.without_operands(self.own.unread) if self.own.unread else found

    def _with_repeated(self, properties: tuple[Property, ...]) -> tuple[Property, ...]:
        """The properties, preceded by what every key relies on: that answers repeat."""
        if not properties or not self.repeated.count:
            return properties
        found = self.repeated
        first = Property("an answer", "that of its operands", 0, (), (), said=found.said, queries=found.count)
        return first, *properties

    def _text(self, candidate: Candidate, title: str) -> tuple[str | None, str]:
        """The candidate as YAML, if the text reads back as a unit with the same answers; if not, the
        reason."""
        own = as_own(with_accumulator(candidate.instruction, self.own), self.own)
        text = unit_text(own, "dissected", title, editor=False)
        if text is None:
            return None, _NO_WORDS
        try:
            again = build_instruction(yamlfile.parse(text))
        except SpecError as error:
            return None, f"{_NO_WORDS}: {error}"
        expected = candidate.dot(**self.bank.operands)
        given = {name: codes for name, codes in self.bank.operands.items() if name not in self.own.unread}
        if np.array_equal(again.stateless.dot(**given), expected):
            return text, ""
        return None, f"{_NO_WORDS}: its text is read as a unit with other answers"

    def _all_counts(self, candidate: Candidate) -> dict[str, tuple[int, int]]:
        """By kind, the checks of this candidate together with its comparison with the bank."""
        counts = dict(self.state.differing)
        for kind, (wrong, total) in self.bank.counts(self.bank.wrong(candidate.program)).items():
            before = counts.get(kind, (0, 0))
            counts[kind] = before[0] + wrong, before[1] + total
        return counts

    def _example(self, candidate: Candidate) -> Example | None:
        """The simplest question of the bank that the candidate gets wrong."""
        wrong = np.flatnonzero(self.bank.wrong(candidate.program))
        if not len(wrong):
            return None
        place = simplest(self.bank, wrong)
        operands = picked(self.bank.operands, place)
        return Example(operands, int(self.bank.answers[place]), int(candidate.dot(**operands)))

    def _known(self, unit: Instruction) -> tuple[str, ...]:
        """Instructions of the catalogue that answer the whole bank as the box did."""
        found: list[str] = []
        if unit.pattern is not None:
            return ()
        for one in relatives(unit.stateless, same=True):
            if one.links == 1 and self.bank.explained(one.instruction.program):
                found += [f"{one.instruction.architecture}:{one.instruction.name}"]
        return tuple(found)

    def _open(
        self, differing: Mapping[str, tuple[int, int]], alternatives: Mapping[str, tuple[str, ...]]
    ) -> Iterator[str]:
        bad = {kind: counts for kind, counts in differing.items() if counts[0]}
        if bad:
            worst = sorted(bad.items(), key=lambda item: -item[1][0])
            named = ", ".join(f"{kind} ({wrong:,} of {count:,})" for kind, (wrong, count) in worst[:6])
            right, fit = [kind for kind in differing if kind not in bad], self.state.fit
            yield f"no candidate explains all answers; the nearest one is wrong on {named}"
            if right:
                yield f"it is right on all operands of the kinds {', '.join(right)}"
            if fit is not None:
                yield from unexplained(fit.candidate, self.bank, self.checked)
        common = {key: values for key, values in alternatives.items() if not discriminate.is_extra(key)}
        for key, values in common.items():
            shown = ", ".join(shortened(values))
            yield f"{key}: {shown} give the same answer to every recorded question"
        extras = [key for key in alternatives if key not in common]
        if extras:
            yield f"nor is any of these excluded, with some value: {'; '.join(extras)}"


def _untried(evidence: Evidence) -> Iterator[str]:
    if evidence.tried < evidence.neighbours:
        yield (
            f"of {evidence.neighbours:,} changes of one key, {evidence.neighbours - evidence.tried:,} were "
            "not compared with the questions, because the time ended: whether they are excluded is not known"
        )
