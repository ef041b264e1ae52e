"""A campaign of random custom units: the reference against the core, over every key of every step.

    python campaigns/random_specs.py --units 4000 --seed 0 --jobs 16 --out report.json
    python campaigns/random_specs.py --units 2000 --seed 20261122 --out docs/reports/random-units.md

The second is the report that is committed; --out writes Markdown or JSON, as the file is called.

Every second unit is one of tests/golden/faulty_units.py (`any_unit`): random steps, faults and all keys that
the step classes declare; most of the others run in doubles (tests/golden/doubles_units.py). Only units
that the loader accepts are used. Each answers random dot products in the general interpreter, as `dot` runs
them (in the fast form or in blocks), and in the reference, whose registers are compared with the registers
that the core shows, number by number. Exit status 1: a difference, with the unit.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench"), str(ROOT / "tests" / "golden")]

import runner  # noqa: E402
from cores import MAKERS, way  # noqa: E402
from model_differences import differences  # noqa: E402
from random_operands import draw_dots  # noqa: E402
from random_units import accepted  # noqa: E402
from witnesses import differences as other_registers  # noqa: E402

from golden.program.keys import declared  # noqa: E402
from golden.program.steps import KINDS  # noqa: E402

DOTS = 6
"""What `differences` takes of each unit."""


def keys_of(ins: Any) -> set[str]:
    """The keys that do not hold their defaults, as class.field."""
    steps = (step for operation in ins.program.operations for step in operation.steps)
    return {
        f"{type(step).__name__}.{name}"
        for step in steps
        for name, _, default in declared(step)
        if getattr(step, name) != default
    }


def run(seed: int) -> tuple[int, list[str], str, set[str], str]:
    """One unit: its differences, its text where there are any, its keys, and how `dot` runs it."""
    text, ins = accepted(MAKERS["doubles" if seed % 2 else "any"], seed)
    try:
        found = differences(ins, DOTS, seed)
        found += other_registers(ins, draw_dots(ins, DOTS, np.random.default_rng(seed)))
    except Exception as error:
        found = [f"{type(error).__name__}: {error}"]
    return seed, found, text if found else "", keys_of(ins), way(ins).partition(":")[0]


def to_markdown(report: dict[str, Any]) -> str:
    """The report as a page: what ran, what differed, and how many units had each key."""
    last = report["first_seed"] + report["units"] - 1
    never = ", ".join(f"`{key}`" for key in report["keys_never_drawn"]) or "none"
    lines = [
        "# Campaign: the reference compared with the core on random units",
        "",
        f"{report['made']}, {report['machine']}: {report['units']:,} units "
        f"(seeds {report['first_seed']} to {last}), {report['differing']:,} differing.",
        "",
        f"Of each unit {DOTS} random dot products in the reference, in the general interpreter and as `dot` "
        "runs them, in the fast form or in blocks; more of them, and matrices, in the last two. As many in "
        "the reference and observed: every number of every register. The command is "
        "`campaigns/random_specs.py`.",
        "",
        f"How `dot` runs them: {', '.join(f'{how} {count:,}' for how, count in report['ways'].items())}.",
        "",
        f"Keys that no unit had: {never}.",
        "",
        "| Key that does not hold its default | Units |",
        "|---|---|",
        *(f"| `{key}` | {count:,} |" for key, count in report["keys"].items()),
    ]
    for wrong in report["wrong"]:
        lines += ["", f"## Seed {wrong['seed']}", "", *wrong["found"], "", "```yaml", wrong["unit"], "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the campaign; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    used: Counter[str] = Counter()
    ways: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    tasks = [(seed,) for seed in range(options.seed, options.seed + options.units)]
    drawn = runner.results(run, tasks, options.jobs)
    for done, (_, (seed, found, text, keys, how)) in enumerate(drawn, 1):
        used.update(keys)
        ways[how] += 1
        if found:
            wrong.append({"seed": seed, "found": found, "unit": text})
            print(f"seed {seed}: {found[0]}\n{text}", file=sys.stderr)
        if done % 200 == 0:
            print(f"{done} of {options.units} units, {len(wrong)} differ", file=sys.stderr)
    every = {f"{kind.__name__}.{name}" for kind in KINDS for name, *_ in declared(kind)}
    report = {
        "made": runner.made(),
        "machine": platform.machine(),
        "units": options.units,
        "first_seed": options.seed,
        "differing": len(wrong),
        "ways": dict(sorted(ways.items())),
        "keys": dict(sorted(used.items())),
        "keys_never_drawn": sorted(every - set(used)),
        "wrong": wrong,
    }
    as_page = options.out is not None and options.out.suffix == ".md"
    text = to_markdown(report) if as_page else json.dumps(report, indent=1)
    if options.out is None:
        print(text)
    runner.write(options.out, text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
