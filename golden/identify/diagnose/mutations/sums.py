"""Faults in the addition of terms: the width of the sum, the order of its terms, signs of zeros, carries and
negations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, assert_never

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array, in_register, low_bits, modulo, shl
from golden.identify.diagnose.datapath.signals import TotalSignals
from golden.identify.diagnose.mutations.mutation import (
    Apply,
    Mutation,
    change,
    fields,
    in_each,
    kinds_of,
    rewrite,
    sets,
    signal,
    with_operations,
)
from golden.identify.diagnose.mutations.words import MODE_NAMES, NEIGHBOURS, STEP_NAMES
from golden.identify.diagnose.policy import RANGES
from golden.model.instruction import Instruction
from golden.number.formats import Format, Kind
from golden.program.program import Operation
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
    format_of,
    grouping,
)
from golden.program.widths import operation_nodes

_total = partial(signal, "total")
_in_sum = partial(signal, "total", of=(Sum,))

# The program: widths, and where c and the products are added ------------------------------------------------


def program(ins: Instruction) -> Iterator[Mutation]:
    """Changes of the steps `sum` and `fma`, and of the order of k."""
    yield from _widths(ins)
    if ins.formats["d"].is_float:
        yield from _late_c()
    else:
        text = "the sum saturates after every product"
        yield change("saturate-per-step", text, _saturated(ins.formats["d"]))
    yield from _order(ins)


def _widths(ins: Instruction) -> Iterator[Mutation]:
    needed = 0
    for operation in ins.program.operations:
        for step, nodes in operation_nodes(ins, operation):
            if isinstance(step, Sum) and nodes:
                needed = max(needed, nodes[0].integer_bits + 1)
    fewer = 6 if ins.formats["d"].is_float else 22  # an integer sum may be as narrow as one product
    for width in range(needed - 1, max(needed - fewer, 1), -1):
        text = f"the sum has {width} integer bits (not {needed}) and loses its carry"
        apply = fields(Sum, when=lambda s: s.exponent is None, width=width)
        yield change(f"sum-width-{width}", text, apply, 1.1)


def _saturated(fmt: Format) -> Apply:
    """c plus one product after the other, clamped each time."""

    def rule(step: Step, _: Operation) -> Step | tuple[Step, ...]:
        if isinstance(step, Sum):
            return Additions(
                order="sequential",
                of=("c", "products"),
                to="d",
                group=step.group,
                format=fmt,
                rounding=step.rounding,
                overflow="saturate",
            )
        return () if isinstance(step, Round) else step

    return rewrite(rule)


def _late_c() -> Iterator[Mutation]:
    """c added to the rounded dot product instead of inside the sum."""
    for mode, suffix in (("nearest_even", ""), ("toward_zero", "-toward-zero")):
        text = f"c is added after the sum of the products was rounded ({MODE_NAMES[mode]})"
        yield change(f"c-after-sum{suffix}", text, rewrite(partial(_without_c, mode=mode)))


def _without_c(step: Step, operation: Operation, mode: str) -> Step | tuple[Step, ...]:
    if not operation.k_index or not any(len(s.of) > 1 and "c" in s.of for s in operation.steps_of(Align)):
        return step
    of = tuple(name for name in step.of if name != "c")
    match step:
        case Sum() if "c" in step.of:
            return replace(step, of=of, complement="none")
        case Align() if "c" in step.of:
            return _aligned_without_c(step, of)
        case Round(to="d", format=fmt, nan=nan):
            add = Additions(
                order="sequential", of=("partial", "c"), to="d", format=fmt, rounding=mode, nan=nan
            )
            return replace(step, to="partial"), add
        case Sum() | Align() | Round() | Multiply() | Scale() | Additions() | Normalize() | Fma():
            return step  # c is not among its terms
        case Flush() | HiddenBit() | Part() | Replace() | SpecialValues():
            return step  # c is flushed and looked at as before
        case _:
            assert_never(step)


def _aligned_without_c(step: Align, of: tuple[str, ...]) -> Align:
    """The alignment of the other registers."""
    bits, window, spared = (
        tuple(item for item in table if item[0] != "c")
        for table in (step.fraction_bits, step.window, step.spared)
    )
    named = (replace(one, of=tuple(name for name in one.of if name != "c")) for one in step.maximum)
    maximum = tuple(one for one in named if one.of)
    return replace(
        step, of=of, fraction_bits=bits, window=window, spared=spared, maximum=maximum, left_out=()
    )


# The program: the order of k --------------------------------------------------------------------------------


def _order(ins: Instruction) -> Iterator[Mutation]:
    for order, how in (("tree", "as a tree"), ("sequential", "one by one")):
        apply = fields(Additions, when=lambda s: len(s.of) == 1, order=order)
        yield change(f"order-{order}", f"products are added {how}", apply)
    count = ins.stored_k
    least = 1 if ins.formats["d"].is_float else 2  # integers one by one are `saturate-per-step`, or right
    for size in (size for size in range(least, count + 1) if count % size == 0):
        text = "all k in one step" if size == count else f"a chain of steps of k = {size}"
        yield change(f"chain-of-{size}", text, partial(_chained, size=size))
        if 1 < size < count:
            apply = partial(_chained, size=size, interleaved=True)
            yield change(f"chain-of-{size}-interleaved", f"{text}, interleaved", apply, 1.1)
    halves = _permuted(lambda k: k[len(k) // 2 :] + k[: len(k) // 2])
    yield change("chain-halves-swapped", "the halves of k are swapped in the chain", halves)
    yield change("k-reversed", "k descends in the chain", _permuted(lambda k: k[::-1]))
    yield from _k_in_another_order(ins)
    yield change("fma-unfused", "products are rounded before they are added", rewrite(_unfused))


def _k_in_another_order(ins: Instruction) -> Iterator[Mutation]:
    """For consecutive roundings: halves interleaved, and two elements or blocks of k exchanged."""
    count = len(_all_k(ins))
    rounding = bool(kinds_of(ins, Additions, Fma))
    if not (rounding or len(ins.program.operations) > 1) or count < 4 or not ins.formats["d"].is_float:
        return
    if count % 2 == 0:
        apply = _permuted(lambda k: tuple(x for pair in zip(k, k[count // 2 :], strict=False) for x in pair))
        yield change("k-halves-interleaved", "the order of k takes its halves in turn", apply, 1.1)
        apply = _permuted(lambda k: k[::2] + k[1::2])
        yield change("k-even-first", "the order of k takes even ones first", apply, 1.1)
    for size in (size for size in range(1, count // 2 + 1) if count % size == 0):
        blocks = count // size
        pairs = [(i, j) for i in range(blocks) for j in range(i + 1, blocks)]
        near = pairs if len(pairs) <= RANGES.swaps else [(i, j) for i, j in pairs if j == i + 1]
        for i, j in near if blocks > 2 else ():
            what = f"k = {i} and {j}" if size == 1 else f"blocks {i} and {j} of {size} elements of k"
            slug = f"k-{i}-and-{j}-swapped" if size == 1 else f"k-blocks-of-{size}-{i}-and-{j}-swapped"
            apply = _permuted(partial(_swapped, size=size, one=i, other=j))
            yield change(slug, f"{what} change places in the order of k", apply, 1.15)


def _swapped(k: tuple[int, ...], size: int, one: int, other: int) -> tuple[int, ...]:
    """With two blocks exchanged."""
    blocks = [k[i : i + size] for i in range(0, len(k), size)]
    blocks[one], blocks[other] = blocks[other], blocks[one]
    return tuple(number for block in blocks for number in block)


def _all_k(ins: Instruction) -> tuple[int, ...]:
    return tuple(k for operation in ins.program.operations for k in operation.k_index)


def _is_chain(operations: tuple[Operation, ...]) -> bool:
    """Whether all operations run the same steps, each from the result before it."""
    seeds = ["c", *(operation.to for operation in operations[:-1])]
    return all(
        operation.steps == operations[0].steps
        and operation.seed == seed
        and operation.k_index
        and not operation.addends
        for operation, seed in zip(operations, seeds, strict=True)
    )


def _chained(ins: Instruction, size: int, interleaved: bool = False) -> Instruction | None:
    """The same steps over slices of k of another size."""
    operations, k = ins.program.operations, _all_k(ins)
    if not _is_chain(operations):
        return None
    count = len(k) // size
    parts = [k[i::count] if interleaved else k[i * size : (i + 1) * size] for i in range(count)]
    first, last = operations[0], operations[-1]
    if [operation.k_index for operation in operations] == parts:
        return None
    if any(group is not None and group[1] > size for group in map(grouping, first.steps)):
        return None
    new = []
    for index, part in enumerate(parts):
        seed, fmt = (f"part{index - 1}", last.out_format) if index else ("c", first.seed_format)
        to = "d" if index == len(parts) - 1 else f"part{index}"
        new.append(replace(first, k_index=part, seed=seed, seed_format=fmt, to=to))
    return with_operations(ins, new)


def _permuted(order: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Apply:
    """Gives the products to the places of the program in another order."""

    def apply(ins: Instruction) -> Instruction | None:
        old = _all_k(ins)
        places = dict(zip(old, order(old), strict=True))
        return with_operations(
            ins, (replace(o, k_index=tuple(places[k] for k in o.k_index)) for o in ins.program.operations)
        )

    return apply


def _unfused(step: Step, _: Operation) -> Step | tuple[Step, ...]:
    if not isinstance(step, Fma) or step.start != "c" or step.group is not None:
        return step
    fmt, mode, nan = step.format, step.rounding, step.nan
    multiply = Multiply(to="products", format=fmt, rounding=mode, nan=nan, flush=step.flush)
    add = Additions(order="sequential", of=("c", "products"), to=step.to, format=fmt, rounding=mode, nan=nan)
    return multiply, add


# The signals of the adders ----------------------------------------------------------------------------------


def signals(ins: Instruction) -> Iterator[Mutation]:
    """Bits that sums of floats lose, signs of sums that are zero, and integer sums that are clamped."""
    if not ins.formats["d"].is_float:
        yield from _integer_totals(ins)
        return
    if kinds_of(ins, Sum):
        yield from _negations(ins)
        if kinds_of(ins, Align):
            yield from _aligned(ins)
        else:
            yield from _short_register(ins)
    yield from in_each(kinds_of(ins, Sum, Additions, Fma), _zero_signs, STEP_NAMES)
    yield from in_each(kinds_of(ins, Additions, Fma), partial(_carries, ins), STEP_NAMES)


def _aligned(ins: Instruction) -> Iterator[Mutation]:
    """Sums of aligned terms: their exponent, and negative sums that stay in two's complement."""
    for late, slug, word in NEIGHBOURS:
        text = f"the sum gets the largest exponent of the vector {word}"
        yield _in_sum(f"exponent-of-vector-{slug}", text, partial(_take_exponent, late=late), in_order=True)
    text = "the sum gets the exponent 0, not the largest one of its terms"
    yield _in_sum("exponent-always-0", text, lambda s: _move(s, -s.exponent))
    bits = [n for step in ins.program.steps_of(Align) for _, n in step.fraction_bits]
    for width in range(max(bits) + 2, max(bits) + 10):
        text = f"a negative sum is not negated: the word of {width} bits is taken for its magnitude"
        rule = sets(total=lambda s, n=width: np.where(s.total < 0, -modulo(s.total, n), s.total))
        yield _in_sum(f"negative-sum-kept-{width}", text, rule)
    for places in range(RANGES.carries):
        text = f"the leading one of a sum is not seen from 2^{places} times the largest exponent up"
        yield _in_sum(f"sum-top-plus-{places}", text, partial(_lose_top, places=places))


def _lose_top(s: TotalSignals, places: int) -> None:
    """The leading one is searched only in the bits that the terms have, and is shifted out with the carries.
    If no lower bit is one, nothing is shifted."""
    magnitude = np.abs(s.total)
    kept: Array = low_bits(magnitude, np.maximum(s.exponent + places - s.lsb, 0))
    kept = np.where((kept == 0) & ~s.sticky, magnitude, kept)
    s.total = np.where(s.total < 0, -kept, kept)


def _carries(ins: Instruction, kind: type[Step]) -> Iterator[Mutation]:
    """IEEE additions whose register ends at the leading bit of the larger term."""
    precision = max(fmt.fraction_bits for s in ins.program.steps_of(kind) if (fmt := format_of(s)))
    words = {0: "", 1: " (with one guard bit and a sticky bit)", 2: " (with two guard bits and a sticky bit)"}
    for guards, word in words.items():
        text = f"loses the carry of the sum: its register is one bit short{word}"
        rule = partial(_lose_carry, places=precision + guards if guards else None)
        yield _total(f"sum-carry-lost{f'-guards-{guards}' * bool(guards)}", text, rule)


def _lose_carry(s: TotalSignals, places: int | None) -> None:
    """The remaining bits include some that the rounding after a carry would not read: in a register of
    `places` bits below the leading one, all lower bits are one sticky bit."""
    magnitude = low_bits(np.abs(s.total), np.maximum(s.exponent + 1 - s.lsb, 0))
    if places is not None:
        cut = np.maximum(s.exponent - places - s.lsb, 0)
        below = low_bits(magnitude, cut)
        sticky = shl((below != 0).astype(object), np.maximum(cut - 1, 0))
        magnitude = magnitude - below + np.where(cut > 0, sticky, 0)
    s.zero_sign = np.where(s.total == 0, s.zero_sign, s.total < 0)
    s.total = np.where(s.total < 0, -magnitude, magnitude)


_Masks = dict[str, tuple[str, Callable[[TotalSignals], Array]]]
_OF_ZEROS: _Masks = {
    "positive": ("as +0", lambda s: np.zeros_like(s.zero_sign, np.bool_)),
    "negative": ("as -0", lambda s: np.ones_like(s.zero_sign, np.bool_)),
    "sign-of-first": ("with the sign of the first", lambda s: s.terms.sign[:, [0]]),
    "sign-of-last": ("with the sign of the last", lambda s: s.terms.sign[:, [-1]]),
    "negative-if-any": ("as -0 where any of them is negative", lambda s: s.terms.sign.any(1, keepdims=True)),
    "negative-if-all": ("as -0 where all of them are negative", lambda s: s.terms.sign.all(1, keepdims=True)),
    "negative-if-odd": (
        "as -0 where an odd number of them is negative",
        lambda s: (s.terms.sign.sum(1, keepdims=True) & 1).astype(np.bool_),
    ),
}
"""Wrong signs of a sum that is zero."""
_WHERE_ZERO: _Masks = {
    "zeros": ("zeros alone", lambda s: ~s.terms.finite.any(axis=1, keepdims=True)),
    "cancelled": ("numbers that cancel", lambda s: s.terms.finite.any(axis=1, keepdims=True)),
}
_ANY_ZERO = {
    "positive": "as +0, whatever it adds",
    "negative": "as -0, whatever it adds",
    "sign-of-first": "the sign of the first number that it adds",
    "sign-of-last": "the sign of the last number that it adds",
    "negative-if-any": "as -0 where any number that it adds is negative",
}


def _zero_signs(kind: type[Step]) -> Iterator[Mutation]:
    for rule, text in _ANY_ZERO.items():
        its = _OF_ZEROS[rule][1]
        yield _total(f"zero-sum-{rule}", f"gives an exact zero {text}", partial(_sign_zero, its=its))
    for slug, (what, here) in _WHERE_ZERO.items():
        for rule, (text, its) in _OF_ZEROS.items():
            said = f"gives the sum of {what} {text}"
            yield _total(f"{slug}-sum-{rule}", said, partial(_sign_zero, its=its, here=here), 1.05)


def _sign_zero(
    s: TotalSignals,
    its: Callable[[TotalSignals], Array],
    here: Callable[[TotalSignals], Array] = lambda s: np.True_,
) -> None:
    """Also if the unit's rounding makes each zero positive: in RTL that is one place. A sum with a sticky bit
    is no exact zero."""
    there = here(s)
    s.zero_sign, s.signed_zero = np.where(s.sticky, s.zero_sign, np.where(there, its(s), s.zero_sign)), there


def _negations(ins: Instruction) -> Iterator[Mutation]:
    text = "a negative sum is inverted to a magnitude, without the one of a negation"
    yield _in_sum("sum-ones-complement", text, _invert_register, 1.0)
    if kinds_of(ins, Align):
        text = "a negative sum is inverted to a magnitude, without the one, in the aligned terms' last place"
        rule = sets(total=lambda s: np.where(s.total < 0, s.total + 1, s.total))
        yield _in_sum("sum-ones-complement-aligned", text, rule)
    if any(step.cut == "sticky_or" for step in ins.program.steps_of(Align)):
        text = (
            "the sticky bit lies below the signed sum, not below its magnitude: where the sum is negative it "
            "makes the magnitude smaller"
        )
        yield _in_sum("sticky-negated", text, lambda s: _add_below(s, s.sticky & (s.total < 0)), 1.0)
        text = "the sticky bit makes the magnitude of every sum smaller, not larger"
        yield _in_sum("sticky-against-sum", text, lambda s: _add_below(s, s.sticky & (s.total != 0)))


def _short_register(ins: Instruction) -> Iterator[Mutation]:
    """A fixed-point register for exact sums that ends too low: it wraps."""
    a, b, c = (ins.formats[name] for name in "abc")
    if not (a.is_float and b.is_float and c.is_float):
        return
    with_c = any("c" in step.of for step in ins.program.steps_of(Sum))
    top = max(a.max_exponent + b.max_exponent + 1, c.max_exponent if with_c else 0) + ins.k.bit_length() + 2
    for place in range(top, top - RANGES.register, -1):
        text = f"the register of the sum ends with a sign bit at 2^{place}, and wraps"
        rule = sets(total=lambda s, n=place: in_register(s.total, np.maximum(n + 1 - s.lsb, 0)))
        yield _in_sum(f"sum-wraps-at-{place}", text, rule)


def _invert_register(s: TotalSignals) -> None:
    """One's complement in a register that holds every sum exactly: a negative sum is one unit of its last
    place higher."""
    if s.register_lsb is None:
        return
    unit = np.left_shift(1, np.maximum(s.lsb - s.register_lsb, 0).astype(object))
    total = s.total * unit
    s.lsb = np.minimum(s.lsb, s.register_lsb)
    s.total = np.where(s.total < 0, total + 1, total)


def _add_below(s: TotalSignals, there: Any) -> None:
    """Reduces the magnitude of these sums by one in the place below the last."""
    s.total = np.where(there, s.total * 2 + np.where(s.total < 0, 1, -1), s.total)
    s.lsb, s.sticky = s.lsb - there.astype(np.int64), s.sticky & ~there


_FAR = 1 << 12
"""An exponent below all others: that of a vector of zeros."""


def _take_exponent(s: TotalSignals, late: int) -> None:
    """The largest exponent of another vector: a register too many or too few next to the sum."""
    there = s.terms.kind != Kind.ZERO
    own = np.where(there, s.terms.exponent, -_FAR).max(axis=1, keepdims=True)
    _move(s, np.roll(own, late, axis=0) - s.exponent)


def _move(s: TotalSignals, by: Array) -> None:
    s.exponent, s.lsb = s.exponent + by, s.lsb + by


# Integers ---------------------------------------------------------------------------------------------------


def _integer_totals(ins: Instruction) -> Iterator[Mutation]:
    """The sum of the products in too few bits, before c is added; and a clamp that always acts."""
    for slug, low, high in (("", True, True), ("negative-", True, False), ("positive-", False, True)):
        text = f"every {slug.replace('-', ' ')}sum becomes the largest or the least number"
        rule = partial(_saturate, largest=ins.formats["d"].largest, low=low, high=high)
        yield _total(f"{slug}always-saturated", text, rule)
    if any(step.overflow == "saturate" for step in ins.program.steps_of(Round)):
        yield from _clamps(ins.formats["d"])
    if not any("c" in step.of and len(step.of) > 1 for step in ins.program.steps_of(Sum)):
        return
    widest = ins.formats["a"].integer_bits + ins.formats["b"].integer_bits + max(ins.k - 1, 1).bit_length()
    for bits in range(widest + 1, max(widest - 6, 2), -1):
        text = f"the sum of the products has {bits} bits and wraps, before c is added"
        yield _total(f"products-sum-width-{bits}", text, partial(_hold_products, bits=bits, signed=True))
        text = f"the sum of the products, {bits} bits, loses its sign: zeros stand above it before c is added"
        yield _total(f"products-sum-unsigned-{bits}", text, partial(_hold_products, bits=bits, signed=False))


def _clamps(fmt: Format) -> Iterator[Mutation]:
    """Clamps whose comparison is off by one, that read too few upper bits, or that give another value."""
    ends = {"upper": (fmt.largest, 1), "lower": (-(1 << fmt.integer_bits - 1) if fmt.signed else 0, -1)}
    for name, other in (("upper", "lower"), ("lower", "upper")):
        end, beyond = ends[name]
        what, near = (
            ("above the largest", "below the largest")
            if beyond > 0
            else ("below the least", "above the least")
        )
        late = lambda s, n=end + beyond: s.total == n  # noqa: E731
        text = f"a sum that is one {what} number is not clamped: it wraps"
        yield _total(f"clamp-{name}-one-late", text, _replacing(late, fmt), 1.0)
        early = lambda s, n=end - beyond: s.total == n  # noqa: E731
        text = f"a sum that is one {near} number is clamped"
        yield _total(f"clamp-{name}-one-early", text, _replacing(early, fmt, end), 1.0)
        past = lambda s, e=end, b=beyond: (s.total - e) * b > 0  # noqa: E731
        for slug, word, value in (
            ("other-end", "the other end of the range", ends[other][0]),
            ("zero", "0", 0),
            ("wraps", "its low bits", None),
        ):
            text = f"a sum {what} number becomes {word}"
            yield _total(f"clamp-{name}-{slug}", text, _replacing(past, fmt, value))
    for more in range(1, RANGES.unseen + 1):
        place = fmt.integer_bits - fmt.signed + more
        unseen = lambda s, n=1 << place: (s.total < n) & (s.total >= -n * fmt.signed)  # noqa: E731
        text = f"an overflow is seen from 2^{place} up alone: what is less wraps"
        yield _total(f"clamp-from-2-to-{place}", text, _replacing(unseen, fmt))


def _replacing(
    there: Callable[[TotalSignals], Array], fmt: Format, value: int | None = None
) -> Callable[[TotalSignals], None]:
    """Replaces some sums by a value; None: by the bits of a result that hold them."""

    def wrapped(total: Array) -> Array:
        return (
            in_register(total, np.asarray(fmt.integer_bits))
            if fmt.signed
            else modulo(total, fmt.integer_bits)
        )

    return sets(total=lambda s: np.where(there(s), wrapped(s.total) if value is None else value, s.total))


def _saturate(s: TotalSignals, largest: int, low: bool, high: bool) -> None:
    limited = np.where((s.total < 0) & low, -largest - 1, s.total)
    s.total = np.where((s.total >= 0) & high, largest, limited)


def _hold_products(s: TotalSignals, bits: int, signed: bool) -> None:
    mine = (s.owner != "c") & s.terms.finite
    value = np.where(s.terms.sign, -s.terms.significand, s.terms.significand)
    products = np.where(mine, value, 0).sum(axis=1, keepdims=True)
    s.total = s.total - products + (in_register(products, bits) if signed else modulo(products, bits))
