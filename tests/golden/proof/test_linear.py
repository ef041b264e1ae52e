"""Sums: two words of one form are equal for all operands, at small widths for every operand there is."""

from __future__ import annotations

import itertools
import random

import pytest

from golden.circuit.words import Word, Words, evaluate
from golden.proof.linear import Forms

WIDTHS = {"a": 3, "b": 3, "c": 3, "s": 1}


def all_operands() -> dict[str, list[int]]:
    rows = list(itertools.product(*(range(1 << width) for width in WIDTHS.values())))
    return {name: [row[at] for row in rows] for at, name in enumerate(WIDTHS)}


def grown(words: Words, rng: random.Random) -> list[Word]:
    """Words of the operations that sums know, and of some that they do not."""
    found = [words.variable(name, width) for name, width in WIDTHS.items()]
    found += [words.constant(value, 3) for value in (0, 1, 5, 7)]
    for _ in range(160):
        one, other = rng.choice(found), rng.choice(found)
        width = rng.choice((1, 2, 3, 4, 5))
        bit = words.bit(rng.choice(found), 0)
        alike = words.extend(one, width), words.extend_signed(other, width)
        operation = rng.choice(
            (
                "add",
                "sub",
                "both",
                "either",
                "differ",
                "mul",
                "neg",
                "invert",
                "choose",
                "sign",
                "xor",
                "join",
            )
        )
        match operation:
            case "neg" | "invert":
                found.append(getattr(words, operation)(one))
            case "choose":
                found.append(words.choose(bit, *alike))
            case "sign":
                found.append(words.extend_signed(one, width + 2))
            case "xor":
                found.append(words.differ(alike[0], words.extend_signed(bit, width)))
            case "half":
                found += [words.both(one, words.extend(other, one.width))]
                found += [words.differ(one, words.extend(other, one.width))]
            case "full":
                third = words.extend(rng.choice(found), one.width)
                other = words.extend(other, one.width)
                either = words.differ(one, other)
                found += [words.either(words.both(one, other), words.both(third, either))]
                found += [words.differ(either, third)]
            case "join" if one.width + other.width < 7:
                found.append(words.concat(one, other))
            case "add" | "sub" | "both" | "either" | "differ" | "mul":
                found.append(getattr(words, operation)(*alike))
    return found


@pytest.mark.parametrize("seed", range(25))
def test_words_of_one_form_are_equal_for_all_operands(seed: int) -> None:
    words = Words()
    rng = random.Random(seed)
    found = grown(words, rng)
    values, forms = evaluate(found, all_operands()), Forms()
    by_form: dict[object, Word] = {}
    for word in found:
        same = by_form.setdefault((word.width, forms.of(word)), word)
        assert (values[word] == values[same]).all(), (word, same)


def test_structures_of_adders_have_one_form() -> None:
    words = Words()
    a, b, c = (words.variable(name, 8) for name in "abc")
    s = words.variable("s", 1)
    forms = Forms()

    def same(one: Word, other: Word) -> bool:
        return forms.of(one) == forms.of(other)

    assert same(words.add(words.add(a, b), c), words.add(a, words.add(c, b)))
    # A magnitude with a sign: minus, or one's complement and a carry.
    carried = words.add(words.differ(a, words.extend_signed(s, 8)), words.extend(s, 8))
    assert same(words.choose(s, words.neg(a), a), carried)
    # A carry-save adder.
    pairs = [words.both(a, b), words.both(a, c), words.both(b, c)]
    carry = words.either(words.either(pairs[0], pairs[1]), pairs[2])
    forms.of(carry)
    saved = words.differ(words.differ(a, b), c)
    shifted = words.concat(words.extract(carry, 0, 7), words.constant(0, 1))
    assert same(words.add(saved, shifted), words.add(a, words.add(b, c)))
    passed = words.either(words.both(b, c), words.both(a, words.differ(b, c)))
    shifted = words.concat(words.extract(passed, 0, 7), words.constant(0, 1))
    assert same(words.add(words.differ(words.differ(b, c), a), shifted), words.add(a, words.add(b, c)))
    half = words.concat(words.extract(words.both(a, b), 0, 7), words.constant(0, 1))
    assert Forms().of(words.add(words.differ(a, b), half)) == forms.of(words.add(a, b))
    # Wider words, whose ranges fit.
    wide = words.extend(words.add(words.extend(a, 9), words.extend(b, 9)), 12)
    assert same(wide, words.add(words.extend(a, 12), words.extend(b, 12)))
    # And what is not the same: a sum that loses its carry.
    assert not same(words.extend(words.add(a, b), 12), words.add(words.extend(a, 12), words.extend(b, 12)))


def test_a_majority_is_of_three_words() -> None:
    words, forms = Words(), Forms()
    a, b = (words.variable(name, 8) for name in "ab")
    either = words.differ(a, b)
    first, second = (words.either(words.both(a, b), words.both(one, either)) for one in (a, b))
    assert forms.of(first) != forms.of(second), "the first is a, the second b"


def test_products_of_three_are_one_in_any_order_unless_they_may_wrap() -> None:
    words, forms = Words(), Forms()
    x, y, z = (words.variable(name, 4) for name in "xyz")

    def times(one: Word, other: Word, width: int) -> Word:
        return words.mul(words.extend(one, width), words.extend(other, width))

    left, right = times(times(x, y, 8), z, 12), times(x, times(y, z, 8), 12)
    assert left is not right and forms.of(left) == forms.of(right)
    wrapped = times(times(x, y, 7), z, 12)  # 15 * 15 has eight bits
    assert forms.of(wrapped) != forms.of(left)
    narrow = times(times(x, y, 7), z, 7), times(x, times(y, z, 8), 7)
    assert forms.of(narrow[0]) == forms.of(narrow[1]), "modulo 2^7 what wraps does not matter"
    assert {*forms.leaves(left)} == {x, y, z}
