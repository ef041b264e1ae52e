"""What a report of a failing unit names that its results alone do not show, on small units in plain text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from golden import yamlfile
from golden.catalog import unit_files
from golden.identify.minimising import minimise, of_one_kind
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check

MAC = """module mac (input logic clk, rst, en, clr, input logic [31:0] a, b, output logic signed [31:0] acc);
  logic signed [31:0] sum;
  always_comb begin
    sum = 0;
    for (int k = 0; k < 4; k++) sum += 32'(signed'(a[8*k+:8])) * 32'(signed'(b[8*k+:8]));
  end
  always_ff @(posedge clk)
    if (rst) acc <= 0;
    else if (en) acc <= (clr ? 0 : acc) + sum;
endmodule
"""
MAC_UNIT = """unit: mac
shape: {k: 4}
formats: {a: s8, b: s8, d: s32}
accumulator: state
clear: alone
steps:
  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""
MAC_DUT = """reset: {port: rst, active: high}
clock: clk
handshake: {kind: latency, latency: 1, input: {valid: en}}
ports: {a: a, b: b, clear: clr, d: acc}
"""


def checked(folder: Path, text: str, unit: str, dut: str, **options: object) -> Check:
    name = text.split()[1]
    (folder / f"{name}.sv").write_text(text, encoding="utf-8")
    (folder / "unit.yaml").write_text(unit, encoding="utf-8")
    head = f"dut: {name}\nunit: unit.yaml\ntop: {name}\nsources: [{name}.sv]\n"
    (folder / "dut.yaml").write_text(head + dut, encoding="utf-8")
    given: dict[str, object] = {"count": 1500, "failures": None, "build": folder / "build", **options}
    return check(folder / "dut.yaml", Options(**given))  # type: ignore[arg-type]


@pytest.mark.long
def test_a_clear_that_lets_products_through_is_no_reset_of_the_other_polarity(tmp_path: Path) -> None:
    """Held in reset the unit answers 0, which is right in a tenth of the vectors."""
    result = checked(tmp_path, MAC, MAC_UNIT, MAC_DUT)
    assert not any("active" in hint for hint in result.hints), result.hints
    assert result.diagnosis is not None
    assert result.diagnosis.hypotheses[0].slug == "clear-adds-products", result.diagnosis.sentence()
    assert result.example is not None
    assert "clear 1" in result.example.as_dict()["trace"], "the products that should not count are shown"


def test_what_is_made_smaller_stays_a_number() -> None:
    """A unit that answers 1 where the right result is even: zeros fail, too, and show nothing."""
    ins = unit_files.build_instruction(yamlfile.parse(MAC_UNIT)).stateless
    rng = np.random.default_rng(1)
    given = {name: rng.integers(0, 256, 4, np.uint8) & 254 for name in "ab"} | {"c": np.uint32(8)}

    def fails(batch: dict) -> np.ndarray:
        return ins.dot(**batch) & 1 == 0

    free = minimise(ins, given, fails)
    kept = minimise(ins, given, of_one_kind(ins, given, fails))
    zeros = {name: np.zeros_like(codes) for name, codes in given.items()}
    assert all(not codes.any() for codes in free.values())
    assert ins.dot(**kept) != 0 and ins.dot(**kept) & 1 == 0
    assert of_one_kind(ins, zeros, fails)({name: codes[None] for name, codes in zeros.items()})[0]
