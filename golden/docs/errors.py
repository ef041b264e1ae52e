"""The exceptions of the docs site. Each message is one line."""

from __future__ import annotations

from golden.errors import MmagoldError


class DocsError(MmagoldError, RuntimeError):
    """A page, a link, a claim or the site as a whole is wrong."""


class DocsToolMissing(DocsError):
    """Sphinx, MyST, furo, Typst or Matplotlib is not installed."""


def missing(package: str) -> DocsToolMissing:
    """The error for an optional package that is not installed."""
    return DocsToolMissing(
        f"the Python package '{package}' is not installed, expected what the docs need: pip install "
        '"mmagold[docs]"'
    )
