"""The commands `mmagold capture` and `mmagold verify`,
and what hangs all commands of hw_capture into `mmagold`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from golden.cli.arguments import Json, Seed, print_json
from golden.cli.progress import progress_bar
from golden.errors import counted, listed
from golden.workers import MOST_WORKERS
from hw_capture.cli.arguments import Gpu, OnlyRegex

if TYPE_CHECKING:
    from golden.identify.blackbox.plugins import Chip
    from golden.unit import Unit
    from hw_capture.record.store import Options, Report


def pattern(text: str | None) -> Callable[[str], bool] | None:
    """A test of names from a regular expression; a wrong one is the user's error."""
    if text is None:
        return None
    try:
        expression = re.compile(text)
    except re.error as error:
        raise typer.BadParameter(
            f"'{text}' is not a regular expression: {error}", param_hint="--only"
        ) from None
    return lambda name: expression.search(name) is not None


def check_writable(*paths: Path | None) -> None:
    """Refuses a file that cannot be written, before the work that fills it."""
    from golden.files.output import check

    for path in paths:
        if path is not None:
            check(path)


def _columns(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"'{text}', expected numbers separated by commas, such as 8,64", param_hint="--n"
        ) from None


def capture(
    arch: Annotated[
        str, Option("--arch", help="Architecture (hopper), card (h100) or compiler target (sm_90a).")
    ],
    out: Annotated[
        Path | None,
        Option(
            "--out",
            help="Folder of the recorded files and their manifest, such as vectors/hopper. Required without "
            "--compile-only.",
        ),
    ] = None,
    only: OnlyRegex = None,
    n: Annotated[str | None, Option("--n", help="Of wgmma and tcgen05: only these N, such as 8,64.")] = None,
    seed: Seed = 1,
    per_kind: Annotated[
        int, Option("--per-kind", min=1, help="Number of tiles of each kind of operands.")
    ] = 1,
    max_mib: Annotated[
        int, Option("--max-mib", min=1, help="Largest size of all files together, in MiB.")
    ] = 40,
    gpu: Gpu = 0,
    jobs: Annotated[
        int, Option("--jobs", min=1, max=MOST_WORKERS, help="Number of compilers that run in parallel.")
    ] = max(1, min(os.cpu_count() or 1, 16)),
    compile_only: Annotated[
        bool,
        Option("--compile-only", help="Only compile the kernels and check their machine code. Needs no GPU."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Records results of the GPU in this machine, or of its CPU (--arch sapphire_rapids).

    It writes files and their manifest to --out. A second call continues where the first one stopped.

    Exit status: 0 done, 1 a new result or a kernel differs from the specification, 2 an error, or an
    instruction was not recorded.
    """
    from golden.catalog.architectures import get_architecture
    from golden.catalog.resolver import resolver
    from hw_capture.cpu import machine
    from hw_capture.kernels import build
    from hw_capture.record.store import Options

    options = Options(seed, per_kind, jobs, max_mib << 20)
    unknown_target = arch.startswith(("sm_", "gfx")) and resolver().meant(arch) is None
    architecture = build.architecture_of(arch) if unknown_target else resolver().called(arch)
    if machine.architecture_runs_here(architecture):
        if compile_only or n:
            raise typer.BadParameter(
                f"'{arch}' is a CPU, which has no --compile-only and no --n", param_hint="--arch"
            )
        _capture_cpu(architecture, out, only, options, as_json)
        return
    chosen, left = build.select(architecture, pattern(only), _columns(n))
    if not chosen:
        raise _none_chosen(architecture, only, n, left)
    if compile_only:
        target = arch if arch in get_architecture(architecture).targets else build.first_target(architecture)
        _compile_only(chosen, left, target, jobs, as_json)
        return
    if out is None:
        raise typer.BadParameter("missing, expected a folder such as vectors/hopper", param_hint="--out")
    from hw_capture.gpu import device, hip_device
    from hw_capture.record.capture import capture as record
    from hw_capture.record.runner import GpuRunner

    opened = device.open(gpu) if build.nvcc_compiles(architecture) else hip_device.open(gpu)
    with opened as card, progress_bar(not as_json) as progress:
        report = record(chosen, out, GpuRunner(card), options, progress)
    _print_capture(report, out, as_json)
    _end(bool(report.differ or report.strange), [name for name, _ in report.failed], "recorded")


def _capture_cpu(
    architecture: str, out: Path | None, only: str | None, options: Options, as_json: bool
) -> None:
    """The same of the CPU in this machine."""
    import golden
    from golden.errors import no_match
    from hw_capture.cpu import machine
    from hw_capture.cpu import machine as cpu_capture

    if out is None:
        raise typer.BadParameter(
            "missing, expected a folder such as vectors/sapphire_rapids", param_hint="--out"
        )
    matching = pattern(only)
    everything = golden.instructions(architecture)
    chosen = [ins for ins in everything if machine.supported(ins) and (not matching or matching(ins.name))]
    if not chosen:
        raise no_match(f"instruction of {architecture}", only or "", [ins.name for ins in everything])
    cpu = machine.open()
    with progress_bar(not as_json) as progress:
        report = cpu_capture.capture(cpu, chosen, out, options, progress)
    _print_capture(report, out, as_json)
    _end(bool(report.differ), [name for name, _ in report.failed], "recorded")


def _end(unequal: bool, failed: list[str], what: str) -> None:
    """Status 1 where something is not equal; else an error where something could not be looked at:
    equality is not known."""
    from hw_capture.errors import HwError

    if unequal:
        raise typer.Exit(1)
    if failed:
        raise HwError(f"{listed(failed, 1)} could not be {what}")


def _none_chosen(
    architecture: str, only: str | None, n: str | None, left: list[tuple[str, str]]
) -> Exception:
    """Why a choice of instructions is empty."""
    from golden.catalog import architectures
    from golden.errors import no_match
    from hw_capture.errors import NoKernelError

    names = architectures.get_architecture(architecture).names()
    if left:
        return NoKernelError(f"none of the {len(left)} instructions chosen has a kernel: {left[0][1]}")
    matching = pattern(only)
    if only and matching and not any(matching(name) for name in names):
        return no_match(f"instruction of {architecture}", only, names)
    swept = (name for name, (entry, _) in names.items() if entry.family.fixed.swept)
    return no_match(f"instruction of {architecture} with a choice of N", f"n{n}k", swept)


def _print_capture(report: Report, out: Path, as_json: bool) -> None:
    if as_json:
        print_json(vars(report))
        return
    for name, reason in report.strange + report.failed:
        typer.echo(f"not recorded: {name}: {reason}")
    for name, count in report.differ:
        typer.echo(f"differs from the model: {name}: {count} results (mmagold verify says where)")
    kept = f"{report.kept} already there{' (not compared again: mmagold verify does)' if report.kept else ''}"
    typer.echo(f"{out}: {report.recorded} recorded, {kept}, {report.nbytes / (1 << 20):.1f} MiB")


def _compile_only(
    chosen: list[Any], left: list[tuple[str, str]], target: str, jobs: int, as_json: bool
) -> None:
    """Builds and checks every kernel; prints what is wrong; exit status 1 if a kernel is not what
    the spec says."""
    from hw_capture.kernels import build

    late = [(ins.name, reason) for ins in chosen if (reason := build.too_new(ins))]
    skipped = {name for name, _ in late}
    groups = build.groups([ins for ins in chosen if ins.name not in skipped])
    rows: list[dict[str, Any]] = []
    with progress_bar(not as_json) as progress, closing(build.build(groups, target, jobs, progress)) as built:
        for group in built:
            rows += [_row(one) for one in group]
    wrong, strange = ([row for row in rows if row[key]] for key in ("error", "strange"))
    if as_json:
        print_json({"target": target, "kernels": rows, "skipped": dict(left + late)})
    else:
        for row in wrong:
            typer.echo(f"{row['name']} ({row['form']}): {row['error']}")
        emulated = len({row["name"] for row in rows if row["emulated"]})
        for name, reason in late:
            typer.echo(f"skipped: {name}: {reason}")
        if left:
            typer.echo(f"skipped: {counted(len(left), 'instruction')}: {left[0][1]}")
        names = len({row["name"] for row in rows})
        typer.echo(
            f"{target}: {counted(names, 'instruction')} ({emulated} emulated), "
            f"{counted(len(rows), 'kernel')}, {len(strange)} not as the spec says"
        )
    failed = [row["name"] for row in wrong if not row["strange"]]
    _end(bool(strange), failed or ([] if rows else [ins.name for ins in chosen]), "compiled")


def _row(one: Any) -> dict[str, Any]:
    from hw_capture.kernels.sass import counted, mnemonic

    became = counted(mnemonic(line) for line in one.sass)
    ins = one.instruction
    about = {"name": ins.name, "form": one.form, "emulated": ins.emulated, "sass": became}
    return {**about, "error": one.error, "strange": one.strange}


def verify(
    folder: Annotated[
        Path, Argument(metavar="FOLDER", help="Folder of recorded vectors: vectors or vectors/hopper.")
    ] = Path("vectors"),
    only: OnlyRegex = None,
    reference: Annotated[
        int,
        Option(
            "--reference",
            min=0,
            help="Number of dot products of each tile that the slow reference model also computes (0: all).",
        ),
    ] = 1,
    layouts: Annotated[
        bool,
        Option(
            "--layouts",
            help="Replay with wrong register layouts, to show that the recorded results refute each of them.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Computes recorded vectors again with both models, and compares the results. Needs no GPU.

    Exit status: 0 equal, 1 a result differs (--layouts: a wrong layout is not refuted), 2 an error.
    """
    from hw_capture.record.verify import verify as replay

    _check_names(folder, only)
    if layouts:
        _verify_layouts(folder, only, as_json)
        return
    with progress_bar(not as_json) as progress:
        report = replay(folder, matching=pattern(only), reference=reference, progress=progress)
    if as_json:
        print_json(report.as_dict())
    else:
        for item in report.differences:
            typer.echo(item.sentence())
            if item.trace:
                typer.echo(f"  to blame: {item.blame}\n{item.trace}\n")
        typer.echo(
            f"{counted(report.instructions, 'instruction')}, {report.results:,} results through the core, "
            f"{report.reference_results:,} of them through the reference: "
            f"{'no difference' if report.passed else f'{len(report.differences)} differences'}"
        )
    if not report.passed:
        raise typer.Exit(1)


def _check_names(folder: Path, only: str | None) -> None:
    """Refuses a filter that chooses nothing, and says on stderr which files no manifest names."""
    from golden.errors import no_match
    from hw_capture.record.verify import names, unlisted

    known, matching = names(folder), pattern(only)
    if not any(matching is None or matching(name) for name in known):
        raise no_match(f"captured instruction of {folder}", only or "", known)
    for path in unlisted(folder):
        typer.echo(f"not replayed: {path}: its manifest does not name it", err=True)


def _verify_layouts(folder: Path, only: str | None, as_json: bool) -> None:
    """Plants wrong layouts in the captured vectors; exit status 1 if one is not refuted."""
    from hw_capture.record.placement_faults import plant

    with progress_bar(not as_json) as progress:
        report = plant(folder, matching=pattern(only), progress=progress)
    if as_json:
        print_json(report.as_dict())
    else:
        for item in report.missed:
            typer.echo(f"not refuted: {item.instruction}, {item.operand}: {item.fault}: {item.why}")
        elsewhere = len(report.unseen) - len(report.missed)
        typer.echo(
            f"{counted(report.instructions, 'instruction')}, "
            f"{counted(sum(report.planted.values()), 'wrong placement')}: "
            f"{report.seen:,} refuted by the instruction's own results, {elsewhere:,} by those of another "
            f"shape of its layout, {report.undefined:,} only by metadata that means nothing, "
            f"{len(report.missed):,} not"
        )
    if not report.passed:
        raise typer.Exit(1)


def _open_box(text: str) -> Unit | None:
    """open_box of hw_capture/record/unit.py, imported when a text is looked up: help waits for
    no catalogue."""
    from hw_capture.record.unit import open_box

    return open_box(text)


def _open_chip() -> Chip:
    """open_chip of hw_capture/record/unit.py, imported in the same way."""
    from hw_capture.record.unit import open_chip

    return open_chip()


def add_commands(app: typer.Typer) -> None:
    """Hangs the commands of hw_capture into `mmagold`, gpu:NAME into `mmagold dissect` and the GPU into
    `mmagold study`; the entry point that pyproject.toml names."""
    from golden.identify.blackbox.plugins import CHIPS, OPENERS
    from hw_capture.cli import ablation, campaign, invariance, profile, recordings, sass, timing

    OPENERS.append(_open_box)
    CHIPS.append(_open_chip)
    app.command()(capture)
    app.command()(verify)
    app.command()(campaign.campaign)
    app.command()(recordings.capture_products)
    app.command()(recordings.capture_functions)
    app.command()(invariance.invariance)
    app.command()(ablation.bench_kernels)
    app.command()(sass.sass)
    profile.add_commands(app)
    timing.add_commands(app)
