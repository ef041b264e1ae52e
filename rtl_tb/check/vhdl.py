"""Of a unit in VHDL: the vectors that only its Verilog runs, and what the verdict does not cover, one
sentence each: what nothing assigns, which results have 'U' and its like, and influences on the results
other than the operands."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from golden.errors import listed
from golden.vectors.vectorset import VectorSet
from rtl_tb.dut.description import Dut
from rtl_tb.dut.vhdl import units_of
from rtl_tb.engines import ghdl
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.locate.vhdl import synthesised
from rtl_tb.runs.verdict import Verdict, verdict_of
from rtl_tb.simulators import simulators

_KINDS = {
    re.compile(r"\bfile\s+\w+(?:\s*,\s*\w+)*\s*:", re.IGNORECASE): "reads or writes files",
    re.compile(r"\battribute\s+foreign\b", re.IGNORECASE): "calls functions that are not VHDL",
    re.compile(r"\buniform\s*\(", re.IGNORECASE): "draws random numbers",
    re.compile(r"<=\s*(?:force|release)\b", re.IGNORECASE): "forces signals, which no chip does",
    re.compile(
        r"\bto_(?:bit|bitvector|bit_vector|bv|01)\s*\(", re.IGNORECASE
    ): "takes 'U' and 'X' for 0 without a word",
    re.compile(r"\bnow\b", re.IGNORECASE): "asks for the time of the simulation",
}
"""Influences, by the constructs of the text."""


SPEED = 40
"""Vectors that Verilator runs in the time of one of GHDL: the counts that both run by default."""


@dataclass(frozen=True)
class InVerilog:
    """A run of many vectors in the Verilog that GHDL's synthesis makes of a unit.

    Attributes:
        failed: how many of them fail there.
        confirmed: the run of some of these in GHDL, with others, if it has a wrong result, too.
    """

    failed: int
    confirmed: tuple[Job, Verdict] | None


def run_in_verilog(job: Job, verdict: Verdict, vectors: VectorSet, traffic: Traffic) -> InVerilog:
    """Runs vectors in the Verilog of a unit that passed; what fails there fails only if it does in GHDL.

    Raises:
        RtlError: there is no Verilog with the same results, see rtl_tb/locate/vhdl.py.
    """
    made = synthesised(job, verdict, job.build.absolute() / "synthesised").job
    run = replace(made, vectors=vectors, traffic=traffic)
    failed = np.flatnonzero(verdict_of("fast", run).failed)
    if not len(failed):
        return InVerilog(0, None)
    # Failing vectors that GHDL runs, and as many others as before: an explanation needs both.
    few = 500
    chosen = vectors.with_history(np.union1d(failed[:few], np.arange(len(job.vectors))))
    again = replace(job, vectors=vectors, traffic=traffic).at(chosen)
    found = verdict_of("cocotb", again)
    return InVerilog(len(failed), None if found.passed else (again, found))


def notes(dut: Dut, verdict: Verdict) -> list[str]:
    """The sentences, for a verdict of GHDL."""
    found = list(_metavalues(verdict))
    if verdict.passed:
        found += [*_never_assigned(dut), *_beyond(dut), *_architectures(dut)]
    return found


def _metavalues(verdict: Verdict) -> Iterator[str]:
    kinds = verdict.outcome.metavalues
    if kinds:
        counts = ", ".join(f"'{kind}' in {count:,}" for kind, count in kinds.items())
        yield f"results have bits that are neither 0 nor 1: {counts}"


def _never_assigned(dut: Dut) -> Iterator[str]:
    lint = ghdl.lint(dut)
    # Signals that a sentence names.
    shown = 8
    if lint.never:
        yield (
            f"nothing assigns {listed(lint.never, shown, '; ')}. It holds 'U', or what its "
            "declaration or its type begins with, which no chip does"
        )
    if lint.refused:
        yield (
            f"whether all signals are assigned is not known, since GHDL's synthesis refuses the unit: "
            f"{lint.refused}"
        )


def _beyond(dut: Dut) -> Iterator[str]:
    assert dut.vhdl is not None
    code = {path: ghdl.code_of(path) for path in dut.vhdl.files(dut.sources)}
    for pattern, what in _KINDS.items():
        for path, text in code.items():
            said = pattern.search(text)
            if said:
                line = text.count("\n", 0, said.start()) + 1
                yield (
                    f"the text {what} ({' '.join(said[0].split())} at {path.name}:{line}); a PASS is "
                    f"of this run"
                )
                break


def _architectures(dut: Dut) -> Iterator[str]:
    """Entities whose last architecture an instance without a named one gets."""
    assert dut.vhdl is not None
    simulator = simulators.ghdl()
    for files in (dut.sources, *dut.vhdl.libraries.values()):
        with tempfile.TemporaryDirectory(prefix="mmagold_units_") as folder:
            units = units_of(simulator, dut.vhdl, [str(path) for path in files], Path(folder))
        of: dict[str, list[str]] = {}
        for kind, name, entity in units:
            if kind == "architecture":
                of.setdefault(entity, []).append(name)
        for entity, names in of.items():
            if len(names) > 1:
                yield (
                    f"entity {entity} has the architectures {', '.join(names)}: an instance that names "
                    "none gets the one that was analysed last"
                )
