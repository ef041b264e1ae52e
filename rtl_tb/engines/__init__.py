"""Engines: three ways to run a DUT on the same vectors, with the same verdict.

`fast` (verilated program that reads and writes files), `selfcheck` (generated plain SystemVerilog testbench)
and `cocotb` (cocotb testbench, module cocotb_engine). Each module has `build(job, simulator) -> Path` and
`run(job, progress=None) -> Outcome`; see rtl_tb/engines/job.py.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.errors import nearest
from rtl_tb.engines.job import SIMULATORS, Job, Outcome, Progress
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators
from rtl_tb.simulators.commercial import COMMERCIAL

if TYPE_CHECKING:
    from rtl_tb.dut.description import Dut

_MODULES = {"fast": "fast", "selfcheck": "selfcheck", "cocotb": "cocotb_engine"}
ENGINES = tuple(_MODULES)


def check_choice(engine: str, simulator: str) -> None:
    """Raises RtlError for an unknown engine or simulator,
    or an engine that does not work with the simulator."""
    for kind, value, known in (("engine", engine, ENGINES), ("simulator", simulator, SIMULATORS)):
        if value not in known:
            raise RtlError(f"{kind} is '{value}', expected one of {', '.join(known)}{nearest(value, known)}")
    if (engine, simulator) == ("fast", "icarus"):
        raise RtlError("engine 'fast' needs Verilator; with Icarus use selfcheck or cocotb")
    if engine != "cocotb" and simulator == "ghdl":
        raise RtlError(f"engine '{engine}' does not run on GHDL; use --engine cocotb")
    if engine != "selfcheck" and simulator in COMMERCIAL:
        raise RtlError(f"engine '{engine}' does not run on {simulator}; use --engine selfcheck")


def choice_of(dut: Dut, engine: str, simulator: str) -> tuple[str, str]:
    """The engine and the simulator that a DUT gets if these are requested: VHDL runs in GHDL under
    cocotb, in place of the default as well.

    Raises:
        RtlError: an unknown one, or one that does not run the DUT's language.
    """
    check_choice(engine, simulator)
    if dut.vhdl is None:
        if simulator == "ghdl":
            raise RtlError(
                f"{dut.name} is Verilog or SystemVerilog, and GHDL runs VHDL; leave out --sim ghdl"
            )
        return engine, simulator
    if engine == "selfcheck" or simulator not in ("ghdl", "verilator"):
        raise RtlError(
            f"{dut.name} is VHDL, which only GHDL runs, under the engine cocotb: --engine cocotb --sim ghdl"
        )
    return "cocotb", "ghdl"


def build(engine: str, job: Job) -> Path:
    """Compiles a job's DUT for the engine of that name, or finds the build of the same content; for
    `Job.program`.

    Raises:
        RtlError: no such engine, or one of its subclasses, see rtl_tb/errors.py.
    """
    program: Path = _module(engine, job).build(job, simulators.find(job.simulator))
    return program


def built(engine: str, job: Job) -> Job:
    """The job with its program; raises as `build`."""
    return replace(job, program=build(engine, job))


def run(engine: str, job: Job, progress: Progress | None = None) -> Outcome:
    """Runs a job on the engine of that name; raises as `build`."""
    outcome: Outcome = _module(engine, job).run(job, progress)
    return outcome


def _module(engine: str, job: Job) -> Any:
    check_choice(engine, job.simulator)
    return import_module(f"rtl_tb.engines.{_MODULES[engine]}")
