"""Circuits fed with operands as arrays of codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.circuit.specification import Circuit, circuit_of
from golden.circuit.words import Word, Words, evaluate
from golden.model.instruction import Instruction

Bits = npt.NDArray[Any]


def packed(ins: Instruction, operands: Mapping[str, Bits], count: int) -> dict[str, Bits]:
    """Operands of dot products as one number each, element 0 lowest."""
    found = {}
    for name, codes in operands.items():
        shape, bits = ins.operand_shapes(matrices=False)[name], ins.code_format(name).bits
        flat = np.broadcast_to(codes, (count, *shape)).reshape(count, -1).astype(object)
        found[name] = sum((flat[:, i] << (i * bits) for i in range(flat.shape[1])), np.zeros(count, object))
    return found


def outputs(ins: Instruction, operands: Mapping[str, Bits], count: int) -> dict[str, list[int]]:
    """What the circuit answers; its facts are held to be true on the way."""
    circuit = circuit_of(ins, Words())
    conditions = [condition for _, condition in circuit.facts + circuit.assumed]
    values = evaluate([*circuit.outputs.values(), *conditions], packed(ins, operands, count))
    for name, condition in circuit.facts + circuit.assumed:
        assert values[condition].all(), f"{ins.name}: {name} does not hold"
    return {name: [int(one) for one in values[word]] for name, word in circuit.outputs.items()}


def read(circuit: Circuit, word: Word, values: Mapping[str, Any]) -> list[int]:
    """The numbers of one word."""
    return [int(one) for one in evaluate([word], values)[word]]
