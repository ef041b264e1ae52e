"""What lies behind the pointers of a kernel: matrices of raw codes to the bytes
that the lanes read, and back.

`for_kernel(ins, form)` gives a `Buffer` for each operand. Tiles have the shapes of the matrix API; an
execution takes `ins.blocks` tiles. A buffer is (executions, ...) of u32 or u64 words, one of these:
- registers (lanes, registers) as `ins.fragments` lays them out;
- what wgmma and tcgen05 read from shared memory: K-major core matrices of 8 rows by 16 bytes, those of 8 rows
  one after the other; of two CTAs first what the first one holds;
- CTAs, lanes and columns of tensor memory, for A, C, D and block scales of tcgen05;
- matrices packed without gaps, for wmma whose fragments are opaque.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.model.instruction import Instruction
from golden.registers.layouts import Layout
from hw_capture.errors import NoKernelError
from hw_capture.kernels import kernels, tensor_memory

Bits = npt.NDArray[Any]


@dataclass(frozen=True)
class Buffer:
    """One operand of a kernel: `shape` words of `dtype` for each execution."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pack: Callable[[Bits], Bits]
    unpack: Callable[[Bits], Bits]

    @property
    def nbytes(self) -> int:
        """Bytes of one execution."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


def for_kernel(ins: Instruction, form: str = "registers") -> dict[str, Buffer]:
    """Returns the buffers of the kernel's parameters, by name: a, b, c, those of metadata and scales it
    takes, and d."""
    names = [name for name in kernels.PARAMETERS if name == "d" or name in ins.operand_shapes(True)]
    return {name: _buffer(ins, name, form) for name in names}


def _buffer(ins: Instruction, name: str, form: str) -> Buffer:
    if kernels.opaque(ins):
        return _packed(ins, name)
    places = (form,) if name == "a" else ins.traits.places_of(name)
    if places == ("shared",):
        return _shared(ins, name)
    if places == ("tensor",):
        return _tensor(ins, name)
    layout = getattr(kernels.fragments(ins), name, None)
    if layout is None:
        raise NoKernelError(f"{ins.name}: operand {name} has no register layout")
    return _registers(ins, name, layout)


def _registers(ins: Instruction, name: str, layout: Layout) -> Buffer:
    blocks = ins.blocks

    def pack(tiles: Bits) -> Bits:
        return layout.pack(tiles.reshape(-1, blocks, *tiles.shape[1:]) if blocks > 1 else tiles)

    def unpack(words: Bits) -> Bits:
        tiles = layout.unpack(words)
        return tiles.reshape(-1, *tiles.shape[2:]) if blocks > 1 else tiles

    return Buffer(name, (layout.lanes, layout.registers), layout.register_dtype, pack, unpack)


def _row_bytes(matrix: Bits, bits: int) -> npt.NDArray[np.uint8]:
    """Rows of codes (..., columns) packed without gaps, element 0 lowest: uint8 (..., bytes)."""
    if bits >= 8:
        return np.ascontiguousarray(matrix).view(np.uint8)
    elements = (matrix[..., None] >> np.arange(bits, dtype=np.uint8)) & np.uint8(1)
    return np.packbits(elements.reshape(*matrix.shape[:-1], -1), axis=-1, bitorder="little")


def _row_codes(rows: npt.NDArray[np.uint8], bits: int, dtype: np.dtype[Any]) -> Bits:
    """The inverse of `_row_bytes`."""
    if bits >= 8:
        return np.ascontiguousarray(rows).view(dtype)
    elements = np.unpackbits(rows, axis=-1, bitorder="little").reshape(*rows.shape[:-1], -1, bits)
    return np.asarray((elements << np.arange(bits, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8))


def _shared(ins: Instruction, name: str) -> Buffer:
    fmt = ins.formats[name]
    rows = ins.m if name == "a" else ins.n
    padded = tensor_memory.supported(ins) and tensor_memory.padded(ins, name)
    nbytes = ins.k * rows if padded else kernels.shared_bytes(ins)[name == "b"]
    chunks = nbytes // rows // 16

    # Shared memory holds matrices in cores of 8 rows by 16 bytes, cores of a row block one after the other.
    def pack(tiles: Bits) -> Bits:
        matrix = tiles if name == "a" else tiles.swapaxes(1, 2)
        lines = _padded_bytes(matrix, fmt.bits) if padded else _row_bytes(matrix, fmt.bits)
        cores = lines.reshape(-1, rows // 8, 8, chunks, 16).swapaxes(2, 3)
        return np.ascontiguousarray(cores).reshape(len(tiles), nbytes).view(np.uint32)

    def unpack(words: Bits) -> Bits:
        cores = np.ascontiguousarray(words).view(np.uint8).reshape(-1, rows // 8, chunks, 8, 16)
        lines = cores.swapaxes(2, 3).reshape(-1, rows, chunks * 16)
        codes = (
            _padded_codes(lines, fmt.bits, fmt.dtype) if padded else _row_codes(lines, fmt.bits, fmt.dtype)
        )
        return codes if name == "a" else codes.swapaxes(1, 2)

    return Buffer(name, (nbytes // 4,), np.dtype(np.uint32), pack, unpack)


def _padded_bytes(matrix: Bits, bits: int) -> npt.NDArray[np.uint8]:
    """The same where each 16 elements lie in 16 bytes, packed from the front, zeros behind."""
    sixteens = _row_bytes(matrix.reshape(*matrix.shape[:-1], -1, 16), bits)
    room = np.zeros((*sixteens.shape[:-1], 16), np.uint8)
    room[..., : sixteens.shape[-1]] = sixteens
    return room.reshape(*matrix.shape[:-1], -1)


def _padded_codes(rows: npt.NDArray[np.uint8], bits: int, dtype: np.dtype[Any]) -> Bits:
    """The inverse of `_padded_bytes`."""
    sixteens = rows.reshape(*rows.shape[:-1], -1, 16)[..., : 2 * bits]
    return _row_codes(np.ascontiguousarray(sixteens), bits, dtype).reshape(*rows.shape[:-1], -1)


def _tensor(ins: Instruction, name: str) -> Buffer:
    """Where `tensor_memory.place` says; scales of B as rows of a matrix (n, blocks)."""
    spot, dtype = tensor_memory.place(ins, name), ins.formats[name].dtype
    rows, columns = ins.operand_shapes(True).get(name, (ins.m, ins.n))
    turned = name == "scale_b"
    shape = (columns, rows) if turned else (rows, columns)

    def pack(tiles: Bits) -> Bits:
        return tensor_memory.pack(spot, tiles.swapaxes(1, 2) if turned else tiles)

    def unpack(words: Bits) -> Bits:
        tiles = tensor_memory.unpack(spot, words, shape, dtype)
        return tiles.swapaxes(1, 2) if turned else tiles

    return Buffer(name, spot.shape, np.dtype(np.uint32), pack, unpack)


def _packed(ins: Instruction, name: str) -> Buffer:
    fmt, shape = ins.formats[name], ins.operand_shapes(True).get(name, (ins.m, ins.n))
    by_column = ins.traits.by_column(name)
    word = np.dtype(np.uint64 if fmt.bits == 64 else np.uint32)
    words = shape[0] * shape[1] * fmt.bits // (8 * word.itemsize)

    def pack(tiles: Bits) -> Bits:
        lines = _row_bytes(tiles.swapaxes(1, 2) if by_column else tiles, fmt.bits)
        return np.ascontiguousarray(lines).reshape(len(tiles), -1).view(word)

    def unpack(buffer: Bits) -> Bits:
        lines = np.ascontiguousarray(buffer).view(np.uint8).reshape(len(buffer), shape[by_column], -1)
        codes = _row_codes(lines, fmt.bits, fmt.dtype)
        return codes.swapaxes(1, 2) if by_column else codes

    return Buffer(name, (words,), word, pack, unpack)
