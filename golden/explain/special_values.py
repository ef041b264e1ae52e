"""The questions about special values that a reader asks first, as operands, and their executed answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from golden import stimuli
from golden.explain.trace import describe_code
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.signature import FIRST_COLUMNS


def special_values(ins: Instruction) -> list[dict[str, Any]]:
    """Runs the reference model on the questions that a reader asks first; rows that a format cannot
    express are left out."""
    rows, ins = [], ins.stateless
    for question, operands in special_cases(ins):
        code = ins.reference_dot(**operands)
        digits = (ins.formats["d"].bits + 3) // 4
        rows.append(
            {"case": question, "d": f"0x{code:0{digits}x}", "value": describe_code(ins.formats["d"], code)}
        )
    return rows


def special_cases(ins: Instruction) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each question that the formats can express, and the operands (as `ins.dot` takes them) that
    ask it; of a unit that keeps its accumulator as `ins.stateless.dot` takes them."""
    ins = ins.stateless
    operation = ins.program.bit_operation
    if ins.absent:
        yield from _without(ins)
        return
    for question, a, b, c, scale in _cases(ins) if operation is None else _bit_cases(ins, operation.upper()):
        if None not in (*a, *b, c, scale):
            yield question, _operands(ins, a, b, c, scale)


def _cases(ins: Instruction) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...], Any, Any]]:
    """(question, first a codes, first b codes, c code, NaN scale or 0):
    everything else is zero; None: not expressible."""
    fa, fb, fc = (ins.formats[name] for name in "abc")
    one_a, one_b, one_c = stimuli.one(fa), stimuli.one(fb), stimuli.one(fc)
    minus_a, minus_c, minus_zero_a, minus_zero_c = (
        _negative(f, x) for f, x in ((fa, one_a), (fc, one_c), (fa, 0), (fc, 0))
    )
    k, least_c = ins.stored_k, 1 << fc.ignored_low
    # Special values of factors: which NaN comes out, and what opposite infinities give.
    if fa.is_float:
        yield "a NaN in a", (fa.nan,), (one_b,), 0, 0
        yield "a NaN in b", (one_a,), (fb.nan,), 0, 0
        yield "inf * 0", (fa.infinity,), (0,), 0, 0
        yield "inf * 1", (fa.infinity,), (one_b,), 0, 0
        yield (
            "inf * 1 + (-inf) * 1",
            (fa.infinity, _negative(fa, fa.infinity)) if k > 1 else (None,),
            (one_b, one_b),
            0,
            0,
        )
        yield "inf * 1 + c = -inf", (fa.infinity,), (one_b,), _negative(fc, fc.infinity), 0
    # Special values of c, and zeros of both signs, where the products add nothing.
    if fc.is_float:
        payload = None if fc.nan is None or fc.fraction_bits < 3 else fc.nan | least_c
        yield "c = a quiet NaN with other payload bits", (0,), (0,), payload, 0
        yield "c = a signalling NaN", (0,), (0,), None if fc.infinity is None else fc.infinity | least_c, 0
        yield "c = -inf, products zero", (0,), (0,), _negative(fc, fc.infinity), 0
        yield "c = -0, products +0", (0,), (0,), minus_zero_c, 0
        yield "c = -0, products -0", (minus_zero_a,) * k, (0,) * k, minus_zero_c, 0
        yield "c = least subnormal, products zero", (0,), (0,), least_c, 0
    # Ordinary numbers: the sign of a sum that cancels, and both ends of the formats.
    yield "1 * 1 + c = -1", (one_a,), (one_b,), minus_c, 0
    yield "(-1) * 1 + c = 0", (minus_a,), (one_b,), 0, 0
    yield "all a and b largest, c = 0", (fa.largest,) * k, (fb.largest,) * k, 0, 0
    yield "all a and b largest, c = largest", (fa.largest,) * k, (fb.largest,) * k, fc.largest, 0
    yield "least a * least b, c = 0", (1 << fa.ignored_low,), (1 << fb.ignored_low,), 0, 0
    if ins.scale_block is not None:
        yield "a NaN scale, all data zero", (0,), (0,), 0, ins.formats["scale_a"].nan


def _without(ins: Instruction) -> Iterator[tuple[str, dict[str, Any]]]:
    """The questions of a unit without b or without c: values of the operands that it has."""
    fa, other = ins.formats["a"], next((name for name in "bc" if name not in ins.absent), None)
    fb, sign = (ins.formats[other] if other else fa), {"b": "*", "c": "+"}.get(other or "", "")
    x, y = _edges(fa), _edges(fb)
    pairs = [
        *(("NaN", "1"), ("1", "NaN"), ("inf", "0"), ("inf", "1"), ("inf", "-inf"), ("0", "-0")),
        *(("-0", "-0"), ("1", "-1"), ("largest", "largest"), ("least", "least"), ("least", "0")),
    ]
    for first, second in pairs if other else ((name, "") for name in x):
        codes = {"a": x[first]} | ({other: y[second]} if other else {})
        if None not in codes.values():
            operands = {
                name: np.zeros(shape, ins.code_format(name).dtype)
                for name, shape in ins.operand_shapes(matrices=False).items()
            }
            if ins.modes is not None:
                operands["mode"][...] = next(iter(ins.mode_units))
            for name, code in codes.items():
                operands[name].reshape(-1)[0] = code
            yield f"{first} {sign} {second}".strip(), operands


def _edges(fmt: Format) -> dict[str, int | None]:
    """Numbers that a reader asks for, by their names; None where the format has none."""
    one, infinity = stimuli.one(fmt), fmt.infinity
    return {
        "NaN": fmt.nan,
        "inf": infinity,
        "-inf": _negative(fmt, infinity),
        "0": 0 if fmt.has_zero else None,
        "-0": _negative(fmt, 0) if fmt.has_zero else None,
        "1": one,
        "-1": _negative(fmt, one),
        "largest": fmt.largest,
        "least": 1 << fmt.ignored_low,
    }


def _bit_cases(
    ins: Instruction, operation: str
) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...], Any, Any]]:
    """The questions as in `_cases`, of bits that are combined and counted."""
    c, every = ins.formats["c"], (1,) * ins.stored_k
    yield f"1 {operation} 1 + c = -1", (1,), (1,), _negative(c, stimuli.one(c)), 0
    yield f"1 {operation} 0 + c = 0", (1,), (0,), 0, 0
    yield "all bits of a and b set, c = 0", every, every, 0, 0
    yield "all bits of a set, none of b, c = 0", every, (0,), 0, 0
    yield "all bits of a and b set, c = largest", every, every, c.largest, 0
    yield "all bits of a set, none of b, c = largest", every, (0,), c.largest, 0


def _negative(fmt: Format, code: int | None) -> int | None:
    """The code of the negated number, None where the format has none (unsigned, or -0 is a NaN)."""
    if (
        code is None
        or not fmt.signed
        or (code == 0 and (not fmt.is_float or fmt.specials == "negative_zero_nan"))
    ):
        return None
    return int(stimuli.negate(fmt, np.array([code], fmt.dtype))[0])


def _operands(ins: Instruction, a: tuple[int, ...], b: tuple[int, ...], c: int, scale: int) -> dict[str, Any]:
    """Fills one dot product: products first, the rest zeros, scales one,
    metadata the lowest legal columns."""
    shapes = ins.operand_shapes(matrices=False)
    operands: dict[str, Any] = {
        name: np.zeros(shape, ins.code_format(name).dtype)
        for name, shape in shapes.items()
        if name != "metadata"
    }
    if ins.modes is not None:
        operands["mode"][...] = next(iter(ins.mode_units))
    operands["a"][: len(a)] = a
    columns: Any = np.arange(ins.stored_k)
    if ins.pattern is not None:
        operands["metadata"] = np.full(shapes["metadata"], FIRST_COLUMNS, np.uint8)
        columns = ins.pattern.columns(operands["metadata"])
    operands["b"][columns[: len(b)]] = b
    operands["c"] = np.array(c, ins.formats["c"].dtype)
    if ins.scale_block is not None:
        for name in ("scale_a", "scale_b"):
            operands[name][:] = stimuli.one(ins.formats[name])
        operands["scale_a"][0] = scale or operands["scale_a"][0]
    return operands
