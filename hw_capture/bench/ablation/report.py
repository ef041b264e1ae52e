"""Writes the ladder as spec/timing has it (YAML), and as CSV, a line for each kernel and size."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from golden.files.output import write_whole
from hw_capture.bench.ablation import banks
from hw_capture.bench.ablation.run import Point, Result
from hw_capture.bench.ablation.variants import Variant
from hw_capture.kernels import toolchain

_HEAD = """\
# Written by `mmagold bench-kernels`: D = A B in bf16, sums and D in f32, square, K contiguous in A and B. The
# variant is the size, then what is swept. Cycles: the longest that a multiprocessor took, by its own clock;
# TFLOP/s: by events around the launch; share: multiply-adds by cycles, of the peak of all multiprocessors.
# cublas: through PyTorch.
"""
_TABLES: tuple[tuple[str, str, str, str, Callable[[Point], float | None]], ...] = (
    ("cycles", "kernel_cycles", "cycles", "Cycles of a whole product", lambda p: p.cycles and p.cycles[0]),
    ("tflops", "chip_throughput", "TFLOP/s", "Throughput of the chip", lambda p: round(p.teraflops, 1)),
    (
        "share",
        "share_of_peak",
        "%",
        "Share of the matrix units' peak, by cycles",
        lambda p: p.share and round(100 * p.share, 1),
    ),
)


def variant_text(point: Point) -> str:
    """The key's variant: size, and what is swept."""
    return ", ".join(part for part in (str(point.size), point.options) if part)


def write(result: Result, path: Path, architecture: str, variants: list[Variant], runs: int) -> None:
    """Writes the YAML file, whole or not at all."""
    text = yaml_text(result, architecture, variants, runs).encode()
    write_whole(path, lambda stream: stream.write(text))


def yaml_text(result: Result, architecture: str, variants: list[Variant], runs: int) -> str:
    """Returns the file: where and how it was measured, then the tables."""
    device = result.facts["name"]
    checked = sum(point.checked for point in result.points)
    measured = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        **result.facts,
        "nvcc": toolchain.version(toolchain.require("nvcc")),
        "runs": runs,
        "spread_of_cycles_percent": _spread(result),
        "elements_computed_by_the_model": checked,
        "bits": "equal in every element that the model computed; one D for all kernels of an instruction",
        "cublas_has_the_bits_of": result.same_bits,
        "cycles_by_time_mhz": {key: round(mhz) for key, mhz in result.sm_mhz.items()},
        "step_of_k": result.loops,
        "state_before": result.state_before,
        "state_after": result.state_after,
        "left_out": result.left_out,
    }
    lines = [
        f"source: mmagold bench-kernels on an {device}, the median of {runs} runs",
        f"device: {device}",
        f"architecture: {architecture}",
        "measured:",
        *(f"  {key}: {_value(value)}" for key, value in measured.items()),
        "tables:",
    ]
    for name, quantity, unit, title, value in _TABLES:
        rows = [(point, value(point)) for point in result.points]
        lines += _table(name, quantity, unit, title, [(p.name, variant_text(p), v) for p, v in rows if v])
    return _HEAD + "\n".join(lines + _conflicts(result, variants)) + "\n"


def _table(
    name: str, quantity: str, unit: str, title: str, rows: Sequence[tuple[str, str, float]]
) -> list[str]:
    if not rows:
        return []
    head = {"title": title, "quantity": quantity, "unit": unit}
    return [
        f"  - table: {name}",
        *(f"    {key}: {_value(value)}" for key, value in head.items()),
        "    rows:",
        *(
            f"      - {_value({'instruction': kernel, 'variant': text, 'value': value})}"
            for kernel, text, value in rows
        ),
    ]


def _conflicts(result: Result, variants: list[Variant]) -> list[str]:
    """Derived, not measured: from the addresses of the lanes."""
    by_label = {variant.label: variant for variant in variants}
    rows = []
    for point in result.points:
        variant = by_label.get(point.label)
        if variant is None or variant.warpgroups:
            continue
        copies, loads = banks.of_product(variant, point.size)
        if found := copies.conflicts + loads.conflicts:
            rows.append((point.name, variant_text(point), found))
    title = (
        "Bank conflicts of shared memory in a whole product, derived from the addresses; the permuted: none"
    )
    return _table("conflicts", "bank_conflicts", "conflicts", title, rows)


def _spread(result: Result) -> float:
    """The greatest difference of the runs' cycles, in percent of the median."""
    spans = [point.cycles for point in result.points if point.cycles]
    return round(max(100 * (most - least) / typical for typical, least, most in spans), 2)


def _value(value: Any) -> str:
    """A value as YAML on one line; JSON is YAML, but for the space that a colon needs."""
    return json.dumps(value, separators=(", ", ": "))


def write_csv(result: Result, path: Path) -> None:
    """Writes every point, whole or not at all."""
    stream = io.StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(
        ("kernel", "options", "size", "milliseconds", "tflops", "cycles", "least", "most", "share", "checked")
    )
    for p in result.points:
        cycles = [f"{value:.0f}" for value in p.cycles] if p.cycles else ["", "", ""]
        share = "" if p.share is None else f"{p.share:.4f}"
        rows.writerow(
            (
                p.name,
                p.options,
                p.size,
                f"{p.milliseconds:.4f}",
                f"{p.teraflops:.1f}",
                *cycles,
                share,
                p.checked,
            )
        )
    text = stream.getvalue().encode()
    write_whole(path, lambda out: out.write(text))
