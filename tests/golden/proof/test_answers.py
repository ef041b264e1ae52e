"""Answers of an earlier run save questions, and prove nothing, whatever their file says."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from golden.circuit.words import Words
from golden.proof.answers import Answers
from golden.proof.checker import NotAProof, check
from golden.proof.problem import Problem
from golden.proof.solver import Solver
from golden.proof.sweep import OPEN, PROVED, REFUTED, Sweep
from golden.proof.verdict import Outcome, Simulation, decide

pytest.importorskip("bitwuzla")
pytest.importorskip("z3")


def problem(wrong: int = 0) -> Problem:
    """The larger of two numbers of 40 bits and a sum, in two ways; `wrong`: bits that are turned at one
    a, which no vector has."""
    words, rng = Words(), random.Random(1)
    a, b = (words.variable(name, 40) for name in "ab")
    larger = words.choose(words.less(a, b), b, a)
    other = words.choose(words.less(b, a), a, b)
    rare = words.equal(a, words.constant(0x123456789A, 40))
    other = words.choose(rare, words.differ(other, words.constant(wrong, 40)), other)
    vectors = {name: [rng.getrandbits(40) for _ in range(200)] for name in "ab"}
    spec, unit = words.add(larger, words.neg(b)), words.sub(other, b)
    points = {"larger": larger}
    return Problem(words, points, [], spec, unit, [], vectors, {"a": 40, "b": 40})


def decided(of: Problem, kept: Path) -> Outcome:
    return decide(of, 30, Simulation("none", lambda _columns: 1), kept=kept)


def test_what_is_answered_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, ask = tmp_path / "build" / "answers.txt", Solver.ask
    first = Sweep(problem(), math.inf, answers=Answers(kept))
    assert first.run() == PROVED
    text = kept.read_text()
    assert first.prover.asked == text.count("never") + text.count("holds") > text.count("never") > 0
    monkeypatch.setattr(Solver, "ask", None)  # no question is left
    again = Sweep(problem(), math.inf, answers=Answers(kept))
    assert again.run() == PROVED and again.prover.asked == 0
    assert sum(check(again.certificate, 30).by.values()) > 0
    monkeypatch.setattr(Solver, "ask", ask)
    assert decided(problem(wrong=4), kept).verdict == REFUTED  # another unit has other questions


@pytest.mark.parametrize("proved_before", [False, True])
def test_no_file_proves_a_wrong_unit(
    proved_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in which every question that the search may ask has the answer NEVER."""
    kept = tmp_path / "answers.txt"
    if proved_before:
        assert decided(problem(), kept).verdict == PROVED
    asked = Answers(kept)

    def never(_self: Answers, text: str) -> float:
        asked.keep(text, math.inf)
        return math.inf

    monkeypatch.setattr(Answers, "seconds", never)
    lies = Sweep(problem(wrong=4), math.inf)
    assert lies.run() == PROVED
    with pytest.raises(NotAProof, match="does not hold"):
        check(lies.certificate, 30)
    monkeypatch.undo()
    found = decided(problem(wrong=4), kept)
    assert found.verdict == OPEN and "does not hold" in found.open[0] and "run it again" in found.open[1]
    assert not kept.exists()
    found = decided(problem(wrong=4), kept)
    assert found.verdict == REFUTED and found.values is not None and found.values["a"] == 0x123456789A


def test_values_that_are_none_are_tried_and_refute_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "answers.txt"
    assert decided(problem(), kept).verdict == PROVED
    keys = [line.split()[0] for line in kept.read_text().split("\n")[1:]]
    kept.write_text("".join(f"\n{key} holds {'f' * 99} 0 0 0" for key in keys))
    assert decided(problem(), kept).verdict in (PROVED, OPEN)


def test_a_damaged_file_loses_answers_alone(tmp_path: Path) -> None:
    kept = tmp_path / "answers.txt"
    whole = Answers(kept)
    for at in range(20):
        whole.keep(f"question {at}", math.inf if at % 2 else 2.5)
    text = kept.read_bytes()
    rng = random.Random(3)
    for _ in range(60):
        cut = rng.randrange(len(text))
        damaged = bytearray(text[:cut] if rng.random() < 0.5 else text)
        for _ in range(rng.randrange(4)):
            damaged[rng.randrange(len(damaged) or 1) : 1] = bytes([rng.randrange(256)])
        kept.write_bytes(damaged)
        found = Answers(kept)
        assert not any(found.seconds(f"question {at}") == math.inf for at in range(0, 20, 2))
        found.keep("one more", math.inf)
        assert Answers(kept).seconds("one more") == math.inf
    kept.unlink()
    kept.mkdir()  # it cannot be read, nor written
    found = Answers(kept)
    found.keep("question", math.inf)
    assert (found.taken, found.seconds("question")) == (0, math.inf)
