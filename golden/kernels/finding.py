"""The plan behind given results: the instruction and the order of sums that have these bits.

Candidates are tried on a few elements of D, the ones that fit on more, and the remaining ones on the whole of
D: a plan is found only if every bit of every element is equal. Plans that the data do not distinguish are all
named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.resolver import resolver
from golden.errors import DTypeError, OperandError, ShapeError, nearest
from golden.kernels import chain
from golden.kernels.assembly import in_order
from golden.kernels.block import Block
from golden.kernels.candidates import Candidate, candidates, shaped
from golden.kernels.conversion import convert_codes
from golden.kernels.drawing import drawn
from golden.kernels.finding_beside import search_beside
from golden.kernels.found import Search, told
from golden.kernels.masks import Kernel, check_formats, product, tree_of_kernel
from golden.kernels.order import Runs, intervals, parts, pieces, places
from golden.kernels.plan import Plan
from golden.kernels.product import gemm
from golden.kernels.structures import structures
from golden.number.arrays import plain
from golden.number.formats import Format, formats, get_format, native_dtype

Bits = npt.NDArray[Any]
FEW, MORE = 12, 512
"""Elements of D that candidates are tried on first, and next."""
MOST_WHOLE = 64
"""Plans that are tried on the whole of D."""
_SPREADS = (3, 9)
"""Exponents of the products that a kernel is given: at most this far from that of 1.0."""
_LEAST_ELEMENTS, _MOST_PRODUCTS = 512, 64
"""A kernel is given two or more products, until it has computed this many elements, or this many products."""
Progress = Callable[[int, int], None]


def find_plan(
    A: npt.ArrayLike | Kernel,
    B: npt.ArrayLike | None = None,
    D: npt.ArrayLike | None = None,
    arch: str | None = None,
    formats: dict[str, str] | None = None,
    progress: Progress | None = None,
    *,
    shape: Sequence[int] | None = None,
    metadata: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
) -> Plan | None:
    """Finds the plan by which a kernel computes D = A @ B: from one product alone, or by asking the kernel.

    Args:
        A, B, D: (M, K), (K, N) and (M, N), raw codes, or numbers of NumPy's or ml_dtypes' types. Or A is the
            kernel, a function of two such arrays of raw codes that returns D, and B and D are left out: its
            order of sums is found by questions (golden.kernels.masks), and the plan holds on products drawn
            at random: two, or enough for 512 elements, 64 at most. Their operands are normal numbers:
            NaNs, infinities and subnormal numbers are not tried.
        arch: whose instructions are tried.
        formats: of raw codes, names by "a", "b" and "d"; those of numbers are known.
        progress: called with (candidates tried, 0) now and then; what it raises ends the search.
        shape: M, N, K of the calls of a kernel: its order of sums may differ for other shapes.
        metadata, scale_a, scale_b: of a product that has them, as golden.gemm takes them (A of a sparse
            one is (M, K/2)); plans that take just these are tried.

    Returns:
        A plan that gives every bit of D, the simplest that was found; its `others` are different plans
        that give them as well, so that this data cannot say which it was. None: no candidate does;
        `golden.sum_tree` says what is known of a kernel's order all the same.

    Raises:
        ShapeError, DTypeError, OperandError, UnknownNameError: of the arguments.
    """
    if arch is None:
        raise OperandError(
            "argument 'arch' is missing, expected an architecture whose instructions are tried"
        )
    arch = resolver().called(arch)
    given = {"metadata": metadata, "scale_a": scale_a, "scale_b": scale_b}
    beside = {name: value for name, value in given.items() if value is not None}
    if callable(A):
        if B is not None or D is not None:
            raise OperandError(
                "arguments 'B' and 'D' were given together with a kernel, expected the kernel alone"
            )
        if shape is None:
            raise OperandError("argument 'shape' is missing, expected (M, N, K) of the kernel's calls")
        if beside:
            raise OperandError(f"{', '.join(beside)}: a kernel is called with A and B alone")
        return ask(A, shape, arch, {} if formats is None else formats, progress).plan
    if B is None or D is None or shape is not None:
        raise OperandError("expected A, B and D, or a kernel and its shape")
    return search(A, B, D, arch, formats, progress, beside).plan


def search(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    D: npt.ArrayLike,
    arch: str,
    formats: dict[str, str] | None = None,
    progress: Progress | None = None,
    beside: Mapping[str, npt.ArrayLike] | None = None,
) -> Search:
    """As `find_plan`, with the nearest plans; `beside`: metadata, scale_a and scale_b, if there are any."""
    formats = {} if formats is None else formats
    check_formats(formats)
    known = _formats({"a": A, "b": B, "d": D}, formats)
    a, b, d = (_matrix(value, known[name], name) for value, name in ((A, "a"), (B, "b"), (D, "d")))
    if beside:
        return search_beside({"a": a, "b": b, "d": d}, beside, arch, known, progress)
    if a.shape[1] != b.shape[0] or d.shape != (a.shape[0], b.shape[1]):
        raise ShapeError(f"D has shape {d.shape}, expected (M, N) of A {a.shape} and B {b.shape}")
    if not d.size or not a.shape[1]:
        raise ShapeError("a product without elements says nothing of a plan")
    return _tried([_Data(a, b, d)], candidates(arch, known, a.shape[1]), arch, known, progress)


def ask(
    kernel: Kernel,
    shape: Sequence[int],
    arch: str,
    formats: dict[str, str],
    progress: Progress | None = None,
) -> Search:
    """As `find_plan` of a kernel, with its tree and the nearest plans.

    Plans with that tree are tried first, then all others. A plan that is found gives every bit of two
    products or more, of operands with small and with large differences of magnitude.
    """
    asked = product(kernel, shape, formats)
    tree = tree_of_kernel(asked)
    m, n, k = asked.shape
    known, data = asked.formats, []
    count = min(max(len(_SPREADS), -(-_LEAST_ELEMENTS // (m * n))), _MOST_PRODUCTS)
    for seed, spread in zip(range(count), cycle(_SPREADS)):
        rng = np.random.default_rng([seed, m, n, k])
        a, b = drawn(rng, known["a"], (m, k), spread), drawn(rng, known["b"], (k, n), spread)
        data.append(_Data(a, b, asked(a, b)))
    found = None
    if tree is not None:
        found = _tried(data, shaped(arch, known, k, structures(tree)), arch, known, progress)
    if found is None or found.plan is None:
        found = _tried(data, candidates(arch, known, k), arch, known, progress)
    return replace(found, tree=tree)


@dataclass(frozen=True)
class _Data:
    """One product that a kernel gave."""

    a: Bits
    b: Bits
    d: Bits


def _tried(
    data: list[_Data],
    given: Iterable[Candidate],
    arch: str,
    known: dict[str, Format],
    progress: Progress | None,
) -> Search:
    """Tries candidates on a few elements of the first product, the ones that fit on more of each, and then on
    all."""
    few, *_ = (_Sample(one.a, one.b, one.d, FEW) for one in data)
    more = [_Sample(one.a, one.b, one.d, MORE) for one in data]
    fits: list[Plan] = []
    scores: list[tuple[int, Plan]] = []
    tried = 0
    for candidate in given:
        for equal, plan in few.equal(candidate):
            tried += 1
            scores.append((equal, plan))
            fits += [plan] if equal == few.count else []
        if progress is not None:
            progress(tried, 0)
    if not tried:
        raise OperandError(f"no instruction of {arch} takes {known['a'].name} and {known['b'].name}")
    fits = [plan for plan in fits if all(one.equal_plan(plan) == one.count for one in more)]
    found = fits[:MOST_WHOLE]
    for one in data:
        found = _of_all(one.a, one.b, one.d, found, progress)
    scores.sort(key=lambda pair: -pair[0])
    near = sorted(((more[0].equal_plan(plan), plan) for _, plan in scores[:8]), key=lambda pair: -pair[0])
    the_first = told(found, data[0].d.shape, data[0].a.shape[1], len(data))
    return Search(the_first, tried, len(fits[MOST_WHOLE:]), more[0].count, tuple(near[:3]))


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
        first = self._remembering(candidate.plans[0])
        found = parts(first.plan, self.k)
        if (len(found) == 1 and len(found[0]) == 1) or first.plan.options.products:
            return [(self.equal_plan(plan), plan) for plan in candidate.plans]
        for plan in candidate.plans:
            self._remembering(plan).remember(first.chains_of(found))
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
            alone = slice(0, 1)
            return self._count(Block(plan, self.arrays, alone, alone, self.k, lambda dots: None).result())
        return self._count(self._remembering(plan).result())

    def _remembering(self, plan: Plan) -> _Remembering:
        return _Remembering(plan, self.arrays, self.k, self.chains)

    def _count(self, codes: Bits) -> int:
        return int(np.count_nonzero(codes[:, 0, 0] == self.d))


class _Remembering(Block):
    """A block of single elements that keeps the results of chains: most candidates share most of theirs, and
    those of one candidate with equally many steps run at once."""

    def __init__(self, plan: Plan, arrays: dict[str, Bits], k: int, chains: dict[object, Bits]) -> None:
        super().__init__(plan, arrays, slice(0, 1), slice(0, 1), k, lambda dots: None)
        self.chains = chains

    def chained(self, runs: Runs, seed: Bits | None) -> Bits:
        """As Block.chained, once."""
        self.remember([runs])
        return self.chains[self._key(runs)]

    def remember(self, many: Iterable[Runs]) -> None:
        """Computes chains that are not known yet."""
        by_length: dict[int, list[Runs]] = {}
        for runs in many:
            if self._key(runs) not in self.chains:
                by_length.setdefault(sum(map(len, runs)), []).append(runs)
        for steps, alike in by_length.items():
            d = self._together(alike, steps)
            for i, runs in enumerate(alike):
                self.chains[self._key(runs)] = d[:, i, None, None]

    def chains_of(self, found: list[list[Runs]]) -> Iterator[Runs]:
        """All chains of these parts."""
        every = self.plan.promoted_steps
        for runs in (runs for slices in found for runs in slices):
            yield from intervals(runs, every) if every else [runs]

    def _key(self, runs: Runs) -> object:
        return (
            self.plan.instruction,
            self.plan.options.convert,
            self.plan.options.order,
            self._edge(),
            tuple(runs),
        )

    def _edge(self) -> object:
        """Where `edge: first` puts the elements depends on the parts."""
        options = self.plan.options
        return (options.part, options.split_k, options.tile_k) if options.edge == "first" else options.tile_k

    def _together(self, alike: list[Runs], steps: int) -> Bits:
        """Codes (elements, chains, 1, 1) of d after chains of equally many steps, from zero."""
        unit = self.plan.instruction
        numbers = np.array([[step for run in runs for step in run] for runs in alike], np.int64)
        first, last = int(numbers.min()), int(numbers.max()) + 1
        index = places(self.plan, self.k, first, last - first)
        if index is None:
            index = np.arange(first * unit.k, last * unit.k)
        taken = np.minimum(index.reshape(-1, unit.k)[numbers - first].reshape(len(alike), -1), self.k)
        a, b = (self._resting(name)[:, taken] for name in "ab")
        d = np.zeros((self.group, len(alike), 1, 1), unit.formats["c"].dtype)
        for piece in pieces([range(steps)], self.longest):
            at, left = piece.start, len(piece)
            while left:
                count = 1 << left.bit_length() - 1
                which = slice(at * unit.k, (at + count) * unit.k)
                operands = {"a": a[:, :, None, which], "b": b[:, :, which, None], "c": d}
                d = chain.run(unit, count, operands, 1, 1)
                at, left = at + count, left - count
        return d

    def _resting(self, name: str) -> Bits:
        """An operand (elements, K + 1) in the instruction's format, what is at rest last."""
        source, target = self.plan.formats[name], self.plan.instruction.formats[name]
        key = name, source.name, target.name, self.plan.options.convert
        if key not in self.chains:
            codes = convert_codes(
                self.arrays[name].reshape(self.group, -1), source, target, self.plan.options.convert
            )
            rest = np.full((self.group, 1), self.plan.instruction.at_rest(name), codes.dtype)
            self.chains[key] = np.concatenate([codes, rest], 1)
        return self.chains[key]


def _of_all(a: Bits, b: Bits, d: Bits, fits: list[Plan], progress: Progress | None) -> list[Plan]:
    """Those that have every element."""

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total)

    return [plan for plan in fits if np.array_equal(gemm(a, b, plan, progress=tell), d)]
