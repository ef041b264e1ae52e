"""A program in a few words: its algorithms, the products of each operation, and the parameters in which
two programs differ."""

from __future__ import annotations

from itertools import groupby

from golden.explain.specification import index_text
from golden.model.instruction import Instruction
from golden.program.algorithms import get_algorithm
from golden.program.program import OWN_STEPS, Operation
from golden.program.steps import Additions, Fma

LABELS = {
    "fraction_bits": "F",
    "exponent_floor": "floor",
    "result_fraction_bits": "fraction bits of the result",
    "dot_fraction_bits": "F2",
    "sum_fraction_bits": "sum bits",
    "c_window": "c window",
    "group": "group",
    "product_overflow": "products overflow at 2^",
    "operation": "operation",
    "overflow": "overflow",
}
"""Parameters of spec/algorithms that tables show, and what they are called there."""


def program_text(ins: Instruction) -> str:
    """The operations of a program: "FDA", "2 x FDA of 8", "FDA of 8 from zero, then FDA of 8,
    then ieee add"."""
    operations = ins.program.operations
    if len(operations) == 1:
        return (
            f"{algorithm_name(operations[0])} of {len(operations[0].k_index)}"
            if ins.sparse
            else algorithm_name(operations[0])
        )
    runs = [
        (name, len(list(run)))
        for name, run in groupby(_operation_text(operation) for operation in operations)
    ]
    return ", then ".join(name if count == 1 else f"{count} x {name}" for name, count in runs)


def _operation_text(operation: Operation) -> str:
    if not operation.k_index:
        return algorithm_name(operation)
    seed = f" from {operation.seed}" if operation.seed == "zero" else ""
    first, last = min(operation.k_index), max(operation.k_index)
    whole = last - first + 1 == len(operation.k_index)
    places = "" if whole else f" (k = {index_text(operation.k_index[:4])}, ..)"
    return f"{algorithm_name(operation)} of {len(operation.k_index)}{places}{seed}"


def algorithm_name(operation: Operation) -> str:
    """The name that the papers use; others, and steps that an architecture's file writes out, in words."""
    if operation.algorithm == OWN_STEPS:
        chain, additions = operation.steps_of(Fma), operation.steps_of(Additions)
        return "fma chain" if chain else "additions" if additions else "steps of its own"
    algorithm = get_algorithm(operation.algorithm)
    return (
        algorithm.name.upper()
        if "_" not in algorithm.name and algorithm.aliases
        else algorithm.name.replace("_", " ")
    )


def summing(ins: Instruction) -> Operation:
    """The first operation that takes products: its parameters are the sum's."""
    return next(
        operation
        for operation in ins.program.operations
        if operation.k_index and operation.algorithm != "convert"
    )


def changed_parameters(old: Instruction, new: Instruction) -> list[tuple[str, object, object]]:
    """(name, old value, new value) of the parameters of both sums that differ; none where the sums are
    different algorithms."""
    before, after = summing(old), summing(new)
    if before.algorithm != after.algorithm:
        return []
    first, second = _parameters(before), _parameters(after)
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return [(name, first.get(name), second.get(name)) for name in names]


def _parameters(operation: Operation) -> dict[str, object]:
    """The parameters; where the result has the bits of its format, their number stands for "none"."""
    values: dict[str, object] = dict(operation.parameters)
    if values.get("result_fraction_bits", 0) is None or "result_fraction_bits" not in values:
        values["result_fraction_bits"] = operation.out_format.fraction_bits
    return values


def value_text(value: object) -> str:
    """A parameter's value: words of NaNs in hex."""
    if value is None:
        return "none"
    return f"{value:#x}" if isinstance(value, int) and value > 0xFFFF else str(value)
