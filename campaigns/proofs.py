"""How far proofs reach: every reference unit, and faults of 48 operand bits planted in their netlists.

.venv/bin/python campaigns/proofs.py --seconds 300 --out proofs.json
.venv/bin/python campaigns/proofs.py --triggers 2 --units fda_hopper_f16 gps_bf16 --out triggers.json
.venv/bin/python campaigns/proofs.py --mutants 40 --units gps_bf16 gdfs_nvfp4 --out mutants.json
.venv/bin/python campaigns/proofs.py --duts folder/*/dut.yaml --out others.json

A row is a unit with its verdict, the seconds of the search, of the check, of the faults planted in the unit
and in the specification, the processor's seconds of all of them (the solvers run in this process), and what
is left of an open one. With --triggers N, each unit gets N faults (golden/proof/problem.py), one by
one, of which none may be proved: one would be a fault of the prover, and the exit status is 1. With
--mutants N, each unit's text is changed at N places, one by one (rtl_tb/qualify/mutator.py). Each mutant
that is proved is simulated with SIMULATED vectors of stimuli and as many of random bits. None may fail that
the proof covers: one would be a fault of the prover, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import runner

import rtl_tb
from golden.errors import MmagoldError
from golden.proof.problem import planted
from golden.proof.sweep import OPEN, PROVED, Sweep
from golden.proof.verdict import decide, verdict_of
from golden.vectors.vectorset import VectorSet, default_set, join
from rtl_tb import engines
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.prove.problem import problem_of
from rtl_tb.prove.proof import changed_specifications, simulation_of
from rtl_tb.qualify.mutator import changes_of, draw
from rtl_tb.qualify.mutator import planted as changed
from rtl_tb.runs.verdict import judge

UNITS = Path(rtl_tb.__file__).parent / "rtl" / "duts"
REFUSED = "refused"
SIMULATED = 1_000_000
"""Vectors of stimuli, and as many of random bits, that each proved mutant runs."""
IDLE = Traffic(idle=0.2)
"""Traffic without a stall: what a proof covers that says so."""
ALONE = 100
"""Vectors that a mutant runs one by one, each after a reset, if its proof covers no traffic and vectors fail
in traffic: `rtl prove` then says OPEN, and no proof is wrong."""
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
    with tempfile.TemporaryDirectory(prefix="mmagold_proof_") as folder:
        simulation, changes = simulation_of(dut, Path(folder)), changed_specifications(dut, problem)
        found = decide(problem, seconds, simulation, jobs=jobs, changed=changes).as_dict()
    return row | found | {"cpu": time.process_time() - busy}


def trigger(file: Path, seconds: float, seed: int) -> dict[str, Any]:
    """The row of a fault that is planted in a unit."""
    row: dict[str, Any] = {"unit": file.stem, "seed": seed}
    problem, _ = problem_of(load_dut(file))
    fault = planted(problem, seed)
    if fault is None:
        return row | {"verdict": "none planted"}
    start = time.monotonic()
    verdict, _ = verdict_of(Sweep(fault[0], start + seconds))
    return row | {"fault": fault[1], "verdict": verdict, "seconds": time.monotonic() - start}


def mutant(file: Path, seconds: float, seed: int) -> dict[str, Any]:
    """The row of one changed place in the text of a unit, which `seed` draws."""
    row: dict[str, Any] = {"unit": file.stem, "seed": seed}
    dut = load_dut(file)
    change = draw(changes_of(dut), random.Random(f"{file.stem} {seed}"))
    row["change"] = f"{change.file}:{change.line + 1}: {change.before} -> {change.after}"
    with tempfile.TemporaryDirectory(prefix="mmagold_mutant_") as folder:
        try:
            other = changed(file, dut, change, f"{file.stem}_{seed}").plant(Path(folder) / "rtl")
            problem, read = problem_of(other)
        except MmagoldError as error:
            return row | {"verdict": REFUSED, "why": str(error).splitlines()[0][:200]}
        busy = time.process_time()
        sweep = Sweep(problem, time.monotonic() + seconds)
        row["verdict"], _ = verdict_of(sweep)
        row |= {"cpu": time.process_time() - busy, "open": [*sweep.open]}
        if row["verdict"] == PROVED:
            row |= simulated(other, file, Path(folder), read.steady)
    return row


def simulated(dut: Dut, original: Path, folder: Path, steady: bool) -> dict[str, Any]:
    """What vectors show of a mutant that was proved, `steady`: also in traffic without a stall."""
    vectors = vectors_of(original)
    job = Job(dut, folder / "build", vectors)
    failed = [_failed(replace(job, traffic=traffic)) for traffic in (Traffic(), IDLE)]
    row = {"simulated": len(vectors), "steady": steady, "failed": sum(failed)}
    if not steady and row["failed"]:  # the proof is of one transaction after a reset
        each = len(vectors) // ALONE
        row["alone"] = sum(
            _failed(replace(job, vectors=vectors[at : at + 1])) for at in range(0, each * ALONE, each)
        )
        return row | {"verdict": UNSOUND if row["alone"] else OPEN}
    return row | {"verdict": UNSOUND if row["failed"] else PROVED}


def _failed(job: Job) -> int:
    """Vectors of a run that fail, or the violations of the handshake where none does."""
    verdict = judge(job.vectors, engines.run("fast", job), job.dut.compare)
    return int(verdict.failed.sum()) or len(verdict.outcome.failures)


@functools.lru_cache(maxsize=1)
def vectors_of(file: Path) -> VectorSet:
    """The vectors that all mutants of a unit run."""
    unit = load_dut(file).instruction
    return join([default_set(unit, SIMULATED, 1, weights=kinds) for kinds in (None, {"random_bits": 1.0})])


def tasks(arguments: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """What is run, one after the other."""
    names = arguments.units or sorted(path.stem for path in UNITS.glob("*.yaml"))
    files = arguments.duts or [UNITS / f"{name}.yaml" for name in names]
    # Of the faults of --triggers: a proof plants the faults of seeds 1 and 2 by itself.
    first_seed = 100
    for file in files:
        if arguments.mutants:
            for seed in range(arguments.first, arguments.first + arguments.mutants):
                yield file, arguments.seconds, seed
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
    parser.add_argument("--units", nargs="*", help="only these reference units, by name (fda_hopper_f16)")
    parser.add_argument("--duts", nargs="*", type=Path, help="these descriptions (dut.yaml) instead")
    parser.add_argument("--triggers", type=int, default=0, help="faults for each unit; 0: prove the units")
    parser.add_argument("--mutants", type=int, default=0, help="changed places of each unit's text")
    parser.add_argument("--first", type=int, default=1, help="seed of the first of them (default 1)")
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
        raise SystemExit("a mutant was proved that fails vectors: a fault of the prover")


if __name__ == "__main__":
    main()
