"""Writes the result of `bench` as spec/timing has it (YAML, read again by `tables`) and as CSV, every
point on a line."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hw_capture.bench.bench import Result, Timing
from hw_capture.bench.programs import ROUNDS, UNROLL, Subject
from hw_capture.kernels import toolchain

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
    stream = io.StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for t in result.timings:
        numbers = (f"{t.cycles:.3f}", f"{t.least:.3f}", f"{t.most:.3f}", f"{t.throughput:.1f}")
        where = (t.subject.name, t.subject.variant, t.subject.group, t.chain, t.operands, t.warps, t.ilp)
        rows.writerow((*where, *numbers, t.subject.unit))
    return stream.getvalue()


def yaml_text(result: Result, architecture: str, repeats: int) -> str:
    """Returns the file: where and how it was measured, then a table for each group."""
    device = result.facts["name"]
    measured = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        **result.facts,
        "nvcc": toolchain.version(toolchain.require("nvcc")),
        "sm_clock_mhz_while_working": round(result.sm_mhz),
        "rounds": {"warp": ROUNDS[32], "warpgroup": ROUNDS[128]},
        "unroll": UNROLL,
        "runs": repeats,
        "state_before": result.state_before,
        "state_after": result.state_after,
        "left_out": result.left_out,
    }
    lines = [
        "# Written by `mmagold bench-gpu`. A point is [warps, ILP, cycles of one round, throughput]; random "
        "operands. `zeros`:",
        "# cycles with zeros by cycles with random operands, the median of all points. `loop`: SASS of one "
        "instruction.",
        "# completion: the shortest round of one warp. completion_a: the same through A, ILP 1. interval: "
        "from one to the next.",
        f"source: mmagold bench-gpu on one multiprocessor of an {device}, clock64, the median of {repeats} "
        "runs",
        f"device: {device}",
        f"architecture: {architecture}",
        "measured:",
        *(f"  {key}: {_value(value)}" for key, value in measured.items()),
        "tables:",
    ]
    subjects = list(dict.fromkeys(timing.subject for timing in result.timings))
    for group in _TITLES:
        chosen = [subject for subject in subjects if subject.group == group]
        if not chosen:
            continue
        lines += [
            f"  - table: {group}",
            f"    title: {_value(_TITLES[group])}",
            f"    unit: {chosen[0].unit}",
            "    rows:",
        ]
        for subject in chosen:
            lines.append(
                _row(
                    subject, [t for t in result.timings if t.subject is subject], result.loops[subject.label]
                )
            )
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A value as YAML on one line; JSON is YAML, but for the space that a colon needs."""
    return json.dumps(value, separators=(", ", ": "))


def _row(subject: Subject, timings: Sequence[Timing], loop: dict[str, int]) -> str:
    """One instruction on one line."""
    drawn = [t for t in timings if t.operands == "random"]
    row: dict[str, Any] = {"instruction": subject.name}
    if subject.variant:
        row["variant"] = subject.variant
    row |= summary(subject, drawn)
    row |= {"zeros": round(_zeros(timings), 3), "loop": loop}
    row["points"] = [
        [t.warps, t.ilp, round(t.cycles, 2), round(t.throughput, 1)]
        for t in drawn
        if t.chain == _main(subject)
    ]
    if not loop:
        del row["loop"]
    return f"      - {_value(row)}"


def _main(subject: Subject) -> str:
    """The chain whose points are the table's."""
    return "steady" if subject.lanes == 128 else "a" if subject.group == "emulated" else "c"


def summary(subject: Subject, timings: Sequence[Timing]) -> dict[str, float]:
    """Returns completion latency, that through A, and the interval between two instructions of a sub-core.

    The completion latency is the shortest round of one warp: no round can be shorter. With ILP 1 it may be
    longer, since ptxas fills a gap of 16 cycles with a NOP that costs one more.

    Of an emulated instruction it is that through A and B, `completion_c` that through C. `single`: one
    instruction and a use of its result, `empty`: that use; the two overlap, so that no difference is taken.

    wgmma occupies all four sub-cores: its interval is that of one warpgroup.
    """
    least = subject.lanes // 32
    first = {t.chain: t.cycles for t in timings if t.ilp == 1 and t.warps == least}
    found: dict[str, float] = {}
    if subject.completes:
        chain = "group" if subject.lanes == 128 else _main(subject)
        found["completion"] = min(t.cycles for t in timings if t.chain == chain and t.warps == least)
    if "a" in first:
        through, chain = ("completion_c", "c") if subject.group == "emulated" else ("completion_a", "a")
        found |= {through: first[chain]} if chain in first else {}
    found |= {key: first[chain] for key, chain in (("single", "alone"), ("empty", "empty")) if chain in first}
    if subject.lanes == 128:
        found["interval"] = first["steady"]
    elif subject.group in ("mma", "mma.sp", "wmma", "emulated"):
        chain = _main(subject)
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
