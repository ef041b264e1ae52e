"""Units without arithmetic: a wire from an operand to the result, c that is only rounded, a constant.

docs/diagnosis.md lists the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from golden.identify.wiring import Wire, distinct, without_products
from golden.instruction import Instruction
from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands
from golden.vectors.word import Field, WordLayout

_WEIGHT = 0.9
"""What says all of a unit comes before what says a part of it."""


def constant(ins: Instruction, code: int) -> Wire:
    """A result that never changes."""
    dtype = ins.formats["d"].dtype
    text = f"a result that is always {code:#x}"
    return Wire(
        "result-constant", text, result=lambda codes: np.full(codes.shape, code, dtype), weight=_WEIGHT
    )


def bare_wires(ins: Instruction) -> list[Wire]:
    """Every wire from a port, or an element of one, to the result. Where c and d are the same integers, one
    from c is `products-ignored`."""
    d = ins.formats["d"]
    fields = [
        field
        for field in WordLayout.of(ins).operand_fields
        if field.name in ins.formats and (d.is_float or field.name != "c" or ins.formats["c"] != d)
    ]
    ends = [end for field in fields for end in _ends(ins, field)]
    return distinct([*(wire for end in ends for wire in _wires(d, end)), *_rounded(ins)])


@dataclass(frozen=True)
class _End:
    """Where a wire begins: at a whole port, or at one of its elements.

    Attributes:
        slug, text: what it is called.
        first, bits: which bits of the port.
        codes: these, (n,).
        fmt: their format; None: of a port of several elements.
    """

    slug: str
    text: str
    first: int
    bits: int
    codes: Callable[[Operands], Bits]
    fmt: Format | None = None


def _ends(ins: Instruction, field: Field) -> Iterator[_End]:
    fmt, name, slug = ins.formats[field.name], field.name, field.name.replace("_", "-")
    if field.elements > 1:
        yield _End(slug, name, 0, field.width, lambda operands: _lowest(field, operands))
    for j in range(field.elements):
        one = (f"{slug}-{j}", f"{name}[{j}]") if field.shape else (slug, name)

        def codes(operands: Operands, at: int = j) -> Bits:
            return operands[name].reshape(-1, field.elements)[:, at]

        yield _End(*one, j * field.bits, field.bits, codes, fmt)


def _lowest(field: Field, operands: Operands) -> Bits:
    """The lowest 64 bits of a port."""
    words = WordLayout("dot", (replace(field, lsb=0),)).pack_operands({field.name: operands[field.name]})
    padded = np.zeros((len(words), 8), np.uint8)
    padded[:, : words.shape[1]] = words[:, :8]
    return padded.view("<u8")[:, 0]


def _wires(d: Format, end: _End) -> Iterator[Wire]:
    """The bits as they are; of fewer bits than the result has also with the others elsewhere."""
    above, ones = np.uint64(max(d.bits - end.bits, 0)), np.uint64((1 << d.bits) - 1)

    def wire(kind: str, where: str, codes: Callable[[Bits], Bits], does: object) -> Wire:
        answer = lambda _unit, operands: (codes(end.codes(operands).astype(np.uint64)) & ones).astype(d.dtype)  # noqa: E731
        text = f"a wire from {where}"
        return Wire(f"result-is-{end.slug}{kind}", text, answer=answer, weight=_WEIGHT, does=does)

    if end.bits > d.bits:
        where = f"the lowest {d.bits} bits of {end.text} to d"
    else:
        where = f"{end.text} to d: its bits as they are{', zeros above' * bool(above)}"
    yield wire(
        "", where, lambda bits: bits, ("bits", end.slug.split("-")[0], end.first, min(end.bits, d.bits))
    )
    if above and end.fmt is not None and end.fmt.is_float:
        yield wire("-high", f"{end.text} to the high bits of d", lambda bits: bits << above, None)
    elif above and end.fmt is not None and end.fmt.signed:
        sign = np.uint64(1 << (end.bits - 1))
        extended = lambda bits: (bits ^ sign) - sign  # noqa: E731
        yield wire("-extended", f"{end.text} to d, its sign extended", extended, None)


def _rounded(ins: Instruction) -> Iterator[Wire]:
    """c in the format of the result, with what a converter does and a sum does not: a zero keeps its sign,
    and a NaN its sign and its upper bits."""
    c, d = ins.formats["c"], ins.formats["d"]
    if "c" in ins.absent or c == d or not (c.has_negative_zero and d.has_negative_zero):
        return
    none, minus, plus = without_products(ins), d.dtype.type(1 << d.sign_shift), d.dtype.type(0)

    def rounded(unit: Instruction, operands: Operands) -> Bits:
        codes, signs = unit.dot(**none(operands)), operands["c"] >> c.dtype.type(c.sign_shift)
        return np.where(codes & ~minus == 0, np.where(signs, minus, plus), codes)

    text = "c alone, rounded to d"
    yield Wire("result-is-c-rounded", text, answer=rounded, weight=_WEIGHT)
    if c.specials == d.specials == "ieee":
        kept = lambda unit, operands: _nans_kept(c, d, operands["c"], rounded(unit, operands))  # noqa: E731
        yield Wire("result-is-c-rounded-nan-kept", f"{text}, a NaN as it is", answer=kept, weight=_WEIGHT)


def _nans_kept(c: Format, d: Format, given: Bits, rounded: Bits) -> Bits:
    """The results with each NaN of c in its own sign and with its upper bits, quiet."""
    shift = (c.fraction_bits + c.ignored_low) - (d.fraction_bits + d.ignored_low)
    below = given.astype(np.uint64) & np.uint64((1 << c.sign_shift) - 1)
    moved = below >> np.uint64(shift) if shift > 0 else below << np.uint64(-shift)
    signs = (given.astype(np.uint64) >> np.uint64(c.sign_shift)) << np.uint64(d.sign_shift)
    top = d.fraction_bits + d.ignored_low
    quiet = (((1 << d.exponent_bits) - 1) << top) | 1 << (top - 1)
    nans = signs | np.uint64(quiet) | moved & np.uint64((1 << top) - 1)
    return np.where(np.isnan(to_float(c, given)), nans.astype(d.dtype), rounded)
