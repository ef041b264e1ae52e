"""Faults of the operand `mode`: exchanged, stuck or inverted bits, or bits of another vector; and modes in
words.

    for one in rewired_modes(ins, operands, actual, equal):
        print(one.text)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from golden.errors import OperandError, listed
from golden.identify.diagnose.mutations.mutation import Mutation
from golden.identify.diagnose.mutations.ports import LATE, skews
from golden.identify.diagnose.policy import SEARCH
from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands


def rewired_modes(
    ins: Instruction, operands: Operands, actual: Bits, equal: Callable[[Bits], Bits]
) -> list[Mutation]:
    """Faults of `mode` that explain every result, and operands of another vector that do: between the vectors
    of one mode others stand.

    Args:
        ins: a unit with modes. operands: as `ins.dot` takes them, (n, ...).
        equal: which of the codes (n,) that it is given are the unit's results.
    """
    assert len(actual) == len(operands["mode"])
    found = [*mode_ports(ins), *(mode_skews(ins) if len(actual) >= SEARCH.ordered else [])]
    return [one for one in found if _explains(ins, one, operands, equal)]


def _explains(ins: Instruction, wire: Mutation, operands: Operands, equal: Callable[[Bits], Bits]) -> bool:
    assert wire.operands is not None
    try:
        right = equal(ins.dot(**wire.operands(operands)))
        return bool((right[1:-1] if wire.in_order else right).all())
    except OperandError:  # it leads to a code that the unit does not use
        return False


def mode_ports(ins: Instruction) -> Iterator[Mutation]:
    """Every fault of `mode` that is tried."""
    assert ins.modes is not None
    bits = _bit_names(ins)
    for i, one in enumerate(bits):
        for j, other in enumerate(bits[:i]):
            text = f"the bits of mode for {other} and {one} exchanged"
            yield _on_mode(f"mode-bits-{j}-and-{i}-swapped", text, lambda m, i=i, j=j: _swapped(m, i, j))
        for level, word in ((0, "low"), (1, "high")):
            text = f"the bit of mode for {one} always {level}"
            yield _on_mode(f"mode-bit-{i}-{word}", text, lambda m, i=i, n=level: _stuck(m, i, n))
        yield _on_mode(
            f"mode-bit-{i}-inverted",
            f"the bit of mode for {one} inverted",
            lambda m, i=i: m ^ m.dtype.type(1 << i),
        )


def mode_skews(ins: Instruction) -> list[Mutation]:
    """Operands of the vector before or after, `mode` or one field of it among them."""
    if ins.modes is None:
        return skews(ins)
    found, first = skews(ins), 0
    masks = {"": ("mode", (1 << ins.modes.bits) - 1)}
    for field in ins.modes.fields if len(ins.modes.fields) > 1 else ():
        masks[f"-{field.name}"] = f"{field.name} of mode", ((1 << field.bits) - 1) << first
        first += field.bits
    for which, (what, mask) in masks.items():
        for late, word in LATE:
            rewire = _of_neighbour(mask, late)
            text = f"{what} {word} by one vector"
            found.append(Mutation(f"mode{which}-{word}-by-one", text, operands=rewire, in_order=True))
    return found


def _of_neighbour(mask: int, late: int) -> Callable[[Operands], Operands]:
    def rewire(operands: Operands) -> Operands:
        mode = operands["mode"]
        bits = mode.dtype.type(mask)
        return operands | {"mode": (mode & ~bits) | (np.roll(mode, late, axis=0) & bits)}

    return rewire


def modes_in_words(failing: list[str], modes: list[str]) -> str:
    """The modes in which results differ: by their common fields, if these describe them exactly.

    failing, modes: in the notation of `Instruction.by_mode`, "rm down, ftz none"; the failing ones, and all.
    """
    if len(failing) == len(modes):
        return f"results differ in all {len(modes)} modes"
    said = f"results differ in {len(failing)} of {len(modes)} modes"
    own = [list(dict.fromkeys(column)) for column in _columns(failing)]
    alike = [
        mode for mode in modes if all(v in column for v, column in zip(mode.split(", "), own, strict=True))
    ]
    if len(alike) == len(failing) > 1:
        whole = [set(column) for column in _columns(modes)]
        fields = [" or ".join(few) for few, every in zip(own, whole, strict=True) if set(few) != every]
        return f"{said}, those with {', '.join(fields)}"
    shown = 8  # modes that the sentence names
    return f"{said} ({listed(failing, shown, '; ')})"


def _columns(modes: list[str]) -> list[tuple[str, ...]]:
    """The fields of modes, field by field."""
    return list(zip(*(mode.split(", ") for mode in modes), strict=True))


def _on_mode(slug: str, text: str, remap: Callable[..., Bits]) -> Mutation:
    return Mutation(slug, text, operands=lambda operands: operands | {"mode": remap(operands["mode"])})


def _bit_names(ins: Instruction) -> list[str]:
    """The meaning of each bit of `mode`."""
    assert ins.modes is not None
    return [
        field.name if field.bits == 1 else f"{field.name}[{bit}]"
        for field in ins.modes.fields
        for bit in range(field.bits)
    ]


def _swapped(mode: Bits, i: int, j: int) -> Bits:
    differ = (mode >> mode.dtype.type(i) ^ mode >> mode.dtype.type(j)) & mode.dtype.type(1)
    return np.asarray(mode ^ (differ << mode.dtype.type(i) | differ << mode.dtype.type(j)))


def _stuck(mode: Bits, bit: int, level: int) -> Bits:
    mask = mode.dtype.type(1 << bit)
    return np.asarray(mode | mask if level else mode & ~mask)
