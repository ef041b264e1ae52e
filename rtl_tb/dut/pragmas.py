"""Pragmas `translate_off` and `translate_on`, which synthesis obeys and simulators do not: the text between
them is for the author's test bench and for no chip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rtl_tb.dut.sources import VHDL
from rtl_tb.dut.text import read

VENDOR = r"(?:synopsys|synthesis|pragma|cadence|ambit|exemplar|rtl_synthesis|xilinx|altera)"
_PRAGMA = re.compile(
    rf"\s*(?:{VENDOR}\s*,?\s*)+"
    r"(?:(?P<off>(?:translate|synthesis)_off\b|off\s*$)|(?P<on>(?:translate|synthesis)_on\b|on\s*$))"
)
PIECES = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\\[^\s]+'  # strings and escaped names, which hold anything
    r"|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|\(\*(?P<attribute>\s*synthesis\s*,[^*]*)\*\)",
    re.DOTALL,
)
_PIECES_OF_VHDL = re.compile(
    r"'.'|\"[^\"\n]*\"|\\\\[^\\\n]*\\\\"  # characters, strings and extended names, which hold anything
    r"|--(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|(?P<attribute>(?!))",
    re.DOTALL,
)


def as_attribute(piece: re.Match[str]) -> str:
    """A pragma `translate_off`, or `on`, as an attribute; all else as it is."""
    said = _PRAGMA.match(piece["line"] or piece["block"] or "")
    if said is None:
        return piece[0]
    return f"(* synthesis, translate_{'off' if said['off'] else 'on'} *)" + "\n" * piece[0].count("\n")


def without_off(text: str, vhdl: bool = False) -> str:
    """The text, before or after `as_attribute`, without what stands from a pragma `translate_off` to
    `translate_on`; lines keep their numbers."""
    kept: list[str] = []
    at, off = 0, False
    for piece in (_PIECES_OF_VHDL if vhdl else PIECES).finditer(text):
        said = _PRAGMA.match(piece["line"] or piece["block"] or piece["attribute"] or "")
        if said is None:
            continue
        before = text[at : piece.start()]
        kept += [_only_places(before) if off else before, "\n" * piece[0].count("\n")]
        at, off = piece.end(), bool(said["off"])
    return "".join([*kept, _only_places(text[at:]) if off else text[at:]])


def files_without_off(files: Iterable[Path]) -> dict[Path, str]:
    """The text `without_off` of each of these sources that has such pragmas, as rtl_tb/dut/text.py reads
    it."""
    found = {}
    for path in files:
        vhdl = path.suffix.lower() in VHDL
        before = read(path)
        if (after := without_off(before, vhdl)) != before:
            found[path] = after
    return found


def _only_places(text: str) -> str:
    """Empty lines in place of code; what says where the next line stands remains."""
    return "\n".join(line if line.startswith("`line") else "" for line in text.split("\n"))
