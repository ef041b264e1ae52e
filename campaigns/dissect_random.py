"""Dissects random units of the language as black boxes, and holds what is found against fresh operands.

    .venv/bin/python campaigns/dissect_random.py --draw altered any --units 100 --seed 1 --out random.md

Draws: `altered`, a unit of the catalog in which two to four keys of its steps have another value, faults
included (tests/golden/changed_steps.py knows which values every key can have); `any`, steps, formats and keys
all at random (tests/golden/faulty_units.py), as campaigns/random_specs.py draws them; `family`, one of the
families that have a fast form, with odd formats and widths (tests/golden/kernel_units.py).

The search gets formats, K, and a function. What it finds counts as exact where none of the fresh dot
products, aimed at the true unit and at the one found, differs. The seconds are CPU time of the search and of
the box together, the limit, too: what else the machine does ends no search.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "golden")]

import runner  # noqa: E402
from changed_steps import alternatives, replace_step, step_lists  # noqa: E402
from faulty_units import any_unit  # noqa: E402
from kernel_units import kernel_unit  # noqa: E402
from random_units import accepted  # noqa: E402

import golden  # noqa: E402
from golden import stimuli  # noqa: E402
from golden.catalog.unit_files import build_instruction  # noqa: E402
from golden.catalog.unit_text import unit_text  # noqa: E402
from golden.errors import MmagoldError, one_line  # noqa: E402
from golden.model.instruction import Instruction  # noqa: E402
from golden.number.formats import Format  # noqa: E402
from golden.program.keys import Candidate as MaximumOf  # noqa: E402
from golden.program.keys import declared, key_name  # noqa: E402
from golden.program.program import Program  # noqa: E402
from golden.program.steps import Step  # noqa: E402
from golden.unit import FunctionUnit  # noqa: E402
from golden.yamlfile import parse  # noqa: E402

DRAWS = {
    "altered": "units of the catalog with two to four keys changed, faults included",
    "any": "steps, formats and keys all at random, faults included",
    "family": "the families that have a fast form, with odd formats and widths",
}
_TAKEN = " was taken for "
FRESH = 5
"""Seed of the operands that the search never asked about."""


# Units ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A random unit. `what`: how it was drawn, its formats, and of an altered one what was changed."""

    unit: Instruction
    what: str


def draw(kind: str, seed: int) -> Drawn:
    """The unit of a seed; the same always."""
    if kind == "altered":
        return altered(seed)
    unit = accepted({"any": any_unit, "family": kernel_unit}[kind], seed)[1]
    formats = ", ".join(fmt.name for fmt in unit.own_formats.values())
    return Drawn(unit, f"{formats}, k {unit.k}, {len(unit.program.operations)} operations")


def altered(seed: int) -> Drawn:
    """A unit of the catalog with keys of its steps changed, if the loader accepts it."""
    rng = random.Random(seed)
    while True:
        name, base = rng.choice(list(step_lists().items()))
        most_changes = 4
        unit, wanted = base.stateless, rng.randint(2, most_changes)
        made: list[str] = []
        for _ in range(30):
            if len(made) == wanted:
                break
            change = _change(rng, unit)
            if change is not None and change[1].partition("=")[0] not in {t.partition("=")[0] for t in made}:
                unit, made = change[0], [*made, change[1]]
        if len(made) == wanted:
            return Drawn(unit, f"{name}: {'; '.join(made)}")


def _change(rng: random.Random, unit: Instruction) -> tuple[Instruction, str] | None:
    """One key of one step with another value, in all operations that have the step; None where no unit can
    be that."""
    operation = rng.choice(unit.program.operations)
    index = rng.randrange(len(operation.steps))
    step = operation.steps[index]
    field, values = rng.choice([*alternatives(step, operation.out_format).items()] or [("", ())])
    others = [value for value in values if value != getattr(step, field)]
    if not others:
        return None
    value = rng.choice(others)
    changed = [replace_step(o, index, step, field, value) for o in unit.program.operations]
    made = _loaded(replace(unit, program=Program(tuple(changed))))
    return None if made is None else (made, f"{step.op} {index}: {field} = {_shown(value)}")


def _shown(value: Any) -> str:
    """A value of a key, short."""
    if isinstance(value, Format):
        return value.name
    if isinstance(value, MaximumOf):
        what = f"{'leading' if value.leading else 'carried'} of {'+'.join(value.of)}"
        least = "" if value.least is None else f", at least {value.least}"
        return f"{what} {value.plus:+d}{least}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    return str(value)


def _loaded(unit: Instruction) -> Instruction | None:
    """The unit as the loader reads its text; None where it refuses it, or no text says it."""
    dense = replace(unit, pattern=None, k=unit.stored_k) if unit.pattern is not None else unit
    try:
        text = unit_text(dense, "drawn", "a random unit")
        return None if text is None else build_instruction(parse(text))
    except (MmagoldError, ValueError):
        return None


# What was found ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What came out for one unit; `fresh`: None where there is no candidate."""

    seed: int
    what: str
    differ: int
    compared: int
    fresh: int | None
    of: int
    seconds: float
    missed: tuple[str, ...]
    said: str

    @property
    def exact(self) -> bool:
        """Whether no operand separated them."""
        return self.fresh == 0 and self.differ == 0


def fresh(box: Instruction, found: Instruction, each: int) -> tuple[int, int]:
    """Fresh dot products that differ, of how many: `each` of every kind, aimed at either."""
    wrong = count = 0
    for index, kind in enumerate(stimuli.KINDS):
        for aim, target in enumerate((box, found)):
            operands = stimuli.generate(target, kind, each, np.random.default_rng([FRESH, index, aim]))
            wrong += int((box.dot(**operands) != found.dot(**operands)).sum())
            count += each
    return wrong, count


def missed(box: Instruction, found: Instruction) -> Iterator[str]:
    """In words, the keys with other values where both have the same steps; else the steps of both."""
    mine, yours = (tuple(map(_shape, one.program.operations)) for one in (box, found))
    if mine != yours:
        yield "structure"
        yield f"{' | '.join(mine)}{_TAKEN}{' | '.join(yours)}"
        return
    for a, b in zip(box.program.operations, found.program.operations, strict=True):
        for one, other in zip(a.steps, b.steps, strict=True):
            yield from _keys(one, other)


def _shape(operation: Any) -> str:
    steps = (f"{step.op} {'+'.join(step.of)}" for step in operation.steps)
    return f"{operation.seed}{list(operation.k_index)}{list(operation.addends)}: {', '.join(steps)}"


def _keys(one: Step, other: Step) -> Iterator[str]:
    if type(one) is not type(other):
        yield f"{one.op}.order"
        return
    for name, key, _ in declared(one):
        if getattr(one, name) != getattr(other, name):
            yield f"{one.op}.{key_name(name, key)}"


def row(drawn: Drawn, seed: int, given: argparse.Namespace) -> Row:
    """Dissects one unit."""
    unit, clock, limit = drawn.unit, time.monotonic, given.seconds
    time.monotonic = time.process_time
    try:
        before = time.process_time()
        found = golden.dissect(FunctionUnit.like(unit, unit.dot), seconds=limit, asks=given.asks)
        spent = time.process_time() - before
    finally:
        time.monotonic = clock
    common = {"differ": found.wrong, "compared": found.compared, "seconds": round(spent, 2)}
    said = " ".join(found.undecided)[:400]
    if found.instruction is None:
        return Row(seed, drawn.what, fresh=None, of=0, missed=("no candidate",), said=said, **common)
    wrong, of = fresh(unit, found.instruction, given.each)
    names = tuple(missed(unit, found.instruction)) if wrong or found.wrong else ()
    return Row(seed, drawn.what, fresh=wrong, of=of, missed=names, said=said, **common)


def row_of(kind: str, seed: int, given: argparse.Namespace) -> Row:
    """Draws and dissects one unit. An error of the search is a row, too: it would end the whole campaign."""
    drawn = draw(kind, seed)
    try:
        return row(drawn, seed, given)
    except Exception as error:
        traceback.print_exc()
        return Row(seed, drawn.what, 0, 0, None, 0, 0.0, (f"error: {one_line(error)}",), "")


def drawn_rows(kind: str, given: argparse.Namespace) -> Iterator[Row]:
    """The rows of one draw, as they come."""
    tasks = [(kind, seed, given) for seed in range(given.seed, given.seed + given.units)]
    for _, one in runner.results(row_of, tasks, given.jobs, seconds=given.until):
        yield one


def summary(draw_kind: str, rows: list[Row]) -> dict[str, Any]:
    """Counts over all units of one draw."""
    lost = Counter(
        name for one in rows if not one.exact for name in dict.fromkeys(one.missed) if _TAKEN not in name
    )
    seconds = sorted(one.seconds for one in rows)
    return {
        "draw": draw_kind,
        "units": len(rows),
        "exact": sum(one.exact for one in rows),
        "silent": sum(one.differ == 0 and bool(one.fresh) for one in rows),
        "median_seconds": seconds[len(seconds) // 2] if seconds else 0.0,
        "most_seconds": seconds[-1] if seconds else 0.0,
        "missed": dict(lost.most_common()),
        "rows": [asdict(one) | {"exact": one.exact} for one in rows],
    }


def page(found: list[dict[str, Any]], given: argparse.Namespace) -> str:
    """The report in Markdown: counts, what was missed, and of each unit what was drawn and what came out."""
    lines = [
        "# Dissected: random units of the language",
        "",
        f"{runner.made()}: units drawn by seed, each given to the "
        f"search as a function with its formats and K alone; {given.seconds:g} CPU seconds of one core and "
        f"{given.asks:,} dot products at most. Exact: none of the questions and none of the fresh dot "
        f"products differs ({given.each} of each of {len(stimuli.KINDS)} kinds aimed at the true unit, as "
        "many aimed at the one found). Silent: the search had met no difference, and there is one.",
        "",
        "| Draw | Seeds | Exact | Silent | Median CPU s | Most |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for one in found:
        seeds = f"{one['rows'][0]['seed']} to {one['rows'][-1]['seed']}"
        lines.append(
            f"| {one['draw']} | {seeds} | {one['exact']} of {one['units']} | {one['silent']} | "
            f"{one['median_seconds']:.1f} | {one['most_seconds']:.1f} |"
        )
    for one in found:
        lines += ["", f"## {one['draw'].capitalize()}: {DRAWS[one['draw']]}", "", *_table(one)]
    return "\n".join(lines) + "\n"


def _table(one: dict[str, Any]) -> list[str]:
    missed = ", ".join(f"{name} ({count})" for name, count in one["missed"].items()) or "nothing"
    lines = [f"Missed in units that are not exact: {missed}.", ""]
    lines += [
        "| Seed | Drawn | Differ while asked | Of fresh ones | CPU s |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    for row in one["rows"]:
        fresh = "no candidate" if row["fresh"] is None else f"{row['fresh']:,} of {row['of']:,}"
        what = row["what"].replace("|", "/")
        asked = f"{row['differ']:,} of {row['compared']:,}"
        lines.append(f"| {row['seed']} | {what} | {asked} | {fresh} | {row['seconds']:.1f} |")
    wrong = [row for row in one["rows"] if not row["exact"]]
    for row in wrong:
        steps = [name for name in row["missed"] if _TAKEN in name]
        lines += ["", f"Seed {row['seed']}, what the search said: {row['said']}"]
        lines += ["", *(f"    {text}" for name in steps for text in name.split(_TAKEN))] if steps else []
    return lines


def write(file: Path | None, found: list[dict[str, Any]], given: argparse.Namespace) -> None:
    """JSON or Markdown, as the file is called."""
    as_page = file is not None and file.suffix == ".md"
    runner.write(file, page(found, given) if as_page else found)


def main() -> None:
    """Prints a line for each unit as it comes, and what they amount to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", choices=tuple(DRAWS), default=["altered"], nargs="+")
    parser.add_argument("--units", type=int, default=20, help="of each draw")
    parser.add_argument("--seed", type=int, default=0, help="of the first unit of each draw")
    parser.add_argument("--each", type=int, default=150, help="fresh operands of each kind and aim")
    parser.add_argument("--seconds", type=float, default=60, help="for each dissection")
    parser.add_argument("--asks", type=int, default=150_000, help="for each dissection")
    parser.add_argument("--jobs", type=int, default=1, help="dissections at a time")
    parser.add_argument(
        "--until", type=float, default=1e9, help="of each draw, begin none after this many seconds"
    )
    parser.add_argument("--out", type=Path, help="a file of JSON or Markdown, written after each unit")
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    for kind in given.draw:
        rows: list[Row] = []
        for one in drawn_rows(kind, given):
            rows.append(one)
            print(_line(one), flush=True)
            write(given.out, [*found, summary(kind, rows)], given)
        found.append(summary(kind, sorted(rows, key=lambda one: one.seed)))
        print({name: value for name, value in found[-1].items() if name != "rows"}, flush=True)


def _line(one: Row) -> str:
    counts = f"{one.differ} of {one.compared} asked, {one.fresh} of {one.of} fresh differ"
    head = f"{one.seed} {'exact' if one.exact else 'NOT'}: {counts}, {one.seconds:.1f} s: {one.what}"
    return "\n    ".join((head, *one.missed))


if __name__ == "__main__":
    main()
