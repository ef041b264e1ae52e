"""Whole matrix products, bit for bit as a kernel with the plan computes them.

D is made block by block; the core runs all tiles of a block through a stretch of K at a time. What stands
in memory, apart from the operands, is a block's sums and a stretch of its operands, never a copy of A, B or
D.

Of dask arrays each block of D is a task, on whatever scheduler Dask uses: it has a strip of A and one of B,
whole in K, and computes its block with `gemm`. Dask moves strips, starts a task anew whose worker died, and
adds nothing: the order of sums is the plan's.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, OperandError, ShapeError
from golden.kernels.block import Block
from golden.kernels.operands import Operands, check_operands
from golden.kernels.order import steps_of
from golden.kernels.plan import Plan
from golden.model import core_library
from golden.number.formats import native_dtype

Bits = npt.NDArray[Any]
Progress = Callable[[int, int], None]
"""Called with the dot products that are done, and their total."""


def gemm(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    plan: Plan,
    C: npt.ArrayLike | None = None,
    *,
    metadata: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    progress: Progress | None = None,
) -> Bits:
    """Computes D = A @ B in the order of the plan, and the plan's later stages (scales, C, bias, rounding).

    Leading dimensions broadcast.

    Args:
        A, B: shapes (..., M, K) and (..., K, N), any sizes and strides. Raw codes of `plan.formats`, or
            numbers whose NumPy or ml_dtypes dtype is that format. For a sparse instruction A has the shape
            (..., M, K/2). If the matrices are dask arrays, D is a dask array.
        plan: made by `golden.plan`, `golden.plans` or `golden.find_plan`.
        C: shape (..., M, N), codes of plan.formats["c"]. beta * C is added after the sum; with the plan's
            `c: seed`, C is the c of the first step.
        metadata: sparse instructions: nibbles, shape (..., M, K/chunk).
        scale_a, scale_b: block-scaled instructions: codes, shapes (..., M, K/block) and (..., K/block, N).
            Plans with `scales`: f32 numbers or codes, one for each matrix, row and column, or block.
        bias: plans with `bias`: codes of D's format, shape (..., M) or (..., N).
        progress: called as the product grows. An exception that it raises ends the work.

    Returns:
        D, shape (..., M, N): raw codes of plan.formats["d"]; numbers if A and B are numbers.

    Raises:
        ShapeError, DTypeError, OperandError, MetadataError: an operand is wrong; nothing is computed.
    """
    if not isinstance(plan, Plan):
        raise DTypeError(
            f"plan: got {type(plan).__name__}, expected a plan of golden.plan, golden.plans or "
            "golden.find_plan (which finds None where no plan fits), as in golden.gemm(A, B, plan)"
        )
    given = {"C": C, "metadata": metadata, "scale_a": scale_a, "scale_b": scale_b, "bias": bias}
    if is_dask(A, B, *given.values()):
        blocks: Bits = gemm_of_blocks(gemm, A, B, plan, given)
        return blocks
    operands = check_operands(plan, A, B, given)
    fmt = plan.formats["d"]
    result = np.empty((*operands.batch, operands.m, operands.n), fmt.dtype)
    if result.size:
        _fill(plan, operands, result, _Counter(plan, operands, progress))
    native = native_dtype(fmt)
    return result.view(native) if operands.native and native is not None else result


class _Counter:
    """Adds up what blocks did."""

    def __init__(self, plan: Plan, operands: Operands, progress: Progress | None) -> None:
        batch = int(np.prod(operands.batch, dtype=np.int64))
        self.total = batch * operands.m * operands.n * steps_of(plan, operands.k)
        self.done, self.progress = 0, progress

    def __call__(self, dots: int) -> None:
        self.done += dots
        if self.progress is not None:
            self.progress(self.done, self.total)


def _fill(plan: Plan, operands: Operands, result: Bits, counter: _Counter) -> None:
    m, n = operands.m, operands.n
    edge = _edge()
    for where, arrays in operands.groups(_group(operands, edge)):
        for i in range(0, m, edge):
            for j in range(0, n, edge):
                rows, columns = slice(i, min(i + edge, m)), slice(j, min(j + edge, n))
                result[(*where, rows, columns)] = Block(
                    plan, arrays, rows, columns, operands.k, counter
                ).result()


def _edge() -> int:
    """Rows and columns of a block: the core spreads its tiles over threads, 16 at a time."""
    tiles = int(np.ceil(np.sqrt(16 * core_library.threads())))
    least_edge = 512
    return max(least_edge, 64 * tiles)


def _group(operands: Operands, edge: int) -> int:
    """Entries of the batch that are computed at once: of small matrices many."""
    m, n, k = operands.m, operands.n, operands.k
    size = (m * k + k * n) * 8
    most_group_bytes = 16 << 20
    return int(max(1, min(edge * edge // max(m * n, 1), most_group_bytes // max(size, 1))))


def is_dask(*values: Any) -> bool:
    """Whether one of these is a dask array; nothing is imported for the question."""
    module = sys.modules.get("dask.array")
    return module is not None and any(isinstance(value, module.Array) for value in values)


def gemm_of_blocks(compute: Callable[..., Any], A: Any, B: Any, plan: Plan, given: Mapping[str, Any]) -> Any:
    """A dask array (M, N) whose blocks are those of the rows of A and the columns of B; computed when it is
    needed.

    Args:
        compute: golden.gemm, which the tasks call.
        given: C, metadata, scale_a, scale_b and bias, None where left out.

    Raises:
        ShapeError, DTypeError: as golden.gemm, before anything is computed. OperandError: operands in
        addition to
            A, B and C, which do not go with blocks.
    """
    import dask.array as da

    more = [name for name, value in given.items() if value is not None and name != "C"]
    if more:
        raise OperandError(
            f"{', '.join(more)}: dask arrays go with A, B and C alone, expected NumPy's arrays"
        )
    arrays = {"A": da.asarray(A), "B": da.asarray(B)}
    if given["C"] is not None:
        arrays["C"] = da.asarray(given["C"])
    for name, array in arrays.items():
        if array.ndim != 2 or any(map(math.isnan, array.shape)):
            raise ShapeError(f"argument '{name}' has shape {array.shape}, expected a matrix of known size")
    shadows = {name: np.broadcast_to(np.zeros((), x.dtype), x.shape) for name, x in arrays.items()}
    checked = check_operands(plan, shadows["A"], shadows["B"], {**given, "C": shadows.get("C")})
    native = native_dtype(plan.formats["d"]) if checked.native else None
    a, b = arrays["A"].rechunk({1: -1}), arrays["B"].rechunk({0: -1})
    operands = [a, "mk", b, "kn"]
    if "C" in arrays:
        operands += [arrays["C"].rechunk((a.chunks[0], b.chunks[1])), "mn"]
    dtype = native or plan.formats["d"].dtype
    with warnings.catch_warnings():  # D has the same number of blocks
        warnings.simplefilter("ignore", da.PerformanceWarning)
        return da.blockwise(
            _block,
            "mn",
            *operands,
            plan=plan,
            compute=compute,
            concatenate=True,
            dtype=dtype,
            meta=np.empty((0, 0), dtype),
        )


def _block(a: Any, b: Any, c: Any = None, *, plan: Plan, compute: Callable[..., Any]) -> Any:
    """One task."""
    return compute(a, b, plan, c)
