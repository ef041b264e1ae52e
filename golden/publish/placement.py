"""Where the operands lie: register fragments as pictures, or what else holds them."""

from __future__ import annotations

from golden.explain.markdown import figure
from golden.model.instruction import Instruction
from golden.publish.families import Group
from golden.publish.pictures import fragments as pictures
from golden.registers.layouts import Layout

_TITLES = {
    "a": "A",
    "b": "B",
    "c": "C and D",
    "metadata": "sparsity metadata",
    "scale_a": "scales of A",
    "scale_b": "scales of B",
}


def fragments(group: Group) -> str:
    """The pictures of one variant's operands, with what is missing."""
    ins = drawn(group)
    known = [name for name in pictures.operands(ins) if not _same_as_c(ins, name)] if ins is not None else []
    if ins is None or not known:
        return _elsewhere(group.representative)
    parts = [
        f"The registers of `{ins.name}`. A cell of the first picture is an element of the matrix, labelled "
        "lane:register(:part); the second shows the same from the side of the registers."
    ]
    for name in known:
        title = _title(ins, name)
        parts += [
            figure(pictures.matrix(ins, name, f"matrix-{name}"), f"{title}: lane:register of every element."),
            figure(pictures.lanes(ins, name, f"lanes-{name}"), f"{title}: what each lane's registers hold."),
        ]
    if "metadata" in known:
        parts.append(
            "The metadata are drawn for sparsity selector 0; other selectors, where there are any, name "
            "other lanes."
        )
    if "scale_a" in known:
        parts.append(
            "The scales are drawn for byte-id 0 and thread-id 0; these selectors name other bytes and lanes."
        )
    sources = dict.fromkeys(_source(layout_of(ins, name)) for name in known)
    return "\n\n".join(part for part in [*parts, *sources, *_missing(ins, known)] if part)


def drawn(group: Group) -> Instruction | None:
    """The variant that is drawn: the one that the whole page shows; where its layout is unknown the
    smallest with a layout."""
    if group.representative.fragments is not None:
        return group.representative
    known = [ins for ins in group.variants if ins.fragments is not None]
    return min(known, key=lambda ins: (ins.blocks > 1, ins.m * ins.n + ins.k * (ins.m + ins.n)), default=None)


def layout_of(ins: Instruction, operand: str) -> Layout | None:
    """The layout of one operand, or None."""
    return getattr(ins.fragments, operand, None)


def _same_as_c(ins: Instruction, operand: str) -> bool:
    """D lies where C does, so it is drawn once."""
    c, d = layout_of(ins, "c"), layout_of(ins, "d")
    return (
        operand == "d"
        and c is not None
        and d is not None
        and c.formulas == d.formulas
        and c.container_bits == d.container_bits
    )


def _title(ins: Instruction, operand: str) -> str:
    if operand == "c" and not _same_as_c(ins, "d"):
        return "C"
    return _TITLES.get(operand, operand.upper())


def _source(layout: Layout | None) -> str:
    if layout is None or not layout.source:
        return ""
    evidence = f" ({layout.evidence})" if layout.evidence else ""
    return f"Source of the layout: {' '.join(layout.source.split()).rstrip('.')}{evidence}."


def _missing(ins: Instruction, known: list[str]) -> list[str]:
    wanted = [
        "a",
        "b",
        *(["metadata"] if ins.sparse else []),
        *(["scale_a", "scale_b"] if ins.scale_block else []),
    ]
    absent = [name for name in wanted if name not in known]
    elsewhere = [_title(ins, name) for name in absent if "registers" not in ins.traits.places_of(name)]
    unknown = [_title(ins, name) for name in absent if "registers" in ins.traits.places_of(name)]
    lines = [f"Not in registers: {', '.join(elsewhere)}. {ins.traits.placement}"] if elsewhere else []
    return lines + ([f"No layout is known for: {', '.join(unknown)}."] if unknown else [])


def _elsewhere(ins: Instruction) -> str:
    if ins.is_custom:
        return "The unit has no register layout: its operands are dot products or matrices as given."
    return ins.traits.placement or "The spec has no register layout of this instruction."
