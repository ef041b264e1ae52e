"""The modes of a unit for documents: what each code of the operand `mode` changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from golden.errors import counted
from golden.explain.numbers import hex_text
from golden.explain.trace import describe_code
from golden.files import escape
from golden.model.instruction import Instruction
from golden.program.modes import mode_text, spelt
from golden.program.program import Operation
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
                    _texts(ins.mode_units[code], operation)
                    for operation in ins.mode_units[code].program.operations
                ],
            }
            for code, values in ins.modes.codes()
        ],
    }


def modes_rows(ins: Instruction) -> Iterator[tuple[str, str, str]]:
    """One row for each mode: code, fields, and the formats and steps that differ from the first mode."""
    assert ins.modes is not None
    first = ins.plain
    for code, values in ins.modes.codes():
        text = "; ".join(_differences(first, ins.mode_units[code]))
        same = "as described here" if code == first.mode_code else "nothing"
        yield f"{code:#x}", mode_text(values), text or same


def _differences(first: Instruction, unit: Instruction) -> Iterator[str]:
    for name, fmt in unit.formats.items():
        if fmt != first.formats[name]:
            yield f"{name} is {fmt.name}"
    ours, theirs = first.program.operations, unit.program.operations
    if len(ours) != len(theirs):
        yield f"{counted(len(theirs), 'operation')} instead of {len(ours)}"
    for number, (was, now) in enumerate(zip_longest(ours, theirs)):
        where = f"operation {number}, " * (len(theirs) > 1)
        if now and (was is None or _frame(was) != _frame(now)):
            yield f"operation {number}: {_frame(now)}"
        texts = _texts(first, was)
        for index, text in enumerate(_texts(unit, now)):
            if index >= len(texts) or text != texts[index]:
                yield f"{where}step {index + 1}: {text.rstrip('.')}"
        if was and now and len(now.steps) < len(was.steps):
            yield f"{where}no step after {len(now.steps)}"


def _frame(operation: Operation) -> str:
    """What an operation takes and gives."""
    k, operands = operation.k_index, operation.operand_format
    places = f"k = {k[0]}..{k[-1]} ({len(k)} products)" if k else "no products"
    exact = "" if operands is None else f" as {operands.name}"
    return f"{places}{exact}, from {operation.seed}, to {operation.to} ({operation.out_format.name})"


def _texts(ins: Instruction, operation: Operation | None) -> list[str]:
    return [] if operation is None else [step_text(step, ins.is_integer) for step in operation.steps]


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
    text = (
        f"The operand `mode` of {counted(bits, 'bit')} chooses one of {count} modes for each dot "
        "product; a code that is not listed is not used. Everything else in this document describes the "
        "first mode."
    )
    fields = "\n".join(f"- {escape.markdown(line)}" for line in fields_text(ins))
    rows = [tuple(escape.markdown(cell) for cell in row) for row in modes_rows(ins)]
    return ["## Modes", text, fields, table(HEAD, rows), *_answers_markdown(ins, table)]


def _answers_markdown(ins: Instruction, table: Any) -> list[str]:
    """The special values whose answer depends on the mode; empty where none does."""
    from golden.explain.special_values import special_cases  # needs the core, which no terminal page does

    rows = []
    for question, operands in special_cases(ins):
        answers: dict[int, list[str]] = {}
        for code in ins.mode_units:
            answers.setdefault(ins.reference_dot(**operands | {"mode": code}), []).append(f"{code:#x}")
        if len(answers) > 1:
            text = (f"{_answer(ins, d)} in {', '.join(modes)}" for d, modes in answers.items())
            rows.append((escape.markdown(question), "; ".join(text)))
    if not rows:
        return []
    return ["Special values whose answer depends on the mode:", table(("Case", "d in the modes"), rows)]


def _answer(ins: Instruction, code: int) -> str:
    d = ins.formats["d"]
    return f"`{hex_text(d, code)}` ({describe_code(d, code)})"
