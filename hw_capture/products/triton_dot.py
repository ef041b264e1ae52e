"""A matrix product in Triton: one tile of D in each program, `tl.dot` over ascending K."""

# mypy: ignore-errors
# Triton compiles the text of the function: its annotations are the language's.

from typing import Any

import triton
import triton.language as tl

TILE_K = 64
"""Elements of K that are taken at once, of types of more than a byte: the tile of the plans in parts."""


@triton.jit
def product(
    a, b, d, K, a_row, a_column, b_row, b_column, d_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    IMPRECISE: tl.constexpr, PRECISION: tl.constexpr, TOTAL: tl.constexpr,
):  # fmt: skip
    """D = A * B for one tile of BM x BN; M, N and K are multiples of the tile."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    step = tl.arange(0, BK)
    total = tl.zeros((BM, BN), TOTAL)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * a_row + (k + step)[None, :] * a_column)
        y = tl.load(b + (k + step)[:, None] * b_row + columns[None, :] * b_column)
        total = tl.dot(
            x, y, total, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE, out_dtype=TOTAL
        )
    tl.store(d + rows[:, None] * d_row + columns[None, :], total)


def launch(a: Any, b: Any, d: Any, warps: int, imprecise: int | None, precision: str | None) -> None:
    """Fills d (m, n) from a (m, k) and b (k, n); sums have the type of d.

    Four warps and tiles of 64 rows become wgmma, one warp mma.sync.
    """
    m, n = d.shape
    tile_m = 64 if warps == 4 and m % 64 == 0 else 16
    tile_n = 32 if n % 32 == 0 else 16
    product[(m // tile_m, n // tile_n)](
        a, b, d, a.shape[1], a.stride(0), a.stride(1), b.stride(0), b.stride(1), d.stride(0),
        BM=tile_m, BN=tile_n, BK=128 if a.element_size() == 1 else TILE_K,
        IMPRECISE=imprecise, PRECISION=precision, TOTAL=getattr(tl, str(d.dtype).partition(".")[2]),
        num_warps=warps,
    )  # fmt: skip


@triton.jit
def rows_product(
    a, b, d, M, K, a_row, a_column, b_row, b_column, d_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """D = A * B for one tile of BM x BN of any number of rows; N and K are multiples of the tile."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    step, inside = tl.arange(0, BK), rows < M
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(
            a + rows[:, None] * a_row + (k + step)[None, :] * a_column, mask=inside[:, None], other=0.0
        )
        y = tl.load(b + (k + step)[:, None] * b_row + columns[None, :] * b_column)
        total = tl.dot(x, y, total)
    tl.store(d + rows[:, None] * d_row + columns[None, :], total.to(d.dtype.element_ty), mask=inside[:, None])


def launch_rows(a: Any, b: Any, d: Any) -> None:
    """Fills d (m, n) from a (m, k) and b (k, n) with the same tiles for every m: tiles of 64 x 128, one chain
    over K for each element."""
    m, n = d.shape
    tile_m, tile_n = 64, 128
    rows_product[(n // tile_n, -(-m // tile_m))](
        a, b, d, m, a.shape[1], a.stride(0), a.stride(1), b.stride(0), b.stride(1), d.stride(0),
        BM=tile_m, BN=tile_n, BK=TILE_K, num_warps=4, num_stages=4,
    )  # fmt: skip
