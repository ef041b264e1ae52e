"""A unit that passed is run once more as synthesis reads it, where that is another text.

What stands behind `ifdef VERILATOR`, or between `translate_off` and `translate_on`, is in no chip. A unit
that is right by such text alone is wrong, and that run is the verdict. What cannot be elaborated so, a cell
of a vendor, say, is not run, and the report says it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rtl_tb import engines
from rtl_tb.check.readings import SYNTHESIS, Reading, on_text, read, undeclared
from rtl_tb.check.unheeded import as_hardware
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict, judge

MOST = 2_000
"""Vectors of the run."""
POLICIES = ("try", "require", "off")
"""What becomes of a unit that passes and cannot be run as synthesis reads it: the report says so, or there is
no verdict; or nobody asks."""


@dataclass(frozen=True)
class Synthesis:
    """What came of a unit as synthesis reads it.

    Attributes:
        by: "synthesis", or "Yosys" where it has a text of its own.
        place: where the two texts first differ, "file:line".
        tried, failed: vectors.
        refused: why it was not run, or "".
        text: what was run and is right, or None.
        change: what simulators heed and synthesis does not, in words.
    """

    by: str
    place: str
    tried: int
    failed: int
    refused: str = ""
    text: Reading | None = None
    change: str = ""

    @property
    def sentence(self) -> str:
        """One sentence for the reader."""
        change = f": {self.change}" if self.change else ""
        other = f"{self.by} reads another text than the simulator (first at {self.place}{change}"
        if not self.place:
            return f"whether {self.by} reads another text is not known: {self.refused}"
        if self.refused:
            return f"{other}), and that was not checked: {self.refused}"
        if self.failed:
            return f"{other}), and as it reads it {self.failed:,} of {self.tried:,} vectors fail"
        return f"{other}); as it reads it {self.tried:,} vectors are right"

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        names = ("by", "place", "tried", "failed", "refused", "sentence")
        return {name: getattr(self, name) for name in names}


def ask_synthesis(job: Job, verdict: Verdict, plain: Reading | None) -> tuple[list[Synthesis], Job, Verdict]:
    """Runs the first vectors of a passed check on the text of synthesis, where it is another one than
    `plain`, that of the simulator.

    Returns:
        What came of each text that differs, or why nobody knows; and the job and the verdict that were given,
        or those of the first text that is wrong.
    """
    found: list[Synthesis] = []
    seen = [] if plain is None else [plain]
    for by, options in SYNTHESIS.items() if plain is not None else ():
        place = ""
        try:
            text = read(job.dut, options, pragmas=True)
            if text is None:
                continue
            text, change = _taken(job, text, by, found)
            if not all(other.differs(text) for other in seen):
                continue
            seen.append(text)
            place = seen[0].differs(text)
            traffic = replace(job.traffic, resets=min(job.traffic.resets, 1))
            mine = replace(
                on_text(job, undeclared(text.text), by.lower()), vectors=job.vectors[:MOST], traffic=traffic
            )
            mine = replace(mine, program=engines.build("fast", mine))
            judged = judge(mine.vectors, engines.run("fast", mine), mine.dut.compare)
        except RtlError as error:
            found.append(unknown(error, by, place))
            continue
        failed = int(judged.failed.sum()) or len(judged.outcome.failures)
        right = text if judged.passed else None
        found.append(Synthesis(by, place, len(mine.vectors), failed, text=right, change=change))
        if not judged.passed:
            return found, mine, judged
    return found, job, verdict


def _taken(job: Job, text: Reading, by: str, found: list[Synthesis]) -> tuple[Reading, str]:
    """The text as synthesis takes it, and what was changed; as it stands where slang refuses it, of which a
    note is `found`."""
    try:
        return as_hardware(job.dut, job.build, text)
    except RtlError as error:
        if all(each.refused != unknown(error).refused for each in found):
            found.append(unknown(error, by))
        return text, ""


def unknown(error: RtlError, by: str = "synthesis", place: str = "") -> Synthesis:
    """What is said where no text could be read, or not be run."""
    return Synthesis(by, place, 0, 0, " ".join(str(error).split()))
