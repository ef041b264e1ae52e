"""Bits of the operands that a box ignores: each bit of each code is flipped in a number of questions.

First in a product that equals the operand (times one), or that c cancels except for this bit. Bits that
change no answer there are then flipped in questions of every kind and at ties, in all places of an operand at
once, then in parts. Low bits of all elements become a format that ignores them, so the search knows them. Its
questions carry other values in these bits, so a bit that is read after all would show as a difference.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.errors import bits_text
from golden.identify.blackbox.box import Box, BudgetEnded, Mask, dense_view
from golden.number.formats import Format
from golden.number.frozen import replace
from golden.program.signature import Bits, Operands, Signature
from golden.unit import FunctionUnit, Unit, name_of, signature_of

_KINDS = ("narrow", "wide", "random_bits", "cancelling", "one_hot", "equal_exponents", "alignment_edge")
_NOT_TESTED = "which bits of the operands are ignored was not tested"
Rng = Callable[..., np.random.Generator]
_Bit = tuple[str, int, int]
"""Operand, place in it, bit."""


@dataclass(frozen=True)
class IgnoredBits:
    """The bits that a box ignores.

    Attributes:
        unit: the box; if it ignores low bits of an operand, with a format that ignores them.
        said: a sentence for each operand and set of bits.
        open: what was not tested, and why.
        queries: the questions that it took.
        formats: the operands whose format was replaced.
    """

    unit: Unit
    said: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    queries: int = 0
    formats: Mapping[str, Format] = field(default_factory=dict)


def find_ignored_bits(unit: Unit, asks: int, seconds: float, rng: Rng) -> IgnoredBits:
    """Finds the bits of its operands that a unit ignores.

    Args:
        asks, seconds: the budget of the whole dissection, of which this takes a part.

    Raises:
        OperandError: the box does not answer.
    """
    # Of a smaller budget nothing is spent on bits.
    least = 8_000
    if asks < least:
        return IgnoredBits(unit, open=(f"{_NOT_TESTED}: too few questions",))
    # One second in 20, for all that is tested here.
    share = 20
    until = time.monotonic() + seconds / share
    box = Box(dense_view(unit), asks // 4, until)
    search = _BitProbe(box, asks, until, rng)
    try:
        # Two answers show the time of one.
        count = 2
        box.ask(stimuli.generate(box.takes, "narrow", count, rng(5)))
        # 1. Bits that change no answer in the simplest questions; few bits are left for the costly test.
        silent = search.not_shown()
        # 2. Bits that change none in any kind of question: only these are called ignored.
        found = search.confirmed(silent) if silent else {}
        low = {name: bits for name in "abc" if (bits := search.low_bits(name, found))}
    except BudgetEnded:
        return IgnoredBits(unit, open=(f"{_NOT_TESTED}: it would have taken too long",), queries=box.queries)
    formats = {name: _ignoring(box.takes.formats[name], bits) for name, bits in low.items()}
    said = tuple(_sentences(search, found))
    return IgnoredBits(_as_read(unit, formats), said, queries=box.queries, formats=formats)


class _BitProbe:
    """The questions about the bits of one box."""

    def __init__(self, box: Box, asks: int, until: float, rng: Rng) -> None:
        self.box, self.takes, self.until, self.rng = box, box.takes, until, rng
        # One query in 16 of the budget, for the first questions.
        share = 16
        self.first = asks // share
        # Bits are flipped in 400 questions before they are called ignored, and in one of 64 of the budget.
        self.many = max(min(400, asks // 64), 1)
        self.places: dict[str, tuple[int, ...]] = {}
        """The places of each operand that were tested first."""

    def count(self, name: str) -> int:
        """The number of elements of an operand."""
        shape = self.takes.operand_shapes(matrices=False)[name]
        return shape[0] if shape else 1

    # The first questions ------------------------------------------------------------------------------------

    def not_shown(self) -> list[_Bit]:
        """The bits whose flip changes no answer to the first questions."""
        found: list[_Bit] = []
        for name in self._operands():
            bits, count = _read_bits(self.takes.formats[name]), self.count(name)
            order = [0, count - 1, *self.rng(3, len(name)).permutation(count).tolist()]
            order = list(dict.fromkeys(order))[: max(self.first // (2 * len(bits) + 2), 1)]
            done = 0
            while done < len(order) and (not done or time.monotonic() < self.until):
                # The first two places show the time that a batch of more takes.
                batch = 16
                some = order[done : done + (batch if done else 2)]
                found += self._silent(name, some, bits)
                done += len(some)
            self.places[name] = tuple(sorted(order[:done]))
        return found

    def _operands(self) -> Iterator[str]:
        shapes = self.takes.operand_shapes(matrices=False)
        for name in ("a", "b", "c", "scale_a", "scale_b"):
            read = name not in self.takes.unread and not (name == "c" and self.box.own.state)
            if name in shapes and read:
                yield name

    def _silent(self, name: str, places: Sequence[int], bits: Sequence[int]) -> list[_Bit]:
        """The bits of an operand in some places that show neither alone nor when c cancels the rest."""
        left = [(place, bit) for place in places for bit in bits]
        for turn, cancelled in enumerate((False, True)):
            base = self._alone(name, places, cancelled, self.rng(4, turn, len(name)))
            rows = np.array([places.index(place) for place, _ in left], np.int64)
            turned = {key: codes[rows] for key, codes in base.items()}
            for row, (place, bit) in enumerate(left):
                flat = turned[name].reshape(len(left), -1)
                flat[row, place] ^= flat.dtype.type(1 << bit)
            differ = self._differ(base, turned, rows)
            left = [one for one, is_other in zip(left, differ, strict=True) if not is_other]
        return [(name, *one) for one in left]

    def _alone(self, name: str, places: Sequence[int], cancelled: bool, rng: np.random.Generator) -> Operands:
        """For each place a question in which the operand there is the result, or is one and c cancels it."""
        takes, rows, count = self.takes, np.arange(len(places)), len(places)
        found = {
            key: np.full((count, *shape), takes.at_rest(key), takes.code_format(key).dtype)
            for key, shape in takes.operand_shapes(matrices=False).items()
        }
        slots = np.array(places) * (takes.k // self.count(name)) if name != "c" else np.zeros(count, np.int64)
        for key in "ab" if cancelled or name != "c" else "":
            fmt = takes.formats[key]
            ordinary = key == name and not cancelled
            codes = _ordinary(fmt, count, rng) if ordinary else np.full(count, stimuli.one(fmt), fmt.dtype)
            found[key][rows, slots] = codes
        c = takes.formats["c"]
        if cancelled:
            found["c"][:] = stimuli.negate(c, np.full(count, stimuli.one(c), c.dtype))
        elif name == "c":
            found["c"][:] = _ordinary(c, count, rng)
        return found

    def _differ(self, first: Operands, second: Operands, rows: npt.NDArray[np.int64]) -> Mask:
        """Whether the second questions have other answers than the first ones of these rows; for a unit that
        keeps c, also whether their c differs."""
        sent, answers = self.box.ask(
            {key: np.concatenate([codes, second[key]]) for key, codes in first.items()}
        )
        count = len(first["a"])
        found = answers[:count][rows] != answers[count:]
        if self.box.own.state:
            found |= sent["c"][:count][rows] != sent["c"][count:]
        return np.asarray(found)

    # Questions of every kind --------------------------------------------------------------------------------

    def confirmed(self, silent: list[_Bit]) -> dict[_Bit, int]:
        """The bits that no answer shows, and in how many questions they were flipped: all bits of an operand
        at once, or in halves if that changes an answer."""
        found: dict[_Bit, int] = {}
        for name in dict.fromkeys(one[0] for one in silent):
            own = [one for one in silent if one[0] == name]
            bits = sorted({bit for _, _, bit in own})
            of_bit = {bit: [one for one in own if one[2] == bit] for bit in bits}
            for bit, some in of_bit.items():
                if len(some) == len(self.places[name]):  # no place that was tested showed it
                    of_bit[bit] = [(name, place, bit) for place in range(self.count(name))]
            found |= self._parted([one for bit in bits for one in of_bit[bit]], self.many)
        return found

    def _parted(self, some: list[_Bit], count: int) -> dict[_Bit, int]:
        """The same for bits of one operand: halved until no part of them changes an answer."""
        changed, total = self.turned(some, count)
        if not changed:
            return dict.fromkeys(some, total)
        if len(some) == 1:
            return {}
        bits = sorted({bit for _, _, bit in some})
        half = bits[len(bits) // 2] if len(bits) > 1 else None
        upper = [one for one in some if one[2] >= half] if half is not None else some[len(some) // 2 :]
        rest = [one for one in some if one not in upper]
        return {**self._parted(rest, count), **self._parted(upper, count)}

    def turned(self, some: Sequence[_Bit], count: int) -> tuple[int, int]:
        """In how many questions a flip of any of some bits changes the answer, and in how many it was
        tried."""
        name, rng = some[0][0], self.rng(5, len(some), count)
        base = self._drawn(name, [place for _, place, _ in some], count, rng)
        ties = self._ties(name, [place for _, place, _ in some])
        chosen = rng.random((len(base["a"]), len(some))) < 0.5
        chosen[~chosen.any(axis=1)] = True
        chosen = np.concatenate([chosen, np.ones((len(ties["a"]), len(some)), np.bool_)])
        base = {key: np.concatenate([codes, ties[key]]) for key, codes in base.items()}
        codes = base[name].copy()
        flat = codes.reshape(len(codes), -1)
        for index, (_, place, bit) in enumerate(some):
            flat[chosen[:, index], place] ^= flat.dtype.type(1 << bit)
        differ = self._differ(base, base | {name: codes}, np.arange(len(codes)))
        return int(differ.sum()), len(differ)

    def _drawn(self, name: str, places: Sequence[int], count: int, rng: np.random.Generator) -> Operands:
        """Questions of every kind, and equally many with a single product in the places in turn."""
        each = max(count // (2 * len(_KINDS)), 1)
        parts = [stimuli.generate(self.takes, kind, each, rng) for kind in _KINDS]
        mixed = rng.permutation(np.resize(places, max(count - each * len(parts), 1)))
        alone = self._alone(name, mixed.tolist(), False, rng)
        for key in "ab":
            codes, fmt = alone[key], self.takes.formats[key]
            there = codes != self.takes.at_rest(key)
            codes[there] = _ordinary(fmt, int(there.sum()), rng)
        parts.append(alone)
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _ties(self, name: str, places: Sequence[int]) -> Operands:
        """An operand as a result between two numbers of each precision, where a bit far below decides the
        rounding; and at the corners of its format, where a bit without other effect may turn an infinity into
        a NaN, or zero into a number."""
        fmt = self.takes.formats[name]
        width = fmt.fraction_bits if fmt.is_float else fmt.bits - 2
        codes = [
            stimuli.one(fmt) | ((1 << bit) | (odd << (bit + 1))) << fmt.ignored_low
            for bit in range(width)
            for odd in (0, int(bit + 1 < width))
        ]
        codes += stimuli.corner_codes(fmt).tolist()
        found = self._alone(name, np.resize(places, max(len(codes), 1)).tolist(), False, self.rng(6))
        flat = found[name].reshape(max(len(codes), 1), -1)
        for row, code in enumerate(codes):
            flat[row, places[row % len(places)]] = code
        return found

    def low_bits(self, name: str, found: Mapping[_Bit, int]) -> int:
        """How many low bits are ignored in all elements of an operand, if the bit above them shows in the
        same questions."""
        fmt, places = self.takes.formats[name], range(self.count(name))
        low = 0
        while all((name, place, fmt.ignored_low + low) in found for place in places):
            low += 1
        if not (fmt.is_float and 0 < low < fmt.fraction_bits):
            return 0
        changed, count = self.turned([(name, place, fmt.ignored_low + low) for place in places], self.many)
        # If the lowest bit that is read changes fewer answers, bits below it might not have shown.
        share = 0.05
        return low if changed >= share * count else 0


def _read_bits(fmt: Format) -> range:
    """The bits of a code that the format itself reads."""
    return range(fmt.ignored_low, fmt.bits - fmt.ignored_high)


def _ordinary(fmt: Format, count: int, rng: np.random.Generator) -> Bits:
    """Codes of numbers with a magnitude near one, with all other bits random."""
    if not fmt.is_float:
        return rng.integers(0, 1 << fmt.bits, count, dtype=np.uint64).astype(fmt.dtype)
    low = (1 << (fmt.fraction_bits + fmt.ignored_low)) - 1
    drawn = rng.integers(0, low + 1, count, dtype=np.uint64) & np.uint64(low ^ ((1 << fmt.ignored_low) - 1))
    return np.asarray(stimuli.one(fmt) | drawn.astype(fmt.dtype), fmt.dtype)


# A unit that does not read them -----------------------------------------------------------------------------


def _ignoring(fmt: Format, low: int) -> Format:
    """The format without its lowest fraction bits."""
    name = f"{fmt.name}_without_{low}_low"
    return replace(fmt, name=name, fraction_bits=fmt.fraction_bits - low, ignored_low=fmt.ignored_low + low)


def _as_read(unit: Unit, formats: Mapping[str, Format]) -> Unit:
    """The unit with other formats; the bits that these ignore reach it with other values than those given."""
    if not formats:
        return unit
    takes = signature_of(unit)

    def answer(**operands: Bits) -> Any:
        mixed = {name: _mixed(operands[name], fmt, takes.formats[name]) for name, fmt in formats.items()}
        return unit.dot(**operands | mixed)

    given = {one.name: getattr(takes, one.name) for one in fields(Signature)}
    changed = given | {"formats": {**takes.formats, **formats}, "name": name_of(unit)}
    return FunctionUnit(answer, changed.pop("formats"), changed.pop("k"), **changed)


def _mixed(codes: Bits, fmt: Format, own: Format) -> Bits:
    """Codes with other bits in the place of those that a format ignores and the unit's own format reads: a
    function of the code, without a rule that a unit could share."""
    mask = (1 << fmt.ignored_low) - (1 << own.ignored_low)
    kept = codes.astype(np.uint64) & ~np.uint64(mask)
    with np.errstate(over="ignore"):
        drawn = (kept * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return np.asarray(kept | (drawn & np.uint64(mask)), codes.dtype)


# Messages -------------------------------------------------------------------------------------------------


def _sentences(search: _BitProbe, found: Mapping[_Bit, int]) -> Iterator[str]:
    """A sentence for each operand and set of bits that its places ignore."""
    by_place: dict[tuple[str, int], list[int]] = defaultdict(list)
    for name, place, bit in found:
        by_place[name, place].append(bit)
    by_bits: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for (name, place), bits in by_place.items():
        by_bits[name, tuple(sorted(bits))].append(place)
    for (name, some), places in sorted(by_bits.items()):
        count = min(found[name, place, bit] for place in places for bit in some)
        whole = name == "c" or len(places) == search.count(name)
        at = name if whole else ", ".join(f"{name}[{place}]" for place in sorted(places))
        are, them = ("are", "them") if len(some) > 1 or len(places) > 1 else ("is", "it")
        yield f"{bits_text(some)} of {at} {are} not read: 0 of {count:,} answers changed with {them}"
