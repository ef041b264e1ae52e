"""The cocotb engine on both simulators: clean runs under every traffic, and every way in which a DUT
breaks the rules."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from interrupts import hears_signals
from long_run import long_after

import golden
from golden.vectors import VectorSet
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines import cocotb_engine
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.errors import ElaborationError, RtlError

HERE = Path(__file__).parents[1]
INSTRUCTION = "turing:mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
WRONG, DROPS, UNKNOWN, MUTE, DEAF, TWICE, STALE, SHAKY, READY_X = range(1, 10)
DESCRIPTION = (HERE / "faulty_dot.yaml").read_text()
BUSY = Traffic(idle=0.3, backpressure=0.4, seed=7)


@pytest.fixture(scope="module")
def dut(tmp_path_factory: pytest.TempPathFactory) -> Dut:
    file = tmp_path_factory.mktemp("faulty") / "dut.yaml"
    file.write_text(DESCRIPTION.replace("faulty_dot.sv", str(HERE / "faulty_dot.sv")))
    return load_dut(file)


@pytest.fixture(scope="module", params=["icarus", pytest.param("verilator", marks=pytest.mark.long)])
def simulator(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def vectors(count: int = 200, fault: int = 0, at: int = 50) -> VectorSet:
    """Random operands with the results in NumPy's integers; vector `at` switches the fault on."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-128, 128, (count, 16), dtype=np.int8) for _ in range(2))
    c = rng.integers(-(2**20), 2**20, count, dtype=np.int32)
    if fault:
        c[at] = np.uint32(0xFA000000 + fault).astype(np.int32)
    d = (a.astype(np.int32) * b).sum(axis=1, dtype=np.int32) + c
    operands = {"a": a.view(np.uint8), "b": b.view(np.uint8), "c": c.view(np.uint32)}
    ins = golden.instruction(*INSTRUCTION.split(":", 1))
    return VectorSet(ins, "dot", operands, d.view(np.uint32), np.zeros(count, np.uint8), 1)


def run(dut: Dut, simulator: str, chosen: VectorSet, traffic: Traffic = BUSY, **options: object) -> Outcome:
    job = Job(dut, dut.file.parent / "build", chosen, simulator, traffic, timeout_cycles=200, **options)  # type: ignore[arg-type]
    return cocotb_engine.run(job)


def kinds(outcome: Outcome) -> set[str]:
    return {failure.kind for failure in outcome.failures}


@pytest.mark.parametrize(
    "traffic",
    long_after(
        2,
        [
            Traffic(),
            Traffic(backpressure=0.6),
            Traffic(0.2, 0.3, resets=5),
            Traffic(0.9, 0.9, resets=1, seed=4),
        ],
    ),
    ids=["full", "backpressure", "resets", "slow"],
)
def test_a_right_unit_passes_under_every_traffic(dut: Dut, simulator: str, traffic: Traffic) -> None:
    chosen = vectors(300)
    outcome = run(dut, simulator, chosen, traffic)
    assert outcome.failures == []
    assert outcome.received.all() and not outcome.unknown.any()
    assert np.array_equal(outcome.actual, chosen.d)
    assert (outcome.engine, outcome.simulator) == ("cocotb", simulator) and outcome.version
    assert outcome.seconds_build > outcome.seconds_run > 0
    # 300 vectors, one a cycle; the rest are the reset and the cycles that are watched after it
    # and at the end.
    assert outcome.cycles < 345 if traffic == Traffic() else outcome.cycles > 345


@pytest.mark.long
def test_traffic_follows_its_seed(dut: Dut, monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = (run(dut, "icarus", vectors(), Traffic(0.5, 0.5, seed=seed)).cycles for seed in (1, 2))
    assert first != other
    # Reports name the seed of the traffic: no other may be at work.
    monkeypatch.setenv("COCOTB_RANDOM_SEED", "2")
    assert run(dut, "icarus", vectors(), Traffic(0.5, 0.5, seed=1)).cycles == first


def test_wrong_results_come_back_as_they_are(dut: Dut, simulator: str) -> None:
    chosen = vectors(fault=WRONG)
    outcome = run(dut, simulator, chosen)
    assert outcome.failures == [] and outcome.received.all()
    # A vector or two that were in the pipeline already are caught by the fault as well.
    wrong = np.flatnonzero(outcome.actual != chosen.d)
    assert set(range(51, 200)) <= set(wrong) and wrong.min() >= 48
    assert np.array_equal(outcome.actual[wrong], chosen.d[wrong] ^ 0x100)


def test_results_dropped_under_backpressure(dut: Dut, simulator: str) -> None:
    outcome = run(dut, simulator, vectors(fault=DROPS))
    assert {"valid_dropped", "unstable_output", "timeout"} <= kinds(outcome)
    assert not outcome.received.all()
    # Without backpressure the same unit is right: the fault is one of the handshake.
    assert run(dut, simulator, vectors(fault=DROPS), Traffic(idle=0.3)).failures == []


def test_data_that_change_while_they_wait(dut: Dut, simulator: str) -> None:
    outcome = run(dut, simulator, vectors(fault=SHAKY))
    assert kinds(outcome) == {"unstable_output"}
    first = outcome.failures[0]
    assert "while valid waited" in first.text and first.vector is not None and 48 <= first.vector <= 52
    assert len(outcome.failures) <= 16


@pytest.mark.parametrize(
    ("fault", "state"),
    long_after(1, [(MUTE, "in_valid=0 in_ready=1 out_valid=0"), (DEAF, "in_valid=1 in_ready=0")]),
)
def test_a_unit_that_stops_answering(dut: Dut, simulator: str, fault: int, state: str) -> None:
    outcome = run(dut, simulator, vectors(60, fault, 59 if fault == MUTE else 30), Traffic())
    assert kinds(outcome) == {"timeout"}
    (failure,) = outcome.failures
    assert (
        state in failure.text
        and "out_ready=1 after 200 cycles" in failure.text
        and "in flight" in failure.text
    )
    assert failure.vector == np.flatnonzero(~outcome.received)[0]
    assert not outcome.actual[~outcome.received].any()


def test_one_result_too_many(dut: Dut, simulator: str) -> None:
    chosen = vectors(fault=TWICE, at=199)
    outcome = run(dut, simulator, chosen, Traffic())
    assert kinds(outcome) == {"extra_result"} and len(outcome.failures) <= 2
    assert outcome.received.all()


def test_results_from_before_a_reset(dut: Dut, simulator: str) -> None:
    outcome = run(
        dut, simulator, vectors(400, STALE, 5), Traffic(resets=1)
    )  # the first has idle cycles behind it
    assert kinds(outcome) == {"stale_after_reset"}
    # They are distinguished: what was sent again is answered right.
    assert np.array_equal(outcome.actual, vectors(400, STALE, 5).d)


def test_a_reset_that_flushes_nothing(simulator: str, tmp_path: Path) -> None:
    """The unit goes on during the reset: its result must not drain unseen."""
    text = (HERE / "faulty_dot.sv").read_text().replace("if (!rst_n) begin", "if (1'b0) begin")
    text = text.replace("logic        valid1,", "logic        valid1 = 0,").replace(
        "logic         out_valid", "logic out_valid = 0"
    )
    (tmp_path / "noflush.sv").write_text(text)
    (tmp_path / "dut.yaml").write_text(DESCRIPTION.replace("faulty_dot.sv", "noflush.sv"))
    outcome = run(load_dut(tmp_path / "dut.yaml"), simulator, vectors(), Traffic(resets=4))
    assert "stale_after_reset" in kinds(outcome)


@pytest.mark.long
def test_verilator_starts_registers_at_random(tmp_path: Path) -> None:
    """A register that nothing initialises is not 0 by chance of the simulator; the seed decides."""
    text = (
        (HERE / "faulty_dot.sv").read_text().replace("if (valid1) d <= sum1", "if (valid1) d <= sum1 ^ junk")
    )
    junk = "logic [31:0] junk; always_ff @(posedge clk) if (fault == 15) junk <= c; endmodule"
    (tmp_path / "junk.sv").write_text(text.replace("endmodule", junk))
    (tmp_path / "dut.yaml").write_text(DESCRIPTION.replace("faulty_dot.sv", "junk.sv"))
    unit, chosen = load_dut(tmp_path / "dut.yaml"), vectors(20)
    started = {
        int((run(unit, "verilator", chosen, Traffic(seed=seed)).actual ^ chosen.d)[0]) for seed in (1, 2)
    }
    assert len(started) == 2 and 0 not in started


def test_an_unknown_bit_is_never_a_silent_zero(dut: Dut) -> None:
    chosen = vectors(fault=UNKNOWN)
    outcome = run(dut, "icarus", chosen)
    unknown = np.flatnonzero(outcome.unknown)
    assert set(range(51, 200)) <= set(unknown) and unknown.min() >= 48
    assert outcome.received.all() and not (outcome.actual[unknown] & 8).any()


def test_an_unknown_handshake(dut: Dut) -> None:
    outcome = run(dut, "icarus", vectors(fault=READY_X))
    assert {"x_on_handshake", "timeout"} == kinds(outcome)
    assert outcome.failures[0].text == "in_ready is X"
    assert "in_ready=X" in outcome.failures[-1].text


SUM = "c + " + " + ".join(f"$signed(a[{8 * k}+:8]) * $signed(b[{8 * k}+:8])" for k in range(16))
OTHER_HANDSHAKES = {
    "{kind: combinational}": f"assign d = {SUM};",
    "{kind: latency, latency: 3}": f"""
        reg signed [31:0] d1, d2, d3;
        always @(posedge clk) begin d1 <= {SUM}; d2 <= d1; d3 <= d2; end
        assign d = d3;""",
    "{kind: valid, input: {valid: in_valid}, output: {valid: out_valid}}": f"""
        reg signed [31:0] d1; reg valid1; assign d = d1; assign out_valid = valid1;
        always @(posedge clk) begin valid1 <= rst_n & in_valid; if (in_valid) d1 <= {SUM}; end""",
}


@pytest.mark.parametrize("handshake", long_after(1, OTHER_HANDSHAKES))
def test_units_without_backpressure(handshake: str, tmp_path: Path) -> None:
    ports = "input clk, input signed [31:0] c, input [127:0] a, b, output signed [31:0] d"
    text = DESCRIPTION.replace("faulty_dot.sv", "plain.sv").replace("faulty_dot", "plain")
    if "valid:" in handshake:
        ports += ", input rst_n, in_valid, output out_valid"
    else:
        text = text.replace("reset: {port: rst_n, active: low, cycles: 3}\n", "")
    text = text[: text.index("handshake:")] + f"handshake: {handshake}\n" + text[text.index("ports:") :]
    (tmp_path / "plain.sv").write_text(f"module plain({ports});\n{OTHER_HANDSHAKES[handshake]}\nendmodule\n")
    (tmp_path / "dut.yaml").write_text(text)
    chosen = vectors()
    outcome = run(load_dut(tmp_path / "dut.yaml"), "icarus", chosen, Traffic(0.3, 0.3, resets=3))
    assert outcome.failures == [] and np.array_equal(outcome.actual, chosen.d)


@pytest.mark.parametrize(
    ("simulator", "suffix"), [("icarus", ".vcd"), pytest.param("verilator", ".fst", marks=pytest.mark.long)]
)
def test_waves(dut: Dut, simulator: str, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"waves{suffix}"
    run(dut, simulator, vectors(20), waves=file)
    assert file.stat().st_size > 1000
    assert file.read_bytes().startswith(b"$") == (suffix == ".vcd")


def test_progress_and_no_files_left(dut: Dut) -> None:
    seen: list[tuple[int, int]] = []
    job = Job(dut, dut.file.parent / "build", vectors(3000), "icarus")
    cocotb_engine.run(job, lambda done, total: seen.append((done, total)))
    assert seen and all(total == 3000 and done <= 3000 for done, total in seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert not list(job.build.glob("cocotb/*/run_*"))


def test_a_changed_unit_is_compiled_again_and_an_old_one_is_not(tmp_path: Path) -> None:
    source = tmp_path / "faulty_dot.sv"
    text = (HERE / "faulty_dot.sv").read_text()
    (tmp_path / "dut.yaml").write_text(DESCRIPTION)
    chosen = vectors(20)
    folders = []
    for sign, right in (("+", True), ("-", False), ("+", True)):
        source.write_text(text.replace("sum + product", f"sum {sign} product"))
        os.utime(source, (1, 1))
        assert (
            np.array_equal(run(load_dut(tmp_path / "dut.yaml"), "icarus", chosen).actual, chosen.d) == right
        )
        folders.append(len(list((tmp_path / "build" / "cocotb").iterdir())))
    assert folders == [1, 2, 2]


def test_rtl_that_does_not_compile(tmp_path: Path, simulator: str) -> None:
    (tmp_path / "broken.sv").write_text((HERE / "faulty_dot.sv").read_text().replace("sum = c;", "sum = c"))
    (tmp_path / "dut.yaml").write_text(DESCRIPTION.replace("faulty_dot.sv", "broken.sv"))
    with pytest.raises(ElaborationError, match=r"broken\.sv:3\d.*syntax error") as caught:
        run(load_dut(tmp_path / "dut.yaml"), simulator, vectors())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("simulator", "call", "text"),
    [
        ("icarus", "$finish;", "does the RTL call"),
        ("icarus", '$fatal(1, "out of range");', r"stops\.sv:\d+: out of range"),
        pytest.param(
            "verilator",
            '$fatal(1, "out of range");',
            r"stops\.sv:\d+: .*out of range",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_unit_that_ends_the_simulation(simulator: str, call: str, text: str, tmp_path: Path) -> None:
    stop = f"int n = 0; always @(posedge clk) begin n <= n + 1; if (n == 40) {call} end endmodule"
    (tmp_path / "stops.sv").write_text((HERE / "faulty_dot.sv").read_text().replace("endmodule", stop))
    (tmp_path / "dut.yaml").write_text(DESCRIPTION.replace("faulty_dot.sv", "stops.sv"))
    with pytest.raises(RtlError, match=text) as caught:
        run(load_dut(tmp_path / "dut.yaml"), simulator, vectors())
    assert "\n" not in str(caught.value)


INTERRUPTED = """
import sys
sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/engines"]
import test_cocotb_engine as tests
from golden.errors import MmagoldError
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Traffic
dut = load_dut(sys.argv[2])
try:
    tests.run(dut, "icarus", tests.vectors(200_000))
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_leaves_no_simulator(dut: Dut) -> None:
    run(dut, "icarus", vectors(10))  # So that it is built.
    folder = dut.file.parent / "build" / "cocotb"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(HERE), str(dut.file)],
        env=environment,
        preexec_fn=hears_signals,
    )
    deadline = time.monotonic() + 60
    while not _running(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    assert _running(folder)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 130
    assert not _running(folder)
    assert not list(folder.glob("*/run_*"))


def _running(folder: Path) -> list[str]:
    """Simulators that run a program of this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "vvp" in words and str(folder) in words:
            found.append(words)
    return found
