"""Step lists with one parameter of one step changed: every field of every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import golden
from golden import stimuli
from golden.model.instruction import Instruction
from golden.number.formats import Format, get_format
from golden.number.rounding import FLOAT_OVERFLOWS, INTEGER_OVERFLOWS, MODES
from golden.program.keys import (
    Candidate,
    Candidates,
    Causes,
    Choice,
    Flag,
    FormatName,
    Grouping,
    Integer,
    Key,
    Names,
    Registers,
    Roundings,
    Rules,
    Target,
    Widths,
    Word,
    applies,
    declared,
)
from golden.program.program import Operation, Program
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    SpecialValues,
    Step,
    Sum,
    format_of,
    grouping,
)

ORDER = ("a", "b", "c", "metadata", "scale_a", "scale_b")
COUNT, BY_REFERENCE = 6, 3


@cache
def step_lists() -> dict[str, Instruction]:
    """An instruction of small k for every different list of steps that is shipped."""
    found: dict[Any, Instruction] = {}
    for architecture in golden.architectures():
        for ins in golden.instructions(architecture):
            key = (
                tuple(dict.fromkeys(operation.steps for operation in ins.program.operations)),
                bool(ins.scale_block),
            )
            if key not in found or ins.k < found[key].k:
                found[key] = ins
    return {
        f"{i:02} {ins.architecture} {'+'.join(ins.program.algorithms)}": ins
        for i, ins in enumerate(found.values())
    }


INTEGERS: dict[str, tuple[int, ...]] = {
    "overflow_exponent": (-20, 8, 128),
    "power": (-15, 0, 3),
    "sticky_gap": (0, 2, 3),
    "shift_limit": (0, 7, 31),
    "floor": (-133, -126, -14, 0),
    "exponent": (0,),
    "width": (2, 5, 9),
    "min_exponent": (-133, 0),
    "random_bits": (3, 16),
    "random": (1, 5),
    "result_fraction_bits": (1, 6),
    "underflow_exponent": (-127, -14, 0, 20),
    "first": (0, 1, 4),
    "bits": (1, 4, 6),
    "places": (10, 22),
    "value": (1, -2),
    "by": (-1, 3),
}
"""Values for each field that is an integer; one that is new has to join."""
MIXED = (("nearest_up", "nearest_away"), ("toward_zero", "down"), ("nearest_odd", "toward_zero"))
"""Roundings of two registers of one alignment."""
GROUPS = (("contiguous", 2), ("interleaved", 2))


def bits_changed(step: Align | Normalize) -> Iterator[tuple[tuple[str, int], ...]]:
    """Other widths: one bit more or less everywhere, and for each register alone."""
    for delta in (-1, 1):
        yield tuple((name, bits + delta) for name, bits in step.fraction_bits)
        for only in step.of:
            yield tuple((name, bits + delta * (name == only)) for name, bits in step.fraction_bits)


def alternatives(step: Step, out: Format) -> dict[str, Any]:
    """Other values of every field that a step of this kind can have."""
    values = {name: getattr(step, name) for name, *_ in declared(step)}
    defaults = {name: default for name, _, default in declared(step)}
    return {
        name: tuple(one for one in _values(step, name, key, out) if _sound(step, name, one, out))
        for name, key, _ in declared(step)
        if applies(key, values, defaults) and not isinstance(key, Target)
    }


def _values(step: Step, name: str, key: Key, out: Format) -> Iterable[Any]:
    match key:
        case Registers():
            return _registers(step)
        case Choice(words=words):
            return words
        case Flag():
            return (True, False)
        case Integer():
            return (*([None] if getattr(type(step), name, 0) is None else []), *INTEGERS[name])
        case Widths() if name == "fraction_bits":
            return tuple(bits_changed(step))  # type: ignore[arg-type]
        case Widths() if name == "spared":
            return ((), *(((register, n),) for register in step.of for n in (-140, 0)))
        case Widths():
            return ((), *(((register, n),) for register in step.of for n in (0, 8, 25, 40)))
        case Roundings():
            mixed = [tuple(zip(step.of, pair, strict=True)) for pair in MIXED if len(step.of) == 2]
            return (*MODES, *mixed)
        case Rules(vocabulary=vocabulary):
            return tuple(((step.of[-1], word),) for word in vocabulary.words if len(step.of) > 1)
        case Grouping():
            return GROUPS if len(step.of) == 1 or isinstance(step, Fma) else ()
        case FormatName():
            return (
                (get_format("f16"), get_format("f32")) if isinstance(step, Multiply) and out.is_float else ()
            )
        case Word():
            fmt = format_of(step) or out
            return (None, fmt.nan | 1 if fmt.nan is not None and fmt.specials == "ieee" else 0x12)
        case Candidates():
            some = Candidate(step.of[:1], True, -2, None), Candidate(step.of[-1:], False, 1, -20)
            return ((), some, some[:1])
        case Causes(causes=causes):
            return ((), (("factor", 5), ("c", 7)), *(((cause, 9),) for cause in causes))
        case Names(allowed=allowed):
            return ((), allowed[:1], allowed[:0:-1]) if getattr(step, name) else ()
        case _:
            raise AssertionError(f"no values for {type(key).__name__}")


def _registers(step: Step) -> Iterable[tuple[str, ...]]:
    match step:
        case Flush():
            return (("a",), ("b", "c"))
        case HiddenBit():
            return (("a",), ("a", "b"))
        case SpecialValues() if len(step.of) > 1:
            return tuple(step.of[:i] + step.of[i + 1 :] for i in range(len(step.of)))
        case Sum() | Additions():
            return (step.of[::-1], step.of[:1])
        case _:
            return ()


def _sound(step: Step, name: str, value: Any, out: Format) -> bool:
    """Whether the loader would take the step with this value."""
    fmt = format_of(step)
    integer = fmt is not None and not fmt.is_float
    match step:
        case Multiply():
            if name == "operation":
                return value == "product" or not out.is_float
            return name != "zero_times_infinity" or step.operation == "product"
        case Align():
            if name == "exponent":
                return False  # needs a register that it was made for
            given = step.maximum or step.exponent is not None
            if given and name in ("floor", "zeros", "left_out", "shift_limit"):
                return False
            if name == "maximum" and value:
                if {register for one in value for register in one.of} < set(step.of):
                    return False  # what no candidate names could lie beyond what the core holds
                return step.floor is None and not step.left_out and step.shift_limit is None
            return step.cut != "dropped" or not (
                (name == "sticky_gap" and value) or value == "sticky" != name
            )
        case Sum() if name == "exponent" and value is not None and out.name == "bf16":
            return False  # bf16 products lie further apart than the core holds
        case Sum(group=None) | Additions(group=None):
            return name != "group" and not (name == "overflow" and value == "saturate" and out.is_float)
        case Additions():
            return not (name == "overflow" and value == "saturate" and not integer)
        case Fma():
            return not (name == "nan" and value is None)
        case Round():
            if name == "overflow":
                return value in (INTEGER_OVERFLOWS if integer else FLOAT_OVERFLOWS)
            if name == "random_bits" and value is not None:
                return step.rounding == "toward_zero"
            return not integer or name not in (
                "subnormal_carry",
                "sticky_gap",
                "sticky",
                "result_fraction_bits",
            )
        case _:
            return True


def legal(steps: tuple[Step, ...], operation: Operation) -> bool:
    """Whether every register still has the terms that the step behind it expects (one value for d)."""
    k = len(operation.k_index)
    counts = {"a": k, "b": k, "c": 1, "addends": len(operation.addends), "scales": k}
    for step in steps:
        pairs = isinstance(step, Multiply | Fma)
        members = k if pairs else sum(counts.get(name, 0) for name in step.of)
        group = grouping(step)
        if group is not None and group[1] > members:
            return False
        groups = 1 if group is None else group[1] if group[0] == "interleaved" else -(-members // group[1])
        if step.to:
            counts[step.to] = members if isinstance(step, Multiply | Round) else groups
    return counts["d"] == 1


def mutants(ins: Instruction) -> Iterator[tuple[str, Instruction]]:
    """The instruction with one field of one step of its operations changed; name and parameters of the
    algorithm stay."""
    for index, step in enumerate(ins.program.operations[0].steps):
        for field, values in alternatives(step, ins.program.operations[0].out_format).items():
            for value in values:
                changed = [replace_step(o, index, step, field, value) for o in ins.program.operations]
                if tuple(changed) != ins.program.operations and all(legal(o.steps, o) for o in changed):
                    yield (
                        f"{step.op} {index}: {field} = {value}",
                        replace(ins, program=Program(tuple(changed))),
                    )


def replace_step(operation: Operation, index: int, step: Step, field: str, value: Any) -> Operation:
    if index >= len(operation.steps) or operation.steps[index] != step:
        return operation
    steps = list(operation.steps)
    steps[index] = replace(step, **{field: value})
    return replace(operation, steps=tuple(steps))


def operands_for(ins: Instruction, seed: int) -> dict[str, Any]:
    """Random and structured operands, a few of each kind."""
    parts = [
        stimuli.generate(ins, kind, COUNT, np.random.default_rng([seed, i]))
        for i, kind in enumerate(stimuli.KINDS)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
