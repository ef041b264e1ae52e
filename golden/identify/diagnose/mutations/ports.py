"""Faults outside the arithmetic: wrong operands at the ports, wrong results at the ports, and units that are
a wire.

docs/diagnosis.md lists the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from golden import stimuli
from golden.identify.diagnose.mutations.mutation import Mutation, Rewire, Rework, distinct
from golden.identify.diagnose.mutations.relations import relations
from golden.identify.diagnose.mutations.wiring import repeated
from golden.identify.diagnose.policy import RANGES
from golden.model.instruction import Instruction
from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands
from golden.program.steps import Additions, Fma
from golden.vectors.word import Field, WordLayout

LATE = ((1, "late"), (-1, "early"))
"""Vectors by which an operand is late, and the word for it."""
_ALL_OF_IT = 0.9
"""Weight of a description of the whole unit: lower than that of a description of a part."""


def ports(ins: Instruction) -> list[Mutation]:
    """Every fault of one vector by itself; of faults with the same effect only the first."""
    makers = (_left_out, _ranges, _stuck, _places, repeated, _words, _swapped, _results, relations)
    wires = (wire for end in _ends(ins) for wire in _wires(ins.formats["d"], end))
    return [*distinct(one for maker in makers for one in maker(ins)), *distinct([*wires, *_c_rounded(ins)])]


def constant(ins: Instruction, code: int) -> Mutation:
    """A result that never changes. It states a symptom: whatever holds the result may be the cause."""
    full = lambda codes: np.full(codes.shape, code, ins.formats["d"].dtype)  # noqa: E731
    text = f"a result that is always {code:#x} (a symptom, not its cause)"
    return Mutation("result-constant", text, result=full, symptom=True)


# Operands of another vector ---------------------------------------------------------------------------------


def skews(ins: Instruction) -> list[Mutation]:
    """Operands of the vector before or after: a register too many or too few."""
    found = []
    for text, names in (("a and b", "ab"), ("c", "c"), ("a", "a"), ("b", "b")):
        for late, word in LATE if not set(names) & set(ins.absent) else ():
            found.append(_skew(f"{names}-{word}-by-one", f"{text} {word} by one vector", names, late))
    factors = "".join(name for name in "ab" if name not in ins.absent)
    for j in range(ins.k if ins.pattern is None and 1 < ins.k <= RANGES.few_k else 0):
        for late, word in LATE:  # in a systolic row each element has registers of its own
            text = f"the product of k = {j} {word} by one vector"
            found.append(replace(_skew(f"product-{j}-{word}-by-one", text, factors, late, j), weight=1.1))
    return found


def _skew(slug: str, text: str, names: str, late: int, place: int | None = None) -> Mutation:
    def rewire(operands: Operands) -> Operands:
        found = dict(operands)
        for name in names:
            found[name] = operands[name].copy()
            at = ... if place is None else (..., place)
            found[name][at] = np.roll(operands[name][at], late, axis=0)
        return found

    return Mutation(slug, text, operands=rewire, in_order=True)


# Operands that are left out ---------------------------------------------------------------------------------

_Place = int | slice | Bits


def _with_zeros(names: str, place: _Place = slice(None)) -> Rewire:
    def rewire(operands: Operands) -> Operands:
        found = dict(operands)
        for name in names:
            found[name] = operands[name].copy()
            found[name][..., place] = 0
        return found

    return rewire


def _zeroed(
    ins: Instruction, slug: str, text: str, names: str, place: _Place, weight: float = 1.0
) -> Mutation:
    """Elements of factors that count as zero. An integer product is zero with either of its factors."""
    factors = "ab" if not ins.formats["a"].is_float else names
    where = tuple(np.atleast_1d(np.arange(ins.stored_k)[place]).tolist())
    rewire = _with_zeros(names, place)
    return Mutation(slug, text, weight, operands=rewire, does=("zeros", factors, where))


def without_c(operands: Operands) -> Operands:
    """c counts as zero."""
    return operands | {"c": np.zeros_like(operands["c"])}


def _left_out(ins: Instruction) -> Iterator[Mutation]:
    """Operands that count as zero, scales that count as one."""
    factors = "".join(name for name in "ab" if name not in ins.absent)
    if "c" not in ins.absent:
        yield Mutation("c-ignored", "c ignored", operands=without_c)
        if _adds_signed_zeros(ins):
            text = "c ignored: not even a zero is added for it"
            yield Mutation("c-not-added", text, operands=_as_minus_zero(ins, "c"))
        yield _zeroed(ins, "products-ignored", "the products ignored (d = c)", factors, slice(None))
    for j in range(ins.stored_k):
        yield _zeroed(ins, f"element-{j}-dropped", f"element k = {j} left out", factors[:1], j)
        if len(factors) > 1:
            text = f"element k = {j} left out, whatever it is"
            yield _zeroed(ins, f"product-{j}-dropped", text, factors, j, weight=1.1)
        if _adds_signed_zeros(ins):
            text = f"element k = {j} left out: not even a zero is added for it"
            yield Mutation(f"product-{j}-not-added", text, 1.1, operands=_as_minus_zero(ins, factors, j))
    if ins.scale_block is not None:
        for slug, names in (("scales", "ab"), ("scale-a", "a"), ("scale-b", "b")):
            scales = tuple(f"scale_{name}" for name in names)
            text = f"{' and '.join(scales)} taken as 1"
            yield Mutation(f"{slug}-ignored", text, operands=partial(_with_ones, ins, scales))


def _with_ones(ins: Instruction, names: tuple[str, ...], operands: Operands) -> Operands:
    return operands | {n: np.full_like(operands[n], stimuli.one(ins.formats[n])) for n in names}


def _adds_signed_zeros(ins: Instruction) -> bool:
    """Whether the result shows that a zero was added: +0 and -0 give +0, and -0 alone does not."""
    return bool(ins.program.steps_of(Additions) or ins.program.steps_of(Fma)) and all(
        ins.formats[name].has_negative_zero for name in "abcd" if name not in ins.absent
    )


def _as_minus_zero(ins: Instruction, names: str, place: int | slice = slice(None)) -> Rewire:
    """-0, which changes no sum: of two factors the first one is negative."""
    fmt, zeros = ins.formats[names[0]], _with_zeros(names, place)

    def rewire(operands: Operands) -> Operands:
        found = zeros(operands)
        found[names[0]][..., place] = fmt.dtype.type(1 << fmt.sign_shift)
        return found

    return rewire


def _ranges(ins: Instruction) -> Iterator[Mutation]:
    """Elements from a place on, up to a place, or in every second block, that count as zero."""
    if ins.sparse or ins.k < 4:
        return
    factors = [name for name in "ab" if name not in ins.absent]
    places: dict[str, tuple[str, _Place]] = {}
    step = max(ins.k // 16, 1)  # sixteen limits cover a k of any length
    for j in range(step, ins.k, step):
        places[f"from-{j}"] = (f"from k = {j} on", slice(j, None))
        places[f"below-{j}"] = (f"below k = {j}", slice(0, j))
    for size in (1 << n for n in range((ins.k // 4).bit_length())):
        for odd, word in enumerate(("even", "odd")):
            text = f"in the {word} blocks of {size}" if size > 1 else f"at {word} k"
            places[f"{word}-blocks-of-{size}"] = (text, np.arange(ins.k) // size % 2 == odd)
    apart = factors if ins.formats["a"].is_float else []
    for names in dict.fromkeys((*apart, "".join(factors))):
        for slug, (text, where) in places.items():
            counted = f"the elements of {' and '.join(names)} {text} left out"
            yield _zeroed(ins, f"{names}-{slug}-dropped", counted, names, where, weight=1.05)


# Codes of operands ------------------------------------------------------------------------------------------


def _on_codes(name: str, rework: Rework) -> Rewire:
    return lambda operands: operands | {name: rework(operands[name])}


def _masked(mask: Bits, high: int) -> Rework:
    return lambda codes: codes | mask if high else codes & ~mask


def _bits_of(fmt: Format) -> range:
    """The significant bits of a code."""
    return range(fmt.ignored_low, fmt.bits)


def _stuck(ins: Instruction) -> Iterator[Mutation]:
    """Bits of operands that are always 0 or 1, and signs that are inverted."""
    for name in ("a", "b", "c", "scale_a", "scale_b"):
        fmt = ins.formats.get(name)
        if fmt is None or name in ins.absent:
            continue
        slug, signed = name.replace("_", "-"), fmt.is_float and fmt.signed
        for bit in _bits_of(fmt):
            what = f"the sign of {name}" if signed and bit == fmt.sign_shift else f"bit {bit} of {name}"
            for high, level in enumerate(("low", "high")):
                rule = _on_codes(name, _masked(fmt.dtype.type(1 << bit), high))
                yield Mutation(f"{slug}-bit-{bit}-{level}", f"{what} always {high}", 1.15, operands=rule)
        if signed:
            flip = partial(np.bitwise_xor, fmt.dtype.type(1 << fmt.sign_shift))
            yield Mutation(f"{slug}-negated", f"the sign of {name} inverted", operands=_on_codes(name, flip))


def _places(ins: Instruction) -> Iterator[Mutation]:
    """The elements of b in another order than the elements of a."""
    if "b" in ins.absent or ins.k < 2:
        return
    k, half = list(range(ins.k)), ins.k // 2
    orders = {
        "reversed": ("the elements of b in reverse order", k[::-1]),
        "halves-swapped": ("the halves of b swapped", k[half:] + k[:half]),
        "late-by-one-element": ("b one element late", k[-1:] + k[:-1]),
        "early-by-one-element": ("b one element early", k[1:] + k[:1]),
        "pairs-swapped": ("neighbours of b swapped", [i ^ 1 if i ^ 1 < ins.k else i for i in k]),
        "quads-swapped": ("pairs of b's neighbours swapped", [i ^ 2 if i ^ 2 < ins.k else i for i in k]),
        "even-first": ("the even elements of b before the odd ones", k[::2] + k[1::2]),
        "interleaved": ("the halves of b interleaved", [j for i in range(half) for j in (i, i + half)]),
        "first-everywhere": ("the first element of b in place of all", [0] * ins.k),
    }
    for slug, (text, order) in orders.items():
        if len(order) == ins.k and order != k:
            yield _ordered(f"b-{slug}", text, order)
    for j in range(ins.k - 1):
        text = f"elements {j} and {j + 1} of b swapped"
        yield _ordered(f"b-{j}-and-{j + 1}-swapped", text, [*k[:j], j + 1, j, *k[j + 2 :]], 1.1)


def _ordered(slug: str, text: str, order: Sequence[int], weight: float = 1.0) -> Mutation:
    rewire = _on_codes("b", lambda codes: codes[:, list(order)])
    return Mutation(slug, text, weight, operands=rewire, does=("b", *order))


def _words(ins: Instruction) -> Iterator[Mutation]:
    """Codes whose bytes or halves are swapped."""
    for name in "abc":
        for slug, text, swap in _swaps(ins.formats[name]) if name not in ins.absent else ():
            yield Mutation(f"{name}-{slug}", f"{text} of {name} swapped", operands=_on_codes(name, swap))


def _swaps(fmt: Format) -> Iterator[tuple[str, str, Rework]]:
    if fmt.storage != fmt.bits or fmt.storage < 16:
        return
    yield "bytes-swapped", "the bytes", lambda codes: codes.byteswap()
    if fmt.storage > 16:
        half = fmt.dtype.type(fmt.storage // 2)
        yield "halves-swapped", "the halves", lambda codes: codes << half | codes >> half


def _swapped(ins: Instruction) -> Iterator[Mutation]:
    """Exchanged ports of equal width, whatever their formats and numbers of elements."""
    fields = [field for field in WordLayout.of(ins).operand_fields if field.name in ins.formats]
    for one, other in combinations(fields, 2):
        same = ins.formats[one.name] == ins.formats[other.name]
        commute = {one.name, other.name} in ({"a", "b"}, {"scale_a", "scale_b"})
        if one.width == other.width and not (same and commute):
            slug = f"{one.name}-and-{other.name}-swapped".replace("_", "-")
            text = f"{one.name} read where {other.name} belongs, and the other way round"
            yield Mutation(slug, text, operands=_exchanged(one, other))


def _alone(field: Field) -> WordLayout:
    """The layout of a word that holds nothing else."""
    return WordLayout("dot", (replace(field, lsb=0),))


def _exchanged(one: Field, other: Field) -> Rewire:
    here, there = _alone(one), _alone(other)

    def rewire(operands: Operands) -> Operands:
        words = here.pack_operands(operands), there.pack_operands(operands)
        return operands | here.unpack_operands(words[1]) | there.unpack_operands(words[0])

    return rewire


# Results ----------------------------------------------------------------------------------------------------


def _results(ins: Instruction) -> Iterator[Mutation]:
    fmt = ins.formats["d"]
    for slug, text, swap in _swaps(fmt):
        yield Mutation(f"result-{slug}", f"{text} of the result swapped", result=swap)
    word = fmt.dtype.type
    # Single bits of the port that are stuck.
    for bit in _bits_of(fmt):
        mask = word(1 << bit)
        yield _low(f"result-bit-{bit}-low", f"bit {bit} of the result always 0", mask, 1.2)
        high = _masked(mask, 1)
        yield Mutation(f"result-bit-{bit}-high", f"bit {bit} of the result always 1", 1.2, result=high)
    # A port that is too narrow on either side.
    for bit in _bits_of(fmt)[1:-1]:
        upper, lower = word(((1 << fmt.storage) - 1) >> bit << bit), word((1 << bit) - 1)
        yield _low(f"result-from-bit-{bit}-low", f"bits {bit} and up of the result always 0", upper, 1.25)
        yield _low(f"result-below-bit-{bit}-low", f"bits below {bit} of the result always 0", lower, 1.25)
    if not fmt.is_float or not fmt.signed:
        return
    # The sign, of all results or only of zeros and infinities.
    sign, infinity = word(1 << fmt.sign_shift), word(fmt.infinity or 0)
    negated = partial(np.bitwise_xor, sign)
    yield Mutation("result-negated", "the sign of the result inverted", result=negated)
    zero = partial(_where, sign, word(0), negated)
    yield Mutation("zero-negated", "the sign of a zero result inverted", result=zero)
    if fmt.infinity is not None:
        infinite = partial(_where, sign, infinity, negated)
        yield Mutation("infinity-negated", "the sign of an infinite result inverted", result=infinite)
        unsigned = partial(_where, sign, infinity, partial(np.bitwise_and, ~sign))
        yield Mutation("infinity-loses-sign", "an infinite result loses its sign", result=unsigned)


def _low(slug: str, text: str, mask: Bits, weight: float) -> Mutation:
    return Mutation(slug, text, weight, result=_masked(mask, 0), does=("low", int(mask)))


def _where(sign: Bits, magnitude: Bits, rework: Rework, codes: Bits) -> Bits:
    """Changes the codes of one magnitude."""
    return np.where((codes & ~sign) == magnitude, rework(codes), codes)


# Units without arithmetic: a wire from an operand to the result ---------------------------------------------


@dataclass(frozen=True)
class _End:
    """The start of a wire: a whole port, or one of its elements.

    Attributes:
        slug, text: its name.
        first, bits: the bits of the port.
        codes: their values, (n,). fmt: their format; None: of a port of several elements.
    """

    slug: str
    text: str
    first: int
    bits: int
    codes: Callable[[Operands], Bits]
    fmt: Format | None = None


def _ends(ins: Instruction) -> Iterator[_End]:
    """Every port, and every element of one. Where c and d are the same integers, a wire from c is
    `products-ignored`."""
    d = ins.formats["d"]
    for field in WordLayout.of(ins).operand_fields:
        if field.name not in ins.formats or (field.name == "c" and not d.is_float and ins.formats["c"] == d):
            continue
        name, slug = field.name, field.name.replace("_", "-")
        if field.elements > 1:
            yield _End(slug, name, 0, field.width, partial(_lowest, field))
        for j in range(field.elements):
            one = (f"{slug}-{j}", f"{name}[{j}]") if field.shape else (slug, name)
            yield _End(*one, j * field.bits, field.bits, partial(_element, field, j), ins.formats[name])


def _element(field: Field, place: int, operands: Operands) -> Bits:
    return operands[field.name].reshape(-1, field.elements)[:, place]


def _lowest(field: Field, operands: Operands) -> Bits:
    """The lowest 64 bits of a port."""
    words = _alone(field).pack_operands({field.name: operands[field.name]})
    padded = np.zeros((len(words), 8), np.uint8)
    padded[:, : words.shape[1]] = words[:, :8]
    return padded.view("<u8")[:, 0]


def _wires(d: Format, end: _End) -> Iterator[Mutation]:
    """The bits unchanged; if they are fewer than the result's, also with the others in other places."""
    above, ones = np.uint64(max(d.bits - end.bits, 0)), np.uint64((1 << d.bits) - 1)

    def wire(kind: str, where: str, codes: Callable[[Bits], Bits], does: object = None) -> Mutation:
        answer = lambda _unit, operands: (codes(end.codes(operands).astype(np.uint64)) & ones).astype(d.dtype)  # noqa: E731
        slug, text = f"result-is-{end.slug}{kind}", f"a wire from {where}"
        return Mutation(slug, text, _ALL_OF_IT, answer=answer, does=does)

    if end.bits > d.bits:
        where = f"the lowest {d.bits} bits of {end.text} to d"
    else:
        where = f"{end.text} to d: its bits as they are{', zeros above' * bool(above)}"
    does = ("bits", end.slug.split("-")[0], end.first, min(end.bits, d.bits))
    yield wire("", where, lambda bits: bits, does)
    if above and end.fmt is not None and end.fmt.is_float:
        yield wire("-high", f"{end.text} to the high bits of d", lambda bits: bits << above)
    elif above and end.fmt is not None and end.fmt.signed:
        sign = np.uint64(1 << (end.bits - 1))
        yield wire("-extended", f"{end.text} to d, its sign extended", lambda bits: (bits ^ sign) - sign)


def _c_rounded(ins: Instruction) -> Iterator[Mutation]:
    """c in the format of the result, with what a converter does and a sum does not: a zero keeps its sign,
    and a NaN its sign and its upper bits."""
    c, d = ins.formats["c"], ins.formats["d"]
    if "c" in ins.absent or c == d or not (c.has_negative_zero and d.has_negative_zero):
        return
    none = _with_zeros("".join(name for name in "ab" if name not in ins.absent))
    minus, plus = d.dtype.type(1 << d.sign_shift), d.dtype.type(0)

    def rounded(unit: Instruction, operands: Operands) -> Bits:
        codes, signs = unit.dot(**none(operands)), operands["c"] >> c.dtype.type(c.sign_shift)
        return np.where(codes & ~minus == 0, np.where(signs, minus, plus), codes)

    text = "c alone, rounded to d"
    yield Mutation("result-is-c-rounded", text, _ALL_OF_IT, answer=rounded)
    if c.specials == d.specials == "ieee":
        kept = lambda unit, operands: _nans_kept(c, d, operands["c"], rounded(unit, operands))  # noqa: E731
        text = f"{text}, a NaN as it is"
        yield Mutation("result-is-c-rounded-nan-kept", text, _ALL_OF_IT, answer=kept)


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
