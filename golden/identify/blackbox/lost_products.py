"""Products that change no answer when they are alone, while others do, and programs that lose the same
products.

A chain may add nothing to its earlier result, or leave that unaligned whatever lies between. Then only the
products of its last operation show, and an order is near the unit only with such sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from golden.identify.blackbox import structure
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.questions import ALONE
from golden.number.formats import to_float

_PRODUCTS = frozenset(kind for kind, name in ALONE if name == "products")


def losing(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons that lose the products which change no answer; empty if all products show, or none does, or
    no skeleton loses exactly these."""
    takes = bank.takes
    if not all(takes.formats[name].is_float for name in "abd"):
        return []
    exponents = _exponents(bank.of_kinds(_PRODUCTS))
    lost = {k for k, values in exponents.items() if len(values) <= 1}
    every = {exponent for k in lost for exponent in exponents[k]}  # that of no product where there is one
    shown = exponents.keys() - lost
    if not lost or not shown or len(every) > 1:
        return []
    earlier = [(one, _before_the_last(one)) for one in skeletons]
    chains = [one for one, before in earlier if lost <= before and not shown & before]
    return [new for one in chains for new in _without_earlier(one, min(every, default=None))]


def _exponents(alone: Bank) -> dict[int, frozenset[int]]:
    """By product, the exponents of the answers to it alone; only products with enough questions."""
    factors = [np.asarray(to_float(alone.takes.formats[n], alone.operands[n]), np.float64) for n in "ab"]
    with np.errstate(all="ignore"):
        each = np.prod(factors, axis=0)
    answers = np.asarray(to_float(alone.takes.formats["d"], alone.answers), np.float64)
    place = np.argmax(np.nan_to_num(np.abs(each)), axis=1)
    known = np.isfinite(each).all(axis=1) & (each[np.arange(len(each)), place] != 0) & np.isfinite(answers)
    found = {k: answers[known & (place == k)] for k in range(alone.takes.stored_k)}
    # With fewer questions a product does not count as lost.
    needed = 4
    return {
        k: frozenset((np.frexp(values[values != 0])[1] - 1).tolist())
        for k, values in found.items()
        if len(values) >= needed
    }


def _before_the_last(one: Candidate) -> frozenset[int]:
    """The products of all operations except the last one that has any."""
    *earlier, _ = [frozenset(o.k_index) for o in one.operations if o.k_index] or [frozenset()]
    return frozenset().union(*earlier)


def _without_earlier(one: Candidate, floor: int | None) -> Iterator[Candidate]:
    """A chain whose sums of products leave out the earlier result, whose alignments drop it, or add it
    unshifted: then it shows at a floor, unless that is below all results."""
    dropped = structure.dropped_above(one, linked=True)
    unshifted = structure.unshifted(one, floor)
    yield from filter(None, (structure.uncounted(one, "c", linked=True), dropped, unshifted))
