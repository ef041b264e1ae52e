"""Black boxes by name, for the command line.

    python:file.py:function    a function of a Python file, with formats and K
    program:COMMAND            a program that reads operands and writes results as lines of hex
    hopper:NAME, unit.yaml     a model of ours, or of one's own

Other packages add kinds of boxes (golden/identify/blackbox/plugins.py; rtl_tb: dut.yaml,
hw_capture: gpu:NAME).
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from golden.catalog.lookup import resolve
from golden.errors import OperandError, nearest
from golden.files import inputs
from golden.files.function import named_function
from golden.files.output import write_text
from golden.identify.blackbox.plugins import OPENERS
from golden.number.formats import get_format
from golden.processes import CANNOT_BE_RUN, ends_within, started
from golden.program.modes import MOST_MODES, ModeField, Modes
from golden.program.program import ABSENT
from golden.program.signature import INPUTS, Bits, Signature
from golden.registers.sparsity import PATTERNS
from golden.unit import FunctionUnit, Unit

OPERANDS = ("a", "b", "c", "d", "scale_a", "scale_b")


def open_box(
    text: str,
    formats: Mapping[str, str] | None = None,
    k: int | None = None,
    scale_block: int | None = None,
    pattern: str | None = None,
    modes: int | None = None,
    state: bool = False,
) -> Unit:
    """The unit that a text names.

    Args:
        formats, k: for functions and programs.
        scale_block, pattern: for units with scales, or with a sparse a ("2:4").
        modes: for units that take `mode`: its codes are 0 to modes - 1.
        state: whether they keep their accumulator and take `clear` in place of c.

    Raises:
        UnknownNameError, OperandError, FileFormatError, ...: with what was expected.
    """
    kind, _, rest = text.partition(":")
    if kind in ("python", "program") and rest:
        takes = signature_from_options(text, formats, k, scale_block, pattern, modes, state)
        return FunctionUnit.like(
            takes, named_function(rest) if kind == "python" else _program(rest, takes), text
        )
    # All other boxes know what they take.
    if formats is not None or k is not None or modes is not None or state:
        options = "--formats, --k, --modes and --state are for functions and programs"
        raise OperandError(f"{text} has its own formats, K, modes and state: {options}")
    for opener in OPENERS:
        unit = opener(text)
        if unit is not None:
            return unit
    return resolve(text)


def read_formats(text: str) -> dict[str, str]:
    """The formats in a text such as a=f16,b=f16,c=f32,d=f32.

    Raises:
        OperandError: an item is no `operand=format`, names another operand, or one is missing or twice.
    """
    found: dict[str, str] = {}
    for item in text.split(","):
        name, equals, fmt = item.strip().partition("=")
        if not equals or not fmt:
            raise OperandError(f"formats hold '{item.strip()}', expected items such as a=f16")
        if name not in OPERANDS:
            raise OperandError(
                f"formats name '{name}', expected {', '.join(OPERANDS)}{nearest(name, OPERANDS)}"
            )
        if name in found:
            raise OperandError(f"formats name '{name}' twice")
        found[name] = get_format(fmt).name
    missing = [name for name in "ad" if name not in found]
    if missing:
        raise OperandError(
            f"formats lack {', '.join(missing)}, expected a, d, and b and c where the unit has them"
        )
    return found


def signature_from_options(
    text: str,
    formats: Mapping[str, str] | None,
    k: int | None,
    scale_block: int | None,
    pattern: str | None,
    modes: int | None = None,
    state: bool = False,
) -> Signature:
    """The signature of a unit that a text names, from the options.

    Raises:
        OperandError: formats or K are missing, or do not go together.
    """
    if formats is None or k is None:
        raise OperandError(f"{text} does not say what it takes, expected formats and K as options")
    if k < 1:
        raise OperandError(f"K is {k}, expected 1 or more")
    if pattern is not None and pattern not in PATTERNS:
        raise OperandError(f"pattern is '{pattern}', expected one of {', '.join(PATTERNS)}")
    if pattern is not None and k % PATTERNS[pattern].chunk:
        raise OperandError(f"K is {k}, expected a multiple of {PATTERNS[pattern].chunk} with {pattern}")
    # Scales come in pairs, with a block that divides K.
    scales = [name for name in OPERANDS[4:] if name in formats]
    if (scale_block is not None) != (len(scales) == 2) or len(scales) == 1:
        raise OperandError("scales need scale_a and scale_b among the formats, and a scale block")
    if scale_block is not None and (scale_block < 1 or k % scale_block):
        raise OperandError(f"scale block is {scale_block}, expected a divisor of K = {k}")
    if modes is not None and not 1 <= modes <= MOST_MODES:
        raise OperandError(f"modes is {modes}, expected 1 to {MOST_MODES}")
    chosen = None if pattern is None else PATTERNS[pattern]
    field = None if modes is None else Modes((ModeField("mode", tuple(range(modes))),))
    found = {**ABSENT, **{name: get_format(fmt) for name, fmt in formats.items()}}
    return Signature(text, 1, 1, k, found, pattern=chosen, scale_block=scale_block, modes=field, state=state)


# Programs ---------------------------------------------------------------------------------------------------


def _program(command: str, takes: Signature) -> Callable[..., Bits]:
    """A program that gets a line for each dot product on standard input: its operands in the order of the
    calls, a_0 ... a_k-1 b_0 ... c, as hex numbers between spaces; and writes a line with d, in hex, for each.
    """
    words = shlex.split(command)
    if not words:
        raise OperandError("'program:' names no command")

    def answer(**operands: Bits) -> Bits:
        columns = [operands[name].reshape(len(operands["a"]), -1) for name in INPUTS if name in operands]
        rows = (
            " ".join(f"{code:x}" for column in columns for code in column[row].tolist())
            for row in range(len(operands["a"]))
        )
        return _results(_output(words, "\n".join(rows) + "\n"), takes, len(operands["a"]), words[0])

    return answer


def _output(words: list[str], text: str) -> str:
    """What the program writes when it reads a text."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "operands"
        write_text(given, text)
        with tempfile.TemporaryFile(dir=folder) as out, tempfile.TemporaryFile(dir=folder) as errors:
            status = _run(["/bin/sh", "-c", 'exec "$@" <"$0"', str(given), *words], out, errors)
            out.seek(0)
            errors.seek(0)
            written, said = out.read(), errors.read().decode("utf-8", "replace")
    if status in CANNOT_BE_RUN:
        raise OperandError(f"{words[0]} cannot be run: {' '.join(said.split())[:200]}")
    if status:
        raise OperandError(f"{words[0]} ended with status {status}: {' '.join(said.split())[:200]}")
    return inputs.decoded(written, f"output of {words[0]}")


def _run(command: list[str], out: IO[bytes], errors: IO[bytes]) -> int:
    with started(command, out, errors, os.environ) as process:
        seconds = 600  # for one batch
        if not ends_within(process, seconds):
            raise OperandError(f"{command[4]} did not end within {seconds} s")
        return process.returncode


def _results(text: str, takes: Signature, count: int, program: str) -> Bits:
    """The codes in the lines that a program wrote, without empty lines. A line that is no code is quoted
    before the lines are counted: a banner is also one line too many."""
    fmt, codes = takes.formats["d"], []
    lines = [(number, line) for number, line in enumerate(map(str.strip, text.splitlines()), 1) if line]
    for number, line in lines:
        try:
            found = [int(word, 16) for word in line.split()]
        except ValueError:
            said = f"{program} wrote '{line[:40]}' as line {number}"
            raise OperandError(f"{said}, expected a hex number for each dot product") from None
        if not all(0 <= code < 1 << fmt.storage for code in found):
            raise OperandError(f"{program} wrote {line[:40]}, which is no {fmt.name}")
        codes += found
    if len(codes) != count:
        raise OperandError(f"{program} wrote {len(codes)} results for {count} dot products")
    return np.array(codes, fmt.dtype)
