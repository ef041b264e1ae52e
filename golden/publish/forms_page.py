"""The page that compares sparse, wmma and emulated instructions with the plain dense one of their types, and
its lines in the comparison: both run on the same operands.

A sparse instruction is compared on the elements of B that its metadata select. Of a shorter plain instruction
several run one after the other, each from the result before, as software would; a longer one gets zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog import architectures
from golden.catalog.compared_units import BLOCKS, Block, kind_of, members, plain, short_title
from golden.catalog.families import families
from golden.catalog.relatives import arithmetic
from golden.explain.markdown import anchor, link
from golden.identify.comparing import CLASSES, classify
from golden.identify.minimising import cost, minimise
from golden.model.instruction import Instruction
from golden.program.signature import FIRST_COLUMNS, SCALES, Operands
from golden.publish.dot_text import command, operands_text, result_text
from golden.publish.families import group_of
from golden.publish.program_text import changed_parameters, program_text
from golden.publish.templating import render
from golden.stimuli import SEARCH_KINDS, generate
from golden.unit import pad

PATH = "comparison/forms.md"
TITLE = "Sparse, wmma and emulated instructions"
_TITLES = {"sparse": "Sparse", "emulated": "Emulated"}


# In the matrix ----------------------------------------------------------------------------------------------


def rows(block: Block, architectures: list[str]) -> Iterator[list[str]]:
    """The rows of a block's table: one for each kind that any of these architectures has."""
    for kind in kinds():
        cells = [_cell(block, name, kind) for name in architectures]
        if any(cells):
            yield [link(_TITLES.get(kind, f"`{kind}`"), PATH), *(cell or "-" for cell in cells)]


def _cell(block: Block, architecture: str, kind: str) -> str:
    found = of_kind(block, architecture, kind)
    other = [form for form in found if form.different]
    if not other:
        return link("as dense", f"{PATH}#{anchor(short_title(architecture))}") if found else ""
    text = "other results" if len(other) == len(found) else f"{len(other)} of {len(found)} programs differ"
    return link(text, f"{PATH}#{anchor(_heading(other[0]))}")


def not_native(block: Block, architecture: str) -> str:
    """An architecture that has no plain instruction of a block, and what it has instead."""
    found = forms(block, architecture)
    if not found:
        return short_title(architecture)
    chips = ", ".join(dict.fromkeys(short_title(form.plain.architecture) for form in found))
    text = "other results than" if any(form.different for form in found) else "as on"
    return (
        f"{short_title(architecture)} "
        f"({link(f'{found[0].kind}, {text} {chips}', f'{PATH}#{anchor(short_title(architecture))}')})"
    )


# The page ---------------------------------------------------------------------------------------------------


def markdown() -> str:
    """Returns the page."""
    names = architectures.architectures()
    found = {name: [form for block in BLOCKS for form in forms(block, name)] for name in names}
    return render(
        "forms",
        title=TITLE,
        tries=TRIES_OF_A_KIND,
        differences=list(_differences()),
        chips=[
            {"title": short_title(name), "rows": list(map(_row, some)), "examples": _examples(some)}
            for name, some in found.items()
            if some
        ],
        none=[short_title(name) for name, some in found.items() if not some],
    )


def _differences() -> Iterator[str]:
    """One line for each type and kind, with the chips on which results differ and the others that have it."""
    for block in BLOCKS:
        for kind in kinds():
            other, same = [], []
            for architecture in architectures.architectures():
                found = of_kind(block, architecture, kind)
                different = [form for form in found if form.different]
                if different:
                    other.append(link(short_title(architecture), f"{PATH}#{anchor(_heading(different[0]))}"))
                elif found:
                    same.append(short_title(architecture))
            if other:
                where = f"; none on {', '.join(same)}" if same else ""
                yield f"{block.title}, {kind}: on {', '.join(other)}{where}"


def _row(form: Form) -> list[str]:
    ins, plain = form.representative, form.plain
    more = len(form.instructions) - 1
    names = f"{link(f'`{ins.name}`', group_of(ins).path)}{f' and {more} more' if more else ''}"
    where = "" if plain.architecture == ins.architecture else f" on {short_title(plain.architecture)}"
    times = f"{form.links} x " if form.links > 1 else ""
    dense = f"{times}{link(f'`{plain.name}`', group_of(plain).path)}{where}"
    share = f"none of {form.tried:,}"
    if form.different:
        text = f"{form.different:,} of {form.tried:,} ({form.different / form.tried:.0%})"
        share = link(text, f"{PATH}#{anchor(_heading(form))}")
    return [
        form.block.title,
        form.kind,
        share,
        program_text(ins),
        f"{times}{program_text(plain)}",
        names,
        dense,
    ]


def _heading(form: Form) -> str:
    return f"{form.block.title}, {form.kind}, on {short_title(form.representative.architecture)}"


def _examples(found: list[Form]) -> dict[str, list[dict[str, Any]]]:
    """The shortest operands on which each differs, by the heading of their kind and type."""
    examples: dict[str, list[dict[str, Any]]] = {}
    for form in found:
        if form.witness is not None:
            examples.setdefault(_heading(form), []).append(_example(form, form.witness))
    return examples


def _example(form: Form, witness: Witness) -> dict[str, Any]:
    ins, plain = form.representative, form.plain
    fmt = ins.formats["d"]
    lines = [command(ins, witness.form)] + ([] if witness.plain is None else [command(plain, witness.plain)])
    changed = [f"{name} {here} (dense: {there})" for name, there, here in changed_parameters(plain, ins)]
    times = f"{form.links} x " if form.links > 1 else ""
    return {
        "name": ins.name,
        "operands": operands_text(ins, witness.form),
        "changed": ", ".join(changed),
        "head": [program_text(ins), f"Dense: {times}{program_text(plain)}"],
        "results": [result_text(fmt, witness.answer), result_text(fmt, witness.plain_answer)],
        "commands": "\n".join(lines),
    }


TRIES_OF_A_KIND = 256
"""Dot products of each stimulus kind."""
_NAN_PAYLOAD = CLASSES.index("nan_payload")


@dataclass(frozen=True)
class Witness:
    """The shortest operands found on which both answer differently, as the `dot` of each takes them.

    plain: None where the plain instruction ran more than once.
    """

    form: Operands
    plain: Operands | None
    answer: int
    plain_answer: int


@dataclass(frozen=True)
class Form:
    """Instructions of one program that are no plain dense ones, and how they compare with one that is.

    kind: of KINDS. different: results that are not the same bits; nan_payloads: how many of these are NaNs of
        other words.
    """

    kind: str
    block: Block
    instructions: tuple[Instruction, ...]
    plain: Instruction
    tried: int
    different: int
    nan_payloads: int
    witness: Witness | None

    @property
    def representative(self) -> Instruction:
        """The instruction that ran."""
        return self.instructions[0]

    @property
    def links(self) -> int:
        """How many of the plain instruction take the products of one of these."""
        return max(1, self.representative.stored_k // self.plain.k)


@lru_cache(maxsize=1)
def kinds() -> tuple[str, ...]:
    """The kinds of instructions that are not plain: "sparse", the words of families that are other forms of
    others ("wmma"), "emulated"."""
    words = (family.fixed.other_form for family in families().values())
    return "sparse", *dict.fromkeys(word for word in words if word), "emulated"


@lru_cache(maxsize=512)
def forms(block: Block, architecture: str) -> tuple[Form, ...]:
    """The sparse, wmma and emulated instructions of a block, one for each program; instructions without a
    plain counterpart are left out."""
    found: dict[tuple[object, ...], list[Instruction]] = {}
    for ins in members(block, architecture):
        if kind_of(ins):
            found.setdefault((kind_of(ins), arithmetic(ins), ins.k, ins.pattern, ins.scale_block), []).append(
                ins
            )
    return tuple(form for same in found.values() if (form := _form(block, tuple(same))) is not None)


def of_kind(block: Block, architecture: str, kind: str) -> list[Form]:
    """The forms of one kind."""
    return [form for form in forms(block, architecture) if form.kind == kind]


def counterpart(block: Block, ins: Instruction) -> Instruction | None:
    """The plain instruction to hold one against: of its own chip, else of the last one before that has any.

    Of several the one of the longest K that fits into the products of `ins`, else the shortest.
    """
    chosen = architectures.get_architecture(ins.architecture)
    chips = [architectures.get_architecture(name) for name in architectures.architectures()]
    earlier = [chip for chip in chips if chip.vendor == chosen.vendor and chip.order <= chosen.order]
    for chip in sorted(earlier, key=lambda chip: -chip.order):
        fitting = [other for other in plain(block, chip.name) if other.scale_block == _stored_block(ins)]
        if fitting:
            return min(fitting, key=lambda other: _fit(other.k, ins.stored_k))
    return None


def _stored_block(ins: Instruction) -> int | None:
    """Products that share a scale."""
    return ins.scale_block // 2 if ins.sparse and ins.scale_block else ins.scale_block


def _fit(k: int, wanted: int) -> tuple[bool, int]:
    return (False, -k) if wanted % k == 0 else (True, k)


def _form(block: Block, same: tuple[Instruction, ...]) -> Form | None:
    ins = same[0]
    other = counterpart(block, ins)
    if other is None:
        return None
    tried = different = payloads = 0
    hits: dict[int, list[Operands]] = {}
    for index, kind in enumerate(SEARCH_KINDS):
        seed = 0
        operands = generate(ins, kind, TRIES_OF_A_KIND, np.random.default_rng([seed, index]))
        classes = _classes(ins, other, operands)
        tried += TRIES_OF_A_KIND
        different += int((classes >= 0).sum())
        payloads += int((classes == _NAN_PAYLOAD).sum())
        for found in set(classes[classes >= 0].tolist()):
            first = int(np.flatnonzero(classes == found)[0])
            hits.setdefault(found, []).append({name: codes[first] for name, codes in operands.items()})
    witness = _witness(ins, other, min(hits), hits[min(hits)]) if hits else None
    return Form(kind_of(ins), block, same, other, tried, different, payloads, witness)


def _classes(ins: Instruction, other: Instruction, operands: Operands) -> npt.NDArray[np.int64]:
    """How the answers differ (an index into CLASSES), -1 where they do not."""
    fmt = ins.formats["d"]
    return classify(ins.dot(**operands), plain_answers(ins, other, operands), fmt, fmt)


def _witness(ins: Instruction, other: Instruction, wanted: int, hits: list[Operands]) -> Witness:
    """The cheapest of the first few, made as short as it goes."""

    def still(batch: Operands) -> npt.NDArray[np.bool_]:
        return np.asarray(_classes(ins, other, batch) == wanted)

    short = [
        minimise(ins, one, still, rounds=None) for one in sorted(hits, key=lambda one: cost(ins, one))[:3]
    ]
    operands = min(short, key=lambda one: cost(ins, one))
    if ins.pattern is not None:
        first = operands | {"metadata": np.full_like(operands["metadata"], FIRST_COLUMNS)}
        operands = first if still({name: codes[None] for name, codes in first.items()})[0] else operands
    parts = list(dense_parts(ins, other, operands))
    return Witness(
        operands,
        parts[0] if len(parts) == 1 else None,
        int(ins.dot(**operands)),
        int(plain_answers(ins, other, operands)),
    )


def plain_answers(ins: Instruction, other: Instruction, operands: Operands) -> npt.NDArray[Any]:
    """What the plain instruction (a chain of it) answers on the operands of `ins`."""
    result = operands["c"]
    for part in dense_parts(ins, other, operands):
        result = other.dot(**{**part, "c": result})
    return result


def dense_parts(ins: Instruction, other: Instruction, operands: Operands) -> Iterator[Operands]:
    """The operands of each link of the chain of plain instructions; c is the one of the whole."""
    dense = {name: codes for name, codes in operands.items() if name != "metadata"}
    if ins.pattern is not None:
        dense["b"] = np.take_along_axis(operands["b"], ins.pattern.columns(operands["metadata"]), axis=-1)
    c = dense.pop("c")
    for start in range(0, ins.stored_k, other.k):
        part = {"c": c}
        for name, codes in dense.items():
            per = other.scale_block or 1 if name in SCALES else 1
            part[name] = codes[..., start // per : (start + other.k) // per]
        yield pad(part, other)
