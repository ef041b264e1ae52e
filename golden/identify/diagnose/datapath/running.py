"""Runs the steps of a program on arrays of exact numbers, with faults of its signals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, assert_never

import numpy as np

from golden.identify.diagnose.datapath.alignment import aligned, moved
from golden.identify.diagnose.datapath.arrays import Array, bit_length, in_register, shifted
from golden.identify.diagnose.datapath.codes import (
    as_codes,
    converted,
    cut_any,
    decoded,
    encoded,
    rounded_codes,
    special_code,
    with_gap,
    with_random,
)
from golden.identify.diagnose.datapath.signals import (
    CodeSignals,
    Faulty,
    NormalizeSignals,
    Numbers,
    OperandSignals,
    ProductSignals,
    RoundingSignals,
    ScaleSignals,
    ShiftSignals,
    SpecialSignals,
    TotalSignals,
)
from golden.identify.diagnose.datapath.terms import (
    HUGE,
    combined_bits,
    facts_of,
    facts_of_one,
    groups,
    in_part,
    joined,
    leading_of,
    picked_sign,
    product,
    register_lsb,
    replaced,
    special_sum,
    total_of,
    with_hidden_bit,
    with_sticky,
    without_zero_exponents,
    zero_sign_of,
    zeros_like,
)
from golden.model.instruction import Instruction
from golden.number.formats import Format, Kind
from golden.program.bounds import kept_bits
from golden.program.program import NO_SEED, Operation
from golden.program.signature import Bits, Operands
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
)

_NAN_WORDS = ("nans", "first_nan", "nan_order")
"""Keys that decide only the word of a NaN, which then comes from the core."""


def runs(ins: Instruction) -> bool:
    """Whether the data path can run the steps of an instruction: of one mode, and of one dot product by
    itself."""
    return not ins.state and ins.modes is None


def results(ins: Instruction, faults: Iterable[Faulty], operands: Operands) -> Bits:
    """The results of a unit that computes `ins` with these faults, raw codes (n,).

    Args:
        ins: one that `runs`. operands: as `ins.dot` takes them, one leading dimension (n,).
    """
    return _with_nan_words(ins, operands, _ran(ins, faults, operands)[0])


def inexact(ins: Instruction, faults: Iterable[Faulty], operands: Operands) -> Array:
    """The results (n,) that a unit with these faults considers rounded: its last operation cut something, or
    its result is too large."""
    return _ran(ins, faults, operands)[1]


@dataclass(frozen=True)
class Read:
    """The operands of an instruction: codes (n, products), sparse b as the metadata selects it; `block`:
    products that share a scale, 0 without scales."""

    formats: Mapping[str, Format]
    codes: Mapping[str, Array]
    block: int


def _read(ins: Instruction, operands: Operands) -> Read:
    count = len(operands["a"])
    absent = {name: np.zeros((count, *[ins.stored_k] * (name != "c")), np.uint8) for name in ins.absent}
    codes = {**operands, **absent}
    if ins.pattern is not None:
        codes["b"] = np.take_along_axis(codes["b"], ins.pattern.columns(operands["metadata"]), axis=1)
    block = ins.scale_block * ins.stored_k // ins.k if ins.scale_block is not None else 0
    return Read(ins.formats, codes, block)


def _ran(ins: Instruction, faults: Iterable[Faulty], operands: Operands) -> tuple[Bits, Array]:
    """The codes, and which are inexact."""
    run, read = _Run(tuple(faults)), _read(ins, operands)
    codes: dict[str, Array] = {"c": read.codes["c"], "zero": np.zeros_like(read.codes["c"])}
    codes[NO_SEED] = codes["zero"]
    with np.errstate(all="ignore"):
        # one operation after the other; each reads codes of the ones before, as separate units would
        for operation in ins.program.operations:
            found = run.operation(operation, read, codes)
            codes[operation.to] = as_codes(operation.out_format, found)
    return np.asarray(codes["d"]), run.inexact & ~run.ended


def _with_nan_words(ins: Instruction, operands: Operands, codes: Bits) -> Bits:
    """The codes with the core's NaNs if both have one, for units that pass NaNs on."""
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

    faults: tuple[Faulty, ...]
    registers: dict[str, Numbers] = field(default_factory=dict)
    made: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Of a register that holds a sum: maximum, distance, subtraction, signed_zero."""
    inexact: Array = None
    ended: Array = None
    answer: Array = None
    coded: dict[str, Array] = field(default_factory=dict)
    """Kinds of the operands of the operation according to their codes."""
    infinite: Array = None
    """Results (n,) of the operation that become an infinity of their sign."""
    step: Any = None
    wraps: bool = False
    """Whether sums with an undetected special value are zero."""

    def change(self, place: str, signals: Any) -> None:
        """Lets the faults of a place change its signals."""
        for one in self.faults:
            if not one.of or isinstance(self.step, one.of):
                for at, rule in one.signals:
                    if at == place:
                        rule(signals)

    def operation(self, operation: Operation, read: Read, results: Mapping[str, Array]) -> Array:
        """The codes of an operation's result, (n,); `results`: results of the earlier operations."""
        self._read(operation, read, results)
        count = len(results["c"])
        self.made = {}
        self.fresh_nans = np.zeros((0, 0), np.int64), np.zeros((0, 0), np.bool_)
        self.ended, self.inexact = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self.answer, self.infinite = np.zeros(count, object), np.zeros(count, np.bool_)
        for step in operation.steps:
            self.step = step
            codes = self._execute(step, operation)
            if codes is not None:
                codes = self._infinite(codes, operation.out_format)
                return np.where(self.ended, self.answer, codes)
        raise AssertionError("a program's last step writes d")

    def _infinite(self, codes: Array, fmt: Format) -> Array:
        """The codes with signed infinities where a fault has left them nothing else."""
        if not self.infinite.any():
            return codes
        minus = (codes >> fmt.sign_shift & 1).astype(np.bool_)
        kinds = np.full(len(codes), int(Kind.INFINITY))
        return np.where(self.infinite, special_code(fmt, kinds, minus, None), codes)

    def _read(self, operation: Operation, read: Read, results: Mapping[str, Array]) -> None:
        own = {"a": read.formats["a"], "b": read.formats["b"], "c": operation.seed_format}
        picked = list(operation.k_index)
        seed = results[operation.seed][:, None]
        codes = {"a": read.codes["a"][:, picked], "b": read.codes["b"][:, picked], "c": seed}
        # decode: from codes to exact numbers; NaNs and infinities keep the number that their codes would be
        signals = OperandSignals({name: decoded(own[name], codes[name]) for name in own}, own)
        self.coded = {name: numbers.kind for name, numbers in signals.numbers.items()}
        self.change("operands", signals)
        self.registers = dict(signals.numbers)
        if operation.operand_format is not None:
            for name in "ab":
                self.registers[name] = converted(operation.operand_format, self.registers[name])
        if operation.addends:
            addends = np.stack([results[name] for name in operation.addends], axis=1)
            self.registers["addends"] = decoded(operation.out_format, addends)
        if read.block:
            self.registers["scales"] = self._scales(read, [k // read.block for k in picked])

    def _scales(self, read: Read, blocks: Sequence[int]) -> Numbers:
        """The product of both scales, for each k."""
        a, b = (decoded(read.formats[name], read.codes[name]) for name in ("scale_a", "scale_b"))
        signals = ScaleSignals(a, b, read.formats["scale_a"], read.formats["scale_b"], list(blocks))
        self.change("scales", signals)
        self.registers |= {
            f"scale_{side}": one[signals.blocks]
            for side, one in zip("ab", (signals.a, signals.b), strict=True)
        }
        found, invalid = product(self.registers["scale_a"], self.registers["scale_b"])
        return replace(found, kind=np.where(invalid, int(Kind.NAN), found.kind))

    def _execute(self, step: Step, operation: Operation) -> Array | None:
        match step:
            case Flush():
                self._flush(step, operation)
            case HiddenBit():
                for name in step.of:
                    self.registers[name] = with_hidden_bit(self.registers[name], step.zeros)
            case Part():
                for name in step.of:
                    self.registers[name] = in_part(self.registers[name], step)
            case Replace():
                for name in step.of:
                    self.registers[name] = replaced(self.registers[name], step)
            case Multiply():
                self.registers[step.to] = self._multiply(step)
            case Scale():
                self._scale(step)
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
            case _:
                assert_never(step)
        return None

    # Steps

    def _flush(self, step: Flush, operation: Operation) -> None:
        for name in step.of:
            numbers = self.registers[name]
            subnormal = numbers.finite & (bit_length(numbers.significand) <= numbers.exponent - numbers.lsb)
            if name == "c" and not operation.seed_format.is_float:
                subnormal = np.zeros_like(subnormal)
            flushed = subnormal | (numbers.kind == Kind.ZERO)
            sign = numbers.sign & ~flushed if step.sign == "positive" else numbers.sign
            kind = np.where(subnormal, int(Kind.ZERO), numbers.kind)
            significand = np.where(subnormal, 0, numbers.significand)
            self.registers[name] = replace(numbers, kind=kind, sign=sign, significand=significand)

    def _multiply(self, step: Multiply | Fma) -> Numbers:
        a, b = self.registers["a"], self.registers["b"]
        if isinstance(step, Multiply) and step.operation != "product":
            return self._finished(combined_bits(a, b, step.operation), step)
        # multiply: exact products; infinity times zero is marked and answered last
        answers = {"nan": Kind.NAN, "infinity": Kind.INFINITY, "zero": Kind.ZERO}
        signals = ProductSignals(*product(a, b), a, b, answers[step.zero_times_infinity], self.coded)
        if isinstance(step, Multiply) and step.negate in ("product", "both"):
            signals.products.sign = ~signals.products.sign
        if isinstance(step, Multiply) and step.negate in ("c", "both"):
            self.registers["c"] = replace(self.registers["c"], sign=~self.registers["c"].sign)
        self.change("products", signals)
        found = signals.products
        found.kind = np.where(signals.invalid, int(signals.answer), found.kind)
        return self._finished(found, step) if isinstance(step, Multiply) else found

    def _finished(self, products: Numbers, step: Multiply) -> Numbers:
        """The products after the step."""
        if step.overflow_exponent is not None:
            over = products.finite & (products.significand != 0)
            over = over & (leading_of(products) >= step.overflow_exponent)
            products.kind = np.where(over, int(Kind.INFINITY), products.kind)
        if step.normalize:
            there = products.finite & (products.significand != 0)
            products.exponent = np.where(there, leading_of(products), products.exponent)
        return products if step.format is None else self._rounded(products, step, step.format, {})

    def _scale(self, step: Scale) -> None:
        for name in step.of:
            if step.power is not None:
                terms = self.registers[name]
                self.registers[name] = replace(
                    terms, exponent=terms.exponent + step.power, lsb=terms.lsb + step.power
                )
                continue
            terms, scales = self.registers[name], self.registers[factor_of(step)]
            stride = max(scales.kind.shape[1] // max(terms.kind.shape[1], 1), 1)
            found, invalid = product(terms, scales[[i * stride for i in range(terms.kind.shape[1])]])
            self.registers[name] = replace(found, kind=np.where(invalid, int(Kind.NAN), found.kind))

    def _special_values(self, step: SpecialValues, operation: Operation) -> None:
        terms, owner = self._terms(step.of)
        signals = SpecialSignals(terms.kind.copy(), terms.sign.copy(), owner)
        self.change("specials", signals)
        self.wraps = self.wraps or signals.wraps
        signals.kind, seen = self._leave_unseen(step.of, signals), signals.kind
        if signals.signed_by_sum is not None:
            self.infinite = self.infinite | (signals.signed_by_sum & ~self.ended)
        if signals.skew:
            signals.kind = np.roll(seen, signals.skew, axis=0)
            signals.sign = np.roll(signals.sign, signals.skew, axis=0)
        # a NaN wins; then infinities of both signs, which are invalid; then infinities of one sign
        infinite = signals.kind == Kind.INFINITY
        plus, minus = (infinite & ~signals.sign).any(axis=1), (infinite & signals.sign).any(axis=1)
        first = picked_sign(infinite, signals.sign, step.opposite_infinities)
        opposite = plus & minus
        nan = (signals.kind == Kind.NAN).any(axis=1)
        excused = np.zeros_like(nan) if signals.excused is None else opposite & signals.excused
        first = np.where(excused, picked_sign(infinite, signals.sign, signals.opposite), first)
        if step.opposite_infinities == "nan":
            nan = nan | (opposite & ~excused)
        special = special_code(operation.out_format, np.where(nan, 3, 2), first, step.nan)
        # the first step that answers decides: later ones see these vectors no more
        fresh = (nan | plus | minus) & ~self.ended
        self.answer = np.where(fresh, special, self.answer)
        self.ended = self.ended | fresh

    def _leave_unseen(self, names: Sequence[str], signals: SpecialSignals) -> Array:
        """Turns undetected special values into numbers for all later steps; returns the detected ones."""
        if signals.unseen is None:
            return signals.kind
        for name in names:
            own, numbers = signals.unseen[:, signals.owner == name], self.registers[name]
            self.registers[name] = replace(numbers, kind=np.where(own, int(signals.unseen_as), numbers.kind))
        return np.where(signals.unseen, int(signals.unseen_as), signals.kind)

    def _align(self, step: Align) -> None:
        terms, owner = self._terms(step.of)
        out: dict[int, Numbers] = {}
        for columns in groups(len(owner), step.group):
            found = aligned(terms[columns], owner[columns], step, partial(self.change, "shifts"))
            out |= {column: found[[place]] for place, column in enumerate(columns)}
        for name in step.of:
            self.registers[name] = Numbers.join([out[i] for i, own in enumerate(owner) if own == name])

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
        """The exact sum of terms (n, 1), and its known properties."""
        finite = terms.finite
        total, lsb, exponent = total_of(terms)
        # one's complement to the sign of c: each term of the other sign lacks the one of its negation
        if step is not None and step.complement == "c":
            others = (terms.sign != self.registers["c"].sign).sum(axis=1, keepdims=True)
            total = total + np.where(self.registers["c"].sign, others, -others)
        signals = TotalSignals(
            total,
            lsb,
            exponent if step is None or step.exponent is None else np.full_like(exponent, step.exponent),
            sticky=(terms.sticky & finite).any(axis=1, keepdims=True),
            zero_sign=zero_sign_of(terms, rounding),
            terms=terms,
            owner=owner,
            register_lsb=None if step is None else register_lsb(finite, terms.lsb),
            is_integer=step is not None and bool((terms.exponent == terms.lsb).all()),
        )
        self.change("total", signals)
        signed_zero = np.broadcast_to(signals.signed_zero, lsb.shape)
        return _as_number(signals, step), facts_of(terms, signals.exponent) | {"signed_zero": signed_zero}

    def _normalize(self, step: Normalize) -> None:
        bits = dict(step.fraction_bits)
        for name in step.of:
            signals = NormalizeSignals(self.registers[name])
            self.change("normalize", signals)
            numbers = with_sticky(signals.numbers)
            there = numbers.finite & (numbers.significand != 0)
            # leading-zero count, then the shift: afterwards the leading one has the exponent's weight
            own = np.where(there, leading_of(numbers), 0)
            exponent = own if step.min_exponent is None else np.maximum(own, step.min_exponent)
            cut = exponent - bits[name] - numbers.lsb
            kept = shifted(numbers.sign, numbers.significand, cut, step.rounding)
            self.registers[name] = replace(
                signals.numbers,
                significand=np.where(there, kept, signals.numbers.significand),
                exponent=np.where(there, exponent, signals.numbers.exponent),
                lsb=np.where(there, exponent - bits[name], signals.numbers.lsb),
                sticky=signals.numbers.sticky & ~there,
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
        # a multiply-add normalises its factors: the exponent of a product is where its leading one may be
        places = [leading_of(self.registers[name]) for name in "ab"]
        products.exponent = np.where(products.finite, places[0] + places[1], products.exponent)
        sums = []
        for columns in groups(products.kind.shape[1], step.group):
            start, rest = self.registers["c"], list(columns)
            if step.start == "product":
                start, rest = self._rounded(products[[rest[0]]], step, step.format, {}), rest[1:]
            elif step.start == "zero":
                start = zeros_like(start)
            for k in rest:
                start = self._added(products[[k]], start, step)
            sums.append(start)
        self.registers[step.to] = Numbers.join(sums)
        return self._last(step, operation)

    def _last(self, step: Additions | Fma, operation: Operation) -> Array | None:
        """The codes if the step writes d: its sums were rounded to d's format already, or are exact in it."""
        if step.to != "d":
            return None
        overflow = step.overflow if isinstance(step, Additions) else "ieee"
        numbers = with_sticky(self.registers["d"])
        codes = encoded(operation.out_format, numbers, step.nan, step.rounding, overflow)[:, 0]
        words, fresh = self.fresh_nans  # what a faulty rounding made of a number is no NaN that steps know
        same = fresh.shape == numbers.kind.shape and words.dtype == codes.dtype
        return np.where(fresh, words, codes[:, None])[:, 0] if same else codes

    def _added(self, x: Numbers, y: Numbers, step: Additions | Fma) -> Numbers:
        """One IEEE addition: align, sum, round."""
        terms = without_zero_exponents(Numbers.join([x, y]))
        owner = np.array(["product", "c"] if isinstance(step, Fma) else ["first", "second"])
        specials = SpecialSignals(terms.kind, terms.sign, owner)
        self.change("specials", specials)
        if specials.unseen is not None:
            terms = replace(terms, kind=np.where(specials.unseen, int(Kind.FINITE), terms.kind))
        terms = terms if specials.sign is terms.sign else replace(terms, sign=specials.sign)
        # align: the smaller term moves right by the distance; nothing is cut, as the sum is exact
        finite = terms.finite
        maximum = np.where(finite, terms.exponent, -HUGE).max(axis=1, keepdims=True)
        none = np.zeros(finite.shape, np.bool_)
        precision = step.format.fraction_bits
        signals = ShiftSignals(terms, owner, maximum, maximum - terms.exponent, None, precision, none)
        self.change("shifts", signals)
        exact, facts = self._summed(moved(signals), owner, step.rounding)
        if self.wraps or specials.wraps:
            lost = (finite & (terms.exponent > step.format.max_exponent)).any(axis=1, keepdims=True)
            zero = replace(terms, significand=np.zeros_like(terms.significand))
            sign = np.where(lost, zero_sign_of(zero, step.rounding), exact.sign)
            exact = replace(exact, kind=np.where(lost, int(Kind.ZERO), exact.kind), sign=sign)
        # round once: the result is a number of the step's format again
        return self._rounded(exact, step, step.format, facts)

    def _round(self, step: Round) -> Array | None:
        name = step.of[0]
        numbers = self.registers[name]
        codes = self._rounded_codes(numbers, step, step.format, self.made.get(name, {}))
        if step.to == "d":
            return codes[:, 0]
        self.registers[step.to] = decoded(step.format, as_codes(step.format, codes))
        return None

    # Rounding

    def _rounded(self, numbers: Numbers, step: IeeeStep, fmt: Format, facts: dict[str, Array]) -> Numbers:
        codes = self._rounded_codes(numbers, step, fmt, facts)
        found = decoded(fmt, as_codes(fmt, codes))
        self.fresh_nans = codes, (found.kind == Kind.NAN) & (numbers.kind < Kind.INFINITY)
        # a NaN of any word stays one, also where its word is no NaN of the format
        found.kind = np.where(numbers.kind == Kind.NAN, int(Kind.NAN), found.kind)
        return found

    def _rounded_codes(
        self, numbers: Numbers, step: IeeeStep | Round, fmt: Format, facts: dict[str, Array]
    ) -> Array:
        seen = with_sticky(numbers)  # the sticky bit stands below the last place: no rounding misses it
        shape = seen.lsb.shape
        signals = RoundingSignals(
            fmt=fmt,
            sign=seen.sign,
            significand=np.where(seen.finite, seen.significand, 0),
            lsb=seen.lsb,
            mode=step.rounding,
            overflow=step.overflow if isinstance(step, Round | Additions) else "ieee",
            kept=kept_bits(step, fmt),
            least=np.full(shape, fmt.min_exponent),
            highest=np.full(shape, HUGE),
            flush=step.flush,
            tiny=step.tiny,
            zero=step.zero if isinstance(step, Round) else "signed",
            subnormal_carry=step.subnormal_carry if isinstance(step, Round) else "kept",
            nan=fmt.largest if step.nan is None else step.nan,
            **(facts or facts_of_one(seen)),
        )
        if isinstance(step, Round) and (step.sticky_gap or step.sticky == "left_out"):
            signals.exact_zero = (signals.significand == 0).astype(np.bool_)
            signals.significand = with_gap(signals, None if step.sticky == "left_out" else step.sticky_gap)
        if isinstance(step, Round) and step.random_bits is not None:
            signals.exact_zero = (signals.significand == 0).astype(np.bool_)
            signals.significand, signals.lsb = with_random(signals, step.random_bits, step.random)
        if fmt.is_float:
            self.change("rounding", signals)
        code = CodeSignals(rounded_codes(signals), signals)
        if fmt.is_float:
            self.change("code", code)
        # inexact: a cut bit was one, or the result is too large; NaNs and infinities are exact
        special = seen.kind >= Kind.INFINITY
        self.inexact = self.inexact | (cut_any(signals) & ~special).any(axis=1)
        return np.where(special, special_code(fmt, seen.kind, seen.sign, step.nan), code.code)

    def _terms(self, names: Sequence[str]) -> tuple[Numbers, Array]:
        """The terms of several registers in one array, and the register of each."""
        return joined([(name, self.registers[name]) for name in names])


def _as_number(signals: TotalSignals, step: Sum | None) -> Numbers:
    """The content of the register after a sum; NaNs and infinities among the terms win."""
    terms, total, exponent, lsb = signals.terms, signals.total, signals.exponent, signals.lsb
    if step is not None and step.width is not None:
        total = in_register(total, np.maximum(exponent + step.width - lsb, 0), step.overflow)
    # a sum of zeros alone is a zero; one that cancels keeps its exponent, unless the step says else
    nothing = ~terms.finite.any(axis=1, keepdims=True)
    if step is not None and step.cancelled == "zero":
        nothing |= (total == 0) & ~signals.sticky
    sign = np.where(total == 0, signals.zero_sign, total < 0).astype(np.bool_)
    special, kind, minus = special_sum(terms)
    kind = np.where(special, kind, np.where(nothing, int(Kind.ZERO), int(Kind.FINITE)))
    return Numbers(kind, np.where(special, minus, sign), np.abs(total), exponent, lsb, signals.sticky)
