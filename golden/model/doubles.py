"""Which programs run in blocks of doubles (golden/core/mg_real.h).

Steps and formats decide, as in golden/model/kernels.py, and every field of a step counts. The bounds keep
every number of a program within 53 bits, or have it rounded to odd straight before its only rounding: a
product of two operands, a sum of whole units of an alignment, a sum of two numbers. docs/core.md says why
that is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from golden.model.kernels import is_step
from golden.number.formats import Format, Kind
from golden.program.program import NOTHING, Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    Multiply,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    grouping,
)

if TYPE_CHECKING:
    from golden.program.signature import Signature

_SIGNIFICAND = 53
_MOST_TERMS = 64
_MOST_EXPONENT = 300
"""Of two operands in a format of eight bits of exponent, of a floor, and of a point that does not move or is
given to a sum."""
_MOST_POWER = 960
"""Of an exponent that is carried, and of units below it: 2^52 of them are a double, too."""


class _Range(NamedTuple):
    """Which numbers a register can hold."""

    top: int
    """All are below 2^top."""
    bottom: int
    """All are multiples of 2^bottom."""
    bits: int
    """Significands have at most so many bits."""
    above: int
    """All are below 2^(the exponent that they carry + above)."""
    highest: int
    """None carries an exponent above."""
    lowest: int
    """Or below."""

    @classmethod
    def of(cls, f: Format) -> _Range:
        """The numbers of a format."""
        bottom = f.min_exponent - f.fraction_bits
        return cls(f.max_exponent + 1, bottom, f.fraction_bits + 1, 1, f.max_exponent + 1, bottom)

    def times(self, other: _Range) -> _Range:
        """Products."""
        return _Range(*(mine + its for mine, its in zip(self, other, strict=True)))

    def sums(self, count: int) -> _Range:
        """Exact sums of so many."""
        more = count.bit_length()
        bits = self.top - self.bottom + more
        return self._replace(top=self.top + more, bits=bits, above=self.above + more)


def _joined(ranges: Sequence[_Range]) -> _Range:
    tops, bottoms, bits, above, highest, lowest = zip(*ranges, strict=True)
    return _Range(max(tops), min(bottoms), max(bits), max(above), max(highest), min(lowest))


def fits_doubles(operations: Sequence[Operation], unit: Signature) -> bool:
    """Whether every operation of a program does; see the module."""
    if unit.scale_block is not None and not all(_scales(unit.formats[f"scale_{name}"]) for name in "ab"):
        return False
    return all(
        _whole(operation, unit)
        or (
            all(_readable(unit.formats[name]) for name in "abc" if name not in unit.absent)
            and _Walk(operation, unit).fits()
        )
        for operation in operations
    )


def _whole(operation: Operation, unit: Signature) -> bool:
    """Whether an operation is one exact sum of products of integers and c, which wraps or saturates."""
    match operation.steps:
        case (Multiply() as multiply, Sum() as total, Round() as final):
            pass
        case _:
            return False
    a, b = (unit.formats[name] for name in "ab")
    out, seed = operation.out_format, operation.seed_format
    wide = max(a.integer_bits + b.integer_bits + len(operation.k_index).bit_length(), seed.integer_bits)
    return (
        not any(f.is_float or f.storage > 32 for f in (a, b, seed, out))
        and wide < _SIGNIFICAND - 1
        and not (operation.addends or operation.operand_format or unit.absent)
        and is_step(multiply, Multiply, "negate", to="products")
        and is_step(total, Sum, "rounding", of=("products", "c"), to="total")
        and is_step(final, Round, "rounding", "overflow", "zero", "nan", of=("total",), to="d", format=out)
        and final.overflow in ("wrap", "saturate")
    )


def _readable(f: Format) -> bool:
    """Formats of operands whose codes become doubles by their fields alone."""
    return f.has_subnormals and f.fraction_bits >= 1 and _scales(f)


def _scales(f: Format) -> bool:
    """The same of scales, which may be powers of two alone."""
    return (
        f.is_float
        and f.storage <= 32
        and f.exponent_bits <= 8
        and f.fraction_bits <= 23
        and abs(f.bias) <= 150
        and f.specials in ("ieee", "all_ones_nan", "none")
    )


def _writable(f: Format) -> bool:
    """Formats that results are rounded to."""
    return _readable(f) and f.signed and f.specials == "ieee"


def _holds(wide: Format, narrow: Format) -> bool:
    """Whether a format has every number of another."""
    return (
        wide.fraction_bits >= narrow.fraction_bits
        and wide.max_exponent >= narrow.max_exponent
        and wide.min_exponent - wide.fraction_bits <= narrow.min_exponent - narrow.fraction_bits
    )


class _Walk:
    """One operation, step by step: how many numbers each register holds, and which of them are whole units of
    the last alignment."""

    def __init__(self, operation: Operation, unit: Signature) -> None:
        self.operation, self.unit = operation, unit
        k = len(operation.k_index)
        self.counts = {"a": k, "b": k, "c": 1, "addends": len(operation.addends)}
        self.ranges = {name: _Range.of(unit.formats[name]) for name in "ab"}
        self.ranges["c"], self.ranges["addends"] = map(
            _Range.of, (operation.seed_format, operation.out_format)
        )
        if unit.scale_block is not None:
            self.counts["scales"] = k
            scales = [_Range.of(unit.formats[name]) for name in ("scale_a", "scale_b")]
            self.ranges["scales"] = scales[0].times(scales[1])
        self.aligned: dict[str, int] = {}
        """Registers, and below which power of two their numbers are, in units."""
        self.groups: dict[str, tuple[str, int] | None] = {}
        """Of these registers: which of their numbers have one unit; without groups, all."""
        self.moved = False
        """Whether an alignment has moved numbers of some register."""
        self.finite: set[str] = set()
        """Registers without infinities and NaNs, which have been answered."""

    def fits(self) -> bool:
        """Whether mg_real.h computes it."""
        operation, unit = self.operation, self.unit
        target = operation.operand_format
        formats = (operation.seed_format, operation.out_format)
        if not all(_readable(f) or f == NOTHING for f in formats) or not _writable(operation.out_format):
            return False
        if target and not (
            _readable(target)
            and all(_holds(target, unit.formats[name]) for name in "ab" if self.counts[name])
        ):
            return False
        steps = operation.steps
        return (
            all(
                self._step(step, steps[i + 1] if i + 1 < len(steps) else None) for i, step in enumerate(steps)
            )
            and self._hands_nans_throughout()
        )

    def _hands_nans_throughout(self) -> bool:
        """Where one step hands NaNs on, payload and all, every one that makes numbers does."""
        rounding = [
            _hands_nan(step)
            for step in self.operation.steps
            if isinstance(step, Additions | Fma | Round | Multiply)
        ]
        return all(rounding) or not any(rounding)

    def _hands_nans(self) -> bool:
        """Where some step hands NaNs on, or looks for the operand that one came from, whose signs count."""
        return any(_hands_nan(step) or getattr(step, "nans", ()) for step in self.operation.steps)

    def _terms(self, step: Step) -> int:
        return sum(self.counts.get(name, 0) for name in step.of)

    def _range(self, step: Step) -> _Range:
        """Of all numbers that a step reads."""
        return _joined([self.ranges[name] for name in step.of if self.counts.get(name, 0)])

    def _written(self, to: str, count: int, holds: _Range) -> bool:
        self.counts[to], self.ranges[to] = count, holds
        self.aligned.pop(to, None)
        self.finite.discard(to)
        return True

    def _rounds(self, step: Additions | Fma | Multiply | Round, final: bool) -> bool:
        """What every rounding asks for."""
        f = step.format
        return (
            f is not None
            and _writable(f)
            and step.nan is not None
            # where the word is read back, it has to be a NaN there, too
            and ((final and isinstance(step, Round)) or f.decode(step.nan).kind is Kind.NAN)
            and (step.flush == "none" or step.rounding not in ("up", "down"))
            and (not final or f == self.operation.out_format)
        )

    def _step(self, step: Step, following: Step | None) -> bool:
        if "scales" in step.of and not isinstance(step, SpecialValues):
            return False  # the core keeps one of those that elements share
        match step:
            case Flush():
                return set(step.of) <= set("abc") and not self.moved
            case Multiply():
                return self._multiply(step)
            case SpecialValues():
                self.finite |= set(step.of)
                fields = ("of", "nan", "nans")
                return is_step(step, SpecialValues, *fields) and step.nan is not None
            case Scale():
                return self._scale(step)
            case Align():
                return self._align(step, following)
            case Sum():
                return self._sum(step, following)
            case Additions():
                return self._additions(step)
            case Fma():
                return self._fma(step)
            case Round():
                return self._round(step)
            case _:
                return False

    def _multiply(self, step: Multiply) -> bool:
        rounding = ("format", "rounding", "flush", "tiny", "nan")
        if (
            not is_step(step, Multiply, "to", "normalize", "negate", "overflow_exponent", *rounding)
            or abs(step.overflow_exponent or 0) > 2 * _MOST_EXPONENT
            or (step.negate != "none" and self._hands_nans())
        ):
            return False
        rounded = step.format is None or self._rounds(step, False)
        products = self.ranges["a"].times(self.ranges["b"])
        if step.format is not None:
            products = _joined([products, _Range.of(step.format)])
        return (
            rounded
            and products.bits <= _SIGNIFICAND
            and not (step.format and step.normalize)
            and self._written(step.to, self.counts["a"], products)
        )

    def _scale(self, step: Scale) -> bool:
        """Products with scales are exact, and none leaves the range of doubles; powers neither."""
        scales = self.ranges["scales"]
        if not is_step(step, Scale, "of") or max(scales.top, -scales.bottom) > 2 * _MOST_EXPONENT:
            return False
        for name in step.of:
            holds = self.ranges[name].times(scales)
            beyond = max(holds.top, -holds.bottom, holds.highest, -holds.lowest)
            if holds.bits > _SIGNIFICAND or beyond > 3 * _MOST_EXPONENT:
                return False
            finite = {name, "scales"} <= self.finite
            self._written(name, self.counts[name], holds)
            self.finite |= {name} if finite else set()
        return True

    def _align(self, step: Align, following: Step | None) -> bool:
        kept = dict(step.fraction_bits)
        fields = ("of", "cut", "group", "fraction_bits", "rounding", "floor", "maximum", "spared", "window")
        if (
            not is_step(step, Align, *fields, "exponent")
            or any(isinstance(other, Multiply) and other.format for other in self.operation.steps)
            or any(abs(place or 0) > _MOST_EXPONENT for place in (step.floor, step.exponent))
            or not set(step.of) <= self.finite
            or not 0 < self._terms(step) <= _MOST_TERMS
        ):
            return False
        self.moved = True
        if step.exponent is not None:
            return step.cut == "dropped" and self._align_to_point(step, step.exponent)
        if step.cut == "sticky_or" and not self._sticks_together(step, following):
            return False
        seen = {name for candidate in step.maximum for name in candidate.of}
        if step.maximum and (
            not set(step.of) <= seen
            or any(abs(c.plus) > 40 or abs(c.least or 0) > _MOST_EXPONENT for c in step.maximum)
        ):
            return False
        # What candidates leave above is seen when it happens (46 in mg_align_real).
        most, fewest = max(kept.values()), min(kept.values())
        above = 46 - fewest if step.maximum else self._range(step).above
        wide = most + above + 1
        highest, lowest = self._carried(step)
        if wide > _SIGNIFICAND - 2 or max(highest, most - lowest) > _MOST_POWER:
            return False
        top = max(
            self._range(step).top + max((c.plus for c in step.maximum), default=0),
            *(c.least + c.plus for c in step.maximum if c.least is not None),
            *([step.floor] if step.floor is not None else []),
            self._range(step).top,
        )
        for name in step.of:
            bottom = self.ranges[name].bottom
            self.ranges[name] = _Range(top + 1, bottom, wide, above + 1, highest, lowest)
        self.aligned = dict.fromkeys(step.of, wide)
        self.groups = dict.fromkeys(step.of, step.group)
        return True

    def _carried(self, step: Align) -> tuple[int, int]:
        """Between which exponents an alignment's maximum lies, and those that are left as they are."""
        read, plus = self._range(step), [0, *(c.plus for c in step.maximum)]
        given = [c.least + c.plus for c in step.maximum if c.least is not None]
        given += [step.floor] if step.floor is not None else []
        # a candidate can be the exponent of the leading bit
        highest, lowest = max(read.highest, read.top), min(read.lowest, read.bottom)
        return max(highest + max(plus), *given, 0), min(lowest + min(plus), *given, 0)

    def _align_to_point(self, step: Align, point: int) -> bool:
        """Whole units of a place that does not depend on the numbers: some may lie far above it, and have no
        bits below then."""
        self.aligned = {}
        for name, kept in step.fraction_bits:
            holds, unit = self.ranges[name], point - kept
            if holds.bits > _SIGNIFICAND - 2 or kept > _MOST_EXPONENT:
                return False
            top = max(holds.top, unit) + 1
            above, carried = max(top - point, 1), (max(holds.highest, point), min(holds.lowest, point))
            self.ranges[name] = _Range(top, max(holds.bottom, unit), _SIGNIFICAND - 2, above, *carried)
        return True

    def _sticks_together(self, step: Align, following: Step | None) -> bool:
        """Whether the one sum that reads a common sticky bit is rounded next, and nothing else reads its
        terms, which have the bit, too."""
        at = self.operation.steps.index(step) + 2
        later, terms = self.operation.steps[at + 1 :], set(step.of)
        last = self.operation.steps[at : at + 1]
        return (
            not step.group
            and len(set(dict(step.fraction_bits).values())) == 1
            and is_step(following, Sum, "to", "rounding", of=step.of)  # type: ignore[arg-type]
            and isinstance(last[0], Round)
            and last[0].of == (following.to,)
            and not any(terms & {*other.of, getattr(other, "start", None)} for other in later)
        )

    def _sum(self, step: Sum, following: Step | None) -> bool:
        count = self._terms(step)
        fields = ("of", "to", "group", "rounding", "complement", "exponent", "width", "overflow")
        plain = is_step(step, Sum, *fields) and (step.rounding != "down" or step.complement == "none")
        rounds = isinstance(following, Round) and step.to in following.of
        # the machine adds two infinities as an exact sum does
        if not plain or not count or not (set(step.of) <= self.finite or (rounds and count <= 2)):
            return False
        read, groups = self._range(step), _groups(step, count)
        sums = read.sums(count)
        if step.exponent is not None:
            if abs(step.exponent) > _MOST_EXPONENT:
                return False
            at = step.exponent
            highest, lowest = max(sums.highest, at), min(sums.lowest, at)
            sums = sums._replace(above=sums.top - at, highest=highest, lowest=lowest)
        if step.width is not None and (step.exponent is None or sums.top >= step.exponent + step.width):
            return False  # the register might be too short
        if step.to != "d" and set(step.of) <= self.aligned.keys():
            grouped = next((self.groups[name] for name in step.of if self.groups[name]), None)
            if grouped not in (None, step.group):
                return False  # their units differ
            wide = max(self.aligned[name] for name in step.of) + count.bit_length()
            complements = step.complement == "none" or self._meets_c(step)
            self._written(step.to, groups, sums._replace(bits=wide))
            self.aligned[step.to], self.groups[step.to] = wide, (grouped and ("contiguous", 1))
            self.finite.add(step.to)
            return wide <= _SIGNIFICAND - 2 and complements
        if step.to == "d" or step.complement != "none":
            return False
        if isinstance(following, Round) and rounds:
            return (
                following.to == "d"
                and step.group is None
                and self._apart(step)
                and self._written(step.to, 1, sums)
            )
        self._written(step.to, groups, sums)
        self.finite.add(step.to)
        return sums.bits <= _SIGNIFICAND

    def _apart(self, step: Sum) -> bool:
        """Whether two doubles hold the sum of all terms but the last, or there are two of them."""
        if any(not self.counts.get(name, 0) for name in step.of):
            return False
        count = self._terms(step)
        others = [self.ranges[name] for name in step.of if name != step.of[-1] or self.counts[name] > 1]
        if count <= 3 or not others:
            return self._range(step).bits <= _SIGNIFICAND
        span = _joined(others).top - _joined(others).bottom
        return span <= 2 * _SIGNIFICAND - 6 - count.bit_length() and self._range(step).bits <= _SIGNIFICAND

    def _meets_c(self, step: Sum) -> bool:
        """Whether complements to c have one last place, that of the last alignment."""
        before = self.operation.steps[: self.operation.steps.index(step)]
        last = next((one for one in reversed(before) if isinstance(one, Align)), None)
        return (
            last is not None
            and last.cut == "dropped"
            and "c" in step.of
            and set(last.of) == set(step.of)
            and len({width for _, width in last.fraction_bits}) == 1
        )

    def _additions(self, step: Additions) -> bool:
        fields = ("order", "of", "to", "group", "format", "rounding", "flush", "tiny", "nan", "first_nan")
        count = self._terms(step)
        return (
            is_step(step, Additions, *fields)
            and self._rounds(step, step.to == "d")
            and (step.to != "d" or (step.group is None and count > 1))
            and count > 0
            and self._written(
                step.to,
                _groups(step, count),
                _joined([_Range.of(step.format), self._range(step)]),
            )
        )

    def _fma(self, step: Fma) -> bool:
        fields = ("to", "format", "group", "rounding", "flush", "tiny", "start", "nan", "nan_order")
        return (
            is_step(step, Fma, *fields)
            and self._rounds(step, step.to == "d")
            and self.counts["a"] > 0
            and (step.to != "d" or step.group is None)
            and self._written(step.to, _groups(step, self.counts["a"]), _Range.of(step.format))
        )

    def _round(self, step: Round) -> bool:
        fields = (
            "to",
            "format",
            "of",
            "rounding",
            "overflow",
            "flush",
            "tiny",
            "nan",
            "zero",
            "result_fraction_bits",
        )
        return (
            is_step(step, Round, *fields)
            and self._rounds(step, step.to == "d")
            and step.overflow in ("infinity", "largest", "ieee")
            and len(step.of) == 1
            and self._terms(step) > 0
            and self._written(step.to, self._terms(step), _Range.of(step.format))
        )


def _hands_nan(step: Step) -> bool:
    """Whether a step hands a NaN on, payload and all."""
    return bool(getattr(step, "nan_order", ()) or getattr(step, "first_nan", False))


def _groups(step: Step, count: int) -> int:
    """How many numbers a step makes of so many."""
    group = grouping(step)
    if group is None:
        return 1
    kind, size = group
    return size if kind == "interleaved" else -(-count // size)
