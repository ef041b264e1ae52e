"""Faults of a datapath that no key of the schema says: every tap of golden/dissect/datapath.py that the
diagnosis tries on an instruction.

Each maker below names faults of one part of a datapath, with numbers in the ranges that its widths suggest.
None knows a particular unit; docs/diagnosis.md lists the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from golden.dissect.datapath import (
    CodeSignals,
    NormalizeSignals,
    OperandSignals,
    ProductSignals,
    RoundingSignals,
    ShiftSignals,
    SpecialSignals,
    Tap,
    TotalSignals,
    held,
    low_bits,
    runs,
)
from golden.instruction import Instruction
from golden.number.formats import Format, Kind
from golden.program.steps import (
    Additions,
    Align,
    Fma,
    Multiply,
    Normalize,
    Round,
    SpecialValues,
    Step,
    Sum,
    format_of,
)

_NAMES: dict[type[Step], str] = {
    Align: "the alignment",
    Additions: "each addition",
    Fma: "each multiply-add",
    Multiply: "each multiplication",
    Round: "the final rounding",
    Sum: "the sum",
}
_OTHERS = {"a": "b", "b": "a"}


def taps(ins: Instruction) -> list[Tap]:
    """Every fault of the datapath that `ins` can have; none where its steps do not run there."""
    if not runs(ins):
        return []
    makers = (_operands, _products, _specials, _shifts, _totals, _normalizing, _roundings, _codes)
    return [tap for maker in makers for tap in maker(ins)]


def _kinds(ins: Instruction, *wanted: type[Step]) -> list[type[Step]]:
    """Those kinds of steps that the program has."""
    steps = [step for operation in ins.program.operations for step in operation.steps]
    return [kind for kind in wanted if any(isinstance(step, kind) for step in steps)]


def _rounding_kinds(ins: Instruction) -> list[type[Step]]:
    """The kinds of steps that round to a float format."""
    found = []
    for kind in _kinds(ins, Multiply, Additions, Fma, Round):
        formats = [format_of(step) for step in ins.program.steps_of(kind)]
        if any(fmt is not None and fmt.is_float for fmt in formats):
            found.append(kind)
    return found


def _places(kinds: Iterable[type[Step]]) -> str:
    return " and ".join(_NAMES[kind] for kind in kinds)


def _slug(kind: type[Step], kinds: list[type[Step]]) -> str:
    """What tells the same fault in different steps apart."""
    return f"-in-{kind.__name__.lower()}" if len(kinds) > 1 else ""


def _significand_bits(fmt: Format) -> int:
    return fmt.fraction_bits + 1


# Operands ---------------------------------------------------------------------------------------------------


def _operands(ins: Instruction) -> Iterator[Tap]:
    """The exponents of subnormal numbers."""
    floats = [n for n in "abc" if n not in ins.absent and ins.formats[n].is_float]
    for name in floats:
        half = "its exponent is read as 0 where 1 is right"
        yield Tap(
            f"{name}-subnormal-half",
            f"subnormal {name} counts half ({half})",
            "operands",
            lambda s, n=name: s.move(n, -s.subnormal(n).astype(np.int64)),
        )
        yield Tap(
            f"{name}-subnormal-huge",
            f"the exponent of a subnormal {name} wraps around to the largest",
            "operands",
            lambda s, n=name: _wrap_subnormal(s, n),
        )
    if "a" in floats and "b" in floats:
        for name, other in _OTHERS.items():
            yield Tap(
                f"{name}-subnormal-by-{other}",
                f"the exponent of {name} gets the correction for subnormal numbers where {other} is one",
                "operands",
                lambda s, n=name, o=other: s.move(
                    n, s.subnormal(o).astype(np.int64) - s.subnormal(n).astype(np.int64)
                ),
            )
    if len(floats) == 3:
        yield Tap(
            "subnormal-half",
            "every subnormal operand counts half (its exponent is read as 0 where 1 is right)",
            "operands",
            _halve_all,
        )


def _halve_all(s: OperandSignals) -> None:
    for name in s.numbers:
        s.move(name, -s.subnormal(name).astype(np.int64))


def _wrap_subnormal(s: OperandSignals, name: str) -> None:
    fmt = s.formats[name]
    s.move(name, np.where(s.subnormal(name), (2 << fmt.exponent_bits) - 1, 0))


# Products ---------------------------------------------------------------------------------------------------


def _products(ins: Instruction) -> Iterator[Tap]:
    if not any(_kinds(ins, Multiply, Fma)):
        return
    if ins.formats["a"].is_float:
        for by, word in ((-1, "small"), (1, "large")):
            sign = "minus" if by < 0 else "plus"
            yield Tap(
                f"product-exponent-{sign}-1",
                f"the exponents of the products are one too {word}",
                "products",
                lambda s, n=by: _move_products(s, n),
                weight=1.0,
            )
    if ins.formats["a"].specials != "ieee" and ins.formats["b"].specials != "ieee":
        return
    yield from _invalid_products(ins)


def _move_products(s: ProductSignals, by: int) -> None:
    s.products = replace(s.products, exponent=s.products.exponent + by, lsb=s.products.lsb + by)


def _invalid_products(ins: Instruction) -> Iterator[Tap]:
    """The test for infinity times zero looks at one side only, or at another element."""
    answers = {Kind.INFINITY: "infinity", Kind.ZERO: "zero"}
    for name, other in _OTHERS.items():
        for answer, word in answers.items():
            yield Tap(
                f"zero-times-infinite-{name}-is-{word}",
                f"zero as {other} times infinity as {name} gives {word}, not NaN",
                "products",
                lambda s, n=name, k=answer: _miss_invalid(s, n, k),
            )
    count = len(ins.program.operations[0].k_index)
    for j in range(count if count > 1 else 0):
        for i in dict.fromkeys((0, (j - 1) % count, (j + 1) % count)):
            for name, other in _OTHERS.items() if i != j else ():
                yield Tap(
                    f"invalid-{name}-{j}-by-{other}-{i}",
                    f"the test for an infinite {name} times zero in product k = {j} looks at {other} of "
                    f"k = {i}",
                    "products",
                    lambda s, n=name, to=j, of=i: _misplace_test(s, n, to, of),
                    weight=1.2,
                )


def _miss_invalid(s: ProductSignals, name: str, answer: Kind) -> None:
    infinite = (s.a if name == "a" else s.b).kind == Kind.INFINITY
    missed = s.invalid & infinite
    s.invalid = s.invalid & ~infinite
    s.products.kind = np.where(missed, int(answer), s.products.kind)


def _misplace_test(s: ProductSignals, name: str, to: int, of: int) -> None:
    mine, others = (s.a, s.b) if name == "a" else (s.b, s.a)
    other_test = (mine.kind[:, to] == Kind.ZERO) & (others.kind[:, to] == Kind.INFINITY)
    s.invalid = s.invalid.copy()
    here = (mine.kind[:, to] == Kind.INFINITY) & (others.kind[:, of] == Kind.ZERO)
    s.invalid[:, to] = other_test | (here & (s.products.kind[:, to] != Kind.NAN))


# Special values ---------------------------------------------------------------------------------------------

_SIGNS = {
    "first": "the first one",
    "last": "the last one",
    "positive": "+",
    "negative": "-",
}


def _specials(ins: Instruction) -> Iterator[Tap]:
    steps = ins.program.steps_of(SpecialValues)
    if not steps or "c" in ins.absent or not any("c" in step.of and len(step.of) > 1 for step in steps):
        return
    for rule, sign in _SIGNS.items():
        yield Tap(
            f"c-not-in-opposites-{rule}",
            f"an infinite product and the opposite infinity as c give an infinity, not NaN (sign: {sign})",
            "specials",
            lambda s, r=rule: _excuse(s, r, with_c=True),
        )
        yield Tap(
            f"products-not-in-opposites-{rule}",
            f"infinite products of both signs give an infinity, not NaN (sign: {sign})",
            "specials",
            lambda s, r=rule: _excuse(s, r, with_c=False),
        )
    for name in ("products", "c"):
        yield Tap(
            f"{name}-nan-is-infinity",
            f"a NaN {'product' if name == 'products' else 'as c'} counts as an infinity",
            "specials",
            lambda s, n=name: _nan_as_infinity(s, n),
        )


def _excuse(s: SpecialSignals, rule: str, with_c: bool) -> None:
    """Infinities of both signs are no NaN where c is one of them (or where it is not)."""
    infinite, others = s.kind == Kind.INFINITY, s.owner != "c"
    plus, minus = infinite & ~s.sign, infinite & s.sign
    among = plus[:, others].any(axis=1) & minus[:, others].any(axis=1)
    s.excused, s.opposite = ~among if with_c else among, rule


def _nan_as_infinity(s: SpecialSignals, name: str) -> None:
    s.kind = np.where((s.owner == name) & (s.kind == Kind.NAN), int(Kind.INFINITY), s.kind)


# Shifts -----------------------------------------------------------------------------------------------------


def _shifts(ins: Instruction) -> Iterator[Tap]:
    kinds = _kinds(ins, Align, Additions, Fma)
    if not kinds or not ins.formats["d"].is_float:
        return
    where = _places(kinds)
    precision = _kept(ins)
    for bits in range(3, 9):
        yield Tap(
            f"shift-modulo-{1 << bits}",
            f"{where} takes the low {bits} bits of the shift amount: a term {1 << bits} places down is not "
            "shifted",
            "shifts",
            lambda s, n=bits: setattr(s, "shift", s.shift % (1 << n)),
            weight=1.05,
        )
    for places in range(max(precision - 6, 1), 2 * precision + 8):
        yield Tap(
            f"shift-jammed-from-{places}",
            f"{where} takes a term {places} or more places down as nothing but a sticky bit",
            "shifts",
            lambda s, n=places: setattr(s, "jammed", s.jammed | (s.shift >= n)),
            weight=1.05,
        )
    yield from _shift_off_by_one(where)
    if Align in kinds:
        yield from _aligned_words(precision)
    if Additions in kinds or Fma in kinds:
        yield from _lost_bits(ins, precision)


def _kept(ins: Instruction) -> int:
    """Fraction bits that the shifts keep: F, or those of the format that additions round to."""
    aligned = [bits for step in ins.program.steps_of(Align) for _, bits in step.fraction_bits]
    formats = [format_of(s) for kind in (Additions, Fma) for s in ins.program.steps_of(kind)]
    return max([*aligned, *(fmt.fraction_bits for fmt in formats if fmt is not None)])


def _shift_off_by_one(where: str) -> Iterator[Tap]:
    for by, word in ((-1, "less"), (1, "more")):
        yield Tap(
            f"shift-one-{word}",
            f"{where} shifts every term that moves by one place {word}",
            "shifts",
            lambda s, n=by: setattr(s, "shift", np.where(s.shift > 0, s.shift + n, s.shift)),
        )


def _aligned_words(precision: int) -> Iterator[Tap]:
    for word in range(precision + 2, precision + 9):
        yield Tap(
            f"logical-shift-{word}",
            "the alignment shifts zeros into negative terms instead of copies of the sign (words of "
            f"{word} bits)",
            "shifts",
            lambda s, n=word: setattr(s, "logical", n),
            weight=1.0 + word / 1000,
            of=(Align,),
        )
    yield Tap(
        "terms-ones-complement",
        "negative terms are inverted before they are added, without the one of a negation",
        "shifts",
        lambda s: setattr(s, "complemented", True),
        of=(Align,),
    )


def _lost_bits(ins: Instruction, precision: int) -> Iterator[Tap]:
    """Bits of a term that leave the window without a sticky bit."""
    sides = {"product": "the product", "c": "c"} if _kinds(ins, Fma) else {"": "the smaller term"}
    for places in range(precision + 1, (3 if "c" in sides else 2) * precision + 10):
        for side, text in sides.items():
            slug = f"{side}-" if side else ""
            yield Tap(
                f"{slug}bits-lost-below-{places}",
                f"the bits of {text} more than {places} places below the largest exponent are lost, without "
                "a sticky bit",
                "shifts",
                lambda s, n=places, o=side: _lose(s, n, o),
                weight=1.05,
                of=(Additions, Fma),
            )


def _lose(s: ShiftSignals, places: int, side: str) -> None:
    """In a multiply-add the window hangs on the product, unless c is far above it."""
    lost = np.where((s.owner == side) | (side == ""), places, 1 << 40)
    if side == "c":
        product = np.where(s.terms.finite[:, :1], s.terms.exponent[:, :1], s.maximum)
        s.lost_below = lost + (s.maximum - product)
    else:
        s.lost_below = lost + np.zeros_like(s.maximum)


# Sums -------------------------------------------------------------------------------------------------------


def _totals(ins: Instruction) -> Iterator[Tap]:
    if not ins.formats["d"].is_float:
        yield from _integer_totals(ins)
        return
    if _kinds(ins, Sum):
        yield from _negations(ins)
        yield from _skewed(ins)
    for kind in _kinds(ins, Sum, Additions, Fma):
        slug = _slug(kind, _kinds(ins, Sum, Additions, Fma))
        for sign, word in ((0, "positive"), (1, "negative")):
            yield Tap(
                f"zero-sum-{word}{slug}",
                f"a sum that is exactly zero is {'-' if sign else '+'}0 in {_NAMES[kind]}, whatever it adds",
                "total",
                lambda s, n=sign: setattr(s, "zero_sign", np.full_like(s.zero_sign, bool(n))),
                of=(kind,),
            )


def _negations(ins: Instruction) -> Iterator[Tap]:
    yield Tap(
        "sum-ones-complement",
        "a negative sum is inverted to a magnitude, without the one of a negation",
        "total",
        _invert_register,
        weight=1.0,
        of=(Sum,),
    )
    if _kinds(ins, Align):
        yield Tap(
            "sum-ones-complement-aligned",
            "a negative sum is inverted to a magnitude, without the one, in the aligned terms' last place",
            "total",
            _invert,
            of=(Sum,),
        )
    if any(step.cut == "sticky_or" for step in ins.program.steps_of(Align)):
        yield Tap(
            "sticky-negated",
            "the sticky bit lies below the signed sum, not below its magnitude: where the sum is negative it "
            "makes the magnitude smaller",
            "total",
            _sticky_below_sum,
            weight=1.0,
            of=(Sum,),
        )
        yield Tap(
            "sticky-against-sum",
            "the sticky bit makes the magnitude of every sum smaller, not larger",
            "total",
            _sticky_against_sum,
            of=(Sum,),
        )


def _invert_register(s: TotalSignals) -> None:
    """In the last place of a register that holds every sum exactly."""
    if s.register_lsb is None:
        return
    unit = np.left_shift(1, np.maximum(s.lsb - s.register_lsb, 0).astype(object))
    total = s.total * unit
    s.lsb = np.minimum(s.lsb, s.register_lsb)
    s.total = np.where(s.total < 0, total + 1, total)


def _invert(s: TotalSignals) -> None:
    s.total = np.where(s.total < 0, s.total + 1, s.total)


def _sticky_below_sum(s: TotalSignals) -> None:
    _add_below(s, s.sticky & (s.total < 0))


def _sticky_against_sum(s: TotalSignals) -> None:
    _add_below(s, s.sticky & (s.total != 0))


def _add_below(s: TotalSignals, there: Any) -> None:
    """Brings the magnitude of these sums down by one in the place below the last."""
    s.total = np.where(there, s.total * 2 + np.where(s.total < 0, 1, -1), s.total)
    s.lsb, s.sticky = s.lsb - there.astype(np.int64), s.sticky & ~there


def _skewed(ins: Instruction) -> Iterator[Tap]:
    """The largest exponent of another vector: a register too many or too few beside the sum."""
    if not _kinds(ins, Align):
        return
    for late, word in ((1, "before"), (-1, "behind")):
        yield Tap(
            f"exponent-of-vector-{word}",
            f"the sum gets the largest exponent of the vector {word}",
            "total",
            lambda s, n=late: _take_exponent(s, n),
            of=(Sum,),
            in_order=True,
        )


_FAR = 1 << 12
"""An exponent below all others: that of a vector of zeros."""


def _take_exponent(s: TotalSignals, late: int) -> None:
    there = s.terms.kind != Kind.ZERO
    own = np.where(there, s.terms.exponent, -_FAR).max(axis=1, keepdims=True)
    by = np.roll(own, late, axis=0) - s.exponent
    s.exponent, s.lsb = s.exponent + by, s.lsb + by


def _integer_totals(ins: Instruction) -> Iterator[Tap]:
    """The sum of the products alone, held in too few bits before c is added."""
    if not any("c" in step.of and len(step.of) > 1 for step in ins.program.steps_of(Sum)):
        return
    widest = ins.formats["a"].integer_bits + ins.formats["b"].integer_bits + max(ins.k - 1, 1).bit_length()
    for bits in range(widest + 1, max(widest - 6, 2), -1):
        yield Tap(
            f"products-sum-width-{bits}",
            f"the sum of the products has {bits} bits and wraps, before c is added",
            "total",
            lambda s, n=bits: _hold_products(s, n),
        )


def _hold_products(s: TotalSignals, bits: int) -> None:
    mine = (s.owner != "c") & s.terms.finite
    value = np.where(s.terms.sign, -s.terms.significand, s.terms.significand)
    products = np.where(mine, value, 0).sum(axis=1, keepdims=True)
    s.total = s.total - products + held(products, bits)


# Normalisation ----------------------------------------------------------------------------------------------


def _normalizing(ins: Instruction) -> Iterator[Tap]:
    """The leading one of a sum is looked for in too few places."""
    a, b = ins.formats["a"], ins.formats["b"]
    if not _kinds(ins, Normalize) or not (a.is_float and b.is_float):
        return
    largest = a.max_exponent + b.max_exponent
    for extra in range(4):
        top = largest + extra
        yield Tap(
            f"normalize-top-{top}",
            f"normalisation does not see the bits of a sum from 2^{top} up",
            "normalize",
            lambda s, n=top: _blind_above(s, n),
        )


def _blind_above(s: NormalizeSignals, top: int) -> None:
    numbers = s.numbers
    kept = low_bits(numbers.significand, np.maximum(top - numbers.lsb, 0))
    s.numbers = replace(numbers, significand=kept)


# Rounding ---------------------------------------------------------------------------------------------------


def _roundings(ins: Instruction) -> Iterator[Tap]:
    kinds = _rounding_kinds(ins)
    formats = [format_of(step) for kind in kinds for step in ins.program.steps_of(kind)]
    bits = max((_significand_bits(fmt) for fmt in formats if fmt is not None), default=0)
    for kind in kinds:
        found = [*_seen(bits), *_subnormal_results(bits), *_modes(ins, kind)]
        found += _after_additions(kind, bits) if kind is not Multiply else ()
        for tap in found:
            slug, text = f"{tap.slug}{_slug(kind, kinds)}", f"{_NAMES[kind]} {tap.text}"
            yield replace(tap, slug=slug, text=text, of=(kind,))


def _seen(bits: int) -> Iterator[Tap]:
    """What the rounding sees of the bits that are cut."""
    for places in range(2 * bits + 8):
        text = (
            "sees the round bit alone, no sticky bit"
            if not places
            else f"sees {places} bits below the round bit, not all"
        )
        yield Tap(
            f"rounding-sees-{places}",
            text,
            "rounding",
            lambda s, n=places: setattr(s, "seen", n + np.zeros_like(s.lsb)),
            weight=1.05 + places / 1000,
        )
    yield Tap(
        "round-bit-unseen",
        "rounds by the bits below the round bit alone: exactly a half is nothing to it",
        "rounding",
        lambda s: setattr(s, "round_bit", False),
    )


def _subnormal_results(bits: int) -> Iterator[Tap]:
    for places in range(bits + 6):
        yield Tap(
            f"subnormal-sees-{places}",
            f"sees {places} bits below the round bit, not all, where the result is subnormal",
            "rounding",
            lambda s, n=places: setattr(s, "seen", np.where(s.leading < s.least, n, 1 << 20)),
            weight=1.08 + places / 1000,
        )
    for places in range(1, 2 * bits):
        yield Tap(
            f"subnormal-shift-limit-{places}",
            f"shifts a subnormal result right by {places} places at most",
            "rounding",
            lambda s, n=places: _limit_subnormal(s, n),
            weight=1.08 + places / 1000,
        )
    yield Tap("least-exponent-plus-1", "takes the least exponent one too high", "rounding", _raise_least)
    yield Tap(
        "subnormal-truncated",
        "does not round subnormal results but cuts them",
        "rounding",
        _truncate,
    )


def _limit_subnormal(s: RoundingSignals, places: int) -> None:
    below = s.least - s.leading
    s.lsb = s.lsb + np.where((s.significand != 0) & (below > places), below - places, 0).astype(np.int64)


def _raise_least(s: RoundingSignals) -> None:
    s.least = s.least + 1


def _truncate(s: RoundingSignals) -> None:
    cut = np.maximum(s.least - s.kept - s.lsb, 0)
    s.significand = s.significand - np.where(s.leading < s.least, low_bits(s.significand, cut), 0)


def _modes(ins: Instruction, kind: type[Step]) -> Iterator[Tap]:
    """What an overflow is, in modes in which the sign matters."""
    modes = {getattr(step, "rounding", "") for step in ins.program.steps_of(kind)}
    for mode in ("up", "down", "toward_zero", "nearest_even"):
        if mode not in modes:
            name = mode.replace("_", "-")
            yield Tap(
                f"overflow-as-{name}",
                f"answers an overflow as if it rounded {mode.replace('_', ' ')}",
                "rounding",
                lambda s, m=mode: setattr(s, "overflow_mode", m),
            )


def _after_additions(kind: type[Step], bits: int) -> Iterator[Tap]:
    """Normalisation behind an addition, and what is forgotten there."""
    for places in range(4):
        yield Tap(
            f"carry-sees-{places}",
            f"sees {places} bits below the round bit, not all, where the sum carried",
            "rounding",
            lambda s, n=places: setattr(s, "seen", np.where(s.leading > s.maximum, n, 1 << 20)),
        )
    for places in range(1, bits + 4):
        for apart in (False, True) if kind is not Round else (False,):
            of, suffix = (" of numbers of different exponents", "-apart") if apart else ("", "")
            yield Tap(
                f"left-shift-limit-{places}{suffix}",
                f"shifts a difference{of} left by {places} places at most",
                "rounding",
                lambda s, n=places, d=apart: _limit_left(s, n, int(d)),
                weight=1.1 + apart / 20 + places / 1000,
            )


def _limit_left(s: RoundingSignals, places: int, distance: int) -> None:
    """The exponent field is that of the place where the leading one should be."""
    there = s.subtraction & (s.distance >= distance) & (s.maximum - places >= s.least)
    s.assumed = there & (s.leading < s.maximum - places)
    s.least = np.where(there, np.maximum(s.least, s.maximum - places), s.least)


# Codes ------------------------------------------------------------------------------------------------------


def _codes(ins: Instruction) -> Iterator[Tap]:
    kinds = _rounding_kinds(ins)
    for kind in kinds:
        for tap in _exponent_fields(kind):
            slug, text = f"{tap.slug}{_slug(kind, kinds)}", f"{_NAMES[kind]} {tap.text}"
            yield replace(tap, slug=slug, text=text, of=(kind,))


def _exponent_fields(kind: type[Step]) -> Iterator[Tap]:
    """The exponent fields of subnormal results and of zeros."""
    yield Tap(
        "subnormal-exponent-one",
        "gives subnormal results the exponent field 1 instead of 0",
        "code",
        lambda s: _exponent_one(s, None),
    )
    yield Tap(
        "top-subnormal-overflows",
        "takes a result just below the least normal number as normal: its exponent wraps around",
        "code",
        _overflow_top_subnormal,
    )
    if kind is Multiply:
        return
    yield Tap(
        "subnormal-difference-exponent-one",
        "gives subnormal differences the exponent field 1 instead of 0",
        "code",
        lambda s: _exponent_one(s, s.rounding.subtraction),
    )
    for extra in range(4):
        yield Tap(
            f"difference-exponent-kept-{extra}",
            "does not clear the exponent field of a difference without a leading one: neither of subnormal "
            f"results nor of zeros ({extra} bits below the last place)",
            "code",
            lambda s, n=extra: _keep_exponent(s, n),
        )


def _exponent_one(s: CodeSignals, there: Any) -> None:
    fmt, rounding = s.rounding.fmt, s.rounding
    subnormal = (rounding.significand != 0) & (rounding.leading < fmt.min_exponent)
    subnormal = subnormal if there is None else subnormal & there
    s.code = np.where(subnormal, s.code + (1 << (fmt.fraction_bits + fmt.ignored_low)), s.code)


def _overflow_top_subnormal(s: CodeSignals) -> None:
    fmt, rounding = s.rounding.fmt, s.rounding
    top = (rounding.significand != 0) & (rounding.leading == fmt.min_exponent - 1)
    sign = rounding.sign.astype(object) << fmt.sign_shift if fmt.signed else 0
    wrapped = fmt.largest if fmt.infinity is None else fmt.infinity
    s.code = np.where(top, sign | wrapped, s.code)


def _keep_exponent(s: CodeSignals, extra: int) -> None:
    """Of the close path of an adder, where the exponents are at most one apart."""
    _exponent_one(s, s.rounding.subtraction & (s.rounding.distance <= 1))
    fmt, rounding = s.rounding.fmt, s.rounding
    zero = (rounding.significand == 0) & rounding.subtraction
    shift = fmt.fraction_bits + 1 + extra
    field = np.maximum(rounding.maximum - shift + fmt.bias, 1)
    kept = field.astype(object) << (fmt.fraction_bits + fmt.ignored_low)
    s.code = np.where(zero, kept, s.code)
