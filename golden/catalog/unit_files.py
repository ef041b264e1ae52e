"""A designer's own unit: one YAML file of the same schema as the specs, from any folder."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.errors import SpecError, UnknownNameError, nearest
from golden.files.escape import one_line
from golden.model.instruction import CUSTOM, Evidence, Instruction
from golden.number.formats import FORMAT, Format, build_format, get_format
from golden.number.formats import formats as builtin_formats
from golden.program.checks import depends_on_c
from golden.program.compiling import OPERATION_LIST, STEP_LIST, compile_program
from golden.program.keys import FORMAT_NAME, STATUS
from golden.program.modes import MODES, Modes, Value, fill, mode_text, names_used, take_modes
from golden.program.program import ABSENT, NOTHING, OperandFormats
from golden.program.state import CONTROLS, PRODUCTS
from golden.program.steps import MAX_K
from golden.values import WORD, Choice, Integer, Key, Line, Many, Mapping, Table, Text
from golden.yamlfile import Section

_OPERANDS = ("a", "b", "c", "d", "scale_a", "scale_b")
MOST_ROWS = 4096
"""Rows or columns of the matrix call: no shipped instruction has more than 256."""
SHAPE = Mapping(
    (
        Key("k", Integer(1, MAX_K), "number of products"),
        Key("m", Integer(1, MOST_ROWS), "rows of the matrix call", 1),
        Key("n", Integer(1, MOST_ROWS), "columns of the matrix call", 1),
    )
)
FORMATS = Mapping(
    (
        Key("a", FORMAT_NAME, "the first factor"),
        Key("b", FORMAT_NAME, "the second factor; without this key the unit has no b", None),
        Key("c", FORMAT_NAME, "the addend; without this key the unit has no c", None),
        Key("d", FORMAT_NAME, "the result"),
        Key("scale_a", FORMAT_NAME, "the scales of a, if there are any", None),
        Key("scale_b", FORMAT_NAME, "the scales of b", None),
    )
)
UNIT = Mapping(
    (
        Key("modes", MODES, "[what an operand `mode` chooses](#modes) for each dot product", None),
        Key("unit", Line(), "its name in messages and files"),
        Key("title", Text(), "one line; default: the name", None, instead="see right"),
        Key(
            "source",
            Text(),
            "where the description comes from; default: the file's name",
            None,
            instead="see right",
        ),
        Key("notes", Many(Text(), alone=True), "remarks", ()),
        Key("shape", SHAPE, "[k, m and n](#shape)"),
        Key(
            "define_formats",
            Table(FORMAT, WORD),
            "[number formats of your own](#a-number-format-of-your-own), by their names",
            None,
        ),
        Key("formats", FORMATS, "[the formats of the operands](#formats)"),
        Key(
            "scale_block",
            Integer(1, MAX_K),
            "with scales: how many elements of a row of a, or column of b, share one; divides k",
            None,
        ),
        Key(
            "accumulator",
            Choice(("operand", "state")),
            "`state`: c is no operand, [the unit keeps it](#an-accumulator-that-the-unit-keeps)",
            "operand",
        ),
        Key(
            "clear",
            Choice(PRODUCTS),
            "with `accumulator: state`: whether the products that come with `clear` count",
            PRODUCTS[0],
            needs=("accumulator",),
        ),
        Key(
            "load",
            Choice(("none", *PRODUCTS)),
            "with `accumulator: state`: whether there is an operand `load`, and whether the products that "
            "come with it count",
            "none",
            needs=("accumulator",),
        ),
        Key(
            "flags",
            Many(Choice(STATUS.words), 1, len(STATUS.words), different=True, alone=True),
            "[status flags](#flags) next to d, the lowest bit first",
            (),
        ),
        Key(
            "steps",
            STEP_LIST,
            "the datapath as one list of [steps](#every-step)",
        ),
        Key(
            "program",
            OPERATION_LIST,
            "[several operations](#several-operations) in a row",
        ),
    ),
    one_of=(("steps", "program"),),
)
"""The file of a unit."""
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
    modes, given = take_modes(document), UNIT.read(document)
    if modes is None:
        return _with_a_use(document, [_unit(document, given, {})])
    _check_fields_used(document, modes)
    units = {code: replace(_mode(document, given, values), mode_code=code) for code, values in modes.codes()}
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


def _mode(document: Section, given: dict[str, Any], values: dict[str, Value]) -> Instruction:
    """The unit as it is in one mode."""
    try:
        unit = _unit(document, given, values)
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


def _unit(document: Section, given: dict[str, Any], values: dict[str, Value]) -> Instruction:
    """The unit with the words of one mode; without modes, as the file has it. `given`: the keys of UNIT."""
    name, shape, status = given["unit"], given["shape"], given["flags"]
    title, source = one_line(given["title"] or name), given["source"] or document.file
    k, m, n = shape["k"], shape["m"], shape["n"]
    local = _local_formats(document)
    table: Section = document["formats"]
    formats = _operand_formats(fill(table, values, document) if values else table, local)
    scale_block = _scale_block(document, given["scale_block"], formats, k)
    state = given["accumulator"] == "state"
    if state:
        _keep_the_accumulator(document, formats)
    alone = tuple(key for key in CONTROLS if given[key] == "alone")
    scales = {name: fmt for name, fmt in formats.items() if name in _OPERANDS[4:]}
    a, b, c, d = (formats[name] for name in "abcd")
    operands = OperandFormats(a, b, c, d, k, local, scales, bool(status), scale_block)
    items = given["program"] if "program" in document else _one_operation(document)
    program = compile_program(fill(items, values, document) if values else items, document, operands)
    return Instruction(
        name,
        m,
        n,
        k,
        formats,
        scale_block=scale_block,
        status=status,
        state=state,
        load=given["load"] != "none",
        alone=alone,
        architecture=CUSTOM,
        program=program,
        evidence=Evidence("derived", f"custom unit: {title} ({source})"),
        family=CUSTOM,
        source=source,
        variables={"title": title},
    )


def _keep_the_accumulator(document: Section, formats: dict[str, Format]) -> None:
    """c becomes what the unit holds, in the format of d; nobody names it."""
    c, d = formats["c"], formats["d"]
    if c not in (NOTHING, d):
        raise document["formats"].error(
            f"c is {c.name} and d is {d.name}, expected one format: with 'accumulator: state' a result is "
            "the c of the next dot product",
            "c",
        )
    if d.is_float and not d.has_zero:
        raise document["formats"].error(
            f"the accumulator is cleared to zero, but {d.name}, the format of d, has none", "d"
        )
    formats["c"] = d


def _scale_block(
    document: Section, scale_block: int | None, formats: dict[str, Format], k: int
) -> int | None:
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
    table: Section = document.get("define_formats") or Section(document.file, document.line)
    for name in table:
        if name in builtin_formats():
            raise table.error(f"format '{name}' exists already; define it under another name", name)
    return {name: build_format(name, table[name]) for name in table}


_MOST_INTEGER_BITS = {"c": 63, "d": 64}
"""Bits of an integer operand; bits of other operands are factors."""


_INTEGER = re.compile(r"(?P<sign>[su])(?:int)?(?P<bits>\d+)|(?P<signed>int)(?P<of>\d+)")
"""What people call integers: u16, s24, uint16, int24."""


def _definition(name: str) -> str:
    """How a file defines a format that there is not, for a message."""
    called = _INTEGER.fullmatch(name)
    bits = int(called["bits"] or called["of"]) if called else 0
    storage = next((each for each in (8, 16, 32, 64) if bits <= each), 0)
    if called is None or not bits or not storage:
        return "define_formats defines further ones"
    sign = ", signed: false" * (called["sign"] == "u")
    return (
        f"define it: `define_formats: {{{name}: {{kind: integer, storage: {storage}, bits: {bits}{sign}}}}}`"
    )


def _operand_formats(table: Section, local: dict[str, Format]) -> dict[str, Format]:
    formats: dict[str, Format] = {}
    for operand in _OPERANDS:
        name = table.get(operand)
        if name is None:
            formats |= {operand: ABSENT[operand]} if operand in ABSENT else {}
            continue
        try:
            formats[operand] = local.get(name) or get_format(name)
        except UnknownNameError as error:
            raise table.error(f"{error}; {_definition(name)}", operand) from None
        most = _MOST_INTEGER_BITS.get(operand, 32)
        if formats[operand].integer_bits > most:
            raise table.error(
                f"{operand} is an integer of {formats[operand].integer_bits} bits, expected at most {most}",
                operand,
            )
    return formats


def _one_operation(document: Section) -> list[Any]:
    """The steps of a file as the one operation of a program."""
    operation = Section(document.file, document.lines["steps"])
    operation["steps"] = document["steps"]
    return [operation]
