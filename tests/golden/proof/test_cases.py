"""Equality by cases: adders of two windows are proved equal shift by shift, and a wrong one is not."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from golden.circuit.words import Word, Words, evaluate, order
from golden.proof import cases
from golden.proof.checker import NotAProof, check
from golden.proof.lemmas import SOLVER, Certificate
from golden.proof.prover import Prover
from golden.proof.solver import HOLD, NEVER, again, smtlib
from golden.workers.pool import workers

pytest.importorskip("bitwuzla")
pytest.importorskip("z3")


def adders(lost: int = 0) -> tuple[Words, Word, Word]:
    """x + (y >> n) in two frames: y moved right, and x moved left and the sum back; `lost`: bits that the
    first one takes away from a sum of a large shift."""
    words = Words()
    x, y, amount = words.variable("x", 6), words.variable("y", 6), words.variable("n", 5)
    moved = words.shift_right(words.extend(y, 40), words.extend(amount, 40))
    spec = words.extend(words.add(words.extend(x, 40), moved), 8)
    wide = words.shift_left(words.extend(x, 40), words.extend(amount, 40))
    back = words.shift_right(words.add(wide, words.extend(y, 40)), words.extend(amount, 40))
    unit = words.extend(back, 8)
    rare = words.equal(amount, words.constant(19, 5))
    return words, words.choose(rare, words.differ(unit, words.constant(lost, 8)), unit), spec


@pytest.fixture(autouse=True)
def _never_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that has no time has no answer: it is split into cases."""
    monkeypatch.setattr(cases, "_WHOLE", 0.0)


def test_two_frames_are_equal_case_by_case_and_the_checker_agrees() -> None:
    words, unit, spec = adders()
    prover = Prover(words, {}, math.inf)
    place, answer = cases.by_cases(prover, unit, spec, 60)
    assert answer.result == NEVER and place is not None
    parts = prover.lemmas[place].facts
    assert len(parts) > 4 and all(prover.lemmas[part].method == SOLVER for part in parts)
    proof = Certificate(words, unit, spec, (), tuple(prover.lemmas), {}, place)
    assert sum(check(proof, 60).by.values()) == len(parts) + 1


def test_processes_give_the_same_proof() -> None:
    words, unit, spec = adders()
    with workers(2) as executor:
        prover = Prover(words, {}, math.inf, executor=executor, jobs=4)
        place, answer = cases.by_cases(prover, unit, spec, 60)
        assert answer.result == NEVER and place is not None and prover.asked > 4
        proof = Certificate(words, unit, spec, (), tuple(prover.lemmas), {}, place)
        assert sum(check(proof, 60, executor=executor).by.values()) == len(prover.lemmas[place].facts) + 1
        words, unit, spec = adders(lost=4)
        faulty = Prover(words, {}, math.inf, executor=executor, jobs=4)
        assert cases.by_cases(faulty, unit, spec, 60)[1].variables["n"] == 19


def test_a_fault_at_one_shift_is_found() -> None:
    words, unit, spec = adders(lost=4)
    place, answer = cases.by_cases(Prover(words, {}, math.inf), unit, spec, 60)
    assert place is None and answer.result == HOLD and answer.variables["n"] == 19


def test_a_proof_without_one_of_its_cases_is_none() -> None:
    words, unit, spec = adders()
    prover = Prover(words, {}, math.inf)
    place, _ = cases.by_cases(prover, unit, spec, 60)
    assert place is not None
    whole = prover.lemmas[place]
    for left_out in whole.facts:
        kept = tuple(fact for fact in whole.facts if fact != left_out)
        lemmas = [*prover.lemmas]
        lemmas[place] = type(whole)(whole.left, whole.right, SOLVER, whole.free, kept)
        with pytest.raises(NotAProof, match="does not hold"):
            check(Certificate(words, unit, spec, (), tuple(lemmas), {}, place), 60)


def test_questions_of_one_structure_have_one_text() -> None:
    words = Words()
    a = words.variable("a", 32)
    first, second = (
        words.equal(words.mul(words.extract(a, low, 8), words.extract(a, low + 8, 8)), words.constant(6, 8))
        for low in (0, 16)
    )
    # The factors of the third change places: where they come from the numbers of words say nothing of it.
    other = words.equal(words.constant(6, 8), words.mul(words.extract(a, 24, 8), words.extract(a, 16, 8)))
    third = words.equal(words.mul(words.extract(a, 0, 8), words.extract(a, 16, 8)), words.constant(6, 8))
    assert smtlib([first]) == smtlib([second]) == smtlib([other])
    assert smtlib([third]) != smtlib([first]), "its variable reaches farther"
    assert smtlib([words.invert(first)]) != smtlib([first])


@pytest.mark.parametrize("first", [0, pytest.param(15, marks=pytest.mark.long)])
def test_a_unit_with_a_random_fault_is_proved_only_if_no_operands_show_it(first: int) -> None:
    """All 2^17 operands are the truth: of faults at one pattern of some bits half show nothing."""
    every = np.arange(1 << 17)
    columns = {"x": every & 63, "y": every >> 6 & 63, "n": every >> 12}
    seen = set()
    for seed in range(first, 15 if not first else 300):
        rng = random.Random(seed)
        words, unit, spec = adders()
        place = rng.choice([word for word in order([unit]) if word.op not in ("var", "const")])
        ports = [words.variable(name, width) for name, width in (("n", 5), ("y", 6), ("x", 6))]
        operands = words.concat(*ports)
        bits = rng.randint(1, 13)
        trigger = words.equal(words.extract(operands, 17 - bits), words.constant(rng.getrandbits(bits), bits))
        made: dict[Word, Word] = {}
        for word in order([unit]):
            made[word] = again(words, word, [made[arg] for arg in word.args])
            if word is place:
                wrong = words.differ(made[word], words.constant(1 << rng.randrange(word.width), word.width))
                made[word] = words.choose(trigger, wrong, made[word])
        values = evaluate([made[unit], spec], columns)
        right = bool((values[made[unit]] == values[spec]).all())
        found, answer = cases.by_cases(Prover(words, {}, math.inf), made[unit], spec, 60)
        assert (found is not None) == right and answer.result == (NEVER if right else HOLD), seed
        seen.add(right)
    assert seen == {True, False}
