"""The command `mmagold bench-kernels`: whole matrix products in a ladder of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from golden.cli.progress import progress_bar
from hw_capture.cli.arguments import Gpu, GpuArch

if TYPE_CHECKING:
    from hw_capture.cli.timing_run import Run
    from hw_capture.timing.ablation.run import Result
    from hw_capture.timing.ablation.variants import Variant

SIZE_UNIT = 256


def bench_kernels(
    out: Annotated[
        Path | None, Option("--out", help="YAML file to write, such as spec/timing/hopper_h200_kernels.yaml.")
    ] = None,
    csv: Annotated[
        Path | None, Option("--csv", help="CSV file to write, with a line for each kernel and size.")
    ] = None,
    arch: GpuArch = "hopper",
    only: Annotated[
        str, Option("--only", metavar="TEXT", help="Only kernels whose name contains this text.")
    ] = "",
    size: Annotated[
        list[int] | None,
        Option(
            "--size",
            min=SIZE_UNIT,
            help="M, N and K of the products, a multiple of 256 (default: 2048, 4096 and 8192). Can be "
            "repeated.",
        ),
    ] = None,
    runs: Annotated[
        int, Option("--runs", min=1, help="Number of runs, of 10 ms each. The result is their median.")
    ] = 9,
    gpu: Gpu = 0,
    compile_only: Annotated[
        bool,
        Option("--compile-only", help="Only compile the kernels and check their machine code. Needs no GPU."),
    ] = False,
) -> None:
    """Measures the speed of whole matrix products with and without async copies, swizzle, TMA and wgmma.

    Exit status: 0 done, 1 a product differs from the model, 2 an error, or a kernel was not measured.
    """
    from golden.errors import no_match
    from hw_capture.cli.app import check_writable
    from hw_capture.cli.timing import nvcc_target
    from hw_capture.timing.ablation.variants import SIZES, all_variants

    target = nvcc_target(arch)
    known = all_variants(arch)
    chosen = [variant for variant in known if only in variant.label]
    if not chosen:
        raise no_match(f"kernel of {arch}", only, (variant.label for variant in known))
    sizes = list(dict.fromkeys(size or SIZES))
    if wrong := [one for one in sizes if one % SIZE_UNIT]:
        raise typer.BadParameter(f"{wrong[0]}, expected a multiple of {SIZE_UNIT}", param_hint="--size")
    check_writable(out, csv)
    if compile_only:
        _report(chosen, target)
        return
    if out is None and csv is None:
        raise typer.BadParameter("missing, expected a file in --out or --csv", param_hint="--out")
    from hw_capture.cli.timing_run import Run

    record(chosen, Run(arch, gpu, runs, out, csv), sizes)


def record(chosen: list[Variant], run: Run, sizes: Sequence[int]) -> None:
    """Measures kernels at each size, writes the files and prints a table.

    Raises:
        typer.Exit: 1, a product is not as the model says; nothing is written. HwError: a kernel was not
            measured, or nothing could be.
    """
    from hw_capture.timing.ablation import report

    result = _measure(chosen, run, sizes)
    if result.points:
        run.write(report.yaml_text(result, run.arch, chosen, run.runs), report.csv_text(result))
    _summary(result)


def _report(chosen: list[Variant], target: str) -> None:
    from hw_capture.errors import HwError
    from hw_capture.timing.ablation.machine_code import Built, build

    wrong = 0
    with closing(build(chosen, target)) as built:
        for item in built:
            if isinstance(item, Built):
                held = ", ".join(f"{count} x {name}" for name, count in item.loop.items())
                typer.echo(f"{item.variant.label}: {held}")
            else:
                wrong += 1
                typer.echo(item[1])
    typer.echo(f"{target}: {len(chosen) - wrong} of {len(chosen)} kernels have the expected instructions")
    if wrong:
        raise HwError(f"{wrong} of {len(chosen)} kernels do not have the expected instructions")


def _measure(chosen: list[Variant], requested: Run, sizes: Sequence[int]) -> Result:
    from hw_capture.gpu import device
    from hw_capture.record.capture import target_for
    from hw_capture.timing.ablation import machine_code, run

    with device.open(requested.gpu) as opened, progress_bar() as progress:
        with closing(machine_code.build(chosen, target_for(requested.arch, opened.facts()))) as built:
            kernels = list(built)
        try:
            return run.measure(opened, kernels, sizes, requested.runs, progress=progress)
        except run.ResultError as error:
            typer.echo(str(error))
            raise typer.Exit(1) from None


def _summary(result: Result) -> None:
    from golden.explain.terminal import PlainConsole, table
    from hw_capture.errors import HwError

    rows = table("kernel", "size>", "cycles>", "TFLOP/s>", "of peak>")
    for p in result.points:
        cycles = f"{p.cycles[0]:,.0f}" if p.cycles else ""
        share = "" if p.share is None else f"{100 * p.share:.1f} %"
        rows.add_row(p.label, str(p.size), cycles, f"{p.teraflops:.1f}", share)
    PlainConsole().print(rows)
    left_out = result.conditions.left_out
    for label, reason in left_out.items():
        typer.echo(f"left out: {label}: {reason}", err=True)
    typer.echo(f"{sum(p.checked for p in result.points):,} elements of D equal the model")
    if missing := [label for label in left_out if not label.startswith("cublas")]:
        raise HwError(f"{len(missing)} kernels were not measured, such as {missing[0]}")
