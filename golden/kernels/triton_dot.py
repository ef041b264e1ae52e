"""What does one `tl.dot` of Triton compute on Hopper? The instruction, the order of K and where sums are
added in f32, from what the compiler sees: types, sizes, warps, options.

The rules are those of RELEASES: lib/Analysis/Utility.cpp (supportMMA),
lib/Dialect/TritonGPU/Transforms/AccelerateMatmul.cpp, F32DotTC.cpp, and WGMMA.cpp below third_party/nvidia.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError, ShapeError, UnknownNameError, nearest
from golden.kernels.plan import Plan, build
from golden.kernels.plan_files import fma, plan
from golden.kernels.product import gemm
from golden.number.formats import get_format

Bits = npt.NDArray[Any]
PRECISIONS = ("tf32", "ieee", "tf32x3", "bf16x3", "bf16x6")
"""Values of `input_precision`: what becomes of operands in f32."""
NO_LIMIT = 1 << 30
"""`max_num_imprecise_acc` of fp8 operands on Hopper where the kernel does not set it."""
FP8 = ("e4m3", "e5m2")
RELEASES = ((3, 6), (3, 9))
"""The first and the last release of Triton whose compiled code was compared with the rule."""
_CHANGED = (3, 8)
"""The release since which wgmma takes N of 8, and f64 the smaller instruction."""
_K_BITS = 256
"""Bits of K that one instruction takes of each row: every dense type of Hopper but f64."""


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A `tl.dot` as the compiler sees it.

    Attributes:
        a, b, d: formats of the operands and of the accumulator: f16, bf16, f32, f64, e4m3, e5m2, s8; d f16,
            f32, f64 or s32.
        m, n, k: the block's sizes: A is m x k, B is k x n.
        warps: `num_warps` of the launch.
        batched: the operands have three axes.
        precision: `input_precision`, one of PRECISIONS.
        imprecise: `max_num_imprecise_acc`, of fp8.
        loaded: bits of the narrowest elements that were loaded from memory and became A or B by elementwise
            operations; None: those of A and B. An int8 weight that a kernel converts to f16 has 8.
        release: of Triton.
    """

    a: str
    b: str
    d: str
    m: int
    n: int
    k: int
    warps: int = 4
    batched: bool = False
    precision: str = "tf32"
    imprecise: int = 0
    loaded: int | None = None
    release: tuple[int, int] = (3, 6)

    @property
    def bits(self) -> int:
        """Bits of an element of A."""
        return get_format(self.a).storage


@dataclass(frozen=True)
class Steps:
    """How a `tl.dot` is computed: `plan` over stretches of K of `stretch` elements (the last one may be
    shorter), each from zero and then added to the accumulator in f32; None: one chain that starts at the
    accumulator."""

    plan: Plan
    stretch: int | None = None

    def __str__(self) -> str:
        order = "" if self.plan.options.order is None else f", K in the order {list(self.plan.options.order)}"
        added = "" if self.stretch is None else f", each {self.stretch} of K added in f32"
        return f"{self.plan.instruction.name}{order}{added}"


def dot(call: Dot, a: Bits, b: Bits, c: Bits) -> Bits:
    """The result of `tl.dot(a, b, c)`.

    Args:
        a, b, c: raw codes (..., m, k), (..., k, n), (..., m, n) of the formats of `call`.

    Returns:
        Raw codes (..., m, n) of format d.

    Raises:
        OperandError: the compiler has no rule that is known here, and which one.
    """
    if a.shape[-2:] != (call.m, call.k) or b.shape[-2:] != (call.k, call.n):
        raise ShapeError(
            f"tl.dot: A {a.shape} and B {b.shape}, expected (..., {call.m}, {call.k}) and "
            f"(..., {call.k}, {call.n})"
        )
    steps = steps_of(call)
    if steps.stretch is None:
        return gemm(a, b, steps.plan, c)
    for start in range(0, call.k, steps.stretch):
        stretch = slice(start, start + steps.stretch)
        c = added(c, gemm(a[..., stretch], b[..., stretch, :], steps.plan))
    return c


def added(x: Bits, y: Bits) -> Bits:
    """The sum of two arrays of f32 codes as FADD gives it: to nearest even, one word for every NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = x.view(np.float32) + y.view(np.float32)
    return np.where(np.isnan(total), np.uint32(0x7FFFFFFF), total.view(np.uint32))


def is_wgmma(call: Dot) -> bool:
    """Whether the compiler takes wgmma, else mma.sync (or, of f32 with `ieee`, no matrix unit).

    wgmma needs a warpgroup, whole instructions along each axis, and, of fp8 with f32 sums, leave to add 32
    products inside the unit.
    """
    # Warps that execute a wgmma together, and its rows.
    warpgroup, wgmma_m = 4, 64
    return (
        call.a != "f64"
        and not call.batched
        and call.warps % warpgroup == 0
        and call.m % wgmma_m == 0
        and call.n % (8 if call.release >= _CHANGED else 16) == 0
        and call.k * call.bits >= _K_BITS
        and not (call.a in FP8 and call.d == "f32" and call.imprecise < _K_BITS // call.bits)
    )


@lru_cache(maxsize=4096)
def steps_of(call: Dot) -> Steps:
    """The plan of a `tl.dot`.

    Raises:
        OperandError: see `dot`. UnknownNameError: no such `precision`.
    """
    if call.precision not in PRECISIONS:
        raise UnknownNameError(
            f"input_precision '{call.precision}' is unknown, expected one of {', '.join(PRECISIONS)}"
            f"{nearest(call.precision, PRECISIONS)}"
        )
    if call.a == "f32" and call.precision == "ieee":
        return Steps(build(fma("f32", "f32"), {"c": "seed"}))
    if call.a == "f32" and call.precision != "tf32":
        return _in_parts(call)
    return _wgmma(call) if is_wgmma(call) else _mma_sync(call)


def _in_parts(call: Dot) -> Steps:
    """Operands in f32 are cut into parts before the compiler takes an instruction for each product of parts;
    their sum is one chain from zero."""
    kind = call.precision[:4]
    part = (
        replace(call, a=kind, b=kind, precision="tf32") if kind == "bf16" else replace(call, precision="tf32")
    )
    one = _wgmma(part) if is_wgmma(part) else _mma_sync(part)
    if one.plan.options.order is not None:
        raise OperandError(
            f"tl.dot with input_precision {call.precision} by mma.sync, of operands that were loaded in "
            f"{call.loaded} bits: the order of K was not measured"
        )
    named = plan("hopper", f"triton_dot.f32.{call.precision}")
    options = named.given | {"tile_k": call.k, "promote": call.k}
    return Steps(build(one.plan.instruction, options), call.k)


def _wgmma(call: Dot) -> Steps:
    types = ("tf32", "tf32") if call.a == "f32" else (call.a, call.b)
    k = _K_BITS // call.bits
    unit = f"wgmma.mma_async.sync.aligned.m64n128k{k}.{call.d}.{'.'.join(types)}"
    options: dict[str, Any] = {"a": "f32", "b": "f32", "convert": "none"} if call.a == "f32" else {}
    if call.a in FP8 and call.d == "f32" and call.imprecise <= call.k:
        # The partial sum is added as soon as it has all products that are allowed: whole instructions.
        return Steps(plan("hopper", unit, **options), -(-call.imprecise // k) * k)
    return Steps(plan("hopper", unit, c="seed", **options))


def _mma_sync(call: Dot) -> Steps:
    """mma.sync has no fp8 on Hopper in Triton: the operands become f16, which holds each of them."""
    if call.a == "f64":
        if call.loaded is not None and call.loaded < call.bits:
            raise OperandError(
                f"tl.dot of f64 operands that were loaded in {call.loaded} bits has no rule here"
            )
        shape = "m8n8k4" if call.release >= _CHANGED else "m16n8k16"
        unit = f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64"
        return Steps(plan("hopper", unit, c="seed"))
    types = ["f16", "f16"] if call.a in FP8 else ["tf32", "tf32"] if call.a == "f32" else [call.a, call.b]
    bits = get_format(types[0]).storage
    k = _K_BITS // bits
    limited = "satfinite." if call.d == "s32" else ""
    unit = f"mma.sync.aligned.m16n8k{k}.row.col.{limited}{call.d}.{'.'.join(types)}.{call.d}"
    options: dict[str, Any] = {"convert": "none"} if call.a == "f32" else {}
    if call.a in FP8 or call.a == "f32":
        options |= {"a": call.a, "b": call.b}
    # Bits of a register: a thread's neighbours along K of one instruction lie in one.
    register = 32
    neighbours = register // min(call.bits, call.loaded or call.bits)
    if neighbours > register // bits:
        order = packed_order(neighbours, register // bits)
        if call.k < len(order):
            raise OperandError(
                f"tl.dot by mma.sync with K = {call.k}, of operands that were loaded in "
                f"{register // neighbours} bits: Triton compiles K below {len(order)} wrongly (its pull "
                "request 11691), take a larger block"
            )
        options |= {"order": order, "tile_k": len(order)}
    return Steps(plan("hopper", unit, c="seed", **options))


def packed_order(neighbours: int, taken: int) -> tuple[int, ...]:
    """The order of K where each thread holds more neighbours of a row than an instruction of mma.sync takes
    of it, as it does with elements that were loaded in fewer bits.

    A thread holds `neighbours` elements that stand side by side, of which an instruction takes `taken`, in
    each half of K: the first instruction takes the first ones of all threads, the second the next ones. So
    four neighbours, two of them taken, give K of 0, 1, 4, 5, ... and then 2, 3, 6, 7, ...
    """
    # Threads that share a row of an operand of mma.sync, and how many pieces of K each of them holds.
    group, groups = 4, 2
    return tuple(
        (half * group + thread) * neighbours + turn * taken + place
        for turn in range(neighbours // taken)
        for half in range(groups)
        for thread in range(group)
        for place in range(taken)
    )
