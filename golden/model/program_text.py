"""A program for a core that no ctypes reaches: as text of C (the core's sources as one piece, the program as
constants of its structs), and as plain data, with the layouts of the structs that it fills, for a browser.

The DPI models (golden/vectors/dpi.py) and the text for GPUs (golden/model/device_text.py) use the text.

    data = program_data(ins.program, ins)      # {"formats": {...}, "program": {...}}
    layouts = struct_layouts()                 # {"mg_step": [["op", "i32", 1], ...], ...}

In the data a value that is zero is left out, a format is under its name in `formats`, and integers of 64
bits are hex text: JSON's numbers are doubles. Whoever writes the structs into memory takes the members' order
from `struct_layouts` and C's rules of alignment; the core's mg_struct_sizes says whether that came out right.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from golden.model.engine import STRUCTS, Engine
from golden.model.layout import FormatStruct, lower_format
from golden.number.formats import Format
from golden.program.program import Program
from golden.program.signature import Signature

CORE = Path(__file__).resolve().parents[1] / "core"
INTERPRETER = (
    "mg_steps.h",
    "mmagold.h",
    "mg_internal.h",
    "mg_number.h",
    "mg_flags.h",
    "mg_watch.h",
    "mg_general.c",
)
"""The general interpreter, and what it includes."""


def core_source(names: Iterable[str]) -> str:
    """Files of golden/core as one piece of C."""
    text = "\n".join((CORE / name).read_text() for name in names)
    return re.sub(r'^#include "m\w+\.h"\n', "", text, flags=re.MULTILINE)


def program_source(program: Program, unit: Signature, storage: str = "static const", suffix: str = "") -> str:
    """The constant `mg_the_program`, from the very structs that the C core is called with.

    `storage`: what stands before the type of each constant. `suffix`: what stands behind the names, where
    one text holds several programs.
    """
    low = Engine(program, unit).lower(kernels=None)
    lines: list[str] = []
    operations = []
    for index in range(low.operation_count):
        operation = low.operations[index]
        steps = ",\n    ".join(_initialiser(operation.steps[i]) for i in range(operation.step_count))
        ks = ", ".join(str(operation.k_index[i]) for i in range(max(operation.k_count, 1)))
        lines += [
            f"{storage} mg_step mg_steps{suffix}_{index}[] = {{\n    {steps}}};",
            f"{storage} int32_t mg_k{suffix}_{index}[] = {{{ks}}};",
        ]
        operations.append(
            _initialiser(
                operation, {"steps": f"mg_steps{suffix}_{index}", "k_index": f"mg_k{suffix}_{index}"}
            )
        )
    joined = ",\n    ".join(operations)
    lines.append(f"{storage} mg_operation mg_operations{suffix}[] = {{\n    {joined}}};")
    whole = _initialiser(low, {"operations": f"mg_operations{suffix}"})
    lines.append(f"{storage} mg_program mg_the_program{suffix} = {whole};")
    return "\n".join(lines)


def _initialiser(struct: Any, pointers: dict[str, str] | None = None) -> str:
    """A C initialiser with a designator for every field that is not zero."""
    return "{" + ", ".join(_fields(struct, pointers or {})) + "}"


def _fields(struct: Any, pointers: dict[str, str]) -> Iterator[str]:
    for name, kind in struct._fields_:
        value = getattr(struct, name)
        if name in pointers:
            yield f".{name} = {pointers[name]}"
        elif isinstance(value, ctypes.Structure):
            yield f".{name} = {_initialiser(value)}"
        elif isinstance(value, ctypes.Array):
            suffix = "ull" if value._type_ is ctypes.c_uint64 else ""
            yield f".{name} = {{{', '.join(f'{item}{suffix}' for item in value)}}}"
        elif isinstance(value, int) and value:
            yield f".{name} = {value}{'ull' if kind is ctypes.c_uint64 else ''}"


_SCALARS = {
    ctypes.c_int32: "i32",
    ctypes.c_int64: "i64",
    ctypes.c_uint64: "u64",
    ctypes.c_void_p: "void*",
}
_COUNTS = {"steps": "step_count", "k_index": "k_count", "operations": "operation_count"}
"""Members that point at an array, and members that say how long it is."""


def program_data(program: Program, unit: Signature) -> dict[str, Any]:
    """The program of a unit as the core's structs hold it.

    Returns:
        formats: by name, the members of each struct mg_format. program: the members of struct mg_program;
        `operations`, `steps` and `k_index` are lists.
    """
    low = Engine(program, unit).lower(kernels=None)
    names = {bytes(lower_format(fmt)): fmt.name for fmt in _formats(program, unit)}
    found = {name: _members(FormatStruct.from_buffer_copy(data), {}) for data, name in names.items()}
    return {"formats": found, "program": _members(low, names)}


def _formats(program: Program, unit: Signature) -> list[Format]:
    """Every format that the program names."""
    found = list(unit.formats.values())
    for operation in program.operations:
        found += [operation.seed_format, operation.out_format]
        found += [operation.operand_format] if operation.operand_format else []
        found += [fmt for step in operation.steps if isinstance(fmt := getattr(step, "format", None), Format)]
    return found


def _members(struct: Any, names: dict[bytes, str]) -> dict[str, Any]:
    """The members that are not zero."""
    found: dict[str, Any] = {}
    own: Any = type(struct)
    for name, kind, compound in _readable(own):
        value = getattr(struct, name)
        if name in _COUNTS:
            found[name] = _each(value[: getattr(struct, _COUNTS[name])], names)
        elif any(bytes(value)) if compound else value:
            found[name] = _plain(value, names, kind)
    return found


@cache
def _readable(struct: Any) -> list[tuple[str, Any, bool]]:
    """The members of a struct but the pointers of which nobody knows a count: name, type, and whether it is
    a struct or an array."""
    return [
        (name, kind, issubclass(kind, ctypes.Structure | ctypes.Array))
        for name, kind in struct._fields_
        if name in _COUNTS or not hasattr(kind, "contents")
    ]


def _each(values: list[Any], names: dict[bytes, str]) -> list[Any]:
    """Numbers, or structs: the operations of a chain have many of them in common."""
    if not (values and isinstance(values[0], ctypes.Structure)):
        return values
    different = {bytes(value): value for value in values}
    read = {data: _plain(value, names) for data, value in different.items()}
    return [read[bytes(value)] for value in values]


def _plain(value: Any, names: dict[bytes, str], kind: Any = None) -> Any:
    if isinstance(value, FormatStruct):
        return names[bytes(value)]
    if isinstance(value, ctypes.Structure):
        return _members(value, names)
    if isinstance(value, ctypes.Array):
        return [_plain(item, names, value._type_) for item in value]
    return hex(value) if kind is ctypes.c_uint64 else value


def struct_layouts() -> dict[str, list[tuple[str, str, int]]]:
    """The members of each struct, in order: (name, type, count). Types are i32, i64, u64, the name of another
    struct, and pointers to them: "mg_step*"; "void*" where the target is no struct of these."""
    return {name: [(field[0], *_type(field[1])) for field in kind._fields_] for name, kind in STRUCTS.items()}


def _type(ctype: Any) -> tuple[str, int]:
    if issubclass(ctype, ctypes.Array):
        return _type(ctype._type_)[0], ctype._length_
    if hasattr(ctype, "contents"):
        return f"{_NAMES.get(ctype._type_, 'void')}*", 1
    return _NAMES[ctype], 1


_NAMES: dict[Any, str] = {**_SCALARS, **{kind: name for name, kind in STRUCTS.items()}}
