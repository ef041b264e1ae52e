"""What explains the vectors that a change of the text leaves wrong: the unit with the change has one fault
less, and a hypothesis about the arithmetic may name what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from golden.errors import MmagoldError
from golden.identify.diagnosis import Diagnosis
from rtl_tb.engines.job import Job
from rtl_tb.locate.result import Rest
from rtl_tb.runs.example import Example, run_of, smallest
from rtl_tb.runs.hypotheses import explain_results
from rtl_tb.runs.sequences import Progress
from rtl_tb.runs.verdict import Verdict

_PARTS = 2
"""Faults that may explain what is left: more of them explain much by chance."""


def rest_of(verdict: Verdict, mended: Job, asked: Job, look: Callable[[], None]) -> tuple[Rest, ...]:
    """The faults that a unit has beside the one that a change mends; nothing where no hypothesis explains
    every result.

    Args:
        verdict: of the unit with the change, `mended`; `asked` is the unit without it.
        look: raises RtlError where the time is over.

    Raises:
        RtlError: as `look` does.
    """

    def looking(_done: int, _all: int) -> None:
        look()

    look()
    if verdict.missing.any() or verdict.unknown.any() or any(verdict.wrong_flags.values()):
        return ()
    found = explain_results(verdict, mended, looking)
    if found is None or not found.explains or len(found.every_fault) > _PARTS:
        return ()
    only = len(found.every_fault) == 1
    example = _example(verdict, mended, asked, looking) if only else None
    return tuple(Rest(_named(found, fault.text), fault.explains, example) for _, fault in found.every_fault)


def _named(found: Diagnosis, text: str) -> str:
    return f"the unit is {text}" if found.hypotheses[0].known else text


def _example(verdict: Verdict, mended: Job, asked: Job, looking: Progress) -> Example | None:
    """The smallest operands with which the unit with the change is wrong; None where the unit without it
    answers something else."""
    if mended.dut.instruction.state:
        return None
    try:
        engine = verdict.outcome.engine
        example = smallest(verdict, engine, mended, looking)
        run = run_of(engine, replace(asked, program=None, waves=None), example.place)
        return example if example.alone and run.alone(example.operands)[0] == example.came else None
    except MmagoldError:
        return None
