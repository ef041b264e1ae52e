"""The command `mmagold sass`: what ptxas makes of the scalar PTX instructions, recorded and compiled anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from golden.cli.arguments import Json, print_json
from golden.cli.progress import progress_bar

if TYPE_CHECKING:
    from golden.catalog.ptx_forms import Form
    from golden.catalog.sass import Table


def _names() -> list[str]:
    from golden.catalog.ptx_forms import load

    return [form.name for form in load().forms]


def _targets() -> list[str]:
    from golden.catalog.sass import targets

    return targets()


def sass(
    name: Annotated[
        str,
        Argument(
            metavar="NAME",
            help='A PTX instruction ("mad.lo.u32"), or its first part ("mad"). Without NAME, the command '
            "lists the instructions.",
            autocompletion=_names,
        ),
    ] = "",
    arch: Annotated[
        str | None,
        Option(
            "--arch",
            help="Only this compiler target (sm_90a) or architecture (hopper).",
            autocompletion=_targets,
        ),
    ] = None,
    paper: Annotated[
        bool, Option("--paper", help="Compare the tables with Table V and the insights of Abdelkhalik et al.")
    ] = False,
    check: Annotated[
        bool,
        Option(
            "--check", help="Compile everything again and compare with the tables. Needs ptxas and nvdisasm."
        ),
    ] = False,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Compile everything again and write new tables.")
    ] = False,
    out: Annotated[
        Path | None,
        Option(
            "--out", help="With --rebuild: folder of the tables (default: spec/sass of this installation)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Shows the machine instructions that ptxas makes of a scalar PTX instruction, for every target.

    Exit status: 0 done, 1 --check found a difference, 2 an error.
    """
    from golden.catalog import sass as tables

    _check_options(name, paper, check, rebuild, out)
    chosen = tables.targets_of(arch) if arch else None
    if check:
        _check(chosen or tables.targets(), as_json)
    elif rebuild:
        _rebuild(arch, out or tables.folder())
    elif paper:
        _paper(as_json)
    elif name:
        _show(tables.find(name), chosen or tables.targets(), as_json)
    else:
        _list(as_json)


def _check_options(name: str, paper: bool, check: bool, rebuild: bool, out: Path | None) -> None:
    ways = {"a name": bool(name), "--paper": paper, "--check": check, "--rebuild": rebuild}
    given = [way for way, there in ways.items() if there]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} cannot be combined", param_hint=given[-1])
    if out is not None and not rebuild:
        raise typer.BadParameter("can be used only with --rebuild", param_hint="--out")


# Showing ----------------------------------------------------------------------------------------------------


def _list(as_json: bool) -> None:
    from golden.catalog.ptx_forms import load
    from golden.explain.terminal import PlainConsole, table

    groups: dict[str, list[Form]] = {}
    for form in load().forms:
        groups.setdefault(form.group, []).append(form)
    if as_json:
        print_json({group: [form.name for form in forms] for group, forms in groups.items()})
        return
    rows = table("group", "forms>", "such as")
    for group, forms in groups.items():
        rows.add_row(
            group, str(len(forms)), ", ".join(form.name for form in forms[:: max(1, len(forms) // 3)][:3])
        )
    PlainConsole().print(rows, highlight=False)
    typer.echo(f"{sum(map(len, groups.values()))} forms for {', '.join(_targets())}")


def _show(forms: list[Form], targets: list[str], as_json: bool) -> None:
    from golden.catalog import sass as tables
    from golden.catalog.ptx_forms import operands_text
    from golden.explain.terminal import PlainConsole, table

    loaded = {target: tables.load(target) for target in targets}
    if as_json:
        print_json([_as_dict(form, loaded) for form in forms])
        return
    rows = table("PTX", "operands", "SASS", "targets")
    for form in forms:
        for kinds in form.kinds:
            for text, where in tables.by_text(form.name, kinds, loaded).items():
                rows.add_row(form.name, operands_text(kinds), text, tables.targets_text(where, targets))
    PlainConsole().print(rows, highlight=False)
    versions = sorted({one.ptxas for one in loaded.values()})
    typer.echo(f"ptxas {', '.join(versions)}")


def _as_dict(form: Form, loaded: dict[str, Table]) -> dict[str, Any]:
    return {
        "ptx": form.name,
        "group": form.group,
        "sources": list(form.inputs),
        "results": list(form.outputs),
        "targets": {target: _target_dict(form, one) for target, one in loaded.items()},
    }


def _target_dict(form: Form, one: Table) -> dict[str, Any]:
    if form.name in one.refused:
        return {"ptxas": one.ptxas, "refused": one.refused[form.name]}
    found: dict[str, Any] = {}
    for kinds in form.kinds:
        row = one.row(form.name, kinds)
        if row is None:
            found[kinds] = {"constant": True}
        else:
            found[kinds] = {"sass": row.counts, "calls": dict(row.calls)}
    return {"ptxas": one.ptxas, "operands": found}


def _paper(as_json: bool) -> None:
    from collections import Counter

    from golden.catalog.sass import targets_text
    from golden.catalog.sass_published import VERDICTS, insights, table_v
    from golden.explain.terminal import PlainConsole, table

    published, found = table_v(), insights()
    if as_json:
        typer.echo(
            json.dumps(
                {"table V": [vars(row) for row in published], "insights": [vars(one) for one in found]}
            )
        )
        return
    rows = table("PTX", "printed", "ours (sm_80)", "operands", "")
    for row in published:
        rows.add_row(row.ptx, row.printed, row.ours, row.operands, row.verdict)
    console = PlainConsole()
    console.print(rows, highlight=False, markup=False)
    counts = Counter(row.verdict for row in published)
    typer.echo(", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS))
    for one in found:
        typer.echo(f"\n{one.number}. {one.statement}")
        for text, where in one.by_text().items():
            typer.echo(f"   {targets_text(where, list(one.found))}: {text}")


# Compiling --------------------------------------------------------------------------------------------------


def _check(targets: list[str], as_json: bool) -> None:
    """Compiles for each target and compares with the table; exit status 1 if anything differs."""
    from golden.catalog import sass as tables

    report = {}
    for target, fresh in _compiled(targets):
        recorded = tables.load(target)
        report[target] = {
            "recorded": recorded.ptxas,
            "ptxas": fresh.ptxas,
            "rows": len(fresh.rows),
            "differences": tables.differences(recorded, fresh),
        }
        if not as_json:
            _print_check(target, report[target])
    if as_json:
        print_json(report)
    if any(one["differences"] for one in report.values()):
        raise typer.Exit(1)


def _print_check(target: str, found: dict[str, Any]) -> None:
    if found["ptxas"] != found["recorded"]:
        typer.echo(f"{target}: ptxas is {found['ptxas']}, the table was made with {found['recorded']}")
    differences = found["differences"]
    # Differences of one target that --check writes out.
    shown = 20
    for line in differences[:shown]:
        typer.echo(f"{target}: {line}")
    if len(differences) > shown:
        typer.echo(f"{target}: and {len(differences) - shown} more")
    typer.echo(f"{target}: {found['rows']} rows, {len(differences) or 'none'} differ")


def _rebuild(arch: str | None, where: Path) -> None:
    from golden.catalog import sass as tables
    from golden.catalog.ptx_forms import load

    listed = load().targets
    targets = [arch] if arch in listed else tables.targets_of(arch) if arch else list(listed)
    for target, fresh in _compiled(targets):
        tables.write(fresh, where)
        typer.echo(
            f"{where / target}.csv: {len(fresh.rows)} rows, {len(fresh.refused)} forms refused, "
            f"{len(fresh.routines)} subroutines, ptxas {fresh.ptxas}"
        )


def _compiled(targets: list[str]) -> Any:
    """Each target with its table, compiled now."""
    from golden.catalog.ptx_forms import load
    from hw_capture.kernels.isolate import translate

    with progress_bar() as progress:
        for done, target in enumerate(targets):
            progress(f"compiling for {target}", done, len(targets))
            yield target, translate(load(), target)
