"""Times scalar instructions on a GPU: one block on one multiprocessor, cycles of its own clock.

Two kernels of a chain differ in the rounds of one turn alone. Cycles of a round are the difference of their
times by the difference of their rounds, so that clock reads, the loop's own instructions and its branch drop
out. Both run one turn before, untimed, which brings the code into the instruction cache.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import from_float, get_format, to_float
from hw_capture.errors import CompileError, DeviceError, HwError
from hw_capture.gpu.device import Device, Kernel
from hw_capture.kernels import toolchain
from hw_capture.timing.clocks import Launches, Watch
from hw_capture.timing.programs import WARPS as MATRIX_WARPS
from hw_capture.timing.records import Conditions, Progress, in_parallel
from hw_capture.timing.scalar import programs
from hw_capture.timing.scalar.chains import INVERSES, THREADS
from hw_capture.timing.scalar.instructions import Operation, get, operations
from hw_capture.timing.scalar.programs import Built

WARPS = tuple(count for count in MATRIX_WARPS if count != 20)
"""Warps of a multiprocessor; 20 occur only in an experiment on matrix instructions."""
TURNS = 32
"""Turns of the loop in one run."""
PASSES = 2  # of the loop: the first brings the code into the instruction cache
REFERENCES = {
    "IMAD": "mad.lo.u32",
    "LOP3": "lop3.b32",
    "IADD3": "add.u32",
    "PRMT": "prmt.b32",
    "SEL": "selp.b32",
}
"""Whose latency is subtracted if its SASS links an instruction."""


@dataclass(frozen=True)
class Point:
    """Cycles of one round of `ilp` instructions in each of `warps`: median, least and most of the runs."""

    ilp: int
    warps: int
    cycles: float
    least: float
    most: float

    @property
    def throughput(self) -> float:
        """Instructions of one thread each, in one cycle."""
        return 32 * self.ilp * self.warps / self.cycles


@dataclass
class Timed:
    """One instruction's points, cycles of a round with its other link (warps and ILP 1), and cycles of the
    sequences without a loop, clock reads included.

    ends: of a chain of floats, what it has come to when it ends, if that is no normal number of its format
    (one of KINDS). any_bits: cycles of a round of floats (warps and ILP 1) whose operands are any
    bits, so that most chains are soon NaN, infinite or zero.
    """

    built: Built
    points: list[Point] = field(default_factory=list)
    other: float | None = None
    ends: str = ""
    any_bits: float | None = None
    straight: dict[str, float] = field(default_factory=dict)

    def at(self, ilp: int, warps: int) -> Point:
        """The point of that many chains and warps."""
        return next(point for point in self.points if (point.ilp, point.warps) == (ilp, warps))


@dataclass
class Result:
    """Everything of one run."""

    conditions: Conditions
    timed: list[Timed] = field(default_factory=list)

    def latency(self, kind: str) -> float | None:
        """Cycles of the instruction that stands for a kind of SASS in a link; None if not measured."""
        for timed in self.timed:
            if timed.built.operation.name == REFERENCES[kind]:
                return timed.at(1, 1).cycles
        return None

    def completion(self, timed: Timed) -> tuple[float, str] | None:
        """Cycles from an instruction to the next that waits for it, less what stands between two, and the
        link that gave them: the lower of two. None where what stands between was not measured."""
        plan, extra = timed.built.plan, timed.built.round.extra
        found = [
            (
                _less(timed.at(1, 1).cycles, [self.latency(kind) for kind in _serial(plan.link, extra)]),
                plan.link,
            )
        ]
        if timed.other is not None:
            swapped = [LINK_KINDS[plan.other], *_serial(plan.link, extra)[1:]]
            found.append((_less(timed.other, [self.latency(kind) for kind in swapped]), plan.other))
        known = [(cycles, link) for cycles, link in found if cycles is not None]
        return min(known) if known else None


LINK_KINDS = {"prmt": "PRMT", "mad": "IMAD", "lop3": "LOP3", "add": "IADD3", "both": "IMAD", "halves": "PRMT"}
"""What each link puts between two instructions."""


def _serial(link: str, extra: dict[str, int]) -> list[str]:
    """The kinds of what a result passes through on its way to the next instruction, the link's first: what
    fits it comes after (PRMT; one select, also of two halves)."""
    own = [LINK_KINDS[link]] if link in LINK_KINDS else []
    left = dict(extra)
    for kind in own:
        left[kind] -= left[kind] if link in ("both", "halves") else 1
    return own + ["PRMT"] * left.get("PRMT", 0) + ["SEL"] * (left.get("SEL", 0) > 0)


def _less(cycles: float, others: list[float | None]) -> float | None:
    known = [other for other in others if other is not None]
    return cycles - sum(known) if len(known) == len(others) else None


def select(pattern: str) -> list[Operation]:
    """Returns the instructions whose name holds the text, and the ones whose latency has to be known."""
    chosen = [operation for operation in operations() if pattern in operation.name]
    return chosen + [get(name) for name in REFERENCES.values() if chosen and get(name) not in chosen]


def build(
    operations: Sequence[Operation], target: str, progress: Progress | None = None
) -> Generator[Built | tuple[str, str], None, None]:
    """Compiles and checks; yields (name, reason) for what the compiler changed or refused.

    Raises:
        ToolMissing: no nvcc or no disassembler.
    """
    toolchain.require("nvcc")
    toolchain.require("nvdisasm", "cuobjdump")

    def one(operation: Operation) -> Built | tuple[str, str]:
        try:
            return programs.build(operation, target)
        except CompileError as error:
            return operation.name, f"refused by the compiler: {error}"
        except HwError as error:
            return operation.name, f"changed by the compiler: {error}"

    return in_parallel(one, operations, progress)


def measure(
    gpu: Device, built: Iterable[Built | tuple[str, str]], repeats: int = 5, progress: Progress | None = None
) -> Result:
    """Runs everything that was built.

    Raises:
        DeviceError: the GPU fails, or its clock was throttled.
    """
    watch = Watch(gpu)
    result = Result(watch.conditions)
    buffers = _Buffers(gpu)
    for item in watch.each(built, _name, progress):
        result.timed.append(_time(buffers, item, repeats))
    return result


def _name(one: Built | str) -> str:
    return one if isinstance(one, str) else one.operation.name


class _Buffers(Launches):
    """Launches, and operands by format."""

    def __init__(self, gpu: Device) -> None:
        super().__init__(gpu, gpu.empty(8 * 32 * THREADS))

    def last(self, stored: Sequence[str], register: str) -> npt.NDArray[np.uint64]:
        """What one warp of the last launch held in a register at its end; `stored`: what a thread writes."""
        words = self.gpu.download(self.sink, (32, len(stored)), np.uint64)
        return words[:, stored.index(register)]

    def times(self, kernel: Kernel, kind: str, warps: int, turns: int, runs: int) -> list[int]:
        """Cycles of each of `runs` launches on the operands of a format."""
        held = self.held(kind, lambda: operands(kind))
        return self.cycles(kernel, held, warps, runs, turns, PASSES)


def _time(buffers: _Buffers, item: Built, repeats: int) -> Timed:
    module, plan, timed = buffers.gpu.load(item.cubin), item.plan, Timed(item)
    kind = item.operation.data
    for ilp in plan.ilps:
        pair = [module.get(f"i{ilp}_{n}") for n in plan.rounds]
        most = min(int(kernel.function.max_threads_per_block) for kernel in pair)
        for warps in (n for n in WARPS if n * 32 <= most):
            rounds = _rounds(buffers, kind, item, pair, warps, repeats)
            timed.points.append(Point(ilp, warps, statistics.median(rounds), min(rounds), max(rounds)))
            if (ilp, warps) == (1, 1) and kind != BITS and item.state:
                last = buffers.last(item.stored, item.state)
                timed.ends = worst(last, kind, programs.width(item.operation))
                timed.any_bits = statistics.median(_rounds(buffers, BITS, item, pair, warps, repeats))
    if plan.other:
        kernels = [module.get(f"{plan.other}1_{n}") for n in plan.rounds]
        timed.other = statistics.median(_rounds(buffers, kind, item, kernels, 1, repeats))
    for name in ("clock64", "clock32", *item.straight):
        timed.straight[name] = statistics.median(buffers.times(module.get(name), kind, 1, 1, repeats))
    return timed


def _rounds(
    buffers: _Buffers, kind: str, item: Built, pair: Sequence[Kernel], warps: int, repeats: int
) -> list[float]:
    """Cycles of one round in each run, by a short and a long kernel."""
    short, long = item.plan.rounds
    first, second = (buffers.times(kernel, kind, warps, TURNS, repeats) for kernel in pair)
    found = [(b - a) / (TURNS * (long - short)) for a, b in zip(first, second, strict=True)]
    if min(found) <= 0:
        raise DeviceError(f"{item.operation.name}: more rounds took no more time ({found})")
    return found


# Operands ---------------------------------------------------------------------------------------------------


BITS = "bits"
"""Operands that are any bits."""
KINDS = ("NaN", "infinite", "zero", "subnormal")
"""What a number can be that is not normal."""


def operands(kind: str, seed: int = 1) -> npt.NDArray[np.uint64]:
    """Random operands, INVERSES bytes of them, and the same number again.

    Floats lie between 1 and 2, where no quotient, root or reciprocal calls a subroutine; the second half
    holds the reciprocals of the first.
    """
    rng = np.random.default_rng(seed)
    words = INVERSES // 8
    if kind == BITS:
        return rng.integers(0, 1 << 64, 2 * words, np.uint64)
    form = get_format(kind)
    numbers = rng.uniform(1, 2, words * 64 // form.storage)
    return np.concatenate([from_float(form, numbers), from_float(form, 1 / numbers)]).view(np.uint64)


def worst(words: npt.NDArray[np.uint64], kind: str, width: int) -> str:
    """What most of the numbers are that are not normal; "" where all are.

    Args:
        words: one register a word, in its low `width` bits, which hold one or more numbers of format `kind`.
    """
    form = get_format(kind)
    if width < form.storage:
        return ""
    codes = words.astype("<u8").view(f"<u{form.storage // 8}").reshape(len(words), -1)
    found = to_float(form, codes[:, : width // form.storage].reshape(-1)).astype(np.float64)
    tiny = 2.0**form.min_exponent
    masks: tuple[npt.NDArray[Any], ...] = (
        np.isnan(found),
        np.isinf(found),
        found == 0,
        (found != 0) & (np.abs(found) < tiny),
    )
    counts = [int(mask.sum()) for mask in masks]
    return KINDS[counts.index(max(counts))] if any(counts) else ""
