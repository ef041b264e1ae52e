"""The two products of attention as fused kernels compute them, beside chains of instructions.

    python bench/attention.py --seed 20261123

Needs PyTorch with CUDA. QK: with one key the logarithm of the sum, which the kernels return as well,
is the product of a query and the key; cuDNN's went to base 2 and back. PV: keys are unit vectors, so that
scores are what queries hold: 0, -1 and -100 times ln 2. The weights are then 1, 1/2 and 0, and their sum is a
power of two. Each line has the elements and how many differ, by the order in which the keys are added. Where
one block of keys has all weight, what kernels that split the keys do with several blocks' sums is not seen.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch

import golden
from golden.gemm.plan import Plan
from golden.tensors.conversion import raw

HEADS, QUERIES, SPREAD = 4, 128, 3
FORMATS = {torch.float16: "f16", torch.bfloat16: "bf16"}
LOG2_E, LN_2 = np.float32(np.log2(np.e)), np.float32(np.log(2))
BLOCK = 64
"""Keys that a kernel takes at once, and one that splits them at least."""
NO_WEIGHT = -30000.0
"""A score whose weight is zero beside any other block's sum, too."""


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
    """Scores (*shape, keys) by ln 2, in random order; `alone`: one block of so many keys has all weight."""
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


def main() -> None:
    """Prints all lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=20261123)
    torch.manual_seed(parser.parse_args().seed)
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
