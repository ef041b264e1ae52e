"""Vectors that others made: files of columns without a manifest, as TestFloat's, and .npz files of arrays.

    vectors = foreign.read("f16_mulAdd.txt", unit, "a,b,c,d,flags")      # a VectorSet with the unit's results
    report = foreign.compare("f16_mulAdd.txt", unit, "a,b,c,d,flags")    # where the file says something else

A line has the columns that are named, in their order: hex codes between spaces, tabs or commas, an operand
of k elements as k of them, element 0 first; `-` is a column that nobody reads. `//` and `#` start comments.
Of an .npz file the names are its keys; `a=x` reads operand a from key x.

`flags` are those of TestFloat, which are RISC-V's fflags: 1 inexact, 2 underflow, 4 overflow, 8 divide by
zero, 16 invalid, whatever the order of the unit's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import FileFormatError, OperandError, nearest
from golden.files.inputs import read_bytes, shortened
from golden.files.npyfile import read_arrays
from golden.model.instruction import Instruction
from golden.program.signature import INPUTS
from golden.vectors.vectorset import VectorSet
from golden.vectors.word import RESULTS, TESTFLOAT_FLAGS

Bits = npt.NDArray[Any]
SKIPPED = "-"
"""The name of a column that nobody reads."""
_MOST = 1 << 30
"""Bytes of text that are read."""
_SEPARATOR = re.compile(r"[\s,]+")
_CODE = re.compile(r"(?:0[xX])?[0-9a-fA-F]+")


@dataclass(frozen=True)
class Difference:
    """A record whose result is not the unit's: its line (or index in an .npz file), result, and codes."""

    place: int
    name: str
    found: int
    wanted: int


@dataclass(frozen=True)
class Report:
    """What a comparison found: the records, the differing ones, and the first of these."""

    count: int
    wrong: int
    first: tuple[Difference, ...]
    compared: tuple[str, ...]


def read(path: str | Path, ins: Instruction, columns: str) -> VectorSet:
    """The vectors of a file with the unit's results.

    Raises:
        FileFormatError: a line or an array is not what the columns say, or a result in the file is another
            than the unit's; the message names the line.
        OperandError: a column that the unit does not have, or an operand without a column.
    """
    vectors, given, places = _read(path, ins, columns)
    report = _compared(vectors, given, places)
    if report.wrong:
        one = report.first[0]
        raise FileFormatError(
            f"{path}:{one.place}: {one.name} is {one.found:#x}, but {ins.name} gives {one.wanted:#x} "
            f"({report.wrong} of {report.count} differ)"
        )
    return vectors


def compare(path: str | Path, ins: Instruction, columns: str) -> Report:
    """Holds the results in a file against the unit's. Raises as `read`, but for results that differ."""
    vectors, given, places = _read(path, ins, columns)
    if not given:
        raise OperandError(f"columns '{columns}' hold no result, expected d or flags among them")
    if not len(vectors):
        raise FileFormatError(f"{path}: holds no vectors; a check of nothing proves nothing")
    return _compared(vectors, given, places)


def _compared(vectors: VectorSet, given: dict[str, Bits], places: Bits) -> Report:
    right = vectors.results
    differ = {name: codes != right[name] for name, codes in given.items()}
    wrong = np.zeros(len(vectors), np.bool_)
    for one in differ.values():
        wrong |= one
    # A report holds the first differences.
    most = 5
    first = [
        Difference(int(places[i]), name, int(given[name][i]), int(right[name][i]))
        for i in np.flatnonzero(wrong)[:most]
        for name in given
        if differ[name][i]
    ]
    return Report(len(vectors), int(wrong.sum()), tuple(first), tuple(given))


def _read(path: str | Path, ins: Instruction, columns: str) -> tuple[VectorSet, dict[str, Bits], Bits]:
    """Operands with the unit's results, the results in the file, and the line (index) of each record."""
    chosen = _chosen(ins, columns)
    reader = _arrays if Path(path).suffix == ".npz" else _lines
    found, places = reader(Path(path), ins, chosen)
    operands = {name: codes for name, codes in found.items() if name not in RESULTS}
    given = {name: codes for name, codes in found.items() if name in RESULTS}
    checked = ins.check_operands([operands.get(name) for name in INPUTS], False)
    results = ins.answers(checked)
    kinds = np.zeros(len(places), np.uint8)
    vectors = VectorSet.of(ins, "dot", {name: checked[name] for name in operands}, results, kinds, 0)
    return vectors, given, places


def _chosen(ins: Instruction, columns: str) -> list[tuple[str, str]]:
    """The columns: what each holds, and the key that an .npz file has it under."""
    shapes = ins.operand_shapes(matrices=False)
    known = (*shapes, *ins.results)
    found = []
    for word in columns.split(","):
        name, _, key = (part.strip() for part in word.partition("="))
        if name not in known and name != SKIPPED:
            raise OperandError(
                f"column '{name}' is nothing that {ins.name} takes or gives, expected {', '.join(known)} or "
                f"{SKIPPED}{nearest(name, known)}"
            )
        found.append((name, key or name))
    names = [name for name, _ in found if name != SKIPPED]
    twice = next((name for name in names if names.count(name) > 1), None)
    missing = next((name for name in shapes if name not in names), None)
    if twice is not None or missing is not None:
        what = f"'{twice}' twice" if twice is not None else f"no '{missing}'"
        raise OperandError(f"columns '{columns}' have {what}, expected each of {', '.join(shapes)} once")
    return found


def _elements(ins: Instruction, name: str) -> int:
    return math.prod(ins.operand_shapes(matrices=False).get(name, ()))


def _bits(ins: Instruction, name: str) -> int:
    return len(TESTFLOAT_FLAGS) if name == "flags" else ins.code_format(name).bits


def _codes(ins: Instruction, name: str, codes: Bits, where: str) -> Bits:
    """Codes as the unit has them, of its dtype; codes of flags in its own order."""
    if name == "flags":
        return _own_flags(ins, codes, where)
    shape = ins.operand_shapes(matrices=False).get(name, ())
    return codes.astype(ins.code_format(name).dtype).reshape(len(codes), *shape)


def _own_flags(ins: Instruction, codes: Bits, where: str) -> Bits:
    codes = codes.reshape(len(codes)).astype(np.uint8)
    own = np.zeros(len(codes), np.uint8)
    for bit, word in enumerate(TESTFLOAT_FLAGS):
        raised = codes >> bit & 1
        if word in ins.status:
            own |= raised << np.uint8(ins.status.index(word))
        elif raised.any():
            raise FileFormatError(
                f"{where}: record {int(np.argmax(raised))} raises {word}, which {ins.name} does not have "
                f"({', '.join(ins.status)})"
            )
    return own


# Text -------------------------------------------------------------------------------------------------------


def _lines(path: Path, ins: Instruction, chosen: list[tuple[str, str]]) -> tuple[dict[str, Bits], Bits]:
    try:
        text = read_bytes(path, _MOST).decode("ascii")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not hex text: byte {error.start} is not ASCII") from None
    sizes = [1 if name == SKIPPED else _elements(ins, name) for name, _ in chosen]
    rows: list[list[str]] = []
    places: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = [word for word in _SEPARATOR.split(re.split("//|#", line, maxsplit=1)[0]) if word]
        if not words or (not rows and words == [key for _, key in chosen]):
            continue  # empty, or the heading of a csv
        if len(words) != sum(sizes):
            raise FileFormatError(
                f"{path}:{number}: {len(words)} codes, expected {sum(sizes)} for "
                f"{','.join(name for name, _ in chosen)}"
            )
        rows.append(words)
        places.append(number)
    found, at = {}, 0
    for (name, _), size in zip(chosen, sizes, strict=True):
        if name != SKIPPED:
            column = _column([row[at : at + size] for row in rows], _bits(ins, name), name, path, places)
            found[name] = _codes(ins, name, column, str(path))
        at += size
    return found, np.array(places, np.int64)


def _column(rows: Sequence[Sequence[str]], bits: int, name: str, path: Path, places: Sequence[int]) -> Bits:
    codes = np.zeros((len(rows), len(rows[0]) if rows else 1), np.uint64)
    for i, row in enumerate(rows):
        for j, word in enumerate(row):
            if not _CODE.fullmatch(word) or int(word, 16) >> bits:
                raise FileFormatError(
                    f"{path}:{places[i]}: '{shortened(word)}' in column {name}, expected a hex code of "
                    f"{bits} bits"
                )
            codes[i, j] = int(word, 16)
    return codes


# Arrays -----------------------------------------------------------------------------------------------------


def _arrays(path: Path, ins: Instruction, chosen: list[tuple[str, str]]) -> tuple[dict[str, Bits], Bits]:
    named = {name: key for name, key in chosen if name != SKIPPED}
    arrays = read_arrays(path)
    missing = next((key for key in named.values() if key not in arrays), None)
    if missing is not None:
        raise FileFormatError(f"{path}: holds no array '{missing}'")
    found: dict[str, Bits] = {}
    for name, key in named.items():
        array, bits, size = arrays[key], _bits(ins, name), _elements(ins, name)
        if array.dtype.kind not in "iu" or not array.ndim or array.size != len(array) * size:
            raise FileFormatError(
                f"{path}[{key}]: {array.dtype} of shape {array.shape}, expected integer codes, {size} a "
                "record"
            )
        unsigned = array.view(f"u{array.dtype.itemsize}").astype(np.uint64).reshape(len(array), size)
        wrong = np.argwhere(unsigned >> np.uint64(bits - 1) > 1)
        if len(wrong):
            place = int(wrong[0][0])
            raise FileFormatError(f"{path}[{key}][{place}]: no {bits}-bit code of {name}")
        found[name] = _codes(ins, name, unsigned, f"{path}[{key}]")
    lengths = {name: len(codes) for name, codes in found.items()}
    if len(set(lengths.values())) > 1:
        raise FileFormatError(f"{path}: arrays of different lengths: {lengths}")
    return found, np.arange(next(iter(lengths.values())), dtype=np.int64)
