"""An instruction written out as a custom unit: YAML text that `golden.load_instruction` reads back as the
same program.

The diagnosis writes the unit that a DUT really is; a designer can also start from a catalogued instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from golden import yamlfile
from golden.catalog.json_schema import editor_line
from golden.catalog.unit_files import build_instruction
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.number.formats import Format, formats, get_format
from golden.program.state import PRODUCTS
from golden.program.steps import format_of
from golden.program.writing import Hex, operation_keys

_OPERANDS = ("a", "b", "c", "d", "scale_a", "scale_b")


def unit_text(
    ins: Instruction, name: str = "unit", title: str = "", editor: bool = False, named: bool = False
) -> str | None:
    """Returns the unit's YAML, or None for what the schema of custom units does not know: a sparse
    instruction, and modes that change more than values (the number of operations or steps, say); of these,
    each mode alone (`mode_units`) can be written.

    Args:
        name, title: for the keys `unit` and `title`; the title is the instruction's name by default.
        editor: with the line by which editors find the schema on this machine; not of a text that travels.
        named: operations of an algorithm have its name and parameters instead of their steps.
    """
    if ins.sparse:
        return None
    units = list(ins.mode_units.values()) or [ins]
    unit: dict[str, Any] = {"unit": name, "title": title or f"{ins.architecture} {ins.name}"}
    unit["shape"] = {"k": ins.k, "m": ins.m, "n": ins.n}
    local = {fmt.name: _format(fmt) for one in units for fmt in _used_formats(one) if not _builtin(fmt)}
    if local:
        unit["define_formats"] = local
    if ins.modes is not None:
        unit["modes"] = {field.name: list(field.values) for field in ins.modes.fields}
    if ins.state:
        unit["accumulator"] = "state"
        unit |= {name: "alone" if name in ins.alone else PRODUCTS[0] for name in _controls(ins)}
    if ins.scale_block is not None:
        unit["scale_block"] = ins.scale_block
    if ins.status:
        unit["flags"] = list(ins.status)
    unit |= _of_modes(ins, [_computation(one, named) for one in units])
    written = yaml.dump(
        unit, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True
    )
    text = (editor_line("unit") if editor else "") + str(written)
    return text if ins.modes is None or _reads_back(text, ins) else None


def short_text(ins: Instruction, name: str = "unit") -> str | None:
    """The unit of `unit_text` as somebody would write it who wants to change it: one operation as `steps`,
    several as those of algorithms where they have names, every key gone without which the text is the same
    unit, a step a line. None as `unit_text`, and in full where there are modes or something that is held."""
    text = unit_text(ins, name)
    if text is None or ins.modes is not None or ins.state:
        return text
    several = len(ins.program.operations) > 1
    written: dict[str, Any] = yaml.load(unit_text(ins, name, named=several) or text, Loader=_HexLoader)
    operations: list[dict[str, Any]] = written["program"]
    wanted = ins.formats, [one.arithmetic for one in ins.program.operations]

    def same() -> bool:
        """Whether the text as it is now is the unit."""
        try:
            again = build_instruction(yamlfile.parse(_lines(written)))
        except SpecError:
            return False
        found = again.formats, [one.arithmetic for one in again.program.operations]
        return found == wanted and (again.k, again.m, again.n, again.status) == (
            *(ins.k, ins.m, ins.n),
            ins.status,
        )

    for table in (written["shape"], *operations, *_steps(operations)):
        for key in list(table):
            value = table.pop(key)
            if not same():
                table[key] = value
    if not several and list(operations[0]) == ["steps"]:
        written |= {"steps": written.pop("program")[0]["steps"]}
    return _lines(written) if same() else text


def _steps(operations: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The keys of every step, and the parameters of every algorithm."""
    for operation in operations:
        for step in operation.get("steps", []):
            yield from step.values()
        yield from (value for key, value in operation.items() if isinstance(value, dict) and key != "k")


def _lines(unit: dict[str, Any]) -> str:
    """YAML with a key a line, of operations and steps one a line."""
    lines = []
    for key, value in unit.items():
        if key == "program":
            lines += ["program:", *(line for one in value for line in _operation_lines(one))]
        elif key == "steps":
            lines += ["steps:", *(f"  - {_flow(step)}" for step in value)]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _operation_lines(operation: dict[str, Any]) -> Iterator[str]:
    if "steps" not in operation:
        yield f"  - {_flow(operation)}"
        return
    keys = [f"{key}: {_flow(value)}" for key, value in operation.items() if key != "steps"]
    steps = ["steps:", *(f"  - {_flow(step)}" for step in operation["steps"])]
    for number, line in enumerate((*keys, *steps)):
        yield f"  {'  ' if number else '- '}{line}"


def _flow(value: Any) -> str:
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=True, width=10**6)
    return text.removesuffix("\n").removesuffix("\n...")


def _controls(ins: Instruction) -> list[str]:
    """The operands of a unit that keeps its accumulator of which its file says something."""
    return [*(["clear"] if "clear" in ins.alone else []), *(["load"] if ins.load else [])]


def _computation(ins: Instruction, named: bool) -> dict[str, Any]:
    """The keys in which a mode can differ from others."""
    formats = {operand: ins.formats[operand].name for operand in _OPERANDS if operand in ins.own_formats}
    operations = ins.program.operations
    written = {"c": ins.formats["c"]} | {one.to: one.out_format for one in operations}
    return {
        "formats": formats,
        "program": [
            operation_keys(one, bool(ins.status), named, written.get(one.seed)) for one in operations
        ],
    }


# Modes ------------------------------------------------------------------------------------------------------

_DEFAULT = object()
"""Stands for a key that a mode does not write, because it holds the default there."""


def _of_modes(ins: Instruction, units: list[Any]) -> Any:
    """The modes' computations in one, `$field` where they differ; the first's where no field says how."""
    first = units[0]
    if all(unit == first for unit in units):
        return first
    if all(isinstance(unit, dict) for unit in units):
        names = dict.fromkeys(name for unit in units for name in unit)
        return {name: _of_modes(ins, [unit.get(name, _DEFAULT) for unit in units]) for name in names}
    if all(isinstance(unit, list) and len(unit) == len(first) for unit in units):
        return [_of_modes(ins, list(items)) for items in zip(*units, strict=True)]
    return _field_of(ins, units)


def _field_of(ins: Instruction, values: list[Any]) -> Any:
    """`$field` of the field that holds these values, a mode each; without one, the first that is written."""
    assert ins.modes is not None
    tables = [table for _, table in ins.modes.codes()]
    for name in tables[0]:
        given = zip(values, tables, strict=True)
        if all(value is _DEFAULT or value == table[name] for value, table in given):
            return f"${name}"
    return next(value for value in values if value is not _DEFAULT)


def _reads_back(text: str, ins: Instruction) -> bool:
    """Whether the text is the same unit in every mode: only then does `$field` say all that differs."""
    try:
        again = build_instruction(yamlfile.parse(text))
    except SpecError:
        return False
    return (again.modes, again.status) == (ins.modes, ins.status) and all(
        again.mode_units[code].formats == unit.formats
        and [one.arithmetic for one in again.mode_units[code].program.operations]
        == [one.arithmetic for one in unit.program.operations]
        for code, unit in ins.mode_units.items()
    )


class _Dumper(yaml.SafeDumper):
    """Writes repeated lists out instead of naming them."""

    def ignore_aliases(self, data: Any) -> bool:
        """No anchors: each operation shows its own steps."""
        return True


_Dumper.add_representer(
    Hex, lambda dumper, word: dumper.represent_scalar("tag:yaml.org,2002:int", f"0x{int(word):X}")
)


class _HexLoader(yaml.SafeLoader):
    """Reads integers in hex as such."""


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    value = int(loader.construct_yaml_int(node))
    return Hex(value) if node.value.lower().startswith("0x") else value


_HexLoader.add_constructor("tag:yaml.org,2002:int", _integer)


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
    keys |= {} if fmt.subnormals else {"subnormals": False}
    return keys | {key: getattr(fmt, key) for key in ("ignored_low", "ignored_high") if getattr(fmt, key)}
