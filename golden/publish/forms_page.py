"""The page that holds sparse, wmma and emulated instructions against the dense ones,
and its lines in the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from golden.catalog import architectures
from golden.catalog.compared_units import BLOCKS, Block, short_title
from golden.explain.markdown import anchor, link
from golden.publish import forms
from golden.publish.dot_text import command, operands_text, result_text
from golden.publish.families import group_of
from golden.publish.forms import Form, Witness
from golden.publish.program_text import changed_parameters, program_text
from golden.publish.templating import render

PATH = "comparison/forms.md"
TITLE = "Sparse, wmma and emulated instructions"
_TITLES = {"sparse": "Sparse", "emulated": "Emulated"}


# In the matrix ----------------------------------------------------------------------------------------------


def rows(block: Block, architectures: list[str]) -> Iterator[list[str]]:
    """The rows of a block's table: one for each kind that any of these architectures has."""
    for kind in forms.kinds():
        cells = [_cell(block, name, kind) for name in architectures]
        if any(cells):
            yield [link(_TITLES.get(kind, f"`{kind}`"), PATH), *(cell or "-" for cell in cells)]


def _cell(block: Block, architecture: str, kind: str) -> str:
    found = forms.of_kind(block, architecture, kind)
    other = [form for form in found if form.different]
    if not other:
        return link("as dense", f"{PATH}#{anchor(short_title(architecture))}") if found else ""
    text = "other results" if len(other) == len(found) else f"{len(other)} of {len(found)} programs differ"
    return link(text, f"{PATH}#{anchor(_heading(other[0]))}")


def not_native(block: Block, architecture: str) -> str:
    """An architecture that has no plain instruction of a block, and what it has instead."""
    found = forms.forms(block, architecture)
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
    found = {name: [form for block in BLOCKS for form in forms.forms(block, name)] for name in names}
    return render(
        "forms",
        title=TITLE,
        tries=forms.TRIES_OF_A_KIND,
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
        for kind in forms.kinds():
            other, same = [], []
            for architecture in architectures.architectures():
                found = forms.of_kind(block, architecture, kind)
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
