"""Runs inside a simulator, started by test_agents.py: DotProductTB around the wrapper of faulty_dot.sv."""

import os
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from golden.errors import MmagoldError
from rtl_tb import DotProductTB
from rtl_tb.errors import DutTimeout, RtlError

DUT_FILE = os.environ["DUT_FILE"]
SWITCH = 0xFA000000
WRONG, MUTE = 1, 4


def operands(count: int, **c: int) -> dict[str, Any]:
    """Random operands; `at` and `fault` switch a fault on."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 256, (count, 16), dtype=np.uint8) for _ in range(2))
    codes = rng.integers(0, 1 << 31, count, dtype=np.uint32)
    if c:
        codes[c["at"]] = SWITCH + c["fault"]
    return {"a": a, "b": b, "c": codes}


@cocotb.test()
async def a_right_unit_is_clean(dut: Any) -> None:
    tb = DotProductTB(dut, DUT_FILE, idle=0.2, backpressure=0.2)
    assert tb.reset_cycles == 3  # the file's
    coverage = tb.coverage
    await tb.reset()
    await tb.run(tb.vectors(200), resets=2)
    await tb.run(operands(100))
    await tb.reset()
    await tb.run(operands(50))
    tb.scoreboard.assert_clean()
    assert tb.scoreboard.checked == 350 == coverage.vectors
    # The traffic made it take longer than a vector a cycle.
    assert tb.clocked.cycle > 350 * 1.3


@cocotb.test()
async def wrong_ports_are_named(dut: Any) -> None:
    for ports, text in (
        ({"in_data": "in_date"}, "mmagold_dut has no port 'in_date' (role in_data)"),
        ({"in_vaild": "x"}, "unknown port role 'in_vaild', expected one of clk"),
        ({"clk": None}, "port role 'clk' is None"),
        ({"in_data": "out_data", "out_data": "in_data"}, "in_data has 32 bits, expected 288"),
        ({"in_data": ["out_data", "in_data"]}, "port 'out_data' has two roles: in_data and out_data"),
        ({"rst": "rst_n", "rst_n": "rst_n"}, "port roles 'rst' and 'rst_n' are both named"),
        ({"out_valid": None}, "port role 'out_valid' is None"),
        ({"in_valid": "in_data", "in_data": "in_valid"}, "port 'in_data' (role in_valid) has 288 bits"),
    ):
        try:
            DotProductTB(dut, DUT_FILE, ports)
        except RtlError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{ports} was accepted")


@cocotb.test()
async def what_has_no_effect_is_refused(dut: Any) -> None:
    codes = operands(4)
    for settings, run, text in (
        ({"reset_cycles": 0}, {}, "reset_cycles is 0, expected 1 or more"),
        ({"compare": "exact"}, {}, "compare is 'exact', expected a ComparePolicy or a function"),
        ({"ports": {"rst_n": None}}, {"resets": 3}, "resets=3, but the ports name no reset"),
        ({}, {"vectors": codes | {"q": codes["c"]}}, "argument 'q' is no operand"),
        ({}, {"vectors": codes | {"a": codes["a"].astype(np.int64) - 1}}, "argument 'a' has dtype int64"),
    ):
        try:
            await DotProductTB(dut, DUT_FILE, **settings).run(**({"vectors": codes} | run))
        except MmagoldError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{settings} {run} was accepted")


@cocotb.test()
async def one_run_at_a_time(dut: Any) -> None:
    tb = DotProductTB(dut, DUT_FILE)
    await tb.reset()
    first = cocotb.start_soon(tb.run(operands(4)))
    await ClockCycles(dut.clk, 1)
    try:
        await tb.run(operands(4))
    except RtlError as error:
        assert "another run of this bench has not ended" in str(error)
    else:
        raise AssertionError("two runs at once")
    await first


@cocotb.test()
async def mismatches_accumulate(dut: Any) -> None:
    tb = DotProductTB(dut, DUT_FILE)
    await tb.reset()
    await tb.run(operands(100, at=10, fault=WRONG))
    assert tb.scoreboard.wrong  # also where nobody called check()
    assert not tb.scoreboard.clean
    assert 89 <= tb.scoreboard.wrong <= 92 and tb.scoreboard.checked == 100
    assert "got 0x" in tb.scoreboard.summary() and " more" in tb.scoreboard.summary()


@cocotb.test()
async def a_mute_unit_times_out(dut: Any) -> None:
    tb = DotProductTB(dut, DUT_FILE, timeout_cycles=100)
    await tb.reset()
    try:
        await tb.run(operands(20, at=5, fault=MUTE))
    except DutTimeout as error:
        assert "out_valid=0 out_ready=1 after 100 cycles, " in str(error)
    else:
        raise AssertionError("no timeout")
    assert tb.scoreboard.missing > 10
    assert "timeout: in_valid=" in tb.scoreboard.summary()
