"""Plans of kernels that use no matrix unit: chains of fused multiply-adds, as found by calls on an H200."""

from __future__ import annotations

from functools import lru_cache

from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.kernels.plan import Plan, build
from golden.model.instruction import Evidence, Instruction

_H200 = "PyTorch 2.11, CUDA 13.0, an NVIDIA H200: docs/reports/batch-sizes.md"
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
