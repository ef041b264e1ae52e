"""Which operations the C core's lane kernels can run, and the parameters that they need.

A kernel is an optimisation: the same operation through the general interpreter gives the same bits, and tests compare
the two. Every bound below keeps the kernel's 32- and 64-bit integers from overflowing (golden/core/mg_lanes.h).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from golden.formats import Format
from golden.program import FAULTS, Operation, Step

if TYPE_CHECKING:
    from golden.instruction import Instruction

Kernel = dict[str, Any]
_MAX_K = 256
_MAX_F = 28


def select_kernels(ins: Instruction, operations: Sequence[Operation] | None = None) -> list[Kernel] | None:
    """Returns the kernel of every operation of the instruction (or of those given), or None unless all of them have one.

    A block of lanes is decoded once for the whole program, so all operations with products are of one kind and convert
    their operands alike; operations without products can only add earlier results.
    """
    if any(_faulty(step) for operation in ins.program.operations for step in operation.steps):
        return None
    operations = ins.program.operations if operations is None else operations
    kernels: list[Kernel] = []
    for operation in operations:
        kernel = next((found for choose in _CHOICES if (found := choose(operation, ins)) is not None), None)
        if kernel is None or len(operation.k_index) > _MAX_K or (kernel["fast"] == "add") == bool(operation.k_index):
            return None
        kernels.append(kernel)
    kinds = {kernel["fast"] for kernel in kernels if kernel["fast"] != "add"}
    targets = {operation.operand_format for operation in operations if operation.k_index}
    narrow = all(ins.formats[name].storage == 8 for name in ("a", "b"))
    if len(kinds) != 1 or kernels[0]["fast"] == "add" or len(targets) != 1 or (targets != {None} and not narrow):
        return None
    return None if ins.scale_block is not None and not kinds <= {"fda", "gdfs"} else kernels


def _faulty(step: Step) -> bool:
    """Whether a step does what only the general interpreter can: a behaviour of faulty datapaths (docs/diagnosis.md)."""
    sound = Step(step.op)
    return step.op == "hidden_bit" or any(getattr(step, name) != getattr(sound, name) for name in FAULTS)


def _ops(operation: Operation) -> list[str]:
    return [step.op for step in operation.steps]


def _decodable(*formats: Format) -> bool:
    """Formats that the kernels decode: 8-bit ones by table, wider floats with a sign and IEEE special codes."""
    return all(
        f.storage == 8
        or (f.is_float and f.signed and f.has_zero and f.specials == "ieee" and f.fraction_bits <= 23 and f.storage <= 32)
        for f in formats
    )


def _float_frame(operation: Operation, ins: Instruction, final: Step) -> bool:
    """What all float kernels ask of c, d and the last rounding."""
    out, seed = operation.out_format, operation.seed_format
    return (
        _decodable(ins.formats["a"], ins.formats["b"])
        and ins.formats["a"].is_float
        and ins.formats["b"].is_float
        and out.signed
        and out.has_zero
        and seed.is_float
        and seed.storage in (16, 32)
        and seed.ignored_low == 0
        and _decodable(seed)
        and out.is_float
        and out.specials == "ieee"
        and out.storage in (16, 32)
        and out.ignored_low == 0
        and final.op == "round"
        and final.format == out
        and final.rounding in ("toward_zero", "nearest_even")
        and final.overflow == "infinity"
        and final.zero == "positive"
        and final.flush == "none"
        and not operation.addends
    )


def _operand(operation: Operation, fmt: Format) -> Format:
    return operation.operand_format or fmt


def _product_bits(operation: Operation, ins: Instruction) -> tuple[int, int]:
    """(fraction bits, largest significand) of the exact products."""
    a, b = _operand(operation, ins.formats["a"]), _operand(operation, ins.formats["b"])
    largest = ((2 << a.fraction_bits) - 1) * ((2 << b.fraction_bits) - 1)
    return a.fraction_bits + b.fraction_bits, largest


def _chunk(fraction: int, largest: int, kept: int) -> int:
    """How many aligned products a signed 32-bit accumulator holds; 0 when not even one."""
    aligned = largest << (kept - fraction) if kept >= fraction else largest >> (fraction - kept)
    return ((1 << 31) - 1) // max(aligned, 1)


def _result(operation: Operation, final: Step, nan: int | None) -> Kernel:
    kept = operation.out_format.fraction_bits if final.result_fraction_bits is None else final.result_fraction_bits
    return {"result_fraction_bits": kept, "rounding": final.rounding, "nan": nan or 0}


def _plain(step: Step, **expected: Any) -> bool:
    """Whether a step holds the expected values and defaults everywhere else that matters to a kernel."""
    defaults = {
        "sticky": False,
        "window": (),
        "group": None,
        "normalize": False,
        "format": None,
        "flush": "none",
        "exponent": None,
        "overflow_exponent": None,
        "operation": "product",
        "order": "exact",
    } | expected
    return all(getattr(step, key) == value for key, value in defaults.items())


def _fda(operation: Operation, ins: Instruction) -> Kernel | None:
    scaled = ins.scale_block is not None
    if _ops(operation) != ["multiply", *(["scale"] if scaled else []), "special_values", "align", "sum", "round"]:
        return None
    multiply, special, align, total, final = (step for step in operation.steps if step.op != "scale")
    expected = ("products", "c", "scales") if scaled else ("products", "c")
    fraction, largest = _product_bits(operation, ins)
    kept = dict(align.fraction_bits).get("products", -1)
    if (
        not _float_frame(operation, ins, final)
        or not _plain(multiply)
        or not _plain(align, rounding="toward_zero")
        or not _plain(total)
        or special.of != expected
        or align.of != ("products", "c")
        or total.of != ("products", "c")
        or final.of != ("total",)
        or total.to != "total"
        or multiply.to != "products"
        or len({bits for _, bits in align.fraction_bits}) != 1
        or not 0 < kept <= _MAX_F
        or _product_width(operation, ins) > 24
    ):
        return None
    scales = [ins.formats[name] for name in ("scale_a", "scale_b") if scaled]
    if any(not f.is_float or f.signed or f.fraction_bits for f in scales) or (scaled and operation.steps[1].of != ("products",)):
        return None
    chunk = _chunk(fraction, largest, kept)
    floor = align.floor if align.floor is not None else -(1 << 17)
    if not chunk or operation.seed_format.fraction_bits + 1 + max(kept - operation.seed_format.fraction_bits, 0) > 60:
        return None
    return {
        "fast": "fda",
        "fraction_bits": kept,
        "product_fraction": fraction,
        "floor": floor,
        "chunk": chunk,
        **_result(operation, final, special.nan),
    }


def _product_width(operation: Operation, ins: Instruction) -> int:
    """Significand bits of an exact product."""
    a, b = _operand(operation, ins.formats["a"]), _operand(operation, ins.formats["b"])
    return a.fraction_bits + b.fraction_bits + 2


def _gdfs(operation: Operation, ins: Instruction) -> Kernel | None:
    if _ops(operation) != ["multiply", "special_values", "sum", "scale", "align", "sum", "round"] or ins.scale_block is None:
        return None
    multiply, special, groups, scale, align, total, final = operation.steps
    a, b, sa, sb = (ins.formats[name] for name in ("a", "b", "scale_a", "scale_b"))
    kept = dict(align.fraction_bits).get("groups", -1)
    size = groups.group[1] if groups.group else 0
    stored_block = ins.scale_block * ins.stored_k // ins.k
    if (
        not _float_frame(operation, ins, final)
        or not _plain(multiply)
        or groups.group != ("contiguous", size)
        or groups.exponent != 0
        or groups.order != "exact"
        or groups.of != ("products",)
        or scale.of != ("groups",)
        or align.of != ("groups", "c")
        or not _plain(align, rounding="toward_zero")
        or not _plain(total)
        or total.of != ("groups", "c")
        or total.to != "total"
        or final.of != ("total",)
        or groups.to != "groups"
        or special.of != ("products", "c", "scales")
        or len(operation.k_index) % size
        or stored_block % size
        or operation.k_index != tuple(range(ins.stored_k))
        or len({bits for _, bits in align.fraction_bits}) != 1
        or a.name != "e2m1"
        or b.name != "e2m1"
        or not {sa.name, sb.name} <= {"ue8m0", "ue4m3"}
        or size > 64
    ):
        return None
    fraction = a.fraction_bits + b.fraction_bits + sa.fraction_bits + sb.fraction_bits
    if not max(operation.seed_format.fraction_bits, fraction) <= kept <= 35:
        return None
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


def _fdrda(operation: Operation, ins: Instruction) -> Kernel | None:
    if operation.algorithm not in ("fdrda", "gfdrda"):
        return None
    grouped = operation.algorithm == "gfdrda"
    multiply, special = operation.steps[:2]
    meet, final, normal = operation.steps[-4], operation.steps[-1], operation.steps[-2]
    fraction, largest = _product_bits(operation, ins)
    bits = dict(meet.fraction_bits)
    kept, dot = bits["c"], bits["dot"]
    first = dict(operation.steps[2].fraction_bits)["products"]
    if (
        not _float_frame(operation, ins, final)
        or first != kept
        or not fraction <= kept <= 24
        or not kept <= dot <= 40
        or _chunk(fraction, largest, kept) < 1
        or operation.seed_format.fraction_bits > kept
        or dict(normal.fraction_bits)["total"] > dot
        or final.rounding != "nearest_even"
        or meet.floor != -126
        or _subnormals_overflow(operation, ins, multiply.overflow_exponent)
        or _product_width(operation, ins) > 24
    ):
        return None
    return {
        "fast": "fdrda",
        "fraction_bits": kept,
        "product_fraction": fraction,
        "chunk": _chunk(fraction, largest, kept),
        "group": 2 if grouped else 1,
        "dot_fraction_bits": dot,
        "sum_fraction_bits": dict(normal.fraction_bits)["total"],
        "window": dict(meet.window).get("c", -1),
        "product_overflow": _reachable_overflow(operation, ins, multiply.overflow_exponent),
        **_result(operation, final, special.nan),
    }


def _reachable_overflow(operation: Operation, ins: Instruction, exponent: int | None) -> int:
    """The product overflow exponent, or 0 where no product of these formats gets there."""
    a, b = _operand(operation, ins.formats["a"]), _operand(operation, ins.formats["b"])
    return exponent if exponent is not None and a.max_exponent + b.max_exponent + 1 >= exponent else 0


def _subnormals_overflow(operation: Operation, ins: Instruction, exponent: int | None) -> bool:
    """Whether a product with a subnormal factor can overflow; the kernel only looks at exponents of normal ones."""
    a, b = _operand(operation, ins.formats["a"]), _operand(operation, ins.formats["b"])
    reach = max(a.min_exponent + b.max_exponent, a.max_exponent + b.min_exponent) + 1
    return exponent is not None and (exponent <= 0 or reach >= exponent)


def _fma(operation: Operation, ins: Instruction) -> Kernel | None:
    step = operation.steps[0]
    out = operation.out_format
    same = {ins.formats[name].name for name in "abcd"} == {out.name} and operation.seed_format == out
    if (
        _ops(operation) != ["fma"]
        or not same
        or out.name not in ("f32", "f64")
        or step.rounding != "nearest_even"
        or step.flush != "none"
        or step.start != "c"
        or step.group is not None
        or step.format != out
        or operation.operand_format
        or operation.addends
    ):
        return None
    return {"fast": "fma"}


def _integer(operation: Operation, ins: Instruction) -> Kernel | None:
    if _ops(operation) != ["multiply", "sum", "round"]:
        return None
    multiply, total, final = operation.steps
    formats = [ins.formats[name] for name in "ab"]
    if (
        any(f.is_float or f.storage != 8 for f in formats)
        or operation.out_format.name != "s32"
        or operation.seed_format.name != "s32"
        or not _plain(total)
        or total.of != ("products", "c")
        or final.of != ("total",)
        or final.overflow not in ("wrap", "saturate")
        or operation.addends
        or multiply.format is not None
        or multiply.normalize
        or multiply.overflow_exponent is not None
        or (multiply.operation != "product" and any(f.signed for f in formats))
        or final.format != operation.out_format
        or operation.operand_format is not None
    ):
        return None
    return {"fast": "integer", "combine": multiply.operation, "saturate": int(final.overflow == "saturate")}


def _add(operation: Operation, ins: Instruction) -> Kernel | None:
    if operation.k_index or _ops(operation) != ["sum"] or len(operation.addends) != 1:
        return None
    step, out = operation.steps[0], operation.out_format
    if (
        step.of != ("c", "addends")
        or step.order == "exact"
        or step.rounding != "nearest_even"
        or step.flush != "none"
        or step.group
        or out.name not in ("f32", "f16")
        or operation.seed_format != out
        or step.format != out
    ):
        return None
    return {"fast": "add", "nan": step.nan or 0}


_CHOICES: tuple[Callable[[Operation, Any], Kernel | None], ...] = (_fda, _gdfs, _fdrda, _fma, _integer, _add)
