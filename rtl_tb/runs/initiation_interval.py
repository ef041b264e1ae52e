"""Whether a unit takes operands less often than its description says, or for longer: its results are wrong
only where operands come close together, or change before the result is there, or never come.

A long interval between operands is tried first; if few are wrong then, shorter ones show which is the
least that the unit needs. Then operands that stay. Icarus Verilog runs these few vectors: it builds a unit
at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from golden.budget import Budget
from golden.errors import MmagoldError
from rtl_tb.dut.description import Dut, Handshake
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.runs.verdict import Verdict, verdict_of

_HANGS = 4.0
"""Seconds in which a clock cycle has to end: Icarus may evaluate for ever what Verilator takes."""


@dataclass(frozen=True)
class InitiationInterval:
    """With another `handshake` the results of `tried` vectors are right, except `wrong` of them."""

    dut: Dut
    handshake: Handshake
    tried: int
    wrong: int = 0

    @property
    def sentence(self) -> str:
        """One sentence for the reader."""
        file, now, said = self.dut.file.name, self.dut.handshake, []
        if self.handshake.interval != now.interval:
            cycles = self.handshake.interval
            place = f" in place of {now.interval}" if now.interval > 1 else ""
            only = "" if self.wrong else "results are wrong only where operands come close together: "
            return (
                f"{only}{self._right} vectors are right where they come every {cycles} cycles, and "
                f"{'fewer' if self.wrong else 'not'} every {cycles - 1}; if the unit needs so long, write "
                f"interval: {cycles} in {file}{place}"
            )
        if self.handshake.hold and not now.hold:
            low = {
                "valid": ", with their valid",
                "released": ", with their valid, which then is low for a cycle",
            }
            held = f"the operands stay until the result is there{low.get(self.handshake.hold, '')}"
            said.append((held, f"hold: {self.handshake.hold} under input"))
        if self.handshake.level and not now.level:
            level = f"{{port: {now.out_valid}, level: true}}"
            said.append((f"'{now.out_valid}' counts only where it rises", f"valid: {level} under output"))
        if self.handshake.agreed != now.agreed:
            port = f"{{port: {now.in_valid}, only_if: ready}}"
            said.append(
                (f"'{now.in_valid}' is active only while the unit is ready", f"valid: {port} under input")
            )
        facts, keys = (" and ".join(words) for words in zip(*said, strict=True))
        return (
            f"{self._right} vectors are right where {facts}, and wrong without; if the unit is meant so, "
            f"write {keys} in {file}"
        )

    @property
    def _right(self) -> str:
        return f"{self.tried - self.wrong:,}{f' of {self.tried:,}' * bool(self.wrong)}"


def initiation_interval(
    verdict: Verdict, engine: str, job: Job, budget: Budget | None = None
) -> InitiationInterval | None:
    """The interval that a failing unit needs, or that it needs its operands for longer; None where neither
    makes most of its results right, or the budget ends before."""
    shake = job.dut.handshake
    if shake.kind == "combinational" or shake.channels:
        return None
    # Share of failing vectors from which it is tried: at full throughput an interval that is too short
    # spoils more.
    least = 0.05
    if verdict.failed.mean() < least and not verdict.outcome.failures:
        return None
    try:
        if job.simulator in ("verilator", "icarus"):
            try:
                return _searched("selfcheck", replace(job, simulator="icarus", translate=False), budget)
            except ElaborationError:  # it reads less of the language than Verilator
                pass
        return _searched(engine, job, budget)
    except MmagoldError:
        return None


def _searched(engine: str, job: Job, budget: Budget | None) -> InitiationInterval | None:
    """As `initiation_interval`, on one engine.

    Raises:
        As the engine does; RtlError also if the budget ends.
    """
    shake = job.dut.handshake
    # Vectors of a run: enough for an interval that is too short to spoil many.
    few_vectors = 100
    quiet = replace(job.quiet(few_vectors), wall_timeout=min(job.wall_timeout, _HANGS))

    def failing(handshake: Handshake) -> int:
        if budget is not None and budget.over():
            raise RtlError("its time was up")
        verdict = verdict_of(engine, replace(quiet, dut=replace(job.dut, handshake=handshake)))
        return max(int(verdict.failed.sum()), int(bool(verdict.outcome.failures)))

    before = failing(shake)
    if not before:
        return None
    # Cycles of the longest interval that is tried, or twice the latency: serial units take a cycle for each
    # bit.
    wide = 64
    low, high = shake.interval, max(wide, 2 * (shake.latency or 0))
    fixed = shake.kind == "valid_ready" or shake.hold or shake.level or shake.beats > 1
    # If another handshake is what the unit needs, at most one of this many failing vectors still fails with
    # it: faults of the arithmetic may be left.
    fewer = 4
    best, least = None, before // fewer + 1
    if not fixed and low < high and fewer * (few := failing(replace(shake, interval=high))) <= before:
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if failing(replace(shake, interval=middle)) <= few else (middle, high)
        best, least = replace(shake, interval=high), few
    for new in filter(None, (_only_if_ready(shake), *_held_variants(shake))):  # the mildest first
        if not least:
            break
        if new != shake and (left := failing(new)) < least:
            best, least = new, left
    return None if best is None else InitiationInterval(job.dut, best, len(quiet.vectors), least)


def _held_variants(shake: Handshake) -> Iterator[Handshake]:
    """The handshake with operands that stay, with a valid of the result that counts where it rises, and with
    both; then with a valid of the operands that stays, and is low for a cycle."""
    if shake.beats > 1:
        return
    ways = (("operands", False), (None, True), ("operands", True), ("valid", False), ("released", False))
    for hold, level in ways:
        if hold not in ("valid", "released") or shake.in_valid is not None:
            yield replace(
                shake,
                hold=shake.hold or hold,
                level=shake.level or (level and shake.out_valid is not None),
            )


def _only_if_ready(shake: Handshake) -> Handshake | None:
    """The handshake with a valid that is active only while its ready is; None where it has no ready, or is so
    already."""
    if shake.in_valid is None or shake.in_ready is None or shake.in_valid in shake.agreed:
        return None
    return replace(shake, agreed=shake.agreed | {shake.in_valid})
