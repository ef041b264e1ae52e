"""A step on other registers than it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from golden.number.frozen import replace
from golden.program.keys import one_or_each
from golden.program.steps import Align, Flush, Fma, HiddenBit, Multiply, Normalize, Step

Steps = tuple[Step, ...]
_BY_REGISTER = ("fraction_bits", "window", "spared", "left_out")
_TABLES = ("fraction_bits",)


def with_registers(step: Step, of: tuple[str, ...]) -> Step:
    """The step on other registers, without entries for registers that it no longer reads."""
    changed: dict[str, Any] = {"of": of}
    for name in _BY_REGISTER:
        table = dict(getattr(step, name, ()))
        if table:
            rest = next(iter(table.values()))
            fill = name in _TABLES
            changed[name] = tuple((one, table.get(one, rest)) for one in of if fill or one in table)
    if isinstance(step, Align) and isinstance(step.rounding, tuple):  # a rounding for each register
        modes = dict(step.rounding)
        changed["rounding"] = one_or_each(tuple((one, modes.get(one, step.rounding[0][1])) for one in of))
    if isinstance(step, Align):
        kept = (replace(one, of=tuple(n for n in one.of if n in of)) for one in step.maximum)
        changed["maximum"] = tuple(one for one in kept if one.of)
    if getattr(step, "group", None) is not None and len(of) > 1:
        changed["group"] = None
    return replace(step, **changed)


def of_operands(step: Step) -> bool:
    """Whether a step changes operands before anything reads them."""
    return isinstance(step, Flush | HiddenBit | Normalize) and set(step.of) <= {"a", "b", "c"}


def renamed(steps: Iterable[Step], old: str, new: str) -> Steps:
    """Steps that read the register `new` instead of `old`, until `old` is written again."""
    found: list[Step] = []
    active = True
    for step in steps:
        of = getattr(step, "of", ())
        if active and old in of and not isinstance(step, Multiply | Fma):
            names = tuple(dict.fromkeys(new if one == old else one for one in of))
            step = with_registers(relabelled(step, old, new), names)
        active = active and step.to != old
        found.append(step)
    return tuple(found)


def relabelled(step: Step, old: str, new: str) -> Step:
    """A step with one register renamed in its tables."""
    changed: dict[str, Any] = {
        name: tuple((new if one == old else one, value) for one, value in getattr(step, name))
        for name in _BY_REGISTER
        if getattr(step, name, ())
    }
    if isinstance(step, Align):
        changed["maximum"] = tuple(
            replace(one, of=tuple(new if n == old else n for n in one.of)) for one in step.maximum
        )
        if isinstance(step.rounding, tuple):
            changed["rounding"] = tuple((new if one == old else one, mode) for one, mode in step.rounding)
    return replace(step, **changed) if changed else step
