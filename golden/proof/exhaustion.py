"""Few operand bits: both results computed for every value that the operands have.

    small = Exhaustion(problem)
    small.seconds()
    small.run(until)

Variables that are no operands (x, what nothing drives, what a register held, operands of other cycles) have
no value here: their bits are unknown, and so is each bit that may depend on them. A known bit is the same for
all of their values. So the claim is that of a proof by lemmas.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from golden.circuit.words import NATIVE, Values, Word, compute, order
from golden.proof.problem import Problem

MOST = 32
"""Operand bits at most: 2^32 results of a small unit take an hour."""
_BLOCK = 15
"""Operand bits that one block has all values of: its arrays lie in a processor's cache, and a multiply-add
of three 8-bit operands takes the least time (twice as long with 13)."""


@dataclass(frozen=True)
class Numbers:
    """Numbers of a word, broadcast: `unknown` has ones where bits are unknown, and `known` zeros there; None
    where all are known."""

    known: Values
    unknown: Values | None = None


@dataclass(frozen=True)
class Found:
    """What came of an exhaustion.

    Attributes:
        count: values of the operands for which all that is assumed holds.
        values: of the operands, for which the results differ whatever is unknown.
        left: why not all are decided; "" where they are.
    """

    count: int
    values: Mapping[str, int] | None = None
    left: str = ""


class Exhaustion:
    """All values of the operands of a problem, in blocks.

    Attributes:
        bits: of all operands.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.widths = {
            str(word.value): word.width
            for word in problem.words
            if word.op == "var" and word.value in problem.vectors
        }
        self.bits = sum(self.widths.values())
        one = problem.words.constant(1, 1)
        self._assumed = problem.words.all_of([one, *(bit for _, bit in problem.assumed)])

    @property
    def few(self) -> bool:
        """Whether they are few enough."""
        return self.bits <= MOST

    @cached_property
    def _order(self) -> list[Word]:
        return order([self.problem.unit, self.problem.spec, self._assumed])

    def seconds(self) -> float:
        """What all blocks take, as far as two of them show it."""
        blocks = max(1 << self.bits >> _BLOCK, 1)
        start = time.process_time()
        for block in range(min(blocks, 2)):
            self._compared(self._block(block))
        return (time.process_time() - start) / min(blocks, 2) * blocks

    def run(self, until: float) -> Found:
        """Compares the results for all values, until one differs or the time is over."""
        count = undecided = 0
        first: Mapping[str, int] | None = None
        for given in self.blocks():
            if time.monotonic() > until:
                return Found(count, left="the time ended before all operands were computed")
            allowed, wrong, unknown = self._compared(given)
            if wrong.any():
                return Found(count, _values(given, wrong))
            count += int(np.count_nonzero(allowed))
            undecided += int(np.count_nonzero(unknown))
            if first is None and unknown.any():
                first = _values(given, unknown)
        if first is not None:
            at = ", ".join(f"{name} = 0x{number:x}" for name, number in first.items())
            return Found(count, left=f"x or a register may show at {undecided:,} operands, as at {at}")
        return Found(count)

    def blocks(self) -> Iterator[dict[str, Values]]:
        """Numbers of each operand, each along an axis of its own: they are broadcast."""
        blocks = max(1 << self.bits >> _BLOCK, 1)
        # Odd, so that blocks come in a scattered order, each once: a difference is often found early.
        scatter = 0x9E3779B1
        for place in range(blocks):
            yield self._block(place * scatter % blocks)

    def columns(self, given: Mapping[str, Values]) -> dict[str, Values]:
        """The numbers of a block for which all that is assumed holds, side by side."""
        found = _may_hold(self._numbers(given, order([self._assumed]))[self._assumed])
        *whole, allowed = np.broadcast_arrays(*given.values(), found)
        return {name: each[allowed] for name, each in zip(given, whole, strict=False)}

    def _block(self, high: int) -> dict[str, Values]:
        """The block of which the operands' upper bits are `high`: an operand's place in the whole is that
        behind the ones before it, the first one lowest."""
        found: dict[str, Values] = {}
        low, inside = 0, min(self.bits, _BLOCK)
        for axis, (name, width) in enumerate(self.widths.items()):
            free = max(
                min(low + width, inside) - low, 0
            )  # of its bits those that the block has all values of
            numbers = np.arange(1 << free, dtype=np.uint64)
            above = (high << inside >> low & ((1 << width) - 1)) >> free << free
            shape = [1] * len(self.widths)
            shape[axis] = len(numbers)
            found[name] = (numbers | np.uint64(above)).reshape(shape)
            low += width
        return found

    def _compared(self, given: Mapping[str, Values]) -> tuple[Values, Values, Values]:
        """Where a block's operands are allowed, where the results differ, and where that is not known."""
        numbers = self._numbers(given, self._order)
        unit, spec = numbers[self.problem.unit], numbers[self.problem.spec]
        differ = unit.known ^ spec.known
        doubt = _either(unit.unknown, spec.unknown)
        if doubt is not None:
            differ = differ & ~doubt
        allowed = _may_hold(numbers[self._assumed])
        wrong = (differ != 0) & allowed
        unknown = np.zeros_like(wrong) if doubt is None else (doubt != 0) & allowed & ~wrong
        shape = np.broadcast_shapes(*(each.shape for each in given.values()))
        return np.broadcast_to(allowed, shape), np.broadcast_to(wrong, shape), np.broadcast_to(unknown, shape)

    def _numbers(self, given: Mapping[str, Values], words: Sequence[Word]) -> dict[Word, Numbers]:
        one = (1,) * len(self.widths)
        found: dict[Word, Numbers] = {}
        for word in words:
            ones = (1 << word.width) - 1
            kind: type = np.uint64 if word.width <= NATIVE else object
            if word.op == "const":
                found[word] = Numbers(np.full(one, word.value, kind))
            elif word.op == "var" and word.value in given:
                found[word] = Numbers(given[str(word.value)])
            elif word.op == "var":
                found[word] = Numbers(np.zeros(one, kind), np.full(one, ones, kind))
            else:
                found[word] = _computed(word, [found[arg] for arg in word.args])
        return found


def _values(given: Mapping[str, Values], where: Values) -> dict[str, int]:
    """The operands of the first place of a block."""
    at = int(np.argmax(where))
    return {name: int(np.broadcast_to(each, where.shape).flat[at]) for name, each in given.items()}


def _may_hold(assumed: Numbers) -> Values:
    """Where an assumption holds, or may hold by what is unknown: these operands are not left out."""
    return np.asarray(_either(assumed.known, assumed.unknown) != 0)


def _either(one: Values | None, other: Values | None) -> Values | None:
    return one if other is None else other if one is None else one | other


# Known and unknown bits -------------------------------------------------------------------------------------


def _computed(word: Word, given: Sequence[Numbers]) -> Numbers:
    """One operation on numbers of which some bits are unknown."""
    known = [each.known for each in given]
    if all(each.unknown is None for each in given):
        return Numbers(compute(word.op, word.width, known, word.args, word.value))
    if max(word.width, *(arg.width for arg in word.args)) >= NATIVE:  # none of it is known
        shape = np.broadcast_shapes(*(each.shape for each in known))
        kind: type = np.uint64 if word.width <= NATIVE else object
        return Numbers(np.zeros(shape, kind), np.full(shape, (1 << word.width) - 1, kind))
    nothing = np.uint64(0)
    unknown = [np.zeros_like(each.known) if each.unknown is None else each.unknown for each in given]
    ones = np.uint64((1 << word.width) - 1)
    match word.op:
        case "concat" | "extract" | "sext":
            return _known_constant(
                *(compute(word.op, word.width, x, word.args, word.value) for x in (known, unknown))
            )
        case "not":
            return _known_constant(~known[0] & ~unknown[0] & ones, unknown[0])
        case "and":
            zeros = [~x & ~u for x, u in zip(known, unknown, strict=True)]
            return _known_constant(known[0] & known[1], (unknown[0] | unknown[1]) & ~(zeros[0] | zeros[1]))
        case "or":
            return _known_constant(known[0] | known[1], (unknown[0] | unknown[1]) & ~(known[0] | known[1]))
        case "xor":
            doubt = unknown[0] | unknown[1]
            return _known_constant((known[0] ^ known[1]) & ~doubt, doubt)
        case "ite":
            # Of an unknown condition, the bits that both branches share are known.
            sure, take = unknown[0] == 0, known[0] != 0
            apart = unknown[1] | unknown[2] | (known[1] ^ known[2])
            doubt = np.where(sure, np.where(take, unknown[1], unknown[2]), apart)
            return _known_constant(
                np.where(sure, np.where(take, known[1], known[2]), known[1] & ~apart), doubt
            )
        case "eq":
            doubt = unknown[0] | unknown[1]
            apart = (known[0] ^ known[1]) & ~doubt != 0
            open_ = ~apart & (doubt != 0)
            return _known_constant((~apart & ~open_).astype(np.uint64), open_.astype(np.uint64))
        case "ult":
            below = (known[0] | unknown[0]) < known[1]  # the greatest of one, the least of the other
            above = known[0] >= (known[1] | unknown[1])
            return _known_constant(below.astype(np.uint64), (~below & ~above).astype(np.uint64))
        case "add" | "sub" | "neg" | "mul":
            # A bit of these depends on the bits that are not above it.
            doubt = unknown[0] if word.op == "neg" else unknown[0] | unknown[1]
            lowest = doubt & (~doubt + np.uint64(1))
            doubt = np.where(doubt != 0, ~(lowest - np.uint64(1)) & ones, nothing)
            return _known_constant(compute(word.op, word.width, known, word.args) & ~doubt, doubt)
        case "shl" | "lshr" | "ashr":
            moved, away = (
                compute(word.op, word.width, [x, known[1]], word.args) for x in (known[0], unknown[0])
            )
            sure = unknown[1] == 0
            return _known_constant(np.where(sure, moved, nothing), np.where(sure, away, ones))
    # Any other operation: nothing is known where a bit of an argument is not.
    doubt = np.where(np.any(np.broadcast_arrays(*(each != 0 for each in unknown)), axis=0), ones, nothing)
    return _known_constant(compute(word.op, word.width, known, word.args, word.value) & ~doubt, doubt)


def _known_constant(known: Values, unknown: Values) -> Numbers:
    """What is all known says so: it costs less from there on."""
    return Numbers(known, unknown if unknown.any() else None)
