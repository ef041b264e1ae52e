"""The command `mmagold dissect`: asks a black box until its specification is known, and writes that."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from golden.cli.arguments import Json, Seed, print_json
from golden.cli.progress import Timings, progress_bar


def dissect(
    box: Annotated[
        str,
        Argument(
            metavar="BLACKBOX",
            help="What to run: python:file.py:function, program:COMMAND, gpu:NAME, a dut.yaml, "
            "architecture:NAME or unit.yaml. Or recorded results: captured:architecture:NAME, "
            "recording:FILE.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, Option("--out", help="Write the specification to this .yaml file.")] = None,
    report: Annotated[
        list[Path] | None,
        Option("--report", help="Also write the report to this file: .md, .html or .pdf. Can be repeated."),
    ] = None,
    formats: Annotated[
        str | None,
        Option(
            "--formats",
            help="Of a function or program: formats, such as a=f16,b=f16,c=f32,d=f32. b and c are optional.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        Option("--k", min=1, help="Of a function or program: number of products in a dot product."),
    ] = None,
    scale_block: Annotated[
        int | None,
        Option(
            "--scale-block",
            min=1,
            help="Number of elements that share a block scale (default: no block scales).",
        ),
    ] = None,
    pattern: Annotated[
        str | None, Option("--pattern", help="Pattern of a sparse a: 2:4, 1:2 or 4:8 pairs (default: dense).")
    ] = None,
    modes: Annotated[
        int | None, Option("--modes", help="Number of modes, if the black box has an operand mode.")
    ] = None,
    state: Annotated[
        bool, Option("--state", help="The black box keeps its accumulator: it takes clear, not c.")
    ] = False,
    seconds: Annotated[float, Option("--seconds", help="Seconds in which the black box runs.")] = 60,
    asks: Annotated[
        int, Option("--asks", min=500, help="Largest number of dot products that the black box runs.")
    ] = 400_000,
    seed: Seed = 0,
    resume: Annotated[
        Path | None,
        Option(
            "--continue",
            help="File of the search's state. If it exists, the search continues from it.",
        ),
    ] = None,
    near: Annotated[
        str | None,
        Option("--near", help="Begin the search at this unit: architecture:NAME or unit.yaml."),
    ] = None,
    solver: Annotated[
        float,
        Option(
            "--solver",
            min=0,
            help="Seconds, out of --seconds, for a solver that looks for operands on which the remaining "
            "candidates differ.",
        ),
    ] = 0.0,
    timings: Timings = False,
    as_json: Json = False,
) -> None:
    """Finds the specification of a black box by running it.

    It prints a report. Exit status: 0 found; 1 the best candidate still differs, or a limit ended its check;
    2 an error, no candidate, or one that --out cannot hold.
    """
    from golden.catalog.lookup import resolve
    from golden.errors import OperandError
    from golden.files import output
    from golden.identify.blackbox.dissecting import dissect as search
    from golden.identify.blackbox.recordings import open_recording
    from golden.identify.blackbox.sources import open_box, read_formats
    from golden.publish import dissection

    for file in report or ():
        dissection.check(file)
        output.check(file)
    if out is not None:
        output.check(out)
    named = None if formats is None else read_formats(formats)
    given = (box, named, k, scale_block, pattern)
    recording = open_recording(*given)
    unit = open_box(*given, modes, state) if recording is None else recording
    meant = None if near is None else resolve(near)
    with progress_bar() as progress:
        found = search(
            unit,
            seconds=seconds,
            asks=asks,
            seed=seed,
            progress=progress,
            resume=resume,
            near=meant,
            solver=solver,
        )
    if out is not None:
        for file, text in found.files(out).items():
            output.write_text(file, text)
    for file in report or ():
        dissection.write(found, file)
    if as_json:
        print_json(progress.with_timings(found.as_dict(), timings))
    else:
        progress.print_timings(timings)
    if found.instruction is None:
        raise OperandError(found.sentence())
    if not as_json:
        typer.echo(found.report, nl=False)
    if out is not None and found.missing:  # the report is out, the file of --out is not
        raise OperandError(f"{out} is not written: {found.missing}")
    if not found.explains:
        raise typer.Exit(1)
