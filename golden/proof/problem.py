"""What is to be proved: two words of one table are equal, for all operands."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from golden.circuit.words import Values, Word, Words, evaluate, order
from golden.errors import OperandError
from golden.model.instruction import Instruction
from golden.program.signature import Operands
from golden.proof.solver import again
from golden.vectors.vectorset import default_set
from golden.vectors.word import WordLayout

VECTORS = 600
"""Vectors of the first signatures: words that are the same in all of them are taken to be equal until a proof
or operands show that they are not."""


@dataclass(frozen=True)
class Problem:
    """Two words of one table that are to be equal.

    Attributes:
        points, facts: of the specification, see golden/circuit/specification.py.
        spec, unit: the result words, with what the comparison holds for equal made the same.
        assumed: bits that are taken to be 1, with their names.
        vectors: numbers of each operand by name, for which all that is assumed holds.
        elements: bits of an element of each operand by name.
        codes: words of the specification that are codes, results of its steps.
        hints: points that words of the unit are said to be; a wrong one costs time, nothing else.
    """

    words: Words
    points: Mapping[str, Word]
    facts: Sequence[tuple[str, Word]]
    spec: Word
    unit: Word
    assumed: Sequence[tuple[str, Word]]
    vectors: Mapping[str, Sequence[int]]
    elements: Mapping[str, int]
    codes: frozenset[Word] = frozenset()
    hints: Mapping[Word, Sequence[Word]] = field(default_factory=dict)


def columns(unit: Instruction, count: int) -> dict[str, list[int]]:
    """Operands of structured vectors of dot products, by name: a number each, element 0 lowest."""
    layout = WordLayout.of(unit)
    packed = layout.pack_operands(default_set(unit, count, 1).operands)
    whole = [int.from_bytes(row.tobytes(), "little") for row in packed]
    return {
        field.name: [word >> field.lsb & ((1 << field.width) - 1) for word in whole]
        for field in layout.operand_fields
    }


def operands_of(unit: Instruction, values: Mapping[str, int]) -> Operands:
    """One dot product (1, ...) as the models take it, of a number for each operand."""
    layout = WordLayout.of(unit)
    word = sum(values[field.name] << field.lsb for field in layout.operand_fields)
    size = (layout.operand_width + 7) // 8
    return layout.unpack_operands(np.frombuffer(word.to_bytes(size, "little"), np.uint8)[None])


def batch_of(unit: Instruction, columns: Mapping[str, Values]) -> Operands:
    """Dot products (count, ...) as the models take them, of numbers (count,) of each operand. All operands
    together have 64 bits at most."""
    layout = WordLayout.of(unit)
    whole = np.zeros(len(next(iter(columns.values()))), np.dtype("<u8"))
    for one in layout.operand_fields:
        whole |= columns[one.name] << np.uint64(one.lsb)
    packed = whole.view(np.uint8).reshape(len(whole), 8)
    return layout.unpack_operands(np.ascontiguousarray(packed[:, : (layout.operand_width + 7) // 8]))


def result_of(word: Word, values: Mapping[str, int]) -> int:
    """The value of a word for a number of each variable; variables without a number are 0."""
    rest = {str(one.value): 0 for one in order([word]) if one.op == "var"}
    found = evaluate([word], {name: [number] for name, number in (rest | dict(values)).items()})
    return int(found[word][0])


def allowed(
    words: Words, assumed: Sequence[tuple[str, Word]], columns: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """The vectors for which all that is assumed holds."""
    kept = list(range(len(next(iter(columns.values())))))
    if assumed:
        whole = words.all_of(bit for _, bit in assumed)
        kept = np.flatnonzero(evaluate([whole], columns)[whole]).tolist()
        if not kept:
            said = "; ".join(name for name, _ in assumed)
            raise OperandError(
                f"no operands that were tried satisfy what is assumed: {said}; nothing is left to prove"
            )
    return {name: [column[at] for at in kept] for name, column in columns.items()}


def without_shown(problem: Problem) -> tuple[Problem, dict[str, int]] | None:
    """The problem without the vectors that show a difference of the results, and one such vector; None: no
    vector shows one, or all but a few do."""
    rest = {str(word.value) for word in order([problem.unit, problem.spec]) if word.op == "var"}
    count = len(next(iter(problem.vectors.values())))
    columns = {name: [0] * count for name in rest} | dict(problem.vectors)
    values = evaluate([problem.unit, problem.spec], columns)
    same = values[problem.unit] == values[problem.spec]
    kept = np.flatnonzero(same).tolist()
    # Vectors that a changed specification must not differ in: fewer make too many words look equal.
    least_vectors = 150
    if same.all() or len(kept) < least_vectors:
        return None
    at = int(np.argmin(same))
    shown = {name: int(column[at]) for name, column in problem.vectors.items()}
    vectors = {name: [column[at] for at in kept] for name, column in problem.vectors.items()}
    return replace(problem, vectors=vectors), shown


# Planted faults ---------------------------------------------------------------------------------------------


def planted(problem: Problem, seed: int) -> tuple[Problem, str] | None:
    """The problem of a unit with a fault, and what it is: one bit of a word is wrong for one pattern of
    TRIGGER_BITS operand bits, which no vector of the problem has, and for some operands with it the result is
    wrong. None: no such fault was found."""
    rng = random.Random(seed)
    words = problem.words
    variables = [word for word in order([problem.unit]) if word.op == "var" and word.value in problem.vectors]
    inner = [word for word in order([problem.unit]) if word.op not in ("var", "const") and word.width > 1]
    # Operand bits on which a planted fault depends: no simulation meets one pattern of this many bits.
    trigger_bits = 48
    share = -(-trigger_bits // max(len(variables), 1))
    for _ in range(100):
        at = rng.randrange(len(next(iter(problem.vectors.values()))))
        chosen = rng.choice(inner)
        place = rng.randrange(chosen.width)
        case = {name: [column[at]] for name, column in problem.vectors.items()}
        pieces = [(word, min(share, word.width)) for word in variables]
        trigger = words.all_of(
            words.equal(words.extract(word, 0, width), words.constant(case[str(word.value)][0], width))
            for word, width in pieces
        )
        made: dict[Word, Word] = {}
        for word in order([problem.unit]):
            made[word] = again(words, word, [made[arg] for arg in word.args])
            if word is chosen:
                wrong = words.differ(made[word], words.constant(1 << place, word.width))
                made[word] = words.choose(trigger, wrong, made[word])
        unit = made[problem.unit]
        rest = {name: [0] for name in _names([unit, problem.spec]) - set(case)}
        values = evaluate([unit, problem.spec], case | rest)
        if values[unit][0] == values[problem.spec][0]:
            continue  # it does not show
        lines = evaluate([trigger], problem.vectors)[trigger]
        kept = [at for at, hit in enumerate(lines) if not hit]
        vectors = {name: [column[at] for at in kept] for name, column in problem.vectors.items()}
        bits = sum(width for _, width in pieces)
        what = f"bit {place} of {chosen.op} of {chosen.width} bits turned at one of 2^{bits} patterns"
        return replace(problem, unit=unit, vectors=vectors), what
    return None


def _names(roots: Sequence[Word]) -> set[str]:
    return {str(word.value) for word in order(roots) if word.op == "var"}
