"""A program as text of C: the core's sources as one piece, and a program as constants of its structs.

The DPI models (golden/vectors/dpi.py) and the text for GPUs (golden/model/device_text.py) are made of it.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from golden.model.engine import Engine
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
