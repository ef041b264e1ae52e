"""The two products of attention as fused kernels compute them, beside chains of instructions.

    python bench/attention.py --seed 20261123

Needs PyTorch with CUDA. QK: with one key the logarithm of the sum, which the kernels return as well,
is the product of a query and the key. PV: keys are unit vectors, so that scores are what queries hold: 0, -1
and -100 times ln 2. The weights are then 1, 1/2 and 0, and their sum is a power of two. Each line has the
elements and how many differ, by the order in which the keys are added.
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
    found = sums.reshape(128, HEADS, -1)[:, :, :QUERIES].float().cpu().numpy().view(np.uint32)
    wanted = golden.gemm(codes(q), codes(k.transpose(-1, -2)), chain(dtype))[..., 0]
    return f"QK {kernel} {FORMATS[dtype]} {head}: {found.size} elements, {(found != wanted).sum()} differ"


def of_pv(kernel: str, dtype: Any, head: int, keys: int) -> str:
    """Weights times values, by blocks of keys of which the last comes first."""
    rng, batch = np.random.default_rng(5 + head + keys), 16
    level = np.repeat([0.0, -1.0, -100.0], [keys // 4, keys // 2, keys // 4])
    scores = rng.permuted(np.tile(level, (batch, HEADS, QUERIES, 1)), axis=-1)
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
        differ[block] = int((golden.from_float(fmt, sums * np.float32(2 / keys)) != found).sum())
    return f"PV {kernel} {fmt} {head}, {keys} keys: {found.size} elements, by block {differ} differ"


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


if __name__ == "__main__":
    main()
