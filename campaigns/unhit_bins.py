"""Coverage bins that no vector hits: are there operands for them? The solver is asked.

.venv/bin/python campaigns/unhit_bins.py --programs 40 --vectors 200000 --out unhit.json

Programs of the catalogue are drawn, and get default vectors. A bin of the last rounding that no vector hits,
and that the rules call reachable, becomes a bit over the words of the circuit. Operands that the solver finds
are replayed: the coverage has to count the bin. That there are none is believed only if the same condition
agrees with the coverage for every bin of the coverpoint on all vectors of a sample. So a bin is "reachable"
with operands, "unreachable", or "unknown" after the seconds. Other bins are not asked: bins of other
coverpoints and of programs of several operations, and bins where the condition does not agree.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import runner
from export_sv import units

import golden
from golden.circuit.specification import Circuit, circuit_of
from golden.circuit.words import Word, Words, evaluate
from golden.cover.coverage import Coverage
from golden.model.instruction import Instruction
from golden.program.bounds import kept_bits
from golden.program.steps import Round
from golden.proof.problem import columns, operands_of
from golden.proof.solver import HOLD, NEVER, Solver
from golden.vectors.vectorset import default_set

SAMPLE = 4_000
"""Vectors on which a condition has to agree with the coverage."""
PARTS = ("exact", "below half", "tie", "above half")


def conditions(unit: Instruction, words: Words, circuit: Circuit) -> Iterator[tuple[str, str, Word]]:
    """Bins of the last rounding of a unit of one operation: the end of the coverpoint's name, the bin, and
    the bit that is 1 where a dot product falls into it."""
    step, points = unit.program.operations[-1].steps[-1], circuit.points
    fmt = unit.formats["d"]
    if len(unit.program.operations) > 1 or "normalized" not in points or not isinstance(step, Round):
        return
    if kept_bits(step, fmt) != fmt.fraction_bits or not fmt.fraction_bits:
        return
    normalized, kept = points["normalized"], fmt.fraction_bits
    low = normalized.width - 1 - kept  # bits that are cut
    if low < 2:
        return
    head, rest = words.extract(normalized, low), words.extract(normalized, 0, low)
    lead, half = words.bit(normalized, normalized.width - 1), words.bit(rest, low - 1)
    under = words.nonzero(words.extract(rest, 0, low - 1))
    ordinary = words.invert(points["special"]) if "special" in points else words.constant(1, 1)
    number = words.both(ordinary, words.nonzero(normalized))
    up = words.differ(words.bit(points["rounded"], 0), words.bit(head, 0))
    ones = words.equal(words.extract(head, 0, kept), words.constant((1 << kept) - 1, kept))
    least = words.all_of([words.invert(lead), up, ones])
    carry = words.all_of([lead, up, ones])
    parts = dict(zip(PARTS, (
        words.invert(words.either(half, under)), words.both(words.invert(half), under),
        words.both(half, words.invert(under)), words.both(half, under),
    ), strict=True))  # fmt: skip
    for label, bit in (
        ("none", words.all_of([words.invert(up)])),
        ("up", words.all_of([up, words.invert(carry), words.invert(least)])),
        ("up with a carry into the exponent", carry),
        ("subnormal up to the least normal", least),
    ):
        yield "increment", label, words.both(number, bit)
    finite = words.both(ordinary, words.invert(points["overflow"]))
    plain = words.extract(circuit.outputs["d"], 0, fmt.fraction_bits + fmt.exponent_bits)
    zero = words.invert(words.nonzero(plain))
    normal = words.nonzero(words.extract(plain, fmt.fraction_bits))
    kinds = {"zero": zero, "subnormal": words.invert(words.either(zero, normal)), "normal": normal}
    for kind, bit in kinds.items():
        for part, cut in parts.items():
            yield "result and remainder", f"{kind}, {part}", words.all_of([finite, bit, cut])
    emax = [word for name, word in points.items() if name.split(".")[-1] == "emax"]
    exponent = points["result_exponent"]
    if emax and emax[-1].width == exponent.width:
        inside = words.all_of([number, lead, words.invert(words.less_signed(emax[-1], exponent))])
        for place in range(2, low + 1):
            for text, top in (("", 0), ("half + ", 1 << low - 1)):
                same = words.equal(rest, words.constant(top | 1 << low - place, low))
                yield "one bit cut", f"{text}2^-{place}", words.both(inside, same)


def examine(name: str, count: int, seconds: float) -> dict[str, Any]:
    """What becomes of the unhit bins of one program."""
    unit = golden.instruction(*name.split(":", 1))
    vectors, coverage = default_set(unit, count, 1), Coverage(unit)
    coverage.sample(vectors.operands, vectors.d)
    holes = coverage.holes()
    row: dict[str, Any] = {"unit": name, "bins": coverage.counts[1], "unhit": len(holes), "asked": {}}
    if not holes or unit.state:
        return row
    words = Words()
    circuit = circuit_of(unit, words)
    made = [*conditions(unit, words, circuit)]
    wrong = disagreeing(unit, coverage, made)
    assumed = [bit for _, bit in circuit.assumed]
    solver = Solver()
    for end, label, bit in made:
        point = next((one for one, found in holes if one.endswith(f": {end}") and found == label), None)
        if point is None or end in wrong:
            continue
        start = time.process_time()
        answer = solver.ask([bit, *assumed], (), seconds)
        said = {HOLD: "reachable", NEVER: "unreachable"}.get(answer.result, "unknown")
        if answer.result == HOLD:
            values = {each: answer.variables.get(each, 0) for each in circuit.inputs}
            again, operands = Coverage(unit), operands_of(unit, values)
            again.sample(operands, unit.answers(operands)["d"])
            said = said if (point, label) not in again.holes() else "not replayed"
        row["asked"][f"{point}: {label}"] = [said, round(time.process_time() - start, 2)]
    return row | {"disagree": sorted(wrong)}


def disagreeing(unit: Instruction, coverage: Coverage, made: list[tuple[str, str, Word]]) -> set[str]:
    """Coverpoints of which a condition is not what the coverage counts, on some of a sample of vectors."""
    sample = default_set(unit, SAMPLE, 1)
    values = evaluate([bit for _, _, bit in made], columns(unit, SAMPLE)) if made else {}
    wrong: set[str] = set()
    for point in coverage.points:
        labels = {label: at for at, label in enumerate(point.bins)}
        mine = [
            (label, bit) for end, label, bit in made if point.name.endswith(f": {end}") and label in labels
        ]
        for label, bit in mine:
            seen = np.zeros(SAMPLE, bool)
            for name, rows, places in coverage.bins_of(sample.operands, sample.d):
                if name == point.name:
                    seen[rows] |= (places.reshape(len(rows), -1) == labels[label]).any(1)
            if not np.array_equal(seen, values[bit].astype(bool)):
                wrong.add(point.name.rsplit(": ", 1)[-1])
    return wrong


def main() -> None:
    """Runs the campaign and prints its numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--programs", type=int, default=40, help="programs that are drawn (default 40)")
    parser.add_argument("--units", nargs="*", help="these instead, by architecture:name")
    parser.add_argument("--vectors", type=int, default=200_000, help="of each (default 200,000)")
    parser.add_argument("--seconds", type=float, default=30, help="of the solver for a bin (default 30)")
    parser.add_argument("--seed", type=int, default=1, help="of the programs (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs at a time")
    parser.add_argument("--out", type=Path, help="JSON file")
    arguments = parser.parse_args()
    names = [name for name, steps in units(1) if ":" in name and not steps]
    names = arguments.units or random.Random(arguments.seed).sample(names, arguments.programs)
    rows: list[dict[str, Any]] = []
    tasks = ((name, arguments.vectors, arguments.seconds) for name in names)
    for _, row in runner.results(examine, tasks, arguments.jobs):
        rows.append(row)
        print(row, flush=True)
        verdicts = Counter(said for one in rows for said, _ in one["asked"].values())
        found = {each: sum(one[each] for one in rows) for each in ("bins", "unhit")}
        summary = {"programs": len(rows), **found, **verdicts}
        runner.write(arguments.out, {"made": runner.made(), "summary": summary, "programs": rows})
    print(summary)


if __name__ == "__main__":
    main()
