"""Refuses lists of steps that the models cannot run, though each step alone is sound."""

from __future__ import annotations

from golden.formats import Format
from golden.program import Operands, Operation, Step
from golden.yamlfile import Section


def check_sum(step: Step, earlier: list[Step], body: Section) -> None:
    """An exact sum that feeds another exact sum could need more bits than the core keeps: the two are one sum."""
    if step.op != "sum" or step.order != "exact":
        return
    for name in step.of:
        last = next((s for s in reversed(earlier) if s.to == name or (name in s.of and s.op in ("align", "normalize"))), None)
        if last is not None and last.op == "sum" and last.order == "exact" and not _aligned(last, earlier):
            raise body.error(
                f"register '{name}' is an exact sum already; sum all of its terms in one step, or align or round it first", "of"
            )


def _aligned(total: Step, earlier: list[Step]) -> bool:
    """Whether all terms of a sum had been aligned, so that it has few bits."""
    before = earlier[: earlier.index(total)]
    return all(any(s.op == "align" and name in s.of for s in before) for name in total.of)


def check_widths(steps: tuple[Step, ...], operands: Operands, frame: Operation, where: Section) -> None:
    """Refuses step lists that the models cannot run: empty or over-long registers, sums past the core's 128 bits."""
    _check_counts(steps, operands, frame, where)
    a, b = ((frame.operand_format or f) for f in (operands.a, operands.b))
    floats = a.is_float and b.is_float
    products = 2 if floats else a.bits + b.bits
    scales = 8 if any(step.op == "scale" for step in steps) else 0
    fixed = [step.exponent for step in steps if step.exponent is not None]
    reach = max(a.max_exponent + b.max_exponent - min(fixed), 0) if fixed and floats else 0
    for step in steps:
        if step.op == "align":
            growth = max(len(frame.k_index), 1).bit_length() + 2
            width = max(bits for _, bits in step.fraction_bits) + products + scales + reach + growth
            if width > 120:
                raise where.error(f"the aligned sum needs {width} bits, the core holds 120")
        if step.op == "hidden_bit":
            _check_hidden_bit(step, a, b, frame.seed_format, where)
        if step.overflow == "wrap" and step.op == "round" and (a.is_float or b.is_float or frame.seed_format.is_float):
            raise where.error("overflow 'wrap' is for integer operands; a float total has no exact low bits")
        same = {a.name, b.name, frame.seed_format.name, step.format.name if step.format else ""}
        if step.nan_order and (len(same) != 1 or a.fraction_bits == 0):
            raise where.error("'nan_order' hands NaN words on, so a, b, c and the step's format must be the same")


def _check_hidden_bit(step: Step, a: Format, b: Format, c: Format, where: Section) -> None:
    for name in step.of:
        fmt = {"a": a, "b": b, "c": c}[name]
        if not (fmt.is_float and fmt.has_zero):
            raise where.error(f"step 'hidden_bit' is for formats with subnormal numbers, {name} is {fmt.name}")


def _check_counts(steps: tuple[Step, ...], operands: Operands, frame: Operation, where: Section) -> None:
    """Follows how many terms each register holds, and refuses what reads none or writes more than one d."""
    k = len(frame.k_index)
    counts = {"a": k, "b": k, "c": 1, "scales": k if operands.scaled else 0, "addends": len(frame.addends)}
    for step in steps:
        members = sum(counts.get(name, 0) for name in step.of)
        if any(counts.get(name, 0) == 0 for name in step.of):
            raise where.error(f"step '{step.op}' reads a register without terms (operations with 'k: none' have no products)")
        if step.group is not None and step.group[1] > (k if step.op == "fma" else members):
            raise where.error(f"a group of {step.group[1]} is larger than the {members} terms that step '{step.op}' reads")
        groups = 1 if step.group is None else step.group[1] if step.group[0] == "interleaved" else 0
        terms = k if step.op == "fma" else members
        counts[step.to] = terms if step.op in ("multiply", "round") else groups or -(-terms // step.group[1])  # type: ignore[index]
        if step.op == "multiply":
            counts[step.to] = k
        if step.to == "d" and counts["d"] != 1:
            raise where.error(f"step '{step.op}' would write {counts['d']} values to d")
    scales = sum(step.op == "scale" for step in steps)
    if scales > 1 or (scales and not operands.scaled):
        raise where.error("a 'scale' step needs the formats scale_a and scale_b, and there is at most one")
