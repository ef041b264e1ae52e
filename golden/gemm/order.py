"""Which steps of K belong to one chain: parts of a split, slices of each tile, and the sums that are
promoted."""

from __future__ import annotations

from golden.gemm.plan import Plan

Runs = list[range]
"""Steps of the instruction in the order of a chain: each range is of steps that follow one another in K."""


def steps_of(plan: Plan, k: int) -> int:
    """Steps of the instruction in K elements: those of whole tiles, as kernels run them, the last of which
    may reach beyond K."""
    return -(-k // (plan.tile_steps * plan.instruction.k)) * plan.tile_steps


def part_steps(plan: Plan, k: int) -> int:
    """Steps in each part of K but the last: whole tiles."""
    if plan.options.part is not None:
        return plan.options.part // plan.instruction.k
    tiles = -(-steps_of(plan, k) // plan.tile_steps)
    return max(-(-tiles // plan.options.split_k), 1) * plan.tile_steps


def divides(plan: Plan, k: int) -> bool:
    """Whether tiles and parts divide K, so that no zeros follow."""
    unit = plan.options.part or plan.options.split_k * plan.tile_steps * plan.instruction.k
    return k % unit == 0


def parts(plan: Plan, k: int) -> list[list[Runs]]:
    """For each part of K that holds any step, for each slice, its steps in order. A slice of a K so short
    that it has no step of it is left out."""
    total, size = steps_of(plan, k), part_steps(plan, k)
    return [
        [
            found
            for w in range(plan.options.slices)
            if (found := _slice(plan, first, min(first + size, total), w))
        ]
        for first in range(0, total, size)
    ]


def _slice(plan: Plan, first: int, last: int, which: int) -> Runs:
    """The steps of one slice among first ... last; tiles begin at `first`."""
    if plan.options.slices == 1:
        return [range(first, last)]
    width = plan.tile_steps // plan.options.slices
    starts = range(first + which * width, last, plan.tile_steps)
    return [range(start, min(start + width, last)) for start in starts]


def intervals(runs: Runs, count: int) -> list[Runs]:
    """The same steps in groups of `count`; the last may have fewer."""
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
