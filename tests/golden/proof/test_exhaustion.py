"""Few operand bits: all operands are computed, and what is unknown is unknown."""

from __future__ import annotations

import itertools
import math
import random
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import golden
from golden.circuit.words import Word, Words, evaluate, order
from golden.proof import verdict
from golden.proof.equality import problem_of, prove
from golden.proof.exhaustion import Exhaustion
from golden.proof.problem import Problem
from golden.proof.sweep import OPEN, PROVED
from golden.proof.verdict import Simulation, decide

UNIT = """\
unit: small
title: A product of two 6-bit floats
shape: {{k: 1}}
formats: {{a: e3m2, b: e2m3, d: e5m2}}
steps:
  - multiply: {{to: products}}
  - round: {{of: products, rounding: {rounding}, overflow: ieee, zero: signed}}
"""


def two(words: Words, spec: Word, unit: Word, assumed: Word | None = None) -> Problem:
    """Two words of operands a and b, to be equal."""
    names = [str(word.value) for word in order([spec, unit]) if word.value in ("a", "b")]
    vectors = {name: list(range(16)) for name in names}
    said = [] if assumed is None else [("what is assumed", assumed)]
    return Problem(words, {}, [], spec, unit, said, vectors, dict.fromkeys(names, 4))


def run(problem: Problem) -> tuple[int, dict[str, int] | None, str]:
    found = Exhaustion(problem).run(math.inf)
    return found.count, None if found.values is None else dict(found.values), found.left


def some_word(words: Words, rng: random.Random, depth: int) -> Word:
    """Any word of 4 bits."""
    if depth == 0:
        name = rng.choice(("a", "x", "y", "constant"))
        return words.constant(rng.getrandbits(4), 4) if name == "constant" else words.variable(name, 4)
    one, other, third = (some_word(words, rng, depth - 1) for _ in range(3))
    bit = words.bit(third, rng.randrange(4))
    return {
        "add": lambda: words.add(one, other),
        "sub": lambda: words.sub(one, other),
        "mul": lambda: words.mul(one, other),
        "neg": lambda: words.neg(one),
        "not": lambda: words.invert(one),
        "and": lambda: words.both(one, other),
        "or": lambda: words.either(one, other),
        "xor": lambda: words.differ(one, other),
        "shl": lambda: words.shift_left(one, other),
        "lshr": lambda: words.shift_right(one, other),
        "ashr": lambda: words.shift_right_signed(one, other),
        "eq": lambda: words.extend(words.equal(one, other), 4),
        "ult": lambda: words.extend_signed(words.less(one, other), 4),
        "slt": lambda: words.extend(words.less_signed(one, other), 4),
        "ite": lambda: words.choose(bit, one, other),
        "concat": lambda: words.concat(words.extract(one, 1, 2), words.extract(other, 2, 2)),
        "sext": lambda: words.extend_signed(words.extract(one, 1, 2), 4),
    }[rng.choice(ALL)]()


ALL = (
    *("add", "sub", "mul", "neg", "not", "and", "or", "xor", "shl", "lshr", "ashr"),
    *("eq", "ult", "slt", "ite", "concat", "sext"),
)


def test_a_known_bit_is_that_of_all_values_of_what_is_unknown() -> None:
    rng = random.Random(7)
    used: dict[str, int] = dict.fromkeys(ALL, 0)
    for _ in range(300):
        words = Words()
        word = some_word(words, rng, rng.randrange(1, 4))
        small = Exhaustion(two(words, words.variable("a", 4), word))
        numbers = small._numbers({"a": np.arange(16, dtype=np.uint64)}, order([word]))[word]
        cases = [*itertools.product(range(16), repeat=3)]
        columns = {name: [case[at] for case in cases] for at, name in enumerate(("a", "x", "y"))}
        every = evaluate([word], columns)[word].reshape(16, 256)
        same = ~np.bitwise_or.reduce(every ^ every[:, :1], axis=1) & np.uint64(15)
        unknown = np.zeros(16, np.uint64) if numbers.unknown is None else numbers.unknown
        known = np.broadcast_to(~unknown & np.uint64(15), 16)
        assert (known & ~same == 0).all(), "it is claimed to be known"
        assert (np.broadcast_to(numbers.known, 16) == every[:, 0] & known).all()
        for each in order([word]):
            used[each.op] = used.get(each.op, 0) + bool(unknown.any())
    assert all(used[op] for op in ALL), used


def test_every_operand_is_computed_once() -> None:
    words = Words()
    a, b = words.variable("a", 13), words.variable("b", 6)
    small = Exhaustion(two(words, words.extend(a, 20), words.concat(b, words.constant(0, 14))))
    blocks = [small.columns(given) for given in small.blocks()]
    pairs = np.concatenate([each["a"] << np.uint64(6) | each["b"] for each in blocks])
    assert len(blocks) == 16 and (np.sort(pairs) == np.arange(1 << 19)).all()


def test_one_wrong_operand_is_found_and_one_that_is_excluded_is_not() -> None:
    words = Words()
    a, b = words.variable("a", 9), words.variable("b", 9)
    spec = words.mul(words.extend(a, 18), words.extend(b, 18))
    rare = words.both(words.equal(a, words.constant(77, 9)), words.equal(b, words.constant(401, 9)))
    unit = words.choose(rare, words.constant(3, 18), words.add(spec, words.constant(0, 18)))
    assert run(two(words, spec, unit))[1] == {"a": 77, "b": 401}
    assert run(two(words, spec, unit, words.invert(rare))) == ((1 << 18) - 1, None, "")


def test_an_assumption_about_what_is_unknown_leaves_no_operand_out() -> None:
    words = Words()
    a, held = words.variable("a", 4), words.variable("held", 1)
    wrong = words.choose(words.equal(a, words.constant(3, 4)), words.constant(0, 4), a)
    assert run(two(words, a, wrong, assumed=held))[1] == {"a": 3}
    assert run(two(words, a, a, assumed=held))[0] == 16


def test_a_result_that_may_depend_on_x_or_a_register_is_not_proved() -> None:
    words = Words()
    a, x = words.variable("a", 8), words.variable("x.1@2", 1)
    shows = words.equal(a, words.constant(200, 8))
    unit = words.choose(words.both(shows, x), words.invert(a), a)
    assert run(two(words, a, unit)) == (256, None, "x or a register may show at 1 operands, as at a = 0xc8")
    hidden = words.choose(words.both(words.both(shows, words.invert(shows)), x), words.invert(a), a)
    assert run(two(words, a, hidden))[2] == ""


def unit(folder: Path, rounding: str) -> golden.Instruction:
    file = folder / f"{rounding}.yaml"
    file.write_text(UNIT.format(rounding=rounding))
    return golden.load_instruction(file)


@pytest.fixture
def _no_lemmas(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for lemmas ends at once."""
    monkeypatch.setattr(verdict, "verdict_of", lambda _sweep: (OPEN, None))


@pytest.mark.usefixtures("_no_lemmas")
def test_two_units_of_the_language_are_proved_by_exhaustion(tmp_path: Path) -> None:
    pytest.importorskip("bitwuzla")
    found = prove(unit(tmp_path, "nearest_even"), unit(tmp_path, "nearest_even"), 60).outcome
    assert found.verdict == PROVED and found.exhausted == 1 << 12 and len(found.faults) == verdict.FAULTS
    assert "core" in found.simulated and not found.lemmas


def decided(simulation: Simulation, seconds: float = 60, bits: int = 8) -> verdict.Outcome:
    words = Words()
    a, b = (words.variable(name, bits) for name in "ab")
    problem = two(words, words.add(a, b), words.sub(a, words.neg(b)))
    rng = random.Random(1)
    vectors = {name: [rng.getrandbits(bits) for _ in range(200)] for name in "ab"}
    return decide(replace(problem, vectors=vectors), seconds, simulation)


@pytest.mark.usefixtures("_no_lemmas")
def test_a_simulation_that_differs_or_takes_too_long_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("bitwuzla")
    seen: list[int] = []

    def right(columns: dict[str, np.ndarray]) -> int:
        seen.append(len(columns["a"]))
        return 0

    found = decided(Simulation("a simulator", right))
    assert found.verdict == PROVED and sum(seen) == found.exhausted == 1 << 16
    wrong = decided(Simulation("a simulator", lambda columns: 3))
    assert wrong.verdict == OPEN and "3 of the first 65,536" in wrong.open[0]
    monkeypatch.setattr(verdict, "_AT_LEAST", 0.0)
    monkeypatch.setattr(verdict, "_AT_A_TIME", 1)
    late = decided(Simulation("a simulator", lambda columns: time.sleep(2) or 0), seconds=1, bits=9)
    assert late.verdict == OPEN and "the time ended after" in late.open[0]


@pytest.mark.usefixtures("_no_lemmas")
def test_too_many_operands_for_the_time_say_how_long_it_takes() -> None:
    pytest.importorskip("bitwuzla")
    found = decided(Simulation("a simulator", lambda columns: 0), seconds=1, bits=16)
    assert found.verdict == OPEN and "--seconds" in found.open[-1] and "2^32 operands" in found.open[-1]
    many = decided(Simulation("a simulator", lambda columns: 0), seconds=1, bits=17)
    assert many.verdict == OPEN and "operands" not in " ".join(many.open)


def test_it_finds_a_difference_exactly_where_the_core_does(tmp_path: Path) -> None:
    units = [unit(tmp_path, rounding) for rounding in ("nearest_even", "toward_zero", "up")]
    codes = np.arange(64, dtype=np.uint8)
    a, b = (each.ravel()[:, None] for each in np.meshgrid(codes, codes))
    for one, other in itertools.product(units, units):
        found = Exhaustion(problem_of(one, other)).run(math.inf)
        assert not found.left
        assert (found.values is not None) == bool((one.dot(a, b) != other.dot(a, b)).any())
