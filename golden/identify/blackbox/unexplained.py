"""What nothing explains: where the nearest candidate is wrong and where it is right, by plain conditions on
operands, in the words of the diagnosis of a DUT (golden.identify.known); and that candidate without words for
NaNs that are none."""

from __future__ import annotations

import re

import numpy as np

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.fitting import Fit, wrong_of
from golden.identify.diagnose.conditions import known, special
from golden.number.formats import Format, Kind
from golden.number.frozen import replace
from golden.program.steps import SpecialValues, Step

_OF = "the candidate's"
_WORD = re.compile(r"\b(\d+)\b")


def unexplained(candidate: Candidate, *banks: Bank) -> tuple[str, ...]:
    """Sentences about the answers of some banks, which are not all the candidate's."""
    operands = {name: np.concatenate([bank.operands[name] for bank in banks]) for name in banks[0].operands}
    answers = np.concatenate([bank.answers for bank in banks])
    expected = np.concatenate([bank.answered(candidate.program).copy() for bank in banks])
    return known(candidate.instruction, operands, expected, expected != answers, answers, _OF)


def without_invented_words(fit: Fit, bank: Bank) -> Fit:
    """A candidate that answers finite operands otherwise than the box, without the causes of NaNs whose words
    are numbers: where the numbers are wrong, such a word says no more than that an answer was common."""
    wrong = bank.wrong(fit.candidate.program)
    d = bank.takes.formats["d"]
    if not d.is_float or not (wrong & ~_special(bank)).any():
        return fit

    def changed(step: Step) -> Step:
        if not isinstance(step, SpecialValues):
            return step
        return replace(step, nans=tuple(one for one in step.nans if one[1] is None or _is_nan(d, one[1])))

    new = fit.candidate.with_each_step(changed)
    if new is None or new.operations == fit.candidate.operations:
        return fit
    told = [one for one in fit.told if not _names_a_number(one, d)]
    return Fit(new, wrong_of(bank, new), told)


def _special(bank: Bank) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    formats = bank.takes.formats
    found = [special(formats[name], codes) for name, codes in bank.operands.items() if formats[name].is_float]
    return np.asarray(np.any(found, axis=0))


def _is_nan(d: Format, word: int) -> bool:
    return word < 1 << d.bits and d.decode(word).kind == Kind.NAN


def _names_a_number(rule: str, d: Format) -> bool:
    """Whether a change of causes of NaNs gives one of them a word that is a number."""
    key, _, value = rule.partition(" = ")
    return key.endswith(": nans") and not all(_is_nan(d, int(word)) for word in _WORD.findall(value))
