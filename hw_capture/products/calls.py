"""The calls of PyTorch that a case can name: raw codes in, raw codes out, and the kernels that ran.

PyTorch is imported when something is run, not before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.tensor_names import TORCH_NAMES
from hw_capture.errors import DeviceError, ToolMissing
from hw_capture.products.cases import Case

Bits = npt.NDArray[Any]
_NO_KERNEL = re.compile(r"cu(da)?[A-Z]|Activity Buffer")
"""What the profiler lists in addition to kernels: calls of the driver and of itself."""


class Torch:
    """PyTorch with a GPU.

    Raises:
        ToolMissing: PyTorch is not installed.
        DeviceError: it finds no GPU.
    """

    def __init__(self) -> None:
        try:
            import torch
        except ImportError:
            raise ToolMissing("PyTorch is not installed: pip install torch") from None
        if not torch.cuda.is_available():
            raise DeviceError("PyTorch finds no NVIDIA GPU on this machine")
        self.torch = torch

    def about(self) -> dict[str, str]:
        """GPU and versions."""
        torch = self.torch
        major, minor = torch.cuda.get_device_capability()
        return {
            "name": torch.cuda.get_device_name(),
            "compute_capability": f"{major}.{minor}",
            "torch": torch.__version__,
            "cuda": str(torch.version.cuda),
        }

    def run(self, case: Case, operands: Mapping[str, Bits]) -> tuple[Bits, list[str]]:
        """The raw codes of D (m, n), and the names of the kernels that computed it.

        Raises:
            DeviceError: PyTorch refuses the call, or two calls differ.
        """
        torch = self.torch
        given = self._tensors(case, operands)
        self._settings(case)
        try:
            first = CALLS[case.call](self, case, given)
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                second = CALLS[case.call](self, case, given)
                torch.cuda.synchronize()
        except (RuntimeError, ValueError, NotImplementedError) as error:
            raise DeviceError(" ".join(str(error).split())[:300]) from None
        one, two = (self.download(tensor) for tensor in (first, second))
        if not np.array_equal(one, two):
            raise DeviceError("two calls give different bits")
        names = {event.name for event in profile.events()}
        return two, sorted(name for name in names if not _NO_KERNEL.match(name))

    def dtype(self, fmt: str) -> Any:
        """The type of PyTorch for a format."""
        return getattr(self.torch, TORCH_NAMES[fmt])

    def _tensors(self, case: Case, operands: Mapping[str, Bits]) -> dict[str, Any]:
        """The operands on the GPU, of their types; B lies as (n, k) in memory unless the case says rows."""
        given = {}
        for name, codes in operands.items():
            bits = np.ascontiguousarray(codes if name != "b" or case.b_rows else codes.T)
            tensor = self.torch.from_numpy(bits.view(f"i{bits.itemsize}")).cuda()
            typed = tensor.view(self.dtype(case.formats[name]))
            given[name] = typed if name != "b" or case.b_rows else typed.t()
        return given

    def download(self, tensor: Any) -> Bits:
        """The raw codes of a tensor."""
        size = tensor.element_size()  # PyTorch lacks most unsigned types
        codes = tensor.contiguous().view(getattr(self.torch, f"int{8 * size}")).cpu().numpy()
        return np.asarray(codes).view(f"u{size}")

    def _settings(self, case: Case) -> None:
        matmul = self.torch.backends.cuda.matmul
        matmul.allow_tf32 = bool(case.options.get("tf32"))
        matmul.allow_fp16_reduced_precision_reduction = bool(case.options.get("reduced"))
        matmul.allow_bf16_reduced_precision_reduction = bool(case.options.get("reduced"))


def _mm(torch: Torch, case: Case, given: Mapping[str, Any]) -> Any:
    if case.d == case.a:
        return torch.torch.mm(given["a"], given["b"])
    return torch.torch.mm(given["a"], given["b"], out_dtype=torch.dtype(case.d))


def _bmm(torch: Torch, case: Case, given: Mapping[str, Any]) -> Any:
    """A batch of three, of which all have the same operands; the last one is the answer."""
    a, b = given["a"], given["b"]
    return torch.torch.bmm(a.expand(3, *a.shape), b.expand(3, *b.shape))[2]


def _int_mm(torch: Torch, case: Case, given: Mapping[str, Any]) -> Any:
    return torch.torch._int_mm(given["a"], given["b"])


def _scaled_mm(torch: Torch, case: Case, given: Mapping[str, Any]) -> Any:
    if case.options.get("rows"):
        scale_a, scale_b = given["scale_a"][:, None], given["scale_b"][None, :]
    elif case.options.get("blocks"):  # A's lie column by column, those of 128 columns of B too, in fours
        scale_a = given["scale_a"].t().contiguous().t()
        scale_b = (
            given["scale_b"].contiguous() if case.options["blocks"] == "1x128" else _in_fours(torch, given)
        )
    else:
        scale_a = scale_b = torch.torch.ones((), device="cuda")
    return torch.torch._scaled_mm(
        given["a"],
        given["b"],
        scale_a=scale_a,
        scale_b=scale_b,
        out_dtype=torch.dtype(case.d),
        use_fast_accum=case.options["fast"],
    )


def _in_fours(torch: Torch, given: Mapping[str, Any]) -> Any:
    """Scales (k / 128, n / 128) of blocks of B with each column's a multiple of four apart, as cuBLASLt takes
    them."""
    scales = given["scale_b"]
    deep, across = scales.shape
    room = torch.torch.zeros((across, -(-deep // 4) * 4), device="cuda")
    room[:, :deep] = scales.t()
    return room[:, :deep].t()


def _sparse_mm(torch: Torch, case: Case, given: Mapping[str, Any]) -> Any:
    return torch.torch.mm(torch.torch.sparse.to_sparse_semi_structured(given["a"]), given["b"])


def _conv(torch: Torch, case: Case, given: Mapping[str, Any]) -> Any:
    """A convolution by 3 x 3 filters that do not overlap: A are the filters, B the places; tf32 of f32."""
    channels, edge = case.k // 9, math.isqrt(case.n)
    weight = given["a"].reshape(case.m, channels, 3, 3)
    places = given["b"].reshape(channels, 3, 3, edge, edge).permute(0, 3, 1, 4, 2)
    image = places.reshape(1, channels, 3 * edge, 3 * edge)
    last = torch.torch.channels_last
    weight, image = (one.contiguous(memory_format=last) for one in (weight, image))
    found = torch.torch.nn.functional.conv2d(image, weight, stride=3)
    return found[0].reshape(case.m, case.n)


def _triton_dot(torch: Torch, case: Case, given: Mapping[str, Any]) -> Any:
    try:
        from hw_capture.products import triton_dot
    except ImportError:
        raise ToolMissing("Triton is not installed: pip install triton") from None
    d = torch.torch.empty((case.m, case.n), dtype=torch.dtype(case.d), device="cuda")
    more = (case.options.get(key) for key in ("imprecise", "precision"))
    try:
        triton_dot.launch(given["a"], given["b"], d, case.options.get("warps", 4), *more)
    except Exception as error:  # what the compiler refuses has a class for each of its stages
        reason = str(error.__cause__ or error).strip().splitlines()[-1:]
        raise RuntimeError(" ".join(["Triton:", type(error).__name__, *reason])) from error
    return d


CALLS: dict[str, Callable[[Torch, Case, Mapping[str, Any]], Any]] = {
    "mm": _mm,
    "bmm": _bmm,
    "int_mm": _int_mm,
    "scaled_mm": _scaled_mm,
    "sparse_mm": _sparse_mm,
    "conv": _conv,
    "triton_dot": _triton_dot,
}
