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
    """Returns raw codes of a format: arrays of its dtype, or integers (lists, other integer arrays)
    that all fit.

    Raises:
        OperandError: a masked array. DTypeError: other values than such integers.
    """
    array = plain(value, argument)
    if array.dtype == fmt.dtype:
        return array
    if array.size == 0 and not isinstance(value, np.ndarray):
        return array.astype(fmt.dtype)
    if (
        array.dtype.kind not in "iu"
        or int(array.min(initial=0)) < 0
        or int(array.max(initial=0)) > np.iinfo(fmt.dtype).max
    ):
        raise DTypeError(
            f"argument '{argument}' has dtype {array.dtype}, expected {fmt.dtype} (raw {fmt.name} bits)"
        )
    return array.astype(fmt.dtype)


def _masked(value: Any) -> bool:
    ma = sys.modules.get("numpy.ma")  # nothing is masked where nobody imported it
    if ma is None:
        return False
    if isinstance(value, list | tuple):
        return any(_masked(item) for item in value)
    return isinstance(value, ma.MaskedArray)
