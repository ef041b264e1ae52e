"""Arrays as callers hand them over, made plain without losing anything: no mask is dropped and no number
bent into a code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, OperandError

if TYPE_CHECKING:
    from golden.number.formats import Format


def plain(value: npt.ArrayLike, argument: str) -> npt.NDArray[Any]:
    """Returns `value` as a plain NumPy array.

    Raises:
        OperandError: it is a masked array, or holds one. What a mask hides would be computed
            with all the same.
    """
    if type(value) is np.ndarray:
        return value
    if _masked(value):
        raise OperandError(
            f"argument '{argument}' is a masked array, expected every element: fill it first, such as with "
            ".filled(0)"
        )
    return np.asarray(value)


def codes(value: npt.ArrayLike, fmt: Format, argument: str) -> npt.NDArray[Any]:
    """Returns raw codes of a format: arrays of its dtype or of the type of ml_dtypes that is it (see
    `viewed`), or integers (lists, other integer arrays) that all fit.

    Raises:
        OperandError: a masked array. DTypeError: other values than such integers.
    """
    array = viewed(plain(value, argument), fmt)
    if array.dtype == fmt.dtype:
        return array
    if array.size == 0 and not isinstance(value, np.ndarray):
        return array.astype(fmt.dtype)
    if (
        array.dtype.kind not in "iu"
        or int(array.min(initial=0)) < 0
        or int(array.max(initial=0)) > np.iinfo(fmt.dtype).max
    ):
        raise wrong_dtype(array, fmt, argument)
    return array.astype(fmt.dtype)


def viewed(array: npt.NDArray[Any], fmt: Format) -> npt.NDArray[Any]:
    """An array of the type of ml_dtypes that is the format (bfloat16 for bf16) as its codes, without a copy;
    any other array as it is.

    The type says that it holds such numbers and nothing else, and its bits are the codes. NumPy's own float16
    and float32 say so as well, but they are what numbers come in that were meant to be rounded first: those
    are refused, with a word on what to do.
    """
    if array.dtype.name == fmt.library_name and array.dtype.isnative:
        return array.view(fmt.dtype)
    return array


def wrong_dtype(array: npt.NDArray[Any], fmt: Format, argument: str, also: str = "") -> DTypeError:
    """The error for an array that holds no codes of the format; it says how to make them. `also`: what else
    would have been taken."""
    given = array.dtype
    if given.kind in "iu":
        hint = f"raw codes of another type: {argument}.astype(np.{fmt.dtype}), or .view of one of this width"
    elif given.itemsize == fmt.dtype.itemsize and given.kind in "fV":
        hint = f"raw codes: {argument}.view(np.{fmt.dtype})"
        if not fmt.holds(given):  # the bits of such numbers are no codes of the format
            hint = f"golden.from_float('{fmt.name}', {argument}) rounds numbers to it; {hint}"
    elif given.kind not in "fbV":
        hint = f"numbers of type np.{fmt.dtype}, each the code of one {fmt.name}"
    else:
        hint = f"golden.from_float('{fmt.name}', {argument}) rounds {'other ' if also else ''}numbers to it"
    return DTypeError(
        f"argument '{argument}' has dtype {given}, expected {fmt.dtype} (raw {fmt.name} bits){also}; {hint}"
    )


def _masked(value: Any) -> bool:
    ma = sys.modules.get("numpy.ma")  # nothing is masked where nobody imported it
    if ma is None:
        return False
    if isinstance(value, list | tuple):
        return any(_masked(item) for item in value)
    return isinstance(value, ma.MaskedArray)
