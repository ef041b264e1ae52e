"""How a DUT's result is compared with the expected one: NaN codes and the sign of zero are choices, all else
is exact.

nan: exact       the same bits as the modelled unit (the default)
     canonical   where a NaN is expected, the format's default quiet NaN with a positive sign
                 (f32: 0x7FC00000)
     any         where a NaN is expected, any code that is a NaN
zero: strict     +0 and -0 differ (the default)
      any        +0 and -0 are equal
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError, nearest
from golden.number.classes import is_nan, is_zero
from golden.number.formats import Format

if TYPE_CHECKING:
    from rtl_tb.dut.exclude import Exclusion

Bits = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
NAN_POLICIES = ("exact", "canonical", "any")
ZERO_POLICIES = ("strict", "any")


@dataclass(frozen=True)
class ComparePolicy:
    """What counts as equal. `exclude`: operands that do not count, or have another answer. Raises
    OperandError for a name that is no policy."""

    nan: str = "exact"
    zero: str = "strict"
    exclude: Exclusion | None = None

    def __post_init__(self) -> None:
        for key, value, known in (("nan", self.nan, NAN_POLICIES), ("zero", self.zero, ZERO_POLICIES)):
            if value not in known:
                raise OperandError(
                    f"compare policy {key} is '{value}', expected {' or '.join(known)}{nearest(value, known)}"
                )

    def equal(self, fmt: Format, expected: Bits, actual: Bits) -> Mask:
        """Compares raw codes of `fmt` element by element.

        Args:
            fmt: the format of D.
            expected, actual: codes in the format's dtype, of shapes that broadcast.

        Returns:
            True where the actual code is acceptable.
        """
        same: Mask = np.equal(expected, actual)
        if not fmt.is_float:
            return same
        if self.nan != "exact":
            wanted = is_nan(fmt, expected)
            accepted = (
                is_nan(fmt, actual)
                if self.nan == "any"
                else np.equal(actual, fmt.nan if fmt.nan is not None else 0)
            )
            same = np.where(wanted, accepted, same)
        if self.zero == "any":
            same = same | (is_zero(fmt, expected) & is_zero(fmt, actual))
        return same

    def uncompared(self, fmt: Format) -> list[str]:
        """What of a result in `fmt` it does not look at, in words."""
        nan = fmt.is_float and self.nan == "any" and fmt.nan is not None
        zero = self.zero == "any" and fmt.has_negative_zero
        return ["the code of a NaN"] * nan + ["the sign of zero"] * zero

    def right(self, fmt: Format, expected: Mapping[str, Bits], came: Mapping[str, Bits]) -> Mask:
        """Which vectors, (count,), have the results that are expected: d under the policy, status flags bit
        for bit.

        Args:
            expected, came: codes by name, (count, ...) each.
        """
        same = self.equal(fmt, expected["d"], came["d"].reshape(expected["d"].shape))
        if "flags" in expected:
            same = same & (expected["flags"] == came["flags"].reshape(expected["flags"].shape))
        return np.asarray(same.all(axis=tuple(range(1, same.ndim))))

    def interchangeable(self, fmt: Format, one: Bits, other: Bits) -> Mask:
        """Whether each of two codes is acceptable where the other is expected; then both are, or neither,
        whatever is."""
        return np.asarray(self.equal(fmt, one, other) & self.equal(fmt, other, one))
