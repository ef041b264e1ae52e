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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import cocotb
import numpy as np

from rtl_tb.engines import traffic
from rtl_tb.engines.job import ProtocolFailure, Traffic
from rtl_tb.errors import RtlError

Handle = Any
"""A cocotb handle of a scalar or vector signal."""
MOST_FAILURES = 16
"""Protocol failures of one kind that are kept; a broken handshake fails on every cycle."""


class Waits:
    """The waits of one side of a handshake, by transaction, as rtl_tb/engines/traffic.py has them: a word
    is a number of cycles; with ENGAGED added, only cycles count in which the other side is ready or
    valid.

    Attributes:
        words: of each transaction; what is missing is drawn.
        begun: whether the wait of the next transaction has begun.
    """

    def __init__(self, share: float, rng: np.random.Generator) -> None:
        """`share` of the transactions wait at all."""
        self.share, self._rng = share, rng
        self.words: list[int] = []
        self._left = self._limit = self._expired = 0
        self.begun = self._engaged = False

    def over(self, index: int) -> bool:
        """Whether a transaction has waited for as long as it has to."""
        if not self.begun:
            while index >= len(self.words):
                # Waits drawn at a time.
                block = 4096
                self.words += traffic.waits(self.share, block, self._rng).tolist()
            self.begin(self.words[index])
        return not self._left

    def begin(self, word: int) -> None:
        """Begins a wait: the next one is this."""
        self.begun, self._limit = True, traffic.LIMIT
        self._left, self._engaged = word % traffic.ENGAGED, word >= traffic.ENGAGED

    def end(self) -> None:
        """The next wait is that of its own transaction."""
        self.begun, self._left = False, 0

    def passed(self, met: bool) -> None:
        """A cycle has passed; `met`: in which the other side was ready, or valid."""
        if not self._left:
            return
        if not self._engaged or met or self._expired >= traffic.MOST_EXPIRED:
            self._left -= 1
            return
        self._limit -= 1
        if not self._limit:
            self._left, self._expired = 0, self._expired + 1


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
        first, *others = self._slices
        first[0].value = word >> first[1]  # cocotb refuses what does not fit
        for handle, lsb, mask in others:
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
        if self.valid_handle is not None and level != self._driven_valid:
            self._driven_valid = level
            self.valid_handle.value = int(level)

    def drive_ready(self, level: bool) -> None:
        """Drives ready for the next edge."""
        if self.ready_handle is not None and level != self._driven_ready:
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
        may_offer: called before something new is offered.
        fresh: whether nothing was accepted since a reset.
        instead: words to offer once in place of the words at these positions.
        others: where the words begin that lie on the channel while a word waits; any word where it is short.
    """

    def __init__(self, channel: Channel, idle: float = 0.0, rng: np.random.Generator | None = None) -> None:
        """Takes the channel.

        Args:
            idle: the share of the words before which nothing is offered for some cycles.

        Raises:
            RtlError: it is no such share, or the channel has no valid.
        """
        Traffic(idle=idle)
        if channel.valid_handle is None:
            raise RtlError("a Source needs a channel with a valid")
        self.channel = channel
        self._rng = rng or _generator()
        self.words: list[int] = []
        self.position = 0
        self.accepted_at: list[int] = []
        self.quiet = self.fresh = self.offering = False
        self.may_offer: Callable[[], bool] = lambda: True
        self.instead: dict[int, int] = {}
        self.others: list[int] = []
        self._shown = self._shown_before = 0
        self.waits = Waits(idle, self._rng)
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
        channel, self._shown_before = self.channel, self._shown
        if channel.valid:
            if not channel.ready:
                return
            self.accepted_at.append(cycle)
            self.position += 1
            self.waits.end()
            self.fresh = False
        else:
            self.waits.passed(channel.ready)
        self.choose()

    def choose(self) -> None:
        """Drives the channel for the next edge; nothing is being offered."""
        channel, at = self.channel, self.position
        waits = at == len(self.words) or self.quiet or not self._over(at) or not self.may_offer()
        self.offering = not waits
        if waits:
            channel.drive_valid(False)
            if self.words and self.waits.share:  # no result may depend on data without a valid
                channel.data.write(self.words[self._shown % len(self.words)])
                self._shown += 1
            return
        word = self.words[at]
        channel.data.write(self.instead.pop(at, word) if self.instead else word)
        channel.drive_valid(True)

    def _over(self, at: int) -> bool:
        if not self.waits.begun:
            self._shown = self.others[at] if at < len(self.others) else int(self._rng.integers(1 << 32))
        return self.waits.over(at)

    def reset(self) -> None:
        """Stops offering; the caller says with `rewind` what to send again."""
        self.channel.drive_valid(False)
        self._shown = self._shown_before  # a reset takes the place of the cycle that was just chosen
        self.offering, self.fresh = False, True
        self.waits.end()

    def show_in_reset(self, complement: bool) -> None:
        """Drives another word, or its complement: what a unit takes in during a reset must not matter, and
        many operands are zero."""
        if self.words:
            word = self.words[self._shown % len(self.words)]
            self._shown += 1
            self.channel.data.write(word ^ ((1 << self.channel.data.width) - 1) * complement)


class Sink:
    """Takes words from a channel; a `Monitor` on it sees them.

    Attributes:
        open: while True, there is no backpressure.
        position: the number of the word that comes next.
        source: of the unit: behind a reset, before it offers something, nothing that comes waits.
    """

    def __init__(
        self, channel: Channel, backpressure: float = 0.0, rng: np.random.Generator | None = None
    ) -> None:
        """`backpressure` is the share of the words that have to wait."""
        Traffic(backpressure=backpressure)
        self.channel = channel
        self.open = False
        self.position = 0
        self.source: Source | None = None
        self.waits = Waits(backpressure, rng or _generator())
        channel.drive_ready(True)

    def step(self, cycle: int) -> None:
        """Notes whether a word was taken and decides about the next cycle."""
        channel = self.channel
        if not channel.ready:
            self.waits.passed(channel.valid)
        elif channel.valid:
            self.position += 1
            self.waits.end()
        self.choose()

    def choose(self) -> None:
        """Drives the channel for the next edge."""
        source = self.source
        behind = source is not None and source.fresh and not source.offering
        self.channel.drive_ready(self.open or behind or self.waits.over(self.position))

    def reset(self) -> None:
        """Takes nothing during the reset, or a word that it does not flush would drain unseen."""
        self.channel.drive_ready(False)
        self.waits.end()


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
        self._resting: Callable[[], None]

    def start(self) -> None:
        """Starts the coroutine unless it runs; it ends with the test, or when `running` is made False."""
        if not self.running:
            self.running = True
            cocotb.start_soon(self._run())

    def hold(
        self,
        cycles: int,
        then: Callable[[], None] = lambda: None,
        each: Callable[[], None] = lambda: None,
    ) -> None:
        """Announces a reset to the agents, pauses them for some cycles, calls `each` in each of these, and
        then `then`."""
        self.held, self._released, self._resting = cycles, then, each
        for agent in self.agents:
            agent.reset()
        each()

    async def _run(self) -> None:
        edge = self.clock.rising_edge
        samples = [channel.sample for channel in dict.fromkeys(agent.channel for agent in self.agents)]
        steps = self._steps
        while self.running:
            await edge
            self.cycle += 1
            if self.held:
                self.held -= 1
                (self._resting if self.held else self._released)()
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
