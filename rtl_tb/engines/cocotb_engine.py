"""The cocotb engine: the library of rtl_tb/tb/agents.py and rtl_tb/tb/testbench.py, in Verilator,
Icarus Verilog or, for units in VHDL, GHDL (rtl_tb/engines/ghdl.py).

It is the slowest engine and sees the most: random idle cycles and backpressure, resets in mid-flight, X and Z
(Icarus, GHDL). This is the host side: it builds, starts the simulator, and turns the answer of
rtl_tb/engines/cocotb_test.py into an Outcome.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.translated import built_readable, translator_of
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import ghdl, headers
from rtl_tb.engines.builds import DEPENDENCIES, Recipe, built, check_whole, design_options
from rtl_tb.engines.common import (
    Watch,
    changed_answers,
    codes_of,
    complaint,
    counters,
    initial_value_arguments,
    never_waited,
    run_folder,
    units_folder,
    write_bytes,
)
from rtl_tb.engines.job import Job, Outcome, Progress, ProtocolFailure, changed_text
from rtl_tb.errors import RtlError, SimulatorMissing
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import (
    GET_COCOTB,
    VERILATOR_GOES_ON,
    Simulator,
    ToolFailed,
    first_error,
    no_build,
)
from rtl_tb.tb.scoreboard import unpack_bits

try:
    import cocotb_tools.config
    from cocotb_tools import runner
except ModuleNotFoundError as error:
    raise SimulatorMissing(f"cocotb was not found; install it with: {GET_COCOTB}") from error

VERILATE = (*VERILATOR_GOES_ON, "--x-initial", "unique", "--x-assign", "unique")
"""As the fast engine: what Icarus shows as X starts as random bits, seeded in _simulate."""
OPTIMISE = "-Og"
RUN = "MMAGOLD_RUN"
"""Variable that gives rtl_tb/engines/cocotb_test.py the folder of its files."""
_COCOTB = (metadata.version("cocotb"), str(Path(runner.__file__).parent))
_NO_REWRITING = {"COCOTB_REWRITE_ASSERTION_FILES": ""}
"""pytest rewrites no assertions in the simulator: our test has none, and every import would pass through it,
which takes more than a third of the start."""
_NOT_FOR_US = re.compile(r"(?:COCOTB|GPI|PYGPI|SIM_CMD)_\w+|WAVES|GUI")
"""Variables for other cocotb runs: other tests, a debugger, unknown bits read as 0 or 1, results a cycle
later (COCOTB_TRUST_INERTIAL_WRITES on Icarus Verilog)."""


def run(job: Job, progress: Progress | None = None) -> Outcome:
    """Runs a job, see rtl_tb/engines/job.py.

    Raises:
        SimulatorMissing, SimulatorTooOld: no such simulator, or no cocotb.
        ElaborationError: the simulator refused the design. SpecError: the description does not fit the
            design.
        RtlError: the simulator or the testbench failed; the message names the log.
    """
    simulator = simulators.find(job.simulator)
    with _environment(simulator), run_folder(_place(job)) as place:
        start = time.monotonic()
        folder = job.program or build(job, simulator)
        answer = _simulate(job, simulator, folder, place, progress)
    outcome = _outcome(job, answer)
    outcome.failures += answer["metavalues"]
    outcome.unset = tuple(answer["unset"])
    outcome.version = simulator.version_text
    if job.dut.vhdl is None:
        outcome.translated = translator_of(folder / f"{NAME}.sv")
    # The start of the simulator with Python, about half a second,
    # does not grow with the vectors and counts as building.
    outcome.seconds_run = answer["seconds"]
    outcome.seconds_build = time.monotonic() - start - outcome.seconds_run
    return outcome


@contextlib.contextmanager
def _environment(simulator: Simulator) -> Iterator[None]:
    """The simulator's environment, without what would make cocotb run something else."""
    with simulator.activated():
        for name in list(filter(_NOT_FOR_US.fullmatch, os.environ)):
            del os.environ[name]
        yield


# Runners ----------------------------------------------------------------------------------------------------


class _Grouped(runner.Runner):
    """Starts every command in a process group of its own, which ends with us (Ctrl-C included), and keeps
    its output."""

    tick: Callable[[], None] | None = None
    logs: Path | None = None
    """Where the logs go; None: into the working directory."""
    said: Path
    """The log of the last command."""

    def _execute_cmds(self, cmds: Sequence[list[str]], cwd: Any, stdout: TextIO | None = None) -> None:
        for words in cmds:
            self.said = log = Path(self.logs or cwd) / f"{Path(words[0]).name}.log"
            limit = None if self.tick else simulators.build_limit()  # a run is watched by its cycles
            simulators.run(words, folder=Path(cwd), env=self.env, log=log, timeout=limit, tick=self.tick)


class PortsOnlyVerilator(_Grouped, runner.Verilator):
    """Verilator with access to the ports of the top level alone.

    cocotb makes every signal public, which costs a factor of 2 in speed and 5 in build time on larger units.
    """

    optimise: str | None = None
    """OPT_FAST=... for the makefile; None: what it says itself."""

    def _build_command(self) -> list[list[str]]:
        control = Path(self.build_dir) / "ports.vlt"
        control.write_text(f'`verilator_config\npublic_flat_rw -module "{self.hdl_toplevel}" -port "*"\n')
        commands = super()._build_command()
        if self.optimise:
            commands[1].append(self.optimise)
        commands[0] = [word for word in commands[0] if word != "--public-flat-rw"] + [str(control)]
        return commands


class GroupedIcarus(_Grouped, runner.Icarus):
    """Icarus Verilog that writes its waveform as VCD or FST."""

    vcd = False

    def _test_command(self) -> list[list[str]]:
        commands = super()._test_command()
        return [[("-vcd" if word == "-fst" and self.vcd else word) for word in words] for words in commands]


class GroupedGhdl(_Grouped, runner.Ghdl):
    """GHDL, which finds the analysed unit in its working directory."""

    words: Sequence[str] = ()
    """The command up to cocotb's library."""
    more: Sequence[str] = ()

    def _test_command(self) -> list[list[str]]:
        library = cocotb_tools.config.lib_entry("vpi", "ghdl")
        return [[*self.words, f"--vpi={library}", *self.plusargs, *self.more]]


Tool = PortsOnlyVerilator | GroupedIcarus | GroupedGhdl


_TOOLS: dict[str, type[Tool]] = {
    "verilator": PortsOnlyVerilator,
    "icarus": GroupedIcarus,
    "ghdl": GroupedGhdl,
}


def _place(job: Job) -> Path:
    return job.build.absolute() / "cocotb"


def _tool(job: Job) -> Tool:
    tool = _TOOLS[job.simulator]()
    tool.log.setLevel(logging.ERROR)
    return tool


def build(job: Job, simulator: Simulator) -> Path:
    """Returns the folder of the compiled design, compiled only if none of the same content exists."""
    if job.dut.vhdl is not None:
        return built(_place(job), ghdl.recipe(job.dut, simulator, wrapper_of(job.dut), _COCOTB))
    return built_readable(job.dut, simulator, partial(_build, job, simulator), job.translate)


def _build(job: Job, simulator: Simulator, dut: Dut, wrapper: str) -> Path:
    verilator, waves = job.simulator == "verilator", job.waves is not None
    options = list(VERILATE) if verilator else []
    if verilator and job.waves is not None and job.waves.suffix == ".fst":
        options.append("--trace-fst")
    language = ("--timing",) if verilator else ("-g2012",)

    def compile_in(place: Path) -> None:
        listing = [] if verilator else [f"-Mall={place / DEPENDENCIES}"]
        try:
            with _environment(simulator):
                tool = _tool(job)
                if isinstance(tool, PortsOnlyVerilator):
                    tool.optimise, _ = headers.optimisation(OPTIMISE, dut, simulator, ())
                tool.build(
                    sources=[runner.Verilog(source) for source in recipe.files(place)],
                    build_args=[*design_options(dut, simulator.name), *language, *options, *listing],
                    hdl_toplevel=NAME,
                    build_dir=place,
                    always=True,
                    timescale=("1ns", "1ps"),
                    waves=waves,
                )
        except ToolFailed as error:
            said = f"{first_error(error.text)} (all in {error.log})"
            raise no_build(error, simulator.version_text, f"the DUT {dut.name}", said) from error

        if not verilator:
            check_whole(place / product)

    product = NAME if verilator else "sim.vvp"
    generated = {f"{NAME}.sv": wrapper}
    recipe = Recipe(
        dut,
        simulator,
        NAME,
        generated,
        language,
        (options, OPTIMISE, waves, _COCOTB),
        compile_in,
        product,
    )
    return built(_place(job), recipe)


# The run ----------------------------------------------------------------------------------------------------


def _simulate(
    job: Job, simulator: Simulator, folder: Path, place: Path, progress: Progress | None
) -> dict[str, Any]:
    """Runs the simulator built in `folder` on files in `place`, which belongs to this run alone, and
    returns its answer."""
    _write_job(job, place)
    tool = _tool(job)
    tool.tick = Watch(job, counters(place / "progress"), progress)
    tool.logs = place
    unit = units_folder(place)
    if isinstance(tool, GroupedGhdl) and job.dut.vhdl is not None:
        shutil.copytree(folder, unit, dirs_exist_ok=True)
        tool.words, tool.more = ghdl.command(simulator, job.dut.vhdl), ghdl.waves(job.waves, place)
    if isinstance(tool, GroupedIcarus):
        tool.vcd = job.waves is not None and job.waves.suffix == ".vcd"
    try:
        # Under pytest the runner exits if the results file has a failure; a missing answer says more.
        with contextlib.suppress(SystemExit, ToolFailed):
            tool.test(
                test_module="rtl_tb.engines.cocotb_test",
                hdl_toplevel=NAME,
                hdl_toplevel_lang="verilog" if job.dut.vhdl is None else "vhdl",
                seed=str(job.traffic.seed),
                plusargs=[
                    *(initial_value_arguments(job) if job.simulator == "verilator" else ()),
                    f"+dumpfile_path={place / 'dump.fst'}",
                ],
                build_dir=folder,
                test_dir=unit,
                extra_env={RUN: str(place), **_NO_REWRITING},
                results_xml=str(place / "results.xml"),
                waves=job.waves is not None and job.dut.vhdl is None,
            )
    finally:
        _keep_waves(job, place, unit)
    answer = _read_answer(place / "answer.json", tool.said)
    log = tool.said.read_text(encoding="utf-8", errors="replace") if job.dut.vhdl is not None else ""
    answer["metavalues"] = ghdl.metavalues(job, log, answer["half"])
    return answer


def _write_job(job: Job, place: Path) -> None:
    """Writes the files that rtl_tb/engines/cocotb_test.py finds in its working directory."""
    operands = io.BytesIO()
    np.save(operands, job.dut.layout.pack_operands(job.vectors.operands))
    write_bytes(place / "operands.npy", operands.getbuffer())
    write_bytes(place / "progress", bytes(16))
    reset, traffic = job.dut.reset, job.traffic.on(job.dut)
    settings = {
        "idle": traffic.idle,
        "backpressure": traffic.backpressure,
        "resets": traffic.resets,
        "seed": traffic.seed,
        "timeout_cycles": job.timeout_cycles,
        "reset_cycles": reset.cycles if reset is not None else 1,
        "state": job.dut.instruction.restarts,
        "vhdl": job.dut.vhdl is not None,
        "fill": {path: ghdl.STARTS[job.start] for path in job.unset if job.start in ghdl.STARTS},
    }
    write_bytes(place / "job.json", json.dumps(settings).encode())


def _keep_waves(job: Job, *places: Path) -> None:
    """Moves the waveform to where the job wants it; also that of a run that failed."""
    if job.waves is None:
        return
    for found in (place / name for place in places for name in ("dump.fst", "dump.vcd")):
        if found.is_file():
            job.waves.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(found, job.waves)


def _read_answer(file: Path, log: Path) -> dict[str, Any]:
    text = log.read_text(encoding="utf-8", errors="replace")
    try:
        answer: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RtlError(f"the simulation ended without an answer: {_reason(text)} (all in {log})") from error
    complained = complaint(text) or ghdl.complaint(text)
    if complained:
        raise RtlError(f"the DUT reported an error: {complained} (all in {log})")
    return answer


def _reason(log: str) -> str:
    """Why a simulation ended early: the DUT's own message, or that it called $finish, or an exception of
    the testbench."""
    if (said := ghdl.complaint(log) or ghdl.stopped(log)) is not None:
        return said
    fatal = re.search(r"^(?:\[\d+\] )?%?(?:fatal|error): (.*)", log, re.IGNORECASE | re.MULTILINE)
    if fatal:
        return fatal[1]
    if "SimFailure" in log:
        return "the DUT or the simulator stopped it; does the RTL call $finish, or finish or stop of std.env?"
    raised = re.findall(r"^ *((?:\w+\.)*\w*(?:Error|Exception)\b: .*)", log, re.MULTILINE)
    return raised[-1] if raised else first_error(log)


def _outcome(job: Job, answer: Mapping[str, Any]) -> Outcome:
    layout, count = job.dut.layout, len(job.vectors)
    results = answer["results"]
    answered, unknown = unpack_bits(results, layout)
    codes = {}
    for name, came in answered.items():
        codes[name] = np.zeros((count, *came.shape[1:]), came.dtype)
        codes[name][: len(results)] = came
    outcome = Outcome(
        engine="cocotb",
        simulator=job.simulator,
        version="",
        **codes_of(codes),
        received=np.arange(count) < len(results),
        unknown=np.zeros(count, np.bool_),
    )
    outcome.unknown[: len(results)] = unknown
    if job.dut.vhdl is not None:
        outcome.metavalues = {
            kind: sum(kind in bits for bits in results) for kind in sorted({*"".join(results)} - {*"01"})
        }
    outcome.failures = [ProtocolFailure(**failure) for failure in answer["failures"]]
    outcome.failures += _changed(job, answer["changed"])
    outcome.failures += never_waited(job, len(results), answer["waited"], answer["cycles"])
    outcome.failures.sort(key=lambda one: one.cycle)
    outcome.cycles, outcome.resets = answer["cycles"], answer["resets"]
    return outcome


def _changed(job: Job, changed: Sequence[tuple[int, int, str, str]]) -> list[ProtocolFailure]:
    """The failures among the vectors that were answered again with other bits; X and Z are other bits."""
    if not changed:
        return []
    found = [
        ProtocolFailure("changed_answer", cycle, vector, changed_text(now))
        for cycle, vector, _, now in changed
    ]
    before, x = unpack_bits([bits for _, _, bits, _ in changed], job.dut.layout)
    now, y = unpack_bits([bits for *_, bits in changed], job.dut.layout)
    known = np.flatnonzero(~(x | y))
    of_known = [{name: codes[known] for name, codes in came.items()} for came in (before, now)]
    kept = changed_answers(job.dut, [found[i] for i in known], *of_known) if len(known) else []
    return [one for one, unknown in zip(found, x | y, strict=True) if unknown] + kept
