"""What editors and pages say about the keys that files have: JSON Schemas and tables, made of the
declarations that the readers use (golden/values.py).

`python -m golden.publish.schema` writes those of units, plans, families and architectures, `python -m
rtl_tb.regress.schema` those of rtl_tb; tests hold the committed files to the declarations. What a schema
refuses, the loader refuses, too; the loader says more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from golden.errors import DocsError
from golden.files.escape import table
from golden.number.formats import FORMAT, formats
from golden.paths import spec_folder
from golden.program.algorithms import algorithms
from golden.program.compiling import OPERATION
from golden.program.keys import mapping_of
from golden.program.steps import STEPS, variants
from golden.values import Mapping, Row, Schema, object_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_file(name: str) -> Path:
    """Where the schema of a kind of file ("unit", "dut", "regress", "plan") lies."""
    return spec_folder() / "schemas" / f"{name}.schema.json"


def editor_line(name: str) -> str:
    """The comment by which editors find the schema of a file."""
    return f"# yaml-language-server: $schema={schema_file(name)}\n"


def file_schema(title: str, mapping: Mapping) -> Schema:
    """The schema of a kind of file, with the definitions that its declarations refer to."""
    found = {"$schema": DRAFT, "title": title, **mapping.schema()}
    references = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(found)))
    return found | ({"$defs": _definitions()} if references else {})


def _definitions() -> Schema:
    named = {
        name: {"type": ["object", "null"]}
        for one in algorithms().values()
        for name in (one.name, *one.aliases)
    }
    operation = OPERATION.schema()
    return {
        "format_name": {"type": "string", "examples": sorted(formats())},
        "format": FORMAT.schema(),
        "operation": operation | {"properties": operation["properties"] | named},
        "step": {
            **object_of({op: {"anyOf": [_step(kind) for kind in variants(op)]} for op in STEPS}, []),
            "minProperties": 1,
            "maxProperties": 1,
        },
    }


def _step(kind: type) -> Schema:
    """One kind of step; if a word of YAML stands for two kinds, `order` distinguishes them."""
    found = mapping_of(kind).schema()
    if "order" not in found["properties"] and len(variants(kind.op)) > 1:  # type: ignore[attr-defined]
        found["properties"]["order"] = {"const": "exact"}
    return found


def text(schema: Schema) -> str:
    """The schema as a file."""
    return json.dumps(schema, indent=1) + "\n"


# Tables of pages --------------------------------------------------------------------------------------------

HEAD = ("Key", "Takes", "Default", "Meaning")
_TABLE = re.compile(r"(<!-- keys: ([^>]+?) -->\n).*?(\n<!-- end of the keys -->)", re.S)


def keys_table(rows: Iterable[Row], starred: Iterable[str] = ()) -> str:
    """The keys of a mapping for a page, some of them with a star."""
    stars = set(starred)
    return table(HEAD, ([f"`{name}`{' *' * (name in stars)}", *rest] for name, *rest in rows))


def with_tables(page: str, tables: dict[str, str]) -> str:
    """The page with each table between its marks, `<!-- keys: NAME -->` and `<!-- end of the keys -->`,
    written anew. Raises DocsError where a table has no marks, or marks have no table."""
    marked = [name for _, name, _ in _TABLE.findall(page)]
    if sorted(marked) != sorted(tables):
        wrong = min(set(marked) ^ set(tables) or {name for name in marked if marked.count(name) > 1})
        raise DocsError(
            f"the marks '<!-- keys: {wrong} -->' stand {marked.count(wrong)} times, expected once"
        )
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n{found[3]}", page)
