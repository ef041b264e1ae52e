"""Operands of every kind of golden/stimuli on the GPU in this machine, compared with the model.

    .venv/bin/python campaigns/stimuli_gpu.py --arch hopper --each 100000 --jobs 16 --out table.md

Campaigns make their operands on the GPU, by plans of whole tiles; here are the kinds themselves, as
vectors have them, aimed at each program, one dot product at a time. One instruction for each distinct program
of the architecture. Exit status 1: a result differs; the first one is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import runner
from dissect_catalog import distinct

from golden import stimuli
from golden.catalog.lookup import resolve
from hw_capture.kernels import build
from hw_capture.record.unit import open_chip


def compare(name: str, each: int, seed: int, end: float) -> tuple[str, Counter[str], Counter[str], str]:
    """The results asked for and the differing ones, by kind, and the first of these; stops at `end`."""
    ins = resolve(name)
    unit = open_chip().unit(ins)
    assert unit is not None
    asked, differ, first = Counter[str](), Counter[str](), ""
    for index, kind in enumerate(stimuli.KINDS):
        if time.time() > end:
            break
        operands = stimuli.generate(ins, kind, each, np.random.default_rng([seed, index]))
        model, chip = ins.dot(**operands), unit.dot(**operands)
        wrong = np.flatnonzero(model != chip)
        asked[kind] += each
        differ[kind] += len(wrong)
        if len(wrong) and not first:
            row = {operand: codes[wrong[0]].tolist() for operand, codes in operands.items()}
            first = f"{kind}: model {model[wrong[0]]:#x}, chip {chip[wrong[0]]:#x}, {row}"
    return name, asked, differ, first


def table(
    asked: Counter[str], differ: Counter[str], programs: int, chip: str, given: argparse.Namespace
) -> str:
    """The report."""
    rows = [f"| {kind} | {asked[kind]:,} | {differ[kind]:,} |" for kind in stimuli.KINDS]
    return "\n".join(
        [
            f"{runner.made()}, {chip}: {programs} programs of "
            f"{given.arch}, seed {given.seed}: {differ.total():,} of {asked.total():,} results differ.",
            "",
            "| Kind | Results | Differ |",
            "| --- | ---: | ---: |",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Prints a line for each program, then the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--arch", default="hopper")
    parser.add_argument("--each", type=int, default=10_000, help="operands of each kind for a program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--until", type=float, default=1e9, help="seconds after which no more is asked")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    units = [ins for ins in distinct() if ins.architecture == given.arch and build.supported(ins)]
    asked, differ, reached, end = Counter[str](), Counter[str](), 0, time.time() + given.until
    tasks = [(f"{ins.architecture}:{ins.name}", given.each, given.seed, end) for ins in units]
    for _, (name, some, wrong, first) in runner.results(compare, tasks, given.jobs, seconds=given.until):
        asked += some
        differ += wrong
        reached += bool(some)
        print(name, f"{wrong.total():,} of {some.total():,}", first, flush=True)
    report = table(asked, differ, reached, open_chip().name, given)
    print(report)
    runner.write(given.out, report)
    sys.exit(1 if differ.total() else 0)


if __name__ == "__main__":
    main()
