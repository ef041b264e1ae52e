"""Writes the ladder as spec/timing has it (YAML), and as CSV, a line for each kernel and size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from golden.files import escape
from hw_capture.timing.ablation import machine_code
from hw_capture.timing.ablation.run import PLACES, Point, Result
from hw_capture.timing.ablation.variants import Variant
from hw_capture.timing.records import head, table

_COMMENTS = (
    "Written by `mmagold bench-kernels`: D = A B in bf16, sums and D in f32; square, K contiguous in both.",
    "The variant is the size, then what is swept. Cycles: the longest that a multiprocessor took, by its own",
    "clock, of single launches with pauses, the mean over several places in memory; share: multiply-adds by",
    "cycles, of the peak of all multiprocessors. TFLOP/s: sustained, by events. cublas: through PyTorch.",
)
_COLUMNS = (
    *("kernel", "options", "size", "milliseconds", "tflops"),
    *("cycles", "least", "most", "mhz", "share", "checked"),
)


def variant_text(point: Point) -> str:
    """The key's variant: size, and what is swept."""
    return ", ".join(part for part in (str(point.size), point.options) if part)


def yaml_text(result: Result, architecture: str, variants: Sequence[Variant], runs: int) -> str:
    """Returns the file: where and how it was measured, then the tables."""
    how = {
        "runs": runs,
        "places": PLACES,
        "spread_of_cycles_by_place_percent": _spread(result),
        "elements_computed_by_the_model": sum(point.checked for point in result.points),
        "bits": "equal in every element that the model computed; one D for all kernels of an instruction",
        "cublas_has_the_bits_of": result.same_bits,
        "sm_clock_mhz_of_the_cycles": {f"{p.label}, {p.size}": round(p.mhz) for p in result.points if p.mhz},
        "step_of_k": result.loops,
    }
    source = f"mmagold bench-kernels on an {{device}}, the median of {runs} runs"
    lines = head(result.conditions, architecture, _COMMENTS, source, how)
    cycles = ((point, round(point.cycles[0]) if point.cycles else None) for point in result.points)
    lines += table("cycles", "Cycles of a whole product", _rows(cycles), "cycles", "kernel_cycles")
    teraflops = ((point, round(point.teraflops, 1)) for point in result.points)
    lines += table("tflops", "Throughput of the chip", _rows(teraflops), "TFLOP/s", "chip_throughput")
    shares = ((point, point.share and round(100 * point.share, 2)) for point in result.points)
    title = "Share of the matrix units' peak, by cycles"
    lines += table("share", title, _rows(shares), '"%"', "share_of_peak")
    title = (
        "Bank conflicts of shared memory in a product, derived from the addresses; those left out have none"
    )
    lines += table("conflicts", title, _rows(_conflicts(result, variants)), "conflicts", "bank_conflicts")
    return "\n".join(lines) + "\n"


def _rows(values: Iterator[tuple[Point, float | None]]) -> list[dict[str, Any]]:
    return [
        {"instruction": point.name, "variant": variant_text(point), "value": value}
        for point, value in values
        if value
    ]


def _conflicts(result: Result, variants: Sequence[Variant]) -> Iterator[tuple[Point, float]]:
    """Derived, not measured: from the addresses of the lanes."""
    by_label = {variant.label: variant for variant in variants if not variant.warpgroups}
    for point in result.points:
        if point.label in by_label:
            copies, loads = machine_code.of_product(by_label[point.label], point.size)
            yield point, copies.conflicts + loads.conflicts


def _spread(result: Result) -> float:
    """The greatest difference of a kernel's cycles between two places, in percent of the mean."""
    spans = [point.cycles for point in result.points if point.cycles]
    return round(max(100 * (most - least) / typical for typical, least, most in spans), 2)


def csv_text(result: Result) -> str:
    """Returns every point as CSV with a header."""
    return escape.csv_text(_COLUMNS, _csv_rows(result))


def _csv_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for p in result.points:
        cycles = [f"{value:.0f}" for value in (*p.cycles, p.mhz or 0)] if p.cycles else [""] * 4
        share = "" if p.share is None else f"{p.share:.4f}"
        numbers = (f"{p.milliseconds:.4f}", f"{p.teraflops:.1f}", *cycles, share, p.checked)
        yield p.name, p.options, p.size, *numbers
