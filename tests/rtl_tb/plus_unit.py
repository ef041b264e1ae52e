"""The sum of two bytes in eight bits, as a unit of a test's own text."""

from __future__ import annotations

from pathlib import Path

_UNIT = """unit: plus
shape: {k: 1}
formats: {a: u8, c: u8, d: u8}
steps:
  - sum: {of: [a, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""
_DUT = """top: plus
sources: [SOURCE]
unit: unit.yaml
ports: {a: a, c: b, d: d}
"""
COMBINATIONAL = "handshake: {kind: combinational}\n"


def plus_unit(folder: Path, source: str, text: str, keys: str = COMBINATIONAL) -> Path:
    """Writes the unit with its source, and returns its dut.yaml with further keys."""
    for name, content in (("unit.yaml", _UNIT), (source, text)):
        (folder / name).write_text(content)
    (file := folder / "dut.yaml").write_text(_DUT.replace("SOURCE", source) + keys)
    return file
