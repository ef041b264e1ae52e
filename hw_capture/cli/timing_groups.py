"""The groups of `mmagold bench-gpu`: each chooses what to measure, proves its loops, and records."""

from __future__ import annotations

from contextlib import closing
from typing import Protocol

import typer

from golden.errors import OperandError, no_match
from hw_capture.bench import bench, report, subjects
from hw_capture.bench.building import Progress
from hw_capture.bench.memory import bench as memory_bench
from hw_capture.bench.memory import report as memory_report
from hw_capture.bench.memory.programs import CHAINS, FLOWS
from hw_capture.bench.scalar import bench as scalar_bench
from hw_capture.bench.scalar import report as scalar_report
from hw_capture.bench.scalar.instructions import OPERATIONS
from hw_capture.cli.timing_run import Run
from hw_capture.errors import HwError
from hw_capture.gpu import device
from hw_capture.record.capture import target_for


class Measured(Protocol):
    """One group."""

    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel and prints what its loop holds; raises HwError where one is wrong."""

    def record(self, run: Run, progress: Progress) -> None:
        """Measures and writes; raises HwError where something could not be measured."""


class Matrix:
    """Matrix instructions, and what moves matrices."""

    def __init__(self, arch: str, only: str) -> None:
        everything = subjects.all_subjects(arch)
        self._chosen = subjects.select(everything, only)
        if not self._chosen:
            raise no_match(f"measured instruction of {arch}", only, (subject.name for subject in everything))

    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel and prints its loop."""
        right = 0
        with closing(bench.build(self._chosen, target, progress)) as built:
            for item in built:
                if isinstance(item, tuple):
                    typer.echo(f"{item[0].label}: {item[1]}")
                else:
                    right += 1
                    loop = ", ".join(f"{n} x {name}" for name, n in item.loop.items())
                    typer.echo(f"{item.subject.label}: {loop or 'a subroutine'}")
        typer.echo(f"{right} of {len(self._chosen)} loops hold their instruction")
        if wrong := len(self._chosen) - right:
            raise HwError(f"{wrong} of {len(self._chosen)} loops do not hold their instruction")

    def record(self, run: Run, progress: Progress) -> None:
        """Measures and writes."""
        with device.open(run.gpu) as gpu:
            with closing(bench.build(self._chosen, target_for(run.arch, gpu.facts()), progress)) as loops:
                built = list(loops)
            result = bench.measure(gpu, built, run.runs, progress)
        if result.timings:
            run.write(report.yaml_text(result, run.arch, run.runs), report.csv_text(result))
        _say_left_out(result.left_out)
        typer.echo(
            f"{len(result.loops)} instructions, {len(result.timings)} points, "
            f"SM clock {result.sm_mhz:.0f} MHz"
        )
        measured = {timing.subject.label for timing in result.timings}
        if missing := [subject.label for subject in self._chosen if subject.label not in measured]:
            count = f"{len(missing)} of {len(self._chosen)}"
            raise HwError(f"{count} instructions were not measured, such as {missing[0]}")


class Scalar:
    """Scalar instructions."""

    def __init__(self, only: str) -> None:
        self._chosen = scalar_bench.select(only)
        if not self._chosen:
            raise no_match("timed scalar instruction", only, (operation.name for operation in OPERATIONS))

    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel and prints a round of its chain, or what the compiler changed."""
        right = 0
        with closing(scalar_bench.build(self._chosen, target, progress)) as built:
            for item in built:
                if isinstance(item, tuple):
                    typer.echo(f"{item[0]}: {scalar_report.CHANGED}{item[1]}")
                else:
                    right += 1
                    typer.echo(f"{item.operation.name}: {item.plan.link}: {scalar_report.sass(item)}")
        typer.echo(f"{right} of {len(self._chosen)} chains hold their instruction")
        if not right:
            raise HwError("no chain holds its instruction")

    def record(self, run: Run, progress: Progress) -> None:
        """Measures and writes."""
        with device.open(run.gpu) as gpu:
            target = target_for(run.arch, gpu.facts())
            with closing(scalar_bench.build(self._chosen, target, progress)) as loops:
                built = list(loops)
            result = scalar_bench.measure(gpu, built, run.runs, progress)
        if not result.timed:
            raise HwError("no chain holds its instruction: nothing was timed")
        run.write(scalar_report.yaml_text(result, run.arch, run.runs), scalar_report.csv_text(result))
        _say_left_out(result.conditions.left_out)
        points = sum(len(timed.points) for timed in result.timed)
        typer.echo(
            f"{len(result.timed)} instructions, {points} points, SM clock {result.conditions.sm_mhz:.0f} MHz"
        )


class Memory:
    """Memory: all of it, or nothing."""

    def __init__(self, only: str) -> None:
        if only:
            raise OperandError(
                f"--only '{only}' goes with --group matrix or scalar; memory is measured whole"
            )

    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel, which checks its loop, and prints what they are."""
        memory_bench.build(target)
        titles = [chain.title for chain in CHAINS] + [flow.title for flow in FLOWS]
        typer.echo("\n".join(titles))
        typer.echo(f"{len(titles)} of {len(titles)} loops hold their instruction")

    def record(self, run: Run, progress: Progress) -> None:
        """Measures and writes."""
        with device.open(run.gpu) as gpu:
            built = memory_bench.build(target_for(run.arch, gpu.facts()))
            result = memory_bench.measure(gpu, built, run.runs, progress)
        run.write(memory_report.yaml_text(result, run.arch, run.runs), memory_report.csv_text(result))
        _say_left_out(result.conditions.left_out)
        typer.echo(
            f"{len(result.samples)} latencies, {len(result.streams)} bandwidths, "
            f"SM clock {result.conditions.sm_mhz:.0f} MHz"
        )


def _say_left_out(left_out: dict[str, str]) -> None:
    for label, reason in left_out.items():
        typer.echo(f"left out: {label}: {reason}", err=True)
