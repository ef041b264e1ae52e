"""The command `mmagold campaign`: dot products by the billion, on the GPU and by the golden arithmetic
next to it."""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from golden.cli.progress import progress_bar
from golden.workers import MOST_WORKERS
from hw_capture.cli.arguments import architecture

if TYPE_CHECKING:
    from golden.model.instruction import Instruction
    from hw_capture.campaign.report import Report
    from hw_capture.campaign.run import Bench, Plan


def campaign(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="NAME",
            help="Instructions: full names, SASS names, or patterns such as 'wgmma*n64*'.",
        ),
    ] = None,
    arch: Annotated[
        str, Option(callback=architecture, help="Architecture or card of the instructions.")
    ] = "hopper",
    dots: Annotated[
        float,
        Option(
            min=1,
            max=1e18,
            help="Number of dot products of each instruction, with the ones already in the report.",
        ),
    ] = 1e9,
    seconds: Annotated[float, Option(min=0, help="Largest number of seconds for each instruction.")] = 60.0,
    limit: Annotated[float, Option(min=0, help="Largest number of seconds for all instructions.")] = 1e9,
    seed: Annotated[int, Option(min=0, max=(1 << 64) - 1, help="Seed of the random operands.")] = 1,
    kind: Annotated[
        str, Option(help="Kind of operands; all: every kind in turn; exhaustive: all pairs of codes.")
    ] = "all",
    out: Annotated[
        Path | None, Option(help="File of the report (.json). If it exists, the campaign continues it.")
    ] = None,
    markdown: Annotated[Path | None, Option(help="Also write the report to this file, as Markdown.")] = None,
    fault: Annotated[
        list[str] | None, Option(help="Plant a fault in the golden model: KEY=VALUE. Can be repeated.")
    ] = None,
    jobs: Annotated[
        int, Option(min=1, max=MOST_WORKERS, help="Number of compilers that run in parallel.")
    ] = 4,
    scheduler: Annotated[
        str | None,
        Option(
            "--scheduler",
            help="Run on the workers of the Dask scheduler at this address, or on a 'local' one. Requires "
            "--out.",
        ),
    ] = None,
    shard: Annotated[
        float, Option(min=1, max=1e15, help="With --scheduler: number of dot products of one piece of work.")
    ] = 1e10,
    gpus: Annotated[
        int, Option(min=1, max=1024, help="With --scheduler local: number of workers, with one GPU each.")
    ] = 1,
    merge: Annotated[
        list[Path] | None,
        Option(help="Merge this report, of another GPU of the same kind, into --out. Can be repeated."),
    ] = None,
) -> None:
    """Runs instructions on the GPU or CPU in this machine, compares them with the golden model, and counts
    mismatches.

    Exit status: 0 no mismatch, 1 the report has a mismatch (without a planted fault), 2 an error, or an
    instruction was not checked.
    """
    from golden.errors import OperandError
    from golden.files.output import is_stream
    from hw_capture.cli.app import check_writable

    check_writable(out, markdown)
    if merge and not (out or markdown):
        raise OperandError("argument '--out' is missing: --merge writes the merged report there")
    if not names and not merge:
        raise OperandError("argument 'NAME' is missing, expected instructions or --merge")
    if scheduler is not None and (out is None or is_stream(out)):
        raise OperandError(
            "argument '--out' is missing, expected a file: --scheduler keeps results in a folder next to it"
        )
    chosen, faults, index = _chosen(arch, names or []), _faults(fault or []), _kind(kind)
    with _only_writer(out):
        pages = _merged(merge, out, markdown) if merge else None
        if chosen:
            budget = Budget(dots, seconds, limit, seed, jobs)
            if scheduler is None:
                pages = _run_all(chosen, faults, index, budget, out, markdown)
            else:
                assert out is not None
                pages = _run_shared(
                    chosen, faults, index, budget, Spread(scheduler, shard, gpus), out, markdown
                )
    assert pages is not None
    if any(outcome.mismatches for outcome in pages.outcomes if outcome.faults == faults):
        raise typer.Exit(1)
    _check_all_checked(pages, chosen, seed, kind, faults)


@dataclass(frozen=True)
class Budget:
    """How much to check, in how much time, with which operands."""

    dots: float
    seconds: float
    limit: float
    seed: int
    jobs: int


@dataclass(frozen=True)
class Spread:
    """Where shards run: a Dask scheduler, dot products of a shard, workers of a local cluster."""

    scheduler: str
    shard: float
    gpus: int


def _continues(out: Path) -> bool:
    """Whether there is a report to add to; a pipe or device holds none."""
    from golden.files.output import is_stream

    return not is_stream(out) and out.exists()


def _only_writer(out: Path | None) -> AbstractContextManager[None]:
    """Nobody else adds to the report meanwhile: of two that wrote it, one would lose what it found."""
    from golden.files.lock import only_writer
    from golden.files.output import is_stream

    return (
        nullcontext()
        if out is None or is_stream(out)
        else only_writer(out, out.with_name(f".{out.name}.lock"))
    )


def _merged(merge: list[Path], out: Path | None, markdown: Path | None) -> Report:
    from hw_capture.campaign import report

    pages = report.load(out if out and _continues(out) else merge[0])
    for path in merge:
        pages.merge(report.load(path))
    _write(pages, out, markdown)
    return pages


def _run_all(
    chosen: list[Instruction],
    faults: dict[str, int | str],
    index: int,
    budget: Budget,
    out: Path | None,
    markdown: Path | None,
) -> Report:
    """Runs every instruction's campaign; the report is written after each."""
    from hw_capture.campaign import report
    from hw_capture.cli.machines import machine_of

    with machine_of(chosen, faults, index, budget.jobs) as found:
        pages = report.load(out) if out and _continues(out) else report.Report(found.facts, found.compiler)
        pages.check_origin(found.facts, found.compiler)
        start = time.monotonic()
        for ins in chosen:
            left = min(budget.seconds, budget.limit - (time.monotonic() - start))
            plan = _left(ins, faults, index, budget, pages, left)
            if left > 0 and plan.dots > 0:
                try:
                    _one(partial(found.bench, ins), ins, plan, pages)
                finally:
                    _write(pages, out, markdown)
    return pages


def _left(
    ins: Instruction, faults: dict[str, int | str], index: int, budget: Budget, pages: Report, seconds: float
) -> Plan:
    """What the report lacks of an instruction."""
    from hw_capture.campaign.run import Plan, kind_name

    series = ins.architecture, ins.name, budget.seed, kind_name(index), faults
    return Plan(budget.dots - pages.dots(*series), seconds, budget.seed, index, pages.next_tile(*series))


def _run_shared(
    chosen: list[Instruction],
    faults: dict[str, int | str],
    index: int,
    budget: Budget,
    spread: Spread,
    out: Path,
    markdown: Path | None,
) -> Report:
    """The same in shards on the workers of a Dask scheduler; the report is written after each instruction."""
    from golden.files.output import made_folder
    from golden.workers.pool import workers
    from hw_capture.campaign import report
    from hw_capture.campaign.run import kind_name
    from hw_capture.campaign.shards import shards_of, share
    from hw_capture.cli.machines import check_plan, run_shard
    from hw_capture.cpu.machine import architecture_runs_here
    from hw_capture.errors import HwError

    on_cpu = architecture_runs_here(chosen[0].architecture)
    check_plan(on_cpu, faults, index)
    pages = report.load(out) if _continues(out) else None
    folder = out.with_name(f"{out.name}.shards")
    gpus = None if on_cpu else spread.gpus
    with made_folder(folder), workers(spread.gpus, spread.scheduler, gpus) as pool:
        for ins in chosen:
            known = pages or report.Report({}, "")
            plan = _left(ins, faults, index, budget, known, budget.seconds)
            if plan.dots <= 0:
                continue
            shards = shards_of(ins, budget.seed, index, faults, plan.first, plan.dots, spread.shard)
            before = known.dots(ins.architecture, ins.name, budget.seed, kind_name(index), faults)
            with progress_bar() as progress:
                pages = share(shards, pool, folder, run_shard, pages, partial(progress, ins.name))
            _write(pages, out, markdown)
            after = pages.dots(ins.architecture, ins.name, budget.seed, kind_name(index), faults)
            typer.echo(f"{ins.name}: {after - before:.3e} dot products")
    if pages is None:
        raise HwError("there is nothing to run")
    return pages


def _check_all_checked(
    pages: Report, chosen: list[Instruction], seed: int, kind: str, faults: dict[str, int | str]
) -> None:
    """Raises HwError for instructions that the time did not reach:
    no mismatch in no dot product means nothing."""
    from hw_capture.errors import HwError

    missed = [ins.name for ins in chosen if not pages.dots(ins.architecture, ins.name, seed, kind, faults)]
    if missed:
        raise HwError(
            f"no dot product of {len(missed)} of {len(chosen)} instructions was checked, such as "
            f"{missed[0]}: raise --limit or --seconds"
        )


def _one(made: Callable[[], Bench], ins: Instruction, plan: Plan, pages: Report) -> None:
    """Runs one instruction's campaign, says what came of it and adds it to the report."""
    from hw_capture.campaign.run import Interrupted, run

    try:
        with progress_bar() as progress:
            outcome = run(made(), plan, partial(progress, ins.name))
    except Interrupted as stop:
        if stop.outcome.dots:
            pages.add(stop.outcome)
        raise
    verdict = "no mismatch" if not outcome.mismatches else f"{outcome.mismatches} MISMATCHES"
    typer.echo(f"{ins.name}: {outcome.dots:.3e} dot products, {outcome.rate:.2e} a second, {verdict}")
    pages.add(outcome)


def _chosen(arch: str, names: list[str]) -> list[Instruction]:
    """The instructions that the names and patterns mean, each once;
    a pattern takes those that have a campaign."""
    import golden
    from golden.catalog.lookup import resolve
    from golden.errors import no_match
    from hw_capture.campaign.source import supported
    from hw_capture.cpu import machine

    def has_one(ins: Instruction) -> bool:
        return supported(ins) or machine.supported(ins)

    every = {ins.name: ins for ins in golden.instructions(arch)}
    found: dict[str, Instruction] = {}
    for name in names:
        if not any(sign in name for sign in "*?["):
            ins = resolve(name, arch)
            found.setdefault(ins.name, ins)
            continue
        matched = [ins for ins in every.values() if fnmatch.fnmatch(ins.name, name) and has_one(ins)]
        if not matched:
            what = f"instruction of {arch} with a campaign"
            raise no_match(what, name, every, lambda near: has_one(every[near]))
        found.update({ins.name: ins for ins in matched})
    return list(found.values())


def _kind(name: str) -> int:
    from golden.errors import UnknownNameError, nearest
    from golden.stimuli import KINDS
    from hw_capture.campaign.run import ALL_KINDS
    from hw_capture.campaign.source import EXHAUSTIVE

    known = {**{kind: i for i, kind in enumerate(KINDS)}, "all": ALL_KINDS, "exhaustive": EXHAUSTIVE}
    if name not in known:
        raise UnknownNameError(
            f"unknown stimulus kind '{name}', expected one of {', '.join(known)}{nearest(name, known)}"
        )
    return known[name]


def _faults(given: list[str]) -> dict[str, int | str]:
    from golden.errors import OperandError

    faults: dict[str, int | str] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not value:
            raise OperandError(f"argument '--fault' is '{text}', expected KEY=VALUE")
        faults[key] = int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else value
    return faults


def _write(pages: Report, out: Path | None, markdown: Path | None) -> None:
    from golden.files.output import write_text

    if out:
        pages.write(out)
    if markdown:
        write_text(markdown, pages.markdown())
