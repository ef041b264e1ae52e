"""Bounds of words hold for all values; solver, its text and evaluation mean the same by each operation."""

from __future__ import annotations

import random

import pytest

from golden.circuit.words import OPERATIONS, Word, Words, evaluate, order
from golden.proof.ranges import Ranges, range_facts
from golden.proof.solver import NEVER, Solver, again, smtlib

KINDS = sorted(OPERATIONS - {"const", "var"})


def made(words: Words, op: str, rng: random.Random, given: list[Word]) -> Word:
    """A word of an operation on some words, whose widths are made to fit."""
    one, other = rng.choice(given), rng.choice(given)
    if op == "extract":
        low = rng.randrange(one.width)
        return words.extract(one, low, rng.randint(1, one.width - low))
    if op == "sext":
        return words.extend_signed(one, one.width + rng.randint(1, 3))
    if op == "concat":
        return words.concat(one, other) if one.width + other.width < 20 else one
    if op == "ite":
        return words.choose(words.bit(one, 0), other, words.extend_signed(rng.choice(given), other.width))
    args = [one, words.extend(other, one.width)]
    unary = op in ("not", "neg")
    return again(words, Word(op, (), one.width, None, 0), args[:1] if unary else args)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_for_every_value(seed: int) -> None:
    rng, words = random.Random(seed), Words()
    given = [words.variable(f"x{at}", rng.randint(1, 5)) for at in range(2)] + [words.constant(3, 4)]
    for _ in range(40):
        given.append(made(words, rng.choice(KINDS), rng, given))
    columns = {f"x{at}": [rng.getrandbits(5) for _ in range(300)] for at in range(2)}
    values, ranges = evaluate(given, columns), Ranges()
    for word in order(given):
        bounds, half = ranges.of(word), 1 << (word.width - 1)
        for value in map(int, values[word]):
            assert bounds.low <= value <= bounds.high, word
            assert bounds.least <= (value ^ half) - half <= bounds.most, word
    facts = [bit for _, bit in range_facts(words, {str(word): word for word in given})]
    found = evaluate(facts, columns) if facts else {}
    assert all(found[bit].all() for bit in facts)


@pytest.mark.parametrize("op", KINDS)
def test_solver_text_and_evaluation_mean_the_same(op: str) -> None:
    pytest.importorskip("bitwuzla")
    z3 = pytest.importorskip("z3")
    rng = random.Random(op)
    for _ in range(8):
        words = Words()
        given = [words.variable(f"x{at}", rng.randint(2, 8)) for at in range(3)]
        word = made(words, op, rng, given)
        case = {str(one.value): rng.getrandbits(one.width) for one in given}
        value = int(evaluate([word], {name: [number] for name, number in case.items()})[word][0])
        held = [words.equal(one, words.constant(case[str(one.value)], one.width)) for one in given]
        wrong = words.invert(words.equal(word, words.constant(value, word.width)))
        assert Solver().ask([wrong, *held]).result == NEVER
        solver = z3.Solver()
        solver.from_string(smtlib([wrong, *held]))
        assert solver.check() == z3.unsat


def test_an_exponent_and_a_magnitude_have_no_more_than_they_can_hold() -> None:
    words, ranges = Words(), Ranges()
    field, number = words.variable("field", 2), words.variable("number", 4)
    biased = words.add(words.extend(field, 6), words.constant(-1, 6))
    exponent = words.choose(words.nonzero(field), biased, words.constant(0, 6))
    assert (ranges.of(exponent).least, ranges.of(exponent).most) == (0, 2)
    assert ranges.of(biased).least == -1, "elsewhere the field may be 0"
    wide = words.extend_signed(number, 6)
    magnitude = words.choose(words.bit(wide, 5), words.neg(wide), wide)
    assert (ranges.of(magnitude).low, ranges.of(magnitude).high) == (0, 8)
    turned = words.choose(words.bit(number, 3), words.neg(number), number)
    assert ranges.of(turned).high == 8, "the least number is its own negative"
