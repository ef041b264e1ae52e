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
            help="python:file.py:function, program:COMMAND, gpu:NAME, dut.yaml, architecture:NAME, "
            "unit.yaml; or recorded results: captured:architecture:NAME, recording:FILE.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, Option("--out", help="Write the unit's YAML here.")] = None,
    report: Annotated[
        list[Path] | None,
        Option("--report", help="Write the report here: .md, .html or .pdf; may be given several times."),
    ] = None,
    formats: Annotated[
        str | None,
        Option(
            "--formats",
            help="Functions and programs: formats, a=f16,b=f16,c=f32,d=f32; b and c may be missing.",
        ),
    ] = None,
    k: Annotated[
        int | None, Option("--k", min=1, help="Functions and programs: products of a dot product.")
    ] = None,
    scale_block: Annotated[
        int | None,
        Option("--scale-block", min=1, help="With block scales: elements that share a scale."),
    ] = None,
    pattern: Annotated[
        str | None, Option("--pattern", help="With a sparse a: 2:4, 1:2 or 4:8 pairs.")
    ] = None,
    modes: Annotated[int | None, Option("--modes", help="With an operand mode: the number of modes.")] = None,
    state: Annotated[
        bool, Option("--state", help="A unit that keeps its accumulator: clear instead of c.")
    ] = False,
    seconds: Annotated[float, Option("--seconds", help="Seconds in which dot products run on the box.")] = 60,
    asks: Annotated[
        int, Option("--asks", min=500, help="Limit on the dot products that run on the box.")
    ] = 400_000,
    seed: Seed = 0,
    resume: Annotated[
        Path | None,
        Option(
            "--continue",
            help="Save the state of the search to this file; if the file exists, continue from it.",
        ),
    ] = None,
    near: Annotated[
        str | None,
        Option("--near", help="What it should be, architecture:NAME or unit.yaml; the search begins there."),
    ] = None,
    solver: Annotated[
        float,
        Option(
            "--solver",
            min=0,
            help="Seconds of --seconds for a solver that separates candidates which fit all answers.",
        ),
    ] = 0.0,
    timings: Timings = False,
    as_json: Json = False,
) -> None:
    """Finds the specification of a black box by running it.

    Exit status: 0 explained; 1 the best candidate still differs, or a limit ended the check; 2 no candidate,
    or `--out` could not be written: standard error says why.
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
