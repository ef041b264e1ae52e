"""Which of a unit's reset, valid, ready and enable mean the other thing with 1 than its description says,
and which inputs of one bit it ties to the wrong value.

Each is tried turned over, alone and then with its fellow: where the unit then answers and keeps the
handshake, and did not before, that is its polarity, or its value. What comes of the wrong one is no
result of the arithmetic, and nothing is built on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from golden.errors import MmagoldError
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job
from rtl_tb.runs.verdict import Verdict, silent, verdict_of

_TOGETHER = (("input valid", "output valid"), ("input ready", "output ready"))
"""Signals that somebody who makes one active low makes active low, too."""


_CONSTANT = "constant"
"""The role of an input of one bit that is tied: active high where it is 1."""
_CONSTANTS = 6
"""Constants that are tried: each takes a build."""

Signals = tuple[tuple[str, str, bool], ...]
"""Of each its role, its port, and whether it is said to be active low."""


@dataclass(frozen=True)
class Polarity:
    """Signals that are active the other way: with them turned over, `right` of `total` vectors are right."""

    dut: Dut
    signals: Signals
    right: int
    total: int

    @property
    def sentence(self) -> str:
        """One sentence for the reader."""
        result = "all" if self.right == self.total else f"{self.right:,}"
        return (
            f"{said(self.signals)}: turned over, the unit answers, and {result} of the first {self.total:,} "
            f"vectors are right; {advice(self.dut, self.signals)}"
        )


def said(signals: Signals) -> str:
    """What these signals are."""
    return " and ".join(
        f"the input '{port}' is tied to {int(not low)}"
        if name == _CONSTANT
        else f"the {name} '{port}' is active {_word(not low)}, not {_word(low)}"
        for name, port, low in signals
    )


def advice(dut: Dut, signals: Signals) -> str:
    """What to do about them."""
    keys = " and ".join(
        dict.fromkeys(
            f"{port}: {int(low)} under constants" if name == _CONSTANT else f"active: {_word(not low)}"
            for name, port, low in signals
        )
    )
    return f"if it is meant so, write {keys} in {dut.file.name}, else correct the RTL"


def _word(low: bool) -> str:
    return "low" if low else "high"


def polarity(verdict: Verdict, engine: str, job: Job) -> Polarity | None:
    """The signals with which turned over a failing unit works; None where there are none, or where nothing
    speaks for a wrong polarity."""
    if not _suspect(verdict, job.dut):
        return None
    # Vectors of a run that only asks whether the unit answers at all.
    few_vectors = 200
    quiet = job.quiet(few_vectors)
    try:
        without_traffic = verdict_of(engine, quiet)
    except MmagoldError:
        return None
    before, _ = _computed(without_traffic)
    if 2 * _right(without_traffic) > len(quiet.vectors):  # without traffic it works
        return None
    # Share of the vectors of a unit that does not answer that is right at least with the right polarity,
    # whatever else is wrong.
    explained = 0.25
    for signals in choices(job.dut):
        try:
            again = replace(quiet, dut=turned_over(job.dut, signals))
            found = verdict_of(engine, again)
        except MmagoldError:
            continue
        computed, asked_for = _computed(found)
        kept = not found.outcome.failures and not found.missing.any()
        # An answer where there was none speaks for itself; of a unit that answers, some right results do not.
        share = explained if silent(verdict) else 1.0
        if kept and computed >= max(share * asked_for, 2 * before, 1):
            return Polarity(job.dut, signals, _right(found), len(quiet.vectors))
    return None


def _suspect(verdict: Verdict, dut: Dut) -> bool:
    """Whether a unit fails as one does of which a signal is turned over: it does not answer, or hardly a
    vector is right and it breaks the handshake, as far as its own signals make one."""
    if silent(verdict):
        return True
    answers_itself = dut.handshake.kind in ("valid", "valid_ready")
    if answers_itself and not verdict.outcome.failures and not dut.constants:
        return False
    # Least share of failing vectors for which a polarity is tried: the wrong one hardly leaves any.
    failing = 0.5
    return bool(verdict.failed.mean() > failing)


def _right(verdict: Verdict) -> int:
    return int((~verdict.failed).sum())


def _computed(verdict: Verdict) -> tuple[int, int]:
    """How many results are right that are not what the unit answers most often, and how many it should have
    of them: a unit that is held in reset always answers the same, which is right wherever zero is."""
    count = len(verdict.vectors)
    answers = verdict.outcome.results["d"].reshape(count, -1)
    same, counts = np.unique(answers, axis=0, return_counts=True)
    others = (verdict.vectors.d.reshape(count, -1) != same[counts.argmax()]).any(axis=1)
    return int((~verdict.failed & others).sum()), int(others.sum())


def choices(dut: Dut) -> Iterator[Signals]:
    """The signals that are inverted, trial by trial: each signal alone, signals that belong together, all
    except the reset."""
    shake = dut.handshake
    signals = {role: (role, port, port in shake.active_low) for role, port in _controls(dut).items()}
    reset = [("reset", dut.reset.port, dut.reset.active_low)] if dut.reset else []
    for signal in (*reset, *signals.values()):
        yield (signal,)
    pairs = [tuple(signals[role] for role in pair if role in signals) for pair in _TOGETHER]
    sets = [pair for pair in pairs if len(pair) > 1]
    yield from sets
    if len(signals) > 2:
        yield tuple(signals.values())
    tied = [(_CONSTANT, name, value == 0) for name, value in dut.constants.items() if value in (0, 1)]
    yield from ((signal,) for signal in tied[:_CONSTANTS])


def _controls(dut: Dut) -> dict[str, str]:
    return dut.handshake.inputs() | dut.handshake.outputs()


def turned_over(dut: Dut, signals: Signals) -> Dut:
    """The DUT with these signals said to be active the other way."""
    names = {name for name, _, _ in signals}
    if "reset" in names and dut.reset is not None:
        dut = replace(dut, reset=replace(dut.reset, active_low=not dut.reset.active_low))
    ports = frozenset(port for role, port in _controls(dut).items() if role in names)
    shake = replace(dut.handshake, active_low=dut.handshake.active_low ^ ports)
    tied: dict[str, int | str] = {port: int(low) for name, port, low in signals if name == _CONSTANT}
    return replace(dut, handshake=shake, constants=dut.constants | tied)
