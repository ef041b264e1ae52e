"""The plan behind one product that has more operands than A and B: the metadata of a sparse A, scales.

Each plan that takes just these is tried on a corner of D, then on a larger one, then on all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.lookup import instructions
from golden.errors import MmagoldError, OperandError, ShapeError
from golden.kernels.candidates import candidates_of, cuts, scaled, takes
from golden.kernels.candidates import extra_operands as operands_beside
from golden.kernels.epilogues import NOTHING, Addends
from golden.kernels.plan import Plan
from golden.kernels.plan_files import plans
from golden.kernels.product import gemm
from golden.kernels.search_result import SearchResult, first_plan
from golden.number.formats import Format

Bits = npt.NDArray[Any]
BLOCKS = (((1, 128), (128, 128)), ((1, 128), (128, 1)), ((128, 128), (128, 128)))
"""Extents of the blocks of A and of B that kernels scale."""
PROMOTED = 128
"""Elements of K whose sum is multiplied by the scales of blocks."""
SCALES_OF_BLOCKS: list[dict[str, Any]] = [
    {
        "scales": "block",
        "promote": PROMOTED,
        "scale_order": order,
        "fma": fma,
        "scale_a_block": a,
        "scale_b_block": b,
    }
    for a, b in BLOCKS
    for order in ("product", "a_first")
    for fma in ((), ("promotion",))
]


def search_with_extra_operands(
    given: Mapping[str, Bits],
    extra: Mapping[str, npt.ArrayLike],
    arch: str,
    formats: dict[str, Format],
    report: Callable[[str, int, int], None],
    addends: Addends = NOTHING,
) -> SearchResult:
    """As golden.kernels.finding.search.

    Args:
        given: raw codes a, b and d.
        extra: metadata, scale_a and scale_b, as golden.gemm takes them.
        report: called with (what is being done, plans tried, 0).
        addends: C and bias.

    Raises:
        OperandError: no plan takes these operands.
    """
    operands = {"a": given["a"], "b": given["b"]} | {name: np.asarray(x) for name, x in extra.items()}
    trial = _Trial(operands | addends.operands(), given["d"])
    epilogues = addends.epilogues(given["d"], formats["d"])
    # Rows and columns of D on which plans are tried, one after the other.
    corners = ((2, 6), (16, 32))
    first, larger, whole = (*corners, given["d"].shape)
    scores: list[tuple[int, Plan]] = []
    for plan in _followed(_plans(arch, formats, set(extra), given["b"].shape[0]), epilogues):
        equal = trial.equal(plan, *first)
        if equal is not None:
            scores.append((equal, plan))
        report("trying plans on a corner", len(scores), 0)
    if not scores:
        named = ", ".join(f"{name} {formats[name].name}" for name in ("a", "b", "d") if name in formats)
        why = f": {trial.refusal}" if trial.refusal else ", expected an architecture with such instructions"
        raise OperandError(
            f"no plan of {arch} takes A, B and {', '.join(extra)} of these formats ({named}) and shapes{why}"
        )
    fits = [plan for equal, plan in scores if equal == trial.count(*first)]
    report("trying plans on the whole product", 0, 0)
    for rows, columns in (larger, whole):
        fits = [plan for plan in fits if trial.equal(plan, rows, columns) == trial.count(rows, columns)]
    scores.sort(key=lambda pair: -pair[0])
    near = sorted(
        ((trial.equal(plan, *larger) or 0, plan) for _, plan in scores[:8]), key=lambda pair: -pair[0]
    )
    plan_found = first_plan(fits, given["d"].shape, given["b"].shape[0], 1)
    return SearchResult(plan_found, len(scores), 0, trial.count(*larger), tuple(near[:3]))


class _Trial:
    """The operands of a product, and D."""

    def __init__(self, operands: Mapping[str, Bits], d: Bits) -> None:
        self.operands, self.d = operands, d
        self.refusal = ""

    def count(self, rows: int, columns: int) -> int:
        """Elements of a corner of D."""
        return self.d[:rows, :columns].size

    def equal(self, plan: Plan, rows: int, columns: int) -> int | None:
        """How many elements of a corner a plan gives; None if it does not take the operands."""
        try:
            more: dict[str, Any] = {
                name: _of_corner(plan, name, array, rows, columns)
                for name, array in self.operands.items()
                if name not in "ab"
            }
            found = gemm(self.operands["a"][:rows], self.operands["b"][:, :columns], plan, **more)
        except MmagoldError as error:
            self.refusal = self.refusal or str(error)
            return None
        return int(np.count_nonzero(found == self.d[:rows, :columns]))


def _plans(arch: str, formats: dict[str, Format], more: set[str], k: int) -> Iterator[Plan]:
    """Named plans and their cuts of K, then instructions in every way to cut K."""
    named = [one for one in plans(arch) if takes(one, formats, more)]
    yield from named
    for one in named:
        yield from (one.but(part=size) for size in cuts(one, k))
    units = [unit for unit in instructions(arch) if operands_beside(unit) == more]
    yield from candidates_of(units, formats, k)
    if more == {"scale_a", "scale_b"}:
        dense = [unit for unit in instructions(arch) if not operands_beside(unit)]
        yield from scaled(dense, formats, k, [{"scales": "tensor"}, {"scales": "row"}, *SCALES_OF_BLOCKS])


def _followed(found: Iterable[Plan], epilogues: Sequence[Mapping[str, Any]]) -> Iterator[Plan]:
    """The plans with each epilogue that goes with them."""
    for plan in found:
        for more in epilogues:
            with suppress(OperandError):  # C before the sum goes with one chain alone
                yield plan.but(**more) if more else plan


def _of_corner(plan: Plan, name: str, array: Bits, rows: int, columns: int) -> Bits:
    """Metadata, scales, C or bias of the first rows and columns."""
    kind = plan.options.scales
    if name == "C":
        return array[:rows, :columns]
    if name == "bias":
        return array[:rows] if plan.options.bias == "rows" else array[:columns]
    if array.ndim != ({"tensor": 0, "row": 1}.get(kind, 2) if name != "metadata" else 2):
        raise ShapeError(f"argument '{name}' has shape {array.shape}, which {plan!r} does not take")
    if name == "metadata" or (name == "scale_a" and kind in ("none", "row")):
        return array[:rows]
    if kind == "tensor":
        return array
    if kind == "row":
        return array[:columns]
    if name == "scale_a":
        return array[: -(-rows // plan.options.scale_a_block[0])]
    across = plan.options.scale_b_block[1] if kind == "block" else 1
    return array[:, : -(-columns // across)]
