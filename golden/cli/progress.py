"""The progress bar of every command that takes its time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr, where that is a terminal; to be told what is done, how much, and of how much
    (0: nobody knows)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    quiet = not shown or not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        task = progress.add_task("", total=None)
        yield lambda what, done, total: progress.update(
            task, description=what[-60:], completed=done, total=total or None
        )
