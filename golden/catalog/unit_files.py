"""A designer's own unit: one YAML file of the same schema as the specs, from any folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.errors import SpecError, UnknownNameError, nearest
from golden.files.escape import one_line
from golden.instruction import CUSTOM, Evidence, Instruction
from golden.number.formats import Format, build_format, get_format
from golden.number.formats import formats as builtin_formats
from golden.program.checks import depends_on_c
from golden.program.compiling import compile_program
from golden.program.flags import take_flags
from golden.program.modes import Modes, Value, fill, mode_text, names_used, take_modes
from golden.program.program import NOTHING, ONE, OperandFormats
from golden.program.state import CONTROLS, PRODUCTS
from golden.program.steps import MAX_K
from golden.yamlfile import Section

_OPERANDS = ("a", "b", "c", "d", "scale_a", "scale_b")
_ABSENT = {"b": ONE, "c": NOTHING}
_WITH_MODES = ("formats", "program", "steps")
"""Keys in which `$name` stands for a field of `modes`."""


def load_instruction(path: str | Path) -> Instruction:
    """Loads a custom unit and returns it as an Instruction that both models can run.

    The file holds `unit`, `title`, `shape` (k, and m and n, by default 1), `formats` (a, b, c, d and optional
    scales), optionally `define_formats`, `scale_block`, `modes`, `flags`, `accumulator`, `clear` and
    `load`, and either `program` (a list of operations, as in spec/architectures) or `steps` (the primitive
    steps of one operation). See spec/examples/.

    Raises:
        SpecError: with file, line, key and what was expected.
    """
    return build_instruction(yamlfile.read(path))


def build_instruction(document: Section) -> Instruction:
    """Builds the instruction of an already parsed document (see `load_instruction`)."""
    modes = take_modes(document)
    if modes is None:
        return _with_a_use(document, [_unit(document, {})])
    _check_fields_used(document, modes)
    units = {code: replace(_mode(document, values), mode_code=code) for code, values in modes.codes()}
    first = next(iter(units.values()))
    for code, unit in units.items():
        _check_same_ports(document, first, unit, code)
    _with_a_use(document, list(units.values()))
    return replace(first, name=document["unit"], modes=modes, mode_units=units, mode_code=None)


def _with_a_use(document: Section, units: list[Instruction]) -> Instruction:
    """The first of a unit's modes; what the unit holds must be of use in one of them."""
    if units[0].state and not any(depends_on_c(unit.program) for unit in units):
        raise document.error(
            "key 'accumulator' is state, but d does not depend on c, which stands for what the unit holds; "
            "expected a step on the way to d that reads c, or no key 'accumulator'",
            "accumulator",
        )
    return units[0]


def _mode(document: Section, values: dict[str, Value]) -> Instruction:
    """The unit as it is in one mode."""
    try:
        unit = _unit(document, values)
    except SpecError as error:
        raise SpecError(f"{error} (in the mode {mode_text(values)})") from None
    return replace(unit, name=f"{unit.name} ({mode_text(values)})")


def _check_fields_used(document: Section, modes: Modes) -> None:
    """A field that nothing reads is a name spelt in two ways."""
    used = set().union(*(names_used(document.get(key)) for key in _WITH_MODES))
    for field in modes.fields:
        if field.name not in used:
            raise document["modes"].error(
                f"field '{field.name}' is used nowhere, expected ${field.name} in a step"
                f"{nearest(field.name, used)}",
                field.name,
            )


def _check_same_ports(document: Section, first: Instruction, unit: Instruction, code: int) -> None:
    """A mode changes what a port's bits mean, not the port; and d is one format, by which results are
    compared."""
    for operand, fmt in unit.formats.items():
        other = first.formats[operand]
        if operand == "d" and fmt != other:
            raise document.error("the format of d cannot depend on the mode", "formats")
        if (fmt.bits, fmt.storage) != (other.bits, other.storage):
            raise document.error(
                f"operand {operand} has {other.bits} bits as {other.name}, but {fmt.bits} as {fmt.name} in "
                f"mode {code:#x}; expected formats of one width",
                "formats",
            )


def _unit(document: Section, values: dict[str, Value]) -> Instruction:
    """The unit with the words of one mode; without modes, as the file has it."""
    name = document.take_name("unit")
    title = one_line(document.take("title", str, name))
    source = document.take("source", str, document.file)
    document.take_names("notes", [])
    shape = document.take("shape", Section)
    k, m, n = shape.take_int("k", 1, MAX_K), shape.take_int("m", 1, 4096, 1), shape.take_int("n", 1, 4096, 1)
    shape.done()
    local = _local_formats(document)
    table = document.take("formats", Section)
    formats = _operand_formats(fill(table, values, document) if values else table, local)
    scale_block = _scale_block(document, formats, k)
    state = _keeps_its_accumulator(document, formats, table)
    load, alone = _controls(document, state)
    scales = {name: fmt for name, fmt in formats.items() if name in _OPERANDS[4:]}
    status = take_flags(document)
    a, b, c, d = (formats[name] for name in "abcd")
    operands = OperandFormats(a, b, c, d, k, local, scales, bool(status), scale_block)
    items = _program_items(document)
    program = compile_program(fill(items, values, document) if values else items, document, operands)
    document.done()
    return Instruction(
        name,
        m,
        n,
        k,
        formats,
        scale_block=scale_block,
        status=status,
        state=state,
        load=load,
        alone=alone,
        architecture=CUSTOM,
        program=program,
        evidence=Evidence("derived", f"custom unit: {title} ({source})"),
        family=CUSTOM,
        source=source,
        variables={"title": title},
    )


def _keeps_its_accumulator(document: Section, formats: dict[str, Format], table: Section) -> bool:
    """Reads `accumulator`; with `state` c is what the unit holds, in the format of d; nobody names it."""
    if "accumulator" not in document:
        document.take("accumulator", str, None)
        return False
    if document.take_choice("accumulator", ("operand", "state")) == "operand":
        return False
    c, d = formats["c"], formats["d"]
    if c not in (NOTHING, d):
        raise table.error(
            f"c is {c.name} and d is {d.name}, expected one format: with 'accumulator: state' a result is "
            "the c of the next dot product",
            "c",
        )
    if d.is_float and not d.has_zero:
        raise table.error(f"the accumulator is cleared to zero, but {d.name}, the format of d, has none", "d")
    formats["c"] = d
    return True


def _controls(document: Section, state: bool) -> tuple[bool, tuple[str, ...]]:
    """Reads `clear` and `load`: whether there is a load, and which of them come without products."""
    clear = document.take_choice("clear", PRODUCTS, PRODUCTS[0])
    load = document.take_choice("load", ("none", *PRODUCTS), "none")
    for key in CONTROLS:
        if key in document and not state:
            raise document.error(
                f"key '{key}' is for a unit that keeps its accumulator, expected 'accumulator: state', too",
                key,
            )
    words = {"clear": clear, "load": load}
    return load != "none", tuple(key for key in CONTROLS if words[key] == "alone")


def _scale_block(document: Section, formats: dict[str, Format], k: int) -> int | None:
    scale_block: int | None = document.take_int("scale_block", 1, MAX_K, None)
    if (scale_block is not None) != ("scale_a" in formats) or ("scale_a" in formats) != (
        "scale_b" in formats
    ):
        raise document.error(
            "scaled units need formats scale_a and scale_b and the key 'scale_block', others none of them"
        )
    if scale_block is not None and k % scale_block:
        raise document.error(
            f"key 'scale_block' is {scale_block}, expected a divisor of k = {k}", "scale_block"
        )
    if any(formats[name].storage != 8 for name in ("scale_a", "scale_b") if name in formats):
        raise document.error("scale formats must have a storage of 8 bits", "formats")
    return scale_block


def _local_formats(document: Section) -> dict[str, Format]:
    table = document.take("define_formats", Section, None)
    for name in table or ():
        table.checked_word(name)
        if name in builtin_formats():
            raise table.error(f"format '{name}' exists already; define it under another name", name)
    return {name: build_format(name, table.take(name, Section)) for name in table} if table else {}


_MOST_INTEGER_BITS = {"c": 63, "d": 64}
"""Bits of an integer operand; those of other operands are factors."""


def _operand_formats(table: Section, local: dict[str, Format]) -> dict[str, Format]:
    formats: dict[str, Format] = {}
    for operand in _OPERANDS:
        name = table.take(operand, str) if operand in ("a", "d") else table.take(operand, str, None)
        if name is None:
            formats |= {operand: _ABSENT[operand]} if operand in _ABSENT else {}
            continue
        try:
            formats[operand] = local.get(name) or get_format(name)
        except UnknownNameError as error:
            raise table.error(str(error), operand) from None
        most = _MOST_INTEGER_BITS.get(operand, 32)
        if formats[operand].integer_bits > most:
            raise table.error(
                f"{operand} is an integer of {formats[operand].integer_bits} bits, expected at most {most}",
                operand,
            )
    table.done()
    return formats


def _program_items(document: Section) -> list[Any]:
    if ("program" in document) == ("steps" in document):
        raise document.error("expected either 'program' or 'steps'")
    if "program" in document:
        items: list[Any] = document.take("program", list)
        return items
    operation = Section(document.file, document.lines.get("steps", document.line))
    operation["steps"] = document.take("steps", list)
    return [operation]
