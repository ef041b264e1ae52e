"""The page of a group of instructions: one document from which the unit could be built, every number out of
spec and model.

`pages()` lists the pages of all architectures; `markdown(group)` is the text of one, also of a designer's own
unit (`families.own_group`).
"""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterator
from functools import partial

from golden.catalog import architectures, relatives
from golden.catalog.lookup import instruction
from golden.catalog.unit_text import unit_text
from golden.errors import listed
from golden.explain.markdown import SITE, figure, link, table
from golden.files.escape import markdown as escaped
from golden.model.instruction import Instruction
from golden.publish import answers, computation, evidence, ieee, variants
from golden.publish.dot_text import name_argument
from golden.publish.families import Group, group_of, groups, siblings
from golden.publish.pictures import fragments as pictures
from golden.publish.program_text import changed_parameters, program_text, summing, value_text
from golden.publish.templating import Page, render
from golden.publish.variants import sass_text
from golden.registers.layouts import Layout


def pages() -> list[Page]:
    """The pages of every group of every architecture."""
    found: dict[Hashable, str] = {}
    pages = []
    for architecture in architectures.architectures():
        for group in groups(architecture):
            shares = found.setdefault(ieee.search_key(group.representative), f"instruction {len(found)}")
            pages.append(Page(group.path, group.title, partial(write, architecture, group.slug), shares))
    return pages


def write(architecture: str, slug: str) -> str:
    """The Markdown of one page of the site, found again by its address (so that other processes can write
    it)."""
    group = next(group for group in groups(architecture) if group.slug == slug)
    title, rest_of_page = markdown(group).split("\n\n", 1)
    return "\n\n".join(part for part in (title, tabs(group), rest_of_page) if part)


def markdown(group: Group) -> str:
    """The whole page."""
    return "\n\n".join([f"# {escaped(group.title)}", *core(group), *rest(group)]) + "\n"


def core(group: Group) -> list[str]:
    """What the unit computes: summary, variants, formats, steps, datapath, special values."""
    parts = [variants.summary(group), _where(group)]
    sections = [
        ("Variants", variants.variants(group) if not group.representative.is_custom else ""),
        ("Formats", computation.formats(group)),
        ("Computation", computation.steps(group)),
        ("Datapath", computation.datapath(group)),
        ("Special values", answers.special_values(group)),
    ]
    return [part for part in (*parts, *_sections(sections)) if part]


def brief(group: Group) -> list[str]:
    """What an architecture's document says about a group: summary, variants, steps, datapath."""
    sections = [
        ("Variants", variants.variants(group, names=False)),
        ("Computation", computation.steps(group)),
        ("Datapath", computation.datapath(group)),
    ]
    return [variants.summary(group), *_sections(sections)]


def rest(group: Group) -> list[str]:
    """Example, comparison with IEEE 754, fragments, other architectures, timing and evidence."""
    catalogued = group.architecture in architectures.architectures()
    sections = [
        ("Example", answers.example(group)),
        ("Against IEEE 754", answers.against_ieee(group)),
        ("Fragments", fragments(group)),
        ("Other architectures", elsewhere(group) if catalogued else ""),
        ("Timing", evidence.timing(group) if catalogued else ""),
        ("Evidence", evidence.evidence(group)),
    ]
    return _sections(sections)


def _sections(sections: list[tuple[str, str]]) -> list[str]:
    return [part for title, text in sections if text for part in (f"## {title}", text)]


def _where(group: Group) -> str:
    """The way to the architecture's page, the same for programs, and the commands for other forms."""
    if group.architecture not in architectures.architectures():
        return ""
    ins = group.representative
    return render(
        "where",
        architecture=group.architecture,
        title=architectures.get_architecture(group.architecture).title,
        stem=group.path.removesuffix(".md"),
        unit=unit_text(ins) is not None,
        recorded=group.architecture if any(map(variants.captured_entry, group.variants)) else "",
        name=name_argument(ins),
    )


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


def tabs(group: Group) -> str:
    """The pages of the same family on this architecture as tabs, this one marked; empty where it is alone."""
    family = siblings(group)
    if len(family) < 2:
        return ""
    names = [one.title.partition(": ")[2] for one in family]
    if len(set(names)) < len(names):
        names = [one.title for one in family]
    items = [
        f'<a href="{SITE}{one.path}"{" aria-current=page" if one == group else ""}>{html.escape(name)}</a>'
        for one, name in zip(family, names, strict=True)
    ]
    return f'<nav class="mg-tabs" aria-label="Same family">{" ".join(items)}</nav>'


def elsewhere(group: Group) -> str:
    """One row for each other architecture: the page of the same instruction,
    or of one with the same operands."""
    rows = [_row(group, name) for name in architectures.architectures() if name != group.architecture]
    head = ("Architecture", "Instruction", "Relation", "SASS", "Arithmetic")
    own = (
        f"On {_architecture_title(group.architecture)}: {sass_list(group)}."
        if group.representative.sass
        else ""
    )
    rule = (
        "The same name where the architecture has it; else the instruction with the same operand formats "
        "whose shape is nearest. Arithmetic is compared for this page's example variant."
    )
    return "\n\n".join(part for part in (own, rule, table(head, rows)) if part)


def sass_list(group: Group) -> str:
    """The SASS mnemonics of the variants, the first few."""
    names = list(dict.fromkeys(sass_text(ins) for ins in group.variants))
    most = 6  # mnemonics in a cell
    return listed(names, most)


def _architecture_title(architecture: str) -> str:
    return architectures.get_architecture(architecture).title


def _row(group: Group, architecture: str) -> tuple[str, ...]:
    mine, other = counterpart(group, architecture)
    place = link(_architecture_title(architecture), f"architectures/{architecture}.md")
    if mine is None or other is None:
        return place, "none", "-", "-", "-"
    page = group_of(other)
    relation = "same name" if other.name == mine.name else "same operand formats"
    return place, link(page.title, page.path), relation, sass_text(other), difference(mine, other)


def counterpart(group: Group, architecture: str) -> tuple[Instruction | None, Instruction | None]:
    """A variant of the group and what stands for it on another architecture; None where nothing does."""
    names = architectures.get_architecture(architecture).names()
    variants = sorted(group.variants, key=lambda ins: ins is not group.representative)
    same = next((ins for ins in variants if ins.name in names), None)
    if same is not None:
        return same, instruction(architecture, same.name)
    mine = group.representative
    near = min(
        _counterparts(mine, architecture),
        key=lambda ins: (ins.emulated, abs(ins.k - mine.k), ins.m * ins.n),
        default=None,
    )
    return (mine, near) if near is not None else (None, None)


def _counterparts(mine: Instruction, architecture: str) -> Iterator[Instruction]:
    """Instructions of the other architecture that take the same operands, one for each group of theirs."""
    for group in groups(architecture):
        for ins in group.variants:
            alike = (
                ins.formats == mine.formats
                and ins.pattern == mine.pattern
                and ins.scale_block == mine.scale_block
            )
            if alike and ins.traits.modifiers == mine.traits.modifiers:
                yield ins
                break


def difference(mine: Instruction, other: Instruction) -> str:
    """How the other's arithmetic differs:
    algorithm, parameters, how the products are split into operations."""
    if relatives.arithmetic(mine) == relatives.arithmetic(other):
        return "the same"
    first, second = summing(mine), summing(other)
    if first.algorithm != second.algorithm:
        return f"differs: `{second.algorithm}`, here `{first.algorithm}`"
    found = [
        f"{name} {value_text(theirs)} (here {value_text(ours)})"
        for name, ours, theirs in changed_parameters(mine, other)
    ]
    if _rounds_elsewhere(mine, other):
        found.append(f"{_sequence(other)} (here {_sequence(mine)})")
    if found:
        return f"differs: {'; '.join(found)}"
    return "the same" if mine.k == other.k else f"the same, over K = {other.k} (here {mine.k})"


def _rounds_elsewhere(mine: Instruction, other: Instruction) -> bool:
    """Whether two programs of the same algorithm round in other places: not where both are one sum over
    all of k."""
    single = len(mine.program.operations) == len(other.program.operations) == 1
    return not single and _sequence(mine) != _sequence(other)


def _sequence(ins: Instruction) -> str:
    """The operations in words; of a single one also how many products it takes."""
    text = program_text(ins)
    return f"{text} of {len(summing(ins).k_index)}" if " of " not in text else text
