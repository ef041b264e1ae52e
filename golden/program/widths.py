"""Widths of every node of a program: how many bits a register needs, from K, the formats and the steps alone.

A node is the view that a designer has of golden/program/bounds.py. It answers what he asks first: how wide is
the aligned addend, how many integer bits has the sum register, how long is a fixed-point register that loses
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from golden.number.formats import Format
from golden.number.frozen import replace
from golden.program.bounds import Bounds, Registers, follow, of_format, one_exponent, operands_of, walk
from golden.program.program import NO_SEED, Operation
from golden.program.signature import Signature
from golden.program.steps import Align, Flush, HiddenBit, SpecialValues, Step, Sum, format_of


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
    registers = _before(unit, operation)
    formats = {name: operation.operand_format or unit.formats[name] for name in "ab"}
    formats |= {"c": operation.seed_format, "addends": operation.out_format}
    missing = {"b"} if "b" in unit.absent else set()
    missing |= {"scale_a", "scale_b"} | ({"c"} if operation.seed == NO_SEED else set())
    nodes = {
        name: _of_format(name, formats[name], bounds.count) if name in formats else _node(name, bounds)
        for name, bounds in ({"addends": of_format(operation.out_format, 0)} | registers).items()
    }
    return {name: node for name, node in nodes.items() if name not in missing}


def operation_nodes(unit: Signature, operation: Operation) -> list[tuple[Step, list[Node]]]:
    """Returns, step by step, the nodes that an operation writes."""
    nodes = operand_nodes(unit, operation)
    steps = []
    for step, before in walk(operation, _before(unit, operation)):
        written = _written(step, before, nodes)
        nodes |= {node.register: node for node in written}
        steps.append((step, written))
    return steps


def _before(unit: Signature, operation: Operation) -> Registers:
    """Bounds before the first step. A register is as wide as its format, whatever a converted operand is."""
    wide = operation.operand_format
    converted = {} if wide is None else {"a": wide, "b": wide}
    return operands_of(replace(operation, operand_format=None), unit.formats | converted)


def _of_format(register: str, fmt: Format, count: int) -> Node:
    """A register that holds codes of a format."""
    return replace(
        _node(register, of_format(fmt, count)), format=fmt, signed=fmt.signed, fixed=not fmt.is_float
    )


def _node(register: str, own: Bounds) -> Node:
    """Numbers with exponents of their own."""
    fixed = own.low == own.high
    exponents = own.low, own.high
    return Node(
        register, own.count, _maximum(own.significands), own.fraction_bits, exponents, own.least < 0, fixed
    )


def _maximum(ends: tuple[Fraction, Fraction]) -> Fraction:
    """The largest significand whose integer bits hold both ends in two's complement: -2 takes the bits of
    1."""
    low, high = ends
    whole = int(-low)
    is_power = whole == -low and whole & (whole - 1) == 0
    return max(high, -low * Fraction(3, 4) if is_power else -low)


def _written(step: Step, before: Registers, nodes: dict[str, Node]) -> list[Node]:
    """The nodes of the registers that a step writes; a flush and special values leave each as wide as it
    is."""
    if isinstance(step, Flush | SpecialValues):
        return []
    after, fmt = follow(step, before), format_of(step)
    if fmt is not None:
        found = [_of_format(step.to, fmt, after[step.to].count)]
    elif isinstance(step, Sum):
        found = [_summed(step, after[step.to], [before[name] for name in step.of])]
    else:
        found = [_node(name, after[name]) for name in (step.of if step.to == "" else (step.to,))]
    if isinstance(step, Align):  # all numbers share one exponent
        exponents = min(node.exponents[0] for node in found), max(node.exponents[1] for node in found)
        return [replace(node, exponents=exponents, aligned=True) for node in found]
    if isinstance(step, HiddenBit):  # in a format the bit has its place already
        return [
            node for node in found if nodes[node.register].format is None and node != nodes[node.register]
        ]
    return found + [
        _node(name, own) for name, own in after.items() if name not in {node.register for node in found}
    ]


def _summed(step: Sum, own: Bounds, terms: list[Bounds]) -> Node:
    if step.exponent is not None or one_exponent(step, [term for term in terms if term.count] or terms):
        node = _node(step.to, own)
        return replace(node, aligned=terms[0].shared is not None)
    # Terms keep their own exponents: one fixed-point register from the lowest bit of any to the carry of all.
    maximum = _maximum((own.least, own.greatest))
    return Node(step.to, own.count, maximum, -own.last, (0, 0), own.least < 0, True)
