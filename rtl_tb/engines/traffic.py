"""The one definition of the traffic: how long each vector and each result waits, and when the unit is reset.

A unit is a state machine that is seen through its ports alone. Of what can lie between two transactions the
plan draws every dimension by itself, so that each condition meets each other and every kind of operands:

    gap      cycles in which nothing is offered before a vector: none, some few, about a power of two
    stall    cycles in which its result is not taken, the same
    other    which vector lies on the input meanwhile: a neighbour, which may share operands, or any
    reset    how long after the vector was taken the unit is reset, whether what is in flight comes first,
             and how long nothing is offered behind it

Engines play it and decide nothing: rtl_tb/engines/fast_harness.cpp and rtl_tb/templates/mmagold_tb.sv read
its words, the agents of rtl_tb/tb take them from here, UVM environments get the table of lengths.

A wait of n cycles is `cycles` (any) or `engaged`: it counts the cycles alone in which the other side is ready
(before a vector) or valid (before a result is taken). So a unit that is slower than its source is idle while
it could take something, and a result waits with nothing behind it. One that never is so would wait for ever:
an engaged wait ends after LIMIT cycles in any case, and behind MOST_EXPIRED that did all count any cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rtl_tb.engines.job import Job, Traffic

Words = npt.NDArray[np.uint32]

COLUMNS = ("gap", "stall", "other", "reset")
"""The words of a vector, in the order of the files that engines read."""
ENGAGED = 1 << 24
"""Bit of `gap` and `stall`: the wait counts cycles alone in which the other side is ready or valid."""
LIMIT, MOST_EXPIRED = 1024, 16
"""Cycles after which an engaged wait ends in any case, and how many do before all waits count any cycle."""
DRAINED = 1 << 8
"""Bit of `reset`: it waits until nothing is in flight. The low byte is 1 + the cycles from then, or from when
the vector was taken; the upper half are the idle cycles behind it."""

_MOST = LIMIT + 1
"""Cycles of a wait at most, other than the longest: one more than an engaged wait counts."""
_FEW = {1: 0.30, 2: 0.21, 3: 0.19, 4: 0.15}
"""The usual lengths of a wait and their shares; a counter or pipeline of the unit is as short as that."""
_ROUND, _ROUND_SHARE = (*(2**n + by for n in range(3, 11) for by in (-1, 0, 1)), 300), 0.08
"""Lengths about which a counter of n bits ends, and one more than 8 bits count; their shares fall with their
lengths, so that each costs the same number of cycles. The shares of all others fall faster."""


def _shares() -> npt.NDArray[np.float64]:
    shares = np.zeros(_MOST + 1)
    shares[1:] = 1.0 / np.arange(1, _MOST + 1) ** 2
    shares[: max(_FEW) + 1] = 0
    shares *= (1 - sum(_FEW.values()) - _ROUND_SHARE) / shares.sum()
    for length in _ROUND:
        shares[length] += _ROUND_SHARE / length / sum(1 / each for each in _ROUND)
    for length, share in _FEW.items():
        shares[length] = share
    return shares[1:]


LENGTHS, SHARES = np.arange(1, _MOST + 1, dtype=np.uint32), _shares()
"""The lengths that a wait has, in cycles, and the share of each."""
_UNDISTURBED = 4
"""The last of this many equal parts of a run has no reset: what each wait loses, a credit or a place of a
queue, adds up there. The longest waits are there, too: no reset cuts them short."""
_DELAYS = np.array([*range(1, 9), *range(1, 9), *range(1, 9), 12, 16, 24, 32, 48, 64, 128])
"""Cycles from when a vector was taken to the reset: each stage of a pipeline loses it once."""


@dataclass(frozen=True)
class Plan:
    """A traffic drawn for a number of vectors: the words of COLUMNS, (count,) each."""

    gap: Words
    stall: Words
    other: Words
    reset: Words

    @property
    def words(self) -> Words:
        """(count, 4): what engines read, a row a vector."""
        return np.stack([getattr(self, name) for name in COLUMNS], axis=1)


def plan_of(job: Job) -> Plan:
    """The traffic of a job. Vectors that are some of a longer run have what lay around them there."""
    if job.places is None:
        return plan(job.traffic.on(job.dut), len(job.vectors))
    whole = plan(job.traffic.on(job.dut), job.of)
    own = {name: getattr(whole, name)[job.places] for name in COLUMNS}
    # Of the vectors that lay on the input meanwhile, one that is not among these: the next one that is.
    own["other"] = np.searchsorted(job.places, own["other"]).astype(np.uint32) % np.uint32(len(job.places))
    return Plan(**own)


@lru_cache(maxsize=4)
def plan(traffic: Traffic, count: int) -> Plan:
    """Draws a traffic for a number of vectors. Each column is drawn by itself: without backpressure, say, the
    idle cycles are the same."""
    gap, stall, other, reset = (np.random.default_rng([traffic.seed, column]) for column in range(4))
    gaps, stalls = waits(traffic.idle, count, gap), waits(traffic.backpressure, count, stall)
    if traffic.backpressure and traffic.idle:
        # Gaps that are so long have the result before them wait every other time: else none stands alone.
        far = 17
        alone = np.flatnonzero((gaps[1:] & (ENGAGED - 1)) >= far)
        alone = alone[::2]
        longest = (gaps[1:] & (ENGAGED - 1))[alone]
        stalls[alone] = ENGAGED | np.minimum(_lengths(len(alone), stall), longest)
    longest_gap, longest_stall = _with_a_long_one(gaps), _with_a_long_one(stalls)
    # The result before the longest gap waits with nothing behind it, for this many cycles.
    lone_stall = 64
    if longest_gap and longest_stall is not None and longest_gap - 1 != longest_stall:
        stalls[longest_gap - 1] = ENGAGED | lone_stall
    drawn = Plan(gaps, stalls, _others(count, other), _resets(traffic.resets, count, reset))
    for name in COLUMNS:
        getattr(drawn, name).flags.writeable = False  # it is kept, and handed to everyone
    return drawn


def waits(share: float, count: int, rng: np.random.Generator) -> Words:
    """The waits of `count` transactions, of which this share waits at all."""
    found = np.zeros(count, np.uint32)
    # Transactions of a burst; the share of them that waits; and the share of the run that bursts are, as a
    # multiple of the share of all that wait. Between bursts fewer wait, so that the share of all stays.
    burst, busy, in_bursts = 64, 0.9, 0.3
    rows = count // burst + 1
    dense = int(share * in_bursts * rows)
    shares = np.full(rows, (share * rows - busy * dense) / (rows - dense))
    shares[rng.permutation(rows)[:dense]] = busy
    shares = np.repeat(shares, burst)[:count]
    waiting = np.flatnonzero(rng.random(count) < shares)
    found[waiting] = _lengths(len(waiting), rng)
    engaged_share = 0.25
    found[waiting[rng.random(len(waiting)) < engaged_share]] |= ENGAGED
    return found


def _with_a_long_one(words: Words) -> int | None:
    """Makes one of many waits the longest, in the part without resets, and says where it is; None of few."""
    waiting = np.flatnonzero(words)
    if len(waiting) < 16:  # few waits belong to a short run
        return None
    # The middle of the last part. Longer than an 8-bit counter counts, and in runs of many vectors one more
    # than the power of two that is an eighth of them, up to what a 16-bit counter counts.
    at = len(waiting) - len(waiting) // (2 * _UNDISTURBED)
    longest = int(waiting[at])
    words[longest] = length = min(max(300, (1 << (len(words) // 8).bit_length() >> 1) + 1), (1 << 16) + 1)
    # Behind it one of half its length, of a quarter, ...: what a long wait spoils may show on some operands
    # only, so that a counter has another try for each bit by which it is shorter.
    apart = len(waiting) // (16 * _UNDISTURBED)
    while (length := length // 2 + 1) > _MOST:
        at += apart
        words[waiting[at]] = length
    return longest


def _lengths(count: int, rng: np.random.Generator) -> Words:
    """Lengths in random order, each as often as its share says, to one: a short run has long ones, too."""
    even = (rng.permutation(count) + rng.random()) / max(count, 1)
    chosen = np.searchsorted(np.cumsum(SHARES), even, side="right")
    return LENGTHS[np.minimum(chosen, len(LENGTHS) - 1)]


def _others(count: int, rng: np.random.Generator) -> Words:
    near = np.arange(count) + rng.integers(-2, 2, count)
    any_ = rng.integers(0, max(count, 1), count)
    # Share of the vectors before which a neighbour lies on the input, from two before it to one behind.
    near_share = 0.5
    return np.asarray(np.where(rng.random(count) < near_share, near, any_) % max(count, 1), np.uint32)


def _resets(resets: int, count: int, rng: np.random.Generator) -> Words:
    """Spread over the run but for its last part, each somewhere in its share, one behind a vector at most."""
    found = np.zeros(count, np.uint32)
    resets = min(resets, count)
    disturbed = max(count - count // _UNDISTURBED, resets)
    edges = np.arange(resets + 1) * disturbed // max(resets, 1)
    at = rng.integers(edges[:-1], edges[1:]) if resets else np.zeros(0, np.int64)
    delay = rng.choice(_DELAYS, resets)
    # Idle cycles after the first reset and up to seven others: a late result of an operand from before the
    # reset then comes alone, up to this many cycles after it, and is seen as a result of no vector.
    quiet = 320
    behind = np.where(rng.random(resets) < 0.5, 0, np.minimum(_lengths(resets, rng), quiet))
    most_quiet = 8
    behind[: 2 * most_quiet : 2] = quiet
    drained_share = 0.25
    drained = np.where(rng.random(resets) < drained_share, DRAINED, 0)
    drained[:1] = 0
    found[at] = (1 + delay) | drained | (behind << 16)
    return found
