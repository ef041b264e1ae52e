"""Words of a circuit: hash-consed nodes of fixed width, as a netlist or an SMT solver has them.

    table = Words()
    a, b = table.variable("a", 8), table.variable("b", 8)
    total = table.add(table.extend(a, 9), table.extend(b, 9))
    evaluate([total], {"a": [200], "b": [100]})[total]  # array([300])

A specification as a circuit and a designer's netlist are built from one table, so that what is equal by
structure is one node. Bit 0 is the least significant; numbers are unsigned, and two's complement where an
operation says `signed`. Operations mean what the theory FixedSizeBitVectors of SMT-LIB says; a condition is a
word of one bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import MmagoldError

Values = npt.NDArray[Any]
"""A number for each case: uint64 for words of at most 64 bits, Python's integers for wider ones."""

NATIVE = 64
"""Bits of the widest word that NumPy computes by itself."""

COMMUTATIVE = frozenset({"add", "mul", "and", "or", "xor", "eq"})
OPERATIONS = COMMUTATIVE | {
    "const", "var", "sub", "neg", "not", "shl", "lshr", "ashr",
    "ult", "slt", "ite", "concat", "extract", "sext",
}  # fmt: skip
"""Every operation that a word may have. A word of another one is a bug."""


class CircuitError(MmagoldError):
    """Words that do not fit: of other widths than an operation takes, or bits that a word does not have."""


class Word:
    """A node: an operation on words.

    Attributes:
        op: one of OPERATIONS.
        args: the words it works on, the high one first in `concat`, the condition first in `ite`.
        width: bits, at least 1.
        value: of a constant its number, of a variable its name, of `extract` its lowest bit; None elsewhere.
        number: its place in the table. Arguments have smaller numbers than what is made of them.
    """

    __slots__ = ("args", "number", "op", "value", "width")

    def __init__(
        self, op: str, args: tuple[Word, ...], width: int, value: int | str | None, number: int
    ) -> None:
        self.op, self.args, self.width, self.value, self.number = op, args, width, value, number

    def __repr__(self) -> str:
        return f"{self.op}#{self.number}:{self.width}"

    @property
    def constant(self) -> int | None:
        """The number of a constant; None of anything else."""
        return self.value if self.op == "const" and isinstance(self.value, int) else None


class Words:
    """A table of words. Two words of one table that are equal by structure are one object.

    Every method folds constants and neutral elements, and nothing that would need a proof.
    """

    def __init__(self) -> None:
        self._all: list[Word] = []
        self._table: dict[tuple[Any, ...], Word] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Word]:
        return iter(self._all)

    def _word(self, op: str, width: int, args: Sequence[Word] = (), value: int | str | None = None) -> Word:
        key = (op, width, value, *(one.number for one in args))
        if (found := self._table.get(key)) is None:
            found = self._table[key] = Word(op, tuple(args), width, value, len(self._all))
            self._all.append(found)
        return found

    # Leaves -------------------------------------------------------------------------------------------------

    def constant(self, value: int, width: int) -> Word:
        """A number, reduced to `width` bits."""
        if width < 1:
            raise CircuitError(f"a word has at least 1 bit, not {width}")
        return self._word("const", width, value=value & ((1 << width) - 1))

    def variable(self, name: str, width: int) -> Word:
        """A free word. One name has one width in a table."""
        if width < 1:
            raise CircuitError(f"a word has at least 1 bit, not {width}")
        return self._word("var", width, value=name)

    # Arithmetic: both of one width, results modulo 2^width --------------------------------------------------

    def add(self, a: Word, b: Word) -> Word:
        return self._apply("add", _same(a, b), a, b)

    def sub(self, a: Word, b: Word) -> Word:
        return self._apply("sub", _same(a, b), a, b)

    def mul(self, a: Word, b: Word) -> Word:
        return self._apply("mul", _same(a, b), a, b)

    def neg(self, a: Word) -> Word:
        return self._apply("neg", a.width, a)

    # Bits ---------------------------------------------------------------------------------------------------

    def invert(self, a: Word) -> Word:
        return self._apply("not", a.width, a)

    def both(self, a: Word, b: Word) -> Word:
        """Bitwise and."""
        return self._apply("and", _same(a, b), a, b)

    def either(self, a: Word, b: Word) -> Word:
        """Bitwise or."""
        return self._apply("or", _same(a, b), a, b)

    def differ(self, a: Word, b: Word) -> Word:
        """Bitwise exclusive or."""
        return self._apply("xor", _same(a, b), a, b)

    def any_of(self, words: Iterable[Word]) -> Word:
        """Bitwise or of all, as a balanced tree; at least one."""
        return self._tree(self.either, words)

    def all_of(self, words: Iterable[Word]) -> Word:
        """Bitwise and of all, as a balanced tree; at least one."""
        return self._tree(self.both, words)

    def total(self, words: Iterable[Word]) -> Word:
        """Sum of all, as a balanced tree; at least one."""
        return self._tree(self.add, words)

    def _tree(self, operation: Any, words: Iterable[Word]) -> Word:
        left = list(words)
        while len(left) > 1:
            left = [
                operation(*left[at : at + 2]) if at + 1 < len(left) else left[at]
                for at in range(0, len(left), 2)
            ]
        return left[0]

    # Shifts: the amount is unsigned and may have any width --------------------------------------------------

    def shift_left(self, a: Word, amount: Word) -> Word:
        return self._shift("shl", a, amount)

    def shift_right(self, a: Word, amount: Word) -> Word:
        """Zeros come in from above."""
        return self._shift("lshr", a, amount)

    def shift_right_signed(self, a: Word, amount: Word) -> Word:
        """Copies of the highest bit come in from above."""
        return self._shift("ashr", a, amount)

    def _shift(self, op: str, a: Word, amount: Word) -> Word:
        by = amount.constant
        if by is not None:
            by = min(by, a.width)
            if by == 0:
                return a
            if op == "shl":
                zeros = self.constant(0, by)
                return zeros if by == a.width else self.concat(self.extract(a, 0, a.width - by), zeros)
            if op == "lshr":
                return (
                    self.constant(0, a.width) if by == a.width else self.extend(self.extract(a, by), a.width)
                )
            return self.extend_signed(self.extract(a, min(by, a.width - 1)), a.width)
        width = max(a.width, amount.width)
        wide = self.extend_signed(a, width) if op == "ashr" else self.extend(a, width)
        return self.extract(self._apply(op, width, wide, self.extend(amount, width)), 0, a.width)

    # Comparisons: one bit -----------------------------------------------------------------------------------

    def equal(self, a: Word, b: Word) -> Word:
        _same(a, b)
        return self._apply("eq", 1, a, b)

    def less(self, a: Word, b: Word) -> Word:
        """a < b, unsigned."""
        _same(a, b)
        return self._apply("ult", 1, a, b)

    def less_signed(self, a: Word, b: Word) -> Word:
        """a < b, two's complement."""
        _same(a, b)
        return self._apply("slt", 1, a, b)

    def nonzero(self, a: Word) -> Word:
        """Whether any bit is set."""
        return a if a.width == 1 else self.invert(self.equal(a, self.constant(0, a.width)))

    # Choice and width ---------------------------------------------------------------------------------------

    def choose(self, condition: Word, then: Word, other: Word) -> Word:
        """`then` where the condition, one bit, is 1, and `other` where it is 0."""
        if condition.width != 1:
            raise CircuitError(f"a condition has 1 bit, not {condition.width}")
        return self._apply("ite", _same(then, other), condition, then, other)

    def concat(self, *words: Word) -> Word:
        """The words side by side, the highest first; at least one."""
        found = words[-1]
        for one in reversed(words[:-1]):
            found = self._apply("concat", one.width + found.width, one, found)
        return found

    def extract(self, a: Word, low: int, width: int | None = None) -> Word:
        """`width` bits of a from bit `low` on; without a width all from there."""
        width = a.width - low if width is None else width
        if low < 0 or width < 1 or low + width > a.width:
            raise CircuitError(f"bits {low} to {low + width - 1} of a word of {a.width} bits")
        if width == a.width:
            return a
        if (number := a.constant) is not None:
            return self.constant(number >> low, width)
        if a.op == "extract":
            assert isinstance(a.value, int)
            return self.extract(a.args[0], low + a.value, width)
        if a.op == "concat":
            high, rest = a.args
            if low >= rest.width:
                return self.extract(high, low - rest.width, width)
            if low + width <= rest.width:
                return self.extract(rest, low, width)
            return self.concat(self.extract(high, 0, low + width - rest.width), self.extract(rest, low))
        if a.op == "sext" and low + width <= a.args[0].width:
            return self.extract(a.args[0], low, width)
        return self._word("extract", width, (a,), low)

    def bit(self, a: Word, place: int) -> Word:
        """Bit `place` of a."""
        return self.extract(a, place, 1)

    def extend(self, a: Word, width: int) -> Word:
        """a with zeros above it, or without its upper bits: a modulo 2^width."""
        if width <= a.width:
            return self.extract(a, 0, width)
        return self.concat(self.constant(0, width - a.width), a)

    def extend_signed(self, a: Word, width: int) -> Word:
        """a with copies of its highest bit above it, or without its upper bits."""
        if width <= a.width:
            return self.extract(a, 0, width)
        return self._apply("sext", width, a)

    # Folding ------------------------------------------------------------------------------------------------

    def _apply(self, op: str, width: int, *args: Word) -> Word:
        """A word of an operation without a value, folded."""
        numbers = [one.constant for one in args]
        if all(number is not None for number in numbers):
            known = [np.array([number], dtype=object) for number in numbers]
            return self.constant(int(compute(op, width, known, args)[0]), width)
        if op in COMMUTATIVE and args[0].number > args[1].number:
            args, numbers = (args[1], args[0]), [numbers[1], numbers[0]]
        folded = self._folded(op, width, args, numbers)
        return self._word(op, width, args) if folded is None else folded

    def _folded(self, op: str, width: int, args: tuple[Word, ...], numbers: list[int | None]) -> Word | None:
        """What a word is by its neutral elements; None: itself."""
        ones = (1 << width) - 1
        if op in ("add", "or", "xor", "sub", "shl", "lshr", "ashr") and numbers[1] == 0:
            return args[0]
        if op in ("add", "or", "xor") and numbers[0] == 0:
            return args[1]
        if op in ("and", "mul") and 0 in numbers:
            return self.constant(0, width)
        if op in ("and", "or"):
            if args[0] is args[1]:
                return args[0]
            if any(one.op == "not" and one.args[0] is other for one, other in (args, args[::-1])):
                return self.constant(0 if op == "and" else ones, width)
            if ones in numbers:
                known = numbers.index(ones)
                return args[1 - known] if op == "and" else args[known]
        if op == "mul" and 1 in numbers:
            return args[1 - numbers.index(1)]
        if op in ("sub", "xor") and args[0] is args[1]:
            return self.constant(0, width)
        if op in ("not", "neg") and args[0].op == op:
            return args[0].args[0]
        if op == "eq":
            return self._folded_equal(args, numbers)
        if op in ("ult", "slt") and args[0] is args[1]:
            return self.constant(0, 1)
        if op == "ult" and (numbers[0] == (1 << args[0].width) - 1 or numbers[1] == 0):
            return self.constant(0, 1)  # nothing is above the largest number, or below zero
        if op == "ite":
            return self._folded_choice(width, args, numbers)
        if op == "concat":
            return self._joined(*args)
        return None

    def _folded_equal(self, args: tuple[Word, ...], numbers: list[int | None]) -> Word | None:
        if args[0] is args[1]:
            return self.constant(1, 1)
        if args[0].width == 1:  # a bit that equals a constant is that bit, or its complement
            for number, other in zip(numbers, reversed(args), strict=True):
                if number is not None:
                    return other if number else self.invert(other)
        return None

    def _folded_choice(self, width: int, args: tuple[Word, ...], numbers: list[int | None]) -> Word | None:
        condition, then, other = args
        if numbers[0] is not None:
            return then if numbers[0] else other
        if then is other:
            return then
        if condition.op == "not":
            return self.choose(condition.args[0], other, then)
        if width == 1 and numbers[1] is not None and numbers[2] is not None:
            return condition if numbers[1] else self.invert(condition)
        return None

    def _joined(self, high: Word, low: Word) -> Word | None:
        """Neighbouring bits of one word as one piece of it."""
        if high.op != "extract":
            return None
        first = low if low.op == "extract" else low.args[0] if low.op == "concat" else None
        if first is None or first.op != "extract" or first.args[0] is not high.args[0]:
            return None
        assert isinstance(high.value, int) and isinstance(first.value, int)
        if high.value != first.value + first.width:
            return None
        joined = self.extract(high.args[0], first.value, high.width + first.width)
        return joined if first is low else self.concat(joined, low.args[1])


def _same(a: Word, b: Word) -> int:
    if a.width != b.width:
        raise CircuitError(f"words of {a.width} and {b.width} bits; expected equal widths")
    return a.width


def order(roots: Iterable[Word], stop: Iterable[Word] = ()) -> list[Word]:
    """All that the roots are made of, arguments first. What is made of nothing else than words of `stop` ends
    there; these are listed, what they are made of is not."""
    ends = {one.number for one in stop}
    found: dict[int, Word] = {}
    open_ = list(roots)
    while open_:
        one = open_.pop()
        if one.number not in found:
            found[one.number] = one
            if one.number not in ends:
                open_ += one.args
    return [found[number] for number in sorted(found)]  # arguments have smaller numbers


def evaluate(roots: Iterable[Word], values: Mapping[str, Sequence[int] | Values]) -> dict[Word, Values]:
    """The numbers of every word that the roots are made of.

    Args:
        values: numbers of each variable by name, the same count of each.

    Raises:
        CircuitError: a variable has no numbers.
    """
    found: dict[Word, Values] = {}
    cases = max((len(numbers) for numbers in values.values()), default=1)
    for word in order(roots):
        if word.op == "var":
            if word.value not in values:
                raise CircuitError(
                    f"variable {word.value!r} has no value; given are {', '.join(sorted(values))}"
                )
            numbers = np.array([int(one) for one in values[str(word.value)]], dtype=object)
            found[word] = _stored(numbers & ((1 << word.width) - 1), word.width)
        elif word.op == "const":
            found[word] = _stored(np.array([word.value] * cases, dtype=object), word.width)
        else:
            found[word] = compute(
                word.op, word.width, [found[one] for one in word.args], word.args, word.value
            )
    return found


def _stored(numbers: Values, width: int) -> Values:
    """As evaluate keeps them: native where they fit."""
    return numbers.astype(np.uint64) if width <= NATIVE else numbers.astype(object)


def compute(op: str, width: int, given: list[Values], words: Sequence[Word], value: Any = None) -> Values:
    """One operation on numbers of its arguments, as Values say. In Python's integers where a result or an
    argument is wider than NumPy's."""
    if max(width, *(one.width for one in words)) < NATIVE and given[0].dtype != object:
        return _native(op, width, given, words, value)
    wide = [numbers.astype(object) for numbers in given]
    return _stored(_exact(op, width, wide, words, value) & ((1 << width) - 1), width)


def _exact(op: str, width: int, x: list[Values], words: Sequence[Word], value: Any) -> Values:
    """The result before it is reduced to `width` bits."""
    bits = words[0].width
    match op:
        case "add":
            return x[0] + x[1]
        case "sub":
            return x[0] - x[1]
        case "mul":
            return x[0] * x[1]
        case "neg":
            return -x[0]
        case "not":
            return ~x[0]
        case "and":
            return x[0] & x[1]
        case "or":
            return x[0] | x[1]
        case "xor":
            return x[0] ^ x[1]
        case "shl":
            return x[0] << np.minimum(x[1], width)
        case "lshr":
            return x[0] >> np.minimum(x[1], width)
        case "ashr":
            return _signed(x[0], width) >> np.minimum(x[1], width)
        case "eq":
            return np.asarray(x[0] == x[1]).astype(int).astype(object)
        case "ult":
            return np.asarray(x[0] < x[1]).astype(int).astype(object)
        case "slt":
            return (_signed(x[0], bits) < _signed(x[1], bits)).astype(int).astype(object)
        case "ite":
            return np.where(x[0].astype(bool), x[1], x[2])
        case "concat":
            return (x[0] << words[1].width) | x[1]
        case "extract":
            return np.asarray(x[0] >> value)
        case "sext":
            return np.asarray(_signed(x[0], bits))
    raise CircuitError(f"no operation {op!r}")


def _signed(numbers: Values, width: int) -> Values:
    return np.asarray(numbers - ((numbers >> (width - 1)) << width))


def _native(op: str, width: int, x: list[Values], words: Sequence[Word], value: Any) -> Values:
    """As _exact, in uint64, whose own wrapping is a multiple of 2^width."""
    bits, limit = words[0].width, np.uint64(width)
    mask = np.uint64((1 << width) - 1)
    match op:
        case "shl" | "lshr" | "ashr":
            by = np.minimum(x[1], limit)
            if op == "shl":
                return (x[0] << by) & mask
            if op == "lshr":
                return x[0] >> by
            return (_native_signed(x[0], width) >> by.astype(np.int64)).astype(np.uint64) & mask
        case "eq":
            return np.asarray(x[0] == x[1]).astype(np.uint64)
        case "ult":
            return np.asarray(x[0] < x[1]).astype(np.uint64)
        case "slt":
            return (_native_signed(x[0], bits) < _native_signed(x[1], bits)).astype(np.uint64)
        case "ite":
            return np.where(x[0].astype(bool), x[1], x[2])
        case "concat":
            return (x[0] << np.uint64(words[1].width)) | x[1]
        case "extract":
            return (x[0] >> np.uint64(value)) & mask
        case "sext":
            return _native_signed(x[0], bits).astype(np.uint64) & mask
        case "neg":
            return (~x[0] + np.uint64(1)) & mask
        case _:
            return _exact(op, width, x, words, value) & mask


def _native_signed(numbers: Values, width: int) -> npt.NDArray[np.int64]:
    away = np.int64(64 - width)
    return (numbers.astype(np.int64) << away) >> away
