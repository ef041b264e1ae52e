"""Whole matrix products of dask arrays: each block of D is a task, on whatever scheduler Dask uses.

A task has a strip of A and one of B, whole in K, and computes its block with golden.gemm. Dask moves
strips, starts a task anew whose worker died, and adds nothing: the order of sums is the plan's.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from golden.errors import OperandError, ShapeError
from golden.kernels.operands import check_operands
from golden.kernels.plan import Plan
from golden.number.formats import native_dtype


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
