"""Whether a unit answers the same question the same: alone, again, at other places of a batch or a tile,
whatever it was asked before and beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.identify.blackbox.box import Box
from golden.identify.blackbox.causes import TILE, Asked, Changed, cause_of
from golden.program.signature import Bits, Operands, Signature

Tile = Callable[..., Bits]
_OF_EACH_KIND, _OF_ASKS = 16, 600
"""Questions of each kind; of so many that may be asked, one at most is one of those of a kind."""
_ALONE, _FEW = 2, 10
"""Questions that are asked alone, and those in the first batches, by whose times the others are planned."""
_COPIES, _COPIED = 64, ("wide", "cancelling", "half_ulp", "special_values")
"""Places of a batch that one question of each of these kinds is asked at."""
_SHARE_OF_COPIES, _SHARE = 20, 4
"""Of so many questions that may be asked, one at most is such a copy; one at most is asked here at all."""
_TILES = 4
"""Of each of these kinds, tiles that one question fills."""
_AGAIN = 64
"""Early questions that are asked once more later."""


@dataclass(frozen=True)
class Repeated:
    """What came of asking again.

    Attributes:
        asked: questions that were asked again, in other batches and alone.
        differ: how many of them had another answer.
        places: of a batch, at which the same question was asked.
        tiles, elements: tiles that were filled with one question, and the places of each; none where the
            unit answers no tiles.
        later: questions that were asked once more at the end.
        changed: a question with two answers, and why; None where all answers are the same.
    """

    asked: int
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
        """What a unit was asked that answers the same always."""
        where = f"{self.asked:,} questions asked again, alone and in other batches"
        if self.places:
            where += f", at {self.places} places of a batch"
        if self.tiles:
            where += f", {self.tiles:,} at each of {self.elements:,} places of a tile"
        if self.later:
            where += f", {self.later:,} once more at the end"
        return f"{where}: all answers the same"

    @property
    def count(self) -> int:
        """Questions that were asked again in any way."""
        return self.asked + self.tiles + self.later


def asked_again(box: Box, rng: Callable[..., np.random.Generator]) -> Repeated:
    """Asks questions of all kinds again: a few alone, all in another order and in batches of other sizes
    (which may be summed otherwise), a few at many places of a batch, and where the unit answers tiles at
    every place of one.

    Args:
        rng: of the place of a kind.

    Raises:
        BudgetEnded, OperandError: as `Box.ask`.
    """
    whole = _questions(box.takes, max(1, min(_OF_EACH_KIND, box.asks // _OF_ASKS)), rng)
    parts = [np.arange(turn, turn + 1) for turn in range(_ALONE)] + [np.arange(_ALONE, _FEW)]
    few = [box.ask(_at(whole, part)) for part in parts]
    whole = _at(whole, _spaced(len(whole["a"]), box.can_answer() // _SHARE // 2))
    asked, first = box.ask(whole)
    count = len(first)
    turned = np.arange(count)[::-1]
    told = few + [box.ask(_at(whole, part)) for part in np.split(turned, [count // 3])]
    place = np.concatenate([*parts, turned])
    again = np.concatenate([answers for _, answers in told])
    same = np.concatenate([part["c"] for part, _ in told]) == asked["c"][place]
    other = np.flatnonzero((again != first[place]) & same)
    if len(other):
        found = [
            Asked(_at(whole, place[i]), int(first[place[i]]), int(again[i]), whole, int(place[i]))
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
        asked, answers = box.ask(batch)
        block = np.arange(len(answers)) // copies * copies
        other = np.flatnonzero((answers != answers[block]) & (asked["c"] == asked["c"][block]))
        if len(other):
            found = [
                Asked(_at(batch, i), int(answers[block[i]]), int(answers[i]), batch, int(block[i]))
                for i in other
            ]
            return replace(clean, differ=len(np.unique(block[other])), changed=cause_of(box, found))
        clean = replace(clean, places=copies)
    tile = box.tile
    if tile is None or box.can_answer() < len(kinds) * _TILES * _SHARE_OF_COPIES:
        return clean
    few = _questions(box.takes, _TILES, lambda place: rng(place, 2), kinds)
    moved = at_every_place(box.takes, few, tile)
    changed = next((one for one in moved if one is not None), None)
    elements = box.takes.m * box.takes.n
    differ = sum(one is not None for one in moved)
    return replace(clean, tiles=len(moved), elements=elements, differ=differ, changed=changed)


def at_every_place(takes: Signature, operands: Operands, tile: Tile) -> list[Changed | None]:
    """For each of some dot products (n, ...), whether it is answered otherwise at one place of the tile than
    at another: every row of A is a, every column of B is b, and C is c all over.

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
        found.append(Changed(TILE, said, _at(operands, turn), *answers))
    return found


def _over_a_tile(codes: Bits, shape: tuple[int, ...], name: str) -> Bits:
    """What one dot product reads, for all of its tile: in rows, of b in columns."""
    if codes.ndim == 1:
        return np.broadcast_to(codes.reshape(-1, *(1 for _ in shape)), (len(codes), *shape))
    spread = codes[:, :, None] if name in ("b", "scale_b") else codes[:, None]
    return np.broadcast_to(spread, (len(codes), *shape))


# Later ------------------------------------------------------------------------------------------------------


def otherwise_now(
    box: Box, questions: Operands, answers: Bits, early: tuple[Operands, Bits] | None = None
) -> Changed | None:
    """Asks questions (n, ...) again that were answered before; one that has another answer, and why.

    Args:
        early: as `cause_of` has it.

    Raises:
        BudgetEnded, OperandError: as `Box.ask`.
    """
    if not len(answers):
        return None
    asked, now = box.ask(questions)
    other = np.flatnonzero((now != answers) & (asked["c"] == questions["c"]))
    found = [Asked(_at(questions, i), int(answers[i]), int(now[i])) for i in other]
    return cause_of(box, found, early) if found else None


def _questions(
    takes: Signature, each: int, rng: Callable[..., np.random.Generator], places: Iterable[int] | None = None
) -> Operands:
    """Questions of kinds by their places, of all of them by default."""
    chosen = range(len(stimuli.KINDS)) if places is None else places
    parts = [stimuli.generate(takes, stimuli.KINDS[place], each, rng(place)) for place in chosen]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _spaced(count: int, most: int) -> npt.NDArray[np.int64]:
    """The first few of so many, and of all others every second, third, ... so that all kinds stay."""
    step = max(1, -(-count // max(most, 1)))
    return np.union1d(np.arange(min(_FEW, count)), np.arange(0, count, step))


def _at(operands: Operands, index: Any) -> Operands:
    """Some of the questions, or one."""
    return {name: codes[index] for name, codes in operands.items()}
