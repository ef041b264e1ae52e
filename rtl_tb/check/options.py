"""The options of a check, with the default traffic and number of vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from golden.program.state import places
from golden.vectors.vectorset import VectorSet
from rtl_tb.engines.job import Job, Traffic

DEFAULT_COUNTS = {"fast": 200_000, "selfcheck": 20_000, "cocotb": 5_000}
"""Vectors that an engine runs by default, in a few seconds."""
TRAFFIC = Traffic(0.2, 0.2)
"""Default idle cycles and backpressure; with one reset for RESET_EVERY vectors."""
RESET_EVERY, LEAST_RESETS = 25, 3
"""Vectors for each reset: a fault behind a reset may show on some operands only, and only in the first
result, so every kind of operands has to come first behind one. A short run has at least LEAST_RESETS."""
DEFAULT_TRAFFIC = {"fast": Traffic(), "selfcheck": TRAFFIC, "cocotb": TRAFFIC}
"""The traffic of the first run. `fast` runs all vectors at full throughput, and then once more under TRAFFIC:
that shows what is wrong only because of traffic."""
HOLES = ("warn", "fail")
"""What a passing check does about reachable cases that no vector tried."""


@dataclass(frozen=True)
class Options:
    """How to check.

    Attributes:
        engine: fast, selfcheck or cocotb.
        simulator: verilator or icarus (not with fast); a unit in VHDL gets ghdl and cocotb.
        count: vectors; None: DEFAULT_COUNTS. A tile counts as one vector.
        first: number of the first of them in the seed's stream, so that several checks can share it out.
        weights: shares of the stimulus kinds, None: the default mix.
        idle, backpressure, resets: the traffic, see rtl_tb/engines/job.py; None: that of DEFAULT_TRAFFIC, and
            TRAFFIC in the second run of `fast`, with a reset for RESET_EVERY vectors. A given value holds in
            both runs.
        timeout_cycles, wall_timeout: see rtl_tb/engines/job.py.
        vectors: a vector file to run instead of drawn ones.
        columns: what its columns or keys hold, where others made it (golden/vectors/foreign.py).
        until_covered: draw until every reachable coverage bin is hit, at most `count` vectors.
        explain: whether a failure is minimised and diagnosed.
        budget: seconds after which a failing check ends, with the explanation that it has then. The
            explanation has half of them in any case, however long the unit was built; 0: none but an example.
            A unit that passes has the same for gate-level simulation. Infinity: no limit.
        repair: seconds for the search for the change of the DUT's text that makes its results right; None:
            the rest of `budget`, half of it if one fault explains them; 0: no search.
        dissect: seconds for finding the unit that the DUT is, if no hypothesis explains it; 0: it is not
            dissected.
        four_states: whether a unit that passed in Verilator is tried in Icarus Verilog as well.
        synthesis: one of POLICIES of rtl_tb/check/synthesis.py.
        holes: one of HOLES: whether a passing check that did not try every reachable case says so, or has no
            verdict.
        failures: folder for the capsule of a failure, None: no capsule.
        waves: write a waveform of the whole run here.
        build: folder for what is generated and compiled; runs with the same sources use it again.
        drawn: `digest_of` the vectors that have to be drawn, if a capsule knows it; None: any.
        edited: files of a capsule's description that differ from those of the failed check.
    """

    engine: str = "fast"
    simulator: str = "verilator"
    count: int | None = None
    seed: int = 1
    first: int = 0
    weights: Mapping[str, float] | None = None
    idle: float | None = None
    backpressure: float | None = None
    resets: int | None = None
    timeout_cycles: int = Job.timeout_cycles
    wall_timeout: float = Job.wall_timeout
    vectors: Path | None = None
    columns: str | None = None
    until_covered: bool = False
    explain: bool = True
    budget: float = float("inf")
    repair: float | None = 0.0
    dissect: float = 0.0
    four_states: bool = True
    synthesis: str = "try"
    holes: str = "warn"
    failures: Path | None = field(default_factory=lambda: Path("failures"))
    waves: Path | None = None
    build: Path = Path("build")
    drawn: str | None = None
    edited: tuple[str, ...] = ()

    @property
    def diagnosed(self) -> bool:
        """Whether a failure gets more than an example."""
        return self.explain and bool(self.budget or self.repair or self.dissect)

    @property
    def vector_count(self) -> int:
        """The number of vectors to draw."""
        return DEFAULT_COUNTS[self.engine] if self.count is None else self.count

    @property
    def given_traffic(self) -> dict[str, Any]:
        """The traffic that was requested."""
        given = {name: getattr(self, name) for name in ("idle", "backpressure", "resets")}
        return {name: value for name, value in given.items() if value is not None}

    def traffic(self, usual: Traffic, count: int = 0) -> Traffic:
        """The usual traffic for a number of vectors, with the requested values in their place, and the seed
        of the check."""
        resets = max(count // RESET_EVERY, LEAST_RESETS) if usual != Traffic() else 0
        return replace(usual, **{"resets": resets, "seed": self.seed} | self.given_traffic)


def affordable(traffic: Traffic, vectors: VectorSet) -> Traffic:
    """The traffic with those of its resets that a unit that keeps its accumulator can have in bounded time,
    at least one: with vectors of one long sequence every reset is a run of its own."""
    if not vectors.instruction.state or not len(vectors):
        return traffic
    again = float(places(vectors.operands["clear"]).mean()) + 1
    # Vectors that the resets of such a unit may send again, as a multiple of the vectors of the run, and at
    # least: each reset sends a sequence again, from its start. Of 200,000 vectors it is some 4,000 resets.
    again_share, again_least = 1.5, 20_000
    most = int(max(again_share * len(vectors), again_least) / again)
    return replace(traffic, resets=min(traffic.resets, max(most, 1)))
