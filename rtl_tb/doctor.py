"""`mmagold doctor`: which simulators are here, whether they are new enough,
and whether a small DUT runs on each.

The trial takes the whole way of `mmagold rtl check`: description, wrapper, build, run, verdict. A tool chain
that breaks at any point (no C++ compiler, no make, no libpython for cocotb) is named with the tool's own
message and the remedy.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.errors import MmagoldError
from golden.vectors.vectorset import default_set
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job
from rtl_tb.runs.verdict import verdict_of
from rtl_tb.simulators import simulators, translators
from rtl_tb.simulators.simulators import Simulator

if TYPE_CHECKING:
    from rich.console import Console

Report = Callable[[str, int, int], None]
UNIT = (
    "unit: doctor\nshape: {k: 1}\nformats: {a: s8, b: s8, c: s32, d: s32}\nprogram: [integer_dot_add: {}]\n"
)
RTL = """module doctor (input signed [7:0] a, input signed [7:0] b, input signed [31:0] c, output signed [31:0] d);
    assign d = a * b + c;
endmodule
"""  # noqa: E501
DUT = """dut: doctor
top: doctor
sources: [doctor.sv]
unit: doctor_unit.yaml
handshake: {kind: combinational}
ports: {a: a, b: b, c: c, d: d}
"""
TOOLS = (
    ("g++", ("g++", "c++", "clang++"), "compiles what Verilator writes", "apt-get install g++"),
    ("make", ("make", "gmake"), "builds what Verilator writes", "apt-get install make"),
)
OPTIONAL = (
    ("VCS", ("vcs",), "runs the selfcheck testbench"),
    ("Questa", ("qrun", "vsim"), "runs the selfcheck testbench"),
    ("Xcelium", ("xrun",), "runs the selfcheck testbench"),
    ("DSim", ("dsim",), "runs the selfcheck testbench"),
    ("Surfer", ("surfer",), "optional: shows waveforms"),
    ("GTKWave", ("gtkwave",), "optional: shows waveforms"),
)
LANGUAGES = (
    ("Yosys", translators.yosys, "optional, for SystemVerilog that Icarus cannot read"),
    ("GHDL", simulators.ghdl, "optional, for units in VHDL"),
)
VHDL = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity doctor is
  port (a, b : in signed(7 downto 0); c : in signed(31 downto 0); d : out signed(31 downto 0));
end entity;
architecture rtl of doctor is
begin
  d <= a * b + c;
end architecture;
"""
TRIALS = (
    ("selfcheck", "icarus"),
    ("cocotb", "icarus"),
    ("selfcheck", "verilator"),
    ("fast", "verilator"),
    ("cocotb", "verilator"),
)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: the tool or the trial.
        ok: found and new enough, or the trial passed.
        required: whether `mmagold rtl` needs it; commercial simulators and viewers are not.
        version: version or "".
        detail: where it is, what it is for, or what is wrong and how to fix it.
    """

    name: str
    ok: bool
    required: bool
    version: str
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return asdict(self)


def doctor(progress: Report | None = None) -> list[Row]:
    """Examines this machine; never raises for what is missing or broken.
    `progress` gets (what, done, total)."""
    rows = [*_simulators(), _cocotb(), *_tools(), _perl(), *_optional()]
    trials = [*TRIALS, *([("cocotb", "ghdl")] if _is_here(simulators.ghdl) else [])]
    for number, (engine, simulator) in enumerate(trials):
        if progress:
            progress(f"trying {engine} on {simulator}", number, len(trials))
        rows.append(_trial(engine, simulator))
    return rows


def _simulators() -> Iterator[Row]:
    for name, find in (("Icarus Verilog", simulators.icarus), ("Verilator", simulators.verilator)):
        try:
            found: Simulator = find()
        except MmagoldError as error:
            yield Row(name, False, True, "", str(error))
        else:
            yield Row(
                name,
                True,
                True,
                found.version_text.removeprefix(f"{name} "),
                f"{found.compiler} ({found.origin})",
            )


def _cocotb() -> Row:
    if importlib.util.find_spec("cocotb_tools") is None:
        return Row("cocotb", False, True, "", f"install it with: {simulators.GET_COCOTB}")
    version = importlib.metadata.version("cocotb")
    good = tuple(map(int, version.split(".")[:2])) >= (2, 1)
    return Row(
        "cocotb", good, True, version, "" if good else f"expected 2.1 or newer: {simulators.GET_COCOTB}"
    )


def _perl() -> Row:
    """Verilator's start script needs modules that Debian's perl-base does not have."""
    program = shutil.which("perl")
    if (
        program
        and subprocess.run(
            [program, "-MFindBin", "-MPod::Usage", "-e", "1"], capture_output=True, check=False
        ).returncode
        == 0
    ):
        return Row("perl", True, True, "", program)
    return Row("perl", False, True, "", "incomplete or missing; it starts Verilator: apt-get install perl")


def _tools() -> Iterator[Row]:
    for name, programs, purpose, remedy in TOOLS:
        path = _which(programs)
        yield Row(name, path is not None, True, "", path or f"{purpose}; {remedy}")


def _optional() -> Iterator[Row]:
    for name, find, purpose in LANGUAGES:
        try:
            tool = find()
        except MmagoldError as error:
            yield Row(name, False, False, "", f"{purpose}: {error}")
        else:
            where = (
                (tool.version_text, str(tool.compiler))
                if isinstance(tool, Simulator)
                else (tool.name, tool.command[0])
            )
            yield Row(name, True, False, where[0].rpartition(" ")[2], where[1])
    for name, programs, purpose in OPTIONAL:
        path = _which(programs)
        yield Row(name, path is not None, False, "", path or f"not found; {purpose}")


def _which(programs: tuple[str, ...]) -> str | None:
    """On PATH, or in the folder of this Python, where pip puts programs."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    return next(filter(None, (shutil.which(program, path=path) for program in programs)), None)


def _is_here(find: Callable[[], Simulator]) -> bool:
    try:
        find()
    except MmagoldError:
        return False
    return True


def _trial(engine: str, simulator: str) -> Row:
    name = f"{engine} on {simulator}"
    try:
        with tempfile.TemporaryDirectory(prefix="mmagold_doctor_") as folder:
            return _try(name, engine, simulator, Path(folder))
    except MmagoldError as error:
        return Row(name, False, True, "", str(error))


def _try(name: str, engine: str, simulator: str, folder: Path) -> Row:
    vhdl = simulator == "ghdl"
    rtl = ("doctor.vhd", VHDL) if vhdl else ("doctor.sv", RTL)
    description = DUT.replace("doctor.sv", rtl[0])
    for file, text in (("doctor_unit.yaml", UNIT), rtl, ("doctor.yaml", description)):
        (folder / file).write_text(text, encoding="utf-8")
    dut = load_dut(folder / "doctor.yaml")
    trial_vectors = 64  # a wrong simulator errs in the first few; a check of them takes no second
    vectors = default_set(dut.instruction, trial_vectors)
    verdict = verdict_of(engine, Job(dut, folder / "build", vectors, simulator))
    outcome = verdict.outcome
    seconds = (
        f"built in {outcome.seconds_build:.1f} s, {trial_vectors} vectors in {outcome.seconds_run:.1f} s"
    )
    if verdict.passed:
        return Row(name, True, True, outcome.version, seconds)
    said = (
        outcome.failures[0].text
        if outcome.failures
        else f"{int(verdict.failed.sum())} of {trial_vectors} results are wrong"
    )
    return Row(name, False, True, outcome.version, f"the trial DUT failed: {said}")


def print_table(rows: list[Row], console: Console) -> None:
    """Prints the rows: green found, red missing though needed, dim missing and not needed."""
    from rich.markup import escape
    from rich.table import Table

    table = Table("", "Tool", "Version", "Detail", box=None, pad_edge=False)
    for row in rows:
        mark = "[green]ok[/]" if row.ok else "[red]FAIL[/]" if row.required else "[dim]-[/]"
        table.add_row(
            mark, row.name, row.version, escape(row.detail), style=None if row.ok or row.required else "dim"
        )
    console.print(table)
