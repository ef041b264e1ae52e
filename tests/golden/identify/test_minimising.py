"""The minimiser: what it returns still fails, is small, and few calls of the predicate get it there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.identify.minimising import ROUNDS, cost, minimise
from golden.model.instruction import Instruction

HOPPER = golden.instruction("hopper", "HMMA.16816.F32")
AMPERE = golden.instruction("ampere", "HMMA.16816.F32")
PAIRS = {
    "f16": (HOPPER, AMPERE),
    "e4m3": tuple(
        golden.instruction(a, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
        for a in ("ada", "hopper")
    ),
}


def first_failing(x: Instruction, fails: Any, kind: str) -> dict[str, Any]:
    operands = stimuli.generate(x, kind, 500, np.random.default_rng(1))
    index = int(np.flatnonzero(fails(operands))[0])
    return {name: codes[index] for name, codes in operands.items()}


@pytest.mark.parametrize(
    ("pair", "kind"), [("f16", "wide"), ("f16", "narrow"), ("f16", "cancelling"), ("e4m3", "wide")]
)
def test_few_calls_give_a_small_example(pair: str, kind: str) -> None:
    x, y = PAIRS[pair]
    seen: list[tuple[int, int]] = []

    def fails(batch: dict[str, Any]) -> Any:
        return x.dot(**batch) != y.dot(**batch)

    given = first_failing(x, fails, kind)
    least = minimise(x, given, fails, progress=lambda done, total: seen.append((done, total)))
    assert x.dot(**least) != y.dot(**least), "it still fails"
    assert {name: codes.shape for name, codes in least.items()} == {
        name: codes.shape for name, codes in given.items()
    }
    assert len(seen) <= ROUNDS and seen[-1] == (len(seen), ROUNDS)
    assert np.count_nonzero(least["a"]) <= 2 and cost(x, least) < cost(x, given) / 3


def test_one_bit_of_one_operand() -> None:
    """A predicate that looks at a single bit: everything else goes."""
    given = {
        name: codes[0]
        for name, codes in stimuli.generate(HOPPER, "narrow", 1, np.random.default_rng(2)).items()
    }
    given["b"][5] |= 1
    least = minimise(HOPPER, given, lambda batch: (batch["b"][:, 5] & 1) == 1)
    assert np.flatnonzero(least["b"]).tolist() == [5] and not least["c"]
    assert bin(int(least["b"][5]) & 0x3FF).count("1") == 1 and int(least["b"][5]) & 1


def test_nothing_simpler_fails() -> None:
    given = {
        name: codes[0]
        for name, codes in stimuli.generate(HOPPER, "wide", 1, np.random.default_rng(3)).items()
    }
    least = minimise(
        HOPPER,
        given,
        lambda batch: np.all(
            [(batch[n] == given[n]).reshape(len(batch["c"]), -1).all(1) for n in given], axis=0
        ),
    )
    assert all(np.array_equal(least[name], given[name]) for name in given)
