"""How far proofs reach: every reference unit, and faults of 48 operand bits planted in their netlists.

.venv/bin/python campaigns/proofs.py --seconds 300 --out proofs.json
.venv/bin/python campaigns/proofs.py --triggers 2 --units fda_hopper_f16 gps_bf16 --out triggers.json
.venv/bin/python campaigns/proofs.py --mutants 40 --units gps_bf16 gdfs_nvfp4 --out mutants.json
.venv/bin/python campaigns/proofs.py --duts folder/*/dut.yaml --out others.json

A row is a unit with its verdict, the seconds of the search, of the check, of the faults planted in the unit
and in the specification, the processor's seconds of all of them (the solvers run in this process), and what
is left of an open one. With --triggers, each unit is given so many faults (golden/proof/problem.py), one by
one, of which none may be proved: one would be a fault of the prover, and the exit status is 1. With
--mutants, each unit's text is changed at so many places, one by one (rtl_tb/qualify/mutator.py). What is
proved then is simulated with many vectors, of which none may fail.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import runner

import rtl_tb
from golden.errors import MmagoldError
from golden.proof.problem import planted
from golden.proof.sweep import PROVED, Sweep
from golden.proof.verdict import decide, searched
from rtl_tb.check.check import check_dut
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.prove.problem import problem_of
from rtl_tb.prove.proof import changed_specifications
from rtl_tb.qualify.mutator import changes_of, draw
from rtl_tb.qualify.mutator import planted as changed

UNITS = Path(rtl_tb.__file__).parent / "rtl" / "duts"
REFUSED = "refused"
SIMULATED = 100_000
"""Vectors of a mutant that was proved: if it is no equivalent one, some of them fail."""
UNSOUND = "PROVED, but vectors fail"


def proof(file: Path, seconds: float, jobs: int = 1) -> dict[str, Any]:
    """A unit's row. A counterexample is not replayed in a simulator, as `mmagold rtl prove` does."""
    row: dict[str, Any] = {"unit": file.stem if file.stem != "dut" else file.parent.name}
    start = time.monotonic()
    try:
        dut = load_dut(file)
        problem, read = problem_of(dut)
    except MmagoldError as error:
        return row | {"verdict": REFUSED, "why": str(error).splitlines()[0][:200]}
    row |= {"words": len(problem.words), "latency": read.latency, "reading": time.monotonic() - start}
    busy = time.process_time()
    found = decide(problem, seconds, jobs=jobs, changed=changed_specifications(dut, problem)).as_dict()
    return row | found | {"cpu": time.process_time() - busy}


def trigger(file: Path, seconds: float, seed: int) -> dict[str, Any]:
    """The row of a fault that is planted in a unit."""
    row: dict[str, Any] = {"unit": file.stem, "seed": seed}
    problem, _ = problem_of(load_dut(file))
    fault = planted(problem, seed)
    if fault is None:
        return row | {"verdict": "none planted"}
    start = time.monotonic()
    verdict, _ = searched(Sweep(fault[0], start + seconds))
    return row | {"fault": fault[1], "verdict": verdict, "seconds": time.monotonic() - start}


def mutant(file: Path, seconds: float, seed: int, simulate: bool) -> dict[str, Any]:
    """The row of one changed place in the text of a unit, which `seed` draws."""
    row: dict[str, Any] = {"unit": file.stem, "seed": seed}
    dut = load_dut(file)
    change = draw(changes_of(dut), random.Random(f"{file.stem} {seed}"))
    row["change"] = f"{change.file}:{change.line + 1}: {change.before} -> {change.after}"
    with tempfile.TemporaryDirectory(prefix="mmagold_mutant_") as folder:
        try:
            other = changed(file, dut, change, f"{file.stem}_{seed}").plant(Path(folder) / "rtl")
            problem, _ = problem_of(other)
        except MmagoldError as error:
            return row | {"verdict": REFUSED, "why": str(error).splitlines()[0][:200]}
        busy = time.process_time()
        sweep = Sweep(problem, time.monotonic() + seconds)
        row["verdict"], _ = searched(sweep)
        row |= {"cpu": time.process_time() - busy, "open": [*sweep.open]}
        if row["verdict"] == PROVED and simulate:
            options = Options(build=Path(folder), count=SIMULATED, explain=False, four_states=False)
            failed = check_dut(other, options, None, None).verdict.failed
            row["failed"] = int(failed.sum())
            row["verdict"] = UNSOUND if row["failed"] else PROVED
    return row


def tasks(arguments: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """What is run, one after the other."""
    names = arguments.units or sorted(path.stem for path in UNITS.glob("*.yaml"))
    files = arguments.duts or [UNITS / f"{name}.yaml" for name in names]
    # Of the faults of --triggers: a proof plants those of 1 and 2 by itself.
    first_seed = 100
    for file in files:
        if arguments.mutants:
            first, simulate = arguments.first, not arguments.unsimulated
            for seed in range(first, first + arguments.mutants):
                yield file, arguments.seconds, seed, simulate
        elif not arguments.triggers:
            yield file, arguments.seconds
        for seed in range(first_seed, first_seed + arguments.triggers):
            yield file, arguments.seconds, seed


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Rows by verdict."""
    return dict(Counter(row["verdict"] for row in rows))


def main() -> None:
    """Runs the campaign and prints its numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--units", nargs="*", help="these reference units alone, by name (fda_hopper_f16)")
    parser.add_argument("--duts", nargs="*", type=Path, help="these descriptions (dut.yaml) instead")
    parser.add_argument("--triggers", type=int, default=0, help="faults for each unit; 0: prove the units")
    parser.add_argument("--mutants", type=int, default=0, help="changed places of each unit's text")
    parser.add_argument("--first", type=int, default=1, help="seed of the first of them (default 1)")
    parser.add_argument("--unsimulated", action="store_true", help="without vectors of what was proved")
    parser.add_argument("--seconds", type=float, default=300, help="for each search (default 300)")
    parser.add_argument("--jobs", type=int, default=1, help="units at a time (default 1)")
    parser.add_argument("--out", type=Path, help="JSON file")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    what = mutant if arguments.mutants else trigger if arguments.triggers else proof
    for _, row in runner.results(what, tasks(arguments), arguments.jobs):
        rows.append(row)
        print({name: value for name, value in row.items() if name != "planted"}, flush=True)
        load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        report = {"made": runner.made(), "machine": load, "summary": summary(rows), "rows": rows}
        runner.write(arguments.out, report)
    print(summary(rows))
    if arguments.triggers and any(row["verdict"] == PROVED for row in rows):
        raise SystemExit("a unit with a planted fault was proved: a fault of the prover")
    if any(row["verdict"] == UNSOUND for row in rows):
        raise SystemExit("a mutant was proved that fails vectors: in traffic alone, or a fault of the prover")


if __name__ == "__main__":
    main()
