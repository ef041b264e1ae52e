"""Operands of one dot product for a reader: short in a table, and as the arguments of `mmagold explain`."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.formats import Format
from golden.instruction import Instruction
from golden.operands import format_of

Bits = npt.NDArray[Any]
_MANY = 6


def code_text(code: int, fmt: Format) -> str:
    """A raw code in hex, as wide as the format."""
    return f"0x{code:0{(fmt.bits + 3) // 4}x}"


def short(ins: Instruction, operands: dict[str, Bits]) -> str:
    """All operands that are not at rest, as "a = 0x3c00; c = 0x80000000"; zeros that follow are left out."""
    parts = [f"{name} = {_codes(ins, name, codes)}" for name, codes in operands.items() if not _at_rest(ins, name, codes)]
    return "; ".join(parts) or "all zero"


def _at_rest(ins: Instruction, name: str, codes: Bits) -> bool:
    """Zero; of scales one, of metadata the lowest columns."""
    rest = stimuli.one(ins.formats[name]) if name.startswith("scale") else 0x4 if name == "metadata" else 0
    return bool(np.all(codes == rest))


def _codes(ins: Instruction, name: str, codes: Bits) -> str:
    fmt, values = format_of(ins, name), [int(code) for code in np.ravel(codes)]
    if len(values) > 1 and len(set(values)) == 1:
        return f"{code_text(values[0], fmt)} ({len(values)} times)"
    words = [code_text(code, fmt) for code in trimmed(values)] or [code_text(0, fmt)]
    if len(words) > _MANY and len(set(words)) > 1:
        return sparse_text(values, fmt)
    return ", ".join(words)


def sparse_text(values: list[int], fmt: Format) -> str:
    """Codes by position where most are zero: "0x3c00 at 0, 0xbc00 at 17"; the first few, then how many more."""
    places = [(index, code) for index, code in enumerate(values) if code]
    told = ", ".join(f"{code_text(code, fmt)} at {index}" for index, code in places[:_MANY])
    return told + (f" and {len(places) - _MANY} more" if len(places) > _MANY else "")


def trimmed(values: list[int]) -> list[int]:
    """The codes without the zeros at the end."""
    last = max((index for index, code in enumerate(values) if code), default=-1)
    return values[: last + 1]


def command(ins: Instruction, operands: dict[str, Bits]) -> str:
    """The command that explains this dot product."""
    words = ["mmagold", "explain", name_argument(ins)]
    for name, codes in operands.items():
        if name == "c" or not _at_rest(ins, name, codes):
            values = [int(code) for code in np.ravel(codes)]
            filled = name.startswith("scale") or name == "metadata"  # the command does not fill these up with zeros
            fmt = format_of(ins, name)
            words += [
                f"--{name.replace('_', '-')}",
                ",".join(code_text(code, fmt) for code in (values if filled else trimmed(values) or [0])),
            ]
    return shlex.join(words)


def name_argument(ins: Instruction) -> str:
    """The NAME by which the command line finds the instruction; a designer's unit by its file."""
    if ins.architecture != "custom":
        return f"{ins.architecture}:{ins.name}"
    return ins.source if ins.source.endswith((".yaml", ".yml")) else f"{ins.name}.yaml"
