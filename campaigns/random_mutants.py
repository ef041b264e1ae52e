"""Whether the vectors of `rtl check` meet every fault of one line: mutants of the reference units, by a seed.

.venv/bin/python campaigns/random_mutants.py --count 1000 --seed 1 --jobs 16 --out mutants.json

Units take turns; in a unit every place of its text that may be changed has the same chance
(rtl_tb/qualify/mutator.py). What does not build, or has the netlist of its unit, is drawn anew. Each mutant
runs on the vectors that `rtl check` draws by itself, at full throughput and under its short traffic; nothing
is diagnosed. A mutant that fewer than LEAST vectors meet is compared with its unit by a solver
(rtl_tb/qualify/qualification.py): the two are proved to answer alike, or operands on which they differ are
found, and run in the simulator.

.venv/bin/python campaigns/random_mutants.py --again mutants.json --out again.json

runs the mutants of a file again which fewer than LEAST vectors met and which are not proved equivalent,
without drawing any: after a change of the stimuli these have to be met.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import runner

from golden.errors import MmagoldError
from golden.explain.numbers import hex_text, power_text
from golden.number.formats import Format
from golden.proof.sweep import OPEN, PROVED
from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.check.accumulate import try_long_accumulation
from rtl_tb.check.options import TRAFFIC, affordable
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines import fast
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError
from rtl_tb.qualify.mutants import UNITS
from rtl_tb.qualify.mutator import Change, changes_of, draw, planted
from rtl_tb.qualify.qualification import SAME, compare, replayed
from rtl_tb.runs.verdict import judge
from rtl_tb.simulators import simulators

LEAST = 20
"""Vectors of the default count that have to meet a fault: with a twentieth of them one still does."""
VECTORS = 200_000
"""The default count of `rtl check`."""
NO_BUILD, FAILED = "does not build", "internal error"
CAUGHT, RARE, SURVIVED, HUNG = "caught", "rare", "survived", "hangs"
"""What becomes of a mutant: met by LEAST vectors or more, or by traffic; by fewer; by none."""
DRAWN_ANEW = (NO_BUILD, SAME, FAILED)
"""What is no mutant: a default that the unit overrides, a branch that it leaves out, an unread bit."""
TO_PROVE = (RARE, SURVIVED)


def mutants(seed: int, units: Sequence[str]) -> Iterator[tuple[Path, Change]]:
    """Changes without end; units take turns in an order that is shuffled for each turn. No text twice, until
    a unit has no other."""
    rng = random.Random(seed)
    paths = [UNITS / f"{name}.yaml" for name in units]
    changes = {path: changes_of(load_dut(path)) for path in paths}
    while any(changes.values()):
        rng.shuffle(paths)
        for path in paths:
            if changes[path]:
                change = draw(changes[path], rng)
                changes[path] = [other for other in changes[path] if other != change]
                yield path, change


def examine(name: str, path: Path, change: Change, count: int, folder: Path, prove: float) -> dict[str, Any]:
    """What becomes of a mutant, as a row of the report."""
    started, dut = time.monotonic(), load_dut(path)
    mutant = planted(path, dut, change, name)
    row: dict[str, Any] = {"mutant": name, "unit": path.stem, **asdict(change), "where": mutant.where}
    row |= {"fault": mutant.fault, "state": "", "failing": 0, "kinds": {}, "protocol": []}
    place = folder / name
    try:
        faulty = mutant.plant(place / "rtl")
        vectors = vectors_of(dut, path.stem, count, folder)
        # Seconds without a clock cycle after which a mutant is given up: a whole run takes one.
        hangs = 20.0
        job = Job(faulty, place / "build", vectors, wall_timeout=hangs)
        try:
            # Seconds after which a build is given up: it takes five.
            build = 120.0
            with simulators.longest_build(build):
                job = replace(job, program=fast.build(job, simulators.verilator(), fast.FOR_TRIALS))
        except MmagoldError as error:  # or a loop of its text does not end
            return row | {"state": NO_BUILD, "why": str(error).splitlines()[0][:200]}
        row["seconds_build"] = round(time.monotonic() - started, 2)
        try:
            row |= met(job)
        except MmagoldError as error:  # it ends or blocks the simulation, which a check reports as well
            row |= {"state": HUNG, "why": str(error).splitlines()[0][:200]}
        row["seconds"] = round(time.monotonic() - started, 2)
        if prove and row["state"] in TO_PROVE:
            row |= proof(dut, job, prove)
            row["state"] = SAME if row["found"] == SAME else row["state"]
    except Exception as error:  # of this program, and no verdict: the others go on
        row |= {"state": FAILED, "why": f"{type(error).__name__}: {error}"}
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return row


def met(job: Job) -> dict[str, Any]:
    """How many vectors of a job meet its mutant, of which kinds, and what traffic and climbs show."""
    verdict = judge(job.vectors, engines.run("fast", job), job.dut.compare)
    failing = int(verdict.failed.sum())
    kinds = {row.kind: row.failed for row in verdict.by_named_kind() if row.failed}
    protocol = {failure.kind for failure in verdict.outcome.failures}
    if not failing and not protocol:
        busy = replace(job, traffic=affordable(TRAFFIC, job.vectors))
        verdict = judge(job.vectors, engines.run("fast", busy), job.dut.compare)
        protocol |= {failure.kind for failure in verdict.outcome.failures}
        protocol |= {"traffic"} if verdict.failed.any() else set()
        climbed = try_long_accumulation(job)
        protocol |= {"climb"} if climbed is not None and not climbed[2].passed else set()
    state = CAUGHT if failing >= LEAST or protocol else RARE if failing else SURVIVED
    return {"state": state, "failing": failing, "kinds": kinds, "protocol": sorted(protocol)}


def vectors_of(dut: Dut, unit: str, count: int, folder: Path) -> VectorSet:
    """The default vectors of a unit, which the first of its mutants draws for all."""
    file = folder / f"{unit}.vectors"
    if not file.is_file():
        drawn = default_set(dut.instruction, count, 1, dut.level)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps((drawn.operands, drawn.results, drawn.kinds), protocol=5))
        part.replace(file)
        return drawn
    operands, results, kinds = pickle.loads(file.read_bytes())
    return VectorSet.of(dut.instruction, dut.level, operands, results, kinds, 1)


def proof(dut: Dut, job: Job, seconds: float) -> dict[str, Any]:
    """Whether a mutant answers as its unit does; where not, operands on which it does not."""
    started = time.monotonic()
    try:
        found = replayed(compare(dut, job.dut, seconds, job.build), job.dut, job.build)
    except (
        ElaborationError
    ) as error:  # Verilator overlooks what is no SystemVerilog: elements that are not there
        return {"state": NO_BUILD, "why": str(error).splitlines()[0][:200], "found": ""}
    except MmagoldError as error:
        return {"proof": OPEN, "found": str(error).splitlines()[0][:200]}
    row: dict[str, Any] = {"proof": found.verdict, "found": found.how}
    if found.operands is not None:
        said = {
            name: spelled(dut.instruction.code_format(name), codes[0])
            for name, codes in found.operands.items()
        }
        row["operands"] = {name: text for name, text in said.items() if text}
    return row | {"seconds_proof": round(time.monotonic() - started, 2)}


def spelled(fmt: Format, codes: Any) -> str:
    """Codes that are not 0 with their numbers, element by element."""
    flat = np.asarray(codes).reshape(-1).tolist()
    places = [f"[{at}] " if len(flat) > 1 else "" for at in range(len(flat))]
    return ", ".join(
        f"{place}{hex_text(fmt, code)} = {power_text(fmt.decode(code))}"
        for place, code in zip(places, flat, strict=True)
        if code or len(flat) == 1
    )


# The campaign -----------------------------------------------------------------------------------------------


def campaign(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs mutants until enough of them compiled; prints a line for each, and writes all after each."""
    source = again(arguments.again) if arguments.again else fresh(arguments)
    rows: dict[int, dict[str, Any]] = {}
    due = 0.0

    def wanted(running: int) -> bool:
        return running + sum(row["state"] not in DRAWN_ANEW for row in rows.values()) < arguments.count

    with tempfile.TemporaryDirectory(prefix="mutants_") as name:
        tasks = ((*one, arguments.vectors, Path(name), arguments.prove) for one in source)
        for number, row in runner.results(
            examine,
            tasks,
            arguments.jobs,
            seconds=arguments.seconds,
            wanted=wanted,
        ):
            rows[number] = row
            say(row)
            if time.monotonic() > due:
                write(arguments, [rows[number] for number in sorted(rows)])
                # Seconds between two writes of the report.
                writes = 5.0
                due = time.monotonic() + writes
    found = [rows[number] for number in sorted(rows)]
    write(arguments, found)
    return found


def fresh(arguments: argparse.Namespace) -> Iterator[tuple[str, Path, Change]]:
    """The mutants of a seed."""
    units = arguments.units or sorted(path.stem for path in UNITS.glob("*.yaml"))
    for number, (path, change) in enumerate(mutants(arguments.seed, units)):
        name = f"random_{arguments.seed}_{number}"
        if not arguments.only or name in arguments.only:
            yield name, path, change


def again(file: Path) -> Iterator[tuple[str, Path, Change]]:
    """The mutants of a report that must be proved equal and were not."""
    for row in json.loads(file.read_text(encoding="utf-8"))["mutants"]:
        if row["state"] in TO_PROVE and row.get("proof") != PROVED:
            change = Change(**{name: row[name] for name in Change.__dataclass_fields__})
            yield row["mutant"], UNITS / f"{row['unit']}.yaml", change


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of a campaign."""
    states = Counter(row["state"] for row in rows)
    proofs = Counter(row["proof"] for row in rows if row.get("proof"))
    return {
        "mutants": sum(states.values()) - sum(states[state] for state in DRAWN_ANEW),
        **{state: states[state] for state in (*DRAWN_ANEW, CAUGHT, HUNG, RARE, SURVIVED)},
        "proofs": dict(proofs),
    }


def write(arguments: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> None:
    """Writes the report, whole or not at all."""
    asked = {name: getattr(arguments, name) for name in ("seed", "count", "vectors", "prove")}
    runner.write(arguments.out, {"asked": asked, "summary": summary(rows), "mutants": list(rows)})


def say(row: dict[str, Any]) -> None:
    """Prints a line for a mutant, and more for one that is not met."""
    print(
        f"{row['mutant']} {row['unit']} {row['where']} {row['kind']}: {row['state']} {row['failing']}", end=""
    )
    print(f" {' '.join(row['protocol'])} {row.get('seconds_build')} {row.get('seconds')}", flush=True)
    if row["state"] == FAILED:
        print(f"  {row['fault']}\n  {row['why']}", flush=True)
    if row["state"] in TO_PROVE:
        print(f"  {row['fault']}\n  {row.get('proof')}: {row.get('found')}", flush=True)
        for name, text in row.get("operands", {}).items():
            print(f"    {name}: {text}", flush=True)


def main() -> None:
    """Runs the campaign and prints its numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--count", type=int, default=1000, help="mutants whose netlist is another (default 1000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the mutants (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--vectors", type=int, default=VECTORS, help="of each run (default 200,000)")
    parser.add_argument("--prove", type=float, default=60, help="seconds for a solver, 0: none (default 60)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no further one begins")
    parser.add_argument("--units", nargs="*", help="only these, by name (fda_hopper_f16)")
    parser.add_argument("--only", nargs="*", help="only these mutants, by name (random_1_7)")
    parser.add_argument("--again", type=Path, help="a report whose mutants that were not met run again")
    parser.add_argument("--out", type=Path, help="JSON file")
    started = time.monotonic()
    rows = campaign(parser.parse_args())
    print(f"{summary(rows)} in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
