"""The one type of all faults that the diagnosis tries.

A mutation changes the program (what the schema of units can express), the codes at the ports, or one signal
of the data path (golden/identify/diagnose/datapath). Mutations of all three kinds can be applied together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from golden.identify.diagnose import datapath
from golden.model.instruction import Instruction
from golden.program.program import Operation, Program, S
from golden.program.signature import Bits, Operands
from golden.program.steps import Step

Apply = Callable[[Instruction], Instruction | None]
Rewire = Callable[[Operands], Operands]
Rework = Callable[[Bits], Bits]
Answer = Callable[[Instruction, Operands], Bits]
Rewrite = Callable[[Step, Operation], "Step | tuple[Step, ...]"]
Rule = Callable[..., None]
"""Changes the signals of one place, whose class golden/identify/diagnose/datapath/signals.py has."""

CONTEXT = ("clear", "held", "load", "late", "given_a", "given_b", "given_c", "answered")
"""Names of the context of operands: for a unit that keeps its accumulator the keys of `context_of` in
accumulator.py, for any other its answer to the vector before."""
SIGNAL_WEIGHT = 1.1
"""Weight of a changed signal: a change that the schema can express (1.0) is the likelier explanation."""


@dataclass(frozen=True)
class Mutation:
    """A fault that a unit may have, with its effect.

    Attributes:
        slug: its stable name; docs/diagnosis.md lists all.
        text: what the unit does, in words.
        weight: of mutations that explain equally much, the one with the lower weight is the likelier.
        program: the instruction with another program; None if the change has no meaning there.
        operands, result: the codes at the ports, before and after the arithmetic.
        kept: the codes of results, from the unit's own and its answers to the vectors before.
        answer: replaces all arithmetic.
        signals: (place, rule) of each changed signal of the data path, one of datapath.PLACES each.
        of: the kinds of steps whose signals change; none: all.
        in_order: whether it uses the vectors before or after, by one.
        symptom: whether it states what the results look like, and no cause of it.
        does: equal for mutations that do the same under several names.
    """

    slug: str
    text: str
    weight: float = 1.0
    program: Apply | None = None
    operands: Rewire | None = None
    result: Rework | None = None
    kept: Callable[[Bits, Bits], Bits] | None = None
    answer: Answer | None = None
    signals: tuple[tuple[str, Rule], ...] = ()
    of: tuple[type[Step], ...] = ()
    in_order: bool = False
    symptom: bool = False
    does: Hashable = None


def run(ins: Instruction, mutations: Sequence[Mutation], operands: Operands) -> Bits:
    """The answers of a unit that computes `ins` with these mutations of its ports and signals; mutations of
    the program are in `ins` already."""
    for one in mutations:
        operands = one.operands(operands) if one.operands else operands
    own = {name: codes for name, codes in operands.items() if name not in CONTEXT}
    inside = [one for one in mutations if one.signals]
    answer = next((one.answer for one in mutations if one.answer), None)
    if answer is not None:
        codes = answer(ins, own)
    else:
        codes = datapath.results(ins, inside, own) if inside else ins.dot(**own)
    for one in mutations:
        codes = one.result(codes) if one.result else codes
        codes = one.kept(codes, operands["answered"]) if one.kept else codes
    return codes


def distinct(found: Iterable[Mutation]) -> list[Mutation]:
    """The first of each set of mutations with the same effect."""
    kept: dict[Hashable, Mutation] = {}
    for one in found:
        kept.setdefault(one.slug if one.does is None else one.does, one)
    return list(kept.values())


# Changes of the program -------------------------------------------------------------------------------------


def with_operations(ins: Instruction, operations: Iterable[Operation]) -> Instruction | None:
    """The instruction with other operations; None if they are unchanged, or incomplete: removing a sum can
    leave a unit without a step that writes the result."""
    new = tuple(operations)
    assert ins.modes is None, "a hypothesis is of one mode"
    if new == ins.program.operations or not all(map(_is_whole, new)):
        return None
    return replace(ins, program=Program(new))


def _is_whole(operation: Operation) -> bool:
    """Whether every register is written before it is read, and the last step alone writes the result."""
    written = {"a", "b", "c", "scales", "addends"}
    for step in operation.steps:
        if "d" in written or not written.issuperset(step.of):
            return False
        written.add(step.to)
    return "d" in written


def rewrite(rule: Rewrite) -> Apply:
    """Applies a rule to every step of every operation; the rule returns one step, several, or none."""

    def apply(ins: Instruction) -> Instruction | None:
        operations = []
        for operation in ins.program.operations:
            steps: list[Step] = []
            for step in operation.steps:
                new = rule(step, operation)
                steps += new if isinstance(new, tuple) else (new,)
            operations.append(operation.with_steps(steps))
        return with_operations(ins, operations)

    return apply


def fields(*kinds: type[Step], when: Callable[[Any], bool] = lambda step: True, **values: Any) -> Apply:
    """Sets fields of the steps of some kinds (none: all). A value may be a function of the step."""

    def rule(step: Step, _: Operation) -> Step:
        if (kinds and not isinstance(step, kinds)) or not when(step):
            return step
        new = {name: value(step) if callable(value) else value for name, value in values.items()}
        return replace(step, **new)

    return rewrite(rule)


def without(kind: type[Step]) -> Apply:
    """Removes the steps of a kind."""
    return rewrite(lambda step, _: () if isinstance(step, kind) else step)


def change(slug: str, text: str, apply: Apply, weight: float = 1.0) -> Mutation:
    """A mutation of the program."""
    return Mutation(slug, text, weight, program=apply)


def steps_of(ins: Instruction, kind: type[S]) -> list[S]:
    """The different steps of one kind, in order."""
    return list(dict.fromkeys(ins.program.steps_of(kind)))


def kinds_of(ins: Instruction, *wanted: type[Step]) -> list[type[Step]]:
    """The kinds of `wanted` steps that the program has."""
    return [kind for kind in wanted if ins.program.steps_of(kind)]


# Changes of signals -----------------------------------------------------------------------------------------


def sets(**values: Any) -> Rule:
    """A rule that sets signals. A value may be a function of all signals of the place."""

    def rule(signals: Any) -> None:
        new = {name: value(signals) if callable(value) else value for name, value in values.items()}
        for name, value in new.items():
            setattr(signals, name, value)

    return rule


def signal(
    place: str, slug: str, text: str, rule: Rule, weight: float = SIGNAL_WEIGHT, **more: Any
) -> Mutation:
    """A mutation of the signals at one place of the data path; `more`: further fields of Mutation."""
    return Mutation(slug, text, weight, signals=((place, rule), *more.pop("also", ())), **more)


def in_each(
    kinds: list[type[Step]], maker: Callable[[type[Step]], Iterable[Mutation]], names: dict[type[Step], str]
) -> Iterator[Mutation]:
    """The mutations that a maker produces for one kind of step, for each of these steps. A suffix
    distinguishes the slug of the same mutation in different steps, and `names` describes the step in
    words."""
    for kind in kinds:
        place = f"-in-{kind.__name__.lower()}" if len(kinds) > 1 else ""
        for one in maker(kind):
            yield replace(one, slug=f"{one.slug}{place}", text=f"{names[kind]} {one.text}", of=(kind,))
