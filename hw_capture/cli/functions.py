"""The command `mmagold capture-functions`: the special-function unit of this GPU, code for code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from golden.cli.arguments import Json
from golden.cli.progress import progress_bar
from hw_capture.cli.app import check_writable, pattern
from hw_capture.cli.arguments import Gpu, architecture


def capture_functions(
    arch: Annotated[
        str, typer.Option(callback=architecture, help="Architecture of the functions.")
    ] = "hopper",
    only: Annotated[
        str | None, typer.Option("--only", metavar="REGEX", help="Only functions whose name matches.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Archive (.npz) of words and digests; its manifest is .json.")
    ] = None,
    gpu: Gpu = 0,
    as_json: Json = False,
) -> None:
    """Compares the special-function unit of this GPU with the model.

    Each function runs for all of its codes, 2^32 or 2^16. The command counts the results that differ.

    Exit status: 0 none differs, 1 some do, 2 something could not be run.
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
        typer.echo(json.dumps(manifest, indent=1))
    else:
        for one in outcomes:
            first = f", the first at {', '.join(f'{code:#x}' for code in one.first[:4])}" if one.first else ""
            typer.echo(f"{one.name}: {one.differences} of {counted(one.codes, 'result')} differ{first}")
    if any(one.differences for one in outcomes):
        raise typer.Exit(1)
