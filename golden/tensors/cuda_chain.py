"""Runs the generated kernel of golden.tensors.cuda_source on PyTorch's tensors, on PyTorch's stream."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch

from golden.errors import CoreError, ToolMissing
from golden.model.instruction import Instruction
from golden.tensors.cuda_source import THREADS, machine_code, tile_of
from golden.tensors.dtypes import integer_dtype

Tensor = Any


class CudaChain:
    """An instruction's chains on the GPU of its operands (golden.tensors.device_product.Chain)."""

    def __init__(self, ins: Instruction) -> None:
        self.ins = ins

    def __call__(
        self, a: Tensor, b: Tensor, seed: Tensor | None, steps: int, extra: Mapping[str, Tensor]
    ) -> Tensor:
        """Codes of d (batch, M, N)."""
        (batches, m, _), (_, k, n) = a.shape, b.shape
        d = torch.empty(
            (batches, m, n), dtype=integer_dtype(self.ins.formats["d"].dtype.itemsize), device=a.device
        )
        if not d.numel():
            return d
        seed = None if seed is None else seed.contiguous()
        tile = tile_of(self.ins)
        # Blocks that a grid can have along y and z.
        most_grid = 65535
        grid = -(-n // tile), -(-m // tile), min(batches, most_grid)
        if grid[1] > most_grid:
            half = m // 2
            parts = [self._rows(a, b, seed, steps, extra, r) for r in (slice(0, half), slice(half, m))]
            return torch.cat(parts, 1)
        metadata, scale_a = (_packed(extra.get(name)) for name in ("metadata", "scale_a"))
        scale_b = _packed(extra["scale_b"].transpose(1, 2) if "scale_b" in extra else None)
        values = [a.data_ptr(), b.data_ptr(), 0 if seed is None else seed.data_ptr(), d.data_ptr()]
        values += [batches, m, n, k, steps, *a.stride(), *b.stride()]
        kinds = [ctypes.c_void_p] * 4 + [ctypes.c_longlong] * 11
        values += [_address(metadata), _last(metadata), _address(scale_a), _address(scale_b), _last(scale_a)]
        kinds += [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong]
        with torch.cuda.device(a.device):
            function = _kernel(self.ins, a.device.index or 0)
            stream = torch.cuda.current_stream(a.device).cuda_stream
            (status,) = _driver().cuLaunchKernel(
                function, *grid, THREADS, THREADS, 1, 0, stream, (tuple(values), tuple(kinds)), 0
            )
        _check(status)
        return d

    def _rows(
        self,
        a: Tensor,
        b: Tensor,
        seed: Tensor | None,
        steps: int,
        extra: Mapping[str, Tensor],
        rows: slice,
    ) -> Tensor:
        own = {name: x if name == "scale_b" else x[:, rows] for name, x in extra.items()}
        return self(a[:, rows], b, None if seed is None else seed[:, rows], steps, own)


def _packed(codes: Tensor | None) -> Tensor | None:
    return None if codes is None else codes.contiguous()


def _address(codes: Tensor | None) -> int:
    return 0 if codes is None else int(codes.data_ptr())


def _last(codes: Tensor | None) -> int:
    return 0 if codes is None else int(codes.shape[-1])


@lru_cache(maxsize=64)
def _kernel(ins: Instruction, device: int) -> Any:
    """The loaded kernel; its module stays loaded as long as the process."""
    driver = _driver()
    code = machine_code(ins, torch.cuda.get_device_capability(device))
    torch.cuda.synchronize(device)  # PyTorch's context exists, and is the current one
    status, module = driver.cuModuleLoadData(code)
    _check(status)
    status, function = driver.cuModuleGetFunction(module, b"chain")
    _check(status)
    return function


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        raise ToolMissing("CUDA's bindings are not installed: pip install cuda-bindings") from None
    return driver


def _check(status: Any) -> None:
    if int(status) != 0:
        raise CoreError(f"the CUDA driver answers {status.name}")
