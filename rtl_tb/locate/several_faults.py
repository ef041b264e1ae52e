"""A unit with several faults: operands that show one fault of its text alone, and the faults that a change of
the text leaves, which a hypothesis about the arithmetic may name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from golden.errors import MmagoldError
from golden.identify.diagnosis import Diagnosis
from golden.identify.minimising import minimise, of_one_kind
from golden.program.signature import Operands
from golden.vectors.tiles import element
from rtl_tb.engines.job import Job
from rtl_tb.locate.result import RemainingFault
from rtl_tb.runs.example import Example, example_of, first_failing, run_of, smallest
from rtl_tb.runs.hypotheses import explain_results
from rtl_tb.runs.sequences import Progress
from rtl_tb.runs.verdict import Verdict

Flags = npt.NDArray[np.bool_]
_PARTS = 2
"""Faults that may explain what is left: more of them explain much by chance."""


def example_of_fault(
    verdict: Verdict, job: Job, changed: Job, only: Flags, look: Callable[[], None]
) -> Example | None:
    """The smallest operands found with which a unit is wrong, and with a change of its text right.

    Args:
        job: of the unit, `changed` of the unit with the change.
        only: (count,), the vectors of the verdict that the change makes right.
        look: raises RtlError if the time is over.

    Returns:
        None if the unit keeps its accumulator, or the first vector of `only` does not fail by itself.
    """
    vectors = verdict.vectors
    if vectors.instruction.state or not only.any():
        return None
    vector, place = first_failing(replace(verdict, wrong=only), job.dut.compare)
    given = element(vectors.operands, vector, *place) if place else vectors[vector : vector + 1].operands
    operands = given if place else {name: codes[0] for name, codes in given.items()}
    run, other = (run_of(verdict.outcome.engine, each, place) for each in (job, changed))

    def shows(batch: Operands) -> Flags:
        look()
        return np.asarray(run.failed(batch) & ~other.failed(batch))

    def alone(one: Operands) -> bool:
        return bool(shows({name: np.asarray(codes)[None] for name, codes in one.items()})[0])

    try:
        if not alone(operands):
            return None
        least = minimise(vectors.instruction, operands, of_one_kind(vectors.instruction, operands, shows))
        return example_of(run, least, vector, job.dut.compare) if alone(least) else None
    except MmagoldError:
        return None


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
