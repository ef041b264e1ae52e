"""Times memory on a GPU: chains of one thread or warp, sizes swept, and flows of all multiprocessors.

A chain runs once to bring its data near, then is timed: cycles by accesses. Sizes go from 1 KiB to 8 GiB in
quarters of an octave, words 128 bytes apart in scattered order, and in octaves with the words nearer and
farther; one line in each page of 2 MiB shows what the TLBs reach. A buffer larger than the GPU's memory is
left out, and said.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hw_capture.errors import CompileError, DeviceError, SassError
from hw_capture.gpu.device import Device, Module
from hw_capture.kernels import toolchain
from hw_capture.kernels.sass import mnemonic
from hw_capture.timing import loops
from hw_capture.timing.clocks import Watch
from hw_capture.timing.memory import programs
from hw_capture.timing.memory.programs import CHAINS, COPIES, FLOW, FLOWS, STEP, Chain, Flow
from hw_capture.timing.records import Conditions, Progress
from hw_capture.timing.scalar.checking import timed

LINE, PAGE = 128, 2 << 20
SMALLEST, LARGEST = 1 << 10, 8 << 30
PAGES = (64 << 30) // PAGE
"""Of a buffer, where that much memory is free."""
PLACES = 64
"""Lines at which an access of one line is timed: the L2 is near or far, by the address."""
BASES = 16
"""Places of a small buffer, for the same reason."""
_REGION = 1 << 30
STRIDES = (8, 16, 32, 64, 256, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10)
"""Bytes between words, in addition to LINE."""
LEVELS = {"ca": 16 << 10, "cg": 4 << 20, "cv": 1 << 30}
"""The size whose latency stands for a load: it lies in the L1, in the L2, in neither."""
ROUNDS = 1024  # accesses in a row that are timed, at least
_LEAST = 64 << 20
_BLOCK = 512  # threads of a block
_OTHERS = 512 << 20
"""Bytes that are read to fill the L2 with other lines; several times what it holds."""
_STRIDED = 256 << 20


@dataclass(frozen=True)
class Built:
    """The cubin of every kernel."""

    cubin: bytes


@dataclass(frozen=True)
class Sample:
    """Cycles of one access (median, least and most of the runs) of an instruction; size: bytes of the data
    that a chase runs through, or None."""

    instruction: str
    variant: str
    size: int | None
    cycles: float
    least: float
    most: float


@dataclass(frozen=True)
class Stream:
    """Bytes of a flow: in a cycle on one multiprocessor, and a second on the chip (in GB)."""

    instruction: str
    level: str
    per_sm: float
    gigabytes: float


@dataclass
class Result:
    """Everything of one run. lines: cycles of the first and of the second load of
    each of many lines, some of them written by every multiprocessor. far: cycles of a load from the L2 and
    from DRAM, by the multiprocessor that loads. alone: the multiprocessors on which single blocks of 1
    and of 1024 threads run; all chases except far use one block."""

    conditions: Conditions
    samples: list[Sample] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    lines: list[list[int]] = field(default_factory=list)
    far: dict[str, list[float]] = field(default_factory=dict)
    alone: tuple[int, ...] = ()
    bus_bits: int = 0


def sizes(smallest: int = SMALLEST, largest: int = LARGEST) -> list[int]:
    """Sizes in quarters of an octave: 4, 5, 6 and 7 times powers of two."""
    return [m << j for j in range(60) for m in (4, 5, 6, 7) if smallest <= m << j <= largest]


def strided(stride: int) -> list[int]:
    """Sizes in octaves of chases through words `stride` bytes apart: from 4 words to 2^20 of them, or more of
    words that lie near."""
    most_words = 1 << 20
    most = max(_STRIDED, most_words * stride)
    return [stride << n for n in range(2, 40) if stride << n <= most]


def _loads(words: int) -> int:
    """Loads of a chase: each word once, within limits, in whole turns."""
    longest = 8192
    return -(-min(max(words, ROUNDS), longest) // 16) * 16


def build(target: str) -> Built:
    """Compiles all kernels and checks the loop of each.

    Raises:
        ToolMissing: no nvcc or no disassembler. CompileError: the target is older than all of the kernels
            need, or ptxas refuses. SassError: a loop is wrong.
    """
    if int(target.removeprefix("sm_").rstrip("af")) < 90:
        raise CompileError(f"memory is measured from sm_90 on: {target} has no clusters and no bulk copies")
    cubin = toolchain.compile(programs.source(), target)
    codes = loops.kernels(toolchain.disassemble(cubin))
    everything: tuple[Chain | Flow, ...] = (*CHAINS, *FLOWS)
    for program in everything:
        check(program, codes[program.name])
    return Built(cubin)


def check(program: Chain | Flow, code: loops.Code) -> dict[str, int]:
    """Holds the code between the clock reads against what a turn has to hold; returns the counts.

    Raises:
        SassError: another number, or some of it outside.
    """
    if isinstance(program, Chain):
        wanted = {name: n * program.unroll for name, n in program.sass.items()}
    else:
        wanted = {program.sass: program.unroll}
    inside, everything = ([mnemonic(line) for line in lines] for lines in (timed(code), _lines(code)))
    found = {name: _count(inside, name) for name in wanted}
    if found != wanted:
        texts = (", ".join(f"{n} x {name}" for name, n in counts.items()) for counts in (found, wanted))
        raise SassError(f"{program.title}: a turn holds {next(texts)}, expected {next(texts)}")
    if isinstance(program, Flow) and _count(everything, program.sass) != program.unroll:
        raise SassError(f"{program.title}: {program.sass} stands outside of the loop, too")
    return found


def _lines(code: loops.Code) -> list[str]:
    return [line for _, line in code.lines]


def _count(names: Iterable[str], wanted: str) -> int:
    return sum(name == wanted or name.startswith(f"{wanted}.") for name in names)


def measure(gpu: Device, built: Built, repeats: int = 5, progress: Progress | None = None) -> Result:
    """Runs everything.

    Raises:
        DeviceError: the GPU fails, has less than 64 MiB to spare, or its clock was throttled.
    """
    watch = Watch(gpu)
    result = Result(watch.conditions, bus_bits=gpu.memory_bus_bits)
    bench = _Bench(gpu, gpu.load(built.cubin), repeats)
    steps = (bench.short, bench.constants, bench.caches, bench.strides, bench.pages)
    for done, step in enumerate(steps):
        if progress:
            progress(step.__name__, done, len(steps) + 1)
        result.samples += step()
    if progress:
        progress("bandwidth", len(steps), len(steps) + 1)
    result.lines = bench.partitions()
    result.far = bench.everywhere()
    result.alone = bench.alone()
    result.streams += bench.streams()
    result.conditions.left_out |= bench.left_out
    watch.close()
    return result


class _Bench:
    """The kernels, and one buffer that all of them use."""

    def __init__(self, gpu: Device, module: Module, repeats: int) -> None:
        self.gpu, self.module, self.repeats = gpu, module, repeats
        self.left_out: dict[str, str] = {}
        self._rng = np.random.default_rng(1)
        self.clocks = gpu.empty(64 * 64 * 1024)
        self._chains = {chain.name: chain for chain in CHAINS}
        # Local memory is taken when such a kernel runs for the first time, so before what is left is.
        self.local = list(self._local())
        spare = 2 << 30
        free = gpu.free_memory() - spare
        self.size = min(PAGES * PAGE, free // PAGE * PAGE)
        if self.size < _LEAST:
            raise DeviceError(
                f"the GPU has {max(free, 0) >> 20} MiB of memory to spare, expected at least {_LEAST >> 20}"
            )
        self.buffer = gpu.empty(self.size)
        self.first = int(self.buffer)

    def _cycles(
        self,
        name: str,
        first: int | Sequence[int],
        size: int,
        stride: int | Sequence[int],
        warm: int,
        rounds: int,
        threads: int = 1,
        grid: int = 1,
        apart: int = LINE,
        *,
        cold: bool = False,
    ) -> tuple[float, float, float]:
        """Cycles of one access: median, least and most of the runs, or where `first` names a place for each
        run their mean instead of the median; so may `stride`. `apart`: bytes between what is brought near.
        `cold`: what earlier runs loaded is not to be in the L2."""
        kernel = self.module.get(name)
        found = []
        # A run at each place: an address decides which part of the L2 holds it.
        places = [first] * self.repeats if isinstance(first, int) else first
        strides = [stride] * len(places) if isinstance(stride, int) else stride
        for place, step in zip(places, strides, strict=True):
            if cold:
                self._forget()
            # Emptied, so that a kernel which gave no time is seen.
            self.gpu.fill(self.clocks, 16, 0)
            arguments = (
                np.uint64(place),
                np.uint64(size),
                np.uint64(step),
                np.uint32(apart),
                np.uint32(warm),
                np.uint32(rounds),
            )
            kernel(*arguments, self.clocks, grid=grid, block=threads)
            start, stop = (int(n) for n in self.gpu.download(self.clocks, (2,), np.uint64))
            if not 0 < start < stop:
                raise DeviceError(f"kernel {name}: it gave no time")
            found.append((stop - start) / rounds)
        # Over several places the mean counts: a median would be the time of one part of the L2.
        middle = statistics.median if isinstance(first, int) else statistics.fmean
        return middle(found), min(found), max(found)

    def _forget(self) -> None:
        """Fills the L2 with lines of the buffer's end."""
        grid = self.gpu.sm_count
        step = grid * _BLOCK * 16
        turns = min(_OTHERS, self.size) // (FLOW * step)
        place, size = self.first + self.size - turns * FLOW * step, turns * FLOW * step
        numbers = (np.uint64(place), np.uint64(size), np.uint32(turns), np.uint64(step))
        self.module.get("flow_l2")(*numbers, self.clocks, grid=grid, block=_BLOCK)

    def _sample(
        self, name: str, variant: str, size: int | None, first: int | Sequence[int], *given: int
    ) -> Sample:
        return Sample(self._chains[name].instruction, variant, size, *self._cycles(name, first, *given))

    def _places(self, count: int, apart: int, region: int = _REGION) -> list[int]:
        """Places in the first GiB of the buffer, or what there is of it, that many bytes apart or more."""
        most = min(region, self.size) // apart
        return [self.first + apart * int(k) for k in self._rng.integers(0, most, count)]

    def _local(self) -> Iterator[Sample]:
        for size in sizes(SMALLEST, 16 << 10):
            count = size // 4
            yield self._sample("ld_local_u32", "", size, 0, size, 0, count, max(ROUNDS, count))

    def short(self) -> Iterator[Sample]:
        """What has no size: shared memory, stores, atomics, copies, barriers."""
        yield from self.local
        self.gpu.fill(self.buffer, _LEAST, 0)
        # Places over the whole buffer, because an access of one line depends on its address.
        places = self._places(PLACES, COPIES[-1], _LEAST)
        yield self._sample("ld_shared_u32", "", None, 0, 0, 0, ROUNDS, ROUNDS)
        # Shared memory of other blocks, and of the block itself through the same network.
        for ranks in programs.CLUSTERS:
            for rank in range(ranks):
                variant = f"cluster of {ranks}, block {rank}{' (itself)' * (rank == 0)}"
                cycles = self._cycles(f"ld_cluster_{ranks}", 0, rank, 0, ROUNDS, ROUNDS, 32, ranks)
                yield Sample("ld.shared::cluster.u32", variant, None, *cycles)
        for name, chain in self._chains.items():
            self.gpu.fill(self.buffer, _LEAST, 0)  # a copy adds what it brings to the address of the next
            if name.startswith("st_") or chain.instruction.startswith("cp.async.c"):
                where: int | list[int] = 0 if chain.instruction.startswith("st.shared") else places
                yield self._sample(name, "", None, where, 0, 4, ROUNDS, ROUNDS)
            # Atomics by one lane, by all lanes on one word, and by all lanes on words of their own.
            elif name.startswith("atom_"):
                where = 0 if chain.instruction.startswith("atom.shared") else places
                yield self._sample(name, "1 lane", None, where, 0, 4, ROUNDS, ROUNDS, 1)
                yield self._sample(name, "32 lanes, one word", None, where, 0, 0, ROUNDS, ROUNDS, 32)
                stride = 8 if name.endswith("64") else 4
                yield self._sample(name, "32 lanes, a word each", None, where, 0, stride, ROUNDS, ROUNDS, 32)
        self.gpu.fill(self.buffer, _LEAST, 0)
        for size in COPIES:
            yield self._sample("cp_async_bulk", f"{size} B", None, places, size, 0, 32, 128)
        yield self._sample("mbarrier_arrive", "", None, 0, 0, 0, 256, ROUNDS)

    def constants(self) -> Iterator[Sample]:
        """Constant memory, words 64 bytes apart."""
        self.module.get("const_base")(self.clocks, grid=1, block=1)
        base = int(self.gpu.download(self.clocks, (1,), np.uint64)[0])
        for size in sizes(256, 64 << 10):
            table, count = np.zeros(16384, np.uint32), size // 64
            k = np.arange(count)
            table[k * 16] = base + (421 * k + 11) % count * 64
            self.module.write("constants", table)
            yield self._sample("ld_const_u32", "", size, base, 0, 0, max(count, 256), ROUNDS)

    def caches(self) -> Iterator[Sample]:
        """Loads by size, with each operator; and loads of an index."""
        for size in sizes():
            if size > self.size:
                self._too_little("size", size)
                continue
            count = size // LINE
            bases = self._laid(count, LINE)
            yield from (self._chased(operator, "", count, LINE, bases) for operator in LEVELS)
            if size in (LEVELS["ca"], LEVELS["cg"]):
                yield from self._indexed(size, _loads(count))

    def strides(self) -> Iterator[Sample]:
        """Loads by size with words nearer than a line, and farther: what a line, a set and a page hold."""
        for stride in STRIDES:
            for size in strided(stride):
                if size > self.size:
                    self._too_little(f"stride {stride} B", size)
                    continue
                bases = self._laid(size // stride, stride)
                yield self._chased("ca", f"stride {stride} B", size // stride, stride, bases)

    def _laid(self, count: int, stride: int) -> list[int]:
        """Fills the words of a chase, of a small one at BASES places; returns where."""
        small = 256 << 10
        bases = self._places(BASES, small) if count * stride <= small else [self.first]
        for base in bases:
            self._filled(base, count, stride, 1)
        return bases

    def _chased(self, operator: str, variant: str, count: int, stride: int, bases: list[int]) -> Sample:
        """One chase; through more than it loads it begins elsewhere in each run: what was loaded is near."""
        loads = _loads(count)
        words = count if count > loads else 1
        starts = bases if len(bases) > 1 else bases * self.repeats
        places = [base + stride * int(self._rng.integers(0, words)) for base in starts]
        name, apart = f"ld_global_{operator}_u64", max(stride, LINE)
        # Lines that are brought near before a chase, at most.
        touched = 4 << 20
        near = count * stride if count * stride // apart <= touched else 0
        cold = not near and (count * stride) + _OTHERS <= self.size
        cycles = self._cycles(name, places, near, starts, loads, loads, 1024, apart=apart, cold=cold)
        return Sample(f"ld.global.{operator}.u64", variant, count * stride, *cycles)

    def _too_little(self, what: str, size: int) -> None:
        self.left_out[f"ld.global by {what}, {size} B"] = f"too little memory: {self.size} B could be had"

    def _indexed(self, size: int, loads: int) -> Iterator[Sample]:
        words, count = np.zeros(size // 4, np.uint32), size // LINE
        k = np.arange(count)
        words[k * (LINE // 4)] = (421 * k + 11) % count * (LINE // 4)
        self.gpu.write(self.buffer, words)
        operator = next(name for name, level in LEVELS.items() if level == size)
        yield self._sample(f"ld_global_{operator}_u32", "", size, self.first, size, 0, loads, loads)

    def _filled(self, first: int, count: int, stride: int, skew: int) -> None:
        numbers = (np.uint64(first), np.uint64(first), np.uint64(count), np.uint64(stride), np.uint32(skew))
        self.module.get("fill")(*numbers, grid=min(4096, -(-count // 256)), block=256)

    def pages(self) -> Iterator[Sample]:
        """One line of each page of 2 MiB: what the TLBs reach."""
        first = -(-self.first // PAGE) * PAGE
        for span in sizes(4 * PAGE, PAGES * PAGE):
            if first + span > self.first + self.size:
                self._too_little("pages", span)
                continue
            count = span // PAGE
            self._filled(first, count, PAGE, 16384)
            loads = -(-max(count, ROUNDS) // 16) * 16
            yield self._sample("ld_global_cg_u64", "a line of each 2 MiB", span, first, 0, 0, loads, loads)

    def everywhere(self) -> dict[str, list[float]]:
        """The same chase through data in the L2, and through data beyond it, on each multiprocessor."""
        found = {}
        for level, operator in (("L2", "cg"), ("DRAM", "cv")):
            size = LEVELS[operator]
            if size > self.size:
                self._too_little("multiprocessor", size)
                continue
            self._filled(self.first, size // LINE, LINE, 1)
            found[level] = [self._on_one(number, operator, size) for number in range(self.gpu.sm_count)]
        return found

    def alone(self) -> tuple[int, ...]:
        """The multiprocessors on which a block of one thread and one of 1024 run that are alone."""
        found = []
        for threads in (1, 1024):
            self.module.get("where")(self.clocks, grid=1, block=threads)
            found.append(int(self.gpu.download(self.clocks, (1,), np.uint64)[0]))
        return tuple(found)

    def _on_one(self, multiprocessor: int, operator: str, size: int) -> float:
        """Cycles of one load on a multiprocessor."""
        kernel, count = self.module.get(f"ld_global_{operator}_u64_on_one"), size // LINE
        start = self.first + LINE * int(self._rng.integers(0, count))
        near = size if operator == "cg" else 0
        numbers = np.uint64(start), np.uint64(near), np.uint64(self.first), np.uint32(LINE)
        loads = np.uint32(_loads(count))
        if not near:
            self._forget()
        self.gpu.write(self.clocks, np.array([0, 0, multiprocessor, 0], np.uint64))
        # With this many blocks a multiprocessor at least one runs on each of them.
        blocks = 8
        kernel(*numbers, loads, loads, self.clocks, grid=blocks * self.gpu.sm_count, block=1024)
        begun, ended = (int(n) for n in self.gpu.download(self.clocks, (2,), np.uint64))
        if not 0 < begun < ended:
            raise DeviceError(f"ld.global.{operator}.u64: no block ran on multiprocessor {multiprocessor}")
        return (ended - begun) / int(loads)

    def partitions(self) -> list[list[int]]:
        """Cycles of the load of each line in a region that lies in the L2, for the first time and again."""
        lines = 16384  # 2 MiB, which lie in the L2
        cycles, first = self.gpu.empty(8 * lines), np.uint64(self.first)
        where = (first, np.uint64(LINE), np.uint32(lines))
        self.module.get("selves")(*where, grid=self.gpu.sm_count, block=128)
        self.module.get("lines")(*where, cycles, grid=1, block=1)
        taken = self.gpu.download(cycles, (2, lines), np.uint32)
        if not taken.all():
            raise DeviceError("kernel lines: it gave no time for some of the lines")
        return [[int(n) for n in row] for row in taken]

    def streams(self) -> Iterator[Stream]:
        """Bandwidth of each level."""
        sms = self.gpu.sm_count
        for flow in FLOWS:
            if flow.advances and flow.name != "flow_l1":
                yield self._flow(flow, "L2", 2 * sms, 1, 64)
                flow_bytes = 4 << 30
                turns = min(flow_bytes, self.size) // (FLOW * _BLOCK * 16 * 4 * sms)
                yield self._flow(flow, "DRAM", 4 * sms, turns, turns)
            elif flow.name == "flow_l1":
                yield self._flow(flow, flow.level, sms, 0, 512)
            else:
                ranks = int(flow.level.split()[-1]) if flow.cluster else 1
                yield self._flow(flow, flow.level, sms // ranks * ranks, 0, 512)

    def _flow(self, flow: Flow, level: str, grid: int, regions: int, turns: int) -> Stream:
        """One flow through `regions` of FLOW accesses of all threads each; 0: every block has its own."""
        step = STEP if not regions else grid * _BLOCK * 16
        size = FLOW * step * max(regions, 1)
        kernel = self.module.get(flow.name)
        own = not flow.advances
        if own:
            kernel.allow_shared(size)
        numbers = (np.uint64(self.first), np.uint64(size), np.uint32(turns), np.uint64(step))
        found = []
        for _ in range(self.repeats + 1):
            self.gpu.fill(self.clocks, 32 * grid, 0)
            kernel(*numbers, self.clocks, grid=grid, block=_BLOCK, shared=size if own else 0)
            found.append(self.gpu.download(self.clocks, (grid, 4), np.uint64).astype(np.int64))
        moved = turns * FLOW * _BLOCK * 16
        return flowed(flow.instruction, level, found[1:], moved, max(1, grid // self.gpu.sm_count))


def flowed(instruction: str, level: str, runs: list[Any], moved: int, blocks: int) -> Stream:
    """Bytes in a cycle and in a second of runs that each give start and stop, in cycles and nanoseconds, of
    every block; `moved` bytes of a block, `blocks` on each multiprocessor.

    Raises:
        DeviceError: a block gave no time.
    """
    per_sm, gigabytes = [], []
    for clocks in runs:
        cycles = clocks[:, 1] - clocks[:, 0]
        nanoseconds = clocks[:, 3].max() - clocks[:, 2].min()
        if not ((clocks > 0).all() and (cycles > 0).all() and nanoseconds > 0):
            raise DeviceError(f"{instruction}, {level}: it gave no time for some of its {len(clocks)} blocks")
        per_sm.append(blocks * moved / float(np.median(cycles)))
        gigabytes.append(moved * len(clocks) / float(nanoseconds))
    return Stream(instruction, level, statistics.median(per_sm), statistics.median(gigabytes))
