"""A run of `mmagold bench-gpu`, and `mmagold bench-board`: all files of spec/timing that a board has."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from golden.cli.progress import progress_bar
from hw_capture.cli.arguments import Gpu, GpuArch


@dataclass(frozen=True)
class Run:
    """Architecture, number of the GPU, runs of each point, and the files to write."""

    arch: str
    gpu: int
    runs: int
    out: Path | None
    csv: Path | None

    def write(self, yaml_text: str, csv_text: str) -> None:
        """Writes the requested files, each whole or not at all; compressed where the name ends
        with .gz."""
        from golden.files.output import write_whole

        def write(path: Path | None, text: str) -> None:
            if path is not None:
                data = text.encode()
                content = gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
                write_whole(path, lambda stream: stream.write(content))

        write(self.out, yaml_text)
        write(self.csv, csv_text)


class Part(StrEnum):
    """What is in one file of a board: the groups of `bench-gpu`, and whole products."""

    MATRIX = "matrix"
    WMMA = "wmma"
    SCALAR = "scalar"
    MEMORY = "memory"
    KERNELS = "kernels"


def bench_board(
    board: Annotated[
        Path,
        Argument(
            metavar="BOARD",
            help="Start of the names of the files to write, such as spec/timing/hopper_h100.",
            show_default=False,
        ),
    ],
    part: Annotated[
        list[Part] | None, Option("--part", help="Only this part (default: all). Can be repeated.")
    ] = None,
    arch: GpuArch = "hopper",
    gpu: Gpu = 0,
) -> None:
    """Records the timings of the GPU in this machine, in one file for each part.

    The parts are matrix instructions, wmma, scalar instructions, memory and whole products (kernels). A
    second file (.csv.gz) of each part has every point.

    Exit status: 0 done, 1 a product differs from the model, 2 an error, or a part was not recorded. The other
    parts are written.
    """
    from golden.catalog.timing import of_board
    from hw_capture.cli.app import check_writable
    from hw_capture.errors import HwError
    from hw_capture.gpu import device
    from hw_capture.record.capture import target_for

    if board.suffix or not board.name:
        raise typer.BadParameter(f"'{board}', expected a name without suffix", param_hint="BOARD")
    parts = list(dict.fromkeys(part or Part))
    runs = {}
    for one in parts:
        stem = board.with_name(of_board(board.name, one))
        out, csv = stem.with_name(f"{stem.name}.yaml"), stem.with_name(f"{stem.name}.csv.gz")
        check_writable(out, csv)
        runs[one] = Run(arch, gpu, 9 if one is Part.KERNELS else 5, out, csv)
    with device.open(gpu) as opened:  # what would hinder every part is said once
        target_for(arch, opened.facts())
    failed = []
    for one, run in runs.items():
        try:
            _record(one, run)
        except HwError as error:
            typer.echo(f"{one}: {error}", err=True)
            failed.append(f"--part {one}")
    if failed:
        raise HwError(
            f"{len(failed)} of {len(parts)} parts were not recorded whole; again with {' '.join(failed)}"
        )


def _record(part: Part, run: Run) -> None:
    from hw_capture.cli import ablation
    from hw_capture.cli.timing import Group, wanted
    from hw_capture.timing.ablation.variants import SIZES, all_variants

    typer.echo(f"{run.out}")
    if part is Part.KERNELS:
        ablation.record(all_variants(run.arch), run, SIZES)
        return
    with progress_bar() as progress:
        wanted(Group(part), run.arch, "").record(run, progress)
