"""The command `mmagold vectors`: writes vector files, and checks them against their manifests."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from golden.cli.arguments import Arch, OptionalName, Seed, print_json
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
    name: OptionalName = None,
    level: Annotated[
        str,
        Option(
            "--level",
            help="What a vector holds. dot: one dot product. tile: whole matrices. fragment: the registers "
            "of all lanes.",
            autocompletion=lambda: ["dot", "tile", "fragment"],
        ),
    ] = "dot",
    count: Annotated[int, Option("--count", min=0, help="Number of vectors.")] = 20_000,
    seed: Seed = 1,
    kinds: Annotated[
        str | None,
        Option(
            "--kinds",
            help="Kinds of operands and their shares, such as narrow=2,tie=1 (default: all kinds, see "
            "--list-kinds).",
        ),
    ] = None,
    format_: Annotated[
        str | None,
        Option(
            "--format",
            help="readmemh, testfloat, npz, csv, jsonl or sv (default: by the suffix of --out).",
            autocompletion=lambda: ["readmemh", "testfloat", "npz", "csv", "jsonl", "sv"],
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", help="File of the vectors. Its manifest is FILE.manifest.json next to it."),
    ] = None,
    signals: Annotated[
        bool,
        Option("--signals", help="Also write the intermediate values of every step; only with --level dot."),
    ] = False,
    check: Annotated[
        Path | None,
        Option("--check", help="Check this file of vectors against its manifest, and write nothing."),
    ] = None,
    columns: Annotated[
        str | None,
        Option(
            "--columns",
            help="With --check: compare the results of a file without a manifest with NAME. Its columns "
            "(a,b,c,d,flags; - skips one), or .npz keys (a=x).",
        ),
    ] = None,
    mode: Annotated[
        str | None, Option("--mode", help="Only this mode of a unit with modes, such as 0x3 (default: all).")
    ] = None,
    list_kinds: Annotated[bool, Option("--list-kinds", help="List the kinds of operands.")] = False,
    arch: Arch = None,
    as_json: Annotated[
        bool, Option("--json", help="Print the manifest, the comparison or the kinds as JSON.")
    ] = False,
) -> None:
    """Writes test vectors with expected results and a manifest, or checks a file of vectors.

    Exit status: 0 done; 1 with --columns, a result in the file differs; 2 an error, or a file that does not
    match its manifest.
    """
    from golden.errors import OperandError
    from golden.vectors.files import format_of

    if list_kinds:
        _list_kinds(as_json)
        return
    if columns is not None and (check is None or name is None):
        raise OperandError(
            "option --columns goes with --check FILE and NAME: whose results the file should hold"
        )
    if check is not None:
        if columns is not None:
            _compare(check, _unit(str(name), arch, mode), columns, as_json)
        else:
            _check(check, name, arch, as_json)
        return
    if name is None or out is None:
        raise OperandError(
            f"argument '{'NAME' if name is None else '--out'}' is missing, expected NAME --out FILE"
        )
    ins = _unit(name, arch, mode)
    files = {out: ins}
    if ins.modes is not None and format_of(out, format_) == "testfloat":  # a mode is an option of TestFloat
        files = {_of_mode(out, ins, code): unit for code, unit in ins.mode_units.items()}
    for file, unit in files.items():
        made = _write(file, unit, count, seed, level, parse_kinds(kinds), format_, signals)
        _report(made, file, "written", as_json)


def _unit(name: str, arch: str | None, mode: str | None) -> Instruction:
    """The unit of a name; with `mode` the one of that mode alone."""
    from golden.catalog.lookup import resolve
    from golden.errors import OperandError

    ins = resolve(name, arch)
    if mode is None:
        return ins
    code = int(mode, 0) if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", mode) else -1
    if code not in ins.mode_units:
        known = ", ".join(f"{one:#x}" for one in ins.mode_units)
        raise OperandError(
            f"mode is '{mode}', expected {f'one of {known}' if known else 'none: it has no modes'}"
        )
    return ins.of_mode(code)


def _of_mode(out: Path, ins: Instruction, code: int) -> Path:
    """The file of one mode: fma.txt is fma-toward_zero.txt."""
    from golden.program.modes import spelt

    assert ins.modes is not None
    values = dict(ins.modes.codes())[code]
    return out.with_name("-".join((out.stem, *map(spelt, values.values()))) + out.suffix)


def _compare(path: Path, ins: Instruction, columns: str, as_json: bool) -> None:
    """Holds a file that others made against a unit; exit status 1 where it says something else."""
    from golden.vectors import foreign

    found = foreign.compare(path, ins, columns)
    if as_json:
        print_json(asdict(found))
    else:
        what = " and ".join(found.compared)
        verdict = f"all have the {what} of {ins.name}" if not found.wrong else f"{found.wrong} differ"
        typer.echo(f"{path}: {counted(found.count, 'vector')}: {verdict}")
        for one in found.first:
            typer.echo(
                f"  {path}:{one.place}: {one.name} is {one.found:#x}, {ins.name} gives {one.wanted:#x}"
            )
    if found.wrong:
        raise typer.Exit(1)


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
        print_json(made.as_dict())
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
        print_json(described)
        return
    for kind, text in described.items():
        typer.echo(f"{kind:<20} {text}")
