"""Campaigns on the CPU: structured operands through its instruction and through the C core.

`Bench` is what hw_capture.campaign.run takes. Operands depend on nothing but seed, kind and tile number.
Structured dot products are drawn by the thousand, in tiles of rows of A, columns of B and elements of C; then
each tile of A meets each of B, crosswise: first as they were drawn, which the diagonals keep, then in turns.
`Workers` are processes that share a campaign; what they count is added when a whole launch is done.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from golden import stimuli
from golden.catalog.lookup import instruction
from golden.model.engine import Engine
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.processes import begin_worker
from golden.program.signature import Bits
from hw_capture.campaign.run import ALL_KINDS
from hw_capture.campaign.source import COUNTS, CPU_TILE, RECORDS
from hw_capture.cpu import machine
from hw_capture.cpu.machine import Machine
from hw_capture.errors import DeviceError

_TILES = 256
"""Tiles that are drawn at a time, of one kind."""
_TURNS = _TILES
"""How often they meet: each of A and each of B once."""
_FEW = 16 * _TILES
"""Tiles that are not worth the start of a worker."""


@dataclass(frozen=True)
class Part:
    """Tiles `first` to `first + tiles - 1` of a series; all are of one chunk."""

    seed: int
    kind: int
    first: int
    tiles: int


@dataclass
class Found:
    """What tiles gave: counts by COUNTS, and the first mismatches."""

    counts: dict[str, int]
    records: list[dict[str, Any]]

    def add(self, other: Found) -> None:
        """Adds what other tiles gave."""
        for name, count in other.counts.items():
            self.counts[name] += count
        self.records += other.records[: RECORDS - len(self.records)]


class Workers:
    """Processes of this machine, one for each processor; with one alone, this process."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0))
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def submit(self, task: Callable[..., Found], *arguments: Any) -> Future[Found]:
        """Starts a function of a module in an idle process."""
        if self._pool is None:
            # Fresh processes: a fork of one that has threads (the C core's) can hang.
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.jobs, spawn, begin_worker)
        return self._pool.submit(task, *arguments)


class Bench:
    """An instruction on this CPU against the model; see hw_capture.campaign.run.Bench."""

    launch_seconds = 2.0  # long enough for every worker to draw and cross chunks of its own

    def __init__(self, cpu: Machine, ins: Instruction, workers: Workers | None = None) -> None:
        """Raises DeviceError where this CPU cannot execute the instruction."""
        if reason := cpu.missing(ins):
            raise DeviceError(reason)
        self.ins, self.sass, self.faults = ins, (ins.name,), dict[str, Any]()
        self._cpu, self._workers = cpu, workers or Workers(1)
        self._found = Found(dict.fromkeys(COUNTS, 0), [])

    def launch(self, seed: int, first: int, tiles: int, kind: int) -> None:
        """Executes and compares tiles first, ... first + tiles - 1.

        Raises:
            DeviceError: a worker was killed.
        """
        launched = Found(dict.fromkeys(COUNTS, 0), [])
        # Several parts for each worker, so that none waits long for the others.
        each = 4
        parts = parts_of(seed, first, tiles, kind, each * self._workers.jobs)
        if self._workers.jobs == 1 or tiles <= _FEW:
            for part in parts:
                launched.add(compare(self._cpu, self.ins, part))
        else:
            ins = self.ins
            waiting = [self._workers.submit(_in_worker, ins.architecture, ins.name, part) for part in parts]
            try:
                for future in waiting:
                    launched.add(future.result())
            except BrokenProcessPool:
                raise DeviceError(f"{ins.name}: a worker was killed; is there enough memory?") from None
            finally:
                for future in waiting:
                    future.cancel()
        self._found.add(launched)

    def counts(self) -> dict[str, int]:
        """Everything counted since the bench was made, by COUNTS."""
        return dict(self._found.counts)

    def records(self, count: int) -> list[dict[str, Any]]:
        """The first `count` mismatches, at most RECORDS."""
        return self._found.records[: min(count, RECORDS)]


def parts_of(seed: int, first: int, tiles: int, kind: int, wanted: int) -> Iterator[Part]:
    """Tiles cut at the ends of chunks, and into about `wanted` parts of whole turns."""
    chunk = _TILES * _TURNS
    most = max(1, tiles // (wanted * _TILES)) * _TILES
    while tiles:
        count = min(tiles, most, chunk - first % chunk)
        yield Part(seed, kind, first, count)
        first, tiles = first + count, tiles - count


def compare(cpu: Machine, ins: Instruction, part: Part) -> Found:
    """Executes tiles on the CPU and in the core, and counts."""
    found = Found(dict.fromkeys(COUNTS, 0), [])
    chunk, place = divmod(part.first, _TILES * _TURNS)
    drawn = _drawn(ins.architecture, ins.name, part.seed, chunk, part.kind)
    left = part.tiles
    while left:
        turn, at = divmod(place, _TILES)
        count = min(left, _TILES - at)
        _compare(cpu, ins, drawn, turn, slice(at, at + count), part.first + part.tiles - left, found)
        place, left = place + count, left - count
    return found


def _in_worker(architecture: str, name: str, part: Part) -> Found:
    return compare(machine.open(), instruction(architecture, name), part)


@dataclass(frozen=True)
class Drawn:
    """A chunk's tiles: codes of A (tiles, 16, k), B (tiles, k, 16), C (tiles, 16, 16), and what the CPU reads
    for A and B."""

    kind: str
    a: Bits
    b: Bits
    c: Bits
    a_words: Bits
    b_words: Bits


@lru_cache(maxsize=2)
def _drawn(architecture: str, name: str, seed: int, chunk: int, kind: int) -> Drawn:
    ins = instruction(architecture, name)
    kind_name = stimuli.KINDS[chunk % len(stimuli.KINDS) if kind == ALL_KINDS else kind]
    dots = stimuli.generate(ins, kind_name, _TILES * CPU_TILE, np.random.default_rng([seed, chunk]))
    a, b, c = (dots[x].reshape(_TILES, CPU_TILE, *dots[x].shape[1:]) for x in "abc")
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b.swapaxes(1, 2))
    row, column = np.indices((CPU_TILE, CPU_TILE))
    return Drawn(kind_name, a, b, c[:, np.maximum(row, column)], *machine.crossed_words(ins, a, b))


def _compare(
    cpu: Machine, ins: Instruction, drawn: Drawn, turn: int, tiles: slice, first: int, found: Found
) -> None:
    """One turn: tile i of A with tiles i + turn of B and i + 7 turn of C."""
    index = np.arange(_TILES)[tiles]
    of_b, of_c = (index + turn) % _TILES, (index + 7 * turn) % _TILES
    a, b, c = drawn.a[tiles], drawn.b[of_b], drawn.c[of_c]
    state = c.astype(np.uint32)
    cpu.crossed(ins, drawn.a_words[tiles], drawn.b_words[of_b], state)
    engine = ins.engine_of_one
    assert isinstance(engine, Engine)  # no instruction of a CPU has modes of its own
    wanted = engine.tiles({"a": a, "b": b, "c": c}, CPU_TILE, CPU_TILE)
    found.counts["dots"] += state.size
    for name, count in zip(COUNTS[2:], _classes(state, ins.formats["d"]), strict=True):
        found.counts[name] += count
    if np.array_equal(state, wanted):
        return
    wrong = np.argwhere(state != wanted)
    found.counts["mismatches"] += len(wrong)
    for tile, row, column in wrong[: RECORDS - len(found.records)].tolist():
        codes = {"a": a[tile, row], "b": b[tile, :, column]}
        results = {"c": c, "d": state, "expected": wanted}
        found.records.append(
            {"tile": first + tile, "kind": drawn.kind, "row": row, "column": column}
            | {name: [f"{int(code):#x}" for code in given] for name, given in codes.items()}
            | {name: f"{int(given[tile, row, column]):#x}" for name, given in results.items()}
        )


def _classes(codes: Bits, fmt: Format) -> tuple[int, int, int, int, int]:
    """NaNs, infinities, zeros, subnormal numbers and others among results."""
    if not fmt.is_float:
        zeros = codes.size - int(np.count_nonzero(codes))
        return 0, 0, zeros, 0, codes.size - zeros
    smallest = 1 << fmt.fraction_bits
    infinity = (1 << fmt.exponent_bits) - 1 << fmt.fraction_bits
    magnitude = codes & codes.dtype.type(infinity + smallest - 1)
    masks = magnitude > infinity, magnitude == infinity, magnitude == 0, magnitude < smallest
    nan, infinite, zero, tiny = (int(np.count_nonzero(mask)) for mask in masks)
    return nan, infinite, zero, tiny - zero, codes.size - nan - infinite - tiny
