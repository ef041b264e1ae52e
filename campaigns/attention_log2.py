"""The unit for logarithms of an NVIDIA GPU (MUFU.LG2), on PyTorch's tensors; needs Triton."""

# Triton compiles the text of the function: its annotations are the language's.

from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _kernel(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.load(x + at, at < count, 1.0)
    found = tl.inline_asm_elementwise(
        "lg2.approx.ftz.f32 $0, $1;", "=f,f", [number], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(y + at, found, at < count)


def log2_approx(x: Any) -> Any:
    """The logarithm to base 2 of each element of a tensor of f32."""
    x = x.contiguous()
    y = torch.empty_like(x)
    _kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
    return y
