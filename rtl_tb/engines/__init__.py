"""Engines: three ways to run a DUT on the same vectors, with the same verdict.

`fast` (verilated shared library driven from NumPy), `selfcheck` (generated plain SystemVerilog testbench) and `cocotb`
(cocotb testbench, module cocotb_engine). Each module has `run(job, progress=None) -> Outcome`; see rtl_tb/engines/job.py.
"""

from __future__ import annotations

from importlib import import_module

from golden.errors import nearest
from rtl_tb.engines.job import SIMULATORS, Job, Outcome, Progress
from rtl_tb.errors import RtlError

_MODULES = {"fast": "fast", "selfcheck": "selfcheck", "cocotb": "cocotb_engine"}
ENGINES = tuple(_MODULES)


def check_choice(engine: str, simulator: str) -> None:
    """Raises RtlError for an unknown engine or simulator, or an engine that does not work with the simulator."""
    for kind, value, known in (("engine", engine, ENGINES), ("simulator", simulator, SIMULATORS)):
        if value not in known:
            raise RtlError(f"{kind} is '{value}', expected one of {', '.join(known)}{nearest(value, known)}")
    if (engine, simulator) == ("fast", "icarus"):
        raise RtlError("engine 'fast' needs Verilator; with Icarus use selfcheck or cocotb")


def run(engine: str, job: Job, progress: Progress | None = None) -> Outcome:
    """Runs a job on the engine of that name.

    Raises:
        RtlError: no such engine, or one of its subclasses, see rtl_tb/errors.py.
    """
    check_choice(engine, job.simulator)
    outcome: Outcome = import_module(f"rtl_tb.engines.{_MODULES[engine]}").run(job, progress)
    return outcome
