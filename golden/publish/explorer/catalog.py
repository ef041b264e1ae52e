"""What the explorer's page is given: an index of every instruction, and the programs of each architecture.

Instructions that differ in M and N alone share an entry of the index, and those that compute the same share a
unit: thousands of names are some hundred units. `presets` are operands that show something, for the page's
list: rounding as a textbook has it, and the cases of the studies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from golden import studies
from golden.catalog.architectures import architectures, get_architecture
from golden.catalog.lookup import instructions
from golden.catalog.resolver import resolver
from golden.catalog.type_words import types_of
from golden.explain.program_file import program_file
from golden.model import registers
from golden.model.engine import SPARSITY
from golden.model.instruction import Instruction
from golden.model.program_text import struct_layouts
from golden.number.formats import get_format
from golden.program.keys import REGISTER, STATUS
from golden.studies import cdna3_rounding, fp8_accumulation, product_overflow, tf32_nan
from golden.studies.study import published

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


def presets() -> list[dict[str, Any]]:
    """The presets; the page offers each for every unit whose formats hold its numbers.

    Each: `name`; `why`, a sentence; `a` and `b`, the first elements as text that the page reads (a number, or
    0x... for a code); `c`; `formats`, operands that need a certain format; `rounded`, whether numbers may be
    rounded to their formats.
    """
    return [*_textbook(), _lost(), *_overflows(), _downward(), *_nans()]


def _preset(name: str, why: str, a: Iterable[Any], b: Iterable[Any], c: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "why": why, "a": [*map(str, a)], "b": [*map(str, b)], "c": str(c)} | more


def _textbook() -> Iterator[dict[str, Any]]:
    """For each format of a result, numbers at its last place."""
    for name in ("f16", "bf16", "f32", "f64"):
        places = get_format(name).fraction_bits
        high, low = (places + 1) // 2, places + 1 - (places + 1) // 2
        half = [f"2^-{high}"], [f"2^-{low}"]
        only = {"formats": {"d": name}}
        yield _preset("Tie, even below", f"1 + 2^-{places + 1} lies halfway; 1 is even.", *half, 1, **only)
        odd = f"{(1 << places) + 1}*2^-{places}"
        why = f"1 + 3*2^-{places + 1} lies halfway between an odd and an even result."
        yield _preset("Tie, even above", why, *half, odd, **only)
        why = "Half a unit in the last place of 1, and a little more in a second product."
        yield _preset("Just above a tie", why, [*half[0], "2^-14"], [*half[1], "2^-14"], 1, **only)
    why = "x - x + y: what is left of a small product when large ones cancel."
    for top, low in ((12, 12), (7, 6), (2, 0)):
        yield _preset(
            f"Cancellation, 2^{2 * top} against 2^{-2 * low}",
            why,
            [f"2^{top}", f"-2^{top}", f"2^{-low}"],
            [f"2^{top}", f"2^{top}", f"2^{-low}"],
            0,
        )
    why = "Small products one after the other onto a large c: each alone is lost, together they are not."
    yield _preset("Swamping", why, ["2^-6"] * 8, ["2^-6"] * 8, "2^12")


def _lost() -> dict[str, Any]:
    """Each small product alone lies below the 13 fraction bits that Hopper and Ada keep for FP8."""
    small = ["2^-7"] * 31
    why = f"{studies.question(fp8_accumulation.NAME)} {studies.source(fp8_accumulation.NAME)}."
    return _preset("1 + 31 * 2^-14", why, [1, *small], [1, *small], 0)


def _overflows() -> Iterator[dict[str, Any]]:
    for name, (a, b, c) in product_overflow.CASES.items():
        why = f"{studies.question(product_overflow.NAME)} {studies.source(product_overflow.NAME)}."
        yield _preset(name, why, map(float.hex, a), map(float.hex, b), c.hex())


def _downward() -> dict[str, Any]:
    case = published(cdna3_rounding.NAME)["case"]
    why = f"{studies.question(cdna3_rounding.NAME)} {studies.source(cdna3_rounding.NAME)}."
    name = "2048 * 2048 - 2048 * 2048 - 0.000001"
    return _preset(name, why, case["a"], case["b"], repr(case["c"]), rounded=True)


def _nans() -> Iterator[dict[str, Any]]:
    for word, what in tf32_nan.WORDS.items():
        why = f"{what[0].upper()}{what[1:]}, times 1. {studies.source(tf32_nan.NAME)}."
        yield _preset(f"TF32 word {word:#010x}", why, [hex(word)], [1], 0, formats={"a": "tf32"})
