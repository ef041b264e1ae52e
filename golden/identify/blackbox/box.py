"""The black box: every question and its answer, within a budget of queries and seconds.

The search sees nothing else of a unit: formats, K, and codes for codes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import MmagoldError, OperandError, one_line
from golden.identify.blackbox.questions import Coverage
from golden.identify.sample import picked
from golden.identify.search import Statistics
from golden.model.instruction import Instruction
from golden.model.trials import Trials
from golden.number.formats import to_float
from golden.program.program import Program
from golden.program.signature import Bits, Operands, Signature
from golden.stimuli.sequences import operands_for_results
from golden.unit import FunctionUnit, Unit, name_of, signature_of

Mask = npt.NDArray[np.bool_]


class BudgetEnded(Exception):
    """No queries or no time are left; the search ends with what it has."""


@dataclass
class Meter:
    """Counts the dot products of a unit, and measures its time: for a call, and `each` for one more dot
    product, from the smallest and the largest batch so far. The first call is left out, because it may load
    what later ones reuse."""

    queries: int = 0
    calls: int = 0
    least: tuple[int, float] = (0, 0.0)
    most: tuple[int, float] = (0, 0.0)

    def took(self, count: int, seconds: float) -> None:
        """Records that a batch was answered."""
        self.calls += 1
        if self.calls == 1:
            return
        if not self.least[0] or (count, seconds) < self.least:
            self.least = count, seconds
        if count >= self.most[0]:
            self.most = count, seconds

    @property
    def each(self) -> float:
        """Seconds for one dot product more in a batch."""
        more = self.most[0] - self.least[0]
        return max(self.most[1] - self.least[1], 0.0) / more if more else self.least[1]

    def of(self, count: int) -> float:
        """Seconds for a batch."""
        return self.least[1] + self.each * (count - self.least[0])


@dataclass
class Box:
    """A unit that can only be queried.

    Attributes:
        unit: whatever answers dot products, without modes.
        asks: the query budget in dot products.
        deadline: on time.monotonic; no query is sent after it.
        meter: counts all queries, also those through another view of the same unit. codes: the codes used.
        own: the signature of the unit. takes: the signature of a question, always with c.
    """

    unit: Unit
    asks: int
    deadline: float
    meter: Meter = field(default_factory=Meter)
    codes: Coverage | None = None
    own: Signature = field(init=False)
    takes: Signature = field(init=False)

    def __post_init__(self) -> None:
        self.own = signature_of(self.unit)
        self.takes = self.own.stateless

    def ask(self, operands: Operands) -> tuple[Operands, Bits]:
        """Sends questions (n, ...); returns them as they were sent, and the answers (n,).

        A unit that keeps its accumulator is given c before its products are added: by `load`, or without it
        by a dot product that makes c from zero as nearly as possible. The previous answer of the unit is then
        the c of the question. +0 is the result of `clear`, whatever the accumulator was.

        Raises:
            BudgetEnded, OperandError: as `answer`.
        """
        if not self.own.state:
            return operands, self.answer(operands)
        steps = self._steps(operands)
        count, each = len(operands["a"]), len(steps)
        flat = {
            name: np.stack([step[name] for step in steps], axis=1).reshape(count * each, *codes.shape[1:])
            for name, codes in steps[0].items()
        }
        answered = self.answer(flat).reshape(count, each)
        if each == 1:
            return operands, answered[:, 0]
        held = answered[:, -2]
        if not self.own.load:
            held = np.where(operands["c"] == 0, held.dtype.type(0), held)
        return operands | {"c": held.copy()}, answered[:, -1].copy()

    @property
    def each(self) -> int:
        """Dot products for one question."""
        if not self.own.state or (self.own.load and "load" not in self.own.alone):
            return 1
        return 2 if self.own.load or "clear" not in self.own.alone else 3

    def _steps(self, operands: Operands) -> list[Operands]:
        """The dot products that a unit with an accumulator gets for one question, in order, the question
        itself last."""
        count = len(operands["a"])
        no, yes = np.zeros(count, np.uint8), np.ones(count, np.uint8)
        if self.own.load:
            taken = operands | {"clear": no}
            return [taken | {"load": yes}, taken | {"load": no}][: self.each]
        rest = {name: codes for name, codes in operands.items() if name != "c"}
        made = operands_for_results(
            self.takes, operands, operands["c"], np.arange(count), np.random.default_rng(count)
        )
        zero = operands["c"] == 0
        if "clear" in self.own.alone:  # clear ignores the products: it comes before what makes c, or after
            return _cleared([(rest, ~zero), (made, zero), (rest, no)])
        for name, codes in rest.items():  # any nonzero accumulator will do: it is cleared next
            made[name][zero] = codes[zero]
        return _cleared([(made, yes), (rest, zero)])

    def answer(self, operands: Operands) -> Bits:
        """The codes of d (n,) for a batch of dot products (n, ...).

        Raises:
            BudgetEnded: the batch exceeds the budget, or the box would not answer it in the time left.
            OperandError: the box does not answer; the message gives its exception.
        """
        count = len(operands["a"])
        begun = time.monotonic()
        # A batch that would end after the deadline is not sent: its answers would come too late.
        if count > self.asks - self.queries or begun + self.meter.of(count) > self.deadline:
            raise BudgetEnded
        self.meter.queries += count
        try:
            given = np.asarray(self.unit.dot(**operands))
        except MmagoldError:
            raise
        except (Exception, SystemExit) as error:
            what = one_line(error)
            raise OperandError(
                f"{name_of(self.unit)} did not answer {count} dot products, it raised {what}"
            ) from error
        self.meter.took(count, time.monotonic() - begun)
        if self.codes is not None:
            self.codes.add(operands)
        fmt = self.takes.formats["d"]
        fmt.check(given, "d")
        return given.astype(fmt.dtype)

    @property
    def queries(self) -> int:
        """Dot products that were sent to it."""
        return self.meter.queries

    @property
    def tile(self) -> Callable[..., Bits] | None:
        """The function of matrices, D = A * B + C, of a unit that has rows and columns; None for others."""
        if self.own.m * self.own.n == 1 or self.own.state or self.own.modes is not None:
            return None
        return self.unit if isinstance(self.unit, Instruction) else getattr(self.unit, "tile", None)

    def can_answer(self) -> int:
        """Dot products that the budget allows and that the box answers in the time left."""
        left, each = self.asks - self.queries, self.meter.each
        return max(0, left if self.left > each * left else int(self.left / each))

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()


def _cleared(steps: list[tuple[Operands, Bits]]) -> list[Operands]:
    return [given | {"clear": np.asarray(clear, np.uint8)} for given, clear in steps]


class Bank:
    """Questions with their answers, by kind: the data that every candidate has to explain."""

    def __init__(self, takes: Signature) -> None:
        self.takes = takes
        self.operands: Operands = {
            name: np.zeros((0, *shape), takes.code_format(name).dtype)
            for name, shape in takes.operand_shapes(matrices=False).items()
        }
        self.answers: Bits = np.zeros(0, takes.formats["d"].dtype)
        self.kinds: list[str] = []
        self._kind = np.zeros(0, np.int64)
        self._trials: Trials | None = None
        self._of_kinds: dict[frozenset[str], Bank] = {}
        self._by_parts: list[Bank] = []
        self.spent: set[Hashable] = set()
        """Programs from which a fit to these questions found nothing better."""
        self.untried: dict[Hashable, Iterator[Any]] = {}
        """Changes of programs that the time left out in fits to these questions."""
        self.statistics: dict[str, Statistics] = {}
        """Calls, successes and times of the passes in fits to these questions or parts of them."""
        self.read_off: dict[type, object] = {}
        """Facts derived from these answers, by their type."""

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The kind of every question, an index into `kinds`."""
        return self._kind

    def values(self, name: str) -> npt.NDArray[np.float64]:
        """The numbers of an operand (n, ...), of "d" those of the answers (n,), as doubles."""
        codes = self.answers if name == "d" else self.operands[name]
        return np.asarray(to_float(self.takes.formats[name], codes), np.float64)

    def add(self, kind: str, operands: Operands, answers: Bits) -> None:
        """Adds questions (n, ...) and their answers (n,)."""
        self.add_each([kind] * len(answers), operands, answers)

    def add_each(self, kinds: Sequence[str], operands: Operands, answers: Bits) -> None:
        """The same with a kind for each question."""
        self.kinds += [kind for kind in dict.fromkeys(kinds) if kind not in self.kinds]
        self.operands = {name: np.concatenate([old, operands[name]]) for name, old in self.operands.items()}
        self.answers = np.concatenate([self.answers, answers])
        numbers = {kind: number for number, kind in enumerate(self.kinds)}
        self._kind = np.concatenate([self._kind, np.array([numbers[kind] for kind in kinds], np.int64)])
        self._trials = None
        self._of_kinds, self._by_parts, self.read_off, self.spent, self.untried = {}, [], {}, set(), {}

    def part(self, index: npt.NDArray[Any]) -> Bank:
        """The bank with these questions alone."""
        found = Bank(self.takes)
        found.operands = picked(self.operands, index)
        found.answers, found.kinds, found._kind = self.answers[index], self.kinds, self._kind[index]
        found.statistics = self.statistics
        return found

    def some_wrong(self, program: Program, each: int) -> Bank:
        """Questions that a program answers differently than the box did, up to `each` of each kind."""
        wrong = np.flatnonzero(self.wrong(program))
        kinds = self._kind[wrong]
        taken = [wrong[kinds == number][:each] for number in np.unique(kinds)]
        return self.part(np.concatenate(taken) if taken else wrong)

    def take(self, other: Bank) -> None:
        """Adds the questions of another bank."""
        self.add_each([other.kinds[number] for number in other.numbers], other.operands, other.answers)

    def of_kinds(self, kinds: frozenset[str]) -> Bank:
        """The questions of some kinds; the same bank until more are added."""
        found = self._of_kinds.get(kinds)
        if found is None:
            found = self._of_kinds[kinds] = self.part(np.flatnonzero(self.is_of(kinds)))
        return found

    def is_of(self, kinds: Set[str]) -> Mask:
        """Which questions are of some kinds, (n,)."""
        return np.isin(self._kind, [number for number, kind in enumerate(self.kinds) if kind in kinds])

    def wrong(self, program: Program) -> Mask:
        """Where a program with the box's formats answers differently than the box did, (n,)."""
        return np.asarray(self.answered(program) != self.answers)

    def explained(self, program: Program) -> bool:
        """Whether a program answers all questions as the box did. A small random part is tried first and
        stops most wrong programs early."""
        if not self._by_parts:
            mixed = np.random.default_rng(0).permutation(len(self))
            first = 256
            self._by_parts = [self.part(mixed[:first]), self.part(mixed[first:])]
        return not any(part.wrong(program).any() for part in self._by_parts)

    def answered(self, program: Program) -> Bits:
        """The answers of a program, (n,); the next call overwrites the array."""
        if self._trials is None:
            self._trials = Trials(self.takes, self.operands)
        return self._trials.answers(program)

    def counts(self, wrong: Mask) -> dict[str, tuple[int, int]]:
        """By kind: how many are wrong, and how many there are."""
        return {
            kind: (int(wrong[self._kind == number].sum()), int((self._kind == number).sum()))
            for number, kind in enumerate(self.kinds)
        }


def last_places(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The exponents of the lowest set bits of finite numbers; of zeros any."""
    significands, exponents = np.frexp(numbers)
    whole = (significands * 2.0**53).astype(np.int64)  # exact: a double has 53 bits
    return exponents - 54 + np.frexp((whole & -whole).astype(np.float64))[1]


def dense_view(unit: Unit) -> Unit:
    """The unit itself or, for a sparse one, the dense unit of K / 2 products that it is while the metadata
    select the first elements: the order of the sum and every other rule are the same."""
    takes = signature_of(unit)
    if takes.pattern is None:
        return unit
    rest = takes.at_rest("metadata")
    metadata = np.full(takes.operand_shapes(matrices=False)["metadata"], rest, np.uint8)
    columns = takes.pattern.columns(metadata)

    # b is spread over the columns that these metadata select; a block of scales holds fewer products.
    def answer(a: Bits, b: Bits, c: Bits, **scales: Bits) -> Bits:
        spread = np.zeros((*b.shape[:-1], takes.k), b.dtype)
        spread[..., columns] = b
        return unit.dot(
            a, spread, c, metadata=np.broadcast_to(metadata, (*a.shape[:-1], *metadata.shape)), **scales
        )

    block = takes.scale_block
    return FunctionUnit(
        answer,
        takes.own_formats,
        takes.stored_k,
        takes.name,
        scale_block=None if block is None else block * takes.stored_k // takes.k,
        unread=takes.unread,
    )


def mode_view(unit: Unit, code: int) -> FunctionUnit:
    """The unit in one mode."""
    takes = signature_of(unit)
    assert takes.modes is not None

    def answer(**operands: Bits) -> Bits:
        mode = np.full(len(operands["a"]), code, takes.code_format("mode").dtype)
        return unit.dot(**operands, mode=mode)

    return FunctionUnit.like(takes.of_mode(code), answer, f"{takes.name} ({takes.modes.texts()[code]})")


def selected(takes: Signature, operands: Operands) -> Operands:
    """The operands (n, ...) of the dense unit: of b only the elements that the metadata select."""
    if takes.pattern is None:
        return operands
    b = np.take_along_axis(operands["b"], takes.pattern.columns(operands["metadata"]), axis=-1)
    return {name: codes for name, codes in operands.items() if name != "metadata"} | {"b": b}


def with_accumulator(found: Instruction, takes: Signature) -> Instruction:
    """A unit found from single dot products, with the accumulator of the box."""
    return replace(found, state=takes.state, load=takes.load, alone=takes.alone)


def with_box_operands(found: Instruction, takes: Signature) -> Instruction:
    """A unit found through the dense view, with the operands that the box takes."""
    if takes.pattern is None:
        return with_accumulator(found, takes)
    return Instruction(
        found.name,
        takes.m,
        takes.n,
        takes.k,
        found.formats,
        pattern=takes.pattern,
        ordered_metadata=takes.ordered_metadata,
        scale_block=takes.scale_block,
        architecture=found.architecture,
        program=found.program,
        evidence=found.evidence,
        family=found.family,
        source=found.source,
    )
