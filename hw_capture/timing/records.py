"""The head of a file of spec/timing that `mmagold bench-gpu` writes: where and how it was measured;
and the compiler that makes many kernels at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from hw_capture.gpu import processes
from hw_capture.kernels import toolchain


@dataclass
class Conditions:
    """The GPU, its clocks before and after, and what was not measured, with the reason."""

    facts: dict[str, Any]
    state_before: dict[str, str]
    state_after: dict[str, str] = field(default_factory=dict)
    sm_mhz: float = 0.0
    left_out: dict[str, str] = field(default_factory=dict)


def one_line(value: Any) -> str:
    """A value as YAML on one line; JSON is YAML, but for the space that a colon needs."""
    return json.dumps(value, separators=(", ", ": "))


def head(
    conditions: Conditions, architecture: str, comments: Sequence[str], source: str, how: dict[str, Any]
) -> list[str]:
    """Returns the lines above the tables; `how` holds the keys of this kind of measurement."""
    measured = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        **conditions.facts,
        "nvcc": toolchain.version(toolchain.require("nvcc")),
        "sm_clock_mhz_while_working": round(conditions.sm_mhz),
        **how,
        "state_before": conditions.state_before,
        "state_after": conditions.state_after,
        "left_out": conditions.left_out,
    }
    device = conditions.facts["name"]
    return [
        *(f"# {comment}" for comment in comments),
        f"source: {source.format(device=device)}",
        f"device: {device}",
        f"architecture: {architecture}",
        "measured:",
        *(f"  {key}: {one_line(value)}" for key, value in measured.items()),
        "tables:",
    ]


def table(
    number: str,
    title: str,
    rows: Iterable[dict[str, Any]],
    unit: str = "",
    quantity: str = "",
    note: str = "",
) -> list[str]:
    """Returns the lines of a table, none where it has no rows."""
    lines = [f"      - {one_line(row)}" for row in rows]
    if not lines:
        return []
    keys = {"title": one_line(title), "quantity": quantity, "unit": unit, "note": note and one_line(note)}
    return [
        f"  - table: {number}",
        *(f"    {key}: {value}" for key, value in keys.items() if value),
        "    rows:",
        *lines,
    ]


Item = TypeVar("Item")
Value = TypeVar("Value")
Progress = Callable[[str, int, int], None]


def in_parallel(
    work: Callable[[Item], Value], items: Sequence[Item], progress: Progress | None = None
) -> Generator[Value, None, None]:
    """Yields what `work` makes of each item, in order; an interrupt stops the compilers, too."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(work, item) for item in items]
        try:
            for done, job in enumerate(jobs):
                if progress:
                    progress("compiling", done, len(jobs))
                yield job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop_all()
            raise
