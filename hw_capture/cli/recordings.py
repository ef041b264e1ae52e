"""The commands `mmagold capture-products` and `mmagold capture-functions`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from golden.cli.arguments import Json, Seed, print_json
from golden.cli.progress import progress_bar
from hw_capture.cli.app import check_writable, pattern
from hw_capture.cli.arguments import Gpu, architecture


def capture_products(
    out: Annotated[Path, Option("--out", help="Folder of the results and their manifest.")],
    only: Annotated[
        str | None,
        Option("--only", metavar="REGEX", help="Only products whose name matches this regular expression."),
    ] = None,
    seed: Seed = 1,
    spread: Annotated[
        int, Option("--spread", min=0, max=60, help="Range of the operands: from 2^-SPREAD to 2^SPREAD.")
    ] = 6,
    shape: Annotated[
        list[str] | None,
        Option("--shape", help="Shape MxNxK, instead of the default shapes. Can be repeated."),
    ] = None,
    held_out: Annotated[
        bool,
        Option(
            "--held-out", help="Record the products of vectors/kernels/held_out, which have fixed options."
        ),
    ] = False,
    triton_types: Annotated[
        bool, Option("--triton-types", help="Record only Triton's tl.dot, with more types.")
    ] = False,
    markdown: Annotated[
        Path | None,
        Option(
            "--markdown", help="Also write a table of calls, kernels and plans to this file, as Markdown."
        ),
    ] = None,
    digests: Annotated[
        Path | None,
        Option("--digests", help="Also write a manifest with digests, not results, to this file."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Records matrix products of cuBLAS, cuSPARSELt and Triton on the GPU in this machine, with PyTorch."""
    from golden.files.output import write_text
    from golden.kernels.masks import parse_shape
    from hw_capture.cli.app import check_writable
    from hw_capture.products import cases, explain, record

    check_writable(markdown)
    check_writable(digests)
    matching = pattern(only) or (lambda name: True)
    usual = cases.TRITON_SHAPES if triton_types else cases.SHAPES
    shapes = tuple(parse_shape(text) for text in shape) if shape else usual
    if held_out and (shape or seed != 1 or spread != 6):
        raise typer.BadParameter(
            "cannot be combined with --shape, --seed and --spread", param_hint="--held-out"
        )
    if held_out and triton_types:
        raise typer.BadParameter("cannot be combined with --held-out", param_hint="--triton-types")
    drawn = cases.triton_types if triton_types else cases.cases
    every = cases.held_out() if held_out else drawn(seed, shapes, spread)
    chosen = [case for case in every if matching(case.name)]
    if not chosen:
        if only is None:
            raise typer.BadParameter(
                f"no call can compute the shape {', '.join(shape or ())}", param_hint="--shape"
            )
        raise typer.BadParameter(f"no product matches '{only}'", param_hint="--only")
    with progress_bar(not as_json) as progress:
        report = record.record(chosen, out, progress)
    if markdown is not None:
        write_text(markdown, explain.table(record.load(out)))
    if digests is not None:
        record.write_digests(out, digests)
    if as_json:
        typer.echo(json.dumps(asdict(report) | {"refused": dict(report.refused)}))
        return
    typer.echo(
        f"{report.recorded} products recorded in {out}, {report.explained} of them equal to a named plan, "
        f"{len(report.refused)} refused"
    )
    for name, why in report.refused:
        typer.echo(f"  {name}: {why}")


def capture_functions(
    arch: Annotated[str, Option(callback=architecture, help="Architecture or card of the GPU.")] = "hopper",
    only: Annotated[
        str | None,
        Option("--only", metavar="REGEX", help="Only functions whose name matches this regular expression."),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            help="Write the results and digests to this file (.npz), and a manifest next to it (.json).",
        ),
    ] = None,
    gpu: Gpu = 0,
    as_json: Json = False,
) -> None:
    """Compares the special-function unit of the GPU in this machine with the model.

    Each function runs for all of its codes, 2^32 or 2^16. The command prints how many results differ.

    Exit status: 0 equal, 1 a result differs, 2 an error.
    """
    from golden.errors import OperandError, counted
    from hw_capture.campaign import functions
    from hw_capture.gpu import device
    from hw_capture.kernels import toolchain
    from hw_capture.record.capture import target_for

    matching = pattern(only) or (lambda name: True)
    chosen = [name for name in functions.names(arch) if matching(name)]
    if not chosen:
        raise OperandError(f"no function of {arch} matches '{only}', expected such as 'ex2'")
    check_writable(out)
    compiler = toolchain.version(toolchain.require("nvcc"))
    outcomes = []
    with device.open(gpu) as opened, progress_bar(not as_json) as progress:
        facts = opened.facts()
        target = target_for(arch, facts)
        for index, name in enumerate(chosen):
            progress(name, index, len(chosen))
            outcomes.append(functions.sweep(opened, arch, name, target))
    manifest = functions.manifest(arch, facts, compiler, outcomes)
    if out is not None:
        functions.write(out, manifest, outcomes)
    if as_json:
        print_json(manifest)
    else:
        for one in outcomes:
            first = f", the first at {', '.join(f'{code:#x}' for code in one.first[:4])}" if one.first else ""
            typer.echo(f"{one.name}: {one.differences} of {counted(one.codes, 'result')} differ{first}")
    if any(one.differences for one in outcomes):
        raise typer.Exit(1)
