"""A unit's compiled program as a JSON document: all that another program needs to run it on the C core.

    mmagold export my_unit.yaml --format program

The explorer in the browser takes such a document, and the site's own instructions reach it in the same form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from golden.errors import OperandError
from golden.model.instruction import Instruction
from golden.model.program_text import program_data
from golden.program.modes import mode_text
from golden.program.signature import SCALES
from golden.program.words import step_text
from golden.registers.sparsity import Pattern


def program_file(units: Iterable[Instruction]) -> dict[str, Any]:
    """The document of some units; one with modes is a unit in each of them.

    Returns:
        mmagold_program: the version of this form. formats: the members of struct mg_format by name.
        units: see `unit_dict`.

    Raises:
        OperandError: two formats of one name.
    """
    formats: dict[str, Any] = {}
    documents = []
    for unit in units:
        for code, one in unit.mode_units.items() or [(None, unit)]:
            found, own = unit_dict(one.stateless, unit, code)
            for name, members in own.items():
                if formats.setdefault(name, members) != members:
                    raise OperandError(f"{unit.name}: another format is called '{name}', too")
            documents.append(found)
    version = 1
    return {"mmagold_program": version, "formats": formats, "units": documents}


def unit_dict(
    ins: Instruction, named: Instruction, mode: int | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One unit, and the formats that it names.

    The unit: formats by operand, `absent` operands, k (logical), sparsity, scales, and for each operation its
    words; `program` holds the members of struct mg_program (golden/model/program_text.py).
    """
    data = program_data(ins.program, ins)
    suffix = ""
    if mode is not None and named.modes is not None:
        suffix = f", mode {mode:#x} ({mode_text(dict(named.modes.codes())[mode])})"
    unit = {
        "name": f"{named.name}{suffix}",
        "architecture": named.architecture,
        "k": ins.k,
        "formats": {name: fmt.name for name, fmt in ins.formats.items()},
        "absent": list(ins.absent),
        "integer": ins.is_integer,
        "status": list(ins.status),
        "bit_operation": ins.program.bit_operation if ins.formats["a"].name == "b1" else None,
        "sparsity": None if ins.pattern is None else _sparsity(ins.pattern, ins.ordered_metadata),
        "scale_block": ins.scale_block,
        "scale_of_one": {name: hex(ins.at_rest(name)) for name in SCALES if name in ins.formats},
        "operations": [
            {
                "algorithm": operation.algorithm,
                "seed": operation.seed,
                "steps": [
                    {"op": step.op, "text": step_text(step, ins.is_integer)} for step in operation.steps
                ],
            }
            for operation in ins.program.operations
        ],
        "program": data["program"],
    }
    return unit, data["formats"]


def _sparsity(pattern: Pattern, ordered: bool) -> dict[str, Any]:
    """The pattern: for each nibble the columns of its chunk whose elements are stored."""
    columns = {nibble: pattern.columns(np.array([nibble])) for nibble in pattern.legal(ordered)}
    return {
        "name": pattern.name,
        "chunk": pattern.chunk,
        "nibbles": {str(nibble): found.tolist() for nibble, found in columns.items()},
    }
