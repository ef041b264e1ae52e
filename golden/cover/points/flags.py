"""Coverpoints of status flags: each flag, and which of them are raised together.

What can be raised follows from the roundings, whose bins are those of golden/cover/points/sum_round.py, and
from the infinities and signalling NaNs that operands can be (golden/number/status.py has the rule itself).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from golden.cover.points.classes import accumulator_bins, class_bins
from golden.cover.points.point import Array, Coverpoint, Sample
from golden.cover.points.results import makes_infinity, takes
from golden.cover.points.sum_round import REMAINDERS, round_points
from golden.cover.ranges import AccumulatorRange, spans_of
from golden.model.instruction import Instruction
from golden.number.status import INEXACT, INVALID, NOTHING, OVERFLOW, UNDERFLOW
from golden.program.bounds import Bounds, group_sizes, rounded_total, terms_of
from golden.program.flags import flags_code, flags_text
from golden.program.steps import Additions, Fma, Multiply, Round, RoundingStep, Step

Raised = frozenset[str]
_PART = "status flags"
_TOGETHER = "flags raised together"


def flag_points(ins: Instruction, held: AccumulatorRange | None = None) -> list[Coverpoint]:
    """One rounding raises one of few sets of flags, and an invalid operation ends in a NaN, which raises
    nothing more; in units of several roundings any of their sets can come together."""
    names = ins.status
    codes = {flags_code(names, raised) for raised in _reachable(ins, held)}
    points = [
        Coverpoint(
            _PART,
            f"flag {name}",
            {
                "not raised": any(not code >> bit & 1 for code in codes),
                "raised": any(code >> bit & 1 for code in codes),
            },
        )
        for bit, name in enumerate(names)
    ]
    together = {flags_text(names, code): code in codes for code in range(1 << len(names))}
    return points + ([Coverpoint(_PART, _TOGETHER, together)] if len(names) > 1 else [])


def flag_samples(ins: Instruction, codes: Array) -> Iterator[Sample]:
    """The bins that the flags of results fall into."""
    for bit, name in enumerate(ins.status):
        yield f"flag {name}", codes >> bit & 1
    if len(ins.status) > 1:
        yield _TOGETHER, codes


def _reachable(ins: Instruction, held: AccumulatorRange | None) -> set[Raised]:
    """The sets of flags that one dot product can raise."""
    roundings, count = {NOTHING}, 0
    for operation in ins.program.operations:
        for step, registers in spans_of(ins, operation, held):
            if isinstance(step, Multiply | Additions | Fma | Round):
                raised = _of_step(ins, step, registers)
                roundings |= raised
                count += _roundings(step, registers) if raised else 0
    invalid = _invalid(ins, held)
    alone = count == 1 and not any(step.zero_times_infinity == "zero" for step in _products(ins))
    if alone:
        return roundings | ({INVALID} if invalid else set())
    return _unions(roundings | ({INVALID} if invalid else set()), max(count, 2))


def _unions(sets: set[Raised], most: int) -> set[Raised]:
    """All combinations of this many flags."""
    found = sets
    for _ in range(min(most, len(sets)) - 1):
        found = {x | y for x, y in product(found, sets)}
    return found


def _products(ins: Instruction) -> list[Multiply | Fma]:
    return [*ins.program.steps_of(Multiply), *ins.program.steps_of(Fma)]


def _roundings(step: Step, registers: dict[str, Bounds]) -> int:
    """How many roundings a step has in one dot product."""
    match step:
        case Additions():
            terms = sum(span.count for span in terms_of(step, registers))
            return sum(size - 1 for size in group_sizes(step, terms))
        case Round():
            return registers[step.of[0]].count
        case _:
            return registers["a"].count


def _of_step(ins: Instruction, step: RoundingStep, registers: dict[str, Bounds]) -> set[Raised]:
    """What a rounding of a step can raise; nothing where it does not round."""
    made: set[Raised] = set()
    if isinstance(step, Multiply):
        if step.overflow_exponent is not None:
            made |= {OVERFLOW}
        if step.format is None:
            return made
    fmt = step.format
    assert fmt is not None
    outcomes, *_ = (point.bins for point in round_points("", step, fmt, registers))
    total = rounded_total(step, registers)
    if not fmt.is_float:
        made |= {OVERFLOW} if outcomes["above"] or outcomes["below"] else set()
        return made | ({INEXACT} if total.lsb < 0 else set())
    small = [outcomes[f"{size}, {rest}"] for size in ("zero", "subnormal") for rest in REMAINDERS[1:]]
    flushed = step.flush != "none" and total.lsb < fmt.min_exponent
    made |= {OVERFLOW} if outcomes["overflow"] else set()
    made |= {UNDERFLOW} if flushed or any(small) else set()
    return made | ({INEXACT} if any(outcomes[f"normal, {rest}"] for rest in REMAINDERS[1:]) else set())


def _invalid(ins: Instruction, held: AccumulatorRange | None) -> bool:
    """Signalling NaNs; an infinity and a zero that meet, or another infinity; either as an integer."""
    c = accumulator_bins(ins.formats["c"], held)
    given = {name: class_bins(fmt) for name, fmt in ins.formats.items() if name not in ("c", "d")}
    if any(bins.get("signalling NaN") for bins in (c, *given.values())):
        return True
    if makes_infinity(ins, held) and (ins.stored_k > 1 or c.get("infinity") or "b" not in ins.absent):
        return True
    return not ins.formats["d"].is_float and takes(ins, held, "NaN")
