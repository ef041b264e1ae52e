"""Lets the tests of this folder import what they share (engine_dut.py, interrupts.py, reference_units.py)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
