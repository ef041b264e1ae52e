"""The hand-written pages as a program reads them: their fenced blocks, and the Jupyter notebook of a page.

A page is the one source of its code: the tests run its blocks, and a notebook has the same ones as cells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden.errors import DocsError, UnknownNameError, nearest
from golden.paths import docs_folder

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>\S.*)?$")
_NOT_RUN = ("no-run", "slow")
"""Flags of blocks that need a GPU, a package that is not there, or minutes: text in a notebook."""


@dataclass(frozen=True)
class Block:
    """A fenced block. line: of its fence, from 1; end: of the last fence. flags: the words after the
    language. below: nothing but empty lines stand between this block and the one before."""

    language: str
    flags: tuple[str, ...]
    body: str
    line: int
    end: int
    below: bool

    def flag(self, name: str) -> str | None:
        """The value of a flag `name=value`."""
        return next((word.partition("=")[2] for word in self.flags if word.startswith(f"{name}=")), None)


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, also those indented in lists.

    Raises:
        DocsError: a block has no end.
    """
    lines = text.splitlines()
    start, last_end = 0, -2
    while start < len(lines):
        opened = _FENCE.match(lines[start])
        if not opened:
            start += 1
            continue
        indent = len(opened["indent"])
        end = next((i for i in range(start + 1, len(lines)) if lines[i].strip() == "```"), None)
        if end is None:
            raise DocsError(f"line {start + 1}: the block has no end")
        words = (opened["info"] or "").split()
        body = "".join(line[indent:] + "\n" for line in lines[start + 1 : end])
        below = last_end >= 0 and not any(line.strip() for line in lines[last_end + 1 : start])
        yield Block(words[0] if words else "", tuple(words[1:]), body, start + 1, end + 1, below)
        start, last_end = end + 1, end


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block with the output shown below each;
    "\\" at a line's end continues the command.

    Raises:
        DocsError: the block begins with something else than "$ ".
    """
    joined = re.sub(r"\\\n(?:> )?", "", block.body)
    if joined.strip() and not joined.startswith("$ "):
        raise DocsError("a console block begins with '$ '")
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", joined, re.M)


def notebook(page: str) -> str:
    """A guide as a Jupyter notebook (nbformat 4.5), a JSON text: Python and commands are cells, with the
    output that the page shows; everything else is text.

    page: the name of a page of docs/, without `.md`.

    Raises:
        UnknownNameError: there is no such page; the message has the nearest one.
    """
    folder = docs_folder()
    names = sorted(path.stem for path in folder.glob("*.md"))
    if page not in names:
        raise UnknownNameError(f"argument 'page' is {page!r}, expected a page of docs/{nearest(page, names)}")
    text = Path(folder, f"{page}.md").read_text("utf-8")
    cells = [cell | {"id": f"{page[:50]}-{at}"} for at, cell in enumerate(_cells(text))]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return (
        json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
    )


def _cells(text: str) -> list[dict[str, Any]]:
    """The cells of a page in its order. Invariant: each line of the page lies in one cell, but for fences
    and for what a page shows as the output of the cell before."""
    lines = text.splitlines()
    cells: list[dict[str, Any]] = []
    done = 0  # lines of the page that lie in a cell
    for block in blocks(text):
        if block.language == "text" and block.below and cells and cells[-1]["cell_type"] == "code":
            cells[-1]["outputs"] = _output(block.body)
            done = block.end
            continue
        made = list(_code(block))
        if made:
            cells += [*_prose(lines[done : block.line - 1]), *made]
            done = block.end
    return cells + _prose(lines[done:])


def _prose(lines: list[str]) -> list[dict[str, Any]]:
    text = "\n".join(lines).strip()
    return [{"cell_type": "markdown", "metadata": {}, "source": text}] if text else []


def _code(block: Block) -> Iterator[dict[str, Any]]:
    """The code cells of a block: none for one that is shown alone."""
    if any(flag in block.flags for flag in _NOT_RUN):
        return
    if name := block.flag("file"):
        yield _cell(f"%%writefile {name}\n{block.body}")
    elif block.language == "python":
        yield _cell(block.body)
    elif block.language == "console":
        for command, output in commands(block):
            # IPython passes !cd to a shell that ends at once; %cd changes the folder of the notebook
            yield _cell(f"%{command}" if command.startswith("cd ") else f"!{command}", output)


def _cell(source: str, output: str = "") -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": _output(output),
        "source": source.rstrip("\n"),
    }


def _output(text: str) -> list[dict[str, Any]]:
    return [{"output_type": "stream", "name": "stdout", "text": text}] if text.strip() else []
