"""Refuses lists of steps that the models cannot run, or that mean nothing, though each step alone is
sound."""

from __future__ import annotations

from golden.program.extents import (
    KEPT_BITS,
    MOST_BITS,
    MOST_SPAN,
    Extent,
    follow,
    group_sizes,
    joined,
    longest_sum,
    operands_of,
    product,
)
from golden.program.program import Operands, Operation, Step
from golden.yamlfile import Section


class StepChecks:
    """Follows the registers of one operation from step to step, and refuses the step that asks too much of
    them."""

    def __init__(self, frame: Operation, operands: Operands) -> None:
        self.frame, self.scaled = frame, bool(operands.scales)
        formats = {"a": operands.a, "b": operands.b, **operands.scales}
        self.formats = {name: frame.operand_format or formats[name] for name in "ab"} | {
            "c": frame.seed_format
        }
        self.registers = operands_of(frame, formats)
        self.scales = 0

    def add(self, step: Step, body: Section) -> None:
        """Checks the next step.

        Raises:
            SpecError: at the step's line.
        """
        self._check_registers(step, body)
        self._check_bits(step, body)
        self._check_integers(step, body)
        self._check_formats(step, body)
        self.registers |= follow(step, self.registers)
        if step.to == "d" and (count := self.registers["d"].count) != 1:
            raise body.error(f"step '{step.op}' would write {count} values to d")

    def _check_registers(self, step: Step, body: Section) -> None:
        """Every register that is read was written and holds terms; groups are no larger than what they
        divide."""
        for name in step.of:
            if name not in self.registers:
                raise body.error(f"register '{name}' is read before a step has written it", "of")
            if self.registers[name].count == 0:
                raise body.error(
                    f"step '{step.op}' reads a register without terms (operations with 'k: none' have no "
                    "products)"
                )
        self.scales += step.op == "scale"
        if step.op == "scale" and (not self.scaled or self.scales > 1):
            raise body.error("a 'scale' step needs the formats scale_a and scale_b, and there is at most one")
        members = (
            self.registers["a"].count
            if step.op == "fma"
            else sum(self.registers[name].count for name in step.of)
        )
        if step.group is not None and step.group[1] > members:
            raise body.error(
                f"a group of {step.group[1]} is larger than the {members} terms that step '{step.op}' reads"
            )

    def _check_bits(self, step: Step, body: Section) -> None:
        """What the core can hold: long numbers, sums of terms far apart, and what it had to shorten
        before."""
        terms = [self.registers[name] for name in step.of]
        if step.op == "sum":
            self._check_span(longest_sum(step, terms), body)
        elif step.op == "fma":
            rounded = follow(step, self.registers)[step.to]
            self._check_span(longest_sum(step, [self._products(), self.registers["c"], rounded]), body)
        elif step.op in ("align", "scale", "normalize"):
            width = max(
                extent.width for name, extent in follow(step, self.registers).items() if name in step.of
            )
            if width > MOST_BITS:
                raise body.error(
                    f"step '{step.op}' needs numbers of {width} bits, the core holds {MOST_BITS}"
                )
        shortened = [
            name
            for name in step.of
            if not self.registers[name].exact and self._tells(step, self.registers[name])
        ]
        if shortened:
            raise body.error(
                f"register '{shortened[0]}' is an exact sum that can need more than the {KEPT_BITS} bits "
                "that the core keeps; "
                "sum all of its terms in one step, or align or round it first",
                "of",
            )

    def _products(self) -> Extent:
        return product(self.registers["a"], self.registers["b"])

    def _check_span(self, total: Extent, body: Section) -> None:
        if total.high - total.low > MOST_SPAN:
            raise body.error(
                f"the sum can need {total.high - total.low} bits, the core's register holds {MOST_SPAN}"
            )

    def _tells(self, step: Step, own: Extent) -> bool:
        """Whether a step could tell a shortened sum from the exact one.

        The bits that were dropped are ORed into the lowest that is kept, some 100 below the leading one.
        Nothing that rounds once, two bits or more above that one, sees a difference.
        """
        if step.op == "scale":
            return True
        if step.op == "sum":
            whole = joined(self.registers[name] for name in step.of)
            return max(group_sizes(step, whole.count)) > 1
        if step.op == "align":
            return any(bits + own.above + step.sticky_gap + 3 > KEPT_BITS for _, bits in step.fraction_bits)
        if step.op == "round" and step.format is not None and step.format.is_float:
            return step.format.fraction_bits + step.sticky_gap + 3 > KEPT_BITS
        return False

    def _check_integers(self, step: Step, body: Section) -> None:
        """Only integers wrap: the low bits of any other total are not there, or not all of them."""
        fmt = step.format
        if fmt is None or fmt.is_float or step.op not in ("multiply", "fma", "sum", "round"):
            return
        wraps = step.overflow == "wrap" if step.op == "round" else step.overflow != "saturate"
        read = [self.registers[name] for name in step.of] + (
            [self.registers["c"]] if step.op == "fma" and step.start == "c" else []
        )
        whole = longest_sum(step, read) if step.op == "sum" else joined(read)
        if not wraps or whole.integer:
            return
        if step.op in ("multiply", "fma"):
            raise body.error(
                f"a '{step.op}' to {fmt.name} wraps, which is for integers; let a 'round' saturate", "format"
            )
        wrapping = (
            "overflow 'wrap'"
            if step.op == "round"
            else f"a sum to {fmt.name} without 'overflow: saturate' wraps, which"
        )
        raise body.error(
            f"{wrapping} is for integer operands; a float total has no exact low bits, expected 'overflow: "
            "saturate'",
            "overflow",
        )

    def _check_formats(self, step: Step, body: Section) -> None:
        """Steps that speak of the fields of a, b and c: bits, hidden bits, NaN words."""
        a, b = self.formats["a"], self.formats["b"]
        if step.op == "multiply" and step.operation != "product":
            for name in "ab":
                fmt = self.formats[name]
                if fmt.is_float or fmt.signed or self.frame.operand_format is not None:
                    what = (
                        f"key 'operation' is '{step.operation}', which combines the bits of unsigned integers"
                    )
                    raise body.error(f"{what}; {name} is {fmt.name}", "operation")
        if step.op == "hidden_bit":
            for name in step.of:
                if not (self.formats[name].is_float and self.formats[name].has_zero):
                    raise body.error(
                        f"step 'hidden_bit' is for formats with subnormal numbers, {name} is "
                        f"{self.formats[name].name}",
                        "of",
                    )
        if step.nan_order and (not {a, b, self.frame.seed_format} <= {step.format} or a.fraction_bits == 0):
            raise body.error(
                "'nan_order' hands NaN words on, so a, b, c and the step's format must be the same",
                "nan_order",
            )
