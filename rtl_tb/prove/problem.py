"""What is to be proved of a unit: its result word is that of its specification, for all operands."""

from __future__ import annotations

from golden.circuit.specification import circuit_of
from golden.circuit.words import Word, Words
from golden.number.formats import Format
from golden.proof.problem import VECTORS, Problem, allowed, columns
from rtl_tb.dut.description import Dut
from rtl_tb.prove.netlist import Transaction, Unreadable, transaction


def problem_of(dut: Dut) -> tuple[Problem, Transaction]:
    """Reads a unit and builds the circuit of its specification; also how the unit was read.

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
    problem = Problem(
        words,
        circuit.points,
        circuit.facts,
        words.concat(*(expected for _, expected in results)),
        words.concat(*(came for came, _ in results)),
        assumed,
        allowed(words, assumed, columns(unit, VECTORS)),
        {field.name: field.bits for field in fields},
    )
    return problem, read


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
