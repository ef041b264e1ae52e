"""A team's own tests of its own unit: the whole bench, and its parts by themselves."""

import random
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

import golden
from rtl_tb import Bus, Channel, Clocked, DotProductTB, Monitor, Scoreboard, Sink, Source

UNIT = golden.load_instruction(Path(__file__).with_name("mac4.yaml"))
PORTS = {
    "clk": "clock",
    "rst": "reset",  # "rst": active high; "rst_n": active low
    "in_valid": "vld_i",
    "in_ready": "rdy_o",
    "in_data": ["x_i", "w_i", "acc_i"],  # the operand word a b c, from the top
    "out_valid": "vld_o",
    "out_ready": "rdy_i",
    "out_data": "acc_o",
}


@cocotb.test()
async def every_kind_of_operand(dut: Any) -> None:
    """Drawn vectors under random traffic, the unit reset twice on the way."""
    tb = DotProductTB(dut, UNIT, PORTS, idle=0.3, backpressure=0.3)
    await tb.reset()
    await tb.run(tb.vectors(1000), resets=2)
    tb.scoreboard.assert_clean()


@cocotb.test()
async def saturates(dut: Any) -> None:
    """Operands of one's own: NumPy arrays of raw codes."""
    tb = DotProductTB(dut, UNIT, PORTS)
    await tb.reset()
    a = np.full((2, 4), 0x7F, np.uint8)
    b = np.array([[0x7F] * 4, [0x80] * 4], np.uint8)
    c = np.array([0x7FFFFFF0, 0x80000010], np.uint32)
    await tb.run({"a": a, "b": b, "c": c})
    tb.scoreboard.assert_clean()
    assert [int(bits, 2) for bits in tb.results] == [0x7FFFFFFF, 0x80000000]


@cocotb.test()
async def the_parts(dut: Any) -> None:
    """Source, Sink, Monitor and Scoreboard without DotProductTB, as in a bench that exists already."""
    Clock(dut.clock, 10, "ns", impl="gpi").start()
    given = Channel(dut.vld_i, dut.rdy_o, Bus(dut.x_i, dut.w_i, dut.acc_i))
    taken = Channel(dut.vld_o, dut.rdy_i, Bus(dut.acc_o))
    source, sink = Source(given, idle=0.5), Sink(taken, backpressure=0.5)
    scoreboard = Scoreboard(UNIT)
    # Two monitors feed the scoreboard: one sees what the unit takes, the other what it answers.
    operands = Monitor(given, lambda bits, _cycle: scoreboard.expect(int(bits, 2)))
    results = Monitor(taken, lambda bits, _cycle: scoreboard.receive(bits))
    dut.reset.value = 1
    await ClockCycles(dut.clock, 3)
    dut.reset.value = 0
    Clocked(dut.clock, source, sink, operands, results).start()
    source.send(random.getrandbits(96) for _ in range(100))
    for _ in range(1000):  # some waits last a thousand cycles
        await ClockCycles(dut.clock, 100)
        if scoreboard.checked == 100:
            break
    scoreboard.failures = operands.failures + results.failures
    scoreboard.assert_clean()
    assert scoreboard.checked == 100
