"""Parts of operands: a multiplier that reads some neighbouring bits of each significand.

One product alone shows which bits: all orders of the sum agree on it. While a part is wrong, every order of
the sum is wrong on most questions, so skeletons get the parts before they are ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.early_overflow import ONE
from golden.identify.blackbox.questions import ENOUGH
from golden.number.formats import Format
from golden.program.program import Operation
from golden.program.steps import Flush, Multiply, Part, Step

Floats = npt.NDArray[np.float64]
Range = tuple[int, int]
"""The first place of a part, and how many it has."""
_MOST_PLACES = 16
"""Significands with more places are not read in part: the pairs of parts would be too many."""


def with_parts(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons that read the parts of a and b which answers to one product show; unchanged if these are the
    whole operands."""
    found = _parts(bank)
    if found is None:
        return list(skeletons)
    made = [reading(one, *found) for one in skeletons]
    return [one for one in made if one is not None] or list(skeletons)


def _parts(bank: Bank) -> tuple[Range, Range] | None:
    """The pair of parts whose products are nearest to the answers; None if whole operands are as near."""
    few, takes = bank.of_kinds(ONE), bank.takes
    a, b, d = (takes.formats[name] for name in "abd")
    if not (a.is_float and b.is_float and d.is_float) or not all(_places(fmt) for fmt in (a, b)):
        return None
    # 1. The factors of the only product, and the answer. Zeros of either show no bit.
    factors = [few.values(name) for name in "ab"]
    with np.errstate(all="ignore"):
        place = np.argmax(np.abs(np.nan_to_num(factors[0])) * np.abs(np.nan_to_num(factors[1])), axis=1)
    rows = np.arange(len(few))
    x, y = (np.abs(one[rows, place]) for one in factors)
    answers = np.abs(few.values("d"))
    known = np.isfinite(x) & np.isfinite(y) & np.isfinite(answers) & (x > 0) & (y > 0)
    x, y, answers = x[known], y[known], answers[known]
    if len(x) < ENOUGH:
        return None
    # 2. Every pair of parts. An answer agrees if it is within one unit of its last place, whatever rounds it.
    near = 2.0**-d.fraction_bits
    scored: list[tuple[int, int, int, tuple[Range, Range]]] = []
    read = [{one: _read(fmt, values, one) for one in _ranges(fmt)} for fmt, values in ((a, x), (b, y))]
    for first, of_a in read[0].items():
        for second, of_b in read[1].items():
            exact = of_a * of_b
            agree = int(np.count_nonzero(np.abs(exact - answers) <= near * exact))
            # Of equal pairs the one that begins highest, and then the longest, is the plainest.
            scored.append((-agree, first[0] + second[0], -first[1] - second[1], (first, second)))
    best, *_, found = min(scored)
    whole = next(-agree for agree, *_, pair in scored if pair == ((0, _places(a)), (0, _places(b))))
    # 3. Parts are taken if they explain at least half of what whole operands do not.
    return found if 2 * (len(x) + best) < len(x) - whole else None


@cache
def _places(fmt: Format) -> int:
    """Places of the significands of an operand; 0 if there are too many."""
    return fmt.fraction_bits + 1 if fmt.fraction_bits < _MOST_PLACES else 0


def _ranges(fmt: Format) -> Iterator[Range]:
    """Every part of a significand."""
    places = _places(fmt)
    yield from ((first, bits) for first in range(places) for bits in range(1, places - first + 1))


def _read(fmt: Format, values: Floats, part: Range) -> Floats:
    """What a part of each number is worth."""
    first, bits = part
    exponents = np.maximum(np.frexp(values)[1] - 1, fmt.min_exponent)
    units = np.ldexp(1.0, exponents - (first + bits - 1))
    return np.asarray(np.floor(values / units) % 2.0**bits * units)


def reading(one: Candidate, a: Range, b: Range) -> Candidate | None:
    """A candidate that reads these parts wherever it multiplies; None if no unit can."""
    return one.with_operations(_reading(operation, a, b) for operation in one.operations)


def _reading(operation: Operation, a: Range, b: Range) -> Operation:
    """An operation that reads parts of a and b, after it flushed them."""
    if not any(isinstance(step, Multiply) for step in operation.steps):
        return operation
    parts = [Part(of=(name,), first=first, bits=bits) for name, (first, bits) in (("a", a), ("b", b))]
    steps: list[Step] = list(operation.steps)
    place = next((n for n, step in enumerate(steps) if not isinstance(step, Flush)), 0)
    return operation.with_steps((*steps[:place], *parts, *steps[place:]))
