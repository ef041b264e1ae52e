"""Which steps of K belong to one chain: parts of a split, slices of each tile, and the sums that are
promoted."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from golden.kernels.options import leaves
from golden.kernels.plan import Plan

Runs = list[range]
"""Steps of the instruction in the order of a chain: each range is of steps that follow one another in K."""


def steps_of(plan: Plan, k: int) -> int:
    """Steps of the instruction in K elements. Kernels run whole tiles; the last may reach beyond K."""
    return sum(_tiles(plan, length) for length in _lengths(plan, k)) * plan.tile_steps


def _lengths(plan: Plan, k: int) -> tuple[int, ...]:
    """Elements of K in each part."""
    if plan.options.parts is not None:
        return plan.options.parts
    size = _part(plan, k)
    return (size,) * (k // size) + ((k % size,) if k % size else ())


def part_steps(plan: Plan, k: int) -> int:
    """Steps in each part of K but the last: whole tiles."""
    return _tiles(plan, _part(plan, k)) * plan.tile_steps


def divides(plan: Plan, k: int) -> bool:
    """Whether tiles and parts divide K, so that no zeros follow."""
    if plan.options.parts is not None:
        return k % plan.tile == 0
    unit = plan.options.part or plan.options.split_k * plan.tile
    return k % unit == 0


def first_is_filled(plan: Plan, k: int) -> bool:
    """Whether the first tile of a part holds fewer elements than the others, and zeros."""
    return plan.options.edge == "first" and any(length % plan.tile for length in _lengths(plan, k))


def _tiles(plan: Plan, elements: int) -> int:
    """Tiles that hold this number of elements."""
    return -(-elements // plan.tile)


def _part(plan: Plan, k: int) -> int:
    """Elements of K in each part but the last."""
    return plan.options.part or max(-(-_tiles(plan, k) // plan.options.split_k), 1) * plan.tile


def places(plan: Plan, k: int, first: int, steps: int) -> npt.NDArray[np.int64] | None:
    """The elements of K that stand in these steps, k where zeros do; None where they are as they come.

    `edge: first` is how CUTLASS's iterators go through K: the first tile of a part holds what is left when
    all others are full.
    """
    options, tile = plan.options, plan.tile
    index: npt.NDArray[np.int64] = np.arange(first * plan.instruction.k, (first + steps) * plan.instruction.k)
    if options.order is not None:
        ordered: npt.NDArray[np.int64] = index // tile * tile + np.array(options.order)[index % tile]
        return ordered
    if options.products is not None:
        found: npt.NDArray[np.int64] = np.minimum(
            index // (tile * len(options.products)) * tile + index % tile, k
        )
        return found
    if options.edge != "first":
        return None
    part, place = np.divmod(index, part_steps(plan, k) * plan.instruction.k)
    start = part * _part(plan, k)
    length = np.minimum(_part(plan, k), k - start)
    left = (length - 1) % tile + 1
    inside = np.where(place < tile, place, place - tile + left)
    return np.where((place < tile) & (place >= left) | (inside >= length), k, start + inside)


def which_part(plan: Plan, name: str, first: int, steps: int) -> npt.NDArray[np.int64] | None:
    """Which part of A or B (`name`) stands at each place of these steps; None where operands are whole."""
    products = plan.options.products
    if products is None:
        return None
    index: npt.NDArray[np.int64] = np.arange(first * plan.instruction.k, (first + steps) * plan.instruction.k)
    found: npt.NDArray[np.int64] = np.array(products)[index // plan.tile % len(products), "ab".index(name)]
    return found


def before_the_last_product(plan: Plan, runs: Runs) -> tuple[Runs, Runs]:
    """The steps of a tile's chain up to its last product, none of operands that are whole, and the others."""
    products = plan.options.products
    if products is None:
        return [], runs
    (only,) = runs  # a tile that is promoted
    last = only.stop - plan.tile_steps // len(products)
    return [range(only.start, last)], [range(last, only.stop)]


def parts(plan: Plan, k: int) -> list[list[Runs]]:
    """For each part of K that holds any step, for each slice, its steps in order. A slice of a K so short
    that it has no step of it is left out."""
    return [
        [found for w in range(plan.options.slices) if (found := _slice(plan, first, last, w))]
        for first, last in bounds(plan, k)
    ]


def bounds(plan: Plan, k: int) -> tuple[tuple[int, int], ...]:
    """The first step of each part of K, and the step after its last one."""
    return _bounds(_lengths(plan, k), plan.tile, plan.tile_steps)


@lru_cache(maxsize=1024)
def _bounds(lengths: tuple[int, ...], tile: int, tile_steps: int) -> tuple[tuple[int, int], ...]:
    """`bounds` of parts of these lengths: the plans of a search share few of them."""
    return tuple(pairwise(accumulate((-(-length // tile) * tile_steps for length in lengths), initial=0)))


def listed_and_actual(plan: Plan, k: int) -> tuple[int, int]:
    """How many sums `reduce` has numbers for, and how many there are: parts, or the slices of the only one.
    Of an order in words both are 0."""
    order = plan.options.reduce
    if isinstance(order, str):
        return 0, 0
    found = parts(plan, k)
    return len(leaves(order)), len(found) if plan.options.slices == 1 or not found else len(found[0])


def _slice(plan: Plan, first: int, last: int, which: int) -> Runs:
    """The steps of one slice among first ... last; tiles begin at `first`."""
    if plan.options.slices == 1:
        return [range(first, last)]
    width = plan.tile_steps // plan.options.slices
    starts = range(first + which * width, last, plan.tile_steps)
    return [range(start, min(start + width, last)) for start in starts]


def intervals(runs: Runs, count: int) -> list[Runs]:
    """The same steps in groups of `count`; the last may have fewer."""
    if len(runs) == 1:
        return [[run] for run in pieces(runs, count)] or [[]]
    groups: list[Runs] = [[]]
    room = count
    for run in runs:
        while len(run):
            if room == 0:
                groups.append([])
                room = count
            taken, run = run[:room], run[room:]
            groups[-1].append(taken)
            room -= len(taken)
    return groups


def pieces(runs: Runs, most: int) -> Runs:
    """The same steps in ranges of at most `most`."""
    return [run[i : i + most] for run in runs for i in range(0, len(run), most)]
