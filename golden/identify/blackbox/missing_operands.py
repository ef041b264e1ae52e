"""Units without b or without c: they are searched as units that get both and read only what they have.

A unit without c is one that ignores c; a unit without b multiplies by one. Questions carry all three
operands, so every pass of the search works as it does for other units. No candidate reads an operand that the
unit lacks (`read_alone`), and what is reported has the unit's own operands (`as_own`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from golden.identify.blackbox.step_registers import renamed, with_registers
from golden.model.instruction import Instruction
from golden.number.frozen import replace
from golden.program.program import ABSENT, NO_SEED, ONE, Operation, Program
from golden.program.signature import Bits, Signature
from golden.program.steps import Additions, Fma, Multiply, Round, SpecialValues, Step, Sum
from golden.unit import FunctionUnit, Unit, signature_of

_FACTOR = replace(ONE, name="one", ignored_high=ONE.storage)
"""The format of b in the questions to a unit without b: every code is the number 1, since no bit counts."""


def with_all(unit: Unit) -> Unit:
    """The unit itself, or a unit that takes a, b and c and hands on the operands that this one has."""
    takes = signature_of(unit)
    if not takes.absent:
        return unit
    stands_for = {"b": _FACTOR, "c": takes.formats["d"]}
    given: dict[str, Any] = {one.name: getattr(takes, one.name) for one in fields(Signature)}
    given["formats"] = takes.formats | {name: stands_for[name] for name in takes.absent}
    given["unread"] = takes.absent

    def answer(**operands: Bits) -> Bits:
        return unit.dot(**{name: codes for name, codes in operands.items() if name not in takes.absent})

    return FunctionUnit.like(Signature(**given), answer)


def read_alone(takes: Signature, operations: Iterable[Operation]) -> list[Operation] | None:
    """The operations of a candidate as a unit without the operands `takes.unread` can have them: steps that
    read none of these. None if no such unit has them."""
    if not takes.unread:
        return list(operations)
    found: list[Operation] = []
    nothing = {"c"} if "c" in takes.unread else set()
    """Registers between operations that hold nothing: c, and what was made of it alone."""
    for one in operations:
        if "b" in takes.unread and not all(map(_multiplies_by_one, one.steps)):
            return None
        bare = one.seed in nothing or one.seed == NO_SEED
        gone = {*takes.unread} - {"c"} | ({"c"} if bare else set())
        steps = _without(one.steps, gone)
        addends = tuple(name for name in one.addends if name not in nothing)
        if not one.k_index and bare and not addends:
            nothing.add(one.to)
            continue
        changed = replace(one.with_steps(steps), addends=addends)
        found.append(replace(changed, seed=NO_SEED, seed_format=one.out_format) if bare else changed)
    return found


def _multiplies_by_one(step: Step) -> bool:
    """Whether the products of a multiplication by one are the elements of a."""
    if isinstance(step, Multiply):
        return step == Multiply(to=step.to, nan=step.nan)
    return not isinstance(step, Fma)


def _without(steps: Iterable[Step], gone: set[str]) -> list[Step]:
    """Steps that read none of these operands. An addition to nothing but zero is none: the rounding before it
    gives the result."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Fma):
            order = tuple(name for name in step.nan_order if name not in gone)
            start = "product" if "c" in gone and step.start == "c" else step.start
            step = replace(step, start=start, nan_order=order)
        elif isinstance(step, Multiply):
            if "c" in gone and step.negate in ("c", "both"):
                step = replace(step, negate="product" if step.negate == "both" else "none")
        else:
            of = tuple(name for name in step.of if name not in gone)
            if not of:
                continue
            step = with_registers(step, of) if of != step.of else step
        if isinstance(step, SpecialValues):
            step = replace(step, nans=tuple(one for one in step.nans if one[0] not in gone))
        if isinstance(step, Sum) and "c" in gone and step.complement == "c":
            step = replace(step, complement="none")
        found.append(step)
    if len(found) > 1 and _adds_nothing(*found[-2:]):
        found[-2:] = [replace(found[-2], to=found[-1].to)]
    return found


def _adds_nothing(before: Step, last: Step) -> bool:
    """Whether the last step adds one number alone, which the step before it rounded to the same format."""
    if not isinstance(last, Additions) or not isinstance(before, Round | Additions | Fma):
        return False
    whole = last.group is None and (isinstance(before, Round) or before.group is None)
    return whole and last.of == (before.to,) and before.format == last.format


def as_own(found: Instruction, own: Signature) -> Instruction:
    """A unit that was found through `with_all`, with the operands that the box has. The products of a unit
    without b are the elements of a."""
    if not own.unread:
        return found
    operations = found.program.operations
    if "b" in own.unread:
        operations = tuple(o.with_steps(_of_elements(o.steps)) for o in operations)
    stands_for = {name: fmt for name, fmt in ABSENT.items() if name in own.unread}
    return replace(found, formats=found.formats | stands_for, program=Program(operations))


def _of_elements(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    rest: tuple[Step, ...] = tuple(step for step in steps if not isinstance(step, Multiply))
    made = {step.to for step in steps if isinstance(step, Multiply)}
    for name in made:
        rest = renamed(rest, name, "a")
    return rest
