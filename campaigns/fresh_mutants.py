"""What the check and the diagnosis say about faults that nobody chose: one-line mutants drawn by a seed.

.venv/bin/python campaigns/fresh_mutants.py --seed 1 --out fresh.json

Each mutant changes one place of one source of one unit (the reference units in rtl_tb/rtl/duts and the units
in other styles in rtl_tb/mutants/units), by rtl_tb/qualify/mutator.py. Units take turns, the kind of change
and the place are drawn. What does not compile is drawn anew. A mutant that passes runs on ten times as many
vectors of another seed: a difference there is a hole of the default vectors; without one it may be no fault
at all.

Whether a sentence names the right step and cause is for a person to judge; a report holds the sentences.

.venv/bin/python campaigns/fresh_mutants.py --file planted.yaml --repair 60 --out planted.json

Each fault that a person planted (in a file like the ones in rtl_tb/mutants) runs through the whole of
`rtl check`, as its users see it. Each row has an empty column `judged`. One who reads the sentences next to
the fault fills in named, wrong (something else is said to be the fault) or open (nothing is), of pairs both,
one or none; and `--tally planted.json` counts these by unit.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import runner

from golden.errors import MmagoldError
from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.check.check import check_dut
from rtl_tb.check.initial_values import compare_initial_values
from rtl_tb.check.options import Options
from rtl_tb.check.report import Report, fault_line, headline, with_example
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.locate.result import Repair
from rtl_tb.locate.search import find_repairs
from rtl_tb.qualify.mutants import FOLDER, UNITS, Mutant, read_mutants
from rtl_tb.qualify.mutator import KINDS, changes_of, planted, together
from rtl_tb.qualify.qualification import explanations
from rtl_tb.runs.latency import measure
from rtl_tb.runs.verdict import Verdict, judge

_MORE = 200_000
"""Vectors of another seed on which a mutant that passes runs."""


def drawn(seed: int, faults: int, wanted: Sequence[str]) -> Iterator[tuple[Mutant, str]]:
    """Endless mutants, each of `faults` changes of the kinds wanted, with its kinds; units take turns."""
    rng = random.Random(seed)
    units = sorted([*UNITS.glob("*.yaml"), *(FOLDER / "units").glob("*/dut.yaml")])
    number = 0
    while True:
        rng.shuffle(units)
        for unit in units:
            dut = load_dut(unit)
            found = changes_of(dut, wanted)
            number += 1
            if not found:
                continue
            chosen, kinds = [], []
            for _ in range(faults):
                kinds.append(rng.choice(sorted({one.kind for one in found})))
                change = rng.choice([one for one in found if one.kind == kinds[-1]])
                chosen.append(planted(unit, dut, change, f"fresh_{seed}_{number}"))
            yield together(chosen), " and ".join(kinds)


def examine(mutant: Mutant, kind: str, count: int, folder: Path, repair: float) -> dict[str, Any] | None:
    """What check, diagnosis and the search for a repair say about a mutant; None if it does not compile."""
    try:
        dut = mutant.plant(folder / "rtl")
        if dut.handshake.measured:
            dut = measure(dut, "fast", "verilator", folder / "build")
        verdict = _verdict(dut, folder, default_set(dut.instruction, count, 1, dut.level))
    except MmagoldError as error:
        print(f"  {mutant.name}: {mutant.where}: {str(error).splitlines()[0][:120]}", flush=True)
        return None
    row = {
        "mutant": mutant.name,
        "unit": mutant.unit_name,
        "kind": kind,
        "where": mutant.where,
        "fault": mutant.fault,
        "wrong": int(verdict.failed.sum()),
        "protocol": sorted({failure.kind for failure in verdict.outcome.failures}),
    }
    if not row["wrong"] and not row["protocol"]:
        more = _verdict(dut, folder, default_set(dut.instruction, _MORE, 2, dut.level))
        return row | {"wrong_in_more": int(more.failed.sum())}
    job = Job(dut, folder / "build", verdict.vectors)
    started = time.monotonic()
    named = explanations(verdict, dut)
    row |= {"slugs": named.slugs, "sentence": named.sentence, "seconds": round(time.monotonic() - started, 1)}
    try:
        unset, _, _ = compare_initial_values("fast", job, verdict, job)
    except MmagoldError:  # from another start it does not run
        unset = None
    row["unset"] = "" if unset is None else unset.sentence
    undriven = unset is not None and any("not driven" in each for each in unset.suspects)
    one = len(mutant.patches) == 1
    if repair and verdict.wrong.any() and not named.explains and not (one and undriven):
        started = time.monotonic()
        try:
            found = find_repairs(verdict, job, repair)
        except MmagoldError as error:
            found, row["repair_error"] = [], str(error)
        row |= {"repairs": [each.as_dict() for each in found]}
        row["lines"] = sorted(_lines(found[:1]) & set(mutant.where.split("  AND  ")))
        row |= {"repair_seconds": round(time.monotonic() - started, 1)}
    return row


def as_checked(mutant: Mutant, folder: Path, repair: float, count: int | None) -> dict[str, Any]:
    """What `rtl check --repair` says of a planted fault, with the seconds at which each stage began."""
    traffic, began, started = mutant.traffic, dict[str, float](), time.monotonic()
    asked = (
        {} if traffic == Traffic() else {n: getattr(traffic, n) for n in ("idle", "backpressure", "resets")}
    )
    options = Options(count=count, repair=repair, failures=None, build=folder / "build", **asked)

    def note(what: str, _done: int, _total: int) -> None:
        began.setdefault(what, round(time.monotonic() - started, 1))

    found = check_dut(mutant.plant(folder / "rtl"), options, note).as_dict()
    row = {"mutant": mutant.name, "unit": mutant.unit_name, "fault": mutant.fault, "judged": ""}
    ended = round(time.monotonic() - started, 1)
    return row | {"said": said(found), "repair": repair, "began": began | {"ended": ended}, "report": found}


def said(report: Report) -> list[str]:
    """What a report says of the reason, line by line, as the command prints it."""
    lines = [headline(report), *(f"hint: {text}" for text in report["hints"])]
    lines += [f"start: {report['unset']['sentence']}"] if report["unset"] is not None else []
    lines += [f"handshake: {one['text']}" for one in report["protocol"][:2]]
    if report["diagnosis"] is not None:
        lines.append(f"diagnosis: {report['diagnosis']['sentence']}")
    lines += [f"  fault: {fault_line(fault)}" for fault in report["faults"]]
    for repair in report["repairs"]:
        lines.append(f"fixed by: {repair['sentence']}")
        lines += [f"  fault: {with_example(one['text'], one['example'])}" for one in repair["faults"]]
    return lines


def check_file(arguments: argparse.Namespace) -> None:
    """Prints and writes what `rtl check` says of each fault of a file."""
    rows = []
    for mutant in read_mutants([arguments.file], arguments.only):
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = as_checked(mutant, Path(folder), arguments.repair, arguments.count)
            except MmagoldError as error:
                row = {"mutant": mutant.name, "unit": mutant.unit_name, "fault": mutant.fault, "judged": ""}
                row["said"] = [f"no verdict: {error}"]
        rows.append(row)
        print(f"\n{row['mutant']} ({row['unit']}): {row['fault']}", *row["said"], sep="\n  ")
        print(f"  seconds: {row.get('began')}", flush=True)
        runner.write(arguments.out, rows)


def tally(file: Path) -> None:
    """Prints how many rows of each unit were judged how."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    for unit in [*sorted({row["unit"] for row in rows}), None]:
        counts = Counter(row["judged"] or "not judged" for row in rows if unit in (None, row["unit"]))
        print(f"{unit or 'all'}: {', '.join(f'{count} {word}' for word, count in sorted(counts.items()))}")


def _lines(repairs: Sequence[Repair]) -> set[str]:
    """The lines that repairs name, as mutants name theirs."""
    return {f"{edit.file.name}:{edit.line}" for repair in repairs for edit in repair.edits}


def _verdict(dut: Dut, folder: Path, vectors: VectorSet) -> Verdict:
    return judge(vectors, engines.run("fast", Job(dut, folder / "build", vectors)), dut.compare)


def _chosen(arguments: argparse.Namespace) -> Iterator[tuple[Mutant, str]]:
    """The mutants that were asked for, no change twice."""
    seen: set[tuple[Path, str, str]] = set()
    for mutant, kind in drawn(arguments.seed, arguments.faults, arguments.kinds):
        change = (mutant.unit, mutant.where, mutant.fault)
        if change not in seen and (not arguments.only or mutant.name in arguments.only):
            seen.add(change)
            yield mutant, kind


def main() -> None:
    """Prints a line for each mutant and how many were caught and explained."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seed", type=int)
    what.add_argument("--file", type=Path, help="planted faults")
    what.add_argument("--tally", type=Path, help="rows of --file whose column `judged` was filled in")
    parser.add_argument("--mutants", type=int, default=40, help="that compile and change a result")
    parser.add_argument("--faults", type=int, default=1, help="changes of each mutant")
    parser.add_argument(
        "--count", type=int, help="vectors (default: 20,000; with --file the default of rtl check)"
    )
    parser.add_argument(
        "--repair", type=float, default=60, help="seconds to search for a change that repairs it, 0: none"
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of change")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no further one begins")
    parser.add_argument("--only", nargs="*", help="only these, by name (fresh_1_7)")
    parser.add_argument("--out", type=Path, help="JSON file")
    arguments = parser.parse_args()
    if arguments.tally is not None:
        tally(arguments.tally)
    elif arguments.file is not None:
        check_file(arguments)
    else:
        check_drawn(arguments)


def check_drawn(arguments: argparse.Namespace) -> None:
    """Prints and writes what is said of mutants drawn by a seed."""
    rows: list[dict[str, Any]] = []
    caught: list[dict[str, Any]] = []
    broken = 0
    wanted = len(arguments.only) if arguments.only else arguments.mutants
    count, repair, chosen = arguments.count or 20_000, arguments.repair, _chosen(arguments)

    def more(running: int) -> bool:
        return len(caught) + running < wanted

    with tempfile.TemporaryDirectory() as folder:
        tasks = ((mutant, kind, count, Path(folder) / mutant.name, repair) for mutant, kind in chosen)
        for _, row in runner.results(
            examine,
            tasks,
            arguments.jobs,
            seconds=arguments.seconds,
            wanted=more,
        ):
            broken += row is None
            if row is None:
                continue
            rows.append(row)
            _say(row)
            runner.write(arguments.out, rows)
            if row["wrong"] or row["protocol"]:
                caught.append(row)
    explained = sum(bool(one.get("slugs")) for one in rows)
    fixed = sum(any(repair["whole"] for repair in one.get("repairs", ())) for one in rows)
    holes = sum(one.get("wrong_in_more", 0) > 0 for one in rows)
    print(
        f"seed {arguments.seed}: {len(caught)} caught, {len(rows) - len(caught)} pass ({holes} of them "
        f"differ in {_MORE:,} further vectors), {broken} do not compile; {explained} explained, {fixed} "
        "fixed"
    )


def _say(row: dict[str, Any]) -> None:
    what = row.get("sentence", f"passes; {row.get('wrong_in_more')} wrong in {_MORE:,} more vectors")
    print(f"{row['mutant']} {row['unit']} {row['where']} {row['wrong']} {row['protocol']}\n  {row['fault']}")
    print(f"  {what}", flush=True)
    if row.get("unset"):
        print(f"  {row['unset']}", flush=True)
    for repair in row.get("repairs", ()):
        print(f"  fixed by {repair['sentence']}", flush=True)
        for fault in repair["faults"]:
            print(f"    fault: {with_example(fault['text'], fault['example'])}", flush=True)


if __name__ == "__main__":
    main()
