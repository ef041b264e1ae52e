"""fast and selfcheck on a unit that breaks the handshake on demand: the right vectors fail, each failure
has its kind."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from pathlib import Path

import engine_dut as small
import numpy as np
import pytest
from long_run import long_after

from rtl_tb import engines
from rtl_tb.engines import fast
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.runs.verdict import Verdict, judge
from rtl_tb.simulators import simulators

COUNT = 400
AT = 100
ENGINES = [
    ("fast", "verilator"),
    ("selfcheck", "icarus"),
    pytest.param("selfcheck", "verilator", marks=pytest.mark.long),
]
BUSY = Traffic(idle=0.3, backpressure=0.4, resets=3, seed=5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(engine, simulator, fault, traffic) -> Verdict, from one build of the unit for each engine."""
    folder = tmp_path_factory.mktemp("small")
    dut = small.write_small(folder)

    def job(simulator: str, fault: int, traffic: Traffic, count: int = COUNT) -> Job:
        vectors = small.small_vectors(dut, count, fault, AT)
        return Job(dut, folder / "build", vectors, simulator, traffic, timeout_cycles=300)

    def run(engine: str, simulator: str, fault: int = 0, traffic: Traffic = Traffic(), **changes) -> Verdict:  # noqa: B008
        asked = job(simulator, fault, traffic, changes.pop("count", COUNT))
        outcome = engines.run(engine, dataclasses.replace(asked, **changes))
        return judge(asked.vectors, outcome, dut.compare)

    run.job = job
    return run


def kinds(outcome: Outcome) -> set[str]:
    """Kinds of failures."""
    return {failure.kind for failure in outcome.failures}


@pytest.mark.parametrize(
    "traffic", [Traffic(), BUSY, Traffic(backpressure=0.9, seed=7)], ids=["full", "busy", "slow"]
)
@pytest.mark.parametrize(("engine", "simulator"), ENGINES)
def test_a_right_unit_passes(run, engine, simulator, traffic):
    """Every traffic; at full throughput the run needs hardly more cycles than vectors."""
    verdict = run(engine, simulator, traffic=traffic)
    assert verdict.passed, verdict.outcome.failures
    assert verdict.outcome.received.all()
    assert (
        verdict.outcome.cycles > COUNT * 1.3 if traffic.backpressure else verdict.outcome.cycles < COUNT + 300
    )


@pytest.mark.parametrize(("engine", "simulator"), ENGINES)
@pytest.mark.parametrize("count", [1, 3])
def test_few_vectors(run, engine, simulator, count):
    """Fewer vectors than resets and pipeline stages."""
    assert run(engine, simulator, traffic=BUSY, count=count).passed


@pytest.mark.long
def test_more_vectors_than_two_files_hold(run):
    """The testbench swaps its two banks of vectors; resets send again what lies in the other bank."""
    verdict = run("selfcheck", "verilator", small.WRONG, Traffic(0.1, 0.1, 40, 2), count=70_000)
    assert np.flatnonzero(verdict.failed).tolist() == [AT]
    assert verdict.outcome.failures == []


@pytest.mark.parametrize(("engine", "simulator"), ENGINES)
def test_a_wrong_result_is_that_vector_alone(run, engine, simulator):
    """The actual code is the DUT's."""
    verdict = run(engine, simulator, small.WRONG, BUSY)
    assert np.flatnonzero(verdict.wrong).tolist() == [AT]
    assert verdict.outcome.actual[AT] == verdict.vectors.d[AT] + 1
    assert verdict.outcome.failures == []


def test_x_is_a_failure_of_its_own(run):
    """Icarus sees the X; its bit reads 0, the known bits are kept."""
    verdict = run("selfcheck", "icarus", small.UNKNOWN, BUSY)
    assert np.flatnonzero(verdict.unknown).tolist() == [AT]
    assert not verdict.wrong.any()
    assert verdict.outcome.actual[AT] == verdict.vectors.d[AT] & 0xFFFFFF9F


@pytest.mark.parametrize(("engine", "simulator"), ENGINES)
def test_a_unit_that_stops_answering(run, engine, simulator):
    """One timeout, with the state of the handshake; what had been answered is kept."""
    outcome = run(engine, simulator, small.DEAF).outcome
    (failure,) = outcome.failures
    assert failure.kind == "timeout"
    assert "in_valid 1, in_ready 0, out_valid 0, out_ready 1" in failure.text
    assert np.count_nonzero(outcome.received) == failure.vector == AT + 1


@pytest.mark.parametrize("fault", [0, small.DEAF, small.EXTRA])
def test_a_trial_says_what_came_before_the_handshake_broke(run, tmp_path, fault):
    job, verilator = run.job("verilator", fault, Traffic(idle=0.3)), simulators.verilator()
    came = fast.Trial(job, fast.build(job, verilator), tmp_path, verilator.env)({}, 5.0)
    answered = {0: COUNT, small.DEAF: AT + 1}.get(fault, int(came["answered"].sum()))
    assert (answered < COUNT) == bool(fault)
    assert came["answered"].tolist() == [at < answered for at in range(COUNT)]


def test_x_on_the_handshake(run):
    """Neither accepted nor silently ignored."""
    outcome = run("selfcheck", "icarus", small.X_READY).outcome
    assert kinds(outcome) == {"x_on_handshake", "timeout"}
    assert "in_ready x" in outcome.failures[0].text


@pytest.mark.parametrize(("engine", "simulator"), ENGINES)
@pytest.mark.parametrize(
    ("fault", "kind", "traffic"),
    [
        (small.EXTRA, "extra_result", Traffic(idle=0.3)),
        (small.UNSTABLE, "unstable_output", Traffic(backpressure=0.4)),
        (small.DROPPED, "valid_dropped", Traffic(backpressure=0.4)),
        (small.STALE, "stale_after_reset", Traffic(backpressure=0.2, resets=3)),
    ],
)
def test_broken_handshakes(run, engine, simulator, fault, kind, traffic):
    """Each is named; a unit without the fault has none of them under the same traffic."""
    assert kind in kinds(run(engine, simulator, fault, traffic).outcome)
    assert run(engine, simulator, 0, traffic).passed


@pytest.mark.parametrize(("engine", "simulator"), ENGINES)
def test_a_unit_that_ends_the_simulation(run, engine, simulator):
    """$finish in the unit is one clear line, and this process goes on."""
    with pytest.raises(RtlError, match=r"ended the simulation|ended before the testbench"):
        run(engine, simulator, small.FINISH)


@pytest.mark.parametrize(("engine", "simulator"), ENGINES)
def test_a_refused_design(run, engine, simulator, tmp_path):
    """The simulator's own message, once, with file and line."""
    dut = small.write_small(tmp_path)
    good = (tmp_path / "small.sv").read_text()
    (tmp_path / "small.sv").write_text(good.replace("if (extra) once <= 1;", "if (extra) nowhere <= 1;"))
    job = Job(dut, tmp_path / "build", small.small_vectors(dut, 4), simulator)
    with pytest.raises(ElaborationError, match=r"small\.sv:\d+") as caught:
        engines.run(engine, job)
    assert str(caught.value).count("nowhere") == 1
    assert "\n" not in str(caught.value)


def changed_unit(folder, *replacements: tuple[str, str]):
    """The small unit with parts of its text replaced."""
    dut = small.write_small(folder)
    text = small.RTL
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    (folder / "small.sv").write_text(text)
    return dut


EVERY_ENGINE = [*ENGINES, ("cocotb", "icarus"), pytest.param("cocotb", "verilator", marks=pytest.mark.long)]


LATE_RESULT, LATE_READY = 10, 11
DELAYED = [
    pytest.param(*ENGINES[0], marks=pytest.mark.long),
    *EVERY_ENGINE[1:],
]  # delays compile long in Verilator


@pytest.fixture(scope="module")
def delayed(tmp_path_factory):
    """delayed(engine, simulator, fault): a run of a unit whose RTL has delays and no timescale, from one
    build for each engine. d comes 9.5 after the edge, with LATE_RESULT 10.5; LATE_READY lets out_ready
    through after 9.5."""
    folder = tmp_path_factory.mktemp("delayed")
    dut = changed_unit(
        folder,
        ("assign d = fault == 3 ? d3 + churn : d3;", "assign d = fault == 10 ? late : early;"),
        ("{d1, d2, d3} <=", "{d1, d2, d3} <= #0.25"),
        (
            "wire advance = !v3 || out_ready;",
            "wire #9.5 ready_late = out_ready; wire advance = !v3 || (fault == 11 ? ready_late : out_ready);"
            "wire [31:0] early, late; assign #9.5 early = d3; assign #10.5 late = d3;",
        ),
    )

    def run(engine: str, simulator: str, fault: int, traffic: Traffic = Traffic()) -> Verdict:  # noqa: B008
        vectors = small.small_vectors(dut, 60, fault)
        return judge(
            vectors, engines.run(engine, Job(dut, folder / "build", vectors, simulator, traffic)), dut.compare
        )

    return run


@pytest.mark.parametrize(("engine", "simulator"), DELAYED)
def test_delays_in_rtl_without_a_timescale(delayed, engine, simulator):
    """A delay of #1 is 1 ns, neither 1 s nor 1 ps: the clock has 10 ns for every engine,
    and what comes later comes too late."""
    in_time = delayed(engine, simulator, 0)
    assert in_time.passed, in_time.outcome.failures
    too_late = delayed(engine, simulator, LATE_RESULT)
    # A delay of an assign swallows shorter pulses: results that change every 10 ns never arrive in Icarus.
    assert (too_late.wrong | too_late.outcome.unknown).any()


@pytest.mark.parametrize(
    ("engine", "simulator"), long_after(1, [("selfcheck", "icarus"), ("fast", "verilator")])
)
@pytest.mark.parametrize("condition", ["1", "a[31:24] == 8'h80"])
def test_an_input_has_the_whole_cycle_from_the_first_vector_on(tmp_path, engine, simulator, condition):
    """Also where no delay happened before, or only some vectors take the branch that has one."""
    waits = f"always @(a or b or c) begin if ({condition}) #5.5; total = c;"
    dut = changed_unit(tmp_path, ("always @* begin\n        total = c;", waits))
    vectors = small.small_vectors(dut, 300)
    verdict = judge(
        vectors, engines.run(engine, Job(dut, tmp_path / "build", vectors, simulator)), dut.compare
    )
    assert verdict.passed, verdict.outcome.failures


@pytest.mark.parametrize(("engine", "simulator"), [key for key in EVERY_ENGINE if key[1] == "verilator"])
def test_two_modules_of_one_name(tmp_path, engine, simulator):
    """Verilator alone would take the first without a word, whichever the designer means."""
    dut = small.write_small(tmp_path)
    (tmp_path / "other.sv").write_text(small.RTL.replace("total = c;", "total = c ^ 1;"))
    dut = dataclasses.replace(dut, sources=(*dut.sources, tmp_path / "other.sv"))
    with pytest.raises(ElaborationError, match=r"small_dot"):
        engines.run(engine, Job(dut, tmp_path / "build", small.small_vectors(dut, 4), simulator))


@pytest.mark.parametrize(("engine", "simulator"), DELAYED)
def test_delays_from_an_input(delayed, engine, simulator):
    """Inputs change with the rising edge in every engine: a path from an input has the whole cycle."""
    verdict = delayed(engine, simulator, LATE_READY, Traffic(backpressure=0.4))
    assert verdict.passed, verdict.outcome.failures


def running() -> list[str]:
    """The command lines of all processes."""
    files = Path("/proc").glob("[0-9]*/cmdline")
    lines = []
    for file in files:
        with contextlib.suppress(OSError):
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return lines


def test_outputs_are_sampled_before_the_edge(tmp_path):
    """A DUT that writes its output registers with blocking assignments is as good as any to what stands
    behind it."""
    dut = changed_unit(
        tmp_path,
        ("{v1, v2, v3} <= {accept || extra, v1, v2}", "{v1, v2, v3} = {accept || extra, v1, v2}"),
        ("{d1, d2, d3} <= {", "{d1, d2, d3} = {"),
    )
    vectors = small.small_vectors(dut, 30)
    verdict = judge(
        vectors, engines.run("selfcheck", Job(dut, tmp_path / "build", vectors, "icarus")), dut.compare
    )
    assert verdict.passed, verdict.outcome.failures


@pytest.mark.parametrize(("engine", "simulator"), ENGINES)
def test_the_last_vector_is_not_held(tmp_path, engine, simulator):
    """A unit that takes its operands a cycle late is seen at the last vector, too."""
    late = "reg [31:0] late; always @(posedge clk) late <= total; endmodule"
    dut = changed_unit(
        tmp_path,
        ("endmodule", late),
        ("{d1, d2, d3} <= {total, d1, d2};", "{d1, d2, d3} <= {total, total, d2};"),
    )
    vectors = small.small_vectors(dut, 20)
    job = Job(dut, tmp_path / "build", vectors, simulator, Traffic(seed=3))
    wrong = judge(vectors, engines.run(engine, job), dut.compare).wrong
    assert wrong[-1]


ERROR, BEHIND, LATER, FINAL, NO_FILE, HANGS = range(10, 16)
FILES = ("run.log", "zz.log", "answers.txt", "answer.json", "progress", "vectors_0.hex", "operands.npy")


@pytest.fixture(scope="module")
def complaining(tmp_path_factory):
    """complaining(engine, simulator, fault): a run of a unit that complains of each fault from 10 on in its
    own way, from one build for each engine. It writes files whose names the engines use, too."""
    folder = tmp_path_factory.mktemp("complaining")
    writes = [f'f = $fopen("{name}", "w"); $fdisplay(f, "D 9 20 0 0 0 0"); $fclose(f);' for name in FILES]
    complaints = (
        f"integer f; initial begin {' '.join(writes)} end",
        'always @(posedge clk) if (v3 && fault == 10) $error("my assertion fired");',
        'always @(posedge clk) if (v3 && fault == 11) begin $write("no new line ");',
        '$error("my assertion fired"); end',
        'always @(posedge clk) if (v3 && fault == 12) begin #2 $error("my assertion fired"); end',
        # Icarus 11 has no final blocks.
        "`ifdef VERILATOR",
        'final if (fault == 13) $error("my assertion fired");',
        "`else",
        'initial begin wait (fault == 13); #7 $error("my assertion fired"); end',
        "`endif",
        "reg [7:0] rom [0:1];",
        'always @(posedge clk) if (v3 && fault == 14) $readmemh("nowhere.hex", rom);',
        "always @(posedge clk) while (v3 && fault == 15) if (&d3[1:0] & ~|d3[1:0]) $display;",
    )
    dut = changed_unit(folder, ("endmodule", "\n".join((*complaints, "endmodule"))))

    def run(engine: str, simulator: str, fault: int, **settings) -> Outcome:
        job = Job(dut, folder / "build", small.small_vectors(dut, 20, fault, 2), simulator, **settings)
        job = dataclasses.replace(job, program=engines.build(engine, job))
        with contextlib.chdir(folder):
            return engines.run(engine, job)

    run.folder = folder
    return run


@pytest.mark.parametrize(("engine", "simulator"), EVERY_ENGINE)
@pytest.mark.parametrize(
    "fault", long_after(1, [ERROR, BEHIND, LATER, FINAL], ["error", "behind", "later", "final"])
)
def test_what_the_rtl_complains_of(complaining, engine, simulator, fault):
    """$error is no PASS, also behind text, between two edges, and where the simulator goes on or ends.

    Files that the unit writes are its own, of whatever name: neither logs nor vectors nor answers of the
    run lie where the unit works."""
    assert complaining(engine, simulator, 0).received.all()
    with pytest.raises(RtlError, match=r"my assertion fired|small\.sv:\d+"):
        complaining(engine, simulator, fault)


@pytest.mark.parametrize(("engine", "simulator"), EVERY_ENGINE)
def test_a_unit_that_hangs_in_zero_time(complaining, engine, simulator):
    """A loop that no clock cycle ends: one line after the wall-clock limit, and nothing goes on running."""
    start = time.monotonic()
    with pytest.raises(RtlError, match=r"small hangs: .* no clock cycle ended within 2 seconds"):
        complaining(engine, simulator, HANGS, wall_timeout=2.0)
    assert time.monotonic() - start < 90
    until = time.monotonic() + 20  # what was killed may take its time to go
    while left := [line for line in running() if str(complaining.folder) in line]:
        assert time.monotonic() < until, left
        time.sleep(0.1)


@pytest.mark.parametrize(("engine", "simulator"), EVERY_ENGINE)
def test_a_memory_without_its_file(complaining, engine, simulator):
    """A missing file of a memory is no PASS, though the simulator goes on."""
    with pytest.raises(RtlError, match=r"nowhere\.hex"):
        complaining(engine, simulator, NO_FILE)


@pytest.mark.parametrize(("engine", "simulator"), [("fast", "verilator"), ("selfcheck", "icarus")])
def test_a_memory_without_its_file_at_the_start(tmp_path, engine, simulator):
    """Nor where it is read before the first cycle."""
    memory = 'reg [7:0] rom [0:1]; initial $readmemh("nowhere.hex", rom); endmodule'
    dut = changed_unit(tmp_path, ("endmodule", memory))
    job = Job(dut, tmp_path / "build", small.small_vectors(dut, 20), simulator)
    with pytest.raises(RtlError, match=r"nowhere\.hex"):
        engines.run(engine, job)
