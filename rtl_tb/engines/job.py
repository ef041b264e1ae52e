"""What every engine takes and what every engine gives back.

An engine runs one DUT on one set of vectors. The three engines (cocotb, selfcheck, fast) differ in speed and
in what they can see; they share `Job` and `Outcome`, so that the verdict of rtl_tb/check/check.py does not
depend on the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from rtl_tb.errors import RtlError
from rtl_tb.simulators.simulators import has_space

if TYPE_CHECKING:
    from golden.vectors.vectorset import VectorSet
    from rtl_tb.dut.description import Dut

Bits = npt.NDArray[Any]
Progress = Callable[[int, int], None]
"""Called with (vectors answered so far, vectors in all)."""

FAILURE_KINDS = {
    "timeout": "the DUT stopped answering",
    "extra_result": "a result without a vector",
    "unstable_output": "out_data changed while out_valid waited for out_ready",
    "valid_dropped": "out_valid fell before out_ready took the result",
    "x_on_handshake": "in_ready or out_valid is X or Z",
    "stale_after_reset": "a result after a reset that belongs to a vector from before it",
    "changed_answer": "a vector that was sent again after a reset got another result",
    "valid_follows_ready": "out_valid changes with out_ready before any clock edge",
    "metavalue": "the unit computes with bits that are neither 0 nor 1, which VHDL's packages take for 0 "
    "or FALSE",
    "other_output": "an output that is no result has another value than dut.yaml says",
}
"""Kinds of ProtocolFailure and what each means."""


def changed_text(now: str) -> str:
    """The text of a failure `changed_answer`, with the bits that came at last."""
    return f"{FAILURE_KINDS['changed_answer']}: {now}"


SIMULATORS = ("verilator", "icarus", "ghdl", "vcs", "questa", "xcelium")
"""GHDL runs VHDL, in the engine cocotb; the last three run the engine selfcheck alone."""
INITIAL_VALUES = {"zeros": 0, "ones": 1, "random": 2}
"""What signals that nothing has set hold in Verilator, which has no X, and its number for it. In GHDL zeros
and ones stand in the signals `unset` of a job; random leaves them 'U'."""


@dataclass(frozen=True)
class Traffic:
    """How the two sides of the DUT behave; all zero is full throughput.

    Attributes:
        idle: share of the vectors before which cycles pass that offer none (in_valid low).
        backpressure: share of the results that have to wait (out_ready low).
        resets: number of resets in mid-flight, spread over the run. What was in flight is sent again; where
            the unit keeps its accumulator, from the start of its sequence on.
        seed: of the random decisions; the same seed gives the same traffic in every engine
            (rtl_tb/engines/traffic.py).
    """

    idle: float = 0.0
    backpressure: float = 0.0
    resets: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuses what no run could finish."""
        for name in ("idle", "backpressure"):
            value = getattr(self, name)
            if not 0.0 <= value <= 0.99:
                raise RtlError(f"traffic '{name}' is {value}, expected a share from 0 to 0.99")
        if self.resets < 0:
            raise RtlError(f"traffic 'resets' is {self.resets}, expected a number of resets, 0 or more")
        if not 0 <= self.seed < 2**32:
            raise RtlError(f"traffic 'seed' is {self.seed}, expected 0 to {2**32 - 1}")

    def on(self, dut: Dut) -> Traffic:
        """The part of it that a DUT can be given.

        A DUT without a reset port would go on with what it was given; a result that it offers without heeding
        out_ready is lost if it is not taken. In a DUT without a clock nothing happens in the cycles between
        two vectors.
        """
        if dut.clock is None:
            return Traffic(seed=self.seed)
        return replace(
            self,
            resets=self.resets if dut.reset is not None else 0,
            backpressure=self.backpressure if dut.can_stall_output else 0.0,
        )

    def of_some(self, some: int, of: int) -> Traffic:
        """That of `some` of the vectors: with their share of the resets, but few at least."""
        # Resets that a part of a run also has if the whole has this many.
        few_resets = 3
        return replace(self, resets=min(self.resets, max(self.resets * some // max(of, 1), few_resets)))


@dataclass(frozen=True)
class Job:
    """One run: a DUT, its vectors, a simulator and the traffic.

    Attributes:
        dut: the description, see rtl_tb/dut/description.py.
        build: folder for what is generated and compiled; engines keep their builds there and use them again.
        vectors: operands and expected results.
        simulator: one of SIMULATORS.
        traffic: idle cycles, backpressure, resets.
        timeout_cycles: cycles without an accepted vector or a result, while some are due, after which the run
            stops.
        wall_timeout: seconds in which some clock cycle must end, or the run is given up as hanging.
        waves: where to write a waveform (its suffix, .fst or .vcd, chooses the format), or None.
        program: what `engines.build` returned for the same DUT, engine, simulator and kind of waveform: all
            runs of a check are of one build, whatever is saved meanwhile. None: found or built by the run.
        start: one of STARTS. Random bits are those of the traffic's seed.
        translate: whether a unit that Icarus cannot read may be run as a translation; "always": it is run so
            in any case.
        unset: signals of a unit in VHDL that `start` sets, see Outcome.
        places, of: of some vectors of a longer run their places in it, rising, and how many it has: each
            keeps the traffic that it had there. None: the run is whole.
    """

    dut: Dut
    build: Path
    vectors: VectorSet
    simulator: str = "verilator"
    traffic: Traffic = Traffic()
    timeout_cycles: int = 10_000
    wall_timeout: float = 120.0
    waves: Path | None = None
    program: Path | None = None
    start: str = "random"
    translate: bool | Literal["always"] = True
    unset: tuple[str, ...] = ()
    places: npt.NDArray[np.int64] | None = None
    of: int = 0

    def __post_init__(self) -> None:
        """Refuses an unknown simulator, a timeout that no DUT could meet, and a folder that make cannot
        build in."""
        if self.simulator not in SIMULATORS:
            raise RtlError(f"simulator is {self.simulator!r}, expected one of {', '.join(SIMULATORS)}")
        if self.start not in INITIAL_VALUES:
            raise RtlError(f"start is {self.start!r}, expected one of {', '.join(INITIAL_VALUES)}")
        if not 1 <= self.timeout_cycles < 2**31:
            raise RtlError(f"timeout_cycles is {self.timeout_cycles}, expected 1 to {2**31 - 1}")
        if not 0 < self.wall_timeout < float("inf"):
            raise RtlError(f"wall_timeout is {self.wall_timeout}, expected seconds, more than 0")
        if self.dut.handshake.kind == "latency" and self.dut.handshake.latency is None:
            raise RtlError(
                f"the latency of {self.dut.name} is to be measured: rtl_tb.runs.latency.measure does it"
            )
        if not self.vectors.stands_alone:
            raise RtlError(
                "the first vector starts from a result that is not among them; begin where `clear` is 1"
            )
        if self._starts_from_anything:
            raise RtlError(
                f"{self.dut.name} has no reset, and what it holds at first is not known; begin the vectors "
                "with one whose `clear` is 1"
            )
        folder = self.build.absolute()
        if self.simulator == "verilator" and has_space(folder):
            raise RtlError(
                f"build folder is {str(folder)!r}, expected a path without spaces, since make, which builds "
                "what Verilator writes, takes none; name another with --build, or use Icarus (--engine "
                "selfcheck --sim icarus)"
            )

    def of_some(self, vectors: VectorSet) -> Job:
        """The run of some of the vectors, with their share of the traffic."""
        return replace(self, vectors=vectors, traffic=self.traffic.of_some(len(vectors), len(self.vectors)))

    def at(self, places: npt.NDArray[np.int64]) -> Job:
        """The run of some of its vectors, each with the traffic that it has in this run."""
        own, of = (places, len(self.vectors)) if self.places is None else (self.places[places], self.of)
        return replace(self, vectors=self.vectors[places], places=own, of=of)

    def quiet(self, count: int) -> Job:
        """A trial of the first vectors, of a unit that may not answer: at full throughput, without a waveform
        and with a build of its own."""
        # Cycles without an answer after which such a run stops.
        stops = 1_000
        return replace(
            self,
            vectors=self.vectors[:count],
            traffic=Traffic(seed=self.traffic.seed),
            timeout_cycles=min(self.timeout_cycles, stops),
            program=None,
            waves=None,
        )

    @property
    def _starts_from_anything(self) -> bool:
        """Whether the first vector adds to a state that nothing has set."""
        state = self.dut.instruction.state and self.dut.reset is None and len(self.vectors) > 0
        return state and not self.vectors.operands["clear"][0]


@dataclass(frozen=True)
class ProtocolFailure:
    """The DUT broke the handshake.

    Attributes:
        kind: one of FAILURE_KINDS.
        cycle: clock cycles since the start of the run.
        vector: index of the vector concerned, or None where no vector is.
        text: one sentence for the reader, with the state of the handshake where that helps.
    """

    kind: str
    cycle: int
    vector: int | None
    text: str


@dataclass
class Outcome:
    """What a DUT answered. Results that never came have `received` False and `actual` 0.

    Attributes:
        engine, simulator, version: who ran it.
        translated: who wrote the text that was run, such as "Yosys 0.70"; "" where it is the designer's own.
        actual: codes of D's format, (count,) at level dot, (count, m*n) at level tile.
        received: (count,) bool.
        unknown: (count,) bool, X or Z in some bit of the result; such bits are 0 in `actual`. A 2-state
            engine (Verilator) never sees one.
        flags: codes of status flags, of the shape of `actual`; None where the unit has none.
        failures: in the order of their cycles.
        cycles: clock cycles of the run.
        resets: resets in mid-flight that there really were.
        seconds_build, seconds_run: wall time.
        metavalues: how many results have a bit of each kind that is neither 0 nor 1, such as {"U": 12},
            if the engine distinguishes them.
        unset: signals of a unit in VHDL that hold nothing but 'U' at the end.
        printed: the beginning of what the unit printed in engine fast, `$display` or a failed `$warning`.
    """

    engine: str
    simulator: str
    version: str
    actual: Bits
    received: npt.NDArray[np.bool_]
    unknown: npt.NDArray[np.bool_]
    failures: list[ProtocolFailure] = field(default_factory=list)
    cycles: int = 0
    resets: int = 0
    seconds_build: float = 0.0
    seconds_run: float = 0.0
    flags: Bits | None = None
    translated: str = ""
    metavalues: dict[str, int] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    printed: str = ""

    @property
    def results(self) -> dict[str, Bits]:
        """What came by name: d and, where the unit has status flags, flags."""
        return {"d": self.actual} | ({} if self.flags is None else {"flags": self.flags})
