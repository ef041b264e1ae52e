"""Kinds of black boxes that other packages add: golden imports none of them (rtl_tb adds dut.yaml,
hw_capture gpu:NAME)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from golden.unit import Unit

OPENERS: list[Callable[[str], Unit | None]] = []
"""Each returns the unit that a text names, or None where the text is not of its kind."""
