"""The page that holds sparse, wmma and emulated instructions against the dense ones,
and its lines in the comparison."""

from __future__ import annotations

from collections.abc import Iterator

from golden.catalog import architectures
from golden.catalog.compared_units import BLOCKS, Block, short_title
from golden.explain.markdown import anchor, code, link, table
from golden.instruction import Instruction
from golden.publish import forms
from golden.publish.dot_text import command, operands_text, result_text
from golden.publish.families import group_of
from golden.publish.forms import Form
from golden.publish.program_text import changed_parameters, program_text

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
    parts = [
        f"# {TITLE}",
        "The plainest dense instruction stands for its operand types in the comparison. Here every other "
        "program of these types ran on the same operands: sparse instructions on the elements of B that "
        "their metadata select, `wmma` and emulated ones as they are. Of a shorter dense instruction "
        "several run one after the other, each from the result before; a longer one gets zeros. A chip "
        "without a dense one is held against the last chip before it that has one.",
        f"Every kind of {link('stimulus', 'vectors.md')} is drawn {forms.TRIES_OF_A_KIND} times. Equal "
        "results are no proof; where both run the same steps on the same products, the program says so too.",
        link("The comparison", "comparison.md"),
        "## Where results differ",
        "\n".join(_differences()),
    ]
    for architecture in architectures.architectures():
        found = [form for block in BLOCKS for form in forms.forms(block, architecture)]
        if found:
            parts += [f"## {short_title(architecture)}", _table(found), *_examples(found)]
    none = [
        short_title(name)
        for name in architectures.architectures()
        if not any(forms.forms(block, name) for block in BLOCKS)
    ]
    parts += [f"No such instructions: {', '.join(none)}."] if none else []
    return "\n\n".join(parts)


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
                yield f"- {block.title}, {kind}: on {', '.join(other)}{where}"


def _table(found: list[Form]) -> str:
    head = [
        "Operands",
        "Kind",
        "Different results",
        "Program",
        "Dense program",
        "Instructions",
        "Dense instruction",
    ]
    return table(head, [_row(form) for form in found])


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


def _examples(found: list[Form]) -> Iterator[str]:
    """The shortest operands on which each differs, those of one kind and type below one heading."""
    heading = ""
    for form in found:
        if form.witness is None:
            continue
        if _heading(form) != heading:
            heading = _heading(form)
            yield f"### {heading}"
        yield from _example(form)


def _example(form: Form) -> Iterator[str]:
    ins, plain, witness = form.representative, form.plain, form.witness
    assert witness is not None
    fmt = ins.formats["d"]
    changed = _changed(ins, plain)
    yield f"`{ins.name}`: {operands_text(ins, witness.form)}.{f' {changed}' if changed else ''}"
    yield table(
        [program_text(ins), f"Dense: {f'{form.links} x ' if form.links > 1 else ''}{program_text(plain)}"],
        [[result_text(fmt, witness.answer), result_text(fmt, witness.plain_answer)]],
    )
    lines = [command(ins, witness.form)] + ([] if witness.plain is None else [command(plain, witness.plain)])
    yield code("\n".join(lines), "console")


def _changed(ins: Instruction, plain: Instruction) -> str:
    """The parameters of the sums that differ, where both are of one algorithm."""
    found = [f"{name} {here} (dense: {there})" for name, there, here in changed_parameters(plain, ins)]
    return f"Parameters: {', '.join(found)}." if found else ""
