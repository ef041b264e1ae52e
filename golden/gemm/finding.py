"""The plan behind given results: which instruction, and which order of sums, has these bits.

Candidates are tried on a few elements of D, those that fit on more, and what is left on the whole of D: a
plan is found only if every bit of every element is equal. Plans that the data cannot tell apart are all
named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, OperandError, ShapeError, nearest
from golden.gemm.block import Block
from golden.gemm.candidates import Candidate, candidates
from golden.gemm.order import Runs, parts
from golden.gemm.plan import Plan
from golden.gemm.product import gemm
from golden.instruction import Evidence
from golden.number.arrays import plain
from golden.number.formats import Format, formats, get_format, native_dtype

Bits = npt.NDArray[Any]
FEW, MORE = 12, 512
"""Elements of D that candidates are tried on first, and next."""
MOST_WHOLE = 64
"""Plans that are tried on the whole of D."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Search:
    """What a search found: the plan or None, and the plans that came nearest on `sampled` elements, each with
    how many of them it has. `unchecked`: plans that fit the sample and were not tried on all of D."""

    plan: Plan | None
    tried: int
    unchecked: int
    sampled: int
    near: tuple[tuple[int, Plan], ...]


def find_plan(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    D: npt.ArrayLike,
    arch: str,
    formats: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Plan | None:
    """Finds the plan by which a kernel computed D = A @ B, from the data alone.

    Args:
        A, B, D: (M, K), (K, N) and (M, N), raw codes, or numbers of NumPy's or ml_dtypes' types.
        arch: whose instructions are tried.
        formats: of raw codes, names by "a", "b" and "d"; those of numbers are known.
        progress: called with (candidates tried, 0) now and then; what it raises ends the search.

    Returns:
        A plan that gives every bit of D, the simplest that was found; its `others` are different plans
        that give them as well, so that this data cannot say which it was. None: no candidate does.

    Raises:
        ShapeError, DTypeError, OperandError, UnknownNameError: of the arguments.
    """
    return search(A, B, D, arch, formats, progress).plan


def search(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    D: npt.ArrayLike,
    arch: str,
    formats: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Search:
    """As `find_plan`, with what came near."""
    known = _formats({"a": A, "b": B, "d": D}, formats or {})
    a, b, d = (_matrix(value, known[name], name) for value, name in ((A, "a"), (B, "b"), (D, "d")))
    if a.shape[1] != b.shape[0] or d.shape != (a.shape[0], b.shape[1]):
        raise ShapeError(f"D has shape {d.shape}, expected (M, N) of A {a.shape} and B {b.shape}")
    if not d.size or not a.shape[1]:
        raise ShapeError("a product without elements says nothing of a plan")
    few, more = _Sample(a, b, d, FEW), _Sample(a, b, d, MORE)
    fits: list[Plan] = []
    scores: list[tuple[int, Plan]] = []
    tried = 0
    for candidate in candidates(arch, known, a.shape[1]):
        for equal, plan in few.equal(candidate):
            tried += 1
            scores.append((equal, plan))
            fits += [plan] if equal == few.count else []
        if progress is not None:
            progress(tried, 0)
    if not tried:
        raise OperandError(f"no instruction of {arch} takes {known['a'].name} and {known['b'].name}")
    fits = [plan for plan in fits if more.equal_plan(plan) == more.count]
    found = _of_all(a, b, d, fits[:MOST_WHOLE], progress)
    scores.sort(key=lambda pair: -pair[0])
    near = sorted(((more.equal_plan(plan), plan) for _, plan in scores[:8]), key=lambda pair: -pair[0])
    told = _told(found, d.shape, a.shape[1])
    return Search(told, tried, len(fits[MOST_WHOLE:]), more.count, tuple(near[:3]))


def _formats(values: dict[str, Any], given: dict[str, str]) -> dict[str, Format]:
    unknown = next((name for name in given if name not in values), None)
    if unknown is not None:
        raise OperandError(f"formats: unknown key '{unknown}', expected a, b and d{nearest(unknown, values)}")
    return {name: _format_of(name, value, given.get(name)) for name, value in values.items()}


def _format_of(name: str, value: Any, given: str | None) -> Format:
    if given is not None:
        return get_format(given)
    dtype = plain(value, name.upper()).dtype
    for fmt in map(get_format, formats()):
        if fmt.name != "tf32" and native_dtype(fmt) == dtype and dtype.kind != "u":
            return fmt
    raise DTypeError(
        f"argument '{name.upper()}' has dtype {dtype}, which says no format: expected formats={{'{name}': "
        f"...}}"
    )


def _matrix(value: Any, fmt: Format, name: str) -> Bits:
    array = plain(value, name.upper())
    if array.dtype == native_dtype(fmt):
        array = array.view(fmt.dtype)
    fmt.check(array, name.upper())
    if array.ndim != 2:
        raise ShapeError(f"argument '{name.upper()}' has shape {array.shape}, expected two dimensions")
    return array


class _Sample:
    """Some elements of D, each with its row of A and column of B; zeros last, which tell little."""

    def __init__(self, a: Bits, b: Bits, d: Bits, count: int) -> None:
        order = np.random.default_rng(0).permutation(d.size)[: 64 * count]
        magnitudes = d.ravel()[order] & d.dtype.type((1 << (8 * d.itemsize - 1)) - 1)
        order = order[np.argsort(magnitudes == 0, kind="stable")]
        rows, columns = np.unravel_index(order[:count], d.shape)
        self.count, self.k = len(rows), a.shape[1]
        self.arrays = {"a": a[rows][:, None, :], "b": b[:, columns].T[:, :, None]}
        self.d = d[rows, columns]
        self.chains: dict[object, Bits] = {}

    def equal(self, candidate: Candidate) -> list[tuple[int, Plan]]:
        """How many elements each plan has; the sums of parts are computed once for all of them."""
        first = self._block(candidate.plans[0])
        found = parts(first.plan, self.k)
        if len(found) == 1 and len(found[0]) == 1:
            return [(self.equal_plan(plan), plan) for plan in candidate.plans]
        kept: dict[object, list[Bits]] = {}
        with np.errstate(all="ignore"):
            return [(self._in_parts(plan, found, kept), plan) for plan in candidate.plans]

    def _in_parts(self, plan: Plan, found: list[list[Runs]], kept: dict[object, list[Bits]]) -> int:
        """How many elements a plan has; `kept`: the sums of parts by what decides them."""
        block, order = self._block(plan), plan.options.reduce
        same = order if plan.options.slices > 1 else order == "descending"
        if same not in kept:
            each = found[::-1] if order == "descending" else found
            kept[same] = [block.part_sum(slices) for slices in each]
        return self._count(block.codes(block.reduced(kept[same])))

    def equal_plan(self, plan: Plan) -> int:
        """How many elements a plan has."""
        return self._count(self._block(plan).result())

    def _block(self, plan: Plan) -> Block:
        return _Remembering(plan, self.arrays, self.k, self.chains)

    def _count(self, codes: Bits) -> int:
        return int(np.count_nonzero(codes[:, 0, 0] == self.d))


class _Remembering(Block):
    """A block of single elements that keeps the results of chains: most candidates share most of theirs."""

    def __init__(self, plan: Plan, arrays: dict[str, Bits], k: int, chains: dict[object, Bits]) -> None:
        super().__init__(plan, arrays, slice(0, 1), slice(0, 1), k, lambda dots: None)
        self.chains = chains

    def chained(self, runs: Runs, seed: Bits | None) -> Bits:
        """As Block.chained, once."""
        key = self.plan.instruction, self.plan.options.convert, tuple(runs)
        if key not in self.chains:
            self.chains[key] = super().chained(runs, seed)
        return self.chains[key]


def _of_all(a: Bits, b: Bits, d: Bits, fits: list[Plan], progress: Progress | None) -> list[Plan]:
    """Those that have every element."""

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total)

    return [plan for plan in fits if np.array_equal(gemm(a, b, plan, progress=tell), d)]


def _told(found: list[Plan], shape: tuple[int, ...], k: int) -> Plan | None:
    if not found:
        return None
    seen = Evidence("derived", f"equal in every bit of one product of {shape[0]} x {shape[1]} x {k}")
    told = [plan if plan.name else replace(plan, evidence=seen) for plan in found]
    return replace(told[0], others=tuple(told[1:]))
