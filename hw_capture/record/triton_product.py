"""A plain matrix product in Triton, as its tutorials write it: D (M, N) f32 of A (M, K) and B (N, K)."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]  # Triton reads annotations itself, and knows none of ours
    a, b, d, m, n, k, EVERY: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, k, BLOCK_K):
        inside = first + inner < k
        of_a, of_b = (rows < m)[:, None] & inside[None, :], (columns < n)[None, :] & inside[:, None]
        x = tl.load(a + rows[:, None] * k + (first + inner)[None, :], of_a, 0.0)
        y = tl.load(b + columns[None, :] * k + (first + inner)[:, None], of_b, 0.0)
        total = tl.dot(x, y, total, max_num_imprecise_acc=EVERY)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(d + rows[:, None] * n + columns[None, :], total, mask)


def product(a: Any, b: Any, warps: int = 4, every: int | None = None) -> Any:
    """D of tensors on a GPU; `every`: Triton's max_num_imprecise_acc."""
    (m, k), n = a.shape, b.shape[0]
    d = torch.empty((m, n), device="cuda", dtype=torch.float32)
    size = 64 if warps > 1 else 16
    grid = (triton.cdiv(m, size), triton.cdiv(n, size))
    _kernel[grid](a, b, d, m, n, k, every, size, size, 128 if a.element_size() == 1 else 64, num_warps=warps)
    return d
