"""The progress bar of every command that takes its time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


class Bar:
    """A bar that is called with what is done, how much, and of how much (0: nobody knows)."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._task = progress, progress.add_task("", total=None)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Shows how far something is."""
        self._progress.update(self._task, description=what[-60:], completed=done, total=total or None)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """No bar while the block prints: the lines stay where they are, and go where stdout goes."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Bar]:
    """A progress bar on stderr, where that is a terminal; call it with the work, how much is done, and of how
    much (0: nobody knows)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    quiet = not shown or not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        yield Bar(progress)
