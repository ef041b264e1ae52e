"""Dissects programs of the catalog as black boxes, and holds what is found against fresh operands.

    .venv/bin/python bench/dissect_catalog.py --each 32500 --out table.md

One unit for each class: instructions that differ in the width of a, the format of d, the algorithms and their
widths, sparsity, scales, and whether K is above 16. A box is a function: the search gets formats and K alone.
The seconds are CPU time of one thread of the search and of the box together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import golden
from golden import stimuli
from golden.files import output
from golden.instruction import Instruction
from golden.unit import FunctionUnit

SEED = 5


def distinct() -> list[Instruction]:
    """One instruction for each distinct program with its operands."""
    seen: dict[object, Instruction] = {}
    for architecture in golden.architectures():
        for ins in golden.instructions(architecture):
            operands = (ins.k, ins.scale_block, ins.pattern, tuple(ins.own_formats.items()))
            seen.setdefault((operands, tuple(o.arithmetic for o in ins.program.operations)), ins)
    return list(seen.values())


def classes(units: list[Instruction]) -> list[Instruction]:
    """The first of each class."""
    seen: dict[object, Instruction] = {}
    for ins in units:
        steps = tuple(
            (o.algorithm, dict(o.parameters).get("fraction_bits")) for o in ins.program.operations[:3]
        )
        shape = (ins.formats["a"].bits, ins.formats["d"], ins.sparse, bool(ins.scale_block))
        seen.setdefault((*shape, steps, ins.stored_k > 16), ins)
    return list(seen.values())


def wrong(ins: Instruction, found: Instruction, each: int) -> int:
    """Fresh dot products that differ: `each` of every kind, aimed at the true program."""
    count = 0
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, each, np.random.default_rng([SEED, index]))
        count += int((ins.dot(**operands) != found.dot(**operands)).sum())
    return count


def rows(units: list[Instruction], each: int, seconds: float, asks: int) -> Iterator[str]:
    """A row of the table for each unit."""
    for ins in units:
        before = time.process_time()
        found = golden.dissect(FunctionUnit.like(ins, ins.dot), seconds=seconds, asks=asks)
        spent = time.process_time() - before
        fresh = "" if found.instruction is None else f"{wrong(ins, found.instruction, each):,}"
        name, told = f"{ins.architecture}:{ins.name}", f"{found.wrong:,} of {found.compared:,}"
        yield f"| {name} | {told} | {fresh} | {spent:.1f} |"


def main() -> None:
    """Prints the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=1000, help="fresh operands of each kind")
    parser.add_argument("--seconds", type=float, default=120, help="for each dissection")
    parser.add_argument("--asks", type=int, default=150_000, help="for each dissection")
    parser.add_argument("--all", action="store_true", help="every distinct program, not one of each class")
    parser.add_argument("--match", default="", help="only names that hold this text")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    units = distinct() if given.all else classes(distinct())
    units = [ins for ins in units if given.match in f"{ins.architecture}:{ins.name}"]
    fresh = given.each * len(stimuli.KINDS)
    lines = [
        f"| Instruction | Differ while asked | Of {fresh:,} fresh ones | CPU s |",
        "| --- | ---: | ---: | ---: |",
    ]
    print("\n".join(lines), flush=True)
    for row in rows(units, given.each, given.seconds, given.asks):
        lines.append(row)
        print(row, flush=True)
    if given.out is not None:
        output.write_text(given.out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
