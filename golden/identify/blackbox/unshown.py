"""Products that no answer shows when they are alone, while others do, and programs that lose those.

Of a chain that adds nothing to what it made before, or leaves that where it stands, whatever lies between the
two, the products of the last operation alone show: an order is near the unit with such sums only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from golden.identify.blackbox import structure
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.questions import ALONE
from golden.number.formats import to_float

_ASKED = 4
"""Questions to a product alone, at least, of which none shows it."""
_PRODUCTS = frozenset(kind for kind, name in ALONE if name == "products")


def losing(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons that lose the products that no answer shows; empty where all are shown, or none is, or no
    skeleton loses those."""
    takes = bank.takes
    if not all(takes.formats[name].is_float for name in "abd"):
        return []
    exponents = _exponents(bank.of_kinds(_PRODUCTS))
    lost = {k for k, told in exponents.items() if len(told) <= 1}
    every = {exponent for k in lost for exponent in exponents[k]}  # that of no product where there is one
    shown = exponents.keys() - lost
    if not lost or not shown or len(every) > 1:
        return []
    earlier = [(one, _before_the_last(one)) for one in skeletons]
    chains = [one for one, before in earlier if lost <= before and not shown & before]
    return [new for one in chains for new in _without_earlier(one, min(every, default=None))]


def _exponents(alone: Bank) -> dict[int, frozenset[int]]:
    """By product, the exponents of answers to it alone; of those that were asked often enough."""
    factors = [np.asarray(to_float(alone.takes.formats[n], alone.operands[n]), np.float64) for n in "ab"]
    with np.errstate(all="ignore"):
        each = np.prod(factors, axis=0)
    answers = np.asarray(to_float(alone.takes.formats["d"], alone.answers), np.float64)
    place = np.argmax(np.nan_to_num(np.abs(each)), axis=1)
    known = np.isfinite(each).all(axis=1) & (each[np.arange(len(each)), place] != 0) & np.isfinite(answers)
    found = {k: answers[known & (place == k)] for k in range(alone.takes.stored_k)}
    return {
        k: frozenset((np.frexp(told[told != 0])[1] - 1).tolist())
        for k, told in found.items()
        if len(told) >= _ASKED
    }


def _before_the_last(one: Candidate) -> frozenset[int]:
    """The products of all operations but the last one that has any."""
    *earlier, _ = [frozenset(o.k_index) for o in one.operations if o.k_index] or [frozenset()]
    return frozenset().union(*earlier)


def _without_earlier(one: Candidate, floor: int | None) -> Iterator[Candidate]:
    """A chain whose sums of products leave out what was made before, whose alignments drop it, or add it as
    it stands: it shows at a floor then, where that is not below all results."""
    dropped = structure.dropped_above(one, linked=True)
    unshifted = structure.unshifted(one, floor)
    yield from filter(None, (structure.uncounted(one, "c", linked=True), dropped, unshifted))
