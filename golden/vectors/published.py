"""Words that others recorded on hardware and published: vectors/published, each file with source and licence.

    for vector in published.load("rdna3"):
        d = golden.instruction("rdna3", vector.name).dot(**vector.operands)      # must equal vector.d

They are part of a checkout, as the vectors of golden.vectors.captured are. A file of `matrices` holds whole
products whose operands were given to several instructions: operands by name, and what was recorded for each
architecture, instruction and name of operands. One of `modifiers` holds whole encodings (`encodings`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import yamlfile
from golden.catalog.lookup import instruction
from golden.errors import FileFormatError, UnknownNameError, nearest
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.vectors.captured import vectors_folder
from golden.yamlfile import Section

Bits = npt.NDArray[Any]


@dataclass(frozen=True)
class Published:
    """Recorded words of one instruction: dot products, a, b (n, k), c, d (n,), scales (n, blocks), or with
    `whole` one product of matrices, a (m, k), b (k, n), c, d (m, n). Raw codes."""

    name: str
    operands: dict[str, Bits]
    d: Bits
    whole: bool
    device: str
    source: str
    licence: str


@dataclass(frozen=True)
class Encoding:
    """One encoding that was executed, and a register's word: every register of an operand held the same.

    name: the instruction, without the size of the wave. words: the encoding. a, b, c, before: what the
    registers of A, B, C and D held; after: the registers of D afterwards.
    """

    name: str
    words: tuple[int, int]
    a: int
    b: int
    c: int
    before: int
    after: int
    device: str
    source: str
    licence: str

    @property
    def constant(self) -> int | None:
        """The selector of C where it is an inline constant, None where it is a register (SRC2, 26:18)."""
        selector = self.words[1] >> 18 & 0x1FF
        # Selectors from 256 on name registers, lower ones inline constants.
        first = 256
        return selector if selector < first else None


_WORD = re.compile(r"[0-9a-f]{8}")


def encodings(architecture: str) -> Iterator[Encoding]:
    """Yields the published encodings with modifiers of an architecture; none where there are none.

    Raises:
        FileFormatError: a line does not hold the words.
        SpecError: a key is missing, unknown or not of its type.
    """
    for path in sorted((vectors_folder() / "published" / "modifiers").glob("*.yaml")):
        document = yamlfile.read(path)
        source, licence = (document.take(key, str) for key in ("source", "licence"))
        devices, names = (document.take(key, Section) for key in ("devices", "operations"))
        before, lines = document.take_int("d_before", 0, 2**32 - 1), document.take("lines", str)
        document.done()
        if architecture not in devices:
            continue
        device, place = devices.take(architecture, str), list(devices).index(architecture)
        for line in lines.splitlines():
            low, high, a, b, c, *after = _words(line, len(devices), str(path))
            operation = f"{low >> 16 & 0x7F:x}"
            if operation not in names:
                raise FileFormatError(f"{path}: line '{line}': operation {operation} is not in 'operations'")
            yield Encoding(
                names[operation], (low, high), a, b, c, before, after[place], device, source, licence
            )


def _words(line: str, results: int, where: str) -> list[int]:
    """A line "low high | a | b | c | d of each device"."""
    fields = [field.split() for field in line.split("|")]
    words = [word for field in fields for word in field]
    if [len(field) for field in fields] != [2, *[1] * (3 + results)] or not all(map(_WORD.fullmatch, words)):
        raise FileFormatError(
            f"{where}: line '{line}', expected words of eight digits: low high | a | b | c{' | d' * results}"
        )
    return [int(word, 16) for word in words]


def architectures() -> list[str]:
    """The architectures of which there are published words."""
    return sorted(path.stem for path in (vectors_folder() / "published").glob("*.yaml"))


def load(architecture: str) -> Iterator[Published]:
    """Yields the published words of an architecture.

    Raises:
        UnknownNameError: there are none of it, or of an instruction that it does not have.
        FileFormatError: a line does not hold the codes that the instruction takes.
        SpecError: a key is missing, unknown or not of its type.
    """
    if architecture not in architectures():
        raise UnknownNameError(
            f"no published words of '{architecture}', expected one of {', '.join(architectures())}"
            f"{nearest(architecture, architectures())}"
        )
    document = yamlfile.read(vectors_folder() / "published" / f"{architecture}.yaml")
    architecture = document.take("architecture", str)
    origin = tuple(document.take(key, str) for key in ("device", "source", "licence"))
    dots, products = document.take("dots", Section), document.take("products", Section, None)
    document.done()
    for name in dots:
        lines = dots.take(name, str).splitlines()
        found = _dots(instruction(architecture, name), lines, f"{document.file}: {name}")
        yield Published(name, found, found.pop("d"), False, *origin)
    for name in products or ():
        assert products is not None
        section, ins = products.take(name, Section), instruction(architecture, name)
        found = {one: _matrix(section, one, ins, one, f"{document.file}: {name}") for one in "abcd"}
        section.done()
        yield Published(name, found, found.pop("d"), True, *origin)
    for path in sorted((vectors_folder() / "published" / "matrices").glob("*.yaml")):
        yield from _shared(yamlfile.read(path), architecture)


def _shared(document: Section, architecture: str) -> Iterator[Published]:
    """The products of one architecture in a file of `matrices`."""
    source, licence = (document.take(key, str) for key in ("source", "licence"))
    operands = document.take("operands", Section)
    recorded = document.take("recorded", Section).take(architecture, Section, None)
    document.done()
    if recorded is None:
        return
    device, results = recorded.take("device", str), recorded.take("results", Section)
    recorded.done()
    for name in results:
        ins, products = instruction(architecture, name), results.take(name, Section)
        for given in products:
            where = f"{document.file}: {name}: {given}"
            section = operands.take(given, Section)
            found = {one: _matrix(section, one, ins, one, where) for one in "abc"}
            section.done()
            yield Published(
                name, found, _matrix(products, given, ins, "d", where), True, device, source, licence
            )


def _dots(ins: Instruction, lines: list[str], where: str) -> dict[str, Bits]:
    """Lines "a | b | c | d", with block scales "a | b | c | scale_a | scale_b | d"."""
    widths = {"a": ins.k, "b": ins.k, "c": 1}
    if ins.scale_block is not None:
        widths |= dict.fromkeys(("scale_a", "scale_b"), ins.k // ins.scale_block)
    widths["d"] = 1
    columns: dict[str, list[list[str]]] = {name: [] for name in widths}
    for line in lines:
        fields = line.split("|")
        if len(fields) != len(widths):
            raise FileFormatError(
                f"{where}: line '{line}', expected {len(widths)} fields: {' | '.join(widths)}"
            )
        for name, field in zip(widths, fields, strict=True):
            columns[name].append(field.split())
    found = {
        name: _codes(columns[name], ins.formats[name], (width,), where) for name, width in widths.items()
    }
    return found | {name: found[name][:, 0] for name in "cd"}


def _matrix(section: Section, key: str, ins: Instruction, operand: str, where: str) -> Bits:
    """The matrix under a key, a line a row, as an operand of the instruction or its result."""
    rows = [line.split() for line in section.take(key, str).splitlines()]
    height, width = {"a": (ins.m, ins.k), "b": (ins.k, ins.n)}.get(operand, (ins.m, ins.n))
    if len(rows) != height:
        raise FileFormatError(f"{where}: {operand} has {len(rows)} rows, expected {height}")
    return _codes(rows, ins.formats[operand], (width,), where)


def _codes(rows: list[list[str]], fmt: Format, width: tuple[int], where: str) -> Bits:
    """Rows of hexadecimal codes, each with the digits of the format's storage."""
    digits = fmt.dtype.itemsize * 2
    for row in rows:
        if len(row) != width[0]:
            raise FileFormatError(f"{where}: {len(row)} codes in a row, expected {width[0]}")
        wrong = next((code for code in row if len(code) != digits), None)
        if wrong is not None:
            raise FileFormatError(
                f"{where}: code '{wrong}', expected {digits} hexadecimal digits ({fmt.name})"
            )
    try:
        return np.array([[int(code, 16) for code in row] for row in rows], fmt.dtype)
    except ValueError:
        raise FileFormatError(f"{where}: a code is no hexadecimal number") from None
