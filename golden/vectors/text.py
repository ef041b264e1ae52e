"""The text formats of vector files: their header, the pieces of a line, their footer.

readmemh   one hex word a line (operand word, then result word), the kind as a comment; fields in a header
           comment
testfloat  one hex code a column: operands, d, and TestFloat's flags of a unit that has flags, else the number
           of the kind
csv        one column an operand, its codes separated by spaces
jsonl      one JSON object a line, operands as lists of hex strings
sv         a SystemVerilog package: widths, a packed struct, the vectors as a function of their number
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from golden.errors import FileFormatError
from golden.files.escape import SYSTEMVERILOG, line_comment
from golden.vectors.lines import Flags, Hex, Index, KindName, KindNumber, Lines, Piece, Word
from golden.vectors.manifest import Manifest
from golden.vectors.word import TESTFLOAT_FLAGS, WordLayout


@dataclass(frozen=True)
class TextFormat:
    """A format: functions that give header lines, the pieces of a record and footer lines."""

    name: str
    suffixes: tuple[str, ...]
    header: Callable[[Manifest, WordLayout, tuple[str, ...]], list[str]]
    lines: Callable[[WordLayout, int], Lines]
    footer: Callable[[Manifest, WordLayout], list[str]]


def _nothing(manifest: Manifest, layout: WordLayout, *_: object) -> list[str]:
    return []


def summary(manifest: Manifest) -> list[str]:
    """What every header says, one fact a line."""
    width = manifest.operand_width + manifest.result_width
    places = [
        f"{f['name']} [{f['lsb'] + f['elements'] * f['bits'] - 1}:{f['lsb']}] {_elements(f)}"
        for f in manifest.fields
    ]
    lines = [
        f"mmagold {manifest.version}: {manifest.architecture} {manifest.instruction}",
        f"{manifest.count} vectors of level {manifest.level}, seed {manifest.seed}, {width} bits each",
        f"fields: {', '.join(places)}; element 0 lowest",
    ]
    return [line_comment(line) for line in lines]


def _elements(field: dict[str, object]) -> str:
    return f"{field['elements']} x {field['format']} ({field['bits']} bits)"


def _readmemh_header(manifest: Manifest, layout: WordLayout, columns: tuple[str, ...]) -> list[str]:
    return [f"// {line}" for line in summary(manifest)]


def _readmemh_lines(layout: WordLayout, count: int) -> Lines:
    return Lines(layout, (Word(layout), b" // ", KindName()))


def _testfloat_lines(layout: WordLayout, count: int) -> Lines:
    if layout.field("mode") is not None:
        raise FileFormatError(
            "format testfloat has no modes, which are options of TestFloat: a file holds one (`of_mode`)"
        )
    flags = layout.field("flags")
    pieces: list[Piece] = []
    for field in layout.fields:
        if field is not flags:
            pieces += [Hex(field, b" "), b" "]
    if flags is None:
        return Lines(layout, (*pieces, KindNumber()))
    bits = tuple(TESTFLOAT_FLAGS.index(word) for word in layout.status)
    return Lines(layout, (*pieces, Flags(flags, bits)), upper=True)


def _csv_header(manifest: Manifest, layout: WordLayout, columns: tuple[str, ...]) -> list[str]:
    return [",".join((*(field.name for field in layout.fields), "kind", *columns))]


def _csv_lines(layout: WordLayout, count: int) -> Lines:
    pieces: list[Piece] = []
    for field in layout.fields:
        pieces += [Hex(field, b" "), b","]
    return Lines(layout, (*pieces, KindName()))


def _jsonl_lines(layout: WordLayout, count: int) -> Lines:
    pieces: list[Piece] = []
    for field in layout.fields:
        opening, end = (b'["', b'"]') if field.shape else (b'"', b'"')
        pieces += [f'{", " if pieces else "{"}"{field.name}": '.encode() + opening, Hex(field, b'", "'), end]
    return Lines(layout, (*pieces, b', "kind": "', KindName(), b'"'), b"}")


def package_name(file: str) -> str:
    """The name of the SystemVerilog package in a file: its stem as an identifier."""
    stem = re.sub(r"\W", "_", Path(file).stem, flags=re.ASCII)
    # Of the built-in package and its classes (IEEE 1800-2017, 26.7).
    built_in = ("std", "process", "mailbox", "semaphore")
    usable = re.match(r"[A-Za-z_]", stem) and stem not in SYSTEMVERILOG and stem not in built_in
    return stem if usable else f"vectors_{stem}"


def _sv_header(manifest: Manifest, layout: WordLayout, columns: tuple[str, ...]) -> list[str]:
    # Vectors that a SystemVerilog package may hold; simulators compile every one of them.
    max_sv = 65536
    if manifest.count > max_sv:
        raise FileFormatError(
            f"{manifest.file}: {manifest.count} vectors, a SystemVerilog package holds at most {max_sv}; "
            "use readmemh"
        )
    width = layout.operand_width + layout.result_width
    numbers = {
        "COUNT": manifest.count,
        "WIDTH": width,
        "OPERAND_WIDTH": layout.operand_width,
        "RESULT_WIDTH": layout.result_width,
    }
    for field in layout.fields:
        numbers |= {
            f"{field.name.upper()}_ELEMENTS": field.elements,
            f"{field.name.upper()}_BITS": field.bits,
        }
    members = [f"    logic [{field.width - 1}:0] {field.name};" for field in layout.fields]
    elements = [
        line for field in layout.fields for line in _sv_element(field.name, field.bits, field.elements)
    ]
    return [
        *(f"// {line}" for line in summary(manifest)),
        f"package {package_name(manifest.file)};",
        *(f"  localparam int {name} = {value};" for name, value in numbers.items()),
        "  typedef struct packed {",
        *members,
        "  } vector_t;",
        "  // The bits of a word as fields.",
        "  function automatic vector_t unpack_word(input logic [WIDTH-1:0] word);",
        "    unpack_word = word;",
        "  endfunction",
        *elements,
        "  // Vector number `index` as a word: the operand word above the result word; X where there is "
        "none.",
        "  function automatic logic [WIDTH-1:0] vector_word(input int index);",
        "    case (index)",
    ]


def _sv_element(name: str, bits: int, elements: int) -> list[str]:
    if elements == 1:
        return []
    field = f"input logic [{bits * elements - 1}:0] {name}"
    return [
        f"  function automatic logic [{bits - 1}:0] {name}_element({field}, input int index);",
        f"    {name}_element = {name}[{bits} * index +: {bits}];",
        "  endfunction",
    ]


def _sv_lines(layout: WordLayout, count: int) -> Lines:
    width = layout.operand_width + layout.result_width
    digits = len(str(max(count - 1, 0)))
    return Lines(
        layout,
        (b"      ", Index(digits), f": vector_word = {width}'h".encode(), Word(layout), b"; // ", KindName()),
    )


def _sv_footer(manifest: Manifest, layout: WordLayout) -> list[str]:
    return ["      default: vector_word = {WIDTH{1'bx}};", "    endcase", "  endfunction", "endpackage"]


FORMATS = {
    form.name: form
    for form in (
        TextFormat("readmemh", (".hex", ".mem"), _readmemh_header, _readmemh_lines, _nothing),
        TextFormat("testfloat", (".txt", ".tf"), _nothing, _testfloat_lines, _nothing),
        TextFormat("csv", (".csv",), _csv_header, _csv_lines, _nothing),
        TextFormat("jsonl", (".jsonl",), _nothing, _jsonl_lines, _nothing),
        TextFormat("sv", (".sv", ".svh"), _sv_header, _sv_lines, _sv_footer),
    )
}
