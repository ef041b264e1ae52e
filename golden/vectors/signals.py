"""The intermediate values of a vector, for a designer's debugging:
what every register of the datapath should hold.

They come from the reference model step by step (golden/model/reference.py): significands and exponents of the
products, the largest exponent, aligned addends with their shift and the bits cut off, the sum, the value
before rounding. A value is (-1)**sign * significand * 2**(exponent - fraction_bits).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from golden import stimuli
from golden.model.instruction import Instruction
from golden.model.reference import Cut, Event
from golden.number.formats import Kind, Number
from golden.vectors.vectorset import VectorSet

_EARLY = "special_values"
"""The one step that may write the result before the last one does."""


def of(ins: Instruction, operands: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of one dot product.

    Returns:
        For each executed step: `operation` (its number in the program), `step` (its name), `max_exponents`
        (of each alignment), `registers` written, each a list of numbers (`kind`, sign, significand, exponent,
        fraction_bits; after an alignment also `shift`, the right shift maximum - e, and `lost`, the magnitude
        of the bits cut off), and `code`, the result, in its last step.
    """
    return [_step(event) for event in ins.trace(**operands).events]


def _step(event: Event) -> dict[str, Any]:
    cuts = event.cuts or {}
    registers = {
        name: [
            _number(n, cut) for n, cut in zip(numbers, cuts.get(name, (None,) * len(numbers)), strict=True)
        ]
        for name, numbers in event.written.items()
    }
    step: dict[str, Any] = {"operation": event.operation, "step": event.step.op}
    if event.max_exponents:
        step["max_exponents"] = list(event.max_exponents)
    return step | {"registers": registers} | ({} if event.code is None else {"code": event.code})


def _number(number: Number, cut: Cut | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": number.kind.name.lower(), "sign": number.sign}
    if number.kind < Kind.INFINITY:
        fields |= {
            "significand": number.significand,
            "exponent": number.exponent,
            "fraction_bits": number.fraction_bits,
        }
    return fields if cut is None else fields | {"shift": cut.shift, "lost": cut.lost}


def rows(vectors: VectorSet) -> Iterator[list[dict[str, Any]]]:
    """The steps of every vector of a set of level "dot"."""
    ins, operands = vectors.instruction.stateless, vectors.resolved()
    for index in range(len(vectors)):
        yield of(ins, {name: codes[index] for name, codes in operands.items()})


def columns(ins: Instruction) -> tuple[str, ...]:
    """Column names of the signals:
    operation.step.register[i].value, the same for every vector of the instruction.

    Ordinary operands run every step; operands with special values end a program's operations early,
    in that step.
    """
    found: dict[str, Any] = {}
    ins = ins.stateless
    for kind in ("narrow", "alignment_edge"):
        drawn = stimuli.generate(ins, kind, 2, np.random.default_rng(1))
        for index in range(2):
            steps = of(ins, {name: codes[index] for name, codes in drawn.items()})
            early = [step | {"code": 0} if step["step"] == _EARLY else step for step in steps]
            found |= flat(early)
    return tuple(found)


def flat(steps: list[dict[str, Any]]) -> dict[str, int]:
    """The steps of one vector as column name to value, steps numbered in their operation; infinities and
    NaNs: only a sign."""
    values: dict[str, int] = {}
    operations = [step["operation"] for step in steps]
    for index, step in enumerate(steps):
        prefix = f"{step['operation']}.{index - operations.index(step['operation'])}_{step['step']}"
        values |= {
            f"{prefix}.max_exponent[{i}]": e
            for i, e in enumerate(step.get("max_exponents", ()))
            if e is not None
        }
        for name, numbers in step["registers"].items():
            for i, number in enumerate(numbers):
                values |= {
                    f"{prefix}.{name}[{i}].{key}": value for key, value in number.items() if key != "kind"
                }
        if "code" in step:
            values[f"{prefix}.code"] = step["code"]
    return values


def csv_tail(steps: list[dict[str, Any]], names: tuple[str, ...]) -> bytes:
    """The signals of one vector as CSV cells after a comma;
    empty where the step did not run (special values)."""
    values = flat(steps)
    return ("," + ",".join(str(values.get(name, "")) for name in names)).encode()


def json_tail(steps: list[dict[str, Any]]) -> bytes:
    """The signals of one vector as the member "signals" of a JSON object."""
    return f', "signals": {json.dumps(steps)}'.encode()
