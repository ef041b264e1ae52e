"""Where operands lie outside registers: tiles in shared memory with their swizzle, and tiles of block scales.

    tile = SharedTile(rows=64, cols=16, bits=16, swizzle=32)
    tile.address(4, 0)              # 144: the byte, from the start of the tile
    tile.at(144)                    # (4, 0)

The rules are those of the matrix descriptors of wgmma and tcgen05 (PTX ISA 9.1, 9.7.15.5; CUTLASS, the
canonical layouts of cute/arch/mma_sm90_desc.hpp). Nothing of this was measured here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from golden.errors import OperandError

SWIZZLES = (0, 32, 64, 128)
"""Bytes of a swizzled row; 0: none."""
CHUNK = 16
"""Bytes that stay together, whatever the swizzle."""
_CORE_ROWS = 8
"""Rows of a core matrix, 16 bytes each."""
SCALE_ROWS, SCALE_COLS = 128, 4
"""Rows and scales of K in a tile of block scales."""


def swizzled(address: int, swizzle: int) -> int:
    """The byte address after the swizzle, its own inverse: bits 4 and up are XORed with bits 7 and up, one of
    them for 32 bytes, two for 64, three for 128."""
    if not swizzle:
        return address
    bits = swizzle // CHUNK - 1  # 1, 3, 7: the chunks of a row, less one
    # A swizzle reads the bits of the byte address from here on: lines of 128 bytes.
    line_bit = 7
    return address ^ (address >> line_bit & bits) << 4


@dataclass(frozen=True)
class SharedTile:
    """An operand in shared memory, as a descriptor names it; rows are those of A, or the columns of B (M or
    N), cols are K.

    bits: of an element's container. swizzle: one of SWIZZLES. by_column: M (N) is contiguous, not K ("MN
    major", for 16 bits alone). leading, stride: the byte offsets of the descriptor; by default those of a
    tile without gaps. The tile begins where the pattern does (base offset 0).
    """

    rows: int
    cols: int
    bits: int
    swizzle: int = 0
    by_column: bool = False
    leading: int | None = None
    stride: int | None = None

    def __post_init__(self) -> None:
        """Refuses what no descriptor says."""
        if self.swizzle not in SWIZZLES:
            raise OperandError(f"swizzle is {self.swizzle}, expected {', '.join(map(str, SWIZZLES))}")
        if self.bits not in (8, 16, 32):
            raise OperandError(f"elements have {self.bits} bits, expected 8, 16 or 32")
        if self.by_column and self.bits != 16:
            raise OperandError(f"elements of {self.bits} bits lie by K, expected 16 bits for the other order")
        width = (self.rows if self.by_column else self.cols) * self.bits // 8
        if self.swizzle and not self.by_column and width > self.swizzle:
            raise OperandError(f"a row of K has {width} bytes, expected at most the swizzle, {self.swizzle}")

    @property
    def row_bytes(self) -> int:
        """Bytes that lie side by side: a line of the swizzle, or a chunk."""
        return self.swizzle or CHUNK

    @property
    def offsets(self) -> tuple[int, int]:
        """Leading and stride offset in bytes."""
        core = _CORE_ROWS * self.row_bytes
        across = -(-(self.rows if self.by_column else self.cols) * self.bits // (8 * self.row_bytes))
        groups = -(-(self.cols if self.by_column else self.rows) // _CORE_ROWS)
        if not self.by_column:  # core matrices of eight rows one after the other
            leading, stride = core, core * across
        elif self.swizzle:
            leading, stride = core * groups, core
        else:
            leading, stride = core * across, core
        return (
            leading if self.leading is None else self.leading,
            stride if self.stride is None else self.stride,
        )

    def address(self, row: int, col: int) -> int:
        """The first byte of an element, from the start of the tile.

        Raises:
            OperandError: the tile has no such element.
        """
        if not (0 <= row < self.rows and 0 <= col < self.cols):
            raise OperandError(f"row {row}, column {col}, expected less than {self.rows} and {self.cols}")
        leading, stride = self.offsets
        size = self.bits // 8
        if not self.by_column:
            byte = col * size
            chunk, within = divmod(byte, self.row_bytes)
            group, line = divmod(row, _CORE_ROWS)
            linear = chunk * leading + group * stride + line * self.row_bytes + within
        else:
            across, within = divmod(row * size, self.row_bytes)
            group, line = divmod(col, _CORE_ROWS)
            # the descriptor's two offsets change places: without a swizzle the leading one is that of K
            along, second = (stride, leading) if self.swizzle else (leading, stride)
            linear = group * along + line * self.row_bytes + within + across * second
        return swizzled(linear, self.swizzle)

    def element(self, row: int, col: int) -> int:
        """The same, counted in elements."""
        return self.address(row, col) * 8 // self.bits

    def at(self, address: int) -> tuple[int, int] | None:
        """The element in which a byte lies; None where none does."""
        return self._places.get(address // (self.bits // 8))

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        return {self.element(row, col): (row, col) for row in range(self.rows) for col in range(self.cols)}


def scale_address(outer: int, inner: int) -> int:
    """The byte of a block scale in a tile of 128 x 4: rows of A (columns of B) by scales along K, as
    tcgen05.cp and cuBLAS take them.

    Raises:
        OperandError: the tile has no such scale.
    """
    if not (0 <= outer < SCALE_ROWS and 0 <= inner < SCALE_COLS):
        raise OperandError(f"scale ({outer}, {inner}), expected less than ({SCALE_ROWS}, {SCALE_COLS})")
    return outer % 32 * 16 + outer // 32 * SCALE_COLS + inner


def scale_at(address: int) -> tuple[int, int]:
    """The scale of a byte, (outer, inner): the inverse of `scale_address`."""
    if not 0 <= address < SCALE_ROWS * SCALE_COLS:
        raise OperandError(f"byte {address}, expected less than {SCALE_ROWS * SCALE_COLS}")
    line, rest = divmod(address, 16)
    return line + rest // SCALE_COLS * 32, rest % SCALE_COLS
