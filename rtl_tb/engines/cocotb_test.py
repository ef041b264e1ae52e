"""Runs inside the simulator: drives the words of a job through `mmagold_dut` and writes down what comes back.

The host side, rtl_tb/engines/cocotb_engine.py, puts the job into the working directory. Nothing is compared here: the
host does that for all vectors at once.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cocotb
import numpy as np

from rtl_tb.errors import DutTimeout
from rtl_tb.testbench import Bench

_REPORT_EVERY = 512


@cocotb.test()
async def run_job(dut: Any) -> None:
    """Runs all vectors. Failures of the handshake are part of the answer, they do not fail this test."""
    job = json.loads(Path("job.json").read_text())
    words = np.load("operands.npy")
    bench = Bench(
        dut,
        idle=job["idle"],
        backpressure=job["backpressure"],
        timeout_cycles=job["timeout_cycles"],
        reset_cycles=job["reset_cycles"],
    )
    start = time.monotonic()
    with Path("progress").open("r+b", buffering=0) as progress:

        def report(done: int) -> None:
            if done % _REPORT_EVERY == 0:
                progress.seek(0)
                progress.write(done.to_bytes(8, "little"))

        bench.on_result = report
        try:
            await bench.reset()
            await bench.run_words((int.from_bytes(word, "little") for word in words), job["resets"])
        except DutTimeout:
            pass  # It is one of the failures.
    answer = {
        "seconds": time.monotonic() - start,
        "cycles": bench.clocked.cycle,
        "failures": [asdict(failure) for failure in bench.failures],
        "results": bench.results,
    }
    Path("answer.json").write_text(json.dumps(answer))
