"""The sum tree of a kernel that can be called (FPRev, arXiv 2411.00442; MMA-Sim, section III-C).

A large M in one product, -M in another, and the same y in all others: every y that meets M before -M does is
lost, later ones are left. The number of lost y is the number of products below the node of the sum where the
two meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import MmagoldError, OperandError, ShapeError, one_line
from golden.kernels.sum_tree import Node, Pair, meeting_sizes, tree_of
from golden.number.arrays import plain
from golden.number.formats import Format, from_float, get_format, native_dtype, to_float

Bits = npt.NDArray[Any]
Kernel = Callable[[Bits, Bits], npt.ArrayLike]
"""kernel(A, B) -> D on raw codes."""
_MOST = 1 << 24
"""The largest M, N or K of a call."""


@dataclass(frozen=True)
class Product:
    """A kernel that can be called, with the shape and the formats that it takes.

    Attributes:
        shape: M, N, K.
        formats: of a, b and d.
    """

    kernel: Kernel
    shape: tuple[int, int, int]
    formats: dict[str, Format]

    def __call__(self, a: Bits, b: Bits) -> Bits:
        """D as raw codes.

        Raises:
            ShapeError, DTypeError: what the kernel answers is no D.
            OperandError: the kernel fails; the message has what it raised.
        """
        m, n, _ = self.shape
        try:  # it may work in place, and answer in a buffer of its own
            given = self.kernel(a.copy(), b.copy())
        except MmagoldError:
            raise
        except Exception as error:
            what = one_line(error)
            raise OperandError(f"the kernel did not answer, it raised {what}") from error
        d, fmt = plain(given, "D").copy(), self.formats["d"]
        if d.shape != (m, n):
            raise ShapeError(f"the kernel's D has shape {d.shape}, expected {(m, n)}")
        if d.dtype == native_dtype(fmt):
            d = d.view(fmt.dtype)
        fmt.check(d, "D")
        return d


def parse_shape(text: str) -> tuple[int, int, int]:
    """M, N, K of "64x48x208".

    Raises:
        OperandError: it is none.
    """
    sizes = [int(word) if word.isascii() and word.isdigit() else 0 for word in text.split("x")]
    if len(sizes) != 3 or not all(0 < size <= _MOST for size in sizes):
        raise OperandError(f"'{text}' is no shape, expected MxNxK such as 96x160x640")
    return sizes[0], sizes[1], sizes[2]


def product(kernel: Kernel, shape: Sequence[int], formats: dict[str, str]) -> Product:
    """A kernel with what it takes, checked.

    Raises:
        OperandError, UnknownNameError: formats or shape are missing or wrong.
    """
    sizes = list(shape) if isinstance(shape, Sequence) or np.ndim(shape) else []
    if len(sizes) != 3 or not all(isinstance(x, (int, np.integer)) and 0 < x <= _MOST for x in sizes):
        raise OperandError(f"shape is {_shown(shape)}, expected (M, N, K)")
    check_formats(formats)
    if set(formats) != {"a", "b", "d"}:
        raise OperandError(f"formats have the keys {', '.join(formats) or 'none'}, expected a, b and d")
    m, n, k = map(int, sizes)
    return Product(kernel, (m, n, k), {name: get_format(fmt) for name, fmt in formats.items()})


def check_formats(formats: Any) -> None:
    """Raises OperandError where formats are no dict of names."""
    if not isinstance(formats, Mapping) or not all(
        isinstance(x, str) for pair in formats.items() for x in pair
    ):
        raise OperandError(
            f"formats is {_shown(formats)}, expected a dict such as {{'a': 'f16', 'b': 'f16', 'd': 'f32'}}"
        )


def _shown(value: Any) -> str:
    """An argument in one line."""
    return " ".join(repr(value).split())


def sum_tree(kernel: Kernel, shape: Sequence[int], formats: dict[str, str]) -> Node | None:
    """Finds the order in which a kernel adds, by calling it. `str(tree)` prints it.

    Args:
        kernel: kernel(A, B) -> D on raw codes, A (M, K), B (K, N), D (M, N). It must use one order for all
            elements of D.
        shape: (M, N, K) of the kernel's calls.
        formats: names of the formats by "a", "b" and "d".

    Returns:
        The tree. None if the formats cannot show it, if the results are no counts (a unit that keeps small
        terms next to large ones), or if they fit no tree.

    Raises:
        OperandError, UnknownNameError, ShapeError, DTypeError: of the arguments or the answers.
    """
    return tree_of_kernel(product(kernel, shape, formats))


def tree_of_kernel(kernel: Product) -> Node | None:
    """As `sum_tree`, of a kernel whose shape and formats were checked."""
    return next(filter(None, (_Asking(kernel, marks).tree() for marks in _marks(kernel))), None)


# Marks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Marks:
    """Exponents of the operands whose products are y (both small) and M.

    `crossed`: M is a large number by a small one, so that each row of A and each column of B have a place of
    their own, and every element of D is a question, with y in all other places. Else M is two large numbers,
    the questions are the elements of the diagonal, and only `lit` places have y at a time, the others zero.
    """

    small: tuple[int, int]
    large: tuple[int, int]
    lit: int
    crossed: bool

    @property
    def unit(self) -> int:
        """Exponent of y."""
        return sum(self.small)

    def pairs(self, m: int, n: int, k: int) -> float:
        """Pairs of places that a call answers, at most."""
        return m * n if self.crossed else min(m, n) / -(-k // self.lit)


def _marks(kernel: Product) -> list[_Marks]:
    """Ways to ask, the one that answers most first."""
    a, b, d = (kernel.formats[name] for name in "abd")
    if not (a.is_float and b.is_float and d.is_float and a.signed and b.signed):
        return []
    kept = 53 if "f64" in (a.name, d.name) else 24
    m, n, k = kernel.shape
    found = []
    for top in (1 << 14, 14):  # the second one for sums that are rounded to f16
        for crossed in (True, False):
            found += [made for made in [_mark(a, b, d, kept, crossed, k, top)] if made is not None]
    return sorted(dict.fromkeys(found), key=lambda one: -one.pairs(m, n, k))


def _mark(a: Format, b: Format, d: Format, kept: int, crossed: bool, k: int, top: int) -> _Marks | None:
    """The widest marks of operands with these formats, M below 2^top; None where none are wide enough."""
    lowest_d = d.min_exponent - d.fraction_bits
    ranges = [(max(_tiniest(fmt), -120), min(fmt.max_exponent, 100)) for fmt in (a, b)]
    sums = 120 if kept == 24 else 900
    if kept == 53:
        ranges = [(-200, 200), (-200, 200)]
    low = [ranges[0][0], ranges[1][0]]
    while sum(low) < max(lowest_d, -sums):  # y has to be a number of D's format
        i = int(low[1] < low[0])
        low[i] += 1
    if crossed:
        reach = min(ranges[0][1] - low[0], ranges[1][1] - low[1], min(top, sums) - sum(low))
        large = low[0] + reach, low[1] + reach
    else:
        reach = min(sum(high for _, high in ranges), top, sums) - sum(low)
        first = min(ranges[0][1], low[0] + reach)
        large = first, low[1] + reach - (first - low[0])
    most = min(d.fraction_bits + 1, 14 if crossed else 11, reach - kept - 2)
    needed = max(k - 1, 1).bit_length()
    if most < (needed if crossed else 2):
        return None
    return _Marks((low[0], low[1]), large, 1 << min(most, needed), crossed)


def _tiniest(fmt: Format) -> int:
    return fmt.min_exponent - fmt.fraction_bits


# Questions --------------------------------------------------------------------------------------------------


class _Unreadable(Exception):
    """An answer is no count of y."""


class _Asking:
    """The questions to one kernel with one kind of marks."""

    def __init__(self, kernel: Product, marks: _Marks) -> None:
        self.kernel, self.marks = kernel, marks
        self.m, self.n, self.k = kernel.shape
        if marks.lit >= self.k:
            self.chunks = [np.arange(self.k)]
        else:  # spread, so that a question sees all of K
            count = -(-self.k // marks.lit)
            self.chunks = [np.arange(first, self.k, count) for first in range(count)]

    def tree(self) -> Node | None:
        """The tree, None where answers are no counts or of no tree."""
        try:
            if not self._counts_all():
                return None
            whole = tree_of(range(self.k), self.sizes)
            return whole if whole is not None and self._fits(whole) else None
        except _Unreadable:
            return None

    def sizes(self, pairs: Sequence[Pair]) -> list[int]:
        """For each pair of places, how many places lie below the node where they meet."""
        sizes = np.zeros(len(pairs), np.int64)
        for which, chunks in self._calls(pairs):
            if self.marks.crossed:
                sizes[which] = self._crossed(pairs, which)
            else:
                sizes[which] += self._diagonal(pairs, which, chunks)
        return [size + 2 for size in sizes.tolist()]

    def _calls(self, pairs: Sequence[Pair]) -> Iterator[tuple[list[int], list[int]]]:
        """Which pairs, and which chunks of the lit places, go into one call."""
        if self.marks.crossed:
            yield from ((which, [0]) for which in self._crossings(pairs))
            return
        rows = min(self.m, self.n)
        for first in range(0, len(self.chunks), rows):
            chunks = list(range(first, min(first + rows, len(self.chunks))))
            room = max(rows // len(chunks), 1)
            for at in range(0, len(pairs), room):
                yield list(range(at, min(at + room, len(pairs)))), chunks

    def _crossings(self, pairs: Sequence[Pair]) -> Iterator[list[int]]:
        """Pairs with no more first places than D has rows, and no more second ones than columns."""
        left, right, taken = set[int](), set[int](), list[int]()
        for index in sorted(range(len(pairs)), key=lambda at: pairs[at]):
            i, j = pairs[index]
            if (i not in left and len(left) == self.m) or (j not in right and len(right) == self.n):
                yield taken
                left, right, taken = set(), set(), []
            left.add(i)
            right.add(j)
            taken.append(index)
        if taken:
            yield taken

    def _crossed(self, pairs: Sequence[Pair], which: list[int]) -> npt.NDArray[np.int64]:
        """Lost y of a call in which rows have the place of M, columns that of -M."""
        lefts = {i: row for row, i in enumerate(dict.fromkeys(pairs[at][0] for at in which))}
        rights = {j: column for column, j in enumerate(dict.fromkeys(pairs[at][1] for at in which))}
        a, b = (np.full(shape, 2.0**low) for shape, low in zip(self._shapes, self.marks.small, strict=True))
        a[list(lefts.values()), list(lefts)] = 2.0 ** self.marks.large[0]
        b[list(rights), list(rights.values())] = -(2.0 ** self.marks.large[1])
        left = self._left(a, b)
        found = (left[lefts[pairs[at][0]], rights[pairs[at][1]]] for at in which)
        return np.array([self._lost(one, self.k - 2) for one in found], np.int64)

    def _diagonal(self, pairs: Sequence[Pair], which: list[int], chunks: list[int]) -> npt.NDArray[np.int64]:
        """Lost y of a call whose questions are elements of the diagonal: pair by pair, a chunk each."""
        a, b = map(np.zeros, self._shapes)
        questions = [(pairs[at], self.chunks[chunk]) for at in which for chunk in chunks]
        for row, ((i, j), lit) in enumerate(questions):
            a[row, lit], b[lit, row] = (2.0**low for low in self.marks.small)
            a[row, [i, j]] = 2.0 ** self.marks.large[0]
            b[[i, j], row] = 2.0 ** self.marks.large[1], -(2.0 ** self.marks.large[1])
        left = np.diagonal(self._left(a, b))
        lost = [
            self._lost(left[row], len(lit) - int(np.isin(pair, lit).sum()))
            for row, (pair, lit) in enumerate(questions)
        ]
        sums: npt.NDArray[np.int64] = np.array(lost, np.int64).reshape(len(which), len(chunks)).sum(axis=1)
        return sums

    @property
    def _shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return (self.m, self.k), (self.k, self.n)

    def _lost(self, left: float, lit: int) -> int:
        """How many of the lit y are lost."""
        if not 0 <= left <= lit or left != int(left):
            raise _Unreadable
        return lit - int(left)

    def _left(self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """D in units of y."""
        formats = self.kernel.formats
        d = self.kernel(from_float(formats["a"].name, a), from_float(formats["b"].name, b))
        return to_float(formats["d"].name, d) * 2.0**-self.marks.unit

    def _counts_all(self) -> bool:
        """Whether y counts where nothing is large: a kernel that flushes it loses it everywhere."""
        a, b = map(np.zeros, self._shapes)
        b[:] = 2.0 ** self.marks.small[1]
        lit = self.chunks[0]
        a[:, lit] = 2.0 ** self.marks.small[0]
        return bool((self._left(a, b) == len(lit)).all())

    def _fits(self, tree: Node) -> bool:
        """Whether pairs drawn at random have the sizes that the tree says."""
        rng = np.random.default_rng(self.k)
        # Pairs drawn at random that have to fit the tree, too.
        checked = 256
        drawn = [(int(i), int(j)) for i, j in rng.integers(self.k, size=(checked, 2)) if i != j]
        drawn = drawn if self.marks.crossed else drawn[:32]
        return not drawn or meeting_sizes(tree, drawn) == self.sizes(drawn)
