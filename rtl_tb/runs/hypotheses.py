"""The hypothesis of golden/identify that explains a DUT's wrong results."""

from __future__ import annotations

from golden.budget import Budget
from golden.identify.diagnosis import Diagnosis, Wrong, diagnose
from rtl_tb.engines.job import Job
from rtl_tb.runs.dots import as_dots
from rtl_tb.runs.example import Example
from rtl_tb.runs.sequences import Progress
from rtl_tb.runs.tiles import wrong_places
from rtl_tb.runs.verdict import Verdict


def explain_results(
    verdict: Verdict,
    job: Job,
    progress: Progress,
    budget: Budget | None = None,
    combining: Budget | None = None,
    example: Example | None = None,
) -> Diagnosis | None:
    """The diagnosis of the wrong results; None where there are none. Status flags alone say nothing about
    the datapath's steps. The budgets are as in `diagnose`. What is said about the wrong results also holds
    for the example."""
    if not verdict.wrong_d.any():
        return None
    places = wrong_places(verdict, job.dut.compare) if job.dut.level == "tile" else None
    operands, actual = as_dots(verdict, True, places, job.dut.compare.exclude)
    unit = job.vectors.instruction.stateless
    return diagnose(
        unit,
        operands,
        actual,
        policy=job.dut.compare,
        progress=progress,
        budget=budget,
        combining=combining,
        shown=_wrong(example),
    )


def _wrong(example: Example | None) -> Wrong | None:
    """A dot product that fails by itself, whatever came before it."""
    if example is None or example.actual is None or not example.alone or example.sequence is not None:
        return None
    unit, operands = example.instruction.in_mode_of(example.operands)
    return Wrong(unit.name, dict(operands), example.actual)
