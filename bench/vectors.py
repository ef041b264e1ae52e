"""Speed and memory of vector files: f16 dot products of K = 16 with expected results as readmemh,
on one core.

    python bench/vectors.py [--json] [--count 1000000]

Times drawing, computing and writing together, then checking and reading back; and the peak memory of a
process that writes `count` and five times `count` vectors, which must not grow.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURE, NAME = "hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SECONDS_TARGET, MEMORY_TARGET = 5.0, 500


def measure(what: str, file: str, count: int) -> dict[str, float]:
    """Does one thing on one core, in this process; returns seconds, CPU seconds and peak memory in MiB."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import golden
    from golden.vectors import files

    ins = golden.instruction(ARCHITECTURE, NAME)
    start, start_cpu = time.perf_counter(), time.process_time()
    if what == "write":
        files.write_stream(file, ins, count, seed=1)
    elif what == "check":
        files.check(file)
    else:
        files.read(file)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_process(what: str, file: Path, count: int) -> dict[str, float]:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, "--file", str(file), "--count", str(count)]
    environment = os.environ | {"MMAGOLD_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def report(count: int) -> dict[str, Any]:
    """Every figure; files go to a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.hex"
        figures: dict[str, Any] = {"count": count, "write": in_process("write", file, count)}
        figures |= {what: in_process(what, file, count) for what in ("check", "read")}
        figures["bytes"] = file.stat().st_size
        figures["write_five_times"] = in_process("write", file, 5 * count)
    return figures


def show(figures: dict[str, Any]) -> None:
    """The figures as lines."""
    count, write = figures["count"], figures["write"]
    print(f"{count} vectors, {figures['bytes'] / 2**20:.0f} MiB of readmemh, one core")
    target = f"(target < {SECONDS_TARGET:g} s for 1000000)"
    print(
        f"  draw, compute and write  {write['seconds']:6.2f} s, {write['cpu_seconds']:.2f} s of CPU  {target}"
    )
    print(f"  check                    {figures['check']['seconds']:6.2f} s")
    print(f"  check and read back      {figures['read']['seconds']:6.2f} s")
    five = figures["write_five_times"]
    print(
        f"  peak memory writing      {write['peak_mib']:6.0f} MiB, {five['peak_mib']:.0f} MiB for five "
        "times as many",
        end="",
    )
    print(f" (target < {MEMORY_TARGET} MiB)")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--count", type=int, default=1_000_000, help="vectors (default 1000000)")
    parser.add_argument("--measure", choices=("write", "check", "read"), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.file, arguments.count)))
        return
    figures = report(arguments.count)
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        show(figures)


if __name__ == "__main__":
    main()
