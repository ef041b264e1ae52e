"""Coverpoints of the datapath's first stages: products, and the alignment of terms to the largest
exponent."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from golden.cover.observed import Aligned, Multiplied, bit_length, groups_of
from golden.cover.points.point import Array, Coverpoint, Sample, crossed, stage_name
from golden.cover.ranges import Span, of_format, spans_of
from golden.instruction import Instruction
from golden.number.formats import Kind
from golden.program.program import Operation
from golden.program.steps import Align, Fma, Multiply


def multiply_points(
    ins: Instruction, name: str, step: Multiply | Fma, registers: dict[str, Span]
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


def multiply_samples(ins: Instruction, name: str, seen: Multiplied) -> Iterator[Sample]:
    """The bins that products fall into."""
    if ins.formats["a"].is_float:
        one = seen.a.exponent - seen.a.lsb + seen.b.exponent - seen.b.lsb
        size = bit_length(seen.products.significand) - 1 - one
        finite = (seen.a.kind == Kind.FINITE) & (seen.b.kind == Kind.FINITE)
        yield f"{name}: significand", np.where(finite, np.clip(size, -1, 1) + 1, -1)
        if isinstance(seen.step, Multiply) and seen.step.overflow_exponent is not None:
            yield f"{name}: overflow", np.where(finite, seen.products.kind == Kind.INFINITY, -1)


def align_points(
    ins: Instruction, name: str, operation: Operation, step: Align, registers: dict[str, Span]
) -> list[Coverpoint]:
    """Distances: from 0 (or the floor's) to the farthest that the exponent ranges allow; cuts follow from
    the distances."""
    floor = -(1 << 40) if step.floor is None else step.floor
    points = [
        Coverpoint(
            "alignment", f"{name}: largest exponent", _of_slice(_owner_bins(step, registers), registers)
        )
    ]
    for register, fraction in step.fraction_bits:
        span = registers[register]
        if span.greatest == span.least == 0:
            continue
        others = [registers[o].high for o in step.of if o != register or _grouped_count(step, span) > 1]
        most = max(*others, floor, span.high) - span.low if others or floor > span.low else 0
        least = max(floor - span.high, 0)
        bins = {
            label: low <= most and high >= least and low <= high for label, low, high in _distances(fraction)
        }
        points.append(Coverpoint("alignment", _distance_name(ins, name, register, fraction), bins))
        window = dict(step.window).get(register, 1 << 40)
        lost = most + span.depth > fraction
        gone = most > window or most + (span.depth if span.subnormal else 0) > fraction
        cut = {"nothing": True, "part": lost and span.depth > 0, "everything": gone}
        signs = {"+": span.greatest > 0, "-": span.least < 0}
        bins = crossed(cut, signs)
        stays = {"down": "everything, -", "up": "everything, +"}.get(
            step.rounding
        )  # rounded away from zero, to one unit
        if stays and most <= window:
            bins[stays] = False
        points.append(Coverpoint("alignment", f"{name}: cut from {register}", bins))
        if span.cancels:
            points.append(
                Coverpoint(
                    "alignment", f"{name}: cancelled {register}", _cancelled_bins(step, registers, register)
                )
            )
    if "products" in step.of and registers["products"].count == len(operation.k_index):
        everywhere = {f"k = {k}": registers["products"].high >= floor for k in range(ins.stored_k)}
        points.append(Coverpoint("alignment", "product alone at the largest exponent", everywhere))
    return points


def slice_points(ins: Instruction, index: int, operation: Operation) -> list[Coverpoint]:
    """The coverpoint that an operation of a chain does not share: who holds the largest exponent."""
    for step, registers in spans_of(ins, operation):
        if step.op == "align":
            bins = _owner_bins(step, registers)
            return [
                Coverpoint("alignment", f"largest exponent of operation {index}", _of_slice(bins, registers))
            ]
    return []


def _owner_bins(step: Align, registers: dict[str, Span]) -> dict[str, bool]:
    """Who holds the largest exponent: a register whose range reaches the floor; two of them where the
    ranges overlap."""
    floor = -(1 << 40) if step.floor is None else step.floor
    spans = [registers[name] for name in step.of]
    bins = {"nothing": True, "the floor": any(span.low < floor for span in spans)}
    for name, span in zip(step.of, spans, strict=True):
        bins[f"one of {name}"] = span.high >= floor
        bins[f"several of {name}"] = span.high >= floor and _grouped_count(step, span) > 1
    overlap = len(spans) > 1 and min(s.high for s in spans) >= max(floor, *(s.low for s in spans))
    return bins | {"several registers": overlap}


def _grouped_count(step: Align, span: Span) -> int:
    return max(len(group) for group in groups_of(span.count, step.group))


def _of_slice(bins: dict[str, bool], registers: dict[str, Span]) -> dict[str, bool]:
    """A seed that is always zero never holds the maximum."""
    if registers["c"].greatest == 0:
        return {
            label: reach and label not in ("one of c", "several registers") for label, reach in bins.items()
        }
    return bins


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


def _cancelled_bins(step: Align, registers: dict[str, Span], register: str) -> dict[str, bool]:
    """A term that cancelled keeps its exponent: it can hold the maximum, or be below another register's."""
    span = registers[register]
    others = [registers[o].high for o in step.of if o != register or span.count > 1]
    below = bool(others) and max(others) > span.low
    floor = -(1 << 40) if step.floor is None else step.floor
    return {"alone at the largest exponent": span.high >= floor, "below it": below or floor > span.low}


def align_samples(ins: Instruction, name: str, seen: Aligned) -> Iterator[Sample]:
    """The bins that aligned terms fall into."""
    terms, maximum = seen.terms, seen.maximum
    owners = np.array(seen.owners)
    at_top = terms.finite & (terms.exponent == maximum)
    counts = {register: at_top[:, owners == register].sum(axis=1) for register in seen.step.of}
    holders = sum((count > 0).astype(np.int64) for count in counts.values())
    index = np.where(terms.finite.any(axis=1), 1, 0)
    for place, count in enumerate(counts.values()):
        index = np.where((count > 0) & (holders == 1), 2 + 2 * place + (count > 1), index)
    index = np.where(np.asarray(holders) > 1, 2 + 2 * len(counts), index)
    yield f"{name}: largest exponent", index
    first = ins.program.operations[seen.operation].steps_of(Align)[0]
    if len(ins.program.operations) > 1 and seen.step is first:
        yield f"largest exponent of operation {seen.operation}", index
    for register, fraction in seen.step.fraction_bits:
        columns = owners == register
        if columns.any():
            yield from _distance_samples(ins, name, register, fraction, seen, columns, at_top)
    k_index = ins.program.operations[seen.operation].k_index
    if "products" in seen.step.of and np.sum(owners == "products") and len(seen.columns) >= 1:
        yield from _place_samples(seen, at_top, owners, k_index)


def _place_samples(seen: Aligned, at_top: Array, owners: Array, k_index: tuple[int, ...]) -> Iterator[Sample]:
    columns = np.array([k_index[i] if i < len(k_index) else 0 for i in seen.columns])
    alone = (at_top.sum(axis=1) == 1) & at_top[:, owners == "products"].any(axis=1)
    yield "product alone at the largest exponent", np.where(alone, columns[at_top.argmax(axis=1)], -1)


def _distance_samples(
    ins: Instruction, name: str, register: str, fraction: int, seen: Aligned, columns: Array, at_top: Array
) -> Iterator[Sample]:
    terms, maximum = seen.terms[columns], seen.maximum[:, columns]
    distance = maximum - terms.exponent
    edges = np.array([high for _, _, high in _distances(fraction)])
    yield (
        _distance_name(ins, name, register, fraction),
        np.where(terms.nonzero, np.searchsorted(edges, distance), -1),
    )
    lost, kept = seen.lost[:, columns], seen.kept[:, columns]
    cut = np.where(lost, np.where(kept, 1, 2), 0)
    yield f"{name}: cut from {register}", np.where(terms.nonzero, cut * 2 + terms.sign, -1)
    cancelled = terms.finite & ~terms.nonzero
    if cancelled.any():
        alone = at_top[:, columns] & (at_top.sum(axis=1, keepdims=True) == 1)
        below = distance > 0
        yield (
            f"{name}: cancelled {register}",
            np.where(cancelled & alone, 0, np.where(cancelled & below, 1, -1)),
        )
