"""Writes what was timed of memory as spec/timing has it (YAML) and as CSV, every point on a line."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.files import escape
from hw_capture.timing.memory.bench import LARGEST, LEVELS, PAGE, SMALLEST, Result, Sample, Stream
from hw_capture.timing.records import head, table

_COMMENTS = (
    "Written by `mmagold bench-gpu --group memory`. completion: one access, the next waits for it; of",
    "ld.global.ca, .cg and .cv with data of 16 KiB, 4 MiB and 1 GiB. `sizes`: [bytes of the data, cycles].",
    "`spread`: most less least of the runs, by the median (of sizes: the largest).",
)
_COLUMNS = ("instruction", "variant", "bytes", "cycles", "least", "most")
_ONE_BY_ONE = "One load between two reads of the clock, whose own cycles are included."
_NEAR, _VALLEY = 3, 1 / 3
"""Numbers to each side that count as the same height; the highest valley between two groups, by the lower."""
_INDEXED = {"ca": "ld.global.ca.u32", "cg": "ld.global.cg.u32"}


def yaml_text(result: Result, architecture: str, repeats: int) -> str:
    """Returns the file."""
    source = (
        f"mmagold bench-gpu, one thread or warp of an {{device}}, clock64, the median of {repeats} runs; "
        "bandwidth of all multiprocessors"
    )
    how = {
        "runs": repeats,
        "memory_bus_bits": result.bus_bits,
        "sizes": [SMALLEST, LARGEST],
        "page": PAGE,
        "multiprocessors_of_lone_blocks": list(result.alone),
    }
    lines = head(result.conditions, architecture, _COMMENTS, source, how)
    alone = [s for s in result.samples if s.size is None]
    lines += table("latency", "One access after the other", [*_levels(result), *map(_row, alone)])
    lines += table("sizes", "Loads by the size of the data", _sweeps(result), "", "latency")
    lines += table(
        "partitions", "Lines in the L2", _partitions(result), "", "completion_latency", _ONE_BY_ONE
    )
    lines += table(
        "multiprocessors",
        "Loads by the multiprocessor that loads",
        _multiprocessors(result),
        "",
        "completion_latency",
    )
    near = [s for s in result.streams if s.level not in ("L2", "DRAM")]
    rows = [
        {"instruction": s.instruction, "variant": s.level, "value": round(s.per_sm, 1)}
        for s in result.streams
    ]
    lines += table("bandwidth", "Bytes in a cycle", rows, "B/clk/SM", "throughput")
    # Bytes that shared memory or the L1 of a multiprocessor gives in a cycle: 32 banks of 4 bytes.
    shared_peak = 128
    peaks = [
        {"instruction": s.instruction, "variant": f"{s.level}, in theory", "value": shared_peak}
        for s in near
        if s.level in ("shared", "L1")
    ]
    lines += table(
        "bandwidth", "Bytes in a cycle, in theory: 32 banks of 4 bytes", peaks, "B/clk/SM", "throughput"
    )
    far = [s for s in result.streams if s.level in ("L2", "DRAM")]
    rows = [{"instruction": s.instruction, "variant": s.level, "value": round(s.gigabytes)} for s in far]
    lines += table("bandwidth", "Bytes of the chip in a second", rows, "GB/s", "chip_throughput")
    lines += table(
        "bandwidth",
        "In theory: memory clock, both edges, by the bus",
        _dram(result, far),
        "GB/s",
        "chip_throughput",
    )
    return "\n".join(lines) + "\n"


def _row(sample: Sample) -> dict[str, Any]:
    row: dict[str, Any] = {"instruction": sample.instruction}
    if sample.variant:
        row["variant"] = sample.variant
    spread = (sample.most - sample.least) / sample.cycles
    return row | {"completion": round(sample.cycles, 2), "spread": round(spread, 4)}


def _levels(result: Result) -> Iterator[dict[str, Any]]:
    """The loads by the level that their size lies in."""
    for operator, size in LEVELS.items():
        for name in (f"ld.global.{operator}.u64", _INDEXED.get(operator)):
            for sample in result.samples:
                if (sample.instruction, sample.variant, sample.size) == (name, "", size):
                    yield _row(sample)


def _sweeps(result: Result) -> Iterator[dict[str, Any]]:
    swept = [s for s in result.samples if s.size is not None and s.instruction not in _INDEXED.values()]
    for instruction, variant in dict.fromkeys((s.instruction, s.variant) for s in swept):
        mine = [s for s in swept if (s.instruction, s.variant) == (instruction, variant)]
        row: dict[str, Any] = {"instruction": instruction}
        if variant:
            row["variant"] = variant
        spread = max((s.most - s.least) / s.cycles for s in mine)
        yield row | {"spread": round(spread, 4), "sizes": [[s.size, round(s.cycles, 2)] for s in mine]}


def _partitions(result: Result) -> Iterator[dict[str, Any]]:
    """The lines of the L2, loaded for the first time and again, by the groups that their cycles fall into."""
    for when, taken in zip((", first load", ", loaded again"), result.lines, strict=False):
        parts = groups(taken)
        for place, part in enumerate(parts, 1):
            number = f", group {place} of {len(parts)}" if len(parts) > 1 else ""
            yield {
                "instruction": "ld.global.cg.u64",
                "variant": f"L2{when}{number}",
                "value": statistics.median(part),
                "text": f"{100 * len(part) / len(taken):.0f} % of the lines, {part[0]} to {part[-1]}",
            }


def _multiprocessors(result: Result) -> Iterator[dict[str, Any]]:
    """The nearest to a level, the middle one and the farthest."""
    for level, cycles in result.far.items():
        for which, value in (
            ("least", min(cycles)),
            ("median", statistics.median(cycles)),
            ("most", max(cycles)),
        ):
            variant = f"{level}, {which} of {len(cycles)} multiprocessors"
            yield {"instruction": "ld.global.u64", "variant": variant, "value": round(value, 2)}


def groups(taken: Sequence[int]) -> list[list[int]]:
    """Numbers in the groups that they fall into, each in order: split where a valley between two heaps is at
    most a third as high as the lower of them, and the middle of the valley's lowest stretch is the border.

    Heights are counts of seven neighbouring numbers; a heap holds at least a twentieth of all.
    """
    numbers = sorted(taken)
    first = numbers[0] - _NEAR
    counts = np.bincount(np.array(numbers) - first, minlength=numbers[-1] - first + _NEAR + 1)
    heights = np.convolve(counts, np.ones(2 * _NEAR + 1), "same")
    border = _border(heights)
    if border is None:
        return [numbers]
    parts = [[n for n in numbers if n - first <= border], [n for n in numbers if n - first > border]]
    if min(map(len, parts)) < len(numbers) / 20:
        return [numbers]
    return [group for part in parts for group in groups(part)]


def _border(heights: npt.NDArray[Any]) -> int | None:
    """Where the deepest valley lies, by its height as a share of the lower of the highest on both sides."""
    left, right = np.maximum.accumulate(heights), np.maximum.accumulate(heights[::-1])[::-1]
    depths = heights / np.maximum(np.minimum(left, right), 1)
    least = depths.min()
    lowest = np.flatnonzero((depths == least) & (np.minimum(left, right) > 0))
    return int(lowest[len(lowest) // 2]) if least <= _VALLEY and len(lowest) else None


def _dram(result: Result, far: list[Stream]) -> Iterator[dict[str, Any]]:
    khz = int(result.conditions.facts.get("memory_clock_khz", 0))
    peak = round(2 * khz * result.bus_bits / 8 / 1e6)
    if peak:
        for stream in far:
            if stream.level == "DRAM":
                yield {"instruction": stream.instruction, "variant": "DRAM, in theory", "value": peak}


def csv_text(result: Result) -> str:
    """Returns the points as CSV with a header; then the cycles of each line of the L2, and of each
    multiprocessor."""
    return escape.csv_text(_COLUMNS, _csv_rows(result))


def _csv_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for s in result.samples:
        numbers = (f"{n:.3f}" for n in (s.cycles, s.least, s.most))
        yield s.instruction, s.variant, "" if s.size is None else s.size, *numbers
    for when, taken in zip(("first load", "again"), result.lines, strict=False):
        for place, cycles in enumerate(taken):
            yield "ld.global.cg.u64", f"line {place}, {when}", 128, cycles, cycles, cycles
    for level, found in result.far.items():
        for number, one in enumerate(found):
            text = f"{one:.3f}"
            yield "ld.global.u64", f"{level}, multiprocessor {number}", "", text, text, text
