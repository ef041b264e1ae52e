"""The reference model: interprets a program's steps literally, in exact Python integers, one dot product at a
time.

It reads like the paper and keeps a trace of every step; it explains, it is not fast. The C core in
golden/core is the fast model of the same program; tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, assert_never

from golden.number import status
from golden.number.formats import Format, Kind, Number
from golden.number.rounding import convert, round_to_code, shift_right
from golden.program.program import NO_SEED, Operation, Program
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    IeeeStep,
    Multiply,
    Normalize,
    Part,
    Replace,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    factor_of,
    rounding_of,
)

ZERO = Number(Kind.ZERO)
NAN = Number(Kind.NAN)


@dataclass(frozen=True)
class Cut:
    """What alignment did to one term.

    shift: the right shift, maximum - e (0: a term at the maximum). bits: how many low bits were cut off; all
    where the whole term counts as zero. lost: their magnitude.
    """

    shift: int
    bits: int
    lost: int


@dataclass(frozen=True)
class Event:
    """One executed step: the registers it wrote and what a reader wants to know about it.

    raised: the status flags that it raises; the first step of an operation has those of the operands, too.
    """

    operation: int
    step: Step
    written: dict[str, tuple[Number, ...]]
    max_exponents: tuple[int | None, ...] = ()
    cuts: dict[str, tuple[Cut | None, ...]] | None = None
    code: int | None = None
    raised: frozenset[str] = status.NOTHING


@dataclass
class State:
    """Registers of one running operation: each holds a tuple of exact numbers."""

    operation: Operation
    registers: dict[str, tuple[Number, ...]]
    a_codes: Sequence[int]
    b_codes: Sequence[int]
    result: int | None = None
    raised: set[str] = field(default_factory=set)
    """The status flags that the running step raises."""


def evaluate(
    program: Program,
    formats: dict[str, Format],
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scales: tuple[Sequence[int], Sequence[int], int] | None = None,
    events: list[Event] | None = None,
) -> int:
    """Computes one dot product d = c + sum(a[k] * b[k]) the way the program says.

    Args:
        formats: operand formats by "a", "b", "c", "d" (and "scale_a", "scale_b").
        a, b: raw codes, one per product (sparse: the stored elements and the b elements the metadata
            selects).
        scales: raw scale codes of a and b and the number of consecutive products that share one.
        events: when given, every executed step is appended.

    Returns:
        The raw code of d.
    """
    results: dict[str, int] = {"c": c, "zero": 0, NO_SEED: 0}
    code = 0
    for index, operation in enumerate(program.operations):
        code = _run_operation(index, operation, formats, a, b, results, scales, events)
        results[operation.to] = code
    return code


def _run_operation(
    index: int,
    operation: Operation,
    formats: dict[str, Format],
    a: Sequence[int],
    b: Sequence[int],
    results: dict[str, int],
    scales: tuple[Sequence[int], Sequence[int], int] | None,
    events: list[Event] | None,
) -> int:
    def converted(numbers: tuple[Number, ...]) -> tuple[Number, ...]:
        target = operation.operand_format
        return tuple(convert(number, target) for number in numbers) if target else numbers

    read_a, read_b = (
        tuple(formats[name].decode(codes[k]) for k in operation.k_index)
        for name, codes in (("a", a), ("b", b))
    )
    registers = {
        "a": converted(read_a),
        "b": converted(read_b),
        "c": (operation.seed_format.decode(results[operation.seed]),),
        "addends": tuple(operation.out_format.decode(results[name]) for name in operation.addends),
    }
    state = State(operation, registers, [a[k] for k in operation.k_index], [b[k] for k in operation.k_index])
    if scales is not None:
        registers |= _scale_factors(state, scales, formats)
    if _reads_signalling(operation, formats, read_a, read_b, registers, scales):
        state.raised.add("invalid")
    for step in operation.steps:
        event = _execute(state, step)
        if events is not None:
            raised, state.raised = frozenset(state.raised), set()
            events.append(replace(event, operation=index, code=state.result, raised=raised))
        if state.result is not None:
            return state.result
    raise AssertionError("a program's last step writes d")


def _reads_signalling(
    operation: Operation,
    formats: dict[str, Format],
    a: Sequence[Number],
    b: Sequence[Number],
    registers: dict[str, tuple[Number, ...]],
    scales: tuple[Sequence[int], Sequence[int], int] | None,
) -> bool:
    """Whether an operand that the operation reads is a signalling NaN; an earlier result is no operand.

    a, b: as they were read, before any conversion.
    """
    read = [(formats[name], number) for name, numbers in (("a", a), ("b", b)) for number in numbers]
    read += [(operation.seed_format, number) for number in registers["c"] if operation.seed == "c"]
    addends = zip(operation.addends, registers["addends"], strict=True)
    read += [(operation.out_format, number) for name, number in addends if name == "c"]
    if scales is not None:
        scale_a, scale_b, block = scales
        for name, codes in (("scale_a", scale_a), ("scale_b", scale_b)):
            read += [(formats[name], formats[name].decode(codes[k // block])) for k in operation.k_index]
    return any(status.is_signalling(fmt, number) for fmt, number in read)


def _scale_factors(
    state: State, scales: tuple[Sequence[int], Sequence[int], int], formats: dict[str, Format]
) -> dict[str, tuple[Number, ...]]:
    """The scale factors of each k, and their product, exact and not normalised."""
    *codes, block = scales
    sides = {
        name: tuple(formats[name].decode(own[k // block]) for k in state.operation.k_index)
        for name, own in zip(("scale_a", "scale_b"), codes, strict=True)
    }
    return sides | {"scales": tuple(_multiplied(state, x, y) for x, y in zip(*sides.values(), strict=True))}


def _execute(state: State, step: Step) -> Event:
    match step:
        case Flush():
            return _flush(state, step)
        case HiddenBit():
            return _hidden_bit(state, step)
        case Part():
            return _in_place(state, step, lambda number: _part(number, step))
        case Replace():
            return _in_place(state, step, lambda number: _replaced(number, step))
        case Multiply():
            return _multiply(state, step)
        case Scale():
            return _scale(state, step)
        case SpecialValues():
            return _special_values(state, step)
        case Align():
            return _align(state, step)
        case Sum():
            return _sum(state, step)
        case Additions():
            return _additions(state, step)
        case Normalize():
            return _normalize(state, step)
        case Fma():
            return _fma(state, step)
        case Round():
            return _round(state, step)
        case _:
            assert_never(step)


# Steps ------------------------------------------------------------------------------------------------------


def _flush(state: State, step: Flush) -> Event:
    written = {}
    for name in step.of:
        fmt = state.operation.seed_format if name == "c" else None
        written[name] = tuple(
            _zero(number, step.sign) if number.kind == Kind.ZERO or _is_subnormal(number, fmt) else number
            for number in state.registers[name]
        )
    state.registers.update(written)
    return Event(0, step, written)


def _is_subnormal(number: Number, fmt: Format | None) -> bool:
    return (
        number.kind == Kind.FINITE
        and number.significand.bit_length() <= number.fraction_bits
        and (fmt is None or fmt.is_float)
    )


def _zero(number: Number, rule: str) -> Number:
    return replace(
        number, kind=Kind.ZERO, sign=number.sign if rule == "signed" else 0, significand=0, sticky=0
    )


def _hidden_bit(state: State, step: HiddenBit) -> Event:
    written = {
        name: tuple(_with_hidden_bit(number, step) for number in state.registers[name]) for name in step.of
    }
    state.registers.update(written)
    return Event(0, step, written)


def _with_hidden_bit(number: Number, step: HiddenBit) -> Number:
    """What a multiplier sees that takes every significand as 1.f: subnormals too, and zeros if the step
    says so."""
    hit = number.kind == Kind.FINITE or (number.kind == Kind.ZERO and step.zeros == "set")
    return (
        replace(number, kind=Kind.FINITE, significand=number.significand | 1 << number.fraction_bits)
        if hit
        else number
    )


def _in_place(state: State, step: Part | Replace, change: Callable[[Number], Number]) -> Event:
    """A step that changes numbers one by one."""
    written = {name: tuple(map(change, state.registers[name])) for name in step.of}
    state.registers.update(written)
    return Event(0, step, written)


def _part(number: Number, step: Part) -> Number:
    """The bits of the places first, first + 1, ... below the point, as a number of the exponent of its first
    place; a zero, and a part without bits, have that exponent, too."""
    if number.kind > Kind.FINITE:
        return number
    last = step.first + step.bits - 1
    whole = shift_right(0, number.significand, number.fraction_bits - last, "toward_zero")
    return replace(
        number,
        significand=whole % (1 << step.bits),
        exponent=number.exponent - step.first,
        fraction_bits=step.bits - 1,
    )


def _replaced(number: Number, step: Replace) -> Number:
    unit = Fraction(2) ** (number.exponent - step.places)
    if number.kind != Kind.FINITE or number.sticky or number.value != step.value * unit:
        return number
    return replace(number, sign=int(step.by < 0), significand=abs(step.by), fraction_bits=step.places)


def _product(x: Number, y: Number, zero_times_infinity: str = "nan") -> Number:
    sign = x.sign ^ y.sign
    if Kind.NAN in (x.kind, y.kind):
        return Number(Kind.NAN, sign)
    if {x.kind, y.kind} == {Kind.INFINITY, Kind.ZERO}:
        zero = x if x.kind == Kind.ZERO else y
        return {
            "nan": Number(Kind.NAN, sign),
            "infinity": Number(Kind.INFINITY, sign),
            "zero": replace(zero, sign=sign),
        }[zero_times_infinity]
    if Kind.INFINITY in (x.kind, y.kind):
        return Number(Kind.INFINITY, sign)
    kind = Kind.ZERO if Kind.ZERO in (x.kind, y.kind) else Kind.FINITE
    return Number(
        kind,
        sign,
        x.significand * y.significand,
        x.exponent + y.exponent,
        x.fraction_bits + y.fraction_bits,
        sticky=x.sticky | y.sticky if kind == Kind.FINITE else 0,
    )


def _multiplied(state: State, x: Number, y: Number, zero_times_infinity: str = "nan") -> Number:
    """The product; zero times infinity is an invalid operation, whatever the unit makes of it."""
    if {x.kind, y.kind} == {Kind.INFINITY, Kind.ZERO}:
        state.raised.add("invalid")
    return _product(x, y, zero_times_infinity)


def _normalized(number: Number) -> Number:
    if number.kind != Kind.FINITE or number.significand == 0:
        return number
    exponent = number.lsb_exponent + number.significand.bit_length() - 1
    return replace(number, exponent=exponent, fraction_bits=exponent - number.lsb_exponent)


def _multiply(state: State, step: Multiply) -> Event:
    if step.operation != "product":
        combined = [
            x & y if step.operation == "and" else x ^ y
            for x, y in zip(state.a_codes, state.b_codes, strict=True)
        ]
        products = tuple(Number(Kind.FINITE if bit else Kind.ZERO, 0, bit) for bit in combined)
    else:
        products = tuple(
            _multiplied(state, x, y, step.zero_times_infinity)
            for x, y in zip(state.registers["a"], state.registers["b"], strict=True)
        )
    if step.negate in ("product", "both"):
        products = tuple(replace(p, sign=1 - p.sign) for p in products)
    if step.overflow_exponent is not None:
        products = tuple(_overflowed(state, p, step.overflow_exponent) for p in products)
    if step.normalize:
        products = tuple(_normalized(p) for p in products)
    if step.format is not None:
        products = tuple(_ieee(state, p, step) for p in products)
    written = {step.to: products}
    if step.negate in ("c", "both"):
        written["c"] = tuple(replace(c, sign=1 - c.sign) for c in state.registers["c"])
    state.registers.update(written)
    return Event(0, step, written)


def _overflowed(state: State, product: Number, exponent: int) -> Number:
    if product.kind != Kind.FINITE or not product.significand:
        return product
    if product.significand.bit_length() + product.lsb_exponent > exponent:
        state.raised |= status.OVERFLOW
        return Number(Kind.INFINITY, product.sign)
    return product


def _scale(state: State, step: Scale) -> Event:
    written: dict[str, tuple[Number, ...]] = {}
    for name in step.of:
        if step.power is not None:
            terms = state.registers[name]
            written[name] = tuple(replace(term, exponent=term.exponent + step.power) for term in terms)
            continue
        terms, scales = state.registers[name], state.registers[factor_of(step)]
        stride = max(len(scales) // max(len(terms), 1), 1)  # groups: one scale product for each group
        written[name] = tuple(_multiplied(state, term, scales[i * stride]) for i, term in enumerate(terms))
    state.registers.update(written)
    return Event(0, step, written)


def _special_values(state: State, step: SpecialValues) -> Event:
    terms = [number for name in step.of for number in state.registers[name]]
    _look_for_opposites(state, terms)
    total = _propagate(terms, step.opposite_infinities)
    if total is not None:
        own = _nan_by_cause(state, step) if total.kind == Kind.NAN else None
        state.result = _special_code(total, state.operation.out_format, step.nan) if own is None else own
    return Event(0, step, {})


def _nan_by_cause(state: State, step: SpecialValues) -> int | None:
    """The word of the first cause of `nans` that is there; None where none is."""
    products = [number for name in step.of if name != "c" for number in state.registers[name]]
    pairs = list(zip(state.registers["a"], state.registers["b"], strict=True))
    handed: dict[str, Sequence[Number]] = {
        "a": state.registers["a"],
        "b": state.registers["b"],
        "factor": [factor for pair in pairs for factor in pair],
        "c": state.registers["c"],
    }
    happened = {
        "invalid_product": any({x.kind, y.kind} == {Kind.INFINITY, Kind.ZERO} for x, y in pairs),
        "opposite_products": _opposite(products),
        "opposite_infinities": _opposite([*products, *(state.registers["c"] if "c" in step.of else ())]),
    }
    for cause, word in step.nans:
        nan = next((number for number in handed.get(cause, ()) if number.kind == Kind.NAN), None)
        if nan is not None:
            return _nan_code(_handed(nan, step), state.operation.out_format) if word is None else word
        if happened.get(cause):
            return word
    return None


def _opposite(terms: Sequence[Number]) -> bool:
    return len({term.sign for term in terms if term.kind == Kind.INFINITY}) == 2


def _look_for_opposites(state: State, terms: Sequence[Number]) -> None:
    """Adding infinities of both signs is an invalid operation, whatever the unit makes of it."""
    if _opposite(terms):
        state.raised.add("invalid")


def _handed(nan: Number, step: SpecialValues | Additions | Fma) -> Number:
    """A NaN as the step hands it on."""
    return replace(nan, payload=nan.payload | 1 << 63) if step.quieted else nan


def _nan_code(nan: Number, fmt: Format) -> int:
    """The code of a NaN with this payload in a format with IEEE 754's special values."""
    ones = (1 << fmt.exponent_bits) - 1
    fraction = nan.payload >> (64 - fmt.fraction_bits)
    return nan.sign << fmt.sign_shift | (ones << fmt.fraction_bits | fraction) << fmt.ignored_low


def _propagate(terms: Sequence[Number], opposite: str = "nan") -> Number | None:
    """NaN, or the infinity that a sum of these terms is; None when all are finite. `opposite`: infinities
    of both signs."""
    signs = [term.sign for term in terms if term.kind == Kind.INFINITY]
    if any(term.kind == Kind.NAN for term in terms) or (len(set(signs)) == 2 and opposite == "nan"):
        return NAN
    if not signs:
        return None
    picked = {"nan": signs[0], "first": signs[0], "last": signs[-1], "positive": 0, "negative": 1}
    return Number(Kind.INFINITY, picked[opposite] if len(set(signs)) == 2 else signs[0])


def _special_code(number: Number, fmt: Format, nan: int | None) -> int:
    """The code of an infinity or NaN.

    An infinity becomes the nearest integer; in a format without infinities it is NaN. NaN is the word that
    the step names; where neither it nor the format has one, the largest number stands for it, and the largest
    of its sign for an infinity.
    """
    if number.kind == Kind.INFINITY and not fmt.is_float:
        return fmt.least if number.sign else fmt.largest
    if number.kind == Kind.INFINITY and fmt.infinity is not None:
        return fmt.infinity | number.sign << fmt.sign_shift
    if nan is not None:
        return nan
    negative = number.kind == Kind.INFINITY and number.sign and fmt.sign_shift >= 0
    return fmt.largest | (1 << fmt.sign_shift if negative else 0)


def _groups(terms: Sequence[Any], group: tuple[str, int] | None) -> list[list[int]]:
    """Indices of the terms of each group; without grouping, one group of all."""
    indices = list(range(len(terms)))
    if group is None:
        return [indices]
    kind, size = group
    if kind == "interleaved":
        return [indices[i::size] for i in range(size)]
    return [indices[i : i + size] for i in range(0, len(indices), size)]


def _align(state: State, step: Align) -> Event:
    terms = [(name, number) for name in step.of for number in state.registers[name]]
    fraction_bits, window = dict(step.fraction_bits), dict(step.window)
    aligned: list[Number] = [number for _, number in terms]
    cuts: list[Cut | None] = [None] * len(terms)
    maxima: list[int | None] = []
    for indices in _groups(terms, step.group):
        maximum = _maximum([terms[i] for i in indices], step)
        maxima.append(maximum)
        if maximum is None:
            continue
        for i in indices:
            name, number = terms[i]
            if number.kind == Kind.FINITE:
                number, outside = _placed(name, number, maximum, window.get(name), step)
                outside = outside or _is_spared(number, maximum - fraction_bits[name], name, step)
                outside = outside or _underflows(maximum, step)
                aligned[i], cuts[i] = _align_term(name, number, maximum, outside, step)
            elif number.kind == Kind.ZERO:
                aligned[i] = _align_zero(number, maximum, fraction_bits[name], step)
    written: dict[str, tuple[Number, ...]] = {}
    shifts: dict[str, tuple[Cut | None, ...]] = {}
    for name in step.of:
        picked = [i for i, (owner, _) in enumerate(terms) if owner == name]
        written[name], shifts[name] = tuple(aligned[i] for i in picked), tuple(cuts[i] for i in picked)
    state.registers.update(written)
    return Event(0, step, written, tuple(maxima), shifts)


def _maximum(terms: Sequence[tuple[str, Number]], step: Align) -> int | None:
    """The exponent that these terms align to: the largest of the non-zero ones (of zeros too, if they take
    part) and the floor; None where there is nothing to align. Registers left out count only where there is
    nothing else."""
    if step.exponent is not None:
        return step.exponent
    if step.maximum:
        return _largest_candidate(terms, step)
    takes_part = (Kind.FINITE, Kind.ZERO) if step.zeros == "maximum" else (Kind.FINITE,)
    left_out = dict(step.left_out)
    candidates = [(name in left_out, number.exponent) for name, number in terms if number.kind in takes_part]
    inside = [exponent for out, exponent in candidates if not out]
    if step.floor is not None and terms:
        inside.append(step.floor)
    return max(inside or [exponent for _, exponent in candidates], default=None)


def _largest_candidate(terms: Sequence[tuple[str, Number]], step: Align) -> int | None:
    """The largest of what `maximum` lists; None where no number is there and nothing has a least value."""
    found = []
    for one in step.maximum:
        numbers = [n for name, n in terms if name in one.of and n.kind == Kind.FINITE]
        if one.leading:
            numbers = [n for n in numbers if n.significand]
            places = [n.lsb_exponent + n.significand.bit_length() - 1 for n in numbers]
        else:
            places = [number.exponent for number in numbers]
        if one.least is not None:
            places.append(one.least)
        found += [max(places) + one.plus] if places else []
    return max(found, default=None)


def _placed(name: str, number: Number, maximum: int, window: int | None, step: Align) -> tuple[Number, bool]:
    """The number where the shifter takes it to lie, and whether it counts as zero."""
    outside = window is not None and number.exponent < maximum - window
    if step.exponent is not None or step.maximum:
        return number, outside
    if number.exponent > maximum:  # only a register that was left out of the maximum gets here
        return replace(number, exponent=maximum), outside or dict(step.left_out)[name] == "dropped"
    if step.shift_limit is not None:
        return replace(number, exponent=max(number.exponent, maximum - step.shift_limit)), outside
    return number, outside


def _is_spared(number: Number, last: int, name: str, step: Align) -> bool:
    """Whether the number is a negative one below 2**last that `spared` makes a zero."""
    least = dict(step.spared).get(name)
    below = number.significand.bit_length() + number.lsb_exponent <= last
    return least is not None and last > least and bool(number.sign) and below


def _align_zero(number: Number, maximum: int, fraction_bits: int, step: Align) -> Number:
    """A zero moves along where zeros take part in the maximum; it sets its sticky bit where "all shifted
    out" alone does."""
    if step.zeros == "maximum":
        return replace(number, exponent=maximum, fraction_bits=fraction_bits)
    if step.zeros == "sticky" and maximum - number.exponent > fraction_bits:
        if step.cut == "sticky_or":
            return Number(Kind.FINITE, number.sign, 0, maximum, fraction_bits, sticky=1)
        return Number(Kind.FINITE, number.sign, 1, maximum, fraction_bits + 1)
    return number


def _underflows(maximum: int, step: Align) -> bool:
    return step.underflow_exponent is not None and maximum <= step.underflow_exponent


def _align_term(name: str, number: Number, maximum: int, outside: bool, step: Align) -> tuple[Number, Cut]:
    number, fraction_bits = _with_sticky(number), dict(step.fraction_bits)[name]
    cut = (maximum - fraction_bits) - number.lsb_exponent  # negative: zeros are appended
    shift = maximum - number.exponent
    if outside:
        whole = max(number.fraction_bits + 1, number.significand.bit_length(), cut)
        zero = replace(number, significand=0, exponent=maximum, fraction_bits=fraction_bits)
        return zero, Cut(shift, whole, number.significand)
    lost = number.significand & ((1 << max(cut, 0)) - 1)
    kept = shift_right(number.sign, number.significand, cut, rounding_of(step, name))
    seen = number.significand & ((1 << max(cut - step.sticky_gap, 0)) - 1) != 0
    if step.cut == "sticky_added":
        kept, fraction_bits = kept << 1 | seen, fraction_bits + 1
    sticky = int(seen) if step.cut == "sticky_or" else 0
    aligned = replace(number, significand=kept, exponent=maximum, fraction_bits=fraction_bits, sticky=sticky)
    return aligned, Cut(shift, max(cut, 0), lost)


def _exact_sum(state: State, terms: Sequence[Number], step: Sum, frame: int | None) -> Number:
    _look_for_opposites(state, terms)
    return _total(terms, step.rounding, step, frame)


def _added(state: State, x: Number, y: Number, step: Additions | Fma) -> Number:
    """The exact sum of the two terms of an IEEE addition."""
    _look_for_opposites(state, (x, y))
    return _total((x, y), step.rounding)


def _total(
    terms: Sequence[Number], rounding: str, step: Sum | None = None, frame: int | None = None
) -> Number:
    """The exact sum, as a step sums, or (None) of the terms of an IEEE addition. frame: the sign of c, where
    terms of the other sign are subtracted in one's complement."""
    special = _propagate(terms)
    if special is not None:
        return special
    finite = [term for term in terms if term.kind == Kind.FINITE]
    fixed = None if step is None else step.exponent
    if not finite:
        shown = max((term.exponent for term in terms), default=0) if fixed is None else fixed
        return Number(Kind.ZERO, _zero_sign(terms, rounding), 0, shown)
    lsb = min(term.lsb_exponent for term in finite)
    total = sum((-1) ** term.sign * (term.significand << (term.lsb_exponent - lsb)) for term in finite)
    if frame is not None:
        others = sum(term.sign != frame for term in terms)
        total += others if frame else -others
    shown = max(term.exponent for term in finite) if fixed is None else fixed
    if step is not None and step.width is not None:
        total = _wrapped(total, max(shown + step.width - lsb, 0), step.overflow)
    sign = int(total < 0) if total else _zero_sign(terms, rounding)
    sticky = int(any(term.sticky for term in finite))
    if total == 0 and step is not None and step.cancelled == "zero" and not sticky:
        return Number(Kind.ZERO, sign, 0, shown)
    return Number(Kind.FINITE, sign, abs(total), shown, shown - lsb, sticky=sticky)


def _wrapped(total: int, bits: int, overflow: str) -> int:
    """`total` as a two's complement register of `bits` bits holds it."""
    half = 1 << bits >> 1
    if overflow == "saturate" and bits:
        return min(max(total, -half), half - 1)
    return (total + half) % (1 << bits) - half


def _zero_sign(terms: Sequence[Number], rounding: str) -> int:
    """IEEE 754 6.3: a zero sum keeps a sign that all addends share, else + (- when rounding down)."""
    signs = {term.sign for term in terms}
    return (
        signs.pop() if len(signs) == 1 and all(t.significand == 0 for t in terms) else int(rounding == "down")
    )


def _ieee(state: State, exact: Number, step: IeeeStep) -> Number:
    """Rounds an exact number to step.format by IEEE 754 and decodes it again; subnormal results flush as
    step says."""
    fmt = step.format
    assert fmt is not None
    return fmt.decode(_ieee_code(state, exact, step, fmt))


def _hands_on(step: IeeeStep) -> bool:
    """Whether NaNs keep their payloads from one rounding to the next."""
    return (isinstance(step, Fma) and bool(step.nan_order)) or (
        isinstance(step, Additions) and step.first_nan
    )


def _generated_nan(step: Fma | Additions) -> Number:
    """A NaN that comes of numbers."""
    return Number(Kind.NAN) if step.nan is None else replace(step.format.decode(step.nan), kind=Kind.NAN)


def _with_sticky(number: Number) -> Number:
    """The number as a step sees it that cuts or rounds: its sticky bit is one more bit, below the last one,
    and used up by the step."""
    if not number.sticky:
        return number
    below = number.significand << 1 | 1
    return replace(number, significand=below, fraction_bits=number.fraction_bits + 1, sticky=0)


def _ieee_code(state: State, exact: Number, step: IeeeStep, fmt: Format) -> int:
    seen = _with_sticky(exact)
    code = _ieee_rounded(seen, step, fmt)
    state.raised |= status.of_rounding(fmt, seen, code, step.rounding, step.tiny)
    return code


def _ieee_rounded(exact: Number, step: IeeeStep, fmt: Format) -> int:
    """Rounds what is seen of a number (`_with_sticky`)."""
    if exact.kind == Kind.NAN and exact.payload and _hands_on(step):
        return _nan_code(exact, fmt)
    if exact.kind >= Kind.INFINITY:
        return _special_code(exact, fmt, step.nan)
    flush = step.flush != "none"
    overflow = step.overflow if isinstance(step, Additions) else "ieee"
    code = round_to_code(
        fmt,
        exact.sign,
        exact.significand,
        exact.lsb_exponent,
        step.rounding,
        overflow,
        flush=flush,
        tiny=step.tiny,
    )
    if step.flush == "positive" and fmt.decode(code).kind == Kind.ZERO and exact.significand:
        return 0
    return code


def _reduce(terms: Sequence[Number], step: Additions, add: Callable[[Number, Number], Number]) -> Number:
    if len(terms) == 1:
        return terms[0]
    if step.order == "tree":
        half = len(terms) // 2
        return add(_reduce(terms[:half], step, add), _reduce(terms[half:], step, add))
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def _sum(state: State, step: Sum) -> Event:
    terms = [number for name in step.of for number in state.registers[name]]
    frame = state.registers["c"][0].sign if step.complement == "c" else None
    sums = tuple(
        _exact_sum(state, [terms[i] for i in group], step, frame) for group in _groups(terms, step.group)
    )
    return _write(state, step, sums)


def _additions(state: State, step: Additions) -> Event:
    terms = [number for name in step.of for number in state.registers[name]]

    def add(x: Number, y: Number) -> Number:
        handed = next((term for term in (x, y) if step.first_nan and term.kind == Kind.NAN), None)
        if handed is not None:
            return _handed(handed, step)
        exact = _added(state, x, y, step)
        return (
            _generated_nan(step) if step.first_nan and exact.kind == Kind.NAN else _ieee(state, exact, step)
        )

    sums = tuple(_reduce([terms[i] for i in group], step, add) for group in _groups(terms, step.group))
    return _write(state, step, sums)


def _write(state: State, step: Sum | Additions | Fma, numbers: tuple[Number, ...]) -> Event:
    state.registers[step.to] = numbers
    if step.to == "d" and not isinstance(step, Sum):
        unflushed = replace(step, flush="none")
        state.result = _ieee_code(state, numbers[0], unflushed, state.operation.out_format)
    return Event(0, step, {step.to: numbers})


def _normalize(state: State, step: Normalize) -> Event:
    fraction_bits = dict(step.fraction_bits)
    written = {
        name: tuple(_normalize_term(number, fraction_bits[name], step) for number in state.registers[name])
        for name in step.of
    }
    state.registers.update(written)
    return Event(0, step, written)


def _normalize_term(number: Number, fraction_bits: int, step: Normalize) -> Number:
    seen = _with_sticky(number)
    if seen.kind != Kind.FINITE or seen.significand == 0:
        return number
    exponent = _normalized(seen).exponent
    if step.min_exponent is not None:
        exponent = max(exponent, step.min_exponent)
    kept = shift_right(
        seen.sign, seen.significand, exponent - fraction_bits - seen.lsb_exponent, step.rounding
    )
    return replace(seen, significand=kept, exponent=exponent, fraction_bits=fraction_bits)


def _fma(state: State, step: Fma) -> Event:
    pairs = list(zip(state.registers["a"], state.registers["b"], strict=True))
    sums = []
    for indices in _groups(pairs, step.group):
        total = {"c": state.registers["c"][0], "zero": ZERO, "product": None}[step.start]
        for i in indices:
            total = _fma_step(state, *pairs[i], total, step)
        assert total is not None
        sums.append(total)
    return _write(state, step, tuple(sums))


def _fma_step(state: State, a: Number, b: Number, c: Number | None, step: Fma) -> Number:
    """One IEEE fused multiply-add (a multiply when c is None); NaNs are handed on in step.nan_order,
    quieted."""
    operands = {"a": a, "b": b, "c": c}
    product = _multiplied(state, a, b, step.zero_times_infinity)  # invalid also where a NaN c is handed on
    for name in step.nan_order:
        operand = operands[name]
        if operand is not None and operand.kind == Kind.NAN:
            return _handed(operand, step)
    exact = product if c is None else _added(state, product, c, step)
    if exact.kind == Kind.NAN:
        return _generated_nan(step) if step.nan_order else Number(Kind.NAN)
    return _ieee(state, exact, step)


def _round(state: State, step: Round) -> Event:
    fmt = step.format
    codes = tuple(
        _round_code(state, number, step, fmt) for name in step.of for number in state.registers[name]
    )
    if step.to == "d":
        state.result = codes[0]
        return Event(0, step, {})
    state.registers[step.to] = tuple(fmt.decode(code) for code in codes)
    return Event(0, step, {step.to: state.registers[step.to]})


def _round_code(state: State, number: Number, step: Round, fmt: Format) -> int:
    exact = number if number.kind >= Kind.INFINITY else _with_sticky(number)
    seen = exact
    if (step.sticky_gap or step.sticky == "left_out") and exact.significand and exact.kind < Kind.INFINITY:
        seen = _with_gap(exact, step, fmt)
    if step.random_bits is not None and exact.kind < Kind.INFINITY:
        seen = _with_random(exact, step, fmt, step.random_bits)
    code = _rounded_code(seen, exact.significand == 0, step, fmt)
    kept = step.result_fraction_bits
    state.raised |= status.of_rounding(fmt, seen, code, step.rounding, step.tiny, kept)
    return code


def _rounded_code(number: Number, exact_zero: bool, step: Round, fmt: Format) -> int:
    """Rounds what the rounding sees of a number. exact_zero: the number itself is zero; one of which the
    rounding sees nothing is not."""
    if number.kind >= Kind.INFINITY:
        return _special_code(number, fmt, step.nan)
    code = round_to_code(
        fmt,
        number.sign,
        number.significand,
        number.lsb_exponent,
        step.rounding,
        step.overflow,
        step.result_fraction_bits,
        step.flush != "none",
        step.tiny,
        _special_code(NAN, fmt, step.nan),
    )
    if not fmt.is_float:
        return code
    if step.subnormal_carry == "lost" and _rounded_up_to_normal(number, fmt.decode(code), fmt):
        code = round_to_code(fmt, number.sign, 0, 0, step.rounding)
    return 0 if fmt.decode(code).kind == Kind.ZERO and _drops_zero_sign(exact_zero, step) else code


def _with_gap(number: Number, step: Round, fmt: Format) -> Number:
    """The number as a rounding sees it whose sticky bit misses the bits right below the round bit."""
    kept = fmt.fraction_bits if step.result_fraction_bits is None else step.result_fraction_bits
    last = max(_normalized(number).exponent, fmt.min_exponent) - kept  # exponent of the result's last place
    cut = last - number.lsb_exponent  # bits cut, the round bit is the highest of them
    if cut < 2:
        return number
    round_bit = 1 << (cut - 1)
    unseen = round_bit - (1 if step.sticky == "left_out" else max(round_bit >> step.sticky_gap, 1))
    return replace(number, significand=number.significand & ~unseen)


def _with_random(number: Number, step: Round, fmt: Format, bits: int) -> Number:
    """The number after stochastic rounding: cut at the result's last place, or one unit of it longer if the
    highest bits that are cut and the random number together reach that unit."""
    last = 0
    if fmt.is_float:
        kept = fmt.fraction_bits if step.result_fraction_bits is None else step.result_fraction_bits
        last = max(_normalized(number).exponent, fmt.min_exponent) - kept
    cut = last - number.lsb_exponent
    if cut <= 0 or number.significand == 0:
        return number
    whole, low = divmod(number.significand, 1 << cut)
    highest = (low << bits) >> cut
    return replace(number, significand=(whole + (highest + step.random >> bits)) << cut)


def _rounded_up_to_normal(number: Number, rounded: Number, fmt: Format) -> bool:
    least = Fraction(2) ** fmt.min_exponent
    return rounded.kind == Kind.FINITE and abs(number.value) < least <= abs(rounded.value)


def _drops_zero_sign(exact_zero: bool, step: Round) -> bool:
    """Whether a result that is zero is +0 whatever the sign of the number that was rounded."""
    if step.flush == "positive" and not exact_zero:
        return True
    return step.zero == "positive" or (step.zero == "signed_underflow" and exact_zero)
