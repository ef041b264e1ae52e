"""Why a check failed: the diagnosis, an example of each fault by itself, and what the handshake says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from golden.dissect.diagnosis import Diagnosis, Fault, diagnose
from golden.dissect.flag_faults import FlagFault, flag_faults
from golden.dissect.minimising import minimise
from golden.errors import MmagoldError
from golden.program.signature import Bits, Operands
from rtl_tb import engines
from rtl_tb.check.dots import as_dots
from rtl_tb.check.example import Example, example_of, run_of
from rtl_tb.check.tiles import sentence, wrong_places
from rtl_tb.check.verdict import Verdict, judge, silent
from rtl_tb.engines.builds import warnings_of
from rtl_tb.engines.job import Job

Progress = Callable[[int, int], None]
WIDTHS = ("WIDTH", "CMPCONST", "UNSIGNED")
"""Warnings of Verilator about bits that are lost or missing."""
SHOWN = 3
_FEW = 200
"""Vectors of a run that only asks whether the unit answers at all."""


@dataclass(frozen=True)
class Shown:
    """A fault with the smallest operands found that show it and no other fault; None: none were found."""

    fault: Fault
    example: Example | None


def reasons(verdict: Verdict, job: Job, progress: Progress) -> Diagnosis | None:
    """The diagnosis of the wrong results; None where there are none. Status flags alone tell nothing of the
    datapath's steps."""
    if not verdict.wrong_d.any():
        return None
    places = wrong_places(verdict, job.dut.compare) if job.dut.level == "tile" else None
    operands, actual = as_dots(verdict, True, places)
    unit = job.vectors.instruction.stateless
    return diagnose(unit, operands, actual, policy=job.dut.compare, progress=progress)


def flag_reasons(verdict: Verdict) -> list[FlagFault]:
    """What the status flags are instead, of the vectors whose d is right; nothing where none differ."""
    vectors, flags = verdict.vectors, verdict.outcome.flags
    if flags is None or vectors.level != "dot" or vectors.instruction.state or not verdict.wrong_flags:
        return []
    known = np.flatnonzero(~(verdict.missing | verdict.unknown))
    operands = {name: codes[known] for name, codes in vectors.operands.items()}
    codes = flags.reshape(len(vectors))[known]
    return flag_faults(vectors.instruction, operands, codes, ~verdict.wrong_d[known])


def shown(verdict: Verdict, engine: str, job: Job, diagnosis: Diagnosis) -> list[Shown]:
    """Each fault of the diagnosis, where there are several, with an example of its own."""
    ins = job.vectors.instruction
    if len(diagnosis.faults) < 2:
        return []
    if job.dut.level != "dot" or ins.state or ins.modes is not None:
        return [Shown(fault, None) for fault in diagnosis.faults]
    return [Shown(fault, _example(verdict, engine, job, fault)) for fault in diagnosis.faults]


def _example(verdict: Verdict, engine: str, job: Job, fault: Fault) -> Example | None:
    ins, operands = job.vectors.instruction, job.vectors.operands
    places = np.flatnonzero(verdict.wrong_d & fault.alone(ins, operands))
    if not len(places):
        return None
    run = run_of(engine, job, None)

    def fails(batch: Operands) -> Bits:
        return run.failed(batch) & fault.alone(ins, batch)

    first = {name: codes[places[0]] for name, codes in operands.items()}
    if not fails({name: np.asarray(codes)[None] for name, codes in first.items()})[0]:
        return None  # it does not fail alone
    return example_of(run, minimise(ins, first, fails), int(places[0]), job.dut.compare)


def hints(verdict: Verdict, engine: str, job: Job, diagnosis: Diagnosis | None) -> list[str]:
    """What the description of the unit may have wrong: its latency, the polarity of its reset. And what its
    status flags are instead."""
    dut, found = job.dut, [fault.sentence() for fault in flag_reasons(verdict)]
    if (where := sentence(verdict, dut.compare)) is not None:
        found.insert(0, where)
    if diagnosis is not None and diagnosis.hypotheses and diagnosis.hypotheses[0].remaining == 0:
        late = diagnosis.hypotheses[0].delay
        if late and dut.handshake.kind == "latency" and dut.handshake.latency is not None:
            found.append(f"the latency is {dut.handshake.latency + late}, not {dut.handshake.latency}")
    if verdict.wrong.any() and (warned := warnings_of(dut, WIDTHS)):
        more = f" (and {len(warned) - SHOWN} more)" if len(warned) > SHOWN else ""
        found.append(f"Verilator's lint warns of widths: {'; '.join(warned[:SHOWN])}{more}")
    if silent(verdict):
        found.append(
            f"{int(verdict.missing.sum()):,} of {len(verdict.vectors):,} vectors were never answered"
            f"{_polarity(engine, job)}"
        )
    return found


def _polarity(engine: str, job: Job) -> str:
    """Whether the unit answers when its reset has the other polarity."""
    dut = job.dut
    if dut.reset is None:
        return "; look at the polarity of VALID and READY and at the clock"
    said, other = ("low", "high") if dut.reset.active_low else ("high", "low")
    turned = replace(dut, reset=replace(dut.reset, active_low=not dut.reset.active_low))
    try:
        again = replace(job, dut=turned, vectors=job.vectors[:_FEW], program=None, waves=None)
        outcome = engines.run(engine, again)
    except MmagoldError:
        return ""
    if silent(judge(again.vectors, outcome, dut.compare)):
        return f", nor with a reset that is active {other}; look at the polarity of VALID and READY"
    return f"; the reset is active {other}, not {said}: then the unit answers"
