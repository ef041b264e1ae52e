"""A program as a circuit: from the operands at a unit's ports to d and the status flags.

    found = circuit_of(golden.instruction("hopper", "HMMA.16816.F32"), Words())
    evaluate(found.outputs.values(), {"a": [...], "b": [...], "c": [...]})

Every step means what golden/model/reference.py says; widths come from golden/program/bounds.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from golden.circuit import addition, alignment
from golden.circuit.numbers import Builder, Number, refuse
from golden.circuit.rounding import Rule, to_code
from golden.circuit.words import Word, Words, order
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.bounds import Registers, follow, operands_of, walk
from golden.program.program import NO_SEED, Operation
from golden.program.signature import Signature
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Part,
    Replace,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    factor_of,
    format_of,
)

HELD = "held"
"""The input of a unit that keeps its accumulator: what it holds before the dot product. d is what it holds
after it."""


@dataclass(frozen=True)
class Circuit:
    """A program as words of one table.

    Attributes:
        words: the table.
        inputs: the operands as the unit's ports have them, packed, element 0 lowest; `held`, see HELD.
        outputs: d and, where the unit has them, flags.
        points: named words in between, in topological order; in chains with the prefix `opN.`, with modes
            also `modeN.`.
        facts: conditions of one bit that hold for all operands, to be proved before they are used.
        assumed: conditions of one bit on the operands, without which nothing is said: codes of metadata and
            modes that the unit does not take.
        places: the operation and the step, by number, that a point belongs to.
        codes: words that are codes, results of a step; see Builder.
    """

    words: Words
    inputs: dict[str, Word]
    outputs: dict[str, Word]
    points: dict[str, Word]
    facts: list[tuple[str, Word]]
    assumed: list[tuple[str, Word]] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    codes: frozenset[Word] = frozenset()


def circuit_of(instruction: Instruction, words: Words, inputs: Mapping[str, Word] | None = None) -> Circuit:
    """The circuit of one dot product.

    Args:
        words: the table that it is built in.
        inputs: words for operands, by name; the others are variables of the operand's name.

    Raises:
        CircuitError: what the unit does has no circuit; names the step and the key.
    """
    ports = input_widths(instruction)
    given = {name: (inputs or {}).get(name) or words.variable(name, width) for name, width in ports.items()}
    operands, assumed = dict(given), []
    if instruction.state:
        operands = _with_accumulator(instruction, words, operands)
    one = instruction.stateless
    if one.modes is None:
        made = _of_program(one, words, operands, "")
        assumed += made.assumed
        outputs, codes = made.outputs, made.codes
        points, places, facts = made.points, made.places, made.facts
    else:
        outputs, points, places, facts, codes = _of_modes(one, words, operands, assumed)
    # A word can get its name after one that is made of it: the numbers have the order.
    reached = set(order([*outputs.values()]))
    named = sorted(points.items(), key=lambda item: item[1].number)
    points = {name: word for name, word in named if word in reached}
    places = {name: places[name] for name in points}
    return Circuit(words, given, outputs, points, facts, assumed, places, codes & reached)


def input_widths(unit: Signature) -> dict[str, int]:
    """Bits of each input by name, `held` included."""
    found = {}
    for name, shape in unit.operand_shapes(matrices=False).items():
        found[name] = unit.code_format(name).bits * (shape[0] if shape else 1)
    if unit.state:
        found[HELD] = unit.formats["c"].bits
    return found


def _of_modes(
    unit: Instruction, words: Words, operands: dict[str, Word], assumed: list[tuple[str, Word]]
) -> tuple[
    dict[str, Word], dict[str, Word], dict[str, tuple[int, int]], list[tuple[str, Word]], frozenset[Word]
]:
    """One circuit a mode, of which the operand `mode` chooses; what modes share is built once."""
    mode = operands.pop("mode")
    outputs: dict[str, Word] = {}
    points: dict[str, Word] = {}
    places: dict[str, tuple[int, int]] = {}
    facts: list[tuple[str, Word]] = []
    codes: frozenset[Word] = frozenset()
    used = []
    for code, one in unit.mode_units.items():
        made = _of_program(one.stateless, words, operands, f"mode{code}.")
        chosen = words.equal(mode, words.constant(code, mode.width))
        used.append(chosen)
        for name, word in made.outputs.items():
            outputs[name] = words.choose(chosen, word, outputs[name]) if name in outputs else word
        known = set(points.values())
        points |= {name: word for name, word in made.points.items() if word not in known}
        places |= made.places
        codes |= made.codes
        facts += [one for one in made.facts if one[1] not in {fact for _, fact in facts}]
        assumed += [condition for condition in made.assumed if condition not in assumed]
    assumed.append(("mode is one that the unit uses", words.any_of(used)))
    return outputs, points, places, facts, codes


def _with_accumulator(unit: Instruction, words: Words, operands: dict[str, Word]) -> dict[str, Word]:
    """The operands of the dot product of a unit with its own accumulator; see golden/program/state.py."""
    rest = {name: word for name, word in operands.items() if name not in ("clear", "load", HELD)}
    clear, c = operands["clear"], operands[HELD]
    load = operands.get("load", words.constant(0, 1))
    if "load" in operands:
        c = words.choose(load, operands["c"], c)
    rest["c"] = words.choose(clear, words.constant(0, c.width), c)
    out = [clear] if "clear" in unit.alone else []
    out += [words.both(load, words.invert(clear))] if "load" in unit.alone else []
    if out:
        nothing = words.any_of(out)
        for name in {"a", "b"} & set(rest):
            rest[name] = words.choose(nothing, words.constant(0, rest[name].width), rest[name])
    return rest


# One program ------------------------------------------------------------------------------------------------


def _of_program(unit: Instruction, words: Words, operands: dict[str, Word], prefix: str) -> Circuit:
    """The circuit of a unit without modes and state."""
    build = Builder(words, exponent_bits(unit))
    build.flags_wanted = bool(unit.status)
    assumed: list[tuple[str, Word]] = []
    elements = {
        name: _elements(unit, words, name, word) for name, word in operands.items() if name in unit.formats
    }
    for name in unit.absent:
        elements[name] = [words.constant(0, 1)] * unit.k
    if unit.pattern is not None:
        nibbles = _pieces(words, operands["metadata"], 4)
        elements["b"] = _picked(unit, build, elements["b"], nibbles)
        for at, nibble in enumerate(nibbles):
            legal = unit.pattern.legal(unit.ordered_metadata)
            fits = words.any_of(words.equal(nibble, words.constant(code, 4)) for code in legal)
            assumed.append((f"metadata[{at}] is a legal nibble", fits))
    results: dict[str, Word] = {"c": elements["c"][0]}
    flags: list[tuple[str, Word]] = []
    many = len(unit.program.operations) > 1
    code = results["c"]
    for index, operation in enumerate(unit.program.operations):
        build.prefix = prefix + (f"op{index}." if many else "")
        code = _Operation(build, unit, operation, index, elements, results).run()
        if many:
            build.code("d", code)
        flags += build.raised
        build.raised = []
        results[operation.to] = code
    outputs = {"d": words.extend(code, unit.formats["d"].bits)}
    if unit.status:
        bits = [build.any_of(condition for flag, condition in flags if flag == name) for name in unit.status]
        outputs["flags"] = words.concat(*reversed(bits))
    codes = frozenset(build.codes)
    return Circuit(words, operands, outputs, build.points, build.facts, assumed, build.places, codes)


def _elements(unit: Instruction, words: Words, name: str, word: Word) -> list[Word]:
    return _pieces(words, word, unit.formats[name].bits)


def _pieces(words: Words, word: Word, width: int) -> list[Word]:
    return [words.extract(word, low, width) for low in range(0, word.width, width)]


def _picked(unit: Instruction, build: Builder, b: list[Word], nibbles: list[Word]) -> list[Word]:
    """The elements of b that the metadata select, one for each stored element of a; see Pattern.columns."""
    words, pattern = build.words, unit.pattern
    assert pattern is not None
    found = []
    for at, nibble in enumerate(nibbles):
        chunk = b[at * pattern.chunk : (at + 1) * pattern.chunk]
        first, second = words.extract(nibble, 0, 2), words.extract(nibble, 2, 2)
        if pattern.name == "1:2":
            found.append(words.choose(words.equal(nibble, words.constant(0xE, 4)), chunk[1], chunk[0]))
        elif pattern.name == "2:4":
            found += [_at(words, chunk, index) for index in (first, second)]
        else:
            found += [_at(words, chunk[low::2], index) for index in (first, second) for low in (0, 1)]
    return [build.mark(f"selected[{k}]", word) for k, word in enumerate(found)]


def _at(words: Words, choices: list[Word], index: Word) -> Word:
    """The one of four words that an index of two bits names."""
    high, low = words.bit(index, 1), words.bit(index, 0)
    return words.choose(
        high, words.choose(low, choices[3], choices[2]), words.choose(low, choices[1], choices[0])
    )


def exponent_bits(unit: Instruction) -> int:
    """Bits of exponents, in two's complement: of every exponent of the program, of the place of any bit of a
    number, and of the difference of any two.

    With integers alone there is nothing to be held; their exponents are constants.
    """
    reach = widest = 1
    for operation in unit.program.operations:
        registers = operands_of(operation, unit.formats)
        states = [registers, *(before for _, before in walk(operation, registers))]
        formats = [
            operation.out_format,
            operation.seed_format,
            operation.operand_format,
            *unit.formats.values(),
        ]
        formats += [format_of(step) for step in operation.steps]
        for fmt in formats:
            if fmt is not None and fmt.is_float:
                reach = max(
                    reach,
                    1 << fmt.exponent_bits,
                    abs(fmt.min_exponent - fmt.fraction_bits),
                    fmt.max_exponent + 2,
                )
                widest = max(widest, fmt.fraction_bits + 4)
        for own in (one for state in states for one in state.values()):
            reach = max(
                reach, *(abs(value) for value in (own.low, own.high, own.lsb, own.last, own.bottom, own.top))
            )
            reach = max(reach, abs(own.size) if own.size > -_FAR else 0)
            widest = max(widest, own.fraction_bits + own.integer_bits + 4)
        for step in operation.steps:
            for value in (
                getattr(step, name, None)
                for name in (
                    "floor",
                    "exponent",
                    "min_exponent",
                    "overflow_exponent",
                    "underflow_exponent",
                )
            ):
                reach = max(reach, abs(value or 0))
            if isinstance(step, Align):
                values = [
                    *(n for _, n in step.window),
                    *(n for _, n in step.spared),
                    *(abs(one.least or 0) + abs(one.plus) for one in step.maximum),
                ]
                reach = max([reach, *map(abs, values), *(n for _, n in step.fraction_bits)])
    return (2 * reach + 4 * widest).bit_length() + 1


_FAR = 1 << 20
"""A power of two beyond every number."""


class _Operation:
    """One operation: its registers, and the circuit of its steps."""

    def __init__(
        self, build: Builder, unit: Instruction, operation: Operation, index: int,
        elements: Mapping[str, list[Word]], results: Mapping[str, Word],
    ) -> None:  # fmt: skip
        self.build, self.unit, self.operation, self.index = build, unit, operation, index
        self.words = build.words
        self.ends: list[tuple[Word, Word]] = []
        build.ended, build.step = build.no, (index, -1)
        build.reads_zeros = any(
            (isinstance(step, Align) and step.zeros != "ignored")
            or (isinstance(step, HiddenBit) and step.zeros == "set")
            for step in operation.steps
        )
        self.codes = {name: [elements[name][k] for k in operation.k_index] for name in "ab"}
        self.registers: dict[str, list[Number]] = {}
        for name in "ab":
            read = [
                self._decoded(unit.formats[name], code, f"{name}{{}}[{k}]")
                for k, code in enumerate(self.codes[name])
            ]
            self._look_for_signalling(unit.formats[name], read)
            self.registers[name] = [self._converted(number, unit.formats[name]) for number in read]
        self.registers["c"] = [self._result(operation.seed, operation.seed_format, results)]
        self.registers["addends"] = [
            self._result(name, operation.out_format, results) for name in operation.addends
        ]
        if unit.scale_block is not None:
            self.registers["scales"] = self._scales(elements)

    def _result(self, name: str, fmt: Format, results: Mapping[str, Word]) -> Number:
        """c, a zero or an earlier result."""
        code = results.get(name) if name not in ("zero", NO_SEED) else None
        code = self.words.constant(0, max(fmt.bits, 1)) if code is None else code
        number = self._decoded(
            fmt, self.words.extend(code, max(fmt.bits, 1)), re.sub(r"\W", "_", name) + "{}"
        )
        if name == "c":
            self._look_for_signalling(fmt, [number])
        return number

    def _decoded(self, fmt: Format, code: Word, label: str) -> Number:
        """An operand, its parts named."""
        number = self.build.decode(fmt, code)
        for what in ("nan", "infinity", "zero", "sign", "exponent", "magnitude"):
            self.build.mark(label.format(f"_{what}"), getattr(number, what))
        self.build.say_range(label.format("_exponent"), number.exponent)
        return number

    def _look_for_signalling(self, fmt: Format, numbers: list[Number]) -> None:
        if self.build.flags_wanted:
            self.build.raise_flag(
                "invalid", self.build.any_of(self.build.signalling(fmt, one) for one in numbers)
            )

    def _converted(self, number: Number, source: Format) -> Number:
        """The number as the format holds it to which a and b are converted: subnormals may become normal."""
        target, build, words = self.operation.operand_format, self.build, self.words
        if target is None:
            return number
        places = target.fraction_bits
        exponent = number.exponent
        magnitude = build.pad(number.magnitude, places + number.offset)
        if source.min_exponent > target.min_exponent and source.has_subnormals:
            exponent = build.larger(build.leading_place(number), build.exponent(target.min_exponent))
            magnitude = words.shift_left(magnitude, words.sub(number.base, exponent))
        if build.reads_zeros:
            exponent = words.choose(number.zero, build.exponent(target.min_exponent), exponent)
        low = max(target.min_exponent, source.min_exponent - source.fraction_bits)
        return replace(
            number,
            magnitude=magnitude,
            base=exponent,
            exponent=exponent,
            offset=-places,
            reach=(low, number.reach[1]),
            code=None,
        )

    def _scales(self, elements: Mapping[str, list[Word]]) -> list[Number]:
        """The product of the two scales of each k."""
        unit, build = self.unit, self.build
        assert unit.scale_block is not None
        block = unit.scale_block * unit.stored_k // unit.k
        found = []
        for k in self.operation.k_index:
            pair = []
            for name in ("scale_a", "scale_b"):
                label = f"{name}{{}}[{k // block}]"
                number = self._decoded(unit.formats[name], elements[name][k // block], label)
                self._look_for_signalling(unit.formats[name], [number])
                pair.append(number)
            product = build.product(pair[0], pair[1])
            for side, one in zip(("scale_a", "scale_b"), pair, strict=True):
                self.registers.setdefault(side, []).append(one)
            build.mark(f"scale[{k // block}]", product.magnitude)
            build.mark(f"scale_exponent[{k // block}]", product.exponent)
            found.append(product)
        return found

    # Steps --------------------------------------------------------------------------------------------------

    def run(self) -> Word:
        """The code of the result."""
        bounds = operands_of(self.operation, self.unit.formats)
        prefix = self.build.prefix
        kinds = [type(step) for step in self.operation.steps]
        result: Word | None = None
        for at, (step, before) in enumerate(walk(self.operation, bounds)):
            self.build.step = self.index, at
            # Where a kind of step comes more than once, its points say which.
            several = kinds.count(type(step)) > 1
            self.build.prefix = prefix + (f"{step.op}{kinds[:at].count(type(step))}." if several else "")
            result = self._execute(step, before)
        self.build.prefix = prefix
        assert result is not None, "a program's last step writes d"
        for condition, code in reversed(self.ends):
            result = self.words.choose(condition, code, result)
        return result

    def _execute(self, step: Step, bounds: Registers) -> Word | None:
        build, registers = self.build, self.registers
        match step:
            case Flush():
                for name in step.of:
                    registers[name] = [self._flushed(step, name, number) for number in registers[name]]
            case HiddenBit():
                for name in step.of:
                    registers[name] = [self._with_hidden_bit(step, number) for number in registers[name]]
            case Part():
                for name in step.of:
                    registers[name] = [self._in_part(step, number) for number in registers[name]]
            case Replace():
                for name in step.of:
                    registers[name] = [self._replaced(step, number) for number in registers[name]]
            case Multiply():
                self._multiply(step)
            case Scale():
                self._scale(step)
            case SpecialValues():
                self._special_values(step)
            case Align():
                terms = [(name, label, number) for name in step.of for label, number in self._labelled(name)]
                aligned = alignment.align(build, step, terms, bounds)
                for name in step.of:
                    registers[name] = [
                        one for (owner, _, _), one in zip(terms, aligned, strict=True) if owner == name
                    ]
            case Sum():
                c = registers["c"][0] if step.complement == "c" else None
                registers[step.to] = addition.sums(build, step, self._terms(step.of), c, bounds)
            case Additions():
                registers[step.to] = addition.additions(build, step, self._terms(step.of))
            case Normalize():
                self._normalize(step, bounds)
            case Fma():
                pairs = list(zip(registers["a"], registers["b"], strict=True))
                registers[step.to] = addition.fma(build, step, pairs, registers["c"][0])
            case Round():
                return self._round(step)
            case _:
                assert_never(step)
        if step.to == "d":
            assert isinstance(step, Additions | Fma), "checks.py: a sum writes d only if it rounds"
            return addition.written(build, registers["d"][0], step, self.operation.out_format)
        return None

    def _labelled(self, name: str) -> list[tuple[str, Number]]:
        """The numbers of a register with the labels of their points: products by k alone."""
        numbers = self.registers[name]
        if name in ("c", "dot", "total", "partial") and len(numbers) == 1:
            return [(name, numbers[0])]
        return [(str(i) if name == "products" else f"{name}.{i}", number) for i, number in enumerate(numbers)]

    def _terms(self, names: tuple[str, ...]) -> list[tuple[str, Number]]:
        return [one for name in names for one in self._labelled(name)]

    def _flushed(self, step: Flush, name: str, number: Number) -> Number:
        """Subnormal numbers as zeros."""
        words, build = self.words, self.build
        if name == "c" and not self.operation.seed_format.is_float:
            subnormal = build.no
        elif number.exponent is number.base:
            whole = build.cut(number.magnitude, -number.offset, number.width + number.offset)
            subnormal = build.finite(number)
            if whole is not None:
                subnormal = words.both(subnormal, words.invert(words.nonzero(whole)))
        else:
            below = words.sub(number.exponent, build.plus(number.base, number.offset))
            above = words.both(words.less_signed(below, build.exponent(0)), words.nonzero(number.magnitude))
            whole = words.either(above, words.nonzero(words.shift_right(number.magnitude, below)))
            subnormal = words.both(build.finite(number), words.invert(whole))
        zero = words.either(number.zero, subnormal)
        sign = build.sign_of(number)
        if step.sign == "positive":
            sign = words.both(sign, words.invert(zero))
        keep = words.invert(zero)
        code = None
        if number.code is not None:  # the code of a zero is 0 but for its sign
            fmt, read = number.code
            code = fmt, words.choose(zero, build.with_sign(fmt, sign, words.constant(0, fmt.bits)), read)
        return replace(
            number,
            zero=zero,
            sign=sign,
            zero_sign=None,
            magnitude=words.choose(keep, number.magnitude, words.constant(0, number.width)),
            twos=None
            if number.twos is None
            else words.choose(keep, number.twos, words.constant(0, number.twos.width)),
            sticky=None if number.sticky is None else words.both(number.sticky, keep),
            code=code,
        )

    def _with_hidden_bit(self, step: HiddenBit, number: Number) -> Number:
        """The number as a multiplier sees it that takes every significand as 1.f."""
        words, build = self.words, self.build
        hit = build.finite(number)
        zero = number.zero
        if step.zeros == "set":
            hit, zero = words.either(hit, zero), build.no
        sign = build.sign_of(number)
        bit = words.constant(1 << -number.offset, number.width)
        if number.width <= -number.offset:  # the hidden bit stands above what the number has
            number = replace(number, magnitude=words.extend(number.magnitude, 1 - number.offset))
            bit = words.constant(1 << -number.offset, number.width)
        with_bit = words.either(number.magnitude, bit)
        return replace(
            number, zero=zero, sign=sign, zero_sign=None, twos=None, code=None,
            magnitude=words.choose(hit, with_bit, number.magnitude),
        )  # fmt: skip

    def _in_part(self, step: Part, number: Number) -> Number:
        """Some bits of the magnitude, in a frame of their own: a wire, since the exponent is that of place
        0."""
        words, build = self.words, self.build
        low = -number.offset - (step.first + step.bits - 1)
        magnitude = build.pad(number.magnitude, max(-low, 0))
        low = max(low, 0)
        part = words.extract(words.extend(magnitude, max(magnitude.width, low + step.bits)), low, step.bits)
        keep = words.invert(number.zero)
        return replace(
            number,
            magnitude=words.choose(keep, part, words.constant(0, step.bits)),
            sign=build.sign_of(number),
            zero_sign=None,
            base=build.plus(number.base, -step.first),
            offset=1 - step.bits,
            exponent=build.plus(number.exponent, -step.first),
            reach=(number.reach[0] - step.first, number.reach[1] - step.first),
            twos=None,
            last=None,
            code=None,
        )

    def _replaced(self, step: Replace, number: Number) -> Number:
        """The number, or what stands for it where it has the value of the step."""
        words, build = self.words, self.build
        if number.exponent is not number.base:
            raise refuse("a number that has no common frame with its exponent", step.op, "of")
        finer = -number.offset - step.places  # places of the magnitude below the unit
        offset = min(number.offset, -step.places)
        wanted = abs(step.value) << finer if finer >= 0 else abs(step.value)
        magnitude = build.pad(number.magnitude, -finer)
        by = abs(step.by) << max(finer, 0)
        width = max(magnitude.width, wanted.bit_length(), by.bit_length(), 1)
        magnitude, sign = words.extend(magnitude, width), build.sign_of(number)
        conditions = [
            build.finite(number),
            words.equal(magnitude, words.constant(wanted, width)),
            sign if step.value < 0 else words.invert(sign),
        ]
        if number.sticky is not None:
            conditions.append(words.invert(number.sticky))
        equal = build.all_of(conditions)
        return replace(
            number,
            magnitude=words.choose(equal, words.constant(by, width), magnitude),
            sign=words.choose(equal, words.constant(int(step.by < 0), 1), sign),
            zero_sign=None,
            offset=offset,
            twos=None,
            last=None if number.sticky is None else number.last_place,
            code=None,
        )

    def _multiply(self, step: Multiply) -> None:
        build, words = self.build, self.words
        if step.operation == "product":
            pairs = zip(self.registers["a"], self.registers["b"], strict=True)
            products = [build.product(x, y, step.zero_times_infinity) for x, y in pairs]
        else:
            products = [
                self._combined(step.operation, x, y) for x, y in zip(*self.codes.values(), strict=True)
            ]
        for k, one in enumerate(products):
            build.mark(f"product[{k}]", one.magnitude if one.twos is None else one.twos)
            build.mark(f"exponent[{k}]", one.exponent)
            build.say_range(f"exponent[{k}]", one.exponent)
            for what in ("sign", "zero", "nan", "infinity"):
                build.mark(what + f"[{k}]" if what == "sign" else f"product_{what}[{k}]", getattr(one, what))
            zero = words.invert(words.nonzero(one.magnitude))
            if one.twos is None and one.zero.constant is None and not self.operation.steps_of(Part):
                special = words.either(one.nan, one.infinity)
                build.fact(f"product_of_zero[{k}]", words.either(special, words.equal(one.zero, zero)))
        if step.negate in ("product", "both"):
            products = [build.negated(one) for one in products]
        if step.overflow_exponent is not None:
            products = [self._overflowed(one, step.overflow_exponent) for one in products]
        if step.normalize:
            products = [self._normalized(one) for one in products]
        if step.format is not None:
            products = [
                addition.ieee(build, one, step, f"rounded_product[{k}]") for k, one in enumerate(products)
            ]
        self.registers[step.to] = products
        if step.negate in ("c", "both"):
            self.registers["c"] = [build.negated(one) for one in self.registers["c"]]

    def _combined(self, operation: str, x: Word, y: Word) -> Number:
        """Two codes combined bit by bit."""
        build, words = self.build, self.words
        width = max(x.width, y.width)
        x, y = words.extend(x, width), words.extend(y, width)
        bits = words.both(x, y) if operation == "and" else words.differ(x, y)
        zero, point = words.invert(words.nonzero(bits)), build.exponent(0)
        return Number(build.no, build.no, zero, build.no, bits, point, 0, point, (0, 0))

    def _overflowed(self, product: Number, limit: int) -> Number:
        """A product of 2**limit or more is infinite."""
        build, words = self.build, self.words
        # Bit 2**limit and the bits above it are what a shift by its place leaves; below that place lies all.
        place = words.sub(build.exponent(limit - product.offset), product.base)
        beneath = words.less_signed(place, build.exponent(0))
        large = words.nonzero(
            words.choose(beneath, product.magnitude, words.shift_right(product.magnitude, place))
        )
        over = words.both(build.finite(product), large)
        for flag in ("overflow", "inexact"):
            build.raise_flag(flag, over)
        low, high = product.reach
        return replace(
            product, infinity=words.either(product.infinity, over), sign=build.sign_of(product),
            reach=(low, max(low, high)), code=None,
        )  # fmt: skip

    def _normalized(self, product: Number) -> Number:
        """The leading one before the point."""
        build, words = self.build, self.words
        leading = build.leading_place(product)
        magnitude = words.shift_left(product.magnitude, build.leading_zeros(product.magnitude))
        exponent = leading
        if self.operation.steps_of(Part):  # a product of parts without bits keeps its exponent
            exponent = words.choose(words.nonzero(product.magnitude), leading, product.exponent)
        elif build.reads_zeros:
            exponent = words.choose(product.zero, product.exponent, leading)
        low, high = product.reach
        top = product.offset + product.width - 1
        return replace(
            product, magnitude=magnitude, twos=None, base=leading, offset=1 - product.width,
            exponent=exponent, reach=(low + product.offset, high + top), last=product.last_place,
        )  # fmt: skip

    def _scale(self, step: Scale) -> None:
        if step.power is not None:
            for name in step.of:
                self.registers[name] = [self.build.moved(one, step.power) for one in self.registers[name]]
            return
        build, scales = self.build, self.registers[factor_of(step)]
        for name in step.of:
            numbers = self.registers[name]
            stride = max(len(scales) // max(len(numbers), 1), 1)
            scaled = [build.product(number, scales[i * stride]) for i, number in enumerate(numbers)]
            for (label, _), one in zip(self._labelled(name), scaled, strict=True):
                build.mark(f"scaled[{label}]", one.magnitude if one.twos is None else one.twos)
                build.mark(f"scaled_exponent[{label}]", one.exponent)
            self.registers[name] = scaled

    def _special_values(self, step: SpecialValues) -> None:
        """Ends the operation where a term is a NaN or an infinity. From there on no term is."""
        build, words, fmt = self.build, self.words, self.operation.out_format
        terms = [number for name in step.of for number in self.registers[name]]
        positive = build.any_of(words.both(one.infinity, words.invert(one.sign)) for one in terms)
        negative = build.any_of(words.both(one.infinity, one.sign) for one in terms)
        build.mark("positive_infinity", positive)
        build.mark("negative_infinity", negative)
        opposite = words.both(positive, negative)
        build.raise_flag("invalid", opposite)
        nan = build.any_of(one.nan for one in terms)
        sign = negative
        if step.opposite_infinities == "nan":
            nan = words.either(nan, opposite)
        else:
            sign = words.choose(opposite, self._sign_of_opposites(step, terms), negative)
        infinity = build.any_of([positive, negative])
        build.mark("nan", nan)
        build.mark("infinity", infinity)
        build.mark("infinity_sign", sign)
        some = build.any_of([nan, infinity])
        nothing = replace(
            self._nothing(), nan=nan, infinity=words.both(infinity, words.invert(nan)), sign=sign
        )
        own = build.special_code(fmt, nothing, step.nan)
        for condition, code in reversed(self._causes(step)):
            own = words.choose(words.both(nan, condition), code, own)
        self.ends.append((build.mark("special", some), build.mark("special_result", own)))
        build.ended = words.either(build.ended, some)
        for name in step.of:
            self.registers[name] = [
                replace(one, nan=build.no, infinity=build.no) for one in self.registers[name]
            ]

    def _nothing(self) -> Number:
        build, point = self.build, self.build.exponent(0)
        return Number(
            build.no, build.no, build.yes, build.no, self.words.constant(0, 1), point, 0, point, (0, 0)
        )

    def _sign_of_opposites(self, step: SpecialValues, terms: list[Number]) -> Word:
        """The sign of what is left of infinities of both signs."""
        build, words = self.build, self.words
        if step.opposite_infinities in ("positive", "negative"):
            return words.constant(int(step.opposite_infinities == "negative"), 1)
        sign = build.no
        for one in terms if step.opposite_infinities == "last" else reversed(terms):
            sign = words.choose(one.infinity, one.sign, sign)
        return sign

    def _causes(self, step: SpecialValues) -> list[tuple[Word, Word]]:
        """Conditions and codes of `nans`; the ones that win come first."""
        build, words, fmt = self.build, self.words, self.operation.out_format
        pairs = list(zip(self.registers["a"], self.registers["b"], strict=True))
        products = [number for name in step.of if name != "c" for number in self.registers[name]]
        every = [*products, *(self.registers["c"] if "c" in step.of else ())]
        handed = {
            "a": self.registers["a"],
            "b": self.registers["b"],
            "factor": [factor for pair in pairs for factor in pair],
            "c": self.registers["c"],
        }

        def opposite(terms: list[Number]) -> Word:
            signs = (
                build.any_of(words.both(one.infinity, one.sign) for one in terms),
                build.any_of(words.both(one.infinity, words.invert(one.sign)) for one in terms),
            )
            return words.both(*signs)

        found = []
        for cause, word in step.nans:
            if cause in handed:
                known = [(one.nan, one) for one in handed[cause]]
                if word is not None:
                    code = words.constant(word, fmt.bits)
                    found.append((build.any_of(condition for condition, _ in known), code))
                else:
                    found += [(condition, build.nan_code(fmt, one, step.quieted)) for condition, one in known]
            elif word is not None:
                happened = {
                    "invalid_product": lambda: build.any_of(
                        words.either(words.both(x.infinity, y.zero), words.both(y.infinity, x.zero))
                        for x, y in pairs
                    ),
                    "opposite_products": lambda: opposite(products),
                    "opposite_infinities": lambda: opposite(every),
                }[cause]()
                found.append((happened, words.constant(word, fmt.bits)))
        return found

    def _normalize(self, step: Normalize, bounds: Registers) -> None:
        after, places = follow(step, bounds), dict(step.fraction_bits)
        for name in step.of:
            self.registers[name] = [
                alignment.normalize(self.build, step, label, number, bounds[name], after[name], places[name])
                for label, number in self._labelled(name)
            ]

    def _round(self, step: Round) -> Word | None:
        build, fmt = self.build, step.format
        kept = fmt.fraction_bits if step.result_fraction_bits is None else step.result_fraction_bits
        unseen = -1 if step.sticky == "left_out" else step.sticky_gap
        random = None if step.random_bits is None else (step.random_bits, step.random)
        if random and (not fmt.is_float or (step.flush != "none" and step.tiny != "subnormal_result")):
            raise refuse("stochastic rounding to integers, or with another tiny", "round", "random_bits")
        rule = Rule(
            fmt, step.rounding, step.overflow, kept, step.flush, step.tiny, step.nan, step.zero,
            step.subnormal_carry, unseen, random,
        )  # fmt: skip
        codes = []
        for number in self.registers[step.of[0]]:
            codes.append(to_code(build, build.with_sticky(number), rule))
        if step.to == "d":
            return codes[0]
        self.registers[step.to] = [
            build.decode(fmt, build.mark(f"{step.to}[{i}]", code)) for i, code in enumerate(codes)
        ]
        return None
