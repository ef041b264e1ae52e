"""Writes what was timed of memory as spec/timing has it (YAML) and as CSV, every point on a line."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterator
from typing import Any

from hw_capture.bench.memory.bench import LARGEST, LEVELS, PAGE, SMALLEST, Result, Sample, Stream
from hw_capture.bench.records import head, table

_COMMENTS = (
    "Written by `mmagold bench-gpu --group memory`. completion: one access, the next waits for it; of",
    "ld.global.ca, .cg and .cv with data of 16 KiB, 4 MiB and 1 GiB. `sizes`: [bytes of the data, cycles].",
    "`spread`: most less least of the runs, by the median (of sizes: the largest).",
)
_COLUMNS = ("instruction", "variant", "bytes", "cycles", "least", "most")
_ONE_BY_ONE = "One load between two reads of the clock, whose own cycles are included."
_SHARED_PEAK = 128
"""Bytes that shared memory or the L1 of a multiprocessor gives in a cycle: 32 banks of 4 bytes."""
_INDEXED = {"ca": "ld.global.ca.u32", "cg": "ld.global.cg.u32"}


def yaml_text(result: Result, architecture: str, repeats: int) -> str:
    """Returns the file."""
    source = (
        f"mmagold bench-gpu, one thread or warp of an {{device}}, clock64, the median of {repeats} runs; "
        "bandwidth of all multiprocessors"
    )
    how = {"runs": repeats, "memory_bus_bits": result.bus_bits, "sizes": [SMALLEST, LARGEST], "page": PAGE}
    lines = head(result.conditions, architecture, _COMMENTS, source, how)
    alone = [s for s in result.samples if s.size is None]
    lines += table("latency", "One access after the other", [*_levels(result), *map(_row, alone)])
    lines += table("sizes", "Loads by the size of the data", _sweeps(result), "", "latency")
    lines += table(
        "partitions", "Lines in the L2", _partitions(result), "", "completion_latency", _ONE_BY_ONE
    )
    near = [s for s in result.streams if s.level not in ("L2", "DRAM")]
    rows = [
        {"instruction": s.instruction, "variant": s.level, "value": round(s.per_sm, 1)}
        for s in result.streams
    ]
    lines += table("bandwidth", "Bytes in a cycle", rows, "B/clk/SM", "throughput")
    peaks = [
        {"instruction": s.instruction, "variant": f"{s.level}, in theory", "value": _SHARED_PEAK}
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
    """The lines of the near and of the far partition, loaded for the first time and again: below and above
    the middle between the fastest and the slowest twentieth."""
    for when, taken in zip((", first load", ""), result.lines, strict=False):
        cycles = sorted(taken)
        middle = (cycles[len(cycles) // 20] + cycles[-len(cycles) // 20]) / 2
        parts = {"near": [n for n in cycles if n <= middle], "far": [n for n in cycles if n > middle]}
        for name, part in parts.items():
            if part:
                yield {
                    "instruction": "ld.global.cg.u64",
                    "variant": f"L2, {name}{when}",
                    "value": statistics.median(part),
                    "text": f"{100 * len(part) / len(cycles):.0f} % of the lines",
                }


def _dram(result: Result, far: list[Stream]) -> Iterator[dict[str, Any]]:
    khz = int(result.conditions.facts.get("memory_clock_khz", 0))
    peak = round(2 * khz * result.bus_bits / 8 / 1e6)
    if peak:
        for stream in far:
            if stream.level == "DRAM":
                yield {"instruction": stream.instruction, "variant": "DRAM, in theory", "value": peak}


def csv_text(result: Result) -> str:
    """Returns the points as CSV with a header; then the cycles of each line of the L2."""
    stream = io.StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for s in result.samples:
        numbers = (f"{n:.3f}" for n in (s.cycles, s.least, s.most))
        rows.writerow((s.instruction, s.variant, "" if s.size is None else s.size, *numbers))
    for when, taken in zip(("first load", "again"), result.lines, strict=False):
        for place, cycles in enumerate(taken):
            rows.writerow(("ld.global.cg.u64", f"line {place}, {when}", 128, cycles, cycles, cycles))
    return stream.getvalue()
