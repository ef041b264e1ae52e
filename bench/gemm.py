"""One whole matrix product on the CPU: processor time, also compared with the instruction's own call, memory
in addition to the operands, and a few elements checked against the instruction itself.

    python bench/gemm.py --size 4096 --threads 2
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from functools import partial
from pathlib import Path

import numpy as np

import golden
from golden.cli.progress import progress_bar
from golden.kernels.order import steps_of
from golden.kernels.plan import Plan


def processor_seconds() -> float:
    """Of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory(key: str) -> int:
    """Bytes that /proc/self/status says: VmRSS now, VmHWM at most since the mark was reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(key)).split()[1])


def element(plan: Plan, a: np.ndarray, b: np.ndarray) -> float:
    """The sum of one row and one column, step by step."""
    unit = plan.instruction
    total = np.zeros((), unit.formats["c"].dtype)
    for k in range(0, len(a), unit.k):
        total = unit.dot(a[k : k + unit.k], b[k : k + unit.k], total)
    return float(golden.to_float(unit.formats["d"].name, total))


def of_the_call(plan: Plan) -> float:
    """Dot products a second and processor of the instruction, called with many tiles."""
    unit, rng, tiles = plan.instruction, np.random.default_rng(1), 1 << 15
    a = golden.from_float("f16", rng.standard_normal((tiles, unit.m, unit.k), np.float32))
    b = golden.from_float("f16", rng.standard_normal((tiles, unit.k, unit.n), np.float32))
    c = np.zeros((tiles, unit.m, unit.n), np.uint32)
    rates = []
    for _ in range(3):
        used = processor_seconds()
        unit(a, b, c)
        rates.append(c.size / (processor_seconds() - used))
    return max(rates)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    os.environ["MMAGOLD_THREADS"] = str(arguments.threads)
    plan, size = golden.plan("hopper", "cublas_f16.f16.f32"), arguments.size
    call = of_the_call(golden.plan("hopper", "HMMA.16816.F32"))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), np.float32).astype(np.float16) for _ in range(2))
    golden.gemm(a[:64, :64], b[:64, :64], plan)  # the core is loaded
    Path("/proc/self/clear_refs").write_text("5")
    before, wall, used = memory("VmRSS"), time.perf_counter(), processor_seconds()
    with progress_bar() as progress:
        d = golden.gemm(a, b, plan, progress=partial(progress, "computing"))
    wall, used = time.perf_counter() - wall, processor_seconds() - used
    extra = memory("VmHWM") - before - d.nbytes
    # Elements that are computed again, one step of the instruction after the other.
    checked = 16
    for i, j in rng.integers(size, size=(checked, 2)):
        assert element(plan, a[i].view(np.uint16), b[:, j].copy().view(np.uint16)) == d[i, j]
    dots = size * size * steps_of(plan, size)
    print(f"{size} x {size} x {size}, {plan.name}: {dots:.3e} dot products of {plan.instruction.k}")
    print(f"{used:.1f} s of processor time, {dots / used:.2e} dot products a second and processor")
    print(f"{dots / used / call:.2f} times as many as calls of m16n8k16, {call:.2e}")
    print(f"{wall:.1f} s with {arguments.threads} threads on {os.cpu_count()} processors")
    print(f"{extra / 2**20:.0f} MiB in addition to A, B ({(a.nbytes + b.nbytes) / 2**20:.0f} MiB) and D")
    print(f"{checked} elements equal the instruction's, step by step")


if __name__ == "__main__":
    main()
