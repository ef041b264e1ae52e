"""Step lists with one parameter of one step changed: every field of every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import golden
from golden import stimuli
from golden.instruction import Instruction
from golden.number.formats import Format, get_format
from golden.number.rounding import MODES
from golden.program.program import Operation, Program, Step

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


def bits_changed(step: Step) -> Iterator[tuple[tuple[str, int], ...]]:
    """Other widths: one bit more or less everywhere, and for each register alone."""
    for delta in (-1, 1):
        yield tuple((name, bits + delta) for name, bits in step.fraction_bits)
        for only in step.of:
            yield tuple((name, bits + delta * (name == only)) for name, bits in step.fraction_bits)


ZERO_TIMES_INFINITY = ("nan", "infinity", "zero")
FLUSHES = ("none", "signed", "positive")
GROUPS = (None, ("contiguous", 2), ("interleaved", 2))


def alternatives(step: Step, out: Format) -> dict[str, Any]:
    """Other values of every field that a step of this kind can have."""
    integer = step.format is not None and not step.format.is_float
    grouped = GROUPS if len(step.of) == 1 or step.op == "fma" else ()
    table: dict[str, dict[str, Any]] = {
        "flush": {"flush": FLUSHES[1:], "of": (("a",), ("b", "c"))},
        "multiply": {
            "normalize": (True, False),
            "overflow_exponent": (None, -20, 8, 128),
            "zero_times_infinity": ZERO_TIMES_INFINITY,
            "format": (get_format("f16"), get_format("f32")) if out.is_float else (),
            "flush": FLUSHES if step.format else (),
            "operation": () if out.is_float else ("and", "xor"),
        },
        "scale": {},
        "special_values": {
            "nan": (None, 0x1234),
            "opposite_infinities": ("nan", "first", "last", "positive", "negative"),
            "of": tuple(step.of[:i] + step.of[i + 1 :] for i in range(len(step.of)) if len(step.of) > 1),
        },
        "align": {
            "rounding": MODES,
            "fraction_bits": tuple(bits_changed(step)),
            "sticky": (True, False),
            "sticky_gap": (2,) if step.sticky else (),
            "floor": (None, -133, -126, -14, 0),
            "window": ((), *(((name, n),) for name in step.of for n in (0, 8, 25, 40))),
            "zeros": ("ignored", "maximum"),
            "shift_limit": (None, 0, 7, 31),
            "left_out": tuple(
                ((step.of[-1], rule),) for rule in ("dropped", "unshifted") if len(step.of) > 1
            ),
            "group": grouped,
        },
        "sum": {
            "rounding": MODES,
            "group": () if step.group is None else GROUPS[1:],
            "of": (step.of[::-1], step.of[:1]),
            **(
                {"exponent": (None, 0), "width": (2, 5, 9), "cancelled": ("keeps_exponent", "zero")}
                if step.order == "exact"
                else {"flush": FLUSHES, "order": ("tree", "sequential"), "nan": (None, 0x1234)}
            ),
        },
        "normalize": {
            "rounding": MODES,
            "fraction_bits": tuple(bits_changed(step)),
            "min_exponent": (None, -133, 0),
        },
        "fma": {
            "rounding": MODES,
            "flush": FLUSHES,
            "start": ("c", "zero", "product"),
            "zero_times_infinity": ZERO_TIMES_INFINITY,
            "nan": (0x1234,),
            "nan_order": ((), ("a",), ("c", "b")) if step.nan_order else (),
            "group": grouped,
        },
        "round": {
            "rounding": MODES,
            "overflow": ("wrap", "saturate") if integer else ("infinity", "largest", "ieee"),
            "zero": ("positive", "signed", "signed_underflow"),
            "flush": FLUSHES,
            "nan": (None, 0x1234),
            "subnormal_carry": () if integer else ("lost", "kept"),
            "sticky_gap": () if integer else (0, 1, 3),
            "result_fraction_bits": () if integer else (None, 1, out.fraction_bits - 1),
        },
    }
    return table[step.op]


def legal(steps: tuple[Step, ...], operation: Operation) -> bool:
    """Whether every register still has the terms that the step behind it expects (one value for d)."""
    k = len(operation.k_index)
    counts = {"a": k, "b": k, "c": 1, "addends": len(operation.addends), "scales": k}
    for step in steps:
        members = k if step.op in ("multiply", "fma") else sum(counts.get(name, 0) for name in step.of)
        if step.group is not None and step.group[1] > members:
            return False
        groups = (
            1
            if step.group is None
            else step.group[1]
            if step.group[0] == "interleaved"
            else -(-members // step.group[1])
        )
        if step.to:
            counts[step.to] = members if step.op in ("multiply", "round") else groups
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
