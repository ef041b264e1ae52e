"""The C core on operands that lie anywhere: what it gives is what it gives for plain copies of them.

    python bench/layouts.py --seconds 120 --jobs 16 --seed 1

Programs of the catalog and random units (those of bench/cores.py), 1 to 131 matrices or dot products of any
m and n. Each operand lies in memory by chance: its dimensions in any order, in steps of either sign, padded,
repeated, at any address, at the end or the beginning of memory whose neighbour pages may not be touched.
Copies run as blocks of integers, or by the interpreter, or (--old) by an earlier build of the core. Exit
status 1: a result, or an operand, differs. A touched neighbour page ends the process with a signal.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import repeat
from typing import Any

os.environ["MMAGOLD_THREADS"] = "1"

import cores
import numpy as np
from random_units import accepted
from tiles import CLASSES, Tiles

from golden.model import engine
from golden.model.instruction import Instruction

ROWS = (1, 3, 4, 5, 8, 12, 16, 20, 24, 32, 64)
COLUMNS = (1, 2, 5, 8, 9, 16, 24, 32, 40, 48, 64, 72, 128)
UNITS = 1 << 24
"""Seeds of random units."""


class Fence:
    """Memory between two pages that may not be touched."""

    def __init__(self, pages: int = 1 << 14) -> None:
        page = mmap.PAGESIZE
        self.memory = mmap.mmap(-1, (pages + 2) * page)
        self.start, self.size = page, pages * page
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        for at in (base, base + page + self.size):
            prot_none = 0
            if libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(page), prot_none):
                raise OSError(ctypes.get_errno(), "mprotect")

    def take(self, count: int, at_end: bool) -> np.ndarray[Any, Any]:
        """`count` bytes at one end."""
        first = self.start + (self.size - count if at_end else 0)
        return np.frombuffer(self.memory, np.uint8, count, first)


@cache
def fence(name: str) -> Fence:
    """That of an operand."""
    return Fence()


def laid_out(name: str, codes: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """An operand somewhere in memory, and a copy of it; repeated dimensions change what it holds."""
    for axis in range(codes.ndim):
        if rng.random() < 0.1:
            codes = np.broadcast_to(codes.take([0], axis), codes.shape)
    copy = np.ascontiguousarray(codes)
    order = (
        [*range(codes.ndim)] if rng.random() < 0.6 else [int(axis) for axis in rng.permutation(codes.ndim)]
    )
    steps, sizes = [0] * codes.ndim, 1
    for axis in reversed(order):
        steps[axis] = sizes
        if codes.shape[axis] > 1 and not np.any(codes != codes.take([0], axis)) and rng.random() < 0.7:
            steps[axis] = 0  # one for all
            continue
        sizes *= codes.shape[axis] + (int(rng.integers(0, 3)) if rng.random() < 0.2 else 0)
    width = codes.itemsize
    at_end = rng.random() < 0.7
    odd = int(rng.integers(1, 64)) if at_end and rng.random() < 0.3 else 0
    reach = sum(step * (size - 1) for step, size in zip(steps, codes.shape, strict=True)) + 1
    memory = fence(name).take(reach * width + odd, at_end)
    view: Any = np.ndarray(codes.shape, codes.dtype, memory.data, 0, [step * width for step in steps])
    for axis in range(codes.ndim):
        if steps[axis] and rng.random() < 0.15:
            view = np.flip(view, axis)
    view[...] = copy
    return view, copy


def drawn(rng: np.random.Generator) -> Instruction:
    """A program of the catalog, or a random unit."""
    names = [*cores.programs()]
    if rng.random() < 0.6:
        return cores.programs()[names[int(rng.integers(len(names)))]]
    maker = [*cores.MAKERS][int(rng.integers(len(cores.MAKERS)))]
    return accepted(cores.MAKERS[maker], int(rng.integers(UNITS)))[1]


def case(ins: Instruction, rng: np.random.Generator, old: str) -> tuple[int, list[str]]:
    """One program on operands of one class in one layout, at every instruction set: results, and what
    differs."""
    batches = (1, 2, 3, 5, 7, 8, 16, 17, 33, 64, 65, 131)
    batch, m, n = (int(rng.choice(values)) for values in (batches, ROWS, COLUMNS))
    if rng.random() < 0.4:
        m, n = ins.m, ins.n
    shared = bool(rng.random() < 0.03)
    os.environ["MMAGOLD_THREADS"] = "3" if shared else "1"
    # Of a case, so that every case is short.
    most_dots = 6000
    # Of one that threads share, and of which each of them takes several parts.
    many_dots = 80_000
    batch = many_dots // (m * n) if shared else max(1, min(batch, most_dots // (m * n)))
    tiles = Tiles(ins, rng, m, n, batch)
    classes = CLASSES if {"a", "b", "c"} <= tiles.shapes.keys() else cores.WITHOUT_C
    what = classes[int(rng.integers(len(classes)))]
    operands = replace(ins, m=m, n=n).complete(getattr(tiles, what)(), True)
    placed = {name: laid_out(name, codes, rng) for name, codes in operands.items()}
    given, copies = ({name: pair[i] for name, pair in placed.items()} for i in range(2))
    lanes, wrong = bool(rng.random() < 0.25), list[str]()
    core = cores.other(old) if old else engine.library()
    os.environ["MMAGOLD_SIMD"] = cores.LEVELS[-1]
    wanted = cores.matrices(ins, core, copies, (m, n), lanes, fast=bool(old))
    for level in cores.LEVELS:
        os.environ["MMAGOLD_SIMD"] = level
        got = cores.matrices(ins, engine.library(), given, (m, n), lanes)
        changed = [name for name in given if not np.array_equal(given[name], copies[name])]
        if not np.array_equal(got, wanted) or changed:
            strides = {name: codes.strides for name, codes in given.items()}
            wrong.append(f"{ins.architecture} {ins.name}, {level}, {batch} of {m} x {n}, {strides} {changed}")
    return wanted.size * len(cores.LEVELS), wrong


def run(seed: int, seconds: float, old: str) -> tuple[int, int, list[str]]:
    """Cases until the time is over: how many, results, and what differs."""
    rng, cases, results, wrong = np.random.default_rng(seed), 0, 0, list[str]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ins = drawn(rng)
        for _ in range(8):
            number, found = case(ins, rng, old)
            cases, results = cases + 1, results + number
            wrong += [f"seed {seed}, case {cases}: {line}" for line in found]
    return cases, results, wrong


def main() -> int:
    """Command line; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--old", default="", help="an earlier build of the core, which runs the copies")
    options = parser.parse_args()
    seeds = range(options.seed * 1000, options.seed * 1000 + options.jobs)
    with ProcessPoolExecutor(options.jobs) as pool:
        done = [*pool.map(run, seeds, repeat(options.seconds), repeat(options.old))]
    wrong = [line for _, _, found in done for line in found]
    print(*wrong[:20], sep="\n", file=sys.stderr, end="\n" if wrong else "")
    cases, results = sum(one[0] for one in done), sum(one[1] for one in done)
    levels = ", ".join(cores.LEVELS)
    print(f"{cases:,} layouts, {results:,} results at {levels} together: {len(wrong)} layouts differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
