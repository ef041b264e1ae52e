"""What the engines share: the watch over a run, the RTL's complaints,
the failures that a harness writes down."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtl_tb.engines.job import FAILURE_KINDS, INITIAL_VALUES, Bits, Job, Progress, ProtocolFailure
from rtl_tb.errors import RtlError

if TYPE_CHECKING:
    from rtl_tb.dut.description import Dut

KINDS = (
    "timeout",
    "extra_result",
    "unstable_output",
    "valid_dropped",
    "stale_after_reset",
    "x_on_handshake",
    "changed_answer",
    "valid_follows_ready",
)
"""FAILURE_KINDS in the order of the numbers that fast_harness.cpp and mmagold_tb.sv give them."""
PINS = ("in_valid", "in_ready", "out_valid", "out_ready")
_OF_NO_VECTOR = ("extra_result", "stale_after_reset")
_COMPLAINT = re.compile(
    r"^ERROR: .*\$readmem[hb]: Unable to open (?P<opened>.+?) for reading"
    r"|^%Warning: (?P<read>.+?):\d+: \$readmem file not found"
    r"|^(?:ERROR|\[\d+\] %Error): *(?P<error>.*)"
    # behind text of the unit that ended without a new line
    r"|(?:ERROR|%Error): (?P<late>\S[^\n]*?:\d+: .*)",
    re.MULTILINE,
)


def initial_value_arguments(job: Job) -> list[str]:
    """Arguments of a verilated program: what signals hold that nothing has set. A seed of 0 would mean
    none."""
    seed = max(job.traffic.seed & 0x7FFFFFFF, 1)
    return [f"+verilator+rand+reset+{INITIAL_VALUES[job.start]}", f"+verilator+seed+{seed}"]


@contextlib.contextmanager
def run_folder(place: Path) -> Iterator[Path]:
    """A folder for one run alone, so that no other run's log or answers are taken for its own.

    Where the run fails, what is small stays in it: error messages name the log.
    """
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run_", dir=place))
    try:
        yield folder
    except RtlError:
        for file in (*folder.glob("*.hex"), *folder.glob("*.npy")):
            file.unlink()
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def write_bytes(file: Path, content: bytes | memoryview) -> None:
    """Writes a file of a run.

    Raises:
        RtlError: it cannot be written as a whole. On a full disk NumPy's own functions report neither the
            cause nor the place.
    """
    try:
        file.write_bytes(content)
    except OSError as error:
        raise RtlError(f"{file} cannot be written: {error.strerror}") from None


def units_folder(run: Path) -> Path:
    """The working directory of a unit in a run: what it reads and writes there meets no file of ours, nor
    the answers."""
    folder = run / "unit"
    folder.mkdir()
    return folder


def counters(file: Path) -> Callable[[], tuple[int, int] | None]:
    """Reads the two counters, vectors answered and clock cycles, that a harness keeps in a file."""

    def read() -> tuple[int, int] | None:
        found = np.fromfile(file, np.uint64).tolist() if file.is_file() else []
        return (found[0], found[1]) if any(found) else None

    return read


class Watch:
    """Looks at a running simulation several times a second:
    reports progress, and ends one whose clock stands still.

    A loop in zero time never ends a clock cycle, so no count of cycles can notice it.
    """

    def __init__(
        self, job: Job, read: Callable[[], tuple[int, int] | None], progress: Progress | None
    ) -> None:
        """`read` returns (vectors answered, clock cycles) so far, or None before the first cycle."""
        self.job, self.read, self.progress = job, read, progress
        self.seen: tuple[int, int] | None = None
        self.since = time.monotonic()

    def __call__(self) -> None:
        """One look.

        Raises:
            RtlError: no clock cycle has ended for `job.wall_timeout` seconds.
        """
        now = self.read()
        if now != self.seen:
            self.seen, self.since = now, time.monotonic()
            if self.progress and now:
                self.progress(now[0], len(self.job.vectors))
        elif time.monotonic() - self.since > self.job.wall_timeout:
            where = (
                f"after cycle {now[1]}, {now[0]:,} of {len(self.job.vectors):,} vectors answered,"
                if now
                else "at its start"
            )
            raise RtlError(
                f"the simulation of {self.job.dut.name} hangs: {where} no clock cycle ended within "
                f"{self.job.wall_timeout:g} seconds; is there a loop in zero time? (--wall-timeout waits "
                "longer)"
            )


def codes_of(results: Mapping[str, Bits]) -> dict[str, Any]:
    """Results by name, (count, ...) each, as the fields `actual` and `flags` of an Outcome."""
    flat = {
        name: codes.reshape(len(codes), -1) if codes.ndim > 1 else codes for name, codes in results.items()
    }
    return {"actual": flat["d"], "flags": flat.get("flags")}


def complaint(log: str) -> str | None:
    """What the RTL complained of in a simulator's output, or None: $error, a failed assertion, a missing
    $readmem file.

    Icarus Verilog goes on after each of them; Verilator only after the last.
    """
    found = _COMPLAINT.search(log)
    if found is None:
        return None
    name = found["opened"] or found["read"]
    if name is None:
        return (found["error"] or found["late"]).strip()
    return f"$readmem did not find {name}; it is looked for in a temporary folder, so write an absolute path"


def failure(kind: int, cycle: int, vector: int, pins: Iterable[str], in_flight: int) -> ProtocolFailure:
    """A failure with the state of the handshake in its text; `kind` indexes KINDS, `pins` are the states
    of PINS."""
    name = KINDS[kind]
    states = ", ".join(f"{pin} {state}" for pin, state in zip(PINS, pins, strict=True))
    where = "" if name in _OF_NO_VECTOR else f" at vector {vector}"
    text = f"{FAILURE_KINDS[name]}{where}, in cycle {cycle}: {states}; {in_flight} in flight"
    return ProtocolFailure(name, cycle, vector if where else None, text)


def never_waited(job: Job, answered: int, waited: int, cycles: int) -> list[ProtocolFailure]:
    """The failure of a unit whose out_valid follows out_ready, through whatever it passes on the way: under
    backpressure no result ever waited, which a unit that does not look at out_ready first does by chance in
    one of 10**12 runs.

    Args:
        answered: results that came.
        waited: cycles in which out_valid was high and out_ready low.
    """
    backpressure = job.traffic.on(job.dut).backpressure
    by_chance = 1e-12
    if waited or (1 - backpressure) ** answered > by_chance:
        return []
    name = "valid_follows_ready"
    text = (
        f"{FAILURE_KINDS[name]}: none of {answered:,} results ever waited, with out_ready low in "
        f"{backpressure:.0%} of the cycles"
    )
    return [ProtocolFailure(name, cycles, None, text)]


def changed_answers(
    dut: Dut, found: Sequence[ProtocolFailure], before: Mapping[str, Bits], now: Mapping[str, Bits]
) -> list[ProtocolFailure]:
    """The failures `changed_answer` that count: the DUT's policy does not accept one answer for the other.

    Args:
        before, now: the two answers by name, (count, ...) each.
    """
    alike = [
        dut.compare.interchangeable(dut.instruction.formats["d"], codes, now[name])
        if name == "d"
        else codes == now[name]
        for name, codes in before.items()
    ]
    same = np.all([each.reshape(len(found), -1).all(axis=1) for each in alike], axis=0)
    # Failures of one kind that are kept, as in the harnesses.
    most_of_a_kind = 16
    return [found[i] for i in np.flatnonzero(~same)[:most_of_a_kind]]


def written_failures(lines: Iterable[list[str]]) -> list[ProtocolFailure]:
    """The failures among the lines that a harness wrote, as words: F kind cycle vector pins in_flight."""
    return [
        failure(int(kind), int(cycle), int(vector), pins, int(in_flight))
        for mark, *rest in lines
        if mark == "F"
        for kind, cycle, vector, pins, in_flight in [rest]
    ]
