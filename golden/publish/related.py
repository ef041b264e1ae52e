"""The same instruction on the other architectures, and where its arithmetic is another."""

from __future__ import annotations

import html
from collections.abc import Iterator

from golden.catalog import architectures, relatives
from golden.catalog.lookup import instruction
from golden.explain.markdown import SITE, link, table
from golden.model.instruction import Instruction
from golden.publish.families import Group, group_of, groups, siblings
from golden.publish.program_text import changed_parameters, program_text, summing, value_text
from golden.publish.variants import sass_text


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
    own = f"On {_title(group.architecture)}: {sass_list(group)}." if group.representative.sass else ""
    rule = (
        "The same name where the architecture has it; else the instruction with the same operand formats "
        "whose shape is nearest. Arithmetic is compared for this page's example variant."
    )
    return "\n\n".join(part for part in (own, rule, table(head, rows)) if part)


def sass_list(group: Group) -> str:
    """The SASS mnemonics of the variants, the first few."""
    names = list(dict.fromkeys(sass_text(ins) for ins in group.variants))
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _title(architecture: str) -> str:
    return architectures.get_architecture(architecture).title


def _row(group: Group, architecture: str) -> tuple[str, ...]:
    mine, other = counterpart(group, architecture)
    place = link(_title(architecture), f"architectures/{architecture}.md")
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
        _alike(mine, architecture),
        key=lambda ins: (ins.emulated, abs(ins.k - mine.k), ins.m * ins.n),
        default=None,
    )
    return (mine, near) if near is not None else (None, None)


def _alike(mine: Instruction, architecture: str) -> Iterator[Instruction]:
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
