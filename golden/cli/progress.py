"""The progress bar of every command that takes its time, and the seconds of its stages (--timings)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

if TYPE_CHECKING:
    from rich.progress import Progress

Timings = Annotated[
    bool,
    Option("--timings", help="Also print the seconds of each stage and its share of the total."),
]
"""The option of commands whose stages are timed."""


class Bar:
    """A bar that is called with what is done, how much, and of how much (0: nobody knows).

    What is done is a stage; it takes the seconds of the clock until another one is named.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress, self._task = progress, progress.add_task("", total=None)
        self._stage, self._since = "preparing", time.monotonic()
        self._seconds: dict[str, float] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        """Shows how far something is."""
        if what != self._stage:
            self._take_time(what)
        self._progress.update(self._task, description=what[-60:], completed=done, total=total or None)

    def _take_time(self, following: str) -> None:
        now = time.monotonic()
        self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = following, now

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """No bar while the block prints: the lines stay where they are, and go where stdout goes."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def timings(self) -> list[dict[str, Any]]:
        """Each stage of a millisecond or more, in the order of their beginnings: `stage`, `seconds`,
        `share` (0 to 1)."""
        self._take_time(self._stage)
        # Seconds below which a stage has no row: it found nothing to do.
        least = 0.001
        shown = {stage: seconds for stage, seconds in self._seconds.items() if seconds >= least}
        whole = sum(shown.values())
        return [
            {"stage": stage, "seconds": round(seconds, 3), "share": round(seconds / whole, 4)}
            for stage, seconds in shown.items()
        ]

    def with_timings(self, data: Mapping[str, Any], wanted: bool) -> dict[str, Any]:
        """A JSON object of a command, with the key `timings` if they are wanted."""
        return {**data, **({"timings": self.timings()} if wanted else {})}

    def print_timings(self, wanted: bool) -> None:
        """Prints the timings, if they are wanted, on stderr: the report on stdout stays as it is."""
        if not wanted:
            return
        rows = [(row["stage"], row["seconds"], row["share"]) for row in self.timings()]
        rows.append(("together", sum(seconds for _, seconds, _ in rows), 1.0))
        width = max(len(stage) for stage, _, _ in rows)
        typer.echo(f"\n{'stage':{width}}  seconds  share", err=True)
        for stage, seconds, share in rows:
            typer.echo(f"{stage:{width}}  {seconds:7.2f}  {share:5.0%}", err=True)


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
