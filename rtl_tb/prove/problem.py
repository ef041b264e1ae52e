"""What is to be proved of a unit: its result word is that of its specification, for all operands."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from golden.circuit.specification import Circuit, circuit_of
from golden.circuit.words import Word, Words, order
from golden.errors import SpecError, counted, nearest
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.proof.problem import VECTORS, Problem, allowed, columns, operands_of, without_shown
from rtl_tb.dut.description import Dut
from rtl_tb.prove.netlist import Transaction, Unreadable, transaction


def problem_of(dut: Dut) -> tuple[Problem, Transaction]:
    """Reads a unit and builds the circuit of its specification; also how the unit was read.

    Raises:
        Unreadable: the unit is none of which this can be said. CircuitError: its specification has no
            circuit. As `transaction`.
    """
    cases = () if dut.exclude is None else dut.exclude.cases
    if not all(case.free for case in cases):
        raise Unreadable(f"{dut.name}: exclude has an `answer`, which a proof does not cover")
    if any(case.modes or len(case.operands) > 1 for case in cases):
        raise Unreadable(
            f"{dut.name}: exclude has conditions that hold together, which a proof does not cover"
        )
    words = Words()
    inputs, circuit, spec, assumed = _specified(dut, words)
    pairs = _cut_points(dut, circuit)
    signals = [*dict.fromkeys(signal for _, signal in pairs)]
    read = transaction(dut, words, words.concat(*inputs.values()), signals=signals)
    hints: dict[Word, list[Word]] = {}
    for point, signal in pairs:
        for word in read.signals[signal]:
            hints.setdefault(word, []).append(circuit.points[point])
    unit = words.concat(*_answers(dut, words, read.result))
    made = _problem(dut, words, circuit.points, spec, unit, assumed)
    return replace(made, facts=circuit.facts, codes=circuit.codes, hints=hints), read


def changed_problem(
    dut: Dut, problem: Problem, instruction: Instruction
) -> tuple[Problem, dict[str, int]] | None:
    """A unit against another instruction for the same operands, without the vectors that show a difference,
    and one of these; None: no vector does, or most do.

    Raises:
        CircuitError: the instruction has no circuit.
    """
    _, circuit, spec, assumed = _specified(replace(dut, instruction=instruction), problem.words)
    vectors = allowed(problem.words, assumed, problem.vectors)
    return without_shown(
        replace(
            problem, points=circuit.points, facts=circuit.facts, codes=circuit.codes, spec=spec,
            assumed=assumed, vectors=vectors, hints={},
        )
    )  # fmt: skip


def results_of_models(dut: Dut, values: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The result word of a unit's instruction for a number of each operand, as each model computes it, with
    what the comparison holds for equal made the same."""
    unit, words = dut.instruction, Words()
    operands = operands_of(unit, {each.name: values.get(each.name, 0) for each in dut.layout.operand_fields})
    trace = unit.trace(**{name: codes[0] for name, codes in operands.items()})
    core = {name: int(codes[0]) for name, codes in unit.answers(operands).items()}
    for model, found in (("core", core), ("reference", {"d": trace.code, "flags": trace.flags or 0})):
        given = {
            field.name: words.constant(found[field.name], field.width) for field in dut.layout.result_fields
        }
        result = _specified_result(dut, words, given).constant
        assert result is not None, "it is made of constants"
        yield model, result


def problem_of_pair(dut: Dut, other: Dut) -> tuple[Problem, bool]:
    """Reads a unit and another one of the same description: the registers of the first are what the second is
    held against; and whether the netlists show that no result of either depends on another transaction.

    Raises:
        Unreadable: one of them is none of which this can be said, or their latencies differ. CircuitError:
            the specification has no circuit. As `transaction`.
    """
    words = Words()
    inputs, _, _, assumed = _specified(dut, words)
    operands = words.concat(*inputs.values())
    one, two = transaction(dut, words, operands), transaction(other, words, operands, "'")
    if (one.latency, one.waited) != (two.latency, two.waited):
        raise Unreadable(f"results after {one.latency} and after {counted(two.latency, 'cycle')}")
    spec, unit = (words.concat(*_answers(dut, words, each.result)) for each in (one, two))
    points = dict(one.registers)
    for op, name in (("mul", "product"), ("add", "sum")):
        some = [word for word in order([spec]) if word.op == op]
        points |= {f"{name}[{at}]": word for at, word in enumerate(some)}
    points = dict(sorted(points.items(), key=lambda item: item[1].number))
    return _problem(dut, words, points, spec, unit, assumed), one.steady and two.steady


def _specified(dut: Dut, words: Words) -> tuple[dict[str, Word], Circuit, Word, list[tuple[str, Word]]]:
    """The operands of a unit, the circuit of its specification and its result word, and what is assumed."""
    unit = dut.instruction
    if unit.state:
        raise Unreadable(f"{dut.name} keeps its accumulator; a proof is of one transaction after a reset")
    if dut.level != "dot":
        raise Unreadable(f"{dut.name} takes whole tiles (level: tile); a proof is of one dot product")
    cases = () if dut.exclude is None else dut.exclude.cases
    _check_formats(dut, [name for case in cases for name in case.operands])
    inputs = {field.name: words.variable(field.name, field.width) for field in dut.layout.operand_fields}
    circuit = circuit_of(unit, words, inputs)
    assumed = list(circuit.assumed)
    for name, classes in (item for case in cases for item in case.operands.items()):
        fmt = unit.formats["d"] if name == "d" else unit.code_format(name)
        whole = circuit.outputs["d"] if name == "d" else inputs[name]
        pieces = [words.extract(whole, low, fmt.bits) for low in range(0, whole.width, fmt.bits)]
        found = words.any_of(_is(words, fmt, piece, each) for piece in pieces for each in classes)
        assumed.append((f"no {' or '.join(map(str, classes))} {name}", words.invert(found)))
    return inputs, circuit, _specified_result(dut, words, circuit.outputs), assumed


def _check_formats(dut: Dut, excluded: Sequence[str]) -> None:
    """An operand of which classes are excluded has one format in all modes.

    Raises:
        Unreadable: it has not.
    """
    for name in excluded:
        units = dut.instruction.mode_units.values()
        formats = dict.fromkeys(one.code_format(name).name for one in units)
        if len(formats) > 1:
            raise Unreadable(
                f"{dut.name}: exclude names {name}, which is {' or '.join(formats)} as the mode says, "
                "which a proof does not cover"
            )


def _specified_result(dut: Dut, words: Words, outputs: Mapping[str, Word]) -> Word:
    """The result word of a specification, with what the comparison holds for equal made the same."""
    nan, names = dut.compare.nan != "exact", [field.name for field in dut.layout.result_fields]
    return words.concat(*(_compared(words, dut, name, outputs[name], nan) for name in names))


def _cut_points(dut: Dut, circuit: Circuit) -> list[tuple[str, str]]:
    """The registers of the specification and the signals that dut.yaml says to hold them; [*] is any index,
    the same on both sides."""
    found: list[tuple[str, str]] = []
    for register, signals in dut.cut_points.items():
        head, star, tail = register.partition("[*]")
        pattern = re.compile(re.escape(head) + (r"\[([\w.]+)\]" if star else "") + re.escape(tail))
        hits = [hit for hit in map(pattern.fullmatch, circuit.points) if hit is not None]
        if not hits:
            where, near = dut.where.get("cut_points", str(dut.file)), nearest(register, circuit.points)
            raise SpecError(f"{where}: cut_points: the specification has no register '{register}'{near}")
        for hit, signal in itertools.product(hits, signals):
            found.append((hit[0], signal.replace("[*]", f"[{hit[1]}]") if star else signal))
    return found


def _answers(dut: Dut, words: Words, result: Word) -> list[Word]:
    """The fields of a result word, with what the comparison holds for equal made the same."""
    found, at = [], result.width
    for field in dut.layout.result_fields:
        at -= field.width
        came = words.extract(result, at, field.width)
        found.append(_compared(words, dut, field.name, came, dut.compare.nan == "any"))
    return found


def _problem(
    dut: Dut,
    words: Words,
    points: Mapping[str, Word],
    spec: Word,
    unit: Word,
    assumed: Sequence[tuple[str, Word]],
) -> Problem:
    vectors = allowed(words, assumed, columns(dut.instruction, VECTORS))
    elements = {field.name: field.bits for field in dut.layout.operand_fields}
    return Problem(words, points, [], spec, unit, assumed, vectors, elements)


# Comparison -------------------------------------------------------------------------------------------------


def _compared(words: Words, dut: Dut, name: str, code: Word, nan: bool) -> Word:
    """A result with every NaN, or as dut.yaml says every zero, made the same one."""
    fmt = dut.instruction.formats["d"]
    if name != "d" or not fmt.is_float:
        return code
    if dut.compare.zero == "any":
        code = words.choose(_is(words, fmt, code, "zero"), words.constant(0, code.width), code)
    if nan:
        code = words.choose(_is(words, fmt, code, "nan"), words.constant(fmt.nan or 0, code.width), code)
    return code


def _is(words: Words, fmt: Format, code: Word, kind: str | int) -> Word:
    """Whether a code is of a class of rtl_tb/dut/exclude.py, or a certain code."""
    if isinstance(kind, int):
        return words.equal(code, words.constant(kind, code.width))
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
    return words.both(small, words.nonzero(fields)) if fmt.has_zero and fmt.subnormals else never
