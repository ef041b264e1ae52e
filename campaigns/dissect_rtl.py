"""Dissects RTL units and mutants of them, as `mmagold rtl check --dissect` does what no hypothesis explains.

    .venv/bin/python campaigns/dissect_rtl.py --reference --mutants 2 --seconds 120 --out table.md

The units are in rtl_tb/mutants/units, in styles of their own, and with `--reference` in
rtl_tb/rtl/duts. The mutants are the arithmetic ones of rtl_tb/mutants. Of a sound unit the search knows only
formats and K; of a mutant also the instruction, from which it starts. Where it does not explain a mutant, the
last column has the diagnosis. What is found is checked against the DUT on fresh operands of every kind, aimed
at the specification that was meant. The seconds, which also limit the search, are its CPU time without the
simulation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import runner

from golden import stimuli
from golden.errors import MmagoldError, one_line
from golden.explain import markdown
from golden.program.signature import Operands
from golden.vectors.vectorset import default_set
from rtl_tb.check import dissection
from rtl_tb.check.check import check_dut
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job
from rtl_tb.qualify.mutants import FOLDER, UNITS, Mutant, read_mutants
from rtl_tb.runs.latency import measure
from rtl_tb.runs.unit import DutRun

FRESH = 5
"""Seed of the operands that the search never asked about."""


@dataclass(frozen=True)
class Row:
    """What came out for one DUT. `fresh`: fresh operands on which the found unit differs, of how many."""

    unit: str
    fault: str
    differ: str
    fresh: str
    said: str
    seconds: float
    explained: bool


def duts(mutants: int, reference: bool) -> list[tuple[str, Mutant | None]]:
    """The dut.yaml of each unit, alone and with its first mutants."""
    planted = [one for one in read_mutants(sorted(FOLDER.glob("*.yaml"))) if one.group == "arithmetic"]
    found: list[tuple[str, Mutant | None]] = []
    units = sorted((FOLDER / "units").glob("*/dut.yaml"))
    for path in [*units, *(sorted(UNITS.glob("*.yaml")) if reference else ())]:
        own = [one for one in planted if one.unit.resolve() == path.resolve()]
        found += [(str(path), one) for one in (None, *own[:mutants])]
    return found


def row(path: str, mutant: Mutant | None, seconds: float, each: int) -> Row:
    """Dissects one DUT."""
    with tempfile.TemporaryDirectory() as folder:
        dut = load_dut(path) if mutant is None else mutant.plant(Path(folder) / "rtl")
        unit = Path(path).parent.name if path.endswith("dut.yaml") else Path(path).stem
        fault = "sound" if mutant is None else mutant.fault
        time.monotonic = time.process_time
        try:
            if dut.handshake.measured:
                dut = measure(dut, dissection.ENGINE, "verilator", Path(folder) / "build")
            job = Job(dut, Path(folder) / "build", default_set(dut.instruction, 64, 0, dut.level))
            run = DutRun(job, dissection.ENGINE).unit()
            begun = time.monotonic()
            found = dissection.dissect(job, dissection.ENGINE, seconds, lambda *_: None, blind=mutant is None)
        except Exception as error:  # a row of its own: the error would lose all other rows
            if not isinstance(error, MmagoldError):
                traceback.print_exc()
            return Row(unit, fault, "", "", one_line(error)[:200], 0.0, False)
        spent = time.monotonic() - begun
        box = found.found
        fresh = "no candidate"
        if box.instruction is not None:
            wrong = count = 0
            for place, kind in enumerate(stimuli.KINDS):
                operands: Operands = stimuli.generate(
                    dut.instruction, kind, each, np.random.default_rng([FRESH, place])
                )
                wrong += int((run.dot(**operands) != box.instruction.dot(**operands)).sum())
                count += each
            fresh = f"{wrong:,} of {count:,}"
        said = "; ".join(found.differs) if found.differs else found.sentence
        if mutant is not None and not box.explains:
            said = f"{said}. The diagnosis says: {diagnosed(mutant, Path(folder))}"
        return Row(unit, fault, f"{box.wrong:,} of {box.compared:,}", fresh, said, spent, box.explains)


def diagnosed(mutant: Mutant, folder: Path) -> str:
    """What `rtl check` says of a mutant before it dissects."""
    options = Options(failures=None, build=folder / "checked" / "build")
    found = check_dut(mutant.plant(folder / "checked" / "rtl"), options).as_dict()["diagnosis"]
    return "nothing" if found is None else str(found["sentence"])


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    head = (
        "Unit",
        "DUT",
        "Explained",
        "Differ while asked",
        "Of fresh ones",
        "Against the specification",
        "s",
    )
    cells = [
        (
            one.unit,
            one.fault,
            "yes" if one.explained else "no",
            one.differ,
            one.fresh,
            one.said.replace("|", "/"),
            f"{one.seconds:.0f}",
        )
        for one in rows
    ]
    return markdown.table(head, cells)


def main() -> None:
    """Prints the rows as they come, and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", action="store_true", help="the reference units, too")
    parser.add_argument("--mutants", type=int, default=2, help="of each unit")
    parser.add_argument("--seconds", type=float, default=60, help="for each dissection")
    parser.add_argument("--each", type=int, default=100, help="fresh operands of each kind")
    parser.add_argument("--match", default="", help="only units whose folder holds this text")
    parser.add_argument("--jobs", type=int, default=1, help="dissections at a time")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    asked = [one for one in duts(given.mutants, given.reference) if given.match in one[0]]
    rows: dict[int, Row] = {}
    text = ""
    for number, one in runner.results(row, [(*dut, given.seconds, given.each) for dut in asked], given.jobs):
        rows[number] = one
        print(one, flush=True)
        text = table([rows[place] for place in sorted(rows)])
        runner.write(given.out, text)
    print(text)


if __name__ == "__main__":
    main()
