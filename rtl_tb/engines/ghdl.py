"""GHDL for the cocotb engine: how a unit in VHDL is built and run, and what its log says about it."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.text import read
from rtl_tb.dut.vhdl import Vhdl, analyse, first_complaint, without_copies
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines.builds import Recipe
from rtl_tb.engines.job import FAILURE_KINDS, Job, ProtocolFailure
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator, ToolFailed

_TEXT = re.compile(r'--[^\n]*|/\*.*?(?:\*/|\Z)|"(?:""|[^"\n])*"', re.DOTALL)
"""Comments and strings."""
_OUTSIDE = re.compile(r"\bmmagold_dut\b|<<\s*(?:signal|variable|constant)\s+[.^@]", re.IGNORECASE)
"""The checker's own entity, and external names that lead out of the unit."""
_COMPLAINT = re.compile(
    r"(?P<place>\S+:\d+:\d+):@(?P<time>\w+):\((?:psl )?(?:assertion|report) (?:error|failure)\): (?P<text>.*)"
)
_METAVALUE = re.compile(
    r"^\S+:\d+:\d+:@(?P<time>\d+)(?P<unit>[fpnum]?s):\(assertion warning\): "
    r"(?P<text>.*(?:metavalue detected|has been converted to 0).*)",
    re.MULTILINE,
)
"""What numeric_std, and the older std_logic_arith, say where they take 'U', 'X' and their like for 0 or
FALSE."""
_NEVER = re.compile(
    r"^(?P<file>\S+):(?P<line>\d+):\d+:warning: (?:signal|no assignment for (?P<part>.+) of signal) "
    r'"(?P<name>[^"]+)"(?: is never assigned.*)?$',
    re.MULTILINE,
)
_NANOSECONDS = {"fs": 1e-6, "ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
STARTS = {"zeros": "0", "ones": "1"}
"""What the starts of a job put in the place of 'U'; "random" leaves it."""


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
                f"{dut.name}: {path.name} has '{named[0]}', which leads out of the unit; a unit that "
                "reaches into what checks it proves nothing"
            )


def code_of(path: Path) -> str:
    """The text of a file without comments, and with empty strings."""
    text = read(path)
    kept = {'"': '""'}
    return _TEXT.sub(lambda match: kept.get(match[0][0], " ") + "\n" * match[0].count("\n"), text)


def command(simulator: Simulator, vhdl: Vhdl) -> list[str]:
    """The command that runs a unit in a copy of its folder."""
    return [*simulator.start, "-r", *vhdl.options, NAME]


def waves(file: Path | None, place: Path) -> list[str]:
    """Options for a waveform in the format of the file's suffix."""
    if file is None:
        return []
    kind = "vcd" if file.suffix == ".vcd" else "fst"
    return [f"--{kind}={place / f'dump.{kind}'}"]


def metavalues(job: Job, log: str, half: int) -> list[ProtocolFailure]:
    """The failure of a unit that still computes with bits that are neither 0 nor 1 when half of its results
    have come, in cycle `half`. Before, pipelines and memories that no reset fills may well hold some."""
    found = [(_cycle(match), match["text"].strip()) for match in _METAVALUE.finditer(log)]
    late = [(cycle, text) for cycle, text in found if cycle > half]
    if not late:
        return []
    cycle, text = late[0]
    said = (
        f"{FAILURE_KINDS['metavalue']}: {len(late):,} times after half of the results, first in cycle "
        f"{cycle}: {text}"
    )
    return [ProtocolFailure("metavalue", cycle, None, said)]


def _cycle(match: re.Match[str]) -> int:
    # Of the clock, in nanoseconds.
    period = 10.0
    return int(int(match["time"]) * _NANOSECONDS[match["unit"]] / period)


@dataclass(frozen=True)
class Lint:
    """Signals that nothing assigns, as GHDL's synthesis sees the unit with its generics; `refused` says why
    it does not see it."""

    never: tuple[str, ...] = ()
    refused: str = ""


def lint(dut: Dut) -> Lint:
    """Asks GHDL which signals nothing assigns, of whatever type; raises SimulatorMissing."""
    vhdl, simulator = dut.vhdl, simulators.ghdl()
    assert vhdl is not None
    with tempfile.TemporaryDirectory(prefix="mmagold_lint_") as name:
        folder = Path(name)
        file = folder / f"{NAME}.vhd"
        file.write_text(wrapper_of(dut), encoding="utf-8")
        command = [*simulator.start, "--synth", *vhdl.options, "--out=none", NAME]
        try:
            analyse(simulator, vhdl, [*dut.sources, file], folder, NAME, f"the DUT {dut.name}")
            text = simulators.run(
                command,
                folder=folder,
                env=simulator.env,
                log=folder / "lint.log",
                timeout=simulators.build_limit(),
            )
        except ToolFailed as error:
            return Lint(_never(error.text), first_complaint(error.text))
        except RtlError as error:
            return Lint(refused=str(error))
    return Lint(_never(text))


def _never(text: str) -> tuple[str, ...]:
    """Signals without an assignment, with their places; the wrapper's own left out."""
    found = [match for match in _NEVER.finditer(text) if Path(match["file"]).name != f"{NAME}.vhd"]
    return tuple(
        dict.fromkeys(
            f"{each['name']}{' (' + each['part'] + ')' if each['part'] else ''}, "
            f"{Path(each['file']).name}:{each['line']}"
            for each in found
        )
    )


def stopped(log: str) -> str | None:
    """Why GHDL gave a simulation up: a number out of its range, an index, a division by zero. None in any
    other log."""
    found = re.search(
        r"^\S*ghdl\S*:(?:error: (?!simulation failed|error during)|info: (?=.*stop-delta))(.+)",
        log,
        re.MULTILINE,
    )
    return None if found is None else without_copies(found[1].strip())


def complaint(log: str) -> str | None:
    """What the unit complained of: a failed assertion, or a report, of severity error or failure. None in
    any other log."""
    found = _COMPLAINT.search(log)
    return (
        None
        if found is None
        else f"{found['text'].strip()} ({without_copies(found['place'])}, at {found['time']})"
    )
