"""Agents for a unit with valid/ready handshakes: a source, a sink and a monitor, for use inside cocotb.

A `Channel` is one handshake with its data. Its signals are sampled once at every rising edge of the clock, as
the unit's registers see them, and only then the agents on it drive new values. One coroutine, `Clocked`, does
this for all agents: an await costs more than everything that the agents do in a cycle, so they share it.

    source = Source(Channel(dut.in_valid, dut.in_ready, Bus(dut.a, dut.b, dut.c)), idle=0.2)
    sink = Sink(Channel(dut.out_valid, dut.out_ready, Bus(dut.d)), backpressure=0.3)
    monitor = Monitor(sink.channel)
    Clocked(dut.clk, source, sink, monitor).start()
    source.send([0x1234, 0x5678])

Data are words: whole numbers going in, strings of 0, 1, X and Z (MSB first) coming out,
so that an X is never lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

import cocotb
import numpy as np

from rtl_tb.engines.job import ProtocolFailure
from rtl_tb.errors import RtlError

Handle = Any
"""A cocotb handle of a scalar or vector signal."""
_BLOCK = 4096
"""Random decisions drawn at a time."""
_PAUSE = 256
"""Cycles after which a source that waits for a ready unit to see it idle gives up."""
_AWAKE, _ASLEEP = 2, 64
"""Cycles that such a pause lasts from when the unit is ready; the long ones let it fall asleep."""
_FIRST_LONG, _LONG = 64, 300
"""The 64th cycle of waiting, and the 128th, the 256th ..., lasts so many more: more than an 8-bit counter
counts."""
_SLOW = 16
"""One cycle in so many of a long wait of the source takes a result, so that the last one, too, waits."""
MOST_FAILURES = 16
"""Protocol failures of one kind that are kept; a broken handshake fails on every cycle."""


def decisions(probability: float, rng: np.random.Generator) -> Iterator[bool]:
    """Yields True with the given probability, forever."""
    if probability <= 0.0:
        yield from repeat(False)
    while True:
        yield from (rng.random(_BLOCK) < probability).tolist()


class Waits:
    """Decides, cycle by cycle, whether a side of a handshake waits.

    Single cycles at random never show what a unit does in a long wait: a few of them last.

    Attributes:
        left: cycles that a long wait still has.
    """

    def __init__(self, probability: float, rng: np.random.Generator) -> None:
        """`probability` that a cycle waits, but for the long waits."""
        self._drawn = decisions(probability, rng)
        self._seen, self._next_long, self.left = 0, _FIRST_LONG, 0

    @property
    def slows(self) -> bool:
        """Whether the other side should wait, too: random waits of a sink hardly meet a pipeline that has run
        empty behind the result that waits."""
        return self.left % _SLOW != 0

    def decide(self) -> bool:
        """Whether the next cycle waits."""
        if self.left:
            self.left -= 1
            return True
        if not next(self._drawn):
            return False
        self._seen += 1
        if self._seen == self._next_long:
            self.left, self._next_long = _LONG, 2 * self._next_long
        return True


class Bus:
    """One word in one or several ports, the most significant first,
    as in the Verilog concatenation {a, b, c}."""

    def __init__(self, *handles: Handle) -> None:
        """Takes the handles of the ports."""
        if not handles:
            raise RtlError("a Bus needs at least one port")
        self.handles = handles
        self.width = sum(len(handle) for handle in handles)
        lsb, self._slices = self.width, []
        for handle in handles:
            lsb -= len(handle)
            self._slices.append((handle, lsb, (1 << len(handle)) - 1))

    def write(self, word: int) -> None:
        """Drives a word."""
        if len(self._slices) == 1:
            self.handles[0].value = word
            return
        for handle, lsb, mask in self._slices:
            handle.value = word >> lsb & mask

    def read(self) -> str:
        """The bits as 0, 1, X and Z, MSB first."""
        if len(self._slices) == 1:
            return str(self.handles[0].value)
        return "".join([str(handle.value) for handle in self.handles])


class Channel:
    """One valid/ready handshake with its data.

    Attributes:
        valid, ready: what the last edge saw; an unknown level counts as low. A handle of None stands for a
            signal that the unit does not have: always high.
        unknown: the signals that were X or Z since somebody emptied this, as "in_ready is X".
    """

    def __init__(self, valid: Handle | None, ready: Handle | None, data: Bus) -> None:
        """Takes the handles of the two handshake signals and the data."""
        self.valid_handle, self.ready_handle, self.data = valid, ready, data
        self.valid = self.ready = False
        self.unknown: tuple[str, ...] = ()
        # Levels that an agent drives are known and not read back; None: read the signal.
        self._driven_valid: bool | None = True if valid is None else None
        self._driven_ready: bool | None = True if ready is None else None

    def drive_valid(self, level: bool) -> None:
        """Drives valid for the next edge."""
        if self.valid_handle is not None:
            self._driven_valid = level
            self.valid_handle.value = int(level)

    def drive_ready(self, level: bool) -> None:
        """Drives ready for the next edge."""
        if self.ready_handle is not None:
            self._driven_ready = level
            self.ready_handle.value = int(level)

    def sample(self) -> None:
        """Notes the levels at this edge."""
        valid, ready = self._driven_valid, self._driven_ready
        self.valid = self._read(self.valid_handle) if valid is None else valid
        self.ready = self._read(self.ready_handle) if ready is None else ready

    def _read(self, handle: Handle) -> bool:
        level = str(handle.value)
        if level not in "01":
            self.unknown = (*self.unknown, f"{handle._name} is {level}")
        return level == "1"

    def describe(self) -> str:
        """The state of the handshake for messages: "in_valid=1 in_ready=0"."""
        return " ".join(
            f"{handle._name}={handle.value}"
            for handle in (self.valid_handle, self.ready_handle)
            if handle is not None
        )


class Agent(Protocol):
    """What `Clocked` runs."""

    channel: Channel

    def step(self, cycle: int) -> None:
        """Called once an edge, after all channels were sampled."""

    def reset(self) -> None:
        """Called when a reset begins."""


class Source:
    """Offers words on a channel, in order, each held until it is taken.

    Attributes:
        words: everything that was given to `send`.
        position: index of the next word to offer or being offered; all before it were accepted.
        accepted_at: the cycle in which each accepted word was.
        quiet: while True, nothing new is offered.
        instead: words to offer once in place of those at these positions.
    """

    def __init__(
        self,
        channel: Channel,
        idle: float = 0.0,
        rng: np.random.Generator | None = None,
        pauses: bool = False,
    ) -> None:
        """Takes the channel.

        Args:
            idle: the probability that a cycle offers nothing although a word waits.
            pauses: whether a quarter of such cycles become pauses until the unit has been ready for _AWAKE
                cycles, or for _ASLEEP in one of sixteen: one that is slower than its source would hardly be
                ready and idle at once.
        """
        self.channel = channel
        rng = rng or _generator()
        self.pause_left = self._pause_ready = 0
        self._pauses = decisions(0.25, rng) if pauses else repeat(False)
        self._sleeps = decisions(1 / 16, rng)
        self.words: list[int] = []
        self.position = 0
        self.accepted_at: list[int] = []
        self.quiet = False
        self.instead: dict[int, int] = {}
        self.waits = Waits(idle, rng)
        channel.drive_valid(False)

    def send(self, words: Iterable[int]) -> None:
        """Appends words to what is offered."""
        self.words.extend(words)

    def rewind(self, position: int) -> None:
        """Offers again from `position` on; for a reset that lost what was in flight."""
        self.position = position
        del self.accepted_at[position:]

    def step(self, cycle: int) -> None:
        """Notes whether the word was taken and offers the next one."""
        channel = self.channel
        offering = channel.valid
        if offering:
            if not channel.ready:
                return
            self.accepted_at.append(cycle)
            self.position += 1
        if self.position == len(self.words) or self.quiet or self._idles():
            if offering:
                channel.drive_valid(False)
            return
        word = self.words[self.position]
        channel.data.write(self.instead.pop(self.position, word) if self.instead else word)
        if not offering:
            channel.drive_valid(True)

    def _idles(self) -> bool:
        if self.pause_left:
            self.pause_left -= 1
            self._pause_ready -= self.channel.ready
            if not self._pause_ready:
                self.pause_left = 0
            return True
        if not self.waits.decide():
            return False
        if not self.waits.left and next(self._pauses):
            self.pause_left, self._pause_ready = _PAUSE, _ASLEEP if next(self._sleeps) else _AWAKE
        return True

    def reset(self) -> None:
        """Stops offering; the caller says with `rewind` what to send again."""
        self.channel.drive_valid(False)


class Sink:
    """Takes words from a channel; a `Monitor` on it sees them.

    Attributes:
        open: while True, there is no backpressure.
        source: the waits of the unit's source; the long ones slow a sink that has backpressure, too.
    """

    def __init__(
        self, channel: Channel, backpressure: float = 0.0, rng: np.random.Generator | None = None
    ) -> None:
        """`backpressure` is the probability that a cycle takes nothing."""
        self.channel = channel
        self.open, self.stalls = False, backpressure > 0
        self.source: Waits | None = None
        self.waits = Waits(backpressure, rng or _generator())
        channel.drive_ready(True)

    @property
    def slow(self) -> bool:
        """Whether it waits because the source does."""
        return self.stalls and self.source is not None and self.source.slows

    def step(self, cycle: int) -> None:
        """Decides about the next cycle."""
        ready = self.open or not (self.waits.decide() or self.slow)
        if ready != self.channel.ready:
            self.channel.drive_ready(ready)

    def reset(self) -> None:
        """Takes nothing during the reset, or a word that it does not flush would drain unseen."""
        self.channel.drive_ready(False)


@dataclass(frozen=True)
class Transfer:
    """One word that passed a channel: its bits (0, 1, X, Z; MSB first) and the cycle."""

    bits: str
    cycle: int


class Monitor:
    """Watches a channel without driving it: records transfers and checks the rules of the handshake.

    The rules: once high, valid stays high and the data stay the same until ready takes them; neither signal
    is X or Z.

    Attributes:
        transfers: everything that passed, unless `on_transfer` takes it.
        failures: broken rules, in the order of their cycles, at most MOST_FAILURES of a kind.
        index: the number of the transfer that comes next, for failures; whoever takes the transfers counts.
        waited: cycles in which valid was high and ready low.
    """

    def __init__(self, channel: Channel, on_transfer: Callable[[str, int], None] | None = None) -> None:
        """`on_transfer(bits, cycle)` is called for every transfer instead of recording it."""
        self.channel = channel
        self.transfers: list[Transfer] = []
        self.failures: list[ProtocolFailure] = []
        self.on_transfer = on_transfer or self._record
        self.index = self.waited = 0
        self._held: str | None = None
        self._counts: dict[str, int] = {}

    def fail(self, kind: str, cycle: int, text: str, vector: int | None = None) -> None:
        """Adds a failure."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._counts[kind] <= MOST_FAILURES:
            self.failures.append(ProtocolFailure(kind, cycle, vector, text))

    def step(self, cycle: int) -> None:
        """Checks the rules and notes a transfer."""
        channel = self.channel
        if channel.unknown:
            self._unknown(cycle)
        if not channel.valid:
            if self._held is not None:
                self._held = None
                self.fail(
                    "valid_dropped",
                    cycle,
                    f"valid fell before ready took the word: {channel.describe()}",
                    self.index,
                )
            return
        bits = channel.data.read()
        if self._held is not None and bits != self._held:
            text = f"the data changed from {_hex(self._held)} to {_hex(bits)} while valid waited"
            self.fail("unstable_output", cycle, text, self.index)
        if channel.ready:
            self._held = None
            self.on_transfer(bits, cycle)
        else:
            self._held = bits
            self.waited += 1

    def reset(self) -> None:
        """Forgets the word that was waiting: a reset may drop it."""
        self._held = None

    def _record(self, bits: str, cycle: int) -> None:
        self.transfers.append(Transfer(bits, cycle))
        self.index += 1

    def _unknown(self, cycle: int) -> None:
        self.fail("x_on_handshake", cycle, " and ".join(self.channel.unknown))
        self.channel.unknown = ()


class Clocked:
    """Runs agents: at every rising edge first all channels are sampled, then the agents act in their order.

    Attributes:
        cycle: rising edges so far.
        held: cycles during which the agents rest because the unit is in reset.
    """

    def __init__(self, clock: Handle, *agents: Agent, then: Callable[[int], None] | None = None) -> None:
        """Takes the clock's handle and the agents.

        Put a Source before the Monitor of the answers, for units that answer at once. `then` is called after
        the agents.
        """
        self.clock, self.agents = clock, agents
        self._steps = [agent.step for agent in agents] + ([then] if then else [])
        self.cycle, self.held = 0, 0
        self.running = False
        self._released: Callable[[], None]

    def start(self) -> None:
        """Starts the coroutine unless it runs; it ends with the test, or when `running` is made False."""
        if not self.running:
            self.running = True
            cocotb.start_soon(self._run())

    def hold(self, cycles: int, then: Callable[[], None] = lambda: None) -> None:
        """Tells the agents of a reset, lets them rest for some cycles, then calls `then`."""
        self.held, self._released = cycles, then
        for agent in self.agents:
            agent.reset()

    async def _run(self) -> None:
        edge = self.clock.rising_edge
        samples = [channel.sample for channel in dict.fromkeys(agent.channel for agent in self.agents)]
        steps = self._steps
        while self.running:
            await edge
            self.cycle += 1
            if self.held:
                self.held -= 1
                if not self.held:
                    self._released()
                continue
            for sample in samples:
                sample()
            for step in steps:
                step(self.cycle)


def _generator() -> np.random.Generator:
    """A generator seeded as cocotb is, with COCOTB_RANDOM_SEED."""
    return np.random.default_rng(cocotb.RANDOM_SEED)


def _hex(bits: str) -> str:
    return f"0x{int(bits, 2):0{(len(bits) + 3) // 4}x}" if set(bits) <= {"0", "1"} else bits
