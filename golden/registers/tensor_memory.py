"""Where operands of tcgen05.mma lie in tensor memory: 128 lanes of columns of 32 bits in each CTA.

    memory = TensorMemory(ctas=1, m=128, n=8, k=32, bits=8, scale_block=32)
    memory.place("d").rows[0, 3, 5]         # CTA 0, lane 3, column 5: the row of D of each element there

PTX ISA 9.1, 9.7.16: data path layouts A, B, D and F, and the layouts of scale factors. Sparsity metadata: the
layouts `tmem_e_frg` of NVIDIA's CUTLASS. No such GPU was at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError

Indices = npt.NDArray[np.int64]
LANES = 128
"""Lanes of the tensor memory of a CTA."""
A_COLUMNS = 8
"""Columns that A takes: a row of A has 32 bytes, whatever the type."""
SCALE_A_COLUMNS = 4  # columns of the scales of A
OPERANDS = ("a", "c", "d", "scale_a", "scale_b", "metadata")
"""What can lie in tensor memory."""


@dataclass(frozen=True)
class Place:
    """Where an operand lies in tensor memory: `rows` and `cols` (CTAs, 128 lanes, columns, elements of a
    column of 32 bits) of the matrix, -1 where no element lies. An element lies more than once where its data
    is read more than once; `bits` are those of an element's slot."""

    rows: Indices
    cols: Indices
    bits: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Words of one execution."""
        return self.rows.shape[:3]

    @property
    def filled(self) -> npt.NDArray[np.bool_]:
        """Where an element lies."""
        return np.asarray((self.rows >= 0) & (self.cols >= 0))


@dataclass(frozen=True)
class TensorMemory:
    """The tensor memory of one instruction.

    ctas: CTAs that execute it together. m, n, k: its shape. bits: of an element of A. scale_block: elements
    of K that share a scale; None without scales.
    """

    ctas: int
    m: int
    n: int
    k: int
    bits: int
    scale_block: int | None = None

    def place(self, operand: str) -> Place:
        """Where A, C, D, scale_a (a matrix of rows of A by blocks of K), scale_b (of columns of B by blocks)
        or the metadata of a sparse A (of rows of A by chunks of K, a nibble each; k counts the columns before
        compression) lies.

        Raises:
            OperandError: no such operand lies in tensor memory, or no source says where it lies.
        """
        if operand not in OPERANDS or (operand.startswith("scale") and self.scale_block is None):
            raise OperandError(f"operand is '{operand}', which no lane of this tensor memory has")
        if operand == "a":
            return self._a()
        if operand == "metadata":
            return self._metadata()
        if operand == "scale_a":
            return self._scale_a()
        return self._scale_b() if operand == "scale_b" else self._d()

    @property
    def columns(self) -> int:
        """Columns of C and D; of 128 rows in two CTAs each has 64 rows, whose right half takes lanes 64 and
        up."""
        return self.n // 2 if (self.ctas, self.m) == (2, 128) else self.n

    @property
    def scale_b_columns(self) -> int:
        """A column for 32 columns of B, which are stored at a time."""
        return -(-self.n // 128) * 4

    def _grid(self, columns: int, elements: int) -> tuple[Indices, Indices, Indices, Indices]:
        cta, lane, column, element = np.indices((self.ctas, LANES, columns, elements))
        return cta, lane, column, element

    def _row(self, cta: Indices, lane: Indices) -> Indices:
        """The row of A and D in a lane: data path layouts A, B, D and F."""
        match self.ctas, self.m:
            case 1, 64:  # the first half of the lanes of each warp
                return np.where(lane % 32 < 16, 16 * (lane // 32) + lane % 16, -1)
            case 2, 128:
                return 64 * cta + lane % 64
            case _:
                return LANES * cta + lane

    def _d(self) -> Place:
        """A column of 32 bits for each element, narrower ones lowest."""
        cta, lane, column, _ = self._grid(self.columns, 1)
        row = self._row(cta, lane)
        right = self.columns * (lane // 64) if self.columns < self.n else 0
        return Place(row, np.where(row < 0, -1, column + right), 32)

    def _a(self) -> Place:
        """Packed along K, the lowest k lowest, in the lanes of its row of D; of 128 rows in two CTAs in both
        halves."""
        each = 32 // self.bits
        cta, lane, column, element = self._grid(A_COLUMNS, each)
        row = self._row(cta, lane)
        return Place(row, np.where(row < 0, -1, each * column + element), self.bits)

    def _metadata(self) -> Place:
        """A row of A has 32 bits of metadata if its elements have 16 or 32 bits, 64 bits if they have 8 or 4.

        Of wide elements, 16 rows share 16 lanes: lanes 0 to 7 hold the lower half of K, lanes 8 to 15 the
        upper half; each lane holds two rows, the first eight rows in the low half of the word. Of narrow
        elements each row has the lane of its own, the lowest k lowest."""
        if self.m != LANES * self.ctas:
            raise OperandError(
                f"m is {self.m} in {self.ctas} CTAs, expected {LANES * self.ctas}: no source says where "
                "metadata of fewer rows lies"
            )
        wide = self.bits >= 16
        # Bits of metadata for a chunk of a row of A (golden/registers/sparsity.py).
        nibble_bits = 4
        cta, lane, column, nibble = self._grid(1 if wide else 2, 32 // nibble_bits)
        if wide:
            row = lane // 16 * 16 + nibble // 4 * 8 + lane % 8
            return Place(LANES * cta + row, lane % 16 // 8 * 4 + nibble % 4, nibble_bits)
        return Place(LANES * cta + lane, 8 * column + nibble, nibble_bits)

    @property
    def _blocks(self) -> int:
        assert self.scale_block is not None
        return self.k // self.scale_block

    def _scale_a(self) -> Place:
        """The scales of 128 rows: row r in lane r % 32 of each warp, column r / 32, a byte for each block of
        K."""
        cta, lane, column, byte = self._grid(SCALE_A_COLUMNS, 4)
        row = LANES * cta + 32 * column + lane % 32
        return Place(row, np.where(byte < self._blocks, byte, -1), 8)

    def _scale_b(self) -> Place:
        """The same for all columns of B, in both CTAs."""
        _, lane, column, byte = self._grid(self.scale_b_columns, 4)
        n = 32 * column + lane % 32
        return Place(np.where(n < self.n, n, -1), np.where(byte < self._blocks, byte, -1), 8)
