"""What nothing explains: where the nearest candidate is wrong and where it is right, by plain conditions on
operands, in the words of the diagnosis of a DUT (golden.dissect.known)."""

from __future__ import annotations

import numpy as np

from golden.dissect.blackbox.box import Bank
from golden.dissect.blackbox.candidates import Candidate
from golden.dissect.known import known

_OF = "the candidate's"


def unexplained(candidate: Candidate, *banks: Bank) -> tuple[str, ...]:
    """Sentences about the answers of some banks, which are not all the candidate's."""
    operands = {name: np.concatenate([bank.operands[name] for bank in banks]) for name in banks[0].operands}
    answers = np.concatenate([bank.answers for bank in banks])
    expected = np.concatenate([bank.answered(candidate.program).copy() for bank in banks])
    return known(candidate.instruction, operands, expected, expected != answers, answers, _OF)
