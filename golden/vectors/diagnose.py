"""Finds what is wrong with a vector file whose checksum is not the manifest's:
the line, if it can be found.

The checksums of the parts find the part. Its line is found by writing the part again from the seed, else as
the first line that cannot be read or whose result is not the unit's.
"""

from __future__ import annotations

import io
import zlib
from pathlib import Path

from golden.errors import FileFormatError
from golden.files.inputs import opened
from golden.model.instruction import Instruction
from golden.vectors import files, signals
from golden.vectors.manifest import Manifest, Part
from golden.vectors.registers import from_registers
from golden.vectors.text import FORMATS
from golden.vectors.vectorset import excerpt


def explain(path: Path, made: Manifest, ins: Instruction) -> FileFormatError:
    """The error to raise for a file that is not what its manifest says."""
    with opened(path) as file:
        data = file.read(made.bytes + 1)  # of a file that grew, no more than shows it
        size = file.seek(0, io.SEEK_END)
    if made.format == "npz":
        return FileFormatError(
            f"{path}: truncated or edited: {size} bytes of {made.bytes}, SHA-256 is not the manifest's"
        )
    at = 0
    for number, part in enumerate(made.parts):
        text = data[at : at + part.bytes]
        if f"{zlib.crc32(text):08x}" != part.crc32 or len(text) < part.bytes:
            wanted = _written_again(made, ins, number)
            if wanted is not None and f"{zlib.crc32(wanted):08x}" != part.crc32:
                wanted = None  # another version of the package drew the vectors
            short = len(text) < part.bytes and text.count(b"\n") < part.lines
            cut = short and (wanted is None or wanted.startswith(text))
            return (
                _truncated(path, made, part, text)
                if cut
                else _edited(path, made, ins, number, data[at:], wanted)
            )
        at += part.bytes
    extra = made.parts[-1].line + made.parts[-1].lines
    return FileFormatError(
        f"{path}:{extra}: {len(data) - at} bytes after the end of the vectors; expected {made.bytes} bytes"
    )


def _truncated(path: Path, made: Manifest, part: Part, text: bytes) -> FileFormatError:
    """The error for a file that ends early, perhaps inside a line."""
    ends = part.line + text.count(b"\n")
    lines = made.parts[-1].line + made.parts[-1].lines - 1
    return FileFormatError(
        f"{path}:{ends}: the file ends here, expected {lines} lines ({made.count} vectors)"
    )


def _edited(
    path: Path, made: Manifest, ins: Instruction, number: int, rest: bytes, wanted: bytes | None
) -> FileFormatError:
    """The error for a part that differs from `wanted`, or from what its checksum says
    where that is not known."""
    part = made.parts[number]
    lines = rest.split(b"\n")[: part.lines]
    if wanted is not None:
        for index, (line, good) in enumerate(zip(lines, wanted.split(b"\n"), strict=False)):
            if line != good:
                return FileFormatError(f"{path}:{part.line + index}: edited: {_difference(line, good)}")
        return FileFormatError(f"{path}:{part.line + len(lines)}: the file ends here")
    if 0 < number < len(made.parts) - 1:
        found = _first_wrong(made, ins, lines)
        if found is not None:
            return FileFormatError(f"{path}:{part.line + found[0]}: {found[1]}")
    last = part.line + part.lines - 1
    return FileFormatError(
        f"{path}:{part.line}: a line between this one and {last} was edited (CRC-32 is not the manifest's)"
    )


def _difference(line: bytes, good: bytes) -> str:
    at = next(
        (i for i, (x, y) in enumerate(zip(line, good, strict=False)) if x != y), min(len(line), len(good))
    )
    shown, wanted = (text[max(at - 8, 0) : at + 12].decode("latin-1") for text in (line, good))
    return f"'{shown}' at column {at + 1}, expected '{wanted}'"


def _written_again(made: Manifest, ins: Instruction, number: int) -> bytes | None:
    """The text that a part should have; None where it cannot be made again."""
    form, layout = FORMATS[made.format], files.layout_of(ins, made.level)
    columns = signals.columns(ins) if made.format == "csv" and made.level == "dot" else ()
    if number in (0, len(made.parts) - 1):
        texts = files.frames(made, ins, layout, number)
        return next((text for text in texts if len(text) == made.parts[number].bytes), texts[0])
    if made.weights is None or made.parts[number].lines > files.chunk_of(layout):
        return None
    start = made.parts[number].line - made.parts[1].line
    drawn = excerpt(ins, made.seed, made.level, made.weights, start, made.parts[number].lines)
    arrays, kinds = files.arrays_of(drawn, made.level)
    lines = form.lines(layout, made.count)
    plain = lines.encode(arrays, kinds, start, None)
    if len(plain) == made.parts[number].bytes or made.format not in ("csv", "jsonl"):
        return plain
    return lines.encode(arrays, kinds, start, list(files.tails_of(made.format, drawn, columns)))


def _first_wrong(made: Manifest, ins: Instruction, lines: list[bytes]) -> tuple[int, str] | None:
    """Index and complaint of the first line that is no record of the format
    or whose d is not the unit's result."""
    layout = files.layout_of(ins, made.level)
    form = FORMATS[made.format].lines(layout, made.count)
    held: int | None = None if ins.state else 0
    for index, line in enumerate(lines):
        try:
            arrays, _ = form.decode([line])
        except FileFormatError as error:
            return index, str(error).removeprefix("[0] ")
        if made.level == "fragment":
            arrays = from_registers(ins, arrays)
        operands, results = files.parted(arrays)
        if held is not None or operands["clear"][0]:  # else it starts from a line that is not of this part
            wrong = files.wrong_result(ins, made.level, operands, results, held or 0)
            if wrong is not None:
                return index, wrong[1]
        held = files.last_accumulator(ins, results["d"])
    return None
