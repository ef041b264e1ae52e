"""The bits of one vector: every operand of a dot product or a tile in one word,
the expected result in another.

From the most to the least significant bit the operand word holds

    a b c [metadata] [scale_a] [scale_b] [mode] [load] [clear]

and the result word

    [flags] d

A field holds its elements with element 0 in its least significant bits. An element takes `Format.bits`
bits (tf32 32, e3m2 6, e2m1 4, b1 1; a metadata nibble 4), packed without padding. Matrices are flattened row
by row. A file's line is the operand word followed by the result word.

Arrays of words are little-endian bytes: uint8 (count, ceil(width / 8)), byte 0 holds bits 7..0, unused top
bits are 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError, ShapeError
from golden.model.instruction import Instruction
from golden.number.formats import Format

Bits = npt.NDArray[Any]
TESTFLOAT_FLAGS = ("inexact", "underflow", "overflow", "divide_by_zero", "invalid")
"""The status flags of TestFloat, the lowest bit first; RISC-V's fflags are the same."""
RESULTS = ("flags", "d")
"""The fields of the result word, from its most significant bit."""
LEVELS = ("dot", "tile")
"""Levels that have a word: one dot product, or the whole matrices of one instruction."""


@dataclass(frozen=True)
class Field:
    """One operand in the word: `elements` of `bits` bits each, element 0 at bit `lsb` of the word.

    `shape` is the operand's shape in the array API, `dtype` its NumPy dtype.
    """

    name: str
    elements: int
    bits: int
    lsb: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def width(self) -> int:
        """Bits of the whole field."""
        return self.elements * self.bits

    @property
    def msb(self) -> int:
        """The field's highest bit in the word."""
        return self.lsb + self.width - 1


@dataclass(frozen=True)
class WordLayout:
    """Where every operand lies in the words of one instruction at one level.

    `fields` run from MSB to LSB, the operand word's before the result word's; `lsb` counts in the word that
    the field belongs to. The last field is d. `status` are the flags of the field `flags`, the lowest bit
    first.
    """

    level: str
    fields: tuple[Field, ...]
    status: tuple[str, ...] = ()

    @classmethod
    def of(cls, ins: Instruction, level: str = "dot") -> WordLayout:
        """Lays out the operands of `ins.dot` (level "dot") or of `ins(...)` (level "tile").

        Raises:
            OperandError: another level.
        """
        if level not in LEVELS:
            raise OperandError(f"level is '{level}', expected {' or '.join(LEVELS)}")
        check_level(ins, level)
        shapes = ins.operand_shapes(level == "tile")
        results = dict.fromkeys(ins.results, ins.result_shape(level == "tile"))
        return cls(
            level,
            (*_laid_out(ins, shapes), *_laid_out(ins, {n: results[n] for n in RESULTS if n in results})),
            ins.status,
        )

    def field(self, name: str) -> Field | None:
        """The field of that name; None where there is none."""
        return next((field for field in self.fields if field.name == name), None)

    @property
    def operand_fields(self) -> tuple[Field, ...]:
        """The fields of the operand word."""
        return tuple(field for field in self.fields if field.name not in RESULTS)

    @property
    def result_fields(self) -> tuple[Field, ...]:
        """The fields of the result word: d and, where the unit has status flags, flags."""
        return tuple(field for field in self.fields if field.name in RESULTS)

    @property
    def operand_width(self) -> int:
        """Bits of the operand word."""
        return self.fields[0].lsb + self.fields[0].width

    @property
    def result_width(self) -> int:
        """Bits of the result word."""
        return self.result_fields[0].msb + 1

    def pack_operands(self, operands: Mapping[str, Bits]) -> Bits:
        """Packs operands (count, *shape), by name, into uint8 (count, ceil(operand_width / 8)).

        Codes must fit their formats, as `ins.dot` checks.

        Raises:
            ShapeError: an operand is missing or has another shape.
        """
        return _pack(self.operand_fields, self.operand_width, operands)

    def unpack_operands(self, words: Bits) -> dict[str, Bits]:
        """Unpacks words into operands by name, (count, *shape) each,
        as `ins.dot` or `ins(...)` takes them."""
        _check_words(words, self.operand_width, "operand")
        return {field.name: _unpack_field(field, words) for field in self.operand_fields}

    def pack_results(self, results: Mapping[str, Bits]) -> Bits:
        """Packs results (count, *shape of d), by name, into uint8 (count, ceil(result_width / 8)).

        Raises:
            ShapeError: a result is missing or has another shape.
        """
        return _pack(self.result_fields, self.result_width, results)

    def unpack_results(self, words: Bits) -> dict[str, Bits]:
        """Unpacks result words into results by name: codes (count,) or (count, m, n) each."""
        _check_words(words, self.result_width, "result")
        return {field.name: _unpack_field(field, words) for field in self.result_fields}

    def join(self, operand_words: Bits, result_words: Bits) -> Bits:
        """Puts each operand word above its result word: uint8 (count, ceil((operand_width + result_width)
        / 8))."""
        if self.result_width % 8 == 0:
            return np.concatenate([result_words, operand_words], axis=1)
        low = np.unpackbits(result_words, axis=1, bitorder="little")[:, : self.result_width]
        high = np.unpackbits(operand_words, axis=1, bitorder="little")[:, : self.operand_width]
        return np.packbits(np.concatenate([low, high], axis=1), axis=1, bitorder="little")

    def split(self, words: Bits) -> tuple[Bits, Bits]:
        """The inverse of `join`: (operand words, result words)."""
        width = self.operand_width + self.result_width
        _check_words(words, width, "whole")
        if self.result_width % 8 == 0:
            return words[:, self.result_width // 8 :], words[:, : self.result_width // 8]
        bits = np.unpackbits(words, axis=1, bitorder="little")[:, :width]
        halves = bits[:, self.result_width :], bits[:, : self.result_width]
        operands, results = (np.packbits(half, axis=1, bitorder="little") for half in halves)
        return operands, results


def _laid_out(ins: Instruction, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Field, ...]:
    """The fields of one word, the first highest."""
    fields: list[Field] = []
    for name in reversed(list(shapes)):
        lsb = fields[-1].msb + 1 if fields else 0
        fields.append(_field(name, ins.code_format(name), lsb, shapes[name]))
    return tuple(reversed(fields))


def check_level(ins: Instruction, level: str) -> None:
    """Refuses tiles of a unit that keeps its accumulator: it has one, not one for each element."""
    if ins.state and level != "dot":
        raise OperandError(
            f"level is '{level}', expected dot: {ins.name} keeps its accumulator and takes one dot product "
            "after the other"
        )


def _field(name: str, fmt: Format, lsb: int, shape: tuple[int, ...]) -> Field:
    return Field(name, math.prod(shape), fmt.bits, lsb, shape, fmt.dtype)


def _check_words(words: Bits, width: int, kind: str) -> None:
    if words.ndim != 2 or words.dtype != np.uint8 or words.shape[1] != (width + 7) // 8:
        raise ShapeError(
            f"{kind} words are {words.dtype} {words.shape}, expected uint8 (count, {(width + 7) // 8}) for "
            f"{width} bits"
        )


def _pack(fields: tuple[Field, ...], width: int, operands: Mapping[str, Bits]) -> Bits:
    arrays = {field.name: _rows(field, operands) for field in fields}
    words = np.zeros((len(arrays[fields[0].name]), (width + 7) // 8), np.uint8)
    for field in fields:
        if len(arrays[field.name]) != len(words):
            raise ShapeError(
                f"operand '{field.name}' has {len(arrays[field.name])} vectors, '{fields[0].name}' "
                f"{len(words)}"
            )
        _pack_field(field, arrays[field.name], words)
    return words


def _rows(field: Field, operands: Mapping[str, Bits]) -> Bits:
    """The operand as (count, elements) little-endian codes."""
    if field.name not in operands:
        raise ShapeError(f"operand '{field.name}' is missing, expected shape {('count', *field.shape)}")
    codes = np.asarray(operands[field.name])
    if codes.shape[1:] != field.shape or codes.ndim == 0:
        raise ShapeError(
            f"operand '{field.name}' has shape {codes.shape}, expected {('count', *field.shape)}"
        )
    return np.ascontiguousarray(codes, field.dtype.newbyteorder("<")).reshape(len(codes), field.elements)


def _pack_field(field: Field, rows: Bits, words: Bits) -> None:
    first, last = field.lsb // 8, field.msb // 8 + 1
    if field.lsb % 8 == 0 and field.bits == 8 * field.dtype.itemsize:
        words[:, first:last] = rows.view(np.uint8)
        return
    bits = np.unpackbits(rows.view(np.uint8).reshape(*rows.shape, -1), axis=2, bitorder="little")[
        :, :, : field.bits
    ]
    bits = bits.reshape(len(rows), field.width)
    if field.lsb % 8:
        bits = np.concatenate([np.zeros((len(rows), field.lsb % 8), np.uint8), bits], axis=1)
    words[:, first:last] |= np.packbits(bits, axis=1, bitorder="little")


def _unpack_field(field: Field, words: Bits) -> Bits:
    part = np.ascontiguousarray(words[:, field.lsb // 8 : field.msb // 8 + 1])
    little = field.dtype.newbyteorder("<")
    if field.lsb % 8 == 0 and field.bits == 8 * field.dtype.itemsize:
        return part.view(little).astype(field.dtype, copy=False).reshape(len(words), *field.shape)
    bits = np.unpackbits(part, axis=1, bitorder="little")[:, field.lsb % 8 :][:, : field.width]
    padded = np.zeros((len(words), field.elements, 8 * field.dtype.itemsize), np.uint8)
    padded[:, :, : field.bits] = bits.reshape(len(words), field.elements, field.bits)
    codes = np.packbits(padded, axis=2, bitorder="little").view(little)
    return codes.astype(field.dtype, copy=False).reshape(len(words), *field.shape)
