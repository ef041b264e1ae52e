"""The cocotb library: agents against signals played by plain objects, the scoreboard alone, DotProductTB
in simulators."""

import itertools
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cocotb_tools import runner

import golden
from golden.errors import ShapeError
from golden.vectors import default_set
from rtl_tb import Bus, Channel, Monitor, Scoreboard, Sink, Source
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.dut.wrapper import write_wrapper
from rtl_tb.engines import traffic
from rtl_tb.engines.cocotb_engine import GroupedIcarus, PortsOnlyVerilator
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators
from rtl_tb.tb.agents import MOST_FAILURES

HERE = Path(__file__).parents[1]
HMMA = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")


class Signal:
    """Plays a cocotb handle: a value and a width."""

    def __init__(self, name: str, width: int = 1, value: object = 0) -> None:
        self._name, self.width, self.value = name, width, value

    def __len__(self) -> int:
        return self.width


def channel(width: int = 8) -> Channel:
    return Channel(Signal("valid"), Signal("ready"), Bus(Signal("data", width)))


def test_the_package_works_without_cocotb() -> None:
    code = (
        "import sys, rtl_tb; assert 'cocotb' not in sys.modules; rtl_tb.Source; assert 'cocotb' in "
        "sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    import rtl_tb

    for name in rtl_tb.__all__:
        assert getattr(rtl_tb, name).__name__ == name
    with pytest.raises(AttributeError, match="Sauce"):
        rtl_tb.Sauce  # noqa: B018


# Agents -----------------------------------------------------------------------------------------------------


def test_a_bus_is_a_concatenation() -> None:
    high, low = Signal("high", 4), Signal("low", 8)
    bus = Bus(high, low)
    bus.write(0xABC)
    assert (bus.width, high.value, low.value) == (12, 0xA, 0xBC)
    high.value, low.value = "1x10", "00001111"
    assert bus.read() == "1x1000001111"
    with pytest.raises(RtlError, match="at least one port"):
        Bus()


def drive(source: Source, ready: list[int]) -> list[tuple[int, int]]:
    """Steps a source under the given levels of ready: (valid, data) that the unit sees at each edge."""
    seen, given = [], source.channel
    for cycle, level in enumerate(ready):
        given.ready_handle.value = level
        seen.append((given.valid_handle.value, given.data.handles[0].value))
        given.sample()
        source.step(cycle)
    return seen


def test_a_source_holds_its_word_until_it_is_taken() -> None:
    source = Source(channel(), rng=np.random.default_rng(1))
    source.send([5, 6, 7])
    seen = drive(source, [0, 0, 0, 1, 1, 0, 1, 1])
    assert seen == [(0, 0), (1, 5), (1, 5), (1, 5), (1, 6), (1, 7), (1, 7), (0, 7)]
    assert source.accepted_at == [3, 4, 6]
    source.rewind(1)
    assert source.accepted_at == [3]
    assert [data for valid, data in drive(source, [1] * 5) if valid] == [6, 7]


def test_idle_cycles_never_withdraw_a_word() -> None:
    rng = np.random.default_rng(2)
    source = Source(channel(16), idle=0.5, rng=rng)
    source.send(range(1, 1001))
    seen = drive(source, (rng.random(6000) < 0.5).astype(int).tolist())
    taken = [index for index, word in enumerate(source.accepted_at)]
    assert len(taken) == 1000
    for (valid, data), (next_valid, next_data), cycle in zip(seen, seen[1:], itertools.count(), strict=False):
        if valid and cycle not in set(source.accepted_at):
            assert (next_valid, next_data) == (1, data)
    idle = sum(not valid for valid, _ in seen[: source.accepted_at[-1]])
    usual = 500 * float(traffic.LENGTHS @ traffic.SHARES)
    assert 0.8 * usual < idle < 2 * usual, "an engaged wait counts every other cycle here"


def test_a_sink_stalls_as_often_as_asked() -> None:
    sink = Sink(channel(), backpressure=0.25, rng=np.random.default_rng(3))
    sink.channel.valid_handle.value = 1
    waits = []
    while len(waits) < 4000:
        waited = 0
        while not sink.channel.ready_handle.value:
            waited += 1
            sink.channel.sample()
            sink.step(0)
        waits.append(waited)
        sink.channel.sample()
        sink.step(0)
    assert waits[1:] == [word % traffic.ENGAGED for word in sink.waits.words[1 : len(waits)]]
    assert 0.23 < np.mean(np.array(waits) > 0) < 0.27
    assert set(traffic.LENGTHS[traffic.LENGTHS < 18].tolist()) <= set(waits) and max(waits) > 256
    sink.open = True
    for cycle in range(50):
        sink.channel.sample()
        sink.step(cycle)
        assert sink.channel.ready_handle.value == 1


def test_a_wait_for_what_never_comes_ends() -> None:
    """A unit whose ready waits for valid, or whose valid waits for ready, is waited for so often only."""
    source = Source(channel(), idle=0.99, rng=np.random.default_rng(4))
    source.send(range(200))
    most = traffic.MOST_EXPIRED * traffic.LIMIT + 200 * 40
    for cycle in range(most):
        source.channel.ready_handle.value = source.channel.valid_handle.value
        source.channel.sample()
        source.step(cycle)
    assert len(source.accepted_at) == 200


def watch(rows: list[tuple[object, object, str]]) -> Monitor:
    """A monitor that saw (valid, ready, data) at one edge after the other, from cycle 1 on."""
    monitor = Monitor(channel())
    seen = monitor.channel
    for cycle, (valid, ready, data) in enumerate(rows, 1):
        seen.valid_handle.value, seen.ready_handle.value, seen.data.handles[0].value = valid, ready, data
        seen.sample()
        monitor.step(cycle)
    return monitor


def test_a_monitor_records_transfers() -> None:
    monitor = watch([(0, 1, "00"), (1, 0, "01"), (1, 1, "01"), (1, 1, "1X"), (0, 0, "11")])
    assert [(one.bits, one.cycle) for one in monitor.transfers] == [("01", 3), ("1X", 4)]
    assert monitor.failures == []


@pytest.mark.parametrize(
    ("rows", "kind", "cycle"),
    [
        ([(1, 0, "01"), (0, 1, "01")], "valid_dropped", 2),
        ([(1, 0, "01"), (1, 0, "10")], "unstable_output", 2),
        ([(1, 0, "01"), (1, 1, "0X")], "unstable_output", 2),
        ([(0, 1, "01"), ("X", 1, "01")], "x_on_handshake", 2),
        ([(1, "Z", "01")], "x_on_handshake", 1),
    ],
)
def test_a_monitor_checks_the_rules(rows: list[tuple[object, object, str]], kind: str, cycle: int) -> None:
    (failure,) = watch(rows).failures
    assert (failure.kind, failure.cycle) == (kind, cycle)


def test_failures_are_bounded_and_a_reset_is_none() -> None:
    assert len(watch([("X", 1, "01")] * 100).failures) == MOST_FAILURES
    monitor = watch([(1, 0, "01")])
    monitor.reset()
    monitor.channel.valid_handle.value = 0
    monitor.channel.sample()
    monitor.step(9)
    assert monitor.failures == []


# Scoreboard -------------------------------------------------------------------------------------------------


def bits(codes: Any, width: int = 32) -> list[str]:
    return [f"{int(code):0{width}b}" for code in np.ravel(codes)]


def test_a_scoreboard_counts_and_goes_on() -> None:
    vectors = default_set(HMMA, 300)
    board = Scoreboard(HMMA)
    board.expect(vectors.operands)
    results = bits(vectors.d)
    results[7] = results[7][:-1] + "10"[int(results[7][-1])]
    results[250] = "0" * 32 if results[250] != "0" * 32 else "1" * 32
    results[9] = "x" + results[9][1:]
    for one in results[:100]:
        board.receive(one)
    board.check()
    assert (board.checked, board.wrong, board.unknown, board.missing) == (100, 1, 1, 200)
    board.receive(results[100:-1])
    assert not board.clean
    assert (board.checked, board.wrong, board.unknown, board.missing, board.extra) == (299, 2, 1, 1, 0)
    assert [mismatch.index for mismatch in board.mismatches] == [7, 9, 250]
    first, second = board.mismatches[:2]
    assert first.expected == vectors.d[7] and first.actual == vectors.d[7] ^ 1
    assert np.array_equal(first.operands["a"], vectors.operands["a"][7])
    assert second.actual is None and second.bits == results[9]
    assert "299 results" in board.summary() and "2 wrong, 1 with X or Z, 1 missing" in board.summary()
    with pytest.raises(AssertionError, match="result 7: got 0x"):
        board.assert_clean()
    board.receive([results[-1], "0" * 32])
    assert not board.clean and (board.missing, board.extra) == (0, 1)


def test_a_check_of_nothing_proves_nothing() -> None:
    board = Scoreboard(HMMA)
    assert not board.clean
    with pytest.raises(AssertionError, match=r"0 results .*; a check of nothing proves nothing"):
        board.assert_clean()


def test_words_of_every_kind_are_the_same() -> None:
    vectors = default_set(HMMA, 20)
    board = Scoreboard(HMMA)
    words = board.layout.pack_operands(vectors.operands)
    board.expect(vectors.operands)
    board.expect(words)
    for word in words:
        board.expect(int.from_bytes(word.tobytes(), "little"))
    board.receive(bits(vectors.d) * 3)
    board.assert_clean()
    assert board.checked == 60


def test_the_comparison_can_be_chosen() -> None:
    vectors = default_set(HMMA, 50, weights={"special_values": 1})
    nan = (vectors.d & 0x7FFFFFFF) > 0x7F800000
    assert nan.any()
    answers = np.where(nan, 0x7FC00000, vectors.d)
    near = vectors.d ^ 1
    for compare, given, clean in (
        (None, answers, False),
        (ComparePolicy(nan="canonical"), answers, True),
        (lambda fmt, expected, actual: expected >> 1 == actual >> 1, near, True),
        (lambda fmt, expected, actual: expected == actual, near, False),
    ):
        board = Scoreboard(HMMA, compare=compare)
        board.expect(vectors.operands)
        board.receive(bits(given))
        assert board.clean == clean
    board = Scoreboard(HMMA, compare=lambda fmt, expected, actual: np.allclose(expected, actual, rtol=1))
    board.expect(vectors.operands)
    board.receive(bits(near))
    with pytest.raises(ShapeError, match=r"compare gave bool \(\), expected bool \(50,\)"):
        board.assert_clean()


def test_a_reset_forgets_what_is_in_flight_and_tiles_work() -> None:
    vectors = default_set(HMMA, 3, level="tile")
    board = Scoreboard(HMMA, "tile")
    seen: list[int] = []
    board.on_checked(lambda operands, d: seen.append(len(d)))
    board.expect(vectors.operands)
    result = "".join(reversed(bits(vectors.d[0])))
    board.receive(result)
    board.forget()
    assert board.clean and board.checked == 1 and seen == [1]
    with pytest.raises(ShapeError, match="a result has 2 bits, expected 2048"):
        board.receive("01")


# In simulators ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["icarus", pytest.param("verilator", marks=pytest.mark.long)])
def test_dot_product_tb_in_a_simulator(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))  # cocotb's runner hands the path down.
    file = tmp_path / "dut.yaml"
    file.write_text(
        (HERE / "faulty_dot.yaml").read_text().replace("faulty_dot.sv", str(HERE / "faulty_dot.sv"))
    )
    dut = load_dut(file)
    results = tmp_path / "results.xml"
    with simulators.find(name).activated():
        tool = GroupedIcarus() if name == "icarus" else PortsOnlyVerilator()
        sources = [*dut.sources, write_wrapper(dut, tmp_path)]
        options = ["-Wno-fatal"] if name == "verilator" else []
        tool.build(
            sources=sources,
            hdl_toplevel=NAME,
            build_dir=tmp_path,
            timescale=("1ns", "1ps"),
            build_args=options,
            always=True,
        )
        tool.test(
            test_module="bench_in_simulator",
            hdl_toplevel=NAME,
            hdl_toplevel_lang="verilog",
            extra_env={"DUT_FILE": str(file)},
            test_dir=tmp_path,
            results_xml=str(results),
        )
    assert runner.get_results(results) == (6, 0), ET.tostring(ET.parse(results).getroot(), "unicode")
