"""In which order PyTorch's sum adds on this machine's GPU: the tree of each length, and sums to test it on.

PYTHONPATH=. python campaigns/reductions.py --out FILE.npz

A row of 1024 is summed along its last dimension, in f32. docs/gemm.md has what was found.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import golden
from golden.files.output import write_whole

Bits = npt.NDArray[Any]
ROWS = 32
"""Rows and columns of the products that are asked; each element is one sum."""
FORMATS = {"a": "f32", "b": "f32", "d": "f32"}


def kernel(torch: Any, reduce: str) -> Callable[[Bits, Bits], Bits]:
    """kernel(A, B) -> D, the products made one by one and then reduced along the last dimension."""

    def computed(a: Bits, b: Bits) -> Bits:
        x, y = (torch.from_numpy(one.view(np.float32)).cuda() for one in (a, b))
        terms = (x[:, None, :] * y.t()[None]).contiguous()
        return np.asarray(getattr(terms, reduce)(-1).cpu().numpy()).view(np.uint32)

    return computed


def operands(length: int) -> tuple[Bits, Bits]:
    """Raw codes: A of numbers of many sizes, B of ones."""
    rng = np.random.default_rng(length)
    size = np.ldexp(rng.standard_normal((ROWS, length)), rng.integers(-9, 10, (ROWS, length)))
    return size.astype(np.float32).view(np.uint32), np.ones((length, ROWS), np.float32).view(np.uint32)


def main() -> None:
    """Asks and records."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    kept = {}
    lengths = (128, 1000, 1024, 4096, 5120, 8192)
    for length in lengths:
        for reduce in ("sum", "mean"):
            asked = kernel(torch, reduce)
            kept[f"{reduce} {length}"] = asked(*operands(length))
    packed = io.BytesIO()
    np.savez_compressed(packed, **kept)  # type: ignore[arg-type]
    write_whole(given.out, lambda stream: stream.write(packed.getvalue()))
    for length in lengths:
        tree = golden.sum_tree(kernel(torch, "sum"), (ROWS, ROWS, length), FORMATS)
        print(f"sum of {length}: {tree}", flush=True)


if __name__ == "__main__":
    main()
