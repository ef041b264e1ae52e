"""Writes what was timed of scalar instructions as spec/timing has it (YAML) and as CSV, every point on a
line."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from golden.files import escape
from hw_capture.timing.records import head, table
from hw_capture.timing.scalar.bench import PASSES, TURNS, WARPS, Result, Timed
from hw_capture.timing.scalar.programs import COUNTS, TABLE_ONE, Built

_COMMENTS = (
    "Written by `mmagold bench-gpu --group scalar`. A point is [warps, ILP, cycles of a round, throughput];",
    "the CSV of the same name has the figures of every number of warps.",
    "completion: a round of one warp, ILP 1, less what the result passes through `beside` the instruction.",
    "`link`: how the chain is made; `by`: the link of the completion, where it is another. `sass`: a round;",
    "`alone`: the instruction alone. `spread`: most less least of the runs, by the median. `hash`: of the",
    "SASS between the clock reads. interval: the least cycles between two instructions of a sub-core.",
    "`ends`: what a chain of floats has come to, where that is no normal number. `any_bits`: a round of one",
    "warp whose operands are any bits instead of floats from 1 to 2, where it takes another time.",
)
_COLUMNS = ("instruction", "theme", "link", "warps", "ilp", "cycles", "least", "most", "throughput", "unit")
_UNIT = "op/clk/SM"
_NUMBERED = (("", "independent"), ("clock 32", "clock32"), ("dependent", "dependent"))
"""Variants of Table I, and what their sequences are called."""


def yaml_text(result: Result, architecture: str, repeats: int) -> str:
    """Returns the file."""
    how = {"warps": WARPS, "turns": TURNS, "passes": PASSES, "runs": repeats}
    source = (
        f"mmagold bench-gpu on one multiprocessor of an {{device}}, clock64, the median of {repeats} runs"
    )
    lines = head(result.conditions, architecture, _COMMENTS, source, how)
    for theme in dict.fromkeys(timed.built.operation.theme for timed in result.timed):
        rows = [row(result, timed) for timed in result.timed if timed.built.operation.theme == theme]
        lines += table("chains", theme.capitalize(), rows, _UNIT)
    changed = [{"instruction": name, "text": why} for name, why in result.conditions.left_out.items()]
    lines += table(
        "changed", "What the compiler changed, and is not timed", changed, "", "completion_latency"
    )
    lines += _straight(result)
    return "\n".join(lines) + "\n"


def row(result: Result, timed: Timed) -> dict[str, Any]:
    """One instruction."""
    built, first = timed.built, timed.at(1, 1)
    found: dict[str, Any] = {"instruction": built.operation.name}
    completion = result.completion(timed) if built.operation.result else None
    if completion is not None and completion[0] > 0:
        found["completion"] = round(completion[0], 2)
    if not built.round.extra:
        found["interval"] = round(
            min(4 * p.cycles / (p.ilp * p.warps) for p in timed.points if p.warps >= 4), 2
        )
    found |= {
        "sass": sass(built),
        "alone": built.alone,
        "link": built.plan.link,
        "spread": round((first.most - first.least) / first.cycles, 4),
        "hash": built.round.hash,
    }
    if timed.ends:
        found["ends"] = timed.ends
    # A time within one percent is the same.
    same = 0.01
    if timed.any_bits and abs(timed.any_bits / first.cycles - 1) > same:
        found["any_bits"] = round(timed.any_bits, 2)
    if completion and completion[1] != built.plan.link:
        found["by"] = completion[1]
    if built.round.extra:
        found["beside"] = built.round.extra
    # Warps of which the file has every ILP; of the others it has ILP 1, and the CSV all.
    tabled = (1, 4, 32)
    found["points"] = [
        [p.warps, p.ilp, round(p.cycles, 2), round(p.throughput, 1)]
        for p in timed.points
        if p.ilp == 1 or p.warps in tabled
    ]
    return found


def sass(built: Built) -> str:
    """What a round of the chain holds, with the link of the instruction."""
    return " + ".join(_counted(name, n) for name, n in built.round.sass.items())


def _counted(name: str, count: float) -> str:
    return name if count == 1 else f"{count:g} {name}"


def _straight(result: Result) -> Iterator[str]:
    """The tables in the way of Abdelkhalik et al.: cycles between two clock reads, less those of two reads
    with nothing between, by the number of instructions."""
    note = "No loop: cycles between two reads of the clock, less those of two reads without anything between."
    raw = "No loop: cycles between two reads of the clock by their number, the reads' own cycles included."
    # Table I of the paper: the cycles of n instructions between the reads, divided by n.
    numbered = [
        {
            "instruction": TABLE_ONE,
            "variant": variant,
            "repeats": n,
            "value": round(both / n, 2),
            "sass": "; ".join(timed.built.straight[f"{kind}_{n}"]),
        }
        for timed in result.timed
        if timed.built.operation.name == TABLE_ONE
        for variant, kind in _NUMBERED
        for n in COUNTS
        if (both := timed.straight.get(f"{kind}_{n}", 0)) > 0
    ]
    # Table V: what the reads themselves take.
    overhead = [
        {"instruction": "mov.u32 clock", "variant": name, "value": took}
        for timed in result.timed[:1]
        for name, key in (("", "clock64"), ("clock 32", "clock32"))
        if (took := timed.straight[key]) > 0
    ]
    yield from table("I", "One of n add.u32", numbered, "", "cycles_per_instruction", raw)
    yield from table("V", "Two reads of the clock", overhead, "", "cycles_per_instruction")
    # Tables II and V: three instructions, less the reads.
    for kind, quantities in (
        ("dependent", ("cycles_dependent",)),
        ("independent", ("cycles_independent", "cycles_per_instruction")),
    ):
        rows = [
            {"instruction": timed.built.operation.name, **found}
            for timed in result.timed
            if (found := _of_three(timed, f"{kind}_3"))
        ]
        for number, quantity in zip(("II", "V"), quantities, strict=False):
            yield from table(number, f"One of three {kind} instructions", rows, "", quantity, note)


def _of_three(timed: Timed, name: str) -> dict[str, float | str]:
    """Cycles of one of three instructions, or why there are none; {} where no such sequence was built."""
    if (why := timed.built.changed.get(name)) is not None:
        return {"text": why}
    if name not in timed.straight:
        return {}
    value = round((timed.straight[name] - timed.straight["clock64"]) / 3, 2)
    return {"value": value} if value > 0 else {"text": "no cycles apart from the clock reads"}


def csv_text(result: Result) -> str:
    """Returns the points as CSV with a header."""
    return escape.csv_text(_COLUMNS, _csv_rows(result))


def _csv_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for timed in result.timed:
        operation = timed.built.operation
        for p in timed.points:
            numbers = (f"{n:.3f}" for n in (p.cycles, p.least, p.most))
            where = (operation.name, operation.theme, timed.built.plan.link, p.warps, p.ilp)
            yield *where, *numbers, f"{p.throughput:.1f}", _UNIT


def spread(result: Result) -> float:
    """The median of (most - least) / cycles over all points."""
    return statistics.median((p.most - p.least) / p.cycles for t in result.timed for p in t.points)
