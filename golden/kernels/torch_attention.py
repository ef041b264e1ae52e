"""PyTorch's attention on an NVIDIA GPU, bit for bit (the forward pass without dropout): its FlashAttention-2
kernels, and its plain form, which is two products of f32 and a softmax.

Source of the first: Dao-AILab/flash-attention, csrc/flash_attn, as PyTorch 2.11 compiles it (UNFUSE_FMA). A
block of threads takes some queries, and blocks of keys from the last to the first. Scores are chains of
m16n8k16 over the head. Of each row four threads have two neighbours of every eight scores: each adds its own
weights in turn, over all blocks of keys; the four are added at the end. If there are few queries, a second
kernel adds results of parts of the keys (`splits`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, OperandError, ShapeError
from golden.kernels.conversion import encode
from golden.kernels.libdevice import LN_2, exp, log, unit
from golden.kernels.plan import Plan, build
from golden.kernels.plan_files import fma, plan
from golden.kernels.product import gemm
from golden.kernels.reductions import in_halves, in_turn, padded
from golden.kernels.sums import fused
from golden.kernels.torch_rows import softmax
from golden.model.instruction import Evidence
from golden.number.formats import from_float, get_format

Numbers = npt.NDArray[Any]
_HEADS = (32, 64, 96, 128, 192, 256)
"""A head of another size is filled with zeros to the next one."""
_TILES = {64: (128, 128), 192: (128, 64), 256: (64, 64)}
"""Queries and keys of a block, for heads up to this size."""
_TILES_SPLIT = {64: (64, 256), 128: (64, 128), 256: (64, 64)}
"""The same of the kernel that takes a part of the keys."""
_COMBINED_ROWS = {_TILES_SPLIT[64]: 8, _TILES_SPLIT[128]: 4, _TILES_SPLIT[256]: 4}
"""Rows that a block of the second kernel takes."""
_FORMATS = ("f16", "bf16")
QUERIES_MATH = 17
"""Queries from which on cuBLAS's f32 kernels have one chain."""
_MATH = Evidence("captured", "PyTorch 2.11, CUDA 13.0, an NVIDIA H200: docs/reports/torch-h200.md")


def flash(
    q: Numbers,
    k: Numbers,
    v: Numbers,
    fmt: str,
    *,
    scale: float | None = None,
    causal: bool = False,
    processors: int = 132,
) -> tuple[Numbers, Numbers]:
    """What `torch.ops.aten._scaled_dot_product_flash_attention` returns: results and logarithms of sums.

    Args:
        q: codes of the queries (batch, heads, queries, head), uint16. k, v: of the keys and values, the same
            with their number in place of the queries'.
        fmt: "f16" or "bf16".
        scale: of the scores; default: head^(-1/2).
        causal: a query sees the keys up to its own place; then keys and queries are equal in number.
        processors: of the GPU; an H100 SXM and an H200 have 132. With fewer queries than these can take,
            keys are split.

    Returns:
        Codes of q's shape, and f32 numbers (batch, heads, queries).

    Raises:
        OperandError, DTypeError, ShapeError: an argument is not of this kind.
    """
    _check(q, k, v, fmt, causal)
    head = q.shape[-1]
    factor = np.float32(head**-0.5 if scale is None else scale)
    # Queries of a block of the kernel that takes a part of the keys.
    queries_split = 64
    blocks = q.shape[0] * q.shape[1] * -(-q.shape[2] // queries_split)
    parts = splits(blocks, k.shape[2], head, processors)
    tile = _tile(_TILES if parts == 1 else _TILES_SPLIT, head)
    size = next(one for one in _HEADS if head <= one)
    q, k, v = (padded(one, size, 0) for one in (q, k, v))
    count = -(-k.shape[2] // tile[1])
    each = -(-count // parts)
    found = [
        _part(q, k, v, fmt, factor, causal, range(first, min(first + each, count)), tile)
        for first in range(0, parts * each, each)
    ]
    results, logarithms = (np.stack(one) for one in zip(*found, strict=True))
    # The word of a NaN that a conversion to 16 bits gives.
    nan_word = 0x7FFF
    if parts == 1:
        logarithm = np.where(np.isneginf(logarithms[0]), np.float32(np.inf), logarithms[0])
        return encode(results[0][..., :head], get_format(fmt), nan_word), logarithm
    total, logarithm = _combined(results[..., :head], logarithms, _COMBINED_ROWS[tile])
    return encode(total, get_format(fmt), nan_word), logarithm


def math(q: Numbers, k: Numbers, v: Numbers, *, scale: float | None = None, causal: bool = False) -> Numbers:
    """The plain form on numbers of f32, before the result is rounded: q and k each times the root of the
    scale, and products in one chain of fused multiply-adds, as cuBLAS's kernels for many queries have it."""
    _check_shapes(q, k, v, causal)
    if q.shape[2] < QUERIES_MATH or q.shape[0] * q.shape[1] == 1:
        raise OperandError(
            f"{q.shape[2]} queries and {q.shape[0] * q.shape[1]} heads, expected {QUERIES_MATH} queries or "
            "more and two heads: else cuBLAS splits the keys, or takes other kernels (gemmSN, gemv), by "
            "rules that have no model here"
        )
    factor = np.float32(np.sqrt(q.shape[-1] ** -0.5 if scale is None else scale))
    chain = build(fma("f32", "f32"), {}, evidence=_MATH)
    with np.errstate(all="ignore"):
        scores = gemm(q * factor, (k * factor).swapaxes(-1, -2), chain).view(np.float32)
        if causal:  # a mask is added, so that infinity becomes a NaN
            seen = np.arange(k.shape[2]) <= np.arange(q.shape[2])[:, None]
            scores = scores + np.where(seen, np.float32(0), np.float32(-np.inf))
        weights = softmax(scores, -1, scores.itemsize)
        # A row that sees nothing has no weights, rather than NaNs.
        weights = np.where(np.isneginf(scores).all(axis=-1, keepdims=True), np.float32(0), weights)
    return np.asarray(gemm(weights, v, chain).view(np.float32))


def splits(blocks: int, keys: int, head: int, processors: int = 132) -> int:
    """In how many parts the keys are taken: the least number that keeps at least 85 % as many processors busy
    as the best one. `blocks`: of 64 queries, of all heads."""
    processors *= 2  # two blocks run on one
    if blocks >= np.float32(0.8) * np.float32(processors):
        return 1
    count = -(-keys // _tile(_TILES_SPLIT, head)[1])
    busy = {}
    most_splits = 128
    for parts in range(1, min(most_splits, processors, count) + 1):
        if parts == 1 or -(-count // parts) != -(-count // (parts - 1)):
            waves = np.float32(blocks * parts) / np.float32(processors)
            busy[parts] = waves / np.ceil(waves)
    return next(parts for parts, share in busy.items() if share >= 0.85 * max(busy.values()))


def _check(q: Numbers, k: Numbers, v: Numbers, fmt: str, causal: bool) -> None:
    """Raises an error unless the kernels take these."""
    if fmt not in _FORMATS:
        raise OperandError(f"q, k and v are {fmt}, expected {' or '.join(_FORMATS)}")
    for name, one in (("q", q), ("k", k), ("v", v)):
        if one.dtype != np.uint16:
            raise DTypeError(f"argument '{name}' has dtype {one.dtype}, expected uint16 (raw {fmt} bits)")
    _check_shapes(q, k, v, causal)
    if q.shape[3] > _HEADS[-1]:
        raise ShapeError(f"q has the shape {q.shape}, expected a head of at most {_HEADS[-1]}")


def _check_shapes(q: Numbers, k: Numbers, v: Numbers, causal: bool) -> None:
    if q.ndim != 4 or k.shape != v.shape or k.shape[:2] + k.shape[3:] != q.shape[:2] + q.shape[3:]:
        raise ShapeError(
            f"q, k, v have the shapes {q.shape}, {k.shape}, {v.shape}, expected (batch, heads, queries, "
            "head) and twice (batch, heads, keys, head)"
        )
    if causal and q.shape[2] != k.shape[2]:
        raise ShapeError(f"causal with {q.shape[2]} queries and {k.shape[2]} keys, expected equal numbers")


def _tile(tiles: dict[int, tuple[int, int]], head: int) -> tuple[int, int]:
    return next(tile for size, tile in tiles.items() if head <= size)


def _chain(fmt: str) -> Plan:
    """A chain of the instruction from c on."""
    return plan("hopper", f"mma.sync.aligned.m16n8k16.row.col.f32.{fmt}.{fmt}.f32", c="seed")


def _part(
    q: Numbers,
    k: Numbers,
    v: Numbers,
    fmt: str,
    factor: np.float32,
    causal: bool,
    blocks: range,
    tile: tuple[int, int],
) -> tuple[Numbers, Numbers]:
    """Results in f32 and logarithms of sums, of some blocks of keys, the last one first. A row that sees no
    key has zeros and minus infinity."""
    chain, f32 = _chain(fmt), get_format("f32")
    log2_factor = np.float32(np.float64(factor) * np.log2(np.e))
    every_total = np.zeros(q.shape, np.float32)
    every_most = np.full(q.shape[:3], -np.inf, np.float32)
    # Threads of a row, and neighbours that each of them holds.
    quad, pair = 4, 2
    every_sums = np.zeros((*q.shape[:3], quad), np.float32)
    number, size = k.shape[2], tile[1]
    for block in reversed(blocks):
        places = np.arange(block * size, (block + 1) * size)
        keys, values = (_rows(one, places) for one in (k, v))
        # Blocks of queries that see none of these keys skip them.
        first = block * size // tile[0] * tile[0] if causal else 0
        total, most, sums = every_total[:, :, first:], every_most[:, :, first:], every_sums[:, :, first:]
        rows = most.shape
        none = np.zeros((*rows, size), np.uint32)
        scores = gemm(q[:, :, first:], keys.swapaxes(-1, -2), chain, C=none).view(np.float32)
        seen = places < number
        if causal:
            seen = seen & (places <= np.arange(first, q.shape[2])[:, None])
        scores = np.where(seen, scores, np.float32(-np.inf))
        with np.errstate(invalid="ignore", over="ignore"):
            # The maximum of all scores up to here; sums and results so far are scaled to it.
            before, most = most, np.fmax(most, np.fmax.reduce(scores, axis=-1))
            some = np.where(np.isneginf(most), np.float32(0), most)
            rescale = _exp2((before - some) * log2_factor)
            rescale = rescale[..., None]
            total = total * rescale
            highest = np.where(np.isneginf(most), np.float32(0), most * log2_factor)
            weights = _exp2(scores * log2_factor - highest[..., None])
        # Each thread adds its pairs in turn to what it has; the scaling and the first addition are fused.
        pairs = weights.reshape(*rows, -1, quad, pair).swapaxes(-1, -2).reshape(*rows, -1, quad)
        pairs[..., 0, :] = fused(sums, np.broadcast_to(rescale, sums.shape), pairs[..., 0, :])
        sums = in_turn(pairs, -2)
        total = gemm(from_float(fmt, weights), values, chain, C=total.view(f32.dtype)).view(np.float32)
        every_total[:, :, first:], every_most[:, :, first:], every_sums[:, :, first:] = total, most, sums
    total, most = every_total, every_most
    whole = in_halves(every_sums, -1)
    empty = (whole == 0) | np.isnan(whole)
    with np.errstate(divide="ignore", invalid="ignore"):
        results = total * np.where(empty, np.float32(1), np.float32(1) / whole)[..., None]
        # __logf: the unit's logarithm times ln 2, which is rounded, then one fused multiply-add.
        own = unit("lg2.approx.ftz.f32")(whole) * LN_2
        logarithm = fused(most, np.full_like(most, factor), own)
    return results, np.where(empty, np.float32(-np.inf), logarithm)


def _rows(x: Numbers, places: Numbers) -> Numbers:
    """Keys or values of a block; zeros where there are none."""
    there = places < x.shape[2]
    return np.where(there[:, None], x[:, :, np.minimum(places, x.shape[2] - 1)], x.dtype.type(0))


def _exp2(x: Numbers) -> Numbers:
    """exp2f."""
    return unit("ex2.approx.f32")(x)


def _combined(results: Numbers, logarithms: Numbers, rows: int) -> tuple[Numbers, Numbers]:
    """The second kernel: parts in turn, in fused multiply-adds, each times expf of its logarithm less that
    of all. A block has `rows` rows; N threads hold the logarithms of one, each every N-th."""
    parts = len(results)
    held = 1 << max((parts - 1).bit_length(), 1)
    combine_threads = 128
    threads = min(combine_threads // rows, held)
    most = np.fmax.reduce(logarithms)
    some = np.where(np.isneginf(most), np.float32(0), most)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = exp(logarithms - some)
        own = padded(np.moveaxis(shares, 0, -1), held).reshape(*most.shape, -1, threads)
        whole = in_halves(in_turn(own, -2), -1)
        empty = (whole == 0) | np.isnan(whole)
        logarithm = np.where(empty, np.float32(np.inf), log(whole) + some)
        total = np.zeros(results.shape[1:], np.float32)
        for one, of_it in zip(results, logarithms, strict=True):
            share = np.broadcast_to(exp(of_it - logarithm)[..., None], total.shape)
            total = fused(share, one, total)
    return total, logarithm
