"""Products of one row or one column as cuBLAS computes them, compared with the order that calls showed.

    python campaigns/dot_kernel.py --seed 77

Needs PyTorch with CUDA. The number of blocks is the profiler's (the grid of the first kernel). Prints every
product that differs, and how many elements were compared; ends with status 1 where one differs.

cuBLAS runs `dot_kernel`, then `reduce_1Block_kernel`: no matrix unit takes part, so the order is no plan.
Calls on an H200 (golden.sum_tree) showed the tree.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.reductions import in_halves, in_turn, padded
from hw_capture.products.cases import Case

Numbers = npt.NDArray[Any]
THREADS = 128
"""Of a block of either kernel."""


def dot(a: Numbers, b: Numbers, blocks: int, neighbours: int) -> Numbers:
    """Sums a * b over the last axis as the two kernels do; f32 in and out.

    A block takes `neighbours` elements a thread: 2 where the elements of both operands are neighbours in
    memory, else 1. Each place of a thread has a chain of fused multiply-adds, over the elements of every N-th
    block, N the number of blocks. A thread's sums are added in turn, a block's threads in halves. The second
    kernel's threads add every 128th block in turn, then in halves down to 32; each of four threads adds every
    fourth of these in turn, and the four are added in turn.

    Args:
        a, b: (..., K); leading axes broadcast.
        blocks: of the first kernel, for one result.
        neighbours: 1 or 2.
    """
    taken = THREADS * neighbours * blocks
    a, b = (padded(x, -(-x.shape[-1] // taken) * taken) for x in (a, b))
    a, b = (x.reshape(*x.shape[:-1], -1, blocks, THREADS, neighbours) for x in (a, b))
    sums: Numbers = np.zeros(np.broadcast_shapes(a.shape[:-4], b.shape[:-4]) + a.shape[-3:], np.float32)
    for turn in range(a.shape[-4]):  # 64 bits of a significand hold a product of two f32
        one, other = (x[..., turn, :, :, :] for x in (a, b))
        sums[...] = one.astype(np.longdouble) * other + sums
    sums = in_halves(in_turn(sums, -1), -1)
    sums = padded(sums, -(-blocks // THREADS) * THREADS).reshape(*sums.shape[:-1], -1, THREADS)
    # Halving ends at the sums of one warp.
    warp = 32
    sums = in_halves(in_turn(sums, -2), -1, left=warp)
    # Four threads add what is left.
    adding = 4
    return in_turn(in_turn(sums.reshape(*sums.shape[:-1], -1, adding), -2), -1)


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
    import torch

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
