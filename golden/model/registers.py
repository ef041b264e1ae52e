"""Every register of every step, for whole arrays of dot products: what the C core reads, makes and writes.

    for block in Registers(ins.engine).blocks(operands):
        for seen in block.steps():
            print(seen.step.op, seen.written)

The general interpreter of golden/core writes each number into a record (golden/core/mg_watch.h); this module
runs it, some thousand dot products at a time, and hands the records out as NumPy arrays. No arithmetic of a
step is done again here. What the numbers of a step are before it, after it and inside it, `SeenStep` says.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.model.engine import Engine, library
from golden.model.layout import lower_format
from golden.model.unit_engines import ModeEngine
from golden.number.formats import Format, Kind, Number
from golden.program.keys import REGISTER
from golden.program.program import Program
from golden.program.steps import Step

Array = npt.NDArray[Any]
NOT_RUN = 255
"""The kind of a number that a dot product did not make: its operation had ended, or there was nothing."""
MOMENTS = ("register", "maximum", "cut", "left", "right", "exact", "unbounded", "rounded", "result")
"""enum mg_moment, in order."""
_NAMES = REGISTER.words
_BLOCK_BYTES = 1 << 24
"""What the records of one block may take."""


# Numbers ----------------------------------------------------------------------------------------------------


class _Field(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("offset", "bytes", "is_signed")]
    _fields_.insert(0, ("name", ctypes.c_char_p))


@lru_cache(maxsize=1)
def number_type() -> np.dtype[Any]:
    """The core's number as a NumPy record; a field of 16 bytes is two, `..._low` and `..._high`."""
    fields, size = (_Field * 32)(), ctypes.c_int64()
    count = library().mg_number_fields(fields, len(fields), ctypes.byref(size))
    names, formats, offsets = [], [], []
    for field in fields[:count]:
        name = field.name.decode()
        halves = ("_low", "_high") if sys.byteorder == "little" else ("_high", "_low")
        for i, half in enumerate(halves if field.bytes == 16 else ("",)):
            names.append(name + half)
            formats.append(f"{'i' if field.is_signed else 'u'}{min(field.bytes, 8)}")
            offsets.append(field.offset + 8 * i)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size.value})


class Numbers:
    """Exact numbers, (count, terms): (-1)**sign * significand * 2**(exponent - fraction_bits).

    Each field of the core's number is an attribute; it is taken out of the records when it is first read.
    `exponent` is the one that alignment compares, `kind` a Kind or NOT_RUN.
    """

    kind: Array
    sign: Array
    exponent: Array
    fraction_bits: Array
    payload: Array
    significand_low: Array
    significand_high: Array

    def __init__(self, shape: tuple[int, int], take: Callable[[str], Array]) -> None:
        self.shape, self._take = shape, take

    @classmethod
    def of(cls, records: Array) -> Numbers:
        """Of records (terms, count)."""
        return cls(records.shape[::-1], lambda name: np.ascontiguousarray(records[name]).T)

    def __getattr__(self, name: str) -> Array:
        if name not in (number_type().names or ()):
            raise AttributeError(name)
        found = self._take(name)
        setattr(self, name, found)
        return found

    def __getitem__(self, columns: slice | list[int]) -> Numbers:
        count = len(range(self.shape[1])[columns]) if isinstance(columns, slice) else len(columns)
        return Numbers((self.shape[0], count), lambda name: getattr(self, name)[:, columns])

    @property
    def count(self) -> int:
        """The number of terms of each dot product."""
        return self.shape[1]

    @cached_property
    def ran(self) -> Array:
        """Where there is a number."""
        return np.asarray(self.kind != NOT_RUN)

    @cached_property
    def finite(self) -> Array:
        """Where the number is finite and takes part in alignment (a sum that cancelled to nothing does)."""
        return np.asarray(self.kind == Kind.FINITE)

    @cached_property
    def nonzero(self) -> Array:
        """Where the number is finite and not zero."""
        return np.asarray(self.finite & ((self.significand_low | self.significand_high) != 0))

    @cached_property
    def lsb(self) -> Array:
        """Exponent of the significand's least significant bit, int64."""
        return np.asarray(self.exponent.astype(np.int64) - self.fraction_bits)

    @cached_property
    def length(self) -> Array:
        """Bit length of the significand, int64."""
        return np.where(
            self.significand_high > 0,
            bit_length(self.significand_high) + 64,
            bit_length(self.significand_low),
        )

    @cached_property
    def trailing_zeros(self) -> Array:
        """Zeros below the lowest bit of the significand that is set, int64; of a zero, 128."""
        low, high = (
            bit_length(word & (~word + np.uint64(1))) - 1
            for word in (self.significand_low, self.significand_high)
        )
        return np.where(low >= 0, low, np.where(high >= 0, high + 64, 128))

    def bit(self, place: Array) -> Array:
        """Bit `place` of each significand (0: the lowest), bool; False outside of it."""
        word = np.where(place < 64, self.significand_low, self.significand_high)
        inside = (place >= 0) & (place < 128)
        return np.asarray((word >> (place & 63).astype(np.uint64) & np.uint64(1) == 1) & inside)

    def shifted_right(self, shift: Array) -> Array:
        """The low 64 bits of each significand shifted right by 0 or more."""
        low, high = self.significand_low, self.significand_high
        far = (shift & 63).astype(np.uint64)
        carried = np.where(far > 0, high << (np.uint64(64) - np.maximum(far, 1)), 0)
        near = np.where(shift < 64, low >> far | carried, high >> far)
        return np.where(shift < 128, near, np.uint64(0))

    def number(self, row: int, column: int) -> Number | None:
        """One number as the reference writes it; None where there is none."""
        fields = {name: int(getattr(self, name)[row, column]) for name in number_type().names or ()}
        if fields["kind"] == NOT_RUN:
            return None
        fields["significand"] = fields.pop("significand_high") << 64 | fields.pop("significand_low")
        return Number(Kind(fields.pop("kind")), **fields)


def joined(parts: Sequence[Numbers]) -> Numbers:
    """The terms of several, side by side."""
    if len(parts) == 1:
        return parts[0]
    shape = parts[0].shape[0], sum(part.count for part in parts)
    return Numbers(shape, lambda name: np.concatenate([getattr(part, name).T for part in parts]).T)


def bit_length(words: Array) -> Array:
    """Bit lengths of unsigned 64-bit integers, int64."""
    # The exponent of float64 is the bit length. The bit below the leading one is cleared where it is set, so
    # that no rounding reaches the next power of two.
    return np.asarray(np.frexp((words & ~(words >> np.uint64(1))).astype(np.float64))[1].astype(np.int64))


def decode(fmt: Format, codes: Array) -> Numbers:
    """Raw codes (count, terms) as the core decodes them."""
    words = np.ascontiguousarray(codes.T, np.uint64)
    records = np.empty(words.shape, number_type())
    library().mg_decode_codes(
        ctypes.byref(lower_format(fmt)), words.ctypes.data, words.size, records.ctypes.data
    )
    return Numbers.of(records)


# Steps ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roundings:
    """The roundings inside a step, each field (count, roundings).

    Attributes:
        index: an element of the register that the step writes, or (fma) of a and b.
        left, right: the two addends of the addition whose sum is rounded (fma: the product, and what was
            there before); None where nothing is added. A fused multiply-add that starts with its product has
            no right one.
        exact: the number that is rounded.
        unbounded: what leaves the rounder before flush and overflow, its carry still above the point; not run
            where there is nothing to round.
        rounded: the number that the result's code stands for.
    """

    index: tuple[int, ...]
    left: Numbers | None
    right: Numbers | None
    exact: Numbers
    unbounded: Numbers
    rounded: Numbers

    def additions(self) -> Iterator[tuple[Numbers, Numbers]]:
        """The two addends of each addition, (count, 2), and their exact sum, (count, 1)."""
        assert self.left is not None and self.right is not None
        for i in range(self.exact.count):
            one = slice(i, i + 1)
            yield joined([self.left[one], self.right[one]]), self.exact[one]


@dataclass(frozen=True)
class SeenStep:
    """One step of some dot products.

    Attributes:
        operation, index: where the step stands in the program.
        before: the registers that the step finds.
        written: the registers that it writes, as it leaves them. What goes to d is in Block.result.
        maxima: of an alignment, in `exponent`: what each group aligned to, (count, groups).
        cuts: of an alignment, what each of its terms lost (count, terms): in `significand` the bits cut off,
            in `fraction_bits` how many, in `exponent` how far the shifter took it to lie below the maximum.
        roundings: the roundings inside the step, or None.
    """

    operation: int
    index: int
    step: Step
    before: Mapping[str, Numbers]
    written: Mapping[str, Numbers]
    maxima: Numbers | None
    cuts: Numbers | None
    roundings: Roundings | None

    @property
    def terms(self) -> Numbers:
        """The terms that the step reads, side by side, in the order of `of`."""
        return joined([self.before[name] for name in self.step.of])

    @property
    def owners(self) -> tuple[str, ...]:
        """The register that each of `terms` came from."""
        return tuple(name for name in self.step.of for _ in range(self.before[name].count))


@dataclass(frozen=True)
class _Place:
    """Where a step's numbers stand among the records."""

    operation: int
    index: int
    step: Step
    before: dict[str, slice]
    written: dict[str, slice]
    inside: dict[str, slice]
    indices: tuple[int, ...]


class Registers:
    """The registers of one instruction, or of a unit in one of its modes: where they stand, and runs of dot
    products."""

    def __init__(self, engine: Engine | ModeEngine) -> None:
        assert isinstance(engine, Engine), "a unit with modes has registers in each of them"
        self.engine = engine
        layout = engine.record_layout()
        self.records = len(layout)
        self.places = tuple(_places(engine.program, layout))
        results = np.flatnonzero(layout[:, 2] == MOMENTS.index("result"))
        self.results = tuple(slice(int(i), int(i) + 1) for i in results)

    @property
    def block_rows(self) -> int:
        """How many dot products make a block."""
        return max(_BLOCK_BYTES // (self.records * number_type().itemsize), 1)

    def blocks(self, operands: Mapping[str, Array]) -> Iterator[Block]:
        """Runs (count,) dot products and yields them in blocks, in order.

        Args:
            operands: as `Instruction.dot` takes them, with one leading dimension.
        """
        unit = self.engine.signature
        given = {name: codes for name, codes in operands.items() if name not in unit.absent}
        checked = unit.complete(unit.check_named(given))
        count = len(checked["c"])
        rows = -(-count // max(-(-count // self.block_rows), 1))  # blocks of one size, or nearly
        for start in range(0, count, max(rows, 1)):
            part = {name: codes[start : start + rows] for name, codes in checked.items()}
            records = np.empty((self.records, len(part["c"])), number_type())
            d = self.engine.observe(part, records)
            yield Block(self, start, records, d)


@dataclass(frozen=True)
class Block:
    """The numbers of some dot products; `start` is the first of them, `d` their results (raw codes)."""

    registers: Registers
    start: int
    records: Array
    d: Array

    def steps(self) -> Iterator[SeenStep]:
        """Every step of every operation, in order."""
        for place in self.registers.places:
            yield SeenStep(
                place.operation,
                place.index,
                place.step,
                {name: self._numbers(at) for name, at in place.before.items()},
                {name: self._numbers(at) for name, at in place.written.items()},
                self._inside(place, "maximum"),
                self._inside(place, "cut"),
                self._roundings(place),
            )

    def result(self, operation: int) -> Numbers:
        """What an operation answers, (count, 1): its code is in `payload`, whatever the kind."""
        return self._numbers(self.registers.results[operation])

    def _numbers(self, at: slice) -> Numbers:
        return Numbers.of(self.records[at])

    def _inside(self, place: _Place, moment: str) -> Numbers | None:
        return self._numbers(place.inside[moment]) if moment in place.inside else None

    def _roundings(self, place: _Place) -> Roundings | None:
        found = {moment: self._inside(place, moment) for moment in MOMENTS[3:8]}
        exact, unbounded, rounded = found["exact"], found["unbounded"], found["rounded"]
        if exact is None or unbounded is None or rounded is None:
            return None
        return Roundings(place.indices, found["left"], found["right"], exact, unbounded, rounded)


def _places(program: Program, layout: Array) -> Iterator[_Place]:
    """Sorts the records by step; a register stands where it was last written."""
    for number, operation in enumerate(program.operations):
        rows = np.flatnonzero(layout[:, 0] == number)
        registers = _registers(layout, rows[layout[rows, 1] == -1])
        for index, step in enumerate(operation.steps):
            own = rows[layout[rows, 1] == index]
            inside = {}
            for moment in ("maximum", "cut", *MOMENTS[3:8]):
                picked = own[layout[own, 2] == MOMENTS.index(moment)]
                if len(picked):
                    inside[moment] = _as_slice(picked)
            exact = own[layout[own, 2] == MOMENTS.index("exact")]
            written = _registers(layout, own)
            indices = tuple(layout[exact, 4].tolist())
            yield _Place(number, index, step, dict(registers), written, inside, indices)
            registers |= written


def _registers(layout: Array, rows: Array) -> dict[str, slice]:
    """The registers that some records hold."""
    rows = rows[layout[rows, 2] == MOMENTS.index("register")]
    names = dict.fromkeys(layout[rows, 3].tolist())
    return {_NAMES[name]: _as_slice(rows[layout[rows, 3] == name]) for name in names}


def _as_slice(places: Array) -> slice:
    """Places that lie equally far apart, as places of one kind in one step do."""
    stride = int(places[1] - places[0]) if len(places) > 1 else 1
    assert (np.diff(places) == stride).all(), "records of one kind lie equally far apart"
    return slice(int(places[0]), int(places[-1]) + 1, stride)
