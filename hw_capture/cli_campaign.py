"""The command `mmagold campaign`: dot products by the billion, on the GPU and by the golden arithmetic beside it."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from golden.instruction import Instruction
    from hw_capture.campaign.report import Report
    from hw_capture.campaign.run import Outcome


def campaign(
    names: Annotated[list[str], typer.Argument(help="Instructions: full names, SASS names, or patterns such as 'wgmma*n64*'.")],
    arch: Annotated[str, typer.Option(help="Architecture of the instructions.")] = "hopper",
    dots: Annotated[float, typer.Option(help="Dot products of each instruction.")] = 1e9,
    seconds: Annotated[float, typer.Option(help="Most time for each instruction.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the operands.")] = 1,
    kind: Annotated[str, typer.Option(help="A stimulus kind, 'all' in turn, or 'exhaustive' pairs of codes.")] = "all",
    out: Annotated[Path | None, typer.Option(help="Report (.json); a report that is there is continued.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="The same report as a page.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="KEY=VALUE: plant a fault in the golden arithmetic.")] = None,
) -> None:
    """Executes instructions on the GPU and the golden arithmetic beside them, and counts differences."""
    from hw_capture import device, toolchain
    from hw_capture.campaign import report
    from hw_capture.campaign.run import Campaign, Plan, run

    chosen, faults = _chosen(arch, names), _faults(fault or [])
    index = _kind(kind)
    with device.open() as gpu:
        pages = report.load(out) if out and out.exists() else report.Report(gpu.facts(), _compiler(toolchain.require("nvcc")))
        for ins in chosen:
            plan = Plan(dots, seconds, seed, index, pages.next_tile(ins.name, ins.architecture, seed, kind))
            with _bar(ins.name) as progress:
                outcome = run(Campaign(gpu, ins, faults), plan, progress)
            _say(outcome)
            pages.add(outcome)
            _write(pages, out, markdown)
    if any(outcome.mismatches for outcome in pages.outcomes):
        raise typer.Exit(1)


def _chosen(arch: str, names: list[str]) -> list[Instruction]:
    """The instructions that the names and patterns mean, each once; a pattern takes those that have a campaign."""
    import golden
    from golden.errors import UnknownNameError
    from hw_capture.campaign.source import supported

    found: dict[str, Instruction] = {}
    for name in names:
        if not any(sign in name for sign in "*?["):
            found.setdefault(name, golden.instruction(arch, name))
            continue
        matched = [ins for ins in golden.instructions(arch) if fnmatch.fnmatch(ins.name, name) and supported(ins)]
        if not matched:
            raise UnknownNameError(f"no instruction of {arch} with a campaign matches '{name}'")
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


def _compiler(nvcc: str) -> str:
    from hw_capture import toolchain

    return toolchain.version(nvcc)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _say(outcome: Outcome) -> None:
    verdict = "no mismatch" if not outcome.mismatches else f"{outcome.mismatches} MISMATCHES"
    typer.echo(f"{outcome.instruction}: {outcome.dots:.3e} dot products, {outcome.rate:.2e} a second, {verdict}")


def _write(pages: Report, out: Path | None, markdown: Path | None) -> None:
    from golden.operands import write_text

    if out:
        pages.write(out)
    if markdown:
        write_text(markdown, pages.markdown())
