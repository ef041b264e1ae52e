"""f32 operands in parts of fewer bits, as in kernels that need more bits than the instruction's formats have:
the plan's `products`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from golden.kernels.conversion import convert_codes, numbers
from golden.kernels.options import Options
from golden.number.formats import Format, get_format

Bits = npt.NDArray[Any]
T = TypeVar("T")


def cut(number: T, count: int, rounded: Callable[[T], T]) -> list[T]:
    """The number rounded, then what it lacks, rounded in its turn, and what is left, not rounded: f32 arrays
    of any library. An infinity lacks a NaN."""
    found: list[Any] = []
    rest: Any = number
    for _ in range(count - 1):
        found.append(rounded(rest))
        rest = rest - found[-1]
    return [*found, rest]


def count_of(options: Options) -> int:
    """Into how many parts `products` cuts an operand."""
    return 1 + max(max(pair) for pair in options.products or ((0, 0),))


def parts_of(codes: Bits, target: Format, options: Options) -> list[Bits]:
    """Codes of `target` for each part of f32 codes, the largest part first. The last of tf32 is as it is:
    the unit drops its low bits."""
    f32 = get_format("f32")

    def convert(number: Bits) -> Bits:
        return convert_codes(number.view(np.uint32), f32, target, options.convert)

    def rounded(number: Bits) -> Bits:
        return numbers(convert(number), target, f32)

    with np.errstate(all="ignore"):
        *found, last = cut(codes.view(np.float32), count_of(options), rounded)
    return [*map(convert, found), last.view(np.uint32) if target.name == "tf32" else convert(last)]
