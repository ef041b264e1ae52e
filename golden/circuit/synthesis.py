"""What a circuit costs by Yosys' generic synthesis: cells, and the longest path through them.

    found = synthesized({"hmma.sv": text}, "hmma")
    found.cells, found.longest, found.by_type

The module is flattened and mapped to gates of one or two inputs and multiplexers. There is no library behind
it: a cell is a cell, whatever its area, and a path is as long as it has cells. That says what a change of a
specification costs, not what a chip would.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden.errors import MmagoldError, ToolMissing
from golden.processes import ends_within, started

GET_YOSYS = "pip install pyosys"
_RUN = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1])"
_SCRIPT = """\
read_slang --top {top} {files}
synth -flatten -noabc -top {top}
abc -script +strash;dretime;map
opt_clean
tee -q -o cells.json stat -json
tee -q -o path.txt ltp -noff
"""
_REGISTER = re.compile(r"\$_S?DFF|\$_A?L?DFF|\$_FF_")


class SynthesisError(MmagoldError, RuntimeError):
    """Yosys refuses a module, or does not end in time."""


@dataclass(frozen=True)
class Synthesis:
    """What came of a synthesis.

    Attributes:
        by_type: cells by Yosys' name of their type ("$_XOR_").
        longest: cells on the longest path between registers, operands and results.
        tool: who made it: "Yosys 0.70".
    """

    by_type: dict[str, int]
    longest: int
    tool: str

    @property
    def registers(self) -> int:
        """Flip-flops, one a bit."""
        return sum(count for name, count in self.by_type.items() if _REGISTER.match(name))

    @property
    def cells(self) -> int:
        """All cells but the registers."""
        return sum(self.by_type.values()) - self.registers

    def __str__(self) -> str:
        registers = f", {self.registers:,} registers" if self.registers else ""
        return f"{self.cells:,} cells{registers}, longest path {self.longest:,} cells ({self.tool}, generic)"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {
            "cells": self.cells,
            "registers": self.registers,
            "longest_path": self.longest,
            "by_type": self.by_type,
            "tool": self.tool,
        }


def synthesized(texts: Mapping[str, str], top: str) -> Synthesis:
    """Synthesizes a module.

    Args:
        texts: of the files of SystemVerilog, by name.

    Raises:
        ToolMissing: pyosys is not installed. SynthesisError: it refuses the text, or does not end in time.
    """
    if importlib.util.find_spec("pyosys") is None:
        raise ToolMissing(f"Yosys, which synthesizes, was not found; install it with: {GET_YOSYS}")
    with tempfile.TemporaryDirectory(prefix="mmagold_synthesis_") as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        script = _SCRIPT.format(top=top, files=" ".join(texts))
        (folder / "commands.ys").write_text(script, encoding="utf-8")
        _run(folder, top)
        cells = json.loads((folder / "cells.json").read_text(encoding="utf-8"))
        path = (folder / "path.txt").read_text(encoding="utf-8")
    longest = re.search(r"length=(\d+)", path)
    found = cells["design"]["num_cells_by_type"]
    tool = f"Yosys {importlib.metadata.version('pyosys')}"
    return Synthesis(dict(sorted(found.items())), int(longest[1]) if longest else 0, tool)


def _run(folder: Path, top: str) -> None:
    seconds = 600.0  # K = 16 in f16 takes half a minute on a busy core
    command = [sys.executable, "-c", _RUN, "commands.ys"]
    log = folder / "log"
    with (
        log.open("wb") as output,
        started(command, output, subprocess.STDOUT, os.environ, folder) as process,
    ):
        if not ends_within(process, seconds):
            raise SynthesisError(f"Yosys did not end with {top} in {seconds:g} s")
    if process.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        said = next((line for line in lines if "ERROR" in line or ": error:" in line), "no message")
        raise SynthesisError(f"Yosys refuses {top}: {said[:200]}")
