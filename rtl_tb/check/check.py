"""One check of a DUT: run, judge, and when it fails find the smallest operands, the reason,
and leave a capsule.

result = check("dut.yaml", Options(count=200_000))
result.passed, result.as_dict()
"""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.boundary import own_fault
from golden.errors import MmagoldError, OperandError
from golden.files.output import write_text
from golden.program.state import places
from golden.vectors.vectorset import VectorSet, check_held, excerpt, join
from rtl_tb import engines
from rtl_tb.check import vhdl
from rtl_tb.check.beyond import beyond, several_drive
from rtl_tb.check.climbs import never_held, try_climbs, turns
from rtl_tb.check.fills import ask_fills
from rtl_tb.check.four_states import FourStates, ask_four_states, of_its_reader
from rtl_tb.check.once import initialised_once
from rtl_tb.check.readings import Reading, as_run, synthesised
from rtl_tb.check.source import ask_source
from rtl_tb.check.spacing import Spacing, spacing
from rtl_tb.check.starts import Unset, compare_starts
from rtl_tb.check.swapped import swapped_ports
from rtl_tb.check.synthesis import Synthesis, ask_synthesis, unknown
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.locate.budget import Budget
from rtl_tb.runs.dots import of_tiles
from rtl_tb.runs.example import Example, smallest
from rtl_tb.runs.hypotheses import explain_results
from rtl_tb.runs.latency import measured
from rtl_tb.runs.polarity import Polarity, polarity
from rtl_tb.runs.verdict import Verdict, judge, silent

if TYPE_CHECKING:
    from golden.cover.coverage import Coverage
    from golden.explain.first_difference import Difference
    from golden.identify.diagnosis import Diagnosis
    from rtl_tb.check.dissection import Dissection
    from rtl_tb.check.reasons import Shown
    from rtl_tb.check.under_traffic import Calm
    from rtl_tb.locate.choices import Ahead
    from rtl_tb.locate.result import Repair

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, done, total); total 0 when unknown."""
Listen = Callable[["Check", str], None]
"""Called with what is known of a check each time that one of STAGES is done."""
VERDICT, EXAMPLE, DIAGNOSIS, END = STAGES = ("verdict", "example", "diagnosis", "end")
"""The verdict; the smallest operands that fail; what hypotheses say; and all else, in this order: the parts
of `Story` of rtl_tb/check/report.py."""

DEFAULT_COUNTS = {"fast": 200_000, "selfcheck": 20_000, "cocotb": 5_000}
"""Vectors that an engine runs where no count is given: what it does in a few seconds."""
PRINTED = "printed.log"
"""File in the unit's build folder that gets what it printed."""
TRAFFIC = Traffic(0.2, 0.2)
"""Idle cycles and backpressure where none are given; with one reset for RESET_EVERY vectors."""
RESET_EVERY, LEAST_RESETS = 25, 3
"""What is wrong behind a reset may be so on some operands alone, and only the first result may be: so many
vectors are the first behind one that each kind of operands is among them. A short run has LEAST_RESETS."""
DEFAULT_TRAFFIC = {"fast": Traffic(), "selfcheck": TRAFFIC, "cocotb": TRAFFIC}
"""The traffic of the first run. `fast` runs all vectors at full throughput, and then once more under TRAFFIC:
what traffic alone makes wrong is known by that."""
TRAFFIC_SECONDS, TRAFFIC_AT_LEAST = 10.0, 2_000
"""Of a unit whose second run would take longer, so many seconds' worth of vectors run in it, a power of two
of them, and some thousands at least; the report says how many."""
TRAFFIC_COST = 3
"""Times the cycles of full throughput that TRAFFIC takes."""
AGAIN, AGAIN_AT_LEAST = 1, 20_000
"""How many vectors the resets of such a unit may send again, times the vectors of the run, and in any case:
each reset sends a sequence again, from its start."""
NEVER_TOGETHER = "clear and load were never set together: which of them wins was not checked"
_LEAST_REPAIR = 1.0
"""Seconds below which no change of the text is looked for: nothing is compiled in less."""
_IN_ANY_CASE, _EXAMPLE, _HYPOTHESES, _TEXT = 0.5, 0.25, 0.5, 0.9
"""Shares of a budget. What explains a failure has the first, however long the unit was built. Of that the
smallest example, the hypotheses and the search in the text end when these are over; the rest is for the
capsule."""
COVERED = 20_000
"""Vectors of a check that functional coverage looks at: it costs more than the run itself. Bins that they
leave out are aimed at (golden/cover/aiming.py), where the check runs at least as many."""
HOLES = ("warn", "fail")
"""What a passing check makes of reachable cases that no vector tried."""


@dataclass(frozen=True)
class Options:
    """How to check.

    Attributes:
        engine: fast, selfcheck or cocotb.
        simulator: verilator or icarus (not with fast); a unit in VHDL gets ghdl and cocotb.
        count: vectors; None: DEFAULT_COUNTS. A tile counts as one vector.
        first: number of the first of them in the seed's stream, so that several checks can share it out.
        weights: shares of the stimulus kinds, None: the default mix.
        idle, backpressure, resets: the traffic, see rtl_tb/engines/job.py; None: that of DEFAULT_TRAFFIC, and
            TRAFFIC in the second run of `fast`, with a reset for RESET_EVERY vectors. What is given holds in
            both runs.
        timeout_cycles, wall_timeout: see rtl_tb/engines/job.py.
        vectors: a vector file to run instead of drawn ones.
        until_covered: draw until every reachable coverage bin is hit, at most `count` vectors.
        explain: whether a failure is minimised and diagnosed.
        budget: seconds after which a failing check is over: what explains the failure ends then. It has half
            of them in any case, however long the unit was built. Infinity: it ends by itself.
        repair: seconds for looking for the change of the DUT's text that makes its results right, where no
            hypothesis explains them; None: what is left of `budget`; 0: it is not looked for.
        dissect: seconds for finding the unit that the DUT is, where no hypothesis explains it; 0: it is not
            asked.
        four_states: whether a unit that passed in Verilator is tried in Icarus Verilog as well.
        synthesis: one of POLICIES of rtl_tb/check/synthesis.py.
        holes: one of HOLES: whether a passing check that did not try every reachable case says so, or has no
            verdict.
        failures: folder for the capsule of a failure, None: no capsule.
        waves: write a waveform of the whole run here.
        build: folder for what is generated and compiled; runs with the same sources use it again.
        drawn: `digest_of` the vectors that have to be drawn, where a capsule knows; None: any.
        edited: files of a capsule's description that are not as the failed check left them.
    """

    engine: str = "fast"
    simulator: str = "verilator"
    count: int | None = None
    seed: int = 1
    first: int = 0
    weights: Mapping[str, float] | None = None
    idle: float | None = None
    backpressure: float | None = None
    resets: int | None = None
    timeout_cycles: int = Job.timeout_cycles
    wall_timeout: float = Job.wall_timeout
    vectors: Path | None = None
    until_covered: bool = False
    explain: bool = True
    budget: float = float("inf")
    repair: float | None = 0.0
    dissect: float = 0.0
    four_states: bool = True
    synthesis: str = "try"
    holes: str = "warn"
    failures: Path | None = field(default_factory=lambda: Path("failures"))
    waves: Path | None = None
    build: Path = Path("build")
    drawn: str | None = None
    edited: tuple[str, ...] = ()

    @property
    def vector_count(self) -> int:
        """The number of vectors to draw."""
        return DEFAULT_COUNTS[self.engine] if self.count is None else self.count

    @property
    def given_traffic(self) -> dict[str, Any]:
        """What of the traffic was asked for."""
        given = {name: getattr(self, name) for name in ("idle", "backpressure", "resets")}
        return {name: value for name, value in given.items() if value is not None}

    def traffic(self, usual: Traffic, count: int = 0) -> Traffic:
        """The usual traffic of so many vectors with what was asked for in its place, and the seed of the
        check."""
        resets = max(count // RESET_EVERY, LEAST_RESETS) if usual != Traffic() else 0
        return replace(usual, **{"resets": resets, "seed": self.seed} | self.given_traffic)


@dataclass
class Check:
    """A finished check."""

    dut: Dut
    options: Options
    verdict: Verdict
    traffic: Traffic
    vectors: VectorSet
    """Those of the whole check; a failure under the second traffic has a verdict on fewer."""
    coverage: Coverage | None = None
    """What the vectors cover."""
    example: Example | None = None
    diagnosis: Diagnosis | None = None
    difference: Difference | None = None
    capsule: Path | None = None
    resets_left_out: int = 0
    """Resets that the run of the verdict did without, see `affordable`."""
    unset: Unset | None = None
    """What depends on a signal that nothing drives."""
    four_states: FourStates | None = None
    """What Icarus showed of a unit that passed in Verilator."""
    synthesis: list[Synthesis] = field(default_factory=list)
    """What came of the unit as synthesis reads it, where that is another text."""
    beyond: list[str] = field(default_factory=list)
    """What the results may depend on beside the operands."""
    faults: list[Shown] = field(default_factory=list)
    """The faults, where the diagnosis found several."""
    hints: list[str] = field(default_factory=list)
    """What the description of the unit may have wrong."""
    repairs: list[Repair] = field(default_factory=list)
    """Changes of the DUT's text that make wrong results right."""
    dissection: Dissection | None = None
    """The unit that the DUT was found to be, where it was asked."""
    handshake: Traffic | None = None
    """The traffic of a second run of `fast`, where there was one."""
    under_traffic: int = 0
    """Vectors of that run, the first of the check."""
    never_held: str | None = None
    """What bits of its accumulator no run reached."""

    @property
    def passed(self) -> bool:
        """Whether the DUT is the instruction, as far as these vectors tell."""
        return self.verdict.passed

    @property
    def notes(self) -> list[str]:
        """What the verdict does not cover, one sentence each."""
        found = [] if self.four_states is None or not self.four_states.other else [self.four_states.sentence]
        if edited := self.options.edited:
            found.append(f"{', '.join(edited)} of the capsule was edited: this is not the check that failed")
        if self.passed and self.dut.instruction.load and "clear" in self.dut.ports:
            found.append(NEVER_TOGETHER)
        if self.passed and self.never_held:
            found.append(self.never_held)
        return [*found, *self.not_synthesised, *self.beyond]

    @property
    def excluded(self) -> str | None:
        """What did not count, or had another answer; None: nothing."""
        if (exclude := self.dut.exclude) is None:
            return None
        found = exclude.of(self.dut.instruction, self.vectors.operands, self.vectors.d)
        return exclude.said(int(np.count_nonzero(found)))

    @property
    def not_synthesised(self) -> list[str]:
        """Why it was not run as synthesis reads it, where that may be another text."""
        return [each.sentence for each in self.synthesis if each.refused]

    @property
    def drawn(self) -> int:
        """Vectors of the whole check."""
        return len(self.vectors)

    @property
    def _short_run(self) -> dict[str, Any]:
        return {"vectors": self.under_traffic, "failed": self.traffic == self.handshake}

    @property
    def command(self) -> str:
        """The command that repeats the check."""
        return self.repeated()

    def repeated(self, vectors: Path | None = None) -> str:
        """The command that repeats the check, with these vectors instead of its own."""
        options = (
            self.options
            if vectors is None
            else replace(self.options, vectors=vectors, until_covered=False, weights=None)
        )
        words = [
            "mmagold",
            "rtl",
            "check",
            shown(self.dut.file),
            "--engine",
            options.engine,
            "--sim",
            options.simulator,
        ]
        words += ["--vectors", str(options.vectors)] if options.vectors else ["--count", str(self.drawn)]
        words += ["--until-covered"] * options.until_covered + ["--seed", str(options.seed)]
        words += ["--first", str(options.first)] * bool(options.first and not options.vectors)
        for name, value in options.given_traffic.items():
            words += [f"--{name}", str(value)]
        words += ["--no-four-states"] * (not options.four_states)
        words += ["--synthesis", options.synthesis] * (options.synthesis != Options.synthesis)
        words += ["--holes", options.holes] * (options.holes != Options.holes)
        words += ["--timeout", str(options.timeout_cycles)] * (
            options.timeout_cycles != Options.timeout_cycles
        )
        words += ["--wall-timeout", f"{options.wall_timeout:g}"] * (
            options.wall_timeout != Options.wall_timeout
        )
        if options.weights is not None:
            words += ["--kinds", ",".join(f"{kind}={weight!r}" for kind, weight in options.weights.items())]
        return shlex.join(words)

    def as_dict(self) -> dict[str, Any]:
        """Everything that reports show, as plain values, stable for machines."""
        verdict, outcome = self.verdict, self.verdict.outcome
        return {
            "dut": self.dut.name,
            "file": str(self.dut.file),
            "instruction": self.dut.instruction_name,
            "level": self.dut.level,
            "latency": self.dut.handshake.latency,
            "passed": self.passed,
            "engine": outcome.engine,
            "simulator": outcome.simulator,
            "version": outcome.version,
            "translated": outcome.translated or None,
            "seed": self.options.seed,
            "traffic": asdict(self.traffic),
            "resets_left_out": self.resets_left_out,
            "handshake": None if self.handshake is None else asdict(self.handshake) | self._short_run,
            "drawn": self.drawn,
            "vectors": len(verdict.vectors),
            **{key: int(np.count_nonzero(getattr(verdict, key))) for key in ("wrong", "unknown", "missing")},
            "flags": verdict.wrong_flags or None,
            "protocol": [
                {"kind": one.kind, "cycle": one.cycle, "vector": one.vector, "text": one.text}
                for one in outcome.failures
            ],
            "kinds": [
                {key: getattr(row, key) for key in ("kind", "tried", "wrong", "unknown", "missing")}
                for row in verdict.by_named_kind()
            ],
            "unset": None if self.unset is None else self.unset.as_dict(),
            "four_states": None if self.four_states is None else self.four_states.as_dict(),
            "synthesis": [each.as_dict() for each in self.synthesis],
            "excluded": self.excluded,
            "notes": self.notes,
            "example": None if self.example is None else self.example.as_dict(),
            "diagnosis": None if self.diagnosis is None else self.diagnosis.as_dict(),
            "faults": [
                one.fault.as_dict() | {"example": None if one.example is None else one.example.as_dict()}
                for one in self.faults
            ],
            "hints": self.hints,
            "repairs": [repair.as_dict() for repair in self.repairs],
            "dissection": None if self.dissection is None else self.dissection.as_dict(),
            "difference": None if self.difference is None else self.difference.as_dict(),
            "coverage": self._coverage_dict(self.coverage),
            "cycles": outcome.cycles,
            "seconds_build": outcome.seconds_build,
            "seconds_run": outcome.seconds_run,
            "capsule": None if self.capsule is None else str(self.capsule),
            "repeat": self.command,
        }

    def _coverage_dict(self, coverage: Coverage | None) -> dict[str, Any] | None:
        if coverage is None:
            return None
        holes = [f"{point}: {label}" for point, label in coverage.holes()]
        return {
            "percent": coverage.percent,
            "reachable": coverage.counts[1],
            "vectors": coverage.vectors,
            "noun": "dot products" if self.dut.level == "tile" else "vectors",
            "holes": holes,
            "given": self.options.vectors is not None,
        }


def check(
    file: str | Path,
    options: Options | None = None,
    progress: Progress | None = None,
    listen: Listen | None = None,
) -> Check:
    """Checks the DUT that `file` describes; `listen` hears of a failing one before it is explained.

    Raises:
        SpecError: the description is wrong. FileFormatError, OperandError: the vector file is damaged or of
            another unit.
        SimulatorMissing, SimulatorTooOld, ElaborationError: as their names say; the last also where the unit
            passes and cannot be run as synthesis reads it, which was required.
    """
    return check_dut(load_dut(file), options, progress, listen)


def check_dut(
    dut: Dut,
    options: Options | None = None,
    progress: Progress | None = None,
    listen: Listen | None = None,
) -> Check:
    """Checks a DUT whose description is read already.

    Raises:
        As check does.
    """
    options = options or Options()
    budget = Budget(options.budget)
    report = progress or (lambda _what, _done, _total: None)
    tell = listen or (lambda _check, _stage: None)
    engine, simulator = engines.choice_of(dut, options.engine, options.simulator)
    options = replace(options, engine=engine, simulator=simulator)
    build = options.build / dut.name
    report("drawing vectors", 0, 0)
    vectors, coverage = draw(dut, options)
    asked = options.traffic(DEFAULT_TRAFFIC[options.engine], len(vectors))
    traffic = affordable(asked, vectors)
    start = time.monotonic()

    def as_job(dut: Dut) -> Job:
        return Job(
            dut,
            build,
            vectors,
            options.simulator,
            traffic,
            options.timeout_cycles,
            options.wall_timeout,
            options.waves,
        )

    job, said = _built(dut, as_job, options, report)
    whole, dut = job, job.dut
    built = time.monotonic() - start
    outcome = engines.run(options.engine, job, lambda done, total: report("running", done, total))
    outcome.seconds_build += built
    result = Check(dut, options, judge(vectors, outcome, dut.compare), _had(job, outcome), vectors, coverage)
    result.resets_left_out = asked.on(dut).resets - traffic.on(dut).resets
    if (again := of_its_reader(job, result.verdict, options.engine)) is not None:
        result.four_states, job, result.verdict = again
        whole = job
    if result.passed and options.engine == "fast":
        job = _try_handshake(result, job)
    if result.passed and (options.engine == "fast" or dut.vhdl is not None):
        job = _climb(result, job)
    turned: Polarity | Spacing | None = None
    if not result.passed and options.explain:
        report("looking at polarities", 0, 0)
        verdict = result.verdict
        turned = spacing(verdict, options.engine, job) if silent(verdict) else None
        turned = turned or polarity(verdict, options.engine, job)
    if turned is not None:  # what came is no result: nothing more is built on it
        result.hints = [turned.sentence]
    else:
        job = _try_starts(result, job, whole, report)
    if result.passed and job.simulator == "verilator" and options.four_states:
        report("trying four states", 0, 0)
        result.four_states, job, result.verdict = ask_four_states(job, result.verdict)
    if dut.vhdl is not None:
        result.beyond += vhdl.notes(dut, result.verdict)
    elif result.passed:
        job = _read_otherwise(result, job, report)
    result.hints += [*said, *_printed(outcome.printed, build)]
    # From here on the verdict stands, whatever becomes of what explains it.
    tell(result, VERDICT)
    more = Budget(max(budget.left(), _IN_ANY_CASE * options.budget))
    if not result.passed and options.explain and turned is None:
        explain(result, job, report, more, tell)
    if not result.passed and options.failures is not None:
        from rtl_tb.check.capsule import write_capsule

        report("writing the failure capsule", 0, 0)
        result.capsule = write_capsule(result, job, options.failures, more)
    tell(result, END)
    return result


def _printed(text: str, build: Path) -> list[str]:
    """Keeps what the unit printed as a file, and says where and how it begins."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    write_text(build / PRINTED, text)
    many = f"{len(lines):,} line{'s' * (len(lines) > 1)}"
    return [f"the unit printed {many}, kept in {build / PRINTED}; the first: {lines[0].strip()}"]


def _built(
    dut: Dut, as_job: Callable[[Dut], Job], options: Options, report: Progress
) -> tuple[Job, list[str]]:
    """The job of a DUT with its program and, where it is to be measured, its latency; and what is said of
    them. A text that is refused is tried without what synthesis leaves out.

    Raises:
        As check does.
    """
    place = options.build / dut.name

    def build(dut: Dut) -> tuple[Job, list[str]]:
        said = ""
        if dut.handshake.measured:
            report("measuring the latency", 0, 0)
            dut, said = measured(dut, options.engine, options.simulator, place)
        report("building", 0, 0)
        job = as_job(dut)
        return replace(job, program=engines.build(options.engine, job)), [said] if said else []

    try:
        return build(dut)
    except ElaborationError as refused:
        other = synthesised(dut, place)
        if other is None:
            raise
        try:
            job, said = build(other)
        except ElaborationError:
            raise refused from None
        return job, [
            "its text was read without what stands between the pragmas translate_off and translate_on, as by "
            f"synthesis: with it {' '.join(str(refused).split())}",
            *said,
        ]


def _try_starts(result: Check, job: Job, whole: Job, report: Progress) -> Job:
    """Asks what depends on signals that nothing drives, after the last run, `job`, and that of all vectors;
    returns the job that the verdict is of.

    Raises:
        RtlError: as the engine does, where the unit passed.
    """
    report("trying other starts", 0, 0)
    engine, verdict = result.options.engine, result.verdict
    try:
        if result.passed and verdict.outcome.translated:
            result.unset, job, result.verdict = ask_source(engine, job, verdict)
        else:
            result.unset, job, result.verdict = compare_starts(engine, job, verdict, whole)
    except RtlError as error:
        if result.passed:
            raise
        result.beyond = [f"what other starts give is not known: {error}"]  # it fails all the same
    return job


def _try_handshake(result: Check, job: Job) -> Job:
    """Runs the vectors again under the other traffic, if that is another; returns the job that the verdict is
    of."""
    vectors = job.vectors[: _bearable(len(job.vectors), result.verdict.outcome.seconds_run)]
    asked = result.options.traffic(TRAFFIC, len(vectors))
    traffic = affordable(asked, vectors)
    if traffic.on(job.dut) == job.traffic.on(job.dut):
        return job
    job = replace(job, vectors=vectors, traffic=traffic)
    outcome = engines.run("fast", job)
    outcome.seconds_build = result.verdict.outcome.seconds_build
    busy = judge(job.vectors, outcome, job.dut.compare)
    result.handshake, result.under_traffic = _had(job, outcome), len(vectors)
    result.resets_left_out = asked.on(job.dut).resets - traffic.on(job.dut).resets
    if not busy.passed:
        result.verdict, result.traffic = busy, result.handshake
    return job


def _bearable(count: int, seconds: float) -> int:
    """How many of the vectors run under traffic, of a unit that took so long for all of them without."""
    while count >= 2 * TRAFFIC_AT_LEAST and TRAFFIC_COST * seconds > TRAFFIC_SECONDS:
        count, seconds = count // 2, seconds / 2
    return count


def _climb(result: Check, job: Job) -> Job:
    """Fills the accumulator that a unit keeps until it overflows; returns the job that the verdict is of."""
    tried = try_climbs(job, result.options.engine)
    if tried is None:
        result.never_held = never_held(job.dut.instruction, [result.vectors])
        return job
    vectors, climbing, verdict = tried
    if result.coverage is not None:
        for part in turns(vectors, COVERED):
            result.coverage.sample_set(part)
    result.never_held = never_held(job.dut.instruction, [result.vectors, vectors])
    if verdict.passed:
        return job
    result.verdict = verdict
    return climbing


def _read_otherwise(result: Check, job: Job, report: Progress) -> Job:
    """Asks what the text of a passed unit hangs on, and what synthesis makes of it; returns the job that the
    verdict is of.

    Raises:
        ElaborationError: what synthesis makes of it is not known, and was required.
    """
    policy = result.options.synthesis
    try:
        text = as_run(job)
    except RtlError as error:
        result.synthesis = [unknown(error)] if policy != "off" else []
    else:
        result.beyond = [*beyond(text), *several_drive(job, text)]
        report("trying other bits where the text leaves them open", 0, 0)
        whole = _fill(result, job, text)
        if not result.passed:
            return whole
        if policy != "off":
            report("trying what synthesis reads", 0, 0)
            result.synthesis, job, result.verdict = ask_synthesis(job, result.verdict, text)
            for each in result.synthesis:
                if result.passed and each.text is not None:
                    whole = _fill(result, job, each.text, each.by)
            job = job if result.passed or result.unset is None else whole
    if policy == "require" and result.passed and result.not_synthesised:
        raise ElaborationError(f"{result.dut.name} passes, but {result.not_synthesised[0]}")
    return job


def _fill(result: Check, job: Job, text: Reading | None, by: str = "") -> Job:
    """Runs all vectors with other bits where the text, of the simulator or `by` another tool, leaves them
    open; returns the job of that run."""
    job = replace(job, vectors=result.vectors, traffic=replace(job.traffic, resets=0))
    try:
        unset, job, result.verdict, note = ask_fills(job, result.verdict, text)
        result.unset = None if unset is None else replace(unset, by=by)
        result.beyond += [note] if note and note not in result.beyond else []
    except Exception as error:  # slang may not know what Verilator takes; the verdict stands, with a note
        if isinstance(error, (MmagoldError, OSError)) and not isinstance(error, RtlError):
            raise
        result.beyond.append(f"whether it leaves bits open is not known: {_said_of(error)}")
    return job


def affordable(traffic: Traffic, vectors: VectorSet) -> Traffic:
    """The traffic with as many of its resets as a unit that keeps its accumulator bears in bounded time, one
    at least: with vectors of one long sequence every reset is a run of its own."""
    if not vectors.instruction.state or not len(vectors):
        return traffic
    again = float(places(vectors.operands["clear"]).mean()) + 1
    most = int(max(AGAIN * len(vectors), AGAIN_AT_LEAST) / again)
    return replace(traffic, resets=min(traffic.resets, max(most, 1)))


def _had(job: Job, outcome: Outcome) -> Traffic:
    """The traffic that there really was: a short run ends before all of its resets."""
    return replace(job.traffic.on(job.dut), resets=outcome.resets)


def shown(path: Path) -> str:
    """A path as one would type it here."""
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near


def draw(dut: Dut, options: Options) -> tuple[VectorSet, Coverage | None]:
    """The vectors of a check, and what they cover (the first COVERED dot products)."""
    from golden.cover.coverage import Coverage, until_covered
    from golden.vectors.files import read

    ins = dut.instruction
    if options.first and (options.until_covered or options.vectors is not None):
        raise OperandError(f"first is {options.first}, but the vectors are not those of a seed's stream")
    if options.until_covered:
        if dut.level != "dot":
            raise OperandError("--until-covered works on dot products; this DUT computes tiles")
        check_held(options.vector_count)
        coverage = Coverage(ins)
        drawn = join(list(until_covered(ins, options.seed, options.vector_count, coverage)))
        if dut.exclude is None:
            return drawn, coverage
        drawn = dut.exclude.replaced(drawn)
        return drawn, _covered(drawn)
    if options.vectors is not None:
        vectors = read(options.vectors, ins)
        if vectors.level != dut.level:
            raise OperandError(
                f"{options.vectors}: vectors of level {vectors.level}, but {dut.file} is of level {dut.level}"
            )
    else:
        vectors = excerpt(ins, options.seed, dut.level, options.weights, options.first, options.vector_count)
    if options.vectors is None and dut.exclude is not None:
        vectors = dut.exclude.replaced(vectors)
    if not len(vectors):
        raise OperandError(f"{options.vectors}: holds no vectors; a check of nothing proves nothing")
    coverage = _covered(vectors)
    if options.vectors is None and options.weights is None:
        aimed = _aimed(dut, vectors, coverage)
        vectors = join([vectors[: len(vectors) - sum(map(len, aimed))], *aimed])
    if options.drawn is not None and digest_of(vectors) != options.drawn:
        raise OperandError(
            f"these are not the vectors that {dut.file} failed on: this version of mmagold draws others; "
            "--vectors takes the failing ones (failing.npz)"
        )
    return vectors, coverage


def _aimed(dut: Dut, vectors: VectorSet, coverage: Coverage) -> list[VectorSet]:
    """Vectors for the reachable bins that the drawn ones left out; they take the place of the last ones. Of
    tiles, of few vectors and of sequences none are looked for."""
    from golden.cover.aiming import aim

    ins, exclude = vectors.instruction, dut.exclude
    if vectors.level != "dot" or ins.state or len(vectors) < COVERED:
        return []
    if exclude is None or exclude.answer != "anything":
        return list(aim(ins, coverage, vectors.seed))
    aimed = list(aim(ins, coverage, vectors.seed, allowed=lambda given, d: ~exclude.of(ins, given, d)))
    # What excluded operands alone reach is no case of this unit.
    every = copy(coverage)
    every.hits = {name: hits.copy() for name, hits in coverage.hits.items()}
    for _ in aim(ins, every, vectors.seed):
        pass
    coverage.waived = set(coverage.holes()) - set(every.holes())
    return aimed


def digest_of(vectors: VectorSet) -> str:
    """A digest of operands and expected results."""
    total = hashlib.sha256()
    for name, codes in sorted((vectors.operands | vectors.results).items()):
        total.update(f"{name} {codes.dtype.str} {codes.shape}".encode())
        total.update(np.ascontiguousarray(codes).tobytes())
    return total.hexdigest()


def _covered(vectors: VectorSet) -> Coverage:
    """What the first COVERED dot products cover, and twice as many more where they leave bins out; of tiles
    whole ones, one at least."""
    from golden.cover.coverage import Coverage

    coverage = Coverage(vectors.instruction)
    if vectors.level == "tile":
        per_tile = max(vectors.d[:1].size, 1)
        coverage.sample(*of_tiles(vectors[: max(COVERED // per_tile, 1)]))
        return coverage
    for start in range(0, min(3 * COVERED, len(vectors)), COVERED):
        coverage.sample_set(vectors[start : start + COVERED])
        if not coverage.holes():
            break
    return coverage


# When it differs --------------------------------------------------------------------------------------------


def explain(result: Check, job: Job, report: Progress, budget: Budget, tell: Listen) -> None:
    """Adds the smallest failing operands and the diagnosis to a failed check, as far as the budget goes; each
    is told of as soon as it is there."""
    from rtl_tb.check import reasons
    from rtl_tb.check.under_traffic import apart

    verdict, busy, engine = result.verdict, job, result.verdict.outcome.engine
    calm: Calm | None = None
    report("looking at what traffic does", 0, 0)
    with _given_up(result, "what traffic does is not known"):
        calm = apart(verdict, engine, job)
    mixed = calm is not None and bool(calm.verdict.failed.any())
    if calm is not None and mixed:  # the arithmetic by itself
        verdict, job = calm.verdict, calm.job
    result.hints += [] if calm is None else [calm.sentence]
    if reasons.too_few(verdict):
        result.hints.append(reasons.never_answered(verdict))
        return
    if verdict.wrong.any() or verdict.unknown.any():
        report("looking for the smallest operands that fail", 0, 0)
        minimising = partial(report, "minimising")
        with _given_up(result, "the smallest operands that fail are not known"):
            result.example = smallest(verdict, engine, job, minimising, budget.rest(_EXAMPLE))
    tell(result, EXAMPLE)
    report("looking for the reason", 0, 0)
    with _text_ahead(result, verdict, job, budget) as ahead:
        asked = result.options.repair
        found, within = None, budget.rest(_HYPOTHESES if asked is None else 1.0)
        if calm is None or mixed:  # else the arithmetic is right
            with _given_up(result, "whether a hypothesis explains it is not known"):
                found = explain_results(verdict, job, partial(report, "trying hypotheses"), within)
        if found is not None:
            result.diagnosis = found
            report("looking for the smallest operands of each fault", 0, 0)
            with _given_up(result, "the smallest operands of each fault are not known"):
                result.difference = find_difference(result)
                result.faults = reasons.shown(verdict, engine, job, found, within)
        with _given_up(result, "whether the description is wrong is not known"):
            result.hints += [*reasons.hints(verdict, job, found, budget), *swapped_ports(job.dut, found)]
            # A fault of the arithmetic that has a name is none of the handshake, as long as that is kept.
            if found is None or not found.explains or verdict.outcome.failures:
                apart_enough = spacing(verdict, engine, job)
                result.hints[:0] = [] if apart_enough is None else [apart_enough.sentence]
            result.hints += initialised_once(verdict, job.dut) if verdict.wrong.any() else []
        tell(result, DIAGNOSIS)
        text = budget.rest(_TEXT) if asked is None else Budget(asked)
        unexplained = _ask_text(result, verdict, job, report, text, ahead)
        if calm is not None and mixed and asked != 0 and job.dut.vhdl is None:
            result.repairs = [one.held_to(f"right {calm.without}") for one in result.repairs]
            result.repairs += mend_traffic(result, calm, busy, report, text.rest())
        if result.options.dissect and unexplained:
            dissect(result, job, report)


@contextmanager
def _text_ahead(result: Check, verdict: Verdict, job: Job, budget: Budget) -> Iterator[Ahead | None]:
    """What the search in the text begins with, made while hypotheses are tried; None where none will be."""
    from rtl_tb.locate.choices import Ahead

    asked, own = result.options.repair, job.dut.sources == result.dut.sources
    if asked == 0 or not own or job.dut.vhdl is not None or not verdict.wrong.any():
        yield None
        return
    ahead = Ahead(job, budget.rest(_TEXT) if asked is None else Budget(asked))
    try:
        yield ahead
    finally:
        ahead.end()


@contextmanager
def _given_up(result: Check, what: str) -> Iterator[None]:
    """What goes wrong in the block is a hint that begins with `what`: the verdict stands."""
    try:
        yield
    except Exception as error:
        result.hints.append(f"{what}: {_said_of(error)}")


def _said_of(error: Exception) -> str:
    """What a report says of an error, in one line."""
    return " ".join(str(error).split()) if isinstance(error, MmagoldError) else own_fault(error)


def _ask_text(
    result: Check, verdict: Verdict, job: Job, report: Progress, budget: Budget, ahead: Ahead | None
) -> bool:
    """Looks for a change of the text where the diagnosis does not explain the results, or by several faults
    alone; whether it does not explain them."""
    found = result.diagnosis
    own = job.dut.sources == result.dut.sources  # the designer's text, not one made of it
    unexplained = bool(verdict.wrong.any()) and (found is None or not found.explains)
    several = found is not None and not found.explained_by_one
    wanted = result.options.repair != 0
    if wanted and unexplained and job.dut.vhdl is not None:
        result.hints.append(
            "no change of the text was tried: that search reads SystemVerilog, and this is VHDL"
        )
    elif wanted and own and (unexplained or (several and job.dut.vhdl is None)):
        result.repairs = mend(result, verdict, job, report, budget, unexplained, ahead=ahead)
        if _outdone(result, found):
            result.diagnosis, result.difference, result.faults = None, None, []
    return unexplained


def _outdone(result: Check, found: Diagnosis | None) -> bool:
    """Whether a change of the text, with which all vectors are right, says more than a hypothesis that leaves
    some, or than one of several faults where the change is one."""
    if found is None or not result.repairs or not result.repairs[0].explained:
        return False
    if found.explains:
        return result.repairs[0].by_one and not found.explained_by_one
    return bool(found.hypotheses) and found.hypotheses[0].accepted(found.failing)


def dissect(result: Check, job: Job, report: Progress) -> None:
    """Adds the unit that the DUT is."""
    from rtl_tb.check import dissection

    with _given_up(result, "the DUT was not dissected"):
        engine = result.verdict.outcome.engine
        result.dissection = dissection.dissect(job, engine, result.options.dissect, report)


def mend_traffic(result: Check, calm: Calm, job: Job, report: Progress, budget: Budget) -> list[Repair]:
    """The changes of the text with which a unit answers as it does without traffic, beside a fault of its
    arithmetic: they have what the first search left of the time."""
    held, are = calm.held_to(result.verdict), f"what they are {calm.without}"
    if job.dut.sources != result.dut.sources or held is None or not held.wrong.any():
        return []
    if budget.left() < _LEAST_REPAIR:
        result.hints.append(
            f"no change of the text was tried to make all vectors {are}: "
            "the time was up (--repair gives more)"
        )
        return []
    found = mend(result, held, job, report, budget, False, f"all vectors {are}")
    return [one.held_to(are) for one in found]


def mend(
    result: Check,
    verdict: Verdict,
    job: Job,
    report: Progress,
    budget: Budget,
    beside: bool = True,
    made: str = "these results right",
    ahead: Ahead | None = None,
) -> list[Repair]:
    """The changes of the text that make the results of a verdict right, with what hypotheses say `beside`
    one; looks for them as long as the budget goes. Where there are none, a hint says so; `made`: what they
    would make; `ahead`: what was made of the text before."""
    from rtl_tb.locate.search import Unfinished, find_repairs

    report("looking for a change of the text that fixes it", 0, 0)
    tried = 0

    def trying(done: int, total: int) -> None:
        nonlocal tried
        tried = max(tried, done)
        report("trying changes of the text", done, total)

    hypotheses = () if result.diagnosis is None else result.diagnosis.partial
    try:
        if found := find_repairs(verdict, job, budget, trying, beside, hypotheses, ahead):
            return found
        said = f"no change of the text that was tried makes {made} (--repair looks longer)"
    except Unfinished as error:
        said = f"of the changes of the text these alone were tried, and none makes {made}: {error}"
    except Exception as error:  # whatever becomes of the search, the verdict stands
        what = _said_of(error)
        said = f"no change of the text was tried to make {made}: {what}"
        if tried:
            said = (
                f"the search for a change of the text that makes {made} ended before all were tried: {what}"
            )
    result.hints.append(said)
    return []


def find_difference(result: Check) -> Difference | None:
    """The step of the smallest example at which the diagnosed unit first differs, where it answers as the
    DUT did."""
    from golden.explain.first_difference import first_difference

    example, best = result.example, result.diagnosis.hypotheses[:1] if result.diagnosis else ()
    if example is None or not best or best[0].instruction is None or not best[0].has_words:
        return None
    unit, operands = example.instruction.in_mode_of(example.operands)
    if result.diagnosis is not None and result.diagnosis.instruction.name != unit.name:
        return None  # the diagnosis is of another mode
    if int(best[0].instruction.dot(**operands)) != example.actual:
        return None
    return first_difference(unit, best[0].instruction, operands)
