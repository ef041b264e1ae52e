"""A unit in VHDL as the Verilog that GHDL's synthesis makes of it, in which changes are tried, and the lines
of VHDL that its lines come from.

    text = synthesised(job, verdict, folder)
    text.origin(72)    # ("result_picker.vhdl", 38, "exp_res <= exp - 1 when sel = '1' else")

GHDL names the place of each operation in a comment above it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from rtl_tb import engines
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.text import write
from rtl_tb.dut.vhdl_synthesis import to_verilog
from rtl_tb.dut.wrapper import INSTANCE, wrapper_of
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict, judge

_ORIGIN = re.compile(r"^\s*/\* (?P<file>\S+):(?P<line>\d+):\d+\s+\*/$")
_MODULE = re.compile(r"^module ")
_OUTPUT = re.compile(r"^  assign ")
_INSTANCE = re.compile(rf"^  (?P<module>\S+) {INSTANCE} \(", re.MULTILINE)


@dataclass(frozen=True)
class Origin:
    """A line of VHDL."""

    file: Path
    line: int
    text: str


@dataclass(frozen=True)
class Synthesised:
    """A run of the Verilog that was made of a unit, and its verdict."""

    job: Job
    verdict: Verdict

    def origin(self, line: int) -> Origin | None:
        """The line of VHDL of which a line of the Verilog was made; None: of none. What an output gets stands
        before the first operation, and has the line of that."""
        every = self.job.dut.sources[0].read_text(encoding="utf-8").split("\n")
        start = next((at for at in range(line - 1, -1, -1) if _MODULE.match(every[at])), 0)
        end = next((at for at in range(line, len(every)) if _MODULE.match(every[at])), len(every))
        behind = every[line:end] if _OUTPUT.match(every[line - 1]) else []
        for text in (*reversed(every[start:line]), *behind):
            if found := _ORIGIN.match(text):
                file, number = Path(found["file"]), int(found["line"])
                lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
                return Origin(file, number, lines[number - 1].strip())
        return None


def synthesised(job: Job, verdict: Verdict, folder: Path) -> Synthesised:
    """Runs what GHDL's synthesis makes of a unit in VHDL on the vectors of a verdict.

    Raises:
        SimulatorMissing: there is no GHDL or no Verilator. RtlError: GHDL refuses to synthesise the unit, its
            ports are no vectors, or the Verilog has other results than the unit: some versions of GHDL write
            a few expressions wrongly (docs/simulators.md).
    """
    made = replace(job, dut=verilog_of(job.dut, folder), simulator="verilator", program=None, waves=None)
    outcome = engines.run("fast", made)
    # Bits that are neither 0 nor 1 in VHDL are one of these in Verilog.
    differ = (outcome.actual != verdict.outcome.actual).reshape(len(verdict.vectors), -1).any(axis=1)
    others = differ & ~verdict.unknown
    others |= outcome.received != verdict.outcome.received
    if others.any():
        raise RtlError(f"it has other results for {int(others.sum()):,} of {len(others):,} vectors")
    return Synthesised(made, judge(verdict.vectors, outcome, made.dut.compare))


def verilog_of(dut: Dut, folder: Path) -> Dut:
    """A unit in VHDL as one of Verilog, which GHDL's synthesis writes; raises as `synthesised`. Its wrapper
    is synthesised, too, since ports of other types than vectors are others in Verilog."""
    assert dut.vhdl is not None
    folder.mkdir(parents=True, exist_ok=True)
    write(around := folder / f"{NAME}.vhd", wrapper_of(dut))
    made = to_verilog(Design((*dut.sources, around), NAME), dut.vhdl, folder, f"the DUT {dut.name}")
    text = made.sources[0].read_text(encoding="utf-8")
    wrapper = text[text.index(f"\nmodule {NAME}") :]
    top = _INSTANCE.search(wrapper)
    assert top is not None
    write(outer := folder / "wrapper.v", wrapper)
    write(inner := folder / f"{dut.top}.v", text.removesuffix(wrapper))
    return replace(dut, sources=(inner,), netlist=outer, top=top["module"], parameters={}, vhdl=None)
