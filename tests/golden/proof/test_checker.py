"""The checker: a right proof passes, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from golden.circuit.words import CircuitError, Word, Words, evaluate
from golden.proof import checker
from golden.proof.checker import NotAProof, check
from golden.proof.lemmas import LINEAR, PRODUCT, SOLVER, Certificate, Lemma, product_bound
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
        case "sum but for one value":  # which random values of wider words do not meet
            lemmas[0] = replace(
                lemmas[0], right=words.choose(words.equal(word["a"], word["b"]), wrong, word["other"])
            )
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
        ("sum but for one value", "no equality of sums"),
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


# Bounds of products -----------------------------------------------------------------------------------------


def bounded(low: int = 8, high: int = 15) -> tuple[Words, Word, list[Word]]:
    """The product of four bits by four and the bounds of its factors: the first from `low` to `high`."""
    words = Words()
    x, y = (words.extend(words.variable(name, 4), 8) for name in "xy")
    return words, words.mul(x, y), [words.constant(one, 4) for one in (low, high, 1, 15)]


def test_a_bound_of_a_product_holds_for_all_factors() -> None:
    words, product, bounds = bounded(5, 11)
    pairs = [(x, y) for x in range(16) for y in range(16)]
    columns = {name: [pair[at] for pair in pairs] for at, name in enumerate("xy")}
    bit = product_bound(words, product, *bounds)
    assert evaluate([bit], columns)[bit].all()


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("right", None),
        ("other bounds", "another bound"),
        ("other bit", "another bound"),
        ("too narrow", "bounds no product"),
        ("sum", "bounds no product"),
        ("words for bounds", "bounds no product"),
    ],
)
def test_a_lemma_of_a_product_is_made_again(what: str, why: str | None) -> None:
    words, product, bounds = bounded()
    one = words.constant(1, 1)
    left, free = product_bound(words, product, *bounds), (product, *bounds)
    x, y = (words.variable(name, 4) for name in "xy")
    match what:
        case "other bounds":
            free = (product, words.constant(9, 4), *bounds[1:])
        case "other bit":
            left = words.less(words.constant(8, 8), product)  # 8 * 1 is not above 8
        case "too narrow":
            free = (words.mul(x, y), *bounds)
        case "sum":
            free = (words.add(product, product), *bounds)
        case "words for bounds":
            free = (product, x, *bounds[1:])
    proof = Certificate(words, left, one, (), (Lemma(left, one, PRODUCT, free),), {}, 0)
    if why is None:
        assert check(proof, 10).by == {"the growth of products": 1}
    else:
        with pytest.raises(NotAProof, match=why):
            check(proof, 10)


def test_a_product_that_may_wrap_has_no_bound() -> None:
    words = Words()
    product = words.mul(words.variable("x", 4), words.variable("y", 4))
    with pytest.raises(CircuitError, match="too narrow"):
        product_bound(words, product, *(words.constant(one, 4) for one in (0, 15, 0, 15)))


def test_a_question_that_no_solver_answers_in_time_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_solvers", lambda: [("slow", lambda _text, _seconds: UNKNOWN)])
    with pytest.raises(NotAProof, match="not known to hold"):
        check(proof()[0], 60)
