"""The command `mmagold study`: runs a study, prints its tables, writes its figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from golden.cli.arguments import Json, print_json
from golden.cli.progress import progress_bar
from golden.errors import counted

if TYPE_CHECKING:
    from golden.studies.study import Study, Table


def _complete(incomplete: str) -> list[str]:
    from golden import studies

    return [name for name in studies.names() if name.startswith(incomplete)]


def study(
    name: Annotated[
        str | None,
        Argument(
            metavar="NAME",
            help="Name of the study. Without NAME, the command lists the studies.",
            autocompletion=_complete,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", help="Folder for the text, the tables (CSV) and the figures (SVG and PNG)."),
    ] = None,
    samples: Annotated[
        int | None,
        Option(
            "--samples",
            help="Number of random samples of each experiment (default: as in the list of studies).",
        ),
    ] = None,
    gpu: Annotated[
        bool,
        Option(
            "--gpu",
            help="Also run the study on the GPU in this machine. Not every study can.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Repeats a finding of a paper with the models, and prints the paper's numbers next to the results."""
    if name is None:
        _list(as_json)
        return
    found = _run(name, samples, gpu)
    written = []
    if out is not None:
        from golden.studies.study import write

        written = write(found, out)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found, drawn=out is not None)
    for path in written:
        typer.echo(str(path), err=as_json)


def _run(name: str, samples: int | None, gpu: bool) -> Study:
    """Runs with a progress bar on stderr, where that is a terminal."""
    from golden import studies
    from golden.identify.blackbox.plugins import open_chip

    studies.title(name)  # an unknown name is said before a GPU is opened
    chip = open_chip() if gpu else None
    with progress_bar() as progress:
        return studies.run(name, samples, partial(progress, "computing"), chip)


def _list(as_json: bool) -> None:
    from golden import studies

    rows = [
        {
            "name": name,
            "question": studies.question(name),
            "source": studies.source(name),
            "samples": studies.default_samples(name),
        }
        for name in studies.names()
    ]
    if as_json:
        print_json(rows)
        return

    from golden.explain.terminal import PlainConsole, table

    shown = table("study", "question", "source")
    for row in rows:
        shown.add_row(f"[bold]{row['name']}[/]", str(row["question"]), f"[dim]{row['source']}[/]")
    PlainConsole().print(shown, highlight=False)
    typer.echo("\nNext: mmagold study cdna3-rounding --out figures")


def _print(found: Study, drawn: bool) -> None:
    from rich.markdown import Markdown

    from golden.explain.terminal import PlainConsole
    from golden.studies.study import plain

    console = PlainConsole()
    words = found.words
    head = f"[bold]{words.title}[/] [dim]{words.source}; {found.effort}[/]\n{words.question}\n"
    console.print(head, highlight=False)
    console.print(Markdown(plain(found.findings)))
    for item in found.tables:
        _print_table(item)
    if found.figures and not drawn:
        names = ", ".join(figure.name for figure in found.figures)
        typer.echo(f"\n{counted(len(found.figures), 'figure')} ({names}): {found.command} --out FOLDER")
        _say_what_is_missing()


def _say_what_is_missing() -> None:
    from importlib.util import find_spec

    from golden.errors import pip_install

    if find_spec("matplotlib") is None:
        typer.echo(f"Figures need matplotlib: {pip_install('plots')}", err=True)


def _print_table(item: Table) -> None:

    from golden.explain.terminal import PlainConsole, table

    numeric = [
        all(isinstance(row[place], (int, float)) for row in item.rows) for place in range(len(item.head))
    ]
    shown = table(*(_bare(head) + ">" * right for head, right in zip(item.head, numeric, strict=True)))
    for row in item.texts():
        shown.add_row(*map(_bare, row))
    console = PlainConsole()
    console.print(f"\n[bold]{_bare(item.caption)}[/]", highlight=False)
    console.print(shown, highlight=False)


def _bare(text: str) -> str:
    """Text for Rich, without Markdown's marks for code."""
    return text.replace("`", "").replace("[", "\\[")
