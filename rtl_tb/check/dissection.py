"""The unit that a failing DUT is, if no hypothesis explains it: the DUT as a black box (golden.dissect).

The found unit is compared with the intended instruction: the keys in which they differ are the fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from golden.identify.blackbox.dissecting import dissect as search
from golden.identify.blackbox.naming import differences
from golden.identify.blackbox.report import Found
from golden.model.instruction import Instruction
from rtl_tb.engines.job import Job
from rtl_tb.runs.unit import DutRun

ENGINE = "fast"
"""One call is one run of the simulation, and a dissection is many thousand dot products."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Dissection:
    """The unit that the DUT was found to be. `differs`: the keys in which it is not the instruction; None if
    it has other operations, which may be the same sum, or nothing was found."""

    found: Found
    differs: tuple[str, ...] | None

    @property
    def sentence(self) -> str:
        """The outcome in a sentence or two."""
        if not self.found.explains:
            known = "is not the DUT" if self.found.wrong else "may not be the DUT"
            return f"{self.found.sentence()}; what stands in its YAML {known}"
        if self.differs is None:
            order = f"; masks show the order {self.found.order}" if self.found.order else ""
            return f"{self.found.sentence()}; it is said in other operations than the instruction{order}"
        said = "; ".join(self.differs) or "nothing that a question decided"
        return f"{self.found.sentence()}. Compared with the instruction: {said}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "sentence": self.sentence,
            "explains": self.found.explains,
            "differs": None if self.differs is None else list(self.differs),
            "yaml": self.found.yaml,
            "report": self.found.report,
        }


def dissect(job: Job, engine: str, seconds: float, progress: Progress, blind: bool = False) -> Dissection:
    """Queries the DUT of a job, built for the fast engine if that runs its language, until it is known or the
    time is over. The search starts at the instruction, because a fault is mostly a change of it; `blind`: it
    does not.

    Raises:
        RtlError: the DUT does not answer.
    """
    chosen = ENGINE if job.dut.vhdl is None else engine
    if engine != chosen:
        job = replace(job, program=None, simulator="verilator")
    meant = None if blind else job.dut.instruction
    # The query budget of a dissection of a DUT, in dot products. Chosen, not measured.
    asks = 200_000
    found = search(DutRun(job, chosen).unit(), seconds=seconds, asks=asks, progress=progress, near=meant)
    differs = _differences(found, job.dut.instruction) if found.explains else None
    return Dissection(found, None if differs is None else tuple(differs))


def _differences(found: Found, meant: Instruction) -> list[str] | None:
    """The keys in which a unit differs from the intended one, mode by mode; None if it adds in other
    operations."""
    if found.modes:
        by_mode = {code: _differences(one, meant.mode_units[code]) for code, one in found.modes.items()}
        if any(one is None for one in by_mode.values()):
            return None
        return [f"mode {code:#x}: {said}" for code, one in by_mode.items() for said in one or ()]
    assert found.instruction is not None
    said = differences(found.instruction.stateless, meant.stateless, found.alternatives)
    return None if said is None else [*found.not_read, *said]
