"""Tables on terminals of every width, in pipes and in files."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console

import golden
import rtl_tb
from golden.explain.terminal import PlainConsole, print_trace, table
from golden.explain.trace import Trace

EXACT = Path(rtl_tb.__file__).parent / "mutants" / "units" / "exact_accumulator" / "unit.yaml"
BITS = re.compile(r"[+-][01]+[.][01]{9,}")


class Screen(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(trace: Trace, width: int | None) -> list[str]:
    """The lines of a trace on a terminal of some columns, or in a pipe."""
    out = io.StringIO() if width is None else Screen()
    given = {} if width is None else {"width": width}
    print_trace(trace, PlainConsole(file=out, no_color=True, **given))
    return [line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", out.getvalue()).splitlines()]


@cache
def traced(name: str) -> Trace:
    if name == "exact":
        ins = golden.load_instruction(EXACT)
        return ins.trace([0x38, 0x40] + [0] * 6, [0x38, 0x40] + [0] * 6, 0x7F61B1E6)
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    return ins.trace([0x3E00, 0x0800, 0x2E66] + [0] * 13, [0x3C00, 0x0800, 0x34CD] + [0] * 13, 0x322BCC77)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("name", ["hmma", "exact"])
def test_no_row_is_wider_than_the_terminal(name: str, width: int) -> None:
    assert max(map(len, shown(traced(name), width))) <= width


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_bits_are_whole_at_every_width(width: int) -> None:
    free, narrow = ("\n".join(shown(traced("hmma"), each)) for each in (None, width))
    assert BITS.findall(narrow) == BITS.findall(free)


def heads(width: int) -> list[str]:
    """The columns of bits in the table of the alignment."""
    lines = shown(traced("hmma"), width)
    return lines[next(i for i, line in enumerate(lines) if "largest exponent 0" in line) + 1].split()


def test_the_value_goes_first_and_the_bits_never() -> None:
    all_of_them = ["significand", "lost", "shift", "exponent", "value"]
    seen = [heads(width) for width in (120, 100, 88, 76, 64)]
    assert seen[0] == all_of_them and all("significand" in each for each in seen)
    gone = [[name for name in all_of_them if name not in each] for each in seen]
    assert all("value" in each for each in gone if each)
    assert (
        [] in gone and ["value"] in gone and ["shift", "value"] in gone and ["lost", "shift", "value"] in gone
    )


def test_a_column_that_fits_beside_fewer_comes_back() -> None:
    rows = table("bits|", "lost|", "exponent>", "value|", going=("value", "exponent", "lost"))
    rows.add_row("1" * 20, "0" * 20, "5", "7")
    for width, left in ((61, 4), (55, 3), (45, 2), (35, 2), (24, 1)):
        console = Console(file=Screen(), width=width)
        assert len(rows.fitting(console, width).columns) == left
    assert [c.header for c in rows.fitting(console, 35).columns] == ["bits", "exponent"]
    assert len(rows.fitting(Console(file=io.StringIO(), width=24), 24).columns) == 4


def test_long_runs_of_bits_are_counted_where_nothing_else_helps() -> None:
    free, narrow = ("\n".join(shown(traced("exact"), width)) for width in (None, 60))
    (whole,) = [bits for bits in BITS.findall(free) if len(bits) > 60]
    (counted,) = re.findall(r"\+1[01.{}0-9]*\{\d+\}[01]*", narrow)
    again = re.sub(r"([01])\{(\d+)\}", lambda run: run[1] * int(run[2]), counted)
    assert again == whole


@pytest.mark.parametrize("colours", ["", "1"])
def test_nothing_wraps_and_nothing_goes_in_a_pipe(colours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FORCE_COLOR makes no terminal of it."""
    monkeypatch.setenv("FORCE_COLOR", colours)
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = shown(traced("exact"), None)
    assert any("special_values" in line and line.endswith("Otherwise continue.") for line in lines)
    assert [line.split()[-1] for line in lines if "significand" in line] == ["value"] * 2


def test_a_place_in_a_file_is_no_emoji() -> None:
    out = io.StringIO()
    PlainConsole(file=out).print("fpnew_pkg.sv:100:9: x, dot.sv:1234:", highlight=False)
    assert out.getvalue() == "fpnew_pkg.sv:100:9: x, dot.sv:1234:\n"
