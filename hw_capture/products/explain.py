"""Which accumulation plan gives the bits that a library answered.

The call says the instruction, the order of K and what is promoted; how many parts K was split into is the
library's choice, different with every shape, and is found by trying. `table` shows a recording as a table:
which call, which kernels, which plan, how many products and elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import golden
from golden.kernels.candidates import DEALT_SUMS, MOST_CUTS, cuts
from golden.kernels.plan import Plan
from golden.number.formats import get_format
from hw_capture.products.cases import IN_PARTS, Case

if TYPE_CHECKING:
    from hw_capture.products.record import Recorded


Bits = npt.NDArray[Any]
_SPARSE_TILE = 128  # elements of K: parts are whole tiles


def explain(case: Case, operands: dict[str, Bits], d: Bits) -> Plan | None:
    """The first plan whose results are the recorded ones, every bit of every element; None if none is.

    Args:
        operands: `case.operands()`.
        d: raw codes (m, n).
    """
    base = plan_of(case)
    if base is None:
        return None
    whole = given(case, operands)
    # Nearly every wrong plan differs in one of these few results.
    first_rows = 2
    first_columns = 8
    rows, columns = slice(0, first_rows), slice(0, first_columns)
    few = {name: _part(name, codes, rows, columns) for name, codes in whole.items()}
    if case.options.get("blocks") == "128x128":  # the few columns lie in the first block of them
        few["scale_b"] = whole["scale_b"][:, :1]
    for plan in (base, *splits(base, case)):
        if np.array_equal(_computed(plan, few), d[rows, columns]) and np.array_equal(
            _computed(plan, whole), d
        ):
            return plan
    return None


def plan_of(case: Case) -> Plan | None:
    """The plan of the call without a split; None where the kernels use no matrix instruction."""
    name = name_of(case)
    if name is None:
        return None
    plan = golden.plan("hopper", name)
    return plan.but(order=_conv_order(case), tile_k=case.k) if case.call == "conv" else plan


def _conv_order(case: Case) -> tuple[int, ...]:
    """K as cuDNN goes through it: 128 bytes of channels, of these each place of the filter, then the next."""
    tile = 64 if case.a != "f32" else 32
    places = np.arange(case.k).reshape(-1, tile, 9)
    return tuple(places.swapaxes(1, 2).ravel().tolist())


def splits(base: Plan, case: Case) -> Iterator[Plan]:
    """The plan with K in parts that are alike, each number of parts once; then as single libraries cut it."""
    # Beyond K = 8192 a second kernel adds the parts of sparse products, from the last to the first; 15 of
    # them, as calls showed for three shapes of K = 16,384.
    if case.call == "sparse_mm" and case.k > 8192:
        for parts in (15, *range(2, MOST_CUTS)):
            yield base.but(parts=_cut(case.k, parts), reduce="descending")
    yield from (base.but(part=size) for size in cuts(base, case.k))
    for parts in range(2, MOST_CUTS + 1) if case.call == "sparse_mm" and case.k % _SPARSE_TILE == 0 else ():
        if parts <= case.k // _SPARSE_TILE:
            yield base.but(parts=_halved(case.k, parts))
    for blocks in range(2, MOST_CUTS + 1) if case.a == "f64" else ():  # tiles of 32 dealt out in turn
        if 32 * blocks <= case.k:
            dealt = base.but(slices=blocks, tile_k=32 * blocks)
            yield from (dealt, *([dealt.but(reduce=DEALT_SUMS[blocks])] if blocks in DEALT_SUMS else []))


def _halved(k: int, parts: int) -> list[int]:
    """Halves of parts as cuSPARSELt cuts K, which calls showed."""
    return [length // 2 for length in _cut(k, parts, _SPARSE_TILE) for _ in range(2)]


def _cut(k: int, parts: int, tile: int = 64) -> list[int]:
    """Elements of K in parts of whole tiles: part p begins at tile p * tiles / parts, rounded down."""
    ends = [k // tile * part // parts * tile for part in range(parts + 1)]
    return [last - first for first, last in pairwise(ends)]


def replayed(plan: Plan, case: Case, operands: dict[str, Bits]) -> Bits:
    """D (m, n) as the model computes it from `case.operands()`, raw codes."""
    return _computed(plan, given(case, operands))


def name_of(case: Case) -> str | None:
    """The plan in spec/plans of a case; with its options, where the name has none."""
    formats = f"{case.a}.{case.b}.{case.d}"
    options = case.options
    match case.call:
        case "mm" | "bmm":
            return {
                "f64": "cublas_f64",
                "f32": "cublas_tf32" if options.get("tf32") else None,
            }.get(case.a, f"cublas_f16.{case.a}.{case.d}")
        case "int_mm":
            return "cublas_s8"
        case "scaled_mm" if options.get("blocks"):
            return f"cublas_fp8_blocks.{options['blocks']}"
        case "scaled_mm" if options.get("rows"):
            return f"cublas_fp8_rows.{formats}"
        case "scaled_mm":
            return f"cublas_fp8_{'fast' if options['fast'] else 'precise'}.{formats}"
        case "conv":
            return f"cudnn_conv.{case.a}"
        case "sparse_mm":
            return f"cusparselt_f16.{case.a}"
    return _name_of_triton(case)


def _name_of_triton(case: Case) -> str | None:
    """Four warps on 64 rows are a warpgroup; fewer use mma.sync, with the same bits but for fp8."""
    options = case.options
    if precision := options.get("precision"):
        return f"triton_dot.f32.{precision}" if precision in IN_PARTS else None
    if get_format(case.a).storage > 8 or case.a == "s8":
        return f"triton_dot.{case.a}" + (".f16" if case.d == "f16" else "")
    types = case.a if case.a == case.b else f"{case.a}.{case.b}"
    by_warps = options.get("warps", 4) != 4 or case.m % 64 != 0
    if by_warps or options["imprecise"] == 0:
        return f"triton_dot.{types}.mma_sync"
    return f"triton_dot.{types}.imprecise_{options['imprecise']}"


def given(case: Case, operands: dict[str, Bits]) -> dict[str, Bits]:
    """The operands as golden.gemm takes them: of a sparse A what is not zero, and where it stands."""
    if case.call != "sparse_mm":
        return operands
    groups = operands["a"].reshape(case.m, case.k // 4, 4)
    kept = np.sort(np.argsort(groups == 0, axis=-1, kind="stable")[..., :2], axis=-1)
    values = np.take_along_axis(groups, kept, axis=-1).reshape(case.m, case.k // 2)
    return operands | {"a": values, "metadata": (kept[..., 0] | kept[..., 1] << 2).astype(np.uint8)}


def _part(name: str, codes: Bits, rows: slice, columns: slice) -> Bits:
    if name in ("b", "scale_b"):
        return codes[..., columns]
    return codes[rows]


def _computed(plan: Plan, operands: dict[str, Bits]) -> Bits:
    more: dict[str, Any] = {name: codes for name, codes in operands.items() if name not in "ab"}
    return golden.gemm(operands["a"], operands["b"], plan, **more)


_KERNEL = re.compile(
    r"\b(nvjet_\w+|cutlass_\w+|sm\d+_xmma\w+|triton\w+|\w*(?:dot_kernel|gemv|splitK|split_k|sgemm|reduce_1Block)\w*)"
)
_HELPERS = re.compile(r"^Mem(set|cpy)|at::native|compressSparse|MetaDataReorder")
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
        row.kernels |= {kernel_name(name) for name in one.kernels if not _HELPERS.search(name)}
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
