"""Runs the ladder on a GPU: time, cycles and share of the peak of whole matrix products, with their results
checked.

Times are those of two events around some launches; cycles are the longest that a multiprocessor took from the
start of its first block to the end of its last one, by its own clock. Every run begins with D full of NaN. Of
D, whole rows and whole columns at full K are held against golden.gemm, for the chain of that kernel's
instruction, and all of D against the first kernel with the same instruction.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import golden
from hw_capture.bench.ablation.machine_code import Built
from hw_capture.bench.ablation.variants import Variant
from hw_capture.bench.building import Progress
from hw_capture.bench.clocks import Watch, state
from hw_capture.bench.records import Conditions
from hw_capture.errors import DeviceError, HwError, ToolMissing
from hw_capture.gpu.device import Device, Kernel
from hw_capture.gpu.tensor_map import bf16_rows

PEAK = {(8, 0): 1024, (8, 6): 512, (8, 9): 512, (9, 0): 2048}
"""Multiply-adds of bf16, added in f32, of one multiprocessor in a cycle, by compute capability: NVIDIA's
white papers of the A100, the GA102 and AD102 of professional boards, and the H100."""
LINES = 4
"""Rows and columns of D that the model computes, whole."""
CUBLAS = "cublas"
Codes = npt.NDArray[Any]


class ResultError(HwError):
    """A kernel's product is not what the model says, bit for bit."""


@dataclass(frozen=True)
class Point:
    """One kernel at one size. cycles: median, least and most of the runs, None of a library. checked:
    elements of D that the model computed."""

    label: str
    name: str
    options: str
    size: int
    milliseconds: float
    cycles: tuple[float, float, float] | None
    share: float | None
    checked: int

    @property
    def teraflops(self) -> float:
        """Two operations a multiply-add."""
        return 2 * self.size**3 / self.milliseconds / 1e9


@dataclass
class Result:
    """Everything of one run.

    loops: what a kernel's step of K holds. same_bits: of a library, the instructions whose chain over K gives
    all bits of its D. mhz: cycles of a kernel by its time.
    """

    conditions: Conditions
    points: list[Point] = field(default_factory=list)
    loops: dict[str, dict[str, int]] = field(default_factory=dict)
    mhz: dict[str, float] = field(default_factory=dict)
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
        DeviceError: the GPU fails, or has too little memory.
        ResultError: a product is not the model's.
    """
    result = Result(Watch(gpu).conditions)
    kernels = []
    for item in built:
        if isinstance(item, Built):
            kernels.append(item)
            result.loops[item.variant.label] = item.loop
        else:
            result.conditions.left_out[item[0].label] = item[1]
    for size in sizes:
        product = Product(gpu, size, seed)
        for done, one in enumerate(kernels):
            if progress:
                progress(f"{one.variant.label}, {size}", done, len(kernels))
            point, mhz = _point(product, one, runs)
            result.points.append(point)
            result.mhz[f"{one.variant.label}, {size}"] = mhz
        try:
            point, result.same_bits[f"{CUBLAS}, {size}"] = _library(product, runs)
            result.points.append(point)
        except ToolMissing as error:
            result.conditions.left_out[f"{CUBLAS}, {size}"] = str(error)
    result.conditions.state_after = state()
    return result


def operands(size: int, seed: int) -> tuple[Codes, Codes]:
    """A and B (transposed, so that K is contiguous) in bf16: uniform in [-1, 1), cut to bf16."""
    rng = np.random.default_rng(seed)
    a, b = (rng.random((size, size), np.float32) * np.float32(2) - np.float32(1) for _ in range(2))
    return (a.view(np.uint32) >> 16).astype(np.uint16), (b.view(np.uint32) >> 16).astype(np.uint16)


class Product:
    """A matrix product of one size: operands here and on the GPU, and what the model says of some of it."""

    def __init__(self, gpu: Device, size: int, seed: int) -> None:
        self.gpu, self.size = gpu, size
        self.a, self.b = operands(size, seed)
        self.on_gpu = gpu.upload(self.a), gpu.upload(self.b)
        drawn = np.random.default_rng(seed + 1)
        self.lines = np.sort(drawn.choice(size, LINES, replace=False))
        self.d = gpu.empty(4 * size * size)
        self._expected: dict[str, tuple[Codes, Codes]] = {}
        self._first: dict[str, Codes] = {}

    def spoil(self) -> None:
        """Fills D with NaN, so that what a kernel does not write is seen."""
        self.gpu.fill(self.d, 4 * self.size * self.size, 0xFF)

    def result(self) -> Codes:
        """D as it is on the GPU."""
        return self.gpu.download(self.d, (self.size, self.size), np.uint32)

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


def _point(product: Product, built: Built, runs: int) -> tuple[Point, float]:
    """Measures one kernel; returns the clock beside it, in MHz, as cycles by time."""
    gpu, variant, size = product.gpu, built.variant, product.size
    kernel = gpu.load(built.cubin).get("run")
    if variant.dynamic_shared:
        kernel.allow_shared(variant.dynamic_shared)
    blocks = (size // variant.tile[0]) * (size // variant.tile[1])
    clocks = gpu.empty(24 * blocks)
    arguments = (*_matrices(product, variant), product.d, clocks, size, size, size)

    def launch() -> None:
        kernel.launch(*arguments, grid=blocks, block=variant.threads, shared=variant.dynamic_shared)

    product.spoil()
    launch()
    gpu.wait(variant.label)
    checked = product.check(variant, product.result())
    count = _launches(gpu.milliseconds(launch, variant.label))

    def launch_all() -> None:
        for _ in range(count):
            launch()

    times, cycles = [], []
    for _ in range(runs):
        gpu.fill(clocks, 24 * blocks, 0)
        times.append(gpu.milliseconds(launch_all, variant.label) / count)
        cycles.append(longest(kernel, gpu.download(clocks, (blocks, 3), np.uint64)))
    typical = statistics.median(cycles)
    peak = PEAK.get(gpu.compute_capability)
    share = size**3 / (typical * gpu.sm_count * peak) if peak else None
    spread = (typical, min(cycles), max(cycles))
    milliseconds = statistics.median(times)
    point = Point(variant.label, variant.name, variant.options, size, milliseconds, spread, share, checked)
    return point, typical / milliseconds / 1e3


def _launches(milliseconds: float) -> int:
    """Launches between two events: about 10 ms of them, since the host takes its time for each."""
    return max(1, min(50, round(10 / milliseconds)))


def _matrices(product: Product, variant: Variant) -> tuple[Any, Any]:
    """Addresses of A and B, or of maps of them for the copy engine.

    Maps go through memory: by value they have to lie on 128 bytes, which the driver's packed parameters are
    not moved to.
    """
    if not variant.warpgroups:
        return product.on_gpu
    m, n, _ = variant.tile
    boxes = (m, n // variant.cluster)
    a, b = (
        product.gpu.upload(bf16_rows(int(matrix), product.size, product.size, box))
        for matrix, box in zip(product.on_gpu, boxes, strict=True)
    )
    return a, b


def longest(kernel: Kernel, clocks: Codes) -> float:
    """Cycles of the multiprocessor that took longest; clocks: (multiprocessor, start, stop) of every
    block."""
    places, starts, stops = clocks.T
    if not ((starts > 0) & (stops > starts)).all():
        raise DeviceError(f"kernel {kernel.name}: it gave no time for some of its {len(clocks)} blocks")
    return float(max(int(stops[places == at].max() - starts[places == at].min()) for at in np.unique(places)))


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

    timed(1)  # chooses a kernel
    count = _launches(timed(1))
    milliseconds = statistics.median(timed(count) for _ in range(runs))
    same = product.same_bits(d.view(torch.int32).cpu().numpy().view(np.uint32))
    return Point(CUBLAS, CUBLAS, "", product.size, milliseconds, None, None, 0), same
