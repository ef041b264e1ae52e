"""Where a user waits: each wait in seconds, the stages that take them, and the ratio to what no program of
this kind can do without.

    python bench/waits.py            # the table on stdout; two minutes on a quiet machine
    python bench/waits.py --write    # also into docs/speed.md

Seconds are processor time of the command and of what it starts, the median of RUNS: the clock on the wall
depends on who else uses the machine. The limit of a row is measured in the same run and in the same way: the
imports that any command with these libraries has, Verilator's own build of the unit, or the product itself.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import golden
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.builds import design_options
from rtl_tb.simulators import simulators

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- waits: bench/waits.py --write -->\n", "<!-- end of the waits -->\n"
RUNS, LONG = 3, 3.0
"""Runs of a wait, and the seconds from which on one is enough: the processor time of a long one varies
less."""
RIGHT = ROOT / "rtl_tb" / "rtl" / "duts" / "fda_hopper_f16.yaml"
WRONG = ROOT / "rtl_tb" / "examples" / "wrong_f" / "dut.yaml"
COMMAND = (sys.executable, "-m", "mmagold")
TYPER = (sys.executable, "-c", "import typer")
WITH_NUMPY = (sys.executable, "-c", "import typer, rich.console, yaml, numpy")
DEEP = 8192
"""K of the product whose plan is looked for."""
STAGES = 3
"""How many stages of a command are named, the slowest first."""


@dataclass(frozen=True)
class Wait:
    """One wait of a user.

    Attributes:
        what: what the user does.
        command: the words of it, in a folder that is new for each run.
        limit, without: a command that no other way can do without, and what it is.
        stages: whether it takes --timings.
        status: the exit status that it has to have.
    """

    what: str
    command: tuple[str, ...]
    limit: tuple[str, ...] | None = None
    without: str = ""
    stages: bool = False
    status: int = 0
    environment: tuple[tuple[str, str], ...] = ()


def waits(folder: Path) -> list[Wait]:
    """All of them; `folder` is for their files."""
    completed = (
        ("_MMAGOLD_COMPLETE", "complete_bash"),
        ("COMP_WORDS", "mmagold show hopper:HM"),
        ("COMP_CWORD", "2"),
    )
    dot = "import golden, numpy as np; i = golden.instruction('hopper:HMMA.16816.F32'); "
    dot += "z = np.zeros(16, np.uint16); i.dot(z, z, np.zeros((), np.uint32))"
    build = verilators_own(folder)
    return [
        Wait("`mmagold --version`", (*COMMAND, "--version"), TYPER, "importing typer"),
        Wait("complete a name in the shell", COMMAND, TYPER, "the same", environment=completed),
        Wait(
            "`mmagold show hopper:...`",
            (*COMMAND, "show", "hopper:HMMA.16816.F32"),
            WITH_NUMPY,
            "importing typer, rich, yaml and NumPy",
        ),
        Wait(
            "the first dot product in Python",
            (sys.executable, "-c", dot),
            (sys.executable, "-c", "import numpy, yaml"),
            "importing NumPy and yaml",
        ),
        Wait(
            "`compare` of two instructions",
            (*COMMAND, "compare", "hopper:HMMA.16816.F32", "ampere:HMMA.16816.F32"),
            WITH_NUMPY,
            "the imports",
            True,
        ),
        Wait(
            f"`gemm plan` of 24 x {DEEP} by {DEEP} x 40, f16",
            plan_of(folder),
            product_of(folder),
            "computing the product once",
            True,
        ),
        Wait(
            "`rtl check` of a right unit, new",
            (*COMMAND, "rtl", "check", str(RIGHT)),
            build,
            "Verilator's own build and runtime",
            True,
        ),
        Wait(
            "`rtl check` of a unit with a fault, new",
            (*COMMAND, "rtl", "check", str(WRONG)),
            build,
            "Verilator's own build and runtime",
            True,
            1,
        ),
        Wait("`dissect` of an instruction", (*COMMAND, "dissect", "hopper:HMMA.16816.F32"), None, "", True),
    ]


def verilators_own(folder: Path) -> tuple[str, ...]:
    """Verilator's build of the right unit with an empty main program, as anybody would call it."""
    dut, simulator = load_dut(RIGHT), simulators.verilator()
    main = folder / "main.cpp"
    main.write_text(f'#include "V{dut.top}.h"\nint main() {{ V{dut.top} top; top.eval(); }}\n', "utf-8")
    options = map(str, design_options(dut, "verilator"))
    files = map(str, (*dut.sources, main))
    words = "--cc", "--exe", "--build", "-O3", "-Wno-fatal", *options, "--top-module", dut.top
    needed = (f"{name}={simulator.env.get(name, '')}" for name in ("MAKEFLAGS", "VERILATOR_ROOT"))
    return ("env", *needed, *simulator.start, *words, *files)


def plan_of(folder: Path) -> tuple[str, ...]:
    """The search for the plan of a product of cuBLAS's order, whose files it writes."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((24, DEEP), (DEEP, 40)))
    d = golden.gemm(a, b, golden.plan("hopper", "cublas_f16.f16.f32"))
    for name, array in (("a", a), ("b", b), ("d", d)):
        np.save(folder / f"{name}.npy", array)
    return (
        *COMMAND,
        "gemm",
        "plan",
        "--arch",
        "hopper",
        *(word for name in "abd" for word in (f"--{name}", str(folder / f"{name}.npy"))),
    )


def product_of(folder: Path) -> tuple[str, ...]:
    """The same product, computed once."""
    text = f"import golden, numpy as np; a, b = (np.load('{folder}/' + n + '.npy') for n in 'ab'); "
    text += "golden.gemm(a, b, golden.plan('hopper', 'cublas_f16.f16.f32'))"
    return sys.executable, "-c", text


def seconds_of(
    command: tuple[str, ...], status: int = 0, environment: tuple[tuple[str, str], ...] = ()
) -> tuple[float, str]:
    """Processor time of a command in a new folder, with what was compiled for all units kept, and what it
    printed."""
    with tempfile.TemporaryDirectory() as place:
        before = os.times()
        done = subprocess.run(
            command,
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | dict(environment),
        )
        after = os.times()
    if done.returncode != status:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return used, done.stdout


def median(run: Callable[[], tuple[float, str]]) -> tuple[float, str]:
    """The middle one of RUNS runs, after one that fills the caches; of a long wait the one run."""
    first = run()
    if first[0] >= LONG:
        return first
    return sorted(run() for _ in range(RUNS))[RUNS // 2]


def row(wait: Wait) -> list[str]:
    """One line of the table."""
    timed = ("--timings", "--json") if wait.stages else ()
    seconds, printed = median(lambda: seconds_of((*wait.command, *timed), wait.status, wait.environment))
    takes = ""
    if wait.stages:
        stages = sorted(json.loads(printed)["timings"], key=lambda one: -one["share"])[:STAGES]
        takes = ", ".join(f"{one['stage']} {one['share']:.0%}" for one in stages)
    if wait.limit is None:
        return [wait.what, f"{seconds:.2f}", takes, "", ""]
    least, _ = median(lambda: seconds_of(wait.limit or ()))
    return [wait.what, f"{seconds:.2f}", takes, f"{wait.without}: {least:.2f}", f"{seconds / least:.1f}"]


def table() -> str:
    """The table, with the machine and the date."""
    head = [
        "What a user does",
        "seconds",
        "the stages that take most, by the clock",
        "limit",
        "times the limit",
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for wait in waits(Path(folder)):
            rows.append(row(wait))
            print(" | ".join(rows[-1]), file=sys.stderr)
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    said = f"Processor time, medians of {RUNS}, and one run of what takes {LONG:.0f} seconds or more; "
    said += f"{datetime.date.today()}, {processor()}, {os.cpu_count()} processors"
    return "\n".join([f"{said}.", "", *lines]) + "\n"


def processor() -> str:
    """The name of this machine's processor."""
    info = Path("/proc/cpuinfo")
    names = info.read_text("utf-8").splitlines() if info.is_file() else []
    return next(
        (line.partition(":")[2].strip() for line in names if line.startswith("model name")),
        platform.machine(),
    )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/speed.md")
    arguments = parser.parse_args()
    found = table()
    print(found, end="")
    if arguments.write:
        before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
        _, end, behind = rest.partition(END)
        if not begin or not end:
            raise SystemExit(f"{PAGE} lacks {BEGIN.strip()} or {END.strip()}")
        PAGE.write_text(f"{before}{begin}\n{found}\n{end}{behind}", "utf-8")


if __name__ == "__main__":
    main()
