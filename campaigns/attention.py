"""The two products of attention as fused kernels compute them, compared with chains of instructions.

    python campaigns/attention.py --seed 20261123 [--splits]

Needs PyTorch with CUDA and Triton. QK: with one key the logarithm of the sum, which the kernels return as
well, is the product of a query and the key; cuDNN's went to base 2 and back. PV: keys are unit vectors, so
that scores are what queries hold: 0, -1 and -100 times ln 2. The weights are then 1, 1/2 and 0, and their
sum is a power of two. Each line has the elements and how many differ, by the order in which the keys are
added. Split: the same for the kernel that splits the keys, with weight in every block. A split's sum is
divided by that of its weights; the second kernel adds the splits in turn, each times exp of its logarithm
less that of all, in fused multiply-adds. The logarithm of all is what the kernel returns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from attention_log2 import log2_approx

import golden
from golden.kernels.plan import Plan
from golden.tensors.device_product import raw

HEADS, QUERIES, SPREAD = 4, 128, 3
FORMATS = {torch.float16: "f16", torch.bfloat16: "bf16"}
LOG2_E, LN_2 = np.float32(np.log2(np.e)), np.float32(np.log(2))
BLOCK = 64
"""Keys that a kernel takes at once, and one that splits them at least."""
SPLIT_BLOCK = {64: 256, 128: 128, 256: 64}
"""The same of one that splits them, by head size."""
SPLITS = ((256, 256, 2), (256, 512, 2), (256, 1024, 1), (128, 256, 2), (128, 512, 1), (256, 1024, 4))
"""Head size, keys and batch of its products."""
NO_WEIGHT = -30000.0
"""A score so low that its weight is zero against the sum of any other block, too."""


def attention(kernel: str, q: Any, k: Any, v: Any, scale: float) -> tuple[Any, Any]:
    """Results and logarithms of sums, of one of the two kernels."""
    if kernel == "flash":
        found = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, False, False, scale=scale)
    else:
        found = torch.ops.aten._scaled_dot_product_cudnn_attention(
            q, k, v, None, True, 0.0, False, False, scale=scale
        )
    return found[0], found[1]


def drawn(shape: tuple[int, ...], dtype: Any) -> Any:
    """Normal numbers times powers of two."""
    return (torch.randn(shape) * torch.exp2(torch.randint(-SPREAD, SPREAD + 1, shape))).to(dtype).cuda()


def codes(tensor: Any) -> np.ndarray:
    """Raw codes of 16 bits."""
    found: np.ndarray = raw(tensor.contiguous()).cpu().numpy().view(np.uint16)
    return found


def chain(dtype: Any) -> Plan:
    """One chain of the warp's instruction."""
    fmt = FORMATS[dtype]
    return golden.plan("hopper", f"mma.sync.aligned.m16n8k16.row.col.f32.{fmt}.{fmt}.f32")


def of_qk(kernel: str, dtype: Any, head: int) -> str:
    """Queries times one key."""
    shape = 128, HEADS, QUERIES, head
    q, k, v = drawn(shape, dtype), drawn((128, HEADS, 1, head), dtype), drawn((128, HEADS, 1, head), dtype)
    _, sums = attention(kernel, q, k, v, 1.0)
    found = sums.reshape(128, HEADS, -1)[:, :, :QUERIES].float().cpu().numpy()
    wanted = golden.gemm(codes(q), codes(k.transpose(-1, -2)), chain(dtype))[..., 0].view(np.float32)
    if kernel == "cudnn":
        wanted = wanted * LOG2_E * LN_2
    differ = (found.view(np.uint32) != wanted.view(np.uint32)).sum()
    return f"QK {kernel} {FORMATS[dtype]} {head}: {found.size} elements, {differ} differ"


def scores_of(rng: np.random.Generator, shape: tuple[int, ...], keys: int, alone: int) -> np.ndarray:
    """Scores (*shape, keys) by ln 2, in random order; `alone`: one block of this many keys has all weight."""
    size = alone or keys
    level = np.repeat([0.0, -1.0, -100.0], [size // 4, size // 2, size // 4])
    found = rng.permuted(np.tile(level, (*shape, 1)), axis=-1)
    if not alone:
        return found
    wide = np.full((*shape, keys // alone, alone), NO_WEIGHT)
    where = rng.integers(0, keys // alone, (*shape, 1, 1))
    np.put_along_axis(wide, where, found[..., None, :], axis=-2)
    return wide.reshape(*shape, keys)


def of_pv(kernel: str, dtype: Any, head: int, keys: int, alone: int = 0) -> str:
    """Weights times values, by blocks of keys of which the last comes first."""
    rng, batch = np.random.default_rng(5 + head + keys), 16
    scores = scores_of(rng, (batch, HEADS, QUERIES), keys, alone)
    q = torch.zeros(batch, HEADS, QUERIES, head, dtype=dtype)
    q[..., :keys] = torch.from_numpy(scores).to(dtype)
    k = torch.zeros(batch, HEADS, keys, head, dtype=dtype)
    k[..., range(keys), range(keys)] = 1
    v = drawn((batch, HEADS, keys, head), dtype)
    found = codes(attention(kernel, q.cuda(), k.cuda(), v, float(np.log(np.float32(2))))[0])
    fmt, differ = FORMATS[dtype], {}
    weights = golden.from_float(fmt, np.where(scores < -50, 0, np.exp2(scores)))
    for block in (32, 64, 128, keys):
        if block > keys:
            continue
        order = np.arange(keys).reshape(-1, block)[::-1].ravel().tolist()
        sums = golden.gemm(weights, codes(v), chain(dtype).but(order=order, tile_k=keys)).view(np.float32)
        shares = sums * np.float32(2 / (alone or keys))
        differ[block] = int((golden.from_float(fmt, shares) != found).sum())
    which = f"{keys} keys, weight in {alone} of them" if alone else f"{keys} keys"
    return f"PV {kernel} {fmt} {head}, {which}: {found.size} elements, by block {differ} differ"


def weighted(rng: np.random.Generator, shape: tuple[int, ...], keys: int, block: int) -> np.ndarray:
    """Scores (*shape, keys) by ln 2: a block's are 0, -1 and -100 in random order, less 0 to 3 of the block's
    own, so that the weights of each block add up to a power of two."""
    level = np.repeat([0.0, -1.0, -100.0], [block // 4, block // 2, block // 4])
    found = rng.permuted(np.tile(level, (*shape, keys // block, 1)), axis=-1)
    return (found - rng.integers(0, 4, (*shape, keys // block, 1))).reshape(*shape, keys)


def on_gpu(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """What the GPU makes of an array of f32."""
    found: np.ndarray = function(torch.from_numpy(x).cuda()).cpu().numpy()
    return found


def of_splits(dtype: Any, head: int, keys: int, batch: int, seed: int) -> str:
    """Weights times values where every block has weight, by keys of a split."""
    rng, fmt, block = np.random.default_rng(seed), FORMATS[dtype], SPLIT_BLOCK[head]
    scores = weighted(rng, (batch, HEADS, QUERIES), head, min(block, head))
    scores = np.tile(scores, keys // head)  # keys that are head apart are the same unit vector
    q = torch.from_numpy(scores[..., :head]).to(dtype)
    k = torch.eye(head, dtype=dtype).repeat(keys // head, 1).expand(batch, HEADS, keys, head)
    v = drawn((batch, HEADS, keys, head), dtype)
    results, logs = attention("flash", q.cuda(), k.contiguous().cuda(), v, float(np.log(np.float32(2))))
    found, logarithm = codes(results), logs.float().cpu().numpy()
    differ = {}
    for blocks in range(1, keys // block + 1):
        sums, own = zip(
            *(
                one_split(scores, codes(v), slice(first, first + blocks * block), block, chain(dtype))
                for first in range(0, keys, blocks * block)
            ),
            strict=True,
        )
        total = np.zeros(found.shape, np.float32)
        for one, log in zip(sums, own, strict=True):
            share = on_gpu(torch.exp, log - logarithm)[..., None]
            total = (one.astype(np.longdouble) * share + total).astype(np.float32)
        differ[blocks * block] = int((golden.from_float(fmt, total) != found).sum())
    which = f"{fmt} {head}, {keys} keys, batch {batch}"
    return f"Split {which}: {found.size} elements, by keys of a split {differ} differ"


def one_split(
    scores: np.ndarray, v: np.ndarray, which: slice, block: int, plan: Plan
) -> tuple[np.ndarray, np.ndarray]:
    """A split's sum divided by that of its weights, and the logarithm of the latter: blocks of keys, the last
    one first."""
    fmt, mine = plan.formats["a"].name, scores[..., which]
    most = mine.max(axis=-1, keepdims=True)
    weights = np.where(mine < -50, 0, np.exp2(mine - most))
    order = np.arange(mine.shape[-1]).reshape(-1, block)[::-1].ravel().tolist()
    turned = plan.but(order=order, tile_k=len(order))
    sums = golden.gemm(golden.from_float(fmt, weights), v[..., which, :], turned).view(np.float32)
    total = weights.sum(axis=-1).astype(np.float32)
    log = on_gpu(log2_approx, total) * LN_2
    scaled = (most[..., 0].astype(np.longdouble) * LN_2 + log).astype(np.float32)
    return sums * (1 / total)[..., None], scaled


def main() -> None:
    """Prints all lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--splits", action="store_true", help="only the kernel that splits the keys")
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    if given.splits:
        for dtype in FORMATS:
            for head, keys, batch in SPLITS:
                print(of_splits(dtype, head, keys, batch, given.seed), flush=True)
        return
    for kernel in ("flash", "cudnn"):
        for dtype in FORMATS:
            for head in (64, 128, 256):
                print(of_qk(kernel, dtype, head), flush=True)
                for keys in (64, 128, 256):
                    if keys <= head:
                        print(of_pv(kernel, dtype, head, keys), flush=True)
                        if keys > BLOCK:
                            print(of_pv(kernel, dtype, head, keys, BLOCK), flush=True)


if __name__ == "__main__":
    main()
