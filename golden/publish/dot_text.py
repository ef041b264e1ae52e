"""One dot product as text: the command that explains it, its operands and results as numbers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.architectures import architectures
from golden.errors import listed
from golden.explain.numbers import hex_text, power_text
from golden.explain.specification import index_text
from golden.explain.trace import describe_code
from golden.files.escape import file_stem
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.stimuli import one
from golden.vectors.operand_files import format_of

Operands = Mapping[str, npt.NDArray[Any]]
_MOST_CODES = 6
"""Codes of an operand that a cell of a table lists."""
_FLAGS = {
    "a": "--a",
    "b": "--b",
    "c": "--c",
    "scale_a": "--scale-a",
    "scale_b": "--scale-b",
    "metadata": "--metadata",
}


def command(ins: Instruction, operands: Operands) -> str:
    """Returns the `mmagold explain` line of one dot product; what the command fills in itself is left out."""
    words = [f"mmagold explain {name_argument(ins)}"]
    for name, flag in _FLAGS.items():
        if name in operands:
            codes = _written(ins, name, operands[name])
            words += [f"{flag} {','.join(codes)}"] if codes else []
    if ins.mode_code is not None:  # the file that the command reads has every mode
        words.append(f"--mode {ins.mode_code:#x}")
    return " ".join(words)


def name_argument(ins: Instruction) -> str:
    """The NAME by which the command line finds the instruction; a designer's own unit by its file."""
    if ins.architecture in architectures():
        return f"{ins.architecture}:{ins.name}"
    return shlex.quote(
        ins.source if ins.source.endswith((".yaml", ".yml")) else f"{file_stem(ins.name)}.yaml"
    )


def _written(ins: Instruction, name: str, codes: npt.NDArray[Any]) -> list[str]:
    """The codes up to the last one that the command would not fill in."""
    fmt = format_of(ins, name)
    row = np.atleast_1d(codes)
    used = np.flatnonzero(row != ins.at_rest(name))
    return [hex_text(fmt, int(code)) for code in row[: used[-1] + 1]] if len(used) else []


def number_text(fmt: Format, code: int) -> str:
    """A number, the shorter of its decimal and m*2^e."""
    number = fmt.decode(code)
    decimal = describe_code(fmt, code).removesuffix(".0")
    return min(decimal, power_text(number) if number.significand else decimal, key=len)


def result_text(fmt: Format, code: int) -> str:
    """A result as code and number: "0x3f800000 (1)"."""
    return f"`{hex_text(fmt, code)}` ({number_text(fmt, code)})"


def operands_text(ins: Instruction, operands: Operands) -> str:
    """The products that are not zero and c, as numbers: "1 x 1 at k = 0-3; c = -2^-30", with scales that
    are not one."""
    a, b = operands["a"], operands["b"]
    if ins.pattern is not None:
        b = b[ins.pattern.columns(operands["metadata"])]
    places: dict[tuple[int, int], list[int]] = {}
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if x or y:
            places.setdefault((x, y), []).append(k)
    words = [
        f"{number_text(ins.formats['a'], x)} x {number_text(ins.formats['b'], y)} at k = "
        f"{index_text(tuple(found))}"
        for (x, y), found in places.items()
    ]
    for name in ("scale_a", "scale_b"):
        if name in operands:
            fmt = ins.formats[name]
            codes = [int(code) for code in operands[name]]
            if any(code != one(fmt) for code in codes):
                words.append(f"{name} = {', '.join(number_text(fmt, code) for code in codes)}")
    return "; ".join([*words, f"c = {number_text(ins.formats['c'], int(operands['c']))}"])


def short(ins: Instruction, operands: Operands) -> str:
    """All operands that are not at rest, as "a = 0x3c00; c = 0x80000000"; zeros that follow are left out."""
    parts = [
        f"{name} = {_codes(ins, name, codes)}"
        for name, codes in operands.items()
        if np.any(codes != ins.at_rest(name))
    ]
    return "; ".join(parts) or "all zero"


def _codes(ins: Instruction, name: str, codes: npt.NDArray[Any]) -> str:
    fmt, values = format_of(ins, name), [int(code) for code in np.ravel(codes)]
    if len(values) > 1 and len(set(values)) == 1:
        return f"{hex_text(fmt, values[0])} ({len(values)} times)"
    words = [hex_text(fmt, code) for code in _trimmed(values)] or [hex_text(fmt, 0)]
    if len(words) > _MOST_CODES and len(set(words)) > 1:
        return _sparse(values, fmt)
    return ", ".join(words)


def _sparse(values: list[int], fmt: Format) -> str:
    """Codes by position where most are zero: "0x3c00 at 0-1, 4-5; 0xbc00 at 17"; the first few, then how
    many more."""
    places: dict[int, list[int]] = {}
    for index, code in enumerate(values):
        if code:
            places.setdefault(code, []).append(index)
    shown = [f"{hex_text(fmt, code)} at {index_text(tuple(found))}" for code, found in places.items()]
    return listed(shown, _MOST_CODES)


def _trimmed(values: list[int]) -> list[int]:
    """The codes without the zeros at the end."""
    last = max((index for index, code in enumerate(values) if code), default=-1)
    return values[: last + 1]
