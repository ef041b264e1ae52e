"""The checker: a right proof passes, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from golden.circuit.words import Word, Words
from golden.proof import checker
from golden.proof.checker import NotAProof, check
from golden.proof.lemmas import LINEAR, SOLVER, Certificate, Lemma
from golden.proof.solver import UNKNOWN

pytest.importorskip("bitwuzla")
pytest.importorskip("z3")


def proof() -> tuple[Certificate, dict[str, Word]]:
    """Of (a + b) + c against a + (b + c), then the smaller of that and 9 written in two ways."""
    words = Words()
    a, b, c = (words.variable(name, 8) for name in "abc")
    nine = words.constant(9, 8)
    one, other = words.add(words.add(a, b), c), words.add(a, words.add(b, c))
    unit = words.choose(words.invert(words.less(one, nine)), nine, one)
    spec = words.choose(words.less(nine, other), nine, other)
    made = words.choose(words.less(other, nine), other, nine)
    assert unit.args[1] is one and made.op == "ite"
    bounded = words.invert(words.less(nine, spec))
    lemmas = (
        Lemma(one, other, LINEAR, (a, b, c)),
        Lemma(bounded, words.constant(1, 1), SOLVER, (other,), name="at most 9"),
        Lemma(made, spec, SOLVER, (other,), (1,)),
    )
    return Certificate(words, unit, spec, (), lemmas, {one: 0}, 2), {
        "a": a,
        "b": b,
        "one": one,
        "other": other,
    }


def test_a_right_proof_is_checked_by_another_solver() -> None:
    found, _ = proof()
    by = check(found, 60).by
    assert sum(by.values()) == 3 and all("z3" in name for name in by)


def test_where_z3_is_missing_bitwuzla_without_rewriting_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_solvers", lambda: [*_solvers()][1:])
    assert all("without rewriting" in name for name in check(proof()[0], 60).by)


_solvers = checker._solvers


def planted(what: str) -> Certificate:
    """The proof with something wrong in it."""
    found, word = proof()
    words, lemmas = found.words, list(found.lemmas)
    wrong = words.add(word["other"], words.constant(16, 8))
    match what:
        case "sum":  # wrong above the bits that the solver compares
            lemmas[0] = replace(lemmas[0], right=wrong)
        case "sum of what is not free":  # right for free words alone
            lemmas[0] = replace(lemmas[0], free=(words.add(word["a"], word["b"]),), right=wrong)
        case "lowest bits":
            lemmas[0] = replace(lemmas[0], right=words.add(word["other"], words.constant(1, 8)))
        case "question":
            lemmas[2] = replace(lemmas[2], left=words.differ(lemmas[2].left, words.constant(4, 8)))
        case "fact":
            lemmas[1] = replace(lemmas[1], left=words.less(word["other"], words.constant(9, 8)))
        case "fact that comes later":
            lemmas[1] = replace(lemmas[1], facts=(2,))
        case "fact that is no bit":
            lemmas[2] = replace(lemmas[2], facts=(0,))
        case "method":
            lemmas[0] = replace(lemmas[0], method="trust me")
        case "step of another word":
            return replace(found, steps={word["one"]: 2})
        case "step that is missing":
            return replace(found, steps={})
        case "end":
            return replace(found, last=None)
        case "other specification":
            return replace(found, spec=words.invert(found.spec))
    return replace(found, lemmas=tuple(lemmas))


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("sum", "the two sums differ"),
        ("sum of what is not free", "the two sums differ"),
        ("lowest bits", "the two sums differ"),
        ("question", "does not hold"),
        ("fact", "does not hold"),
        ("fact that comes later", "no earlier fact"),
        ("fact that is no bit", "no earlier fact"),
        ("method", "no method"),
        ("step of another word", "another word"),
        ("step that is missing", "not about what the result becomes"),
        ("end", "do not lead"),
        ("other specification", "do not lead"),
    ],
)
def test_what_is_no_proof_is_caught(what: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(word in why for word in ("lead", "another word", "becomes")):
        monkeypatch.setattr(checker, "_composed", lambda _proof: None)  # each lemma has to be caught itself
    with pytest.raises(NotAProof, match=why):
        check(planted(what), 60)


def test_a_question_that_no_solver_answers_in_time_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_solvers", lambda: [("slow", lambda _text, _seconds: UNKNOWN)])
    with pytest.raises(NotAProof, match="not known to hold"):
        check(proof()[0], 60)
