"""What the diagnosis says of a faulty unit, whose results are all that it sees.

named = explanations(verdict, dut)
named.slugs, named.sentence
"""

from __future__ import annotations

from dataclasses import dataclass

from golden.identify.diagnosis import diagnose
from rtl_tb.check.reasons import flag_reasons
from rtl_tb.dut.description import Dut
from rtl_tb.runs.dots import as_dots
from rtl_tb.runs.verdict import Verdict


@dataclass(frozen=True)
class Explanations:
    """Of a unit's results.

    Attributes:
        hypotheses: slugs of what explains every wrong result or, where nothing does, of what is nearest, if
            the unit is called that; parts joined with "+". Of several modes also all faults together.
        flags: slugs of what explains the status flags, which are judged by themselves.
        sentence: what the report says.
        explains: whether `hypotheses` explain every wrong result.
    """

    hypotheses: tuple[str, ...]
    flags: tuple[str, ...]
    sentence: str
    explains: bool = False

    @property
    def slugs(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.hypotheses, *self.flags)

    @property
    def faults(self) -> list[set[str]]:
        """The faults of each explanation; those of the flags belong to each."""
        flagged = set(self.flags)
        return [flagged, *({*slug.split("+")} | flagged for slug in self.hypotheses)]


def explanations(verdict: Verdict, dut: Dut, budget_seconds: float = 20) -> Explanations:
    """Asks what a unit computes that gave these results."""
    flags = flag_reasons(verdict)
    flagged = tuple(slug for fault in flags for slug in (fault.slug, *fault.others) if slug)
    sentences = [fault.sentence() for fault in flags]
    slugs: tuple[str, ...] = ()
    explains = False
    # Dot products that the diagnosis gets at most.
    most = 20_000
    if verdict.wrong_d.any():
        operands, actual = as_dots(verdict, with_context=True)
        operands = {name: codes[:most] for name, codes in operands.items()}
        ins, given = dut.instruction.stateless, actual[:most]
        found = diagnose(ins, operands, given, policy=dut.compare, budget_seconds=budget_seconds)
        nearest = tuple(each for each in found.hypotheses[:1] if each.accepted(found.failing))
        slugs = tuple(each.slug for each in found.explaining or nearest)
        if found.further:  # of several modes, each with faults of its own
            slugs += ("+".join(fault.slug for _, fault in found.every_fault),)
        explains = found.explains
        sentences = [found.sentence(), *sentences]
    return Explanations(slugs, flagged, "; ".join(sentences), explains)
