"""The page of a group of instructions: one document from which the unit could be built, every number out of
spec and model.

`pages()` lists the pages of all architectures; `markdown(group)` is the text of one, also of a designer's own
unit (`families.own_group`).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from functools import partial

from golden.catalog import architectures
from golden.catalog.unit_text import unit_text
from golden.files.escape import markdown as escaped
from golden.publish import answers, computation, evidence, ieee, placement, related, variants
from golden.publish.dot_text import name_argument
from golden.publish.families import Group, groups
from golden.publish.page import Page
from golden.publish.templating import render
from golden.vectors.c_header import identifier


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
    return "\n\n".join(part for part in (title, related.tabs(group), rest_of_page) if part)


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
    """What an architecture's document says of a group: summary, variants, steps, datapath."""
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
        ("Fragments", placement.fragments(group)),
        ("Other architectures", related.elsewhere(group) if catalogued else ""),
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


def files(group: Group) -> Iterator[tuple[str, str]]:
    """The files of the site that hold a page's example variant for programs: path and content."""
    from golden.publish.document import as_dict

    stem, ins = group.path.removesuffix(".md"), group.representative
    yield f"{stem}.json", json.dumps(as_dict(ins), indent=1) + "\n"
    unit = unit_text(ins, identifier(ins.name))
    if unit is not None:
        yield f"{stem}.yaml", unit
