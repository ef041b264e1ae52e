"""The sweep: word by word, from the operands to the result, a unit becomes its specification.

Vectors give every word a signature. A word of the unit whose signature one of the specification has as well
(as it is, extended, biased by a constant, negated, complemented) is taken to be that word, once it is proved
to be: by structure, as a sum, as a maximum, or by the solver. From there on the specification's word stands
in its place, so that each proof is about one step and not about all before it. In the end the unit's result
is the specification's word, or one last question settles it, or the proof is open.

Operands on which two such words do differ are tried out: where they show at the result the unit is refuted;
where they do not they join the vectors.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from golden.circuit.words import Values, Word, evaluate, order
from golden.proof.answers import Answers
from golden.proof.cases import SHIFTS, by_cases
from golden.proof.lemmas import Certificate, OutOfTime
from golden.proof.problem import Problem
from golden.proof.prover import COMMON, DEEPER, FEW, NOTHING, POINTS, PRODUCTS, Prover, core
from golden.proof.ranges import Ranges, range_facts
from golden.proof.solver import HOLD, UNKNOWN, again

PROVED, REFUTED, OPEN = "PROVED", "REFUTED", "OPEN"
OnStage = Callable[[str], None]
Ways = tuple[tuple[str, float], ...]
_QUICK: Ways = ((COMMON, 2.0), (POINTS, 4.0), (DEEPER, 2.0), (PRODUCTS, 3.0), (FEW, 2.0))
_DEEP: Ways = ((COMMON, 4.0), (POINTS, 10.0), (DEEPER, 10.0), (PRODUCTS, 5.0), (NOTHING, 10.0))
"""What is free in a question, and its seconds: in a first pass, and in one that also asks what is costly."""
_PASSES: tuple[Ways, ...] = (_QUICK, _DEEP)
_LAST = ((COMMON, 20.0), (POINTS, 30.0), (PRODUCTS, 20.0), (NOTHING, 60.0))
_FACT = ((POINTS, 2.0), (DEEPER, 5.0), (PRODUCTS, 10.0), (NOTHING, 10.0))
_RANGE = ((POINTS, 1.0), (DEEPER, 1.0), (FEW, 1.0))
_SHIFTED = 8
"""Bits of the words that may be a register in another frame: of fewer bits many are alike by chance."""
_BIASED = range(6, 20)
"""Bits of the words that may be another one plus a constant: exponents."""


@dataclass(frozen=True)
class Candidate:
    """A word that another may be, made of a word of the specification."""

    word: Word
    base: Word


class Refuted(Exception):
    """Operands on which the results differ."""

    def __init__(self, operands: Mapping[str, int]) -> None:
        super().__init__()
        self.operands = operands


class Sweep:
    """A unit's result against that of the specification, in one table of words.

    Attributes:
        vectors: numbers of each variable by name: of the operands, and any number for x.
        open: of the unit's words that had a candidate and were not proved to be it, the candidates' names.
        matched: names of the points that some word of the unit was proved to be.
        codes: what one step hands to the next, and the result.
        steps, last: what a Certificate has.
        late: whether its time ended.

    Args:
        before: a sweep of another unit in the same table, of which every lemma holds here, too.
        answers: what is known of questions, see Prover.
        executor, jobs: processes that answer questions, see Prover.
    """

    def __init__(
        self,
        problem: Problem,
        until: float,
        on_stage: OnStage = lambda _text: None,
        before: Sweep | None = None,
        executor: Executor | None = None,
        jobs: int = 1,
        answers: Answers | None = None,
    ) -> None:
        self.problem, self.on_stage = problem, on_stage
        self.words, self.spec, self.unit = problem.words, problem.spec, problem.unit
        self.points = problem.points
        self.assumed = [bit for _, bit in problem.assumed]
        self.facts, self.ranges = problem.facts, [*range_facts(problem.words, problem.points)]
        self.prover = Prover(
            self.words, self.points, until, self.assumed, problem.codes, executor, jobs, answers or Answers()
        )
        if before is not None:
            self.prover = before.prover
            self.prover.until = until
        self.roots = [self.spec, self.unit, *self.points.values(), *self.assumed]
        self.own = order([self.spec, *self.points.values()])
        self.mine = frozenset(self.own)
        self.codes = problem.codes | {self.spec}
        self.factors = {core(arg) for word in self.own if word.op == "mul" for arg in word.args}
        self.widths = {str(word.value): word.width for word in order(self.roots) if word.op == "var"}
        self.rng = random.Random(1)
        self.vectors = self._completed(problem.vectors)
        self.names = {word: name for name, word in reversed([*self.points.items()])}
        self.values: dict[Word, Values] = {}
        self.open: dict[str, None] = {}
        self.matched: dict[str, None] = {}
        self.late = False
        self.unproved_facts: list[str] = []
        self.differences: list[tuple[Word, Word, dict[str, int], dict[str, int]]] = []
        self._suspects: set[str] = set()
        self.steps: dict[Word, int] = {}
        self.last: int | None = None
        self._settled: dict[Word, int] = dict(before._settled) if before else {}
        self._bases: dict[Word, Word] = dict(before._bases) if before else {}
        self._failed: set[tuple[Word, Word]] = set()

    def _completed(self, columns: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
        """Numbers of every variable; a variable without one gets random numbers."""
        count = len(next(iter(columns.values())))
        return {
            name: list(columns[name])
            if name in columns
            else [self.rng.getrandbits(width) for _ in range(count)]
            for name, width in self.widths.items()
        }

    @property
    def certificate(self) -> Certificate:
        """The proof, once there is one."""
        lemmas = tuple(self.prover.lemmas)
        return Certificate(
            self.words, self.unit, self.spec, tuple(self.assumed), lemmas, dict(self.steps), self.last
        )

    # The whole ----------------------------------------------------------------------------------------------

    def run(self) -> str:
        """PROVED or OPEN, with the lemmas in `prover`.

        Raises:
            Refuted: operands on which the results differ.
        """
        if self.unit is self.spec:  # by structure
            return PROVED
        self._learn(self.vectors)
        try:
            ranges = Ranges()
            for word in self.own:
                if word.op == "mul":
                    self.prover.bounded(word, ranges)
            for kind, facts in ((_RANGE, self.ranges), (_FACT, self.facts)):
                for name, bit in facts:
                    if not self.prover.fact(name, bit, kind):
                        self.unproved_facts.append(name)
            self.on_stage(f"{len(self.ranges) + len(self.facts) - len(self.unproved_facts)} facts proved")
            for ways in _PASSES:
                self.open.clear()
                result = self._pass(ways)
                if result is self.spec:
                    return PROVED
                self.last, answer = self.prover.decide(result, self.spec, _LAST if ways is _DEEP else _QUICK)
                if self.last is not None:
                    return PROVED
                if answer.result == HOLD:
                    self._tried(result, self.spec, answer.variables)
                self._falsify()
        except OutOfTime:
            self.late = True
            self.on_stage("out of time")
        return OPEN

    def _falsify(self) -> None:
        """Looks for operands that refute the unit: from the inner differences nearest to the operands and to
        the result, and with few elements of a and b that are not zero.

        Raises:
            Refuted: there are such operands.
        """
        self.on_stage("looking for operands that refute it")
        # Differences within, of the first and of the last, that are carried to the result by questions; each
        # has its seconds.
        completions = 3
        far = max(len(self.differences) - completions, completions)
        for each in (*self.differences[:completions], *self.differences[far:]):
            self._complete(*each)
        self.differences.clear()
        words = self.words
        factors = [name for name in ("a", "b") if name in self.widths]
        count = min((self.widths[name] // self.problem.elements[name] for name in factors), default=0)
        for kept in ({0}, {count - 1}, {0, count - 1}, {0, count // 2}) if count > 2 else ():
            zeros = []
            for name in factors:
                bits, whole = self.problem.elements[name], self._variable(name)
                live = sum(((1 << bits) - 1) << place * bits for place in kept)
                outside = words.both(whole, words.constant(~live, whole.width))
                zeros.append(words.invert(words.nonzero(outside)))
            self._refuted_where(zeros)

    def _suspected(self, name: str, one: Word, other: Word) -> bool:
        """Whether operands are found at which a register differs, with b or a as in one vector: products are
        sums then, of which a solver finds values where it finds none of products.

        Raises:
            Refuted: the results differ there, too.
        """
        # Registers that differ for values of the free words alone: this many, nearest the operands, are
        # asked about with one factor of each product known. A sum that is wrong at one of 2^64 values took
        # 3 s.
        suspects, suspect_seconds = 2, 10.0
        if name in self._suspects or len(self._suspects) >= suspects:
            return False
        self._suspects.add(name)
        points = [word for word in self.points.values() if word.width > 1]
        alive = np.sum([self.values[word] != 0 for word in points], axis=0)
        best = np.flatnonzero(alive == alive.max()).tolist()  # where the most registers hold something
        for factor in ("b", "a"):
            if factor not in self.widths:
                continue
            bits, width = self.problem.elements[factor], self.widths[factor]
            codes = [self.vectors[factor][at] for at in best]
            known = max(codes, key=lambda code: _distinct(code, bits, width))
            held = self.words.equal(self._variable(factor), self.words.constant(known, width))
            apart = self.words.invert(self.words.equal(one, other))
            question = [apart, held, *self.assumed]
            answer = self.prover.solver.ask(question, (), suspect_seconds, self.prover.until)
            if answer.result == HOLD and self._tried(one, other, answer.variables):
                return True
        return False

    def _refuted_where(self, conditions: Sequence[Word]) -> None:
        """Asks for operands on which the results differ, and some conditions hold.

        Raises:
            Refuted: there are some.
        """
        apart = self.words.invert(self.words.equal(self.unit, self.spec))
        question = [apart, *self.assumed, *conditions]
        # Seconds of the solver to carry one difference to the result.
        completion_seconds = 4.0
        answer = self.prover.solver.ask(question, (), completion_seconds, self.prover.until)
        if answer.result == HOLD:
            self._learn({name: [answer.variables.get(name, 0)] for name in self.widths})

    def _variable(self, name: str) -> Word:
        return self.words.variable(name, self.widths[name])

    def _pass(self, ways: Ways) -> Word:
        """The unit's result with all that was proved in it replaced."""
        made: dict[Word, Word] = {}
        self.steps.clear()
        total = order([self.unit])
        for at, word in enumerate(total):
            new = again(self.words, word, [made[arg] for arg in word.args])
            known = word.op in ("var", "const") or new in self.names or new.constant is not None
            if not known and (place := self._place(word, new, ways)) is not None:
                self.steps[word] = place
                new = self.prover.lemmas[place].right
            for name in (self.names.get(new), self.names.get(self._bases.get(new, new))):
                if name is not None and name not in self.matched:
                    self.matched[name] = None
                    self.on_stage(f"{name} is in the unit ({at + 1} of {len(total)} words)")
            made[word] = new
        return made[self.unit]

    def _place(self, word: Word, new: Word, ways: Ways) -> int | None:
        """The place of the lemma that `new` is a word of the specification; None: there is none.

        Invariant: `new` equals `word` for all operands, by the lemmas so far.
        """
        if new in self._settled:
            return self._settled[new]
        candidates = self._candidates(word, self.values[word])
        named = any(each.base in self.names for each in candidates)
        if any(each.word is new for each in candidates) or (new in self.mine and not named):
            return None  # by structure
        for each in candidates:
            if (place := self.prover.linear(new, each.word)) is not None:
                return self._settle(new, each, place)
        if word.op in ("concat", "extract", "not") and word is not self.unit:
            # Its pieces were looked at; but a piece of something wider may be a register, and products are
            # the same where their factors are.
            candidates = [
                one for one in candidates if one.base in self.names or core(one.base) in self.factors
            ]
        # Share of an equality's seconds for a word between the points: it may look like another by chance.
        between = 0.25
        # Seconds for all cases of one equality; the first one that has no answer ends them.
        case_seconds = 600.0
        # Seconds for all cases of one shifter.
        shift_seconds = 60.0
        for each in candidates[:2]:
            if (new, each.word) in self._failed:
                continue
            place = self.prover.maximum(new, each.word, each.base, 5.0) if each.base in self.names else None
            if place is not None:
                return self._settle(new, each, place)
            share = 1.0 if each.base in self.names else between
            place, answer = self.prover.decide(
                new, each.word, [(way, share * most) for way, most in ways], [each.base]
            )
            if answer.result == UNKNOWN:
                if each.base in self.codes or word in self.problem.hints:
                    place, answer = by_cases(self.prover, new, each.word, case_seconds)
                elif each.base in self.names and each.base.op in SHIFTS:  # by its own amount
                    place, answer = by_cases(self.prover, new, each.word, shift_seconds, DEEPER)
            if place is not None:
                return self._settle(new, each, place)
            if answer.result == HOLD:
                found = self._tried(new, each.word, answer.variables)
                if not found and (name := self.names.get(each.base)) is not None:
                    found = self._suspected(name, new, each.word)
                if found:
                    return self._place(word, new, ways)  # the signatures know it now
            if ways is _DEEP:
                self._failed.add((new, each.word))
            if (name := self.names.get(each.base)) is not None:
                self.open[name] = None
        return None

    def _settle(self, new: Word, candidate: Candidate, place: int) -> int:
        self._settled[new] = place
        self._bases[candidate.word] = candidate.base
        return place

    # Signatures ---------------------------------------------------------------------------------------------

    def _learn(self, vectors: Mapping[str, Sequence[int]]) -> None:
        """Adds vectors for which all holds that is assumed, unless one shows a difference at the result."""
        if self.assumed:
            whole = self.words.all_of(self.assumed)
            allowed = evaluate([whole], vectors)[whole]
            if not allowed.any():
                return
            kept = [at for at, one in enumerate(allowed) if one]
            vectors = {name: [column[at] for at in kept] for name, column in vectors.items()}
        found = evaluate(self.roots, vectors)
        wrong = found[self.spec] != found[self.unit]
        if wrong.any():
            at = int(np.argmax(wrong))
            raise Refuted({name: int(column[at]) for name, column in vectors.items()})
        if not self.values:
            self.values = found
        else:
            for name, column in vectors.items():
                self.vectors[name] += column
            self.values = {word: np.concatenate([self.values[word], found[word]]) for word in found}
        self._index()

    def _index(self) -> None:
        """The specification's words by signature, its points first."""
        self._plain: dict[Any, list[Word]] = {}
        self._signed: dict[Any, list[Word]] = {}
        self._apart: dict[Any, list[Word]] = {}
        self._shifted: dict[Any, Word] = {}
        for word in sorted(self.own, key=lambda each: (each not in self.names, each.number)):
            column = self.values[word]
            if word.op == "const" or (column == column[0]).all():
                continue
            self._plain.setdefault(_key(column), []).append(word)
            if word in self.names and word.width >= _SHIFTED:
                self._shifted.setdefault(_key(column >> _zeros(column)), word)
            if 1 < word.width <= 64:
                signed = _signed(column, word.width)
                self._signed.setdefault(signed.tobytes(), []).append(word)
                if word.width in _BIASED:
                    self._apart.setdefault((signed - signed[0]).tobytes(), []).append(word)

    def _candidates(self, word: Word, column: Values) -> list[Candidate]:
        """What a word of the unit may be, the likeliest first."""
        words, width = self.words, word.width
        if (column == column[0]).all():
            return [Candidate(words.constant(int(column[0]), width), word)] if width <= 2 else []
        found: list[Candidate] = []
        for base in self.problem.hints.get(word, ()):
            if (said := self._named_by_hand(base, column, width)) is not None:
                found.append(said)
        same = self._plain.get(_key(column), [])[:3]
        found += [Candidate(words.extend(each, width), each) for each in same]
        if 1 < width <= 64:
            signed = _signed(column, width)
            alike = self._signed.get(signed.tobytes(), [])[:2]
            found += [
                Candidate(words.extend_signed(each, width), each) for each in alike if each.width != width
            ]
            if not found and width in _BIASED:
                found += self._biased(column, signed, width)
            mask = np.uint64((1 << width) - 1)
            if not found:
                same = self._plain.get(((~column + np.uint64(1)) & mask).tobytes(), [])
                found += [Candidate(words.neg(each), each) for each in same[:1] if each.width == width]
        if not found and width <= 64:
            mask = np.uint64((1 << width) - 1)
            same = self._plain.get((~column & mask).tobytes(), [])
            found += [Candidate(words.invert(each), each) for each in same[:2] if each.width == width]
        if not found and width >= _SHIFTED:
            found += self._moved(column, width)
        first: dict[Word, Candidate] = {}
        for each in found:
            first.setdefault(each.word, each)  # the one that is made of a point
        return [*first.values()]

    def _moved(self, column: Values, width: int) -> list[Candidate]:
        """A register with zeros added below, or with its own removed: the same number in another frame."""
        place = _zeros(column)
        base = self._shifted.get(_key(column >> place))
        return [] if base is None else [self._framed(base, _zeros(self.values[base]), place, width)]

    def _framed(
        self, base: Word, low: int, place: int, width: int, signed: bool = False, negative: bool = False
    ) -> Candidate:
        """A register from bit `low` on, with `place` zeros below it, extended to a width."""
        words = self.words
        whole = words.extract(base, low)
        if place:
            whole = words.concat(whole, words.constant(0, place))
        whole = (words.extend_signed if signed else words.extend)(whole, width)
        return Candidate(words.neg(whole) if negative else whole, base)

    def _named_by_hand(self, base: Word, column: Values, width: int) -> Candidate | None:
        """What a word is of a register that dut.yaml says it to be: the register or its negative, cut or
        extended to the width, in its frame or one that is moved; None: nothing that the vectors bear out."""
        seen, ones = [int(one) for one in column], (1 << width) - 1
        plain = [int(one) for one in self.values[base]]
        with_sign = [one - (one >> (base.width - 1) << base.width) for one in plain]
        for signed, factor, place in itertools.product(
            (False, True), (1, -1), sorted(range(-base.width + 1, width), key=abs)
        ):
            low, up = max(-place, 0), max(place, 0)
            numbers = with_sign if signed else plain
            if all(one == factor * (of >> low << up) & ones for one, of in zip(seen, numbers, strict=True)):
                return self._framed(base, low, up, width, signed, factor < 0)
        return None

    def _biased(self, column: Values, signed: Any, width: int) -> list[Candidate]:
        """A word plus a constant, as exponents with another bias are: read with a sign, or without one."""
        for numbers in (signed, column.astype(np.int64)):
            for base in self._apart.get((numbers - numbers[0]).tobytes(), [])[:1]:
                apart = int(numbers[0]) - int(_signed(self.values[base][:1], base.width)[0])
                room = max(base.width, width) + 1
                words = self.words
                total = words.add(words.extend_signed(base, room), words.constant(apart, room))
                return [Candidate(words.extract(total, 0, width), base)]
        return []

    # Differences --------------------------------------------------------------------------------------------

    def _tried(self, one: Word, other: Word, model: Mapping[str, int]) -> bool:
        """Whether operands of a model make two words differ; then they are tried out at the result, and join
        the vectors.

        Raises:
            Refuted: the results differ, too.
        """
        operands = {name: model.get(name, 0) for name in self.widths}
        found = evaluate([one, other], {name: [number] for name, number in operands.items()})
        if found[one][0] == found[other][0]:
            return False  # it is the free words that differ, not what the circuit makes of operands
        kept = self._bits_of([one, other])
        copies: dict[str, list[int]] = {name: [] for name in self.widths}
        # Operands that are made of one difference within, with other bits where it has none.
        most_copies = 24
        for copy in range(most_copies):
            for name, width in self.widths.items():
                fill = 0
                if copy % 2:
                    fill = int(self.rng.choice(self.vectors[name]))
                elif copy:
                    fill = self.rng.getrandbits(width)
                keep = kept.get(name, 0)
                copies[name].append((operands[name] & keep) | (fill & ~keep & ((1 << width) - 1)))
        self.differences.append((one, other, operands, kept))
        self._learn(copies)
        return True

    def _bits_of(self, roots: Sequence[Word]) -> dict[str, int]:
        """The bits of each variable that words are made of."""
        found: dict[str, int] = {}
        for word in order(roots):
            for arg in word.args:
                if arg.op == "var":
                    low = word.value if word.op == "extract" and isinstance(word.value, int) else 0
                    width = word.width if word.op == "extract" else arg.width
                    found[str(arg.value)] = found.get(str(arg.value), 0) | ((1 << width) - 1) << low
        return found

    def _complete(self, one: Word, other: Word, operands: Mapping[str, int], kept: Mapping[str, int]) -> None:
        """Asks for operands that show a difference within at the result: first with all bits that it does not
        need as they are in the model, but for the last operand's, then with all of them free.

        Raises:
            Refuted: there are such operands.
        """
        words = self.words
        apart = words.invert(words.equal(one, other))
        rest = []
        for name in self.widths:
            outside = ((1 << self.widths[name]) - 1) & ~kept.get(name, 0)
            if name in ("a", "b") and outside:
                mask = words.constant(outside, self.widths[name])
                held = words.constant(operands[name] & outside, self.widths[name])
                rest.append(words.equal(words.both(self._variable(name), mask), held))
        for fixed in (rest, []) if rest else ([],):
            self._refuted_where([apart, *fixed])


def _key(column: Values) -> Any:
    """What two words of any widths have in common that hold the same numbers."""
    if column.dtype != object:
        return column.tobytes()
    if max(column) >> 64:
        return tuple(column)
    return column.astype(np.uint64).tobytes()


def _distinct(code: int, bits: int, width: int) -> int:
    """How many elements of an operand differ from each other."""
    return len({code >> low & ((1 << bits) - 1) for low in range(0, width, bits)})


def _zeros(column: Values) -> int:
    """Bits below which all numbers are 0."""
    whole = int(np.bitwise_or.reduce(column))
    return (whole & -whole).bit_length() - 1 if whole else 0


def _signed(column: Values, width: int) -> Any:
    away = np.int64(64 - width)
    return (column.astype(np.uint64).astype(np.int64) << away) >> away
