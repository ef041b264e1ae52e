"""Which programs run in blocks of doubles (golden/core/mg_real.h).

Steps and formats decide, as in golden/model/kernels.py, and every field of a step counts. The bounds keep
every number of a program within 53 bits, or have it rounded to odd straight before its only rounding: a
product of two operands, a sum of whole units of an alignment, a sum of two numbers. docs/core.md says why
that is exact.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from golden.model.kernels import is_step
from golden.number.formats import Format, Kind
from golden.number.frozen import replace
from golden.program.bounds import Bounds, follow, maximum_of, one_product, operands_of
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
)

if TYPE_CHECKING:
    from golden.program.signature import Signature

_ROUNDINGS = ("toward_zero", "nearest_even", "nearest_away", "down", "up", "to_odd")
"""Of mg_round_units."""
_SIGNIFICAND = sys.float_info.mant_dig  # 53 bits, the leading one among them
_MOST_EXPONENT = 300
"""Of two operands in a format of eight bits of exponent, of a floor, and of a point that does not move or is
given to a sum."""


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
    """One operation, step by step: what each register holds, and which of them are whole units of the last
    alignment."""

    def __init__(self, operation: Operation, unit: Signature) -> None:
        self.operation, self.unit = operation, unit
        self.registers = operands_of(operation, unit.formats)
        self.aligned: dict[str, int] = {}
        """Registers, and below which power of two their numbers are, in units."""
        self.groups: dict[str, tuple[str, int] | None] = {}
        """Of these registers: which of their numbers have one unit; without groups, all."""
        self.short: dict[str, int] = {}
        """Registers whose numbers have fewer bits than lie between their ends."""
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
            and all(_holds(target, unit.formats[name]) for name in "ab" if self.registers[name].count)
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

    def _read(self, step: Step) -> list[Bounds]:
        """The registers that a step reads, without registers that hold no numbers."""
        registers = (self.registers[name] for name in step.of if name in self.registers)
        return [register for register in registers if register.count]

    def _bits(self, name: str) -> int:
        """Bits of the longest significand of a register."""
        own = self.registers[name]
        return self.short.get(name, own.integer_bits + own.depth)

    def _terms(self, step: Step) -> int:
        return sum(register.count for register in self._read(step))

    def _writes(self, step: Step) -> bool:
        """Goes on behind a step that fits."""
        self.registers |= follow(step, self.registers)
        self.aligned.pop(step.to, None)
        self.short.pop(step.to, None)
        self.finite.discard(step.to)
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
            and step.rounding in _ROUNDINGS
            and (step.flush == "none" or step.rounding not in ("up", "down"))
            and (not final or f == self.operation.out_format)
        )

    def _step(self, step: Step, following: Step | None) -> bool:
        if "scales" in step.of and not isinstance(step, SpecialValues):
            return False  # the core keeps one of the shared ones
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
        product = one_product(self.registers)
        rounded = step.format is None or self._rounds(step, False)
        return (
            rounded
            and product.integer_bits + product.depth <= _SIGNIFICAND
            and not (step.format and step.normalize)
            and self._writes(step)
        )

    def _scale(self, step: Scale) -> bool:
        """Products with scales are exact, and none leaves the range of doubles; powers neither."""
        if not is_step(step, Scale, "of") or _reach(self.registers["scales"]) > 2 * _MOST_EXPONENT:
            return False
        finite = self.finite if "scales" in self.finite else set()
        self.registers |= follow(step, self.registers)
        self.finite -= {*step.of} - finite
        return all(
            self._bits(name) <= _SIGNIFICAND and _reach(self.registers[name]) <= 3 * _MOST_EXPONENT
            for name in step.of
        )

    def _align(self, step: Align, following: Step | None) -> bool:
        kept = dict(step.fraction_bits)
        fields = ("of", "cut", "group", "fraction_bits", "rounding", "floor", "maximum", "spared", "window")
        most_terms = 64
        if (
            not is_step(step, Align, *fields, "exponent")
            or step.rounding not in _ROUNDINGS
            or any(isinstance(other, Multiply) and other.format for other in self.operation.steps)
            or any(abs(place or 0) > _MOST_EXPONENT for place in (step.floor, step.exponent))
            or not set(step.of) <= self.finite
            or not 0 < self._terms(step) <= most_terms
        ):
            return False
        self.moved = True
        if step.exponent is not None:
            return step.cut == "dropped" and self._align_to_point(step)
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
        above = 46 - fewest if step.maximum else max(own.integer_bits for own in self._read(step))
        wide = most + above + 1
        highest, lowest = self._carried(step)
        # Of an exponent that is carried, and of units below it: 2^52 of them are a double, too.
        most_power = 960
        if wide > _SIGNIFICAND - 2 or max(highest, most - lowest) > most_power:
            return False
        self.registers |= follow(step, self.registers)
        self.aligned = dict.fromkeys(step.of, wide)
        self.groups = dict.fromkeys(step.of, step.group)
        return True

    def _carried(self, step: Align) -> tuple[int, int]:
        """Between which exponents an alignment's maximum lies, and those that are left as they are."""
        read, (least, most) = self._read(step), maximum_of(step, self.registers)
        # a candidate can be the exponent of the leading bit
        highest = max(most, *(max(own.top, own.size) for own in read))
        return highest, min(least, *(min(own.bottom, own.lsb) for own in read))

    def _align_to_point(self, step: Align) -> bool:
        """Whole units of a place that does not depend on the numbers: some may lie far above it, and have no
        bits below then."""
        self.aligned = {}
        fits = all(
            self._bits(name) <= _SIGNIFICAND - 2 and kept <= _MOST_EXPONENT
            for name, kept in step.fraction_bits
        )
        self.registers |= follow(step, self.registers)
        self.short |= dict.fromkeys(step.of, _SIGNIFICAND - 2)
        return fits

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
        after = follow(step, self.registers)
        if step.exponent is not None and abs(step.exponent) > _MOST_EXPONENT:
            return False
        if after != follow(replace(step, width=None), self.registers):
            return False  # the register might be too short
        if step.to != "d" and set(step.of) <= self.aligned.keys():
            grouped = next((self.groups[name] for name in step.of if self.groups[name]), None)
            if grouped not in (None, step.group):
                return False  # their units differ
            wide = max(self.aligned[name] for name in step.of) + count.bit_length()
            complements = step.complement == "none" or self._meets_c(step)
            self._writes(step)
            self.aligned[step.to], self.groups[step.to] = wide, (grouped and ("contiguous", 1))
            self.finite.add(step.to)
            return wide <= _SIGNIFICAND - 2 and complements
        if step.to == "d" or step.complement != "none":
            return False
        if isinstance(following, Round) and rounds:
            return following.to == "d" and step.group is None and self._apart(step) and self._writes(step)
        self._writes(step)
        self.finite.add(step.to)
        return after[step.to].size - after[step.to].lsb <= _SIGNIFICAND

    def _apart(self, step: Sum) -> bool:
        """Whether two doubles hold the sum of all terms but the last, or there are two of them."""
        read = [self.registers[name] for name in step.of]
        if len(read) > len(self._read(step)):
            return False
        count = self._terms(step)
        others = [own for own in read if own is not read[-1] or own.count > 1]
        if max(map(self._bits, step.of)) > _SIGNIFICAND:
            return False
        span = max(own.size for own in others) - min(own.lsb for own in others) if others else 0
        return count <= 3 or span <= 2 * _SIGNIFICAND - 6 - count.bit_length()

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
            and self._writes(step)
        )

    def _fma(self, step: Fma) -> bool:
        fields = ("to", "format", "group", "rounding", "flush", "tiny", "start", "nan", "nan_order")
        return (
            is_step(step, Fma, *fields)
            and self._rounds(step, step.to == "d")
            and self.registers["a"].count > 0
            and (step.to != "d" or step.group is None)
            and self._writes(step)
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
            and self._writes(step)
        )


def _hands_nan(step: Step) -> bool:
    """Whether a step hands a NaN on, payload and all."""
    return bool(getattr(step, "nan_order", ()) or getattr(step, "first_nan", False))


def _reach(own: Bounds) -> int:
    """The farthest power of two from 1 that a register's numbers and their exponents come to."""
    return max(own.size, -own.lsb, own.top, -own.bottom)
