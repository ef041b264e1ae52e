"""Tables on terminals of every width, in pipes and in files."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path

import pytest

import golden
import rtl_tb
from golden.explain.terminal import PlainConsole, print_trace
from golden.explain.trace import Trace

EXACT = Path(rtl_tb.__file__).parent / "mutants" / "units" / "exact_accumulator" / "unit.yaml"


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
