"""The selfcheck engine: a generated testbench in plain SystemVerilog that reads vectors and compares in RTL.

No Python runs next to the simulator and there is no DPI, so that the same files run in Icarus Verilog 11,
Verilator and commercial simulators. On Icarus it sees X
and Z. `write_testbench` hands the files to a designer.

The engine itself gives the simulation no expected results: the testbench writes down what comes, and the host
compares. A unit that reads the run's own files, or reaches into the testbench, finds nothing to answer with.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from golden.files.output import Fill, write_folder
from golden.vectors.vectorset import VectorSet
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.translated import built_readable, translator_of
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import headers
from rtl_tb.engines.builds import (
    DEPENDENCIES,
    OBJECTS,
    Recipe,
    built,
    built_once,
    check_whole,
    design_options,
    verilog_of,
)
from rtl_tb.engines.common import (
    Watch,
    codes_of,
    complaint,
    initial_value_arguments,
    never_waited,
    run_folder,
    units_folder,
    written_failures,
)
from rtl_tb.engines.job import Bits, Job, Outcome, Progress, Traffic
from rtl_tb.engines.selfcheck_text import DEPTH, testbench_text
from rtl_tb.engines.traffic import Plan, plan, plan_of
from rtl_tb.errors import RtlError
from rtl_tb.simulators import commercial, simulators
from rtl_tb.simulators.commercial import COMMERCIAL
from rtl_tb.simulators.simulators import Simulator, ToolFailed

TESTBENCH = "mmagold_tb"
TIMESCALE = "mmagold_timescale.sv"
FIRST = (TIMESCALE, f"{TESTBENCH}.sv")
"""What is compiled before the unit's sources: no type or directive of theirs reaches the testbench."""
TIMESCALE_TEXT = (
    "// Compiled first: without it a delay of #1 in RTL that has no timescale is a second on "
    "Icarus.\n`timescale 1ns / 1ps\n"
)
PROGRAM = "testbench"
FILES = "files.f"
VERILATE = ["--binary", "-O3", "--x-initial", "unique", "--x-assign", "unique"]
OPTIMISE = "-O2"
_UNKNOWN = str.maketrans("xXzZ", "0000")
"""Bits that are X or Z become 0."""
TIMED = ("-DVL_TIME_CONTEXT", headers.COROUTINES)
"""What Verilator's makefile compiles a testbench with delays with."""
RUNTIME = (*headers.RUNTIME, *headers.DELAYS)
"""Objects of Verilator's runtime in a testbench with delays."""


def run(job: Job, progress: Progress | None = None) -> Outcome:
    """Runs a job, see rtl_tb/engines/job.py.

    Raises:
        SimulatorMissing, SimulatorTooOld: no such simulator.
        ElaborationError: the simulator refused the design.
        RtlError: the simulation ended without a summary, for example because the DUT called $finish; or the
            DUT called $error, an assertion failed, a $readmem file is missing; or it hangs.
    """
    simulator = simulators.find(job.simulator)
    start = time.monotonic()
    program = job.program or build(job, simulator)
    ready = time.monotonic()
    with run_folder(job.build.absolute() / f"selfcheck_{simulator.name}") as folder:
        outcome = _simulate(job, simulator, program, folder, progress)
    outcome.version, outcome.translated = (
        simulator.version_text,
        translator_of(program.with_name(f"{NAME}.sv")),
    )
    outcome.seconds_build, outcome.seconds_run = ready - start, time.monotonic() - ready
    return outcome


# Build ------------------------------------------------------------------------------------------------------


def build(job: Job, simulator: Simulator) -> Path:
    """Returns the compiled testbench (a program, or a file for vvp), compiled only if none of the same
    content exists."""
    return built_readable(job.dut, simulator, partial(_build, job, simulator), job.translate)


def _build(job: Job, simulator: Simulator, dut: Dut, wrapper: str) -> Path:
    generated = _generated(job.dut, wrapper)
    place = job.build.absolute() / f"selfcheck_{simulator.name}"
    if simulator.name in COMMERCIAL:
        what, files = f"the DUT {dut.name}", generated | {FILES: file_list(dut)}
        compiled_in = partial(commercial.compile_design, simulator, TESTBENCH, FILES, what=what)
        return built_once(place, dut.sources, files, compiled_in) / PROGRAM
    verilator = simulator.name == "verilator"
    options = (*VERILATE, OPTIMISE, *_trace(job.waves)) if verilator else ()
    language = ("--timing", "--timescale", "1ns/1ps") if verilator else ("-g2012",)
    compiled = [*VERILATE, *_trace(job.waves), *language] if verilator else [*language]

    def compile_in(folder: Path) -> None:
        arguments: list[str | Path] = [*compiled, *design_options(dut, simulator.name)]
        if verilator:
            objects = folder / OBJECTS
            objects.mkdir()
            optimise = headers.optimisation(OPTIMISE, dut, simulator, TIMED)
            kept = headers.kept_objects(objects, simulator, compiled, RUNTIME)
            arguments += [
                *(
                    word
                    for flags in (*map(shlex.quote, optimise), kept)
                    if flags
                    for word in ("-MAKEFLAGS", flags)
                ),
                "--build-jobs",
                str(os.cpu_count() or 1),
                "--Mdir",
                objects,
                "--top-module",
                TESTBENCH,
            ]
        else:
            arguments += ["-s", TESTBENCH, f"-Mall={folder / DEPENDENCIES}"]
        arguments += [*recipe.files(folder), "-o", folder / PROGRAM]
        simulators.elaborate(simulator, arguments, folder=folder, what=f"the DUT {dut.name}")
        if verilator:
            headers.keep_objects(folder / OBJECTS, simulator, compiled, RUNTIME)
        else:
            check_whole(folder / PROGRAM)

    recipe = Recipe(dut, simulator, TESTBENCH, generated, language, options, compile_in, PROGRAM, first=FIRST)
    return built(place, recipe) / PROGRAM


def _trace(waves: Path | None) -> list[str]:
    if waves is None:
        return []
    return ["--trace-fst"] if waves.suffix == ".fst" else ["--trace-vcd"]


# Run --------------------------------------------------------------------------------------------------------


def _simulate(
    job: Job, simulator: Simulator, program: Path, folder: Path, progress: Progress | None
) -> Outcome:
    files = run_files(job.dut, job.vectors, job.traffic, job.timeout_cycles, False, plan_of(job))
    for name, fill in files.items():
        with (folder / name).open("wb") as file:
            fill(file)
    answers, log = folder / "answers.txt", folder / "run.log"
    watch = Watch(job, _reader(answers), progress)
    try:
        command = [*_command(job, simulator, program), f"+mmagold_files={folder}"]
        said = simulators.run(command, folder=units_folder(folder), env=simulator.env, log=log, tick=watch)
    except ToolFailed as error:
        complained = _complaint(simulator, error.text)
        reason = f"{complained} (see {error.log})" if complained else error
        raise RtlError(f"the simulation of {job.dut.name} failed: {reason}") from error
    complained = _complaint(simulator, said)
    if complained:
        raise RtlError(f"the DUT {job.dut.name} reported an error: {complained} (see {log})")
    return read_answers(job, answers, log)


class Trial:
    """One job, run in Icarus Verilog again and again with other texts of its unit: what `run` does, without
    its watch and its messages, and behind whatever else the machine has to do.

    Raises:
        SimulatorMissing: Icarus Verilog is not installed.
    """

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.folder = replace(job, simulator="icarus"), folder
        self.simulator = simulators.find("icarus")
        texts = _generated(job.dut, wrapper_of(job.dut))
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        self.before = [folder / name for name in FIRST]
        self.behind = [folder / name for name in texts if name not in FIRST]
        files = run_files(job.dut, job.vectors, job.traffic, job.timeout_cycles, False, plan_of(job))
        for name, fill in files.items():
            with (folder / name).open("wb") as file:
                fill(file)
        self.files = [folder / name for name in files]

    def __call__(self, dut: Dut, seconds: float, memory: int) -> Outcome | None:
        """What comes of these sources; None where Icarus refuses them, or not all comes within this many
        seconds of processor and bytes."""
        with tempfile.TemporaryDirectory(prefix="trial_", dir=self.folder) as name:
            place = Path(name)
            for file in self.files:
                (place / file.name).symlink_to(file)
            compiled: list[str | Path] = [*self.simulator.start, "-g2012", *design_options(dut, "icarus")]
            compiled += ["-s", TESTBENCH, "-o", place / PROGRAM]
            compiled += [*self.before, *verilog_of(dut), *self.behind]
            command = [*_command(self.job, self.simulator, place / PROGRAM), f"+mmagold_files={place}"]
            limits = f"ulimit -t {int(seconds) + 1}; ulimit -v {memory >> 10}"
            script = f"{limits}; {shlex.join(map(str, compiled))} && exec {shlex.join(map(str, command))}"
            quiet = subprocess.DEVNULL
            try:
                subprocess.run(
                    ["nice", "-n", "15", "/bin/sh", "-c", script],
                    env=self.simulator.env,
                    cwd=place,
                    stdout=quiet,
                    stderr=quiet,
                    timeout=4 * seconds,
                    check=True,
                )
                return read_answers(self.job, place / "answers.txt", place / "log")
            except (subprocess.SubprocessError, OSError, RtlError):
                return None


def _complaint(simulator: Simulator, said: str) -> str | None:
    """What the RTL complained of: as the free simulators print it, and as this one does."""
    own = commercial.complaint(simulator, said) if simulator.name in COMMERCIAL else None
    return own or complaint(said)


def _command(job: Job, simulator: Simulator, program: Path) -> list[str | Path]:
    waves = [f"+waves={job.waves.absolute()}"] if job.waves else []
    if simulator.name in COMMERCIAL:
        return commercial.run_words(simulator, TESTBENCH, program.parent, waves)
    if simulator.name == "icarus":
        return [
            simulator.runtime,
            "-n",
            program,
            *(["-fst"] if job.waves and job.waves.suffix == ".fst" else []),
            *waves,
        ]
    return [program, *waves, *initial_value_arguments(job)]


def run_files(
    dut: Dut,
    vectors: VectorSet,
    traffic: Traffic,
    timeout_cycles: int,
    compares: bool,
    planned: Plan | None = None,
) -> dict[str, Fill]:
    """What the testbench reads, by name: run.hex, and vectors_N.hex and traffic_N.hex of DEPTH vectors each.

    Args:
        compares: whether the testbench compares; else it has no expected results, and records all that come.
        planned: what lies between the vectors; None: as `traffic` draws it.
    """
    traffic = traffic.on(dut)
    settings = [
        ("vectors", len(vectors)),
        ("resets in mid-flight", traffic.resets),
        ("cycles without progress after which the run stops", timeout_cycles),
        ("1: write every result and compare none", int(not compares)),
    ]
    lines = "".join(f"{value:08x}  // {meaning}\n" for meaning, value in settings)
    parts = range((len(vectors) + DEPTH - 1) // DEPTH)
    words = (planned or plan(traffic, len(vectors))).words
    shares = [slice(number * DEPTH, (number + 1) * DEPTH) for number in parts]
    return (
        {"run.hex": lambda file: file.write(lines.encode())}
        | {
            f"vectors_{number}.hex": partial(_write_part, dut, vectors[share], compares)
            for number, share in enumerate(shares)
        }
        | {
            f"traffic_{number}.hex": partial(_write_traffic, words[share])
            for number, share in enumerate(shares)
        }
    )


def _write_traffic(words: Bits, file: IO[bytes]) -> None:
    """The words of rtl_tb/engines/traffic.py, one hex word a line."""
    file.write("".join(f"{row}\n" for row in _hex_rows(words)).encode())


def _hex_rows(words: Bits) -> list[str]:
    text = np.ascontiguousarray(words, ">u4").tobytes().hex()
    digits = 8 * words.shape[1]
    return [text[at : at + digits] for at in range(0, len(text), digits)]


def _write_part(dut: Dut, part: VectorSet, compares: bool, file: IO[bytes]) -> None:
    """Operands and expected result (zeros where the testbench does not compare) of each vector as one hex
    word a line."""
    digits = (dut.layout.operand_width + dut.layout.result_width + 3) // 4
    results = dut.layout.pack_results(part.results)
    expected = results if compares else np.zeros_like(results)
    words = dut.layout.join(dut.layout.pack_operands(part.operands), expected)
    text = np.frombuffer(words[:, ::-1].tobytes().hex().encode(), np.uint8).reshape(len(part), -1)
    lines = np.concatenate([text[:, -digits:], np.full((len(part), 1), ord("\n"), np.uint8)], axis=1)
    file.write(lines.tobytes())


def _reader(answers: Path) -> Callable[[], tuple[int, int] | None]:
    """Reads the last "P answered cycles" line that the testbench wrote."""

    def read() -> tuple[int, int] | None:
        if not answers.is_file():
            return None
        with answers.open("rb") as file:
            file.seek(max(answers.stat().st_size - 4096, 0))
            lines = [line.split() for line in file.read().split(b"\n")[:-1] if line.startswith(b"P ")]
        return (int(lines[-1][1]), int(lines[-1][2])) if lines else None

    return read


def read_answers(job: Job, answers: Path, log: Path) -> Outcome:
    """Turns answers.txt into an Outcome.

    Raises:
        RtlError: there is no summary, or its counts differ from the lines (a full disk, another
            writer): no result may be missing, nor a failure.
    """
    text = answers.read_text(encoding="utf-8") if answers.is_file() else ""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines or (lines[-1][0], len(lines[-1])) != ("D", 8) or not text.endswith("\n"):
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = next((line for line in reversed(said) if line.strip()), "it printed nothing")
        raise RtlError(
            f"the simulation of {job.dut.name} ended before the testbench did: {last.strip()} (see {log})"
        )
    cycles, answered, resets, *counted, waited = map(int, lines[-1][1:])
    by_kind = Counter(line[0] for line in lines[:-1])
    came = [line for line in lines[:-1] if line[0] in "RX"]
    listed = {int(line[1]) for line in came}
    if (
        [by_kind[kind] for kind in "RXF"] != counted
        or not set(by_kind) <= set("RXFP")
        or listed != set(range(answered))
    ):
        raise RtlError(
            f"the answers of {job.dut.name} are not whole: {by_kind['R']} results, {by_kind['X']} unknown "
            f"ones, {by_kind['F']} failures are listed for {answered} vectors, and the summary counts "
            f"{', '.join(map(str, counted))} (see {answers}); is the disk full?"
        )
    results, unknown = _results(job, came)
    failures = [*written_failures(lines), *never_waited(job, answered, waited, cycles)]
    return Outcome(
        engine="selfcheck",
        simulator=job.simulator,
        version="",
        **codes_of(job.dut.layout.unpack_results(results)),
        received=np.arange(len(job.vectors)) < answered,
        unknown=unknown,
        failures=failures,
        cycles=cycles,
        resets=resets,
    )


def _results(job: Job, came: Sequence[Sequence[str]]) -> tuple[Bits, Bits]:
    """The result words (count, bytes) of the lines `R index hex` and `X index binary`, and which are unknown.

    A vector that was sent again after a reset has several: a wrong one counts, else the last.
    """
    layout = job.dut.layout
    count, size = len(job.vectors), (layout.result_width + 7) // 8
    results, unknown = np.zeros((count, size), np.uint8), np.zeros(count, np.bool_)
    known = [line for line in came if line[0] == "R"]
    index = np.array([int(line[1]) for line in known], np.int64)
    digits = "".join(line[2].rjust(2 * size, "0") for line in known)
    words = np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, size)[:, ::-1]
    expected = {name: codes[index] for name, codes in job.vectors.results.items()}
    right = job.dut.compare.right(
        job.dut.instruction.formats["d"], expected, layout.unpack_results(np.ascontiguousarray(words))
    )
    for some in (right, ~right):
        results[index[some]] = words[some]
    for _, vector, bits in (line for line in came if line[0] == "X"):
        bytes_ = int(bits.translate(_UNKNOWN), 2).to_bytes(size, "little")
        results[int(vector)], unknown[int(vector)] = np.frombuffer(bytes_, np.uint8), True
    return results, unknown


# For a designer ---------------------------------------------------------------------------------------------


def write_testbench(dut: Dut, vectors: VectorSet, folder: Path, traffic: Traffic = Traffic()) -> list[Path]:  # noqa: B008
    """Writes a testbench that runs as it is in any simulator: sources list, vectors, commands.
    Returns the files.

    Raises:
        FileFormatError: the folder cannot be written. RtlError: a file list cannot name the sources.
    """
    files: dict[str, str | Fill] = {
        **_generated(dut, wrapper_of(dut)),
        **run_files(dut, vectors, traffic, 10_000, compares=True),
    }
    files |= {FILES: file_list(dut), "README.md": _readme(dut, vectors, traffic)}
    return sorted(write_folder(folder, files))


def _generated(dut: Dut, wrapper: str) -> dict[str, str]:
    """The files that are compiled in addition to the unit's own, by name."""
    return {
        TIMESCALE: TIMESCALE_TEXT,
        f"{NAME}.sv": wrapper,
        f"{TESTBENCH}.sv": testbench_text(dut),
    }


def file_list(dut: Dut, generated: Sequence[str] = (f"{NAME}.sv", f"{TESTBENCH}.sv")) -> str:
    """The arguments of any simulator, one a line; the generated files come last, without those in FIRST.

    Raises:
        RtlError: one holds a space, a quote or the like: simulators read such lines each in their own way.
    """
    options = [f"+incdir+{path}" for path in dut.include]
    options += [
        f"+define+{name}={value}" if value else f"+define+{name}" for name, value in dut.defines.items()
    ]
    options += [f"-y {path}" for path in dut.libraries] + ["+libext+.v+.sv"] * bool(dut.libraries)
    first = [name for name in FIRST if name == TIMESCALE or name in generated]
    lines = [*options, *first, *map(str, dut.sources), *(name for name in generated if name not in first)]
    for line in lines:
        if re.search(r"[^\x21-\x7e]|[\"'\\#$`]|//|/\*", line):
            raise RtlError(
                f"{dut.file}: {line!r} cannot stand in a file list for every simulator; avoid spaces and "
                "quotes"
            )
    return "\n".join(lines) + "\n"


def _readme(dut: Dut, vectors: VectorSet, traffic: Traffic) -> str:
    commands: Sequence[tuple[str, str]] = (
        (
            "Icarus Verilog",
            f"iverilog -g2012 -s {TESTBENCH} -o testbench.vvp -c files.f && vvp -n testbench.vvp",
        ),
        (
            "Verilator",
            f"verilator --binary --timing -Wno-fatal --top-module {TESTBENCH} -f files.f && "
            f"obj_dir/V{TESTBENCH}",
        ),
        *(
            (about.title, commercial.shell_command(name, TESTBENCH, FILES))
            for name, about in COMMERCIAL.items()
        ),
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
"""  # noqa: E501
