"""GHDL for the cocotb engine: how a unit in VHDL is built and run, and what its log says of it."""

from __future__ import annotations

import re
from pathlib import Path

from rtl_tb.dut.description import Dut
from rtl_tb.dut.vhdl import Vhdl, analyse
from rtl_tb.dut.wrapper import NAME
from rtl_tb.engines.builds import Recipe
from rtl_tb.errors import RtlError
from rtl_tb.simulators.simulators import Simulator

_TEXT = re.compile(r'--[^\n]*|/\*.*?\*/|"(?:""|[^"\n])*"', re.DOTALL)
"""Comments and strings."""
_OUTSIDE = re.compile(r"\bmmagold_dut\b|<<\s*(?:signal|variable|constant)\s+[.^@]", re.IGNORECASE)
"""The checker's own entity, and external names that lead out of the unit."""
_COMPLAINT = re.compile(r"^(?P<place>\S+:\d+:\d+):@(?P<time>\w+):\((?:assertion|report) (?:error|failure)\): (?P<text>.*)", re.MULTILINE)


def recipe(dut: Dut, simulator: Simulator, wrapper: str, more: object) -> Recipe:
    """How a unit and its wrapper become a folder that `command` runs in."""
    vhdl = dut.vhdl
    assert vhdl is not None
    check_reach(dut, vhdl)

    def compile_in(place: Path) -> None:
        file = place / f"{NAME}.vhd"
        analyse(simulator, vhdl, [*dut.sources, file], place, NAME, f"the DUT {dut.name}")

    product = vhdl.library
    return Recipe(dut, simulator, NAME, {f"{NAME}.vhd": wrapper}, vhdl.options, more, compile_in, product)


def check_reach(dut: Dut, vhdl: Vhdl) -> None:
    """Refuses a unit that reaches into what checks it; raises RtlError."""
    for path in vhdl.files(dut.sources):
        named = _OUTSIDE.search(code_of(path))
        if named:
            raise RtlError(
                f"{dut.name}: {path.name} has '{named[0]}', which leads out of the unit; a unit that reaches into "
                "what checks it proves nothing"
            )


def code_of(path: Path) -> str:
    """The text of a file without comments, and with empty strings."""
    text = path.read_text(encoding="latin-1")
    return _TEXT.sub(lambda match: '""' if match[0].startswith('"') else " ", text)


def command(simulator: Simulator, vhdl: Vhdl) -> list[str]:
    """The command that runs a unit in a copy of its folder."""
    return [*simulator.start, "-r", *vhdl.options, NAME]


def waves(file: Path | None, place: Path) -> list[str]:
    """Options for a waveform in the format of the file's suffix."""
    if file is None:
        return []
    kind = "vcd" if file.suffix == ".vcd" else "fst"
    return [f"--{kind}={place / f'dump.{kind}'}"]


def complaint(log: str) -> str | None:
    """What the unit complained of: a failed assertion, or a report, of severity error or failure. None in any other
    log."""
    found = _COMPLAINT.search(log)
    return None if found is None else f"{found['text'].strip()} ({found['place']}, at {found['time']})"
