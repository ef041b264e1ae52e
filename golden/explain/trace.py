"""The explanation of one dot product: every step of the reference model as a table, with the exact value.

`trace.as_dict()` has it for machines; golden/explain/terminal.py lays it out for readers, one way everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

from golden.model.reference import Cut, Event
from golden.notebook import NotebookHtml
from golden.number.formats import Format, Kind, Number
from golden.program.flags import flags_code, flags_text
from golden.program.signature import Operands
from golden.program.steps import Multiply

if TYPE_CHECKING:
    from golden.model.instruction import Instruction


@dataclass(frozen=True, repr=False)
class Trace(NotebookHtml):
    """One explained dot product. `events` are the executed steps of golden/model/reference.py, `code` the
    raw result."""

    instruction: Instruction
    a: Sequence[int]
    b: Sequence[int]
    c: int
    scales: tuple[Sequence[int], Sequence[int], int] | None
    events: list[Event]
    code: int

    @property
    def result(self) -> Number:
        """The result decoded."""
        return self.instruction.formats["d"].decode(self.code)

    @property
    def flags(self) -> int | None:
        """The code of the status flags that the steps raise; None where the unit has none."""
        status = self.instruction.status
        raised = {name for event in self.events for name in event.raised}
        return flags_code(status, raised) if status else None

    @property
    def flags_text(self) -> str:
        """The status flags for a reader: "0x8: inexact"."""
        return "" if self.flags is None else describe_flags(self.instruction.status, self.flags)

    @property
    def terms(self) -> list[Fraction] | None:
        """c and every product (with its scales) in exact rationals,
        or None when an operand is infinite or NaN."""
        c = self.instruction.formats["c"].decode(self.c)
        factors = [(c,)] + [self._factors(k) for k in range(len(self.a))]
        if any(number.kind >= Kind.INFINITY for numbers in factors for number in numbers):
            return None
        signs = self._signs()
        return [
            sign * prod((number.value for number in numbers), start=Fraction(1))
            for sign, numbers in zip(signs, factors, strict=True)
        ]

    def _signs(self) -> list[int]:
        """-1 for c and for every product whose sign the program turns, 1 for the others."""
        signs = [1] * (len(self.a) + 1)
        for operation in self.instruction.program.operations:
            for step in operation.steps_of(Multiply):
                if step.negate in ("c", "both") and operation.seed == "c":
                    signs[0] = -signs[0]
                if step.negate in ("product", "both"):
                    for k in operation.k_index:
                        signs[k + 1] = -signs[k + 1]
        return signs

    @property
    def exact(self) -> Fraction | None:
        """c + sum(a[k] * b[k]), with the signs that the steps give them, in exact rationals; None when an
        operand is infinite or NaN."""
        terms = self.terms
        return None if terms is None else sum(terms, Fraction(0))

    def _factors(self, k: int) -> tuple[Number, ...]:
        formats = self.instruction.formats
        if formats["a"].name == "b1":
            xor = self.instruction.program.bit_operation == "xor"
            bit = self.a[k] ^ self.b[k] if xor else self.a[k] & self.b[k]
            return (Number(Kind.FINITE if bit else Kind.ZERO, 0, bit),)
        factors: tuple[Number, ...] = (formats["a"].decode(self.a[k]), formats["b"].decode(self.b[k]))
        if self.scales is not None:
            scale_a, scale_b, block = self.scales
            factors += (
                formats["scale_a"].decode(scale_a[k // block]),
                formats["scale_b"].decode(scale_b[k // block]),
            )
        return factors

    @property
    def error_ulp(self) -> float | None:
        """(result - exact) in units of the exact value's last place in D's format; None where either is
        not finite."""
        exact, result, fmt = self.exact, self.result, self.instruction.formats["d"]
        if exact is None or result.kind >= Kind.INFINITY:
            return None
        return float((result.value - exact) / Fraction(2) ** ulp_exponent(exact, fmt))

    def as_dict(self) -> dict[str, Any]:
        """The whole trace as plain values (hex codes as strings), stable for machines."""
        formats, exact, absent = self.instruction.formats, self.exact, self.instruction.absent
        c = {"c": _hex(self.c, formats["c"]), "c_value": describe_code(formats["c"], self.c)}
        whole = str(exact) if self.instruction.is_integer else None
        return {
            "instruction": self.instruction.name,
            "architecture": self.instruction.architecture,
            "operands": [
                {
                    "k": k,
                    "a": _hex(x, formats["a"]),
                    **({} if "b" in absent else {"b": _hex(y, formats["b"])}),
                    "a_value": describe_code(formats["a"], x),
                    **({} if "b" in absent else {"b_value": describe_code(formats["b"], y)}),
                }
                for k, (x, y) in enumerate(zip(self.a, self.b, strict=True))
            ],
            **({} if "c" in absent else c),
            "steps": [_step_dict(event, self.instruction) for event in self.events],
            "d": _hex(self.code, formats["d"]),
            "d_value": describe_code(formats["d"], self.code),
            **({} if self.flags is None else {"flags": self.flags_text}),
            "exact": None if exact is None else whole or _fraction_text(exact),
            "exact_value": None if exact is None else whole or float_text(exact),
            "error_ulp": self.error_ulp,
        }

    def __repr__(self) -> str:
        d = self.instruction.formats["d"]
        return (
            f"<Trace of {self.instruction.architecture}:{self.instruction.name}: "
            f"d = {_hex(self.code, d)} = {describe_code(d, self.code)}>"
        )

    def __str__(self) -> str:
        """The explanation as `mmagold explain` prints it, as plain text."""
        from golden.explain.terminal import trace_text  # it imports this module

        return trace_text(self)


def exact_terms(ins: Instruction, operands: Operands) -> list[Fraction] | None:
    """The `terms` of one dot product's trace, without running its steps."""
    one = ins.stateless
    unit, given = one.in_mode_of(one.complete(one.check_named(operands)))
    row_a, row_b, scales = unit.reference_operands(given)
    return Trace(unit, row_a, row_b, int(given["c"]), scales, [], 0).terms


def ulp_exponent(exact: Fraction, fmt: Format) -> int:
    """The exponent of the last place that a number of this size has in the format."""
    if not fmt.is_float:
        return 0
    exponent = fmt.min_exponent
    if exact:
        magnitude = abs(exact)
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        exponent -= magnitude < Fraction(2) ** exponent
    return max(exponent, fmt.min_exponent) - fmt.fraction_bits


def _hex(code: int, fmt: Format) -> str:
    return f"0x{code:0{(fmt.bits + 3) // 4}x}"


def float_text(value: Fraction) -> str:
    """A fraction as the shortest decimal of the nearest float64, or in powers of two where float64 cannot
    hold it."""
    try:
        near = float(value)
    except OverflowError:
        near = float("inf")
    if near in (0.0, float("inf")) and value:
        return _fraction_text(value)
    return repr(near)


def short_text(value: Fraction) -> str:
    """A number for a narrow column: whole where it is short (65504), else four digits (3.403e38)."""
    if value.denominator == 1 and abs(value) < 10**6:
        return str(value)
    digits, _, exponent = f"{float(value):.4g}".partition("e")
    return f"{digits}e{int(exponent)}" if exponent else digits


def _fraction_text(value: Fraction) -> str:
    if value == 0:
        return "0"
    shift = value.denominator.bit_length() - 1
    if value.denominator != 1 << shift:
        return str(value)
    numerator = value.numerator
    while numerator % 2 == 0:
        numerator, shift = numerator // 2, shift - 1
    return f"{numerator}*2^{-shift}" if shift else str(numerator)


def describe(number: Number, integer: bool = False) -> str:
    """One number for a reader: its value, signed zero, inf or nan; integers without sign of zero and
    decimal point."""
    if integer:
        return str(number.value)
    sign = "-" if number.sign else "+"
    if number.kind == Kind.NAN:
        return "nan"
    if number.kind == Kind.INFINITY:
        return f"{sign}inf"
    if number.significand == 0:
        return f"{sign}0"
    return float_text(number.value)


def describe_code(fmt: Format, code: int) -> str:
    """A code for a reader: its number as `describe` says it."""
    return describe(fmt.decode(code), not fmt.is_float)


def describe_flags(status: tuple[str, ...], code: int) -> str:
    """A code of status flags for a reader: "0x8: inexact"."""
    return f"{code:#x}: {flags_text(status, code)}"


def lost_bits(cut: Cut) -> str:
    """The bits that alignment cut off, the first of them right below the last one kept; empty where all
    are zero."""
    return f"{cut.lost:0{cut.bits}b}" if cut.lost else ""


def shortened_bits(bits: str) -> str:
    """Bits for a reader: of many, the leading zeros are counted."""
    ones = bits.lstrip("0")
    many_bits = 24
    if len(bits) <= many_bits:
        return bits
    zeros = len(bits) - len(ones)
    shown = ones if len(ones) <= many_bits else f"{ones[: many_bits - 3]}..."
    return f"{zeros} zeros, {shown}" if zeros else shown


def significand_text(number: Number, integer: bool = False) -> str:
    """The significand in binary with its point, as the datapath holds it; the magnitude of an integer
    without a plus sign."""
    if number.kind >= Kind.INFINITY:
        return "-"
    digits = f"{number.significand:0{max(number.fraction_bits, 0) + 1}b}"
    point = len(digits) - max(number.fraction_bits, 0)
    plus = "" if integer else "+"
    return (
        ("-" if number.sign else plus)
        + digits[:point]
        + ("." + digits[point:] if number.fraction_bits > 0 else "")
    )


def _step_dict(event: Event, instruction: Instruction) -> dict[str, Any]:
    operation = instruction.program.operations[event.operation]
    integer = instruction.is_integer
    rows = []
    for name, numbers in event.written.items():
        cuts = (event.cuts or {}).get(name, (None,) * len(numbers))
        for index, (number, cut) in enumerate(zip(numbers, cuts, strict=True)):
            row: dict[str, Any] = {
                "register": name,
                "index": index,
                "value": describe(number, integer),
                "significand": significand_text(number, integer),
                "exponent": None if number.kind != Kind.FINITE or integer else number.exponent,
            }
            # A number of one product keeps its k: operations can take some of k only.
            if name in ("products", "a", "b") and len(numbers) == len(operation.k_index):
                row["k"] = operation.k_index[index]
            if cut is not None:
                row |= {"shift": cut.shift, "lost": lost_bits(cut)}
            rows.append(row)
    return {
        "operation": event.operation,
        "algorithm": operation.algorithm,
        "seed": operation.seed,
        "step": event.step.op,
        "max_exponents": [e for e in event.max_exponents if e is not None],
        "rows": rows,
        **({"raised": raised_in(event, instruction)} if instruction.status else {}),
        "result": None if event.code is None else _hex(event.code, operation.out_format),
    }


def raised_in(event: Event, instruction: Instruction) -> list[str]:
    """The status flags of the unit that a step raises."""
    return [name for name in instruction.status if name in event.raised]
