"""A unit in VHDL as the Verilog that GHDL's synthesis makes of it, in which changes are tried, and the lines
of VHDL that its lines come from.

    text = synthesised(job, verdict, folder)
    text.origin(72)    # ("result_picker.vhdl", 38, "exp_res <= exp - 1 when sel = '1' else")

GHDL names the place of each operation in a comment above it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from golden.files.escape import SYSTEMVERILOG
from rtl_tb import engines
from rtl_tb.dut import vhdl
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.text import write
from rtl_tb.dut.wrapper import INSTANCE, wrapper_of
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict, judge
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator

_ORIGIN = re.compile(r"^\s*/\* (?P<file>\S+):(?P<line>\d+):\d+\s+\*/$")
_MODULE = re.compile(r"^(?:module|entity) ")
_INSTANCE = re.compile(rf"^  (?P<module>\S+) {INSTANCE} \(", re.MULTILINE)
_MESSAGE = re.compile(r"^\S+:\d+:\d+:")
_NO_VERILOG = {
    r"^  (\w+) <= std_logic_vector\(abs \$signed\((\S+)\)\);": r"  assign \1 = $signed(\2) < 0 ? -\2 : \2;",
    r"^  (\w+) <= (\S+) when (.+) else (\S+);": r"  assign \1 = \3 ? \2 : \4;",  # minimum, maximum
    r"^  assign (\w+) = (\S+) (/|%) (\S+); // (?:sdiv|srem)": r"  assign \1 = $signed(\2) \3 $signed(\4);",
    r"^  assign (\w+) = (\S+) % (\S+); // smod": (
        r"  assign \1 = $signed(\2) % $signed(\3) != 0 && ($signed(\2) < 0) != ($signed(\3) < 0) ? "
        r"$signed(\2) % $signed(\3) + $signed(\3) : $signed(\2) % $signed(\3);"
    ),
}
"""Lines that GHDL 2.0 writes as VHDL, or without the sign, and what they mean in Verilog."""
_CHOICES = re.compile(r"^    case \(\w+\)\n(?:      \S+: (?P<target>\w+) <= \S+;\n)+", re.MULTILINE)
_OTHERS = re.compile(r"with \S+ select (?P<target>\w+) <=(?:\s+\S+ when \S+,)*\s+(?P<value>\S+) when others;")
_OF_GHDL = {"begin", "else", "if", "negedge", "or", "posedge"}
_RESERVED = re.compile(rf"(?<!\$)\b({'|'.join(sorted(SYSTEMVERILOG - _OF_GHDL))})\b")
"""Words that Verilog reserves and VHDL does not: names, unless they begin a line of GHDL's."""
_FIRST_WORD = re.compile(r"^[ (]*\w*")


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
        """The line of VHDL of which a line of the Verilog was made; None: of none."""
        before = self.job.dut.sources[0].read_text(encoding="utf-8").split("\n")[:line]
        for text in reversed(before):
            if _MODULE.match(text):
                return None
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
    simulator, unit = simulators.ghdl(), dut.vhdl
    assert unit is not None
    folder.mkdir(parents=True, exist_ok=True)
    write(around := folder / f"{NAME}.vhd", wrapper_of(dut))
    top = vhdl.analyse(simulator, unit, [*dut.sources, around], folder, NAME, f"the DUT {dut.name}")
    netlist = {
        language: _synthesis(simulator, [*unit.options, "--latches", f"--out={language}", top], folder)
        for language in ("verilog", "vhdl")
    }
    text = _in_words_of_verilog(netlist["verilog"], netlist["vhdl"])
    for copy, path in vhdl.copies(unit.files(dut.sources)).items():
        text = text.replace(f"/* {copy}:", f"/* {path.resolve()}:")
    wrapper = text[text.index(f"\nmodule {NAME}") :]
    unit_top = _INSTANCE.search(wrapper)
    assert unit_top is not None
    write(outer := folder / f"{NAME}.v", wrapper)
    write(inner := folder / f"{dut.top}.v", text.removesuffix(wrapper))
    return replace(dut, sources=(inner,), netlist=outer, top=unit_top["module"], parameters={}, vhdl=None)


def _synthesis(simulator: Simulator, arguments: Sequence[str], folder: Path) -> str:
    """What GHDL's synthesis prints, from the first module or entity on: a message may have further lines,
    which quote the VHDL."""
    try:
        said = simulators.run(
            [*simulator.start, "--synth", *arguments],
            folder=folder,
            env=simulator.env,
            log=folder / "synthesis.log",
            timeout=simulators.build_limit(),
        )
    except simulators.ToolFailed as error:
        raise RtlError(f"{simulator.version_text} refused it: {vhdl.first_complaint(error.text)}") from error
    lines = [line for line in said.split("\n") if not _MESSAGE.match(line)]
    first = next((at for at, line in enumerate(lines) if _MODULE.match(line)), 0)
    return "\n".join(lines[first:])


def _in_words_of_verilog(text: str, netlist: str) -> str:
    """The Verilog of GHDL 2.0 without its errors: what it writes as VHDL, choices without their `when
    others`, which the same netlist in VHDL has, and names that Verilog reserves."""
    for written, meant in _NO_VERILOG.items():
        text = re.sub(written, meant, text, flags=re.MULTILINE)
    others = {found["target"]: _literal(found["value"]) for found in _OTHERS.finditer(netlist)}

    def whole(case: re.Match[str]) -> str:
        target = case["target"]
        return f"{case[0]}      default: {target} <= {others[target]};\n" if target in others else case[0]

    text = _CHOICES.sub(whole, text)
    return "\n".join(line if _ORIGIN.match(line) else _without_reserved(line) for line in text.split("\n"))


def _without_reserved(line: str) -> str:
    begin = _FIRST_WORD.match(line)
    rest = 0 if begin is None else begin.end()
    return line[:rest] + _RESERVED.sub(r"\1_", line[rest:])


def _literal(value: str) -> str:
    """A literal of VHDL, or a name, in Verilog."""
    if value[0] not in "\"'":
        return value
    bits = value.strip("\"'").replace("-", "x")
    return f"{len(bits)}'b{bits}"
