"""Coverpoints of the operands: classes by position, pairs that meet in a product, and causes of special
results."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from golden.cover.points.classes import accumulator_bins, class_bins, classify, coarse_bins, coarse_of
from golden.cover.points.point import Array, Coverpoint, Sample, crossed
from golden.cover.ranges import AccumulatorRange
from golden.model.instruction import Instruction
from golden.model.registers import Numbers, decode
from golden.number.formats import Format, Kind


def operand_points(ins: Instruction, held: AccumulatorRange | None = None) -> list[Coverpoint]:
    """Coverpoints of the operands: codes one by one, pairs of them, and the special values they make.

    Args:
        held: what c can be, of a unit that keeps its accumulator; None: any code.
    """
    c = accumulator_bins(ins.formats["c"], held)
    return _code_points(ins, c) + _pair_points(ins, c) + _alone_points(ins, held) + _special_points(ins, c)


def operand_samples(ins: Instruction, operands: dict[str, Array]) -> Iterator[Sample]:
    """The bins that the operands of vectors fall into."""
    if ins.pattern is not None:
        columns = ins.pattern.columns(operands["metadata"])
        operands = operands | {"b": np.take_along_axis(operands["b"], columns, axis=1)}
    numbers = {name: decode(fmt, codes) for name, fmt, codes in _coded(ins, operands)}
    yield from _code_samples(ins, operands, numbers)
    yield from _pair_samples(ins, numbers)
    yield from _special_samples(ins, numbers)


def _coded(ins: Instruction, operands: dict[str, Array]) -> Iterator[tuple[str, Format, Array]]:
    for name, codes in operands.items():
        if name != "metadata":
            yield name, ins.formats[name], codes if codes.ndim == 2 else codes[:, None]


def _buckets(k: int) -> dict[str, bool]:
    return {"first": True, "middle": k > 2, "last": k > 1}


def _bucket_of(k: int) -> Array:
    return np.array([0] + [1] * (k - 2) + [2] if k > 1 else [0])


def _code_points(ins: Instruction, c: dict[str, bool]) -> list[Coverpoint]:
    """Every class that the format has is reachable at every position; so is every legal metadata nibble in
    every chunk."""
    points = []
    for name in ("a", "b", "scale_a", "scale_b"):
        if name in ins.formats:
            length = ins.operand_shapes(False)[name][0] if name != "b" else ins.stored_k
            bins = crossed(class_bins(ins.formats[name]), _buckets(length))
            points.append(Coverpoint("operands", f"class of {name}, position", bins))
    points.append(Coverpoint("operands", "class of c", c))
    for name, fmt in ins.formats.items():
        if name != "d" and fmt.ignored:
            points.append(Coverpoint("operands", f"ignored bits of {name}", {"clear": True, "set": True}))
    if ins.pattern is not None:
        nibbles = {f"{nibble:#x}": True for nibble in ins.pattern.legal(ins.ordered_metadata)}
        chunks = {f"chunk {i}": True for i in range(ins.operand_shapes(False)["metadata"][0])}
        points.append(Coverpoint("operands", "metadata, chunk", crossed(nibbles, chunks)))
    return points


def _code_samples(
    ins: Instruction, operands: dict[str, Array], numbers: dict[str, Numbers]
) -> Iterator[Sample]:
    for name, fmt, codes in _coded(ins, operands):
        classes = classify(fmt, numbers[name], codes)
        if name == "c":
            yield "class of c", classes
        else:
            yield f"class of {name}, position", classes * 3 + _bucket_of(codes.shape[1])
        if fmt.ignored:
            yield f"ignored bits of {name}", (codes & fmt.dtype.type(fmt.ignored) != 0).astype(np.int64)
    if ins.pattern is not None:
        legal = ins.pattern.legal(ins.ordered_metadata)
        nibble = np.searchsorted(np.array(legal), operands["metadata"])
        yield (
            "metadata, chunk",
            nibble * operands["metadata"].shape[1] + np.arange(operands["metadata"].shape[1]),
        )


_NO_EXPONENT = -(1 << 20)
"""Below all exponents."""
_COUNTS = ("none", "one", "two", "some", "all but one", "all")


def _pair_points(ins: Instruction, c: dict[str, bool]) -> list[Coverpoint]:
    """Factors are independent of each other, so crosses of reachable classes are reachable; counts depend
    on k alone."""
    a, b = (ins.formats[name] for name in "ab")
    k = ins.stored_k
    signs = {"++": True, "+-": b.signed, "-+": a.signed, "--": a.signed and b.signed}
    counts = dict(zip(_COUNTS, (True, k > 2, k > 3, k > 4, k > 1, True), strict=True))
    products = _zero_product_signs(a, b)
    seeds = {sign for sign in _zero_signs(ins.formats["c"]) if not sign or c["-0"]}
    zeros = {
        "+0": 0 in products and 0 in seeds,
        "-0": 1 in products and 1 in seeds,
        "mixed": (len(products) == 2 and bool(seeds)) or (bool(products) and len(seeds) == 2),
    }
    return [
        Coverpoint("operands", "class of a, class of b", crossed(coarse_bins(a), coarse_bins(b))),
        Coverpoint("operands", "signs of a and b", signs),
        Coverpoint("operands", "non-zero products", counts),
        Coverpoint("operands", "the only non-zero product", {f"k = {i}": True for i in range(k)}),
        Coverpoint(
            "operands",
            "class of c, non-zero products",
            crossed(coarse_bins(ins.formats["c"], c), {"none": True, "some": True}),
        ),
        Coverpoint("operands", "signs where all addends are zero", zeros),
    ]


def _alone_points(ins: Instruction, held: AccumulatorRange | None) -> list[Coverpoint]:
    """What decides whether a number is there: the exponent of c where no product is, next to the fields
    of zeros and of infinities; and which factor of a zero product is the zero, where the other factor is
    larger than those of all products that are there. Which exponents a unit that keeps its accumulator can
    hold, its classes do not say."""
    points, own = [], ins.formats["c"]
    if own.is_float and held is None and own.exponent_bits > 1:
        fields = {f"field {field:#x}": True for field in _fields(own)}
        points.append(Coverpoint("operands", "class of c alone: exponent", fields))
    a, b = (ins.formats[name] for name in "ab")
    if a.is_float and b.is_float and ins.stored_k > 1:
        bins = {"a, beside the largest b": a.has_zero, "b, beside the largest a": b.has_zero}
        points.append(Coverpoint("operands", "zero factor of a product", bins))
    return points


def _fields(fmt: Format) -> list[int]:
    """Exponent fields of normal numbers that are one bit apart from all zeros or all ones."""
    ones = (1 << fmt.exponent_bits) - 1
    bits = [1 << bit for bit in range(fmt.exponent_bits)]
    normal = range(fmt.min_exponent + fmt.bias, fmt.max_exponent + fmt.bias + 1)
    return sorted({*bits, *(ones - bit for bit in bits)} & {*normal})


def _zero_signs(fmt: Format) -> set[int]:
    """The signs of a format's zeros."""
    return ({0, 1} if fmt.has_negative_zero else {0}) if fmt.has_zero else set()


def _zero_product_signs(a: Format, b: Format) -> set[int]:
    """The signs of the products that are zero; products of integers have none."""
    if not a.is_float:
        return {0}
    return {
        sign ^ other for x, y in ((a, b), (b, a)) for sign in _zero_signs(x) for other in {0, int(y.signed)}
    }


def _pair_samples(ins: Instruction, numbers: dict[str, Numbers]) -> Iterator[Sample]:
    formats, (a, b, c) = ins.formats, (numbers[name] for name in "abc")
    coarse_a, coarse_b = (coarse_of(formats[name], x) for name, x in (("a", a), ("b", b)))
    yield "class of a, class of b", coarse_a * len(coarse_bins(formats["b"])) + coarse_b
    yield "signs of a and b", a.sign.astype(np.int64) * 2 + b.sign
    there = (a.kind != Kind.ZERO) & (b.kind != Kind.ZERO)
    count, k = there.sum(axis=1), ins.stored_k
    named = np.select([count == 0, count == k, count == k - 1, count == 1, count == 2], [0, 5, 4, 1, 2], 3)
    yield "non-zero products", named
    yield "the only non-zero product", np.where(count == 1, there.argmax(axis=1), -1)
    yield "class of c, non-zero products", coarse_of(formats["c"], c)[:, 0] * 2 + (count > 0)
    if formats["c"].is_float:
        fields, normal = (
            np.array(_fields(formats["c"])),
            c.significand_low[:, 0] >> formats["c"].fraction_bits > 0,
        )
        own = c.exponent[:, 0] + formats["c"].bias
        at = np.minimum(np.searchsorted(fields, own), len(fields) - 1)
        met = c.finite[:, 0] & normal & (count == 0) & (fields[at] == own)
        yield "class of c alone: exponent", np.where(met, at, -1)
    if formats["a"].is_float and formats["b"].is_float:
        for number, (zero, other) in enumerate(((a, b), (b, a))):
            size = np.where(other.finite & other.nonzero, other.exponent, _NO_EXPONENT)
            most = np.where(there, size, _NO_EXPONENT).max(axis=1, keepdims=True)
            beyond = (zero.kind == Kind.ZERO) & (size > most) & (count > 0)[:, None]
            yield "zero factor of a product", np.where(beyond.any(axis=1), number, -1)
    if formats["a"].is_float:
        sign = np.concatenate([a.sign ^ b.sign, c.sign], axis=1)
        special = (a.kind >= Kind.INFINITY) | (b.kind >= Kind.INFINITY)
        zero = (count == 0) & (c.kind[:, 0] == Kind.ZERO) & ~special.any(axis=1)
        kind = np.where((sign == 0).all(axis=1), 0, np.where((sign == 1).all(axis=1), 1, 2))
        yield "signs where all addends are zero", np.where(zero, kind, -1)
    else:
        yield "signs where all addends are zero", np.where((count == 0) & (c.kind[:, 0] == Kind.ZERO), 0, -1)


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


def _special_points(ins: Instruction, c: dict[str, bool]) -> list[Coverpoint]:
    """What the formats can express: NaN and infinity codes, and a second sign for infinities that meet."""
    a, b = (ins.formats[name] for name in "ab")
    if not a.is_float:
        return []
    product = a.infinity is not None or b.infinity is not None
    classes = coarse_bins(ins.formats["c"], c)
    c_nan, c_infinite = classes.get("NaN", False), classes.get("infinity", False)
    reach = [
        a.nan is not None,
        b.nan is not None,
        c_nan,
        any(ins.formats[name].nan is not None for name in ("scale_a", "scale_b") if name in ins.formats),
        (a.infinity is not None and b.has_zero) or (b.infinity is not None and a.has_zero),
        product and ins.stored_k > 1,
        product and c_infinite,
        product,
        c_infinite,
    ]
    alone = Coverpoint("special values", "the only cause", dict(zip(_CAUSES, reach, strict=True)))
    minus = a.signed or b.signed
    each = [
        reach[_CAUSES.index("zero times infinity")],
        product,
        product and minus,
        a.nan is not None or b.nan is not None,
        c_infinite,
        c.get("negative infinity", False),
        c_nan,
        reach[_CAUSES.index("NaN scale")],
    ]
    pairs = {
        f"{_TWO[one]}, {_TWO[other]}": each[one]
        and each[other]
        and (ins.stored_k > 1 or other >= len(_OF_PRODUCTS))
        for one, other in _PAIRS
    }
    return [alone, Coverpoint("special values", "two causes", pairs)]


_OF_PRODUCTS = ("zero times infinity", "+infinite product", "-infinite product", "NaN factor")
_OF_C = ("+infinite c", "-infinite c", "NaN c")
_TWO = (*_OF_PRODUCTS, *_OF_C, "NaN scale")
_PAIRS = [  # c has one cause at most
    (one, other)
    for one, other in combinations(range(len(_TWO)), 2)
    if not {_TWO[one], _TWO[other]} <= set(_OF_C)
]


def _special_samples(ins: Instruction, numbers: dict[str, Numbers]) -> Iterator[Sample]:
    if not ins.formats["a"].is_float:
        return
    a, b, c = numbers["a"], numbers["b"], numbers["c"]
    nans = [(numbers[name].kind == Kind.NAN).any(axis=1) for name in "abc"]
    scales = [
        (numbers[name].kind == Kind.NAN).any(axis=1) for name in ("scale_a", "scale_b") if name in numbers
    ]
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
    nan = (a.kind == Kind.NAN) | (b.kind == Kind.NAN)
    signs = ((infinite & ~invalid & ~nan & (a.sign ^ b.sign == s)).any(axis=1) for s in (0, 1))
    of_c = (c_infinite & (c_sign == 0), c_infinite & (c_sign == 1), nans[2])
    two = np.stack([invalid.any(axis=1), *signs, nan.any(axis=1), *of_c, nans[3]], axis=1)
    first, last = two.argmax(axis=1), len(_TWO) - 1 - two[:, ::-1].argmax(axis=1)
    place = np.full((len(_TWO), len(_TWO)), -1)
    place[tuple(np.transpose(_PAIRS))] = np.arange(len(_PAIRS))
    yield "two causes", np.where(two.sum(axis=1) == 2, place[first, last], -1)
