"""The smallest operands that show one fault of a text and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from golden.errors import MmagoldError
from golden.identify.minimising import minimise, of_one_kind
from golden.program.signature import Operands
from golden.vectors.tiles import element
from rtl_tb.engines.job import Job
from rtl_tb.runs.example import Example, example_of, first_failing, run_of
from rtl_tb.runs.verdict import Verdict

Flags = npt.NDArray[np.bool_]


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
