"""The fast engine: the unit, verilated into a program that runs a whole set of vectors from files by itself.

Hundreds of thousands of vectors a second, so it takes large sets. Verilator has two states: X and Z do not
exist, uninitialised registers start as random bits (seeded by the traffic's seed). Whether an X could reach
the result is a question for Icarus (engines selfcheck and cocotb). The program is a process of its own: a
unit that crashes or hangs cannot take the checker with it, and leaves nothing behind that the next run could
meet.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import headers
from rtl_tb.engines import traffic as rules
from rtl_tb.engines.builds import OBJECTS, Recipe, built, built_once, design_options
from rtl_tb.engines.common import (
    KINDS,
    Watch,
    changed_answers,
    codes_of,
    counters,
    failure,
    never_waited,
    write_bytes,
    written_failures,
)
from rtl_tb.engines.job import INITIAL_VALUES, Bits, Job, Outcome, Progress, ProtocolFailure
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator, ToolFailed

HARNESS, MODEL = (Path(__file__).with_name(f"fast_{name}.cpp") for name in ("harness", "model"))
"""The harness, which knows no unit, and what it sees of a unit."""
WITH_THE_DESIGN = "VM_SUPPORT_FAST"
"""Variable to which Verilator's makefile adds the files that it compiles together with the classes of the
design: the model costs a sixth of a small unit's build where a compiler starts for it alone."""
PROGRAM = "dut"
LANGUAGE = ("--timing", "--timescale", "1ns/1ps")
"""Delays in the RTL count against a clock of 10 ns, as in the other engines."""
VERILATE = ["--cc", "--exe", "--build", "-O3", "--x-initial", "unique", "--x-assign", "unique"]
ONE_FILE = ("--output-split", "200000")
"""Statements up to which Verilator writes one C++ file: for several files its makefile compiles two headers
of each design, which costs ten seconds of one processor. Ten times as many as by default: larger designs gain
more from several processors."""
MANY = 5_000_000
"""Vectors of a run from which -O2 pays: it costs three seconds of a large unit's build, and such a run takes
a sixth to a third less time."""
PRINTED = 1 << 20
"""Bytes that are kept of what a unit prints: one that prints in every cycle must not fill the disk."""
ANSWERED = "answered"
"""The name under which a trial says which vectors were answered, (count,)."""
RULES = ("ENGAGED", "DRAINED", "LIMIT", "MOST_EXPIRED")
"""What of rtl_tb/engines/traffic.py the harness has to know."""
COMPILE = ["-DVL_USER_FATAL", "-DVL_USER_STOP", "-DVL_USER_FINISH", "-DVL_USER_WARN"]


def run(job: Job, progress: Progress | None = None) -> Outcome:
    """Runs a job, see rtl_tb/engines/job.py.

    Raises:
        SimulatorMissing, SimulatorTooOld: Verilator is missing or too old.
        ElaborationError: Verilator or the C++ compiler refused the design.
        RtlError: another simulator or a waveform was requested; the DUT called $fatal, $stop or $finish,
            crashed, or hangs.
    """
    if job.simulator != "verilator":
        raise RtlError(f"engine 'fast' needs Verilator, not {job.simulator}; use selfcheck or cocotb")
    if job.waves is not None:
        raise RtlError("engine 'fast' writes no waveform; use selfcheck or cocotb")
    if sys.byteorder != "little":
        raise RtlError("engine 'fast' runs on little-endian machines only; use selfcheck or cocotb")
    simulator = simulators.verilator()
    start = time.monotonic()
    program = job.program or build(job, simulator)
    ready = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mmagold_run_") as name:
        outcome = _simulate(job, program, Path(name), simulator, progress)
    outcome.seconds_build, outcome.seconds_run = ready - start, time.monotonic() - ready
    return outcome


# Build ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BuildOptions:
    """How a program is made: further options of Verilator, and the compiler's level."""

    further: Sequence[str] = ONE_FILE
    level: str = "-Og"


FOR_TRIALS = BuildOptions(("--inline-mult", "1", "-fno-split", "--output-split", "0"), "-Og")
"""Modules stay apart, which is quick to compile. A build of all choices runs four times as fast as without
any optimisation, and some thousand runs cost more than it takes longer."""


def build(job: Job, simulator: Simulator, how: BuildOptions | None = None) -> Path:
    """Returns the program of a DUT, compiled only if none of the same content lies
    in the job's build folder."""
    how = how or BuildOptions(level="-O2" if len(job.vectors) >= MANY else "-Og")
    recipe = _recipe(job, simulator, wrapper_of(job.dut), how)
    return built(job.build.absolute() / "fast", recipe) / PROGRAM


def build_once(job: Job, simulator: Simulator, wrapper: str, how: BuildOptions) -> Path:
    """Returns the program of a DUT of which the wrapper is known, for this process alone: nothing asks which
    files the design consists of, so the front end runs once instead of three times."""
    recipe = _recipe(job, simulator, wrapper, how)
    place = job.build.absolute() / "fast"
    return built_once(place, job.dut.sources, recipe.generated, recipe.compile) / PROGRAM


def _recipe(job: Job, simulator: Simulator, wrapper: str, how: BuildOptions) -> Recipe:
    generated = {f"{NAME}.sv": wrapper}
    texts = (each.read_text(encoding="utf-8") for each in (HARNESS, MODEL, MODEL.with_suffix(".h")))
    options = (VERILATE, how, COMPILE, *texts)
    recipe = Recipe(
        job.dut,
        simulator,
        NAME,
        generated,
        LANGUAGE,
        options,
        lambda place: _verilate(recipe, place, how),
        PROGRAM,
    )
    return recipe


def _verilate(recipe: Recipe, place: Path, how: BuildOptions) -> None:
    dut = recipe.dut
    objects = place / OBJECTS
    objects.mkdir()
    known = "".join(f"#define MG_{name} {getattr(rules, name)}\n" for name in RULES)
    (objects / "mmagold_rules.h").write_text(known, encoding="utf-8")
    for text in (MODEL, MODEL.with_suffix(".h")):
        shutil.copyfile(text, objects / text.name)
    runtime = (*VERILATE, *recipe.language, *COMPILE)  # what the runtime is compiled with
    delays = (*runtime, headers.COROUTINES)
    # Whether this design has delays is known when Verilator has read it; where none ever had, a header for
    # delays would cost seconds for nothing.
    timing = headers.kept_objects(objects, recipe.simulator, delays, headers.DELAYS)
    optimise = headers.optimisation(how.level, dut, recipe.simulator, COMPILE, bool(timing))
    own = (HARNESS.with_suffix(".o").name,)
    arguments: list[str | Path] = [
        *VERILATE,
        *how.further,
        *recipe.language,
        *(word for flags in optimise for word in ("-MAKEFLAGS", shlex.quote(flags))),
    ]
    harness = (*COMPILE, known, HARNESS.read_text(encoding="utf-8"))
    for options, names in ((runtime, headers.RUNTIME), (harness, own)):
        if kept := headers.kept_objects(objects, recipe.simulator, options, names):
            arguments += ["-MAKEFLAGS", kept]
    arguments += ["-MAKEFLAGS", timing] if timing else []
    arguments += [word for macro in COMPILE for word in ("-CFLAGS", macro)]
    arguments += [
        "--build-jobs",
        str(os.cpu_count() or 1),
        "--Mdir",
        objects,
        *design_options(dut, "verilator"),
    ]
    arguments += ["--top-module", recipe.top, *recipe.files(place), HARNESS]
    arguments += ["-o", place / PROGRAM]
    with_model = replace(recipe.simulator, env={**recipe.simulator.env, WITH_THE_DESIGN: MODEL.stem})
    simulators.elaborate(with_model, arguments, folder=place, what=f"the DUT {dut.name}")
    headers.keep_objects(objects, recipe.simulator, runtime)
    headers.keep_objects(objects, recipe.simulator, harness, own)
    headers.keep_objects(objects, recipe.simulator, delays, headers.DELAYS)


# Run --------------------------------------------------------------------------------------------------------


def _simulate(
    job: Job, program: Path, folder: Path, simulator: Simulator, progress: Progress | None
) -> Outcome:
    """Runs all vectors. What the DUT prints goes into the outcome; relative paths in it start at the working
    directory."""
    count, layout = len(job.vectors), job.dut.layout
    files = _files(folder)
    _write_inputs(job, files)
    watch = Watch(job, counters(files["progress"]), progress)
    # Cycles after the last result in which an extra one is noticed.
    tail = 256
    try:
        printed = simulators.run(
            [program, *files.values(), *_settings(job, tail)],
            folder=None,
            env=simulator.env,
            log=folder / "printed",
            tick=watch,
            most=PRINTED,
        )
    except ToolFailed as error:
        full = "; is the disk full?" if "SIGBUS" in error.how else ""  # its results are a mapped file
        last = next((f"; it printed last: {line}" for line in reversed(error.text.splitlines())), "")
        raise RtlError(
            f"the simulation of {job.dut.name} ended without an answer ({error.how}){full}{last}"
        ) from error
    (answered, cycles, resets, waited), lines = _answers(job, files["answers"])
    out = np.zeros((count, (layout.result_width + 7) // 8), np.uint8)
    out[:answered] = np.fromfile(files["results"], np.uint8).reshape(out.shape)[:answered]
    if progress:
        progress(answered, count)
    return Outcome(
        engine="fast",
        simulator="verilator",
        version=simulator.version_text,
        **codes_of(layout.unpack_results(out)),
        received=np.arange(count) < answered,
        unknown=np.zeros(count, np.bool_),
        failures=[
            *sorted([*written_failures(lines), *_changed(job, lines)], key=lambda one: one.cycle),
            *never_waited(job, answered, waited, cycles),
        ],
        cycles=cycles,
        resets=resets,
        printed=printed,
    )


class Trial:
    """One program and one job, run again and again with another environment: what `run` does, without its
    watch and its messages."""

    def __init__(self, job: Job, program: Path, folder: Path, env: Mapping[str, str]) -> None:
        self.job, self.program, self.folder, self.env = job, program, folder, env
        _write_inputs(job, _files(folder))

    def __call__(self, more: Mapping[str, str], seconds: float) -> dict[str, Bits] | None:
        """The results by name, with these variables in the environment, and under ANSWERED which of them
        came within this many seconds of processor time, before the handshake was broken; None where the
        program did not run."""
        return self.many([more], seconds)[0]

    def many(
        self, runs: Sequence[Mapping[str, str]], seconds: float, longest: float = float("inf")
    ) -> list[dict[str, Bits] | None]:
        """The same of several runs, one after the other in one program, `seconds` for each and `longest` for
        all: what it costs to start a program is spent once."""
        none: list[dict[str, Bits] | None] = [None] * len(runs)
        count, layout = len(self.job.vectors), self.job.dut.layout
        width = (layout.result_width + 7) // 8
        with tempfile.TemporaryDirectory(prefix="trials_", dir=self.folder) as name:
            given = _files(self.folder)
            files = _files(Path(name)) | {"operands": given["operands"], "traffic": given["traffic"]}
            lines = (" ".join(f"{key}={value}" for key, value in run.items()) for run in runs)
            (Path(name) / "runs").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            words = [
                self.program,
                *files.values(),
                *_settings(self.job, 0),  # it ends with its last result
                Path(name) / "runs",
                round(1000 * seconds) + 1,
            ]
            # On a busy machine a second of processor time takes several.
            quiet, most = subprocess.DEVNULL, min(4 * seconds * len(runs) + 1, longest)
            try:
                subprocess.run(
                    [str(word) for word in words],
                    env=dict(self.env),
                    stdout=quiet,
                    stderr=quiet,
                    timeout=most,
                    check=True,
                )
                good = np.loadtxt(files["answers"], np.int64, ndmin=1)
            except (subprocess.SubprocessError, OSError):
                return none
            out = np.fromfile(files["results"], np.uint8).reshape(len(runs), count, width)
            came = np.arange(count) < good[:, None]
            return [layout.unpack_results(out[at]) | {ANSWERED: came[at]} for at in range(len(runs))]


def _files(folder: Path) -> dict[str, Path]:
    """The files of a run, in the order in which the program takes them."""
    return {name: folder / name for name in ("operands", "traffic", "results", "progress", "answers")}


def _write_inputs(job: Job, files: Mapping[str, Path]) -> None:
    words = np.ascontiguousarray(job.dut.layout.pack_operands(job.vectors.operands))
    write_bytes(files["operands"], words.data.cast("B"))
    plan = rules.plan_of(job).words
    write_bytes(files["traffic"], np.ascontiguousarray(plan, "<u4").data.cast("B"))


def _settings(job: Job, tail: int) -> list[str]:
    """The numbers that the program takes after its files, in the order of `Settings` in fast_harness.cpp."""
    dut, layout, traffic = job.dut, job.dut.layout, job.traffic.on(job.dut)
    settings = [
        len(job.vectors),
        traffic.seed,
        int(traffic.backpressure > 0),
        traffic.resets,
    ]
    settings += [
        dut.reset.cycles if dut.reset else 4,
        job.timeout_cycles,
        dut.instruction.restarts,
        INITIAL_VALUES[job.start],
        (layout.operand_width + 7) // 8,
        (layout.result_width + 7) // 8,
        (2 << (layout.operand_width - 1) % 8) - 1,
        tail,
    ]
    return [str(number) for number in settings]


def _answers(job: Job, file: Path) -> tuple[tuple[int, int, int, int], list[list[str]]]:
    """(vectors answered, cycles, resets, cycles in which a result waited) and the lines before; the last line
    of the file says that it is whole.

    Raises:
        RtlError: the DUT ended the simulation, or the file is not whole.
    """
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    lines = [line.split(" ") for line in text.splitlines()]
    if lines and lines[-1][0] == "E":
        cycle, *message = lines[-1][1:]
        raise RtlError(f"the DUT {job.dut.name} ended the simulation in cycle {cycle}: {' '.join(message)}")
    if not lines or lines[-1][0] != "D" or int(lines[-1][-1]) != len(lines) - 1:
        raise RtlError(
            f"the simulation of {job.dut.name} ended without an answer; does the unit call exit()?"
        )
    answered, cycles, resets, waited = map(int, lines[-1][1:5])
    return (answered, cycles, resets, waited), lines[:-1]


def _changed(job: Job, lines: list[list[str]]) -> list[ProtocolFailure]:
    """The failures among the vectors that were answered again with other bits: the lines C of a harness."""
    rows = [rest for mark, *rest in lines if mark == "C"]
    if not rows:
        return []
    found = [
        failure(KINDS.index("changed_answer"), int(cycle), int(vector), pins, int(in_flight))
        for cycle, vector, pins, in_flight, *_ in rows
    ]
    before, now = (
        job.dut.layout.unpack_results(np.array([list(bytes.fromhex(row[at])) for row in rows], np.uint8))
        for at in (-2, -1)
    )
    return changed_answers(job.dut, found, before, now)
