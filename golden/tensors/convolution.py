"""Convolutions as matrix products: which elements meet, with K = (channel, place in the filter).

Each output place takes a patch of the input; the patches are the columns of B, the filters the rows of A.
The gradient of the input is a convolution of the gradient with zeros between, by the filters turned round;
that of the filters a product over all places of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch.nn import functional

Tensor = Any
Product = Callable[..., Tensor]
"""product(a, b) -> a @ b by a plan."""


@dataclass(frozen=True)
class Geometry:
    """How a convolution slides: one number for each spatial dimension."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int

    @classmethod
    def of(
        cls,
        spatial: int,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        transposed: bool,
        output_padding: Sequence[int],
        groups: int,
    ) -> Geometry:
        """As aten.convolution is called: lists of one number stand for all dimensions."""
        each = [
            tuple(one) * (spatial if len(one) == 1 else 1)
            for one in (stride, padding, dilation, output_padding)
        ]
        return cls(each[0], each[1], each[2], transposed, each[3], groups)


def convolution(x: Tensor, weight: Tensor, geometry: Geometry, product: Product) -> Tensor:
    """The convolution (N, C_in, ...) -> (N, C_out, ...), without bias."""
    if not geometry.transposed:
        padded = _padded(x, [(p, p) for p in geometry.padding])
        return _slid(padded, weight, geometry.stride, geometry.dilation, geometry.groups, product)
    spread, turned = _spread(x, weight, geometry, geometry.output_padding)
    ones = (1,) * len(geometry.stride)
    return _slid(spread, turned, ones, geometry.dilation, geometry.groups, product)


def input_gradient(
    grad: Tensor, x_shape: Sequence[int], weight: Tensor, geometry: Geometry, product: Product
) -> Tensor:
    """What the gradient of the results means for the input."""
    if geometry.transposed:  # the transposed convolution is itself the gradient of one that is not
        padded = _padded(grad, [(p, p) for p in geometry.padding])
        found = _slid(padded, weight, geometry.stride, geometry.dilation, geometry.groups, product)
        return _cut(found, x_shape)
    over = [
        size + 2 * p - d * (w - 1) - 1 - (out - 1) * s
        for size, p, d, w, out, s in zip(
            x_shape[2:],
            geometry.padding,
            geometry.dilation,
            weight.shape[2:],
            grad.shape[2:],
            geometry.stride,
            strict=True,
        )
    ]
    spread, turned = _spread(grad, weight, geometry, over)
    ones = (1,) * len(geometry.stride)
    return _slid(spread, turned, ones, geometry.dilation, geometry.groups, product)


def weight_gradient(
    grad: Tensor, x: Tensor, weight_shape: Sequence[int], geometry: Geometry, product: Product
) -> Tensor:
    """What the gradient of the results means for the filters: K is (batch, place)."""
    moving, fixed = (grad, x) if geometry.transposed else (x, grad)
    padded = _padded(moving, [(p, p) for p in geometry.padding])
    groups, window = geometry.groups, tuple(weight_shape[2:])
    patches = _patches(padded, window, geometry.stride, geometry.dilation, tuple(fixed.shape[2:]))
    n, channels = fixed.shape[:2]
    rows = fixed.reshape(n, groups, channels // groups, -1).permute(1, 2, 0, 3).flatten(2)
    columns = patches.reshape(n, groups, -1, patches.shape[-1]).permute(1, 0, 3, 2).flatten(1, 2)
    return product(rows, columns).reshape(tuple(weight_shape))


def _slid(
    padded: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    product: Product,
) -> Tensor:
    """The convolution of an input that has its padding."""
    window = tuple(weight.shape[2:])
    out = tuple(
        (size - d * (w - 1) - 1) // s + 1
        for size, d, w, s in zip(padded.shape[2:], dilation, window, stride, strict=True)
    )
    patches = _patches(padded, window, stride, dilation, out)
    n = padded.shape[0]
    a = weight.reshape(1, groups, weight.shape[0] // groups, -1)
    b = patches.reshape(n, groups, -1, patches.shape[-1])
    return product(a, b).reshape(n, weight.shape[0], *out)


def _patches(
    padded: Tensor, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int], out: Sequence[int]
) -> Tensor:
    """(N, C * places of the filter, places of the result)."""
    n, channels = padded.shape[:2]
    strides = padded.stride()
    size = (n, channels, *window, *out)
    inner = [step * d for step, d in zip(strides[2:], dilation, strict=True)]
    outer = [step * s for step, s in zip(strides[2:], stride, strict=True)]
    view = padded.as_strided(size, (*strides[:2], *inner, *outer), padded.storage_offset())
    length = 1
    for one in out:
        length *= one
    return view.reshape(n, -1, length)


def _spread(x: Tensor, weight: Tensor, geometry: Geometry, more: Sequence[int]) -> tuple[Tensor, Tensor]:
    """For a step back: the input with zeros between and around, and the filters turned round with inputs and
    outputs exchanged; `more` places follow at the end of each dimension."""
    spatial = len(geometry.stride)
    sizes = [(size - 1) * s + 1 for size, s in zip(x.shape[2:], geometry.stride, strict=True)]
    wide = x.new_zeros((*x.shape[:2], *sizes))
    wide[(..., *(slice(None, None, s) for s in geometry.stride))] = x
    around = [
        (d * (w - 1) - p, d * (w - 1) - p + over)
        for d, w, p, over in zip(geometry.dilation, weight.shape[2:], geometry.padding, more, strict=True)
    ]
    groups = geometry.groups
    of_groups = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:]).transpose(1, 2)
    turned = of_groups.flatten(0, 1).flip(tuple(range(-spatial, 0)))
    return _padded(wide, around), turned


def _padded(x: Tensor, around: Sequence[tuple[int, int]]) -> Tensor:
    """With zeros around each spatial dimension; negative: places that are removed."""
    flat = [size for pair in reversed(list(around)) for size in pair]
    return functional.pad(x, flat) if any(flat) else x


def _cut(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The first places of each dimension."""
    return x[tuple(slice(0, size) for size in shape)]
