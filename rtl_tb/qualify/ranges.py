"""What the words of a graph can hold: bounds that follow from how they are made, not from the operands.

A sum of products that are known to be small is small, however hard the products are for a solver: of a node
that is free in a question, its bounds are what is left of how it is made.
"""

from __future__ import annotations

from dataclasses import dataclass

from rtl_tb.qualify.netlist import Node, in_order


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
        self._known: dict[int, Range] = {}

    def of(self, node: Node) -> Range:
        """The bounds of a node."""
        for each in in_order([node], self._known.keys()):
            if each.number not in self._known:
                self._known[each.number] = self._range(each)
        return self._known[node.number]

    def _range(self, node: Node) -> Range:
        width = node.width
        unsigned, signed = self._bounds(node)
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

    def _bounds(self, node: Node) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Bounds of what an operation gives before it is cut to its width, without a sign and with one; None:
        not known."""
        ranges = [self._known[arg.number] for arg in node.args]
        match node.kind:
            case "const":
                value = node.value
                sign = value - (1 << node.width) if value >> (node.width - 1) & 1 else value
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
            case "not":
                (one,), ones = ranges, (1 << node.width) - 1
                return (ones - one.high, ones - one.low), (-1 - one.most, -1 - one.least)
            case "and":
                return (0, min(each.high for each in ranges)), None
            case "or" | "xor":
                return (0, (1 << max(each.high.bit_length() for each in ranges)) - 1), None
            case "lshr":
                one, two = ranges
                return (one.low >> min(two.high, node.width), one.high >> min(two.low, node.width)), None
            case "ashr":
                return None, (min(ranges[0].least, 0), max(ranges[0].most, 0))
            case "ite":
                both = ranges[1].joined(ranges[2])
                return (both.low, both.high), (both.least, both.most)
            case "cat":
                one, two, shift = *ranges, node.args[1].width
                return ((one.low << shift) + two.low, (one.high << shift) + two.high), (
                    (one.least << shift) + two.low,
                    (one.most << shift) + two.high,
                )
            case "part":
                (one,) = ranges
                sign = (one.least, one.most) if node.value == 0 else None
                return (one.low >> node.value, one.high >> node.value), sign
            case "sext":
                return None, (ranges[0].least, ranges[0].most)
        return None, None
