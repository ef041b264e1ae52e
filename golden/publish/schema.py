"""The files that say which keys YAML has: the tables of keys in docs/ and the JSON Schemas of spec/schemas,
written from what the readers declare.

`python -m golden.publish.schema` writes all of golden's anew; `check` refuses a page or a schema that is
something else, and so does the build of the site.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from golden.boundary import end
from golden.catalog.architectures import ARCHITECTURE
from golden.catalog.families import FAMILIES, FAMILY, SHARED
from golden.catalog.json_schema import file_schema, keys_table, schema_file, text, with_tables
from golden.catalog.unit_files import FORMATS, SHAPE, UNIT
from golden.errors import DocsError
from golden.files.escape import escaped, table
from golden.files.output import write_text
from golden.kernels.options import KEYS
from golden.kernels.plan_files import PLAN
from golden.number.formats import FORMAT
from golden.number.rounding import OVERFLOWS
from golden.paths import docs_folder
from golden.program.algorithms import algorithms, get_algorithm
from golden.program.compiling import K_SUBSET, OPERATION
from golden.program.keys import ORDER, Grouping, mapping_of
from golden.program.steps import MAX_K, STEPS, variants
from golden.values import Choice, Mapping, Row, merged, spelt
from golden.yamlfile import Section

SCHEMAS = {
    "unit": ("A unit of mmagold", UNIT),
    "plan": ("An accumulation plan of mmagold", PLAN),
    "families": ("Families of instructions", FAMILIES),
    "architecture": ("An architecture", ARCHITECTURE),
}
"""The title and the keys of each kind of file."""


def pages() -> dict[str, dict[str, str]]:
    """The tables of each page of docs/, by its mark."""
    steps: dict[str, str] = {op: keys_table(step_rows(op)) for op in STEPS}
    group = Grouping(high=MAX_K, meaning="").value
    return {
        "spec-schema.md": {
            "unit": keys_table(UNIT.rows()),
            "shape": keys_table(SHAPE.rows()),
            "formats": keys_table(FORMATS.rows()),
            "format": keys_table(FORMAT.rows()),
            **steps,
            "group": keys_table(group.rows()),
            "operation": keys_table(OPERATION.rows()),
            "k": keys_table(K_SUBSET.rows()),
            "algorithms": _algorithms(),
        },
        "gemm.md": {"plan": keys_table(Mapping(tuple(KEYS.values())).rows())},
        "add-an-architecture.md": {
            "architecture": keys_table(ARCHITECTURE.rows()),
            "family": keys_table(FAMILY.rows(), SHARED),
        },
    }


def step_rows(op: str) -> list[Row]:
    """The keys of a step; `sum` is two kinds, which its key `order` separates."""
    kinds = {kind.__name__: mapping_of(kind) for kind in variants(op)}
    if len(kinds) == 1:
        return next(iter(kinds.values())).rows()
    order = replace(kinds["Additions"]["order"], value=Choice(("exact", *ORDER.words)), default="exact")
    rows = merged({"exact": kinds["Sum"], "tree": kinds["Additions"]})
    return [*Mapping((order,)).rows(), *(row for row in rows if row[0] != "order")]


def _algorithms() -> str:
    rows: list[list[str]] = []
    for algorithm in algorithms().values():
        found = [
            [f"`{name}`", _parameter(rule), _parameter_default(rule), escaped(rule["meaning"])]
            for name, rule in (algorithm.parameters or {}).items()
        ]
        if algorithm.chain_of:
            more = ", with its parameters" if get_algorithm(algorithm.chain_of).parameters else ""
            meaning = f"a chain of `{algorithm.chain_of}`, this many products each{more}"
            found = [["`products`", f"1 to {MAX_K}", "needed", meaning]]
        names = " or ".join(f"`{word}`" for word in (algorithm.name, *algorithm.aliases))
        for index, row in enumerate(found or [["none", "", "", ""]]):
            rows.append([names if index == 0 else "", *row])
    return table(("Algorithm", "Parameter", "Takes", "Default", "Meaning"), rows)


def _parameter(rule: Section) -> str:
    choices = rule.get("choices") or (OVERFLOWS if rule["type"] == "overflow" else ())
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    words = {"mode": "a rounding", "int": "an integer", "word": "a code", "bool": "true or false"}
    return words.get(rule["type"], str(rule["type"]))


def _parameter_default(rule: Section) -> str:
    default = rule.get("default")
    if isinstance(default, Section):
        return ", ".join(f"{fmt}: {_default_word(rule, value)}" for fmt, value in default.items())
    if default is None:
        return "none" if rule.get("optional") or rule["type"] == "word" else "needed"
    return _default_word(rule, default)


def _default_word(rule: Section, value: Any) -> str:
    return f"`{value:#x}`" if rule["type"] == "word" else f"`{spelt(value)}`"


def written() -> Iterator[tuple[Path, str]]:
    """Every file that is written from declarations, with the text that it should have.

    Raises:
        DocsError: a page lacks the marks of a table.
    """
    for name, tables in pages().items():
        page = docs_folder() / name
        yield page, with_tables(page.read_text("utf-8"), tables)
    for name, (title, mapping) in SCHEMAS.items():
        yield schema_file(name), text(file_schema(title, mapping))


def check() -> None:
    """Refuses a page or a schema that is not what the readers declare.

    Raises:
        DocsError: with the first line that differs.
    """
    for path, should in written():
        lines = zip_longest(path.read_text("utf-8").splitlines(), should.splitlines(), fillvalue="")
        for line, (is_, said) in enumerate(lines, 1):
            if is_ != said:
                raise DocsError(
                    f"{path.parent.name}/{path.name}:{line}: the file says '{is_}', the readers '{said}'; "
                    "python -m golden.publish.schema writes it again"
                )


def main() -> None:
    """Writes the files anew.

    Raises:
        DocsError: a page lacks the marks of a table. FileFormatError: a file cannot be written.
    """
    for path, should in written():
        write_text(path, should)


if __name__ == "__main__":
    end(main, "golden.publish.schema")
