"""An instruction written out as a custom unit: YAML text that `golden.load_instruction` reads back as the
same program.

The diagnosis writes the unit that a DUT really is; a designer can also start from a catalogued instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from golden.catalog.json_schema import editor_line
from golden.instruction import Instruction
from golden.number.formats import Format, formats, get_format
from golden.program.steps import format_of
from golden.program.writing import Hex, operation_keys

_OPERANDS = ("a", "b", "c", "d", "scale_a", "scale_b")


def unit_text(ins: Instruction, name: str = "unit", title: str = "") -> str | None:
    """Returns the unit's YAML, or None for a sparse instruction, which the schema of custom units does not
    know, and for a unit with modes, of which only each mode alone (`mode_units`) can be written.

    Args:
        name, title: for the keys `unit` and `title`; the title is the instruction's name by default.
    """
    if ins.sparse or ins.modes is not None:
        return None
    unit: dict[str, Any] = {"unit": name, "title": title or f"{ins.architecture} {ins.name}"}
    unit["shape"] = {"k": ins.k, "m": ins.m, "n": ins.n}
    local = {fmt.name: _format(fmt) for fmt in _used_formats(ins) if not _builtin(fmt)}
    if local:
        unit["define_formats"] = local
    unit["formats"] = {
        operand: ins.formats[operand].name for operand in _OPERANDS if operand in ins.own_formats
    }
    if ins.scale_block is not None:
        unit["scale_block"] = ins.scale_block
    unit["program"] = [operation_keys(operation) for operation in ins.program.operations]
    written = yaml.dump(
        unit, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True
    )
    return editor_line("unit") + str(written)


class _Dumper(yaml.SafeDumper):
    """Writes repeated lists out instead of naming them."""

    def ignore_aliases(self, data: Any) -> bool:
        """No anchors: each operation shows its own steps."""
        return True


_Dumper.add_representer(
    Hex, lambda dumper, word: dumper.represent_scalar("tag:yaml.org,2002:int", f"0x{int(word):X}")
)


def _used_formats(ins: Instruction) -> Iterator[Format]:
    yield from ins.own_formats.values()
    for operation in ins.program.operations:
        yield from (operation.out_format, operation.seed_format)
        if operation.operand_format is not None:
            yield operation.operand_format
        yield from filter(None, map(format_of, operation.steps))


def _builtin(fmt: Format) -> bool:
    return fmt.name in formats() and get_format(fmt.name) == fmt


def _format(fmt: Format) -> dict[str, Any]:
    if not fmt.is_float:
        return {"kind": "integer", "storage": fmt.storage, "bits": fmt.integer_bits, "signed": fmt.signed}
    keys: dict[str, Any] = {"kind": "float", "storage": fmt.storage, "exponent_bits": fmt.exponent_bits}
    keys |= {"fraction_bits": fmt.fraction_bits, "bias": fmt.bias, "specials": fmt.specials}
    keys |= {"signed": fmt.signed, "zero": fmt.has_zero}
    return keys | {key: getattr(fmt, key) for key in ("ignored_low", "ignored_high") if getattr(fmt, key)}
