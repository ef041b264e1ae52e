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
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, OperandError, ShapeError
from golden.kernels import libdevice, torch_attention, torch_rows, torch_sums
from golden.kernels.conversion import encode, numbers
from golden.kernels.sums import fused
from golden.kernels.torch_sums import Card
from golden.number.arrays import codes, plain
from golden.number.formats import Format, get_format, native_dtype

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
            total = torch_sums.add(x, axes, self.itemsize, card)
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
