"""Which programs run in blocks of doubles (golden/core/mg_real.h).

Steps and formats decide, as in golden/model/kernels.py, and every field of a step counts. The bounds keep
every number of a program within 53 bits, or have it rounded to odd straight before its only rounding: a
product of two operands, a sum of whole units of an alignment, a sum of two numbers. docs/core.md says why
that is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from golden.model.kernels import is_step
from golden.number.formats import Format, Kind
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    Multiply,
    Round,
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
"""Of two operands in a format of eight bits of exponent, and of a floor."""


def fits_doubles(operations: Sequence[Operation], unit: Signature) -> bool:
    """Whether every operation of a program does; see the module."""
    if unit.scale_block is not None or unit.absent:
        return False
    return all(_readable(unit.formats[name]) for name in "abc") and all(
        _Walk(operation, unit).fits() for operation in operations
    )


def _readable(f: Format) -> bool:
    """Formats whose codes become doubles by their fields alone."""
    return (
        f.is_float
        and f.has_zero
        and f.storage <= 32
        and f.exponent_bits <= 8
        and 1 <= f.fraction_bits <= 23
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
        self.aligned: dict[str, int] = {}
        """Registers, and below which power of two their numbers are, in units."""
        self.finite: set[str] = set()
        """Registers without infinities and NaNs, which have been answered."""

    def fits(self) -> bool:
        """Whether mg_real.h computes it."""
        operation, unit = self.operation, self.unit
        target = operation.operand_format
        formats = (operation.seed_format, operation.out_format)
        if not all(_readable(f) for f in formats) or not _writable(operation.out_format):
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
            bool(getattr(step, "nan_order", ()) or getattr(step, "first_nan", False))
            for step in self.operation.steps
            if isinstance(step, Additions | Fma | Round | Multiply)
        ]
        return all(rounding) or not any(rounding)

    def _terms(self, step: Step) -> int:
        return sum(self.counts.get(name, 0) for name in step.of)

    def _written(self, to: str, count: int) -> bool:
        self.counts[to] = count
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
        match step:
            case Flush():
                return set(step.of) <= set("abc") and not self.aligned
            case Multiply():
                return self._multiply(step)
            case SpecialValues():
                self.finite |= set(step.of)
                fields = ("of", "nan", "nans")
                return (
                    is_step(step, SpecialValues, *fields) and step.nan is not None and "scales" not in step.of
                )
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
        if not is_step(step, Multiply, "to", "normalize", "format", "rounding", "flush", "tiny", "nan"):
            return False
        rounded = step.format is None or self._rounds(step, False)
        return rounded and not (step.format and step.normalize) and self._written(step.to, self.counts["a"])

    def _align(self, step: Align, following: Step | None) -> bool:
        kept = dict(step.fraction_bits)
        if (
            not is_step(
                step,
                Align,
                "of",
                "cut",
                "group",
                "fraction_bits",
                "rounding",
                "floor",
                "maximum",
                "spared",
                "window",
            )
            or any(isinstance(other, Multiply) and other.format for other in self.operation.steps)
            or abs(step.floor or 0) > _MOST_EXPONENT
            or not set(step.of) <= self.finite
        ):
            return False
        together = len(set(kept.values())) == 1 and is_step(following, Sum, "to", "rounding", of=step.of)  # type: ignore[arg-type]
        if step.cut == "sticky_or" and (step.group or not together):
            return False
        seen = {name for candidate in step.maximum for name in candidate.of}
        if step.maximum and (
            not set(step.of) <= seen
            or any(abs(c.plus) > 40 or abs(c.least or 0) > _MOST_EXPONENT for c in step.maximum)
        ):
            return False
        # Unaligned numbers are below 4 times 2^their exponent, sums of them below that times their count;
        # what candidates leave above is seen when it happens (46 in mg_align_real).
        wide = (
            46 if step.maximum else max(kept.values()) + 3 + max(self._terms(step), _MOST_TERMS).bit_length()
        )
        if wide > _SIGNIFICAND - 2 or self._terms(step) > _MOST_TERMS:
            return False
        self.aligned = dict.fromkeys(step.of, wide)
        return True

    def _sum(self, step: Sum, following: Step | None) -> bool:
        count = self._terms(step)
        fields = ("of", "to", "group", "rounding", "complement")
        plain = is_step(step, Sum, *fields) and step.rounding != "down"
        if not plain or not set(step.of) <= self.finite:
            return False
        if set(step.of) <= self.aligned.keys():
            wide = max(self.aligned[name] for name in step.of) + count.bit_length()
            self._written(step.to, _groups(step, count))
            self.aligned[step.to] = wide
            self.finite.add(step.to)
            return (
                wide <= _SIGNIFICAND - 2
                and step.to != "d"
                and (step.complement == "none" or self._meets_c(step))
            )
        near = count <= 3 or self._product_span() <= 2 * _SIGNIFICAND - 6 - count.bit_length()
        read_once = isinstance(following, Round) and following.of == (step.to,) and following.to == "d"
        apart = near and read_once and step.complement == "none" and set(step.of) <= {"a", "products", "c"}
        return apart and step.group is None and step.of[-1] == "c" and self._written(step.to, 1)

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

    def _product_span(self) -> int:
        """Bits from the last place of the least product to the top of the largest."""
        a, b = (self.operation.operand_format or self.unit.formats[name] for name in "ab")
        return sum(f.max_exponent + 1 - f.min_exponent + f.fraction_bits for f in (a, b))

    def _additions(self, step: Additions) -> bool:
        fields = ("order", "of", "to", "group", "format", "rounding", "flush", "tiny", "nan", "first_nan")
        count = self._terms(step)
        return (
            is_step(step, Additions, *fields)
            and self._rounds(step, step.to == "d")
            and step.rounding != "down"
            and (step.to != "d" or (step.group is None and count > 1))
            and count > 0
            and self._written(step.to, _groups(step, count))
        )

    def _fma(self, step: Fma) -> bool:
        fields = ("to", "format", "group", "rounding", "flush", "tiny", "start", "nan", "nan_order")
        return (
            is_step(step, Fma, *fields)
            and self._rounds(step, step.to == "d")
            and step.rounding != "down"
            and self.counts["a"] > 0
            and (step.to != "d" or step.group is None)
            and self._written(step.to, _groups(step, self.counts["a"]))
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
            and self._terms(step) > 0
            and self._written(step.to, self._terms(step))
        )


def _groups(step: Step, count: int) -> int:
    """How many numbers a step makes of so many."""
    group = grouping(step)
    if group is None:
        return 1
    kind, size = group
    return size if kind == "interleaved" else -(-count // size)
