"""A block of D: its tiles run through the chains of the plan, and the sums are put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels import chain, sums
from golden.kernels.assembly import Assembly
from golden.kernels.conversion import convert_codes, encode, numbers, parts_of
from golden.kernels.order import Runs, parts, pieces, places, which_part
from golden.kernels.plan import Plan
from golden.model import core_library
from golden.unit import check_can_pad

Bits = npt.NDArray[Any]


class Block(Assembly):
    """Rows and columns of D of a group of products: arrays (group, rows, columns), sums (group, tile row,
    tile column, row, column)."""

    def __init__(
        self,
        plan: Plan,
        arrays: dict[str, Bits],
        rows: slice,
        columns: slice,
        k: int,
        counter: Callable[[int], None],
    ) -> None:
        self.plan, self.k, self.counter = plan, k, counter
        self.arrays, self.rows, self.columns = arrays, rows, columns
        self.m, self.n = rows.stop - rows.start, columns.stop - columns.start
        self.group = len(arrays["a"])
        self.tile_m, self.tile_n = _tiles(self.group, self.m, self.n)
        self.many = -(-self.m // self.tile_m), -(-self.n // self.tile_n)
        self.longest = chain.longest(plan.instruction)

    def result(self) -> Bits:
        """Codes of D (group, rows, columns)."""
        options = self.plan.options
        found = parts(self.plan, self.k)
        alone = len(found) == 1 and len(found[0]) == 1 and options.promote is None
        if alone and self.plan.is_plain("c" in self.arrays):
            return self._matrix(self.chained(found[0][0], self._seed))
        if alone or not found:
            total = self.of_one_chain(self.chained(found[0][0] if found else [], self._seed))
        else:
            with np.errstate(all="ignore"):
                total = self.total(found)
        return self.codes(total)

    def codes(self, total: Bits) -> Bits:
        """Codes of D for the sum over all of K."""
        with np.errstate(all="ignore"):
            total = self._finish(total)
        return self._matrix(encode(total, self.plan.formats["d"], sums.nan_word(self.plan)))

    # Chains -------------------------------------------------------------------------------------------------

    def rounded(self, values: Bits, fmt: str) -> Bits:
        """As Assembly."""
        return sums.to_format(values, fmt)

    def promoted(self, total: Bits | None, part: Bits, step: int) -> Bits:
        """As Assembly."""
        if total is None:
            total = np.zeros((), part.dtype)
        options = self.plan.options
        factor = None
        if options.scales == "block":
            part, factor = self._scaled(part, step)
        return sums.promoted(total, part, factor, "promotion" in options.fma)

    def chained(self, runs: Runs, seed: Bits | None) -> Bits:
        """Codes of d after these steps, from a seed or from zero."""
        own = self.plan.instruction.formats
        d = np.zeros((self.tile_m, self.tile_n), own["c"].dtype) if seed is None else seed
        for piece in pieces(runs, self.longest):
            first, left = piece.start, len(piece)
            while left:
                steps = 1 << left.bit_length() - 1
                operands = {"a": self._of_a("a", first, steps), "b": self._of_b("b", first, steps), "c": d}
                for name, take in (
                    ("metadata", self._of_a),
                    ("scale_a", self._of_a),
                    ("scale_b", self._of_b),
                ):
                    if name in self.arrays:
                        operands[name] = take(name, first, steps)
                d = chain.run(self.plan.instruction, steps, operands, self.tile_m, self.tile_n)
                self.counter(self.group * self.m * self.n * steps)
                first, left = first + steps, left - steps
        return np.broadcast_to(d, (self.group, *self.many, self.tile_m, self.tile_n))

    @property
    def _seed(self) -> Bits | None:
        if self.plan.options.c != "seed":
            return None
        return self._tiled(self.arrays["c"][:, self.rows, self.columns])

    # Operands of a stretch of K -----------------------------------------------------------------------------

    def _of_a(self, name: str, first: int, steps: int) -> Bits:
        """A stretch of a, metadata or scale_a as (group, tile row, 1, row, k)."""
        array = self.arrays[name][:, self.rows]
        found = self._stretch(name, array, -1, first, steps)
        return found.reshape(self.group, self.many[0], 1, self.tile_m, found.shape[-1])

    def _of_b(self, name: str, first: int, steps: int) -> Bits:
        """A stretch of b or scale_b as (group, 1, tile column, k, column)."""
        array = self.arrays[name][:, :, self.columns]
        found = self._stretch(name, array, -2, first, steps)
        return found.reshape(self.group, 1, found.shape[1], self.many[1], self.tile_n).swapaxes(2, 3)

    def _stretch(self, name: str, array: Bits, axis: int, first: int, steps: int) -> Bits:
        """Some steps of K of an operand in the instruction's format, with what is at rest beyond its
        edges."""
        width, inside = self._width(name), array.shape[axis]
        found = places(self.plan, self.k, first, steps)
        if found is not None:
            taken = np.take(array, np.minimum(found, inside - 1), axis)
            beyond = found >= inside
        else:
            start, stop = first * width, min((first + steps) * width, inside)
            taken = array[..., start:stop] if axis == -1 else array[:, start:stop]
            beyond = None
        if name in ("a", "b"):
            taken = self._entering(name, taken, axis, which_part(self.plan, name, first, steps))
        return self._padded(name, taken, axis, steps * width, beyond)

    def _entering(self, name: str, taken: Bits, axis: int, part: Bits | None) -> Bits:
        """Codes of a or b as the instruction takes them; `part` is which of the number's parts."""
        source, target = self.plan.formats[name], self.plan.instruction.formats[name]
        if part is None:
            return convert_codes(taken, source, target, self.plan.options.convert)
        cut = parts_of(taken, target, self.plan.options)
        return np.choose(part if axis == -1 else part[:, None], cut)

    def _width(self, name: str) -> int:
        """Elements of an operand along K in one step."""
        unit = self.plan.instruction
        if name == "metadata" and unit.pattern is not None:
            return unit.k // unit.pattern.chunk
        if name in ("scale_a", "scale_b") and unit.scale_block is not None:
            return unit.k // unit.scale_block
        return unit.stored_k if name == "a" else unit.k

    def _padded(self, name: str, taken: Bits, axis: int, length: int, beyond: Bits | None) -> Bits:
        across = self.many[0] * self.tile_m if axis == -1 else self.many[1] * self.tile_n
        shape = (self.group, across, length) if axis == -1 else (self.group, length, across)
        rest = self.plan.instruction.at_rest(name)
        if name in "ab" and (taken.shape[axis] < length or (beyond is not None and beyond.any())):
            check_can_pad(self.plan.instruction)
        if beyond is not None and beyond.any():
            taken = taken.copy()
            taken[(..., beyond) if axis == -1 else (..., beyond, slice(None))] = rest
        if taken.shape == shape:
            return taken
        room = np.full(shape, rest, taken.dtype)
        room[:, : taken.shape[1], : taken.shape[2]] = taken
        return room

    # Sums ---------------------------------------------------------------------------------------------------

    def numbers(self, codes: Bits) -> Bits:
        """As Assembly."""
        return numbers(codes, self.plan.instruction.formats["d"], self.plan.accumulates)

    def without_nans(self, codes: Bits) -> Bits:
        """As Assembly."""
        return np.where(np.isnan(self.numbers(codes)), codes.dtype.type(0), codes)

    def _finish(self, total: Bits) -> Bits:
        """Scales, alpha, C, bias and activation."""
        plan, options = self.plan, self.plan.options
        if plan.computes != plan.accumulates:
            total = total.astype(np.float64 if plan.computes.name == "f64" else np.float32)
        if options.scales == "tensor":
            total = total * self._tiled(self.arrays["factor_a"] * self.arrays["factor_b"])
        if options.scales == "row":  # one after the other: an H100's cuBLASLt, plan cublas_fp8_rows
            total = total * self._tiled(self._spread("factor_b", None, self.columns))
            total = total * self._tiled(self._spread("factor_a", self.rows, None))
        c = None
        if "c" in self.arrays and options.c == "after" and options.beta != 0:
            codes = self._tiled(self.arrays["c"][:, self.rows, self.columns])
            c = sums.times(options.beta, numbers(codes, plan.formats["c"], plan.computes))
        if c is not None and "c" in options.fma:
            total = sums.fused(np.broadcast_to(np.asarray(options.alpha, total.dtype), c.shape), total, c)
        else:
            total = sums.times(options.alpha, total)
            total = total if c is None else total + c
        if options.bias != "none":
            rows, columns = (self.rows, None) if options.bias == "rows" else (None, self.columns)
            total = total + self._tiled(
                numbers(self._spread("bias", rows, columns), plan.formats["d"], plan.computes)
            )
        return sums.activated(total, options.activation)

    def _spread(self, name: str, rows: slice | None, columns: slice | None) -> Bits:
        array = self.arrays[name]
        if rows is not None and array.shape[1] > 1:
            array = array[:, rows]
        if columns is not None and array.shape[2] > 1:
            array = array[:, :, columns]
        return array

    def _scaled(self, part: Bits, step: int) -> tuple[Bits, Bits]:
        """The sum and its factor, from the scales of the blocks that a step lies in, for each element."""
        k = step * self.plan.instruction.k
        (rows, k_a), (k_b, columns) = self.plan.options.scale_a_block, self.plan.options.scale_b_block
        of_rows = np.arange(self.rows.start, self.rows.stop) // rows
        of_columns = np.arange(self.columns.start, self.columns.stop) // columns
        a = self.arrays["factor_a"][:, of_rows, k // k_a]
        b = self.arrays["factor_b"][:, k // k_b, of_columns]
        of_a, of_b = a[:, :, None], b[:, None, :]
        if self.plan.options.scale_order == "a_first":
            return part * self._tiled(of_a), self._tiled(of_b)
        return part, self._tiled(of_a * of_b)

    # Tiles --------------------------------------------------------------------------------------------------

    @cached_property
    def _across(self) -> tuple[int, int]:
        return self.many[0] * self.tile_m, self.many[1] * self.tile_n

    def _tiled(self, matrices: Bits) -> Bits:
        """(group or 1, rows or 1, columns or 1) as sums lie."""
        room = np.zeros((self.group, *self._across), matrices.dtype)
        room[:, : self.m, : self.n] = matrices
        shape = (self.group, self.many[0], self.tile_m, self.many[1], self.tile_n)
        return room.reshape(shape).swapaxes(2, 3)

    def _matrix(self, codes: Bits) -> Bits:
        """The reverse: (group, rows, columns)."""
        return codes.swapaxes(2, 3).reshape(self.group, *self._across)[:, : self.m, : self.n]


def _tiles(group: int, m: int, n: int) -> tuple[int, int]:
    """Rows and columns of a tile: such as fill the core's vectors, and enough tiles for all threads."""
    if m * n < 16:
        return m, n
    # Most rows and columns of a tile.
    tile = 64
    tile_m, tile_n = min(tile, _up(m, 4)), min(tile, _up(n, 16))
    wanted = 16 * core_library.threads()
    while tile_m * tile_n > 512 and group * -(-m // tile_m) * -(-n // tile_n) < wanted:
        tile_m, tile_n = max(16, tile_m // 2), max(16, tile_n // 2)
    return tile_m, tile_n


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
