"""Claims: numbers that a hand-written page quotes from the specs, held against them.

An HTML comment in the paragraph that quotes the number names the instruction, the parameter and the value:

    Hopper keeps 25 fraction bits below the largest term. <!-- spec: hopper:HMMA.16816.F32 fraction_bits = 25
    -->

What stands before the equals sign is a parameter of the instruction's first operation, or a dotted path into
`golden.explain.specification.specification(ins)`, such as `formats.d.name`,
`operations.1.parameters.fraction_bits` or `special_values.0.d`. A word or number follows it (decimal or
0x...). The claim fails where the spec says something else, and where its paragraph does not show the value
that it claims. The comments do not reach the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden.catalog.lookup import instruction
from golden.errors import DocsError, MmagoldError
from golden.explain import specification

_COMMENT = r"<!--\s*spec:(?:(?!-->).)*-->"
_CLAIM = re.compile(_COMMENT, re.S)
_REMOVED = re.compile(rf" {_COMMENT}(?= ?<!--\s*spec:|[\s.,;:)]|$)|{_COMMENT}", re.S)
_BODY = re.compile(r"(?P<architecture>\w+):(?P<name>\S+)\s+(?P<path>[\w.]+)\s*=\s*(?P<value>\S+)$")


@dataclass(frozen=True)
class Claim:
    """One claim: where it stands, the text of its paragraph, and what it says."""

    file: str
    line: int
    paragraph: str
    body: str

    def problem(self) -> str | None:
        """What is wrong, as "file:line: ...", or None."""
        where = f"{self.file}:{self.line}"
        match = _BODY.match(self.body)
        if match is None:
            return f"{where}: claim '{self.body}', expected 'architecture:instruction path = value'"
        try:
            actual = _look_up(match["architecture"], match["name"], match["path"])
        except MmagoldError as error:
            return f"{where}: {error}"
        what = f"{match['path']} of {match['architecture']}:{match['name']}"
        if not _same(match["value"], actual):
            return f"{where}: the page says {what} = {match['value']}, the spec says {actual}"
        if not re.search(rf"(?<![\w.]){re.escape(match['value'])}(?!\w)", self.paragraph):
            return (
                f"{where}: the page claims {what} = {match['value']}, but its paragraph does not say "
                f"{match['value']}"
            )
        return None


def claims(text: str, file: str) -> Iterator[Claim]:
    """Yields the claims of a Markdown text; `file` is for messages."""
    for match in _CLAIM.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Claim(
            file,
            line,
            without_claims(_paragraph(text, match)),
            " ".join(match[0][4:-3].split()).removeprefix("spec:").strip(),
        )


def _paragraph(text: str, match: re.Match[str]) -> str:
    """The lines around a claim up to the next empty ones; of a table the row."""
    row = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
    if row.startswith("|"):
        return row
    end = text.find("\n\n", match.end())
    return text[text.rfind("\n\n", 0, match.start()) + 1 : end if end >= 0 else len(text)]


def without_claims(text: str) -> str:
    """The text as the reader sees it."""
    return _REMOVED.sub("", text)


def check(files: Iterable[tuple[Path, str]]) -> int:
    """Holds the claims of the files (with the name of each for messages) against the specs;
    returns their number.

    Raises:
        DocsError: claims that fail, each with file and line, what the page says and what the spec says.
    """
    found = [claim for path, name in files for claim in claims(path.read_text("utf-8"), name)]
    problems = [problem for claim in found if (problem := claim.problem())]
    if problems:
        raise DocsError("; ".join(problems))
    return len(found)


def _look_up(architecture: str, name: str, path: str) -> Any:
    """The value of a parameter of the first operation, or of a dotted path in the specification."""
    ins = instruction(architecture, name)
    parameters = dict(ins.program.operations[0].parameters)
    if path in parameters:
        return parameters[path]
    value: Any = specification.specification(ins)
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            known = sorted({*parameters, *value}) if isinstance(value, dict) else [f"0 .. {len(value) - 1}"]
            raise DocsError(
                f"'{path}' of {architecture}:{name}: there is no '{key}', expected one of {', '.join(known)}"
            )
    return value


def _same(said: str, actual: Any) -> bool:
    if isinstance(actual, int):
        try:
            return int(said, 0) == actual
        except ValueError:
            return False
    return said == str(actual)
