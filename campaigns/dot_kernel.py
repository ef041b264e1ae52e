"""Products of one row or one column as cuBLAS computes them, beside the order that questions told.

    python campaigns/dot_kernel.py --seed 77

Needs PyTorch with CUDA. The number of blocks is the profiler's. Prints every product that differs, and how
many elements were compared; ends with status 1 where one differs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hw_capture.products.cases import Case
from hw_capture.products.dot_kernel import dot

LENGTHS = (129, 500, 777, 1500, 2500, 4000, 4097, 6000, 8192, 10000, 16384, 20000)
LENGTHS += (32768, 40000, 65536, 100000, 131072, 262144)
SIZES = ((1, 1), (1, 2), (1, 8), (1, 16), (1, 33), (1, 64), (8, 1), (64, 1))
MOST = 1_100_000
"""Elements of the larger operand."""


def cases(seed: int) -> list[Case]:
    """All products."""
    return [
        Case("mm", "f32", "f32", "f32", m, n, k, rows, {"tf32": False}, seed, 3)
        for k in LENGTHS
        for m, n in SIZES
        if max(m, n) * k <= MOST
        for rows in (False, True)
    ]


def answered(case: Case) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """D, and the kernels in the order in which they ran."""
    codes = case.operands()
    a, b = (torch.from_numpy(codes[name].view(np.float32)).cuda() for name in "ab")
    b = b if case.b_rows else b.t().contiguous().t()
    torch.mm(a, b)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        d = torch.mm(a, b).cpu().numpy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    ran = [event for event in events if event.get("cat") == "kernel"]
    return d, sorted(ran, key=lambda event: event["ts"])


def main() -> None:
    """Compares all products."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=77)
    products = elements = wrong = most = 0
    for case in cases(parser.parse_args().seed):
        d, ran = answered(case)
        if "dot_kernel" not in ran[0]["name"]:
            continue
        blocks = ran[0]["args"]["grid"][0]
        a, b = (case.operands()[name].view(np.float32) for name in "ab")
        together = not case.b_rows or case.n == 1
        wanted = dot(a[:, None], b.T[None], blocks, 2 if together else 1)
        differ = int((wanted.view(np.uint32) != d.view(np.uint32)).sum())
        if differ:
            print(f"{case.name}: {blocks} blocks: {differ} of {d.size} differ")
        products, elements, wrong, most = products + 1, elements + d.size, wrong + differ, max(most, blocks)
    print(f"{products} products, {elements} elements, up to {most} blocks: {wrong} differ")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
