"""Operands from the outside world: text on a command line, and .npy, .npz and hex files; results written the
same ways.

Hex text: one raw code a word, any white space, `//` and `#` start comments. Results go through
golden/files/output.py: nothing is ever half written.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, FileFormatError, MmagoldError, OperandError
from golden.files.inputs import read_bytes, shortened
from golden.files.npyfile import read_array, read_arrays
from golden.files.output import check, is_stream, write_text, write_whole
from golden.model.instruction import Instruction
from golden.number.formats import Format, from_float
from golden.number.rounding import encode_fraction

Bits = npt.NDArray[Any]
NAMES = ("a", "b", "c", "metadata", "scale_a", "scale_b", "mode", "clear", "load")
_SUFFIXES = (".npy", ".npz", ".hex", ".txt")
_POWER = re.compile(r"([+-]?)(?:([0-9.]+)\*)?2(?:\*\*|\^)\(?([+-]?\d+)\)?$")


def format_of(ins: Instruction, name: str) -> Format:
    """The format of an operand; metadata are 4-bit nibbles, modes plain codes."""
    return ins.code_format(name)


# Operand text -----------------------------------------------------------------------------------------------


def parse_codes(text: str, fmt: Format, length: int | None, argument: str) -> Bits:
    """Reads comma-separated elements: raw codes such as 0x3c00, or values such as 1.5, -0,
    inf, nan, 2**-24, 1/3, 0x1p-24; what the format has not is rounded to nearest even.

    A shorter list is filled up with zeros to `length`; `length` None means one element.

    Raises:
        OperandError: an element cannot be read or does not fit the format, or there are too many.
    """
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    allowed = 1 if length is None else length
    if len(words) > allowed or (length is None and len(words) != 1):
        expected = "one" if length is None else f"at most {length}"
        raise OperandError(f"argument '{argument}' has {len(words)} elements, expected {expected}")
    codes = [_parse_element(word, fmt, f"argument '{argument}'[{index}]") for index, word in enumerate(words)]
    row = np.array(codes + [0] * (allowed - len(codes)), dtype=fmt.dtype)
    return row.reshape(()) if length is None else row


def _parse_element(word: str, fmt: Format, where: str) -> int:
    if re.fullmatch(r"0[xX][0-9a-fA-F_]+", word):
        code = int(word, 16)
        if code >> fmt.bits:
            raise OperandError(f"{where} is {shortened(word)}, expected a {fmt.bits}-bit {fmt.name} code")
        return code
    value = _parse_value(word)
    if value is None:
        raise OperandError(
            f"{where} is '{shortened(word)}', expected a number (1.5, -0, inf, nan, 2**-24, 1/3, 0x1p-24) "
            "or a code (0x3c00)"
        )
    try:
        return _encode(value, fmt)
    except MmagoldError as error:
        raise OperandError(f"{where} is {shortened(word)}: {error}") from None


def _parse_value(word: str) -> float | Fraction | None:
    power = _POWER.fullmatch(word.replace(" ", ""))
    try:
        if power is not None:
            exponent = int(power[3])
            if abs(exponent) > 5000:
                return None
            value = Fraction(power[2] or 1) * Fraction(2) ** exponent
            return -value if power[1] == "-" else value
        if re.match(r"[+-]?0[xX]", word):
            return float.fromhex(word)
        if re.fullmatch(r"[+-]?\d+/\d+", word):
            return Fraction(word)
        return float(word)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def _encode(value: float | Fraction, fmt: Format) -> int:
    if fmt.is_float:
        if not fmt.signed and (value < 0 or (value == 0 and math.copysign(1.0, value) < 0)):
            raise OperandError(f"{fmt.name} has no sign")
        return encode_fraction(fmt, value)
    if not value.is_integer() if isinstance(value, float) else value.denominator != 1:
        raise OperandError(f"{fmt.name} holds integers")
    return int(from_float(fmt, float(value)))


# Operand files ----------------------------------------------------------------------------------------------


def read_operand(path: str | Path, ins: Instruction, name: str, dot: bool, values: bool) -> Bits:
    """Reads one operand from a .npy file or hex text, shaped (batch, ...) for the matrix API or `dot`.

    Args:
        values: floats (or, for integer formats, integers) are converted to the format with golden.from_float.

    Raises:
        FileFormatError: naming the file, and the line or element, and what was expected.
    """
    file = Path(path)
    if file.suffix == ".npz":
        raise FileFormatError(f"{file}: an .npz file holds all operands; give it with --in")
    if file.suffix == ".npy":
        return _as_codes(read_array(file), str(file), ins, name, values)
    return read_hex(file, format_of(ins, name), ins.operand_shapes(not dot)[name], name)


def read_npz(path: str | Path, ins: Instruction, dot: bool, values: bool) -> dict[str, Bits]:
    """Reads the operands that an .npz file holds under the keys a, b, c, metadata, scale_a, scale_b, mode,
    clear, load."""
    shapes = ins.operand_shapes(not dot)
    found = read_arrays(path, tuple(shapes))
    return {name: _as_codes(array, f"{path}[{name}]", ins, name, values) for name, array in found.items()}


def _as_codes(array: Bits, where: str, ins: Instruction, name: str, values: bool) -> Bits:
    """Turns a file's array into raw codes of the operand's dtype, or says why it is none."""
    fmt = format_of(ins, name)
    if values and name not in ("metadata", "mode", "clear", "load"):
        return _convert(array, where, fmt)
    if array.dtype.kind == "f":
        raise FileFormatError(
            f"{where}: holds {array.dtype} values, expected raw {fmt.name} bits ({fmt.dtype}); "
            f"--values converts values to {fmt.name}"
        )
    if array.dtype.kind not in "iu":
        raise FileFormatError(f"{where}: holds {array.dtype}, expected raw {fmt.name} bits ({fmt.dtype})")
    if array.dtype.kind == "i" and not fmt.is_float and array.dtype.itemsize == fmt.dtype.itemsize:
        return np.asarray(array.view(fmt.dtype) & fmt.dtype.type((1 << fmt.bits) - 1))
    wrong = np.argwhere((array < 0) | (array > (1 << fmt.bits) - 1))
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        raise FileFormatError(
            f"{where}{list(place)}: {int(array[place])} is no {fmt.bits}-bit {fmt.name} code"
        )
    return np.asarray(array.astype(fmt.dtype))


def _convert(array: Bits, where: str, fmt: Format) -> Bits:
    if array.dtype.kind not in "fiu":
        raise FileFormatError(f"{where}: holds {array.dtype}, expected numbers")
    try:
        return from_float(fmt, array)
    except (OperandError, DTypeError) as error:
        raise FileFormatError(f"{where}: {error}") from None


def read_hex(path: str | Path, fmt: Format, shape: tuple[int, ...], name: str) -> Bits:
    """Reads hex text and shapes it (batch, *shape)."""
    file = Path(path)
    try:
        # Bytes of hex text that are read.
        max_hex = 1 << 30
        text = read_bytes(file, max_hex).decode("ascii")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{file}: not hex text: byte {error.start} is not ASCII") from None
    codes = [
        _hex_word(word, fmt, file, number)
        for number, line in enumerate(text.splitlines(), 1)
        for word in re.split(r"//|#", line, maxsplit=1)[0].split()
    ]
    size = math.prod(shape)
    if not codes or len(codes) % size:
        extent = " x ".join(map(str, shape)) or "one code each"
        raise FileFormatError(
            f"{file}: holds {len(codes)} codes, expected a multiple of {size} for operand {name} ({extent})"
        )
    return np.array(codes, dtype=fmt.dtype).reshape(-1, *shape)


def _hex_word(word: str, fmt: Format, file: Path, line: int) -> int:
    digits = word[2:] if word[:2] in ("0x", "0X") else word
    if not re.fullmatch(r"[0-9a-fA-F](?:_?[0-9a-fA-F])*", digits):
        raise FileFormatError(
            f"{file}:{line}: '{shortened(word)}' is no hex code (raw {fmt.name} bits, such as "
            f"{fmt.largest:x})"
        )
    code = int(digits, 16)
    if code >> fmt.bits:
        raise FileFormatError(f"{file}:{line}: {shortened(word)} does not fit {fmt.name}'s {fmt.bits} bits")
    return code


# Results ----------------------------------------------------------------------------------------------------


def hex_text(codes: Bits, fmt: Format, title: str) -> str:
    """Raw codes as hex text: a comment with the shape, then one row of the last axis a line."""
    digits = (fmt.bits + 3) // 4
    rows = codes.reshape(-1, codes.shape[-1]) if codes.ndim > 1 else codes.reshape(-1, 1)
    lines = [f"// {title}, raw {fmt.name} bits, shape {' x '.join(map(str, codes.shape)) or 'scalar'}"]
    return "\n".join(lines + [" ".join(f"{int(code):0{digits}x}" for code in row) for row in rows]) + "\n"


def check_output(path: str | Path) -> None:
    """Refuses an output name of unknown kind, or one that cannot be written, before anything is computed."""
    file = Path(path)
    _kind_of(file)
    check(file)


def _kind_of(file: Path) -> str:
    """The suffix that says how a result is written; hex text into a device or pipe whose name has none."""
    if file.suffix in _SUFFIXES:
        return file.suffix
    if not file.suffix and is_stream(file):
        return ".hex"
    raise FileFormatError(f"{file}: unknown kind of output '{file.suffix}', expected {', '.join(_SUFFIXES)}")


def write_result(path: str | Path, results: dict[str, Bits], fmt: Format, title: str) -> bool:
    """Writes the codes of d as .npy or hex text, or all results as .npz (keys d and flags), by the suffix.

    Returns:
        Whether all of them were written.
    """
    kind, codes = _kind_of(Path(path)), results["d"]
    named: dict[str, Any] = dict(results)
    if kind == ".npy":
        write_whole(path, lambda stream: np.save(stream, codes))
    elif kind == ".npz":
        write_whole(path, lambda stream: np.savez_compressed(stream, **named))
    else:
        write_text(path, hex_text(codes, fmt, title))
    return kind == ".npz" or len(results) == 1


# Whole calls ------------------------------------------------------------------------------------------------


def from_text(ins: Instruction, given: dict[str, str | None]) -> dict[str, Bits]:
    """Reads the operands of one dot product from text; scales default to ones,
    metadata to the first legal columns."""
    shapes = ins.operand_shapes(matrices=False)
    operands = {}
    for name, text in given.items():
        if name not in shapes:
            if text is not None:
                raise OperandError(f"argument '{name}' was given, but {ins.name} takes none")
            continue
        text = {"b": "", "c": "0"}.get(name) if text is None else text
        fmt, length = format_of(ins, name), shapes[name][0] if shapes[name] else None
        if text is not None:
            operands[name] = parse_codes(text, fmt, length, name)
        if name in ("metadata", "scale_a", "scale_b"):
            count = 0 if text is None else len([word for word in text.split(",") if word.strip()])
            row = operands.get(name, np.zeros(shapes[name], fmt.dtype))
            row[count:] = ins.at_rest(name)
            operands[name] = row
    return operands


def compute(ins: Instruction, given: dict[str, Bits], dot: bool) -> dict[str, Bits]:
    """The results by name (d and, where the unit has status flags, flags) of the matrix API or `dot` on
    operands by name; a missing one is an error that names it."""
    for name in [name for name in ins.operand_shapes(not dot) if name in "abc"]:
        if name not in given:
            raise OperandError(f"operand '{name}' is missing: give --{name} FILE, or --in FILE.npz")
    return ins.answers(ins.check_operands([given.get(name) for name in NAMES], not dot), not dot)
