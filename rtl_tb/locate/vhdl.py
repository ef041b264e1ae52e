"""A unit in VHDL as the Verilog that GHDL's synthesis makes of it, in which changes are tried, and the lines
of VHDL that its lines come from.

    text = synthesised(job, verdict, folder)
    text.origin(72)    # ("result_picker.vhdl", 38, "exp_res <= exp - 1 when sel = '1' else")

GHDL names the place of each operation in a comment above it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rtl_tb import engines
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.text import write
from rtl_tb.dut.vhdl_synthesis import to_verilog
from rtl_tb.dut.wrapper import INSTANCE, wrapper_of
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict, judge, verdict_of

_ORIGIN = re.compile(r"^\s*/\* (?P<file>\S+):(?P<line>\d+):\d+\s+\*/$")
_MODULE = re.compile(r"^module ")
_STEP = re.compile(r"^  assign (?P<name>\w+) = (?P<value>.*);(?P<note>\s*//.*)?$")
"""One operation of GHDL's text: a name of its own, n12_o, or a signal's."""
_OWN = re.compile(r"\bn\d+_o\b")
_PLAIN = re.compile(r"[\w']+(?:\[[\d:]+\])?|\{[^{}]*\}")
_LONGEST = 200
"""Characters of an expression that are put together: one of a line of VHDL, and no loop's."""
_TAKEN = re.compile(r"<= (?P<name>n\d+_o);$")
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
    """A run of the Verilog that was made of a unit, and its verdict.

    Attributes:
        without: vectors of the unit's run that this run lacks, since the Verilog has other results for them.
    """

    job: Job
    verdict: Verdict
    without: int = 0

    def origin(self, line: int) -> Origin | None:
        """The line of VHDL of which a line of the Verilog was made; None: of none. What an output gets stands
        before the first operation, and has the line of that. What a register takes has the line of that
        value, since its own is where the process begins."""
        every = self.job.dut.sources[0].read_text(encoding="utf-8").split("\n")
        start = next((at for at in range(line - 1, -1, -1) if _MODULE.match(every[at])), 0)
        end = next((at for at in range(line, len(every)) if _MODULE.match(every[at])), len(every))
        if taken := _TAKEN.search(every[line - 1]):
            made = f"  assign {taken['name']} = "
            line = next((at + 1 for at in range(start, end) if every[at].startswith(made)), line)
        behind = every[line:end] if _OUTPUT.match(every[line - 1]) else []
        for text in (*reversed(every[start:line]), *behind):
            if found := _ORIGIN.match(text):
                file, number = Path(found["file"]), int(found["line"])
                lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
                return Origin(file, number, lines[number - 1].strip())
        return None


def synthesised(job: Job, verdict: Verdict, folder: Path, most: float = 0.0) -> Synthesised:
    """Runs what GHDL's synthesis makes of a unit in VHDL on the vectors of a verdict.

    Args:
        most: the share of the vectors for which it may have other results; they are left out.

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
    if not others.any():
        return Synthesised(made, judge(verdict.vectors, outcome, made.dut.compare))
    if others.mean() > most or not verdict.failed[~others].any() or job.dut.instruction.state:
        raise RtlError(f"it has other results for {int(others.sum()):,} of {len(others):,} vectors")
    same = np.flatnonzero(~others)
    made = made.at(same)
    return Synthesised(made, verdict_of("fast", made), len(others) - len(same))


def verilog_of(dut: Dut, folder: Path) -> Dut:
    """A unit in VHDL as one of Verilog, which GHDL's synthesis writes; raises as `synthesised`. Its wrapper
    is synthesised, too, since ports of other types than vectors are others in Verilog."""
    assert dut.vhdl is not None
    folder.mkdir(parents=True, exist_ok=True)
    write(around := folder / f"{NAME}.vhd", wrapper_of(dut))
    made = to_verilog(Design((*dut.sources, around), NAME), dut.vhdl, folder, f"the DUT {dut.name}")
    text = made.sources[0].read_text(encoding="utf-8")
    text = in_expressions(text)
    wrapper = text[text.index(f"\nmodule {NAME}") :]
    top = _INSTANCE.search(wrapper)
    assert top is not None
    write(outer := folder / "wrapper.v", wrapper)
    write(inner := folder / f"{dut.top}.v", text.removesuffix(wrapper))
    return replace(dut, sources=(inner,), netlist=outer, top=top["module"], parameters={}, vhdl=None)


def in_expressions(text: str) -> str:
    """GHDL's text, which has a name for each operation, in the expressions of the VHDL: an operation stands
    where the only other one of its line reads it, and a signal's value has the line that assigns it."""
    modules = re.split(r"(?m)^(?=module )", text)
    return "".join(map(_module_in_expressions, modules))


def _module_in_expressions(text: str) -> str:
    lines = text.split("\n")
    uses = Counter(_OWN.findall(text))
    at = {step["name"]: (number, step) for number, line in enumerate(lines) if (step := _STEP.match(line))}

    def place(number: int) -> tuple[str, str] | None:
        found = _ORIGIN.match(lines[number - 1])
        return None if found is None else (found["file"], found["line"])

    # A name of its own is in its declaration, where it is assigned and where it is read.
    inner = {name for name in at if _OWN.fullmatch(name) and uses[name] == 3}
    values: dict[str, str] = {}
    gone: set[str] = set()
    for name, (number, step) in at.items():  # what a value reads stands before it, or stays
        value = step["value"]
        for read in dict.fromkeys(_OWN.findall(value)):
            same = read in values and place(at[read][0]) == place(number) is not None
            part = values.get(read, "")
            if read in inner and same and len(value) + len(part) < _LONGEST and f"{read}[" not in value:
                value = re.sub(rf"\b{read}\b", _operand(part).replace("\\", r"\\"), value)
                gone.add(read)
        values[name] = value
    for name, (_, step) in at.items():
        if step["note"] and (read := step["value"]) in inner & values.keys():
            values[name] = values[read]
            gone.add(read)
    made: list[str] = []
    for line in lines:
        step = _STEP.match(line)
        if step is None:
            declared = re.match(r"  wire (?:\[[^]]*\] )?(\w+);$", line)
            if declared is None or declared[1] not in gone:
                made.append(line)
        elif step["name"] in gone:
            if _ORIGIN.match(made[-1]):
                made.pop()
        else:
            source = at.get(step["value"])
            if step["note"] and source and _ORIGIN.match(made[-1]) and _ORIGIN.match(lines[source[0] - 1]):
                made[-1] = lines[source[0] - 1]
            made.append(f"  assign {step['name']} = {values[step['name']]};{step['note'] or ''}")
    return "\n".join(made)


def _operand(value: str) -> str:
    """A value as an operand. The signs of its own operands end with it: an unsigned one next to it would make
    them unsigned, too."""
    if "$signed" in value:
        return f"{{{value}}}"
    return value if _PLAIN.fullmatch(value) else f"({value})"
