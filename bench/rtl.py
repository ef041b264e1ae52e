"""Speed of the engines on the K = 4 FP16 unit of rtl_tb/rtl (Volta's HMMA), one line each: build, run,
vectors a second.

python bench/rtl.py              # a minute, most of it compilation
python bench/rtl.py --folder F   # keep the builds in F, so that a second run only measures
python bench/rtl.py --stages     # who takes the time of one `rtl check`: each stage in seconds
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from golden.cover.coverage import Coverage
from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
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
    parser.add_argument("--stages", action="store_true", help="the stages of one check")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        (stages if arguments.stages else measure)(arguments.folder or Path(scratch))


def stages(folder: Path) -> None:
    """Prints the seconds of every stage of a check of 200,000 vectors, and what drawing them is made of."""
    spent: Counter[str] = Counter()
    stage, began = "reading the description", time.perf_counter()

    def entered(what: str, _done: int, _total: int) -> None:
        nonlocal stage, began
        now = time.perf_counter()
        spent[stage] += now - began
        stage, began = what, now

    result = check(UNIT, Options(build=folder, failures=None), entered)
    entered("", 0, 0)
    vectors = result.vectors
    ins, coverage = vectors.instruction, Coverage(vectors.instruction)
    for what, run in (
        ("of it: operands and results", lambda: default_set(ins, len(vectors))),
        ("of that: the golden results", lambda: ins.dot(**vectors.operands)),
        ("of it: coverage of 20,000", lambda: coverage.sample_set(vectors[:20_000])),
        ("comparing 200,000 results", lambda: judge(vectors, result.verdict.outcome, result.dut.compare)),
    ):
        start = time.perf_counter()
        run()
        spent[what] = time.perf_counter() - start
    for what, seconds in spent.items():
        print(f"{seconds:9.3f} s  {what}")


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
