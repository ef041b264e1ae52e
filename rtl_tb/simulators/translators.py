"""Finds Yosys with its SystemVerilog reader slang, which turns a unit into Verilog that Icarus reads, and
runs it.

It is taken from MMAGOLD_YOSYS, from the PyPI package `pyosys`, or from PATH.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rtl_tb.errors import SimulatorMissing
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import TimeIsUp, ToolFailed, first_error, no_build

_PYOSYS = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1])"
_READER = "read_slang"
_PYOSYS_HELP = f"from pyosys import libyosys; libyosys.run_pass('help {_READER}')"
_SCRIPT = "commands.ys"
_LIMIT = 600.0
"""Seconds that a run may take, so that one that hangs ends."""
GET_YOSYS = "pip install pyosys"


@dataclass(frozen=True)
class Translator:
    """A tool that was found.

    Attributes:
        name: as messages call it, with its version: "Yosys 0.70".
        command: the program, and the arguments that come before all others.
    """

    name: str
    command: tuple[str, ...]

    def run(self, arguments: Sequence[str | Path], folder: Path, what: str, limit: float = _LIMIT) -> str:
        """Runs it in `folder` for at most `limit` seconds, or what `longest_build` says if that is less, and
        returns what it printed, which stays there in translator.log.

        Raises:
            ElaborationError: it refused; the message is its own first error. TimeIsUp: the time is over.
        """
        try:
            log = folder / "translator.log"
            return simulators.run(
                [*self.command, *arguments],
                folder=folder,
                env=_env(),
                log=log,
                timeout=min(limit, simulators.build_limit()),
                tick=simulators.build_tick(),
            )
        except TimeIsUp as error:
            raise TimeIsUp(self.name, error.seconds) from None
        except ToolFailed as error:
            raise no_build(error, self.name, what, first_error(error.text)) from error


def yosys() -> Translator:
    """Returns a Yosys that reads SystemVerilog with slang.

    Raises:
        SimulatorMissing: there is none.
    """
    return _yosys(os.environ.get("MMAGOLD_YOSYS"), os.environ.get("PATH", ""))


def run_yosys(
    tool: Translator, commands: Sequence[str], folder: Path, what: str, limit: float = _LIMIT
) -> None:
    """Runs commands of Yosys in a folder for at most `limit` seconds; raises ElaborationError where one
    fails."""
    (folder / _SCRIPT).write_text("\n".join(commands) + "\n", encoding="utf-8")
    tool.run([_SCRIPT], folder, what, limit)


@lru_cache(maxsize=8)
def _yosys(override: str | None, path: str) -> Translator:
    found: list[tuple[str, Translator]] = []
    program = _program("MMAGOLD_YOSYS", override) if override else shutil.which("yosys", path=path)
    if not override and importlib.util.find_spec("pyosys") is not None:
        explained = _ask([sys.executable, "-c", _PYOSYS_HELP])
        name = f"Yosys {importlib.metadata.version('pyosys')}"
        found.append((explained, Translator(name, (sys.executable, "-c", _PYOSYS))))
    if program:
        version = re.match(r"Yosys \d[\w.]*", _ask([program, "-V"]))
        explained = _ask([program, "-p", f"help {_READER}"])
        found.append((explained, Translator(version[0] if version else "Yosys", (program, "-s"))))
    for explained, tool in found:
        if "Read SystemVerilog sources" in explained:
            return tool
    raise SimulatorMissing(
        f"Yosys with its SystemVerilog reader slang was not found; install it with: {GET_YOSYS}"
    )


def _program(variable: str, value: str) -> str:
    found = shutil.which(value)
    if found is None:
        raise SimulatorMissing(f"{variable} is {value!r}, expected the path of a program that can be run")
    return found


def _env() -> Mapping[str, str]:
    return simulators.inherited()


def _ask(command: Sequence[str]) -> str:
    """What a program prints, or "" where it cannot be run."""
    try:
        return subprocess.run(
            command, env=dict(_env()), capture_output=True, text=True, errors="replace", timeout=60
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
