"""What `make test` leaves to `make test-all`: further parameters of a test whose rule the first ones show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def long_after(count: int, values: Iterable[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """The values of a parameter (or tuples of them); values after the first `count` are marked `long`."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[pytest.mark.long] if i >= count else [],
            id=ids[i] if ids else None,
        )
        for i, value in enumerate(values)
    ]
