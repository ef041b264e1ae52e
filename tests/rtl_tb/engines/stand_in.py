"""Stands in for VCS, Questa and Xcelium: called by their names, takes their commands and no others, and
simulates with Icarus Verilog. What it is called with is appended to the file that STAND_IN_LOG names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

NAME, GIVEN = Path(sys.argv[0]).name, sys.argv[1:]
TIME = "1ns/1ps"
COMMANDS = {
    "vcs": [
        ["-ID"],
        ["-full64", "-sverilog", f"-timescale={TIME}", "-top", "TOP", "-f", "files.f", "-o", "PATH"],
    ],
    "vlib": [["work"]],
    "vlog": [["-sv", "-timescale", TIME, "-work", "work", "-f", "files.f"]],
    "vsim": [["-version"], ["-c", "-lib", "PATH", "TOP", "-do", "run -all; quit -f"]],
    "xrun": [
        ["-version"],
        ["-64bit", "-sv", "-timescale", TIME, "-top", "TOP", "-f", "files.f", "-elaborate"],
        ["-64bit", "-R", "-xmlibdirpath", "PATH"],
    ],
    "testbench": [[]],
}
VERSIONS = {
    "vcs": "vcs script version : Q-2020.03",
    "vsim": "Questa Sim-64 vsim 2021.1",
    "xrun": "TOOL: xrun 20.09",
}


def matching() -> list[str]:
    """The command that this is, without plusargs."""
    words = [word for word in GIVEN if not word.startswith("+")]
    if any(not re.fullmatch(r"\+(mmagold_files|waves)=/.*", word) for word in GIVEN if word.startswith("+")):
        sys.exit(f"{NAME}: unknown plusarg in {GIVEN}")
    for command in COMMANDS[NAME]:
        if len(command) == len(words) and all(
            right in (word, "PATH") or (right == "TOP" and word == "mmagold_tb")
            for right, word in zip(command, words, strict=True)
        ):
            return command
    sys.exit(f"{NAME}: unknown arguments {GIVEN}")


def compile_to(program: str) -> None:
    """Compiles the list of the working directory."""
    command = ["iverilog", "-g2012", "-s", "mmagold_tb", "-o", program, "-c", "files.f"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"Error-[SE] Syntax error\n{done.stderr}")


def simulate(program: Path) -> None:
    """Runs it; an `$error` is printed as the simulator prints it."""
    words = [word for word in GIVEN if word.startswith("+")]
    done = subprocess.run(["vvp", "-n", str(program), *words], capture_output=True, text=True)
    prefix = {"testbench": "Error: ", "vsim": "# ** Error: ", "xrun": "xmsim: *E,ASRTST "}[NAME]
    print(done.stdout.replace("ERROR: ", prefix), end="")
    sys.exit(done.returncode)


def main() -> None:
    """Does what the simulator of that name would do."""
    with open(os.environ["STAND_IN_LOG"], "a") as log:
        log.write(f"{NAME} {' '.join(GIVEN)}\n")
    command = matching()
    if command in (["-ID"], ["-version"]):
        print(VERSIONS[NAME])
    elif NAME == "vcs":
        compile_to("compiled.vvp")
        os.symlink(__file__, GIVEN[-1])
    elif NAME == "vlib":
        Path("work").mkdir()
    elif NAME == "vlog":
        compile_to("work/compiled.vvp")
        Path("work/_info").write_text("")
    elif NAME == "vsim":
        simulate(Path(GIVEN[2]) / "compiled.vvp")
    elif NAME == "xrun" and "-elaborate" in command:
        Path("xcelium.d").mkdir()
        compile_to("xcelium.d/compiled.vvp")
    elif NAME == "xrun":
        simulate(Path(GIVEN[3]) / "xcelium.d" / "compiled.vvp")
    else:
        simulate(Path(sys.argv[0]).parent / "compiled.vvp")


main()
