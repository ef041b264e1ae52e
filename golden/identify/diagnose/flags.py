"""Explanations of wrong status flags of a unit with right results: each flag that differs, by itself.

    for fault in flag_faults(ins, operands, flags, judged):
        print(fault.sentence())

A flag is a bit for each dot product, so every hypothesis about it is one more way to compute that bit; the
flags of a unit are independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from golden.budget import Budget
from golden.identify.diagnose import datapath
from golden.identify.diagnose.datapath import decoded
from golden.identify.diagnose.hypothesis import Hypothesis
from golden.identify.diagnose.mutations import Mutation, of_signals, run
from golden.identify.diagnose.mutations.modes import mode_skews
from golden.identify.diagnose.mutations.mutation import fields, sets, signal
from golden.identify.diagnose.policy import FLAGS, SEARCH
from golden.identify.sample import picked
from golden.identify.search import Pass, Search
from golden.model.instruction import Instruction
from golden.number.formats import Kind
from golden.program.keys import TINY
from golden.program.signature import Bits, Operands

Mask = Any
_DELAYS = {"late-by-one": 1, "early-by-one": -1}
"""Vectors by which a flag may be late or early."""
_HALF_UNSEEN = signal(
    "rounding",
    "half-is-exact",
    "the round bit is not among the bits that make a result inexact",
    sets(half_is_inexact=False),
)
"""A fault of the flag alone: results know their round bit."""


@dataclass(frozen=True)
class FlagFault:
    """A flag that is wrong, and its best explanation.

    Attributes:
        flag: its name. wrong: dot products of `total` in which it differs.
        slug, text: the hypothesis; empty if none explains enough. remaining: wrong flags that it leaves.
        others: slugs that explain equally much. also: the words of the first of them.
        with_d: how many wrong results it explains, too, and how many it was compared with.
        out_of_time: whether hypotheses were left out because the time was over.
    """

    flag: str
    wrong: int
    total: int
    slug: str = ""
    text: str = ""
    remaining: int = 0
    others: tuple[str, ...] = ()
    also: str = ""
    with_d: tuple[int, int] = (0, 0)
    out_of_time: bool = False

    def sentence(self) -> str:
        """One sentence without a full stop."""
        differ = f"flag {self.flag} differs in {self.wrong:,} of {self.total:,}"
        if not self.slug:
            tried = " that was tried in the time" if self.out_of_time else ""
            return f"{differ}; no hypothesis{tried} explains it"
        left = f", but for {self.remaining:,}" if self.remaining else ""
        explained, wrong = self.with_d
        some = f"{explained:,} of {wrong:,}" if explained < wrong else "all"
        same = f", which explains {some} wrong results, too" if explained else ""
        return f"{differ}: {self.text}{left}{same}{self._also()}"

    def _also(self) -> str:
        more = len(self.others) - 1
        if more < 0:
            return ""
        return f". Equally consistent with these flags: {self.also}{f' and {more} more' * bool(more)}"


@dataclass(frozen=True)
class _Way:
    """One way to compute a flag; `bits` (n,) for the dot products that it is given."""

    slug: str
    text: str
    bits: Callable[[], Mask]
    fault: Mutation | None = None
    """The changed signal that does it."""


@dataclass(frozen=True)
class _Ranked:
    """A way, and the number of counted flags that it leaves wrong."""

    left: int
    way: _Way


_Ranking = tuple[_Ranked, ...]
_NEVER = float("inf")


def _both(one: _Way, two: _Way, bits: Mask) -> _Way:
    return _Way(f"{one.slug}+{two.slug}", f"{one.text}, and {two.text}", lambda: bits)


def flag_faults(
    ins: Instruction,
    operands: Operands,
    flags: Bits,
    judged: Mask,
    of_d: Hypothesis | None = None,
    d: Bits | None = None,
    budget: Budget | None = None,
) -> list[FlagFault]:
    """Explanations of the flags that differ, the first flag of the unit first.

    Args:
        ins: a unit with status flags and with c given; of a unit with modes, the mode in which most flags
            differ counts, unless an operand of another vector explains a flag in all modes.
        operands: as `ins.dot` takes them, (n, ...). flags: the unit's codes (n,).
        judged: (n,), which dot products count: the ones with right results.
        of_d: the explanation of the wrong results of the whole unit: it is tried first for each flag.
        d: the unit's results (n,), if nothing explains the wrong ones: then a fault of the datapath that a
            flag shows is compared with them, too.
        budget: after it only the quick hypotheses are tried, conditions on the operands; None: it never ends.
    """
    budget = budget or Budget(_NEVER)
    # Only flags that differ are explained; each has a function of its own.
    expected = _bits(ins.flags(**operands), len(ins.status))
    actual = _bits(flags, len(ins.status))
    differ = [
        _Flag(ins, operands, expected, actual, judged, place, name, d, budget)
        for place, name in enumerate(ins.status)
        if (expected[place] != actual[place])[judged].any()
    ]
    # the fault that the results have shown is tried first; a flag that it does not explain has its own
    explained = None if of_d is None else of_d.flags(operands)
    if of_d is not None and explained is not None:
        bits = _bits(explained, len(ins.status))
        known = (one.as_of_d(of_d, bits[one.index]) for one in differ)
        shared = {fault.flag: fault for fault in known if fault.slug and not fault.remaining}
        others = (
            flag_faults(ins, operands, flags, judged, None, d, budget) if len(shared) < len(differ) else []
        )
        alone = {fault.flag: fault for fault in others}
        return [shared.get(one.name) or alone[one.name] for one in differ]
    # The remaining flags by themselves; in a unit with modes first as flags of other vectors.
    if ins.modes is None:
        return [one.fault() for one in differ]
    found = {one.name: one.of_another_vector() for one in differ}
    if not all(fault.slug for fault in found.values()):
        # The mode in which most flags are wrong shows the fault; formats can differ in the others.
        wrong = (expected != actual).any(axis=0) & judged
        unit, own, index = max(ins.by_mode(operands), key=lambda mode: int(wrong[mode[2]].sum()))
        of_mode = {
            fault.flag: fault
            for fault in flag_faults(
                unit, own, flags[index], judged[index], None, None if d is None else d[index], budget
            )
        }
        found = {name: found[name] if found[name].slug else of_mode.get(name, found[name]) for name in found}
    return list(found.values())


def flag_names(ins: Instruction) -> set[str]:
    """The names of all hypotheses about the status flags of a unit, except faults of its datapath."""
    zeros = {
        name: np.zeros((SEARCH.ordered, *shape), ins.formats[name].dtype)
        for name, shape in ins.operand_shapes(False).items()
    }
    flags = _bits(np.zeros(SEARCH.ordered, np.uint8), len(ins.status))
    units = (_Flag(ins, zeros, flags, flags, flags[0], i, name) for i, name in enumerate(ins.status))
    return {way.slug for unit in units for way in unit._ways()}


def _bits(codes: Bits, count: int) -> Mask:
    return np.array([codes >> np.uint8(bit) & 1 for bit in range(count)]).astype(np.bool_)


@dataclass
class _Flag:
    """One flag of a unit."""

    ins: Instruction
    operands: Operands
    expected: Mask
    actual: Mask
    judged: Mask
    index: int
    name: str
    d: Bits | None = None
    budget: Budget = field(default_factory=lambda: Budget(_NEVER))
    out_of_time: bool = False

    @property
    def own(self) -> Mask:
        """The right value of the flag, (n,)."""
        return self.expected[self.index]

    def of_another_vector(self) -> FlagFault:
        """A complete explanation by an operand of the vector before or after, if there is one."""
        return self._named(tuple(one for one in self._counted(self._of_neighbours()) if not one.left))

    def as_of_d(self, hypothesis: Hypothesis, bits: Mask) -> FlagFault:
        """The flag as the unit of a hypothesis about its results raises it."""
        ends = [0, -1] if hypothesis.in_order else []
        bits[ends] = self.actual[self.index][ends]  # these have no neighbour, and do not count
        way = _Way(hypothesis.slug, hypothesis.text, lambda: bits)
        return replace(self._named((_Ranked(self._left(bits), way),)), with_d=(1, 1))

    def fault(self) -> FlagFault:
        """The best explanation."""
        wrong = self._left(self.own)
        search: Search[_Ranking] = Search(
            [
                Pass("conditions", self._conditions, "every single condition is counted"),
                Pass("signals", self._signals, "every changed signal of the data path is counted"),
                Pass("pairs", self._pairs, "no two conditions explain all of the flag"),
            ]
        )
        found = search.once((), lambda ranking: min([one.left for one in ranking], default=wrong), _NEVER)
        return self._named(found)

    def _conditions(self, ranking: _Ranking, _deadline: float) -> _Ranking:
        return (*ranking, *self._counted(self._ways()))

    def _signals(self, ranking: _Ranking, _deadline: float) -> _Ranking:
        return (*ranking, *self._counted(self._in_time(self._slow())))

    def _pairs(self, ranking: _Ranking, _deadline: float) -> _Ranking:
        """Too few wrong flags: two conditions hold by chance."""
        enough = self._left(self.own) >= SEARCH.ordered
        return (*ranking, *self._counted(self._in_time(self._by_two()) if enough else ()))

    def _in_time(self, ways: Iterable[_Way]) -> Iterator[_Way]:
        """The ways until the budget is over."""
        left = iter(ways)
        while not self.budget.over():
            if (way := next(left, None)) is None:
                return
            yield way
        self.out_of_time = True

    def _counted(self, ways: Iterable[_Way]) -> Iterator[_Ranked]:
        return (_Ranked(self._left(way.bits()), way) for way in ways)

    def _named(self, found: _Ranking) -> FlagFault:
        """The explanation that leaves fewest, the first of several, with its names."""
        wrong = self._left(self.own)
        fault = FlagFault(self.name, wrong, int(self.judged.sum()), out_of_time=self.out_of_time)
        best = min(found, key=lambda one: one.left, default=None)
        if best is None or best.left > SEARCH.accepted * wrong:
            return fault
        left = best.left
        ways = sorted((one.way for one in found if one.left == left), key=lambda way: -self._of_d(way)[0])
        way, others = ways[0], ways[1:]
        slugs, also = tuple(one.slug for one in others), others[0].text if others else ""
        return replace(
            fault,
            slug=way.slug,
            text=way.text,
            remaining=left,
            others=slugs,
            also=also,
            with_d=self._of_d(way),
        )

    def _of_d(self, way: _Way) -> tuple[int, int]:
        """How many wrong results a fault of the datapath explains, and how many there are; none if it breaks
        right ones."""
        if way.fault is None or self.d is None:
            return 0, 0
        expected = self.ins.dot(**self.operands)
        wrong, right = (
            np.flatnonzero((expected != self.d) == one)[: FLAGS.pairs // 2] for one in (True, False)
        )
        found = []
        for places in (wrong, right):
            some = picked(self.operands, places)
            found.append(run(self.ins, (way.fault,), some) == self.d[places])
        return (int(found[0].sum()) if found[1].all() else 0), len(wrong)

    def _by_two(self) -> Iterator[_Way]:
        """Two faults of one flag, if they explain all of it together: conditions that each adds or removes,
        and a flag of another vector that also has a fault."""
        stuck = {f"flag-{self.name}-{rule}" for rule in ("low", "high", "inverted", *_DELAYS)}
        ways = [(way, way.bits()) for way in self._ways() if way.slug not in stuck]
        delays = {way.slug.removeprefix(f"flag-{self.name}-"): way for way in self._stuck()}
        places = self._some(FLAGS.pairs)
        own, actual, few = self.own, self.actual[self.index][places], [bits[places] for _, bits in ways]
        for at, (one, bits) in enumerate(ways):
            for rule in _DELAYS if len(own) >= SEARCH.ordered else ():
                late = np.roll(bits, _DELAYS[rule])
                if (late[places] == actual).all() and not self._left(late):
                    yield _both(delays[rule], one, late)
            for other, (two, more) in enumerate(ways[:at]):
                if (np.where(own[places], few[at] & few[other], few[at] | few[other]) == actual).all():
                    bits_of_both = np.where(own, bits & more, bits | more)
                    if not self._left(bits_of_both):
                        yield _both(two, one, bits_of_both)

    def _left(self, bits: Mask) -> int:
        return int((bits != self.actual[self.index])[self.judged].sum())

    def _ways(self) -> Iterator[_Way]:
        yield from self._stuck()
        yield from self._with_others()
        yield from self._of_neighbours()
        if self.name == "underflow":
            yield from self._tininess()
        if self.name == "invalid":
            yield from self._invalid()
        yield from self._with_facts()

    def _way(self, rule: str, text: str, bits: Mask) -> _Way:
        return _Way(f"flag-{self.name}-{rule}", text, lambda: bits)

    def _stuck(self) -> Iterator[_Way]:
        own = self.own
        yield self._way("low", "it is never raised", np.zeros_like(own))
        yield self._way("high", "it is always raised", np.ones_like(own))
        yield self._way("inverted", "it is inverted", ~own)
        if len(own) >= SEARCH.ordered:
            yield self._way("late-by-one", "it is that of the vector before", np.roll(own, 1))
            yield self._way("early-by-one", "it is that of the vector after", np.roll(own, -1))

    def _of_neighbours(self) -> Iterator[_Way]:
        """The flag with an operand of the vector before or after; the first and the last vector lack a
        neighbour and do not count."""
        for wire in mode_skews(self.ins) if len(self.own) >= SEARCH.ordered else ():
            assert wire.operands is not None
            bits = _bits(self.ins.flags(**wire.operands(self.operands)), len(self.ins.status))[self.index]
            bits[[0, -1]] = self.actual[self.index][[0, -1]]
            yield self._way(f"with-{wire.slug}", f"it is made with {wire.text}", bits)

    def _with_others(self) -> Iterator[_Way]:
        for index, other in enumerate(self.ins.status):
            bits = self.expected[index]
            if index != self.index:
                yield self._way(f"is-{other}", f"it is {other}", bits)
                yield self._way(
                    f"not-with-{other}", f"it is not raised together with {other}", self.own & ~bits
                )
                yield self._way(
                    f"only-with-{other}", f"it is raised together with {other} only", self.own & bits
                )
                yield self._way(f"with-{other}", f"it is raised with {other}, too", self.own | bits)
        for index, other in enumerate(self.ins.status):
            if index != self.index and (self.actual[index] != self.expected[index]).any():
                text = f"it is raised together with the unit's own {other} only"
                yield self._way(f"only-with-own-{other}", text, self.own & self.actual[index])

    def _with_facts(self) -> Iterator[_Way]:
        """A condition that lacks a term, or has one too many: facts that the unit has about results and
        operands."""
        if 0 < self._left(self.own) < FLAGS.by_class:
            return
        for fact, (text, mask) in _facts(self.ins, self.operands).items():
            article = "an" if text[0] in "aeiou" else "a"
            yield self._way(f"with-{fact}", f"it is raised for every {text}, too", self.own | mask)
            yield self._way(f"not-with-{fact}", f"it is not raised for any {text}", self.own & ~mask)
            yield self._way(f"only-with-{fact}", f"it is raised for {article} {text} only", self.own & mask)

    def _tininess(self) -> Iterator[_Way]:
        texts = {
            "subnormal_result": "a result is tiny where it is subnormal once it is rounded",
            "unbounded": "a result is tiny where it would be with any exponent, once it is rounded",
            "before_rounding": "a result is tiny where it is before it is rounded",
        }
        for tiny in TINY.words:
            other = fields(when=lambda s: hasattr(s, "tiny"), tiny=tiny)(self.ins)
            if other is not None:
                bits = _bits(other.flags(**self.operands), len(self.ins.status))[self.index]
                yield self._way(f"tiny-{tiny.replace('_', '-')}", texts[tiny], bits)

    def _invalid(self) -> Iterator[_Way]:
        kinds = _Kinds(self.ins, self.operands)
        more = {
            "beside-nan": (
                "it is raised for opposite infinities with a NaN, too",
                kinds.opposites_beside_nan,
            ),
            "quiet-nan": ("it is raised for quiet NaNs, too", kinds.nan),
        }
        less = {
            "not-opposites": ("it is not raised for opposite infinities", kinds.opposites),
            "not-zero-times-infinity": (
                "it is not raised for infinity times zero",
                kinds.zero_times_infinity,
            ),
            "not-nan": ("it is not raised for signalling NaNs", kinds.nan),
            "not-beside-nan": (
                "it is not raised for infinity times zero with a NaN",
                kinds.zero_times_infinity & kinds.nan,
            ),
        }
        names = [name for name in "abc" if name not in self.ins.absent]
        for name in names:
            less[f"not-nan-{name}"] = f"it is not raised for a signalling NaN as {name}", kinds.alone(name)
            more[f"quiet-nan-{name}"] = f"it is raised for a quiet NaN as {name}, too", kinds.quiet[name]
        for rule, (text, mask) in more.items():
            yield self._way(rule, text, self.own | mask)
        for rule, (text, mask) in less.items():
            yield self._way(rule, text, self.own & ~mask)
        # Both at once: raised for quiet NaNs in place of signalling ones, for all operands and for each.
        for some, rule in ((names, ""), *(([name], f"-{name}") for name in names)):
            quiet = np.any([kinds.quiet[name] for name in some], axis=0)
            where = f" as {some[0]}" if rule else ""
            text = f"it is raised for quiet NaNs{where} instead of signalling ones"
            yield self._way(f"quiet-for-signalling{rule}", text, self.own & ~kinds.alone(*some) | quiet)

    def _slow(self) -> Iterator[_Way]:
        """The effect of a fault of the datapath on inexact results, tried on some first."""
        if self.name != "inexact" or not datapath.runs(self.ins):
            return
        left = [_HALF_UNSEEN, *(one for one in of_signals(self.ins) if not one.in_order)]
        for count, kept in FLAGS.signals:
            places = self._some(count)
            few = picked(self.operands, places)
            actual = self.actual[self.index][places]
            misses = [int((datapath.inexact(self.ins, (one,), few) != actual).sum()) for one in left]
            least = min([*misses, int((self.own[places] != actual).sum()) - 1])
            left = [one for one, missed in zip(left, misses, strict=True) if missed <= least + FLAGS.slack][
                :kept
            ]
        for one in left:
            bits = datapath.inexact(self.ins, (one,), self.operands)
            yield _Way(one.slug, one.text, lambda b=bits: b, one)  # type: ignore[misc]

    def _some(self, count: int) -> Bits:
        """Indices of dot products in which the flag differs, and of equally many others if there is room."""
        differ = (self.own != self.actual[self.index]) & self.judged
        wrong, right = np.flatnonzero(differ), np.flatnonzero(~differ & self.judged)
        return np.concatenate([wrong[: count // 2], right[:count]])


def _facts(ins: Instruction, operands: Operands) -> dict[str, tuple[str, Mask]]:
    """The facts that a unit has about each dot product apart from its flags, (n,), with words."""
    d = decoded(ins.formats["d"], ins.dot(**operands)[:, None])
    words = {"zero": d.kind == Kind.ZERO, "infinite": d.kind == Kind.INFINITY, "negative": d.sign}
    words |= {"subnormal": _subnormal(ins, "d", d)}
    found = {f"{word}-result": (f"{word} result", mask[:, 0]) for word, mask in words.items()}
    for name in (name for name in "abc" if name not in ins.absent):
        codes = operands[name].reshape(len(d.kind), -1)
        one = decoded(ins.formats[name], codes)
        masks = {"subnormal": _subnormal(ins, name, one), "zero": one.kind == Kind.ZERO}
        masks |= {"infinite": one.kind == Kind.INFINITY, "nan": one.kind == Kind.NAN}
        for word, mask in masks.items():
            said = f"{'NaN' if word == 'nan' else word} {name}"
            found[f"{word}-{name}"] = (said, mask.any(axis=1))
    return found


def _subnormal(ins: Instruction, name: str, numbers: Any) -> Mask:
    fmt = ins.formats[name]
    small = numbers.significand < (1 << fmt.fraction_bits)
    return (numbers.kind == Kind.FINITE) & small.astype(np.bool_)


class _Kinds:
    """The dot products with NaNs, infinities and zeros that matter for `invalid`."""

    def __init__(self, ins: Instruction, operands: Operands) -> None:
        zeros = {
            name: np.zeros((len(operands["a"]), *[ins.k] * (name != "c")), np.uint8) for name in ins.absent
        }
        codes = {**operands, **zeros}
        a, b = (decoded(ins.formats[name], codes[name]) for name in "ab")
        c = decoded(ins.formats["c"], codes["c"][:, None])
        infinite = (a.kind == Kind.INFINITY) | (b.kind == Kind.INFINITY)
        invalid = infinite & ((a.kind == Kind.ZERO) | (b.kind == Kind.ZERO))
        self.zero_times_infinity = invalid.any(axis=1)
        nans = {name: one.kind == Kind.NAN for name, one in zip("abc", (a, b, c), strict=True)}
        self.nan = np.hstack(list(nans.values())).any(axis=1)
        upper = {
            name: one.significand >> max(ins.formats[name].fraction_bits - 1, 0) & 1
            for name, one in zip("abc", (a, b, c), strict=True)
        }
        self.quiet = {name: (nans[name] & (upper[name] == 1)).any(axis=1) for name in "abc"}
        self.signalling = {name: (nans[name] & (upper[name] == 0)).any(axis=1) for name in "abc"}
        signs = np.hstack([a.sign ^ b.sign, c.sign])
        all_infinite = np.hstack([infinite, c.kind == Kind.INFINITY])
        both = (all_infinite & signs).any(axis=1) & (all_infinite & ~signs).any(axis=1)
        self.opposites, self.opposites_beside_nan = both & ~self.nan, both & self.nan

    def alone(self, *names: str) -> Bits:
        """Where these operands alone are a reason to raise it: a signalling NaN."""
        nothing = np.zeros_like(self.nan)
        named, others = (
            [self.signalling[one] for one in "abc" if (one in names) == own] for own in (True, False)
        )
        reason = np.any([nothing, *named], axis=0) & ~np.any([nothing, *others], axis=0)
        return np.asarray(reason & ~self.zero_times_infinity)
