"""The record of a check: one immutable object, of which each stage returns a new one."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.vectors.complete import holds, space_of
from golden.vectors.vectorset import VectorSet
from rtl_tb.check.four_states import FourStates
from rtl_tb.check.initial_values import UndrivenSignals
from rtl_tb.check.options import Options
from rtl_tb.check.other_outputs import OtherOutputs
from rtl_tb.check.synthesis import Synthesis
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.runs.example import Example
from rtl_tb.runs.verdict import FAILURES, Verdict

if TYPE_CHECKING:
    from golden.cover.coverage import Coverage
    from golden.explain.first_difference import Difference
    from golden.identify.diagnosis import Diagnosis
    from rtl_tb.check.dissection import Dissection
    from rtl_tb.check.reasons import FaultExample
    from rtl_tb.locate.result import Repair

VERDICT, EXAMPLE, DIAGNOSIS, END = REPORT_PARTS = ("verdict", "example", "diagnosis", "end")
"""The parts of a report, in the order in which a check knows them: the verdict with its limits; the smallest
operands that fail, with their trace; the diagnosis, with possible errors of the description; the search in
the text, and what to run next."""
NEVER_TOGETHER = "clear and load were never set together: which of them wins was not checked"


@dataclass(frozen=True)
class Check:
    """The state of a check. `job` is the run of the verdict, `whole` the run of all vectors."""

    dut: Dut
    options: Options
    verdict: Verdict
    traffic: Traffic
    vectors: VectorSet
    """The vectors of the whole check; a failure under the second traffic has a verdict on fewer."""
    coverage: Coverage | None = None
    """The coverage of the vectors."""
    example: Example | None = None
    diagnosis: Diagnosis | None = None
    difference: Difference | None = None
    capsule: Path | None = None
    resets_left_out: int = 0
    """Resets left out of the run of the verdict, see `affordable`."""
    unset: UndrivenSignals | None = None
    """Results that depend on undriven signals."""
    four_states: FourStates | None = None
    """The result of Icarus for a unit that passed in Verilator."""
    synthesis: tuple[Synthesis, ...] = ()
    """The results for the unit as synthesis reads it, if that is another text."""
    outside_influences: tuple[str, ...] = ()
    """What the results may depend on other than the operands."""
    faults: tuple[FaultExample, ...] = ()
    """The faults, if the diagnosis found several."""
    hints: tuple[str, ...] = ()
    """Possible errors in the description of the unit."""
    repairs: tuple[Repair, ...] = ()
    """Changes of the DUT's text that make wrong results right."""
    dissection: Dissection | None = None
    """The unit that the DUT was found to be, if that was requested."""
    handshake: Traffic | None = None
    """The traffic of a second run of `fast`, if there was one."""
    under_traffic: int = 0
    """Vectors of that run, the first of the check."""
    unreached_bits: str | None = None
    """Bits of its accumulator that no run reached."""
    uncompared: tuple[str, ...] = ()
    """What of the results is not part of the verdict: bits of result ports that carry no element, and what
    the compare policy ignores."""
    job: Job | None = None
    whole: Job | None = None
    other_outputs: OtherOutputs | None = None
    """The outputs that are wrong, if all results are right."""
    turned: bool = False
    """Whether nothing is concluded from its results: it works with a signal of the other polarity or with
    operands further apart."""

    def hinted(self, *hints: str) -> Check:
        """The same with further hints."""
        return replace(self, hints=(*self.hints, *hints))

    def noted(self, *notes: str) -> Check:
        """The same with further notes on the limits of the verdict."""
        return replace(self, outside_influences=(*self.outside_influences, *notes))

    @property
    def run(self) -> Job:
        """The run of the verdict."""
        assert self.job is not None
        return self.job

    @property
    def engine(self) -> str:
        """The engine of that run."""
        return self.verdict.outcome.engine

    @property
    def passed(self) -> bool:
        """Whether the DUT is the instruction, as far as these vectors show."""
        return self.verdict.passed

    @property
    def notes(self) -> list[str]:
        """The limits of the verdict, one sentence each."""
        found = [] if self.four_states is None or not self.four_states.other else [self.four_states.sentence]
        if edited := self.options.edited:
            found.append(f"{', '.join(edited)} of the capsule was edited: this is not the check that failed")
        if self.passed and self.dut.instruction.load and "clear" in self.dut.ports:
            found.append(NEVER_TOGETHER)
        if self.passed and self.unreached_bits:
            found.append(self.unreached_bits)
        return [*found, *self.not_synthesised, *self.outside_influences]

    @property
    def excluded(self) -> str | None:
        """Results that did not count, or had another answer; None: nothing."""
        if (exclude := self.dut.exclude) is None:
            return None
        return exclude.sentence(self.dut.instruction, self.vectors.operands, self.vectors.d)

    @property
    def not_synthesised(self) -> list[str]:
        """The reason why it was not run as synthesis reads it, if that may be another text."""
        return [each.sentence for each in self.synthesis if each.refused]

    @property
    def drawn(self) -> int:
        """Vectors of the whole check."""
        return len(self.vectors)

    @property
    def _short_run(self) -> dict[str, Any]:
        return {"vectors": self.under_traffic, "failed": self.traffic == self.handshake}

    @property
    def command(self) -> str:
        """The command that repeats the check."""
        return self.repeated()

    def repeated(self, vectors: Path | None = None) -> str:
        """The command that repeats the check, with these vectors instead of its own."""
        options = (
            self.options
            if vectors is None
            else replace(self.options, vectors=vectors, until_covered=False, weights=None)
        )
        words = [
            "mmagold",
            "rtl",
            "check",
            shown(self.dut.file),
            "--engine",
            options.engine,
            "--sim",
            options.simulator,
        ]
        words += ["--vectors", str(options.vectors)] if options.vectors else ["--count", str(self.drawn)]
        words += ["--until-covered"] * options.until_covered + ["--seed", str(options.seed)]
        words += ["--first", str(options.first)] * bool(options.first and not options.vectors)
        for name, value in options.given_traffic.items():
            words += [f"--{name}", str(value)]
        words += ["--no-four-states"] * (not options.four_states)
        words += ["--synthesis", options.synthesis] * (options.synthesis != Options.synthesis)
        words += ["--holes", options.holes] * (options.holes != Options.holes)
        words += ["--timeout", str(options.timeout_cycles)] * (
            options.timeout_cycles != Options.timeout_cycles
        )
        words += ["--wall-timeout", f"{options.wall_timeout:g}"] * (
            options.wall_timeout != Options.wall_timeout
        )
        if options.weights is not None:
            words += ["--kinds", ",".join(f"{kind}={weight!r}" for kind, weight in options.weights.items())]
        return shlex.join(words)

    def as_dict(self) -> dict[str, Any]:
        """Everything that reports show, as plain values, stable for machines."""
        verdict, outcome = self.verdict, self.verdict.outcome
        return {
            "dut": self.dut.name,
            "file": str(self.dut.file),
            "instruction": self.dut.instruction_name,
            "level": self.dut.level,
            "latency": self.dut.handshake.latency,
            "passed": self.passed,
            "engine": outcome.engine,
            "simulator": outcome.simulator,
            "version": outcome.version,
            "translated": outcome.translated or None,
            "seed": self.options.seed,
            "traffic": asdict(self.traffic),
            "clock": self.dut.clock,
            "resets_left_out": self.resets_left_out,
            "handshake": None if self.handshake is None else asdict(self.handshake) | self._short_run,
            "drawn": self.drawn,
            "vectors": len(verdict.vectors),
            **{key: int(np.count_nonzero(getattr(verdict, key))) for key in FAILURES},
            "flags": verdict.wrong_flags or None,
            "protocol": [
                {"kind": one.kind, "cycle": one.cycle, "vector": one.vector, "text": one.text}
                for one in outcome.failures
            ],
            "kinds": [
                {key: getattr(row, key) for key in ("kind", "tried", *FAILURES)}
                for row in verdict.by_named_kind()
            ],
            "unset": None if self.unset is None else self.unset.as_dict(),
            "four_states": None if self.four_states is None else self.four_states.as_dict(),
            "synthesis": [each.as_dict() for each in self.synthesis],
            "excluded": self.excluded,
            "uncompared": list(self.uncompared),
            "notes": self.notes,
            "example": None if self.example is None else self.example.as_dict(),
            "diagnosis": None if self.diagnosis is None else self.diagnosis.as_dict(),
            "faults": [
                one.fault.as_dict() | {"example": None if one.example is None else one.example.as_dict()}
                for one in self.faults
            ],
            "hints": list(self.hints),
            "repairs": [repair.as_dict() for repair in self.repairs],
            "dissection": None if self.dissection is None else self.dissection.as_dict(),
            "difference": None if self.difference is None else self.difference.as_dict(),
            "coverage": self._coverage_dict(self.coverage),
            "cycles": outcome.cycles,
            "seconds_build": outcome.seconds_build,
            "seconds_run": outcome.seconds_run,
            "capsule": None if self.capsule is None else str(self.capsule),
            "repeat": self.command,
        }

    def _coverage_dict(self, coverage: Coverage | None) -> dict[str, Any] | None:
        if coverage is None:
            return None
        holes = [f"{point}: {label}" for point, label in coverage.holes()]
        return {
            "percent": coverage.percent,
            "reachable": coverage.counts[1],
            "vectors": coverage.vectors,
            "noun": "dot products" if self.dut.level == "tile" else "vectors",
            "holes": holes,
            "given": self.options.vectors is not None,
            "complete": self._complete,
        }

    @property
    def _complete(self) -> str | None:
        """Which combinations of operands the vectors hold all; None: of no space of operands."""
        if self.dut.level != "dot" or (space := space_of(self.dut.instruction, self.drawn)) is None:
            return None
        return space.words if holds(self.vectors, space) else None


def shown(path: Path) -> str:
    """A path as one would type it here."""
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near
