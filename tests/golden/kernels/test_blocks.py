"""golden.gemm of dask arrays: the bits of one array, whatever the blocks."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import golden

da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install 'mmagold[dask]'")

PLAN = golden.plan("hopper", "cublas_f16.f16.f32", split_k=2)


def numbers(shape: tuple[int, int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


A, B, C = numbers((50, 300), 1), numbers((300, 40), 2), numbers((50, 40), 3).astype(np.float32)


@pytest.mark.parametrize(
    ("rows", "columns"), [((7, -1), (-1, 9)), ((50, 100), (33, 40)), ((1, 1000), (64, 64))]
)
@pytest.mark.parametrize("raw", [False, True])
def test_blocks_have_the_bits_of_the_whole(
    rows: tuple[int, int], columns: tuple[int, int], raw: bool
) -> None:
    a, b, c = (x.view(f"u{x.itemsize}") if raw else x for x in (A, B, C))
    blocks = [da.from_array(x, chunks=y) for x, y in ((a, rows), (b, columns), (c, (16, 16)))]
    found = golden.gemm(blocks[0], blocks[1], PLAN, blocks[2])
    assert isinstance(found, da.Array) and found.shape == (50, 40)
    wanted = golden.gemm(a, b, PLAN, c)
    computed = found.compute(scheduler="synchronous")
    assert found.dtype == computed.dtype == wanted.dtype and np.array_equal(computed, wanted)
    assert np.array_equal(
        golden.gemm(a, blocks[1], PLAN).compute(scheduler="threads"), golden.gemm(a, b, PLAN)
    )


def test_what_is_wrong_is_said_before_anything_is_computed() -> None:
    a, b = da.from_array(A, chunks=10), da.from_array(B, chunks=10)
    with pytest.raises(golden.ShapeError, match="'A' has shape"):
        golden.gemm(a, b.T, PLAN)
    with pytest.raises(golden.ShapeError, match="expected a matrix of known size"):
        golden.gemm(a[a[:, 0] > 0], b, PLAN)
    with pytest.raises(golden.DTypeError, match="'B' has dtype float32"):
        golden.gemm(a, b.astype(np.float32), PLAN)
    with pytest.raises(golden.OperandError, match="bias: dask arrays go with A, B and C alone"):
        golden.gemm(a, b, PLAN.but(bias="columns"), bias=np.zeros(40, np.float32))


def test_a_plan_travels() -> None:
    travelled = pickle.loads(pickle.dumps(PLAN))
    assert np.array_equal(golden.gemm(A, B, travelled), golden.gemm(A, B, PLAN))


KILLED = """
import os, signal, time
import dask.array as da, distributed, numpy as np
import golden

def main():
    plan = golden.plan("hopper", "cublas_f16.f16.f32", split_k=2)
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((256, 1024), (1024, 256)))
    blocks = da.from_array(a, chunks=(16, -1)), da.from_array(b, chunks=(-1, 16))
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            first = next(iter(client.run(os.getpid).values()))
            future = client.compute(golden.gemm(*blocks, plan))
            os.kill(first, signal.SIGKILL)
            found = future.result(timeout=400)
            assert first not in client.run(os.getpid).values()
    print(np.array_equal(found, golden.gemm(a, b, plan)))

if __name__ == "__main__":
    main()
"""


@pytest.mark.long
def test_a_worker_that_dies_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'mmagold[dask]'")
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, str(tmp_path / "killed.py")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)
    assert done.stdout == "True\n", done.stderr[-2000:]
