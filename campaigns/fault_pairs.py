"""Whether two faults in one unit are listed as two: mutants of the units in other styles, in pairs.

.venv/bin/python campaigns/fault_pairs.py --every 3 --out pairs.json

Each pair is planted in the unit's RTL, built, and run on the default vectors; the diagnosis sees the results
alone. A pair counts where a hypothesis that explains every result (or the nearest, where it is called what
the unit is) has both faults, by the names that the mutants give them. "as two": it has two faults, one of
them by such a name, the other in words of its own: exponents of a that are too small are exponents of the
products that are. Where one fault hides the other in every vector there is nothing to distinguish.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import runner

from golden.errors import SpecError
from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.engines.job import Job
from rtl_tb.qualify.mutants import Mutant, load_mutants
from rtl_tb.qualify.qualification import explanations
from rtl_tb.runs.latency import measure
from rtl_tb.runs.verdict import judge


def pairs(every: int, unit: str | None) -> Iterator[Mutant]:
    """Every n-th pair of arithmetic mutants of one unit whose patches go together."""
    mutants = [m for m in load_mutants() if m.unit.name == "dut.yaml" and m.diagnosis is not None]
    together = [
        replace(
            one,
            name=f"{one.name}+{other.name}",
            patches=one.patches + other.patches,
            diagnosis=f"{one.diagnosis} & {other.diagnosis}",
        )
        for one, other in combinations(mutants, 2)
        if one.unit == other.unit and (unit is None or one.unit_name == unit) and _fits(one, other)
    ]
    yield from together[::every]


def _fits(one: Mutant, other: Mutant) -> bool:
    from rtl_tb.dut.description import load_dut

    try:
        replace(one, patches=one.patches + other.patches).patched(load_dut(one.unit))
    except SpecError:  # both change the same text
        return False
    return True


def examine(pair: Mutant, count: int, folder: Path) -> dict[str, Any]:
    """Runs one pair and returns what the diagnosis lists."""
    dut = pair.plant(folder / "rtl")
    if dut.handshake.measured:
        dut = measure(dut, "fast", "verilator", folder / "build")
    vectors = default_set(dut.instruction, count, 1, dut.level)
    verdict = judge(vectors, engines.run("fast", Job(dut, folder / "build", vectors)), dut.compare)
    started = time.monotonic()
    named = explanations(verdict, dut, budget_seconds=60)
    assert pair.diagnosis is not None
    wanted = set(pair.diagnosis.replace(" & ", "+").split("+"))
    return {
        "pair": pair.name,
        "wanted": sorted(wanted),
        "failing": int(verdict.wrong.sum()),
        "found": any(wanted <= faults for faults in named.faults),
        "as two": any(len(faults) > 1 and wanted & faults for faults in named.faults),
        "one": any(wanted & faults for faults in named.faults),
        "sentence": named.sentence,
        "seconds": round(time.monotonic() - started, 1),
    }


def main() -> None:
    """Prints a line for each pair, and how many were listed as two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every n-th pair")
    parser.add_argument("--unit", help="only pairs of this unit")
    parser.add_argument("--count", type=int, default=20_000, help="vectors")
    parser.add_argument("--out", type=Path, help="JSON file")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in pairs(arguments.every, arguments.unit):
            row = examine(pair, arguments.count, Path(folder) / pair.name)
            rows.append(row)
            words = {"two": row["found"], "as two": row["as two"], "one": row["one"], "none": True}
            word = next(word for word, true in words.items() if true)
            print(f"{word:6} {row['seconds']:6.1f} s  {row['pair']}: {row['sentence'][:200]}", flush=True)
    runner.write(arguments.out, rows)
    named, two = (sum(row[key] for row in rows) for key in ("found", "as two"))
    print(f"{two} of {len(rows)} pairs are listed as two, {named} by the names that the mutants give both")


if __name__ == "__main__":
    main()
