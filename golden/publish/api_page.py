"""The API reference: its templates name classes, functions and modules; Sphinx takes the words from their
docstrings."""

from __future__ import annotations

import inspect
from functools import partial
from importlib import import_module
from pathlib import Path

from golden.errors import ToolMissing
from golden.explain.markdown import code, link
from golden.publish.templating import FOLDER, Page, render

PAGES = ("golden", "products", "formats", "fragments", "vectors", "compare", "cocotb", "capture", "errors")
"""The pages in their order. What each says and shows is its template, templates/pages/api/NAME.md.j2."""


def pages() -> list[Page]:
    """The pages of the API reference, the list first."""
    return [
        Page("api/index.md", "API reference", write_index),
        *(Page(f"api/{name}.md", _head(name)[0], partial(write, name)) for name in PAGES),
    ]


def write_index() -> str:
    """The list of the pages."""
    heads = {name: _head(name) for name in PAGES}
    return render(
        "api/index", rows=[(link(title, f"api/{name}.md"), text) for name, (title, text) in heads.items()]
    )


def write(name: str) -> str:
    """One page; a thing is a class, a function or a module."""
    return render(f"api/{name}", describe=lambda *things: "\n\n".join(map(_directive, things)))


def _head(name: str) -> tuple[str, str]:
    """The title of a page and the sentence below it: the first two paragraphs of its template."""
    title, text, _ = (FOLDER / "api" / f"{name}.md.j2").read_text("utf-8").split("\n\n", 2)
    return title.removeprefix("# "), text


def source(thing: str) -> str:
    """Where a thing is defined, as `golden/model/instruction.py, line 12`.

    Raises:
        ImportError: its module needs a package that is not installed.
    """
    module, _, name = thing.rpartition(".")
    found = inspect.unwrap(getattr(import_module(module), name))
    file, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    top = import_module(thing.partition(".")[0]).__file__
    assert file is not None and top is not None
    return f"{Path(file).relative_to(Path(top).parents[1]).as_posix()}, line {line}"


def _directive(thing: str) -> str:
    """The lines that have Sphinx describe one thing."""
    last = thing.rpartition(".")[2]
    if last == "errors":  # a module
        return f"## {thing}\n\n" + code(
            f".. automodule:: {thing}\n   :members:\n   :show-inheritance:", "{eval-rst}"
        )
    try:
        head = f"## {last}\n\nIn {source(thing)}.\n\n"
    except (ImportError, ToolMissing):  # without cocotb, without PyTorch
        head = f"## {last}\n\n"
    if last[0].isupper() or last == "emulate":
        special = "\n   :special-members: __call__" if last == "Instruction" else ""
        return head + code(f".. autoclass:: {thing}\n   :members:{special}", "{eval-rst}")
    return head + code(f".. autofunction:: {thing}", "{eval-rst}")
