"""Operations of Triton's interpreter as Hopper computes them, each a function of the running emulation, the
interpreter's own method and its operands.

Of a compiled kernel this has the arithmetic, not the machine code: the operations of PTX that Triton 3.6 and
3.9 write for sm_90, and the contraction of a product and a sum into one fused multiply-add, which LLVM and
ptxas do wherever they can.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import triton
import triton.language as tl
from triton.runtime.interpreter import TensorHandle as Handle

from golden.errors import OperandError
from golden.functions.functions import mufu
from golden.kernels import libdevice, triton_dot
from golden.kernels.conversion import can_convert, convert_codes
from golden.kernels.plan_files import fma
from golden.kernels.reductions import in_halves, in_turn
from golden.kernels.triton_dot import Dot
from golden.number.formats import Format, get_format, to_float

Bits = npt.NDArray[Any]
PAST = "mmagold"
"""The key of a Past among the attributes of a handle, which the interpreter has for hints."""
FORMATS = {
    "fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64",
    "fp8e4nv": "e4m3", "fp8e5": "e5m2", "int8": "s8", "int32": "s32",
}  # fmt: skip
"""Formats by Triton's names of element types."""
_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "e4m3": 0x7F, "e5m2": 0x7F}
"""The word of every NaN that arithmetic gives on an NVIDIA GPU."""


_DIVISORS = (libdevice.LEAST_NORMAL, np.float32(2.0**126))
"""Divisors below and above which div.full scales."""


@dataclass(frozen=True)
class Launch:
    """What a launch gives the compiler: `warps`, and whether products and sums are fused."""

    warps: int = 4
    fusion: bool = True

    @classmethod
    def of(cls, options: dict[str, Any]) -> Launch:
        """From the keywords of a launch."""
        if options.get("num_ctas", 1) != 1:
            raise OperandError(
                f"num_ctas is {options['num_ctas']}, expected 1: no rule here for several CTAs"
            )
        fusion = options.get("enable_fp_fusion")
        if fusion is None:
            fusion = triton.knobs.language.default_fp_fusion
        return cls(options.get("num_warps", 4), bool(fusion))


@dataclass(frozen=True)
class Product:
    """The factors of a block that is a product. `block`: of the kernel's code in which it was computed;
    `quotient`: it is x times the reciprocal of y, which only ptxas sees."""

    one: Any
    two: Any
    block: int
    quotient: bool = False


@dataclass
class Provenance:
    """What a compiler sees of where a block comes from.

    Attributes:
        loaded: bits of the narrowest elements that were loaded and became it by elementwise operations.
        joined: `tl.join` was among these.
        product: where it is one.
        dot: the operands of the `tl.dot` without an accumulator that it is, and the block of code.
        rows_of_quads: it has the layout of an accumulator whose rows lie in four threads each.
        uses: operations that took it.
        chained: the operation that adds to it starts its chain, so that it never exists on the chip.
    """

    loaded: int | None = None
    joined: bool = False
    product: Product | None = None
    dot: tuple[Dot, Bits, Bits, int] | None = None
    rows_of_quads: bool = False
    uses: int = 0
    chained: bool = False


def provenance_of(handle: Any) -> Provenance:
    """What is known of a block; nothing of what the emulation did not make."""
    found = handle.attr.get(PAST)
    return found if found is not None else Provenance()


def elementwise(operands: list[Any], loaded: tuple[int, ...] = ()) -> Provenance:
    """What the result of an elementwise operation remembers; `loaded`: bits that it loads itself."""
    pasts = [provenance_of(one) for one in operands]
    widths = [*loaded, *(past.loaded for past in pasts if past.loaded is not None)]
    return Provenance(
        loaded=min(widths, default=None),
        joined=any(past.joined for past in pasts),
        rows_of_quads=any(past.rows_of_quads for past in pasts),
    )


def use(handle: Any) -> None:
    """Notes that an operation took a block."""
    past = handle.attr.setdefault(PAST, Provenance())
    past.uses += 1
    if past.chained and past.uses > 1:
        raise OperandError(
            "the result of a tl.dot without an accumulator is added to a block and used again: whether "
            "Triton then chains it depends on the loop around, give the accumulator to tl.dot"
        )


# Products and their sums ------------------------------------------------------------------------------------


def _dot(run: Any, own: Any, a: Any, b: Any, d: Any, precision: Any, imprecise: int) -> Any:
    """`tl.dot`, and what it shows of itself to later operations."""
    narrow = [past.loaded for past in map(provenance_of, (a, b)) if past.loaded is not None]
    batch, (m, k), n = a.data.shape[:-2], a.data.shape[-2:], b.data.shape[-1]
    call = Dot(
        a=_format_of(a).name,
        b=_format_of(b).name,
        d=_format_of(d).name,
        m=m,
        n=n,
        k=k,
        warps=run.launch.warps,
        batched=bool(batch),
        precision=precision.name.lower(),
        imprecise=imprecise,
        loaded=min(narrow, default=None),
        release=release(),
    )
    if not triton_dot.is_wgmma(call) and any(provenance_of(one).joined for one in (a, b)):
        raise OperandError("tl.dot by mma.sync of operands from tl.join: the order of K was not measured")
    left, right = _codes(a), _codes(b)
    found = _handle(triton_dot.dot(call, left, right, _codes(d)), d)
    run.dots[str(triton_dot.steps_of(call))] += 1
    # Without an accumulator its zeros are made right before; the zeros of a loop's accumulator came earlier.
    from_zero = d is run.last and not _codes(d).any() and imprecise == 0
    # Rows of an accumulator that a warp holds at once.
    warp_rows = 16
    # Every warp holds whole rows where there are rows for all of them, or only one warp.
    whole = (triton_dot.is_wgmma(call) and m >= call.warps * warp_rows) or call.warps == 1
    found.attr[PAST] = Provenance(
        dot=(call, left, right, run.block) if from_zero else None,
        rows_of_quads=whole and call.d == "f32" and call.precision != "ieee",
    )
    return found


def _added(run: Any, own: Any, x: Any, y: Any) -> Any:
    """A sum: a chain that goes on, where one addend is a `tl.dot` from zero that nothing else takes; a fused
    multiply-add, where one is a product; else an addition."""
    for one, other in ((y, x), (x, y)):  # of two such addends Triton chains the second to the first
        past = provenance_of(one)
        if past.dot is not None and past.uses == 0 and one is not other:
            call, left, right, block = past.dot
            if block != run.block:
                run.cpu["a sum with a tl.dot of another block of code"] += 1
                break
            found = _handle(triton_dot.dot(call, left, right, _codes(other)), other)
            past.chained = True
            found.attr[PAST] = Provenance(rows_of_quads=past.rows_of_quads)
            return found
    return _sum(run, own, x, y, (1, 1))


def _subtracted(run: Any, own: Any, x: Any, y: Any) -> Any:
    return _sum(run, own, x, y, (1, -1))


def _sum(run: Any, own: Any, x: Any, y: Any, signs: tuple[int, int]) -> Any:
    """x + y or x - y. LLVM fuses a product of the same block of code, of two one that is not known here;
    ptxas then the last product of a quotient."""
    products = [provenance_of(one).product if run.launch.fusion else None for one in (x, y)]
    if any(one is not None and one.block != run.block for one in products):
        run.cpu["a sum with a product of another block of code"] += 1
        products = [one if one is not None and one.block == run.block else None for one in products]
    kinds = [None if one is None else one.quotient for one in products]
    if kinds == [None, None]:
        return _float(run, own, x, y)
    if kinds in ([True, True], [False, False]):
        run.cpu["a sum of two products"] += 1
    at = kinds.index(min(kind for kind in kinds if kind is not None))
    product, addend = products[at], (y, x)[at]
    assert product is not None
    return _fused(run, own, _signed(product.one, signs[at]), product.two, _signed(addend, signs[1 - at]))


def _signed(x: Any, sign: int) -> Any:
    """x or -x, which is another sign for a NaN, too."""
    if sign > 0:
        return x
    codes = _codes(x)
    return _handle(codes ^ codes.dtype.type(1 << (8 * codes.dtype.itemsize - 1)), x)


def _multiplied(run: Any, own: Any, x: Any, y: Any) -> Any:
    found = _float(run, own, x, y)
    found.attr[PAST] = elementwise([x, y])
    found.attr[PAST].product = Product(x, y, run.block) if found.dtype.scalar.is_floating() else None
    return found


def _negated(run: Any, own: Any, x: Any) -> Any:
    """-x; of a product the product of a negated factor."""
    found = _float(run, own, x)
    product = provenance_of(x).product
    found.attr[PAST] = elementwise([x])
    found.attr[PAST].product = None if product is None else replace(product, one=own(product.one))
    return found


def _fused(run: Any, own: Any, x: Any, y: Any, z: Any) -> Any:
    """x y + z in the type of z, rounded once."""
    fmt = _format_of(z)
    shape = np.broadcast_shapes(x.data.shape, y.data.shape, z.data.shape)
    one, two, addend = (np.ascontiguousarray(np.broadcast_to(_codes(v), shape)) for v in (x, y, z))
    found = fma(fmt.name, fmt.name).dot(one[..., None], two[..., None], addend)
    nan = np.isnan(to_float(fmt, found))
    word = found.dtype.type(_NAN.get(fmt.name, int(fmt.nan or 0)))
    return _handle(np.where(nan, word, found), z)


def _float(run: Any, own: Any, *operands: Any) -> Any:
    """An elementwise operation of floats. The interpreter keeps bf16 as raw codes, on which NumPy would
    compute as on integers: f32 has bits enough for the result to be rounded once more."""
    if operands[0].dtype.scalar is not tl.bfloat16:
        found = own(*operands)
        return _handle(canonical(found.data), found) if found.data.dtype.kind == "f" else found
    wide = [Handle(_numbers(one), tl.float32) for one in operands]
    found = own(*wide)
    if found.data.dtype != np.float32:
        return found
    return Handle(_converted(found.data.view(np.uint32), "f32", "bf16"), tl.bfloat16)


def _greater(run: Any, own: Any, x: Any, y: Any) -> Any:
    """`tl.maximum` as max.f32 has it: of a NaN and a number the number, of zeros +0 if one is."""

    def larger(one: Any, other: Any) -> Any:
        zeros = (one.data == 0) & (other.data == 0)
        return Handle(np.where(zeros, one.data + other.data, np.fmax(one.data, other.data)), one.dtype.scalar)

    return _float(run, larger, x, y)


def _smaller(run: Any, own: Any, x: Any, y: Any) -> Any:
    """`tl.minimum`: as `tl.maximum`, of zeros -0 if one is."""

    def smaller(one: Any, other: Any) -> Any:
        zeros = (one.data == 0) & (other.data == 0)
        return Handle(
            np.where(zeros, -(-one.data - other.data), np.fmin(one.data, other.data)), one.dtype.scalar
        )

    return _float(run, smaller, x, y)


def _whole(run: Any, own: Any, x: Any) -> Any:
    """`tl.floor` and `tl.ceil`, of which PTX flushes subnormal f32 to zero."""
    if x.data.dtype != np.float32:
        return _float(run, own, x)
    return own(_handle(np.where(np.abs(x.data) < _DIVISORS[0], x.data * np.float32(0), x.data), x))


def _clamped(run: Any, own: Any, x: Any, low: Any, high: Any, nans: Any) -> Any:
    """`tl.clamp`: of a NaN the lower bound, or that with its sign if the bounds are alike, unless it is to
    propagate."""
    if str(getattr(nans, "name", nans)) == "ALL":
        return _float(run, lambda *three: own(*three, nans), x, low, high)
    if x.data.dtype == np.float32 and (low.data == -high.data).all():  # min.xorsign.abs
        return _handle(np.copysign(np.fmin(np.abs(x.data), high.data), x.data), x)
    return _smaller(run, own, _greater(run, own, x, low), high)


def _atomic(run: Any, own: Any, *operands: Any) -> Any:
    """Programs on a GPU come in any order, and sums of floats depend on it."""
    if any(one.dtype.scalar.is_floating() for one in operands if isinstance(one, Handle)):
        run.cpu["an atomic operation on floats"] += 1
    return own(*operands)


def canonical(data: Bits) -> Bits:
    """Floats with the chip's word for each NaN."""
    word = _NAN.get({np.dtype(np.float32): "f32", np.dtype(np.float16): "f16"}.get(data.dtype, ""))
    if word is None or not np.isnan(data).any():
        return data
    codes = data.view(f"u{data.dtype.itemsize}")
    return np.where(np.isnan(data), codes.dtype.type(word), codes).view(data.dtype)


# Conversions ------------------------------------------------------------------------------------------------


def _cast(run: Any, own: Any, source: Any, target: Any, *rest: Any) -> Any:
    """A conversion between types, to nearest even unless the kernel names another rounding. The interpreter's
    own cuts bf16 off and does not carry in 8 bits."""
    kinds = [one.is_floating() for one in (source.dtype.scalar, target.scalar)]
    if kinds == [True, False]:
        return _to_integer(run, own, source, target, rest)
    if kinds == [False, True] and target.scalar is tl.bfloat16:
        wide = source.data.astype(np.float32)
        return Handle(_converted(wide.view(np.uint32), "f32", "bf16"), tl.bfloat16)
    if not all(kinds):
        return own(source, target, *rest)
    names = [FORMATS.get(one.name, "") for one in (source.dtype.scalar, target.scalar)]
    rounding = _rounding(rest)
    if "" in names or not can_convert(get_format(names[0]), get_format(names[1]), rounding):
        run.cpu[f"a conversion of {source.dtype.scalar} to {target.scalar}"] += 1
        return own(source, target, *rest)
    codes = _converted(_codes(source), names[0], names[1], rounding)
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}.get(names[1])
    return Handle(codes if dtype is None else codes.view(dtype), target.scalar)


def _to_integer(run: Any, own: Any, source: Any, target: Any, rest: tuple[Any, ...]) -> Any:
    """Toward zero; what does not fit becomes the nearest integer that does, and a NaN 0. Of 8 bits PTX's
    conversion has 16, the upper ones of which are cut off."""
    bits = {"int8": 16, "int32": 32}.get(target.scalar.name)
    if bits is None or source.dtype.scalar.name not in FORMATS:
        run.cpu[f"a conversion of {source.dtype.scalar} to {target.scalar}"] += 1
        return own(source, target, *rest)
    numbers = np.nan_to_num(to_float(_format_of(source), _codes(source)), nan=0.0)
    limit = float(1 << (bits - 1))
    whole = np.clip(np.trunc(numbers), -limit, limit - 1).astype(np.int64)
    return Handle(whole.astype(np.int8 if bits == 16 else np.int32), target.scalar)


def _rounding(rest: tuple[Any, ...]) -> str:
    word = next((str(getattr(one, "name", "")) for one in rest), "")
    return "toward_zero" if word == "RTZ" else "nearest_even"


def _converted(codes: Bits, source: str, target: str, rounding: str = "nearest_even") -> Bits:
    """Codes of another format, with the chip's word for a NaN."""
    fmt, into = get_format(source), get_format(target)
    if source == "f64":
        with np.errstate(over="ignore", invalid="ignore"):
            codes, fmt = codes.view(np.float64).astype(np.float32).view(np.uint32), get_format("f32")
    if target == "f64":
        return to_float(fmt, codes).view(np.uint64)
    if (source, target) == ("bf16", "f32"):  # a shift: a NaN keeps its bits
        return codes.astype(np.uint32) << np.uint32(16)
    if (source, target) == ("e5m2", "bf16"):  # Triton's integer arithmetic, which knows no infinity or NaN
        magnitude = (codes & np.uint8(0x7F)).astype(np.uint16)
        finite = convert_codes(codes, fmt, into, rounding)
        wide = (magnitude << np.uint16(5)) + np.uint16((127 - 15) << 7)
        sign = (codes >> np.uint8(7)).astype(np.uint16) << np.uint16(15)
        return np.where(magnitude >= 0x7C, wide | sign, finite)
    numbers = to_float(fmt, codes)
    found = convert_codes(codes, fmt, into, rounding)
    if target == "e5m2":  # cvt.rn.satfinite: the largest number instead of infinity
        found = np.where((found & 0x7F) == 0x7C, found - np.uint8(1), found)
    nan = np.isnan(numbers)
    return np.where(nan, found.dtype.type(_NAN.get(target, 0)), found) if nan.any() else found


# Functions --------------------------------------------------------------------------------------------------


@cache
def _unit(name: str) -> Callable[[Bits], Bits]:
    """A function of the chip's special-function unit on raw codes."""
    return mufu("hopper", name)


def _special(name: str, shown: str) -> Callable[..., Any]:
    """An operation of f32 that is one instruction of the special-function unit."""

    def call(run: Any, own: Any, x: Any) -> Any:
        unit = _unit(name)
        if x.data.dtype != np.float32:
            run.cpu[shown] += 1
            return own(x)
        return _handle(unit(_codes(x)), x)

    return call


def _exponential(run: Any, own: Any, x: Any) -> Any:
    """`tl.exp` of f32: 2 to the power of x times log2(e), which is rounded."""
    unit = _unit("ex2.approx.f32")
    if x.data.dtype != np.float32:
        run.cpu["tl.exp"] += 1
        return own(x)
    with np.errstate(over="ignore", invalid="ignore"):
        return _handle(unit(canonical(x.data * libdevice.LOG2_E).view(np.uint32)), x)


def _divided(run: Any, own: Any, x: Any, y: Any) -> Any:
    """`/` of f32, which is div.full: x times the unit's reciprocal of y. A divisor whose reciprocal would be
    subnormal, or infinite for being subnormal itself, is scaled together with x."""
    unit = _unit("rcp.approx.ftz.f32")
    if x.data.dtype != np.float32:
        run.cpu["tl.fdiv"] += 1
        return own(x, y)
    size = np.abs(y.data)
    scale = np.where(size > _DIVISORS[1], np.float32(0.25), np.float32(1))
    scale = np.where(size < _DIVISORS[0], np.float32(1 << 24), scale)
    with np.errstate(over="ignore", invalid="ignore"):
        inverse, scaled = _handle(unit((y.data * scale).view(np.uint32)), y), _handle(x.data * scale, x)
        found = _handle(canonical(scaled.data * inverse.data), x)
    found.attr[PAST] = elementwise([x, y])
    found.attr[PAST].product = Product(scaled, inverse, run.block, quotient=True)
    return found


def _logarithm(name: str, base: float) -> Callable[..., Any]:
    """`tl.log` or `tl.log2` of f32: libdevice's polynomial."""

    def call(run: Any, own: Any, x: Any) -> Any:
        if x.data.dtype != np.float32:
            run.cpu[name] += 1
            return own(x)
        return _handle(canonical(libdevice.log(x.data, base)), x)

    return call


# Sums of a row ----------------------------------------------------------------------------------------------


def sum_of_quads(values: Bits) -> Bits:
    """The sums of the rows of an accumulator of f32 (m, n), in the order of Triton's reduction.

    Four threads share a row; each holds two neighbours of every eight columns and adds its own in ascending
    order. Then threads add pairwise: those two places apart, then neighbours.
    """
    m, n = values.shape
    # Threads that share a row of an accumulator, and neighbours of a row that each of them holds.
    quad, pair = 4, 2
    own = values.reshape(m, n // (quad * pair), quad, pair).swapaxes(1, 2).reshape(m, quad, -1)
    return canonical(in_halves(in_turn(own, 2), 1))


# Handles ----------------------------------------------------------------------------------------------------


def _format_of(handle: Any) -> Format:
    name = FORMATS.get(handle.dtype.scalar.name)
    if name is None:
        raise OperandError(
            f"tl.dot of {handle.dtype.scalar} has no rule here, expected one of {', '.join(FORMATS)}"
        )
    return get_format(name)


def _codes(handle: Any) -> Bits:
    """Raw codes."""
    data = np.ascontiguousarray(handle.data)
    return np.asarray(data.view(_format_of(handle).dtype)) if handle.dtype.scalar.name in FORMATS else data


def _numbers(handle: Any) -> Bits:
    """Numbers of bf16, as f32."""
    return np.asarray((handle.data.astype(np.uint32) << np.uint32(16)).view(np.float32))


def _handle(data: Bits, like: Any) -> Any:
    """A block of the type and storage of another."""
    return Handle(np.ascontiguousarray(data).view(like.data.dtype), like.dtype.scalar)


def release() -> tuple[int, int]:
    """Of the Triton that is installed."""
    major, minor = re.findall(r"\d+", triton.__version__)[:2]
    return int(major), int(minor)


LOADS = (
    "create_load", "create_masked_load", "create_tensor_pointer_load", "create_descriptor_load",
    "create_descriptor_gather",
)  # fmt: skip
VIEWS = ("create_broadcast", "create_expand_dims", "create_reshape", "create_trans")
FORGETS = (
    "create_splat", "create_unsplat", "create_make_range", "create_histogram", "create_gather",
    "create_atomic_cas", "create_atomic_rmw", "create_get_program_id", "create_get_num_programs",
)  # fmt: skip
"""Operations whose results remember nothing: what is no elementwise operation, no view and no load."""
_CASTS = ("create_fp_to_fp", "create_fp_trunc", "create_fp_ext", "create_si_to_fp", "create_ui_to_fp",
          "create_fp_to_si", "create_fp_to_ui")  # fmt: skip
_COMPARISONS = ("LT", "GT", "LE", "GE", "EQ", "NE")
OF_THE_CHIP: dict[str, Callable[..., Any]] = {
    "create_dot": _dot,
    "create_fadd": _added,
    "create_add": _added,
    "create_fsub": _subtracted,
    "create_fmul": _multiplied,
    "create_fneg": _negated,
    "create_fma": _fused,
    "create_atomic_rmw": _atomic,
    "create_clampf": _clamped,
    "create_floor": _whole,
    "create_ceil": _whole,
    "create_precise_divf": _float,
    "create_precise_sqrt": _float,
    "create_maxnumf": _greater,
    "create_minnumf": _smaller,
    "create_exp": _exponential,
    "create_log": _logarithm("tl.log", np.e),
    "create_log2": _logarithm("tl.log2", 2),
    "create_exp2": _special("ex2.approx.ftz.f32", "tl.exp2"),
    "create_sqrt": _special("sqrt.approx.ftz.f32", "tl.sqrt"),
    "create_rsqrt": _special("rsqrt.approx.ftz.f32", "tl.rsqrt"),
    "create_fdiv": _divided,
    "create_approx_divf": _divided,
    **dict.fromkeys(_CASTS, _cast),
    **{f"create_fcmp{order}{word}": _float for order in "OU" for word in _COMPARISONS},
}
"""What computes each operation that differs on the chip, or that later operations ask for."""
OF_THE_CPU = {f"create_{name}": f"tl.{name}" for name in ("frem", "sin", "cos", "erf")}
"""Operations whose results the CPU gives, by how a kernel writes them."""
