"""Conditions on operands and results that separate the wrong answers of a unit from the right ones, in words,
and what the wrong answers have in common.

    for sentence in known(ins, operands, expected, wrong, actual):
        print(sentence)

Every plain condition that an engineer would try (the sign of c, a bit of one element, how far the largest
product lies above c) is compared with all answers. The most informative one is taken, then the one that
excludes half of the remaining right answers. A condition counts only if it carries more information than the
best of all conditions would by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from golden.explain.numbers import hex_text, times_power
from golden.identify.diagnose.mutations.mutation import CONTEXT
from golden.identify.diagnose.policy import CONDITIONS
from golden.identify.sample import picked
from golden.model.instruction import Instruction
from golden.number.classes import is_infinite, is_nan, is_subnormal, is_zero
from golden.number.formats import Format, Kind, to_float
from golden.program.signature import Bits, Operands

Mask = npt.NDArray[np.bool_]
Formats = Mapping[str, Format]

# Classes of dot products ------------------------------------------------------------------------------------


def classes(formats: Formats, operands: Operands, expected: Bits) -> Iterator[tuple[str, Mask]]:
    """Classes of dot products (n, ...), each with its mask (n,); `expected`: codes of d."""
    yield from _by_terms(formats, operands)
    d = formats["d"]
    yield "results of zero", zeros(d, expected)
    if not d.is_float:
        yield "negative results", (expected >> d.dtype.type(d.bits - 1)).astype(np.bool_)
        return
    floats = {name: formats[name] for name in operands if name in formats and formats[name].is_float}
    is_special = np.any([special(fmt, operands[name]) for name, fmt in floats.items()], axis=0)
    tiny = np.any([subnormal(fmt, operands[name]) for name, fmt in floats.items()], axis=0)
    yield "NaN or infinite operands", is_special
    yield "finite operands", ~is_special
    yield "subnormal operands", tiny & ~is_special
    yield "finite operands, none subnormal", ~tiny & ~is_special
    yield "subnormal results", subnormal(d, expected)
    yield "overflowing results", special(d, expected) & ~is_special


def _by_terms(formats: Formats, operands: Operands) -> Iterator[tuple[str, Mask]]:
    """Which terms of the sum are there, in the words of the unit: it may have no b, no c, and one product."""
    terms = products_present(formats, operands).sum(axis=1)
    (one, several), k = term_words(operands), operands["a"].shape[1]
    if "c" not in operands:
        if k > 1:
            yield f"{one} alone", terms == 1
            yield several, terms > 1
        return
    no_c = zeros(formats["c"], operands["c"])
    yield f"{one} alone, c = 0", (terms == 1) & no_c
    yield f"{one} and c", (terms == 1) & ~no_c
    yield f"no {one.removeprefix('one ')}, c alone", (terms == 0) & ~no_c
    if k > 1:
        yield f"{several}, c = 0", (terms > 1) & no_c
        yield f"{several} and c", (terms > 1) & ~no_c


def term_words(operands: Operands) -> tuple[str, str]:
    """One term other than c and several of them, in words: products, or elements of a where there is no b."""
    if "b" in operands:
        return "one product", "several products"
    return ("a", "a") if operands["a"].shape[1] == 1 else ("one element of a", "several elements of a")


def products_present(formats: Formats, operands: Operands) -> Mask:
    """(n, stored k): which products have no zero among their factors."""
    found = np.ones(operands["a"].shape, np.bool_)
    for name in "ab":
        if name in operands and operands[name].shape == found.shape:
            found &= ~is_zero(formats[name], operands[name])
    return found


def zeros(fmt: Format, codes: Bits) -> Mask:
    """Where any code is a zero, (n,)."""
    return _any(is_zero(fmt, codes))


def special(fmt: Format, codes: Bits) -> Mask:
    """Where any code is a NaN or an infinity, (n,)."""
    return _any(is_nan(fmt, codes) | is_infinite(fmt, codes))


def subnormal(fmt: Format, codes: Bits) -> Mask:
    """Where any code is subnormal, (n,)."""
    return _any(is_subnormal(fmt, codes))


def _any(mask: Mask) -> Mask:
    return np.asarray(mask.any(axis=tuple(range(1, mask.ndim))))


# Where it is wrong ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """A condition and its negation in words, each a clause of its own, and where it holds, (n,).

    bit_of: of a condition on a single bit the operand; of others nothing.
    """

    text: str
    negated: str
    mask: Mask
    bit_of: str = ""


def where(
    formats: Formats, operands: Operands, expected: Bits, actual: Bits, wrong: Mask, of: str = "the right"
) -> tuple[str, ...]:
    """Sentences that describe where a unit is wrong, with counts; none if no plain condition separates the
    answers.

    Args:
        operands: (n, ...), as `dot` takes them; for a sparse unit those of the dense one.
        expected, actual: codes of d, (n,); `wrong`: where they differ.
        of: whose result `expected` is: "the candidate's".
    """
    # 1. Conditions on a sample; one that holds everywhere or nowhere says nothing.
    some = _sample(wrong)
    part = picked(operands, some)
    limits: _Limits = {}
    every = _all(formats, part, expected[some], wrong[some], of, limits)
    listed = [one for one in every if one.mask.any() and not one.mask.all()]
    # 2. Each rule is chosen on what the rules before it do not cover.
    left, rules = np.ones(len(some), np.bool_), list[dict[str, bool]]()
    while len(rules) < CONDITIONS.sentences:
        rule, holds = _rule(listed, wrong[some], left)
        if not rule:
            break
        rules.append(rule)
        left &= ~holds
    if not rules:
        return ()
    # 3. The chosen conditions on all dot products: the counts of a sentence cover all of them.
    named = {text for rule in rules for text in rule}
    if len(some) < len(wrong):  # one after the other: all of them at once are too many bits
        every = _all(formats, operands, expected, wrong, of, limits)
        listed = [one for one in every if one.text in named]
    by_text = {one.text: one for one in listed}
    # 4. A sentence for each rule; afterwards `open_` is what no sentence covers.
    found, open_ = list[str](), np.ones(len(wrong), np.bool_)
    for rule in rules:
        parts = [(by_text[text], holds) for text, holds in rule.items()]
        inside = np.logical_and.reduce([one.mask == holds for one, holds in parts]) & open_
        said = ", and ".join(one.text if holds else one.negated for one, holds in parts)
        found.append(_sentence(said, inside, open_ & ~inside, wrong, len(found) > 0))
        found[-1] += _answer(formats["d"], actual[inside & wrong])
        open_ &= ~inside
    return tuple(found)


def _sample(wrong: Mask) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(0)
    parts = [np.flatnonzero(wrong), np.flatnonzero(~wrong)]
    return np.sort(np.concatenate([rng.permutation(part)[: CONDITIONS.sample // 2] for part in parts]))


# Which conditions -------------------------------------------------------------------------------------------


def _rule(listed: list[Condition], wrong: Mask, left: Mask) -> tuple[dict[str, bool], Mask]:
    """The conditions that hold together where most is wrong among what is left, and where they hold."""
    inside, rule, needed = left.copy(), dict[str, bool](), CONDITIONS.by_chance + np.log2(2 * len(listed) + 1)
    masks = np.stack([one.mask for one in listed]) if listed else np.zeros((0, len(wrong)), np.bool_)
    while len(rule) < CONDITIONS.together:
        best: tuple[str, bool, Mask] | None = None
        gains = _gains(masks[:, inside], wrong[inside])
        gains = np.where(_by_chance(listed, masks[:, inside], wrong[inside], gains), 0, gains)
        if rule and not (wrong & left & ~inside).any():  # none is left out: what leaves some out says less
            gains = np.where(_keeping_all(masks[:, inside], wrong[inside]), gains, 0)
        elif len(rule) == CONDITIONS.together - 1:
            break
        for place in np.argsort(-gains, kind="stable")[:1].tolist():
            if gains[place] > needed:
                one = listed[place]
                more = _rate(wrong, inside & one.mask) > _rate(wrong, inside & ~one.mask)
                best = one.text, bool(more), inside & (one.mask == more)
        if best is None or (rule and 2 * int((~wrong & best[2]).sum()) > int((~wrong & inside).sum())):
            break
        rule[best[0]], inside = best[1], best[2]
        if wrong[inside].all():
            break
    outside = left & ~inside
    hits, of = int((wrong & inside).sum()), int((wrong & left).sum())
    here, there = _rate(wrong, inside), _rate(wrong, outside)
    clear = (
        hits >= CONDITIONS.share * of
        and here >= CONDITIONS.clearly * there
        and (not there or here >= CONDITIONS.mostly)
    )
    return (_without_implied(listed, rule, left, inside) if clear else {}), inside


def _without_implied(
    listed: list[Condition], rule: dict[str, bool], left: Mask, inside: Mask
) -> dict[str, bool]:
    """The conditions that no other one implies: a limit below a smaller one goes."""
    masks = {one.text: one.mask for one in listed if one.text in rule}
    for text in list(rule):
        others = {other: holds for other, holds in rule.items() if other != text}
        held = np.logical_and.reduce([left, *(masks[other] == holds for other, holds in others.items())])
        if others and np.array_equal(held, inside):
            rule = others
    return rule


def _keeping_all(masks: Mask, wrong: Mask) -> Mask:
    """Which masks have all that is wrong on one side, (conditions,)."""
    hits = masks[:, wrong]
    return np.asarray(hits.all(axis=1) | ~hits.any(axis=1))


def _by_chance(listed: list[Condition], masks: Mask, wrong: Mask, gains: npt.NDArray[np.float64]) -> Mask:
    """Which conditions (conditions,) are on a bit that decides nothing.

    Where a bit decides, results are wrong only where it has one value, or wherever it has; and few bits of
    its operand, two at most, say half as much: low bits of a large operand are alike in the vectors, not in
    the unit.
    """
    wherever = (~masks | wrong).all(axis=1) & masks.any(axis=1)
    wherever_not = (masks | wrong).all(axis=1) & ~masks.all(axis=1)
    decides = _keeping_all(masks, wrong) | wherever | wherever_not
    operands = np.array([one.bit_of for one in listed])
    found = np.zeros(len(listed), np.bool_)
    for name in set(operands.tolist()) - {""}:
        bits = np.flatnonzero(operands == name)
        third = np.sort(gains[bits])[-3] if len(bits) > 2 else 0.0
        found[bits] = (2 * third > gains[bits]) | ~decides[bits]
    return found


def _rate(wrong: Mask, inside: Mask) -> float:
    return float(wrong[inside].mean()) if inside.any() else 0.0


def _gains(masks: Mask, wrong: Mask) -> npt.NDArray[np.float64]:
    """How many bits each mask (conditions, n) says about which are wrong (n,)."""
    count, hits = len(wrong), int(wrong.sum())
    inside = masks.sum(axis=1)
    both = masks[:, wrong].sum(axis=1)
    return np.asarray(_bits(hits, count) - _bits(both, inside) - _bits(hits - both, count - inside))


def _bits(hits: npt.ArrayLike, count: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Bits that it takes to say which of `count` are hits."""
    k, n = np.asarray(hits, np.float64), np.asarray(count, np.float64)
    with np.errstate(all="ignore"):
        found = -k * np.log2(k / n) - (n - k) * np.log2((n - k) / n)
    return np.where((k > 0) & (k < n), found, 0.0)


# The conditions ---------------------------------------------------------------------------------------------


_Limits = dict[str, list[int]]
"""The sizes and codes that conditions name, by what is compared with them: read off the dot products on which
conditions are compared, and the same where all are counted."""


def _all(
    formats: Formats, operands: Operands, expected: Bits, wrong: Mask, of: str, limits: _Limits
) -> Iterator[Condition]:
    """All plain conditions, simple ones first."""
    yield from _of_result(formats["d"], expected, of, limits)
    yield from _of_kinds(formats, operands)
    yield from _of_terms(formats, operands)
    if "c" in operands:
        yield from _of_code("c", formats["c"], operands["c"], limits)
    yield from _of_signs(formats, operands)
    yield from _of_sizes(formats, operands, limits)
    for name in "ab":
        if name in operands:
            for place in range(operands[name].shape[1]):
                one = f"{name}[{place}]" if operands[name].shape[1] > 1 else name
                yield from _of_code(one, formats[name], operands[name][:, place], limits)
            yield from _of_common_codes(name, formats[name], operands[name], wrong, limits)


def _of_kinds(formats: Formats, operands: Operands) -> Iterator[Condition]:
    """Whether any operand is special or subnormal."""
    floats = {name: formats[name] for name in operands if name in formats and formats[name].is_float}
    if floats:
        is_special = np.any([special(fmt, operands[name]) for name, fmt in floats.items()], axis=0)
        tiny = np.any([subnormal(fmt, operands[name]) for name, fmt in floats.items()], axis=0)
        yield Condition("an operand is a NaN or infinite", "all operands are finite", np.asarray(is_special))
        yield Condition("an operand is subnormal", "no operand is subnormal", np.asarray(tiny))


def _of_terms(formats: Formats, operands: Operands) -> Iterator[Condition]:
    """Which terms of the sum are there."""
    count, k = products_present(formats, operands).sum(axis=1), operands["a"].shape[1]
    one = term_words(operands)[0]
    one = one if k > 1 else f"the {one.removeprefix('one ')}" if "b" in operands else one
    no_c = zeros(formats["c"], operands["c"]) if "c" in operands else np.ones(len(count), np.bool_)
    if k > 1 or "c" in operands:
        only, not_only = (f"{one} is {word} the only term that is not zero" for word in ("", "not"))
        yield Condition(only.replace("  ", " "), not_only, (count == 1) & no_c)
    if "c" in operands:
        only = "c is the only term that is not zero"
        yield Condition(only, only.replace("is the", "is not the"), (count == 0) & ~no_c)
    if k > 1:
        some = (
            f"exactly {one} is not zero",
            f"the number of {term_words(operands)[1].removeprefix('several ')} that are not zero is not one",
        )
        yield Condition(*some, count == 1)


def _of_result(d: Format, expected: Bits, of: str, limits: _Limits) -> Iterator[Condition]:
    value, named = to_float(d, expected), f"{of} result"
    yield Condition(f"{named} is negative", f"{named} is not negative", value < 0)
    yield Condition(f"{named} is zero", f"{named} is not zero", value == 0)
    if d.is_float:
        yield Condition(f"{named} is subnormal", f"{named} is not subnormal", subnormal(d, expected))
        yield Condition(f"{named} is infinite", f"{named} is not infinite", np.isinf(value))
        yield Condition(f"{named} is a NaN", f"{named} is not a NaN", np.isnan(value))
    size = np.abs(np.where(np.isnan(value), np.inf, value))  # a NaN is less than no number
    for power in _powers(limits, named, np.frexp(size[np.isfinite(size) & (size > 0)])[1] - 1):
        limit = np.ldexp(1.0, power)
        yield Condition(
            f"{named} is 2^{power} or more in size", f"{named} is less than 2^{power} in size", size >= limit
        )


def _of_code(name: str, fmt: Format, codes: Bits, limits: _Limits) -> Iterator[Condition]:
    """Of one operand, or one element of it: its kind, its size, its bits."""
    value = to_float(fmt, codes)
    zero = is_zero(fmt, codes)
    yield Condition(f"{name} is zero", f"{name} is not zero", zero)
    signed = fmt.signed and fmt.is_float
    if fmt.signed:
        yield Condition(f"{name} is negative", f"{name} is not negative", value < 0)
    if fmt.is_float:
        yield Condition(f"{name} is subnormal", f"{name} is not subnormal", subnormal(fmt, codes[:, None]))
        yield Condition(f"{name} is a NaN or infinite", f"{name} is finite", special(fmt, codes[:, None]))
    size = np.abs(np.where(np.isnan(value), np.inf, value))  # a NaN is less than no number
    powers = np.frexp(size[np.isfinite(size) & (size > 0)])[1] - 1
    for power in _powers(
        limits, name, powers, CONDITIONS.limits if name == "c" else CONDITIONS.element_limits
    ):
        yield Condition(
            f"{name} is 2^{power} or more in size",
            f"{name} is less than 2^{power} in size",
            size >= np.ldexp(1.0, power),
        )
    for bit in range(fmt.bits):
        if not (signed and bit == fmt.sign_shift):
            mask = ((codes >> codes.dtype.type(bit)) & codes.dtype.type(1)).astype(np.bool_)
            yield Condition(f"bit {bit} of {name} is set", f"bit {bit} of {name} is not set", mask, name)


def _of_common_codes(
    name: str, fmt: Format, codes: Bits, wrong: Mask, limits: _Limits
) -> Iterator[Condition]:
    """Codes that many wrong answers have, in one place and in any."""
    if not wrong.any():
        return
    for place in range(codes.shape[1]):
        one = f"{name}[{place}]" if codes.shape[1] > 1 else name
        for code in _common(limits, f"{one} is", codes[wrong, place], CONDITIONS.often):
            there = codes[:, place] == code
            yield Condition(f"{one} is {hex_text(fmt, code)}", f"{one} is not {hex_text(fmt, code)}", there)
    if codes.shape[1] == 1:
        return
    rows = [np.unique(row) for row in codes[wrong][: CONDITIONS.sample]]
    share = CONDITIONS.often * len(rows) / max(sum(map(len, rows)), 1)
    for code in _common(limits, f"some {name} is", np.concatenate(rows), share):
        mask = (codes == code).any(axis=1)
        yield Condition(f"some {name} is {hex_text(fmt, code)}", f"no {name} is {hex_text(fmt, code)}", mask)


def _common(limits: _Limits, of: str, codes: Bits, share: float) -> list[int]:
    if of not in limits:
        found, counts = np.unique(codes, return_counts=True)
        limits[of] = [int(code) for code in found[counts >= share * len(codes)]][: CONDITIONS.codes]
    return limits[of]


def _of_signs(formats: Formats, operands: Operands) -> Iterator[Condition]:
    """Whether factors, and the terms of the sum, have like signs."""
    signs = {name: _sign(formats[name], operands[name]) for name in "abc" if name in operands}
    if not all(formats[name].signed for name in signs) or len(signs) < 2:
        return
    if signs["a"].shape[1] > 1:
        terms = signs["a"] ^ signs["b"] if "b" in signs else signs["a"]
        present = products_present(formats, operands)
        if "c" in signs:
            terms = np.hstack([terms, signs["c"]])
            present = np.hstack([present, ~is_zero(formats["c"], operands["c"])[:, None]])
        both = (terms & present).any(axis=1) & (~terms & present).any(axis=1)
        yield Condition("terms of both signs are added", "all terms have the same sign", np.asarray(both))
        return
    first = "a"
    if "b" in signs:
        yield from _unlike("a", signs["a"], "b", signs["b"])
        first, signs["a"] = "the product", signs["a"] ^ signs["b"]
    if "c" in signs:
        yield from _unlike(first, signs["a"], "c", signs["c"])


def _unlike(one: str, sign: Mask, other: str, its: Mask) -> Iterator[Condition]:
    names = f"{one} and {other}"
    yield Condition(f"the signs of {names} differ", f"{names} have the same sign", (sign ^ its)[:, 0])


def _sign(fmt: Format, codes: Bits) -> Mask:
    """(n, elements): sign bits, of zeros and NaNs, too."""
    place = fmt.sign_shift if fmt.sign_shift >= 0 else fmt.bits - 1
    columns = codes if codes.ndim == 2 else codes[:, None]
    return np.asarray((columns >> columns.dtype.type(place)) & columns.dtype.type(1), np.bool_)


def _of_sizes(formats: Formats, operands: Operands, limits: _Limits) -> Iterator[Condition]:
    """How many products are not zero, how large the largest is, and how far it lies from c."""
    one, several = term_words(operands)
    k, one = operands["a"].shape[1], one.removeprefix("one ")
    if "b" in operands and operands["b"].shape != operands["a"].shape:
        return
    # How many products there are,
    if k > 1:
        count, terms = products_present(formats, operands).sum(axis=1), several.removeprefix("several ")
        for least in _spread(limits, "products", count[count > 1]):
            text = f"{least} or more {terms} are not zero", f"fewer than {least} {terms} are not zero"
            yield Condition(*text, count >= least)
    # how large the largest is,
    sizes, beyond = _sizes(formats, operands), _beyond_numbers(formats, operands)
    largest, top = sizes.max(axis=1), np.frexp(sizes.max(axis=1))[1] - 1
    named = f"the largest {one}" if k > 1 else f"the {one}" if "b" in operands else one
    yield Condition(f"{named} is not zero", f"{named} is zero", (largest > 0) | beyond)
    for power in _powers(limits, "largest", top[largest > 0]) if "b" in operands or k > 1 else ():
        text = f"{named} is 2^{power} or more in size", f"{named} is less than 2^{power} in size"
        yield Condition(*text, (largest > 0) & (top >= power) | beyond)
    if "c" not in operands:
        return
    # and how far it lies from c: an alignment fails at a distance.
    c = _finite_size(formats["c"], operands["c"])
    both, apart = (c > 0) & (largest > 0), top - (np.frexp(c)[1] - 1)
    for distance in _spread(limits, "distance", apart[both]):
        text = (
            f"the exponent of {named} is that of c {distance:+d} or more",
            f"the exponent of {named} is less than that of c {distance:+d}",
        )
        yield Condition(*text, both & (apart >= distance))


def _beyond_numbers(formats: Formats, operands: Operands) -> npt.NDArray[np.bool_]:
    """(n,): whether a factor or a scale is infinite or a NaN: such a product is less than no number."""
    names = [name for name in ("a", "b", "scale_a", "scale_b") if name in operands]
    finite = [np.isfinite(to_float(formats[name], operands[name])).all(axis=1) for name in names]
    return np.asarray(~np.logical_and.reduce(finite))


def _sizes(formats: Formats, operands: Operands) -> npt.NDArray[np.float64]:
    """(n, k): the sizes of finite products with their scales; 0 for others."""
    sizes = _finite_size(formats["a"], operands["a"])
    with np.errstate(all="ignore"):
        if "b" in operands:
            sizes = sizes * _finite_size(formats["b"], operands["b"])
        for name in ("scale_a", "scale_b"):
            if name in operands:
                scale = _finite_size(formats[name], operands[name])
                sizes = sizes * np.repeat(scale, sizes.shape[1] // scale.shape[1], axis=1)
    # Larger products than doubles hold count as this.
    huge = 1e300
    return np.minimum(sizes, huge)


def _finite_size(fmt: Format, codes: Bits) -> npt.NDArray[np.float64]:
    value = np.abs(to_float(fmt, codes))
    return np.where(np.isfinite(value), value, 0.0)


def _powers(
    limits: _Limits, of: str, values: npt.NDArray[np.int64], most: int = CONDITIONS.limits
) -> list[int]:
    """Sizes of what is not zero, of which the least says no more than that it is not zero."""
    if of not in limits:
        limits[of] = [power for power in _spread({}, of, values, most) if power > values.min()]
    return limits[of]


def _spread(
    limits: _Limits, of: str, values: npt.NDArray[np.int64], most: int = CONDITIONS.limits
) -> list[int]:
    """All of a few values; of many, some with equally many dot products between two of them."""
    if of not in limits:
        distinct = np.unique(values)
        if len(distinct) > most:
            parts = np.linspace(0, 1, most + 2)[1:-1]
            distinct = np.unique(np.quantile(values, parts, method="nearest"))
        limits[of] = [int(one) for one in distinct]
    return limits[of]


# The words --------------------------------------------------------------------------------------------------


def _sentence(said: str, inside: Mask, outside: Mask, wrong: Mask, further: bool) -> str:
    """What is so where a condition holds, and elsewhere."""
    hits, of = int((wrong & inside).sum()), int(inside.sum())
    elsewhere, others = int((wrong & outside).sum()), int(outside.sum())
    start = "of the others, wrong" if further else "wrong"
    here = f"every one of {of:,}" if hits == of else f"{hits:,} of {of:,} there"
    there = f"none of {others:,} others" if not elsewhere else f"{elsewhere:,} of {others:,} others"
    how = {(True, True): "exactly where", (False, True): "only where", (True, False): "wherever"}
    return f"{start} {how.get((hits == of, not elsewhere), 'mostly where')} {said}: {here}, {there}"


def _answer(d: Format, answers: Bits) -> str:
    """What the unit answers there, where that is one word."""
    codes = np.unique(answers)
    if len(codes) != 1:
        return ""
    number = d.decode(int(codes[0]))
    zero = f" ({'-' if number.sign else '+'}0)" if d.is_float and number.kind == Kind.ZERO else ""
    return f"; each wrong answer there is {hex_text(d, int(codes[0]))}{zero}"


# What the results say ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Class:
    """Vectors with something in common, and how many of them are wrong."""

    text: str
    tried: int
    wrong: int


def known(
    ins: Instruction,
    operands: Operands,
    expected: Bits,
    wrong: Mask,
    actual: Bits,
    of: str = "the right",
) -> tuple[str, ...]:
    """Sentences about a unit that computes something else than `ins`.

    Args:
        operands: as `ins.dot` takes them, (n, ...).
        of: what the results of `ins` are called.
        expected, actual: codes of d, (n,); `wrong`: where they differ.
    """
    count, failing = len(wrong), int(wrong.sum())
    if not failing:
        return ()
    # 1. Classes of operands and results in which all results are right, or all wrong.
    tried = [
        _Class(text, int(mask.sum()), int((mask & wrong).sum()))
        for text, mask in classes(ins.formats, operands, expected)
    ]
    enough = [each for each in tried if each.tried >= CONDITIONS.fewest]
    right = [f"{each.text} (all {each.tried:,})" for each in enough if not each.wrong]
    always = [
        each.text
        for each in enough
        if each.wrong == each.tried and failing - each.wrong < CONDITIONS.common * (count - each.tried)
    ]
    only = [each.text for each in enough if each.wrong == failing and each.tried < CONDITIONS.common * count]
    # 2. The facts, the most specific ones first: what the results are instead, then where they are wrong.
    found = ["every result is wrong"] * (failing == count)
    found += _by_what_was_before(operands, actual, wrong)
    found += where(ins.formats, operands, expected, actual, wrong, of)
    found += [f"right: {', '.join(right)}"] * bool(right)
    found += [f"always wrong: {', '.join(always)}"] * bool(always)
    found += [f"every wrong result is one of: {' and of: '.join(only)}"] * bool(only)
    found += [*_by_element(ins, operands, wrong), *_by_bit(ins.formats["d"], expected, actual, wrong)]
    found += _by_relation(ins.formats["d"], expected[wrong], actual[wrong])
    return tuple(found)


def _by_what_was_before(operands: Operands, actual: Bits, wrong: Mask) -> Iterator[str]:
    """Whether the same operands have different results: then a result depends on what came before it."""
    own = [codes.reshape(len(wrong), -1) for name, codes in operands.items() if name not in CONTEXT]
    # Equal rows have equal sums with random factors. Sorting by all columns takes seconds for 64 products.
    rng = np.random.default_rng(1)
    sums = np.zeros(len(wrong), np.uint64)
    for codes in own:
        sums += codes.astype(np.uint64) @ rng.integers(1 << 63, size=codes.shape[1], dtype=np.uint64)
    order = np.argsort(sums, kind="stable")
    near = np.flatnonzero(sums[order][1:] == sums[order][:-1])
    same = np.zeros(len(order) - 1, np.bool_)
    same[near] = np.all([(codes[order[near]] == codes[order[near + 1]]).all(axis=1) for codes in own], axis=0)
    either = wrong[order][1:] | wrong[order][:-1]
    other = same & either & (actual[order][1:] != actual[order][:-1])
    if other.any():
        often = f"{int(other.sum()):,} of {int(same.sum()):,} times that operands come again"
        yield f"the same operands have different results ({often}): a result depends on what came before"


def _by_element(ins: Instruction, operands: Operands, wrong: Mask) -> Iterator[str]:
    """Which places of k are wrong where only one product is there."""
    present = products_present(ins.formats, operands)
    alone = present.sum(axis=1) == 1
    tried = present[alone].sum(axis=0)
    bad = present[alone & wrong].sum(axis=0)
    places = np.flatnonzero(bad)
    if ins.stored_k > 1 and 0 < len(places) <= ins.stored_k // 2 and (tried[bad == 0] > 0).all():
        yield f"{term_words(operands)[0]} alone is wrong only at k = {', '.join(map(str, places))}"


def _by_bit(fmt: Format, expected: Bits, actual: Bits, wrong: Mask) -> Iterator[str]:
    """Which bits of the result ever differ."""
    changed = int(np.bitwise_or.reduce(expected[wrong] ^ actual[wrong]))
    low, high = (changed & -changed).bit_length() - 1, changed.bit_length() - 1
    if changed == 1 << high:
        sign = fmt.is_float and fmt.signed and high == fmt.sign_shift
        yield f"only {'the sign' if sign else f'bit {high}'} of the result is ever wrong"
    elif high - low < fmt.bits // 2:
        yield f"only bits {low} to {high} of the result are ever wrong"


def _by_relation(fmt: Format, expected: Bits, actual: Bits) -> Iterator[str]:
    """What most wrong results have in common with what they should be."""
    relations = (_float_relations if fmt.is_float else _relations)(fmt, expected, actual)
    for text, mask in relations:
        share = float(mask.mean())
        if share >= CONDITIONS.related:
            amount = "all wrong results" if share == 1 else f"{int(share * 100)} % of the wrong results"
            yield f"{amount} {text}"


def _relations(fmt: Format, expected: Bits, actual: Bits) -> Iterator[tuple[str, Mask]]:
    want, got = to_float(fmt, expected), to_float(fmt, actual)
    yield "are 0", actual == 0
    # how far off they are, up or down, in the range of the result, which wraps around
    ones = fmt.dtype.type((1 << fmt.bits) - 1)
    distances = np.minimum((actual - expected) & ones, (expected - actual) & ones)
    often, counts = np.unique(distances, return_counts=True)
    by = int(often[counts.argmax()])
    power = f" (2^{by.bit_length() - 1})" if by & (by - 1) == 0 else ""
    how = "one unit of the last place" if by == 1 else f"{by:#x}{power}"
    yield f"are {how} off", distances == by
    yield "are the right number with the wrong sign", (want == -got) & (want != 0)


def _float_relations(fmt: Format, expected: Bits, actual: Bits) -> Iterator[tuple[str, Mask]]:
    want, got = to_float(fmt, expected), to_float(fmt, actual)
    both = np.isfinite(want) & np.isfinite(got) & (want != 0) & (got != 0)
    sign = fmt.dtype.type(1 << fmt.sign_shift) if fmt.signed else fmt.dtype.type(0)
    yield "are zero", got == 0
    yield "are NaN", np.isnan(got)
    yield "are infinite", np.isinf(got)
    yield "are finite where a NaN or an infinity is right", np.isfinite(got) & ~np.isfinite(want)
    yield "are right except for the sign", (expected ^ actual == sign) & (sign != 0)
    fractions = [np.frexp(np.abs(np.where(both, each, 1)))[0] for each in (want, got)]
    exponents = [np.frexp(np.where(both, each, 1))[1] for each in (want, got)]
    moved = both & (fractions[0] == fractions[1]) & (exponents[0] != exponents[1])
    yield "have the right fraction and another exponent", moved
    distance = (exponents[1] - exponents[0])[moved]
    if len(distance) and len(set(distance.tolist())) == 1:
        yield f"are {times_power(int(distance[0]))} what they should be", moved
    place = np.abs((expected & ~sign).astype(np.int64) - (actual & ~sign).astype(np.int64)) >> fmt.ignored_low
    yield "are one unit of the last place off", both & (place == 1)
