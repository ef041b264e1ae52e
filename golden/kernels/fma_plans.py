"""Plans of kernels that use no matrix unit: chains of fused multiply-adds, as found by calls on an H200."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.kernels.plan import Plan, build
from golden.model.instruction import Evidence, Instruction

_H200 = "PyTorch 2.11, CUDA 13.0, an NVIDIA H200: docs/reports/batch-sizes.md"
_THREADS, _NEIGHBOURS, _WARPS, _LONG = 32, 4, 16, 8192
"""Of PyTorch's sum: threads of a warp, neighbours that each takes at once; warps for a row of this length."""
_CHAINS = 16
"""Of the matrix-vector kernel: threads that share each stretch of K, and products in each of their chains."""


@lru_cache(maxsize=8)
def fma(operands: str, sums: str) -> Instruction:
    """One fused multiply-add as a unit: a and b of one format, c and d of the other."""
    text = f"unit: fma.{sums}.{operands}\nshape: {{k: 1}}\n"
    text += f"formats: {{a: {operands}, b: {operands}, c: {sums}, d: {sums}}}\nsteps:\n"
    step = "  - fma: {start: c, to: d, rounding: nearest_even}\n"
    return build_instruction(yamlfile.parse(text + step, "fma"))


def gemv(operands: str, out: str) -> Plan:
    """cuBLAS's gemv2T_kernel_val<..., 128, 16, 2, 4>: of each 256 elements of K, 16 threads take every 16th
    in a chain from zero, which is added to the thread's sum; the 16 sums are added in turn."""
    options = {"tile_k": _CHAINS, "slices": _CHAINS, "promote": _CHAINS, "out": out}
    return build(fma(operands, "f32"), options, evidence=Evidence("captured", _H200))


def row_sum(k: int, mean: bool = False) -> Plan:
    """torch.sum (or mean) of f32 along the last dimension, K = 128 to 8192: a warp of 32 threads, each with
    four chains over neighbours; the four are added in turn, the threads' sums in halves. From K = 8192 on 16
    warps share a row, and their sums are added in halves, too. As a product, B is ones."""
    threads = _THREADS * (_WARPS if k >= _LONG else 1)
    sums: list[Any] = [tuple(range(t * _NEIGHBOURS, (t + 1) * _NEIGHBOURS)) for t in range(threads)]
    warps = [_halves(sums[t : t + _THREADS]) for t in range(0, threads, _THREADS)]
    chains = threads * _NEIGHBOURS
    options = {
        "tile_k": chains,
        "slices": chains,
        "reduce": _halves(warps),
        "alpha": 1 / k if mean else 1.0,
    }
    return build(fma("f32", "f32"), options, evidence=Evidence("captured", _H200))


def _halves(sums: list[Any]) -> Any:
    """Each of the first half and its like of the second, then these."""
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [(sums[i], sums[i + half]) for i in range(half)]
    return sums[0]
