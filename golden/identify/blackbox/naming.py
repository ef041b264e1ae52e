"""The YAML of a found unit with known names: the instruction of the catalog that it is, or is near; and the
named algorithm of its operations, if their steps are exactly that algorithm with some parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from golden import yamlfile
from golden.catalog.lookup import resolve
from golden.catalog.relatives import relatives
from golden.catalog.unit_files import build_instruction
from golden.catalog.unit_text import unit_text
from golden.errors import SpecError, listed
from golden.files.escape import one_line
from golden.identify.blackbox.candidates import with_word
from golden.identify.blackbox.neighbourhood import settings
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.number.frozen import replace
from golden.program.algorithms import get_algorithm
from golden.program.compiling import steps_of_algorithm
from golden.program.keys import declared
from golden.program.program import OWN_STEPS, OperandFormats, Operation
from golden.program.steps import Step
from golden.program.words import is_integer, step_text

Near = tuple[str, tuple[str, ...]]
Parameters = dict[str, Any]


def with_names(unit: Instruction, text: str, title: str, known: Sequence[str], near: Near | None) -> str:
    """The text with a comment that names the unit, and with named algorithms for its operations if they are
    exact."""
    like = [*known[:1], *([near[0]] if near is not None else [])]
    said = list(_comments(known, near))
    found = _named(unit, resolve(like[0])) if like else None
    if found is not None:
        written = unit_text(found, "dissected", title, editor=False, named=True)
        if written is not None and _is_the_same(written, unit):
            text = written
    return "".join(f"# {one}\n" for one in said) + text


def _comments(known: Sequence[str], near: Near | None) -> Iterator[str]:
    if known:
        shown = 4
        yield f"The answers to all recorded questions are also those of {listed(known, shown)}."
    elif near is not None:
        name, keys = near
        but = f"but for {'; '.join(keys)}" if keys else "in every key that was decided"
        yield one_line(f"It is {name} {but}.")


def _is_the_same(text: str, unit: Instruction) -> bool:
    try:
        again = build_instruction(yamlfile.parse(text))
    except SpecError:
        return False
    one, other = (worded(ins.stateless.program.operations) for ins in (again, unit))
    return [o.arithmetic for o in one] == [o.arithmetic for o in other]


def _named(unit: Instruction, like: Instruction) -> Instruction | None:
    """The unit with a named algorithm for each operation that has one; None if none has."""
    models = {one.algorithm: one for one in like.program.operations if one.algorithm != OWN_STEPS}
    operands = _operands(unit)
    done: dict[object, Operation] = {}
    found = []
    for one in worded(unit.program.operations):
        key = one.steps, len(one.k_index), one.seed_format, one.out_format
        if key not in done:
            done[key] = next(filter(None, (_as(one, model, operands) for model in models.values())), one)
        found.append(replace(one, algorithm=done[key].algorithm, parameters=done[key].parameters))
    if all(one.algorithm == OWN_STEPS for one in found):
        return None
    return replace(unit, program=replace(unit.program, operations=tuple(found)))


def _operands(unit: Instruction) -> OperandFormats:
    a, b, c, d = (unit.formats[name] for name in "abcd")
    scales: dict[str, Format] = {
        name: unit.formats[name] for name in ("scale_a", "scale_b") if name in unit.formats
    }
    return OperandFormats(a, b, c, d, unit.stored_k, {}, scales, scale_block=unit.scale_block)


def _as(one: Operation, model: Operation, operands: OperandFormats) -> Operation | None:
    """An operation with the name of a model's algorithm, and the parameters with which the algorithm has its
    steps. One parameter after the other is set to the value that makes most keys equal."""
    if [step.op for step in one.steps] != [step.op for step in model.steps]:
        return None

    def alike(parameters: Parameters) -> int:
        steps = _steps(model.algorithm, parameters, one, operands)
        return -1 if steps is None else sum(map(_keys_alike, steps, one.steps))

    best = dict(model.parameters)
    rules: Mapping[str, Any] = get_algorithm(model.algorithm).parameters or {}
    for name in best:
        if _steps(model.algorithm, best, one, operands) == one.steps:
            break
        best = max(_with_others(best, name, bool(rules[name].get("optional")), _values(one)), key=alike)
    if _steps(model.algorithm, best, one, operands) != one.steps:
        return None
    for name in list(best):  # what is so by default is not written
        rest = {key: value for key, value in best.items() if key != name}
        if _steps(model.algorithm, rest, one, operands) == one.steps:
            best = rest
    return replace(one, algorithm=model.algorithm, parameters=tuple(best.items()))


def _keys_alike(one: Step, other: Step) -> int:
    return sum(getattr(one, name) == getattr(other, name, None) for name, _, _ in declared(one))


def _with_others(now: Parameters, name: str, optional: bool, values: Sequence[Any]) -> Iterator[Parameters]:
    """The parameters, and variants with one left out or set to another value."""
    yield now
    if optional:
        yield {key: value for key, value in now.items() if key != name}
    yield from (now | {name: value} for value in values if name in now and type(value) is type(now[name]))


def _steps(
    algorithm: str, parameters: Parameters, one: Operation, operands: OperandFormats
) -> tuple[Step, ...] | None:
    try:
        found = steps_of_algorithm(algorithm, parameters, one, operands)
    except SpecError:
        return None
    return tuple(with_word(step, one.out_format) for step in found)


def _values(one: Operation) -> list[Any]:
    """Integers and words of any key of its steps."""
    found: dict[Any, None] = {}
    for step in one.steps:
        for name, _, _ in declared(step):
            value = getattr(step, name)
            pairs = [item for item in value if isinstance(item, tuple)] if isinstance(value, tuple) else []
            found |= dict.fromkeys(bits for item in pairs for bits in item[1:] if isinstance(bits, int))
            if isinstance(value, int | str):
                found[value] = None
    return list(found)


MOST = 6
"""Differences up to which a unit is near another one."""
Alternatives = Mapping[str, Sequence[str]]


def differences(found: Instruction, known: Instruction, alternatives: Alternatives) -> list[str] | None:
    """The keys in which a found unit differs from a known one, a sentence each; None if the two do not add in
    the same operations.

    Args:
        alternatives: values of keys that no question distinguished from the found ones; they are no
            differences.
    """
    changes = _changes(found, known, alternatives)
    return None if changes is None else _in_words(changes, found)


@dataclass(frozen=True)
class _Changes:
    """Keys with other values, inserted steps, and missing steps, a sentence each."""

    keys: list[str]
    new: list[str]
    gone: list[str]

    def __len__(self) -> int:
        return len(self.keys) + len(self.new) + len(self.gone)


def _changes(found: Instruction, known: Instruction, alternatives: Alternatives) -> _Changes | None:
    one, other = found.program.operations, known.program.operations
    if [_frame(o) for o in one] != [_frame(o) for o in other]:
        return None
    now, before = settings(worded(one)), settings(worded(other))
    said = [
        f"{key}: {now[key]} instead of {before[key]}"
        for key in now
        if key in before and now[key] != before[key] and before[key] not in alternatives.get(key, ())
    ]
    steps, old = _named_steps(now), _named_steps(before)
    new = [f"{step}: put in" for step in steps if step not in old and not alternatives.get(step)]
    gone = [f"{step}: left out" for step in old if step not in steps and not alternatives.get(step)]
    return _Changes(said, new, gone)


def _in_words(changes: _Changes, found: Instruction) -> list[str]:
    """A sentence for each change. Inserted together with missing steps are mostly one change that reads as
    two; then the steps of the unit in order instead."""
    if changes.new and changes.gone and len({operation.steps for operation in found.program.operations}) == 1:
        return [*changes.keys, f"its steps, in order: {_in_order(found)}"]
    return [*changes.keys, *changes.new, *changes.gone]


def _in_order(found: Instruction) -> str:
    """The steps of a unit of one kind of operation, in words."""
    integer = is_integer(found.program, found.own_formats)
    words = (step_text(step, integer).rstrip(".") for step in found.program.operations[0].steps)
    return "; ".join(f"({index}) {word}" for index, word in enumerate(words, 1))


def nearest(found: Instruction, alternatives: Alternatives) -> tuple[str, tuple[str, ...]] | None:
    """The instruction of the catalog with the same operands and the fewest differences, and these; None if
    none is near."""
    best: tuple[str, _Changes] | None = None
    for one in relatives(found):
        changes = _changes(found, one.stretched, alternatives) if one.links == 1 else None
        if changes is not None and len(changes) <= MOST and (best is None or len(changes) < len(best[1])):
            best = f"{one.instruction.architecture}:{one.instruction.name}", changes
    return None if best is None else (best[0], tuple(_in_words(best[1], found)))


def worded(operations: Sequence[Operation]) -> list[Operation]:
    """Operations with an explicit word for every NaN: an implicit one is no difference."""
    return [o.with_steps([with_word(step, o.out_format) for step in o.steps]) for o in operations]


def _frame(one: Operation) -> tuple[object, ...]:
    return one.k_index, one.seed, one.addends, one.out_format


def _named_steps(named: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(key.rpartition(": ")[0] for key in named))
