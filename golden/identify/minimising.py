"""Minimising operands while something still fails: zeros for everything unnecessary, few significand bits,
small exponents.

    least = minimise(ins, operands, lambda batch: dut(batch) != ins.dot(**batch))

The predicate takes whole batches of candidates, because one call may be one run of a simulator. Each round
tries every single simplification, then the successful ones together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.budget import Budget
from golden.identify.diagnose.conditions import products_present
from golden.identify.sample import picked
from golden.model.instruction import Instruction
from golden.number.classes import is_zero
from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands, Signature
from golden.unit import Unit, signature_of

Fails = Callable[[Operands], npt.NDArray[np.bool_]]
ROUNDS = 24
"""Calls of `fails` by default."""


def minimise(
    unit: Unit | Signature,
    operands: Operands,
    fails: Fails,
    *,
    rounds: int | None = ROUNDS,
    progress: Callable[[int, int], None] | None = None,
    budget: Budget | None = None,
) -> Operands:
    """Returns the simplest operands found for which `fails` still holds.

    Args:
        unit: the unit of these operands.
        operands: one dot product that fails, raw codes as its `dot` takes them: a, b (k,), c () and so on.
        fails: takes a batch, the same operands with a leading dimension n, and returns for each whether it
            fails (n,).
        rounds: how often `fails` may be called; None: until nothing becomes simpler.
        progress: called with (calls made, calls allowed) after every call; the second is 0 without a limit.
        budget: `fails` is not called after it is over; None: no limit.

    Returns:
        Operands of the same shapes and of the same mode; the given ones if nothing simpler fails.
    """
    takes = signature_of(unit)
    given = takes.check_named(operands)
    # In a unit with modes the mode stays: the operands of one mode become simpler.
    if takes.modes is not None:
        one, rest = takes.in_mode_of(given)
        mode = given["mode"]

        def in_mode(batch: Operands) -> npt.NDArray[np.bool_]:
            return fails(batch | {"mode": np.full(len(batch["a"]), mode)})

        return minimise(one, rest, in_mode, rounds=rounds, progress=progress, budget=budget) | {"mode": mode}
    given = takes.complete(given)
    search = _Minimiser(takes, lambda batch: fails(_present(takes, batch)), rounds, progress, budget)
    current = picked(given, None)
    # Each step lowers the cost and keeps the failure, so the loop ends.
    while search.allowed:
        simpler = search.step(current)
        if simpler is None:
            break
        current = simpler
    return _present(takes, picked(current, 0))


def _present(takes: Signature, operands: Operands) -> Operands:
    """Without what stands for a b or c that the unit does not have."""
    return {name: codes for name, codes in operands.items() if name not in takes.absent}


def of_one_kind(ins: Instruction, operands: Operands, fails: Fails) -> Fails:
    """The predicate `fails` for dot products of the kind of `operands` alone: where these add something
    others do, too, and where their right result is no zero that of others is none. A failure of zeros is
    another fault than that of other numbers, and the simplest operands are zeros.

    Args:
        ins: what the unit should compute, of one mode or with `mode` among the operands.
        operands: one dot product.
    """

    def adds(batch: Operands) -> npt.NDArray[np.bool_]:
        found = products_present(ins.formats, batch).any(axis=1)
        return np.asarray(found | ~is_zero(ins.formats["c"], batch["c"]) if "c" in batch else found)

    def is_no_zero(batch: Operands) -> npt.NDArray[np.bool_]:
        return np.asarray(~is_zero(ins.formats["d"], ins.dot(**batch)))

    one = {name: np.asarray(codes)[None] for name, codes in operands.items()}
    needed = [holds for holds in (adds, is_no_zero) if holds(one)[0]]

    def alike(batch: Operands) -> npt.NDArray[np.bool_]:
        return np.asarray(np.logical_and.reduce([fails(batch), *(holds(batch) for holds in needed)]))

    return alike


class _Minimiser:
    """Counts the calls of the predicate and takes one round after the other."""

    def __init__(
        self,
        takes: Signature,
        fails: Fails,
        rounds: int | None,
        progress: Callable[[int, int], None] | None,
        budget: Budget | None,
    ) -> None:
        self.budget = Budget(float("inf")) if budget is None else budget
        self.takes, self.fails, self.rounds, self.progress, self.calls = takes, fails, rounds, progress, 0

    @property
    def allowed(self) -> bool:
        """Whether the predicate may be called again."""
        return (self.rounds is None or self.calls < self.rounds) and not self.budget.over()

    def failing(self, batch: Operands) -> npt.NDArray[np.intp]:
        """Indices of the candidates that fail."""
        self.calls += 1
        found = np.flatnonzero(self.fails(batch))
        if self.progress is not None:
            self.progress(self.calls, self.rounds or 0)
        return found

    def step(self, current: Operands) -> Operands | None:
        """The cheapest single simplification that still fails, or several of them at once; None where
        there is none."""
        candidates = _simplifications(self.takes, current)
        costs = _costs(self.takes, candidates)
        cheaper = np.flatnonzero(costs < float(_costs(self.takes, current)[0]))
        if not len(cheaper):
            return None
        # one call asks about all that would be cheaper, the cheapest first
        cheaper = cheaper[np.argsort(costs[cheaper], kind="stable")]
        kept = cheaper[self.failing(picked(candidates, cheaper))]
        if not len(kept):
            return None
        best = picked(candidates, kept[:1])
        # a second call asks about several at once; each alone fails, together they may not
        merged = _merged(current, candidates, kept)
        if merged is None or not self.allowed:
            return best
        both = self.failing(merged)
        return picked(merged, both[-1:]) if len(both) else best


def _merged(current: Operands, candidates: Operands, kept: npt.NDArray[np.intp]) -> Operands | None:
    """Batches of simplifications that change different places: the two cheapest together, then three, and
    so on."""
    total = {name: codes.copy() for name, codes in current.items()}
    touched = {name: np.zeros(codes.shape, bool) for name, codes in current.items()}
    rows: list[Operands] = []
    for index in kept:
        change = {name: codes[index : index + 1] != current[name] for name, codes in candidates.items()}
        if any((change[name] & touched[name]).any() for name in change):
            continue
        total = {
            name: np.where(change[name], candidates[name][index : index + 1], total[name]) for name in total
        }
        touched = {name: touched[name] | change[name] for name in touched}
        rows.append(total)
    return (
        {name: np.concatenate([row[name] for row in rows[1:]]) for name in current} if len(rows) > 1 else None
    )


def cost(unit: Unit | Signature, operands: Operands) -> float:
    """How much there is to read in one dot product: what the minimiser makes small."""
    takes, rest = signature_of(unit).in_mode_of(operands)
    return float(_costs(takes, {name: np.asarray(codes)[None] for name, codes in rest.items()})[0])


def costs(unit: Unit | Signature, operands: Operands) -> npt.NDArray[np.float64]:
    """The `cost` of each of several dot products: operands (count, ...), costs (count,)."""
    takes = signature_of(unit)
    if takes.modes is None:
        return _costs(takes, operands)
    rows = (picked(operands, i) for i in range(len(operands["a"])))
    return np.array([cost(takes, row) for row in rows])


def _costs(takes: Signature, operands: Operands) -> npt.NDArray[np.float64]:
    """How much there is to read: non-zero products first, then c, significand bits, exponents, signs,
    places."""
    a = operands["a"]
    live = _magnitude(takes.formats["a"], a) != 0
    places = (live * np.arange(a.shape[-1])).sum(axis=-1)
    cost = 1e6 * live.sum(axis=-1) + 1e-3 * places
    for name, codes in operands.items():
        if name != "metadata" and name not in takes.absent:
            columns = codes[:, None] if codes.ndim == 1 else codes
            cost = cost + _code_costs(takes.formats[name], columns, _WEIGHTS.get(name, _WEIGHTS["b"])).sum(
                axis=-1
            )
    return np.asarray(cost, np.float64)


def _magnitude(fmt: Format, codes: Bits) -> npt.NDArray[np.uint64]:
    """The code without its sign and ignored bits; 0 for a zero."""
    if not fmt.is_float:
        return np.abs(to_float(fmt, codes)).astype(np.uint64)
    fields = codes.astype(np.uint64) >> np.uint64(fmt.ignored_low)
    return np.asarray(fields & np.uint64((1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1))


# Cost of a non-zero operand, of one binade away from 1 and of a minus sign. They differ so that exponents
# wander from b to a to c, and the example ends as 1 * 1 + something wherever the units allow it.
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


def _simplifications(takes: Signature, operands: Operands) -> Operands:
    """Every single simplification of one example, as a batch. Each pass gives the operands that it changes,
    with all else as it is; what costs no less is not tried."""
    changed = [change for one in _PASSES for change in one(takes, operands)]
    batch = {name: np.repeat(codes, max(len(changed), 1), axis=0) for name, codes in operands.items()}
    for row, change in enumerate(changed):
        for name, codes in change.items():
            batch[name][row] = codes[0]
    return batch


def _zeroings(takes: Signature, operands: Operands) -> Iterator[Operands]:
    """Zeroes c, single products, and aligned runs of products (halves, quarters, ...). A sparse b stays
    where it is."""
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
                if not takes.sparse:
                    change["b"] = b.copy()
                    change["b"][:, start : start + size] = 0
                yield change
        size *= 2
    if takes.sparse:
        yield from ({"b": _replaced(b, (place,), 0)} for place in range(b.shape[-1]))


def _moves(takes: Signature, operands: Operands) -> Iterator[Operands]:
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


def _shifts(takes: Signature, operands: Operands) -> Iterator[Operands]:
    """Changes several operands at once so that the products keep their relations: exponents handed from a
    to b of one product, everything moved by some binades, everything negated."""
    a, b, c, fmt_a, fmt_b, fmt_c = (
        operands["a"],
        operands["b"],
        operands["c"],
        *(takes.formats[name] for name in "abc"),
    )
    # The other sign of all products and of c: it may read simpler.
    yield {"a": stimuli.negate(fmt_a, a), "c": stimuli.negate(fmt_c, c)}
    if not (fmt_a.is_float and fmt_b.is_float and fmt_c.is_float):
        return
    (all_a, can_a), (all_b, can_b), (all_c, can_c) = (
        _rescaled(fmt, codes[0], steps)
        for fmt, codes, steps in ((fmt_a, a, _STEPS), (fmt_b, b, -_STEPS), (fmt_c, c, _STEPS))
    )
    places = np.flatnonzero(a[0]).tolist() if not takes.sparse else []
    for i in range(len(_STEPS)):
        if can_a[i].all() and can_c[i]:
            yield {"a": all_a[i : i + 1], "c": all_c[i : i + 1]}
        # One factor up and the other down: the product stays, its factors come near 1.
        for place in places:
            if can_a[i, place] and can_b[i, place]:
                yield {
                    "a": _replaced(a, (place,), all_a[i, place]),
                    "b": _replaced(b, (place,), all_b[i, place]),
                }


_STEPS = np.array([-16, -4, -1, 1, 4, 16])
"""Binades by which exponents are moved."""


def _rescaled(fmt: Format, codes: Bits, steps: npt.NDArray[np.int64]) -> tuple[Bits, npt.NDArray[np.bool_]]:
    """Every code multiplied by 2**steps, with one more axis in front for the steps, and whether it can be:
    it is zero, or normal before and after."""
    live = _magnitude(fmt, codes) != 0
    fields = (codes >> fmt.ignored_low >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    moved = fields.astype(np.int64) + steps.reshape(-1, *[1] * codes.ndim)
    top = fmt.max_exponent + fmt.bias
    possible = ~live | ((moved >= 1) & (moved <= top) & (fields >= 1) & (fields <= top))
    shift = fmt.fraction_bits + fmt.ignored_low
    cleared = codes & ~fmt.dtype.type(((1 << fmt.exponent_bits) - 1) << shift)
    shifted = cleared | (np.where(possible & live, moved, 0).astype(fmt.dtype) << shift)
    return np.where(live, shifted, codes).astype(fmt.dtype), possible


def _replaced(codes: Bits, place: tuple[int, ...], code: int) -> Bits:
    changed = codes.copy()
    changed[(0, *place)] = code  # operands of the minimiser are batches of one
    return changed


def _codes(takes: Signature, operands: Operands) -> Iterator[Operands]:
    """Changes one code to one that is easier to read."""
    for name, codes in operands.items():
        if name != "metadata" and name not in takes.absent:
            for place in np.ndindex(codes.shape[1:]):
                for code in _simpler_codes(takes.formats[name], int(codes[(0, *place)])):
                    yield {name: _replaced(codes, place, code)}


_PASSES = (_zeroings, _moves, _shifts, _codes)
"""What makes operands simpler; after the last round none of them finds anything that still fails."""


@lru_cache(maxsize=1 << 16)
def _simpler_codes(fmt: Format, code: int) -> tuple[int, ...]:
    """Codes that are easier to read than `code`: one, fewer significand bits, exponents nearer to one, no
    sign."""
    top = fmt.sign_shift if fmt.sign_shift >= 0 else fmt.bits - 1
    sign = code >> top & 1 if fmt.signed else 0
    if not fmt.is_float:
        simpler = {1, code >> 1, code & (code - 1) if code else 0, -code & ((1 << fmt.bits) - 1)}
        return tuple(c for c in simpler if c != code)
    rest = code & ((1 << top) - 1) if fmt.signed else code
    unit, one = 1 << fmt.ignored_low, stimuli.one(fmt)
    fraction_mask = ((1 << fmt.fraction_bits) - 1) * unit
    exponent, fraction = rest >> (fmt.fraction_bits + fmt.ignored_low), rest & fraction_mask
    simpler = {one, rest & ~(unit - 1), rest & ~fraction_mask}
    if fraction:
        simpler |= {rest & ~(1 << bit) for bit in range(fraction.bit_length()) if fraction >> bit & 1}
        simpler |= {rest & ~fraction_mask | 1 << (fraction.bit_length() - 1)}
        # The lowest set bit alone: often it is the bit that one unit keeps and the other cuts.
        last = exponent - (fmt.fraction_bits + fmt.ignored_low - (fraction & -fraction).bit_length() + 1)
        simpler |= {last << (fmt.fraction_bits + fmt.ignored_low)} if last > 0 else set()
    base = rest & ~((1 << (fmt.fraction_bits + fmt.ignored_low)) * ((1 << fmt.exponent_bits) - 1))
    for nearer in {fmt.bias, (exponent + fmt.bias) // 2, exponent + (1 if exponent < fmt.bias else -1)}:
        simpler.add(base | nearer << (fmt.fraction_bits + fmt.ignored_low))
    signed = [c | sign << top if fmt.signed else c for c in simpler] + [rest]
    return tuple(c for c in dict.fromkeys(signed) if c != code and c >= 0)
