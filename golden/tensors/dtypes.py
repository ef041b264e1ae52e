"""PyTorch's dtypes and the formats of raw codes; tensors and arrays that share memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from golden.errors import DTypeError
from golden.number.formats import Format, get_format
from golden.number.tensor_names import TORCH_NAMES

Bits = npt.NDArray[Any]


@cache
def dtype_of(fmt: str) -> Any:
    """The dtype of PyTorch whose elements are codes of a format (tf32: float32).

    Raises:
        DTypeError: there is none, or this PyTorch has none.
    """
    found = getattr(torch, TORCH_NAMES.get(fmt, ""), None)
    if found is None:
        raise DTypeError(
            f"PyTorch {torch.__version__} has no dtype for {fmt}, expected a format among "
            f"{', '.join(TORCH_NAMES)}"
        )
    return found


def codes_dtype(fmt: Format) -> Any:
    """The dtype of tensors that hold codes of a format: PyTorch's own, or of a format that it has none
    of (e2m1, ue8m0, ...) the integers of their width."""
    if getattr(torch, TORCH_NAMES.get(fmt.name, ""), None) is None:
        return integer_dtype(fmt.dtype.itemsize)
    return dtype_of(fmt.name)


def format_of(tensor: Any, name: str) -> Format:
    """The format of a tensor's elements (float32: f32).

    Raises:
        DTypeError: it is none of golden's formats.
    """
    for fmt, spelled in TORCH_NAMES.items():
        if tensor.dtype is getattr(torch, spelled, None):
            return get_format(fmt)
    raise DTypeError(
        f"argument '{name}' has dtype {tensor.dtype}, expected one of "
        f"{', '.join(dict.fromkeys(TORCH_NAMES.values()))}"
    )


def codes(tensor: Any, fmt: Format, name: str) -> Bits:
    """The raw codes of a CPU tensor, in its own memory and with its strides.

    Raises:
        DTypeError: its dtype is not that of the format.
    """
    check_dtype(tensor, fmt, name)
    bits = tensor.detach().resolve_neg().view(integer_dtype(fmt.dtype.itemsize))
    return np.asarray(bits.numpy().view(fmt.dtype))


def tensor_of(bits: Bits, fmt: Format) -> Any:
    """The tensor of raw codes, in their memory."""
    size = bits.dtype.itemsize
    return torch.from_numpy(bits.view(f"i{size}" if size > 1 else "u1")).view(codes_dtype(fmt))


def check_dtype(tensor: Any, fmt: Format, name: str) -> None:
    """Raises DTypeError where a tensor's elements are no codes of the format."""
    wanted = codes_dtype(fmt)
    if tensor.dtype is wanted:
        return
    said = f"argument '{name}' has dtype {tensor.dtype}, expected {wanted} ({fmt.name})"
    if name not in ("A", "B", "C"):
        raise DTypeError(said)
    rounds = "" if fmt.name not in TORCH_NAMES else f"{name}.to({wanted}) rounds it, or "
    raise DTypeError(
        f"{said}: {rounds}give the plan the option {name.lower()}='{format_of(tensor, name).name}'"
    )


def integer_dtype(size: int) -> Any:
    """The integer dtype of this many bytes that has a twin in NumPy in every release."""
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
