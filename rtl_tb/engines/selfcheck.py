"""The selfcheck engine: a generated testbench in plain SystemVerilog that reads vectors and compares in RTL.

No Python runs beside the simulator and there is no DPI, so that the same files run in Icarus Verilog 11, Verilator and
commercial simulators. On Icarus it sees X and Z. `write_testbench` hands the files to a designer.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from golden.vectors.vectorset import VectorSet
from rtl_tb import simulators
from rtl_tb.dut import Dut
from rtl_tb.engines.common import complaint, design_options, digest, failure, random_start
from rtl_tb.engines.job import Job, Outcome, Progress, Traffic
from rtl_tb.errors import RtlError
from rtl_tb.selfcheck_sv import DEPTH, testbench_text
from rtl_tb.simulators import Simulator, ToolFailed
from rtl_tb.wrapper import NAME, write_wrapper

TESTBENCH = "mmagold_tb"
TIMESCALE = "mmagold_timescale.sv"
TIMESCALE_TEXT = (
    "// Compiled first: without it a delay of #1 in RTL that has no timescale is a second on Icarus.\n`timescale 1ns / 1ps\n"
)
VERILATE = ["--binary", "--timing", "-O3", "--x-initial", "unique", "--x-assign", "unique", "-Wno-fatal"]
VERILATE += ["--timescale", "1ns/1ps", "-MAKEFLAGS", "OPT_FAST=-O2", "-MAKEFLAGS", "OPT_GLOBAL=-O2"]


def run(job: Job, progress: Progress | None = None) -> Outcome:
    """Runs a job, see rtl_tb/engines/job.py.

    Raises:
        SimulatorMissing, SimulatorTooOld: no such simulator.
        ElaborationError: the simulator refused the design.
        RtlError: the simulation ended without a summary, for example because the DUT called $finish; or the DUT called
            $error, or an assertion failed, or a $readmem file is missing.
    """
    simulator = simulators.find(job.simulator)
    start = time.monotonic()
    program = build(job, simulator)
    built = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="run_", dir=program.parent))
    try:
        write_run(job.dut, job.vectors, folder, job.traffic, job.timeout_cycles)
        command = _command(job, simulator, program)
        answers = folder / "answers.txt"
        log = program.parent / "run.log"
        tick = _ticker(answers, len(job.vectors), progress)
        complained = complaint(simulators.run(command, folder=folder, env=simulator.env, log=log, tick=tick))
        if complained:
            raise RtlError(f"the DUT {job.dut.name} reported an error: {complained} (see {log})")
        outcome = read_answers(job, answers, log)
    except ToolFailed as error:
        complained = complaint(error.text)
        reason = f"{complained} (see {error.log})" if complained else error
        raise RtlError(f"the simulation of {job.dut.name} failed: {reason}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcome.version = simulator.version_text
    outcome.seconds_build, outcome.seconds_run = built - start, time.monotonic() - built
    return outcome


# Build -----------------------------------------------------------------------------------------------------------------


def build(job: Job, simulator: Simulator) -> Path:
    """Returns the compiled testbench (a program, or a file for vvp), compiled only if none of the same content exists."""
    place = job.build.absolute() / f"selfcheck_{simulator.name}"
    dut = job.dut
    generated = [write_wrapper(dut, place), _write_if_changed(place / f"{TESTBENCH}.sv", testbench_text(dut))]
    options = [*VERILATE, *_trace(job.waves)] if simulator.name == "verilator" else ["-g2012"]
    timescale = _write_if_changed(place / TIMESCALE, TIMESCALE_TEXT)
    program = place / f"{dut.top}_{digest(dut, [*generated, timescale], (simulator.version_text, options))}"
    if program.is_file():
        return program
    scratch = Path(tempfile.mkdtemp(prefix="build_", dir=place))
    arguments: list[str | Path] = [*options, *design_options(dut)]
    if simulator.name == "verilator":
        arguments += ["--build-jobs", str(os.cpu_count() or 1), "--Mdir", scratch, "--top-module", TESTBENCH]
    else:
        arguments += ["-s", TESTBENCH]
    arguments += [timescale, *dut.sources, *generated, "-o", scratch / "testbench"]
    try:
        simulators.elaborate(simulator, arguments, folder=scratch, what=f"the DUT {dut.name}")
        os.replace(scratch / "testbench", program)
        shutil.rmtree(scratch)
    except KeyboardInterrupt:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return program


def _trace(waves: Path | None) -> list[str]:
    if waves is None:
        return []
    return ["--trace-fst"] if waves.suffix == ".fst" else ["--trace-vcd"]


def _write_if_changed(path: Path, text: str) -> Path:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
    return path


# Run -------------------------------------------------------------------------------------------------------------------


def _command(job: Job, simulator: Simulator, program: Path) -> list[str | Path]:
    waves = [f"+waves={job.waves.absolute()}"] if job.waves else []
    if simulator.name == "icarus":
        return [simulator.runtime, "-n", program, *(["-fst"] if job.waves and job.waves.suffix == ".fst" else []), *waves]
    return [program, *waves, *random_start(job.traffic.seed)]


def write_run(dut: Dut, vectors: VectorSet, folder: Path, traffic: Traffic, timeout_cycles: int) -> None:
    """Writes what the testbench reads: run.hex and vectors_N.hex of DEPTH vectors each."""
    traffic = traffic.on(dut)
    settings = [
        ("vectors", len(vectors)),
        ("probability of an idle cycle, times 2**32", int(traffic.idle * 2**32)),
        ("probability of backpressure, times 2**32", int(traffic.backpressure * 2**32)),
        ("resets in mid-flight", traffic.resets),
        ("seed", traffic.seed),
        ("cycles without progress after which the run stops", timeout_cycles),
    ]
    (folder / "run.hex").write_text("".join(f"{value:08x}  // {meaning}\n" for meaning, value in settings))
    digits = (dut.layout.operand_width + dut.layout.result_width + 3) // 4
    for number in range((len(vectors) + DEPTH - 1) // DEPTH):
        part = vectors[number * DEPTH : (number + 1) * DEPTH]
        words = dut.layout.join(dut.layout.pack_operands(part.operands), dut.layout.pack_result(part.d))
        text = np.frombuffer(words[:, ::-1].tobytes().hex().encode(), np.uint8).reshape(len(part), -1)[:, -digits:]
        lines = np.concatenate([text, np.full((len(part), 1), ord("\n"), np.uint8)], axis=1)
        (folder / f"vectors_{number}.hex").write_bytes(lines.tobytes())


def _ticker(answers: Path, total: int, progress: Progress | None) -> Callable[[], None] | None:
    """Reports the last "P <answered>" line that the testbench wrote."""
    if progress is None:
        return None

    def tick() -> None:
        if answers.is_file():
            with answers.open("rb") as file:
                file.seek(max(answers.stat().st_size - 4096, 0))
                lines = [line.split() for line in file.read().split(b"\n")[:-1] if line.startswith(b"P ")]
            if lines:
                progress(int(lines[-1][1]), total)

    return tick


def read_answers(job: Job, answers: Path, log: Path) -> Outcome:
    """Turns answers.txt into an Outcome; where the testbench found a result right, `actual` is the expected one."""
    lines = [line.split() for line in answers.read_text().splitlines()] if answers.is_file() else []
    if not lines or lines[-1][0] != "D":
        last = next(
            (line for line in reversed(log.read_text(errors="replace").splitlines()) if line.strip()), "it printed nothing"
        )
        raise RtlError(f"the simulation of {job.dut.name} ended before the testbench did: {last.strip()} (see {log})")
    count, cycles, answered = len(job.vectors), int(lines[-1][1]), int(lines[-1][2])
    results = np.ascontiguousarray(job.dut.layout.pack_result(job.vectors.d))
    received = np.arange(count) < answered
    results[~received] = 0
    unknown = np.zeros(count, np.bool_)
    failures = []
    for kind, *rest in lines[:-1]:
        if kind == "F":
            failures.append(failure(int(rest[0]), int(rest[1]), int(rest[2]), rest[3], int(rest[4])))
        elif kind in "MX":
            index = int(rest[0])
            results[index] = _result_bytes(rest[1], 16 if kind == "M" else 2, results.shape[1])
            unknown[index] = kind == "X"
    actual = job.dut.layout.unpack_result(results)
    shape = (count, -1) if actual.ndim > 1 else (count,)
    return Outcome("selfcheck", job.simulator, "", actual.reshape(shape), received, unknown, failures, cycles)


def _result_bytes(digits: str, base: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """A printed result as little-endian bytes; bits that are X or Z become 0."""
    known = digits.translate(str.maketrans("xXzZ", "0000"))
    return np.frombuffer(int(known, base).to_bytes(size, "little"), np.uint8)


# For a designer --------------------------------------------------------------------------------------------------------


def write_testbench(dut: Dut, vectors: VectorSet, folder: Path, traffic: Traffic = Traffic()) -> list[Path]:  # noqa: B008
    """Writes a testbench that runs as it is in any simulator: sources list, vectors, commands. Returns the files.

    Raises:
        RtlError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wrapper = write_wrapper(dut, folder)
        testbench = _write_if_changed(folder / f"{TESTBENCH}.sv", testbench_text(dut))
        timescale = _write_if_changed(folder / TIMESCALE, TIMESCALE_TEXT)
        write_run(dut, vectors, folder, traffic, 10_000)
        options = [f"+incdir+{path}" for path in dut.include]
        options += [f"+define+{name}={value}" if value else f"+define+{name}" for name, value in dut.defines.items()]
        lines = [*options, timescale.name, *map(str, dut.sources), wrapper.name, testbench.name]
        (folder / "files.f").write_text("\n".join(lines) + "\n")
        (folder / "README.md").write_text(_readme(dut, vectors, traffic))
    except OSError as error:
        raise RtlError(f"the testbench cannot be written to {folder}: {error.strerror}") from error
    return sorted(folder.iterdir())


def _readme(dut: Dut, vectors: VectorSet, traffic: Traffic) -> str:
    commands: Sequence[tuple[str, str]] = (
        ("Icarus Verilog", f"iverilog -g2012 -s {TESTBENCH} -o testbench.vvp -c files.f && vvp -n testbench.vvp"),
        ("Verilator", f"verilator --binary --timing -Wno-fatal --top-module {TESTBENCH} -f files.f && obj_dir/V{TESTBENCH}"),
        ("VCS", f"vcs -sverilog -timescale=1ns/1ps -top {TESTBENCH} -f files.f && ./simv"),
        ("Questa", f"qrun -sv -timescale 1ns/1ps -top {TESTBENCH} -f files.f"),
        ("Xcelium", f"xrun -sv -timescale 1ns/1ps -top {TESTBENCH} -f files.f"),
    )
    shown = "\n".join(f"    {command}    # {name}" for name, command in commands)
    return f"""# Self-checking testbench of {dut.name}

`{NAME}` is {dut.top} behind the ports that the testbench drives. {len(vectors)} vectors of {dut.instruction_name}, level
{dut.level}, seed {vectors.seed}. Run in this folder:

{shown}

The last line printed begins with PASS or FAIL. `answers.txt` lists every wrong result (`M index hex`), every result with X or Z
(`X index binary`) and every failure of the handshake (`F kind cycle vector in_valid,in_ready,out_valid,out_ready in_flight`).
`run.hex` holds the traffic: idle {traffic.idle}, backpressure {traffic.backpressure}, resets {traffic.resets}. `+waves=dump.vcd`
writes a waveform (Verilator: build with --trace-vcd).
"""
