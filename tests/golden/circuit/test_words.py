"""Words of a circuit mean what Python's integers say."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from golden.circuit.words import CircuitError, Word, Words, evaluate, order

WIDTHS = (1, 2, 7, 31, 63, 64, 65, 130)


def signed(value: int, width: int) -> int:
    return value - (value >> (width - 1) << width)


def results(table: Words, a: Word, b: Word) -> list[tuple[Word, Callable[[int, int], int]]]:
    """Every operation on two words of one width, and what it is."""
    width = a.width
    c = table.extract(b, 0, 1)
    return [
        (table.add(a, b), lambda x, y: x + y),
        (table.sub(a, b), lambda x, y: x - y),
        (table.mul(a, b), lambda x, y: x * y),
        (table.neg(a), lambda x, y: -x),
        (table.invert(a), lambda x, y: ~x),
        (table.both(a, b), lambda x, y: x & y),
        (table.either(a, b), lambda x, y: x | y),
        (table.differ(a, b), lambda x, y: x ^ y),
        (table.shift_left(a, b), lambda x, y: x << min(y, width)),
        (table.shift_right(a, b), lambda x, y: x >> min(y, width)),
        (table.shift_right_signed(a, b), lambda x, y: signed(x, width) >> min(y, width)),
        (table.equal(a, b), lambda x, y: x == y),
        (table.less(a, b), lambda x, y: x < y),
        (table.less_signed(a, b), lambda x, y: signed(x, width) < signed(y, width)),
        (table.nonzero(a), lambda x, y: x != 0),
        (table.choose(c, a, b), lambda x, y: x if y & 1 else y),
        (table.concat(a, b), lambda x, y: x << width | y),
        (table.extract(a, width // 2), lambda x, y: x >> width // 2),
        (table.extend(a, width + 9), lambda x, y: x),
        (table.extend_signed(a, width + 9), lambda x, y: signed(x, width)),
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_operations_are_those_of_integers(width: int) -> None:
    rng = random.Random(width)
    ends = [0, 1, (1 << width) - 1, 1 << (width - 1)]
    cases = [
        (rng.choice([rng.getrandbits(width), rng.choice(ends)]), rng.getrandbits(width)) for _ in range(60)
    ]
    cases += [(x, min(y, (1 << width) - 1)) for x in ends for y in (0, 1, width - 1, width, width + 1)]
    table = Words()
    a, b = table.variable("a", width), table.variable("b", width)
    values = {"a": [x for x, _ in cases], "b": [y for _, y in cases]}
    for word, meaning in results(table, a, b):
        got = evaluate([word], values)[word]
        for (x, y), number in zip(cases, got, strict=True):
            assert int(number) == int(meaning(x, y)) & ((1 << word.width) - 1), (word, x, y)


@pytest.mark.parametrize("width", WIDTHS)
def test_folded_constants_are_those_of_integers(width: int) -> None:
    rng = random.Random(width)
    for _ in range(20):
        x, y = rng.getrandbits(width), rng.choice([0, 1, rng.getrandbits(width), (1 << width) - 1])
        table = Words()
        for word, meaning in results(table, table.constant(x, width), table.constant(y, width)):
            assert word.constant == int(meaning(x, y)) & ((1 << word.width) - 1), (word, x, y)


def test_neutral_elements_fold_to_what_they_leave() -> None:
    """One argument known: folded or not, the word has the same value."""
    rng = random.Random(1)
    for width in (1, 5, 33):
        for known in (0, 1, (1 << width) - 1):
            table = Words()
            a, k = table.variable("a", width), table.constant(known, width)
            x = rng.getrandbits(width)
            for first, second, values in ((a, k, (x, known)), (k, a, (known, x)), (a, a, (x, x))):
                for word, meaning in results(table, first, second):
                    number = int(evaluate([word], {"a": [x]})[word][0])
                    assert number == int(meaning(*values)) & ((1 << word.width) - 1), (word, values)


def test_equal_structure_is_one_word() -> None:
    table = Words()
    a, b = table.variable("a", 8), table.variable("b", 8)
    assert table.add(a, b) is table.add(b, a)
    assert table.sub(a, b) is not table.sub(b, a)
    assert table.concat(table.extract(a, 4), table.extract(a, 0, 4)) is a
    assert table.extract(table.concat(a, b), 8) is a
    assert table.invert(table.invert(a)) is a


def test_arguments_come_before_what_is_made_of_them() -> None:
    table = Words()
    a, b = table.variable("a", 8), table.variable("b", 8)
    total = table.add(table.mul(a, b), a)
    listed = order([total])
    assert all(listed.index(arg) < listed.index(word) for word in listed for arg in word.args)
    assert order([total], stop=[table.mul(a, b)]) == sorted(
        {a, table.mul(a, b), total}, key=lambda word: word.number
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda t, a, b: t.add(a, t.extend(b, 9)), "words of 8 and 9 bits"),
        (lambda t, a, b: t.extract(a, 5, 4), "bits 5 to 8 of a word of 8 bits"),
        (lambda t, a, b: t.choose(a, a, b), "a condition has 1 bit, not 8"),
        (lambda t, a, b: t.constant(3, 0), "at least 1 bit, not 0"),
    ],
)
def test_words_that_do_not_fit_are_refused(make: Callable[..., Word], says: str) -> None:
    table = Words()
    with pytest.raises(CircuitError, match=says):
        make(table, table.variable("a", 8), table.variable("b", 8))


def test_a_variable_without_numbers_is_named() -> None:
    table = Words()
    with pytest.raises(CircuitError, match="variable 'a' has no value"):
        evaluate([table.variable("a", 8)], {"b": [1]})
