"""What PyTorch's operations around the matrix products give on an NVIDIA GPU (sm_90), bit for bit, on a CPU.

    from golden.kernels import torch_ops
    torch_ops.softmax(np.array([[1, 2, 3]], np.float32), -1)

The names and arguments are PyTorch's. An array of float32, float16 or ml_dtypes' bfloat16 gives one of the
same type; with `fmt="f16"` or another format's name the array holds raw codes, and so does the result. The
tensor is contiguous and lies at an address that PyTorch gave, as every new tensor. A NaN is the word that the
GPU gives. The orders are those of PyTorch 2.11; the number of processors (132, of an H100 SXM or an H200)
changes sums of few rows: `Card`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, OperandError, ShapeError
from golden.kernels import libdevice, torch_attention, torch_rows
from golden.kernels.conversion import encode, numbers
from golden.kernels.reductions import VECTOR_BYTES, WARP, in_halves, in_turn, padded
from golden.kernels.sums import fused
from golden.number.arrays import codes, plain
from golden.number.formats import Format, get_format, native_dtype

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Card:
    """What the number of blocks depends on. The default is an H100 SXM's or an H200's."""

    processors: int = 132
    threads: int = 2048
    """A processor's most."""


@dataclass(frozen=True)
class Shares:
    """Who adds what: `lanes`, `rows` of threads and `blocks` share a sum; `vector` elements that are
    neighbours are loaded at once, 0 if each of a thread's sums takes elements apart."""

    lanes: int
    rows: int
    blocks: int
    vector: int

    @property
    def threads(self) -> int:
        """That share a sum."""
        return self.lanes * self.rows * self.blocks

    @classmethod
    def of(cls, layout: Layout, itemsize: int, card: Card) -> Shares:
        """As `setReduceConfig` decides."""
        width, height = layout.inputs, layout.outputs
        if not layout.inner:  # lanes take neighbouring sums, not elements of one
            width, height = height // layout.neighbours, width
        vector = 0
        # Elements of a sum from which on threads load vectors.
        vectors_from = 128
        if layout.inner and layout.reduced_axes == 1 and width >= vectors_from:
            vector = VECTOR_BYTES // itemsize
            width //= vector
        # The most threads of a block.
        threads = 512
        most = threads // layout.neighbours
        wide = _power(width, most)
        y = min(_power(height, most), most // min(wide, WARP))
        x = min(wide, most // y)
        # Rows of threads share a sum if each thread has elements enough; blocks, if it still has many.
        lanes = x if layout.inner else 1
        # Elements of a thread: rows of threads share a sum of more than 16 a row, blocks one of more than
        # 256.
        fewest_threads, most_threads = 16, 256
        shared = -(-layout.inputs // lanes) >= min(y * fewest_threads, most_threads)
        rows = y if shared else 1
        each = -(-layout.inputs // (lanes * rows))
        made = (1 if layout.inner else x) * (1 if shared else y)
        grid = -(-(layout.outputs // layout.neighbours) // made)
        room = card.processors * (card.threads // (x * y))
        blocks = 1
        if shared and each >= most_threads and grid <= room:
            blocks = max(min(-(-room // grid), -(-each // fewest_threads)), -(-each // most_threads))
        return cls(lanes, rows, blocks, vector)


@dataclass(frozen=True)
class Layout:
    """A contiguous tensor as a reduction sees it: outputs, elements of each, whether the latter are
    neighbours in memory, along how many axes they lie, and how many neighbouring sums one thread makes."""

    outputs: int
    inputs: int
    inner: bool
    reduced_axes: int
    neighbours: int

    @classmethod
    def of(cls, shape: Sequence[int], axes: Sequence[int]) -> Layout:
        """Of a shape and the axes of it that are summed. Neighbouring axes of one kind are one."""
        merged: list[list[Any]] = []  # [size, reduced, stride], the innermost first
        stride = 1
        for axis in reversed(range(len(shape))):
            size, reduced = shape[axis], axis in axes
            if size != 1:
                if merged and merged[-1][1] == reduced:
                    merged[-1][0] *= size
                else:
                    merged.append([size, reduced, stride])
            stride *= size
        summed = [one for one in merged if one[1]]
        kept = [one for one in merged if not one[1]]
        inputs, outputs = (int(np.prod([one[0] for one in some])) for some in (summed, kept))
        inner = not kept or bool(summed and merged[0][1])
        # Neighbouring sums that a thread makes, where the elements of one are apart.
        neighbours = 4
        if kept:
            for number in [kept[0][0], *(one[2] for one in summed + kept[1:])]:
                while number % neighbours:
                    neighbours //= 2
        return cls(outputs, inputs, inner, len(summed), 1 if inner else neighbours)


def _power(size: int, most: int) -> int:
    """The largest power of two up to a size, and up to a limit."""
    return most if size >= most else 1 << max(size.bit_length() - 1, 0)


def add(x: Numbers, axes: Sequence[int], itemsize: int, card: Card) -> Numbers:
    """Sums of f32 numbers along axes, as elements of `itemsize` bytes are added; the axes are gone."""
    layout = Layout.of(x.shape, axes)
    shares = Shares.of(layout, itemsize, card)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(*kept, *axes).reshape(layout.outputs, layout.inputs)
    shape = [x.shape[axis] for axis in kept]
    if shares.vector:
        starts = np.arange(layout.outputs) * layout.inputs % shares.vector
        total = np.empty(layout.outputs, np.float32)
        for start in np.unique(starts):
            which = starts == start
            total[which] = _of_threads(_vectors(rows[which], shares, int(start)), shares)
    else:
        total = _of_threads(_apart(rows, shares), shares)
    return total.reshape(shape)


def _apart(rows: Numbers, shares: Shares) -> Numbers:
    """The sums of each thread (rows, sums, threads): sum i of a thread takes every 4th of the elements that
    are its, from the i-th on."""
    # Of each thread, where elements are not neighbours in memory.
    sums = 4
    own = -(-rows.shape[1] // (shares.threads * sums))
    held = padded(rows, own * shares.threads * sums).reshape(len(rows), own, sums, shares.threads)
    return in_turn(held, 1) + np.float32(0)


def _vectors(rows: Numbers, shares: Shares, start: int) -> Numbers:
    """The same of rows whose first element lies `start` elements behind a vector's: each place of a vector
    has its own sum. What is left before the first whole vector and after the last, the lanes of the first row
    of the first block add to their first sum, before and after the others."""
    vector = shares.vector
    head = -start % vector
    head = min(head, rows.shape[1])
    whole = (rows.shape[1] - head) // vector * vector
    body, tail = rows[:, head : head + whole], rows[:, head + whole :]
    own = max(-(-whole // (shares.threads * vector)), 1)
    held = padded(body, own * shares.threads * vector).reshape(len(rows), own, shares.threads, vector)
    sums = np.zeros((len(rows), shares.threads, vector), np.float32)
    if start:  # thread t takes element t - start
        sums[:, start : start + head, 0] = rows[:, :head]
    for turn in range(own):
        sums = sums + held[:, turn]
    sums[:, : tail.shape[1], 0] += tail
    return sums.swapaxes(1, 2)


def _of_threads(sums: Numbers, shares: Shares) -> Numbers:
    """A thread's sums in turn, then lanes and rows in halves; of several blocks each thread of the last one
    takes, of N threads, every N-th sum, then rows and lanes."""
    own = in_turn(sums, 1).reshape(-1, shares.blocks, shares.rows, shares.lanes)
    own = in_halves(in_halves(own, 3), 2)
    if shares.blocks == 1:
        return own[:, 0]
    threads = shares.rows * shares.lanes
    turns = -(-shares.blocks // threads)
    held = padded(own, turns * threads).reshape(-1, turns, shares.rows, shares.lanes)
    last = in_turn(held, 1) + np.float32(0)
    return in_halves(in_halves(last, 1), 1)


Array = npt.NDArray[Any]
Axes = int | Sequence[int] | None
FORMATS = ("f32", "f16", "bf16")
_NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}
"""The word of a NaN that arithmetic gives on an NVIDIA GPU."""
_H200 = Card()


def exp(x: npt.ArrayLike, *, fmt: str | None = None) -> Array:
    """`torch.exp(x)`."""
    return _Given(x, fmt).each(libdevice.exp)


def log(x: npt.ArrayLike, *, fmt: str | None = None) -> Array:
    """`torch.log(x)`."""
    return _Given(x, fmt).each(libdevice.log)


def erf(x: npt.ArrayLike, *, fmt: str | None = None) -> Array:
    """`torch.erf(x)`."""
    return _Given(x, fmt).each(libdevice.erf)


def tanh(x: npt.ArrayLike, *, fmt: str | None = None) -> Array:
    """`torch.tanh(x)`."""
    return _Given(x, fmt).each(libdevice.tanh)


def sigmoid(x: npt.ArrayLike, *, fmt: str | None = None) -> Array:
    """`torch.sigmoid(x)`."""
    return _Given(x, fmt).each(lambda v: _ONE / (_ONE + libdevice.exp(-v)))


def silu(x: npt.ArrayLike, *, fmt: str | None = None) -> Array:
    """`torch.nn.functional.silu(x)`."""
    return _Given(x, fmt).each(lambda v: v / (_ONE + libdevice.exp(-v)))


def gelu(x: npt.ArrayLike, *, approximate: str = "none", fmt: str | None = None) -> Array:
    """`torch.nn.functional.gelu(x)`; `approximate`: none (by erf) or tanh.

    Raises:
        OperandError: `approximate` is neither.
    """
    if approximate not in _GELU:
        raise OperandError(f"approximate is '{approximate}', expected none or tanh")
    return _Given(x, fmt).each(_GELU[approximate])


def _gelu(x: Array) -> Array:
    return (x * _HALF) * (libdevice.erf(x * _ROOT_HALF) + _ONE)


def _gelu_tanh(x: Array) -> Array:
    cube = x * (x * x)
    inner = fused(cube, np.full_like(x, _KAPPA), x) * _BETA
    return (x * _HALF) * (libdevice.tanh(inner) + _ONE)


_GELU = {"none": _gelu, "tanh": _gelu_tanh}
_HALF, _ONE = np.float32(0.5), np.float32(1)
_ROOT_HALF, _BETA, _KAPPA = np.float32(0.5**0.5), np.float32((2 / np.pi) ** 0.5), np.float32(0.044715)


def sum(x: npt.ArrayLike, dim: Axes = None, *, fmt: str | None = None, card: Card = _H200) -> Array:
    """`torch.sum(x, dim)`; the axes are gone."""
    return _Given(x, fmt).reduced(dim, card, mean=False)


def mean(x: npt.ArrayLike, dim: Axes = None, *, fmt: str | None = None, card: Card = _H200) -> Array:
    """`torch.mean(x, dim)`: the sum in f32 times the reciprocal of the number of elements, rounded to f32."""
    return _Given(x, fmt).reduced(dim, card, mean=True)


def softmax(x: npt.ArrayLike, dim: int, *, fmt: str | None = None) -> Array:
    """`torch.softmax(x, dim)`."""
    given = _Given(x, fmt)
    return given.back(torch_rows.softmax(given.numbers, given.axis(dim), given.itemsize))


def log_softmax(x: npt.ArrayLike, dim: int, *, fmt: str | None = None) -> Array:
    """`torch.log_softmax(x, dim)`."""
    given = _Given(x, fmt)
    return given.back(torch_rows.softmax(given.numbers, given.axis(dim), given.itemsize, logarithm=True))


def layer_norm(
    x: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    eps: float = 1e-5,
    *,
    fmt: str | None = None,
) -> Array:
    """`torch.nn.functional.layer_norm` over the last axis. `weight` and `bias` have the type of x."""
    given = _Given(x, fmt)
    return given.normed(
        lambda rows: (
            torch_rows.layer_norm(rows, eps, given.row(weight, "weight"), given.row(bias, "bias")).rows
        )
    )


def rms_norm(
    x: npt.ArrayLike, weight: npt.ArrayLike | None = None, eps: float = 1e-5, *, fmt: str | None = None
) -> Array:
    """`torch.nn.functional.rms_norm` over the last axis. `weight` has the type of x."""
    given = _Given(x, fmt)
    return given.normed(lambda rows: torch_rows.rms_norm(rows, eps, given.row(weight, "weight")).rows)


def attention(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    causal: bool = False,
    scale: float | None = None,
    backend: str = "flash",
    fmt: str | None = None,
    card: Card = _H200,
) -> Array:
    """`torch.nn.functional.scaled_dot_product_attention` with the backend "flash" (f16, bf16) or "math".

    Args:
        q, k, v: (batch, heads, queries, head), and (batch, heads, keys, head) twice.
        causal: a query sees the keys up to its own place; then keys and queries are equal in number.
        scale: of the scores; default: head^(-1/2).
        backend: which kernels. PyTorch 2.11 takes cuDNN's on an H200 unless `sdpa_kernel` asks for another;
            they have no model here.
        fmt: of raw codes.
        card: its processors decide in how many parts "flash" takes the keys.

    Raises:
        OperandError, DTypeError, ShapeError: an argument is not of this kind.
    """
    if backend not in ("flash", "math"):
        raise OperandError(f"backend is '{backend}', expected flash or math")
    given = [_Given(one, fmt, name) for one, name in ((q, "q"), (k, "k"), (v, "v"))]
    if len({one.format.name for one in given}) > 1:
        raise DTypeError(
            f"q, k, v are {', '.join(one.format.name for one in given)}, expected one format for all"
        )
    name = given[0].format.name
    if backend == "math":
        queries, keys, values = (one.numbers for one in given)
        return given[0].back(torch_attention.math(queries, keys, values, scale=scale, causal=causal))
    queries, keys, values = (one.codes for one in given)
    found, _ = torch_attention.flash(
        queries, keys, values, name, scale=scale, causal=causal, processors=card.processors
    )
    return given[0].viewed(found)


class _Given:
    """An array as numbers of f32, and the way back."""

    def __init__(self, x: npt.ArrayLike, fmt: str | None, argument: str = "x") -> None:
        array = plain(x, argument)
        self.native = array.dtype
        if fmt is None:
            known = {one: native_dtype(get_format(one)) for one in FORMATS}
            name = next((one for one, dtype in known.items() if dtype == array.dtype), None)
            if name is None:
                raise DTypeError(
                    f"argument '{argument}' has dtype {array.dtype}, expected float32, float16 or bfloat16, "
                    "or raw codes with fmt="
                )
            self.format: Format = get_format(name)
            self.codes = np.asarray(array, order="C").view(self.format.dtype)
        else:
            if fmt not in FORMATS:
                raise OperandError(f"fmt is '{fmt}', expected one of {', '.join(FORMATS)}")
            self.format = get_format(fmt)
            self.codes = codes(array, self.format, argument)
            self.native = self.codes.dtype
        if self.codes.size == 0:
            raise ShapeError(f"argument '{argument}' has the shape {array.shape}, expected no size of 0")
        self.itemsize = self.format.dtype.itemsize
        self.numbers = numbers(self.codes, self.format, get_format("f32"))

    def each(self, function: Callable[[Array], Array]) -> Array:
        """A function of each element."""
        with np.errstate(all="ignore"):
            found = function(np.atleast_1d(self.numbers))
        return self.back(found.reshape(self.numbers.shape))

    def axis(self, dim: int) -> int:
        """An axis, counted from the front."""
        rank = self.numbers.ndim
        if not -rank <= dim < rank:
            raise ShapeError(f"dim is {dim}, expected {-rank} to {rank - 1}")
        return dim % rank

    def row(self, x: npt.ArrayLike | None, argument: str) -> Array | None:
        """A weight or a bias."""
        if x is None:
            return None
        fmt = None if self.native != self.codes.dtype else self.format.name
        given = _Given(x, fmt, argument)
        if given.format != self.format or given.numbers.shape != self.numbers.shape[-1:]:
            raise ShapeError(
                f"{argument} is {given.format.name} of the shape {given.numbers.shape}, expected "
                f"{self.format.name} of {self.numbers.shape[-1:]}"
            )
        return given.numbers

    def reduced(self, dim: Axes, card: Card, mean: bool) -> Array:
        """Sums, or means."""
        x = self.numbers
        given = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
        axes = tuple(sorted({self.axis(one) for one in given}))
        with np.errstate(all="ignore"):
            total = add(x, axes, self.itemsize, card)
            if mean:
                total = total * (np.float32(total.size) / np.float32(x.size))
        return self.back(total)

    def normed(self, norm: Callable[[Array], Array]) -> Array:
        """Rows of the last axis."""
        if self.numbers.ndim == 0:
            raise ShapeError("x has the shape (), expected at least one axis")
        rows = self.numbers.reshape(-1, self.numbers.shape[-1])
        with np.errstate(all="ignore"):
            return self.back(norm(rows).reshape(self.numbers.shape))

    def back(self, found: Array) -> Array:
        """f32 numbers rounded to the format, as they were given."""
        return self.viewed(
            encode(np.array(found, np.float32, order="C"), self.format, _NAN[self.format.name])
        )

    def viewed(self, found: Array) -> Array:
        """Codes as they were given."""
        return np.asarray(found.view(self.native))
