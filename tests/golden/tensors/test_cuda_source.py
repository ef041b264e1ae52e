"""The text of a chain as NVRTC sees it: with only the headers that it is given."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import golden
from golden.tensors import cuda_source

CXX = shutil.which("g++")
KNOWN = """
typedef decltype(sizeof 0) size_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
#define memcpy __builtin_memcpy
#define memset __builtin_memset
struct index { unsigned x, y, z; };
static index threadIdx, blockIdx, gridDim;
#define __CUDACC__
#define __host__
#define __device__
#define __forceinline__ inline
#define __constant__
#define __global__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)
#define __syncthreads()
double fma(double, double, double);
float fmaf(float, float, float);
enum { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
int fesetround(int);
void *malloc(size_t);
void free(void *);
"""
"""What NVRTC knows by itself of the language and of CUDA, and what stands for the GPU's own arithmetic."""


@pytest.mark.skipif(CXX is None, reason="no g++")
@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("hopper", "HMMA.16816.F32"),  # by the quick form
        ("cdna1", "v_mfma_f32_16x16x16f16"),  # by the interpreter
    ],
)
def test_it_needs_no_other_headers(architecture: str, name: str, tmp_path: Path) -> None:
    for header, text in cuda_source._HEADERS.items():
        (tmp_path / header).write_text(text)
    (tmp_path / "chain.cc").write_text(KNOWN + cuda_source.source(golden.instruction(architecture, name)))
    command = [
        str(CXX),
        "-nostdinc",
        "-nostdinc++",
        "-I",
        str(tmp_path),
        "-std=gnu++20",
        "-w",
        "-fsyntax-only",
    ]
    done = subprocess.run([*command, str(tmp_path / "chain.cc")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
