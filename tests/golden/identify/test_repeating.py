"""The same question, another answer: reported with its cause, the question and both answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.identify.blackbox import repeatability
from golden.identify.blackbox.box import Box
from golden.identify.blackbox.repeatability import Repeated, at_every_place, check_repeatability
from golden.unit import FunctionUnit

FORMATS = {"a": "s8", "b": "s8", "c": "s32", "d": "s32"}
Dot = Callable[..., Any]


def sound(a: Any, b: Any, c: Any) -> Any:
    products = a.view(np.int8).astype(np.int32) * b.view(np.int8)
    return products.sum(axis=1, dtype=np.int32).view(np.uint32) + c


def at_random(share: float) -> Dot:
    rng = np.random.default_rng(0)
    return lambda a, b, c: sound(a, b, c) ^ (rng.random(len(a)) < share).astype(np.uint32)


def counting() -> Dot:
    """Every third result is off by one."""
    turn = count()
    return lambda a, b, c: sound(a, b, c) + np.array([next(turn) % 3 == 1 for _ in a], np.uint32)


def remembering() -> Dot:
    """The sign of the last result joins the next."""
    held = [0]

    def dot(a: Any, b: Any, c: Any) -> Any:
        d = sound(a, b, c)
        before = np.concatenate([[held[0]], d[:-1]]).astype(np.uint32) >> np.uint32(31)
        held[0] = int(d[-1])
        return d + before

    return dot


def fifth_row(a: Any, b: Any, c: Any) -> Any:
    return sound(a, b, c) + (np.arange(len(a)) % 16 == 5).astype(np.uint32)


def in_crowds(a: Any, b: Any, c: Any) -> Any:
    return sound(a, b, c) + np.uint32(len(a) > 20)


def by_batch(a: Any, b: Any, c: Any) -> Any:
    """The least c of a batch, where not all are alike."""
    return sound(a, b, c) + np.uint32(len(np.unique(c)) > 1)


def drifting(after: int) -> Dot:
    asked = count()
    return lambda a, b, c: sound(a, b, c) + np.array([next(asked) > after for _ in a], np.uint32)


def repeated(dot: Dot) -> Repeated:
    unit = FunctionUnit(dot, FORMATS, 4)
    return check_repeatability(Box(unit, 10_000, math.inf), lambda *place: np.random.default_rng(place))


@pytest.mark.parametrize(
    ("dot", "cause"),
    [
        (at_random(0.3), repeatability.CHANCE),
        (at_random(0.002), repeatability.CHANCE),
        (counting(), repeatability.COUNT),
        (remembering(), repeatability.STATE),
        (fifth_row, repeatability.PLACE),
        (in_crowds, repeatability.SIZE),
        (by_batch, repeatability.BATCH),
    ],
)
def test_each_cause_is_distinguished_from_the_others(dot: Dot, cause: str) -> None:
    found = repeated(dot)
    changed = found.changed
    assert changed is not None and found.differ > 0, found
    assert changed.cause == cause, changed
    assert changed.first != changed.again
    operands = {name: codes[None] for name, codes in changed.operands.items()}
    assert int(sound(**operands)[0]) in (changed.first, changed.again)


def test_a_sound_box_is_asked_at_many_places() -> None:
    found = repeated(sound)
    assert found.changed is None and found.differ == 0
    assert found.queries == 16 * len(stimuli.KINDS) and found.places == 64 and not found.tiles
    model = golden.instruction("volta", "HMMA.884.F32.F32")
    tiles = check_repeatability(Box(model, 10_000, math.inf), lambda *place: np.random.default_rng(place))
    assert tiles.tiles == 16 and tiles.elements == model.m * model.n and tiles.changed is None
    assert "16 at each of 64 places of a tile" in tiles.said


def test_a_tile_with_a_row_of_its_own_is_reported() -> None:
    model = golden.instruction("volta", "HMMA.884.F32.F32")

    def tile(**operands: Any) -> Any:
        d = model(**operands)
        d[:, 2] ^= 1
        return d

    unit = FunctionUnit.like(model, model.dot, tile=tile)
    found = golden.dissect(unit, asks=10_000, seconds=20)
    assert found.changed is not None and found.changed.cause == repeatability.TILE
    assert "row 2, column 0" in found.sentence() and found.instruction is None
    few = {name: codes[:1] for name, codes in asked_of(model).items()}
    assert at_every_place(model, few, model) == [None]


def asked_of(model: Any) -> Any:
    return golden.stimuli.generate(model, "wide", 2, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("dot", "cause"), [(drifting(5_000), repeatability.DRIFT), (at_random(0.0005), repeatability.CHANCE)]
)
def test_what_nothing_explains_is_asked_again_first(dot: Dot, cause: str) -> None:
    found = golden.dissect(FunctionUnit(dot, FORMATS, 4), asks=10_000, seconds=20)
    assert not found.explains and found.changed is not None
    assert found.changed.cause == cause, found.changed
    assert cause in found.report and found.as_dict()["changed"]["cause"] == cause


def test_what_a_sparse_box_answers_by_chance_is_reported() -> None:
    """Only with other metadata than the first questions have."""
    model = golden.instruction("ampere", "mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")
    rng, turn = np.random.default_rng(0), count()

    def dot(**operands: Any) -> Any:
        late = np.array([next(turn) > 6_000 for _ in operands["a"]])
        moved = late & (operands["metadata"] != 4).any(axis=1) & (rng.random(len(late)) < 0.01)
        return model.dot(**operands) ^ moved.astype(np.uint32)

    found = golden.dissect(FunctionUnit.like(model, dot), asks=10_000, seconds=20)
    assert found.changed is not None and found.changed.cause == repeatability.CHANCE
    assert found.instruction is not None and "metadata[" in found.changed.text(model.formats)


def test_that_answers_repeat_is_a_property() -> None:
    found = golden.dissect(FunctionUnit(sound, FORMATS, 2), asks=9_000, seconds=20)
    assert found.explains and found.changed is None
    first = found.properties[0]
    assert first.key == "an answer" and "all answers the same" in first.said and first.confidence > 400
    assert "all answers the same" in found.report
