"""Campaigns in shards: some tiles of one instruction, kind and seed each, on whatever workers there are.

    with workers(2, "tcp://head:8786", gpus=2) as pool:
        share(shards_of(series, first, last, size), pool, Path("report.json.shards"), run_shard, None)

A shard's operands depend on nothing but seed, kind and tile number, so that any worker may run it, and
another where one died. Each result is a file; a shard that has its file is not run again, and a report takes
every tile once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from golden import __version__
from golden.catalog.lookup import instruction
from golden.model.instruction import Instruction
from golden.workers.results import Result, Results
from hw_capture.campaign.report import Report
from hw_capture.campaign.run import Bench, Outcome, Plan, kind_name, run
from hw_capture.campaign.source import dots_of_tile
from hw_capture.errors import HwError

FORMAT = "mmagold campaign shard 1"
Run = Callable[["Shard"], Result]


@dataclass(frozen=True)
class Shard:
    """Tiles `first` to `first + tiles - 1` of a series. `kind`: as hw_capture.campaign.run.Plan has it;
    `faults`: what is planted in the golden arithmetic."""

    architecture: str
    instruction: str
    seed: int
    kind: int
    faults: tuple[tuple[str, int | str], ...]
    first: int
    tiles: int

    @property
    def key(self) -> str:
        """Names the result."""
        what = json.dumps([__version__, asdict(self)], sort_keys=True)
        return hashlib.sha256(what.encode()).hexdigest()[:32]

    @property
    def ins(self) -> Instruction:
        """The instruction."""
        return instruction(self.architecture, self.instruction)

    @property
    def dots(self) -> int:
        """Dot products in it."""
        return self.tiles * dots_of_tile(self.ins)


def shards_of(
    ins: Instruction, seed: int, kind: int, faults: dict[str, int | str], first: int, dots: float, size: float
) -> Iterator[Shard]:
    """A series from tile `first` on, at least `dots` dot products, in shards of about `size`."""
    per_tile = dots_of_tile(ins)
    last, step = first + -(-int(dots) // per_tile), max(int(size) // per_tile, 1)
    for start in range(first, last, step):
        tiles = min(step, last - start)
        yield Shard(ins.architecture, ins.name, seed, kind, tuple(sorted(faults.items())), start, tiles)


def result_of(shard: Shard, bench: Bench, facts: dict[str, Any], compiler: str) -> Result:
    """What a bench makes of a shard: all its tiles, however long it takes."""
    plan = Plan(shard.dots, float("inf"), shard.seed, shard.kind, shard.first)
    return {"device": facts, "compiler": compiler, "outcome": asdict(run(bench, plan))}


def share(
    shards: Iterable[Shard],
    pool: Executor,
    folder: Path,
    work: Run,
    pages: Report | None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Runs shards on the workers, keeps each result in `folder`, and adds all of them to the report.

    Args:
        work: what a worker does with a shard (hw_capture.cli.machines.run_shard).
        pages: the report to add to; None: a new one, of the device that answers first.
        progress: called with the dot products that are done, and their total.

    Raises:
        HwError, FileFormatError: a shard could not be run, or on a device of another kind. What others found
            is kept in their files.
    """
    wanted = list(shards)
    store = Results(folder, FORMAT)
    # What an earlier run has finished is not run again.
    found = {shard: result for shard in wanted if (result := store.get(shard.key)) is not None}
    running: dict[Future[Result], Shard] = {
        pool.submit(work, shard): shard for shard in wanted if shard not in found
    }
    total = sum(shard.dots for shard in wanted)
    try:
        while running:
            if progress is not None:
                progress(sum(shard.dots for shard in found), total)
            # A shard is stored as soon as it ends: an interrupted run loses only what is running.
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                shard = running.pop(future)
                found[shard] = future.result()
                store.put(shard.key, found[shard])
    finally:
        for future in running:
            future.cancel()
    return _added(pages, [(shard, found[shard]) for shard in wanted])


def _added(pages: Report | None, found: list[tuple[Shard, Result]]) -> Report:
    """The report with all results, in the order of the tiles."""
    for shard, result in found:
        if pages is None:
            pages = Report(result["device"], result["compiler"])
        pages.check_origin(result["device"], result["compiler"])
        pages.add(_outcome(shard, result["outcome"]))
    if pages is None:
        raise HwError("there is nothing to run: the report already has this many dot products")
    return pages


def _outcome(shard: Shard, item: dict[str, Any]) -> Outcome:
    """An outcome from plain values, of the shard's own tiles."""
    outcome = Outcome(**{one.name: item[one.name] for one in fields(Outcome)})
    outcome.sass = tuple(outcome.sass)
    said = (outcome.instruction, outcome.seed, outcome.kind, outcome.first_tile, outcome.next_tile)
    requested = (shard.instruction, shard.seed, kind_name(shard.kind), shard.first, shard.first + shard.tiles)
    if said != requested:
        raise HwError(f"a worker checked {said}, expected {requested}: it has another mmagold")
    return outcome
