"""Complete test benches for a unit with valid/ready handshakes: `Bench` moves words, `DotProductTB` also
checks them.

@cocotb.test()
async def matches_hopper(dut):
    tb = DotProductTB(dut, golden.instruction("hopper", "HMMA.16816.F32"), idle=0.2, backpressure=0.3)
    await tb.reset()
    await tb.run(tb.vectors(2000))
    tb.scoreboard.assert_clean()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Event

from golden.errors import nearest
from rtl_tb.engines import traffic
from rtl_tb.engines.job import ProtocolFailure, Traffic, changed_text
from rtl_tb.errors import DutTimeout, RtlError
from rtl_tb.tb.agents import Bus, Channel, Clocked, Handle, Monitor, Sink, Source

if TYPE_CHECKING:
    from golden.cover.coverage import Coverage
    from golden.model.instruction import Instruction
    from golden.vectors.vectorset import VectorSet
    from rtl_tb.tb.scoreboard import Compare

Bits = npt.NDArray[Any]
DEFAULT_PORTS: dict[str, str | Sequence[str]] = {
    "clk": "clk",
    "rst_n": "rst_n",
    "in_valid": "in_valid",
    "in_ready": "in_ready",
    "in_data": "in_data",
    "out_valid": "out_valid",
    "out_ready": "out_ready",
    "out_data": "out_data",
}
"""Ports of the generated wrapper `mmagold_dut`."""


class Bench:
    """Clock, reset, source, sink and monitor around a unit; runs words through it and keeps what comes back.

    Attributes:
        source, sink, monitor, clocked: see rtl_tb/tb/agents.py.
        results: bits of every result in order, MSB first.
        result_cycles: the cycle of each.
    """

    def __init__(
        self,
        dut: Handle,
        ports: Mapping[str, str | Sequence[str] | None] | None = None,
        *,
        idle: float = 0.0,
        backpressure: float = 0.0,
        seed: int | None = None,
        timeout_cycles: int = 10_000,
        reset_cycles: int = 4,
        state: int = 0,
    ) -> None:
        """Finds the ports and starts the clock and the agents.

        Args:
            dut: cocotb's handle of the top level.
            ports: names of the unit's ports by role, where they differ from DEFAULT_PORTS. in_data and
                out_data may be lists, the most significant port first; None for a ready, valid or reset that
                the unit does not have; "rst" instead of "rst_n" for a reset that is active high.
            idle, backpressure: see rtl_tb.engines.job.Traffic.
            seed: of the traffic; cocotb's own seed (COCOTB_RANDOM_SEED) if None.
            timeout_cycles: cycles without progress after which `run` gives up.
            reset_cycles: length of a reset.
            state: `restarts` of the instruction: not 0 where bit 0 of a word clears what the unit keeps. So
                does a reset: what led to it is then sent again.
        """
        seed = cocotb.RANDOM_SEED if seed is None else seed
        for name, cycles in (("timeout_cycles", timeout_cycles), ("reset_cycles", reset_cycles)):
            if cycles < 1:
                raise RtlError(f"{name} is {cycles}, expected 1 or more")
        handles = _Ports(dut, ports or {})
        self.timeout_cycles, self.reset_cycles, self.state = timeout_cycles, reset_cycles, state
        self.rng = np.random.default_rng(seed)
        self.traffic = Traffic(idle, backpressure, seed=seed % 2**32)
        self.source = Source(handles.channel("in"), idle, self.rng)
        self.sink = Sink(handles.channel("out"), backpressure, self.rng)
        self.sink.source, self.source.may_offer = self.source, self._may_offer
        self.monitor = Monitor(self.sink.channel, self._result)
        self.results: list[str] = []
        self.result_cycles: list[int] = []
        self._zero_at: set[int] = set()
        """Words before which the unit was reset while nothing was in flight: its state was zero."""
        self._reset: Handle
        self._reset, self._reset_level = handles.reset()
        self._resets: dict[int, int] = {}
        """Words of traffic.py that are still to come, by the vector that they are behind."""
        self._countdown = self._event = 0
        self.resets_done = 0
        self._progress = (0, 0)
        self._quiet = self._quiet_until = self._finish_at = 0
        self._timeout: str | None = None
        self._finished = Event()
        self._finished.set()
        if self._reset is not None:
            self._reset.value = 1 - self._reset_level
        clock = handles.clock()
        # The GPI clock saves 30 to 70 us a cycle on Icarus, where cocotb's default is a clock in Python.
        Clock(clock, 10, "ns", impl="gpi").start(start_high=False)
        # It runs from the first reset or vector on: before, the unit's outputs may well be X.
        self.clocked = Clocked(clock, self.source, self.sink, self.monitor, then=self._step)

    @property
    def failures(self) -> list[ProtocolFailure]:
        """Broken rules of the handshake so far."""
        return self.monitor.failures

    @property
    def in_flight(self) -> int:
        """Words that were accepted and not answered."""
        return self.source.position - self.answered

    @property
    def answered(self) -> int:
        """Words whose results came, and need not come again because of a reset."""
        return len(self.result_cycles)

    async def reset(self) -> None:
        """Resets the unit and watches for stale results. What was in flight is sent again
        by the next `run_words`."""
        if self._reset is None:
            return
        self.clocked.start()
        self._begin_reset()
        self._quiet_until = self.clocked.cycle + self.reset_cycles + self._window()
        self.source.quiet = self.sink.open = True
        await ClockCycles(self.clocked.clock, self.reset_cycles + 1)

    async def run_words(self, words: Iterable[int], resets: int = 0, fresh: bool = False) -> None:
        """Sends words, waits for equally many results, and watches for more;
        `resets` times on the way the unit is reset. `fresh`: before the first word, too.

        Raises:
            DutTimeout: nothing moved for `timeout_cycles` cycles; the failure is in `failures` as well.
            RtlError: there is no reset, or words of another run are still on their way.
        """
        if resets and self._reset is None:
            raise RtlError(f"resets={resets}, but the ports name no reset")
        if not self._finished.is_set():
            raise RtlError("another run of this bench has not ended")
        if fresh and self._reset is not None:
            self._begin_reset()
        first = len(self.source.words)
        self.source.send(words)
        self._plan(first, resets)
        if self.clocked.held and not first:  # the first cycle of that reset had no word to show
            self.source.show_in_reset(complement=True)
        self._quiet, self._finish_at, self._timeout = 0, 0, None
        self._finished.clear()
        self.clocked.start()
        await self._finished.wait()
        if self._timeout is not None:
            raise DutTimeout(self._timeout)

    def describe(self) -> str:
        """The state of both handshakes: "in_valid=1 in_ready=0 out_valid=0 out_ready=1"."""
        return f"{self.source.channel.describe()} {self.sink.channel.describe()}"

    def _plan(self, first: int, resets: int) -> None:
        """Draws the traffic of the words from `first` on."""
        source = self.source
        chosen = replace(self.traffic, resets=resets, seed=(self.traffic.seed + first) % 2**32)
        drawn = traffic.plan(chosen, len(source.words) - first)
        source.waits.words[first:] = drawn.gap.tolist()
        source.others[first:] = (drawn.other + first).tolist()
        self.sink.waits.words[first:] = drawn.stall.tolist()
        if self._reset is not None:
            behind = np.flatnonzero(drawn.reset)
            self._resets = dict(zip((behind + first).tolist(), drawn.reset[behind].tolist(), strict=True))

    # Called at every edge, after source, sink and monitor ---------------------------------------------------

    def _step(self, cycle: int) -> None:
        channel = self.source.channel
        if channel.unknown:
            self.monitor.fail("x_on_handshake", cycle, " and ".join(channel.unknown))
            channel.unknown = ()
        self.source.quiet = self.sink.open = False
        if cycle < self._quiet_until:
            self.source.quiet = self.sink.open = True
        elif not self._finished.is_set():
            self._advance(cycle, self.source.position, self.answered)

    def _may_offer(self) -> bool:
        """Before some resets all that is in flight comes."""
        self._arm()
        return not (self._countdown and self._event & traffic.DRAINED)

    def _arm(self) -> None:
        """Each reset is armed once, when its vector was taken."""
        if not self._countdown and self._resets:
            behind = next(iter(self._resets))
            if behind < self.source.position:
                self._event = self._resets.pop(behind)
                self._countdown = self._event & 0xFF

    def _reset_due(self) -> bool:
        """It is due some cycles later, or some after nothing is in flight any more."""
        self._arm()
        waits = self._event & traffic.DRAINED and (self.source.offering or self.in_flight)
        if not self._countdown or waits:
            return False
        self._countdown -= 1
        return not self._countdown

    def _advance(self, cycle: int, sent: int, answered: int) -> None:
        total = len(self.source.words)
        if self._reset_due():
            self._begin_reset()
            self.resets_done += 1
            self.source.waits.begin(self._event >> 16)
        elif answered == total and not self._countdown:
            self._watch_end(cycle)
        elif (sent, answered) != self._progress or (not self.in_flight and not self.source.channel.valid):
            self._progress, self._quiet = (sent, answered), 0
        elif self.sink.channel.ready:
            self._quiet += 1
            if self._quiet < self.timeout_cycles:
                return
            self._timeout = (
                f"{self.describe()} after {self.timeout_cycles} cycles, {self.in_flight} in flight"
            )
            self.monitor.fail("timeout", cycle, self._timeout, answered)
            self._finished.set()

    def _watch_end(self, cycle: int) -> None:
        """All is answered: some more cycles without backpressure show whether more comes."""
        self.sink.open = True
        if not self._finish_at:
            self._finish_at = cycle + self._window()
        elif cycle >= self._finish_at:
            self._finished.set()

    def _result(self, bits: str, cycle: int) -> None:
        index = self.answered
        if index < self.source.position:
            if self.results[index : index + 1] not in ([], [bits]):
                self._answered_again(index, self.results[index], bits, cycle)
            self.results[index : index + 1] = [bits]
            self.result_cycles.append(cycle)
            self.monitor.index = self.answered
        elif self.source.fresh:
            self.monitor.fail(
                "stale_after_reset", cycle, "a result came after the reset, before anything was sent again"
            )
        else:
            self.monitor.fail(
                "extra_result", cycle, f"a result came although all {len(self.results)} were answered"
            )
        self.sink.position = self.answered

    def _answered_again(self, index: int, before: str, now: str, cycle: int) -> None:
        """A word that was sent again after a reset got other bits; `DotProductTB` knows what they mean."""
        self.monitor.fail("changed_answer", cycle, changed_text(now), index)

    def _begin_reset(self) -> None:
        """Asserts the reset; what is in flight is lost."""
        self._reset.value = self._reset_level
        self._go_back()
        self._finish_at = 0
        complement = self.resets_done % 2 == 0
        self.clocked.hold(self.reset_cycles, self._end_reset, lambda: self.source.show_in_reset(complement))

    def _go_back(self) -> None:
        """What was in flight is sent again; where the unit lost its state, with what led to it."""
        words, start = self.source.words, self.answered
        if self.state and start == len(words):
            self._zero_at.add(start)
        elif self.state:
            while start and start not in self._zero_at and not words[start] & 1:
                start -= 1
            # After a reset the state is zero without it; what clears alone has no products.
            self.source.instead = {start: words[start] & ~1 if self.state == 1 else 0}
        del self.result_cycles[start:]
        self.source.rewind(start)
        self.monitor.index = self.sink.position = start

    def _end_reset(self) -> None:
        self._reset.value = 1 - self._reset_level
        self.source.choose()
        self.sink.choose()

    def _window(self) -> int:
        """Cycles in which a late result would come: twice the longest time that one took so far."""
        taken = [end - start for start, end in zip(self.source.accepted_at, self.result_cycles, strict=False)]
        # Cycles in which unexpected results would come, more if the unit is slower.
        least = 16
        return max(least, 2 * max(taken, default=0))


class _Ports:
    """The handles of a unit's ports by role."""

    def __init__(self, dut: Handle, names: Mapping[str, str | Sequence[str] | None]) -> None:
        unknown = [role for role in names if role not in (*DEFAULT_PORTS, "rst")]
        if unknown:
            known = ", ".join(DEFAULT_PORTS)
            raise RtlError(
                f"unknown port role '{unknown[0]}', expected one of "
                f"{known}{nearest(unknown[0], DEFAULT_PORTS)}"
            )
        if names.get("rst") and names.get("rst_n"):
            raise RtlError("port roles 'rst' and 'rst_n' are both named, expected one reset")
        self._dut = dut
        self._names: dict[str, str | Sequence[str] | None] = {**DEFAULT_PORTS, **names}
        if "rst" in names:
            self._names["rst_n"] = None
        roles: dict[str, str] = {}
        for role, given in self._names.items():
            for name in [given] if isinstance(given, str) else given or []:
                if name in roles:
                    raise RtlError(f"port '{name}' has two roles: {roles[name]} and {role}")
                roles[name] = role

    def clock(self) -> Handle:
        """The clock's handle."""
        clock = self.one("clk")
        if clock is None:
            raise RtlError("port role 'clk' is None, expected the name of the clock")
        return clock

    def _find(self, role: str, name: str) -> Handle:
        if not hasattr(self._dut, name):
            raise RtlError(
                f"{self._dut._name} has no port '{name}' (role {role}); name it with ports={{'{role}': ...}}"
            )
        return getattr(self._dut, name)

    def one(self, role: str) -> Handle | None:
        """The handle of a single port; None where the unit has none."""
        name = self._names.get(role)
        if name is not None and not isinstance(name, str):
            raise RtlError(f"port role '{role}' is {name!r}, expected one name")
        if name is None:
            return None
        handle = self._find(role, name)
        if len(handle) != 1:
            raise RtlError(f"port '{name}' (role {role}) has {len(handle)} bits, expected 1")
        return handle

    def channel(self, side: str) -> Channel:
        """The channel "in" or "out"."""
        if self._names[f"{side}_valid"] is None:
            raise RtlError(
                f"port role '{side}_valid' is None: describe a unit without it in a dut.yaml and take the "
                "generated wrapper"
            )
        names = self._names[f"{side}_data"]
        listed = [names] if isinstance(names, str) else names or []
        data = Bus(*(self._find(f"{side}_data", name) for name in listed))
        return Channel(self.one(f"{side}_valid"), self.one(f"{side}_ready"), data)

    def reset(self) -> tuple[Handle | None, int]:
        """The reset's handle and its active level."""
        return (self.one("rst"), 1) if self._names.get("rst") else (self.one("rst_n"), 0)


class DotProductTB(Bench):
    """A `Bench` that packs operands, computes what the unit must answer and compares.

    Attributes:
        instruction: what the unit must compute.
        layout: the bits of its words, see golden/vectors/word.py.
        scoreboard: see rtl_tb/tb/scoreboard.py.
    """

    def __init__(
        self,
        dut: Handle,
        instruction: Instruction | str | Path,
        ports: Mapping[str, str | Sequence[str] | None] | None = None,
        *,
        level: str = "dot",
        compare: Compare | None = None,
        **options: Any,
    ) -> None:
        """Builds the bench.

        Args:
            dut: cocotb's handle of the top level.
            instruction: a golden instruction; or the path of a dut.yaml, and then `dut` is the generated
                `mmagold_dut` and level, comparison and length of the reset are the file's.
            ports, options: as of `Bench`. in_data takes the operand word (a b c, ... from the top), or one
                port for each.
            level: "dot" or "tile".
            compare: a ComparePolicy, or a function (format, expected, actual) -> array of bool.

        Raises:
            RtlError: a port is missing, or the ports are not as wide as the words.
        """
        # A third of what a bench without a model takes to start, such as that of the engine cocotb.
        from golden.model.instruction import Instruction
        from golden.vectors.word import WordLayout
        from rtl_tb.tb.scoreboard import Scoreboard

        if not isinstance(instruction, Instruction):
            from rtl_tb.dut.description import load_dut

            # A dut.yaml sets what the caller does not: reset, comparison, and whether results can be stalled.
            described = load_dut(instruction)
            instruction, level, compare = described.instruction, described.level, compare or described.compare
            if described.reset is not None:
                options.setdefault("reset_cycles", described.reset.cycles)
            if not described.can_stall_output:
                options["backpressure"] = 0.0
        super().__init__(dut, ports, state=instruction.restarts, **options)
        self.instruction, self.level = instruction, level
        self.layout = WordLayout.of(instruction, level)
        self.scoreboard = Scoreboard(instruction, level, compare)
        self.scoreboard.failures = self.failures
        # A port of another width would shift every operand: refused before a clock runs.
        for name, channel, width in (
            ("in_data", self.source.channel, self.layout.operand_width),
            ("out_data", self.sink.channel, self.layout.result_width),
        ):
            if channel.data.width != width:
                raise RtlError(
                    f"{name} has {channel.data.width} bits, expected {width} for {instruction.name} at "
                    f"level {level}"
                )

    def _answered_again(self, index: int, before: str, now: str, cycle: int) -> None:
        if not self.scoreboard.same(before, now):
            super()._answered_again(index, before, now, cycle)

    @cached_property
    def coverage(self) -> Coverage:
        """Functional coverage of what is checked from the first use of this on, see golden/cover/coverage.py.

        Raises:
            RtlError: the level is "tile"; coverage looks at dot products.
        """
        if self.level != "dot":
            raise RtlError("functional coverage looks at dot products, but the level of this bench is 'tile'")
        from golden.cover.coverage import Coverage

        coverage = Coverage(self.instruction)
        self.scoreboard.on_checked(coverage.sample)
        return coverage

    def vectors(self, count: int, seed: int | None = None, **options: Any) -> VectorSet:
        """Draws vectors of mixed kinds; the seed is cocotb's (COCOTB_RANDOM_SEED) if None."""
        from golden.vectors.vectorset import default_set

        return default_set(
            self.instruction, count, cocotb.RANDOM_SEED if seed is None else seed, self.level, **options
        )

    async def run(self, vectors: VectorSet | Mapping[str, Bits], resets: int = 0) -> None:
        """Runs vectors, or operands by name, (count, *shape) each,
        and gives words and results to the scoreboard.

        Raises:
            DutTimeout: see `run_words`; what came until then is on the scoreboard.
        """
        operands = vectors if isinstance(vectors, Mapping) else vectors.operands
        words = self.scoreboard.packed(operands)
        first = self.answered
        if first in self._zero_at:
            self.scoreboard.state_lost()
        self.scoreboard.expect(words)
        try:
            await self.run_words((int.from_bytes(word, "little") for word in words), resets)
        finally:
            self.scoreboard.receive(self.results[first : self.answered])
