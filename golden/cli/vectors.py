"""The command `mmagold vectors`: writes vector files, and checks them against their manifests."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from golden.cli import completion
from golden.cli.progress import progress_bar
from golden.errors import counted

if TYPE_CHECKING:
    from golden.model.instruction import Instruction
    from golden.vectors.manifest import Manifest


def parse_kinds(text: str | None) -> dict[str, float] | None:
    """Reads `narrow=2,tie=1,zeros`; a kind without a weight has 1."""
    from golden.errors import OperandError

    if text is None:
        return None
    weights: dict[str, float] = {}
    for item in filter(None, (word.strip() for word in text.split(","))):
        name, _, weight = (part.strip() for part in item.partition("="))
        try:
            weights[name] = float(weight or 1)
        except ValueError:
            raise OperandError(
                f"--kinds: weight of '{name}' is '{weight}', expected a number such as 2"
            ) from None
    return weights


def vectors(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="architecture:instruction, or the .yaml file of a unit.",
            autocompletion=completion.instruction,
        ),
    ] = None,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            help="dot, tile or fragment (registers of the lanes).",
            autocompletion=lambda: ["dot", "tile", "fragment"],
        ),
    ] = "dot",
    count: Annotated[int, typer.Option("--count", min=0, help="Vectors to write.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the operands.")] = 1,
    kinds: Annotated[
        str | None, typer.Option("--kinds", help="Weights by kind, as narrow=2,tie=1; default: all alike.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="readmemh, testfloat, npz, csv, jsonl or sv; default: by the suffix.",
            autocompletion=lambda: ["readmemh", "testfloat", "npz", "csv", "jsonl", "sv"],
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write, with FILE.manifest.json next to it.")
    ] = None,
    signals: Annotated[
        bool, typer.Option("--signals", help="Add the intermediate values of every step (level dot).")
    ] = False,
    check: Annotated[
        Path | None, typer.Option("--check", help="Check a file against its manifest instead.")
    ] = None,
    list_kinds: Annotated[bool, typer.Option("--list-kinds", help="List the stimulus kinds.")] = False,
    arch: Annotated[str | None, typer.Option("--arch", help="Architecture of NAME.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the manifest (or the kinds) as JSON.")
    ] = False,
) -> None:
    """Writes test vectors with expected results: operands by structure, packed words, a manifest; or
    checks a file."""
    from golden.catalog.lookup import resolve

    if list_kinds:
        _list_kinds(as_json)
        return
    if check is not None:
        _check(check, name, arch, as_json)
        return
    if name is None or out is None:
        from golden.errors import OperandError

        raise OperandError(
            f"argument '{'NAME' if name is None else '--out'}' is missing, expected NAME --out FILE"
        )
    made = _write(out, resolve(name, arch), count, seed, level, parse_kinds(kinds), format_, signals)
    _report(made, out, "written", as_json)


def _write(
    out: Path,
    ins: Instruction,
    count: int,
    seed: int,
    level: str,
    weights: dict[str, float] | None,
    form: str | None,
    with_signals: bool,
) -> Manifest:
    """Writes with a progress bar on stderr, where that is a terminal."""
    from golden.vectors import files

    with progress_bar() as progress:
        show = partial(progress, "writing")
        return files.write_stream(out, ins, count, seed, level, weights, form, with_signals, show)


def _check(path: Path, name: str | None, arch: str | None, as_json: bool) -> None:
    from golden.catalog.lookup import resolve
    from golden.vectors import files

    _report(files.check(path, None if name is None else resolve(name, arch)), path, "unchanged", as_json)


def _report(made: Manifest, path: Path, what: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(made.as_dict(), indent=2))
        return
    width = f"{made.operand_width} + {made.result_width} bits"
    typer.echo(f"{path}: {what}: {counted(made.count, 'vector')} of {made.architecture}:{made.instruction}")
    typer.echo(
        f"  {made.format}, level {made.level}, {width}, seed {made.seed}, "
        f"{counted(len(made.classes), 'kind')}, sha256 {made.sha256}"
    )


def _list_kinds(as_json: bool) -> None:
    from golden import stimuli

    described = {kind: stimuli.describe(kind) for kind in stimuli.KINDS}
    if as_json:
        typer.echo(json.dumps(described, indent=2))
        return
    for kind, text in described.items():
        typer.echo(f"{kind:<20} {text}")
