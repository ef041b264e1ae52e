"""The steps of a program in words: what each does with its parameters filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from golden.number.formats import Format
from golden.number.rounding import ROUNDINGS
from golden.program.keys import Candidate
from golden.program.program import Program
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Part,
    Replace,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    overflow_of,
    rounding_of,
)

_MODES = {name: rounding.words for name, rounding in ROUNDINGS.items()}
_OVERFLOWS = {
    "infinity": "becomes infinity",
    "largest": "becomes the largest finite number",
    "ieee": "by IEEE 754 (depends on the mode)",
    "nan": "becomes NaN",
    "wrap": "wraps modulo 2**width",
    "saturate": "clamps to the range",
}
_ZERO_SIGNS = {
    "positive": "+0",
    "signed": "signed",
    "signed_underflow": "+0, but keeps its sign if a number underflows",
}
_CUTS = {
    "sticky_added": "one sticky bit below every term is set if a bit was cut",
    "sticky_or": "one sticky bit for all terms is set if a bit was cut; "
    "the next cut or rounding of the sum sees it",
}
_ZEROS = {
    "ignored": "zeros do not take part",
    "maximum": "zeros take part with their encoded exponent",
    "sticky": "zeros do not take part, but set the sticky bit if they are below all kept bits",
}
_TINY = {
    "subnormal_result": "",
    "unbounded": "below the least normal number after rounding with an unbounded exponent",
    "before_rounding": "below the least normal number before rounding",
}
_FLUSHES = {
    "none": "",
    "signed": "subnormal results become zero of their sign",
    "positive": "subnormal results become +0",
}
_HANDED = {True: "quieted", False: "as it is, signalling or not"}
_ORDERS = {"tree": "as a balanced tree of two-input additions", "sequential": "one after the other"}
_OPPOSITES = {
    "first": "with the sign of the first one if both signs occur",
    "last": "with the sign of the last one if both signs occur",
    "positive": "the positive one if both signs occur",
    "negative": "the negative one if both signs occur",
}


def is_integer(program: Program, formats: Mapping[str, Format]) -> bool:
    """Whether every number of a unit is an integer: registers have no exponents and nothing is rounded."""
    steps = [step for operation in program.operations for step in operation.steps]
    plain = all(step == Multiply(to=step.to, operation=step.operation) for step in program.steps_of(Multiply))
    known = all(isinstance(step, Multiply | Sum | Additions | Round) for step in steps)
    return plain and known and not any(fmt.is_float for fmt in formats.values())


def step_text(step: Step, integer: bool = False) -> str:
    """One step with its parameters filled in, as a sentence; integer: a step of an instruction that
    `is_integer`."""
    if integer:
        return _integer_text(step)
    match step:
        case Flush():
            return _flush_text(step)
        case HiddenBit():
            return _hidden_bit_text(step)
        case Part():
            return _part_text(step)
        case Replace():
            return _replace_text(step)
        case Multiply():
            return _multiply_text(step)
        case Scale():
            return _scale_text(step)
        case SpecialValues():
            return _special_text(step)
        case Align():
            return _align_text(step)
        case Sum():
            return _sum_text(step)
        case Additions():
            return _additions_text(step)
        case Normalize():
            return _normalize_text(step)
        case Fma():
            return _fma_text(step)
        case Round():
            return _round_text(step)
        case _:
            assert_never(step)


def _integer_text(step: Step) -> str:
    match step:
        case Multiply(operation="product"):
            return f"{step.to} = a * b, exact."
        case Additions():
            result = _clamped_or_wrapped(step.overflow, step.format)
            what = f"{step.to} = sum of {_names(step.of)}{_group_text(step)}, {_ORDERS[step.order]}"
            return f"{what}, each sum {result}."
        case Round():
            result = _clamped_or_wrapped(step.overflow, step.format)
            name = "" if step.overflow == "saturate" else f" ({step.format.name})"
            return f"{step.to} = {_names(step.of)} {result}{name}."
        case _:
            return step_text(step)


def _clamped_or_wrapped(overflow: str, fmt: Format) -> str:
    if overflow == "saturate":
        return f"clamped to the range of {fmt.name}"
    return f"taken modulo 2**{fmt.integer_bits}"


def _names(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _group_text(step: Align | Sum | Additions | Fma) -> str:
    if step.group is None:
        return ""
    kind, size = step.group
    return (
        f" in groups of {size} neighbours"
        if kind == "contiguous"
        else f" in {size} interleaved groups (k modulo {size})"
    )


def _flushed_text(step: Multiply | Additions | Fma | Round) -> str:
    tiny = _TINY[step.tiny]
    if step.flush == "none":
        return f"; tiny results are {tiny}" if tiny else ""
    flush = "positive" if zero_drops_flushed_sign(step) else step.flush
    return f"; {_FLUSHES[flush]}{f' ({tiny})' if tiny else ''}"


def zero_drops_flushed_sign(step: Step) -> bool:
    """Whether a `round` says that a flushed result keeps its sign, and that no zero does: the second
    holds."""
    return isinstance(step, Round) and (step.flush, step.zero) == ("signed", "positive")


def _nan_text(step: Multiply | Additions | Fma | Round) -> str:
    return "" if step.nan is None else f"; a NaN is {step.nan:#x}"


def _flush_text(step: Flush) -> str:
    if step.sign == "positive":
        return f"Subnormal and zero {_names(step.of)} become +0."
    return f"Subnormal {_names(step.of)} become zero of their sign."


def _hidden_bit_text(step: HiddenBit) -> str:
    zeros = "; zeros get it as well" if step.zeros == "set" else ""
    return f"Subnormal {_names(step.of)} get the hidden bit of normal numbers{zeros}."


def _part_text(step: Part) -> str:
    last = step.first + step.bits - 1
    where = f"place {step.first}" if step.bits == 1 else f"places {step.first} to {last}"
    return f"Of {_names(step.of)} read {where} of the significand alone (the hidden bit is place 0)."


def _replace_text(step: Replace) -> str:
    unit = f"2**(e - {step.places})"
    return (
        f"{_names(step.of)} of {step.value} times {unit} becomes {step.by} times {unit} (e is its exponent)."
    )


def _zero_times_infinity_text(step: Multiply | Fma) -> str:
    return "" if step.zero_times_infinity == "nan" else f"; zero times infinity is {step.zero_times_infinity}"


def _multiply_text(step: Multiply) -> str:
    bits = step.operation != "product"
    what = f"a {step.operation.upper()} b, bit by bit" if bits else "a * b"
    what = f"-({what})" if step.negate in ("product", "both") else what
    text = f"{step.to} = {what}" if bits else f"{step.to} = {what}, exact"
    if step.format is not None:
        flush = _flushed_text(step)
        text = (
            f"{step.to} = {what}, rounded to {step.format.name} "
            f"{_MODES[step.rounding]}{flush}{_nan_text(step)}"
        )
    elif step.normalize:
        text += ", normalised to a significand in [1, 2)"
    elif not bits:
        text += ", not normalised (exponent e_a + e_b)"
    if step.overflow_exponent is not None:
        text += f"; 2**{step.overflow_exponent} and above becomes infinity"
    minus = "; c changes its sign" if step.negate in ("c", "both") else ""
    return f"{text}{_zero_times_infinity_text(step)}{minus}."


def _scale_text(step: Scale) -> str:
    if step.power is not None:
        return f"Multiply {_names(step.of)} by 2**{step.power}, exact."
    if step.by != "both":
        return f"Multiply {_names(step.of)} by the block scale of {step.by}, exact; its exponent is added."
    return (
        f"Multiply {_names(step.of)} by the product of the two block scales, exact; the scale exponents "
        "are added."
    )


def _special_text(step: SpecialValues) -> str:
    nan = f"the NaN {(step.nan or 0):#x}{_causes_text(step)}"
    *others, last = (_ONE_OF.get(name, name) for name in step.of)
    terms = f"{', '.join(others)} or {last}" if others else last
    product = ", any product is infinity times 0" if "products" in step.of else ""
    if step.opposite_infinities != "nan":
        return (
            f"If any {terms} is NaN{product.replace(',', ' or', 1)}, d is {nan}. Infinities give an "
            f"infinity, {_OPPOSITES[step.opposite_infinities]}."
        )
    return (
        f"If any {terms} is NaN{product}, or infinities of both signs meet, d is {nan}. If all infinities "
        "have one sign, d is that infinity. Otherwise continue."
    )


_ONE_OF = {"products": "product", "groups": "group", "addends": "addend", "scales": "scale"}
"""A term of a register of several."""


_CAUSES = {
    "a": "a NaN in a",
    "b": "a NaN in b",
    "factor": "a NaN factor",
    "c": "a NaN in c",
    "invalid_product": "infinity times zero",
    "opposite_products": "products of infinities of both signs",
    "opposite_infinities": "infinities of both signs",
}


def _causes_text(step: SpecialValues) -> str:
    if not step.nans:
        return ""
    words = (
        f"{_CAUSES[cause]} {f'hands it on, {_HANDED[step.quieted]}' if word is None else f'gives {word:#x}'}"
        for cause, word in step.nans
    )
    return f" (first of these that applies: {', '.join(words)})"


def _target_text(step: Align, floor: str) -> str:
    if step.exponent is not None:
        return f"the exponent {step.exponent}"
    if step.maximum:
        return f"the largest of {', '.join(map(_candidate_text, step.maximum))}"
    return f"their largest exponent{floor} ({_ZEROS[step.zeros]})"


def _candidate_text(one: Candidate) -> str:
    what = "the place of the leading one" if one.leading else "the exponent"
    least = f", at least {one.least}," if one.least is not None else ""
    plus = f" {'+' if one.plus > 0 else '-'} {abs(one.plus)}" if one.plus else ""
    return f"{what} of {_names(one.of)}{least}{plus}"


def _roundings_text(step: Align) -> str:
    """How bits below the last place are rounded, register by register where they differ."""
    if isinstance(step.rounding, str):
        return _MODES[step.rounding]
    return ", ".join(f"{_MODES[rounding_of(step, name)]} for {name}" for name in step.of)


def _align_text(step: Align) -> str:
    bits = dict(step.fraction_bits)
    widths = str(next(iter(bits.values())))
    if len(set(bits.values())) > 1:
        widths = ", ".join(f"{value} for {name}" for name, value in bits.items())
    floor = f", at least {step.floor}" if step.floor is not None else ""
    text = (
        f"Align {_names(step.of)}{_group_text(step)} to {_target_text(step, floor)}; "
        f"fraction bits kept: {widths}; bits below round {_roundings_text(step)}"
    )
    if step.cut != "dropped":
        gap = f" (the {step.sticky_gap} bits right below the kept ones are not seen)"
        text += f"; {_CUTS[step.cut]}{gap if step.sticky_gap else ''}"
    if step.underflow_exponent is not None:
        text += f"; if the exponent is {step.underflow_exponent} or less, all terms become zero"
    for name, window in step.window:
        text += f"; {name} more than {window} below the largest exponent counts as zero"
    for name, least in step.spared:
        text += f"; a negative {name} below a last bit of more than 2**{least} is zero"
    for name, rule in step.left_out:
        text += f"; {name} does not enter the maximum and is {rule} if it is above"
    if step.shift_limit is not None:
        text += f"; a shift of more than {step.shift_limit} counts as {step.shift_limit}"
    return text + "."


def _sum_text(step: Sum) -> str:
    fixed = f", as fixed point with exponent {step.exponent}" if step.exponent is not None else ""
    wraps = (
        f"; the register has {step.width} integer bits and {step.overflow}s" if step.width is not None else ""
    )
    if step.complement == "c":
        wraps += "; terms of another sign than c are subtracted in one's complement"
    cancelled = "; a sum of zero loses its exponent" if step.cancelled == "zero" else ""
    minus = ", a zero sum of addends of both signs is -0" if step.rounding == "down" else ""
    what = f"{step.to} = sum of {_names(step.of)}{_group_text(step)}"
    return f"{what}, exact{fixed}{wraps}{cancelled}{minus}."


def _first_nan_text(step: Additions) -> str:
    return f"; the first NaN of two is handed on, {_HANDED[step.quieted]}" if step.first_nan else ""


def _additions_text(step: Additions) -> str:
    what = f"{step.to} = sum of {_names(step.of)}{_group_text(step)}, {_ORDERS[step.order]}"
    clamp = ", clamped to its range" if step.overflow == "saturate" else ""
    return (
        f"{what}, each addition rounded to {step.format.name} {_MODES[step.rounding]}{clamp}"
        f"{_flushed_text(step)}{_first_nan_text(step)}"
        f"{_nan_text(step)}."
    )


def _normalize_text(step: Normalize) -> str:
    table = dict(step.fraction_bits)
    bits = ", ".join(str(value) for value in dict.fromkeys(table.values()))
    if len(set(table.values())) > 1:
        bits = ", ".join(f"{value} of {name}" for name, value in table.items())
    least = f", exponent at least {step.min_exponent}" if step.min_exponent is not None else ""
    return f"Normalise {_names(step.of)}{least}, keep {bits} fraction bits, round {_MODES[step.rounding]}."


def _fma_text(step: Fma) -> str:
    start = {"c": "from c", "zero": "from +0", "product": "from the first product, rounded"}[step.start]
    name = step.format.name
    flush = _flushed_text(step)
    order = (
        f"; the first NaN among {', '.join(step.nan_order)} is handed on, {_HANDED[step.quieted]}"
        if step.nan_order
        else ""
    )
    return (
        f"{step.to} = chain of fused multiply-adds {start}{_group_text(step)}, k ascending, each rounded to "
        f"{name} "
        f"{_MODES[step.rounding]}{flush}{order}{_nan_text(step)}{_zero_times_infinity_text(step)}."
    )


def _overflow_text(step: Round) -> str:
    rule = overflow_of(step)
    why = "" if rule == step.overflow else f" ({step.format.name} has no infinity)"
    return f"{_OVERFLOWS[rule]}{why}"


def _round_text(step: Round) -> str:
    name = step.format.name
    bits = f", {step.result_fraction_bits} fraction bits" if step.result_fraction_bits is not None else ""
    flush = _flushed_text(step)
    sign = _ZERO_SIGNS[step.zero]
    gap = f"; the {step.sticky_gap} bits right below the round bit are not seen" if step.sticky_gap else ""
    if step.sticky == "left_out":
        gap = "; only the highest cut bit is seen"
    if step.random_bits is not None:
        gap = f"; {step.random}/{1 << step.random_bits} of the last place is added before the cut"
    carry = (
        "; a subnormal that rounds up to the least normal number becomes zero"
        if step.subnormal_carry == "lost"
        else ""
    )
    zero = f"; a zero is {sign}" if step.format.is_float else ""
    nan = _nan_text(step) if step.nan != step.format.nan else ""
    return (
        f"Round {_names(step.of)} to {name}{bits} {_MODES[step.rounding]}; overflow {_overflow_text(step)}"
        f"{gap}{zero}{flush}{carry}{nan} -> {step.to}."
    )
