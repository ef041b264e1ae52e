"""The text of a unit as one tool reads it: its sources in one, without comments, with the place of each line.

Which tool reads shows in the macros that it defines by itself, and in pragmas such as `translate_off`, which
synthesis heeds and simulators do not.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rtl_tb.dut.description import Dut
from rtl_tb.engines.builds import HDL, design_options
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.simulators import simulators

_NOT_VERILATOR = ("-UVERILATOR", "-Uverilator", "-Uverilator3")
SIMULATORS = {
    "verilator": (),
    "icarus": (*_NOT_VERILATOR, "-D__ICARUS__=1"),
    "vcs": (*_NOT_VERILATOR, "-DVCS=1"),
    "questa": (*_NOT_VERILATOR, "-DQUESTA=1", "-DMODEL_TECH=1"),
    "xcelium": (*_NOT_VERILATOR, "-DXCELIUM=1", "-DINCA=1"),
}
"""What each simulator defines, as options of Verilator, whose preprocessor reads for all."""
SYNTHESIS = {
    "synthesis": (*_NOT_VERILATOR, "-DSYNTHESIS=1"),
    "Yosys": (*_NOT_VERILATOR, "-DSYNTHESIS=1", "-DYOSYS=1"),
}
"""What is defined in synthesis, in general and by Yosys."""
_QUIET = ("-Wno-lint", "-Wno-style", "-Wno-REDEFMACRO")
_VENDOR = r"(?:synopsys|synthesis|pragma|cadence|ambit|exemplar|rtl_synthesis|xilinx|altera)"
_PRAGMA = re.compile(
    rf"\s*{_VENDOR}\s*,?\s*(?:(?P<off>translate_off|synthesis_off|off)|(?P<on>translate_on|synthesis_on|on))\b"
)
_PIECES = re.compile(
    r'"(?:\\.|[^"\\\n])*"|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|\(\*(?P<attribute>\s*synthesis\s*,[^*]*)\*\)',
    re.DOTALL,
)
_LINE = re.compile(r'`line\s+(\d+)\s+"([^"]*)"')


@dataclass(frozen=True)
class Reading:
    """A unit's text as a tool reads it: `text` can be compiled, and has a `line for each file."""

    text: str

    def lines(self) -> list[tuple[str, str]]:
        """(code, "file:line") of every line with code: no comment, and one space for several."""
        found, file, number = [], "", 0
        for line in _PIECES.sub(_without_comments, self.text).split("\n"):
            if (mark := _LINE.match(line.strip())) is not None:
                file, number = Path(mark[2]).name, int(mark[1])
                continue
            if code := " ".join(line.split()):
                found.append((code, f"{file}:{number}"))
            number += 1
        return found

    def differs(self, other: Reading) -> str:
        """Where another reading first has other code, "file:line"; "" where it has the same."""
        mine, its = self.lines(), other.lines()
        for (one, place), (two, _) in zip(mine, its, strict=False):
            if one != two:
                return place
        return "" if len(mine) == len(its) else max(mine, its, key=len)[min(len(mine), len(its))][1]


def as_run(job: Job) -> Reading | None:
    """What the simulator of a job reads; None where nobody can tell, or there is no Verilog."""
    try:
        return read(job.dut, SIMULATORS[job.simulator], pragmas=False)
    except RtlError:
        return None


def read(dut: Dut, options: Sequence[str], pragmas: bool) -> Reading | None:
    """How a tool reads a DUT: with these options of Verilator's preprocessor, and heeding pragmas or not.
    None where the DUT has no source in Verilog.

    Raises:
        SimulatorMissing: there is no Verilator. ElaborationError: it refuses the text.
    """
    sources = [path for path in dut.sources if path.suffix in HDL and path.suffix != ".vlt"]
    if not sources:
        return None
    words: list[str | Path] = ["-E", "--pp-comments", *_QUIET, *design_options(dut, "verilator"), *options]
    words += sources
    with tempfile.TemporaryDirectory(prefix="mmagold_text_") as name:
        text = simulators.elaborate(simulators.verilator(), words, folder=Path(name), what=dut.name)
    if (warned := re.search(r"^%(?:Warning|Error)\S* (.*)", text, re.MULTILINE)) is not None:
        raise ElaborationError(f"Verilator's preprocessor warns: {warned[1]}")
    return Reading(_without_off(text) if pragmas else text)


def _without_comments(piece: re.Match[str]) -> str:
    return piece[0] if piece[0].startswith('"') else " " + "\n" * piece[0].count("\n")


def _without_off(text: str) -> str:
    """The text without what stands from a pragma `translate_off` to `translate_on`; lines keep their
    numbers."""
    kept: list[str] = []
    at, off = 0, -1
    for piece in _PIECES.finditer(text):
        said = _PRAGMA.match(piece["line"] or piece["block"] or piece["attribute"] or "")
        if said is None:
            continue
        if said["off"] and off < 0:
            kept.append(text[at : piece.start()])
            off = piece.start()
        elif said["on"] and off >= 0:
            kept.append(_only_places(text[off : piece.end()]))
            at, off = piece.end(), -1
    if off >= 0:
        return "".join([*kept, _only_places(text[off:])])
    return "".join([*kept, text[at:]])


def _only_places(text: str) -> str:
    """Empty lines in place of code; what says where the next line stands remains."""
    return "\n".join(line if line.startswith("`line") else "" for line in text.split("\n"))
