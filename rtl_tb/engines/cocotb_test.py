"""Runs inside the simulator: drives the words of a job through `mmagold_dut` and writes down what comes back.

The host side, rtl_tb/engines/cocotb_engine.py, puts the job into the folder MMAGOLD_RUN. Nothing is compared
here: the host does that for all vectors at once.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.handle import HierarchyArrayObject, HierarchyObject, LogicArrayObject, LogicObject
from cocotb.triggers import ClockCycles

from rtl_tb.errors import DutTimeout
from rtl_tb.tb.testbench import Bench

FILES = Path(os.environ["MMAGOLD_RUN"])
"""Where the host put the job; not the working directory, in which the unit may read and write."""


class _Job(Bench):
    """A bench that leaves to the host which of two answers to a vector is as good as the other.

    Attributes:
        changed: (cycle, index, the bits before, the bits now).
    """

    def __init__(self, dut: Any, **settings: Any) -> None:
        super().__init__(dut, **settings)
        self.changed: list[tuple[int, int, str, str]] = []

    def _answered_again(self, index: int, before: str, now: str, cycle: int) -> None:
        self.changed.append((cycle, index, before, now))


@cocotb.test()
async def run_job(dut: Any) -> None:
    """Runs all vectors. Failures of the handshake are part of the answer, they do not fail this test."""
    job = json.loads((FILES / "job.json").read_text(encoding="utf-8"))
    words = np.load(FILES / "operands.npy")
    bench = _Job(
        dut,
        idle=job["idle"],
        backpressure=job["backpressure"],
        seed=job["seed"],
        timeout_cycles=job["timeout_cycles"],
        reset_cycles=job["reset_cycles"],
        state=job["state"],
    )
    start = time.monotonic()
    cocotb.start_soon(_report(bench))
    # What a unit takes in during its first reset must not matter.
    bench.source.channel.data.write(int.from_bytes(words[_most_ones(words)], "little"))
    for path, handle in _signals(dut.u_dut) if job["fill"] else ():
        if path in job["fill"]:
            handle.value = type(handle.value)(job["fill"][path] * len(handle))
    with suppress(DutTimeout):  # it is one of the failures
        await bench.run_words((int.from_bytes(word, "little") for word in words), job["resets"], fresh=True)
    answer = {
        "seconds": time.monotonic() - start,
        "cycles": bench.clocked.cycle,
        "waited": bench.monitor.waited,
        "resets": bench.resets_done,
        "failures": [asdict(failure) for failure in bench.failures],
        "changed": bench.changed,
        "unset": _unset(dut.u_dut) if job["vhdl"] else [],
        "half": bench.result_cycles[len(bench.result_cycles) // 2]
        if bench.result_cycles
        else bench.clocked.cycle,
        "results": bench.results[: bench.answered],
    }
    (FILES / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def _most_ones(words: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> int:
    """Index of the word with the most bits set."""
    return int(np.unpackbits(words, axis=1).sum(axis=1).argmax())


def _signals(scope: Any) -> Iterator[tuple[str, Any]]:
    """The signals of a unit in VHDL that are bits or vectors, by their paths below the top."""
    for handle in scope:
        if isinstance(handle, HierarchyObject | HierarchyArrayObject):
            yield from _signals(handle)
        elif isinstance(handle, LogicObject | LogicArrayObject):
            yield handle._path.partition(".")[2], handle


def _unset(unit: Any) -> list[str]:
    """The signals that hold only 'U'."""
    return sorted({path for path, handle in _signals(unit) if set(str(handle.value)) == {"U"}})


async def _report(bench: Bench) -> None:
    """Writes the vectors answered and the cycles for the host, which shows them and notices a clock that
    stands still."""
    counters = np.memmap(FILES / "progress", np.uint64, "r+", shape=2)
    cycles = 0
    beat = 64  # clock cycles between two signs of life
    while True:
        await ClockCycles(bench.clocked.clock, beat)
        cycles += beat
        counters[:] = bench.answered, cycles
