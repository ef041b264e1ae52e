"""Exports programs of the catalogue as SystemVerilog, and runs them against the model.

.venv/bin/python campaigns/export_sv.py --count 100000 --jobs 16 --out exported.json
.venv/bin/python campaigns/export_sv.py --plain --count 0 --prove 60 --out proved.json

One instruction for each distinct program, and each unit of spec/examples, with a register after one step
that the seed chooses and without registers. Verilator (-Wall) and Icarus read each module without a warning;
then the module runs in Verilator on the default vectors of `rtl check`, and no result may differ. With
--prove, the module as Yosys reads it is proved to be the circuit that it was printed from, for all operands:
the search has that number of seconds, and the check of its proof the same.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import runner
from dissect_catalog import distinct

import golden
from golden.circuit import systemverilog
from golden.circuit.words import CircuitError
from golden.errors import MmagoldError
from golden.paths import spec_folder
from golden.proof.checker import check
from golden.proof.sweep import PROVED, Sweep
from golden.proof.verdict import verdict_of
from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job
from rtl_tb.prove.problem import problem_of
from rtl_tb.runs.verdict import judge
from rtl_tb.simulators import simulators

EQUAL, DIFFERS, WARNED, REFUSED, FAILED = "equal", "differs", "a warning", "refused", "not run"


def examine(name: str, steps: tuple[str, ...], count: int, proof: float) -> dict[str, Any]:
    """What becomes of one unit, as a row of the report; `count` of 0: it is not run, `proof` of 0 seconds:
    not proved."""
    started, file = time.monotonic(), spec_folder() / "examples" / name
    row: dict[str, Any] = {"unit": name, "pipeline": ",".join(steps), "differ": 0, "count": 0, "state": EQUAL}
    with tempfile.TemporaryDirectory(prefix="exported_") as folder:
        place = Path(folder)
        try:
            ins = golden.load_instruction(file) if file.is_file() else golden.instruction(*name.split(":", 1))
            systemverilog.write(ins, place, "unit", steps, file if file.is_file() else None)
            if said := warnings(place):
                return row | {"state": WARNED, "why": said[:400]}
            row |= compared(place, count) if count else {}
            row |= proved(place, proof) if proof else {}
        except CircuitError as error:
            row |= {"state": REFUSED, "why": str(error)[:400]}
        except MmagoldError as error:
            row |= {"state": FAILED, "why": f"{type(error).__name__}: {error}"[:400]}
    return row | {"seconds": round(time.monotonic() - started, 2)}


def warnings(place: Path) -> str:
    """What two simulators say about the module."""
    said = ""
    for tool, arguments in (
        (simulators.verilator(), ["--lint-only", "-Wall", "unit.sv"]),
        (simulators.icarus(), ["-g2012", "-Wall", "-o", os.devnull, "unit.sv"]),
    ):
        done = subprocess.run(
            [*tool.start, *arguments],
            cwd=place,
            env=dict(tool.env),
            capture_output=True,
            text=True,
            check=False,
        )
        text = done.stdout + done.stderr
        said += text if done.returncode or "arning" in text or "rror" in text else ""
    return said


def compared(place: Path, count: int) -> dict[str, Any]:
    """How many results of the default vectors differ from the model's."""
    dut = load_dut(place / "dut.yaml")
    vectors = default_set(dut.instruction, count, 1, dut.level)
    # Seconds after which a build is given up: most take five, the widest chain a minute.
    build = 300.0
    with simulators.longest_build(build):
        # Seconds without a clock cycle after which a run is given up.
        run = 120.0
        job = Job(dut, place / "build", vectors, wall_timeout=run)
        verdict = judge(vectors, engines.run("fast", job), dut.compare)
    right = verdict.passed and not verdict.outcome.failures
    return {
        "state": EQUAL if right else DIFFERS,
        "differ": int(verdict.failed.sum()),
        "count": len(verdict.failed),
    }


def proved(place: Path, seconds: float) -> dict[str, Any]:
    """The verdict of the proof that the module is its circuit, and the lemmas that were checked."""
    start = time.monotonic()
    sweep = Sweep(problem_of(load_dut(place / "dut.yaml"))[0], start + seconds)
    verdict, _ = verdict_of(sweep)
    row = {"verdict": verdict, "open": [*sweep.open], "search": round(time.monotonic() - start, 2)}
    if verdict == PROVED:
        row["lemmas"] = sum(check(sweep.certificate, seconds).by.values())
    return row


def units(seed: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each unit without registers and with one."""
    rng = random.Random(seed)
    named = [(f"{ins.architecture}:{ins.name}", ins) for ins in distinct()]
    named += [
        (file.name, golden.load_instruction(file))
        for file in sorted((spec_folder() / "examples").glob("*.yaml"))
    ]
    for name, ins in named:
        yield name, ()
        words = sorted({step.op for operation in ins.program.operations for step in operation.steps})
        if not ins.state:
            yield name, (rng.choice(words),)


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rows by state and by verdict, and all results together."""
    verdicts = Counter(row["verdict"] for row in rows if "verdict" in row)
    results = sum(row["count"] for row in rows)
    return {**Counter(row["state"] for row in rows), **verdicts, "results": results}


def main() -> None:
    """Runs the campaign and prints its numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="vectors of each unit (default 100,000)")
    parser.add_argument("--prove", type=float, default=0.0, help="seconds for each proof (default: none)")
    parser.add_argument("--seed", type=int, default=1, help="of the pipeline steps (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="units at a time")
    parser.add_argument("--seconds", type=float, default=3600, help="after which no further one begins")
    parser.add_argument("--plain", action="store_true", help="without registers alone")
    parser.add_argument("--out", type=Path, help="JSON file")
    arguments = parser.parse_args()
    chosen = [one for one in units(arguments.seed) if not (arguments.plain and one[1])]
    random.Random(arguments.seed).shuffle(chosen)  # so that a run that is cut short has seen some of all
    tasks = ((*one, arguments.count, arguments.prove) for one in chosen)
    rows: list[dict[str, Any]] = []
    for _, row in runner.results(examine, tasks, arguments.jobs, seconds=arguments.seconds):
        rows.append(row)
        said = summary(rows) | {"seed": arguments.seed, "of": len(chosen)}
        runner.write(arguments.out, {"made": runner.made(), "summary": said, "units": rows})
        if row["state"] != EQUAL or row.get("verdict", PROVED) != PROVED:
            verdict = row.get("why", row.get("verdict"))
            print(f"{row['unit']} [{row['pipeline']}]: {row['state']} {row['differ']} {verdict}", flush=True)
    print(said, flush=True)


if __name__ == "__main__":
    main()
