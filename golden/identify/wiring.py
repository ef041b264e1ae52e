"""Faults outside the arithmetic: operands that arrive otherwise, and results that leave otherwise.

A `Wire` changes codes, not the program, so that it can stand beside any change of the program
(golden/identify/hypotheses.py). docs/diagnosis.md lists the names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from golden import stimuli
from golden.identify import datapath
from golden.identify.datapath import Tap
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.program.signature import Bits, Operands
from golden.program.steps import Additions, Fma
from golden.vectors.word import Field, WordLayout

Rewire = Callable[[Operands], Operands]
Rework = Callable[[Bits], Bits]
Answer = Callable[[Instruction, Operands], Bits]
_FEW_K = 16
"""Elements of k of which each may have a register too many or too few."""
BESIDE = ("clear", "held", "load", "late", "given_a", "given_b", "given_c")
"""What stands beside the operands of a unit that keeps its accumulator, see `beside` of
golden/identify/accumulator_faults.py."""


@dataclass(frozen=True)
class Wire:
    """One fault of the wiring: of the operands before the arithmetic, or of the result behind it. `in_order`:
    it looks at the vectors before or after, by one. `answer`: what stands in the place of all arithmetic.
    `does`: what it does, where another one may do the same under another name."""

    slug: str
    text: str
    operands: Rewire | None = None
    result: Rework | None = None
    answer: Answer | None = None
    weight: float = 1.0
    in_order: bool = False
    does: Hashable = None


def run(ins: Instruction, faults: Sequence[Wire | Tap], operands: Operands) -> Bits:
    """What a unit answers that computes `ins` with these faults of its wires and of its datapath."""
    before = [fault for fault in faults if isinstance(fault, Wire)]
    inside = [fault for fault in faults if isinstance(fault, Tap)]
    for fault in before:
        operands = fault.operands(operands) if fault.operands else operands
    own = {name: codes for name, codes in operands.items() if name not in BESIDE}
    answer = next((fault.answer for fault in before if fault.answer), None)
    if answer is not None:
        codes = answer(ins, own)
    else:
        codes = datapath.results(ins, inside, own) if inside else ins.dot(**own)
    for fault in before:
        codes = fault.result(codes) if fault.result else codes
    return codes


def wires(ins: Instruction) -> list[Wire]:
    """Every fault of the wiring that `ins` can have; of those that do the same the first."""
    makers = (_left_out, _ranges, _stuck, _places, _words, _swapped, _results)
    return distinct(wire for maker in makers for wire in maker(ins))


def distinct(found: Iterable[Wire]) -> list[Wire]:
    """Of those that do the same the first."""
    kept: dict[Hashable, Wire] = {}
    for wire in found:
        kept.setdefault(wire.slug if wire.does is None else wire.does, wire)
    return list(kept.values())


LATE = ((1, "late"), (-1, "early"))
"""By how many vectors an operand is another one's, and the word for it."""


def skews(ins: Instruction) -> list[Wire]:
    """Operands that belong to the vector before or after: a register too many or too few."""
    groups = {"a and b": "ab", "c": "c", "a": "a", "b": "b"}
    found = []
    for text, names in groups.items():
        if set(names) & set(ins.absent):
            continue
        for late, word in LATE:
            slug = f"{names}-{word}-by-one"
            found.append(Wire(slug, f"{text} {word} by one vector", _rolled(names, late), in_order=True))
    factors = [name for name in "ab" if name not in ins.absent]
    for j in range(ins.k if ins.pattern is None and 1 < ins.k <= _FEW_K else 0):
        for late, word in LATE:
            text = f"the product of k = {j} {word} by one vector"
            rewire = _element_rolled(factors, j, late)
            found.append(Wire(f"product-{j}-{word}-by-one", text, rewire, in_order=True, weight=1.1))
    return found


def _element_rolled(names: list[str], place: int, late: int) -> Rewire:
    """One element alone: in a systolic row each has registers of its own."""

    def rewire(operands: Operands) -> Operands:
        found = dict(operands)
        for name in names:
            found[name] = operands[name].copy()
            found[name][..., place] = np.roll(operands[name][..., place], late, axis=0)
        return found

    return rewire


def _rolled(names: str, late: int) -> Rewire:
    return lambda operands: operands | {name: np.roll(operands[name], late, axis=0) for name in names}


# Operands ---------------------------------------------------------------------------------------------------


def _with_zeros(names: str, place: int | slice | Bits) -> Rewire:
    def rewire(operands: Operands) -> Operands:
        found = dict(operands)
        for name in names:
            found[name] = operands[name].copy()
            found[name][..., place] = 0
        return found

    return rewire


def _zeroed(
    ins: Instruction, slug: str, text: str, names: str, place: int | slice | Bits, weight: float = 1.0
) -> Wire:
    """Elements of factors that count as zero. An integer product is zero with either of its factors."""
    factors = "ab" if not ins.formats["a"].is_float else names
    where = tuple(np.atleast_1d(np.arange(ins.stored_k)[place]).tolist())
    return Wire(slug, text, _with_zeros(names, place), weight=weight, does=("zeros", factors, where))


def without_products(ins: Instruction) -> Rewire:
    """All factors zero."""
    return _with_zeros("".join(name for name in "ab" if name not in ins.absent), slice(None))


def _with_ones(ins: Instruction, names: tuple[str, ...]) -> Rewire:
    return lambda operands: (
        operands | {n: np.full_like(operands[n], stimuli.one(ins.formats[n])) for n in names}
    )


def _left_out(ins: Instruction) -> Iterator[Wire]:
    """Operands that count as zero, scales that count as one."""
    factors = "".join(name for name in "ab" if name not in ins.absent)
    if "c" not in ins.absent:
        yield Wire("c-ignored", "c ignored", without_c)
        if _adds_signed_zeros(ins):
            text = "c ignored: not even a zero is added for it"
            yield Wire("c-not-added", text, _as_minus_zero(ins, "c"))
        yield _zeroed(ins, "products-ignored", "the products ignored (d = c)", factors, slice(None))
    for j in range(ins.stored_k):
        yield _zeroed(ins, f"element-{j}-dropped", f"element k = {j} left out", factors[:1], j)
        if len(factors) > 1:
            text = f"element k = {j} left out, whatever it is"
            yield _zeroed(ins, f"product-{j}-dropped", text, factors, j, weight=1.1)
        if _adds_signed_zeros(ins):
            text = f"element k = {j} left out: not even a zero is added for it"
            yield Wire(f"product-{j}-not-added", text, _as_minus_zero(ins, factors, j), weight=1.1)
    if ins.scale_block is not None:
        for slug, names in (("scales", "ab"), ("scale-a", "a"), ("scale-b", "b")):
            scales = tuple(f"scale_{name}" for name in names)
            yield Wire(f"{slug}-ignored", f"{' and '.join(scales)} taken as 1", _with_ones(ins, scales))


def _adds_signed_zeros(ins: Instruction) -> bool:
    """Whether the result shows if a zero was added: +0 and -0 give +0, and -0 alone does not."""
    return bool(ins.program.steps_of(Additions) or ins.program.steps_of(Fma)) and all(
        ins.formats[name].has_negative_zero for name in "abcd" if name not in ins.absent
    )


def _as_minus_zero(ins: Instruction, names: str, place: int | slice = slice(None)) -> Rewire:
    """-0, which no addition notices: of two factors the first one is negative."""
    fmt, zeros = ins.formats[names[0]], _with_zeros(names, place)

    def rewire(operands: Operands) -> Operands:
        found = zeros(operands)
        found[names[0]][..., place] = fmt.dtype.type(1 << fmt.sign_shift)
        return found

    return rewire


def _ranges(ins: Instruction) -> Iterator[Wire]:
    """Elements from a place on, up to a place, or in every second block, that count as zero."""
    if ins.sparse or ins.k < 4:
        return
    factors = [name for name in "ab" if name not in ins.absent]
    step = max(ins.k // 16, 1)
    places = {f"from-{j}": (f"from k = {j} on", slice(j, None)) for j in range(step, ins.k, step)}
    places |= {f"below-{j}": (f"below k = {j}", slice(0, j)) for j in range(step, ins.k, step)}
    blocks = np.arange(ins.k)
    for size in (1 << n for n in range(10) if 1 << n <= ins.k // 4):
        for odd, word in enumerate(("even", "odd")):
            text = f"in the {word} blocks of {size}" if size > 1 else f"at {word} k"
            places[f"{word}-blocks-of-{size}"] = (text, blocks // size % 2 == odd)
    apart = factors if ins.formats["a"].is_float else []
    for names in dict.fromkeys((*apart, "".join(factors))):
        for slug, (text, where) in places.items():
            counted = f"the elements of {' and '.join(names)} {text} left out"
            yield _zeroed(ins, f"{names}-{slug}-dropped", counted, names, where, weight=1.05)


def _stuck(ins: Instruction) -> Iterator[Wire]:
    """Bits of operands that are always 0 or 1, and signs that are inverted."""
    for name in ("a", "b", "c", "scale_a", "scale_b"):
        fmt = ins.formats.get(name)
        if fmt is None or name in ins.absent:
            continue
        slug, word = name.replace("_", "-"), fmt.dtype.type
        signed = fmt.is_float and fmt.signed
        for bit in _places_of(fmt):
            what = f"the sign of {name}" if signed and bit == fmt.sign_shift else f"bit {bit} of {name}"
            for high, level in enumerate(("low", "high")):
                rule = _reworded(name, _masked(word(1 << bit), high))
                yield Wire(f"{slug}-bit-{bit}-{level}", f"{what} always {high}", rule, weight=1.15)
        if signed:
            flip = word(1 << fmt.sign_shift)
            rule = _reworded(name, lambda codes, m=flip: codes ^ m)  # type: ignore[misc]
            yield Wire(f"{slug}-negated", f"the sign of {name} inverted", rule)


def without_c(operands: Operands) -> Operands:
    return operands | {"c": np.zeros_like(operands["c"])}


def _places(ins: Instruction) -> Iterator[Wire]:
    """The elements of b in another order than those of a."""
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
            yield Wire(f"b-{slug}", text, _picked("b", order), does=("b", *order))
    for j in range(ins.k - 1):
        swapped = [*k[:j], j + 1, j, *k[j + 2 :]]
        yield Wire(
            f"b-{j}-and-{j + 1}-swapped",
            f"elements {j} and {j + 1} of b swapped",
            _picked("b", swapped),
            weight=1.1,
            does=("b", *swapped),
        )


def _picked(name: str, order: Sequence[int]) -> Rewire:
    return lambda operands: operands | {name: operands[name][:, list(order)]}


def _words(ins: Instruction) -> Iterator[Wire]:
    """Codes whose bytes or halves are swapped."""
    for name in "abc":
        if name not in ins.absent:
            for slug, text, swap in _swaps(ins.formats[name]):
                yield Wire(f"{name}-{slug}", f"{text} of {name} swapped", _reworded(name, swap))


def _reworded(name: str, swap: Rework) -> Rewire:
    return lambda operands: operands | {name: swap(operands[name])}


def _swaps(fmt: Format) -> Iterator[tuple[str, str, Rework]]:
    if fmt.storage != fmt.bits or fmt.storage < 16:
        return
    yield "bytes-swapped", "the bytes", lambda codes: codes.byteswap()
    if fmt.storage > 16:
        half = fmt.dtype.type(fmt.storage // 2)
        yield "halves-swapped", "the halves", lambda codes: codes << half | codes >> half


def _swapped(ins: Instruction) -> Iterator[Wire]:
    """Ports of equal width in each other's place, whatever their formats and the number of their elements."""
    fields = [field for field in WordLayout.of(ins).operand_fields if field.name in ins.formats]
    for one, other in combinations(fields, 2):
        formats = [ins.formats[field.name] for field in (one, other)]
        commute = {one.name, other.name} in ({"a", "b"}, {"scale_a", "scale_b"})
        if one.width == other.width and (formats[0] != formats[1] or not commute):
            yield Wire(
                f"{one.name}-and-{other.name}-swapped".replace("_", "-"),
                f"{one.name} read where {other.name} belongs, and the other way round",
                _exchanged(one, other),
            )


def _exchanged(one: Field, other: Field) -> Rewire:
    here, there = (WordLayout("dot", (replace(field, lsb=0),)) for field in (one, other))

    def rewire(operands: Operands) -> Operands:
        words = here.pack_operands(operands), there.pack_operands(operands)
        return operands | here.unpack_operands(words[1]) | there.unpack_operands(words[0])

    return rewire


# Results ----------------------------------------------------------------------------------------------------


def _results(ins: Instruction) -> Iterator[Wire]:
    fmt = ins.formats["d"]
    for slug, text, swap in _swaps(fmt):
        yield Wire(f"result-{slug}", f"{text} of the result swapped", result=swap)
    word = fmt.dtype.type
    for bit in _places_of(fmt):
        mask = word(1 << bit)
        yield _low(f"result-bit-{bit}-low", f"bit {bit} of the result always 0", mask, 1.2)
        yield Wire(
            f"result-bit-{bit}-high", f"bit {bit} of the result always 1", result=_masked(mask, 1), weight=1.2
        )
    for bit in _places_of(fmt)[1:-1]:
        upper, lower = word(((1 << fmt.storage) - 1) >> bit << bit), word((1 << bit) - 1)
        yield _low(f"result-from-bit-{bit}-low", f"bits {bit} and up of the result always 0", upper, 1.25)
        yield _low(f"result-below-bit-{bit}-low", f"bits below {bit} of the result always 0", lower, 1.25)
    if not fmt.is_float or not fmt.signed:
        return
    sign, infinity = word(1 << fmt.sign_shift), word(fmt.infinity or 0)
    yield Wire("result-negated", "the sign of the result inverted", result=lambda codes: codes ^ sign)
    yield Wire("zero-negated", "the sign of a zero result inverted", result=_where(sign, word(0)))
    if fmt.infinity is not None:
        yield Wire(
            "infinity-negated", "the sign of an infinite result inverted", result=_where(sign, infinity)
        )
        yield Wire(
            "infinity-loses-sign", "an infinite result loses its sign", result=_unsigned(sign, infinity)
        )


def _low(slug: str, text: str, mask: Bits, weight: float) -> Wire:
    return Wire(slug, text, result=_masked(mask, 0), weight=weight, does=("low", int(mask)))


def _places_of(fmt: Format) -> range:
    """The places of a code's bits that mean something."""
    return range(fmt.ignored_low, fmt.bits)


def _masked(mask: Bits, high: int) -> Rework:
    return lambda codes: codes | mask if high else codes & ~mask


def _where(sign: Bits, magnitude: Bits) -> Rework:
    return lambda codes: np.where((codes & ~sign) == magnitude, codes ^ sign, codes)


def _unsigned(sign: Bits, magnitude: Bits) -> Rework:
    return lambda codes: np.where((codes & ~sign) == magnitude, magnitude, codes)
