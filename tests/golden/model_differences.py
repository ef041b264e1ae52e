"""Where the models of one unit differ on random operands: reference, interpreter, fast form, matrices."""

from __future__ import annotations

import numpy as np
from random_operands import Bits, Operands, as_dots, draw_dots, draw_matrices

from golden.model.instruction import Instruction

ORDER = ("a", "b", "c", "metadata", "scale_a", "scale_b")


def general(ins: Instruction, operands: Operands, matrices: bool = False) -> Bits:
    run = ins.engine.matrices if matrices else ins.engine.dots
    return run(*(operands.get(name) for name in ORDER), general=True)


def shown(operands: Operands, i: int) -> str:
    return ", ".join(
        f"{name}: {' '.join(f'{int(x):x}' for x in np.atleast_1d(array[i]))}"
        for name, array in operands.items()
    )


def differences(ins: Instruction, count: int, seed: int) -> list[str]:
    """Every way in which the models of one unit disagree on random operands, with one example each."""
    rng = np.random.default_rng(seed)
    operands = draw_dots(ins, count, rng)
    dots = [{name: array[i] for name, array in operands.items()} for i in range(count)]
    wanted = np.array([ins.reference_dot(**dot) for dot in dots], dtype=np.uint64)
    found = []
    for what, got in (
        ("general", general(ins, operands)),
        ("dot", ins.dot(**operands)),
    ):
        wrong = np.flatnonzero(got != wanted)
        if wrong.size:
            i = int(wrong[0])
            found.append(
                f"{what} {int(got[i]):x}, reference {int(wanted[i]):x} ({wrong.size} wrong) "
                f"for {shown(operands, i)}"
            )
    many = draw_dots(ins, 16 * count + 1, rng)
    slow, got = general(ins, many), ins.dot(**many)
    wrong = np.flatnonzero(got != slow)
    if wrong.size:
        first = int(wrong[0])
        found.append(f"dot {int(got[first]):x}, general {int(slow[first]):x} for {shown(many, first)}")
    blocks = draw_matrices(ins, 2, rng)
    product, single = ins(**blocks), general(ins, as_dots(blocks))
    if not np.array_equal(product, single):
        found.append(f"matrices differ from dots at {np.argwhere(product != single)[:4].tolist()}")
    if not np.array_equal(general(ins, blocks, matrices=True), single):
        found.append("general matrices differ from general dots")
    return found
