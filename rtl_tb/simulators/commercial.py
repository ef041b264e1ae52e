"""VCS, Questa (ModelSim) and Xcelium: how each compiles and runs the self-checking testbench.

None of them was run, for want of a licence: commands and messages come from scripts and logs of their
users. The tests run them with programs that stand in for the simulators, check every argument and
simulate with Icarus Verilog. Each is looked for in the
environment's MMAGOLD_VCS, MMAGOLD_VSIM or MMAGOLD_XRUN, then on PATH.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator, ToolFailed, no_build

Words = list[str | Path]
_TIME = "1ns/1ps"


@dataclass(frozen=True)
class Commercial:
    """A simulator and its commands.

    Attributes:
        title: as messages call it.
        variable: of the environment, that names `program` elsewhere.
        version: arguments that ask for the version.
        compile: the commands, each without its program's folder, that compile a file list for a top module;
            they run in the folder of the build.
        run: the words that start the simulation that lies in a folder; plusargs follow.
        product: what a successful compilation leaves there.
        complaint: what the simulator prints where the RTL complained, or a file of $readmem is missing.
    """

    title: str
    variable: str
    program: str
    version: tuple[str, ...]
    compile: Callable[[str, str], Sequence[Words]]
    run: Callable[[str, Path, Sequence[str]], Words]
    product: str
    complaint: re.Pattern[str]


def _vcs(top: str, files: str) -> Sequence[Words]:
    return [
        ["vcs", "-full64", "-sverilog", f"-timescale={_TIME}", "-top", top, "-f", files, "-o", "testbench"]
    ]


def _questa(top: str, files: str) -> Sequence[Words]:
    return [["vlib", "work"], ["vlog", "-sv", "-timescale", _TIME, "-work", "work", "-f", files]]


def _xcelium(top: str, files: str) -> Sequence[Words]:
    return [["xrun", "-64bit", "-sv", "-timescale", _TIME, "-top", top, "-f", files, "-elaborate"]]


COMMERCIAL = {
    "vcs": Commercial(
        "VCS",
        "MMAGOLD_VCS",
        "vcs",
        ("-ID",),
        _vcs,
        lambda _top, folder, plus: [folder / "testbench", *plus],
        "testbench",
        re.compile(r'^(?:Error|Fatal): .*|^".*failed at .*|^.*\[STASKW_RMCOF\].*', re.MULTILINE),
    ),
    "questa": Commercial(
        "Questa",
        "MMAGOLD_VSIM",
        "vsim",
        ("-version",),
        _questa,
        lambda top, folder, plus: [
            *("vsim", "-c", "-lib", folder / "work", top),
            *("-do", "run -all; quit -f", *plus),
        ],
        "work/_info",
        re.compile(r"^(?:# )?\*\* (?:Error|Fatal).*|^.*Failed to open readmem file.*", re.MULTILINE),
    ),
    "xcelium": Commercial(
        "Xcelium",
        "MMAGOLD_XRUN",
        "xrun",
        ("-version",),
        _xcelium,
        lambda _top, folder, plus: ["xrun", "-64bit", "-R", "-xmlibdirpath", folder, *plus],
        "xcelium.d",
        re.compile(r"^xm\w+: \*[EF],.*|^.*open failed on file.*", re.MULTILINE),
    ),
}
"""The simulators by the name that --sim takes."""


def find(name: str) -> Simulator:
    """Returns the simulator of that name.

    Raises:
        SimulatorMissing: there is none.
    """
    about = COMMERCIAL[name]
    override = os.environ.get(about.variable)
    found = shutil.which(override or about.program)
    if found is None:
        where = f"{about.variable} is {override!r}, expected a program" if override else "it is not on PATH"
        raise SimulatorMissing(f"{about.title} was not found: {where}")
    program = Path(found)
    env = simulators.plain_env(program)
    said = _ask([found, *about.version], env)
    number = re.search(r"(\d+)\.(\d+)", said)
    version = (int(number[1]), int(number[2])) if number else (0, 0)
    line = next((line.strip() for line in said.splitlines() if re.search(r"\d", line)), "version unknown")
    origin = about.variable if override else "PATH"
    return Simulator(name, version, f"{about.title} ({line[:80]})", program, program, env, origin)


def compile_design(simulator: Simulator, top: str, files: str, folder: Path, what: str) -> None:
    """Compiles a file list in a folder.

    Raises:
        ElaborationError: the simulator refuses the design, or leaves nothing that can be run.
    """
    about = COMMERCIAL[simulator.name]
    for command in about.compile(top, files):
        try:
            simulators.run(
                _located(simulator, command),
                folder=folder,
                env=simulator.env,
                log=folder / f"{command[0]}.log",
                timeout=simulators.LONGEST_BUILD,
            )
        except ToolFailed as error:
            raise no_build(error, about.title, what, str(error)) from error
    if not (folder / about.product).exists():
        raise ElaborationError(f"{about.title} said nothing, but made no {about.product} of {what}")


def run_words(simulator: Simulator, top: str, folder: Path, plus: Sequence[str]) -> Words:
    """The command that runs what was compiled in a folder."""
    return _located(simulator, COMMERCIAL[simulator.name].run(top, folder, plus))


def shell_command(name: str, top: str, files: str) -> str:
    """What a designer types in the folder of the file list to compile and run it."""
    about = COMMERCIAL[name]
    words = [*about.compile(top, files), about.run(top, Path("."), ())]
    return " && ".join(
        shlex.join(f"./{word}" if isinstance(word, Path) else word for word in command) for command in words
    )


def complaint(simulator: Simulator, said: str) -> str | None:
    """What the RTL complained of in the simulator's output, or None."""
    found = COMMERCIAL[simulator.name].complaint.search(said)
    return found[0].strip() if found else None


def _located(simulator: Simulator, command: Words) -> Words:
    """The command with its program's path: all programs of a simulator lie in one folder."""
    program = command[0]
    if isinstance(program, Path):
        return command
    own = program == COMMERCIAL[simulator.name].program
    return [simulator.compiler if own else simulator.compiler.with_name(program), *command[1:]]


def _ask(command: Sequence[str], env: dict[str, str]) -> str:
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
