"""CUTLASS's GemmSplitKParallel, K in slices that need not be of one length, compared with plans with parts.

    python campaigns/cutlass_slices.py PATH_OF_CUTLASS

Needs CUTLASS's source (its wheel `nvidia-cutlass` has it), nvcc and a GPU of compute capability 9.0. Each
line is one product: how many elements differ from the plan, and from one with slices of one length.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import golden
from hw_capture.products.cases import Case

TILE = 32
SLICES = (3, 4, 5, 7)
INSTRUCTION = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def parts(k: int, slices: int) -> list[int]:
    """K as the template cuts it: steps of 32 by slices, rounded down; the last has the rest."""
    most = k // TILE // slices * TILE
    return [most] * (slices - 1) + [k - most * (slices - 1)]


def compared(program: Path, folder: Path, case: Case, slices: int) -> str:
    """One line."""
    operands = case.operands()
    files = [folder / name for name in ("a", "b", "d")]
    operands["a"].tofile(files[0])
    np.ascontiguousarray(operands["b"].T).tofile(files[1])
    sizes = map(str, (case.m, case.n, case.k, slices))
    subprocess.run([program, *sizes, *files], check=True)
    d = np.fromfile(files[2], np.uint32).reshape(case.m, case.n)
    plans = (
        golden.plan("hopper", INSTRUCTION, tile_k=TILE, parts=parts(case.k, slices)),
        golden.plan("hopper", INSTRUCTION, tile_k=TILE, split_k=slices),
    )
    ours, alike = (int((golden.gemm(operands["a"], operands["b"], plan) != d).sum()) for plan in plans)
    return (
        f"{case.m} x {case.n} x {case.k}, {slices} slices: {d.size} elements, {ours} differ, {alike} if alike"
    )


def main() -> None:
    """Prints all lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cutlass", type=Path, help="folder that holds `include`")
    include = parser.parse_args().cutlass / "include"
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "slices"
        source = Path(__file__).with_suffix(".cu")
        subprocess.run(
            ["nvcc", "-O2", "-std=c++17", "-arch=sm_90", f"-I{include}", source, "-o", program], check=True
        )
        for slices in SLICES:
            # M, N, K, and the spread of the exponents.
            shapes = (((136, 264, 2080), 9), ((256, 128, 3104), 3), ((64, 392, 1056), 6))
            for (m, n, k), spread in shapes:
                case = Case("mm", "f16", "f16", "f32", m, n, k, seed=28 + slices, spread=spread)
                print(compared(program, Path(name), case, slices), flush=True)


if __name__ == "__main__":
    main()
