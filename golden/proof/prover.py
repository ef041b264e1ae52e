"""Statements about words, proved one after the other, each from those before it.

A statement goes to the solver in several forms, the cheapest first: words that both sides have in common
are free, then the named points of the specification, then products alone, then nothing. What holds for free
words holds for what the circuit computes there; facts that were proved before say what these can be.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from golden.circuit.words import CircuitError, Word, Words, order
from golden.proof.answers import Answers
from golden.proof.lemmas import LINEAR, PRODUCT, SOLVER, Lemma, OutOfTime, plain_factor, product_bound
from golden.proof.linear import Forms
from golden.proof.ranges import Ranges
from golden.proof.solver import (
    HOLD,
    NEVER,
    UNKNOWN,
    Answer,
    Question,
    Solver,
    again,
    ask_text,
    smtlib,
)

COMMON, POINTS, DEEPER, PRODUCTS, FEW, NOTHING = "common", "points", "deeper", "products", "few", "nothing"
"""What is free in a question. DEEPER: the points without the ones that are made of other points, which would
not follow these, or without the last one. FEW: nothing, where there are few products."""
CODES = "codes"
"""Products are free, and the codes that one step of the specification hands to the next."""
_LONG = frozenset({"mul", "shl", "lshr", "ashr"})


@dataclass(frozen=True)
class Fact:
    """A lemma that a bit is 1, at its place among all. `cut`: the words at which it stops where the points
    are free."""

    place: int
    bit: Word
    cut: frozenset[Word]


Query = tuple[Word, Word, frozenset[Word], Sequence[Fact], float, str]
"""What Prover.question takes."""


@dataclass
class Prover:
    """Proves statements and keeps them.

    Attributes:
        points: named words of the specification.
        assumed: bits that are taken to be 1 in every question.
        codes: words of the specification that are codes.
        answers: to earlier questions, of this prover or of another one.
        executor, jobs: processes that answer questions, and how many; None: this one does it alone.
        until: the time, as time.monotonic has it, at which it stops with OutOfTime.
    """

    words: Words
    points: Mapping[str, Word]
    until: float
    assumed: Sequence[Word] = ()
    codes: frozenset[Word] = frozenset()
    executor: Executor | None = None
    jobs: int = 1
    answers: Answers = field(default_factory=Answers)
    lemmas: list[Lemma] = field(default_factory=list)
    solver: Solver = field(default_factory=Solver)
    forms: Forms = field(default_factory=Forms)
    asked: int = 0

    def __post_init__(self) -> None:
        self._bounds: dict[Word, list[Fact]] = {}
        self._named = frozenset(word for word in self.points.values() if word.op not in ("const", "var"))
        self._facts: list[Fact] = []

    # Facts --------------------------------------------------------------------------------------------------

    def fact(self, name: str, bit: Word, ways: Iterable[tuple[str, float]]) -> bool:
        """Proves that a bit is always 1, and keeps that as a fact."""
        if bit.constant == 1 or any(bit is each.bit for each in self._facts):
            return True
        place, _ = self.decide(bit, self.words.constant(1, 1), ways, name=name)
        if place is not None:
            self._keep(place, bit)
        return place is not None

    def _keep(self, place: int, bit: Word) -> None:
        ends = [each for each in order([bit], self._named) if each in self._named or each.op == "var"]
        if all(each in self._named for each in ends):
            self._facts.append(Fact(place, bit, frozenset(ends)))

    def bounded(self, product: Word, ranges: Ranges) -> None:
        """Keeps what bounds of its factors say about a product, where these are points or made of some."""
        factors = [plain_factor(arg) for arg in product.args]
        ends = [each for each in order(factors, self._named) if each in self._named or each.op == "var"]
        found = [(each, ranges.of(each)) for each in factors]
        if any(each not in self._named for each in ends):
            return
        bounds = [self.words.constant(end, each.width) for each, one in found for end in (one.low, one.high)]
        try:
            bit = product_bound(self.words, product, *bounds)
        except CircuitError:  # of numbers with signs, or cut to fewer bits
            return
        place = self._add(Lemma(bit, self.words.constant(1, 1), PRODUCT, (product, *bounds)))
        self._facts.append(Fact(place, bit, frozenset(ends)))

    # Equality -----------------------------------------------------------------------------------------------

    def linear(self, left: Word, right: Word) -> int | None:
        """The place of the lemma that two words are the same sum; None: they are not."""
        if left.width != right.width or left.width == 1 or self.forms.of(left) != self.forms.of(right):
            return None
        free = dict.fromkeys([*self.forms.leaves(left), *self.forms.leaves(right)])
        return self._add(Lemma(left, right, LINEAR, tuple(free)))

    def decide(
        self,
        left: Word,
        right: Word,
        ways: Iterable[tuple[str, float]],
        bound: Collection[Word] = (),
        name: str = "",
    ) -> tuple[int | None, Answer]:
        """The place of the lemma that two words are equal, or None and the last answer.

        Args:
            ways: what is free, and the seconds for it, one after the other.
            bound: points that are not freed.
        """
        answer = Answer(UNKNOWN)
        last: tuple[frozenset[Word] | None, float] = (None, 0.0)
        # How much longer the solver works on a question without these operations, and the seconds up to
        # which: of adders and choices alone a solver does find the answer, of 166 bits in 9 s.
        patience, most_patience = 4.0, 16.0
        for way, seconds in ways:
            free = self.freed(way, left, right, bound)
            if free is None:
                continue
            if way == POINTS and not _is_long(left, right, free):
                seconds = max(seconds, min(patience * seconds, most_patience))
            if free == last[0] and seconds <= last[1]:
                continue
            last = (free, seconds)
            facts = self.facts_of(way, free)
            place, answer = self.question(left, right, free, facts, seconds, name)
            if place is not None:
                return place, answer
        return None, answer

    def facts_of(self, way: str, free: frozenset[Word]) -> list[Fact]:
        """What was proved before of what is free in a question."""
        if way in (COMMON, POINTS, DEEPER):
            return [each for each in self._facts if each.cut <= free]
        if way != CODES:
            return []
        products = sorted((word for word in free if word.op == "mul"), key=lambda word: word.number)
        return [fact for word in products for fact in self._product_facts(word)]

    def _product_facts(self, product: Word) -> list[Fact]:
        """Facts on what a product can be, where its factors have their highest bit, are not zero, or are."""
        if product not in self._bounds:
            x, y = (plain_factor(arg) for arg in product.args)
            ranges = [
                [(1, most), (most // 2 + 1, most), (0, 0), (0, most)]
                for most in ((1 << one.width) - 1 for one in (x, y))
            ]
            found = []
            for one, other in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 3), (3, 2), (3, 3)):
                bounds = [self.words.constant(end, x.width) for end in ranges[0][one]]
                bounds += [self.words.constant(end, y.width) for end in ranges[1][other]]
                try:
                    bit = product_bound(self.words, product, *bounds)
                except CircuitError:  # of numbers with signs, or cut to fewer bits
                    break
                place = self._add(Lemma(bit, self.words.constant(1, 1), PRODUCT, (product, *bounds)))
                found.append(Fact(place, bit, frozenset((product,))))
            self._bounds[product] = found
        return self._bounds[product]

    def freed(self, way: str, left: Word, right: Word, bound: Collection[Word]) -> frozenset[Word] | None:
        """The words that are free; None: none are, so that there is nothing to ask."""
        if way == NOTHING:
            return frozenset()
        if way == FEW:
            few = 2  # multiplications with which the solver still answers when no word is free
            return frozenset() if sum(each.op == "mul" for each in order([left, right])) <= few else None
        if way == CODES:  # a code that one side alone is made of is no cut: the other one computes it
            mine, theirs = ({*order([side])} - {left, right} for side in (left, right))
            stop = {each for each in mine | theirs if each.op == "mul"} | (self.codes & mine & theirs)
            return frozenset(each for each in order([left, right], stop) if each in stop)
        if way == COMMON:
            ones = set(order([left]))
            stop = {each for each in order([right]) if each in ones and each.op != "const"}
        elif way in (POINTS, DEEPER):
            # A point of one side alone is no cut: the other side is not made of it, unless it is a constant.
            sides = [set(order([side])) for side in (left, right) if side.constant is None]
            stop = set(self._named.intersection(*sides)) - {*bound, left, right}
            if way == DEEPER:
                ends = [each for each in order([left, right], stop) if each in stop]
                stop = stop.difference(_derived(ends) or ends[-1:])
        else:
            stop = {each for each in order([left, right]) if each.op == "mul"} - {left, right}
        free = frozenset(each for each in order([left, right], stop) if each in stop)
        return free if free or way in (DEEPER, PRODUCTS) else None

    def question(
        self, left: Word, right: Word, free: frozenset[Word], facts: Sequence[Fact], seconds: float, name: str
    ) -> tuple[int | None, Answer]:
        """The place of the lemma that two words are equal whatever the free words are, as far as facts hold;
        or None, and the answer."""
        start = time.monotonic()
        if start > self.until:
            raise OutOfTime
        conditions = self._conditions(left, right, facts)
        # A question of the same structure has the same answer: NEVER, values, or none in the same seconds.
        question = Question(conditions, free)
        text = question.text
        known = self.answers.seconds(text)
        if known < math.inf:
            if (numbers := self.answers.holds(text)) is not None:
                return None, Answer(HOLD, question.variables(numbers))
            answer = Answer(UNKNOWN)
            if known < seconds:
                self.asked += 1
                answer = self.solver.ask(conditions, free, seconds, self.until)
            if answer.result == UNKNOWN and time.monotonic() < self.until:
                self.answers.keep(text, seconds)
            elif answer.result == HOLD:
                self.answers.keep_values(text, question.numbers(answer.variables))
            if answer.result != NEVER:
                return None, answer
            self.answers.keep(text, math.inf)
        places = tuple(each.place for each in facts)
        spent = time.monotonic() - start
        return self._add(Lemma(left, right, SOLVER, tuple(free), places, spent, name)), Answer(NEVER)

    def _conditions(self, left: Word, right: Word, facts: Sequence[Fact]) -> list[Word]:
        apart = self.words.invert(self.words.equal(left, right))
        return [apart, *(each.bit for each in facts), *self.assumed]

    def ahead(self, questions: Sequence[Query]) -> None:
        """Asks several questions at a time, where there are processes: `question` knows the answers then."""
        if self.executor is None or len(questions) < 2:
            return
        texts = {smtlib(self._conditions(each[0], each[1], each[3]), each[2]): each[4] for each in questions}
        new = {
            text: seconds
            for text, seconds in texts.items()
            if self.answers.seconds(text) < seconds and self.answers.holds(text) is None
        }
        self.asked += len(new)
        answers = self.executor.map(ask_text, new.keys(), new.values()) if new else []
        for (text, seconds), answer in zip(new.items(), answers, strict=True):
            if answer != HOLD:  # this process asks again, for the operands
                self.answers.keep(text, math.inf if answer == NEVER else seconds)

    def _add(self, lemma: Lemma) -> int:
        self.lemmas.append(lemma)
        return len(self.lemmas) - 1

    # Maximum ------------------------------------------------------------------------------------------------

    def maximum(self, left: Word, right: Word, point: Word, seconds: float) -> int | None:
        """The place of the lemma that two words are the same maximum, chain or tree; None: not proved.

        Both are one of their leaves and none of these is above the other side: so neither side is above the
        other.

        Args:
            point: the maximum of the specification of which `right` is made.
        """
        mine, theirs = _leaves(self.words, left), _leaves(self.words, point)
        if mine is None or theirs is None or min(len(mine.leaves), len(theirs.leaves)) < 3:
            return None
        try:
            return self._maximum(left, right, point, mine, theirs, seconds)
        except _NotShown:
            return None

    def _maximum(
        self, left: Word, right: Word, point: Word, mine: Maximum, theirs: Maximum, seconds: float
    ) -> int | None:
        words = self.words

        def shown(bit: Word, free: Collection[Word], given: Sequence[Fact | None] = ()) -> Fact | None:
            """The fact that a bit is 1; None where that is plain."""
            if bit.constant == 1:
                return None
            known = [each for each in given if each is not None]
            place, _ = self.question(bit, words.constant(1, 1), frozenset(free), known, seconds, "")
            if place is None:
                raise _NotShown
            return Fact(place, bit, frozenset())

        def at_most(leaf: Leaf, whole: Word, signed: bool) -> Word:
            above = (words.less_signed if signed else words.less)(whole, leaf.word)
            return words.invert(above if leaf.guard is None else words.both(leaf.guard, above))

        def one_of(whole: Word, pair: Sequence[Leaf]) -> Word:
            same = [(words.equal(whole, leaf.word), leaf.guard) for leaf in pair]
            return words.any_of(bit if guard is None else words.both(bit, guard) for bit, guard in same)

        # 1. Each choice is one of its two and not below either, which are anything: so no leaf is above its
        #    own side, by way of the choices between.
        chosen: dict[Word, Fact | None] = {}
        tops: list[Fact | None] = []
        for whole, side in ((left, mine), (point, theirs)):
            steps: list[Fact | None] = []
            free: set[Word] = set()
            for made, pair in side.choices:
                below = {each for leaf in pair for each in leaf.words}
                steps += [shown(at_most(leaf, made, side.signed), below) for leaf in pair]
                chosen[made] = shown(one_of(made, pair), below)
                free |= below | {made}
            tops += [shown(at_most(leaf, whole, side.signed), free, steps) for leaf in side.leaves]
        # 2. No leaf of one side is above the other side, whatever the points are for which the facts hold.
        #    Both are compared as the unit compares; what `right` makes of the point, it makes of its leaves.
        last: list[Fact | None] = []
        own = {leaf.word for leaf in mine.leaves}
        bound = {each for made, pair in theirs.choices for each in (made, *(leaf.word for leaf in pair))}
        stop = self._named.difference(bound - own) | {left, point}
        for whole, side, turned in ((right, mine, False), (left, theirs, True)):
            under: dict[Leaf, Fact | None] = {}

            def compared(leaf: Leaf, whole: Word = whole, turned: bool = turned) -> Word:
                word = again_over(words, right, point, leaf.word) if turned else leaf.word
                return at_most(Leaf(word, leaf.guard), whole, mine.signed)

            for leaf in side.leaves:
                bit = compared(leaf)
                bits = [bit, *(top.bit for top in tops if top is not None)]
                cut = [each for each in order(bits, stop) if each in stop]
                known = [each for each in self._facts if each.cut <= {*cut}]
                under[leaf] = shown(bit, cut, [*tops, *known])
            # 3. Then neither is a choice of two that are not, up to the whole side.
            for made, pair in sorted(side.choices, key=lambda each: each[0].number):
                free = {left, point, made, *(each for leaf in pair for each in leaf.words)}
                given = [chosen[made], *(under[leaf] for leaf in pair)]
                under[Leaf(made)] = shown(compared(Leaf(made)), free, given)
            last.append(under[Leaf(left if side is mine else point)])
        # 4. Neither side is above the other.
        known = [each for each in last if each is not None]
        return self.question(left, right, frozenset((left, point)), known, seconds, "maximum")[0]


def _is_long(left: Word, right: Word, free: frozenset[Word]) -> bool:
    """Whether a question has operations that are long for a solver."""
    return any(each.op in _LONG and each not in free for each in order([left, right], free))


def _derived(free: Sequence[Word]) -> list[Word]:
    """The words that are made only of others of these words."""
    found: list[Word] = []
    for word in sorted(free, key=lambda each: each.number, reverse=True):
        rest = {each for each in free if each is not word and each not in found}
        if all(each.op != "var" or each in rest for each in order(word.args, rest)):
            found.append(word)
    return found


class _NotShown(Exception):
    """A step of a maximum that the solver does not show."""


@dataclass(frozen=True)
class Leaf:
    """A word of a maximum, which counts where `guard` is 1; None: always."""

    word: Word
    guard: Word | None = None

    @property
    def words(self) -> set[Word]:
        """It and its guard, as far as they are no constants."""
        return {each for each in (self.word, self.guard) if each is not None and each.op != "const"}


@dataclass(frozen=True)
class Maximum:
    """A chain or tree of choices of the larger of two, and what it is the maximum of."""

    signed: bool
    leaves: list[Leaf]
    choices: list[tuple[Word, tuple[Leaf, Leaf]]]
    """Every word that is the larger of two, and these."""


def _leaves(words: Words, word: Word) -> Maximum | None:
    """What a word is the maximum of; None: it is none."""
    found: dict[Leaf, None] = {}
    choices: list[tuple[Word, tuple[Leaf, Leaf]]] = []
    signed: set[bool] = set()
    open_ = [word]
    while open_:
        one = open_.pop()
        if (parts := _larger(words, one)) is not None and len(signed | {parts[0]}) == 1:
            signed.add(parts[0])
            choices.append((one, (parts[1], Leaf(parts[2]))))
            open_.append(parts[2])
            if parts[1].guard is None:
                open_.append(parts[1].word)
            else:
                found[parts[1]] = None
        else:
            found[Leaf(one)] = None
    return Maximum(signed.pop(), [*found], choices) if signed else None


def _larger(words: Words, word: Word) -> tuple[bool, Leaf, Word] | None:
    """The two of which a word is the larger one, the first perhaps only where a guard is 1; and whether they
    are compared with their signs."""
    if word.op != "ite":
        return None
    condition, then, other = word.args
    if then.op == "ite" and (parts := _larger(words, then)) is not None and parts[1].guard is None:
        # guard ? larger(leaf, other) : other
        for leaf, rest in ((parts[1].word, parts[2]), (parts[2], parts[1].word)):
            if rest is other:
                return parts[0], Leaf(leaf, condition), other
    bits = [condition]
    while any(each.op == "and" for each in bits):
        bits = [arg for each in bits for arg in (each.args if each.op == "and" else (each,))]
    for bit in bits:
        if bit.op in ("slt", "ult") and [core(arg) for arg in bit.args] == [core(other), core(then)]:
            guards = [each for each in bits if each is not bit]
            return bit.op == "slt", Leaf(then, words.all_of(guards) if guards else None), other
    return None


def core(word: Word) -> Word:
    """A word without what extends it."""
    if word.op == "sext":
        return core(word.args[0])
    if word.op == "concat" and word.args[0].constant == 0:
        return core(word.args[1])
    return word


def again_over(words: Words, word: Word, old: Word, new: Word) -> Word:
    """A word in which another stands in the place of one that it is made of."""
    made = {old: new}
    for each in order([word], [old]):
        if each not in made:
            made[each] = again(words, each, [made[arg] for arg in each.args])
    return made[word]
