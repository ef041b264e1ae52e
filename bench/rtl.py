"""Speed of the engines on the K = 4 FP16 unit of rtl_tb/rtl (Volta's HMMA), one line each: build, run,
vectors a second.

python bench/rtl.py              # a minute, most of it compilation
python bench/rtl.py --folder F   # keep the builds in F, so that a second run only measures
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.runs.verdict import judge

UNIT = Path(__file__).parents[1] / "rtl_tb" / "rtl" / "duts" / "fda_volta_f16.yaml"
RUNS = (
    ("fast", "verilator", 1_000_000, Traffic()),
    ("fast", "verilator", 1_000_000, Traffic(0.2, 0.3, 10)),
    ("selfcheck", "verilator", 200_000, Traffic()),
    ("selfcheck", "verilator", 200_000, Traffic(0.2, 0.3, 10)),
    ("cocotb", "verilator", 10_000, Traffic()),
    ("selfcheck", "icarus", 5_000, Traffic()),
    ("cocotb", "icarus", 2_000, Traffic()),
)


def main() -> None:
    """Measures every run; the time includes packing the vectors and writing files, not drawing them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where to keep the builds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        measure(arguments.folder or Path(scratch))


def measure(folder: Path) -> None:
    """Prints the table."""
    dut = load_dut(UNIT)
    vectors = default_set(dut.instruction, max(run[2] for run in RUNS))
    print(f"{dut.name}: engine     simulator  traffic    vectors   build s   us/vector  vectors/s  verdict")
    for engine, simulator, count, traffic in RUNS:
        some = vectors[:count]
        outcome = engines.run(engine, Job(dut, folder, some, simulator, traffic))
        passed = "pass" if judge(some, outcome, dut.compare).passed else "FAIL"
        shape = "busy" if traffic.backpressure else "full"
        each = outcome.seconds_run / count
        print(
            f"{'':{len(dut.name)}}  {engine:10} {simulator:10} {shape:7} {count:10,} "
            f"{outcome.seconds_build:9.1f} {each * 1e6:11.2f} {1 / each:10,.0f}  {passed}"
        )


if __name__ == "__main__":
    main()
