"""What is to be proved of a unit: its result word is that of its specification, for all operands."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from golden.circuit.specification import circuit_of
from golden.circuit.words import Word, Words, evaluate, order
from golden.number.formats import Format
from golden.vectors.vectorset import default_set
from rtl_tb.dut.description import Dut
from rtl_tb.prove.netlist import Transaction, Unreadable, transaction
from rtl_tb.prove.solver import again

VECTORS = 600
"""Vectors of the first signatures: words that are the same in all of them are taken to be equal until a proof
or operands say otherwise."""
TRIGGER_BITS = 48
"""Operand bits of which a planted fault depends: no vector of a simulation finds one pattern of so many."""


@dataclass(frozen=True)
class Problem:
    """Two words of one table that are to be equal.

    Attributes:
        points, facts: of the specification, see golden/circuit/specification.py.
        spec, unit: the result words, with what the comparison of dut.yaml holds for equal made the same.
        assumed: bits that are taken to be 1, with their names.
        vectors: numbers of each operand by name.
        elements: bits of an element of each operand by name.
        transaction: how the unit was read.
    """

    words: Words
    points: Mapping[str, Word]
    facts: Sequence[tuple[str, Word]]
    spec: Word
    unit: Word
    assumed: Sequence[tuple[str, Word]]
    vectors: Mapping[str, Sequence[int]]
    elements: Mapping[str, int]
    transaction: Transaction


def problem_of(dut: Dut) -> Problem:
    """Reads a unit and builds the circuit of its specification.

    Raises:
        Unreadable: the unit is none of which this can be said. CircuitError: its specification has no
            circuit. As `transaction`.
    """
    unit = dut.instruction
    if unit.state:
        raise Unreadable(f"{dut.name} keeps its accumulator; a proof is of one transaction after a reset")
    if dut.level != "dot":
        raise Unreadable(f"{dut.name} takes whole tiles (level: tile); a proof is of one dot product")
    if dut.exclude is not None and dut.exclude.answer != "anything":
        raise Unreadable(f"{dut.name}: exclude has an answer other than anything, of which nothing is proved")
    words = Words()
    fields = dut.layout.operand_fields
    inputs = {field.name: words.variable(field.name, field.width) for field in fields}
    circuit = circuit_of(unit, words, inputs)
    read = transaction(dut, words, words.concat(*inputs.values()))
    assumed = list(circuit.assumed)
    if dut.exclude is not None:
        for name, classes in dut.exclude.classes.items():
            fmt = unit.formats["d"] if name == "d" else unit.code_format(name)
            whole = circuit.outputs["d"] if name == "d" else inputs[name]
            pieces = [words.extract(whole, low, fmt.bits) for low in range(0, whole.width, fmt.bits)]
            found = words.any_of(_is(words, fmt, piece, each) for piece in pieces for each in classes)
            assumed.append((f"no {' or '.join(classes)} {name}", words.invert(found)))
    results, at = [], read.result.width
    for field in dut.layout.result_fields:
        at -= field.width
        came, expected = words.extract(read.result, at, field.width), circuit.outputs[field.name]
        if field.name == "d":
            fmt = unit.formats["d"]
            came = _compared(words, fmt, came, dut.compare.nan == "any", dut.compare.zero == "any")
            expected = _compared(words, fmt, expected, dut.compare.nan != "exact", dut.compare.zero == "any")
        results.append((came, expected))
    columns = _columns(dut, VECTORS)
    kept = _allowed(words, [bit for _, bit in assumed], columns)
    return Problem(
        words,
        circuit.points,
        circuit.facts,
        words.concat(*(expected for _, expected in results)),
        words.concat(*(came for came, _ in results)),
        assumed,
        {name: [column[at] for at in kept] for name, column in columns.items()},
        {field.name: field.bits for field in fields},
        read,
    )


def _columns(dut: Dut, count: int) -> dict[str, list[int]]:
    """Operands of structured vectors, by name."""
    packed = dut.layout.pack_operands(default_set(dut.instruction, count, 1, dut.level).operands)
    whole = [int.from_bytes(row.tobytes(), "little") for row in packed]
    return {
        field.name: [word >> field.lsb & ((1 << field.width) - 1) for word in whole]
        for field in dut.layout.operand_fields
    }


def _allowed(words: Words, assumed: Sequence[Word], columns: Mapping[str, Sequence[int]]) -> list[int]:
    """The places of vectors for which all that is assumed holds."""
    count = len(next(iter(columns.values())))
    if not assumed:
        return [*range(count)]
    whole = words.all_of(assumed)
    return [int(at) for at in np.flatnonzero(evaluate([whole], columns)[whole])]


# Comparison -------------------------------------------------------------------------------------------------


def _compared(words: Words, fmt: Format, code: Word, nan: bool, zero: bool) -> Word:
    """A code with every NaN, or every zero, made the same one."""
    if fmt.is_float and zero:
        code = words.choose(_is(words, fmt, code, "zero"), words.constant(0, code.width), code)
    if fmt.is_float and nan:
        code = words.choose(_is(words, fmt, code, "nan"), words.constant(fmt.nan or 0, code.width), code)
    return code


def _is(words: Words, fmt: Format, code: Word, kind: str) -> Word:
    """Whether a code is of a class of rtl_tb/dut/exclude.py."""
    never = words.constant(0, 1)
    if not fmt.is_float:
        sign = words.bit(code, code.width - 1) if fmt.signed else never
        return sign if kind == "negative" else words.invert(words.nonzero(code))
    sign = words.bit(code, fmt.sign_shift) if fmt.signed else never
    fields = words.extract(code, fmt.ignored_low, fmt.exponent_bits + fmt.fraction_bits)
    infinity = words.constant(((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits, fields.width)
    nothing = words.invert(words.nonzero(fields))
    nan = {
        "ieee": words.less(infinity, fields),
        "all_ones_nan": words.equal(fields, words.constant(-1, fields.width)),
        "negative_zero_nan": words.both(nothing, sign),
    }.get(fmt.specials, never)
    match kind:
        case "nan":
            return nan
        case "negative":
            return sign
        case "infinity":
            return words.equal(fields, infinity) if fmt.specials == "ieee" else never
        case "zero":
            return words.both(nothing, words.invert(nan)) if fmt.has_zero else never
    small = words.less(fields, words.constant(1 << fmt.fraction_bits, fields.width))
    return words.both(small, words.nonzero(fields)) if fmt.has_zero else never


# Planted faults ---------------------------------------------------------------------------------------------


def planted(problem: Problem, seed: int) -> tuple[Problem, str] | None:
    """The problem of a unit with a fault, and what it is: one bit of a word is wrong for one pattern of
    TRIGGER_BITS operand bits, which no vector of the problem has, and for some operands with it the result is
    wrong. None: no such fault was found."""
    rng = random.Random(seed)
    words = problem.words
    variables = [word for word in order([problem.unit]) if word.op == "var" and word.value in problem.vectors]
    inner = [word for word in order([problem.unit]) if word.op not in ("var", "const") and word.width > 1]
    share = -(-TRIGGER_BITS // max(len(variables), 1))
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
