"""The groups of `mmagold bench-gpu`: each chooses what to measure, proves its loops, and records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, Generic, TypeVar

import typer

from golden.errors import OperandError, counted, no_match
from hw_capture.cli.timing_run import Run
from hw_capture.errors import HwError
from hw_capture.gpu import device
from hw_capture.kernels import build
from hw_capture.record.capture import target_for
from hw_capture.timing import bench, experiments, report, subjects
from hw_capture.timing.memory import bench as memory_bench
from hw_capture.timing.memory import report as memory_report
from hw_capture.timing.memory.programs import CHAINS, FLOWS
from hw_capture.timing.programs import Subject
from hw_capture.timing.records import Conditions, Progress
from hw_capture.timing.scalar import bench as scalar_bench
from hw_capture.timing.scalar import report as scalar_report
from hw_capture.timing.scalar.instructions import Operation, operations
from hw_capture.timing.scalar.programs import Built as BuiltScalar

Result = TypeVar("Result")
_LOOPS, _CHAINS = "loops", "chains"


class Measured(ABC, Generic[Result]):
    """One group: what is chosen, how it is built, measured and written."""

    parts = _LOOPS
    """What holds an instruction."""
    bench: Any
    """The module that builds and measures: `build` and `measure`."""
    report: Any
    """The module that writes the result: `yaml_text` and `csv_text`."""

    @abstractmethod
    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel and prints what its loop holds; raises HwError where one is wrong."""

    def record(self, run: Run, progress: Progress) -> None:
        """Measures and writes; raises HwError where something could not be measured."""
        with device.open(run.gpu) as gpu:
            built = self._built(target_for(run.arch, gpu.facts()), progress)
            result = self._measured(gpu, built, run.runs, progress)
        self._write(result, run)
        conditions: Conditions = result.conditions
        for label, reason in conditions.left_out.items():
            typer.echo(f"left out: {label}: {reason}", err=True)
        typer.echo(f"{self._counts(result)}, SM clock {conditions.sm_mhz:.0f} MHz")
        self._check_whole(result)

    def _built(self, target: str, progress: Progress) -> Any:
        """Everything, compiled and checked."""
        return self.bench.build(target)

    def _measured(self, gpu: device.Device, built: Any, runs: int, progress: Progress) -> Any:
        """Everything, measured."""
        return self.bench.measure(gpu, built, runs, progress)

    def _write(self, result: Result, run: Run) -> None:
        """Writes the requested files."""
        run.write(self.report.yaml_text(result, run.arch, run.runs), self.report.csv_text(result))

    @abstractmethod
    def _counts(self, result: Result) -> str:
        """How much was measured, in words."""

    def _check_whole(self, result: Result) -> None:
        """Raises HwError where something is missing that should be there."""

    def _say_holds(self, right: int, everything: int) -> None:
        typer.echo(f"{right} of {everything} {self.parts} hold their instruction")


class Matrix(Measured[bench.Result]):
    """Matrix instructions, and what moves matrices."""

    bench, report = bench, report

    def __init__(self, everything: Sequence[Subject], arch: str, only: str) -> None:
        self._chosen: Sequence[Subject] = subjects.select(everything, only)
        if not self._chosen:
            raise no_match(f"measured instruction of {arch}", only, (subject.name for subject in everything))

    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel and prints its loop, or why this nvcc cannot build it."""
        late = self._late()
        known = self._known(late)
        right = 0
        with closing(bench.build(known, target, progress)) as built:
            for item in built:
                right += not isinstance(item, tuple)
                typer.echo(_loop_text(item))
        for label, reason in late.items():
            typer.echo(f"left out: {label}: {reason}")
        self._say_holds(right, len(known))
        if wrong := len(known) - right:
            raise HwError(f"{wrong} of {len(known)} loops do not hold their instruction")
        if not known:
            raise HwError(f"no loop was built: {', '.join(dict.fromkeys(late.values()))}")

    def _late(self) -> dict[str, str]:
        """What this nvcc is too old for, and the version that has it; by label."""
        known = ((one.label, build.too_new(one.ins)) for one in self._chosen if one.ins is not None)
        return {label: reason for label, reason in known if reason}

    def _known(self, late: dict[str, str]) -> list[Subject]:
        return [subject for subject in self._chosen if subject.label not in late]

    def _built(self, target: str, progress: Progress) -> list[Any]:
        late = self._late()
        left_out = [(one, late[one.label]) for one in self._chosen if one.label in late]
        return [*_all(bench.build(self._known(late), target, progress)), *left_out]

    def _write(self, result: bench.Result, run: Run) -> None:
        if result.timings:
            super()._write(result, run)

    def _counts(self, result: bench.Result) -> str:
        return f"{counted(len(result.loops), 'instruction')}, {counted(len(result.timings), 'point')}"

    def _check_whole(self, result: bench.Result) -> None:
        measured = {timing.subject.label for timing in result.timings}
        known = self._known(self._late())
        if missing := [subject.label for subject in known if subject.label not in measured]:
            count = f"{len(missing)} of {len(known)}"
            raise HwError(f"{count} instructions were not measured, such as {missing[0]}")


class Scalar(Measured[scalar_bench.Result]):
    """Scalar instructions."""

    parts = _CHAINS
    bench, report = scalar_bench, scalar_report

    def __init__(self, only: str) -> None:
        self._chosen: Sequence[Operation] = scalar_bench.select(only)
        if not self._chosen:
            raise no_match("timed scalar instruction", only, (operation.name for operation in operations()))

    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel and prints a round of its chain, or what the compiler changed."""
        right, why = 0, ""
        with closing(scalar_bench.build(self._chosen, target, progress)) as built:
            for item in built:
                if isinstance(item, tuple):
                    why = item[1]
                else:
                    right += 1
                typer.echo(_chain_text(item))
        self._say_holds(right, len(self._chosen))
        if not right:
            raise HwError(f"no chain holds its instruction: {why}")

    def _built(self, target: str, progress: Progress) -> list[Any]:
        return _all(scalar_bench.build(self._chosen, target, progress))

    def _write(self, result: scalar_bench.Result, run: Run) -> None:
        if not result.timed:
            raise HwError("no chain holds its instruction: nothing was timed")
        super()._write(result, run)

    def _counts(self, result: scalar_bench.Result) -> str:
        points = sum(len(timed.points) for timed in result.timed)
        return f"{counted(len(result.timed), 'instruction')}, {counted(points, 'point')}"


class Whole(Measured[Result]):
    """A group that is measured whole, or not at all."""

    refuses: str
    """Why it takes no --only."""

    def __init__(self, only: str) -> None:
        if only:
            raise OperandError(f"--only '{only}' goes with --group matrix or scalar; {self.refuses}")


class Memory(Whole[memory_bench.Result]):
    """Memory."""

    refuses = "memory is measured whole"
    bench, report = memory_bench, memory_report

    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel, which checks its loop, and prints what they are."""
        self._built(target, progress)
        titles = [chain.title for chain in CHAINS] + [flow.title for flow in FLOWS]
        typer.echo("\n".join(titles))
        self._say_holds(len(titles), len(titles))

    def _counts(self, result: memory_bench.Result) -> str:
        return f"{len(result.samples)} latencies, {len(result.streams)} bandwidths"


class Experiments(Whole[experiments.Result]):
    """The experiments of H. Abdelkhalik et al."""

    refuses = "the experiments run whole"
    bench = report = experiments

    def compile_only(self, target: str, progress: Progress) -> None:
        """Builds every kernel, and prints what stands between the readings of the clock."""
        built = self._built(target, progress)
        for name, found in built.sass.items():
            typer.echo(f"{name}: {', '.join(f'{n} x {one}' for one, n in found.items()) or 'nothing'}")
        self._say_holds(len(built.sass), len(built.sass))

    def _counts(self, result: experiments.Result) -> str:
        return counted(len(result.samples), "figure")


def _all(building: Generator[Any, None, None]) -> list[Any]:
    """Everything that is built; an interrupt stops the compilers."""
    with closing(building):
        return list(building)


def _loop_text(item: bench.Built | tuple[Subject, str]) -> str:
    if isinstance(item, tuple):
        return f"{item[0].label}: {item[1]}"
    loop = ", ".join(f"{n} x {name}" for name, n in item.loop.items())
    stalls = "; ".join(f"{name} {cycles:.2f}" for name, cycles in item.stalls.items() if item.subject.printed)
    more = f"; stall counts of a round: {stalls}" if stalls else ""
    return f"{item.subject.label}: {loop or 'a subroutine'}{more}"


def _chain_text(item: BuiltScalar | tuple[str, str]) -> str:
    if isinstance(item, tuple):
        return f"{item[0]}: {item[1]}"
    return f"{item.operation.name}: {item.plan.link}: {scalar_report.sass(item)}"
