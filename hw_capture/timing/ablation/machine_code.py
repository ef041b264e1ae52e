"""What the ladder's kernels do, counted before they run: matrix instructions, loads and copies in a step of K
by the machine code (and nothing in local memory), and bank conflicts of shared memory, exactly, by the
addresses that the lanes of a warp ask for.

Shared memory has 32 banks of 4 bytes and serves one word of each bank at a time (W. Sun et al., section 7).
Wider accesses go in parts of 128 bytes: 32 lanes of 4 bytes, 16 of 8, 8 of 16; so does ldmatrix, one matrix a
part.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from hw_capture.errors import HwError, SassError
from hw_capture.kernels import toolchain
from hw_capture.timing import loops
from hw_capture.timing.ablation.variants import Variant
from hw_capture.timing.records import in_parallel


@dataclass(frozen=True)
class Built:
    """A compiled kernel, and what its step of K holds."""

    variant: Variant
    cubin: bytes
    loop: dict[str, int]


def check(variant: Variant, disassembly: str) -> dict[str, int]:
    """Returns what one step of K holds (SASS name to count).

    Raises:
        SassError: an instruction stands there more or less often than it has to.
    """
    code = loops.kernels(disassembly).get("run")
    if code is None:
        raise SassError(f"{variant.label}: the disassembly holds no kernel 'run'")
    for where, names, wanted in (
        ("the step of K", code.loop(), variant.step()),
        ("the kernel", code.names(), variant.whole()),
    ):
        for name, times in wanted.items():
            found = sum(loops.counted(names, (name,)).values())
            if found != times:
                raise SassError(f"{variant.label}: {where} holds {found} x {name}, expected {times}")
    return {name: times for name, times in variant.step().items() if times}


def build(variants: Sequence[Variant], target: str) -> Generator[Built | tuple[Variant, str], None, None]:
    """Compiles kernels, several at a time, and checks them; yields (variant, reason) for what fails."""
    toolchain.require("nvdisasm", "cuobjdump")
    toolchain.require("nvcc")
    yield from in_parallel(partial(_build, target=target), variants)


def _build(variant: Variant, target: str) -> Built | tuple[Variant, str]:
    try:
        cubin = toolchain.compile(variant.source(), target)
        return Built(variant, cubin, check(variant, toolchain.disassemble(cubin)))
    except HwError as error:
        return variant, str(error)


BANKS, WORD = 32, 4  # banks of shared memory, and bytes of a bank's word
LINE = BANKS * WORD


@dataclass(frozen=True)
class Traffic:
    """Accesses of warps to shared memory: parts of 128 bytes, and how often a bank served more than one word
    for one of them."""

    parts: int = 0
    conflicts: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.parts + other.parts, self.conflicts + other.conflicts)

    def times(self, count: int) -> Traffic:
        """The same accesses `count` times."""
        return Traffic(self.parts * count, self.conflicts * count)


def traffic(addresses: Sequence[int], width: int) -> Traffic:
    """Counts one access of a warp: each lane asks for `width` bytes at its byte address."""
    lanes = LINE // width
    parts = [addresses[first : first + lanes] for first in range(0, len(addresses), lanes)]
    return Traffic(len(parts), sum(_ways(part, width) - 1 for part in parts))


def _ways(addresses: Sequence[int], width: int) -> int:
    """Words that the busiest bank has to give."""
    words = {(at + byte) // WORD for at in addresses for byte in range(0, width, WORD)}
    banks = [word % BANKS for word in words]
    return max(banks.count(bank) for bank in set(banks))


@dataclass(frozen=True)
class Layout:
    """A tile in shared memory, as layout.h has it."""

    tile_k: int
    permuted: bool

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of bf16."""
        return 2 * self.tile_k

    @property
    def chunks(self) -> int:
        """Pieces of 16 bytes of a row."""
        return self.row_bytes // 16

    def place(self, row: int, chunk: int) -> int:
        """Byte offset of a chunk."""
        moved = chunk ^ (row // (LINE // self.row_bytes) % self.chunks) if self.permuted else chunk
        return row * self.row_bytes + 16 * moved

    def copied(self, item: int) -> int:
        """Where 16 bytes of a copy go."""
        return self.place(item // self.chunks, item % self.chunks)

    def a_address(self, row: int, k16: int, lane: int) -> int:
        """What a lane of ldmatrix.x4 asks for: A of m16n8k16."""
        return self.place(row + lane % 16, 2 * k16 + lane // 16)

    def b_address(self, column: int, k16: int, lane: int) -> int:
        """The same of B of two n8."""
        return self.place(column + lane % 8 + lane // 16 * 8, 2 * k16 + lane // 8 % 2)


def of_step(variant: Variant) -> tuple[Traffic, Traffic]:
    """Copies into shared memory and loads from it, of a block's step of K.

    Of wgmma_tma nothing is known: the copy engine writes, and the matrix unit reads, without lanes.
    """
    assert not variant.warpgroups
    m, n, k = variant.tile
    layout = Layout(k, variant.permuted)
    warps = [range(first, first + 32) for first in range(0, variant.threads, 32)]
    copies = Traffic()
    for rows in (m, n):
        for turn in range(0, rows * layout.chunks, variant.threads):
            for lanes in warps:
                copies += traffic([layout.copied(turn + lane) for lane in lanes], 16)
    loads = Traffic()
    for addresses in _loads(layout):
        loads += traffic(addresses, 16)
    return copies, loads


def _loads(layout: Layout) -> Iterator[list[int]]:
    """Every ldmatrix of four warps, 64 x 64 elements of D each (warp_tiles.cuh)."""
    for warp in range(4):
        for k16 in range(layout.tile_k // 16):
            for place in range(0, 64, 16):
                yield [layout.a_address(warp // 2 * 64 + place, k16, lane) for lane in range(32)]
                yield [layout.b_address(warp % 2 * 64 + place, k16, lane) for lane in range(32)]


def of_product(variant: Variant, size: int) -> tuple[Traffic, Traffic]:
    """Copies and loads of a whole product of `size` in each direction."""
    m, n, k = variant.tile
    steps = (size // m) * (size // n) * (size // k)
    copies, loads = of_step(variant)
    return copies.times(steps), loads.times(steps)
