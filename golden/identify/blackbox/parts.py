"""Parts of operands: a multiplier that reads some neighbouring bits of each significand, in one pass or in
several.

One product alone shows which bits are read: all orders of the sum agree on it. Next to a large c it shows
where a significand is divided between passes, because each pass rounds its own part. While a part is wrong,
every order of the sum is wrong on most questions, so skeletons get the parts before they are ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank, Box
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.early_overflow import ONE
from golden.identify.blackbox.questions import ENOUGH
from golden.identify.sample import joined
from golden.number.formats import Format, from_float, to_float
from golden.number.frozen import replace
from golden.program.program import Operation
from golden.program.signature import Bits, Operands, Signature
from golden.program.steps import Flush, Multiply, Part, Step

Floats = npt.NDArray[np.float64]
Range = tuple[int, int]
"""The first place of a part, and how many it has."""
Pass = tuple[Range, Range]
"""What one pass reads of a and of b."""
_MOST_PLACES = 16
"""Significands with more places are not read in part: the pairs of parts would be too many."""


# Where passes divide a significand --------------------------------------------------------------------------

_KINDS = {(name, place): f"{name} in two parts at {place}" for name in "ab" for place in range(_MOST_PLACES)}
"""Kinds of the questions that show where passes divide an operand."""
_ROUNDS = (40, 96)
"""Questions about each place, in turn: a few rule out most places. Of a unit that reads whole significands
about one answer in four is not the sum of two."""


def find_divisions(box: Box, bank: Bank, rng: np.random.Generator) -> None:
    """Asks where passes divide the significands of a and b. The questions about a place that does join the
    bank.

    The answer to one product next to a c whose last place is about the size of the lower part is rounded.
    Where two passes read the parts, it is the sum of the answers to both parts: each is rounded alone.
    """
    takes = box.takes
    left = [(name, place) for name in "ab" for place in _places_divided(takes, name)]
    shown: dict[tuple[str, int], tuple[Operands, Bits]] = {}
    # A round uses one query in 12 of those that are left, at most.
    share = 12
    for count in _ROUNDS:
        if share * 3 * count * len(left) > box.can_answer():
            return
        shown = {}
        for one in left:
            operands = _in_two(takes, *one, count, rng)
            sent, answers = box.ask(operands)
            if (sent["c"] == operands["c"]).all() and _is_sum(takes, sent, answers):
                shown[one] = sent, answers
        left = list(shown)
    for one, (sent, answers) in shown.items():
        bank.add(_KINDS[one], sent, answers)


def _places_divided(takes: Signature, name: str) -> range:
    """The places of an operand at which a part could begin; none if the questions need other formats."""
    fmt, numbers = takes.formats[name], [takes.formats[one] for one in "abcd"]
    if takes.unread or not all(one.is_float for one in numbers) or fmt.min_exponent > -fmt.fraction_bits:
        return range(0)
    # Farther down a part is too small next to any c that is larger than the product.
    return range(1, min(_places(fmt), takes.formats["d"].fraction_bits + 1))


def _in_two(takes: Signature, name: str, place: int, count: int, rng: np.random.Generator) -> Operands:
    """One product and c: an operand, then its places before `place`, then up to three of those from there on,
    with the same other factor and c."""
    rows, lower = np.arange(count), min(3, _places(takes.formats[name]) - place)
    high = 1 + np.floor(rng.random(count) * 2.0 ** (place - 1)) * 2.0 ** (1 - place)
    low = np.floor(1 + rng.random(count) * (2.0**lower - 1)) * 2.0 ** (1 - place - lower)
    other = takes.formats["b" if name == "a" else "a"]
    places = 2.0**other.fraction_bits
    factor = 1 + np.floor(rng.random(count) * (2 / (high + low) - 1) * places) / places
    # The last place of c is the power of two below the lower product, or twice that. c is larger than the
    # product, which is below 2, so that no answer is in another binade.
    exponent = np.floor(np.log2(low * factor)) + takes.formats["d"].fraction_bits + rng.integers(0, 2, count)
    c = from_float(takes.formats["c"], 2.0 ** np.maximum(exponent, 1))
    at, parts = rng.integers(0, takes.stored_k, count), list[Operands]()
    for number in (high + low, high, low):
        part = {
            one: np.full((count, *shape), takes.at_rest(one), takes.code_format(one).dtype)
            for one, shape in takes.operand_shapes(matrices=False).items()
        }
        for one in "ab":
            part[one][rows, at] = from_float(takes.formats[one], number if one == name else factor)
        parts.append(part | {"c": c.astype(part["c"].dtype)})
    return joined(parts)


def _is_sum(takes: Signature, operands: Operands, answers: Bits) -> bool:
    """Whether every answer is the sum of those to both parts, and enough of them show the lower part."""
    numbers = [np.asarray(to_float(takes.formats[n], x)) for n, x in (("d", answers), ("c", operands["c"]))]
    with np.errstate(all="ignore"):
        whole, high, low = np.subtract(*numbers).reshape(3, -1)
        shows, odd = (whole != high) | (low != 0), whole - high - low != 0
    # One answer in 32 may be a tie that goes to either side.
    return bool(np.count_nonzero(shows) >= ENOUGH and 32 * np.count_nonzero(shows & odd) <= len(odd))


# Which parts are read ---------------------------------------------------------------------------------------


def with_parts(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons that read the parts of a and b which the answers show; unchanged if these are the whole
    operands. If passes divide an operand, the parts of a change first (`reordered` has other orders)."""
    made = [reading(one, passes) for passes in _passes(bank) for one in skeletons]
    return [one for one in made if one is not None] or list(skeletons)


def _passes(bank: Bank) -> list[tuple[Pass, ...]]:
    """Possible lists of passes, each with what it reads; none if one pass reads whole operands."""
    whole = [(0, _places(bank.takes.formats[name])) for name in "ab"]
    divided = [
        [place for (one, place), kind in _KINDS.items() if one == name and kind in bank.kinds]
        for name in "ab"
    ]
    found = _parts(bank)
    if found is None and not any(divided):
        return []
    a, b = (_cut(one, places) for one, places in zip(found or whole, divided, strict=True))
    every = [(one, other) for other, one in product(b, a)]
    # Software may leave out the pass of the lowest parts, which no single product shows in a narrow result.
    without = [every[:-1]] if len(a) > 1 < len(b) else []
    return list(map(tuple, [every, *without]))


def reordered(one: Candidate) -> Iterator[Candidate | None]:
    """A candidate of several passes with these in other orders: its parts of a, or those of b, change first,
    from the highest or the lowest ones. Nobody has checked whether a unit can have them (`sound`)."""

    def read(operation: Operation) -> tuple[Part, ...]:
        return tuple(step for step in operation.steps if isinstance(step, Part))

    def reading_other(operation: Operation, passes: dict[tuple[Part, ...], tuple[Part, ...]]) -> Operation:
        new: dict[Step, Step] = dict(zip(read(operation), passes.get(read(operation), ()), strict=True))
        return operation.with_steps(new.get(step, step) for step in operation.steps)

    now = list(dict.fromkeys(filter(None, map(read, one.operations))))
    for turned in (False, True):
        order = sorted(now, key=lambda parts: [part.first for part in parts[:: -1 if turned else 1]])
        for new in (order, order[::-1]):
            if new != now:
                passes = dict(zip(now, new, strict=True))
                yield one.with_keys(reading_other(o, passes) for o in one.operations)


def _cut(one: Range, places: Sequence[int]) -> list[Range]:
    """A part divided at these places."""
    first, bits = one
    ends = [first, *(place for place in places if first < place < first + bits), first + bits]
    return [(start, end - start) for start, end in pairwise(ends)]


def _parts(bank: Bank) -> Pass | None:
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
    scored: list[tuple[int, int, int, Pass]] = []
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


def reading(one: Candidate, passes: Sequence[Pass]) -> Candidate | None:
    """A candidate that reads these parts wherever it multiplies: the whole program once for each pass, with
    the result of one as c of the next. None if no unit can."""
    operations: list[Operation] = []
    seed = "c"
    for index, parts in enumerate(passes):
        last = index == len(passes) - 1
        to = {o.to: o.to if last else f"{o.to}_{index}" for o in one.operations} | {"c": seed}
        for operation in one.operations:
            linked = {"seed": to.get(operation.seed, operation.seed), "to": to[operation.to]}
            addends = tuple(to[name] for name in operation.addends)
            operations.append(replace(_reading(operation, *parts), addends=addends, **linked))
        seed = operations[-1].to
    return one.with_operations(operations)


def _reading(operation: Operation, a: Range, b: Range) -> Operation:
    """An operation that reads parts of a and b, after it flushed them."""
    if not any(isinstance(step, Multiply) for step in operation.steps):
        return operation
    parts = [Part(of=(name,), first=first, bits=bits) for name, (first, bits) in (("a", a), ("b", b))]
    steps: list[Step] = list(operation.steps)
    place = next((n for n, step in enumerate(steps) if not isinstance(step, Flush)), 0)
    return operation.with_steps((*steps[:place], *parts, *steps[place:]))
