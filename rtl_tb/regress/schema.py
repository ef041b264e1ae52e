"""The files that say which keys dut.yaml and regress.yaml have: their JSON Schemas and the tables of docs/.

`python -m rtl_tb.regress.schema` writes them from what the readers declare; tests hold the committed files to
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from golden.catalog.json_schema import file_schema, keys_table, schema_file, text, with_tables
from golden.files.output import write_text
from golden.paths import docs_folder
from golden.values import Mapping, Variants
from rtl_tb.dut.keys import COMPARE, DUT, HANDSHAKE, PLACE, RESET, VHDL
from rtl_tb.regress.plan import ENGINE, REGRESS

PAGES: dict[str, dict[str, Mapping | Variants]] = {
    "dut.md": {
        "dut": DUT,
        "reset": RESET,
        "vhdl": VHDL,
        "compare": COMPARE,
        "handshake": HANDSHAKE,
        "place": PLACE,
    },
    "regress.md": {"regress": REGRESS, "engine": ENGINE},
}
"""The keys of each page of docs/, by the mark of their table."""


def written() -> Iterator[tuple[Path, str]]:
    """Every file that is written from declarations, with the text that it should have."""
    yield schema_file("dut"), text(file_schema("A unit under test of mmagold", DUT))
    yield schema_file("regress"), text(file_schema("A regression of mmagold", REGRESS))
    for name, mappings in PAGES.items():
        page = docs_folder() / name
        tables = {mark: keys_table(mapping.rows()) for mark, mapping in mappings.items()}
        yield page, with_tables(page.read_text("utf-8"), tables)


if __name__ == "__main__":
    for path, should in written():
        write_text(path, should)
