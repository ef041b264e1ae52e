"""Explanations of the vectors that a change of the text leaves wrong: the changed unit has one fault less,
and a hypothesis about the arithmetic may name the remaining one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from golden.errors import MmagoldError
from golden.identify.diagnosis import Diagnosis
from rtl_tb.engines.job import Job
from rtl_tb.locate.result import RemainingFault
from rtl_tb.runs.example import Example, run_of, smallest
from rtl_tb.runs.hypotheses import explain_results
from rtl_tb.runs.sequences import Progress
from rtl_tb.runs.verdict import Verdict

_PARTS = 2
"""Faults that may explain what is left: more of them explain much by chance."""


def remaining_faults_of(
    verdict: Verdict, changed: Job, original: Job, look: Callable[[], None]
) -> tuple[RemainingFault, ...]:
    """The faults of a unit in addition to the one that a change repairs; nothing if no hypothesis explains
    every result.

    Args:
        verdict: of the unit with the change, `changed`; `original` is the unit without it.
        look: raises RtlError if the time is over.

    Raises:
        RtlError: as `look` does.
    """

    def looking(_done: int, _all: int) -> None:
        look()

    look()
    if verdict.missing.any() or verdict.unknown.any() or any(verdict.wrong_flags.values()):
        return ()
    found = explain_results(verdict, changed, looking)
    if found is None or not found.explains or len(found.every_fault) > _PARTS:
        return ()
    only = len(found.every_fault) == 1
    example = _example(verdict, changed, original, looking) if only else None
    return tuple(
        RemainingFault(_named(found, fault.text), fault.explains, example) for _, fault in found.every_fault
    )


def _named(found: Diagnosis, text: str) -> str:
    return f"the unit is {text}" if found.hypotheses[0].known else text


def _example(verdict: Verdict, changed: Job, original: Job, looking: Progress) -> Example | None:
    """The smallest operands with which the changed unit is wrong; None if the original unit has another
    answer there."""
    if changed.dut.instruction.state:
        return None
    try:
        engine = verdict.outcome.engine
        example = smallest(verdict, engine, changed, looking)
        run = run_of(engine, replace(original, program=None, waves=None), example.place)
        return example if example.alone and run.alone(example.operands)[0] == example.came else None
    except MmagoldError:
        return None
