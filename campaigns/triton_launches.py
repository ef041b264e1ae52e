"""Launches of the kernels in triton_sources.py, drawn by a seed: the same operands for a GPU, which compiles
the kernel, and for a CPU, on which Triton interprets it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import triton.language as tl
import triton_sources as kernels

from golden.kernels.drawing import drawn
from golden.number.formats import from_float, get_format
from golden.tensors.dtypes import codes, dtype_of, tensor_of

Bits = npt.NDArray[Any]
SUMS = ("softmax", "rms_norm", "column_sums")
PRODUCTS = ("grouped", "persistent", "split", "narrow_weights", "scaled_blocks", "gated")
_STAGES = 2


@dataclass(frozen=True)
class Run:
    """One launch.

    Attributes:
        kernel: a function of triton_sources.py; "split" also reduces the parts.
        a, b, d: formats of A and B (attention: of q, k and v) and of the result.
        m, n, k: sizes (attention: queries of a head, heads, and elements of a head).
        blocks: BM, BN, BK (attention: BM, BN, 0).
        warps: of a program.
        options: what else the kernel takes; TURNED: B lies in memory as (n, k); SPECIAL: some codes are any.
        seed: of the operands.
    """

    kernel: str
    a: str
    b: str
    d: str
    m: int
    n: int
    k: int
    blocks: tuple[int, int, int]
    warps: int = 4
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 1

    @property
    def name(self) -> str:
        """Unique, and a file name."""
        words = [self.kernel, f"{self.a}.{self.b}.{self.d}", f"{self.m}x{self.n}x{self.k}"]
        words += ["tile" + "x".join(map(str, self.blocks)), f"warps{self.warps}"]
        words += [f"{key}={value}" for key, value in self.options.items()]
        return "_".join([*words, f"seed{self.seed}"])

    def json(self) -> dict[str, Any]:
        """As keywords that make it again."""
        return asdict(self)

    @classmethod
    def of(cls, found: dict[str, Any]) -> Run:
        """From `json`."""
        return cls(**found | {"blocks": tuple(found["blocks"])})

    def operands(self) -> dict[str, Bits]:
        """Raw codes of what the kernel reads, by its names."""
        if self.kernel in SUMS:
            rows = {"softmax": 2, "rms_norm": 1, "column_sums": 4}[self.kernel] * self.blocks[0]
            return {"x": self._draw("x", self.a, (rows, self.n))}
        if self.kernel == "attention":
            rng = self._rng("q")
            return {name: from_float(self.a, rng.standard_normal((self.n, self.m, self.k))) for name in "qkv"}
        made = {
            "a": self._draw("a", self.a, (self.m, self.k)),
            "b": self._draw("b", self.b, (self.k, self.n)),
        }
        if self.kernel == "narrow_weights":
            made["scales"] = self._draw("s", "f32", (self.n,))
        if self.kernel == "gated":
            made["gate"] = self._draw("g", self.b, (self.k, self.n))
        if self.kernel == "scaled_blocks":
            steps = self.k // self.blocks[2]
            made["scale_a"] = self._draw("s", "f32", (steps, self.m))
            made["scale_b"] = self._draw("t", "f32", (steps, self.n))
        if self.options.get("BIAS"):
            made["bias"] = self._draw("v", self.d, (self.n,))
        return made

    def _rng(self, operand: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(self.name.encode()), ord(operand)])

    def _draw(self, operand: str, fmt: str, shape: tuple[int, ...]) -> Bits:
        rng, form = self._rng(operand), get_format(fmt)
        # The exponentials of a gate overflow where its sums are large.
        # Exponents of operands: sums cancel, and fp8 has room for it.
        spread = 4
        codes = drawn(rng, form, shape, 1 if self.kernel == "gated" else spread)
        if self.options.get("SPECIAL"):
            any_code = rng.integers(0, 1 << form.storage, shape, np.uint64).astype(form.dtype)
            # Of operands with SPECIAL, the share of codes drawn from all: large and small numbers,
            # infinities, NaNs.
            special = 0.002
            codes = np.where(rng.random(shape) < special, any_code, codes)
        return codes


def launch(run: Run, device: str) -> dict[str, Bits]:
    """Raw codes of what a launch writes: d, and of attention weights and maxima (f32) too."""
    given = {name: _tensor(run, name, bits).to(device) for name, bits in run.operands().items()}
    if run.kernel == "attention":
        made = _attention(run, given, device)
    elif run.kernel in SUMS:
        made = {"d": _summed(run, given["x"], device)}
    else:
        made = {"d": torch.zeros((run.m, run.n), dtype=dtype_of(run.d), device=device)}
        _LAUNCHES[run.kernel](run, given, made["d"])
    formats = {"d": run.d}
    return {
        name: codes(tensor.cpu(), get_format(formats.get(name, "f32")), name) for name, tensor in made.items()
    }


def _tensor(run: Run, name: str, bits: Bits) -> Any:
    formats = {"b": run.b, "gate": run.b, "scales": "f32", "scale_a": "f32", "scale_b": "f32", "bias": run.d}
    tensor = tensor_of(bits, get_format(formats.get(name, run.a)))
    # A weight lies in memory as (n, k); the kernel is given its strides.
    turned = run.options.get("TURNED") and name == "b"
    return tensor.t().contiguous().t() if turned else tensor


def _blocks(run: Run) -> dict[str, int]:
    return dict(zip(("BM", "BN", "BK"), run.blocks, strict=True))


def _ceil(x: int, y: int) -> int:
    return -(-x // y)


def _strides(given: dict[str, Any]) -> list[int]:
    return [stride for name in "ab" for stride in given[name].stride()]


def _grouped(run: Run, given: dict[str, Any], d: Any) -> None:
    grid = (_ceil(run.m, run.blocks[0]) * _ceil(run.n, run.blocks[1]),)
    options = run.options
    kernels.grouped[grid](
        given["a"], given["b"], d, run.m, run.n, run.k, *_strides(given), d.stride(0), **_blocks(run),
        GROUP=2, IMPRECISE=options.get("IMPRECISE"), PRECISION=options.get("PRECISION"),
        TOTAL=getattr(tl, options.get("TOTAL", "float32")), HOW=options.get("HOW", "chain"),
        num_warps=run.warps, num_stages=_STAGES,
    )  # fmt: skip


def _persistent(run: Run, given: dict[str, Any], d: Any) -> None:
    programs = run.options.get("PROGRAMS", 3)
    kernels.persistent[(programs,)](
        given["a"], given["b"], d, given.get("bias", d), run.m, run.n, run.k, *_strides(given), d.stride(0),
        **_blocks(run), GROUP=2, PROGRAMS=programs, BIAS=run.options.get("BIAS", False),
        num_warps=run.warps, num_stages=_STAGES,
    )  # fmt: skip


def _split(run: Run, given: dict[str, Any], d: Any) -> None:
    parts = run.options["parts"]
    part = _ceil(_ceil(run.k, run.blocks[2]), parts) * run.blocks[2]
    sums = torch.zeros((parts, run.m, run.n), dtype=torch.float32, device=d.device)
    kernels.split[(run.m // run.blocks[0], run.n // run.blocks[1], parts)](
        given["a"], given["b"], sums, run.k, part, *_strides(given), run.n, **_blocks(run),
        num_warps=run.warps, num_stages=_STAGES,
    )  # fmt: skip
    size = run.m * run.n
    kernels.reduce_parts[(_ceil(size, 1024),)](sums, d, size, PARTS=parts, BLOCK=1024)


def _narrow_weights(run: Run, given: dict[str, Any], d: Any) -> None:
    kernels.narrow_weights[(run.m // run.blocks[0], run.n // run.blocks[1])](
        given["a"], given["b"], given["scales"], d, run.k, given["a"].stride(0), given["b"].stride(0),
        d.stride(0), **_blocks(run), num_warps=run.warps, num_stages=_STAGES,
    )  # fmt: skip


def _scaled_blocks(run: Run, given: dict[str, Any], d: Any) -> None:
    kernels.scaled_blocks[(run.m // run.blocks[0], run.n // run.blocks[1])](
        given["a"], given["b"], given["scale_a"], given["scale_b"], d, run.k, given["a"].stride(0),
        given["b"].stride(0), d.stride(0), **_blocks(run), num_warps=run.warps, num_stages=_STAGES,
    )  # fmt: skip


def _gated(run: Run, given: dict[str, Any], d: Any) -> None:
    kernels.gated[(run.m // run.blocks[0], run.n // run.blocks[1])](
        given["a"], given["b"], given["gate"], d, run.k, given["a"].stride(0), given["b"].stride(0),
        d.stride(0), **_blocks(run), num_warps=run.warps, num_stages=_STAGES,
    )  # fmt: skip


_LAUNCHES = {
    "gated": _gated,
    "grouped": _grouped,
    "persistent": _persistent,
    "split": _split,
    "narrow_weights": _narrow_weights,
    "scaled_blocks": _scaled_blocks,
}


def _attention(run: Run, given: dict[str, Any], device: str) -> dict[str, Any]:
    d = torch.zeros((run.n, run.m, run.k), dtype=dtype_of(run.d), device=device)
    weights, maxima = (torch.zeros((run.n, run.m), device=device) for _ in range(2))
    kernels.attention[(run.m // run.blocks[0], run.n)](
        given["q"], given["k"], given["v"], d, weights, maxima, run.k**-0.5, LENGTH=run.m, D=run.k,
        BM=run.blocks[0], BN=run.blocks[1], CAUSAL=run.options["CAUSAL"], num_warps=run.warps,
        num_stages=run.options.get("stages", _STAGES),
    )  # fmt: skip
    return {"d": d, "weights": weights, "maxima": maxima}


def _summed(run: Run, x: Any, device: str) -> Any:
    """A kernel with `tl.sum` and no `tl.dot`."""
    rows, n = x.shape
    blocks = _ceil(n, run.blocks[1])
    columns = run.kernel == "column_sums"
    d = torch.zeros(n + blocks if columns else (rows, n), dtype=dtype_of(run.d), device=device)
    programs = {"softmax": rows // run.blocks[0], "rms_norm": rows, "column_sums": blocks}[run.kernel]
    kernel = getattr(kernels, run.kernel)
    kernel[(programs,)](x, d, n, n, BM=run.blocks[0], BN=run.blocks[1], num_warps=run.warps)
    return d


# Drawn launches ---------------------------------------------------------------------------------------------

_TYPES = {
    "grouped": [("f16", "f16"), ("bf16", "bf16"), ("f32", "f32"), ("e4m3", "e4m3"), ("e5m2", "e5m2"),
                ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("s8", "s8"), ("f16", "f16")],
    "persistent": [("f16", "f16"), ("bf16", "bf16"), ("f32", "f32"), ("e4m3", "e4m3"), ("e5m2", "e5m2")],
    "split": [("f16", "f16"), ("bf16", "bf16"), ("f32", "f32"), ("e4m3", "e4m3")],
    "narrow_weights": [("f16", "s8"), ("bf16", "s8"), ("f16", "e5m2"), ("f16", "e4m3"), ("bf16", "e4m3")],
    "scaled_blocks": [("e4m3", "e4m3"), ("e5m2", "e5m2")],
    "gated": [("f16", "f16"), ("bf16", "bf16"), ("e4m3", "e4m3")],
}  # fmt: skip
_PRECISIONS = (None, "tf32", "ieee", "tf32x3", "bf16x3", "bf16x6")


def products(seed: int, count: int) -> Iterator[Run]:
    """`count` launches of matrix products, of each kernel and type in turn; sizes, tiles, warps and options
    are drawn."""
    rng = np.random.default_rng([seed, 3])
    kinds = [(kernel, *types) for kernel in PRODUCTS for types in _TYPES[kernel]]
    for number in range(count):
        yield _drawn(rng, *kinds[number % len(kinds)], seed)


def _drawn(rng: np.random.Generator, kernel: str, a: str, b: str, seed: int) -> Run:
    def one(*choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    size = max(get_format(a).dtype.itemsize, get_format(b).dtype.itemsize)
    while True:
        blocks = (one(16, 32, 64, 64, 128), one(16, 32, 64, 128), one(32, 64, 128))
        # Bytes of the tiles of A and B in two stages, within the 227 KiB of shared memory that a block can
        # have.
        shared = 160 << 10
        if sum(blocks[:2]) * blocks[2] * size * _STAGES <= shared and blocks[0] * blocks[1] <= 1 << 13:
            break
    warps = one(1, 2, 4, 4, 4, 8)
    if blocks[0] * blocks[1] >= 1 << 13:
        warps = max(warps, 4)
    m, n, k = blocks[0] * one(1, 2), blocks[1] * one(1, 2, 3), blocks[2] * one(2, 3, 5)
    d = one("f32", "f32", "f16" if a != "bf16" else "bf16", "bf16")
    options: dict[str, Any] = {}
    if kernel == "grouped":
        # The edge of a block ends inside of it; 16 elements keep rows where a GPU reads 16 bytes at once.
        m, n, k = m - one(0, 3), n - one(0, 16) % n, k - one(0, 16)
        options = {"HOW": one("chain", "chain", "plus", "leaky"), "TURNED": one(False, True)}
        if a == "s8":
            options |= {"TOTAL": "int32", "HOW": one("chain", "plus")}
            d = "s32"
        elif a == "f16" and one(False, True):
            options["TOTAL"] = "float16"
        elif size == 1:
            options["IMPRECISE"] = one(None, 0, *(x for x in (32, 64, 128) if x <= blocks[2]))
        if a == "f32":
            options["PRECISION"] = one(*_PRECISIONS)
    elif kernel == "persistent":
        options = {"BIAS": one(False, True), "PROGRAMS": one(1, 2, 5), "TURNED": one(False, True)}
    elif kernel == "split":
        options = {"parts": one(2, 3, 4)}
    if one(False, False, True):
        options["SPECIAL"] = True
    return Run(kernel, a, b, d, m, n, k, blocks, warps, options, seed)


def sums(seed: int, count: int) -> Iterator[Run]:
    """`count` launches of kernels with `tl.sum` and no `tl.dot`, of f32, f16 and bf16 in turn; tiles, warps
    and sizes are drawn. Rows that are no multiple of 16 bytes have another layout."""
    rng = np.random.default_rng([seed, 9])
    for number in range(count):
        kernel, fmt = SUMS[number % len(SUMS)], ("f32", "f16", "bf16")[number // len(SUMS) % 3]
        bm, bn = 1 << int(rng.integers(0, 6)), 1 << int(rng.integers(4, 11))
        n = bn if rng.integers(2) else max(bn - int(rng.integers(1, 9)), 1)
        n = n if kernel == "softmax" else n * int(rng.integers(1, 4))
        warps = 1 << int(rng.integers(0, 4))
        d = "f32" if rng.integers(2) else fmt
        yield Run(kernel, fmt, fmt, d, 0, n, 0, (bm, bn, 0), warps, {}, seed)


def attentions(seed: int, length: int = 256, heads: int = 2) -> Iterator[Run]:
    """Attention of heads of 64 and 128, causal and not, in f16 and bf16, with two tilings."""
    for fmt in ("f16", "bf16"):
        for head in (64, 128):
            for causal in (False, True):
                for blocks, warps in (((64, 64, 0), 4), ((128, 64, 0), 8), ((128, 32, 0), 4)):
                    yield Run(
                        "attention",
                        fmt,
                        fmt,
                        fmt,
                        length,
                        heads,
                        head,
                        blocks,
                        warps,
                        {"CAUSAL": causal},
                        seed,
                    )
