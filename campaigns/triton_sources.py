"""Kernels in Triton as projects write them: matrix products with tiles in groups, persistent, with K split,
of weights in fewer bits, with scales of blocks, gated; and attention. A GPU compiles them, and Triton's
interpreter runs them on a CPU (mmagold.triton)."""

# mypy: ignore-errors
# Triton compiles the text of the functions: their annotations are the language's.

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tile(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of a tile: GROUP rows of tiles, column by column, share B in the cache."""
    group = tile // (GROUP * tiles_n)
    first = group * GROUP
    rows = min(tiles_m - first, GROUP)
    inside = tile % (GROUP * tiles_n)
    return first + inside % rows, inside // rows


@triton.jit
def grouped(
    a, b, d, M, N, K, a_row, a_column, b_row, b_column, d_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    IMPRECISE: tl.constexpr, PRECISION: tl.constexpr, TOTAL: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """D = A B, any M, N and K, with sums of the type TOTAL. HOW: "chain" gives the accumulator to tl.dot,
    "plus" adds each dot to it; "leaky" is "chain" with a leaky relu."""
    row, column = _tile(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    rows, columns, step = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    at_a = a + (rows % M)[:, None] * a_row + step[None, :] * a_column
    at_b = b + step[:, None] * b_row + (columns % N)[None, :] * b_column
    total = tl.zeros((BM, BN), TOTAL)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(at_a, mask=step[None, :] < K - k * BK, other=0.0)
        y = tl.load(at_b, mask=step[:, None] < K - k * BK, other=0.0)
        if HOW == "plus":
            total += tl.dot(x, y, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE, out_dtype=TOTAL)
        else:
            total = tl.dot(
                x, y, total, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE, out_dtype=TOTAL
            )
        at_a += BK * a_column
        at_b += BK * b_row
    if HOW == "leaky":
        total = tl.where(total >= 0, total, 0.01 * total)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(d + rows[:, None] * d_row + columns[None, :], total.to(d.dtype.element_ty), mask=inside)


@triton.jit
def persistent(
    a, b, d, bias, M, N, K, a_row, a_column, b_row, b_column, d_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
    BIAS: tl.constexpr,
):  # fmt: skip
    """D = A B (+ bias of columns) with as many programs as the GPU runs at once, each of several tiles: the
    order of K does not depend on M."""
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    step = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS):
        row, column = _tile(tile, tiles_m, tiles_n, GROUP)
        rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
        safe_rows, safe_columns = tl.where(rows < M, rows, 0), tl.where(columns < N, columns, 0)
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            at = k * BK + step
            x = tl.load(a + safe_rows[:, None] * a_row + at[None, :] * a_column, at[None, :] < K, 0.0)
            y = tl.load(b + at[:, None] * b_row + safe_columns[None, :] * b_column, at[:, None] < K, 0.0)
            total = tl.dot(x, y, total)
        if BIAS:
            total += tl.load(bias + columns, columns < N, 0.0).to(tl.float32)[None, :]
        inside = (rows < M)[:, None] & (columns < N)[None, :]
        tl.store(d + rows[:, None] * d_row + columns[None, :], total.to(d.dtype.element_ty), mask=inside)


@triton.jit
def split(
    a, b, sums, K, part, a_row, a_column, b_row, b_column, N,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The sums of the parts of K, in f32: sums (parts, M, N). M and N are multiples of the tile."""
    row, column, number = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows, columns, step = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(number * part, min((number + 1) * part, K), BK):
        at = k + step
        x = tl.load(a + rows[:, None] * a_row + at[None, :] * a_column, at[None, :] < K, 0.0)
        y = tl.load(b + at[:, None] * b_row + columns[None, :] * b_column, at[:, None] < K, 0.0)
        total = tl.dot(x, y, total)
    M = tl.num_programs(0) * BM
    tl.store(sums + (number * M + rows[:, None]) * N + columns[None, :], total)


@triton.jit
def reduce_parts(sums, d, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """The parts added in ascending order, rounded once to D's type."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(sums + at, at < size, 0.0)
    for part in range(1, PARTS):
        total += tl.load(sums + part * size + at, at < size, 0.0)
    tl.store(d + at, total.to(d.dtype.element_ty), at < size)


@triton.jit
def narrow_weights(
    a, b, scales, d, K, a_row, b_row, d_row, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """D = A B of weights B in 8 bits (integers, or fp8), which become A's type in the kernel, times a scale
    of each column. M, N and K are multiples of the tile."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    step = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * a_row + (k + step)[None, :])
        y = tl.load(b + (k + step)[:, None] * b_row + columns[None, :])
        total = tl.dot(x, y.to(x.dtype), total)
    total = total * tl.load(scales + columns)[None, :]
    tl.store(d + rows[:, None] * d_row + columns[None, :], total.to(d.dtype.element_ty))


@triton.jit
def scaled_blocks(
    a, b, scale_a, scale_b, d, K, a_row, b_row, d_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """D = A B of fp8 with an f32 scale for each row of A and column of B of every BK elements of K. Scales
    are (K / BK, M) and (K / BK, N)."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    step = tl.arange(0, BK)
    M, N = tl.num_programs(0) * BM, tl.num_programs(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K // BK):
        at = k * BK + step
        x = tl.load(a + rows[:, None] * a_row + at[None, :])
        y = tl.load(b + at[:, None] * b_row + columns[None, :])
        of_rows, of_columns = tl.load(scale_a + k * M + rows), tl.load(scale_b + k * N + columns)
        total += tl.dot(x, y) * of_rows[:, None] * of_columns[None, :]
    tl.store(d + rows[:, None] * d_row + columns[None, :], total.to(d.dtype.element_ty))


@triton.jit
def gated(a, b, gate, d, K, a_row, b_row, d_row, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """D = (A B) silu(A G), the two products of a gated layer in one kernel; silu(x) = x / (1 + exp(-x)). M, N
    and K are multiples of the tile."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    step = tl.arange(0, BK)
    total, of_gate = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * a_row + (k + step)[None, :])
        total = tl.dot(x, tl.load(b + (k + step)[:, None] * b_row + columns[None, :]), total)
        of_gate = tl.dot(x, tl.load(gate + (k + step)[:, None] * b_row + columns[None, :]), of_gate)
    total = total * (of_gate * tl.sigmoid(of_gate))
    tl.store(d + rows[:, None] * d_row + columns[None, :], total.to(d.dtype.element_ty))


@triton.jit
def _attend(
    total, weight, most, q, k, v, scale, first, last, rows,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """FlashAttention-2 over the keys from first to last: weighted sums of v, weights and the largest score,
    each scaled again whenever a larger score comes."""
    keys, places = tl.arange(0, BN), tl.arange(0, D)
    for start in tl.range(first, last, BN):
        at = start + keys
        score = tl.dot(q, tl.load(k + at[None, :] * D + places[:, None]))
        if MASKED:
            score = score * scale + tl.where(rows[:, None] >= at[None, :], 0, -1.0e6)
            now = tl.maximum(most, tl.max(score, 1))
            score -= now[:, None]
        else:
            now = tl.maximum(most, tl.max(score, 1) * scale)
            score = score * scale - now[:, None]
        p = tl.math.exp2(score)
        again = tl.math.exp2(most - now)
        total = total * again[:, None]
        total = tl.dot(p.to(v.dtype.element_ty), tl.load(v + at[:, None] * D + places[None, :]), total)
        weight = weight * again + tl.sum(p, 1)
        most = now
    return total, weight, most


@triton.jit
def attention(
    q, k, v, d, weights, maxima, scale, LENGTH: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One tile of BM queries of one head: q, k, v and d are (heads, LENGTH, D); weights and maxima
    (heads, LENGTH) are the sum of the weights and the largest score, in powers of two."""
    tile, head = tl.program_id(0), tl.program_id(1)
    rows, places = tile * BM + tl.arange(0, BM), tl.arange(0, D)
    base = head.to(tl.int64) * LENGTH * D
    scale *= 1.44269504
    x = tl.load(q + base + rows[:, None] * D + places[None, :])
    total = tl.zeros((BM, D), tl.float32)
    weight = tl.zeros((BM,), tl.float32) + 1.0
    most = tl.zeros((BM,), tl.float32) - float("inf")
    if CAUSAL:
        edge = tile * BM
        total, weight, most = _attend(
            total, weight, most, x, k + base, v + base, scale, 0, edge, rows, D, BM, BN, False
        )
        total, weight, most = _attend(
            total, weight, most, x, k + base, v + base, scale, edge, edge + BM, rows, D, BM, BN, True
        )
    else:
        total, weight, most = _attend(
            total, weight, most, x, k + base, v + base, scale, 0, LENGTH, rows, D, BM, BN, False
        )
    tl.store(weights + head * LENGTH + rows, weight)
    tl.store(maxima + head * LENGTH + rows, most)
    total = total / weight[:, None]
    tl.store(d + base + rows[:, None] * D + places[None, :], total.to(d.dtype.element_ty))


# Sums of blocks that no tl.dot gave: their order is that of a layout which the compiler chooses.


@triton.jit
def softmax(x, d, n, stride, BM: tl.constexpr, BN: tl.constexpr):
    """A row of up to BN columns, BM rows in each program."""
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    at = i[:, None] * stride + j[None, :]
    seen = (j < n)[None, :]
    scores = tl.load(x + at, mask=seen, other=-float("inf")).to(tl.float32)
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    tl.store(d + at, (weights / tl.sum(weights, 1)[:, None]).to(d.dtype.element_ty), mask=seen)


@triton.jit
def rms_norm(x, d, n, stride, BM: tl.constexpr, BN: tl.constexpr):
    """A row in blocks of BN columns; squares are summed in a loop, then along the block."""
    row = tl.program_id(0) * stride
    squares = tl.zeros((BN,), tl.float32)
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        part = tl.load(x + row + j, mask=j < n, other=0.0).to(tl.float32)
        squares += part * part
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + 1e-5)
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        part = tl.load(x + row + j, mask=j < n, other=0.0).to(tl.float32)
        tl.store(d + row + j, (part * scale).to(d.dtype.element_ty), mask=j < n)


@triton.jit
def column_sums(x, d, n, stride, BM: tl.constexpr, BN: tl.constexpr):
    """Columns over four blocks of BM rows, and the sum of all of them."""
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, 4 * BM, BM):
        i = start + tl.arange(0, BM)
        total += tl.load(x + i[:, None] * stride + j[None, :], mask=(j < n)[None, :], other=0.0).to(
            tl.float32
        )
    columns = tl.sum(total, axis=0)
    tl.store(d + j, columns.to(d.dtype.element_ty), mask=j < n)
    tl.store(d + n + tl.program_id(0), tl.sum(columns, axis=0).to(d.dtype.element_ty))
