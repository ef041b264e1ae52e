"""Which operations the C core has a fast form for, and the parameters that it needs.

A kernel is an optimisation: the same operation through the general interpreter gives the same bits, and tests
compare the two. Steps and formats decide, never a name, and every field of a step counts (`is_step`). Every
bound below keeps the kernel's 32-bit integers from overflowing, and its doubles exact (docs/core.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from golden.number.formats import Format, Kind, get_format
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    Multiply,
    Normalize,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
)

if TYPE_CHECKING:
    from golden.program.signature import Signature

Kernel = dict[str, Any]
S = TypeVar("S", bound=Step)


def select_kernels(operations: Sequence[Operation], unit: Signature) -> list[Kernel] | None:
    """Returns the kernel of every operation, or None unless all of them have one.

    A block of lanes is decoded once for the whole program, so all operations with products are of one kind
    and convert and flush their operands alike; operations without products can only add earlier results.
    """
    if unit.modes is not None or unit.state or unit.absent:
        return None
    if any(fmt.lone_zero for fmt in unit.formats.values()):
        return None
    kernels: list[Kernel] = []
    for operation in operations:
        kernel = next((found for choose in _CHOICES if (found := choose(operation, unit)) is not None), None)
        max_k = 256
        if (
            kernel is None
            or len(operation.k_index) > max_k
            or (kernel["fast"] == "add") == bool(operation.k_index)
        ):
            return None
        kernels.append(kernel)
    kinds = {kernel["fast"] for kernel in kernels if kernel["fast"] != "add"}
    targets = {operation.operand_format for operation in operations if operation.k_index}
    flushes = {first if isinstance(first := operation.steps[0], Flush) else None for operation in operations}
    narrow = all(unit.formats[name].storage == 8 for name in ("a", "b"))
    if (
        len(kinds) != 1
        or kernels[0]["fast"] == "add"
        or ("fma" in kinds and len(operations) != 1)
        or len(targets) != 1
        or len(flushes) > 1
        or (targets != {None} and not narrow)
    ):
        return None
    return None if unit.scale_block is not None and not kinds <= {"fda", "gdfs"} else kernels


def is_step(step: Step, kind: type[S], *free: str, **fields: Any) -> TypeGuard[S]:
    """Whether a step holds the values given, anything in the fields named `free`, and the defaults in all
    others.

    A kernel knows nothing but what it names, so that a key that is new to a step keeps the step from every
    kernel.
    """
    return type(step) is kind and step == kind(**fields, **{name: getattr(step, name) for name in free})


def _decodable(*formats: Format) -> bool:
    """Formats that the kernels decode: 8-bit ones by table, wider floats with a sign and IEEE special
    codes."""
    return all(
        f.storage == 8
        or (
            f.is_float
            and f.signed
            and f.has_subnormals
            and f.specials == "ieee"
            and f.fraction_bits <= 23
            and f.storage <= 32
        )
        for f in formats
    )


def _float_frame(operation: Operation, unit: Signature, final: Round) -> bool:
    """What all float kernels ask of c, d and the last rounding."""
    out, seed = operation.out_format, operation.seed_format
    return (
        _decodable(unit.formats["a"], unit.formats["b"])
        and unit.formats["a"].is_float
        and unit.formats["b"].is_float
        and out.signed
        and out.has_subnormals
        and seed.is_float
        and seed.storage in (16, 32)
        and seed.ignored_low == 0
        and _decodable(seed)
        and out.is_float
        and out.specials == "ieee"
        and out.storage in (16, 32)
        and out.ignored_low == 0
        and is_step(
            final,
            Round,
            "rounding",
            "result_fraction_bits",
            "nan",
            "zero",
            of=("total",),
            to="d",
            format=out,
            overflow="infinity",
        )
        and final.rounding in ("toward_zero", "nearest_even")
        and final.zero in ("positive", "signed_underflow")
        and not operation.addends
    )


def _operand(operation: Operation, fmt: Format) -> Format:
    return operation.operand_format or fmt


def _product_bits(operation: Operation, unit: Signature) -> tuple[int, int]:
    """(fraction bits, largest significand) of the exact products."""
    a, b = _operand(operation, unit.formats["a"]), _operand(operation, unit.formats["b"])
    largest = ((2 << a.fraction_bits) - 1) * ((2 << b.fraction_bits) - 1)
    return a.fraction_bits + b.fraction_bits, largest


def _chunk(fraction: int, largest: int, kept: int) -> int:
    """How many aligned products a signed 32-bit accumulator holds; 0 when not even one."""
    aligned = largest << (kept - fraction) if kept >= fraction else largest >> (fraction - kept)
    return ((1 << 31) - 1) // max(aligned, 1)


def _result(operation: Operation, final: Round, nan: int | None) -> Kernel:
    kept = (
        operation.out_format.fraction_bits
        if final.result_fraction_bits is None
        else final.result_fraction_bits
    )
    return {"result_fraction_bits": kept, "rounding": final.rounding, "zero_rule": final.zero, "nan": nan}


def _special(step: Step, *of: str) -> bool:
    """Whether a step answers NaN and infinity of these registers, with a NaN word of its own."""
    return is_step(step, SpecialValues, "nan", of=of) and step.nan is not None


def _exact_sum(step: Step, to: str, *of: str) -> bool:
    """Whether a step is one exact sum; its rounding only decides the sign of a zero, which the kernels'
    results do not have."""
    return is_step(step, Sum, "rounding", of=of, to=to)


def _fda(operation: Operation, unit: Signature) -> Kernel | None:
    scaled = unit.scale_block is not None
    match tuple(step for step in operation.steps if not (scaled and step == Scale(of=("products",)))):
        case (
            Multiply() as multiply,
            SpecialValues() as special,
            Align() as align,
            Sum() as total,
            Round() as final,
        ) if len(operation.steps) == 5 + scaled:
            pass
        case _:
            return None
    expected = ("products", "c", "scales") if scaled else ("products", "c")
    fraction, largest = _product_bits(operation, unit)
    kept = dict(align.fraction_bits).get("products", -1)
    max_f = 28
    if (
        not _float_frame(operation, unit, final)
        or not is_step(multiply, Multiply, to="products")
        or not _special(special, *expected)
        or not is_step(
            align,
            Align,
            "floor",
            of=("products", "c"),
            fraction_bits=(("products", kept), ("c", kept)),
            rounding="toward_zero",
        )
        or not _exact_sum(total, "total", "products", "c")
        or not 0 < kept <= max_f
        or _product_width(operation, unit) > 24
    ):
        return None
    scales = [unit.formats[name] for name in ("scale_a", "scale_b") if scaled]
    if any(not f.is_float or f.signed or f.fraction_bits for f in scales):
        return None
    if scaled and not isinstance(operation.steps[1], Scale):
        return None
    chunk = _chunk(fraction, largest, kept)
    floor = align.floor if align.floor is not None else -(1 << 17)
    if (
        not chunk
        or operation.seed_format.fraction_bits + 1 + max(kept - operation.seed_format.fraction_bits, 0) > 60
    ):
        return None
    return {
        "fast": "fda",
        "fraction_bits": kept,
        "product_fraction": fraction,
        "floor": floor,
        "chunk": chunk,
        **_result(operation, final, special.nan),
    }


def _product_width(operation: Operation, unit: Signature) -> int:
    """Significand bits of an exact product."""
    a, b = _operand(operation, unit.formats["a"]), _operand(operation, unit.formats["b"])
    return a.fraction_bits + b.fraction_bits + 2


def _gdfs(operation: Operation, unit: Signature) -> Kernel | None:
    match operation.steps:
        case (
            Multiply() as multiply,
            SpecialValues() as special,
            Sum() as groups,
            Scale() as scale,
            Align() as align,
            Sum() as total,
            Round() as final,
        ):
            pass
        case _:
            return None
    if unit.scale_block is None:
        return None
    a, b, sa, sb = (unit.formats[name] for name in ("a", "b", "scale_a", "scale_b"))
    kept = dict(align.fraction_bits).get("groups", -1)
    size = groups.group[1] if groups.group else 0
    stored_block = unit.scale_block * unit.stored_k // unit.k
    max_group, max_groups = 32, 16  # MG_MAX_GROUPS
    if (
        not _float_frame(operation, unit, final)
        or not is_step(multiply, Multiply, to="products")
        or not _special(special, "products", "c", "scales")
        or not is_step(
            groups, Sum, "rounding", of=("products",), to="groups", group=("contiguous", size), exponent=0
        )
        or not is_step(scale, Scale, of=("groups",))
        or not is_step(
            align,
            Align,
            "floor",
            of=("groups", "c"),
            fraction_bits=(("groups", kept), ("c", kept)),
            rounding="toward_zero",
        )
        or not _exact_sum(total, "total", "groups", "c")
        or len(operation.k_index) % size
        or stored_block % size
        or operation.k_index != tuple(range(unit.stored_k))
        or operation.operand_format is not None
        or {a, b} != {get_format("e2m1")}
        or not {sa, sb} <= {get_format("ue8m0"), get_format("ue4m3")}
        or size > max_group
        or len(operation.k_index) // size > max_groups
    ):
        return None
    fraction = a.fraction_bits + b.fraction_bits + sa.fraction_bits + sb.fraction_bits
    if not max(operation.seed_format.fraction_bits, fraction) <= kept <= 35:
        return None
    quarters, scales = 4 * 36, ((2 << sa.fraction_bits) - 1) * ((2 << sb.fraction_bits) - 1)
    terms = quarters * len(operation.k_index) + 2  # below 4 of the significand of two scales, and c below 2
    if quarters * size * scales >= 1 << 24 or terms << kept >= 1 << 52:
        return None  # a float holds a scaled group, and a double the sum in units of its last bit
    floor = align.floor if align.floor is not None else -(1 << 17)
    return {
        "fast": "gdfs",
        "fraction_bits": kept,
        "product_fraction": fraction,
        "floor": floor,
        "group": size,
        "scale_block": stored_block,
        **_result(operation, final, special.nan),
    }


_HALVES = ("interleaved", 2)


def _fdrda_sums(steps: tuple[Step, ...], kept: int) -> bool:
    """Whether these steps align and sum the products to `dot`: all together, or as two interleaved groups
    that meet."""
    narrow = (("products", kept),)
    if len(steps) == 2:
        first = is_step(steps[0], Align, of=("products",), fraction_bits=narrow, rounding="toward_zero")
        return first and _exact_sum(steps[1], "dot", "products")
    if len(steps) != 4:
        return False
    return (
        is_step(
            steps[0], Align, of=("products",), fraction_bits=narrow, group=_HALVES, rounding="toward_zero"
        )
        and is_step(steps[1], Sum, "rounding", of=("products",), to="groups", group=_HALVES)
        and is_step(steps[2], Align, of=("groups",), fraction_bits=(("groups", kept),), rounding="down")
        and _exact_sum(steps[3], "dot", "groups")
    )


def _fdrda(operation: Operation, unit: Signature) -> Kernel | None:
    match operation.steps:
        case (
            Multiply() as multiply,
            SpecialValues() as special,
            *sums,
            Align() as meet,
            Sum() as total,
            Normalize() as normal,
            Round() as final,
        ):
            pass
        case _:
            return None
    fraction, largest = _product_bits(operation, unit)
    bits = dict(meet.fraction_bits)
    kept, dot, summed = bits.get("c", -1), bits.get("dot", -1), dict(normal.fraction_bits).get("total", -1)
    window = dict(meet.window).get("c", -1)
    if (
        not _float_frame(operation, unit, final)
        or not is_step(multiply, Multiply, "overflow_exponent", to="products")
        or not _special(special, "products", "c")
        or not _fdrda_sums(tuple(sums), kept)
        or not is_step(
            meet,
            Align,
            of=("dot", "c"),
            fraction_bits=(("dot", dot), ("c", kept)),
            rounding="down",
            floor=-126,
            window=(("c", window),) if meet.window else (),
        )
        or not _exact_sum(total, "total", "dot", "c")
        or not is_step(
            normal,
            Normalize,
            of=("total",),
            fraction_bits=(("total", summed),),
            rounding="down",
            min_exponent=-126,
        )
        or not fraction <= kept <= 24
        or not kept <= dot <= 40
        or (4 * len(operation.k_index) + 2) << dot >= 1 << 52  # the sum in units of its last bit, in a double
        or _chunk(fraction, largest, kept) < 1
        or operation.seed_format.fraction_bits > kept
        or not 0 <= summed <= dot
        or final.rounding != "nearest_even"
        or _subnormals_overflow(operation, unit, multiply.overflow_exponent)
        or _product_width(operation, unit) > 24
    ):
        return None
    return {
        "fast": "fdrda",
        "fraction_bits": kept,
        "product_fraction": fraction,
        "chunk": _chunk(fraction, largest, kept),
        "group": 1 if len(sums) == 2 else 2,
        "dot_fraction_bits": dot,
        "sum_fraction_bits": summed,
        "window": window,
        "product_overflow": _reachable_overflow(operation, unit, multiply.overflow_exponent),
        **_result(operation, final, special.nan),
    }


def _reachable_overflow(operation: Operation, unit: Signature, exponent: int | None) -> int:
    """The product overflow exponent, or 0 where no product of these formats gets there."""
    a, b = _operand(operation, unit.formats["a"]), _operand(operation, unit.formats["b"])
    return exponent if exponent is not None and a.max_exponent + b.max_exponent + 1 >= exponent else 0


def _subnormals_overflow(operation: Operation, unit: Signature, exponent: int | None) -> bool:
    """Whether a product with a subnormal factor can overflow; the kernel only looks at exponents of normal
    ones."""
    a, b = _operand(operation, unit.formats["a"]), _operand(operation, unit.formats["b"])
    reach = max(a.min_exponent + b.max_exponent, a.max_exponent + b.min_exponent) + 1
    return exponent is not None and (exponent <= 0 or reach >= exponent)


OF_HARDWARE = ("nearest_even", "toward_zero", "down", "up")
"""Roundings of the host's own multiply-add."""


def _fma(operation: Operation, unit: Signature) -> Kernel | None:
    """A chain in f32 or f64 on the host's own instructions, with their rounding set; chains that make a NaN
    are run once
    more by the rules for NaNs. The kernel runs one chain from c and nothing else, and reads each row of
    B: A is not sparse."""
    out, step = operation.out_format, operation.steps[0]
    same = {unit.formats[name] for name in "abcd"} == {out} and operation.seed_format == out
    if (
        len(operation.steps) != 1
        or not same
        or unit.pattern is not None
        or out not in (get_format("f32"), get_format("f64"))
        or not is_step(step, Fma, "rounding", "nan", "nan_order", to="d", format=out)
        or step.rounding not in OF_HARDWARE
        or step.nan is None
        or out.decode(step.nan).kind is not Kind.NAN
        or operation.operand_format
        or operation.addends
        or operation.seed != "c"
    ):
        return None
    return {"fast": "fma"}


def _integer(operation: Operation, unit: Signature) -> Kernel | None:
    match operation.steps:
        case (Multiply() as multiply, Sum() as total, Round() as final):
            pass
        case _:
            return None
    formats = [unit.formats[name] for name in "ab"]
    if (
        any(f.is_float or f.storage != 8 for f in formats)
        or {operation.out_format, operation.seed_format} != {get_format("s32")}
        or not is_step(multiply, Multiply, "operation", to="products")
        or not _exact_sum(total, "total", "products", "c")
        or not is_step(
            final,
            Round,
            "rounding",
            "overflow",
            "zero",
            "nan",
            of=("total",),
            to="d",
            format=operation.out_format,
        )
        or final.overflow not in ("wrap", "saturate")
        or operation.addends
        or (multiply.operation != "product" and any(f.signed or f.integer_bits > 1 for f in formats))
        or operation.operand_format is not None
        or len(operation.k_index) << sum(f.integer_bits - f.signed for f in formats)
        >= 1 << 24  # exact in a float
    ):
        return None
    return {"fast": "integer", "combine": multiply.operation, "saturate": int(final.overflow == "saturate")}


def _add(operation: Operation, unit: Signature) -> Kernel | None:
    """One IEEE addition of c and an earlier result; two terms have but one order."""
    out, step = operation.out_format, operation.steps[0]
    if (
        operation.k_index
        or len(operation.steps) != 1
        or len(operation.addends) != 1
        or not is_step(
            step,
            Additions,
            "order",
            "nan",
            of=("c", "addends"),
            to="d",
            format=out,
            rounding="nearest_even",
            overflow="ieee",
        )
        or step.nan is None
        or out not in (get_format("f32"), get_format("f16"))
        or operation.seed_format != out
    ):
        return None
    return {"fast": "add", "nan": step.nan}


_OF_ADDITIONS = ("of", "to", "order", "group", "flush", "tiny", "nan")


def _ieee(operation: Operation, unit: Signature) -> Kernel | None:
    """Products and additions that each round to f32, nearest even, by the machine's own arithmetic; c is
    the first or the last term of the last addition."""
    steps = operation.steps
    if isinstance(steps[0], Flush):
        steps = steps[1:]
    max_ieee_terms = 32
    if (
        len(steps) < 2
        or not isinstance(steps[0], Multiply)
        or not _in_floats(operation, unit)
        or not _rounded_products(operation, steps[0], unit)
        or len(operation.k_index) > max_ieee_terms
    ):
        return None
    words = [step.nan for step in steps if isinstance(step, Multiply | Additions)]
    if not _adds_in_turn(steps[1:], len(operation.k_index)) or not all(map(_is_nan, words)):
        return None
    return {"fast": "ieee", "nan": words[-1]}


def _is_nan(word: int | None) -> bool:
    """Whether a step that reads this word of f32 finds a NaN, and not a number."""
    return word is not None and get_format("f32").decode(word).kind == Kind.NAN


def _in_f32() -> dict[str, Any]:
    """Fields of a step that rounds so; a function, as importing this module reads no spec."""
    return {"format": get_format("f32"), "rounding": "nearest_even"}


def _in_floats(operation: Operation, unit: Signature) -> bool:
    """Whether c and d are numbers of f32, as are all of a and b, and no earlier results are added."""
    return (
        {operation.out_format, operation.seed_format} == {get_format("f32")}
        and all(_held_by_floats(_operand(operation, unit.formats[name])) for name in "ab")
        and _decodable(unit.formats["a"], unit.formats["b"])
        and not operation.addends
    )


def _held_by_floats(f: Format) -> bool:
    """Whether every number of a format is one of f32."""
    return (
        f.is_float
        and f.signed
        and f.has_subnormals
        and f.fraction_bits <= 23
        and f.max_exponent <= 127
        and f.min_exponent >= -126
    )


def _rounded_products(operation: Operation, step: Step, unit: Signature) -> bool:
    """Whether products of at most 23 bits round to f32. None of them is carried up to the least normal
    number, so that all ways to flush are one; wider ones are quicker in doubles, where none is subnormal."""
    return (
        is_step(step, Multiply, "nan", "flush", "tiny", to="products", **_in_f32())
        and step.flush != "positive"
        and _product_width(operation, unit) <= 23
    )


def _adds_in_turn(additions: Sequence[Step], count: int) -> bool:
    """Whether each addition takes what the step before made, `count` terms at first, the last one c, too."""
    before = "products"
    for step in additions:
        last = step is additions[-1]
        of = (("c", before), (before, "c")) if last else ((before,),)
        if not is_step(step, Additions, *_OF_ADDITIONS, **_in_f32()) or step.of not in of:
            return False
        count += last
        kind, size = step.group or ("contiguous", count)
        if step.flush == "positive" or not size or count % size or (last and step.group):
            return False
        members = count // size if kind == "interleaved" else size
        if step.order == "tree" and members & (members - 1):
            return False
        count, before = count // members, step.to
    return before == "d"


def _exact(operation: Operation, unit: Signature) -> Kernel | None:
    """The exact sum of products and c, rounded once to f32, nearest even."""
    match operation.steps:
        case (Multiply() as multiply, SpecialValues() as special, Sum() as total, Round() as final):
            pass
        case _:
            return None
    factors = [_operand(operation, unit.formats[name]) for name in "ab"]
    if (
        not _in_floats(operation, unit)
        or _product_width(operation, unit) > 24
        or not _two_doubles_hold_sum(factors, len(operation.k_index))
        or not is_step(multiply, Multiply, to="products")
        or not _special(special, "products", "c")
        or not _exact_sum(total, "total", "products", "c")
        or not is_step(
            final, Round, "nan", "overflow", of=("total",), to="d", zero="signed_underflow", **_in_f32()
        )
        or final.overflow not in ("ieee", "infinity")
    ):
        return None
    return {"fast": "exact", "nan": special.nan}


def _two_doubles_hold_sum(factors: Sequence[Format], count: int) -> bool:
    """Whether floats hold every product, and two doubles every sum of this many: the one the sum rounded, the
    other, exactly, what the additions lost, at most half a place of the one each."""
    lowest = sum(f.min_exponent - f.fraction_bits for f in factors)
    highest = sum(f.max_exponent + 1 for f in factors) + count.bit_length()
    lost = highest - 53 + count.bit_length()
    return lowest >= -126 and highest <= 127 and lost - lowest <= 53


_CHOICES: tuple[Callable[[Operation, Any], Kernel | None], ...] = (
    _fda,
    _gdfs,
    _fdrda,
    _fma,
    _integer,
    _add,
    _ieee,
    _exact,
)
