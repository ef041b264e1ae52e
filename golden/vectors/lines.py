"""Vectors as lines of text, one a record: a format is a list of pieces, used to write and to read alike.

Whole chunks are turned into text at once, as matrices of characters: no Python runs per vector.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.errors import FileFormatError
from golden.vectors.word import Field, WordLayout

Bits = npt.NDArray[Any]
Chars = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Hex:
    """A field as hex digits, element 0 first, `between` the elements."""

    field: Field
    between: bytes

    @property
    def digits(self) -> int:
        """Hex digits of one element."""
        return (self.field.bits + 3) // 4

    @property
    def width(self) -> int:
        """Characters of the piece."""
        return self.field.elements * (self.digits + len(self.between)) - len(self.between)


@dataclass(frozen=True)
class Word:
    """The operand word followed by the result word, as one hex number."""

    layout: WordLayout

    @property
    def width(self) -> int:
        """Hex digits of the number."""
        return (self.layout.operand_width + self.layout.result_width + 3) // 4


@dataclass(frozen=True)
class Flags:
    """Status flags, two hex digits: `bits` has the place of each of the unit's own flags."""

    field: Field
    bits: tuple[int, ...]
    width: int = 2


@dataclass(frozen=True)
class Index:
    """The number of the record, right-aligned."""

    width: int


@dataclass(frozen=True)
class KindName:
    """The name of the stimulus kind; a quote, a comma or the end of the line follows."""


@dataclass(frozen=True)
class KindNumber:
    """The number of the stimulus kind in `golden.stimuli.KINDS`, two hex digits."""

    width: int = 2


Piece = bytes | Hex | Word | Flags | Index | KindName | KindNumber


@dataclass(frozen=True)
class Lines:
    """One text format for one layout: `pieces` make a line, `closing` ends it (after the signals, if there
    are any). `upper`: hex digits are capital letters."""

    layout: WordLayout
    pieces: tuple[Piece, ...]
    closing: bytes = b""
    upper: bool = False

    @property
    def has_kinds(self) -> bool:
        """Whether a line gives the kind of its operands."""
        return any(isinstance(piece, (KindName, KindNumber)) for piece in self.pieces)

    def encode(
        self, arrays: dict[str, Bits], kinds: Bits, start: int, tails: Sequence[bytes] | None
    ) -> bytes:
        """The lines of records; `start` is the number of the first, `tails` what to put before `closing`
        in each."""
        return b"".join(self.encode_parts(arrays, kinds, start, tails))

    def encode_parts(
        self, arrays: dict[str, Bits], kinds: Bits, start: int, tails: Sequence[bytes] | None
    ) -> Iterator[bytes]:
        """The same, some lines at a time."""
        # Lines that are made together: this number stays in the caches of a core.
        at_once = 4096
        for first in range(0, len(kinds), at_once):
            some = slice(first, first + at_once)
            own = {name: codes[some] for name, codes in arrays.items()}
            ends = None if tails is None else tails[some]
            yield self._encoded(own, kinds[some], start + first, ends)

    def _encoded(
        self, arrays: dict[str, Bits], kinds: Bits, start: int, tails: Sequence[bytes] | None
    ) -> bytes:
        end = b"\n" if tails is not None else self.closing + b"\n"
        columns = [self._column(piece, arrays, kinds, start) for piece in (*self.pieces, end)]
        text = np.concatenate(columns, axis=1).tobytes()
        text = text.upper() if self.upper else text
        if KindName() in self.pieces:
            text = text.translate(None, b"\0")  # names of kinds are padded with NULs
        if tails is None:
            return text
        rows = zip(text.split(b"\n")[:-1], tails, strict=True)
        return b"".join(line + tail + self.closing + b"\n" for line, tail in rows)

    def _column(self, piece: Piece, arrays: dict[str, Bits], kinds: Bits, start: int) -> Chars:
        count = len(kinds)
        if isinstance(piece, bytes):
            return np.broadcast_to(np.frombuffer(piece, np.uint8), (count, len(piece)))
        if isinstance(piece, Hex):
            return _hex_elements(piece, arrays[piece.field.name].reshape(count, piece.field.elements))
        if isinstance(piece, Flags):
            return _hex_chars(_moved_bits(arrays[piece.field.name], range(len(piece.bits)), piece.bits))
        if isinstance(piece, Word):
            words = self.layout.join(self.layout.pack_operands(arrays), self.layout.pack_results(arrays))
            return _hex_chars(np.ascontiguousarray(words[:, ::-1]))[:, -piece.width :]
        if isinstance(piece, Index):
            numbers = [b"%*d" % (piece.width, number) for number in range(start, start + count)]
            return np.frombuffer(b"".join(numbers), np.uint8).reshape(count, piece.width)
        if isinstance(piece, KindNumber):
            return _hex_chars(kinds.astype(np.uint8)[:, None])
        return _names()[kinds]

    def decode(self, lines: Sequence[bytes]) -> tuple[dict[str, Bits], Bits]:
        """Arrays by name, (count, *shape), and kinds of whole, unchanged lines.

        Raises:
            FileFormatError: a line is not of this format;
                the message starts with its index in `lines`, "[i]".
        """
        fixed = self._fixed_width()
        short = next((i for i, line in enumerate(lines) if len(line) < fixed), None)
        if short is not None:
            raise FileFormatError(
                f"[{short}] holds {len(lines[short])} characters, expected at least {fixed}"
            )
        # All lines have the same columns, so a field of all vectors is read at once.
        chars = np.frombuffer(b"".join(line[:fixed] for line in lines), np.uint8).reshape(len(lines), fixed)
        arrays: dict[str, Bits] = {}
        kinds: Bits | None = None
        at = 0
        for piece in self.pieces:
            width = len(piece) if isinstance(piece, bytes) else getattr(piece, "width", 0)
            part = chars[:, at : at + width]
            if isinstance(piece, bytes) and at + width <= fixed:
                _check_literal(piece, part)
            elif isinstance(piece, Hex):
                arrays[piece.field.name] = _elements_of_hex(piece, part)
            elif isinstance(piece, Flags):
                arrays[piece.field.name] = _own_flags(piece, part)
            elif isinstance(piece, Word):
                arrays |= self._fields_of_words(part)
            elif isinstance(piece, KindNumber):
                kinds = _check_kinds(_bytes_of_hex(part)[:, 0])
            # A name has no fixed width: it is the last piece of a line.
            elif isinstance(piece, KindName):
                kinds = _kinds_of_names([line[at:] for line in lines])
                break
            at += width
        return arrays, np.zeros(len(lines), np.uint8) if kinds is None else kinds

    def _fixed_width(self) -> int:
        """Characters up to the name of the kind, the one piece of variable width."""
        width = 0
        for piece in self.pieces:
            if isinstance(piece, KindName):
                break
            width += len(piece) if isinstance(piece, bytes) else piece.width
        return width

    def _fields_of_words(self, chars: Chars) -> dict[str, Bits]:
        operands, results = self.layout.split(np.ascontiguousarray(_bytes_of_hex(chars)[:, ::-1]))
        return self.layout.unpack_operands(operands) | self.layout.unpack_results(results)


def _moved_bits(codes: Bits, of: Sequence[int], to: Sequence[int]) -> Bits:
    """Bytes (count, 1) whose bits `to` are the bits `of` of codes (count,)."""
    moved = np.zeros(len(codes), np.uint8)
    for source, target in zip(of, to, strict=True):
        moved |= (codes.astype(np.uint8) >> np.uint8(source) & np.uint8(1)) << np.uint8(target)
    return moved[:, None]


def _own_flags(piece: Flags, chars: Chars) -> Bits:
    codes = _bytes_of_hex(chars)[:, 0]
    other = codes & np.uint8(~sum(1 << bit for bit in piece.bits) & 0xFF)
    if other.any():
        place = int(np.argmax(other != 0))
        raise FileFormatError(f"[{place}] flags are {int(codes[place]):#x}, which the unit does not have")
    own = _moved_bits(codes, piece.bits, range(len(piece.bits)))[:, 0]
    return own.astype(piece.field.dtype).reshape(len(codes), *piece.field.shape)


def _names() -> Chars:
    """The names of the kinds, one a row, padded with NULs."""
    longest = max(map(len, stimuli.KINDS))
    padded = b"".join(name.encode().ljust(longest, b"\0") for name in stimuli.KINDS)
    return np.frombuffer(padded, np.uint8).reshape(len(stimuli.KINDS), longest)


def _hex_chars(rows: Bits) -> Chars:
    """Bytes (count, n) as lower-case hex digits (count, 2 n)."""
    digits = hexlify(np.ascontiguousarray(rows).data)
    return np.frombuffer(digits, np.uint8).reshape(len(rows), 2 * rows.shape[1])


def _hex_elements(piece: Hex, codes: Bits) -> Chars:
    count, item = len(codes), piece.field.dtype.itemsize
    big = np.ascontiguousarray(codes, piece.field.dtype.newbyteorder(">"))
    digits = _hex_chars(big.view(np.uint8).reshape(count, codes.shape[1] * item)).reshape(
        count, piece.field.elements, 2 * item
    )
    separator = np.broadcast_to(
        np.frombuffer(piece.between, np.uint8), (*digits.shape[:2], len(piece.between))
    )
    cells = np.concatenate([digits[:, :, -piece.digits :], separator], axis=2)
    return cells.reshape(count, cells.shape[1] * cells.shape[2])[:, : piece.width]


def _bytes_of_hex(chars: Chars) -> Bits:
    """Hex digits (count, n) as big-endian bytes (count, ceil(n / 2))."""
    count = len(chars)
    if chars.shape[1] % 2:
        chars = np.concatenate([np.full((count, 1), ord("0"), np.uint8), chars], axis=1)
    wrong = ~_IS_HEX[chars]
    if wrong.any():
        raise FileFormatError(f"[{int(np.argwhere(wrong)[0, 0])}] '{chr(chars[wrong][0])}' is no hex digit")
    return np.frombuffer(bytes.fromhex(chars.tobytes().decode("ascii")), np.uint8).reshape(
        count, chars.shape[1] // 2
    )


_IS_HEX = np.isin(np.arange(256), np.frombuffer(b"0123456789abcdefABCDEF", np.uint8))


def _elements_of_hex(piece: Hex, chars: Chars) -> Bits:
    count, field, step = len(chars), piece.field, piece.digits + len(piece.between)
    padded = np.concatenate(
        [chars, np.broadcast_to(np.frombuffer(piece.between, np.uint8), (count, len(piece.between)))], axis=1
    )
    cells = padded.reshape(count, field.elements, step)
    wrong = (cells[:, :, piece.digits :] != np.frombuffer(piece.between, np.uint8)).any(axis=(1, 2))
    if wrong.any():
        raise FileFormatError(
            f"[{int(np.argmax(wrong))}] operand {field.name} is not {field.elements} codes of {field.bits} "
            "bits"
        )
    digits = np.full((count, field.elements, 2 * field.dtype.itemsize), ord("0"), np.uint8)
    digits[:, :, -piece.digits :] = cells[:, :, : piece.digits]
    codes = (
        _bytes_of_hex(digits.reshape(count, digits.shape[1] * digits.shape[2]))
        .view(field.dtype.newbyteorder(">"))
        .astype(field.dtype)
    )
    above = (codes >> (field.bits - 1)) > 1  # twice, because a shift by all bits of the dtype is undefined
    if above.any():
        raise FileFormatError(
            f"[{int(np.argmax(above.any(axis=1)))}] operand {field.name} has a code of more than "
            f"{field.bits} bits"
        )
    return codes.reshape(count, *field.shape)


def _check_literal(piece: bytes, part: Chars) -> None:
    wrong = (part != np.frombuffer(piece, np.uint8)).any(axis=1)
    if wrong.any():
        found = part[np.argmax(wrong)].tobytes().decode("latin-1")
        raise FileFormatError(f"[{int(np.argmax(wrong))}] holds '{found}' where '{piece.decode()}' belongs")


def _check_kinds(kinds: Bits) -> Bits:
    wrong = kinds >= len(stimuli.KINDS)
    if wrong.any():
        raise FileFormatError(f"[{int(np.argmax(wrong))}] {int(kinds[wrong][0])} is the number of no kind")
    return kinds


def _kinds_of_names(rests: list[bytes]) -> Bits:
    numbers = {name.encode(): number for number, name in enumerate(stimuli.KINDS)}
    kinds = np.empty(len(rests), np.uint8)
    for index, rest in enumerate(rests):
        name = rest.replace(b'"', b",").split(b",", 1)[0]
        if name not in numbers:
            raise FileFormatError(f"[{index}] '{name[:40].decode('latin-1')}' is the name of no kind")
        kinds[index] = numbers[name]
    return kinds
