"""The command `mmagold campaign`: dot products by the billion, on the GPU and by the golden arithmetic beside it."""

from __future__ import annotations

import fnmatch
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from golden.instruction import Instruction
    from hw_capture.campaign.report import Report
    from hw_capture.campaign.run import Plan
    from hw_capture.device import Device


def campaign(
    names: Annotated[
        list[str] | None, typer.Argument(help="Instructions: full names, SASS names, or patterns such as 'wgmma*n64*'.")
    ] = None,
    arch: Annotated[str, typer.Option(help="Architecture of the instructions.")] = "hopper",
    dots: Annotated[
        float, typer.Option(min=1, max=1e18, help="Dot products of each instruction, those in the report included.")
    ] = 1e9,
    seconds: Annotated[float, typer.Option(min=0, help="Most time for each instruction.")] = 60.0,
    limit: Annotated[float, typer.Option(min=0, help="Most time for all of them.")] = 1e9,
    seed: Annotated[int, typer.Option(min=0, max=(1 << 64) - 1, help="Seed of the operands.")] = 1,
    kind: Annotated[str, typer.Option(help="A stimulus kind, 'all' in turn, or 'exhaustive' pairs of codes.")] = "all",
    out: Annotated[Path | None, typer.Option(help="Report (.json); a report that is there is continued.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="The same report as a page.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="KEY=VALUE: plant a fault in the golden arithmetic.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Compilations at a time.")] = 4,
    merge: Annotated[list[Path] | None, typer.Option(help="Report of another GPU of the same kind, merged into --out.")] = None,
) -> None:
    """Executes instructions on the GPU and the golden arithmetic beside them, and counts differences."""
    from golden.errors import OperandError
    from hw_capture import device, toolchain
    from hw_capture.campaign import report
    from hw_capture.campaign.run import Plan, compile_ahead, target
    from hw_capture.cli import check_writable

    check_writable(out, markdown)
    if merge and not (out or markdown):
        raise OperandError("argument '--out' is missing: --merge writes the merged report there")
    if merge:
        pages = report.load(out if out and out.exists() else merge[0])
        for path in merge:
            pages.merge(report.load(path))
        _write(pages, out, markdown)
    if not names:
        if merge:
            return
        raise OperandError("argument 'names' is missing, expected instructions or --merge")
    chosen, faults, index = _chosen(arch, names), _faults(fault or []), _kind(kind)
    compiler = toolchain.version(toolchain.require("nvcc"))
    with device.open() as gpu:
        pages = report.load(out) if out and out.exists() else report.Report(gpu.facts(), compiler)
        start, pool = time.monotonic(), compile_ahead(chosen, target(gpu), faults, jobs)
        try:
            for ins in chosen:
                first = pages.next_tile(arch, ins.name, seed, kind, faults)
                left = min(seconds, limit - (time.monotonic() - start))
                plan = Plan(dots - first * ins.m * ins.n, left, seed, index, first)
                if left > 0 and plan.dots > 0:
                    try:
                        _one(gpu, ins, faults, plan, pages)
                    finally:
                        _write(pages, out, markdown)
        finally:
            pool.shutdown(cancel_futures=True)
    if any(outcome.mismatches for outcome in pages.outcomes if outcome.faults == faults):
        raise typer.Exit(1)


def _one(gpu: Device, ins: Instruction, faults: dict[str, int | str], plan: Plan, pages: Report) -> None:
    """Runs one instruction's campaign, says what came of it and adds it to the report."""
    from hw_capture.campaign.run import Campaign, Interrupted, run

    try:
        with _bar(ins.name) as progress:
            outcome = run(Campaign(gpu, ins, faults), plan, progress)
    except Interrupted as stop:
        if stop.outcome.dots:
            pages.add(stop.outcome)
        raise
    verdict = "no mismatch" if not outcome.mismatches else f"{outcome.mismatches} MISMATCHES"
    typer.echo(f"{ins.name}: {outcome.dots:.3e} dot products, {outcome.rate:.2e} a second, {verdict}")
    pages.add(outcome)


def _chosen(arch: str, names: list[str]) -> list[Instruction]:
    """The instructions that the names and patterns mean, each once; a pattern takes those that have a campaign."""
    import golden
    from hw_capture.campaign.source import supported
    from hw_capture.errors import no_match

    found: dict[str, Instruction] = {}
    for name in names:
        if not any(sign in name for sign in "*?["):
            found.setdefault(name, golden.instruction(arch, name))
            continue
        matched = [ins for ins in golden.instructions(arch) if fnmatch.fnmatch(ins.name, name) and supported(ins)]
        if not matched:
            known = (ins.name for ins in golden.instructions(arch) if ins.layout in ("mma", "wgmma", "wmma"))
            raise no_match(f"instruction of {arch} with a campaign", name, known)
        found.update({ins.name: ins for ins in matched})
    return list(found.values())


def _kind(name: str) -> int:
    from golden.errors import UnknownNameError, nearest
    from golden.stimuli import KINDS
    from hw_capture.campaign.run import ALL_KINDS
    from hw_capture.campaign.source import EXHAUSTIVE

    known = {**{kind: i for i, kind in enumerate(KINDS)}, "all": ALL_KINDS, "exhaustive": EXHAUSTIVE}
    if name not in known:
        raise UnknownNameError(f"unknown stimulus kind '{name}', expected one of {', '.join(known)}{nearest(name, known)}")
    return known[name]


def _faults(given: list[str]) -> dict[str, int | str]:
    from golden.errors import OperandError

    faults: dict[str, int | str] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not value:
            raise OperandError(f"argument '--fault' is '{text}', expected KEY=VALUE")
        faults[key] = int(value) if value.lstrip("-").isdigit() else value
    return faults


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _write(pages: Report, out: Path | None, markdown: Path | None) -> None:
    from golden.operands import write_text

    if out:
        pages.write(out)
    if markdown:
        write_text(markdown, pages.markdown())
