"""A unit that passed in two states is tried in four: Icarus Verilog runs the first vectors, too.

Verilator gives some bit where the language has X or Z, and no start shows it: a net with two drivers, Z as a
value, a bit beyond its vector, a division by zero. Results with X or Z are a failure. If Icarus has other
answers, the report says so, and a check on Icarus has to decide which of the two is right. If Icarus is
missing, or cannot read the unit, nothing was tested, and the check says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rtl_tb import engines
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict, verdict_of
from rtl_tb.simulators import simulators

MOST, BITS, LEAST = 256, 1 << 16, 16
"""Vectors of the run: their operands have BITS bits together, which Icarus runs in about a second."""


@dataclass(frozen=True)
class FourStates:
    """What four states showed of a unit.

    Attributes:
        by: the simulator, such as "Icarus Verilog 11.0".
        unknown: results with X or Z of the `tried` vectors.
        read_otherwise: who read the unit for the same simulator, which then gave no X: it was the reader's.
        other: whether a known result, or the handshake, is wrong there.
        refused: why nobody looked, or "".
    """

    by: str
    tried: int
    unknown: int
    refused: str = ""
    other: bool = False
    read_otherwise: str = ""

    @property
    def sentence(self) -> str:
        """One sentence for the reader."""
        if self.refused:
            return f"not tried in four states: {self.refused}"
        if self.other:
            return (
                f"{self.by} answers differently from Verilator. To decide which is right, look for `ifdef, "
                "races, delays and what the two read differently; --engine selfcheck --sim icarus shows it"
            )
        if self.read_otherwise:
            return (
                f"{self.unknown:,} of {self.tried:,} results are X or Z on {self.by} as it reads the text, "
                f"and none is as {self.read_otherwise} reads it: a weakness of the simulator, not "
                "of the unit"
            )
        if not self.unknown:
            return f"{self.tried:,} vectors on {self.by}: no X, no Z"
        return (
            f"{self.unknown:,} of {self.tried:,} results are X or Z on {self.by}, where Verilator, which has "
            "neither, gives the expected bits; look for nets with several drivers, Z, registers read "
            "before they are set, indices out of range and divisions by zero"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        names = ("by", "tried", "unknown", "other", "refused", "read_otherwise", "sentence")
        return {name: getattr(self, name) for name in names}


def compare_four_states(job: Job, verdict: Verdict) -> tuple[FourStates, Job, Verdict]:
    """Runs the first vectors of a passed check on Icarus.

    Returns:
        What it showed; and the job and the verdict that were given, or the ones of Icarus if there is X or Z
        however the text is read.
    """
    vectors = job.vectors[: max(min(MOST, BITS // job.dut.layout.operand_width), LEAST)]
    mine = replace(job.of_some(vectors), simulator="icarus", program=None, waves=None, translate=False)
    # Seconds in which a clock cycle must end there.
    patience = 20.0
    mine = replace(mine, wall_timeout=min(patience, job.wall_timeout))
    try:
        by = simulators.icarus().version_text
        mine = engines.built("selfcheck", mine)
        found = verdict_of("selfcheck", mine)
    except RtlError as error:
        return FourStates("", 0, 0, " ".join(str(error).split())), job, verdict
    unknown = int(found.unknown.sum())
    if unknown and (again := read_again(mine, found)) is not None and again[1].passed:
        reader = again[1].outcome.translated
        return FourStates(by, len(vectors), unknown, read_otherwise=reader), job, verdict
    shown = FourStates(by, len(vectors), unknown, other=not (unknown or found.passed))
    return (shown, mine, found) if unknown else (shown, job, verdict)


def of_its_reader(job: Job, verdict: Verdict, engine: str) -> tuple[FourStates, Job, Verdict] | None:
    """What `read_again` says of a check in Icarus that failed, where it then passes."""
    again = read_again(job, verdict, engine) if job.simulator == "icarus" else None
    if again is None or not again[1].passed:
        return None
    by, unknown = verdict.outcome.version, int(verdict.unknown.sum())
    return FourStates(by, len(job.vectors), unknown, read_otherwise=again[1].outcome.translated), *again


def read_again(job: Job, verdict: Verdict, engine: str = "selfcheck") -> tuple[Job, Verdict] | None:
    """A run on Icarus that X alone decides, once more as another reader hands it the text: Icarus 11 has X
    for an array that joins two instances, say. The job and the verdict of that run; None where something else
    than X is wrong, or there is no other reader.

    The other text keeps X, and gives more of them than the language (rtl_tb/dut/translated.py): what has none
    in it has none.
    """
    if not verdict.unknown.any() or verdict.wrong.any() or verdict.outcome.translated:
        return None
    again = replace(job, program=None, translate="always")
    try:
        again = engines.built(engine, again)
        return again, verdict_of(engine, again)
    except RtlError:
        return None
