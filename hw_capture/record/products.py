"""Records whole matrix products of libraries on a GPU: PyTorch's calls (cuBLAS, cuBLASLt), Triton's `tl.dot`.

    python -m hw_capture.record.products --out FOLDER      (needs PyTorch with CUDA, Triton, NumPy)

Operands are words that a seed makes, so that the files hold results alone: some rows of each D, raw codes, in
products.npz, and in manifest.json what was called, the kernels that ran, and how operands and rows are made
again (`operand`, `rows_of`). golden.gemm is held against them by tests.
"""

from __future__ import annotations

import argparse
import json
import platform
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[Any]
SHAPES = (
    (128, 128, 256),
    (64, 48, 208),
    (256, 192, 1024),
    (192, 128, 4096),
    (1, 64, 2048),
    (80, 112, 1536),
    (2048, 1024, 512),
    (64, 64, 16384),
)
SPREADS = (6, 3)
"""Exponents lie within these many of the bias; the second one for a second seed."""
MOST_ROWS = 16
WIDTHS = {
    "f16": (5, 10, np.uint16),
    "bf16": (8, 7, np.uint16),
    "f32": (8, 23, np.uint32),
    "f64": (11, 52, np.uint64),
    "e4m3": (4, 3, np.uint8),
    "e5m2": (5, 2, np.uint8),
}


def operand(fmt: str, shape: tuple[int, int], seed: int, spread: int) -> Bits:
    """Raw codes: any sign and fraction, exponents within `spread` (e4m3: at most 4) of the bias; any s8."""
    rng = np.random.default_rng(seed)
    if fmt == "s8":
        return np.asarray(rng.integers(0, 256, shape, np.uint8))
    exponent_bits, fraction_bits, dtype = WIDTHS[fmt]
    bias, spread = (1 << (exponent_bits - 1)) - 1, min(spread, 4) if fmt == "e4m3" else spread
    sign = rng.integers(0, 2, shape, np.uint64)
    exponent = rng.integers(bias - spread, bias + spread + 1, shape).astype(np.uint64)
    fraction = rng.integers(0, 1 << fraction_bits, shape, np.uint64)
    width = np.uint64(fraction_bits)
    words = (sign << np.uint64(exponent_bits) | exponent) << width | fraction
    return np.asarray(words.astype(dtype))


def rows_of(m: int, seed: int) -> list[int]:
    """The rows of D that are recorded."""
    return sorted(np.random.default_rng(seed).permutation(m)[:MOST_ROWS].tolist())


def seeds_of(name: str, shape: tuple[int, int, int], again: int) -> tuple[int, int]:
    """Seeds of A and B; A's chooses the rows, too."""
    seed = zlib.crc32(f"{name} {shape} {again}".encode())
    return seed, seed + 1


# Calls of libraries -----------------------------------------------------------------------------------------


def calls(torch: Any) -> Iterator[tuple[str, str, str, str, Callable[[Any, Any], Any]]]:
    """(name, format of A, of B, of D, the call on A (M, K) and B (N, K))."""
    one = torch.ones((), device="cuda", dtype=torch.float32)
    for fmt in ("f16", "bf16"):
        yield f"mm.{fmt}", fmt, fmt, fmt, lambda a, b: a @ b.t()
        yield f"mm_columns.{fmt}", fmt, fmt, fmt, lambda a, b: a @ b.t().contiguous()
        yield f"mm.{fmt}.f32", fmt, fmt, "f32", lambda a, b: torch.mm(a, b.t(), out_dtype=torch.float32)
    yield "mm.tf32", "f32", "f32", "f32", lambda a, b: a @ b.t()
    yield "mm.f64", "f64", "f64", "f64", lambda a, b: a @ b.t()
    yield "int_mm", "s8", "s8", "s32", lambda a, b: torch._int_mm(a, b.t())
    for a_fmt, b_fmt in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e4m3", "e5m2")):
        for out, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32), ("f16", torch.float16)):
            for fast in (True, False):

                def scaled(a: Any, b: Any, dtype: Any = dtype, fast: bool = fast) -> Any:
                    return torch._scaled_mm(a, b.t(), one, one, out_dtype=dtype, use_fast_accum=fast)

                name = f"scaled_mm.{'fast' if fast else 'precise'}.{a_fmt}.{b_fmt}.{out}"
                yield name, a_fmt, b_fmt, out, scaled


def triton_calls(torch: Any) -> Iterator[tuple[str, str, str, str, Callable[[Any, Any], Any]]]:
    """The same of a plain kernel of Triton."""
    from hw_capture.record import triton_product

    for fmt in ("f16", "bf16"):
        yield f"triton.{fmt}", fmt, fmt, "f32", lambda a, b: triton_product.product(a, b)
    yield "triton.one_warp.f16", "f16", "f16", "f32", lambda a, b: triton_product.product(a, b, warps=1)
    yield "triton.tf32", "f32", "f32", "f32", lambda a, b: triton_product.product(a, b)
    for every in (None, 128, 32):
        name = f"triton.e4m3.imprecise_{every}"
        yield name, "e4m3", "e4m3", "f32", partial(triton_product.product, every=every)


def _dtypes(torch: Any) -> dict[str, Any]:
    return {
        "f16": torch.float16,
        "bf16": torch.bfloat16,
        "f32": torch.float32,
        "f64": torch.float64,
        "e4m3": torch.float8_e4m3fn,
        "e5m2": torch.float8_e5m2,
        "s8": torch.int8,
        "s32": torch.int32,
    }


def _on_gpu(torch: Any, codes: Bits, dtype: Any) -> Any:
    signed = codes.view(f"i{codes.dtype.itemsize}")
    return torch.from_numpy(signed).cuda().view(dtype)


def _codes(torch: Any, result: Any) -> Bits:
    words = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[result.element_size()]
    found = result.contiguous().view(words).cpu().numpy()
    return np.asarray(found.view(f"u{found.dtype.itemsize}"))


def _kernels(torch: Any, run: Callable[[], Any]) -> list[str]:
    """Names of the kernels of a call, by PyTorch's profiler."""
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CPU, activity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    names = [e.name for e in profile.events() if str(e.device_type).endswith("CUDA")]
    return [name[:160] for name in names if not name.startswith("Mem")]


def record(out: Path) -> None:
    """Runs every call at every shape, writes the two files; what a call refuses is named in the manifest."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    found: dict[str, Bits] = {}
    entries: list[dict[str, Any]] = []
    refused: list[str] = []
    for make in (calls, triton_calls):
        try:
            made = list(make(torch))
        except Exception as error:
            refused.append(f"{make.__name__}: {error}"[:300])
            continue
        for name, fa, fb, fd, call in made:
            for shape in SHAPES:
                for again, spread in enumerate(SPREADS):
                    _one(torch, (name, fa, fb, fd), call, shape, again, spread, found, entries, refused)
    header = {
        "device": torch.cuda.get_device_name(),
        "driver": _driver(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": _triton_version(),
        "python": platform.python_version(),
        "refused": refused,
        "products": entries,
    }
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / "products.npz", **found)  # type: ignore[arg-type]
    (out / "manifest.json").write_text(json.dumps(header, indent=1) + "\n")
    print(f"{len(entries)} products, {len(refused)} refused")


def _one(
    torch: Any,
    formats: tuple[str, str, str, str],
    call: Callable[[Any, Any], Any],
    shape: tuple[int, int, int],
    again: int,
    spread: int,
    found: dict[str, Bits],
    entries: list[dict[str, Any]],
    refused: list[str],
) -> None:
    name, fa, fb, fd = formats
    m, n, k = shape
    seed_a, seed_b = seeds_of(name, shape, again)
    dtypes = _dtypes(torch)
    a = _on_gpu(torch, operand(fa, (m, k), seed_a, spread), dtypes[fa])
    b = _on_gpu(torch, operand(fb, (n, k), seed_b, spread), dtypes[fb])
    key = f"{name}.{m}x{n}x{k}.{again}"
    try:
        d = call(a, b)
        torch.cuda.synchronize()
        kernels = _kernels(torch, lambda: call(a, b))
    except Exception as error:
        refused.append(" ".join(f"{key}: {error}".split())[:200])
        return
    codes = _codes(torch, d)
    entry: dict[str, Any] = {"key": key, "call": name, "a": fa, "b": fb, "d": fd, "shape": list(shape)}
    entry |= {"seeds": [seed_a, seed_b], "spread": spread, "kernels": kernels}
    entry["crc32_of_all_rows"] = zlib.crc32(codes.tobytes())
    entries.append(entry)
    found[key] = codes[rows_of(m, seed_a)]


def _driver() -> str:
    try:
        return Path("/proc/driver/nvidia/version").read_text().split("\n")[0]
    except OSError:
        return "unknown"


def _triton_version() -> str:
    try:
        import triton
    except ImportError:
        return "none"
    return str(triton.__version__)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    record(parser.parse_args().out)
