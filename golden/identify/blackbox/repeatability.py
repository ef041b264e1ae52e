"""Repeatability: whether a unit always has the same answer to the same question, alone, repeated, at other
places of a batch or a tile, and whatever was queried before it or in the same batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.explain.numbers import hex_text
from golden.identify.blackbox.box import Box, BudgetEnded
from golden.identify.blackbox.report import operands_text
from golden.identify.sample import evenly, joined, listed, picked
from golden.number.formats import Format
from golden.program.signature import Bits, Operands, Signature

Tile = Callable[..., Bits]
_ALONE, _FEW = 2, 10
"""Questions that are sent alone, and questions in the first batches, whose times set the plan for the
rest."""
_COPIES, _COPIED = 64, ("wide", "cancelling", "half_ulp", "special_values")
"""Places of a batch that hold copies of one question of each of these kinds."""
_SHARE_OF_COPIES = 20
"""At most one question in 20 of the budget is such a copy."""


@dataclass(frozen=True)
class Repeated:
    """The result of repeated questions.

    Attributes:
        queries: questions that were repeated, in other batches and alone.
        differ: how many of them had another answer.
        places: places of a batch that held the same question.
        tiles, elements: tiles that were filled with one question, and the places of each; none if the unit
            takes no tiles.
        later: questions that were repeated at the end.
        changed: a question with two answers, and the cause; None if all answers agree.
    """

    queries: int
    differ: int
    places: int = 0
    tiles: int = 0
    elements: int = 0
    later: int = 0
    changed: Changed | None = None

    def and_later(self, count: int) -> Repeated:
        """With more questions that had the same answers later."""
        return replace(self, later=self.later + count)

    @property
    def said(self) -> str:
        """The repeated questions of a unit whose answers all agree, in words."""
        where = f"{self.queries:,} questions repeated, alone and in other batches"
        if self.places:
            where += f", at {self.places} places of a batch"
        if self.tiles:
            where += f", {self.tiles:,} at each of {self.elements:,} places of a tile"
        if self.later:
            where += f", {self.later:,} again at the end"
        return f"{where}: all answers the same"

    @property
    def count(self) -> int:
        """Questions that were repeated in any way."""
        return self.queries + self.tiles + self.later


def check_repeatability(box: Box, rng: Callable[..., np.random.Generator]) -> Repeated:
    """Repeats questions of all kinds: a few alone, all in another order and in batches of other sizes (whose
    sums may be formed differently), a few at many places of a batch, and at every place of a tile if the unit
    takes tiles.

    Args:
        rng: of the place of a kind.

    Raises:
        BudgetEnded, OperandError: as `Box.ask`.
    """
    # 16 questions of each kind, and at most one in 600 of the budget for each kind.
    whole = _questions(box.takes, max(1, min(16, box.asks // 600)), rng)
    parts = [np.arange(turn, turn + 1) for turn in range(_ALONE)] + [np.arange(_ALONE, _FEW)]
    few = [box.ask(picked(whole, part)) for part in parts]
    # One query in 4 of the budget is used here, at most.
    share = 4
    whole = picked(whole, _spaced(len(whole["a"]), box.can_answer() // share // 2))
    sent, first = box.ask(whole)
    count = len(first)
    turned = np.arange(count)[::-1]
    repeats = few + [box.ask(picked(whole, part)) for part in np.split(turned, [count // 3])]
    place = np.concatenate([*parts, turned])
    again = np.concatenate([answers for _, answers in repeats])
    same = np.concatenate([part["c"] for part, _ in repeats]) == sent["c"][place]
    other = np.flatnonzero((again != first[place]) & same)
    if len(other):
        found = [
            Discrepancy(picked(whole, place[i]), int(first[place[i]]), int(again[i]), whole, int(place[i]))
            for i in other
        ]
        return Repeated(count, len(np.unique(place[other])), changed=cause_of(box, found))
    return _at_places(box, Repeated(count, 0), rng)


def _at_places(box: Box, clean: Repeated, rng: Callable[..., np.random.Generator]) -> Repeated:
    """The same questions at many places of a batch, then of a tile."""
    kinds = [stimuli.KINDS.index(kind) for kind in _COPIED]
    copies = min(_COPIES, box.can_answer() // _SHARE_OF_COPIES // len(kinds))
    if copies > 1:
        few = _questions(box.takes, 1, lambda place: rng(place, 1), kinds)
        batch = {name: np.repeat(codes, copies, axis=0) for name, codes in few.items()}
        sent, answers = box.ask(batch)
        # All copies of a question in one batch have to be answered alike, wherever they stand.
        block = np.arange(len(answers)) // copies * copies
        other = np.flatnonzero((answers != answers[block]) & (sent["c"] == sent["c"][block]))
        if len(other):
            found = [
                Discrepancy(picked(batch, i), int(answers[block[i]]), int(answers[i]), batch, int(block[i]))
                for i in other
            ]
            return replace(clean, differ=len(np.unique(block[other])), changed=cause_of(box, found))
        clean = replace(clean, places=copies)
    tile = box.tile
    each = 4  # tiles of each of these kinds, each filled with one question
    if tile is None or box.can_answer() < len(kinds) * each * _SHARE_OF_COPIES:
        return clean
    # In a unit of tiles every row and column has to answer alike, too.
    few = _questions(box.takes, each, lambda place: rng(place, 2), kinds)
    moved = at_every_place(box.takes, few, tile)
    changed = next((one for one in moved if one is not None), None)
    elements = box.takes.m * box.takes.n
    differ = sum(one is not None for one in moved)
    return replace(clean, tiles=len(moved), elements=elements, differ=differ, changed=changed)


def at_every_place(takes: Signature, operands: Operands, tile: Tile) -> list[Changed | None]:
    """For each of some dot products (n, ...), whether its answer depends on the place in the tile: every row
    of A is a, every column of B is b, and all of C is c.

    Args:
        tile: what answers matrices, D = A * B + C.
    """
    shapes = takes.operand_shapes(matrices=True)
    whole = {name: _over_a_tile(codes, shapes[name], name) for name, codes in operands.items()}
    d = np.asarray(tile(**whole))
    found: list[Changed | None] = []
    for turn, codes in enumerate(d):
        rows, columns = np.nonzero(codes != codes[0, 0])
        if not len(rows):
            found.append(None)
            continue
        said = (
            f"at {len(rows)} of {codes.size} places of a tile full of one dot product it has another answer"
        )
        said += f" than at row 0, column 0, as at row {rows[0]}, column {columns[0]}"
        answers = int(codes[0, 0]), int(codes[rows[0], columns[0]])
        found.append(Changed(TILE, said, picked(operands, turn), *answers))
    return found


def _over_a_tile(codes: Bits, shape: tuple[int, ...], name: str) -> Bits:
    """The operand of one dot product spread over its tile: along rows, for b along columns."""
    if codes.ndim == 1:
        return np.broadcast_to(codes.reshape(-1, *(1 for _ in shape)), (len(codes), *shape))
    spread = codes[:, :, None] if name in ("b", "scale_b") else codes[:, None]
    return np.broadcast_to(spread, (len(codes), *shape))


# Later ------------------------------------------------------------------------------------------------------


def changed_answer(
    box: Box, questions: Operands, answers: Bits, early: tuple[Operands, Bits] | None = None
) -> Changed | None:
    """Repeats questions (n, ...) that were answered before; one whose answer has changed, and the cause.

    Args:
        early: as in `cause_of`.

    Raises:
        BudgetEnded, OperandError: as `Box.ask`.
    """
    if not len(answers):
        return None
    sent, now = box.ask(questions)
    other = np.flatnonzero((now != answers) & (sent["c"] == questions["c"]))
    found = [Discrepancy(picked(questions, i), int(answers[i]), int(now[i])) for i in other]
    return cause_of(box, found, early) if found else None


def _questions(
    takes: Signature, each: int, rng: Callable[..., np.random.Generator], places: Iterable[int] | None = None
) -> Operands:
    """Questions of kinds by their places, of all of them by default."""
    chosen = range(len(stimuli.KINDS)) if places is None else places
    parts = [stimuli.generate(takes, stimuli.KINDS[place], each, rng(place)) for place in chosen]
    return joined(parts)


def _spaced(count: int, most: int) -> npt.NDArray[np.int64]:
    """Up to `most` of `count` places, evenly spaced so that all kinds stay, and always the first few."""
    step = max(1, -(-count // max(most, 1)))
    return np.union1d(np.arange(min(_FEW, count)), np.arange(0, count, step))


_IN_A_ROW = 64
"""Times that a question is sent alone."""
_TURNS = 2
"""How often each of some other questions precedes it."""
CHANCE = "the box is not deterministic"
STATE = "an answer of the box depends on earlier queries"
COUNT = "an answer of the box depends on the number of earlier queries"
DRIFT = "the answers of the box have changed since the beginning"
PLACE = "an answer of the box depends on the place in the batch"
SIZE = "an answer of the box depends on the number of queries in the batch"
BATCH = "an answer of the box depends on what else is in the batch"
TILE = "an answer of the box depends on the place in the tile"
RECORDED = "the same operands were recorded with two results"


@dataclass(frozen=True)
class Discrepancy:
    """A question with two answers: `operands` of one dot product. `batch`, `place`: where it had its first
    answer."""

    operands: Operands
    first: int
    again: int
    batch: Operands | None = None
    place: int = 0


@dataclass(frozen=True)
class Changed:
    """A question whose answer changed. `cause` is one of the constants above, `said` the observation in
    words."""

    cause: str
    said: str
    operands: Operands
    first: int
    again: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return vars(self) | {"operands": listed(self.operands)}

    def text(self, formats: Mapping[str, Format]) -> str:
        """In a sentence, with the question and both answers."""
        first, again = (hex_text(formats["d"], code) for code in (self.first, self.again))
        question = operands_text(self.operands, formats)
        return f"{self.cause}: {self.said}; {question}: once {first}, once {again}"


def cause_of(box: Box, found: Sequence[Discrepancy], early: tuple[Operands, Bits] | None = None) -> Changed:
    """The cause of changed answers.

    Args:
        found: the questions; the first is examined.
        early: questions (n, ...) from the beginning with their answers.
    """
    one = found[0]
    try:
        cause, said, answers = _Experiments(box, one, early).run()
    except BudgetEnded:
        cause, answers = CHANCE, (one.first, one.again)
        said = "the limits ended before the cause was found"
    return Changed(cause, said, one.operands, *answers)


Cause = tuple[str, str, tuple[int, int]]


class _Experiments:
    """Experiments with one question; each runs if the earlier ones found no cause."""

    def __init__(self, box: Box, one: Discrepancy, early: tuple[Operands, Bits] | None) -> None:
        self.box, self.one, self.early = box, one, early
        self.answers = one.first, one.again

    def run(self) -> Cause:
        alone = self._in_a_row()
        if len(set(alone)) > 1:
            return self._periodic(alone) or self._after_others() or self._at_random(alone)
        found = self._after_others() or self._in_copies(alone[0]) or self._in_its_batch(alone[0])
        return found or self._drifted(alone[0])

    def _ask(self, operands: Operands) -> list[int]:
        answers: list[int] = self.box.ask(operands)[1].tolist()
        return answers

    def _alone(self) -> int:
        return self._ask(_copies(self.one.operands, 1))[0]

    def _in_a_row(self) -> list[int]:
        return [self._alone() for _ in range(_IN_A_ROW)]

    def _periodic(self, alone: list[int]) -> Cause | None:
        """Answers that repeat after a few queries, whatever these are."""
        # A longer period does not repeat often enough in these to be one.
        longest = 32
        for period in range(2, longest + 1):
            if alone[period:] == alone[:-period]:
                other = next(code for code in alone if code != alone[0])
                said = f"sent {_IN_A_ROW} times alone, its answers repeat after {period}"
                return COUNT, said, (alone[0], other)
        return None

    def _after_others(self) -> Cause | None:
        """Sends the question twice after each of some other ones: the same answer after the same one points
        to state."""
        if self.one.batch is None:
            return None
        count = len(self.one.batch["a"])
        # Other questions that precede it, from the whole batch.
        before = 8
        others = evenly(np.arange(count), before).tolist()
        seen: dict[int, set[int]] = {}
        for _ in range(_TURNS):
            self._alone()  # the second turn stands at another place of whatever counts answers
            for other in others:
                self._ask(picked(self.one.batch, [other]))
                seen.setdefault(other, set()).add(self._alone())
        answers = list(dict.fromkeys(min(codes) for codes in seen.values()))
        if any(len(codes) > 1 for codes in seen.values()) or len(answers) < 2:
            return None
        said = f"sent alone after {len(others)} others, twice after each, its answer depends on that one"
        return STATE, said, (answers[0], answers[1])

    def _at_random(self, alone: list[int]) -> Cause:
        often = Counter(alone).most_common()
        counts = " and ".join(f"{count} times" for _, count in often[:2])
        said = f"sent {_IN_A_ROW} times alone, it had {len(often)} answers, the first two {counts}"
        return CHANCE, said, (often[0][0], often[1][0])

    def _in_copies(self, alone: int) -> Cause | None:
        """A batch of nothing else, twice, with another number of queries before it."""
        most = 512
        size = len(self.one.batch["a"]) if self.one.batch is not None else most
        size = max(1, min(most, size, self.box.can_answer() // 2 - 1))
        first = self._ask(_copies(self.one.operands, size))
        self._alone()
        if first != self._ask(_copies(self.one.operands, size)):
            return None
        others = [place for place, code in enumerate(first) if code != alone]
        if not others:
            return None
        other = first[others[0]]
        if len(others) == size:
            return SIZE, f"in a batch of {size} of itself it has another answer than alone", (alone, other)
        places = ", ".join(map(str, others[:4])) + (", ..." if len(others) > 4 else "")
        said = f"in a batch of {size} of itself it has another answer than alone at {len(others)} ({places})"
        return PLACE, said, (alone, other)

    def _in_its_batch(self, alone: int) -> Cause | None:
        """Two repetitions of the batch in which it had its first answer."""
        if self.one.batch is None:
            return None
        seen = {self._ask(self.one.batch)[self.one.place] for _ in range(_TURNS)}
        if seen != {alone} and len(seen) == 1:
            size = len(self.one.batch["a"])
            said = f"in a batch of {size} it has the same other answer each time"
            return BATCH, said, (alone, next(iter(seen)))
        return None

    def _drifted(self, alone: int) -> Cause:
        """Repeats early questions: if others, too, now have other answers for good, the box has changed since
        the beginning."""
        if self.early is not None:
            operands, answers = self.early
            sent, now = self.box.ask(operands)
            other = int(((now != answers) & (sent["c"] == operands["c"])).sum())
            # Fewer than one changed answer in 20 can be chance.
            share = 20
            if other * share > len(answers):
                said = f"of {len(answers)} questions of then {other} have another answer now"
                return DRIFT, said, (self.answers[0], alone)
        said = f"sent {_IN_A_ROW} times alone, it always had the same answer"
        return CHANCE, f"another answer is rare: {said}", self.answers


def _copies(operands: Operands, count: int) -> Operands:
    return {name: np.repeat(codes[None], count, axis=0) for name, codes in operands.items()}
