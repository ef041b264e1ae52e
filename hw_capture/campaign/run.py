"""Runs campaigns: launches of a fraction of a second, counters read after each,
until enough dot products are checked.

    with device.open() as gpu:
        outcome = run(Campaign(gpu, ins), Plan(dots=10**11, seconds=30.0, seed=1))

The operands depend on nothing but seed, kind and tile number,
so a campaign goes on where another ended (`Plan.first`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from golden.model.instruction import Instruction
from golden.stimuli import KINDS
from hw_capture.campaign.source import COUNTS, EXHAUSTIVE, RECORDS, THREADS, device_source, dots_of_tile
from hw_capture.errors import DeviceError, ToolMissing
from hw_capture.gpu import processes
from hw_capture.gpu.device import Device
from hw_capture.kernels import sass, toolchain
from hw_capture.record.capture import target_for

ALL_KINDS = -1
LAUNCH_SECONDS = 0.2
"""How long a launch on a GPU should take."""


class Bench(Protocol):
    """What `run` needs: an instruction that can be executed on tiles and counts.

    launch_seconds: how long a launch should take.
    """

    ins: Instruction
    sass: tuple[str, ...]
    faults: dict[str, Any]
    launch_seconds: float

    def launch(self, seed: int, first: int, tiles: int, kind: int) -> None:
        """Executes tiles first, ... first + tiles - 1 and waits."""

    def counts(self) -> dict[str, int]:
        """Everything counted since the bench was made, by source.COUNTS."""

    def records(self, count: int) -> list[dict[str, Any]]:
        """The first `count` mismatches, at most source.RECORDS."""


@dataclass(frozen=True)
class Plan:
    """How much to check: until `dots` dot products or `seconds` of time, whichever is first.

    kind: an index of golden.stimuli.KINDS, ALL_KINDS in turn, or source.EXHAUSTIVE. first: number of the
        first tile.
    """

    dots: float
    seconds: float
    seed: int = 1
    kind: int = ALL_KINDS
    first: int = 0


@dataclass
class Outcome:
    """What one campaign found.

    next_tile: where to go on. results: the unit's results by class. faults: what was planted
        in the golden arithmetic.
    """

    instruction: str
    architecture: str
    sass: tuple[str, ...]
    seed: int
    kind: str
    first_tile: int
    next_tile: int
    dots: int
    mismatches: int
    seconds: float
    results: dict[str, int] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    faults: dict[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Dot products checked a second."""
        return self.dots / self.seconds if self.seconds else 0.0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a campaign; `outcome` is what was checked before."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def kind_name(kind: int) -> str:
    """The name of a plan's kind."""
    return {ALL_KINDS: "all", EXHAUSTIVE: "exhaustive"}.get(kind) or KINDS[kind]


class Campaign:
    """One instruction's campaign, compiled and loaded."""

    launch_seconds = LAUNCH_SECONDS

    def __init__(self, gpu: Device, ins: Instruction, faults: Mapping[str, Any] | None = None) -> None:
        """Compiles for the GPU's own architecture.
        `faults` plants faults in the golden arithmetic (golden.model.device_text.source).

        Raises:
            NoKernelError, CompileError, ToolMissing, SassError, DeviceError: as their names say.
        """
        self.ins, self.faults, self._gpu, self._unit = (
            ins,
            dict(faults or {}),
            gpu,
            device_source(ins, faults),
        )
        cubin = toolchain.compile(self._unit.source, target_for(ins.architecture, gpu.facts()))
        self.sass = _found(ins, cubin)
        self._kernel = gpu.load(cubin).get("campaign")
        self._kernel.function.set_attribute(
            gpu.cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, self._unit.shared_bytes
        )
        self._counts = gpu.empty(8 * len(COUNTS), 0)
        self._records = gpu.empty(8 * RECORDS * self._unit.record_words, 0)

    def launch(self, seed: int, first: int, tiles: int, kind: int) -> None:
        """See Bench."""
        # Blocks of one multiprocessor, at most.
        blocks_an_sm = 16
        blocks = min(-(-tiles // self._unit.groups), self._gpu.sm_count * blocks_an_sm)
        numbers = np.uint64(seed), np.uint64(first), np.uint64(tiles), np.int32(kind)
        self._kernel(
            *numbers, self._counts, self._records, grid=blocks, block=THREADS, shared=self._unit.shared_bytes
        )

    def counts(self) -> dict[str, int]:
        """See Bench."""
        found = self._gpu.download(self._counts, (len(COUNTS),), np.uint64)
        return dict(zip(COUNTS, found.tolist(), strict=True))

    def records(self, count: int) -> list[dict[str, Any]]:
        """See Bench."""
        shape = (RECORDS, self._unit.record_words)
        rows = self._gpu.download(self._records, shape, np.uint64)[: min(count, RECORDS)].tolist()
        return [_record(row, self.ins.stored_k, bool(self.ins.scale_block)) for row in rows]


def _found(ins: Instruction, cubin: bytes) -> tuple[str, ...]:
    """The matrix instructions in the compiled campaign; none where no disassembler is installed.

    Raises:
        SassError: they are not what the spec says that the instruction becomes: the campaign would check
            another one.
    """
    try:
        disassembly = toolchain.disassemble(cubin)
    except ToolMissing:
        return ()
    sass.check_body(ins, sass.functions(disassembly).get("campaign", []))
    return tuple(dict.fromkeys(sass.matrix_instructions(disassembly)))


def _record(row: list[int], k: int, scaled: bool) -> dict[str, Any]:
    head = dict(zip(("tile", "kind", "row", "column", "c", "d", "expected"), row, strict=False))
    codes = {name: f"{head[name]:#x}" for name in ("c", "d", "expected")}
    a, b, scales = row[7 : 7 + k], row[7 + k : 7 + 2 * k], row[7 + 2 * k :]
    operands = {"a": a, "b": b}
    if scaled:
        operands |= {"scale_a": scales[: len(scales) // 2], "scale_b": scales[len(scales) // 2 :]}
    hexadecimal = {name: [f"{code:#x}" for code in given] for name, given in operands.items()}
    return {**head, "kind": kind_name(head["kind"]), **codes, **hexadecimal}


@contextmanager
def compiled_ahead(
    chosen: Iterable[Instruction], target: str, faults: Mapping[str, Any] | None, jobs: int
) -> Iterator[None]:
    """While the block runs, compiles and disassembles campaigns into the toolchain's cache,
    `jobs` at a time."""

    def build(ins: Instruction) -> None:
        toolchain.disassemble(toolchain.compile(device_source(ins, faults).source, target))

    pool = ThreadPoolExecutor(jobs)
    try:
        for ins in chosen:
            pool.submit(build, ins)  # an error comes again where the campaign is compiled
        yield
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        processes.stop_all()
        pool.shutdown()


def run(bench: Bench, plan: Plan, progress: Callable[[int, int], None] | None = None) -> Outcome:
    """Checks until the plan is fulfilled. `progress` gets the number of dot products so far and in all after
    every launch.

    Raises:
        DeviceError: a launch failed, or counted other than it should.
        Interrupted: Ctrl-C; it holds the outcome of what was counted by then.
    """
    ins = bench.ins
    per_tile = dots_of_tile(ins)
    wanted = math.ceil(plan.dots / per_tile)
    first_launch = 1 << 14
    before, done, size, spent = bench.counts(), 0, min(first_launch, wanted), 0.0
    while done < wanted and spent < plan.seconds:
        start = time.perf_counter()
        try:
            bench.launch(plan.seed, plan.first + done, size, plan.kind)
        except KeyboardInterrupt:
            # The launch may have run to its end all the same: what the GPU counted decides.
            done = (bench.counts()["dots"] - before["dots"]) // per_tile
            raise Interrupted(
                _outcome(bench, plan, before, done, spent + time.perf_counter() - start)
            ) from None
        took = time.perf_counter() - start
        done, spent = done + size, spent + took
        if progress:
            progress(done * per_tile, wanted * per_tile)
        size = max(1, min(int(size * min(bench.launch_seconds / max(took, 1e-6), 64.0)), wanted - done))
    return _outcome(bench, plan, before, done, spent)


def _outcome(bench: Bench, plan: Plan, before: Mapping[str, int], tiles: int, seconds: float) -> Outcome:
    ins = bench.ins
    found = {name: count - before[name] for name, count in bench.counts().items()}
    wanted = tiles * dots_of_tile(ins)
    if found["dots"] != wanted:
        raise DeviceError(f"{ins.name}: the GPU counted {found['dots']} dot products, expected {wanted}")
    if sum(found[name] for name in COUNTS[2:]) != found["dots"] or found["mismatches"] > found["dots"]:
        raise DeviceError(f"{ins.name}: the GPU's counts contradict each other: {found}")
    return Outcome(
        ins.name,
        ins.architecture,
        bench.sass,
        plan.seed,
        kind_name(plan.kind),
        plan.first,
        plan.first + tiles,
        found["dots"],
        found["mismatches"],
        round(seconds, 3),
        {name: found[name] for name in COUNTS[2:]},
        bench.records(found["mismatches"]),
        bench.faults,
    )
