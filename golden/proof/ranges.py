"""What the words of a circuit can hold: bounds that follow from how they are made, not from the operands.

A sum of products that are known to be small is small, however hard the products are for a solver: of a word
that is free in a question, its bounds are what is left of how it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from golden.circuit.words import Word, Words, order


@dataclass(frozen=True)
class Range:
    """Bounds of a word, read without a sign and with one."""

    low: int
    high: int
    least: int
    most: int

    @classmethod
    def whole(cls, width: int) -> Range:
        """Of a word of which nothing is known."""
        return cls(0, (1 << width) - 1, -(1 << width - 1), (1 << width - 1) - 1)

    def joined(self, other: Range) -> Range:
        """Of a word that is one or the other."""
        lows, leasts = (self.low, other.low), (self.least, other.least)
        return Range(min(lows), max(self.high, other.high), min(leasts), max(self.most, other.most))


class Ranges:
    """Bounds of nodes, each computed once."""

    def __init__(self) -> None:
        self._known: dict[Word, Range] = {}

    def of(self, word: Word) -> Range:
        """The bounds of a word."""
        for each in order([word], self._known.keys()):
            if each not in self._known:
                self._known[each] = self._range(each)
        return self._known[word]

    def _range(self, word: Word) -> Range:
        width = word.width
        unsigned, signed = self._bounds(word)
        whole = Range.whole(width)
        low, high = (
            unsigned if unsigned and unsigned[0] >= 0 and unsigned[1] <= whole.high else (0, whole.high)
        )
        least, most = whole.least, whole.most
        if signed and signed[0] >= least and signed[1] <= most:
            least, most = signed
        if least >= 0:  # what has no sign is the same either way
            low, high = max(low, least), min(high, most)
        if high <= whole.most:
            least, most = max(least, low), min(most, high)
        return Range(low, high, least, most)

    def _bounds(self, word: Word) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Bounds of what an operation gives before it is cut to its width, without a sign and with one; None:
        not known."""
        ranges = [self._known[arg] for arg in word.args]
        match word.op:
            case "const":
                value = int(word.value or 0)
                sign = value - (1 << word.width) if value >> (word.width - 1) & 1 else value
                return (value, value), (sign, sign)
            case "add":
                one, two = ranges
                return (one.low + two.low, one.high + two.high), (one.least + two.least, one.most + two.most)
            case "sub":
                one, two = ranges
                return (one.low - two.high, one.high - two.low), (one.least - two.most, one.most - two.least)
            case "mul":
                one, two = ranges
                ends = [a * b for a in (one.least, one.most) for b in (two.least, two.most)]
                return (one.low * two.low, one.high * two.high), (min(ends), max(ends))
            case "neg":
                (one,) = ranges
                return None, (-one.most, -one.least)
            case "not":
                (one,), ones = ranges, (1 << word.width) - 1
                return (ones - one.high, ones - one.low), (-1 - one.most, -1 - one.least)
            case "and":
                return (0, min(each.high for each in ranges)), None
            case "or" | "xor":
                return (0, (1 << max(each.high.bit_length() for each in ranges)) - 1), None
            case "shl":
                one, two = ranges
                if two.high < word.width:
                    ends = [end << by for end in (one.least, one.most) for by in (two.low, two.high)]
                    return (one.low << two.low, one.high << two.high), (min(ends), max(ends))
            case "lshr":
                one, two = ranges
                return (one.low >> min(two.high, word.width), one.high >> min(two.low, word.width)), None
            case "ashr":
                return None, (min(ranges[0].least, 0), max(ranges[0].most, 0))
            case "ite":
                if _is_magnitude(word):
                    top = max(-ranges[2].least, ranges[2].most)
                    return (0, top), (0, top)
                both = ranges[1].joined(self._where_nonzero(word.args[0], word.args[2]))
                return (both.low, both.high), (both.least, both.most)
            case "concat":
                (one, two), shift = ranges, word.args[1].width
                return ((one.low << shift) + two.low, (one.high << shift) + two.high), (
                    (one.least << shift) + two.low,
                    (one.most << shift) + two.high,
                )
            case "extract":
                (one,) = ranges
                by = int(word.value or 0)
                return (one.low >> by, one.high >> by), (one.least, one.most) if by == 0 else None
            case "sext":
                return None, (ranges[0].least, ranges[0].most)
        return None, None

    def _where_nonzero(self, condition: Word, other: Word) -> Range:
        """Of what is chosen where a condition is 0: that may say that something it is made of is not 0, as
        the exponent field of a normal number is not."""
        known = self._known
        tested = [arg for arg in condition.args if arg.constant is None]
        if condition.op != "eq" or len(tested) != 1 or 0 not in [arg.constant for arg in condition.args]:
            return known[other]
        (field,) = tested
        above = [each for each in order([other], [field]) if field in order([each], [field])]
        before = {each: known[each] for each in (field, *above)}
        for each in above:
            old = before[each]
            known[each] = replace(old, low=max(old.low, 1)) if each is field else self._range(each)
        found = known[other]
        known.update(before)
        return found


def _is_magnitude(word: Word) -> bool:
    """Whether a choice is what a number is without its sign."""
    negative, turned, plain = word.args
    top = negative.op == "extract" and negative.args[0] is plain and negative.value == plain.width - 1
    return top and turned.op == "neg" and turned.args[0] is plain


def range_facts(words: Words, points: Mapping[str, Word]) -> Iterator[tuple[str, Word]]:
    """Conditions that bound the named words, as far as they hold no more than three quarters of what their
    bits could, products whatever they hold: to be proved before they are used, as any fact."""
    ranges = Ranges()
    for name, word in points.items():
        found, width = ranges.of(word), word.width
        most = (1 << width) - 1 if word.op == "mul" else (3 << width) // 4
        signed = found.most - found.least <= found.high - found.low
        ends = (found.least, found.most) if signed else (found.low, found.high)
        if width > 1 and ends[1] - ends[0] < most:
            less = words.less_signed if signed else words.less
            low, high = (words.constant(end, width) for end in ends)
            yield f"range of {name}", words.invert(words.either(less(word, low), less(high, word)))
