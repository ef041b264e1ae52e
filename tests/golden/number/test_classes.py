"""Classes of codes in arrays against `Format.decode`, code by code."""

from __future__ import annotations

import numpy as np
import pytest

from golden.number.classes import is_infinite, is_nan, is_negative, is_subnormal, is_zero
from golden.number.formats import Kind, formats, get_format


@pytest.mark.parametrize("name", formats())
def test_every_class_is_what_decode_says(name: str) -> None:
    """All codes of the formats of 8 bits and fewer, those with ignored bits included; of the others all upper
    ends of 9 bits, each with the least, the largest and other lower bits."""
    fmt = get_format(name)
    if fmt.storage <= 8:
        codes = np.arange(1 << fmt.bits).astype(fmt.dtype)
    else:
        low = fmt.storage - 9
        lower = [0, 1, 1 << fmt.ignored_low, (1 << low) - 1, (1 << low - 1) + 5]
        codes = np.array([upper << low | end for upper in range(1 << 9) for end in lower], fmt.dtype)
    numbers = [fmt.decode(code) for code in codes.tolist()]
    kinds = np.array([number.kind for number in numbers])
    least = 2.0**fmt.min_exponent if fmt.is_float else 0
    small = [n.kind == Kind.FINITE and abs(n.value) < least for n in numbers]
    assert (is_zero(fmt, codes) == (kinds == Kind.ZERO)).all()
    assert (is_nan(fmt, codes) == (kinds == Kind.NAN)).all()
    assert (is_infinite(fmt, codes) == (kinds == Kind.INFINITY)).all()
    assert is_subnormal(fmt, codes).tolist() == small
    finite = kinds == Kind.FINITE
    assert is_negative(fmt, codes)[finite].tolist() == [n.value < 0 for n in numbers if n.kind == Kind.FINITE]
