"""The coverpoints of an instruction: their bins, which of them can be reached at all, and how vectors fall into them.

A coverpoint is a named list of bins. Whether a bin can be reached follows from the formats and the program (see
golden/spans.py); each `_..._points` function below states its rules. Coverpoints of a datapath are named after its
steps; equal operations of a chain share them, except for `largest exponent of operation i`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.formats import Format, Kind
from golden.instruction import Instruction
from golden.observe import (
    REMAINDERS,
    Aligned,
    Multiplied,
    Numbers,
    Rounded,
    Seen,
    Summed,
    bit_length,
    decode,
    groups_of,
    largest_significand,
    observe,
)
from golden.program import Operation, Step
from golden.spans import Span, of_format, one_product, rounded_total, spans_of

Array = npt.NDArray[Any]
Sample = tuple[str, Array]
"""A coverpoint's name and the bins that vectors fall into; -1 is none."""


@dataclass(frozen=True)
class Coverpoint:
    """One coverpoint: the part of the unit it looks at, its name and its bins with whether each can be reached."""

    part: str
    name: str
    bins: dict[str, bool]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the bins in order."""
        return tuple(self.bins)


def coverpoints(ins: Instruction) -> list[Coverpoint]:
    """All coverpoints of an instruction (vectors are dot products)."""
    points = _operand_points(ins) + _pair_points(ins) + _special_points(ins) + _result_points(ins)
    for index, operation in enumerate(ins.program.operations):
        if len(ins.program.operations) > 1:
            points += _slice_points(ins, index, operation)
        points = _united(points, _stage_points(ins, operation))
    return points


def _united(points: list[Coverpoint], more: list[Coverpoint]) -> list[Coverpoint]:
    """Equal operations share coverpoints: a bin is reachable where one of them can reach it."""
    known = {point.name: point for point in points}
    for point in more:
        old = known.get(point.name, point)
        known[point.name] = replace(point, bins={label: old.bins[label] or reach for label, reach in point.bins.items()})
    return list(known.values())


def samples(ins: Instruction, operands: dict[str, Array], d: Array) -> Iterator[Sample]:
    """Yields, for every coverpoint that the vectors meet, the bins that they fall into."""
    numbers = {name: decode(fmt, codes) for name, fmt, codes in _coded(ins, operands)}
    a, b, c = numbers["a"], numbers["b"], numbers["c"]
    if ins.pattern is not None:
        numbers["b"] = b = _select(b, ins.pattern.columns(operands["metadata"]))
    yield from _operand_samples(ins, operands, numbers)
    yield from _pair_samples(ins, a, b, c)
    yield from _special_samples(ins, numbers)
    yield from _result_samples(ins, d)
    for seen in observe(ins, operands):
        yield from _seen_samples(ins, seen)


def _coded(ins: Instruction, operands: dict[str, Array]) -> Iterator[tuple[str, Format, Array]]:
    for name, codes in operands.items():
        if name != "metadata":
            yield name, ins.formats[name], codes if codes.ndim == 2 else codes[:, None]


def _select(b: Numbers, columns: Array) -> Numbers:
    fields = (b.kind, b.sign, b.significand, b.lsb, b.exponent)
    return Numbers(*(np.take_along_axis(field, columns, axis=1) for field in fields))


# Classes of codes --------------------------------------------------------------------------------------------------------

CLASSES = (
    "+0",
    "-0",
    "least subnormal",
    "subnormal",
    "least normal",
    "normal",
    "largest",
    "infinity",
    "negative infinity",
    "quiet NaN",
    "signalling NaN",
)
COARSE = ("zero", "subnormal", "normal", "largest", "infinity", "NaN")
_TO_COARSE = np.array([0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5])
_INTEGER_CLASSES = ("zero", "one", "positive", "negative", "minus one", "largest", "least")
_COARSE_INTEGER = ("zero", "positive", "negative", "largest", "least")
_INTEGER_TO_COARSE = np.array([0, 1, 1, 2, 2, 3, 4])


def class_bins(fmt: Format) -> dict[str, bool]:
    """Classes of a format's codes, and whether it has them."""
    if not fmt.is_float:
        wide = fmt.integer_bits > 2
        signed = [fmt.signed and wide, fmt.signed and wide]
        reach = [True, wide or not fmt.signed, wide, signed[0], signed[1], wide or fmt.signed, fmt.signed]
        return dict(zip(_INTEGER_CLASSES, reach, strict=True))
    minus_zero = fmt.signed and fmt.has_zero and fmt.specials != "negative_zero_nan"
    finite = fmt.has_zero
    infinite, nan = fmt.infinity is not None, fmt.nan is not None
    binades = fmt.max_exponent - fmt.min_exponent
    between = binades > 1 or (binades + 1 << fmt.fraction_bits) > 3
    reach = [
        fmt.has_zero,
        minus_zero,
        finite and fmt.fraction_bits > 0,
        finite and fmt.fraction_bits > 1,
        True,
        between,
        True,
        infinite,
        infinite,
        nan,
        fmt.specials == "ieee" and fmt.fraction_bits > 1,
    ]
    return dict(zip(CLASSES, reach, strict=True))


def classify(fmt: Format, numbers: Numbers, codes: Array, dropped: int = 0) -> Array:
    """Index into CLASSES (integers: the integer classes) of every code; the low `dropped` fraction bits are always zero."""
    significand, exponent, kind = numbers.significand.astype(np.int64), numbers.exponent, numbers.kind
    if not fmt.is_float:
        return _classify_integer(fmt, numbers)
    hidden, unit = np.int64(1) << fmt.fraction_bits, 1 << dropped
    top = largest_significand(fmt) & -unit
    classes = np.where(significand < hidden, 3, 5)
    classes = np.where((significand == unit) & (hidden > unit), 2, classes)
    classes = np.where((significand == hidden) & (exponent == fmt.min_exponent), 4, classes)
    classes = np.where((significand == top) & (exponent == fmt.max_exponent), 6, classes)
    if fmt.fraction_bits == 0:
        classes = np.where(exponent == fmt.max_exponent, 6, np.where(exponent == fmt.min_exponent, 4, 5))
    classes = np.where(kind == Kind.ZERO, numbers.sign, classes)
    classes = np.where(kind == Kind.INFINITY, 7 + numbers.sign, classes)
    quiet = np.ones(kind.shape, bool)
    if fmt.specials == "ieee":
        shift = np.uint64(fmt.ignored_low + fmt.fraction_bits - 1)
        quiet = (codes.astype(np.uint64) >> shift) & np.uint64(1) == 1
    return np.asarray(np.where(kind == Kind.NAN, np.where(quiet, 9, 10), classes), np.int64)


def _classify_integer(fmt: Format, numbers: Numbers) -> Array:
    value = np.where(numbers.sign == 1, -numbers.significand, numbers.significand)
    classes = np.where(value > 0, 2, 3)
    if fmt.signed:
        classes = np.where(value == -1, 4, classes)
    classes = np.where(value == 1, 1, classes)
    classes = np.where(value == fmt.largest, 5, np.where(value == 0, 0, classes))
    if fmt.bits == 1:
        classes = np.where(value == 1, 1, classes)
    return np.where(value == -(1 << (fmt.integer_bits - 1)), 6, classes) if fmt.signed else classes


def _coarse(fmt: Format, classes: Array) -> Array:
    return np.asarray((_TO_COARSE if fmt.is_float else _INTEGER_TO_COARSE)[classes])


def _coarse_bins(fmt: Format) -> dict[str, bool]:
    labels, table = (COARSE, _TO_COARSE) if fmt.is_float else (_COARSE_INTEGER, _INTEGER_TO_COARSE)
    bins = dict.fromkeys(labels, False)
    for index, reach in enumerate(class_bins(fmt).values()):
        bins[labels[table[index]]] |= reach
    return bins


def _crossed(rows: dict[str, bool], columns: dict[str, bool]) -> dict[str, bool]:
    """A cross: reached where both bins can be (the two sides are independent)."""
    return {f"{r}, {c}": x and y for r, x in rows.items() for c, y in columns.items()}


# Operands ----------------------------------------------------------------------------------------------------------------


def _buckets(k: int) -> dict[str, bool]:
    return {"first": True, "middle": k > 2, "last": k > 1}


def _bucket_of(k: int) -> Array:
    return np.array([0] + [1] * (k - 2) + [2] if k > 1 else [0])


def _operand_points(ins: Instruction) -> list[Coverpoint]:
    """Every class that the format has is reachable at every position; so is every legal metadata nibble in every chunk."""
    points = []
    for name in ("a", "b", "scale_a", "scale_b"):
        if name in ins.formats:
            length = ins.operand_shapes(False)[name][0] if name != "b" else ins.stored_k
            bins = _crossed(class_bins(ins.formats[name]), _buckets(length))
            points.append(Coverpoint("operands", f"class of {name}, position", bins))
    points.append(Coverpoint("operands", "class of c", class_bins(ins.formats["c"])))
    for name, fmt in ins.formats.items():
        if name != "d" and fmt.ignored_low + fmt.ignored_high:
            points.append(Coverpoint("operands", f"ignored bits of {name}", {"clear": True, "set": True}))
    if ins.pattern is not None:
        nibbles = {f"{nibble:#x}": True for nibble in ins.pattern.legal(ins.ordered_metadata)}
        chunks = {f"chunk {i}": True for i in range(ins.operand_shapes(False)["metadata"][0])}
        points.append(Coverpoint("operands", "metadata, chunk", _crossed(nibbles, chunks)))
    return points


def _operand_samples(ins: Instruction, operands: dict[str, Array], numbers: dict[str, Numbers]) -> Iterator[Sample]:
    for name, fmt, codes in _coded(ins, operands):
        if name == "b" and ins.pattern is not None:
            codes = np.take_along_axis(codes, ins.pattern.columns(operands["metadata"]), axis=1)
        classes = classify(fmt, numbers[name], codes)
        if name == "c":
            yield "class of c", classes
        else:
            yield f"class of {name}, position", classes * 3 + _bucket_of(codes.shape[1])
        if fmt.ignored_low + fmt.ignored_high:
            ignored = ~(((1 << (fmt.bits - fmt.ignored_high)) - 1) & -(1 << fmt.ignored_low)) & ((1 << fmt.bits) - 1)
            yield f"ignored bits of {name}", (codes & fmt.dtype.type(ignored) != 0).astype(np.int64)
    if ins.pattern is not None:
        legal = ins.pattern.legal(ins.ordered_metadata)
        nibble = np.searchsorted(np.array(legal), operands["metadata"])
        yield "metadata, chunk", nibble * operands["metadata"].shape[1] + np.arange(operands["metadata"].shape[1])


_COUNTS = ("none", "one", "two", "some", "all but one", "all")


def _pair_points(ins: Instruction) -> list[Coverpoint]:
    """Factors are independent of each other, so crosses of reachable classes are reachable; counts depend on k alone."""
    a, b, c = (ins.formats[name] for name in "abc")
    k = ins.stored_k
    signs = {"++": True, "+-": b.signed, "-+": a.signed, "--": a.signed and b.signed}
    counts = dict(zip(_COUNTS, (True, k > 2, k > 3, k > 4, k > 1, True), strict=True))
    zeros = {"+0": True, "-0": _negative_zero(a, b, c), "mixed": _mixed_zero(a, b, c)}
    return [
        Coverpoint("operands", "class of a, class of b", _crossed(_coarse_bins(a), _coarse_bins(b))),
        Coverpoint("operands", "signs of a and b", signs),
        Coverpoint("operands", "non-zero products", counts),
        Coverpoint("operands", "the only non-zero product", {f"k = {i}": True for i in range(k)}),
        Coverpoint("operands", "class of c, non-zero products", _crossed(_coarse_bins(c), {"none": True, "some": True})),
        Coverpoint("operands", "signs where all addends are zero", zeros),
    ]


def _signed_zero(fmt: Format) -> bool:
    return fmt.is_float and fmt.signed and fmt.has_zero and fmt.specials != "negative_zero_nan"


def _negative_zero_product(a: Format, b: Format) -> bool:
    """A product is -0 when a zero meets a factor of the other sign."""
    return a.is_float and b.is_float and (_signed_zero(a) or _signed_zero(b) or a.signed or b.signed)


def _negative_zero(a: Format, b: Format, c: Format) -> bool:
    return _negative_zero_product(a, b) and _signed_zero(c)


def _mixed_zero(a: Format, b: Format, c: Format) -> bool:
    return _negative_zero_product(a, b) or _signed_zero(c)


def _pair_samples(ins: Instruction, a: Numbers, b: Numbers, c: Numbers) -> Iterator[Sample]:
    formats = ins.formats
    coarse_a, coarse_b = (_coarse_of(formats[name], x) for name, x in (("a", a), ("b", b)))
    yield "class of a, class of b", coarse_a * len(_coarse_bins(formats["b"])) + coarse_b
    yield "signs of a and b", a.sign.astype(np.int64) * 2 + b.sign
    there = (a.kind != Kind.ZERO) & (b.kind != Kind.ZERO)
    count, k = there.sum(axis=1), ins.stored_k
    named = np.select([count == 0, count == k, count == k - 1, count == 1, count == 2], [0, 5, 4, 1, 2], 3)
    yield "non-zero products", named
    yield "the only non-zero product", np.where(count == 1, there.argmax(axis=1), -1)
    yield "class of c, non-zero products", _coarse_of(formats["c"], c)[:, 0] * 2 + (count > 0)
    if formats["a"].is_float:
        sign = np.concatenate([a.sign ^ b.sign, c.sign], axis=1)
        special = (a.kind >= Kind.INFINITY) | (b.kind >= Kind.INFINITY)
        zero = (count == 0) & (c.kind[:, 0] == Kind.ZERO) & ~special.any(axis=1)
        kind = np.where((sign == 0).all(axis=1), 0, np.where((sign == 1).all(axis=1), 1, 2))
        yield "signs where all addends are zero", np.where(zero, kind, -1)
    else:
        yield "signs where all addends are zero", np.where((count == 0) & (c.kind[:, 0] == Kind.ZERO), 0, -1)


def _coarse_of(fmt: Format, numbers: Numbers) -> Array:
    return _coarse(fmt, classify(fmt, numbers, np.zeros(numbers.kind.shape, np.uint64)))


_CAUSES = (
    "NaN in a",
    "NaN in b",
    "NaN in c",
    "NaN scale",
    "zero times infinity",
    "infinite products of both signs",
    "infinite product against infinite c",
    "infinite product",
    "infinite c",
)


def _special_points(ins: Instruction) -> list[Coverpoint]:
    """What the formats can express: NaN and infinity codes, and a second sign for infinities that meet."""
    a, b, c = (ins.formats[name] for name in "abc")
    if not a.is_float:
        return []
    product = a.infinity is not None or b.infinity is not None
    reach = [
        a.nan is not None,
        b.nan is not None,
        c.nan is not None,
        any(ins.formats[name].nan is not None for name in ("scale_a", "scale_b") if name in ins.formats),
        (a.infinity is not None and b.has_zero) or (b.infinity is not None and a.has_zero),
        product and ins.stored_k > 1,
        product and c.infinity is not None,
        product,
        c.infinity is not None,
    ]
    return [Coverpoint("special values", "the only cause", dict(zip(_CAUSES, reach, strict=True)))]


def _special_samples(ins: Instruction, numbers: dict[str, Numbers]) -> Iterator[Sample]:
    if not ins.formats["a"].is_float:
        return
    a, b, c = numbers["a"], numbers["b"], numbers["c"]
    nans = [(numbers[name].kind == Kind.NAN).any(axis=1) for name in "abc"]
    scales = [(numbers[name].kind == Kind.NAN).any(axis=1) for name in ("scale_a", "scale_b") if name in numbers]
    nans.append(np.logical_or.reduce(scales) if scales else np.zeros(len(c.kind), bool))
    infinite = (a.kind == Kind.INFINITY) | (b.kind == Kind.INFINITY)
    invalid = infinite & ((a.kind == Kind.ZERO) | (b.kind == Kind.ZERO))
    nans.append(invalid.any(axis=1))
    plus, minus = ((infinite & ~invalid & (a.sign ^ b.sign == s)).any(axis=1) for s in (0, 1))
    nans.append(plus & minus)
    c_infinite, c_sign = c.kind[:, 0] == Kind.INFINITY, c.sign[:, 0]
    nans.append(~(plus & minus) & c_infinite & np.where(c_sign == 1, plus, minus))
    causes = np.stack(nans, axis=1)
    count = causes.sum(axis=1)
    quiet = np.where(plus | minus, 7, np.where(c_infinite, 8, -1))
    yield "the only cause", np.where(count == 1, causes.argmax(axis=1), np.where(count == 0, quiet, -1))


# Results -----------------------------------------------------------------------------------------------------------------


def _kept_bits(ins: Instruction) -> int:
    step = ins.program.operations[-1].steps[-1]
    kept = step.result_fraction_bits
    return ins.formats["d"].fraction_bits if kept is None else kept


def _final_total(ins: Instruction) -> tuple[Step, Span]:
    """The last step and the span of the exact value that it rounds."""
    operation = ins.program.operations[-1]
    step, registers = spans_of(ins, operation)[-1]
    return step, rounded_total(step, registers)


def _negative_zero_result(ins: Instruction) -> bool:
    """The last step can answer -0: from addends that can all be -0, from any zero in mode "down", or from a tiny negative sum."""
    operation = ins.program.operations[-1]
    step, registers = spans_of(ins, operation)[-1]
    if step.op == "round":
        return step.zero == "signed"
    if step.rounding == "down" or _tiny_sum(step, ins.formats["d"], registers):
        return True
    if step.op == "fma":
        cleared = step.start == "zero" or (step.start == "c" and "c" in _positive_zeros(operation))
    else:
        cleared = not _positive_zeros(operation).isdisjoint(step.of)
    earlier = [o.steps[-1] for o in ins.program.operations if o.to in (*operation.addends, operation.seed)]
    return not cleared and all(last.op != "round" or last.zero == "signed" for last in earlier)


def _positive_zeros(operation: Operation) -> set[str]:
    """Registers whose zeros are all +0 in the last step: a positive flush is the last that happens to them."""
    found: set[str] = set()
    for step in operation.steps[:-1]:
        if step.op == "flush" and step.flush == "positive":
            found.update(step.of)
        elif step.op in ("align", "normalize", "scale"):
            found.difference_update(step.of)
        found.discard(step.to)
    return found


def _tiny_sum(step: Step, fmt: Format, registers: dict[str, Span]) -> bool:
    """Whether the last sum can be a negative number that becomes -0, by its rounding or by its flush.

    Normal addends leave a subnormal sum where two of them are small enough to cancel so far.
    """
    total = rounded_total(step, registers)
    if step.flush == "none":
        return total.least < 0 and total.lsb < fmt.min_exponent - fmt.fraction_bits - (step.rounding == "nearest_away")
    if step.flush == "positive" or total.lsb >= fmt.min_exponent:
        return False
    spans = _addends(step, registers)
    small = sum(span.count for span in spans if span.low <= fmt.min_exponent + fmt.fraction_bits)
    return small > 1 or any(span.subnormal or span.low < fmt.min_exponent for span in spans)


def _result_points(ins: Instruction) -> list[Coverpoint]:
    """From the span of the last exact total: how small and how large it can be decides which classes d can have."""
    fmt, (step, total) = ins.formats["d"], _final_total(ins)
    bins = class_bins(fmt)
    if not fmt.is_float:
        return [Coverpoint("result", "class of d", bins)]
    kept = _kept_bits(ins)
    unit = fmt.min_exponent - kept
    tiny = total.lsb < fmt.min_exponent and step.flush == "none"
    operands = [ins.formats[name] for name in "abc"]
    infinite = any(f.infinity is not None for f in operands) or overflows(total, fmt, kept, step)
    reach = {
        "-0": bins["-0"] and _negative_zero_result(ins),
        "least subnormal": tiny and total.lsb <= unit and kept > 0,
        "subnormal": tiny and kept > 1,
        "least normal": total.lsb <= fmt.min_exponent,
        "largest": total.greatest >= _largest(fmt, kept),
        "infinity": bins["infinity"] and infinite,
        "negative infinity": bins["infinity"] and infinite,
        "quiet NaN": bins["quiet NaN"],
        "signalling NaN": False,
    }
    return [Coverpoint("result", "class of d", bins | reach)]


def _largest(fmt: Format, kept: int) -> Fraction:
    dropped = fmt.fraction_bits - kept
    return Fraction(largest_significand(fmt) >> dropped << dropped) * Fraction(2) ** (fmt.max_exponent - fmt.fraction_bits)


def overflows(total: Span, fmt: Format, kept: int, step: Step) -> bool:
    """Whether the largest total rounds past the format's largest number."""
    top, unit = _largest(fmt, kept), Fraction(2) ** (fmt.max_exponent - kept)
    mode = step.rounding
    if mode in ("nearest_even", "nearest_away"):
        return total.greatest >= top + unit / 2 or total.least <= -top - unit / 2
    if total.greatest >= top + unit or total.least <= -top - unit:
        return True
    return (mode == "up" and total.greatest > top) or (mode == "down" and total.least < -top)


def _result_samples(ins: Instruction, d: Array) -> Iterator[Sample]:
    fmt = ins.formats["d"]
    codes = d[:, None]
    dropped = fmt.fraction_bits - _kept_bits(ins) if fmt.is_float else 0
    yield "class of d", classify(fmt, decode(fmt, codes), codes, dropped)


# The datapath ------------------------------------------------------------------------------------------------------------


def _stage(operation: Operation, step: Step) -> str:
    registers = " and ".join(step.of) if step.op not in ("multiply", "fma") else "a and b"
    return f"{operation.algorithm}: {step.op} {registers}"


def _stage_points(ins: Instruction, operation: Operation) -> list[Coverpoint]:
    points: list[Coverpoint] = []
    for step, registers in spans_of(ins, operation):
        name = _stage(operation, step)
        if step.op in ("multiply", "fma"):
            points += _multiply_points(ins, name, step, registers)
        if step.op == "align":
            points += _align_points(ins, name, operation, step, registers)
        if step.op in ("sum", "fma"):
            points += _sum_points(name, step, registers)
        if step.op == "round" or step.format is not None:
            points += _round_points(name, operation, step, registers)
    return points


def _seen_samples(ins: Instruction, seen: Seen) -> Iterator[Sample]:
    operation = ins.program.operations[seen.operation]
    name = _stage(operation, seen.step)
    if isinstance(seen, Multiplied):
        yield from _multiply_samples(ins, name, seen)
    elif isinstance(seen, Aligned):
        yield from _align_samples(ins, name, seen)
    elif isinstance(seen, Summed):
        yield from _sum_samples(name, seen)
    else:
        yield from _round_samples(name, seen)


def _multiply_points(ins: Instruction, name: str, step: Step, registers: dict[str, Span]) -> list[Coverpoint]:
    """Below 1 needs a subnormal factor, 2 and more two factors of at least one fraction bit."""
    a, b = registers["a"], registers["b"]
    points = []
    if ins.formats["a"].is_float and a.count:
        carry = a.significand * b.significand >= 2
        bins = {"below 1": a.subnormal or b.subnormal, "1 to 2": True, "2 to 4": carry}
        points.append(Coverpoint("products", f"{name}: significand", bins))
    if step.overflow_exponent is not None:
        limit = Fraction(2) ** step.overflow_exponent
        reach = of_format(ins.formats["a"], 1).greatest * of_format(ins.formats["b"], 1).greatest >= limit
        points.append(Coverpoint("products", f"{name}: overflow", {"no": True, "yes": reach}))
    return points


def _multiply_samples(ins: Instruction, name: str, seen: Multiplied) -> Iterator[Sample]:
    if ins.formats["a"].is_float:
        one = seen.a.exponent - seen.a.lsb + seen.b.exponent - seen.b.lsb

        size = bit_length(seen.products.significand) - 1 - one
        finite = (seen.a.kind == Kind.FINITE) & (seen.b.kind == Kind.FINITE)
        yield f"{name}: significand", np.where(finite, np.clip(size, -1, 1) + 1, -1)
        if seen.step.overflow_exponent is not None:
            yield f"{name}: overflow", np.where(finite, seen.products.kind == Kind.INFINITY, -1)


def _owner_bins(step: Step, registers: dict[str, Span]) -> dict[str, bool]:
    """Who holds the largest exponent: a register whose range reaches the floor; two of them where the ranges overlap."""
    floor = -(1 << 40) if step.floor is None else step.floor
    spans = [registers[name] for name in step.of]
    bins = {"nothing": True, "the floor": any(span.low < floor for span in spans)}
    for name, span in zip(step.of, spans, strict=True):
        bins[f"one of {name}"] = span.high >= floor
        bins[f"several of {name}"] = span.high >= floor and _grouped_count(step, span) > 1
    overlap = len(spans) > 1 and min(s.high for s in spans) >= max(floor, *(s.low for s in spans))
    return bins | {"several registers": overlap}


def _grouped_count(step: Step, span: Span) -> int:

    return max(len(group) for group in groups_of(span.count, step.group))


def _slice_points(ins: Instruction, index: int, operation: Operation) -> list[Coverpoint]:
    for step, registers in spans_of(ins, operation):
        if step.op == "align":
            bins = _owner_bins(step, registers)
            return [Coverpoint("alignment", f"largest exponent of operation {index}", _of_slice(bins, registers))]
    return []


def _of_slice(bins: dict[str, bool], registers: dict[str, Span]) -> dict[str, bool]:
    """A seed that is always zero never holds the maximum."""
    if registers["c"].greatest == 0:
        return {label: reach and label not in ("one of c", "several registers") for label, reach in bins.items()}
    return bins


def _distances(fraction: int) -> list[tuple[str, int, int]]:
    """Bins of the alignment distance around the last kept bit F."""
    far = 1 << 40
    inner = [("0", 0, 0), ("1", 1, 1), (f"2..{fraction - 3}", 2, fraction - 3)] if fraction > 5 else [("0..", 0, fraction - 3)]
    edge = [(f"F{d:+d}" if d else "F", fraction + d, fraction + d) for d in range(-2, 3)]
    return [*inner, *edge, ("beyond F+2", fraction + 3, far)]


def _distance_name(ins: Instruction, name: str, register: str, fraction: int) -> str:
    """Alignments of one name that keep different numbers of bits have different bins, so a point each."""
    steps = ((o, step) for o in ins.program.operations for step in o.steps if step.op == "align")
    kept = {dict(step.fraction_bits).get(register) for o, step in steps if _stage(o, step) == name}
    return f"{name}: distance of {register}" + (f", F = {fraction}" if len(kept) > 1 else "")


def _align_points(ins: Instruction, name: str, operation: Operation, step: Step, registers: dict[str, Span]) -> list[Coverpoint]:
    """Distances: from 0 (or the floor's) to the farthest that the exponent ranges allow; cuts follow from the distances."""
    floor = -(1 << 40) if step.floor is None else step.floor
    points = [Coverpoint("alignment", f"{name}: largest exponent", _of_slice(_owner_bins(step, registers), registers))]
    for register, fraction in step.fraction_bits:
        span = registers[register]
        if span.greatest == span.least == 0:
            continue
        others = [registers[o].high for o in step.of if o != register or _grouped_count(step, span) > 1]
        most = max(*others, floor, span.high) - span.low if others or floor > span.low else 0
        least = max(floor - span.high, 0)
        bins = {label: low <= most and high >= least and low <= high for label, low, high in _distances(fraction)}
        points.append(Coverpoint("alignment", _distance_name(ins, name, register, fraction), bins))
        window = dict(step.window).get(register, 1 << 40)
        lost = most + span.depth > fraction
        gone = most > window or most + (span.depth if span.subnormal else 0) > fraction
        cut = {"nothing": True, "part": lost and span.depth > 0, "everything": gone}
        signs = {"+": span.greatest > 0, "-": span.least < 0}
        bins = _crossed(cut, signs)
        stays = {"down": "everything, -", "up": "everything, +"}.get(step.rounding)  # rounded away from zero, to one unit
        if stays and most <= window:
            bins[stays] = False
        points.append(Coverpoint("alignment", f"{name}: cut from {register}", bins))
        if span.cancels:
            points.append(Coverpoint("alignment", f"{name}: cancelled {register}", _cancelled_bins(step, registers, register)))
    if "products" in step.of and registers["products"].count == len(operation.k_index):
        everywhere = {f"k = {k}": registers["products"].high >= floor for k in range(ins.stored_k)}
        points.append(Coverpoint("alignment", "product alone at the largest exponent", everywhere))
    return points


def _cancelled_bins(step: Step, registers: dict[str, Span], register: str) -> dict[str, bool]:
    """A term that cancelled keeps its exponent: it can hold the maximum, or be below another register's."""
    span = registers[register]
    others = [registers[o].high for o in step.of if o != register or span.count > 1]
    below = bool(others) and max(others) > span.low
    floor = -(1 << 40) if step.floor is None else step.floor
    return {"alone at the largest exponent": span.high >= floor, "below it": below or floor > span.low}


def _align_samples(ins: Instruction, name: str, seen: Aligned) -> Iterator[Sample]:
    terms, maximum = seen.terms, seen.maximum
    owners = np.array(seen.owners)
    at_top = terms.finite & (terms.exponent == maximum)
    counts = {register: at_top[:, owners == register].sum(axis=1) for register in seen.step.of}
    holders = sum((count > 0).astype(np.int64) for count in counts.values())
    index = np.where(terms.finite.any(axis=1), 1, 0)
    for place, count in enumerate(counts.values()):
        index = np.where((count > 0) & (holders == 1), 2 + 2 * place + (count > 1), index)
    index = np.where(np.asarray(holders) > 1, 2 + 2 * len(counts), index)
    yield f"{name}: largest exponent", index
    first = next(step for step in ins.program.operations[seen.operation].steps if step.op == "align")
    if len(ins.program.operations) > 1 and seen.step is first:
        yield f"largest exponent of operation {seen.operation}", index
    for register, fraction in seen.step.fraction_bits:
        columns = owners == register
        if columns.any():
            yield from _distance_samples(ins, name, register, fraction, seen, columns, at_top)
    k_index = ins.program.operations[seen.operation].k_index
    if "products" in seen.step.of and np.sum(owners == "products") and len(seen.columns) >= 1:
        yield from _place_samples(seen, at_top, owners, k_index)


def _place_samples(seen: Aligned, at_top: Array, owners: Array, k_index: tuple[int, ...]) -> Iterator[Sample]:
    columns = np.array([k_index[i] if i < len(k_index) else 0 for i in seen.columns])
    alone = (at_top.sum(axis=1) == 1) & at_top[:, owners == "products"].any(axis=1)
    yield "product alone at the largest exponent", np.where(alone, columns[at_top.argmax(axis=1)], -1)


def _distance_samples(
    ins: Instruction, name: str, register: str, fraction: int, seen: Aligned, columns: Array, at_top: Array
) -> Iterator[Sample]:
    terms, maximum = seen.terms[columns], seen.maximum[:, columns]
    distance = maximum - terms.exponent
    edges = np.array([high for _, _, high in _distances(fraction)])
    yield _distance_name(ins, name, register, fraction), np.where(terms.nonzero, np.searchsorted(edges, distance), -1)
    lost, kept = seen.lost[:, columns], seen.kept[:, columns]
    cut = np.where(lost, np.where(kept, 1, 2), 0)
    yield f"{name}: cut from {register}", np.where(terms.nonzero, cut * 2 + terms.sign, -1)
    cancelled = terms.finite & ~terms.nonzero
    if cancelled.any():
        alone = at_top[:, columns] & (at_top.sum(axis=1, keepdims=True) == 1)
        below = distance > 0
        yield f"{name}: cancelled {register}", np.where(cancelled & alone, 0, np.where(cancelled & below, 1, -1))


_MOST_GROWTH = 16
_DEPTHS = ((1, 1), (2, 4), (5, 8), (9, 16), (17, 1 << 40))


def _growth(step: Step, registers: dict[str, Span]) -> int:
    """Integer bits that a sum of the largest significands at one exponent carries into; rounded sums have two terms."""
    significands = sorted((s.significand for s in _addends(step, registers) for _ in range(s.count)), reverse=True)
    exact = step.op == "sum" and step.order == "exact"
    size = max(len(group) for group in groups_of(len(significands), step.group)) if exact else 2
    return max(int(sum(significands[:size], Fraction(0))).bit_length() - 1, 0)


def _addends(step: Step, registers: dict[str, Span]) -> list[Span]:
    if step.op == "sum":
        return [registers[name] for name in step.of if registers[name].count]
    return [one_product(registers), registers["c"]]


def _sum_points(name: str, step: Step, registers: dict[str, Span]) -> list[Coverpoint]:
    """Signs by what the addends can be; growth up to the carry of the largest sum, cancellation down to the last kept bit."""
    spans = [span for span in _addends(step, registers) if span.greatest != 0 or span.least != 0]
    total = sum(span.count for span in spans)
    plus, minus = any(s.greatest > 0 for s in spans), any(s.least < 0 for s in spans)
    points = [
        Coverpoint(
            "sum",
            f"{name}: signs of the addends",
            {"no addend": True, "all positive": plus, "all negative": minus, "both": plus and minus and total > 1},
        )
    ]
    if all(s.depth == 0 and s.low == s.high for s in spans) or step.exponent is not None or not spans:
        return points
    growth = _growth(step, registers)
    depth = max(span.high for span in spans) - min(span.lsb for span in spans)
    if all(span.depth for span in spans) and step.op == "sum":
        depth = min(depth, max(span.depth for span in spans)) if step.order == "exact" else depth
    if _pairs_only(step, total):
        depth = min(depth, max(span.depth for span in spans) + 1)
    bins = {f"up by {i}": i <= growth for i in range(_MOST_GROWTH, 0, -1)} | {"same": True}
    bins |= {_depth_label(low, high): low <= depth for low, high in _DEPTHS}
    bins |= {"nothing left": plus and minus and total > 1}
    points.append(Coverpoint("sum", f"{name}: leading bit against the largest exponent", bins))
    return points


def _pairs_only(step: Step, total: int) -> bool:
    """Whether no more than two of the addends ever meet: what they leave is not below the last bits of the larger one."""
    return step.op == "sum" and max(len(group) for group in groups_of(total, step.group)) <= 2


def _depth_label(low: int, high: int) -> str:
    return f"down by {low}" if low == high else f"down by {low}..{high}" if high < 1 << 40 else f"down by {low} or more"


def _sum_samples(name: str, seen: Summed) -> Iterator[Sample]:

    terms, total = seen.terms, seen.total
    plus = (terms.nonzero & (terms.sign == 0)).any(axis=1)
    minus = (terms.nonzero & (terms.sign == 1)).any(axis=1)
    finite = (terms.kind <= Kind.FINITE).all(axis=1)
    yield f"{name}: signs of the addends", np.where(finite, plus + 2 * minus, -1)
    moved = bit_length(total.significand)[:, 0] - 1 + total.lsb[:, 0] - total.exponent[:, 0]
    edges = np.array([high for _, high in _DEPTHS])
    same = _MOST_GROWTH
    index = np.where(moved >= 0, same - np.minimum(moved, same), same + 1 + np.searchsorted(edges, -moved))
    live = finite & terms.nonzero.any(axis=1)
    gone = live & ~total.nonzero[:, 0]
    yield f"{name}: leading bit against the largest exponent", np.where(live, np.where(gone, same + 1 + len(_DEPTHS), index), -1)


def _round_points(name: str, operation: Operation, step: Step, registers: dict[str, Span]) -> list[Coverpoint]:
    fmt = step.format
    assert fmt is not None
    total = rounded_total(step, registers)
    if not fmt.is_float:
        above, below = total.greatest > fmt.largest, total.least < (-(1 << (fmt.integer_bits - 1)) if fmt.signed else 0)
        bins = {"in range": True, "largest": True, "least": True, "above": above, "below": below}
        return [Coverpoint("rounding", f"{name}: range", bins)]
    kept = fmt.fraction_bits if step.result_fraction_bits is None else step.result_fraction_bits
    outcomes = _outcomes(step, fmt, kept, total, _carry(step, registers))
    cut, tiny = total.depth + _carry(step, registers) - kept, fmt.min_exponent - kept - total.lsb
    return [
        Coverpoint("rounding", f"{name}: result and remainder", outcomes),
        Coverpoint("rounding", f"{name}: increment", _increments(step, cut, tiny)),
    ]


def _carry(step: Step, registers: dict[str, Span]) -> int:
    if step.op == "round":
        return max(int(registers[step.of[0]].significand).bit_length() - 1, 0)
    if step.op == "multiply":
        return int(registers["a"].significand * registers["b"].significand >= 2)
    return _growth(step, registers)


def _outcomes(step: Step, fmt: Format, kept: int, total: Span, carry: int) -> dict[str, bool]:
    """A remainder below or above half needs two cut bits, a tie one.

    Normal results cut what the total keeps below its leading bit beyond the format's bits; results at or below the least
    normal exponent cut what lies below the format's last place.
    """
    cut = total.depth + carry - kept
    tiny = fmt.min_exponent - kept - total.lsb
    needs = (0, 2, 1, 2)
    away = step.rounding in ("down", "up", "toward_zero") or step.flush != "none"
    to_zero = (True, step.rounding != "up" or total.least < 0, step.rounding != "nearest_away" or away, away)
    bins = {}
    for remainder, need, rounds in zip(REMAINDERS, needs, to_zero, strict=True):
        bins[f"zero, {remainder}"] = tiny >= need and rounds if need else True
    for remainder, need in zip(REMAINDERS, needs, strict=True):
        bins[f"subnormal, {remainder}"] = (
            total.lsb < fmt.min_exponent and (not need or tiny >= need) and step.flush == "none" and kept > 0
        )
    for remainder, need in zip(REMAINDERS, needs, strict=True):
        bins[f"normal, {remainder}"] = not need or cut >= need
    return bins | {"overflow": overflows(total, fmt, kept, step)}


def _increments(step: Step, cut: int, tiny: int) -> dict[str, bool]:
    """Rounding adds one in the nearest modes from one cut bit on, in the directed ones for one sign; never toward zero.

    A carry needs a total with one bit more than the result; `cut` and `tiny` are the bits that a normal and a tiny
    result cut at most.
    """
    rounds = step.rounding != "toward_zero"
    possible = rounds and cut >= 1
    even = step.rounding == "nearest_even"
    return {
        "none": True,
        "up": rounds and max(cut, tiny) >= 1,
        "up with a carry into the exponent": possible,
        "subnormal up to the least normal": rounds and tiny >= 1 and cut >= 0,
        "tie kept at even": even and cut >= 1,
        "tie up to even": even and cut >= 1,
    }


def _round_samples(name: str, seen: Rounded) -> Iterator[Sample]:
    fmt, before, result = seen.format, seen.before, seen.result
    finite = before.kind <= Kind.FINITE
    if not fmt.is_float:
        value = np.where(before.sign == 1, -before.significand, before.significand)
        low = -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0
        index = np.select([value > fmt.largest, value < low, value == fmt.largest, value == low], [3, 4, 1, 2], 0)
        yield f"{name}: range", index
        return
    leading = bit_length(before.significand) - 1 + before.lsb
    hidden = np.int64(1) << fmt.fraction_bits
    small = finite & before.nonzero & (leading < fmt.min_exponent)
    normal = (result.kind == Kind.FINITE) & (result.significand.astype(np.int64) >= hidden)
    outcome = np.where(result.kind == Kind.ZERO, 0, np.where(normal, 2, 1)) * 4 + seen.remainder
    yield f"{name}: result and remainder", np.where(finite & seen.overflow, 12, np.where(finite, outcome, -1))
    up = np.where(seen.increment & seen.carry, 2, np.where(seen.increment, 1, 0))
    up = np.where(small & normal, 3, up)
    yield f"{name}: increment", np.where(finite & before.nonzero, up, -1)
    if seen.step.rounding == "nearest_even":
        tie = (seen.remainder == 2) & finite & ~small
        yield f"{name}: increment", np.where(tie, np.where(seen.increment, 5, 4), -1)
