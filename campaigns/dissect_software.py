"""Dissects float dot products of software: NumPy, its BLAS, PyTorch, math.fsum, a Kahan sum.

    .venv/bin/python campaigns/dissect_software.py --k 16 40 --out docs/reports/dissected-software.md

Each is asked for c + a . b in f32; the order of the sum is of the library's version and of this processor.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import runner

import golden

F32 = npt.NDArray[np.float32]
Sum = Callable[[F32, F32, F32], F32]
NAN = 0x7FC00000


def add_reduce(a: F32, b: F32, c: F32) -> F32:
    """`numpy.add.reduce` of the products."""
    return np.asarray(np.add.reduce(a * b, axis=1) + c)


def einsum(a: F32, b: F32, c: F32) -> F32:
    """`numpy.einsum("i,i->", a, b)`."""
    return np.array([np.einsum("i,i->", x, y) for x, y in zip(a, b, strict=True)], np.float32) + c


def blas_dot(a: F32, b: F32, c: F32) -> F32:
    """`numpy.dot` of two vectors: sdot of the BLAS that NumPy has."""
    return np.array([np.dot(x, y) for x, y in zip(a, b, strict=True)], np.float32) + c


def blas_gemm(a: F32, b: F32, c: F32) -> F32:
    """An element of an 8 x 8 matrix product: sgemm of the BLAS that NumPy has."""
    found = []
    for x, y in zip(a, b, strict=True):
        left, right = np.zeros((8, len(x)), np.float32), np.zeros((len(x), 8), np.float32)
        left[0], right[:, 0] = x, y
        found.append((left @ right)[0, 0])
    return np.array(found, np.float32) + c


def fsum(a: F32, b: F32, c: F32) -> F32:
    """`math.fsum` of the products, rounded to f32 each, and c; the result rounded to f32."""
    found = []
    for row in np.column_stack([a * b, c]).astype(float).tolist():
        try:
            found.append(math.fsum(row))
        except OverflowError:
            found.append(math.inf)
        except ValueError:
            found.append(math.nan)
    return np.array(found).astype(np.float32)


def kahan(a: F32, b: F32, c: F32) -> F32:
    """Kahan's compensated sum, from c."""
    products, total = a * b, c.copy()
    lost = np.zeros_like(c)
    for k in range(products.shape[1]):
        term = products[:, k] - lost
        new = total + term
        lost = (new - total) - term
        total = new
    return total


def torch_boxes() -> dict[str, Sum]:
    """Sums of PyTorch, on the CPU and on a GPU, where they are installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    torch.set_num_threads(1)

    def dot(a: F32, b: F32, c: F32) -> F32:
        """`torch.dot`."""
        rows = zip(map(torch.from_numpy, a), map(torch.from_numpy, b), strict=True)
        return np.array([torch.dot(x, y).item() for x, y in rows], np.float32) + c

    def total(a: F32, b: F32, c: F32) -> F32:
        """`torch.sum` of the products."""
        return np.asarray(torch.from_numpy(a * b).sum(dim=1).numpy() + c)

    def bmm(a: F32, b: F32, c: F32) -> F32:
        """`torch.bmm` on the GPU, f32 without TF32."""
        x, y = torch.from_numpy(a).cuda()[:, None, :], torch.from_numpy(b).cuda()[:, :, None]
        return np.asarray(torch.bmm(x, y)[:, 0, 0].cpu().numpy() + c)

    found: dict[str, Sum] = {"torch.dot": dot, "torch.sum": total}
    return found | ({"torch.bmm on the GPU": bmm} if torch.cuda.is_available() else {})


BOXES: dict[str, Sum] = {
    "numpy.add.reduce": add_reduce,
    "numpy.einsum": einsum,
    "numpy.dot": blas_dot,
    "numpy.matmul, 8 x 8": blas_gemm,
    "math.fsum": fsum,
    "Kahan": kahan,
}


def on_codes(function: Sum) -> Callable[..., Any]:
    """A function of floats as a black box of codes; every NaN is the same."""

    def box(a: Any, b: Any, c: Any) -> Any:
        with np.errstate(all="ignore"):
            d = np.asarray(function(*(codes.view(np.float32) for codes in (a, b, c))), np.float32)
        return np.where(np.isnan(d), np.uint32(NAN), d.view(np.uint32))

    return box


def main() -> None:
    """Prints the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, nargs="+", default=[16], help="numbers of products")
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds for each dissection")
    parser.add_argument("--asks", type=int, default=60_000, help="for each dissection")
    parser.add_argument("--match", default="", help="only names that hold this text")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    time.monotonic = time.process_time
    lines = [
        f"NumPy {np.__version__}, Python {platform.python_version()}, {platform.machine()}.",
        "",
        "| Sum | K | Differ | What it is | CPU s | Order |",
        "| --- | ---: | ---: | --- | ---: | --- |",
    ]
    print("\n".join(lines), flush=True)
    # Letters of a tree in the table.
    shown = 160
    for name, function in (BOXES | torch_boxes()).items():
        for k in given.k if given.match in name else ():
            before = time.process_time()
            found = golden.dissect(
                on_codes(function), dict.fromkeys("abcd", "f32"), k, seconds=given.seconds, asks=given.asks
            )
            spent = time.process_time() - before
            what = found.rules[0] if found.explains else "not explained"
            order = found.order if len(found.order) <= shown else f"{found.order[:shown]} ..."
            lines.append(
                f"| {name} | {k} | {found.wrong:,} of {found.compared:,} | {what} | {spent:.1f} | `{order}` |"
            )
            print(lines[-1], flush=True)
    runner.write(given.out, "\n".join(lines))


if __name__ == "__main__":
    main()
