"""Parts of operands: a multiplier that reads some neighbouring bits of each significand, in one pass or in
several.

The answer to one product is a sum over pairs of bits, one of a and one of b. It shows how often each pair is
multiplied, whatever the order of the sum is, and this count is a sum of rectangles: what each pass reads of a
and of b. Next to a large c the answer shows where two passes read neighbouring parts, because each pass
rounds its own. While a part is wrong, every order of the sum is wrong on most questions, so skeletons get the
parts before they are ranked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import compress, pairwise, product

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank, Box
from golden.identify.blackbox.candidates import Candidate
from golden.number.formats import Format, from_float, to_float
from golden.number.frozen import replace
from golden.program.program import Operation
from golden.program.signature import Bits, Operands, Signature
from golden.program.steps import Flush, Multiply, Part, Step

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Range = tuple[int, int]
"""The first place of a part, and how many it has."""
Pass = tuple[Range, Range]
"""What one pass reads of a and of b."""
Ranges = tuple[Sequence[Range], Sequence[Range]]
"""The parts of a and those of b that passes read."""
KIND = "parts of one product"
_SHARE = 12
"""A round uses one query in 12 of those that are left, at most."""


def find_passes(box: Box, bank: Bank, rng: np.random.Generator) -> list[tuple[Pass, ...]]:
    """Possible lists of passes, each with what it reads; none if one pass reads whole operands, or if the
    answers show no passes. The questions that show passes join the bank."""
    takes = box.takes
    sizes = [_places(takes.formats[name]) for name in "ab"]
    floats = all(takes.formats[name].is_float for name in "abcd")
    if takes.unread or not floats or not all(sizes):
        return []
    # 1. How often each pair of bits is multiplied, as a sum of few rectangles.
    asked: list[tuple[Operands, Bits]] = []
    counts = _counts(box, asked)
    if counts is None:
        return []
    exponent, pairs = counts
    ranges = _ranges(pairs)
    if ranges is None:
        return []
    # 2. Neighbouring parts of two passes look like one part in the counts, but each is rounded alone.
    d = takes.formats["d"]
    exponent = min(exponent, (d.max_exponent - d.fraction_bits - 3) // 2)  # c is larger by all places of d
    for turn in (0, 1):
        ranges = _divided(box, pairs, ranges, turn, exponent, rng, asked)
    whole = (((0, sizes[0]), (0, sizes[1])),)
    found = _subsets(pairs, *ranges)
    # 3. Products of any bits have to be nearer to what the passes read than to products of whole operands.
    if found == [whole] or not _is_nearer(box, found[0], whole, exponent, rng):
        return []
    for operands, answers in asked:
        bank.add(KIND, operands, answers)
    return found


@dataclass
class _AsRead(Box):
    """A unit that reads no hidden bit, given a power of two with one more bit: the first of `bits` that it
    reads of a and of b. It then reads a power of two."""

    bits: tuple[int, int] = (0, 0)

    def ask(self, operands: Operands) -> tuple[Operands, Bits]:
        """As of a box; the questions that it returns have these bits."""
        given = dict(operands)
        for name, place in zip("ab", self.bits, strict=True):
            fmt, codes = self.takes.formats[name], operands[name]
            normal = codes & codes.dtype.type((1 << fmt.sign_shift) - 1) >= 1 << fmt.fraction_bits
            bit = codes.dtype.type((1 << fmt.fraction_bits) >> place if place else 0)
            given[name] = np.where(normal, codes | bit, codes)
        return super().ask(given)


def as_read(box: Box, lists: Sequence[Sequence[Pass]]) -> Box:
    """The box for questions of powers of two: of a unit whose passes read no hidden bit, a box that sets the
    first bit which they read."""
    a, b = (min((one[place][0] for passes in lists[:1] for one in passes), default=0) for place in (0, 1))
    made = {one.name: getattr(box, one.name) for one in fields(box) if one.init}
    return _AsRead(**made, bits=(a, b)) if a or b else box


@cache
def _places(fmt: Format) -> int:
    """Places of the significands of an operand; 0 if there are too many."""
    most = 16  # of more the pairs of bits would be too many
    return fmt.fraction_bits + 1 if fmt.fraction_bits < most else 0


def _one_product(takes: Signature, a: Floats, b: Floats, c: Floats, at: int | Numbers = 0) -> Operands:
    """Dot products of one product, the other operands at rest."""
    count = len(a)
    found = {
        name: np.full((count, *shape), takes.at_rest(name), takes.code_format(name).dtype)
        for name, shape in takes.operand_shapes(matrices=False).items()
    }
    for name, numbers in (("a", a), ("b", b)):
        found[name][np.arange(count), at] = from_float(takes.formats[name], numbers)
    return found | {"c": from_float(takes.formats["c"], c).astype(found["c"].dtype)}


# How often each pair of bits is multiplied ------------------------------------------------------------------


def _counts(box: Box, asked: list[tuple[Operands, Bits]]) -> tuple[int, Floats] | None:
    """The exponent of the factors that were asked, and (places of a, places of b), how often the product of
    these two bits is in the answer; None if answers are not finite, or queries are short.

    The factors have their hidden bit, and at most one other."""
    takes = box.takes
    a, b, c, d = (takes.formats[name] for name in "abcd")
    shape = _places(a), _places(b)
    i, j = np.indices(shape)
    if 3 * _SHARE * i.size > box.can_answer():
        return None

    def answers(exponent: int, given: Floats) -> Floats:
        x, y = (np.ldexp(1 + (one > 0) * 2.0**-one, exponent).ravel() for one in (i, j))
        wanted = _one_product(takes, x, y, given.ravel())
        sent, found = box.ask(wanted)
        asked.append((sent, found))
        numbers = np.asarray(to_float(d, found), np.float64)
        return np.where(sent["c"] == wanted["c"], numbers, np.nan).reshape(shape)

    # 1. Large factors, because zeros may have an exponent that is no less than that of small products;
    # smaller ones for units whose products overflow early.
    low, high = max(a.min_exponent, b.min_exponent), min(a.max_exponent, b.max_exponent)
    high = min(high, (d.max_exponent - 3) // 2)
    large, small = 6, -12
    for exponent in dict.fromkeys(max(min(one, high), low) for one in (large, 0, small)):
        numbers = answers(exponent, np.zeros(shape))
        if np.isfinite(numbers).all():
            break
    else:
        return None
    # 2. If d has too few bits for a product, c takes away what the answer had: the rest is small, and exact.
    # A unit that negates c needs the other sign.
    if d.fraction_bits < a.fraction_bits + b.fraction_bits:
        first = np.asarray(to_float(c, from_float(c, numbers)), np.float64)
        rests = [answers(exponent, sign * first) for sign in (-1, 1)]
        rest = min(rests, key=lambda one: float(np.abs(one).max()))
        cancelled = 1 / 16
        if np.abs(rest).max() < cancelled * np.abs(numbers).max():
            numbers = first + rest
    # 3. The second difference of four answers is the product of two bits.
    numbers = numbers / 4.0**exponent
    found = numbers - numbers[:1] - numbers[:, :1] + numbers[0, 0]
    found[0], found[:, 0] = numbers[0] - numbers[0, 0], numbers[:, 0] - numbers[0, 0]
    found[0, 0] = numbers[0, 0]
    return exponent, found * 2.0 ** (i + j)


def _ranges(counts: Floats) -> Ranges | None:
    """The parts of a and of b of the fewest passes with these counts; None if no few have nearly all."""
    # A row and a column with the most bits that are read show the parts of b, and of a.
    whole = _integers(counts)
    row, column = (int(np.argmax(np.count_nonzero(whole, axis=axis))) for axis in (1, 0))
    a, b = _intervals(whole[:, column]), _intervals(whole[row])
    # Where neighbouring rows or columns differ, another pass begins.
    differing = [np.count_nonzero(np.diff(whole, axis=axis), axis=1 - axis) for axis in (0, 1)]
    places = [{place + 1 for place in np.flatnonzero(many > 1).tolist()} for many in differing]
    divided = _parts(a, places[0]), _parts(b, places[1])
    made = [(some, passes[0]) for some in ((a, b), divided) if (passes := _subsets(counts, *some))]
    if not made:
        return None
    # A pass more has to explain more than one count.
    best, fewest = min(made, key=lambda one: _mismatch(whole, one[1]) + len(one[1]))
    # Rounding of the lowest bits may change one count in eight.
    return best if 8 * _mismatch(whole, fewest) <= np.count_nonzero(whole) else None


def _is_nearer(
    box: Box, one: Sequence[Pass], other: Sequence[Pass], exponent: int, rng: np.random.Generator
) -> bool:
    """Whether answers to one product are mostly nearer to what some passes read than to what others do."""
    takes, count = box.takes, 64
    bits = [takes.formats[name].fraction_bits for name in "ab"]
    a, b = (np.ldexp(1 + np.floor(rng.random(count) * 2.0**n) / 2.0**n, exponent) for n in bits)
    _, found = box.ask(_one_product(takes, a, b, np.zeros(count)))
    answers = np.abs(np.asarray(to_float(takes.formats["d"], found), np.float64))
    read = [sum(_products(takes, some, "a", [a], b)[0] for some in passes) for passes in (one, other)]
    away, farther = (np.abs(some - answers) for some in read)
    # Results with few bits do not show a difference in the lowest ones.
    shown = np.abs(away - farther) > answers * 2.0 ** -takes.formats["d"].fraction_bits
    return bool(4 * np.count_nonzero(shown & (away > farther)) <= np.count_nonzero(shown))


def _integers(counts: Floats) -> Floats:
    """Counts as integers, of a unit that negates products, too."""
    found = np.rint(counts)
    return np.asarray(-found if found.sum() < 0 else found)


def _mismatch(whole: Floats, passes: Sequence[Pass]) -> int:
    """How many pairs of bits these passes do not multiply so often."""
    expected = np.zeros(whole.shape)
    for (first, bits), (other, more) in passes:
        expected[first : first + bits, other : other + more] += 1
    return int(np.count_nonzero(expected != whole))


def _subsets(counts: Floats, a: Sequence[Range], b: Sequence[Range]) -> list[tuple[Pass, ...]]:
    """The pairs of a part of a and one of b that have the counts most nearly, the parts of a changing first;
    several lists if they have them equally, as long as all passes; empty for too many pairs."""
    pairs = [(one, other) for other in b for one in a]
    if not 0 < len(pairs) <= 6:  # real units have four passes
        return []
    every = (tuple(compress(pairs, kept)) for kept in product((True, False), repeat=len(pairs)))
    whole = _integers(counts)
    scored = [(_mismatch(whole, some), some) for some in every if some]
    least = min(wrong for wrong, _ in scored)
    most = 2  # every list multiplies the skeletons
    return list(dict.fromkeys(some for wrong, some in scored if wrong == least))[:most]


def _intervals(profile: Floats) -> list[Range]:
    """The parts that read each place so many times; the part that begins first ends first."""
    begun: list[int] = []
    found: list[Range] = []
    most = 3  # passes that read one bit of a number
    for place, count in enumerate((*np.clip(profile, 0, most).astype(int).tolist(), 0)):
        while len(begun) < count:
            begun.append(place)
        while len(begun) > count:
            first = begun.pop(0)
            found.append((first, place - first))
    return found


# Where passes divide a part ---------------------------------------------------------------------------------


def _parts(ranges: Sequence[Range], places: Iterable[int]) -> list[Range]:
    """Parts divided at these places."""
    found: list[Range] = []
    for first, bits in ranges:
        ends = [first, *sorted(at for at in places if first < at < first + bits), first + bits]
        found += [(start, end - start) for start, end in pairwise(ends)]
    return found


def _divided(
    box: Box,
    counts: Floats,
    ranges: Ranges,
    turn: int,
    exponent: int,
    rng: np.random.Generator,
    asked: list[tuple[Operands, Bits]],
) -> Ranges:
    """The parts of a (turn 0) or b (1), divided where no pass reads both sides."""

    def divided(places: Iterable[int]) -> Ranges:
        new = _parts(ranges[turn], places)
        return (new, ranges[1]) if turn == 0 else (ranges[0], new)

    def shows(place: int, others: Iterable[int]) -> bool:
        passes = _subsets(counts, *divided(others))
        return bool(passes) and _is_divided(box, passes[0], "ab"[turn], place, exponent, rng, asked)

    inner = {at for first, bits in ranges[turn] for at in range(first + 1, first + bits)}
    found = [at for at in sorted(inner) if shows(at, ())]
    # Next to a true place a false one often shows, too: it does not once the part is divided there.
    for at in found if len(found) > 1 else ():
        others = [one for one in found if one != at]
        if not shows(at, others):
            found = others
    return divided(found) if _subsets(counts, *divided(found)) else ranges


_LAW = (1, -1, -1, 1)
"""Signs of the answers to an operand, to its places before another one, to the rest with the hidden bit, and
to the hidden bit alone. The sum is zero if no pass reads places on both sides."""


def _is_divided(
    box: Box,
    passes: Sequence[Pass],
    name: str,
    place: int,
    exponent: int,
    rng: np.random.Generator,
    asked: list[tuple[Operands, Bits]],
) -> bool:
    """Whether no pass reads places on both sides of this one. The questions join the others if so."""
    takes = box.takes
    drawn = _in_two(takes, passes, name, place, exponent, rng)
    if drawn is None or _SHARE * drawn[1].size > box.can_answer():
        return False
    operands, expected = drawn
    sent, answers = box.ask(operands)
    if (sent["c"] != operands["c"]).any():
        return False
    d = np.asarray(to_float(takes.formats["d"], answers), np.float64)
    c = np.asarray(to_float(takes.formats["c"], sent["c"]), np.float64)
    # The answers in last places, of which each pass moves them by less than one. A unit may negate a term.
    with np.errstate(all="ignore"):
        c = np.where((d < 0) == (c < 0), c, -c)
        places = ((d - c) * 2.0 ** takes.formats["d"].fraction_bits / np.abs(c)).reshape(4, -1)
        rounded = (places % 1 == 0) & (np.abs(np.abs(places) - expected) <= len(passes) + 1)
        right = rounded.all(axis=0) & (_LAW @ places == 0)
    # One row in 16 may be a tie that goes to either side.
    found = bool(16 * np.count_nonzero(~right) <= len(right))
    if found:
        asked.append((sent, answers))
    return found


def _in_two(
    takes: Signature, passes: Sequence[Pass], name: str, place: int, exponent: int, rng: np.random.Generator
) -> tuple[Operands, Floats] | None:
    """Questions of one product and c that these passes answer against the law, four by four as `_LAW` has
    them, and what the product adds to c in last places, (4, n); None if there are too few."""
    drawn, lower = 1 << 13, min(3, _places(takes.formats[name]) - place)
    # 1. An operand with up to three bits from the place on, and any other factor.
    high = 1 + np.floor(rng.random(drawn) * 2.0 ** (place - 1)) * 2.0 ** (1 - place)
    low = np.floor(1 + rng.random(drawn) * (2.0**lower - 1)) * 2.0 ** (1 - place - lower)
    other = takes.formats["b" if name == "a" else "a"]
    places = 2.0**other.fraction_bits
    factor = 1 + np.floor(rng.random(drawn) * (2 / (high + low) - 1) * places) / places
    factor = np.ldexp(factor, exponent)
    numbers = [np.ldexp(one, exponent) for one in (high + low, high, 1 + low, np.ones(drawn))]
    # 2. What each pass reads of it: (passes, 4, drawn).
    read = np.array([_products(takes, one, name, numbers, factor) for one in passes])
    with np.errstate(divide="ignore"):
        lowest = np.floor(np.log2(np.abs(read[:, 0] - read[:, 1]).sum(axis=0)))
    # 3. The last place of c is the power of two below what the lower places add, or twice that. c has to be
    # larger than the product, which is below 2, so that no answer is in another binade.
    bits = takes.formats["d"].fraction_bits
    top = np.where(np.isfinite(lowest), lowest, 0) + rng.integers(0, 2, drawn) + bits
    large = np.isfinite(lowest) & (top > 2 * exponent)
    in_places = read / 2.0 ** (top - bits)
    # 4. Rows without ties that break the law when each pass is rounded to nearest; first those that break it
    # in other modes, too. In each mode some have to.
    tie = (in_places * 2 % 2 == 1).any(axis=(0, 1))
    law = np.array(_LAW)[None, :, None]
    rounded = [mode(in_places) for mode in (np.rint, np.floor, np.ceil, _to_odd)]
    broken = np.array([(law * one).sum(axis=(0, 1)) != 0 for one in rounded])
    some = np.flatnonzero(broken[0] & ~tie & large)
    rows, in_each_mode = 24, 4  # more than ties could break
    chosen = some[np.argsort(-broken[:, some].sum(axis=0), kind="stable")][:rows]
    if len(chosen) < rows or broken[:, chosen].sum(axis=1).min() < in_each_mode:
        return None
    first = np.concatenate([one[chosen] for one in numbers])
    factors = [first, np.tile(factor[chosen], 4)]
    a, b = factors if name == "a" else factors[::-1]
    return _one_product(takes, a, b, np.tile(2.0 ** top[chosen], 4)), in_places.sum(axis=0)[:, chosen]


def _to_odd(numbers: Floats) -> Floats:
    """Numbers rounded to odd."""
    below = np.floor(numbers)
    return np.asarray(below + ((below % 2 == 0) & (below != numbers)))


def _products(takes: Signature, one: Pass, name: str, numbers: Sequence[Floats], factor: Floats) -> Floats:
    """What a pass makes of each number and a factor, (numbers, n)."""
    own, other = one if name == "a" else one[::-1]
    fmt, second = (takes.formats[n] for n in (name, "b" if name == "a" else "a"))
    return np.array([_read(fmt, some, own) for some in numbers]) * _read(second, factor, other)


def _read(fmt: Format, values: Floats, part: Range) -> Floats:
    """What a part of each number is worth."""
    first, bits = part
    exponents = np.maximum(np.frexp(values)[1] - 1, fmt.min_exponent)
    units = np.ldexp(1.0, exponents - (first + bits - 1))
    return np.asarray(np.floor(values / units) % 2.0**bits * units)


# Skeletons --------------------------------------------------------------------------------------------------


def with_parts(lists: Sequence[Sequence[Pass]], skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons of these lists of passes; unchanged if there are none. The parts of a change first
    (`reordered` has other orders)."""
    made = [reading(one, passes) for passes in lists for one in skeletons]
    return [one for one in made if one is not None] or list(skeletons)


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
