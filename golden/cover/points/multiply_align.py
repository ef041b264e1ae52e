"""Coverpoints of the datapath's first stages: products, and the alignment of terms to the largest
exponent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from golden.cover.points.point import Array, Coverpoint, Sample, stage_name
from golden.cover.ranges import AccumulatorRange, spans_of
from golden.model.instruction import Instruction
from golden.model.registers import Numbers, SeenStep, joined
from golden.number.formats import Kind
from golden.number.rounding import BELOW, ROUNDINGS, TIE
from golden.program.bounds import Bounds, group_sizes, groups_of, maximum_of, of_format
from golden.program.program import Operation
from golden.program.steps import Align, Fma, Multiply, rounding_of

_ABOVE = "above the maximum"
"""The distance of a term that was left out of the maximum."""


def multiply_points(
    ins: Instruction, name: str, step: Multiply | Fma, registers: dict[str, Bounds]
) -> list[Coverpoint]:
    """Below 1 needs a subnormal factor, 2 and more two factors of at least one fraction bit."""
    a, b = registers["a"], registers["b"]
    points = []
    if ins.formats["a"].is_float and a.count:
        carry = a.significand * b.significand >= 2
        bins = {"below 1": a.subnormal or b.subnormal, "1 to 2": True, "2 to 4": carry}
        points.append(Coverpoint("products", f"{name}: significand", bins))
    if isinstance(step, Multiply) and step.overflow_exponent is not None:
        limit = Fraction(2) ** step.overflow_exponent
        reach = of_format(ins.formats["a"], 1).greatest * of_format(ins.formats["b"], 1).greatest >= limit
        points.append(Coverpoint("products", f"{name}: overflow", {"no": True, "yes": reach}))
    return points


def multiply_samples(ins: Instruction, name: str, seen: SeenStep) -> Iterator[Sample]:
    """The bins that products fall into."""
    if ins.formats["a"].is_float:
        a, b, products = _multiplied(seen)
        one = a.fraction_bits.astype(np.int64) + b.fraction_bits
        finite = a.finite & b.finite & products.ran
        yield f"{name}: significand", np.where(finite, np.clip(products.length - 1 - one, -1, 1) + 1, -1)
        if isinstance(seen.step, Multiply) and seen.step.overflow_exponent is not None:
            yield f"{name}: overflow", np.where(finite, products.kind == Kind.INFINITY, -1)


def _multiplied(seen: SeenStep) -> tuple[Numbers, Numbers, Numbers]:
    """The factors, and their products before any rounding."""
    a, b, inside = seen.before["a"], seen.before["b"], seen.roundings
    if inside is None:
        return a, b, seen.written[seen.step.to]
    order = list(inside.index)
    return a[order], b[order], inside.exact if inside.left is None else inside.left


def align_points(
    ins: Instruction, name: str, operation: Operation, step: Align, registers: dict[str, Bounds]
) -> list[Coverpoint]:
    """Distances: from 0 (or the floor's) to the farthest that the exponent ranges allow; cuts follow from
    the distances."""
    floor = _floor(step, registers)
    # Terms of an earlier alignment of the same registers have one exponent: this one shifts none of them.
    shared = {registers[register].shared for register in step.of}
    together = shared in [{(before, step.group)} for before in operation.steps_of(Align)]
    points = [Coverpoint("alignment", f"{name}: largest exponent", _owner_bins(step, registers))]
    # For each register: how far it lies below the largest exponent, and what is cut from it there.
    for register, fraction in step.fraction_bits:
        span = registers[register]
        if span.zero:
            continue
        # The exponent that it can be aligned to: that of another register, another term of its own, or the
        # floor.
        others = [registers[o].high for o in step.of if o != register or _grouped_count(step, span) > 1]
        top = max([*others, floor]) if others or floor > span.low else span.low
        if together:
            top = max(span.low, floor)
        if _given(step):
            top = maximum_of(step, registers)[1]
        most = top - span.low
        least = max(floor - span.high, 0)
        bins = {
            label: low <= most and high >= least and low <= high for label, low, high in _distances(fraction)
        }
        if _given(step) or register in dict(step.left_out):
            bins[_ABOVE] = span.high > floor and _lies_above(step, register)
        points.append(Coverpoint("alignment", _distance_name(ins, name, register, fraction), bins))
        cuts = _cut_bins(step, register, fraction, span, most)
        points.append(Coverpoint("alignment", f"{name}: cut from {register}", cuts))
        deepest = min(most + span.depth, top - span.lsb) - fraction
        points += _lone_cut_points(name, step, register, deepest, span)
        if span.cancels:
            points.append(
                Coverpoint(
                    "alignment", f"{name}: cancelled {register}", _cancelled_bins(step, registers, register)
                )
            )
    # Each place of k has to be the one that decides: an exponent of one element may be wired wrongly.
    if "products" in step.of and registers["products"].count == len(operation.k_index):
        everywhere = {f"k = {k}": registers["products"].high >= floor for k in range(ins.stored_k)}
        points.append(Coverpoint("alignment", "product alone at the largest exponent", everywhere))
    return points


def _given(step: Align) -> bool:
    """Whether the exponent is not the largest of all terms', so that terms can lie above it."""
    return step.exponent is not None or bool(step.maximum)


def _floor(step: Align, registers: dict[str, Bounds]) -> int:
    """The exponent that an alignment does not go below; far below all where there is none."""
    if _given(step):
        return maximum_of(step, registers)[0]
    return -(1 << 40) if step.floor is None else step.floor


def _cut_bins(step: Align, register: str, fraction: int, span: Bounds, most: int) -> dict[str, bool]:
    """What a term that lies up to `most` below the maximum can lose: by the shifter, by its window, or
    because it lies above."""
    sticky, dropped = step.cut == "sticky_added", dict(step.left_out).get(register) == "dropped"
    spared = register in dict(step.spared)
    outside = most > dict(step.window).get(register, 1 << 40) or dropped
    outside |= step.underflow_exponent is not None and span.low <= step.underflow_exponent
    if step.shift_limit is not None:
        most = min(most, step.shift_limit)
    lost = most + span.depth > fraction
    gone = most + (span.depth if span.subnormal else 0) > fraction
    bins, up = {}, ROUNDINGS[rounding_of(step, register)].up
    for loss in ("nothing", "part", "everything"):
        for sign, can in (("+", span.greatest > 0), ("-", span.least < 0)):
            # A term that is shifted out leaves one unit where it is rounded away from zero, and its sticky
            # bit.
            stays = up(int(sign == "-"), BELOW, 0) or (sticky and not step.sticky_gap)
            left = stays or up(int(sign == "-"), TIE, 0) or sticky
            reach = {
                "nothing": True,
                "part": lost and (left or span.depth + span.above > 0),
                "everything": outside or (gone and not stays) or (sign == "-" and spared),
            }
            bins[f"{loss}, {sign}"] = can and reach[loss]
    return bins


_DEEPEST_LONE = 24
"""How far below the last bit kept a bit that is cut is looked at alone: past the significands of f32."""


def _lone_cut_points(name: str, step: Align, register: str, deepest: int, span: Bounds) -> list[Coverpoint]:
    """A single bit that an alignment cuts of a term, of either sign: a rounding or a sticky bit that looks
    only at some of the cut bits misses it. `deepest`: how far below the last bit kept a term has bits."""
    if span.shared is not None or step.shift_limit is not None or span.sticky is not None:
        return []
    bins = {
        f"2^-{place}, {sign}": can and place <= deepest
        for place in range(1, _DEEPEST_LONE + 1)
        for sign, can in (("+", span.greatest > 0), ("-", span.least < 0))
    }
    if not any(bins.values()):
        return []
    return [Coverpoint("alignment", f"{name}: one bit cut from {register}", bins)]


def slice_points(
    ins: Instruction, index: int, operation: Operation, held: AccumulatorRange | None = None
) -> list[Coverpoint]:
    """The coverpoint that an operation of a chain does not share: who holds the largest exponent."""
    for step, registers in spans_of(ins, operation, held):
        if isinstance(step, Align):
            bins = _owner_bins(step, registers)
            return [Coverpoint("alignment", of_slice(index), bins)]
    return []


def of_slice(operation: int) -> str:
    """The name of the coverpoint that an operation does not share."""
    return f"largest exponent of operation {operation}"


def _owner_bins(step: Align, registers: dict[str, Bounds]) -> dict[str, bool]:
    """Who holds the largest exponent: a register whose range reaches the floor; two of them where the
    ranges overlap. Zeros that take part lie anywhere."""
    floor = _floor(step, registers)
    zeros = step.zeros == "maximum"
    spans = [span for name in step.of if not (span := registers[name]).zero or zeros]
    below = _given(step) or any(span.low < floor for span in spans)
    below |= step.floor is not None and bool(step.left_out or zeros)
    bins = {"nothing": True, "the floor": below}
    for name in step.of:
        span = registers[name]
        holds = zeros or (span.high >= floor and not span.zero)
        holds = holds and (not step.maximum or _holds_alone(step, name, registers))
        bins[f"one of {name}"], bins[f"several of {name}"] = holds, holds and _grouped_count(step, span) > 1
    overlap = any(
        min(x.high, y.high) >= max(floor, x.low, y.low) for i, x in enumerate(spans) for y in spans[:i]
    )
    return bins | {"several registers": overlap or (zeros and len(spans) > 1)}


def _lies_above(step: Align, name: str) -> bool:
    """Whether a register's term can lie above the exponent of its alignment: not where the exponent that it
    carries is a candidate."""
    return not any(name in one.of and not one.leading and one.plus >= 0 for one in step.maximum)


def _holds_alone(step: Align, name: str, registers: dict[str, Bounds]) -> bool:
    """Whether the exponent of an alignment with candidates can be that of a register's terms and of no other:
    by a candidate of its own, by a constant, or by one of a register whose terms lie elsewhere."""
    for one in step.maximum:
        if name in one.of and one.plus == 0:
            return True
        if one.least is not None and one.least + one.plus >= registers[name].low:
            return True
        for other in one.of:
            meets = not _lies_above(step, other)  # the maximum is never below that register's own exponents
            if other != name and (not meets or (one.leading and one.plus > -registers[other].above)):
                return True
    return False


def _grouped_count(step: Align, span: Bounds) -> int:
    return max(group_sizes(step, span.count))


def _distances(fraction: int) -> list[tuple[str, int, int]]:
    """Bins of the alignment distance around the last kept bit F."""
    far = 1 << 40
    inner = (
        [("0", 0, 0), ("1", 1, 1), (f"2..{fraction - 3}", 2, fraction - 3)]
        if fraction > 5
        else [("0..", 0, fraction - 3)]
    )
    edge = [(f"F{d:+d}" if d else "F", fraction + d, fraction + d) for d in range(-2, 3)]
    return [*inner, *edge, ("beyond F+2", fraction + 3, far)]


def _distance_name(ins: Instruction, name: str, register: str, fraction: int) -> str:
    """Alignments of one name that keep different numbers of bits have different bins, so a point each."""
    steps = ((o, step) for o in ins.program.operations for step in o.steps_of(Align))
    kept = {dict(step.fraction_bits).get(register) for o, step in steps if stage_name(o, step) == name}
    return f"{name}: distance of {register}" + (f", F = {fraction}" if len(kept) > 1 else "")


def _cancelled_bins(step: Align, registers: dict[str, Bounds], register: str) -> dict[str, bool]:
    """A term that cancelled keeps its exponent: it can hold the maximum, or be below another register's."""
    span = registers[register]
    others = [registers[o].high for o in step.of if o != register or span.count > 1]
    below = bool(others) and max(others) > span.low
    floor = _floor(step, registers)
    return {"alone at the largest exponent": span.high >= floor, "below it": below or floor > span.low}


def align_samples(ins: Instruction, name: str, seen: SeenStep) -> Iterator[Sample]:
    """The bins that aligned terms fall into."""
    assert isinstance(seen.step, Align) and seen.maxima is not None and seen.cuts is not None
    left = joined([seen.written[register] for register in seen.step.of])
    terms, owners = seen.terms, np.array(seen.owners)
    for number, group in enumerate(groups_of(seen.step, terms.count)):
        part = _Part(
            seen.step,
            seen.operation,
            terms[group],
            owners[group],
            range(*group.indices(terms.count)),
            seen.maxima[number : number + 1],
            seen.cuts[group],
            left[group],
        )
        yield from _group_samples(ins, name, part)


@dataclass(frozen=True)
class _Part:
    """One group of an alignment: its terms, the register and the place of each, what they met, lost and
    became."""

    step: Align
    operation: int
    terms: Numbers
    owners: Array
    columns: range
    maximum: Numbers
    cuts: Numbers
    left: Numbers

    @cached_property
    def at_top(self) -> Array:
        """Where a term that takes part holds the largest exponent."""
        at_top = self.terms.exponent == self.maximum.exponent
        return np.asarray(self.takes_part & self.maximum.ran & at_top)

    @cached_property
    def takes_part(self) -> Array:
        """Where a term is one that can set the maximum."""
        zeros = self.terms.kind == Kind.ZERO if self.step.zeros == "maximum" else False
        return np.asarray(self.terms.finite | zeros)


def _group_samples(ins: Instruction, name: str, part: _Part) -> Iterator[Sample]:
    step, owners = part.step, part.owners
    counts = {register: part.at_top[:, owners == register].sum(axis=1) for register in step.of}
    holders = sum((count > 0).astype(np.int64) for count in counts.values())
    index = np.where(part.takes_part.any(axis=1), 1, 0)
    for place, count in enumerate(counts.values()):
        index = np.where((count > 0) & (holders == 1), 2 + 2 * place + (count > 1), index)
    index = np.where(np.asarray(holders) > 1, 2 + 2 * len(counts), index)
    index = np.where(part.left.ran.all(axis=1), index, -1)
    yield f"{name}: largest exponent", index
    operation = ins.program.operations[part.operation]
    if len(ins.program.operations) > 1 and step is operation.steps_of(Align)[0]:
        yield of_slice(part.operation), index
    for register, fraction in step.fraction_bits:
        columns = np.flatnonzero(owners == register)
        if len(columns):
            picked = slice(int(columns[0]), int(columns[-1]) + 1)
            yield from _distance_samples(ins, name, register, fraction, part, picked)
    if "products" in step.of and (owners == "products").any():
        yield from _place_samples(part, operation.k_index)


def _place_samples(part: _Part, k_index: tuple[int, ...]) -> Iterator[Sample]:
    columns = np.array([k_index[i] if i < len(k_index) else 0 for i in part.columns])
    alone = (part.at_top.sum(axis=1) == 1) & part.at_top[:, part.owners == "products"].any(axis=1)
    yield "product alone at the largest exponent", np.where(alone, columns[part.at_top.argmax(axis=1)], -1)


def _distance_samples(
    ins: Instruction, name: str, register: str, fraction: int, part: _Part, columns: slice
) -> Iterator[Sample]:
    terms, cuts, left = part.terms[columns], part.cuts[columns], part.left[columns]
    live = terms.nonzero & cuts.ran
    distance = part.maximum.exponent.astype(np.int64) - terms.exponent
    edges = np.array([high for _, _, high in _distances(fraction)])
    place = np.where(distance < 0, len(edges), np.searchsorted(edges, distance))
    yield _distance_name(ins, name, register, fraction), np.where(live, place, -1)
    lost, kept = cuts.nonzero, left.nonzero
    cut = np.where(lost, np.where(kept, 1, 2), 0)
    yield f"{name}: cut from {register}", np.where(live, cut * 2 + terms.sign, -1)
    place = cuts.fraction_bits - cuts.trailing_zeros
    lone = live & lost & (cuts.trailing_zeros == cuts.length - 1) & (place <= _DEEPEST_LONE)
    yield f"{name}: one bit cut from {register}", np.where(lone, 2 * (place - 1) + terms.sign, -1)
    cancelled = terms.finite & ~terms.nonzero & cuts.ran
    if cancelled.any():
        alone = part.at_top[:, columns] & (part.at_top.sum(axis=1, keepdims=True) == 1)
        yield (
            f"{name}: cancelled {register}",
            np.where(cancelled & alone, 0, np.where(cancelled & (distance > 0), 1, -1)),
        )
