"""The operands of a whole matrix product as callers hand them over: raw codes, or NumPy's and ml_dtypes' own
numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, ShapeError
from golden.kernels.order import divides, listed_and_actual
from golden.kernels.plan import Plan
from golden.number.arrays import plain, wrong_dtype
from golden.number.formats import Format, native_dtype
from golden.program.signature import broadcast

Bits = npt.NDArray[Any]


@dataclass(frozen=True)
class Operands:
    """Checked operands: matrices (..., rows, columns) of codes by the names of an instruction's operands
    (a, b, c, metadata, scale_a, scale_b), and f32 or f64 numbers by factor_a, factor_b and bias.

    `batch`: their leading dimensions, broadcast. `native`: whether A and B came as numbers, so that
    results go back as such.
    """

    arrays: dict[str, Bits]
    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    native: bool

    def groups(self, most: int) -> Iterator[tuple[Any, dict[str, Bits]]]:
        """The batch in pieces: (where their results are, the arrays with one leading dimension each)."""
        count = int(np.prod(self.batch, dtype=np.int64))
        spread = {name: np.broadcast_to(x, (*self.batch, *x.shape[-2:])) for name, x in self.arrays.items()}
        for first in range(0, count, most):
            where: tuple[Any, ...] = ()
            if self.batch and most > 1:
                where = np.unravel_index(np.arange(first, min(first + most, count)), self.batch)
                yield where, {name: x[where] for name, x in spread.items()}
                continue
            if self.batch:
                where = np.unravel_index(first, self.batch)
            yield where, {name: x[where][None] for name, x in spread.items()}


def check_operands(plan: Plan, a: Any, b: Any, given: Mapping[str, Any]) -> Operands:
    """Checks all operands of `golden.gemm`; `given`: C, metadata, scale_a, scale_b and bias, None where
    left out.

    Raises:
        ShapeError, DTypeError, OperandError, MetadataError: as their names say.
    """
    _check_presence(plan, given)
    codes_a, native_a = _codes(a, plan.formats["a"], "A")
    codes_b, native_b = _codes(b, plan.formats["b"], "B")
    natives = {native for native in (native_a, native_b) if native is not None}
    if len(natives) == 2:
        raise DTypeError("one of A and B holds numbers and the other raw codes, expected the same of both")
    m, n, k = _sizes(plan, codes_a, codes_b)
    arrays = {"a": codes_a, "b": codes_b}
    if given["C"] is not None:
        arrays["c"] = _codes(given["C"], plan.formats["c"], "C")[0]
        _check_shape(arrays["c"], "C", (m, n))
    arrays |= (
        _metadata(plan, given["metadata"], m, k) | _scales(plan, given, m, n, k) | _bias(plan, given, m, n)
    )
    batch = broadcast({name: array.shape[:-2] for name, array in arrays.items()})
    return Operands(arrays, batch, m, n, k, natives == {True})


def _check_presence(plan: Plan, given: Mapping[str, Any]) -> None:
    scaled = plan.options.scales != "none" or plan.instruction.scale_block is not None
    wanted = {
        "metadata": plan.instruction.pattern is not None,
        "scale_a": scaled,
        "scale_b": scaled,
        "bias": plan.options.bias != "none",
    }
    for name, needed in wanted.items():
        if needed and given[name] is None:
            raise ShapeError(f"argument '{name}' is missing: the plan needs it")
        if not needed and given[name] is not None:
            raise ShapeError(f"argument '{name}' was given, but the plan takes none")
    if plan.options.c == "seed" and given["C"] is None:
        raise ShapeError("argument 'C' is missing: the plan begins with it (c: seed)")


def _codes(value: Any, fmt: Format, name: str) -> tuple[Bits, bool | None]:
    """Raw codes, and whether they came as numbers; None where NumPy has no other type for these."""
    array, native = plain(value, name), native_dtype(fmt)
    if array.dtype == fmt.dtype:
        fmt.check(array, name)
        return array, None if native is None else False
    if array.dtype == native:
        return array.view(fmt.dtype), True
    raise wrong_dtype(array, fmt, name, f" or {native}" if native is not None else "")


def _sizes(plan: Plan, a: Bits, b: Bits) -> tuple[int, int, int]:
    """(M, N, K) of A and B."""
    for name, array in (("A", a), ("B", b)):
        if array.ndim < 2:
            raise ShapeError(f"argument '{name}' has shape {array.shape}, expected (..., {_AXES[name]})")
    k, stored = b.shape[-2], a.shape[-1]
    halves = 2 if plan.instruction.pattern is not None else 1
    if stored * halves != k:
        of_sparse = f", half of the K that B has, {k}" if halves == 2 else f", with the K that B has, {k}"
        raise ShapeError(f"argument 'A' has shape {a.shape}, expected (..., {_AXES['A']}){of_sparse}")
    if plan.options.edge == "refused" and not divides(plan, k):
        raise ShapeError(f"K is {k}, which the plan's tiles and parts do not divide (edge: refused)")
    if plan.options.parts is not None and sum(plan.options.parts) != k:
        raise ShapeError(f"K is {k}, expected {sum(plan.options.parts)}, the sum of the plan's parts")
    said, found = listed_and_actual(plan, k)
    if said != found:
        raise ShapeError(f"K is {k}, cut into {found} sums; 'reduce' has numbers for {said}")
    return a.shape[-2], b.shape[-1], k


_AXES = {"A": "M, K", "B": "K, N"}


def _check_shape(array: Bits, name: str, wanted: tuple[int, ...]) -> None:
    if array.ndim < len(wanted) or array.shape[array.ndim - len(wanted) :] != wanted:
        shown = ", ".join(map(str, wanted))
        raise ShapeError(f"argument '{name}' has shape {array.shape}, expected (..., {shown})")


def _metadata(plan: Plan, value: Any, m: int, k: int) -> dict[str, Bits]:
    pattern = plan.instruction.pattern
    if pattern is None:
        return {}
    codes, _ = _codes(value, plan.instruction.code_format("metadata"), "metadata")
    if k % pattern.chunk:
        raise ShapeError(
            f"K is {k}, expected a multiple of {pattern.chunk} for the sparsity pattern {pattern.name}"
        )
    _check_shape(codes, "metadata", (m, k // pattern.chunk))
    pattern.check(codes, plan.instruction.ordered_metadata)
    return {"metadata": codes}


def _scales(plan: Plan, given: Mapping[str, Any], m: int, n: int, k: int) -> dict[str, Bits]:
    block, kind = plan.instruction.scale_block, plan.options.scales
    if block is not None:
        count = -(-k // block)
        found = {}
        for name, shape in (("scale_a", (m, count)), ("scale_b", (count, n))):
            found[name], _ = _codes(given[name], plan.instruction.formats[name], name)
            _check_shape(found[name], name, shape)
        return found
    if kind == "none":
        return {}
    a, b = (_numbers(given[name], plan, name) for name in ("scale_a", "scale_b"))
    if kind == "tensor":
        _check_shape(a, "scale_a", ())
        for name, factor in (("scale_a", a), ("scale_b", b)):
            if factor.ndim:
                raise ShapeError(f"argument '{name}' has shape {factor.shape}, expected one number")
        return {"factor_a": a.reshape(1, 1), "factor_b": b.reshape(1, 1)}
    if kind == "row":
        _check_shape(a, "scale_a", (m,))
        _check_shape(b, "scale_b", (n,))
        return {"factor_a": a[..., :, None], "factor_b": b[..., None, :]}
    (rows, k_a), (k_b, columns) = plan.options.scale_a_block, plan.options.scale_b_block
    _check_shape(a, "scale_a", (-(-m // rows), -(-k // k_a)))
    _check_shape(b, "scale_b", (-(-k // k_b), -(-n // columns)))
    return {"factor_a": a, "factor_b": b}


def _numbers(value: Any, plan: Plan, name: str) -> Bits:
    """f32 numbers (f64 if the other is f64) of numbers or of raw codes."""
    fmt = plan.computes
    if fmt.name == "f32" and isinstance(value, float):
        value = np.float32(value)
    codes, _ = _codes(value, fmt, name)
    return np.asarray(codes).view(np.float64 if fmt.name == "f64" else np.float32)


def _bias(plan: Plan, given: Mapping[str, Any], m: int, n: int) -> dict[str, Bits]:
    if plan.options.bias == "none":
        return {}
    codes, _ = _codes(given["bias"], plan.formats["d"], "bias")
    rows = plan.options.bias == "rows"
    _check_shape(codes, "bias", (m if rows else n,))
    return {"bias": codes[..., :, None] if rows else codes[..., None, :]}
