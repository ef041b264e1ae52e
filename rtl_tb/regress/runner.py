"""Runs a regression: shards the plan out, leaves out what has a result, and collects the rest.

Results lie on disk, one file for each shard, whole or not there:

    <out>/shards/<key>.json      counters and first failures of a shard
    <out>/reasons/<key>.json     the whole report of one that failed

The key stands for all that the result depends on, and each file for itself: one that is damaged, edited or of
another shard is none.

result = regress("regress.yaml", Path("regress"))
result.passed, result.as_dict()
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from golden.boundary import internal_error
from golden.errors import MmagoldError
from golden.files.lock import only_writer
from golden.files.output import made_folder
from golden.vectors.vectorset import block_size
from golden.workers.pool import workers
from golden.workers.results import Results
from rtl_tb.dut.description import Dut
from rtl_tb.regress.fingerprints import UnitState, code_digest, simulator_digest, unit_state
from rtl_tb.regress.plan import Engine, Plan, Unit, load_plan
from rtl_tb.regress.shard import Result, Shard, explain_shard, run_shard

Progress = Callable[[str, int, int], None]
Group = tuple[str, str, str]
"""Unit, engine and simulator: what is built once."""


@dataclass
class Regression:
    """What came of a regression.

    Attributes:
        shards, results: the shards, and by key what each gave; one that could not be run has `error`.
        reused: keys of results that were there.
        refused: units that could not be looked at, with the reason, by group.
        explained: of each group in which something fails, why its first failing shard does.
        seconds: wall time.
    """

    plan: Plan
    shards: list[Shard] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    reused: set[str] = field(default_factory=set)
    refused: dict[Group, str] = field(default_factory=dict)
    explained: dict[Group, Result] = field(default_factory=dict)
    seconds: float = 0.0

    def of(self, shard: Shard) -> Result:
        """The result of a shard."""
        return self.results[shard.key]

    @property
    def failing(self) -> list[Shard]:
        """Shards in which the unit is not the instruction."""
        return [shard for shard in self.shards if not self.of(shard).get("passed", True)]

    @property
    def errors(self) -> list[Shard]:
        """Shards that could not be run."""
        return [shard for shard in self.shards if "error" in self.of(shard)]

    @property
    def status(self) -> int:
        """Exit status: 1 something differs, 2 nothing does but something could not be run, 0 all is equal."""
        return 1 if self.failing else 2 if self.errors or self.refused else 0


def regress(
    file: str | Path,
    out: Path,
    jobs: int = 1,
    scheduler: str | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Regression:
    """Runs the regression that `file` describes; results go to the folder `out` as they come.

    Args:
        jobs: workers of this machine.
        scheduler: see golden/workers/pool.py.
        again: runs what has a result as well.

    Raises:
        SpecError: a description is wrong. FileFormatError: the folder cannot be written, or another
            regression writes there. RtlError: a simulator is missing, or Dask.
    """
    start, report = time.monotonic(), progress or (lambda _what, _done, _total: None)
    plan = load_plan(file)
    store, build = Store(out), str((out / "build").absolute())
    with store.opened(), workers(jobs, scheduler) as pool:
        result = Regression(plan)
        report("looking at the units", 0, 0)
        _share_out(result, jobs)
        # Shards that have a result are not run again, unless wanted.
        if not again:
            found = {shard.key: store.get(shard) for shard in result.shards}
            result.results = {key: each for key, each in found.items() if each is not None}
            result.reused = set(result.results)
        _run(result, store, build, pool, report)
        _explain(result, store, build, str((out / "failures").absolute()), pool, report)
    result.seconds = time.monotonic() - start
    return result


# What to run ------------------------------------------------------------------------------------------------


def _share_out(result: Regression, jobs: int) -> None:
    """Makes the shards of every unit; a unit that no simulator can read has none, but a reason."""
    groups = [(unit, engine) for unit in result.plan.units for engine in unit.engines]
    pairs = dict.fromkeys((unit.name, engine.simulator) for unit, engine in groups)
    duts = {unit.name: unit.dut for unit in result.plan.units}
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        states = dict(zip(pairs, pool.map(lambda each: _state(duts[each[0]], each[1]), pairs), strict=True))
    for unit, engine in groups:
        state = states[unit.name, engine.simulator]
        if isinstance(state, str):
            result.refused[unit.name, engine.engine, engine.simulator] = state
        else:
            result.shards += _shards(unit, engine, state)


def _state(dut: Dut, simulator: str) -> UnitState | str:
    try:
        return unit_state(dut, simulator)
    except MmagoldError as error:
        return " ".join(str(error).split())


def _shards(unit: Unit, engine: Engine, state: UnitState) -> Iterator[Shard]:
    """The shards of a unit on an engine, seed by seed; each but the last is whole blocks of the stream."""
    block = block_size(unit.dut.instruction, unit.dut.level)
    size = -(-engine.shard // block) * block
    bound = state.digest, simulator_digest(engine.simulator), code_digest(), state.listed
    for seed in unit.seeds:
        for mix, weights in unit.kinds.items():
            for first in range(0, engine.count, size):
                count = min(size, engine.count - first)
                yield Shard(
                    unit.name,
                    str(unit.dut.file),
                    engine.engine,
                    engine.simulator,
                    mix,
                    weights,
                    seed,
                    first,
                    count,
                    engine.settings,
                    *bound,
                )


# Running ----------------------------------------------------------------------------------------------------


def _run(result: Regression, store: Store, build: str, pool: Executor, report: Progress) -> None:
    """Runs every shard without a result. The first of a group compiles the unit; the others wait for it, and
    are not tried where it cannot be run."""
    waiting: dict[Group, list[Shard]] = defaultdict(list)
    for shard in result.shards:
        if shard.key not in result.results:
            waiting[shard.group].append(shard)
    running: dict[Future[Result], Shard] = {}

    def send(shards: Iterable[Shard]) -> None:
        for shard in shards:
            running[pool.submit(run_shard, shard, build)] = shard

    send([shards.pop(0) for shards in waiting.values()])
    while running:
        report(_worker_result(result), len(result.results), len(result.shards))
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            shard = running.pop(future)
            found = result.results[shard.key] = _result(future)
            others = waiting.pop(shard.group, [])
            if "error" not in found:
                store.put(shard, found)
                send(others)
                continue
            for other in others:
                result.results[other.key] = {"error": f"not tried: {found['error']}"}


def _worker_result(result: Regression) -> str:
    failing = sum(not each.get("passed", True) for each in result.results.values())
    return f"shards, {failing} failing" if failing else "shards"


def _result(future: Future[Result]) -> Result:
    """What a worker handed back; a worker that died is an error of the shard."""
    try:
        return future.result()
    except MmagoldError as error:
        return {"error": " ".join(str(error).split())}
    except Exception as error:  # of Dask: KilledWorker and the like
        return {"error": internal_error(error)}


def _explain(
    result: Regression, store: Store, build: str, failures: str, pool: Executor, report: Progress
) -> None:
    """Finds for each group why its first failing shard fails."""
    first: dict[Group, Shard] = {}
    for shard in result.failing:
        first.setdefault(shard.group, shard)
    known = {group: store.explained(shard) for group, shard in first.items()}
    futures = {
        group: pool.submit(explain_shard, shard, build, failures)
        for group, shard in first.items()
        if known[group] is None
    }
    for done, (group, shard) in enumerate(first.items()):
        report("looking for the reasons", done, len(first))
        found = result.explained[group] = known[group] or _result(futures[group])
        if "error" not in found:
            store.put_explained(shard, found)


FORMAT = "mmagold regression shard 1"


class Store:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shards, self._reasons = (Results(folder / kind, FORMAT) for kind in ("shards", "reasons"))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Makes the folder, and keeps other regressions out of it.

        Raises:
            FileFormatError: it cannot be made, or another regression writes there.
        """
        with (
            made_folder(self.folder / "shards"),
            made_folder(self.folder / "reasons"),
            only_writer(self.folder, self.folder / ".lock"),
        ):
            yield

    def get(self, shard: Shard) -> Result | None:
        """The result of a shard, or None where there is none that holds."""
        return self._shards.get(shard.key) if shard.listed else None

    def put(self, shard: Shard, result: Result) -> None:
        """Keeps a result; what could not be run is none."""
        self._shards.put(shard.key, result)

    def explained(self, shard: Shard) -> Result | None:
        """Why a shard fails; None where that is not known, or its capsule has gone."""
        found = self._reasons.get(shard.key) if shard.listed else None
        capsule = found["report"]["capsule"] if found else None
        return found if capsule is None or Path(capsule).is_dir() else None

    def put_explained(self, shard: Shard, reason: Result) -> None:
        """Keeps why a shard fails."""
        self._reasons.put(shard.key, reason)
