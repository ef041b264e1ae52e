"""Runs the microbenchmarks of `subjects` on a GPU: one block on one multiprocessor, cycles of its own clock.

The time of a run is max(stop) - min(start) over the warps, divided by the rounds; the median of several runs
counts, after one that warms the caches. Clock and power state are read, never set.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import from_float, get_format
from hw_capture.errors import HwError, SassError
from hw_capture.gpu.device import Device, Kernel
from hw_capture.kernels import kernels, toolchain
from hw_capture.timing import loops
from hw_capture.timing.clocks import Launches, Watch
from hw_capture.timing.programs import DATA_WORDS, ROUNDS, Program, Subject
from hw_capture.timing.records import Conditions, Progress, in_parallel

OPERANDS = ("random", "zeros")


@dataclass(frozen=True)
class Built:
    """The compiled kernels of a subject, what its timed loops hold for one execution (SASS name to count),
    and the cycles of one round that the code itself asks for, by chain (ILP 1)."""

    subject: Subject
    cubin: bytes
    loop: dict[str, int]
    stalls: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Timing:
    """One measured point: cycles of one round (`ilp` instructions in each warp), median, least and most of
    the runs."""

    subject: Subject
    chain: str
    ilp: int
    warps: int
    operands: str
    cycles: float
    least: float
    most: float

    @property
    def throughput(self) -> float:
        """Work of all warps in one cycle, in the subject's unit."""
        return self.subject.work * self.ilp * (self.warps * 32 / self.subject.lanes) / self.cycles


@dataclass
class Result:
    """Everything of one run; what one execution becomes and the stall counts of its chains, by label."""

    conditions: Conditions
    loops: dict[str, dict[str, int]] = field(default_factory=dict)
    stalls: dict[str, dict[str, float]] = field(default_factory=dict)
    timings: list[Timing] = field(default_factory=list)


def build(
    subjects: Sequence[Subject], target: str, progress: Progress | None = None
) -> Generator[Built | tuple[Subject, str], None, None]:
    """Compiles subjects, several at a time, and checks their loops; yields (subject, reason) for what fails.

    Raises:
        ToolMissing: no nvcc or no disassembler. CompileError: nvcc does not know the target.
    """
    toolchain.require("nvdisasm", "cuobjdump")
    toolchain.compile(kernels.prelude(), target)
    return in_parallel(lambda subject: _build(subject, target), subjects, progress)


def _build(subject: Subject, target: str) -> Built | tuple[Subject, str]:
    try:
        cubin = toolchain.compile(subject.source(), target)
        disassembly = toolchain.disassemble(cubin)
        return Built(subject, cubin, check(subject, disassembly), _stalls(subject, cubin, disassembly))
    except HwError as error:
        return subject, str(error)


def _stalls(subject: Subject, cubin: bytes, disassembly: str) -> dict[str, float]:
    """The stall counts of a round, by kernel: the kernels of one warp's single chain; for comparison with Sun
    et al. the kernels of every ILP."""
    codes = loops.kernels(disassembly)
    timed = [p for p in subject.programs() if not p.once and subject.lanes == 32]
    named = {p.name if subject.printed else p.chain: p for p in timed if p.ilp == 1 or subject.printed}
    return {name: loops.stalls_per_round(cubin, p.name, codes[p.name], p.unroll) for name, p in named.items()}


def check(subject: Subject, disassembly: str) -> dict[str, int]:
    """Holds every loop of a subject against its instruction;
    returns the SASS of one execution; raises SassError."""
    codes = loops.kernels(disassembly)
    once = loops.counted(codes["single"].names(), subject.mnemonics) if "single" in codes else None
    found: dict[str, int] = {}
    for program in subject.programs():
        label = f"{subject.label} ({program.name})"
        if program.once:
            loops.check_once(label, codes[program.name], once if program.chain == "alone" else None)
            continue
        found = loops.check(label, codes[program.name], once, program.ilp * program.unroll, subject.mnemonics)
        if program.chain == "steady" and any(
            name.startswith("WARPGROUP.DEPBAR") for name in codes[program.name].loop()
        ):
            raise SassError(f"{label}: the compiler waits inside the loop")
    return found


def measure(
    gpu: Device,
    built: Iterable[Built | tuple[Subject, str]],
    repeats: int = 5,
    progress: Progress | None = None,
) -> Result:
    """Runs everything that was built; raises DeviceError where the GPU fails, or its clock was throttled."""
    watch = Watch(gpu)
    result = Result(watch.conditions)
    buffers = _Buffers(gpu)
    for item in watch.each(built, _label, progress):
        module = gpu.load(item.cubin)
        result.loops[item.subject.label] = item.loop
        result.stalls[item.subject.label] = item.stalls
        for program in item.subject.programs():
            result.timings += _time(buffers, item.subject, program, module.get(program.name), repeats)
    return result


def _label(one: Built | Subject) -> str:
    return one.subject.label if isinstance(one, Built) else one.label


class _Buffers(Launches):
    """Launches, and operands by format."""

    def __init__(self, gpu: Device) -> None:
        super().__init__(gpu, gpu.empty(1024 * 4, 0))

    def operands(self, fmt: str, kind: str) -> Any:
        """The buffer of one format and kind of OPERANDS."""
        return self.held((fmt, kind), lambda: data(fmt, kind))


def data(fmt: str, kind: str, seed: int = 1) -> npt.NDArray[np.uint32]:
    """DATA_WORDS words of operands: zeros, or random numbers
    that no chain lets overflow (integers: random bits)."""
    if kind == "zeros":
        return np.zeros(DATA_WORDS, np.uint32)
    rng, form = np.random.default_rng(seed), get_format(fmt)
    if not form.is_float or form.bits < 8:
        return rng.integers(0, 1 << 32, DATA_WORDS, np.uint32)
    codes = from_float(form, rng.uniform(-1, 1, DATA_WORDS * 4 * 8 // form.storage))
    return codes.view(np.uint32)[:DATA_WORDS]


def _time(
    buffers: _Buffers, subject: Subject, program: Program, kernel: Kernel, repeats: int
) -> Iterator[Timing]:
    rounds = 1 if program.once else ROUNDS[subject.lanes]
    most_threads = int(kernel.function.max_threads_per_block)
    for operands in OPERANDS:
        held = buffers.operands(subject.operands, operands)
        for warps in (1,) if program.once else subject.warps():
            if warps * 32 <= most_threads:
                runs = buffers.cycles(kernel, held, warps, repeats, rounds // program.unroll)
                cycles = (statistics.median(runs), min(runs), max(runs))
                yield Timing(
                    subject, program.chain, program.ilp, warps, operands, *(c / rounds for c in cycles)
                )
