"""Dot products a second of whole matrix products on an NVIDIA GPU, computed by the golden arithmetic there.

    python bench/gemm_gpu.py --size 4096

Needs PyTorch with CUDA. Each line is one product of size x size x size: the seconds of the best of three
runs, dot products of the instruction, and whether 64 rows equal the CPU's.
"""

from __future__ import annotations

import argparse
import time

import torch

import golden
from golden.kernels.order import steps_of
from golden.tensors.cuda_source import machine_code
from golden.tensors.device_product import raw
from golden.tensors.dtypes import tensor_of
from mmagold.torch import emulated_matmul

PLANS = [
    ("hopper", "cublas_f16.f16.f32"),
    ("hopper", "cublas_f16.bf16.bf16"),
    ("hopper", "cublas_fp8_fast.e4m3.e4m3.bf16"),
    ("hopper", "cublas_fp8_precise.e4m3.e4m3.bf16"),
    ("hopper", "cublas_s8"),
    ("hopper", "cublas_f64"),
    ("ampere", "HMMA.16816.F32"),
    ("cdna3", "v_mfma_f32_32x32x8_f16"),
]


def measure(architecture: str, name: str, size: int) -> str:
    """One line."""
    plan = golden.plan(architecture, name)
    begun = time.perf_counter()
    code = machine_code(plan.instruction, torch.cuda.get_device_capability())
    compiled = time.perf_counter() - begun
    operands = []
    for key in "ab":
        fmt = plan.formats[key]
        values = torch.randn(size, size).to(torch.float32).numpy()
        codes = golden.from_float(fmt, values if fmt.is_float else (values * 30).round().clip(-127, 127))
        operands.append(tensor_of(codes, fmt))
    a, b = (x.cuda() for x in operands)
    seconds = []
    for _ in range(3):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        d = emulated_matmul(a, b, plan)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    rows = torch.arange(0, size, max(size // 64, 1))
    same = torch.equal(raw(d.cpu()[rows]), raw(emulated_matmul(operands[0][rows], operands[1], plan)))
    dots = size * size * steps_of(plan, size)
    return (
        f"| {architecture} {name} | {compiled:.1f} s, {len(code) >> 10} KiB | {min(seconds):.3f} s | "
        f"{dots / min(seconds):.3g} | {'equal' if same else 'DIFFERENT'} |"
    )


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--plans", nargs="*", default=[f"{a}:{n}" for a, n in PLANS])
    given = parser.parse_args()
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, M = N = K = {given.size}")
    print("| Plan | Compiled | Product | Dot products a second | 64 rows |\n|---|---|---|---|---|")
    for word in given.plans:
        architecture, _, name = word.partition(":")
        print(measure(architecture, name, given.size), flush=True)


if __name__ == "__main__":
    main()
