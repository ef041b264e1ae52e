"""Steps and operations written as YAML reads them: only keys that do not hold their defaults."""

from __future__ import annotations

from typing import Any

from golden.number.formats import Format
from golden.program.keys import (
    Candidate,
    Candidates,
    Causes,
    Grouping,
    Key,
    Roundings,
    Rules,
    Widths,
    Word,
    applies,
    declared,
    key_name,
)
from golden.program.program import OWN_STEPS, Operation
from golden.program.steps import Step


class Hex(int):
    """An integer that YAML shows in hex."""


def operation_keys(
    operation: Operation, flags: bool = False, named: bool = False, seed: Format | None = None
) -> dict[str, Any]:
    """The keys of one operation of `program:`, its steps written out.

    Args:
        flags: the unit has status flags.
        named: an operation of an algorithm has its name and parameters instead of steps.
        seed: the format in which its seed was written, where that is known.
    """
    keys: dict[str, Any] = {"k": _k_text(operation.k_index), "seed": operation.seed}
    if seed is not None and seed != operation.seed_format:
        keys["seed_format"] = operation.seed_format.name
    if operation.addends:
        keys["addends"] = list(operation.addends)
    if operation.operand_format is not None:
        keys["operands"] = operation.operand_format.name
    keys |= {"out": operation.out_format.name, "to": operation.to}
    if named and operation.algorithm != OWN_STEPS:
        words = {"nan"}
        given = {key: Hex(value) if key in words else value for key, value in operation.parameters}
        return {operation.algorithm: given} | keys
    return keys | {"steps": [{step.op: step_keys(step, flags)} for step in operation.steps]}


def step_keys(step: Step, flags: bool = False) -> dict[str, Any]:
    """The keys of one step; `flags`: in a unit with status flags."""
    fields = list(declared(step))
    defaults = {name: default for name, _, default in fields}
    values = {name: getattr(step, name) for name in defaults}
    return {
        key_name(name, key): _written(key, values[name])
        for name, key, default in fields
        if values[name] != default and values[name] is not None and applies(key, values, defaults, flags)
    }


def _written(key: Key, value: Any) -> Any:
    match key:
        case Word():
            return Hex(value)
        case Candidates():
            return [_candidate(one) for one in value]
        case Causes():
            return {cause: "payload" if word is None else Hex(word) for cause, word in value}
        case Grouping():
            return {value[0]: value[1]}
        case Rules():
            return dict(value)
        case Roundings():
            return value if isinstance(value, str) else dict(value)
        case Widths(for_all=True) if len({bits for _, bits in value}) == 1:
            return value[0][1]
        case Widths():
            return dict(value)
        case _ if isinstance(value, Format):
            return value.name
        case _:
            return list(value) if isinstance(value, tuple) else value


def _candidate(one: Candidate) -> dict[str, Any]:
    keys: dict[str, Any] = {"of": list(one.of), "exponent": "leading" if one.leading else "carried"}
    if one.plus:
        keys["plus"] = one.plus
    return keys if one.least is None else keys | {"least": one.least}


def _k_text(k_index: tuple[int, ...]) -> Any:
    if not k_index:
        return "none"
    if k_index == tuple(range(k_index[0], k_index[-1] + 1)):
        return {"from": k_index[0], "to": k_index[-1]}
    return {"list": list(k_index)}
