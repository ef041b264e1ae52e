"""What the explorer knows of the specs: an index of every instruction, and the programs of each architecture.

Instructions that differ in M and N alone share an entry of the index, and those that compute the same share a
unit: thousands of names are some hundred units.
"""

from __future__ import annotations

import json
import re
from typing import Any

from golden.catalog.architectures import architectures, get_architecture
from golden.catalog.lookup import instructions
from golden.catalog.resolver import resolver
from golden.catalog.type_words import types_of
from golden.explain.program_file import program_file
from golden.model import registers
from golden.model.engine import SPARSITY
from golden.model.instruction import Instruction
from golden.model.program_data import struct_layouts
from golden.program.keys import REGISTER, STATUS

_SHAPE = re.compile(r"m\d+n\d+(?=k\d+)")


def core_words() -> dict[str, Any]:
    """What a caller of the core has to know: its structs, and the words behind its numbers."""
    return {
        "structs": struct_layouts(),
        "registers": list(REGISTER.words),
        "moments": list(registers.MOMENTS),
        "not_run": registers.NOT_RUN,
        "status": list(STATUS.words),
        "sparsity": SPARSITY,
    }


def index_and_programs() -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The index, and the document of programs (golden/explain/program_file.py) of each architecture.

    The index has for each architecture its `words` (cards and targets) and its `instructions`: `name`
    (the first), `unit` (its place in the document), and as places in `shared`: `kind` (formats, k, and words
    for the types), `shapes` (the first's, then others of the same name but for M and N), `machine` (SASS
    names), `evidence`. Thousands of instructions share a few of each.
    """
    index, programs = [], {}
    for name in architectures():
        entries, units = _entries(name)
        programs[name] = program_file(units)
        found = get_architecture(name)
        shared: dict[str, int] = {}
        for entry in entries:
            entry["kind"] = _kind(units[entry["unit"]])
            for key in ("kind", "shapes", "machine", "evidence"):
                entry[key] = shared.setdefault(as_json(entry[key]), len(shared))
        index.append(
            {
                "name": name,
                "title": found.title,
                "words": sorted(word for word, chip in resolver().words.items() if chip.name == name),
                "shared": [json.loads(text) for text in shared],
                "instructions": entries,
            }
        )
    return index, programs


def _kind(ins: Instruction) -> dict[str, Any]:
    return {"formats": _names(ins), "k": ins.k, "words": types_of(ins)}


def _names(ins: Instruction) -> dict[str, str]:
    return {operand: fmt.name for operand, fmt in ins.own_formats.items()}


def _entries(architecture: str) -> tuple[list[dict[str, Any]], list[Instruction]]:
    entries: dict[tuple[str, int], dict[str, Any]] = {}
    places: dict[Any, int] = {}
    units: list[Instruction] = []
    for ins in instructions(architecture):
        place = places.setdefault(arithmetic(ins), len(units))
        if place == len(units):
            units.append(ins)
        shape = _SHAPE.search(ins.name)
        key = _SHAPE.sub("", ins.name), place
        entry = entries.setdefault(
            key,
            {
                "name": ins.name,
                "unit": place,
                "machine": ins.sass,
                "evidence": [],
                "shapes": [],
            },
        )
        entry["shapes"] += [shape[0]] if shape else []
        entry["evidence"] = sorted({*entry["evidence"], ins.evidence.kind})
    return list(entries.values()), units


def arithmetic(ins: Instruction) -> Any:
    """All that decides results, and what a dot product takes."""
    operations = tuple(operation.arithmetic for operation in ins.program.operations)
    pattern = ins.pattern and ins.pattern.name
    return operations, tuple(ins.formats.items()), ins.k, pattern, ins.ordered_metadata, ins.scale_block


def as_json(value: Any) -> str:
    """Compact JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":")).replace("</", "<\\/")
