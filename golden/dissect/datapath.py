"""The datapath of a unit as arrays of exact numbers, with taps: places at which a fault changes a signal.

A fault of RTL often has no key in the schema of units: a shift amount that wraps, a negation without its
one, an adder that forgets a bit when it carries. The steps of a program run here literally, for many dot
products at once, and at each place of `PLACES` a tap may change what the step holds. Without taps the results
are those of the core.

codes = results(ins, taps, operands)

The IEEE steps (`sum` with an order, `multiply` with a format, `fma`) run in the form that their RTL has:
align, sum, round. A tap therefore means the same in them as in a program of align, sum and round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from golden.instruction import Instruction
from golden.number.formats import Format, Kind
from golden.program.program import NO_SEED, Operation
from golden.program.signature import Bits, Operands
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    IeeeStep,
    Multiply,
    Normalize,
    Round,
    SpecialValues,
    Step,
    Sum,
)

Array = Any
"""A NumPy array; significands are Python integers (dtype object), as long as they come."""
PLACES = ("operands", "products", "specials", "shifts", "total", "normalize", "rounding", "code")


@dataclass(frozen=True)
class Tap:
    """A fault at one place of the datapath.

    slug, text, weight: as of golden/dissect/hypotheses.py.
    place: one of PLACES. `rule` changes the signals there, whose class has the place's name.
    of: the kinds of steps in which the fault is, by their class; none: all.
    in_order: whether the rule looks at the vectors before or after, by one.
    """

    slug: str
    text: str
    place: str
    rule: Callable[..., None]
    weight: float = 1.1
    of: tuple[type[Step], ...] = ()
    in_order: bool = False


# Signals ----------------------------------------------------------------------------------------------------


@dataclass
class Numbers:
    """(n, terms) numbers (-1)**sign * significand * 2**lsb; `exponent` is the one that alignment compares."""

    kind: Array
    sign: Array
    significand: Array
    exponent: Array
    lsb: Array
    sticky: Array

    def __getitem__(self, columns: Any) -> Numbers:
        return Numbers(*(getattr(self, one.name)[:, columns] for one in fields(self)))

    @staticmethod
    def join(parts: Sequence[Numbers]) -> Numbers:
        """The terms of several, side by side."""
        return Numbers(*(np.hstack([getattr(p, one.name) for p in parts]) for one in fields(Numbers)))

    @property
    def finite(self) -> Array:
        """Which take part in sums."""
        return self.kind == Kind.FINITE


@dataclass
class OperandSignals:
    """a, b and c as they were read."""

    numbers: dict[str, Numbers]
    formats: dict[str, Format]

    def subnormal(self, name: str) -> Array:
        """(n, terms): subnormal numbers, not zeros."""
        numbers, fmt = self.numbers[name], self.formats[name]
        if not fmt.is_float or not fmt.has_zero:
            return np.zeros(numbers.kind.shape, np.bool_)
        return numbers.finite & (numbers.significand < (1 << fmt.fraction_bits)).astype(np.bool_)

    def move(self, name: str, by: Array) -> None:
        """Adds to the exponents of an operand."""
        numbers = self.numbers[name]
        self.numbers[name] = replace(numbers, exponent=numbers.exponent + by, lsb=numbers.lsb + by)


@dataclass
class ProductSignals:
    """The products, before anything is rounded; `a` and `b` as the multiplier read them."""

    products: Numbers
    a: Numbers
    b: Numbers
    invalid: Array
    """(n, k): infinity times zero."""
    answer: Kind
    """What an invalid product is."""


@dataclass
class SpecialSignals:
    """Kinds and signs of the terms (n, terms) that are looked at for NaNs and infinities. `owner` (terms,):
    their registers. A tap answers in `kind` and `sign`, or sets `opposite`: how infinities of both signs end
    for those (n,) vectors where `excused` is."""

    kind: Array
    sign: Array
    owner: Array
    excused: Array = None
    opposite: str = "first"


@dataclass
class ShiftSignals:
    """Terms and how far each moves right: `shift` = `maximum` - exponent, (n, terms).

    fraction_bits: kept below the largest exponent, by term; None in an IEEE step, which keeps all.
    jammed: terms of which nothing but a sticky bit is left. logical: bits of the word in which negative terms
    are shifted with zeros from the left, or 0. complemented: negative terms are inverted, without the one.
    lost_below: bits more than this many places below the maximum are lost, by term; None: none are.
    """

    terms: Numbers
    owner: Array
    maximum: Array
    shift: Array
    fraction_bits: Array
    precision: int
    jammed: Array
    logical: int = 0
    complemented: bool = False
    lost_below: Array = None


@dataclass
class TotalSignals:
    """A sum (n, 1): total * 2**lsb, signed; `sticky` below its magnitude, `register_lsb` of the register.

    zero_sign: of a sum that is zero. terms: what was added. owner: of each term its register.
    """

    total: Array
    lsb: Array
    exponent: Array
    sticky: Array
    zero_sign: Array
    terms: Numbers
    owner: Array
    register_lsb: int | None
    is_integer: bool


@dataclass
class NormalizeSignals:
    """Numbers before they are normalised."""

    numbers: Numbers


@dataclass
class RoundingSignals:
    """What a rounding to `fmt` sees of (n, terms) numbers, and what it does. Masks and counts are (n, terms)
    arrays or one for all.

    leading: exponent of the leading one. least: the least exponent, below which results are subnormal.
    highest: the largest. seen: of the bits below the round bit, how many the rounding sees; None: all.
    round_bit: whether it counts among the bits cut in directed roundings. assumed: where a result without a
    leading one gets the exponent field of one that has it. overflow_mode: the mode whose overflow it is.
    maximum, distance, subtraction: the largest exponent of the terms that were added, how far apart they lie,
    and whether their signs differ.
    """

    fmt: Format
    sign: Array
    significand: Array
    lsb: Array
    mode: str
    overflow: str
    kept: int
    least: Array
    highest: Array
    overflow_mode: str = ""
    seen: Array = None
    round_bit: bool = True
    assumed: Array = False
    maximum: Array = None
    distance: Array = None
    subtraction: Array = None

    @property
    def leading(self) -> Array:
        """Exponent of the leading one; of zeros it means nothing."""
        return _bit_length(self.significand) - 1 + self.lsb

    @property
    def exponent(self) -> Array:
        """The exponent of the result, before it is rounded up."""
        return np.minimum(np.maximum(self.leading, self.least), self.highest)


@dataclass
class CodeSignals:
    """The code of a rounding, and what it was made of."""

    code: Array
    rounding: RoundingSignals


# What can run here ------------------------------------------------------------------------------------------

_KNOWN: dict[type, tuple[str, ...]] = {
    Flush: ("of", "sign"),
    Multiply: ("to", "negate", "zero_times_infinity", "normalize", "format", "rounding", "flush", "nan"),
    SpecialValues: ("of", "opposite_infinities", "nan"),
    Align: ("of", "group", "fraction_bits", "rounding", "floor", "cut", "window", "shift_limit"),
    Sum: ("of", "to", "group", "rounding", "width", "overflow"),
    Additions: ("order", "of", "to", "group", "format", "rounding", "flush", "nan"),
    Normalize: ("of", "fraction_bits", "rounding", "min_exponent"),
    Fma: ("to", "format", "group", "rounding", "flush", "start", "zero_times_infinity", "nan"),
    Round: ("to", "format", "of", "rounding", "overflow", "flush", "nan", "zero", "result_fraction_bits"),
}
"""The keys of each kind of step that are computed here; others have to have their default."""
_SHOWN_ONLY = ("tiny",)
"""Keys that decide nothing but status flags where nothing is flushed."""
_NAN_WORDS = ("nans", "first_nan", "nan_order")
"""Keys that decide nothing but the word of a NaN, which the core then gives."""


def runs(ins: Instruction) -> bool:
    """Whether all steps of an instruction can run here."""
    plain = not (ins.sparse or ins.scale_block or ins.state or ins.modes is not None)
    operations = ins.program.operations
    return plain and all(
        operation.operand_format is None and not operation.addends and all(map(_known, operation.steps))
        for operation in operations
    )


def _known(step: Step) -> bool:
    names = _KNOWN.get(type(step))
    if names is None or (isinstance(step, Align) and step.cut == "sticky_added"):
        return False
    flushes = getattr(step, "flush", "none") != "none"
    free = (*names, *_NAN_WORDS) if flushes else (*names, *_NAN_WORDS, *_SHOWN_ONLY)
    return all(getattr(step, one.name) == one.default for one in fields(step) if one.name not in free)


# Running ----------------------------------------------------------------------------------------------------


def results(ins: Instruction, taps: Iterable[Tap], operands: Operands) -> Bits:
    """What a unit answers that computes `ins` with these faults, raw codes (n,).

    Args:
        ins: one that `runs`.
        operands: as `ins.dot` takes them, one leading dimension (n,).
    """
    return _with_nan_words(ins, operands, _ran(ins, taps, operands)[0])


def inexact(ins: Instruction, taps: Iterable[Tap], operands: Operands) -> Array:
    """Which results (n,) a unit with these faults takes as rounded: its last operation cut something, or its
    result is too large."""
    return _ran(ins, taps, operands)[1]


def _ran(ins: Instruction, taps: Iterable[Tap], operands: Operands) -> tuple[Bits, Array]:
    """Codes as they come, and which are inexact."""
    run, count = _Run(tuple(taps)), len(operands["a"])
    absent = {name: np.zeros((count, *[ins.k] * (name != "c")), np.uint8) for name in ins.absent}
    operands = {**operands, **absent}
    codes: dict[str, Array] = {"c": operands["c"], "zero": np.zeros_like(operands["c"])}
    codes[NO_SEED] = codes["zero"]
    with np.errstate(all="ignore"):
        for operation in ins.program.operations:
            found = run.operation(operation, ins.formats, operands, codes[operation.seed])
            codes[operation.to] = found.astype(operation.out_format.dtype)
    return np.asarray(codes["d"]), run.inexact & ~run.ended


def _with_nan_words(ins: Instruction, operands: Operands, codes: Bits) -> Bits:
    """The codes with the core's NaNs, in units that hand NaNs on, where both have one."""
    steps = [step for operation in ins.program.operations for step in operation.steps]
    if not any(getattr(step, key, ()) for step in steps for key in _NAN_WORDS):
        return codes
    given = {name: word for name, word in operands.items() if name not in ins.absent}
    core = ins.dot(**given)
    both = [decoded(ins.formats["d"], each[:, None]).kind[:, 0] == Kind.NAN for each in (codes, core)]
    return np.where(both[0] & both[1], core, codes)


@dataclass
class _Run:
    """One operation at a time; registers hold numbers, (n, terms)."""

    taps: tuple[Tap, ...]
    registers: dict[str, Numbers] = field(default_factory=dict)
    made: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Of a register that holds a sum: maximum, distance, subtraction."""
    inexact: Array = None
    ended: Array = None
    answer: Array = None
    step: Any = None

    def tap(self, place: str, signals: Any) -> None:
        """Lets the faults of a place change its signals."""
        for one in self.taps:
            if one.place == place and (not one.of or isinstance(self.step, one.of)):
                one.rule(signals)

    def operation(
        self, operation: Operation, formats: Mapping[str, Format], operands: Operands, seed: Bits
    ) -> Array:
        """The codes of an operation's result, (n,)."""
        own = {"a": formats["a"], "b": formats["b"], "c": operation.seed_format}
        picked = list(operation.k_index)
        read = {"a": operands["a"][:, picked], "b": operands["b"][:, picked], "c": seed[:, None]}
        signals = OperandSignals({name: decoded(own[name], read[name]) for name in own}, own)
        self.tap("operands", signals)
        self.registers, self.made = dict(signals.numbers), {}
        self.ended, self.inexact = np.zeros(len(seed), np.bool_), np.zeros(len(seed), np.bool_)
        self.answer = np.zeros(len(seed), object)
        for step in operation.steps:
            self.step = step
            codes = self._execute(step, operation)
            if codes is not None:
                return np.where(self.ended, self.answer, codes)
        raise AssertionError("a program's last step writes d")

    def _execute(self, step: Step, operation: Operation) -> Array | None:
        match step:
            case Flush():
                self._flush(step, operation)
            case Multiply():
                self.registers[step.to] = self._multiply(step)
            case SpecialValues():
                self._special_values(step, operation)
            case Align():
                self._align(step)
            case Sum():
                self._sum(step)
            case Normalize():
                self._normalize(step)
            case Additions():
                return self._additions(step, operation)
            case Fma():
                return self._fma(step, operation)
            case Round():
                return self._round(step)
        return None

    # Steps

    def _flush(self, step: Flush, operation: Operation) -> None:
        for name in step.of:
            numbers = self.registers[name]
            subnormal = numbers.finite & (_bit_length(numbers.significand) <= numbers.exponent - numbers.lsb)
            if name == "c" and not operation.seed_format.is_float:
                subnormal = np.zeros_like(subnormal)
            flushed = subnormal | (numbers.kind == Kind.ZERO)
            sign = numbers.sign & ~flushed if step.sign == "positive" else numbers.sign
            kind = np.where(subnormal, int(Kind.ZERO), numbers.kind)
            significand = np.where(subnormal, 0, numbers.significand)
            self.registers[name] = replace(numbers, kind=kind, sign=sign, significand=significand)

    def _multiply(self, step: Multiply | Fma) -> Numbers:
        a, b = self.registers["a"], self.registers["b"]
        answers = {"nan": Kind.NAN, "infinity": Kind.INFINITY, "zero": Kind.ZERO}
        signals = _products(a, b, answers[step.zero_times_infinity])
        if isinstance(step, Multiply) and step.negate in ("product", "both"):
            signals.products.sign = ~signals.products.sign
        if isinstance(step, Multiply) and step.negate in ("c", "both"):
            self.registers["c"] = replace(self.registers["c"], sign=~self.registers["c"].sign)
        self.tap("products", signals)
        found = signals.products
        found.kind = np.where(signals.invalid, int(signals.answer), found.kind)
        if isinstance(step, Multiply) and step.normalize:
            found.exponent = np.where(found.finite, _leading_of(found), found.exponent)
        if isinstance(step, Multiply) and step.format is not None:
            found = self._rounded(found, step, step.format, {})
        return found

    def _special_values(self, step: SpecialValues, operation: Operation) -> None:
        terms, owner = self._terms(step.of)
        signals = SpecialSignals(terms.kind.copy(), terms.sign.copy(), owner)
        self.tap("specials", signals)
        infinite = signals.kind == Kind.INFINITY
        plus, minus = (infinite & ~signals.sign).any(axis=1), (infinite & signals.sign).any(axis=1)
        first = _picked_sign(infinite, signals.sign, step.opposite_infinities)
        opposite = plus & minus
        nan = (signals.kind == Kind.NAN).any(axis=1)
        nan |= opposite if step.opposite_infinities == "nan" else False
        if signals.excused is not None:
            first = np.where(
                opposite & signals.excused, _picked_sign(infinite, signals.sign, signals.opposite), first
            )
            nan &= ~(opposite & signals.excused) | (signals.kind == Kind.NAN).any(axis=1)
        special = special_code(operation.out_format, np.where(nan, 3, 2), first, step.nan)
        fresh = (nan | plus | minus) & ~self.ended
        self.answer = np.where(fresh, special, self.answer)
        self.ended = self.ended | fresh

    def _align(self, step: Align) -> None:
        terms, owner = self._terms(step.of)
        bits = np.array([dict(step.fraction_bits)[name] for name in owner])
        window = np.array([dict(step.window).get(name, 1 << 40) for name in owner])
        out: dict[int, Numbers] = {}
        for columns in groups(len(owner), step.group):
            aligned = self._aligned(terms[columns], owner[columns], bits[columns], window[columns], step)
            for place, column in enumerate(columns):
                out[column] = aligned[[place]]
        for name in step.of:
            self.registers[name] = Numbers.join([out[i] for i, own in enumerate(owner) if own == name])

    def _aligned(self, terms: Numbers, owner: Array, bits: Array, window: Array, step: Align) -> Numbers:
        finite = terms.finite
        maximum = np.where(finite, terms.exponent, -(1 << 40)).max(axis=1, keepdims=True)
        if step.floor is not None:
            maximum = np.maximum(maximum, step.floor)
        shift = maximum - terms.exponent
        outside = shift > window
        if step.shift_limit is not None:
            shift = np.minimum(shift, step.shift_limit)
        none = np.zeros(finite.shape, np.bool_)
        signals = ShiftSignals(terms, owner, maximum, shift, bits, int(bits.max()), none)
        self.tap("shifts", signals)
        cut = signals.shift + (terms.exponent - terms.lsb) - bits
        lost = low_bits(terms.significand, np.maximum(cut, 0)) != 0
        kept = shifted(terms.sign, terms.significand, cut, step.rounding)
        sign = terms.sign.copy()
        if signals.logical:
            kept, sign = _logically(kept, sign, signals, terms, cut)
        kept = np.where(outside | signals.jammed, 0, kept)
        if signals.complemented:
            kept = np.where(sign & finite, kept + 1, kept)
        # `sticky_or` alone carries it on
        seen = (lost | signals.jammed | terms.sticky) & ~outside & finite
        seen = seen if step.cut == "sticky_or" else np.zeros_like(seen)
        exponent = np.where(finite, maximum, terms.exponent)
        lsb = np.where(finite, maximum - bits, terms.lsb)
        return Numbers(terms.kind, sign, np.where(finite, kept, 0), exponent, lsb, seen)

    def _sum(self, step: Sum) -> None:
        terms, owner = self._terms(step.of)
        sums, made = [], []
        for columns in groups(len(owner), step.group):
            one, facts = self._summed(terms[columns], owner[columns], step.rounding, step)
            sums.append(one)
            made.append(facts)
        self.registers[step.to] = Numbers.join(sums)
        self.made[step.to] = {name: np.hstack([facts[name] for facts in made]) for name in made[0]}

    def _summed(
        self, terms: Numbers, owner: Array, rounding: str, step: Sum | None = None
    ) -> tuple[Numbers, dict[str, Array]]:
        """The exact sum of finite terms and zeros (n, 1), and what is known of it."""
        finite = terms.finite
        some = finite.any(axis=1, keepdims=True)
        huge = 1 << 40
        lsb = np.where(finite, terms.lsb, huge).min(axis=1, keepdims=True)
        lsb = np.where(some, lsb, 0)
        exponent = np.where(finite, terms.exponent, -huge).max(axis=1, keepdims=True)
        exponent = np.where(some, exponent, terms.exponent.max(axis=1, keepdims=True))
        value = np.where(finite, _shl(terms.significand, np.maximum(terms.lsb - lsb, 0)), 0)
        value = value if _is_short(value, len(owner).bit_length()) else value.astype(object)
        total = np.where(terms.sign, -value, value).sum(axis=1, keepdims=True)
        sticky = (terms.sticky & finite).any(axis=1, keepdims=True)
        one_sign = (terms.sign == terms.sign[:, :1]).all(axis=1, keepdims=True)
        plain = one_sign & (terms.significand == 0).all(axis=1, keepdims=True)
        zero_sign = np.where(plain, terms.sign[:, :1], rounding == "down")
        register = None if step is None else _register_lsb(finite, terms.lsb)
        integer = step is not None and bool((terms.exponent == terms.lsb).all())
        signals = TotalSignals(
            total, lsb, exponent, sticky, zero_sign, terms, owner, register, is_integer=integer
        )
        self.tap("total", signals)
        total, exponent, lsb = signals.total, signals.exponent, signals.lsb
        if step is not None and step.width is not None:
            total = _held(total, np.maximum(exponent + step.width - lsb, 0), step.overflow)
        kind = np.where(some, int(Kind.FINITE), int(Kind.ZERO))
        sign = np.where(total == 0, signals.zero_sign, total < 0).astype(np.bool_)
        found = Numbers(kind, sign, np.abs(total), exponent, lsb, signals.sticky)
        return found, _facts_of(terms, exponent)

    def _normalize(self, step: Normalize) -> None:
        bits = dict(step.fraction_bits)
        for name in step.of:
            signals = NormalizeSignals(self.registers[name])
            self.tap("normalize", signals)
            numbers = _with_sticky(signals.numbers)
            exponent = _leading_of(numbers)
            if step.min_exponent is not None:
                exponent = np.maximum(exponent, step.min_exponent)
            cut = exponent - bits[name] - numbers.lsb
            kept = shifted(numbers.sign, numbers.significand, cut, step.rounding)
            there = numbers.finite & (numbers.significand != 0)
            self.registers[name] = replace(
                numbers,
                significand=np.where(there, kept, numbers.significand),
                exponent=np.where(there, exponent, numbers.exponent),
                lsb=np.where(there, exponent - bits[name], numbers.lsb),
            )

    def _additions(self, step: Additions, operation: Operation) -> Array | None:
        terms, _ = self._terms(step.of)
        sums = [self._reduced(terms, columns, step) for columns in groups(terms.kind.shape[1], step.group)]
        self.registers[step.to] = Numbers.join(sums)
        return self._last(step, operation)

    def _reduced(self, terms: Numbers, columns: Sequence[int], step: Additions) -> Numbers:
        if len(columns) == 1:
            return terms[[columns[0]]]
        if step.order == "tree":
            half = len(columns) // 2
            left, right = (self._reduced(terms, part, step) for part in (columns[:half], columns[half:]))
            return self._added(left, right, step)
        found = terms[[columns[0]]]
        for column in columns[1:]:
            found = self._added(found, terms[[column]], step)
        return found

    def _fma(self, step: Fma, operation: Operation) -> Array | None:
        products = self._multiply(step)
        places = [_leading_of(self.registers[name]) for name in "ab"]  # a multiply-add normalises its factors
        products.exponent = np.where(products.finite, places[0] + places[1], products.exponent)
        sums = []
        for columns in groups(products.kind.shape[1], step.group):
            start, rest = self.registers["c"], list(columns)
            if step.start == "product":
                start, rest = self._rounded(products[[rest[0]]], step, step.format, {}), rest[1:]
            elif step.start == "zero":
                start = _zeros_like(start)
            for k in rest:
                start = self._added(products[[k]], start, step)
            sums.append(start)
        self.registers[step.to] = Numbers.join(sums)
        return self._last(step, operation)

    def _last(self, step: Additions | Fma, operation: Operation) -> Array | None:
        """The codes where the step writes d: its sums were rounded to d's format already, or are exact in
        it."""
        if step.to != "d":
            return None
        numbers = self.registers["d"]
        return encoded(operation.out_format, numbers, step.nan)[:, 0]

    def _added(self, x: Numbers, y: Numbers, step: Additions | Fma) -> Numbers:
        """One IEEE addition: align, sum, round."""
        terms = _settled(Numbers.join([x, y]))
        owner = np.array(["product", "c"] if isinstance(step, Fma) else ["first", "second"])
        finite = terms.finite
        maximum = np.where(finite, terms.exponent, -(1 << 40)).max(axis=1, keepdims=True)
        none = np.zeros(finite.shape, np.bool_)
        precision = step.format.fraction_bits
        signals = ShiftSignals(terms, owner, maximum, maximum - terms.exponent, None, precision, none)
        self.tap("shifts", signals)
        exact, facts = self._summed(_moved(signals), owner, step.rounding)
        special = (terms.kind >= Kind.INFINITY).any(axis=1, keepdims=True)
        infinite = terms.kind == Kind.INFINITY
        both = infinite.all(axis=1, keepdims=True) & (terms.sign[:, :1] != terms.sign[:, 1:])
        nan = (terms.kind == Kind.NAN).any(axis=1, keepdims=True) | both
        exact.kind = np.where(special, np.where(nan, int(Kind.NAN), int(Kind.INFINITY)), exact.kind)
        sign = np.where(infinite[:, :1], terms.sign[:, :1], terms.sign[:, 1:])
        exact.sign = np.where(special, sign, exact.sign)
        return self._rounded(exact, step, step.format, facts)

    def _round(self, step: Round) -> Array | None:
        name = step.of[0]
        numbers = self.registers[name]
        codes = self._rounded_codes(numbers, step, step.format, self.made.get(name, {}))
        if step.to == "d":
            return codes[:, 0]
        self.registers[step.to] = decoded(step.format, codes.astype(step.format.dtype))
        return None

    # Rounding

    def _rounded(self, numbers: Numbers, step: IeeeStep, fmt: Format, facts: dict[str, Array]) -> Numbers:
        codes = self._rounded_codes(numbers, step, fmt, facts)
        found = decoded(fmt, codes.astype(fmt.dtype))
        # a NaN of any word stays one, also where its word is no NaN of the format
        found.kind = np.where(numbers.kind == Kind.NAN, int(Kind.NAN), found.kind)
        return found

    def _rounded_codes(
        self, numbers: Numbers, step: IeeeStep | Round, fmt: Format, facts: dict[str, Array]
    ) -> Array:
        seen = _with_sticky(numbers)
        shape, zero = seen.lsb.shape, step.zero if isinstance(step, Round) else "signed"
        signals = RoundingSignals(
            fmt=fmt,
            sign=seen.sign,
            significand=np.where(seen.finite, seen.significand, 0),
            lsb=seen.lsb,
            mode=step.rounding,
            overflow=step.overflow if isinstance(step, Round) else "ieee",
            kept=_kept_bits(step, fmt),
            least=np.full(shape, fmt.min_exponent),
            highest=np.full(shape, 1 << 40),
            **(facts or _no_sum(seen)),
        )
        if fmt.is_float:
            self.tap("rounding", signals)
        code = CodeSignals(rounded_codes(signals, step.flush, zero), signals)
        if fmt.is_float:
            self.tap("code", code)
        special = seen.kind >= Kind.INFINITY
        self.inexact = self.inexact | (_cut_any(signals) & ~special).any(axis=1)
        return np.where(special, special_code(fmt, seen.kind, seen.sign, step.nan), code.code)

    def _terms(self, names: Sequence[str]) -> tuple[Numbers, Array]:
        """The terms of registers side by side, and the register of each."""
        found = [self.registers[name] for name in names]
        owner = [
            name for name, numbers in zip(names, found, strict=True) for _ in range(numbers.kind.shape[1])
        ]
        return Numbers.join(found), np.array(owner)


# Numbers and codes ------------------------------------------------------------------------------------------


def decoded(fmt: Format, codes: Array) -> Numbers:
    """Exact numbers of codes (n, terms); what Format.decode says of one code."""
    words = codes.astype(np.int64) if fmt.storage < 64 else codes.astype(object)
    none = np.zeros(codes.shape, np.bool_)
    if not fmt.is_float:
        value = words & ((1 << fmt.integer_bits) - 1)
        if fmt.signed and fmt.integer_bits:
            value = np.where(value >> (fmt.integer_bits - 1), value - (1 << fmt.integer_bits), value)
        kind = np.where(value != 0, int(Kind.FINITE), int(Kind.ZERO))
        zeros = np.zeros(codes.shape, np.int64)
        return Numbers(kind, (value < 0).astype(np.bool_), np.abs(value), zeros, zeros, none)
    ones = (1 << fmt.exponent_bits) - 1
    sign = (words >> fmt.sign_shift & 1).astype(np.bool_) if fmt.signed else none
    fraction = words >> fmt.ignored_low & ((1 << fmt.fraction_bits) - 1)
    biased = words >> (fmt.ignored_low + fmt.fraction_bits) & ones
    subnormal = (biased == 0).astype(np.bool_) & fmt.has_zero
    exponent = np.where(subnormal, fmt.min_exponent, biased - fmt.bias).astype(np.int64)
    significand = np.where(subnormal, fraction, fraction | 1 << fmt.fraction_bits)
    kind = np.where(significand == 0, int(Kind.ZERO), int(Kind.FINITE))
    top = (biased == ones).astype(np.bool_)
    if fmt.specials == "ieee":
        kind = np.where(top, np.where(fraction != 0, int(Kind.NAN), int(Kind.INFINITY)), kind)
    elif fmt.specials == "all_ones_nan":
        kind = np.where(top & (fraction == (1 << fmt.fraction_bits) - 1), int(Kind.NAN), kind)
    elif fmt.specials == "negative_zero_nan":
        kind = np.where(sign & (significand == 0), int(Kind.NAN), kind)
    significand = np.where(kind == Kind.FINITE, significand, 0).astype(np.int64)
    return Numbers(kind, sign, significand, exponent, exponent - fmt.fraction_bits, none)


def encoded(fmt: Format, numbers: Numbers, nan: int | None) -> Array:
    """The codes of numbers that a format holds exactly."""
    shape = numbers.lsb.shape
    signals = RoundingSignals(
        fmt,
        numbers.sign,
        np.where(numbers.finite, numbers.significand, 0),
        numbers.lsb,
        "toward_zero",
        "ieee",
        fmt.fraction_bits,
        np.full(shape, fmt.min_exponent),
        np.full(shape, 1 << 40),
    )
    special = special_code(fmt, numbers.kind, numbers.sign, nan)
    return np.where(numbers.kind >= Kind.INFINITY, special, rounded_codes(signals, "none", "signed"))


def special_code(fmt: Format, kind: Array, sign: Array, nan: int | None) -> Array:
    """Codes of infinities and NaNs, as golden/model/reference.py gives them."""
    minus = np.asarray(sign).astype(object if fmt.storage > 32 else np.int64)
    if not fmt.is_float:
        return np.where(minus, fmt.least, fmt.largest)
    word = fmt.largest if nan is None else nan
    signed = minus << fmt.sign_shift if fmt.signed else minus * 0
    infinite = fmt.infinity | signed if fmt.infinity is not None else word | (signed if nan is None else 0)
    return np.where(np.asarray(kind) == Kind.NAN, word, infinite)


def rounded_codes(signals: RoundingSignals, flush: str, zero: str) -> Array:
    """Codes of a rounding; what golden/number/rounding.py does with one number."""
    fmt, kept = signals.fmt, signals.kept
    if not fmt.is_float:
        return _integer_codes(signals)
    exact = signals.significand
    exponent = signals.exponent
    cut = exponent - kept - signals.lsb
    magnitude = _as_seen(exact, cut, signals) if signals.seen is not None or not signals.round_bit else exact
    significand = shifted(signals.sign, magnitude, cut, signals.mode)
    # the hidden bit adds one to the exponent field
    above = np.minimum(exponent - fmt.min_exponent, 1 << fmt.exponent_bits)
    above = above + (signals.assumed & (significand >> kept == 0))
    wide = object if fmt.storage > 32 else np.int64
    fields_ = above.astype(wide) << fmt.fraction_bits
    fields_ = np.where(exact == 0, 0, fields_ + (significand << (fmt.fraction_bits - kept))).astype(wide)
    sign = signals.sign.astype(wide) << fmt.sign_shift if fmt.signed else np.zeros_like(fields_)
    zero_code = np.zeros_like(fields_) if fmt.specials == "negative_zero_nan" else sign
    over = fields_ > fmt.largest >> fmt.ignored_low
    code = np.where(over, sign | _overflow_codes(signals), sign | fields_ << fmt.ignored_low)
    if flush != "none":
        code = np.where(fields_ < 1 << fmt.fraction_bits, zero_code, code)
        fields_ = np.where(fields_ < 1 << fmt.fraction_bits, 0, fields_)
    code = np.where(fields_ == 0, zero_code, code)
    dropped = (exact != 0) & (flush == "positive")
    dropped |= zero == "positive"
    dropped |= (exact == 0) & (zero == "signed_underflow")
    return np.where((fields_ == 0) & dropped, 0, code)


def _cut_any(signals: RoundingSignals) -> Array:
    """Which numbers a rounding changes."""
    cut = signals.exponent - signals.kept - signals.lsb
    over = signals.leading > signals.fmt.max_exponent
    lost = low_bits(_as_seen(signals.significand, cut, signals), np.maximum(cut, 0)) != 0
    return lost | (over & (signals.significand != 0))


def _as_seen(exact: Array, cut: Array, signals: RoundingSignals) -> Array:
    """The numbers without the cut bits that the rounding does not see."""
    deep = cut >= 2
    below = np.maximum(cut - 1, 0)  # bits below the round bit
    seen = below if signals.seen is None else np.minimum(np.maximum(signals.seen, 0), below)
    exact = exact - low_bits(exact, np.where(deep, below - seen, 0))
    if not signals.round_bit and signals.mode not in ("nearest_even", "nearest_away"):
        exact = exact - np.where(cut >= 1, low_bits(exact, below + 1) - low_bits(exact, below), 0)
    return exact


def _overflow_codes(signals: RoundingSignals) -> Array:
    fmt, mode = signals.fmt, signals.overflow_mode or signals.mode
    to_largest = np.full(signals.sign.shape, signals.overflow == "largest" or fmt.infinity is None)
    if signals.overflow == "ieee":
        to_largest = to_largest | (mode in ("toward_zero", "to_odd"))
        to_largest = to_largest | (signals.sign if mode == "up" else ~signals.sign & (mode == "down"))
    low = fmt.fraction_bits - signals.kept + fmt.ignored_low
    return np.where(to_largest, fmt.largest >> low << low, fmt.infinity or 0)


def _integer_codes(signals: RoundingSignals) -> Array:
    fmt = signals.fmt
    value = shifted(signals.sign, signals.significand, -signals.lsb, signals.mode)
    value = np.where(signals.sign, -value, value)
    if signals.overflow == "saturate":
        low = -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0
        value = np.minimum(np.maximum(value, low), fmt.largest)
    return value & ((1 << fmt.integer_bits) - 1)


def shifted(sign: Array, magnitude: Array, cut: Array, mode: str) -> Array:
    """Magnitudes moved right by `cut` places (left where it is negative) and rounded; what
    golden/number/rounding.py does with one."""
    right = np.maximum(cut, 0)
    kept = _shr(_shl(magnitude, np.maximum(-cut, 0)), right)
    rest = low_bits(magnitude, right)
    if mode in ("nearest_even", "nearest_away"):
        below = np.maximum(right - 1, 0)
        half = (_shr(magnitude, below) & 1 == 1) & (cut > 0)
        away = (low_bits(magnitude, below) != 0) | (kept & 1 == 1) | (mode == "nearest_away")
        return kept + (half & away).astype(np.int64)
    if mode == "to_odd":
        return kept | (rest != 0).astype(np.int64)
    if mode == "toward_zero":
        return kept
    away = sign if mode == "down" else ~sign
    return kept + (away & (rest != 0)).astype(np.int64)


def groups(count: int, group: tuple[str, int] | None) -> list[list[int]]:
    """Columns of each group; without grouping one group of all."""
    columns = list(range(count))
    if group is None:
        return [columns]
    kind, size = group
    if kind == "interleaved":
        return [columns[i::size] for i in range(size)]
    return [columns[i : i + size] for i in range(0, count, size)]


def _kept_bits(step: IeeeStep | Round, fmt: Format) -> int:
    """The fraction bits of a result, which may be fewer than its format has."""
    fewer = step.result_fraction_bits if isinstance(step, Round) else None
    return fmt.fraction_bits if fewer is None else fewer


# Small parts ------------------------------------------------------------------------------------------------

_LONGEST = 20_000
"""Places that a shift moves at most: more than any exponents lie apart."""
_SHORT = 60
"""Bits of magnitude up to which machine integers hold what is computed; Python's hold the rest."""
_length_of_long = np.frompyfunc(lambda value: int(value).bit_length(), 1, 1)


def _bit_length(value: Array) -> Array:
    """Bits of magnitudes."""
    if value.dtype == object:
        return _length_of_long(value).astype(np.int64)
    length = np.frexp(value.astype(np.float64))[1].astype(np.int64)  # may round up to the next power of two
    return length - ((value != 0) & (value >> np.maximum(length - 1, 0) == 0))


def _is_short(value: Array, more: int = 0) -> bool:
    """Whether machine integers hold the values with `more` bits more."""
    if value.dtype == object or not value.size:
        return False
    return int(np.abs(value).max()).bit_length() + more <= _SHORT


def _shl(value: Array, count: Array) -> Array:
    """value << count, whatever it takes."""
    if _is_short(value, min(int(np.max(count, initial=0)), _LONGEST)):
        return value << count
    return value.astype(object) << np.minimum(count, _LONGEST).astype(object)


def _shr(value: Array, count: Array) -> Array:
    if value.dtype == object:
        return value >> np.minimum(count, _LONGEST).astype(object)
    return value >> np.minimum(count, _SHORT + 2)


def low_bits(value: Array, count: Array) -> Array:
    """The low `count` bits of each."""
    if value.dtype == object:
        return value & (_shl(np.ones_like(value), count) - 1)
    return np.where(count > _SHORT, value, value & ((1 << np.minimum(count, _SHORT)) - 1))


def _products(a: Numbers, b: Numbers, answer: Kind) -> ProductSignals:
    zero, infinite = Kind.ZERO, Kind.INFINITY
    kind = np.where((a.kind == zero) | (b.kind == zero), int(zero), int(Kind.FINITE))
    kind = np.where((a.kind == infinite) | (b.kind == infinite), int(infinite), kind)
    kind = np.where((a.kind == Kind.NAN) | (b.kind == Kind.NAN), int(Kind.NAN), kind)
    invalid = ((a.kind == zero) & (b.kind == infinite)) | ((a.kind == infinite) & (b.kind == zero))
    x, y = a.significand, b.significand
    fits = _is_short(x, int(np.max(_bit_length(y), initial=0)))
    significand = x * y if fits else x.astype(object) * y.astype(object)
    products = Numbers(
        kind, a.sign ^ b.sign, significand, a.exponent + b.exponent, a.lsb + b.lsb, a.sticky & b.sticky
    )
    return ProductSignals(products, a, b, invalid, answer)


def _picked_sign(infinite: Array, sign: Array, rule: str) -> Array:
    """The sign of the answer where there are infinities: of the first, of the last, plus or minus."""
    if rule in ("positive", "negative"):
        both = (infinite & sign).any(axis=1) & (infinite & ~sign).any(axis=1)
        only = (infinite & sign).any(axis=1)
        return np.where(both, rule == "negative", only)
    columns = np.arange(infinite.shape[1])
    last = rule == "last"
    place = np.where(infinite, columns, -1 if last else len(columns))
    picked = place.max(axis=1) if last else place.min(axis=1)
    return np.take_along_axis(sign, np.clip(picked, 0, len(columns) - 1)[:, None], axis=1)[:, 0]


def _logically(
    kept: Array, sign: Array, signals: ShiftSignals, terms: Numbers, cut: Array
) -> tuple[Array, Array]:
    """Negative terms, in words of `logical` bits, shifted with zeros from the left."""
    word = 1 << signals.logical
    places = _shl(terms.significand, np.maximum(signals.shift - cut, 0))
    moved = (signals.shift > 0) & terms.sign & terms.finite
    pattern = _shr((word - places) % word, np.maximum(signals.shift, 0))
    return np.where(moved, pattern, kept), np.where(moved, np.False_, sign)


def _moved(signals: ShiftSignals) -> Numbers:
    """The terms of an IEEE addition where the shifts say that they lie."""
    terms = signals.terms
    by = np.where(terms.finite, signals.maximum - terms.exponent - signals.shift, 0)
    lsb, significand = terms.lsb + by, terms.significand
    if signals.jammed.any():
        far = np.broadcast_to(signals.maximum, lsb.shape) - 2 * signals.precision - 8
        there = signals.jammed & terms.finite
        significand, lsb = np.where(there, 1, significand), np.where(there, far, lsb)
    if signals.lost_below is not None:
        lost = np.where(terms.finite, signals.maximum - signals.lost_below - lsb, 0)
        significand = significand - low_bits(significand, np.maximum(lost, 0))
    return replace(terms, significand=significand, lsb=lsb)


def _register_lsb(finite: Array, lsb: Array) -> int | None:
    """The last place of a register that holds every sum of these exactly: the least that occurs."""
    return int(lsb[finite].min()) if finite.any() else None


def _held(total: Array, bits: Array, overflow: str) -> Array:
    """`total` as a two's complement register of `bits` bits holds it."""
    half = _shl(np.ones(total.shape, object), bits) >> 1
    if overflow == "saturate":
        return np.where(bits > 0, np.minimum(np.maximum(total, -half), half - 1), 0)
    return np.where(bits > 0, (total + half) % np.maximum(half * 2, 1) - half, 0)


def held(total: Array, bits: int) -> Array:
    """A signed sum as a register of `bits` bits holds it, which wraps."""
    half = 1 << bits >> 1
    return (total + half) % (2 * half) - half


def _no_sum(numbers: Numbers) -> dict[str, Array]:
    """The same of a number that is no sum: nothing was apart, nothing carried."""
    leading = _leading_of(numbers)
    none = np.zeros(leading.shape, np.bool_)
    return {"maximum": leading, "distance": np.zeros(leading.shape, np.int64), "subtraction": none}


def _facts_of(terms: Numbers, exponent: Array) -> dict[str, Array]:
    """What a rounding may know of the sum that it rounds. Zeros have signs and exponents, too: an adder that
    looks at no zeros sees both."""
    least = terms.exponent.min(axis=1, keepdims=True)
    plus, minus = (~terms.sign).any(axis=1, keepdims=True), terms.sign.any(axis=1, keepdims=True)
    return {"maximum": exponent, "distance": np.maximum(exponent - least, 0), "subtraction": plus & minus}


def _with_sticky(numbers: Numbers) -> Numbers:
    """Numbers as a rounding sees them: the sticky bit is one more bit below the last one."""
    if not numbers.sticky.any():
        return numbers
    significand = np.where(numbers.sticky, numbers.significand << 1 | 1, numbers.significand)
    lsb = np.where(numbers.sticky, numbers.lsb - 1, numbers.lsb)
    return replace(numbers, significand=significand, lsb=lsb, sticky=np.zeros_like(numbers.sticky))


def _leading_of(numbers: Numbers) -> Array:
    """The exponents of leading ones."""
    return _bit_length(numbers.significand) - 1 + numbers.lsb


def _settled(numbers: Numbers) -> Numbers:
    """The numbers with every zero as one that takes no part in a maximum exponent."""
    zero = numbers.finite & (numbers.significand == 0)
    return replace(numbers, kind=np.where(zero, int(Kind.ZERO), numbers.kind)) if zero.any() else numbers


def _zeros_like(numbers: Numbers) -> Numbers:
    zero, none = np.zeros_like(numbers.lsb), np.zeros_like(numbers.sign)
    return Numbers(zero, none, zero, zero, zero, none)
