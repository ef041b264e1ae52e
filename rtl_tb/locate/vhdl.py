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
from rtl_tb.engines import fast
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict, judge, verdict_of
from rtl_tb.simulators import simulators

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
_BEGIN = re.compile(r"^  (?!assign |reg |wire )\w+ \w+ \($")
"""The first line of an instance; each of its connections has a line."""
_CONNECTION = re.compile(r"^    \.(?P<port>\w+)\((?P<name>\w+)\)(?P<end>,|\);)$")
_DECLARED = re.compile(r"^ +\(?(?:wire|output) +(?P<range>\[[^]]*\] )?(?P<name>\w+)[;,)]+$")
_NAME = re.compile(r"\w+")
_REPLICATION = re.compile(r"\{\d+\{")


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
    dut, verilator = verilog_of(job.dut, folder), simulators.verilator()
    made = replace(job, dut=dut, simulator="verilator", program=None, waves=None)
    # The text is new, so that no build of it can be used again.
    made = replace(made, program=fast.build_once(made, verilator, wrapper_of(dut), fast.BuildOptions()))
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
    where the only other one of its line, or an instance, reads it, and a signal's value has the line that
    assigns it. A signal is the net at the output that drives it. That halves a text of many instances."""
    modules = re.split(r"(?m)^(?=module )", text)
    return "".join(_with_inputs(_module_in_expressions(_with_outputs(each))) for each in modules)


def _with_outputs(text: str) -> str:
    """A module in which an output of an instance drives the signal that gets its value and nothing else,
    without the names between the two."""
    lines: list[str | None] = [*text.split("\n")]
    uses = _uses(text)
    ranges = {found["name"]: found["range"] for each in text.split("\n") if (found := _DECLARED.match(each))}
    declared = {found["name"]: at for at, each in enumerate(lines) if (found := _DECLARED.match(each or ""))}
    steps = [(at, step) for at, each in enumerate(lines) if (step := _STEP.match(each or ""))]
    driven = {step["name"] for _, step in steps}
    read = {step["value"]: (at, step["name"]) for at, step in steps}
    for at, line in enumerate(lines):
        if (found := _CONNECTION.match(line or "")) is None or found["name"] in driven:
            continue
        name = found["name"]
        # A name between two is in its declaration, where it gets its value and where it is read.
        while name in read and uses[name] == 3 and ranges.get(name, "-") == ranges.get(read[name][1], "+"):
            taken, target = read[name]
            gone = [declared[name], taken]
            if _ORIGIN.match(lines[taken - 1] or ""):
                gone.append(taken - 1)
            for each in gone:
                lines[each] = None
            name = target
        lines[at] = f"    .{found['port']}({name}){found['end']}"
    return "\n".join(each for each in lines if each is not None)


def _with_inputs(text: str) -> str:
    """A module in which an input of an instance gets an expression, with the line of that."""
    lines = text.split("\n")
    uses = _uses(text)
    at = {
        step["name"]: (number, step["value"])
        for number, each in enumerate(lines)
        if (step := _STEP.match(each))
    }
    gone = set[int]()
    names = set[str]()
    written: dict[int, str] = {}
    instance = origin = ""
    for number, line in enumerate(lines):
        if _BEGIN.match(line) and _ORIGIN.match(lines[number - 1]):
            instance = origin = lines[number - 1]
        if not instance or (found := _CONNECTION.match(line)) is None:
            continue
        name, here = found["name"], instance
        if _OWN.fullmatch(name) and uses[name] == 3 and name in at and len(at[name][1]) < _LONGEST:
            made, value = at[name]
            names.add(name)
            gone.add(made)
            if _ORIGIN.match(lines[made - 1]):
                here = lines[made - 1]
                gone.add(made - 1)
            line = f"    .{found['port']}({value}){found['end']}"
        written[number] = line if here == origin else f"{here}\n{line}"
        origin = here
        if found["end"] != ",":
            instance = ""
    kept = (
        written.get(number, line)
        for number, line in enumerate(lines)
        if number not in gone and not ((own := _DECLARED.match(line)) and own["name"] in names)
    )
    return "\n".join(kept)


def _uses(text: str) -> Counter[str]:
    """How often a module has each name, without comments."""
    return Counter(
        name for line in text.split("\n") if not _ORIGIN.match(line) for name in _NAME.findall(line)
    )


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
                value = _with_operand(value, read, part)
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


def _with_operand(value: str, name: str, part: str) -> str:
    """A value with a part for the name of it; the parts of a concatenation within one are its own."""
    joined = re.compile(rf"(?<=[{{ ]){name}(?=[,}}])")
    if part.startswith("{") and joined.search(value) and _is_concatenation(part):
        return joined.sub(lambda _: part[1:-1], value)
    return re.sub(rf"\b{name}\b", lambda _: _operand(part), value)


def _is_concatenation(value: str) -> bool:
    """Whether a value is one concatenation, and no replication."""
    depth, ends = 0, list[int]()
    for at, sign in enumerate(value):
        depth += (sign == "{") - (sign == "}")
        if not depth:
            ends.append(at)
    return ends == [len(value) - 1] and not _REPLICATION.match(value)


def _operand(value: str) -> str:
    """A value as an operand. The signs of its own operands end with it: an unsigned one next to it would make
    them unsigned, too."""
    if "$signed" in value:
        return f"{{{value}}}"
    return value if _PLAIN.fullmatch(value) else f"({value})"
