"""Writes the result of `bench` as spec/timing has it (YAML, read again by `tables`) and as CSV, every
point on a line."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from golden.catalog.timing import as_printed
from golden.files import escape
from hw_capture.timing.bench import Result, Timing
from hw_capture.timing.programs import ROUNDS, UNROLL, Subject
from hw_capture.timing.records import head, table

_TITLES = {
    "mma": "Native mma.sync",
    "mma.sp": "Native mma.sp; FMA count the zeros of A, as the vendor counts them",
    "wmma": "wmma, operands in registers",
    "wgmma": "wgmma; interval: one after the other on one accumulator; completion: one, committed and "
    "waited for",
    "wgmma.sp": "wgmma.sp, measured as wgmma; FMA count the zeros of A",
    "wmma.moves": "wmma.load and wmma.store of packed matrices; what a load gives is added to the address of "
    "the next; padded: 16 bytes between rows",
    "movement": "Matrix loads, stores and transposes, and ld.shared",
    "emulated": "mma that the compiler makes of other instructions; a chain through A and B with one LOP3 a "
    "register of B",
}
_COMMENTS = (
    "Written by `mmagold bench-gpu`. A point is [warps, ILP, cycles of one round, throughput]; random "
    "operands. `zeros`:",
    "cycles with zeros by cycles with random operands, the median of all points. `loop`: SASS of one "
    "instruction.",
    "completion: the shortest round of one warp. completion_a: the same through A, ILP 1. interval: from "
    "one to the next.",
    "`stalls`: cycles of a round, ILP 1, that the code itself asks for, by chain: scoreboards and jumps "
    "come on top.",
)
_PRINTED_COMMENT = (
    "Rows `as printed`: the loop of Figure 4 of W. Sun et al., with `__syncwarp()` in each round, A and B of "
    "each chain",
    "its own, no pass before, 4 rounds a turn; completion: 1 warp, ILP 1. `stalls` are by chain and ILP.",
)
_COLUMNS = (
    "instruction",
    "variant",
    "group",
    "chain",
    "operands",
    "warps",
    "ilp",
    "cycles",
    "least",
    "most",
    "throughput",
    "unit",
)


def csv_text(result: Result) -> str:
    """Returns the points as CSV with a header."""
    return escape.csv_text(_COLUMNS, _csv_rows(result))


def _csv_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for t in result.timings:
        numbers = (f"{t.cycles:.3f}", f"{t.least:.3f}", f"{t.most:.3f}", f"{t.throughput:.1f}")
        where = (t.subject.name, t.subject.variant, t.subject.group, t.chain, t.operands, t.warps, t.ilp)
        yield *where, *numbers, t.subject.unit


def yaml_text(result: Result, architecture: str, repeats: int) -> str:
    """Returns the file: where and how it was measured, then a table for each group."""
    how = {
        "rounds": {"warp": ROUNDS[32], "warpgroup": ROUNDS[128]},
        "unroll": UNROLL,
        "runs": repeats,
    }
    source = (
        f"mmagold bench-gpu on one multiprocessor of an {{device}}, clock64, the median of {repeats} runs"
    )
    subjects = list(dict.fromkeys(timing.subject for timing in result.timings))
    printed = any(subject.printed for subject in subjects)
    comments = (*_COMMENTS, *(_PRINTED_COMMENT if printed else ()))
    lines = head(result.conditions, architecture, comments, source, how)
    timings: dict[str, list[Timing]] = {subject.label: [] for subject in subjects}
    for timing in result.timings:
        timings[timing.subject.label].append(timing)
    for group, title in _TITLES.items():
        chosen = [subject for subject in subjects if subject.group == group]
        rows = [
            row
            for subject in chosen
            for row in (
                _row(subject, timings[subject.label], result),
                *_printed(subject, timings[subject.label]),
            )
        ]
        lines += table(group, title, rows, chosen[0].unit if chosen else "")
    return "\n".join(lines) + "\n"


def _row(subject: Subject, timings: Sequence[Timing], result: Result) -> dict[str, Any]:
    """One instruction, in our loop."""
    timings = [t for t in timings if t.chain != "printed"]
    loop, stalls = (held.get(subject.label, {}) for held in (result.loops, result.stalls))
    drawn = [t for t in timings if t.operands == "random"]
    row: dict[str, Any] = {"instruction": subject.name}
    if subject.variant:
        row["variant"] = subject.variant
    row |= summary(subject, drawn)
    row |= {"zeros": round(_zeros(timings), 3), "loop": loop}
    if stalls:
        row["stalls"] = {chain: round(cycles, 2) for chain, cycles in stalls.items()}
    row["points"] = _points([t for t in drawn if t.chain == subject.main])
    if not loop:
        del row["loop"]
    return row


def _printed(subject: Subject, timings: Sequence[Timing]) -> list[dict[str, Any]]:
    """The row of an instruction in the loop of Sun et al.; none where that was not measured."""
    drawn = [t for t in timings if t.operands == "random" and t.chain == "printed"]
    first = [t.cycles for t in drawn if (t.warps, t.ilp) == (1, 1)]
    if not first:
        return []
    row = {
        "instruction": subject.name,
        "variant": as_printed(subject.variant),
        "completion": round(first[0], 2),
    }
    return [
        row
        | {"zeros": round(_zeros([t for t in timings if t.chain == "printed"]), 3), "points": _points(drawn)}
    ]


def _points(timings: Sequence[Timing]) -> list[list[float]]:
    return [[t.warps, t.ilp, round(t.cycles, 2), round(t.throughput, 1)] for t in timings]


def summary(subject: Subject, timings: Sequence[Timing]) -> dict[str, float]:
    """Returns completion latency, that through A, and the interval between two instructions of a sub-core.

    The completion latency is the shortest round of one warp: no round can be shorter. With ILP 1 it may be
    longer, since ptxas fills a gap of 16 cycles with a NOP that costs one more.

    Of an instruction whose C and D have unlike formats it is that through A.
    Of an emulated instruction it is that through A and B, `completion_c` that through C,
    `completion_published` that of the kernel of public benchmarks. `single`: one
    instruction and a use of its result, `empty`: that use; the two overlap, so that no difference is taken.

    wgmma occupies all four sub-cores: its interval is that of one warpgroup.
    """
    least = subject.lanes // 32
    first = {t.chain: t.cycles for t in timings if t.ilp == 1 and t.warps == least}
    found: dict[str, float] = {}
    if subject.completes:
        chain = "group" if subject.lanes == 128 else subject.main
        found["completion"] = min(t.cycles for t in timings if t.chain == chain and t.warps == least)
    if "a" in first:
        through, chain = ("completion_c", "c") if subject.group == "emulated" else ("completion_a", "a")
        found |= {through: first[chain]} if chain in first else {}
        found |= {"completion_published": first["published"]} if "published" in first else {}
    found |= {key: first[chain] for key, chain in (("single", "alone"), ("empty", "empty")) if chain in first}
    if subject.lanes == 128:
        found["interval"] = first["steady"]
    elif subject.group in ("mma", "mma.sp", "wmma", "emulated"):
        chain = subject.main
        found["interval"] = min(
            t.cycles / (t.ilp * t.warps / 4) for t in timings if t.chain == chain and t.warps % 4 == 0
        )
    elif not subject.completes:
        found["interval"] = first["c"]
    return {key: round(value, 2) for key, value in found.items()}


def _zeros(timings: Sequence[Timing]) -> float:
    """Cycles with zeros by cycles with random operands, the median of all points."""
    drawn = {(t.chain, t.ilp, t.warps): t.cycles for t in timings if t.operands == "random"}
    ratios = [t.cycles / drawn[t.chain, t.ilp, t.warps] for t in timings if t.operands == "zeros"]
    return statistics.median(ratios) if ratios else 1.0
