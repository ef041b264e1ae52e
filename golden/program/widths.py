"""Widths of every node of a program: how many bits a register needs, from K, the formats and the steps alone.

The analysis carries the largest significand and the exponent range of each register through the steps. It
answers what
an RTL designer asks first: how wide is the aligned addend, how many integer bits has the sum register, how
long is a fixed-point register that loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, assert_never

from golden.number.formats import Format
from golden.program.extents import Extent, follow
from golden.program.program import NO_SEED, Operation
from golden.program.signature import Signature
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    grouping,
)


@dataclass(frozen=True)
class Node:
    """One register after one step. Significands are magnitudes below 2**integer_bits with `fraction_bits`
    below the point.

    `maximum` is the largest significand, in units of 2**exponent; the exponents are the least and greatest
    that the register can have (of finite non-zero numbers). `fixed`: the register is one fixed-point number
    whose point does not move, `fraction_bits` then counts down to its least significant bit. `aligned`: all
    numbers share one exponent.
    """

    register: str
    count: int
    maximum: Fraction
    fraction_bits: int
    exponents: tuple[int, int]
    signed: bool = True
    fixed: bool = False
    aligned: bool = False
    format: Format | None = None

    @property
    def integer_bits(self) -> int:
        """Bits above the point."""
        return int(self.maximum).bit_length()

    @property
    def width(self) -> int:
        """Sign, integer and fraction bits; a register in a number format: the format's bits."""
        if self.format is not None:
            return self.format.bits
        return int(self.signed) + self.integer_bits + self.fraction_bits

    def as_dict(self) -> dict[str, Any]:
        """The node as plain values."""
        return {
            "register": self.register,
            "count": self.count,
            "sign_bits": int(self.signed),
            "integer_bits": self.integer_bits,
            "fraction_bits": self.fraction_bits,
            "width": self.width,
            "format": self.format.name if self.format else None,
            "fixed_point": self.fixed,
            "exponent_low": self.exponents[0],
            "exponent_high": self.exponents[1],
        }


def operand_nodes(unit: Signature, operation: Operation) -> dict[str, Node]:
    """Returns the nodes that an operation begins with: a, b, c, the addends and, where there are any, the
    scale products."""
    a, b = (operation.operand_format or unit.formats[name] for name in "ab")
    count = len(operation.k_index)
    nodes = {
        "a": _of_format("a", a, count),
        "b": _of_format("b", b, count),
        "c": _of_format("c", operation.seed_format, 1),
        "addends": _of_format("addends", operation.out_format, len(operation.addends)),
    }
    if "scale_a" in unit.formats:
        scale_a, scale_b = (_of_format("", unit.formats[name], count) for name in ("scale_a", "scale_b"))
        nodes["scales"] = _product("scales", scale_a, scale_b)
    missing = {"b"} if "b" in unit.absent else set()
    missing |= {"c"} if operation.seed == NO_SEED else set()
    return {name: node for name, node in nodes.items() if name not in missing}


def operation_nodes(unit: Signature, operation: Operation) -> list[tuple[Step, list[Node]]]:
    """Returns, step by step, the nodes that an operation writes."""
    nodes = operand_nodes(unit, operation)
    steps = []
    for step in operation.steps:
        written = _written(step, nodes)
        nodes |= {node.register: node for node in written}
        steps.append((step, written))
    return steps


def _of_format(register: str, fmt: Format, count: int) -> Node:
    if not fmt.is_float:
        largest = 1 << (fmt.integer_bits - 1) if fmt.signed else fmt.largest
        return Node(register, count, Fraction(largest), 0, (0, 0), fmt.signed, True, format=fmt)
    maximum = 2 - Fraction(1, 1 << fmt.fraction_bits)
    return Node(
        register,
        count,
        maximum,
        fmt.fraction_bits,
        (fmt.min_exponent, fmt.max_exponent),
        fmt.signed,
        format=fmt,
    )


def _product(register: str, x: Node, y: Node) -> Node:
    exponents = (x.exponents[0] + y.exponents[0], x.exponents[1] + y.exponents[1])
    return Node(
        register,
        x.count,
        x.maximum * y.maximum,
        x.fraction_bits + y.fraction_bits,
        exponents,
        x.signed or y.signed,
        x.fixed and y.fixed,
    )


def _written(step: Step, nodes: dict[str, Node]) -> list[Node]:
    match step:
        case Multiply():
            return _signed(step, _multiplied(step, nodes), nodes)
        case Scale():
            scaled = {name: _product(name, nodes[name], nodes["scales"]) for name in step.of}
            return [replace(node, count=nodes[name].count) for name, node in scaled.items()]
        case Align():
            return _aligned(step, [nodes[name] for name in step.of])
        case Sum():
            return [_summed(step, [nodes[name] for name in step.of])]
        case Additions():
            groups = _group_sizes(step, sum(nodes[name].count for name in step.of))
            return [_of_format(step.to, step.format, len(groups))]
        case Normalize():
            return [_normalized(step, nodes[name], dict(step.fraction_bits)[name]) for name in step.of]
        case Fma():
            return [_of_format(step.to, step.format, len(_group_sizes(step, nodes["a"].count)))]
        case Round():
            return [_of_format(step.to, step.format, nodes[step.of[0]].count)]
        case HiddenBit():
            return [node for name in step.of if (node := _with_hidden_bit(nodes[name])) != nodes[name]]
        case Flush() | SpecialValues():
            return []  # every register stays as wide as it is
        case _:
            assert_never(step)


def _rounded(maximum: Fraction, bits: int, mode: str) -> Fraction:
    """The largest significand after rounding to `bits` fraction bits; rounding down needs no carry in
    two's complement."""
    if mode in ("toward_zero", "down", "to_odd"):
        return maximum
    return Fraction(-(-maximum.numerator * (1 << bits) // maximum.denominator), 1 << bits)


def _with_hidden_bit(node: Node) -> Node:
    """In a format a hidden bit has its place already; elsewhere it is one more bit of any number."""
    if node.format is not None:
        return node
    ones = (1 << max(node.integer_bits, 1)) - Fraction(1, 1 << node.fraction_bits)
    return replace(node, maximum=max(node.maximum, ones))


def _normalized(step: Normalize, node: Node, bits: int) -> Node:
    """The leading one moves before the point, from anywhere in the register, and no farther than the least
    exponent."""
    low, high = node.exponents[0] - node.fraction_bits, node.exponents[1] + node.integer_bits - 1
    if step.min_exponent is not None:
        low, high = max(low, step.min_exponent), max(high, step.min_exponent)
    maximum = (
        2 - Fraction(1, 1 << bits) if step.rounding in ("toward_zero", "down", "to_odd") else Fraction(2)
    )
    return replace(
        node,
        maximum=maximum,
        fraction_bits=bits,
        exponents=(low, high),
        fixed=False,
        aligned=False,
        format=None,
    )


def _signed(step: Multiply, products: Node, nodes: dict[str, Node]) -> list[Node]:
    """The products, and c where the step turns its sign: both then need one."""
    if step.negate in ("product", "both"):
        products = replace(products, signed=True)
    if step.negate not in ("c", "both"):
        return [products]
    return [products, replace(nodes["c"], signed=True, format=None)]


def _multiplied(step: Multiply, nodes: dict[str, Node]) -> Node:
    if step.format is not None:
        return _of_format(step.to, step.format, nodes["a"].count)
    if step.operation != "product":
        most = max(nodes["a"].maximum, nodes["b"].maximum)
        return Node(step.to, nodes["a"].count, most, 0, (0, 0), False, True)
    node = _product(step.to, nodes["a"], nodes["b"])
    if not step.normalize:
        return node
    # A product of subnormals normalises down to the product of the two least significant bits; one in [2, 4)
    # goes up by one.
    low, high = node.exponents[0] - node.fraction_bits, node.exponents[1] + node.integer_bits - 1
    fraction = node.fraction_bits + node.integer_bits - 1
    return replace(
        node,
        maximum=2 - Fraction(1, 1 << fraction),
        fraction_bits=fraction,
        exponents=(low, high),
        fixed=False,
    )


def _aligned(step: Align, terms: list[Node]) -> list[Node]:
    """Every term moves to the largest exponent; shifts only make significands smaller."""
    if step.exponent is not None or step.maximum:
        return _aligned_to(step, terms)
    bits = dict(step.fraction_bits)
    low, high = min(node.exponents[0] for node in terms), max(node.exponents[1] for node in terms)
    if step.floor is not None:
        low, high = max(low, step.floor), max(high, step.floor)
    return [
        replace(
            node,
            maximum=_rounded(node.maximum, bits[node.register], step.rounding),
            fraction_bits=bits[node.register] + int(step.cut == "sticky_added"),
            exponents=(low, high),
            fixed=False,
            aligned=True,
            format=None,
        )
        for node in terms
    ]


def _aligned_to(step: Align, terms: list[Node]) -> list[Node]:
    """Every term moves to an exponent that is given or the largest of candidates, and can lie above it."""
    before = {node.register: extent_of(node) for node in terms}
    after = follow(step, before)
    return [
        replace(
            node,
            maximum=Fraction(1 << max(after[node.register].above - 1, 0)),
            fraction_bits=dict(step.fraction_bits)[node.register] + int(step.cut == "sticky_added"),
            exponents=(min(after[name].bottom for name in after), max(after[name].top for name in after)),
            fixed=step.exponent is not None,
            aligned=True,
            format=None,
        )
        for node in terms
    ]


def extent_of(node: Node) -> Extent:
    """The bounds of a node's numbers."""
    low, high = node.exponents
    top = high + node.integer_bits
    width = node.integer_bits + node.fraction_bits
    return Extent(node.count, low - node.fraction_bits, top, low, high, node.integer_bits, width)


def _group_sizes(step: Step, count: int) -> list[int]:
    group = grouping(step)
    if group is None or count == 0:
        return [count]
    kind, size = group
    if kind == "interleaved":
        return [len(range(i, count, size)) for i in range(min(size, count))]
    return [min(size, count - start) for start in range(0, count, size)]


def _summed(step: Sum, terms: list[Node]) -> Node:
    total = sum(node.count for node in terms)
    sizes = _group_sizes(step, total)
    share = Fraction(max(sizes), total) if total else Fraction(0)
    signed = any(node.signed for node in terms)
    if all(node.fixed for node in terms) or all(node.aligned for node in terms):
        maximum = sum((node.count * share * node.maximum for node in terms), Fraction(0))
        if step.width is not None:
            maximum = min(maximum, Fraction(1 << (step.width - 1)) - Fraction(1, 2))
        return Node(
            step.to,
            len(sizes),
            maximum,
            max(node.fraction_bits for node in terms),
            terms[0].exponents,
            signed,
            terms[0].fixed,
            terms[0].aligned,
        )
    # Terms keep their own exponents: one fixed-point register from the lowest bit of any to the carry of all.
    lowest = min(node.exponents[0] - node.fraction_bits for node in terms)
    maximum = sum(
        (node.count * share * node.maximum * Fraction(2) ** node.exponents[1] for node in terms), Fraction(0)
    )
    return Node(step.to, len(sizes), maximum, -lowest, (0, 0), signed, True)
