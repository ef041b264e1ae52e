"""The commands `mmagold docs build`, `docs check`, `docs explorer`, `docs export` and `docs notebook`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from golden.cli import completion
from golden.cli.arguments import Json, print_json
from golden.cli.export import Request, document
from golden.cli.progress import Timings, progress_bar
from golden.errors import counted, missing
from golden.paths import checkout
from golden.workers import MOST_WORKERS

_FORMS = ["md", "html", "pdf", "json"]


def build(
    out: Annotated[Path, Option("--out", help="Folder of the site: new, empty, or an earlier site.")] = Path(
        "site"
    ),
    jobs: Annotated[
        int | None,
        Option(
            "--jobs", min=1, max=MOST_WORKERS, help="Number of processes (default: one for each processor)."
        ),
    ] = None,
    vectors: Annotated[
        bool, Option("--vectors", help="Also copy the recorded vectors into the site (45 MB).")
    ] = False,
    timings: Timings = False,
    as_json: Json = False,
) -> None:
    """Builds a static site of the specs, studies and guides.

    The site has a search, a light and a dark theme, and loads nothing from other hosts.
    """
    from golden.publish import site

    with progress_bar() as progress:
        count = site.build(out, jobs, progress, vectors)
    if as_json:
        data = {"site": str(out), "pages": count}
        print_json(progress.with_timings(data, timings))
    else:
        progress.print_timings(timings)
    typer.echo(f"{out / 'index.html'}: {counted(count, 'page')}", err=True)
    if checkout() is None:
        typer.echo("this installation lacks the recorded results: the site marks them C*", err=True)
    _say_without_explorer()


def _say_without_explorer() -> None:
    from golden.publish.explorer import wasm

    if not wasm.available():
        typer.echo(f"the site has no explorer: {missing(wasm.COMPILER)}", err=True)


def explorer(
    out: Annotated[
        Path, Option("--out", help="Folder of the page: new, empty, or an earlier explorer.")
    ] = Path("explorer"),
) -> None:
    """Builds the explorer: one page that computes dot products in the browser, without a server."""
    from golden.publish.explorer import build

    files = build.build(out)
    size = sum(file.stat().st_size for file in files)
    typer.echo(f"{out / 'index.html'}: {len(files)} files, {size / 1e6:.1f} MB", err=True)


def check(
    folder: Annotated[
        Path, Argument(metavar="SITE", help="Folder that docs build wrote.", show_default=False)
    ],
) -> None:
    """Checks whether a site is up to date with the specs, timings, pages and vectors.

    Exit status: 0 up to date, 1 out of date.
    """
    from golden.publish import stale

    changes = stale.changes(folder)
    for change in changes:
        typer.echo(change)
    if changes:
        typer.echo(f"{folder} is stale: build it again with mmagold docs build --out {folder}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{folder} is up to date", err=True)


def export(
    name: Annotated[
        str,
        Argument(
            metavar="NAME",
            help="architecture:instruction, an architecture, or the .yaml file of a unit.",
            autocompletion=completion.document,
            show_default=False,
        ),
    ],
    form: Annotated[
        str, Option("--format", help="md, html, pdf or json.", autocompletion=lambda: _FORMS)
    ] = "md",
    out: Annotated[
        Path | None, Option("--out", help="File to write (default: stdout; of pdf, NAME.pdf).")
    ] = None,
) -> None:
    """Writes one instruction, unit or architecture as a document."""
    document(Request(name, out, None, None, form))


def notebook(
    page: Annotated[
        str, Argument(metavar="PAGE", help="Name of a page in docs/, such as gemm.", show_default=False)
    ],
    out: Annotated[Path | None, Option("--out", help="File to write (default: PAGE.ipynb).")] = None,
) -> None:
    """Writes a page of the documentation as a Jupyter notebook, with the output of its code."""
    from golden.files.output import write_text
    from golden.publish import guides

    path = out or Path(f"{page}.ipynb")
    write_text(path, guides.notebook(page))
    typer.echo(f"{path}: written", err=True)


def add_commands(app: typer.Typer) -> None:
    """Hangs the commands into `mmagold docs`."""
    for command in (build, check, explorer, export, notebook):
        app.command()(command)
