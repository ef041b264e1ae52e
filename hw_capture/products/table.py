"""A recording as a table: which call, which kernels, which plan, how many products and elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hw_capture.products.cases import Case
from hw_capture.products.explain import name_of
from hw_capture.products.record import Recorded

_KERNEL = re.compile(
    r"\b(nvjet_\w+|cutlass_\w+|sm\d+_xmma\w+|triton\w+|\w*(?:dot_kernel|gemv|splitK|split_k|sgemm|reduce_1Block)\w*)"
)
_BESIDE = re.compile(r"^Mem(set|cpy)|at::native|compressSparse|MetaDataReorder")
"""Kernels that copy, fill or pack operands."""
_SIZES = re.compile(r"\d+x\d+\w*")
"""Tile sizes and what follows in a kernel's name, which differ from shape to shape."""


@dataclass
class _Row:
    products: int = 0
    equal: int = 0
    elements: int = 0
    kernels: set[str] = field(default_factory=set)
    options: set[str] = field(default_factory=set)


def table(recorded: Iterable[Recorded]) -> str:
    """Markdown: a row for each call and named plan. Of products that no plan gives the elements are counted,
    too; `equal` says how many are."""
    rows: dict[tuple[str, str], _Row] = {}
    for one in recorded:
        row = rows.setdefault((_call(one.case), name_of(one.case) or "none"), _Row())
        row.products += 1
        row.equal += one.plan is not None
        row.elements += one.d.size
        row.kernels |= {kernel_name(name) for name in one.kernels if not _BESIDE.search(name)}
        if one.plan is not None:
            row.options |= _split(one)
    lines = [
        "| Call | Kernels | Plan | K in parts | Products | Equal | Elements |",
        "|---|---|---|---|---|---|---|",
    ]
    for (call, plan), row in sorted(rows.items()):
        kernels = ", ".join(f"`{name}`" for name in sorted(row.kernels))
        lines.append(
            f"| {call} | {kernels} | `{plan}` | {', '.join(sorted(row.options)) or 'no'} | {row.products} | "
            f"{row.equal} | {row.elements:,} |"
        )
    return "\n".join(lines) + "\n"


def _call(case: Case) -> str:
    words = [case.call, f"{case.a}, {case.b} to {case.d}"]
    return " ".join([*words, *(f"{key}={value}" for key, value in case.options.items())])


def kernel_name(whole: str) -> str:
    """What distinguishes a kernel from others, without the sizes of its tiles."""
    found = _KERNEL.search(whole)
    return _SIZES.sub("…", found.group(1) if found else whole.split("(")[0].split("<")[0][-60:])


def _split(one: Recorded) -> set[str]:
    given = one.plan.given if one.plan is not None else {}
    numbers = [f"reduce {given['reduce']}"] if isinstance(given.get("reduce"), tuple) else []
    words = [*(f"{key} {given[key]}" for key in ("part", "parts", "slices") if key in given), *numbers]
    return {" ".join(words)} - {""}


def shapes(recorded: Sequence[Recorded]) -> str:
    """The shapes of the products, in words."""
    return ", ".join(dict.fromkeys(f"{x.case.m} x {x.case.n} x {x.case.k}" for x in recorded))
