"""Plans on a few elements of D: which of many plans give them.

The elements that cancel most are taken, since their bits show the order of a sum best. Operands are decoded
once, and the chains of many candidates run together: most candidates share most of their chains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels import chain
from golden.kernels.assembly import in_order
from golden.kernels.block import Block
from golden.kernels.candidates import Candidate
from golden.kernels.conversion import convert_codes
from golden.kernels.epilogues import NOTHING, Addends
from golden.kernels.order import Runs, intervals, parts, places
from golden.kernels.plan import Plan
from golden.kernels.sum_tree import Node
from golden.model.instruction import Evidence
from golden.number.formats import Format, to_float

Bits = npt.NDArray[Any]
_ONE = slice(0, 1)


@dataclass(frozen=True)
class Answer:
    """One product that a kernel gave: raw codes a (m, k), b (k, n) and d (m, n), and what it added."""

    a: Bits
    b: Bits
    d: Bits
    addends: Addends = NOTHING

    @property
    def k(self) -> int:
        """Products in each sum."""
        return int(self.a.shape[1])


class Sample:
    """The elements of D that distinguish plans best, each with its row of A and column of B."""

    def __init__(self, given: Answer, count: int, formats: Mapping[str, Format]) -> None:
        rows, columns = _discriminating(given, formats)
        self.rows, self.columns = rows[:count], columns[:count]
        self.count, self.k, self.addends = len(self.rows), given.k, given.addends
        self.arrays = {"a": given.a[self.rows][:, None, :], "b": given.b[:, self.columns].T[:, :, None]}
        self.d = given.d[self.rows, self.columns]
        self.chains: dict[object, Any] = {}

    def remember(self, many: Sequence[Candidate]) -> None:
        """Computes the chains of all candidates that are not known yet, one instruction at a time."""
        wanted: dict[object, tuple[_Remembering, list[Runs]]] = {}
        for candidate in many:
            first = self._remembering(candidate.plans[0])
            if first.plan.options.products:
                continue
            _, runs = wanted.setdefault(first.family, (first, []))
            runs += first.chains_of(parts(first.plan, self.k))
        for first, runs in wanted.values():
            first.remember(runs)

    def equal(self, candidate: Candidate) -> list[tuple[int, Plan]]:
        """How many elements each plan has; the sums of parts are computed once for all of them."""
        first = candidate.plans[0]
        found = parts(first, self.k)
        if (len(found) == 1 and len(found[0]) == 1) or first.options.products:
            return [(self.equal_plan(plan), plan) for plan in candidate.plans]
        kept: dict[object, list[Bits]] = {}
        with np.errstate(all="ignore"):
            return [(self._in_parts(plan, found, kept), plan) for plan in candidate.plans]

    def _in_parts(self, plan: Plan, found: list[list[Runs]], kept: dict[object, list[Bits]]) -> int:
        """How many elements a plan has; `kept`: the sums of parts by what decides them."""
        block, order = self._remembering(plan), plan.options.reduce
        same = order if plan.options.slices > 1 else None
        if same not in kept:
            kept[same] = [block.part_sum(slices) for slices in found]
        each = in_order(order, kept[same]) if len(found) > 1 else kept[same]
        return self._count(block.codes(block.reduced(each, len(found))))

    def equal_plan(self, plan: Plan) -> int:
        """How many elements a plan has."""
        if plan.options.products:  # no other candidate has its chains
            return self._count(
                Block(plan, self._arrays(plan), _ONE, _ONE, self.k, lambda dots: None).result()
            )
        return self._count(self._remembering(plan).result())

    def _remembering(self, plan: Plan) -> _Remembering:
        return _Remembering(plan, self._arrays(plan), self.k, self.chains)

    def _arrays(self, plan: Plan) -> dict[str, Bits]:
        return self.arrays | self.addends.of_elements(plan, self.rows, self.columns)

    def _count(self, codes: Bits) -> int:
        return int(np.count_nonzero(codes[:, 0, 0] == self.d))


def _discriminating(given: Answer, formats: Mapping[str, Format]) -> tuple[Bits, Bits]:
    """Rows and columns of elements, those first whose result is smallest against the sum of their products'
    magnitudes: what rounding lost is largest there. Zeros and NaNs come last."""
    rng = np.random.default_rng(0)
    # Rows and columns of D, drawn at random, from which the elements that distinguish plans best are taken.
    pool = 64
    rows, columns = (rng.permutation(count)[:pool] for count in given.d.shape)
    taken = {"a": given.a[rows], "b": given.b[:, columns], "d": given.d[np.ix_(rows, columns)]}
    with np.errstate(all="ignore"):
        a, b, size = (np.abs(to_float(formats[name], codes)) for name, codes in taken.items())
        ratio = np.where(size == 0, np.inf, size / (a @ b))
    of_rows, of_columns = np.unravel_index(np.argsort(ratio, axis=None, kind="stable"), ratio.shape)
    return rows[of_rows], columns[of_columns]


class _Remembering(Block):
    """A block of single elements that keeps the results of chains."""

    def __init__(self, plan: Plan, arrays: dict[str, Bits], k: int, chains: dict[object, Any]) -> None:
        super().__init__(plan, arrays, _ONE, _ONE, k, lambda dots: None)
        self.kept = chains

    @cached_property
    def family(self) -> object:
        """What decides the result of a chain apart from its steps: the tile where an order counts in it, and
        the parts, too, where `edge: first` does."""
        options = self.plan.options
        tile = options.tile_k if options.order is not None or options.edge == "first" else None
        cut = (options.part, options.split_k) if options.edge == "first" else None
        return self.plan.instruction, options.convert, options.order, tile, cut

    @cached_property
    def chains(self) -> dict[object, Bits]:
        """Codes of d (elements, 1, 1, 1, 1) after chains from zero."""
        known: dict[object, Bits] = self.kept.setdefault(self.family, {})
        return known

    def chained(self, runs: Runs, seed: Bits | None) -> Bits:
        """As Block.chained, once where it begins with zero."""
        if seed is not None:
            return super().chained(runs, seed)
        return self._known([runs])[0]

    def remember(self, many: Iterable[Runs]) -> None:
        """Computes chains that are not known yet, all together."""
        wanted = {key: runs for runs in many if (key := _key(runs)) not in self.chains}
        if wanted:
            d = self._together(list(wanted.values()))
            for i, key in enumerate(wanted):
                self.chains[key] = d[:, i, None, None]

    def chains_of(self, found: list[list[Runs]]) -> Iterator[Runs]:
        """All chains of these parts."""
        every = self.plan.promoted_steps
        for runs in (runs for slices in found for runs in slices):
            yield from intervals(runs, every) if every else [runs]

    def _known(self, many: list[Runs]) -> list[Bits]:
        keys = [_key(runs) for runs in many]
        if any(key not in self.chains for key in keys):
            self.remember(many)
        return [self.chains[key] for key in keys]

    def _slice(self, runs: Runs) -> Any:
        """As Assembly, all sums that are promoted at once: NumPy accumulates one after the other, in their
        type."""
        every = self.plan.promoted_steps
        if not every:
            return self.chain_sum(runs)
        added = self.numbers(np.stack(self._known(intervals(runs, every))))
        from_zero = np.concatenate([np.zeros_like(added[:1]), added])
        return np.asarray(np.add.accumulate(from_zero, axis=0)[-1])

    def _reduced(self, each: Iterable[Bits], order: Any, fmt: str) -> Any:
        """As Assembly, with few calls of NumPy: all addends are rounded at once, sums in their own type that
        are added in turn are accumulated, and of a tree all pairs of a level are added at once."""
        if not isinstance(order, str):
            return super()._reduced(each, order, fmt)
        sums = np.stack(list(each))
        if order != "tree" and fmt == self.plan.accumulates.name:
            return np.add.accumulate(sums, axis=0)[-1]
        sums = self.rounded(sums, fmt)
        if order != "tree":
            total = sums[0]
            for one in sums[1:]:
                total = self.rounded(total + one, fmt)
            return total
        while len(sums) > 1:
            even = len(sums) // 2 * 2  # an odd one out waits
            sums = np.concatenate([self.rounded(sums[:even:2] + sums[1:even:2], fmt), sums[even:]])
        return sums[0]

    def _together(self, many: list[Runs]) -> Bits:
        """Codes (elements, chains, 1, 1) of d after chains from zero.

        A call of the core takes all the steps that it can of every chain that still has them. What is left of
        each chain is a sum of smaller powers of two: one call more for each of them.
        """
        unit, longest = self.plan.instruction, self.longest
        lengths = np.array([sum(map(len, runs)) for runs in many])
        numbers = np.zeros((len(many), lengths.max(initial=0)), np.int64)
        for row, runs, length in zip(numbers, many, lengths, strict=True):
            row[:length] = np.concatenate([np.arange(run.start, run.stop) for run in runs]) if runs else []
        first, last = int(numbers.min(initial=0)), int(numbers.max(initial=0)) + 1
        index = places(self.plan, self.k, first, last - first)
        if index is None:
            index = np.arange(first * unit.k, last * unit.k)
        elements = np.minimum(index.reshape(-1, unit.k), self.k)
        d = np.zeros((self.group, len(many), 1, 1), unit.formats["c"].dtype)
        done = np.zeros(len(many), np.int64)
        counts = [longest] * int(lengths.max(initial=0) // longest)
        counts += [longest >> down for down in range(1, longest.bit_length())]
        for count in counts:
            # Shorter pieces come last, each once: then fewer than twice that number of steps are left.
            (which,) = np.nonzero(lengths - done >= count)
            if not len(which):
                continue
            steps = numbers[which[:, None], done[which, None] + np.arange(count)]
            taken = elements[steps - first].reshape(len(which), -1)
            a, b = (self._resting(name)[:, taken] for name in "ab")
            operands = {"a": a[:, :, None, :], "b": b[:, :, :, None], "c": d[:, which]}
            d[:, which] = chain.run(unit, count, operands, 1, 1)
            done[which] += count
        return d

    def _resting(self, name: str) -> Bits:
        """An operand (elements, K + 1) in the instruction's format, what is at rest last."""
        source, target = self.plan.formats[name], self.plan.instruction.formats[name]
        key = name, source.name, target.name, self.plan.options.convert
        if key not in self.kept:
            codes = convert_codes(
                self.arrays[name].reshape(self.group, -1), source, target, self.plan.options.convert
            )
            rest = np.full((self.group, 1), self.plan.instruction.at_rest(name), codes.dtype)
            self.kept[key] = np.concatenate([codes, rest], 1)
        return np.asarray(self.kept[key])


def _key(runs: Runs) -> object:
    """Where the steps of a chain begin and end."""
    if len(runs) == 1:
        return runs[0].start, runs[0].stop
    return tuple((run.start, run.stop) for run in runs)


@dataclass(frozen=True)
class SearchResult:
    """What a search found: the plan or None, and the plans that came nearest on `sampled` elements, each with
    how many of them it has. `unchecked`: plans that fit the sample and were not tried on all of D. `tree`: in
    which order a called kernel adds, None if none was called or its order is not known."""

    plan: Plan | None
    tried: int
    unchecked: int
    sampled: int
    near: tuple[tuple[int, Plan], ...]
    tree: Node | None = None


def first_plan(found: list[Plan], shape: tuple[int, ...], k: int, count: int) -> Plan | None:
    """The first of the plans that gave all of `count` products, with the others as `others`."""
    if not found:
        return None
    many = "one product" if count == 1 else f"{count} products"
    seen = Evidence("derived", f"equal in every bit of {many} of {shape[0]} x {shape[1]} x {k}")
    known = [plan if plan.name else replace(plan, evidence=seen) for plan in found]
    return replace(known[0], others=tuple(known[1:]))
