"""An instruction written out as a custom unit: YAML text that `golden.load_instruction` reads back as the
same program.

The diagnosis writes the unit that a DUT really is; a designer can also start from a catalogued instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from golden.instruction import Instruction
from golden.number.formats import Format, formats, get_format
from golden.program.program import Operation, Step

_OPERANDS = ("a", "b", "c", "d", "scale_a", "scale_b")


def unit_text(ins: Instruction, name: str = "unit", title: str = "") -> str | None:
    """Returns the unit's YAML, or None for a sparse instruction, which the schema of custom units does not
    know.

    Args:
        name, title: for the keys `unit` and `title`; the title is the instruction's name by default.
    """
    if ins.sparse:
        return None
    unit: dict[str, Any] = {"unit": name, "title": title or f"{ins.architecture} {ins.name}"}
    unit["shape"] = {"k": ins.k, "m": ins.m, "n": ins.n}
    local = {fmt.name: _format(fmt) for fmt in _used_formats(ins) if not _builtin(fmt)}
    if local:
        unit["define_formats"] = local
    unit["formats"] = {operand: ins.formats[operand].name for operand in _OPERANDS if operand in ins.formats}
    if ins.scale_block is not None:
        unit["scale_block"] = ins.scale_block
    unit["program"] = [_operation(operation) for operation in ins.program.operations]
    return str(
        yaml.dump(
            unit, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True
        )
    )


class _Dumper(yaml.SafeDumper):
    """Writes repeated lists out instead of naming them."""

    def ignore_aliases(self, data: Any) -> bool:
        """No anchors: each operation shows its own steps."""
        return True


class _Word(int):
    """An integer that is written in hex."""


_Dumper.add_representer(
    _Word, lambda dumper, word: dumper.represent_scalar("tag:yaml.org,2002:int", f"0x{int(word):X}")
)


def _used_formats(ins: Instruction) -> Iterator[Format]:
    yield from ins.formats.values()
    for operation in ins.program.operations:
        yield from (operation.out_format, operation.seed_format)
        if operation.operand_format is not None:
            yield operation.operand_format
        yield from (step.format for step in operation.steps if step.format is not None)


def _builtin(fmt: Format) -> bool:
    return fmt.name in formats() and get_format(fmt.name) == fmt


def _format(fmt: Format) -> dict[str, Any]:
    if not fmt.is_float:
        return {"kind": "integer", "storage": fmt.storage, "bits": fmt.integer_bits, "signed": fmt.signed}
    keys: dict[str, Any] = {"kind": "float", "storage": fmt.storage, "exponent_bits": fmt.exponent_bits}
    keys |= {"fraction_bits": fmt.fraction_bits, "bias": fmt.bias, "specials": fmt.specials}
    keys |= {"signed": fmt.signed, "zero": fmt.has_zero}
    return keys | {key: getattr(fmt, key) for key in ("ignored_low", "ignored_high") if getattr(fmt, key)}


def _operation(operation: Operation) -> dict[str, Any]:
    keys: dict[str, Any] = {"k": _k_text(operation.k_index), "seed": operation.seed}
    if operation.addends:
        keys["addends"] = list(operation.addends)
    if operation.operand_format is not None:
        keys["operands"] = operation.operand_format.name
    keys |= {"out": operation.out_format.name, "to": operation.to}
    return keys | {"steps": [{step.op: _step(step)} for step in operation.steps]}


def _k_text(k_index: tuple[int, ...]) -> Any:
    if not k_index:
        return "none"
    if k_index == tuple(range(k_index[0], k_index[-1] + 1)):
        return {"from": k_index[0], "to": k_index[-1]}
    return {"list": list(k_index)}


def _step(step: Step) -> dict[str, Any]:
    """The keys of one step that do not hold their defaults."""
    keys: dict[str, Any] = {} if step.op in ("multiply", "fma") else {"of": list(step.of)}
    if step.to:
        keys["to"] = step.to
    if step.group is not None:
        keys["group"] = {step.group[0]: step.group[1]}
    keys |= {key: value for key, value in _WRITERS[step.op](step).items() if value is not None}
    return keys | ({"nan": _Word(step.nan)} if "nan" in keys and step.nan is not None else {})


def _multiply(step: Step) -> dict[str, Any]:
    return {
        **(_ieee(step) if step.format is not None else {}),
        "normalize": step.normalize or None,
        "overflow_exponent": step.overflow_exponent,
        "operation": _unless(step.operation, "product"),
        "zero_times_infinity": _unless(step.zero_times_infinity, "nan"),
    }


def _ieee(step: Step) -> dict[str, Any]:
    assert step.format is not None
    return {
        "format": step.format.name,
        "rounding": step.rounding,
        "flush": _unless(step.flush, "none"),
        "nan": step.nan,
    }


def _align(step: Step) -> dict[str, Any]:
    return {
        "fraction_bits": _widths(step),
        "rounding": step.rounding,
        "cut": "sticky" if step.sticky else None,
        "floor": step.floor,
        "window": dict(step.window) or None,
        "zeros": _unless(step.zeros, "ignored"),
        "sticky_gap": step.sticky_gap or None,
        "shift_limit": step.shift_limit,
        "left_out": dict(step.left_out) or None,
    }


def _widths(step: Step) -> Any:
    bits = dict(step.fraction_bits)
    return bits if len(set(bits.values())) > 1 else next(iter(bits.values()))


def _sum(step: Step) -> dict[str, Any]:
    if step.order != "exact":
        return {
            "order": step.order,
            **_ieee(step),
            "overflow": "saturate" if step.overflow == "saturate" else None,
        }
    return {
        "exponent": step.exponent,
        "rounding": _unless(step.rounding, "toward_zero"),
        "width": step.width,
        "cancelled": _unless(step.cancelled, "keeps_exponent"),
    }


def _fma(step: Step) -> dict[str, Any]:
    order = list(step.nan_order) or None
    rule = _unless(step.zero_times_infinity, "nan")
    return {**_ieee(step), "start": _unless(step.start, "c"), "nan_order": order, "zero_times_infinity": rule}


def _round(step: Step) -> dict[str, Any]:
    return {
        **_ieee(step),
        "overflow": step.overflow,
        "zero": step.zero,
        "fraction_bits": step.result_fraction_bits,
        "subnormal_carry": _unless(step.subnormal_carry, "kept"),
        "sticky_gap": step.sticky_gap or None,
    }


def _unless(value: str, default: str) -> str | None:
    return None if value == default else value


_WRITERS: dict[str, Any] = {
    "flush": lambda step: {"sign": step.flush},
    "hidden_bit": lambda step: {"zeros": "set" if step.zeros == "set" else None},
    "multiply": _multiply,
    "scale": lambda step: {},
    "special_values": lambda step: {
        "nan": step.nan,
        "opposite_infinities": _unless(step.opposite_infinities, "nan"),
    },
    "align": _align,
    "sum": _sum,
    "normalize": lambda step: {
        "fraction_bits": _widths(step),
        "rounding": step.rounding,
        "min_exponent": step.min_exponent,
    },
    "fma": _fma,
    "round": _round,
}
