"""The modes of a unit for documents: what each code of the operand `mode` changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from golden.files import escape
from golden.instruction import Instruction
from golden.program.modes import mode_text, spelt
from golden.program.words import step_text

HEAD = ("mode", "Fields", "What differs from the first mode")


def modes_dict(ins: Instruction) -> dict[str, Any] | None:
    """The modes as plain values, with every mode's formats and steps; None for a unit without modes."""
    if ins.modes is None:
        return None
    return {
        "bits": ins.modes.bits,
        "fields": [{"name": field.name, "values": list(field.values)} for field in ins.modes.fields],
        "codes": [
            {
                "code": code,
                "values": values,
                "formats": {name: fmt.name for name, fmt in ins.mode_units[code].formats.items()},
                "operations": [
                    [step_text(step, ins.mode_units[code].is_integer) for step in operation.steps]
                    for operation in ins.mode_units[code].program.operations
                ],
            }
            for code, values in ins.modes.codes()
        ],
    }


def modes_rows(ins: Instruction) -> Iterator[tuple[str, str, str]]:
    """One row for each mode: code, fields, and the formats and steps that are not those of the first mode."""
    assert ins.modes is not None
    first = ins.plain
    for code, values in ins.modes.codes():
        told = "; ".join(_differences(first, ins.mode_units[code]))
        yield f"{code:#x}", mode_text(values), told or ("as described here" if code == 0 else "nothing")


def _differences(first: Instruction, unit: Instruction) -> Iterator[str]:
    for name, fmt in unit.formats.items():
        if fmt != first.formats[name]:
            yield f"{name} is {fmt.name}"
    pairs = zip_longest(first.program.operations, unit.program.operations)
    for was, now in pairs:
        for index, (old, new) in enumerate(zip_longest(was.steps, now.steps)):
            if old != new and new is not None:
                yield f"step {index + 1}: {step_text(new, unit.is_integer).rstrip(chr(46))}"


def fields_text(ins: Instruction) -> list[str]:
    """One line for each field: where it lies in the operand and what its codes stand for."""
    assert ins.modes is not None
    lines, low = [], 0
    for field in ins.modes.fields:
        codes = ", ".join(
            f"{code} {spelt(value)}" for code, value in enumerate(field.values) if value is not None
        )
        high = low + field.bits - 1
        lines.append(
            f"{field.name}, bit{'s' * (high > low)} {f'{high}..' if high > low else ''}{low}: {codes}"
        )
        low = high + 1
    return lines


def modes_markdown(ins: Instruction, table: Any) -> list[str]:
    """The section of a document on the modes; empty for a unit without any."""
    if ins.modes is None:
        return []
    count, bits = len(ins.mode_units), ins.modes.bits
    told = (
        f"The operand `mode` of {bits} bit{'s' * (bits > 1)} chooses one of {count} modes for each dot "
        "product; a code that is not listed is not used. Everything else in this document describes the "
        "first mode."
    )
    fields = "\n".join(f"- {escape.markdown(line)}" for line in fields_text(ins))
    rows = [tuple(escape.markdown(cell) for cell in row) for row in modes_rows(ins)]
    return ["## Modes", told, fields, table(HEAD, rows)]
