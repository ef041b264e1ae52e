"""Finding operands for which two instructions or units answer differently, and the shortest example of it.

    result = compare(golden.instruction("hopper", "HMMA.16816.F32"), golden.instruction("ampere", "HMMA.16816.F32"))
    print(result.example.trace_x)

The search runs every kind of golden/stimuli.py through both; a greedy minimiser then zeroes and rounds what the
difference does not need. Finding nothing is not a proof that the two are equal; the counts say how hard it looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.errors import OperandError
from golden.formats import Format, to_float
from golden.instruction import Instruction
from golden.trace import Trace

Bits = npt.NDArray[Any]
Operands = dict[str, Bits]
BATCH = 2048
CLASSES = ("value", "special", "zero_sign", "nan_payload")
"""Kinds of difference, the most telling first: two unequal finite numbers; a number, infinity or NaN against something of
another kind; +0 against -0; two NaNs of different bits."""
_CANDIDATES = 14


@dataclass
class KindCount:
    """What the search saw of one stimulus kind."""

    kind: str
    trials: int = 0
    differences: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))

    @property
    def numeric(self) -> int:
        """Differences that are more than NaN payloads."""
        return sum(self.differences[name] for name in CLASSES[:3])


@dataclass(frozen=True)
class Example:
    """The shortest operands found: one dot product, raw codes, with both answers."""

    kind: str
    difference: str
    operands_x: Operands
    operands_y: Operands
    x: int
    y: int
    trace_x: Trace
    trace_y: Trace

    @property
    def products(self) -> int:
        """Products of the example that are not zero."""
        return int(np.count_nonzero(self.operands_x["a"]))


@dataclass(frozen=True)
class Comparison:
    """The outcome of a search: counts by kind, and an example where there is a difference."""

    first: Instruction
    second: Instruction
    seed: int
    counts: tuple[KindCount, ...]
    example: Example | None

    @property
    def trials(self) -> int:
        """Dot products tried."""
        return sum(count.trials for count in self.counts)

    @property
    def numeric(self) -> int:
        """Differences in value, special values or the sign of zero."""
        return sum(count.numeric for count in self.counts)

    @property
    def nan_payloads(self) -> int:
        """Pairs of NaNs with different bits."""
        return sum(count.differences["nan_payload"] for count in self.counts)

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values, stable for machines."""
        example = self.example
        return {
            "x": {"architecture": self.first.architecture, "instruction": self.first.name},
            "y": {"architecture": self.second.architecture, "instruction": self.second.name},
            "seed": self.seed,
            "trials": self.trials,
            "numeric": self.numeric,
            "nan_payloads": self.nan_payloads,
            "kinds": [{"kind": c.kind, "trials": c.trials, **c.differences} for c in self.counts],
            "example": None
            if example is None
            else {
                "kind": example.kind,
                "difference": example.difference,
                "products": example.products,
                "x": example.trace_x.as_dict(),
                "y": example.trace_y.as_dict(),
            },
        }


def compare(
    x: Instruction, y: Instruction, seed: int = 0, budget: int = 100_000, progress: Callable[[int, int], None] | None = None
) -> Comparison:
    """Searches operands for which x and y answer differently.

    Both must take a, b and c of the same formats, and be both dense or both sparse of one pattern, with equal scale
    blocks. K may differ: operands are drawn for the smaller K, and the larger one gets zeros (scales of one, legal
    metadata) appended. Results of different formats are compared by value.

    Args:
        seed: seeds the generator; equal seeds give equal searches.
        budget: dot products to try, spread evenly over the stimulus kinds.
        progress: called with (tried, budget) after every batch.

    Raises:
        OperandError: the two do not take the same operands, or the budget is not positive.
    """
    _check_comparable(x, y)
    if budget < 1:
        raise OperandError(f"budget is {budget}, expected 1 or more")
    search = _Search(x, y)
    share = max(budget // len(stimuli.SEARCH_KINDS), 1)
    for index, kind in enumerate(stimuli.SEARCH_KINDS):
        rng = np.random.default_rng([seed, index])
        for done in range(0, share, BATCH):
            search.run(kind, min(BATCH, share - done), rng)
            if progress is not None:
                progress(min(index * share + done + BATCH, (index + 1) * share), share * len(stimuli.SEARCH_KINDS))
    return Comparison(x, y, seed, tuple(search.counts.values()), search.shortest())


def _check_comparable(x: Instruction, y: Instruction) -> None:
    for operand in ("a", "b", "c", "scale_a", "scale_b"):
        fx, fy = x.formats.get(operand), y.formats.get(operand)
        if fx != fy:
            names = [fmt.name if fmt else "none" for fmt in (fx, fy)]
            raise OperandError(f"cannot compare: operand {operand} is {names[0]} in {x.name} but {names[1]} in {y.name}")
    if x.pattern != y.pattern:
        raise OperandError(f"cannot compare: {x.name} and {y.name} have different sparsity")
    if x.scale_block != y.scale_block:
        raise OperandError(f"cannot compare: scale blocks are {x.scale_block} and {y.scale_block}")


def pad(operands: Operands, ins: Instruction) -> Operands:
    """Appends zeros (scales: ones, metadata: a legal nibble) to operands (..., k) until they fit a longer instruction."""
    shapes = ins.operand_shapes(matrices=False)
    padded = {}
    for name, codes in operands.items():
        missing = shapes[name][0] - codes.shape[-1] if shapes[name] else 0
        fill = 0x4 if name == "metadata" else stimuli.one(ins.formats[name]) if name.startswith("scale") else 0
        tail = np.full((*codes.shape[:-1], missing), fill, codes.dtype) if missing else None
        padded[name] = codes if tail is None else np.concatenate([codes, tail], axis=-1)
    return padded


class _Search:
    """Runs batches on both units, counts, and keeps the first examples of every class of difference."""

    def __init__(self, x: Instruction, y: Instruction) -> None:
        self.x, self.y = x, y
        self.short = x if x.k <= y.k else y
        self.counts = {kind: KindCount(kind) for kind in stimuli.SEARCH_KINDS}
        self.found: dict[str, list[tuple[str, Operands]]] = {name: [] for name in CLASSES}

    def run(self, kind: str, count: int, rng: np.random.Generator) -> None:
        """Tries one batch."""
        operands = stimuli.generate(self.short, kind, count, rng)
        tally, classes = self.counts[kind], self.differences(operands)
        tally.trials += count
        for index, name in enumerate(CLASSES):
            hits = np.flatnonzero(classes == index)
            tally.differences[name] += len(hits)
            if len(hits) and sum(k == kind for k, _ in self.found[name]) == 0:
                self.found[name].append((kind, {key: codes[hits[0] : hits[0] + 1] for key, codes in operands.items()}))

    def differences(self, operands: Operands) -> npt.NDArray[np.int64]:
        """The class of difference of every dot product (an index into CLASSES), or -1 where the two agree."""
        dx, dy = self.answers(operands)
        return classify(dx, dy, self.x.formats["d"], self.y.formats["d"])

    def answers(self, operands: Operands) -> tuple[Bits, Bits]:
        """Both results of a batch; the longer unit gets padded operands."""
        return self.x.dot(**pad(operands, self.x)), self.y.dot(**pad(operands, self.y))

    def shortest(self) -> Example | None:
        """Minimises the candidates of the most telling class and returns the cheapest."""
        for index, name in enumerate(CLASSES):
            candidates = [(kind, _minimise(self, operands, index)) for kind, operands in self.found[name][:_CANDIDATES]]
            if candidates:
                costs = [float(_costs(self.short, operands)[0]) for _, operands in candidates]
                kind, operands = candidates[int(np.argmin(costs))]
                return self.example(kind, name, {key: codes[0] for key, codes in operands.items()})
        return None

    def example(self, kind: str, difference: str, operands: Operands) -> Example:
        """Traces one dot product on both units."""
        for_x, for_y = pad(operands, self.x), pad(operands, self.y)
        dx, dy = self.answers({key: codes[None] for key, codes in operands.items()})
        return Example(kind, difference, for_x, for_y, int(dx[0]), int(dy[0]), self.x.trace(**for_x), self.y.trace(**for_y))


def classify(dx: Bits, dy: Bits, fx: Format, fy: Format) -> npt.NDArray[np.int64]:
    """Classes of difference between results: an index into CLASSES, -1 where equal."""
    vx, vy = to_float(fx, dx), to_float(fy, dy)
    nan_x, nan_y = np.isnan(vx), np.isnan(vy)
    finite = np.isfinite(vx) & np.isfinite(vy)
    same_bits = dx == dy if fx == fy else (vx == vy) & (np.signbit(vx) == np.signbit(vy)) | (nan_x & nan_y)
    classes = np.where(nan_x & nan_y, 3, np.where(finite & (vx != vy), 0, np.where(vx != vy, 1, 2)))
    return np.where(same_bits, -1, classes)


# Minimising --------------------------------------------------------------------------------------------------------------


def _minimise(search: _Search, operands: Operands, wanted: int) -> Operands:
    """Takes the cheapest single simplification that keeps the class of difference, until none is cheaper."""
    cost = float(_costs(search.short, operands)[0])
    while True:
        candidates = _simplifications(search.short, operands)
        costs = _costs(search.short, candidates)
        cheaper = np.flatnonzero(costs < cost)
        if not len(cheaper):
            return operands
        candidates = {key: codes[cheaper] for key, codes in candidates.items()}
        kept = np.flatnonzero(search.differences(candidates) == wanted)
        if not len(kept):
            return operands
        best = kept[np.argmin(costs[cheaper][kept])]
        operands, cost = {key: codes[best : best + 1] for key, codes in candidates.items()}, float(costs[cheaper][best])


def _costs(ins: Instruction, operands: Operands) -> npt.NDArray[np.float64]:
    """How much there is to read: non-zero products first, then c, significand bits, exponents, signs, places."""
    a = operands["a"]
    live = _magnitude(ins.formats["a"], a) != 0
    places = (live * np.arange(a.shape[-1])).sum(axis=-1)
    cost = 1e6 * live.sum(axis=-1) + 1e-3 * places
    for name, codes in operands.items():
        if name != "metadata":
            columns = codes[:, None] if codes.ndim == 1 else codes
            cost = cost + _code_costs(ins.formats[name], columns, _WEIGHTS.get(name, _WEIGHTS["b"])).sum(axis=-1)
    return np.asarray(cost, np.float64)


def _magnitude(fmt: Format, codes: Bits) -> npt.NDArray[np.uint64]:
    """The code without its sign and ignored bits; 0 for a zero."""
    if not fmt.is_float:
        return np.abs(to_float(fmt, codes)).astype(np.uint64)
    fields = codes.astype(np.uint64) >> np.uint64(fmt.ignored_low)
    return np.asarray(fields & np.uint64((1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1))


# Cost of a non-zero operand, of one binade away from 1 and of a minus sign. They differ so that exponents wander from b
# to a to c, and the example ends as 1 * 1 + something wherever the units allow it.
_WEIGHTS = {"a": (1.0, 0.1, 0.5), "b": (1.0, 0.2, 0.6), "c": (1e4, 0.05, 0.3)}


def _code_costs(fmt: Format, codes: Bits, weights: tuple[float, float, float]) -> npt.NDArray[np.float64]:
    """Cost of each code: significand bits set weigh most, then distance from one, then the sign."""
    present, binade, minus = weights
    magnitude = _magnitude(fmt, codes)
    ignored = np.bitwise_count(codes & fmt.dtype.type((1 << fmt.ignored_low) - 1)).astype(np.float64)
    if fmt.is_float:
        fraction = magnitude & np.uint64((1 << fmt.fraction_bits) - 1)
        exponent = (magnitude >> np.uint64(fmt.fraction_bits)).astype(np.int64) - fmt.bias
        cost = 10.0 * np.bitwise_count(fraction) + np.abs(exponent) * binade
    else:
        cost = 10.0 * np.bitwise_count(magnitude) + np.log2(1.0 + magnitude) * binade
    negative = (codes >> fmt.sign_shift) & 1 if fmt.sign_shift >= 0 else to_float(fmt, codes) < 0
    # A zero costs nothing unless it is negative; zero partners of live products were zeroed with them.
    live = (magnitude != 0) | (not fmt.has_zero)
    return np.asarray(np.where(live, cost + present, 0.0) + ignored + minus * negative, np.float64)


def _simplifications(ins: Instruction, operands: Operands) -> Operands:
    """Every single simplification of one example, as a batch."""
    changed = [*_zeroings(ins, operands), *_moves(operands), *_shifts(ins, operands)]
    for name, codes in operands.items():
        if name != "metadata":
            for place in np.ndindex(codes.shape[1:]):
                simpler = _simpler_codes(ins.formats[name], int(codes[(0, *place)]))
                changed += [{name: _replaced(codes, place, code)} for code in simpler]
    rows = [operands | change for change in changed] or [operands]
    return {key: np.concatenate([row[key] for row in rows]) for key in operands}


def _zeroings(ins: Instruction, operands: Operands) -> Iterator[Operands]:
    """Zeroes c, single products, and aligned runs of products (halves, quarters, ...). A sparse b stays where it is."""
    yield {"c": np.zeros_like(operands["c"])}
    a, b = operands["a"], operands["b"]
    count = a.shape[-1]
    size = 1
    while size <= count:
        for start in range(0, count, size):
            zeroed_a = a.copy()
            zeroed_a[:, start : start + size] = 0
            if zeroed_a.any() or a.any():
                change = {"a": zeroed_a}
                if not ins.sparse:
                    change["b"] = b.copy()
                    change["b"][:, start : start + size] = 0
                yield change
        size *= 2
    if ins.sparse:
        yield from ({"b": _replaced(b, (place,), 0)} for place in range(b.shape[-1]))


def _moves(operands: Operands) -> Iterator[Operands]:
    """Moves each live product of a dense a to every free place before it."""
    a, b = operands["a"], operands["b"]
    if a.shape != b.shape:
        return
    free, live = np.flatnonzero((a[0] == 0) & (b[0] == 0)), np.flatnonzero(a[0])
    for source in live:
        for target in free[free < source][:4]:
            order = np.arange(a.shape[-1])
            order[[source, target]] = target, source
            yield {"a": a[:, order], "b": b[:, order]}


def _shifts(ins: Instruction, operands: Operands) -> Iterator[Operands]:
    """Changes several operands at once so that the products keep their relations: exponents handed from a to b of one
    product, everything moved by some binades, everything negated."""
    a, b, c, fmt_a, fmt_b, fmt_c = operands["a"], operands["b"], operands["c"], *(ins.formats[name] for name in "abc")
    yield {"a": stimuli.negate(fmt_a, a), "c": stimuli.negate(fmt_c, c)}
    if not (fmt_a.is_float and fmt_b.is_float and fmt_c.is_float):
        return
    for steps in (-16, -4, -1, 1, 4, 16):
        moved_a, moved_c = _rescaled(fmt_a, a, steps), _rescaled(fmt_c, c, steps)
        if moved_a is not None and moved_c is not None:
            yield {"a": moved_a, "c": moved_c}
        for place in np.flatnonzero(a[0]).tolist() if not ins.sparse else ():
            part_a = _rescaled(fmt_a, a[:, place : place + 1], steps)
            part_b = _rescaled(fmt_b, b[:, place : place + 1], -steps)
            if part_a is not None and part_b is not None:
                yield {"a": _replaced(a, (place,), part_a[0, 0]), "b": _replaced(b, (place,), part_b[0, 0])}


def _rescaled(fmt: Format, codes: Bits, steps: int) -> Bits | None:
    """Multiplies every non-zero code by 2**steps; None where one is not normal before and after."""
    live = _magnitude(fmt, codes) != 0
    fields = (codes >> fmt.ignored_low >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    moved = fields.astype(np.int64) + steps
    top = fmt.max_exponent + fmt.bias
    if (live & ((moved < 1) | (moved > top) | (fields < 1) | (fields > top))).any():
        return None
    shift = fmt.fraction_bits + fmt.ignored_low
    cleared = codes & ~fmt.dtype.type(((1 << fmt.exponent_bits) - 1) << shift)
    return np.where(live, cleared | (np.where(live, moved, 0).astype(fmt.dtype) << shift), codes).astype(fmt.dtype)


def _replaced(codes: Bits, place: tuple[int, ...], code: int) -> Bits:
    changed = codes.copy()
    changed[(0, *place)] = code  # operands of the minimiser are batches of one
    return changed


def _simpler_codes(fmt: Format, code: int) -> list[int]:
    """Codes that are easier to read than `code`: one, fewer significand bits, exponents nearer to one, no sign."""
    top = fmt.sign_shift if fmt.sign_shift >= 0 else fmt.bits - 1
    sign = code >> top & 1 if fmt.signed else 0
    if not fmt.is_float:
        return [c for c in {1, code >> 1, code & (code - 1) if code else 0, -code & ((1 << fmt.bits) - 1)} if c != code]
    rest = code & ((1 << top) - 1) if fmt.signed else code
    unit, one = 1 << fmt.ignored_low, stimuli.one(fmt)
    fraction_mask = ((1 << fmt.fraction_bits) - 1) * unit
    exponent, fraction = rest >> (fmt.fraction_bits + fmt.ignored_low), rest & fraction_mask
    simpler = {one, rest & ~(unit - 1), rest & ~fraction_mask}
    if fraction:
        simpler |= {rest & ~(fraction & -fraction), rest & ~fraction_mask | 1 << (fraction.bit_length() - 1)}
        # The lowest set bit alone: often it is the bit that one unit keeps and the other cuts.
        last = exponent - (fmt.fraction_bits + fmt.ignored_low - (fraction & -fraction).bit_length() + 1)
        simpler |= {last << (fmt.fraction_bits + fmt.ignored_low)} if last > 0 else set()
    base = rest & ~((1 << (fmt.fraction_bits + fmt.ignored_low)) * ((1 << fmt.exponent_bits) - 1))
    for nearer in {fmt.bias, (exponent + fmt.bias) // 2, exponent + (1 if exponent < fmt.bias else -1)}:
        simpler.add(base | nearer << (fmt.fraction_bits + fmt.ignored_low))
    signed = [c | sign << top if fmt.signed else c for c in simpler] + [rest]
    return [c for c in dict.fromkeys(signed) if c != code and c >= 0]
