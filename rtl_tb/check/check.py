"""One check of a DUT: run, judge, and when it fails find the smallest operands, the reason,
and leave a capsule.

result = check("dut.yaml", Options(count=200_000))
result.passed, result.as_dict()

The verdict comes of `run_vectors` and the stages in VERDICT_STAGES, one after the other; each takes what is
known of the check and returns it anew. A stage that looks for more runs only where all passed so far. Of a
unit that failed, `read_again` may withdraw the failure, `try_initial_values` may show it from other bits, and
`watch_outputs` and `turn_polarities` may end the check without an explanation. From then on the verdict
stands, and rtl_tb/check/explain.py looks for what explains it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from golden.budget import ALL
from golden.errors import MmagoldError, counted
from golden.files.output import write_text
from rtl_tb import engines
from rtl_tb.check import vhdl
from rtl_tb.check.accumulate import try_long_accumulation, turning_points, unreached_bits
from rtl_tb.check.capsule import write_capsule
from rtl_tb.check.drawing import COVERED, draw
from rtl_tb.check.explain import OnPart, Progress, error_line, explain
from rtl_tb.check.four_states import compare_four_states, of_its_reader
from rtl_tb.check.initial_values import compare_initial_values, compare_with_source
from rtl_tb.check.options import (
    DEFAULT_COUNTS,
    DEFAULT_TRAFFIC,
    TRAFFIC,
    Options,
    affordable,
)
from rtl_tb.check.other_outputs import run_other_outputs, uncompared_bits
from rtl_tb.check.outside_influences import outside_influences, signals_with_several_drivers
from rtl_tb.check.record import END, VERDICT, Check
from rtl_tb.check.source_text import synthesised, text_of_run
from rtl_tb.check.synthesis import compare_netlists, unknown
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.locate.budget import Budget
from rtl_tb.runs.initiation_interval import initiation_interval
from rtl_tb.runs.latency import measured
from rtl_tb.runs.polarity import polarity
from rtl_tb.runs.verdict import judge, silent

Stage = Callable[[Check, Progress], Check]
"""Takes the record of a check and a progress callback; returns the record with its findings."""

PRINTED = "printed.log"
"""File in the unit's build folder with the output that it printed."""


def check(
    file: str | Path,
    options: Options | None = None,
    progress: Progress | None = None,
    listen: OnPart | None = None,
) -> Check:
    """Checks the DUT that `file` describes; `listen` gets a failing check before it is explained.

    Raises:
        SpecError: the description is wrong. FileFormatError, OperandError: the vector file is damaged or of
            another unit.
        SimulatorMissing, SimulatorTooOld, ElaborationError: as their names say; the last also if the unit
            passes and cannot be run as synthesis reads it, and that is required.
    """
    return check_dut(load_dut(file), options, progress, listen)


def check_dut(
    dut: Dut,
    options: Options | None = None,
    progress: Progress | None = None,
    listen: OnPart | None = None,
) -> Check:
    """Checks a DUT whose description is read already.

    Raises:
        As check does.
    """
    options = options or Options()
    budget = Budget(options.budget)
    report = progress or (lambda _what, _done, _total: None)
    on_part = listen or (lambda _check, _stage: None)
    state = run_vectors(dut, options, report)
    # Share of a budget that the explanation of a failure has, however long the unit was built.
    in_any_case = 0.5
    # Share after which a unit that fails is not run from other starts: two more runs of a slow simulator.
    other_starts = 0.3
    for stage in VERDICT_STAGES:
        # What a unit that fails gives from other starts only explains it.
        if stage is try_initial_values and not state.passed and budget.over(other_starts):
            state = state.noted("what other starts give is not known: the time was up (--budget gives more)")
            continue
        try:
            state = stage(state, report)
        except KeyboardInterrupt:
            if stage is simulate_gates and state.passed:
                on_part(state.noted("it was not checked as synthesis reads it: the run was ended"), VERDICT)
            raise
    # From here on the verdict stands, whatever becomes of what explains it.
    on_part(state, VERDICT)
    more = Budget(max(budget.left(ALL), in_any_case * options.budget))
    if not state.passed and options.explain and not state.turned:
        state = explain(state, report, more, on_part)
    if not state.passed and options.failures is not None:
        report("writing the failure capsule", 0, 0)
        state = write_capsule(state, state.run, options.failures, more)
    on_part(state, END)
    return state


# The stages of the verdict ----------------------------------------------------------------------------------


def run_vectors(dut: Dut, options: Options, report: Progress) -> Check:
    """Draws the vectors, builds the unit and runs them all."""
    engine, simulator = engines.choice_of(dut, options.engine, options.simulator)
    options = replace(options, engine=engine, simulator=simulator)
    build = options.build / dut.name
    report("drawing vectors", 0, 0)
    vectors, coverage = draw(dut, options)
    requested = options.traffic(DEFAULT_TRAFFIC[engine], len(vectors))
    traffic = affordable(requested, vectors)
    start = time.monotonic()

    def as_job(dut: Dut) -> Job:
        limits = options.timeout_cycles, options.wall_timeout
        return Job(dut, build, vectors, simulator, traffic, *limits, options.waves)

    job, said = _built(dut, as_job, options, report)
    built = time.monotonic() - start
    outcome = engines.run(engine, job, lambda done, total: report("running", done, total))
    outcome.seconds_build += built
    ignored = job.dut.compare.uncompared(dut.instruction.formats["d"])
    return Check(
        job.dut,
        options,
        judge(vectors, outcome, job.dut.compare),
        _had(job, outcome),
        vectors,
        coverage,
        resets_left_out=requested.on(job.dut).resets - traffic.on(job.dut).resets,
        job=job,
        whole=job,
        hints=(*said, *_printed(outcome.printed, build)),
        uncompared=(*uncompared_bits(job.dut), *ignored),
    )


def read_again(state: Check, _report: Progress) -> Check:
    """An X that only Icarus's reader of the text produces is not the unit's."""
    again = of_its_reader(state.run, state.verdict, state.engine)
    if again is None:
        return state
    four_states, job, verdict = again
    return replace(state, four_states=four_states, job=job, whole=job, verdict=verdict)


def watch_outputs(state: Check, _report: Progress) -> Check:
    """Outputs that are no results, of which the description says what they have, are looked at."""
    if not state.passed:
        return state
    others = run_other_outputs(state.run, state.options.engine)
    if others is None or not others.failures:
        return state
    outcome = state.verdict.outcome
    outcome = replace(outcome, failures=[*outcome.failures, *others.failures])
    return replace(state, verdict=replace(state.verdict, outcome=outcome), other_outputs=others)


def run_under_traffic(state: Check, report: Progress) -> Check:
    """`fast`, whose first run is at full throughput, runs the vectors again with idle cycles,
    backpressure and resets."""
    if not (state.passed and state.options.engine == "fast"):
        return state
    job = state.run
    vectors = job.vectors[: _bearable(len(job.vectors), state.verdict.outcome.seconds_run)]
    requested = state.options.traffic(TRAFFIC, len(vectors))
    traffic = affordable(requested, vectors)
    if traffic.on(job.dut) == job.traffic.on(job.dut):
        return state
    job = replace(job, vectors=vectors, traffic=traffic)
    outcome = engines.run("fast", job, lambda done, total: report("running under traffic", done, total))
    outcome.seconds_build = state.verdict.outcome.seconds_build
    busy = judge(job.vectors, outcome, job.dut.compare)
    had = _had(job, outcome)
    left_out = requested.on(job.dut).resets - traffic.on(job.dut).resets
    state = replace(state, job=job, handshake=had, under_traffic=len(vectors), resets_left_out=left_out)
    return state if busy.passed else replace(state, verdict=busy, traffic=had)


def run_in_verilog(state: Check, report: Progress) -> Check:
    """Of a unit in VHDL GHDL runs few vectors. Many more run in the Verilog of its synthesis, if that has the
    same results; GHDL decides on what fails there."""
    drawn = state.options.vectors is None and not state.options.until_covered
    if not (state.passed and state.dut.vhdl is not None and drawn and state.dut.level == "dot"):
        return state
    count = min(vhdl.SPEED * len(state.vectors), DEFAULT_COUNTS["fast"])
    if count <= len(state.vectors):
        return state
    report("running further vectors in Verilog", 0, 0)
    options = replace(state.options, count=count, drawn=None)
    vectors, coverage = draw(state.dut, options)
    requested = state.options.traffic(DEFAULT_TRAFFIC["cocotb"], len(vectors))
    try:
        found = vhdl.run_in_verilog(state.run, state.verdict, vectors, affordable(requested, vectors))
    except Exception as error:  # GHDL's verdict stands, with a note
        return state.noted(f"no further vectors ran as Verilog: {error_line(error)}")
    if found.confirmed is not None:
        job, verdict = found.confirmed
        return replace(state, job=job, whole=job, verdict=verdict)
    if found.failed:
        return state.noted(
            f"{found.failed:,} further vectors are wrong in the Verilog of GHDL's synthesis; the ones "
            "that GHDL ran are right"
        )
    state = replace(state, coverage=coverage)
    return state.noted(f"{len(vectors):,} further vectors ran as the Verilog of GHDL's synthesis: 0 differ")


def accumulate_long(state: Check, report: Progress) -> Check:
    """An integer accumulator of the unit is filled until it overflows, in both directions."""
    if not (state.passed and (state.options.engine == "fast" or state.dut.vhdl is not None)):
        return state
    report("filling the accumulator", 0, 0)
    tried = try_long_accumulation(state.run, state.options.engine)
    if tried is None:
        return replace(state, unreached_bits=unreached_bits(state.dut.instruction, [state.vectors]))
    vectors, job, verdict = tried
    for part in turning_points(vectors, COVERED) if state.coverage is not None else ():
        state.coverage.sample_set(part)  # type: ignore[union-attr]
    state = replace(state, unreached_bits=unreached_bits(state.dut.instruction, [state.vectors, vectors]))
    return state if verdict.passed else replace(state, verdict=verdict, job=job)


def turn_polarities(state: Check, report: Progress) -> Check:
    """A unit that fails as if reset, valid, ready or enable had the other polarity, or as if
    operands came too often, is run in that way. If it works then, the earlier results do not count."""
    if state.passed or not state.options.diagnosed:
        return state
    report("looking at polarities", 0, 0)
    arguments = state.verdict, state.options.engine, state.run
    turned = (initiation_interval(*arguments) if silent(state.verdict) else None) or polarity(*arguments)
    if turned is None:
        return state
    return replace(state, turned=True, hints=(turned.sentence, *state.hints))


def try_initial_values(state: Check, report: Progress) -> Check:
    """Undriven signals start as zeros and as ones, too; a unit that was run as a translation is run
    in its own language.

    Raises:
        RtlError: as the engine does, if the unit passed.
    """
    if state.turned:
        return state
    report("trying other starts", 0, 0)
    engine, verdict, job = state.options.engine, state.verdict, state.run
    try:
        if state.passed and verdict.outcome.translated:
            unset, job, verdict = compare_with_source(engine, job, verdict)
        else:
            unset, job, verdict = compare_initial_values(engine, job, verdict, state.whole or job)
    except RtlError as error:
        if state.passed:
            raise
        return state.noted(f"what other starts give is not known: {error}")  # it fails all the same
    return replace(state, unset=unset, job=job, verdict=verdict)


def try_four_states(state: Check, report: Progress) -> Check:
    """The first vectors run in Icarus, which has X and Z: a result with either is wrong."""
    if not (state.passed and state.run.simulator == "verilator" and state.options.four_states):
        return state
    report("trying four states", 0, 0)
    four_states, job, verdict = compare_four_states(state.run, state.verdict)
    return replace(state, four_states=four_states, job=job, verdict=verdict)


def simulate_gates(state: Check, report: Progress) -> Check:
    """The vectors run on the netlist that synthesis makes of the unit, with undefined bits zero, one
    and random; notes list further influences on the results.

    Raises:
        ElaborationError: synthesis failed, and its result was required.
    """
    if state.dut.vhdl is not None:
        return state.noted(*vhdl.notes(state.dut, state.verdict))
    if not state.passed:
        return state
    policy, job = state.options.synthesis, state.run
    report("reading the text as synthesis does", 0, 0)
    try:
        text = text_of_run(job)
    except RtlError as error:
        state = replace(state, synthesis=(unknown(error),) if policy != "off" else ())
    else:
        state = state.noted(*outside_influences(text), *signals_with_several_drivers(job, text))
        if policy != "off" and text is not None:
            budget = Budget(state.options.budget)
            try:
                gates = compare_netlists(
                    replace(job, vectors=state.vectors), state.verdict, text, budget, report
                )
            except (MmagoldError, OSError):
                raise
            except Exception as error:  # of our own; the verdict stands, with a note
                state = state.noted(f"whether the unit leaves bits open is not known: {error_line(error)}")
            else:
                state = replace(state, synthesis=tuple(gates.texts), unset=gates.unset or state.unset)
                state = state.noted(*gates.notes)
                if not gates.verdict.passed:
                    state = replace(state, job=gates.job, verdict=gates.verdict)
    if policy == "require" and state.passed and state.not_synthesised:
        raise ElaborationError(f"{state.dut.name} passes, but {state.not_synthesised[0]}")
    return state


VERDICT_STAGES: tuple[Stage, ...] = (
    read_again,
    watch_outputs,
    run_under_traffic,
    run_in_verilog,
    accumulate_long,
    turn_polarities,
    try_initial_values,
    try_four_states,
    simulate_gates,
)
"""The stages after the run of all vectors."""


# What the stages need ---------------------------------------------------------------------------------------


def _printed(text: str, build: Path) -> list[str]:
    """Stores the unit's output as a file, and returns its place and beginning."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    write_text(build / PRINTED, text)
    many = counted(len(lines), "line")
    return [f"the unit printed {many}, kept in {build / PRINTED}; the first: {lines[0].strip()}"]


def _built(
    dut: Dut, as_job: Callable[[Dut], Job], options: Options, report: Progress
) -> tuple[Job, list[str]]:
    """The job of a DUT with its program and, if it is to be measured, its latency; and notes about them. A
    text that is refused is tried without what synthesis ignores.

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
        return engines.built(options.engine, job), [said] if said else []

    try:
        return build(dut)
    except ElaborationError as refused:
        other = synthesised(dut, place)
        if other is None:
            # Whether another simulator reads a text does not depend on a latency that is not measured yet.
            job = as_job(dut.with_latency(1) if dut.handshake.measured else dut)
            raise _with_other_reader(refused, job, options.engine) from None
        try:
            job, said = build(other)
        except ElaborationError:
            raise refused from None
        return job, [
            "its text was read without what stands between the pragmas translate_off and translate_on, as by "
            f"synthesis: with it {' '.join(str(refused).split())}",
            *said,
        ]


def _with_other_reader(refused: ElaborationError, job: Job, engine: str) -> ElaborationError:
    """A refusal of Verilator's; with the options for Icarus Verilog where that reads the unit."""
    if engine != "fast" or job.dut.vhdl is not None:
        return refused
    try:
        engines.build("selfcheck", replace(job, simulator="icarus"))
    except RtlError:
        return refused
    return ElaborationError(f"{refused}; Icarus Verilog reads it: --engine selfcheck --sim icarus")


def _bearable(count: int, seconds: float) -> int:
    """The number of vectors that run under traffic, for a unit that took this long for all of them
    without."""
    # If the run of a unit under traffic would take longer than these seconds, the number of vectors is
    # reduced to a power of two that fits, but not below this minimum; the report gives the number.
    traffic_seconds, traffic_at_least = 10.0, 2_000
    # Cycles under TRAFFIC for each cycle at full throughput.
    traffic_cost = 3
    while count >= 2 * traffic_at_least and traffic_cost * seconds > traffic_seconds:
        count, seconds = count // 2, seconds / 2
    return count


def _had(job: Job, outcome: Outcome) -> Traffic:
    """The actual traffic: a short run ends before all of its resets."""
    return replace(job.traffic.on(job.dut), resets=outcome.resets)
