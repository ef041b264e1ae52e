"""How objects show themselves in a notebook: `_repr_html_`, made by golden.publish.notebook.

What a user meets lies below the pictures, so the maker of the HTML is imported by name, when a notebook
wants it and not before.
"""

from __future__ import annotations

from importlib import import_module

_MAKER = "golden.publish.notebook"


class NotebookHtml:
    """What notebooks show as HTML."""

    def _repr_html_(self) -> str:
        return str(import_module(_MAKER).shown(self))
