"""Refuses lists of steps that the models cannot run, or that mean nothing, though each step alone is
sound."""

from __future__ import annotations

from typing import assert_never

from golden.number.formats import Format, Kind
from golden.program.bounds import (
    KEPT_BITS,
    MOST_BITS,
    MOST_SPAN,
    Bounds,
    Registers,
    follow,
    group_sizes,
    groups_of,
    longest_sum,
    operands_of,
)
from golden.program.program import NO_SEED, ONE, OperandFormats, Operation, Program
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
    format_of,
    grouping,
)
from golden.yamlfile import Section


def _also_read(step: Step) -> tuple[str, ...]:
    """Registers that a step reads in addition to its `of`."""
    match step:
        case Multiply(negate="c" | "both") | Fma(start="c"):
            return ("c",)
        case _:
            return ()


def depends_on_c(program: Program) -> bool:
    """Whether anything of c can reach d, be it a NaN alone: followed backward from d."""
    wanted = {program.operations[-1].to}
    for operation in reversed(program.operations):
        if operation.to in wanted:
            live = _read_from(operation)
            wanted |= ({operation.seed} if "c" in live else set()) | set(
                operation.addends * ("addends" in live)
            )
    return "c" in wanted


def _read_from(operation: Operation) -> set[str]:
    """The registers of which the result of an operation is made, as they are before its first step."""
    live = {"d"}
    for step in reversed(operation.steps):
        if isinstance(step, SpecialValues):
            live.update(step.of)
        elif step.to in live:
            turned = () if isinstance(step, Multiply) else _also_read(step)  # c's sign alone is not of use
            live = live - {step.to} | {*step.of, *turned}
        elif isinstance(step, Align) and live & set(step.of):  # the largest exponent is of all
            live.update(step.of)
    return live


_NONE: frozenset[int] = frozenset()


class StepChecks:
    """Follows the registers of one operation from step to step, and refuses the step that asks too much of
    them."""

    def __init__(self, frame: Operation, operands: OperandFormats) -> None:
        self.frame, self.scaled = frame, bool(operands.scales)
        formats = {"a": operands.a, "b": operands.b, **operands.scales}
        self.formats = {name: frame.operand_format or formats[name] for name in "ab"} | {
            "c": frame.seed_format
        }
        self.registers = operands_of(frame, formats)
        self.missing = {"b"} if operands.b == ONE else set()
        self.missing |= {"c"} if frame.seed == NO_SEED else set()
        self.scales: frozenset[str] = frozenset()
        self.whole = True
        """Whether no step has left out bits of a or b."""
        self.scale_block = operands.scale_block if operands.scales else None
        self.blocks: dict[str, tuple[frozenset[int], ...]] = {}
        """Of each number of a register: the blocks whose scales its products have."""
        if self.scale_block is not None:
            self.blocks["a"] = tuple(frozenset((k // self.scale_block,)) for k in frame.k_index)

    def fork(self) -> StepChecks:
        """The same after the same steps; other ones can follow in each."""
        other = object.__new__(StepChecks)
        other.__dict__.update(self.__dict__, registers=dict(self.registers), blocks=dict(self.blocks))
        return other

    def add(self, step: Step, body: Section) -> None:
        """Checks the next step.

        Raises:
            SpecError: at the step's line.
        """
        if "d" in self.registers:
            raise body.error(f"step '{step.op}' follows one that writes d, the result")
        self._check_registers(step, body)
        written = follow(step, self.registers)
        self._check_bits(step, written, body)
        self._check_integers(step, body)
        self._check_formats(step, body)
        self._follow_blocks(step)
        self.registers |= written
        if step.to == "d" and (count := self.registers["d"].count) != 1:
            raise body.error(f"step '{step.op}' would write {count} values to d")

    def _check_registers(self, step: Step, body: Section) -> None:
        """Every register that is read was written and holds terms; groups are no larger than what they
        divide."""
        for name in (*step.of, *_also_read(step)):
            if name in self.missing:
                why = "the unit has no operand b" if name == "b" else "the operation has no c"
                raise body.error(f"step '{step.op}' reads register '{name}', but {why}", "of")
            if name not in self.registers:
                raise body.error(f"register '{name}' is read before a step has written it", "of")
            if self.registers[name].count == 0:
                raise body.error(
                    f"step '{step.op}' reads a register without terms (operations with 'k: none' have no "
                    "products)"
                )
        if isinstance(step, Scale) and step.power is None:
            if {"a", "c"} & {*step.of}:
                raise body.error(
                    "block scales belong to products or groups, expected one of these, or the key 'power'",
                    "of",
                )
            sides = {"a", "b"} if step.by == "both" else {step.by}
            if not self.scaled or sides & self.scales:
                raise body.error(
                    "a 'scale' step needs the formats scale_a and scale_b, and there is at most one for each"
                )
            self.scales |= sides
            self._check_blocks(step, body)
        group = grouping(step)
        members = (
            self.registers["a"].count
            if isinstance(step, Fma)
            else sum(self.registers[name].count for name in step.of)
        )
        if group is not None and group[1] > members:
            raise body.error(
                f"a group of {group[1]} is larger than the {members} terms that step '{step.op}' reads"
            )

    def _follow_blocks(self, step: Step) -> None:
        """Which scales belong to the numbers that a step writes."""
        if self.scale_block is None or not step.to:
            return
        read = ("a",) if isinstance(step, Multiply | Fma) else step.of
        terms = tuple(blocks for name in read for blocks in self._blocks_of(name))
        parts = groups_of(step, len(terms)) if isinstance(step, Sum | Additions | Fma) else []
        self.blocks[step.to] = tuple(_NONE.union(*terms[part]) for part in parts) or terms

    def _blocks_of(self, name: str) -> tuple[frozenset[int], ...]:
        return self.blocks.get(name, (_NONE,) * self.registers[name].count)

    def _check_blocks(self, step: Scale, body: Section) -> None:
        """The model scales number i of n by the scale of product i * k / n, which all its products have."""
        index, size = self.frame.k_index, self.scale_block
        if size is None:
            return
        for name in step.of:
            numbers = self._blocks_of(name)
            stride = max(len(index) // len(numbers), 1)
            if any(blocks - {index[i * stride] // size} for i, blocks in enumerate(numbers)):
                raise body.error(
                    f"step 'scale' would give a number of '{name}' one scale, but its products have several; "
                    f"expected groups of neighbours whose size divides the scale block of {size}",
                    "of",
                )

    def _check_bits(self, step: Step, written: Registers, body: Section) -> None:
        """What the core can hold: long numbers, sums of terms far apart, and what it had to shorten
        before."""
        match step:
            case Sum() | Additions() | Fma():
                self._check_span(longest_sum(step, self.registers), body)
            case Align() | Scale() | Normalize() | Replace():
                width = max(written[name].width for name in step.of)
                if width > MOST_BITS:
                    raise body.error(
                        f"step '{step.op}' needs numbers of {width} bits, the core holds {MOST_BITS}"
                    )
            case Multiply() | Flush() | SpecialValues() | Round() | HiddenBit() | Part():
                pass
            case _:
                assert_never(step)
        shortened = [
            name
            for name in step.of
            if not self.registers[name].exact and self._distinguishes(step, self.registers[name])
        ]
        if shortened:
            raise body.error(
                f"register '{shortened[0]}' is an exact sum that can need more than the {KEPT_BITS} bits "
                "that the core keeps; sum all of its terms in one step, or align or round it first",
                "of",
            )

    def _check_span(self, total: Bounds, body: Section) -> None:
        if total.size - total.last > MOST_SPAN:
            raise body.error(
                f"the sum can need {total.size - total.last} bits, the core's register holds {MOST_SPAN}"
            )

    def _distinguishes(self, step: Step, own: Bounds) -> bool:
        """Whether a step could distinguish a shortened sum from the exact one.

        The bits that were dropped are ORed into the lowest that is kept, some 100 below the leading one.
        Nothing that rounds once, two bits or more above that one, sees a difference.
        """
        match step:
            case Scale() | Replace():
                return True
            case Sum(width=width, complement=complement) if width is not None or complement != "none":
                return True  # a register that wraps lets low bits lead, a complement counts in the last place
            case Sum() | Additions():
                return max(group_sizes(step, sum(self.registers[name].count for name in step.of))) > 1
            case Align():
                most = max(bits for _, bits in step.fraction_bits)
                return most + own.integer_bits + step.sticky_gap + 3 > KEPT_BITS
            case Round():
                return step.format.is_float and step.format.fraction_bits + step.sticky_gap + 3 > KEPT_BITS
            case Normalize() | Multiply() | Fma() | Flush() | SpecialValues() | HiddenBit() | Part():
                return False
            case _:
                assert_never(step)

    def _check_integers(self, step: Step, body: Section) -> None:
        """Only integers and fixed-point numbers wrap: the low bits of any other total are not all there."""
        fmt = format_of(step)
        if fmt is None or fmt.is_float:
            return
        match step:
            case Round(overflow="wrap"):
                # Of numbers that were integers and were scaled by a power of two all bits are there.
                own = self.registers[step.of[0]]
                floats = any(f.is_float for name, f in self.formats.items() if name not in self.missing)
                fixed = own.exact and own.sticky is None and not floats
                integer, what = own.integer or fixed, "overflow 'wrap'"
            case Additions(overflow="ieee"):
                integer = all(self.registers[name].integer for name in step.of)
                what = f"a sum to {fmt.name} without 'overflow: saturate' wraps, which"
            case Multiply() | Fma():
                read = (*step.of, *_also_read(step))
                if not all(self.registers[name].integer for name in read):
                    raise body.error(
                        f"a '{step.op}' to {fmt.name} wraps, which is for integers; let a 'round' saturate",
                        "format",
                    )
                return
            case _:
                return
        if not integer:
            raise body.error(
                f"{what} is for integer operands; a float total has no exact low bits, expected 'overflow: "
                "saturate'",
                "overflow",
            )

    def _check_formats(self, step: Step, body: Section) -> None:
        """Steps that speak of the fields of a, b and c: bits, hidden bits, NaN words."""
        match step:
            case Multiply() if step.operation != "product":
                self._check_bit_operands(step, body)
            case Part():
                self.whole = False
            case HiddenBit():
                self._check_hidden_bits(step, body)
            case Fma() if step.nan_order:
                own = {self.formats["a"], self.formats["b"], self.frame.seed_format, step.format}
                self._check_payloads(own, step.nan, "nan_order", step.quieted, body)
            case Additions() if step.first_nan:
                own = {self.frame.seed_format, step.format}
                self._check_payloads(own, step.nan, "first_nan", step.quieted, body)
            case SpecialValues() if any(word is None for _, word in step.nans):
                handed = {cause for cause, word in step.nans if word is None}
                own = {self.formats[name] for name in "ab" if handed & {name, "factor"}}
                own |= {self.frame.seed_format} if "c" in handed else set()
                own |= {self.frame.out_format}
                self._check_payloads(own, self.frame.out_format.nan, "nans", step.quieted, body)

    def _check_payloads(
        self, formats: set[Format], nan: int | None, key: str, quieted: bool, body: Section
    ) -> None:
        """NaNs are handed on among formats that have a payload, and stay NaNs: a signalling one whose payload
        is cut could be left with none, which is an infinity."""
        for fmt in formats:
            if fmt.specials != "ieee":
                raise body.error(f"'{key}' hands NaN payloads on, {fmt.name} has none", key)
        last = self.frame.out_format
        if not quieted and len({fmt.fraction_bits for fmt in (*formats, last)}) > 1:
            names = ", ".join(sorted({fmt.name for fmt in (*formats, last)}))
            raise body.error(
                f"key 'quieted' is false, but {names} have payloads of different widths, expected one format",
                "quieted",
            )
        if nan is not None and nan < 1 << last.bits and last.decode(nan).kind != Kind.NAN:
            raise body.error(f"key 'nan' is {nan:#x}, which is a number, together with '{key}'", "nan")

    def _check_bit_operands(self, step: Multiply, body: Section) -> None:
        for name in "ab":
            fmt = self.formats[name]
            what = f"key 'operation' is '{step.operation}', which combines the bits of unsigned integers"
            if fmt.is_float or fmt.signed or self.frame.operand_format is not None:
                raise body.error(f"{what}; {name} is {fmt.name}", "operation")
            if not self.whole:
                raise body.error(f"{what} as they are, expected no step 'part' before", "operation")

    def _check_hidden_bits(self, step: HiddenBit, body: Section) -> None:
        for name in step.of:
            fmt = self.formats[name]
            if not (fmt.is_float and fmt.has_subnormals):
                raise body.error(
                    f"step 'hidden_bit' is for formats with subnormal numbers, {name} is {fmt.name}", "of"
                )
