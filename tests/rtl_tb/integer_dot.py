"""A dot product of signed bytes with valid and ready: three files around a text, faults planted in it."""

from __future__ import annotations

from pathlib import Path

from rtl_tb.dut.description import Dut, load_dut

FILE = """dut: dot{k}
top: dot{k}
sources: [dot{k}.sv]
unit: unit.yaml
clock: clk
reset: {{port: rst_n, active: low}}
handshake:
  kind: valid_ready
  input: {{valid: in_valid, ready: in_ready}}
  output: {{valid: out_valid, ready: out_ready}}
ports: {{a: a, b: b, c: c, d: d}}
"""
GOLDEN = """unit: dot{k}
title: {k} signed bytes
shape: {{k: {k}}}
formats: {{a: s8, b: s8, c: s32, d: s32}}
steps:
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: toward_zero, overflow: wrap, zero: positive}}
"""


def planted(folder: Path, k: int, text: str, *changes: tuple[str, str]) -> Dut:
    """The unit `text`, a module named after its k such as dot4, with each (right, wrong) exchanged."""
    for right, wrong in changes:
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    (folder / f"dot{k}.sv").write_text(text)
    (folder / "unit.yaml").write_text(GOLDEN.format(k=k))
    (folder / "dut.yaml").write_text(FILE.format(k=k))
    return load_dut(folder / "dut.yaml")
