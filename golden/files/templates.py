"""Texts with places to fill in: Jinja's templates, in one manner for pages, C and kernels."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment, Template


@cache
def templates_in(folder: Path, trimmed: bool = True) -> Environment:
    """The templates of a folder. A name that no fact has is an error. Nothing is escaped, since the texts are
    no HTML: golden.files.escape where a text is somebody's own.

    Args:
        trimmed: a line that holds a statement alone leaves none.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # takes a tenth of a second

    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=trimmed,
        lstrip_blocks=trimmed,
        autoescape=False,
    )


def template_of(file: Path, trimmed: bool = True) -> Template:
    """One template; see `templates_in`."""
    return templates_in(file.parent, trimmed).get_template(file.name)
