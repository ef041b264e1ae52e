"""The few numbers that a reader of a document looks for first."""

from __future__ import annotations

from collections.abc import Iterator

from golden.catalog import architectures
from golden.explain import specification
from golden.explain.markdown import table
from golden.publish.architecture_page import algorithm_text, parameter_text
from golden.publish.families import Group
from golden.publish.variants import captured_cell, sass_text

HEAD = ("Key figures", "")


def key_figures(group: Group) -> str:
    """A table: shape, operands, sum, and, of an instruction of the catalogue, parameters, names and
    evidence."""
    return table(HEAD, list(_rows(group)))


def _rows(group: Group) -> Iterator[tuple[str, str]]:
    ins = group.representative
    operations = len(ins.program.operations)
    yield "Shape", "m = {}, n = {}, k = {}".format(*ins.shape)
    yield "Operands", ", ".join(f"{name} {fmt.name}" for name, fmt in ins.own_formats.items())
    many = f"{operations} operation{'s' if operations > 1 else ''}"
    yield "d", f"{specification.sum_text(ins)}, in {many}"
    if group.architecture not in architectures.architectures():
        return
    yield "Algorithm", algorithm_text(group)
    yield "Parameters", parameter_text(group)
    if ins.sass:
        yield "SASS", sass_text(ins)
    yield "Evidence", f"{ins.evidence.kind}; captured results: {captured_cell(group.variants)}"
