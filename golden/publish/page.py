"""A generated page: where it lies in the site and the function that writes its Markdown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """One page of the site, not yet written.

    path: from the site's root, "architectures/hopper.md". title: for menus; the Markdown begins with the same
        as its heading.
    write: returns the Markdown; picklable (a functools.partial of a module's function), so that pages are
        written in parallel.
    shares: pages of the same word measure the same things: one process writes them all and keeps what it
        found. Empty: what this page measures no other does.
    """

    path: str
    title: str
    write: Callable[[], str]
    shares: str = ""
