"""Runs the ladder on a GPU: time, cycles and share of the peak of whole matrix products, with their results
checked.

Cycles are the longest that a multiprocessor took from the start of its first block to the end of its last
one, by its own clock. Work that waits for the L2 or DRAM takes fewer cycles when the board lowers that clock,
and a few percent more or less by where the matrices lie. So single launches with pauses are
measured: the median at each of several places in memory, and the mean of these medians. TFLOP/s are what the
board sustains: two events around launches without a pause, after as much work as settles its power.

The first launch begins with D full of NaN. Whole rows and whole columns of D at full K are compared with
golden.gemm, for the chain of that kernel's instruction, and all of D is compared with the first kernel that
has the same instruction.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import golden
from hw_capture.errors import DeviceError, HwError, ToolMissing
from hw_capture.gpu.device import Device, Kernel, tensor_map_of_bf16_rows
from hw_capture.timing.ablation.machine_code import Built
from hw_capture.timing.ablation.variants import Variant
from hw_capture.timing.clocks import POWER_LIMIT, Watch, check_unthrottled, state
from hw_capture.timing.records import Conditions, Progress

PEAK = {(8, 0): 1024, (8, 6): 512, (8, 9): 512, (9, 0): 2048}
"""Multiply-adds of bf16, added in f32, of one multiprocessor in a cycle, by compute capability: NVIDIA's
white papers of the A100, the GA102 and AD102 of professional boards, and the H100."""
LINES = 4
"""Rows and columns of D that the model computes, whole."""
PLACES = 8
"""Places in memory of A, B and D."""
_LAUNCHES = (3, 25)
"""Launches at each place, least and most."""
CUBLAS = "cublas"
Codes = npt.NDArray[Any]


class ResultError(HwError):
    """A kernel's product is not what the model says, bit for bit."""


@dataclass(frozen=True)
class Point:
    """One kernel at one size.

    milliseconds: of a product, sustained. cycles: the mean over the places in memory, least and most of
    them; None of a library, as mhz, the clock of the same launches. checked: elements of D that the model
    computed.
    """

    label: str
    name: str
    options: str
    size: int
    milliseconds: float
    cycles: tuple[float, float, float] | None = None
    mhz: float | None = None
    share: float | None = None
    checked: int = 0

    @property
    def teraflops(self) -> float:
        """Two operations a multiply-add."""
        return 2 * self.size**3 / self.milliseconds / 1e9


@dataclass
class Result:
    """Everything of one run.

    loops: what a kernel's step of K holds. same_bits: of a library, the instructions whose chain over K gives
    all bits of its D.
    """

    conditions: Conditions
    points: list[Point] = field(default_factory=list)
    loops: dict[str, dict[str, int]] = field(default_factory=dict)
    same_bits: dict[str, list[str]] = field(default_factory=dict)


def measure(
    gpu: Device,
    built: Iterable[Built | tuple[Variant, str]],
    sizes: Sequence[int],
    runs: int = 9,
    seed: int = 1,
    progress: Progress | None = None,
) -> Result:
    """Runs every kernel at every size.

    Raises:
        DeviceError: the GPU fails, has too little memory, or its clock is throttled; by the power limit at
            the end is no error, since products without a pause run into it.
        ResultError: a product is not the model's.
    """
    result = Result(Watch(gpu).conditions)
    check_unthrottled(result.conditions.state_before)
    kernels = []
    for item in built:
        if isinstance(item, Built):
            kernels.append(item)
            result.loops[item.variant.label] = item.loop
        else:
            result.conditions.left_out[item[0].label] = item[1]
    # Every kernel of a size multiplies the same matrices: their results have to be equal.
    products = [Product(gpu, size, seed) for size in sizes]
    jobs = [(product, one) for product in products for one in kernels]

    def each(what: str) -> Iterator[tuple[Product, Built]]:
        for done, (product, one) in enumerate(jobs):
            if progress:
                progress(f"{one.variant.label}, {product.size}, {what}", done, len(jobs))
            yield product, one

    # What draws the board's power comes last, since it takes a while to get over it.
    points = [_alone(product, one) for product, one in each("cycles")]
    times = [_sustained(gpu, product, one, runs) for product, one in each("TFLOP/s")]
    result.points = [replace(p, milliseconds=ms) for p, ms in zip(points, times, strict=True)]
    # The library last, on the same products, as the figure to compare with.
    for product in products:
        try:
            point, result.same_bits[f"{CUBLAS}, {product.size}"] = _library(product, runs)
            result.points.append(point)
        except ToolMissing as error:
            result.conditions.left_out[f"{CUBLAS}, {product.size}"] = str(error)
    result.conditions.state_after = state()
    check_unthrottled(result.conditions.state_after, but=POWER_LIMIT)
    return result


def operands(size: int, seed: int) -> tuple[Codes, Codes]:
    """A and B (transposed, so that K is contiguous) in bf16: uniform in [-1, 1), cut to bf16."""
    rng = np.random.default_rng(seed)
    a, b = (rng.random((size, size), np.float32) * np.float32(2) - np.float32(1) for _ in range(2))
    return (a.view(np.uint32) >> 16).astype(np.uint16), (b.view(np.uint32) >> 16).astype(np.uint16)


class Product:
    """A matrix product of one size: operands here and on the GPU, and what the model says about some of
    it."""

    def __init__(self, gpu: Device, size: int, seed: int) -> None:
        self.gpu, self.size = gpu, size
        self.a, self.b = operands(size, seed)
        self.places = [
            (gpu.upload(self.a), gpu.upload(self.b), gpu.empty(4 * size * size)) for _ in range(PLACES)
        ]
        drawn = np.random.default_rng(seed + 1)
        self.lines = np.sort(drawn.choice(size, LINES, replace=False))
        self._expected: dict[str, tuple[Codes, Codes]] = {}
        self._first: dict[str, Codes] = {}

    def spoil(self) -> None:
        """Fills the first D with NaN, so that what a kernel does not write is seen."""
        self.gpu.fill(self.places[0][2], 4 * self.size * self.size, 0xFF)

    def result(self) -> Codes:
        """The first D as it is on the GPU."""
        return self.gpu.download(self.places[0][2], (self.size, self.size), np.uint32)

    def check(self, variant: Variant, d: Codes) -> int:
        """Holds D against the model and the first kernel of the same instruction; returns how many elements
        the model computed; raises ResultError."""
        name = variant.instruction.name
        if name not in self._expected:
            plan = golden.plan(variant.architecture, name)
            rows = golden.gemm(self.a[self.lines], np.ascontiguousarray(self.b.T), plan)
            columns = golden.gemm(self.a, np.ascontiguousarray(self.b[self.lines].T), plan)
            self._expected[name] = (rows, columns)
        rows, columns = self._expected[name]
        for found, wanted, what in (
            (d[self.lines], rows, "rows"),
            (d[:, self.lines], columns, "columns"),
            (d, self._first.setdefault(name, d), f"elements of the first kernel with {name}"),
        ):
            if wrong := int((found != wanted).sum()):
                raise ResultError(
                    f"{variant.label}, {self.size}: {wrong} of {wanted.size} elements of D ({what}) differ "
                    f"from a chain of {name}"
                )
        return rows.size + columns.size

    def same_bits(self, d: Codes) -> list[str]:
        """The instructions whose checked D this one is."""
        return [name for name, first in self._first.items() if np.array_equal(d, first)]


class Launcher:
    """A kernel with its matrices at each place, and the clocks of several launches."""

    def __init__(self, product: Product, built: Built) -> None:
        gpu, variant, size = product.gpu, built.variant, product.size
        self.gpu, self.name = gpu, variant.label
        self.kernel = gpu.load(built.cubin).get("run")
        if variant.dynamic_shared:
            self.kernel.allow_shared(variant.dynamic_shared)
        self.blocks = (size // variant.tile[0]) * (size // variant.tile[1])
        self._given = {"grid": self.blocks, "block": variant.threads, "shared": variant.dynamic_shared}
        self._matrices = [(*_matrices(product, variant, *place[:2]), place[2]) for place in product.places]
        self._size = (size, size, size)
        self._clocks = gpu.empty(_LAUNCHES[1] * _BYTES * self.blocks, 0)

    def launch(self, place: int = 0, number: int = 0) -> None:
        """Launches at a place; writes the clocks of launch `number`."""
        clocks = np.uint64(int(self._clocks) + number * _BYTES * self.blocks)
        self.kernel.launch(*self._matrices[place], clocks, *self._size, **self._given)

    def alone(self, place: int, count: int, pause: float) -> tuple[float, float]:
        """Cycles, the median of a number of launches at a place, each after a pause in seconds, and MHz."""
        self.gpu.fill(self._clocks, count * _BYTES * self.blocks, 0)
        for number in range(count):
            time.sleep(pause)
            self.launch(place, number)
            self.gpu.wait(self.name)
        found = self.gpu.download(self._clocks, (count, self.blocks, _WORDS), np.uint64)
        cycles = statistics.median(longest(self.kernel, clocks) for clocks in found)
        return cycles, statistics.median(rate(clocks) for clocks in found)

    def milliseconds(self) -> float:
        """What a launch takes."""
        return self.gpu.milliseconds(self.launch, self.name)


_WORDS = 5
"""Numbers of 64 bits that a block writes (common.cuh)."""
_BYTES = 8 * _WORDS


def _alone(product: Product, built: Built) -> Point:
    """Cycles of one kernel, of single launches at each place in memory, with its product checked."""
    gpu, variant, size = product.gpu, built.variant, product.size
    run = Launcher(product, built)
    product.spoil()
    run.launch()
    gpu.wait(variant.label)
    checked = product.check(variant, product.result())
    once = run.milliseconds()
    least, most = _LAUNCHES
    # Milliseconds of launches at one place in memory.
    milliseconds = 8.0
    count = min(most, max(least, round(milliseconds / once)))
    # The chip rests ten times as long as a product takes,
    times = 10
    # and at least one millisecond: single launches then run at one clock.
    least_pause = 1.0
    pause = max(least_pause, times * once) / 1000
    found = [run.alone(place, count, pause) for place in range(len(product.places))]
    cycles = [cycles for cycles, _ in found]
    typical, peak = statistics.fmean(cycles), PEAK.get(gpu.compute_capability)
    return Point(
        *(variant.label, variant.name, variant.options, size, once),
        cycles=(typical, min(cycles), max(cycles)),
        mhz=statistics.fmean(mhz for _, mhz in found),
        share=size**3 / (typical * gpu.sm_count * peak) if peak else None,
        checked=checked,
    )


def _sustained(gpu: Device, product: Product, built: Built, runs: int) -> float:
    """Milliseconds of a product where one follows the other, the median of `runs` groups."""
    run = Launcher(product, built)

    def group(count: int) -> float:
        def launch_all() -> None:
            for _ in range(count):
                run.launch()

        return gpu.milliseconds(launch_all, run.name) / count

    return steady_milliseconds(group, runs)


def steady_milliseconds(group: Callable[[int], float], runs: int) -> float:
    """Median milliseconds of one of `runs` groups of launches, after enough launches to settle the board's
    power.

    Args:
        group: makes that many launches; returns the milliseconds of one.
    """
    group(1)  # a library chooses a kernel
    # Milliseconds of launches between two events.
    milliseconds = 10.0
    count = max(1, round(milliseconds / group(1)))
    spent = 0.0
    # Milliseconds until clocks and temperature have settled.
    settling = 250.0
    while spent < settling:
        spent += count * group(count)
    return statistics.median(group(count) for _ in range(runs))


def _matrices(product: Product, variant: Variant, a: Any, b: Any) -> tuple[Any, Any]:
    """Addresses of A and B, or of maps of them for the copy engine.

    Maps go through memory: by value they have to lie on 128 bytes, which the driver's packed parameters are
    not moved to.
    """
    if not variant.warpgroups:
        return a, b
    m, n, _ = variant.tile
    boxes = (m, n // variant.cluster)
    first, second = (
        product.gpu.upload(tensor_map_of_bf16_rows(int(matrix), product.size, product.size, box))
        for matrix, box in zip((a, b), boxes, strict=True)
    )
    return first, second


def longest(kernel: Kernel, clocks: Codes) -> float:
    """Cycles of the multiprocessor that took longest; clocks: (multiprocessor, start, stop, the same two in
    nanoseconds) of every block."""
    places, starts, stops = clocks.T[:3]
    if not ((starts > 0) & (stops > starts)).all():
        raise DeviceError(f"kernel {kernel.name}: it gave no time for some of its {len(clocks)} blocks")
    return float(max(int(stops[places == at].max() - starts[places == at].min()) for at in np.unique(places)))


def rate(clocks: Codes) -> float:
    """MHz of the multiprocessors during a launch, by the GPU's timer; 0 where that stood still."""
    _, starts, stops, begun, ended = clocks.T.astype(np.int64)
    nanoseconds = int((ended - begun).sum())
    return 1000 * float((stops - starts).sum()) / nanoseconds if nanoseconds > 0 else 0.0


def _library(product: Product, runs: int) -> tuple[Point, list[str]]:
    """The same product by cuBLAS, through PyTorch, with results in f32, and the instructions whose chain
    gives the same bits everywhere; raises ToolMissing."""
    try:
        import torch
    except ImportError:
        raise ToolMissing("PyTorch is not installed: pip install torch") from None
    if not torch.cuda.is_available():
        raise ToolMissing("PyTorch sees no GPU: install one that is built for CUDA")
    a, b = (
        torch.from_numpy(codes.view(np.int16)).cuda().view(torch.bfloat16) for codes in (product.a, product.b)
    )
    d = torch.empty(product.size, product.size, dtype=torch.float32, device="cuda")

    def timed(count: int) -> float:
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        for _ in range(count):
            torch.mm(a, b.T, out_dtype=torch.float32, out=d)
        after.record()
        after.synchronize()
        return float(before.elapsed_time(after)) / count

    milliseconds = steady_milliseconds(timed, runs)
    same = product.same_bits(d.view(torch.int32).cpu().numpy().view(np.uint32))
    return Point(CUBLAS, CUBLAS, "", product.size, milliseconds), same
