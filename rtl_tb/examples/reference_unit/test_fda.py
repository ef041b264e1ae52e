"""The reference unit fda.sv is Volta's HMMA.884: random traffic, resets in mid-flight,
every kind of operand."""

from pathlib import Path
from typing import Any

import cocotb

import golden
from rtl_tb import DotProductTB

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
PORTS = {"in_data": ["a", "b", "c"], "out_data": "d"}


@cocotb.test()
async def is_volta(dut: Any) -> None:
    """2000 vectors with idle cycles and backpressure; the unit is reset three times on the way."""
    volta = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
    tb = DotProductTB(dut, volta, PORTS, idle=0.2, backpressure=0.3)
    coverage = tb.coverage
    await tb.reset()
    await tb.run(tb.vectors(2000), resets=3)
    tb.scoreboard.assert_clean()
    cocotb.log.info("%s", tb.scoreboard.summary())
    cocotb.log.info(
        "functional coverage %.1f %%, %d bins were not hit", coverage.percent, len(coverage.holes())
    )


@cocotb.test()
async def is_not_another_unit(dut: Any) -> None:
    """The scoreboard goes on after a mismatch and says how many there were."""
    other = golden.load_instruction(EXAMPLES / "sticky_rne.yaml")
    tb = DotProductTB(dut, other, PORTS)
    await tb.reset()
    await tb.run(tb.vectors(500))
    assert not tb.scoreboard.clean and tb.scoreboard.checked == 500
    cocotb.log.info("%s", tb.scoreboard.summary())
