"""Dissects programs of the catalog as black boxes, and holds what is found against fresh operands.

    .venv/bin/python campaigns/dissect_catalog.py --each 32500 --out table.md

    .venv/bin/python campaigns/dissect_catalog.py --gpu hopper --all --jobs 16 --out dissected.md

The second asks the GPU in this machine, nothing else. One unit for each class: instructions that differ in
the width of a, the format of d, the algorithms and their widths, sparsity, scales, and whether K is above 16;
`--all`: every distinct program. `--undecided N`: the changes of one key that are called undecided are held
against what was found, on N operands of each kind aimed at either: none should show a difference.

A box is a function: the search gets only formats and K. The seconds, and their limit, are CPU time of the
search and of the box together, so a busy machine ends no search early. Set MMAGOLD_THREADS=1 for the seconds
of one core.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import runner

import golden
from golden import stimuli
from golden.catalog.lookup import resolve
from golden.identify.blackbox.box import dense_view
from golden.identify.blackbox.candidates import candidate_of
from golden.identify.blackbox.report import Found
from golden.model.instruction import Instruction
from golden.unit import FunctionUnit, Unit, signature_of
from hw_capture.kernels import kernels
from hw_capture.record.unit import open_box as open_gpu

SEED, OF_UNDECIDED = 5, 6


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


def wrong(box: Unit, ins: Instruction, found: Instruction, each: int) -> int:
    """Fresh dot products that differ from the box's: `each` of every kind, aimed at the true program."""
    count = 0
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, each, np.random.default_rng([SEED, index]))
        count += int((box.dot(**operands) != found.dot(**operands)).sum())
    return count


def decidable(box: Unit, found: Found, each: int) -> tuple[list[str], int]:
    """The changes of one key that are called undecided and that operands show, of how many: `each` of every
    kind, also of kinds that no vectors have, aimed at what was found and at the changed one."""
    if found.instruction is None:
        return [], 0
    one = candidate_of(signature_of(dense_view(box)), found.instruction).instruction
    drawn = _drawn(one, each)
    answers = [one.dot(**operands) for operands in drawn]
    shown, count = [], 0
    for key, value, other in ((p.key, *alike) for p in found.properties for alike in p.alike):
        differ = sum(int((other.dot(**o) != own).sum()) for o, own in zip(drawn, answers, strict=True))
        differ += sum(int((other.dot(**o) != one.dot(**o)).sum()) for o in _drawn(other, each))
        shown += [f"{key}: {value} ({differ})"] if differ else []
        count += 1
    return shown, count


def _drawn(one: Instruction, each: int) -> list[dict[str, np.ndarray]]:
    kinds = enumerate(stimuli.KINDS)
    rngs = ((kind, np.random.default_rng([OF_UNDECIDED, index])) for index, kind in kinds)
    return [stimuli.generate(one, kind, each, rng) for kind, rng in rngs]


@dataclass(frozen=True)
class Row:
    """What came out for one unit.

    Attributes:
        fresh: None where there is no candidate.
        undecided: changes of one key that were tried and called undecided; None where none was looked at.
        shown: how many of these changes operands show.
    """

    name: str
    differ: int
    compared: int
    fresh: int | None
    seconds: float
    shown: tuple[str, ...] = ()
    undecided: int | None = None

    def text(self) -> str:
        """As a row of the table."""
        fresh = "" if self.fresh is None else f"{self.fresh:,}"
        cells = f" {len(self.shown)} of {self.undecided}" + "".join(f"; {one}" for one in self.shown)
        last = f"{self.seconds:.1f} |" + f"{cells} |" * (self.undecided is not None)
        return f"| {self.name} | {self.differ:,} of {self.compared:,} | {fresh} | {last}"


def row(name: str, given: argparse.Namespace) -> Row:
    """Dissects one instruction, the model of it or the GPU."""
    time.monotonic = time.process_time
    ins = resolve(name)
    box = open_gpu(f"gpu:{name}") if given.gpu else FunctionUnit.like(ins, ins.dot)
    assert box is not None
    before = time.process_time()
    found = golden.dissect(box, seconds=given.seconds, asks=given.asks)
    spent = time.process_time() - before
    fresh = None if found.instruction is None else wrong(box, ins, found.instruction, given.each)
    shown, of = decidable(box, found, given.undecided) if given.undecided else ([], None)
    return Row(name, found.wrong, found.compared, fresh, spent, tuple(shown), of)


def table(units: list[Instruction], given: argparse.Namespace) -> list[str]:
    """The table and what it amounts to; rows are printed and written to the file as they come."""
    names = [_name(ins) for ins in units]
    rows: list[Row] = []
    tasks = [(name, given) for name in names]
    for _, one in runner.results(row, tasks, given.jobs, seconds=given.until):
        rows.append(one)
        print(one.text(), flush=True)
        runner.write(given.out, "\n".join(_lines(rows, names, given)))
    lines = _lines(rows, names, given)
    print(lines[-1])
    return lines


def _lines(rows: list[Row], names: list[str], given: argparse.Namespace) -> list[str]:
    fresh = given.each * len(stimuli.KINDS)
    rows.sort(key=lambda one: names.index(one.name))
    exact = sum(one.fresh == 0 and one.differ == 0 for one in rows)
    seconds = sorted(one.seconds for one in rows)
    said = f"{exact} of {len(rows)} (of {len(names)}) without a difference; "
    middle = seconds[len(seconds) // 2] if seconds else 0.0
    undecided = sum(one.undecided or 0 for one in rows)
    said += f"{sum(len(one.shown) for one in rows)} of {undecided:,} undecided shown; "
    more = (" Undecided that operands show |", " --- |") if given.undecided else ("", "")
    return [
        f"| Instruction | Differ while asked | Of {fresh:,} fresh ones | CPU s |{more[0]}",
        f"| --- | ---: | ---: | ---: |{more[1]}",
        *(one.text() for one in rows),
        "",
        f"{said}CPU s: median {middle:.1f}, most {seconds[-1] if seconds else 0.0:.1f}.",
    ]


def _name(ins: Instruction) -> str:
    return f"{ins.architecture}:{ins.name}"


def _named(file: Path) -> set[str]:
    """The instructions of a table."""
    lines = (line.strip("| ").partition(" |")[0] for line in file.read_text().splitlines())
    return {line for line in lines if ":" in line}


def main() -> None:
    """Prints the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=1000, help="fresh operands of each kind")
    parser.add_argument(
        "--undecided", type=int, default=0, help="operands of each kind for what is left open"
    )
    parser.add_argument("--seconds", type=float, default=60, help="for each dissection")
    parser.add_argument("--asks", type=int, default=150_000, help="for each dissection")
    parser.add_argument("--all", action="store_true", help="every distinct program, not one of each class")
    parser.add_argument("--order", type=int, help="seed of the order: a run that is cut short is a sample")
    parser.add_argument("--match", default="", help="only names that hold this text")
    parser.add_argument("--without", type=Path, help="none that is in this table, which --out wrote")
    parser.add_argument("--gpu", default="", help="ask the GPU in this machine, of this architecture")
    parser.add_argument("--jobs", type=int, default=1, help="dissections at a time")
    parser.add_argument("--until", type=float, default=1e9, help="begin none after this many seconds")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    units = classes(distinct())
    if given.all:  # units of other classes first
        units = list(dict.fromkeys([*units, *distinct()]))
    if given.order is not None:
        random.Random(given.order).shuffle(units)
    if given.gpu:
        units = [ins for ins in units if ins.architecture == given.gpu and kernels.forms(ins)]
    units = [ins for ins in units if given.match in _name(ins)]
    if given.without is not None:
        units = [ins for ins in units if _name(ins) not in _named(given.without)]
    table(units, given)


if __name__ == "__main__":
    main()
