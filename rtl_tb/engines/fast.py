"""The fast engine: the unit, verilated into a shared library, driven from NumPy arrays through ctypes.

Millions of vectors a second, so it takes large sets. Verilator has two states: X and Z do not exist, uninitialised
registers and assigned X start as random bits (seeded by the traffic's seed). Whether an X could reach the result is a question
for Icarus (engines selfcheck and cocotb).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rtl_tb import simulators
from rtl_tb.dut import Dut
from rtl_tb.engines.common import PINS, design_options, digest, failure
from rtl_tb.engines.job import Job, Outcome, Progress, ProtocolFailure
from rtl_tb.errors import RtlError
from rtl_tb.simulators import Simulator
from rtl_tb.wrapper import NAME, write_wrapper

HARNESS = Path(__file__).with_name("fast_harness.cpp")
CHUNK = 1 << 16
"""Vectors between two looks at the progress and at Ctrl-C."""
DONE, TIMED_OUT, ENDED, MORE = range(4)
"""What a call of the harness returns."""

VERILATE = ["--cc", "--exe", "--build", "-O3", "--x-initial", "unique", "--x-assign", "unique", "--no-timing", "-Wno-fatal"]
VERILATE += ["-MAKEFLAGS", "OPT_FAST=-O2", "-MAKEFLAGS", "OPT_GLOBAL=-O2", "-LDFLAGS", "-shared"]
COMPILE = "-fPIC -fvisibility=hidden -fno-gnu-unique -DVL_USER_FATAL -DVL_USER_STOP -DVL_USER_FINISH -DVL_USER_WARN"
"""Hidden symbols: every library has its own Vmmagold_dut and its own Verilator runtime, so that many load side by side."""


class _Settings(ctypes.Structure):
    _fields_ = (
        ("in", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("received", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("idle", ctypes.c_uint32),
        ("backpressure", ctypes.c_uint32),
        ("resets", ctypes.c_uint32),
        ("reset_cycles", ctypes.c_uint32),
        ("timeout", ctypes.c_uint32),
    )


class _Failure(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("pins", ctypes.c_uint32),
        ("cycle", ctypes.c_uint64),
        ("vector", ctypes.c_uint64),
        ("in_flight", ctypes.c_uint64),
    )


def run(job: Job, progress: Progress | None = None) -> Outcome:
    """Runs a job, see rtl_tb/engines/job.py.

    Raises:
        SimulatorMissing, SimulatorTooOld: Verilator is missing or too old.
        ElaborationError: Verilator or the C++ compiler refused the design.
        RtlError: another simulator or a waveform was asked for, or the DUT called $fatal, $stop or $finish.
    """
    if job.simulator != "verilator":
        raise RtlError(f"engine 'fast' needs Verilator, not {job.simulator}; use selfcheck or cocotb")
    if job.waves is not None:
        raise RtlError("engine 'fast' writes no waveform; use selfcheck or cocotb")
    simulator = simulators.verilator()
    start = time.monotonic()
    library = build(job.dut, job.build, simulator)
    built = time.monotonic()
    count, layout = len(job.vectors), job.dut.layout
    words = np.ascontiguousarray(layout.pack_operands(job.vectors.operands))
    out = np.zeros((count, (layout.result_width + 7) // 8), np.uint8)
    received = np.zeros(count, np.uint8)
    cycles, failures = _drive(job, library, words, out, received, progress)
    actual = layout.unpack_result(out)
    return Outcome(
        engine="fast",
        simulator="verilator",
        version=simulator.version_text,
        actual=actual.reshape(count, -1) if actual.ndim > 1 else actual,
        received=received.astype(np.bool_),
        unknown=np.zeros(count, np.bool_),
        failures=failures,
        cycles=cycles,
        seconds_build=built - start,
        seconds_run=time.monotonic() - built,
    )


# Build -----------------------------------------------------------------------------------------------------------------


def build(dut: Dut, folder: Path, simulator: Simulator) -> Path:
    """Returns the shared library of a DUT, compiled only if none of the same content lies in `folder`."""
    place = folder.absolute() / "fast"
    wrapper = write_wrapper(dut, place)
    library = place / f"{dut.top}_{digest(dut, (wrapper, HARNESS), (simulator.version_text, VERILATE, COMPILE))}.so"
    if not library.is_file():
        scratch = Path(tempfile.mkdtemp(prefix="build_", dir=place))
        try:
            _verilate(dut, wrapper, simulator, scratch)
            os.replace(scratch / "dut.so", library)
            shutil.rmtree(scratch)
        except KeyboardInterrupt:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return library


def _verilate(dut: Dut, wrapper: Path, simulator: Simulator, scratch: Path) -> None:
    sizes = f"-DMG_IN_BYTES={(dut.layout.operand_width + 7) // 8} -DMG_OUT_BYTES={(dut.layout.result_width + 7) // 8}"
    arguments: list[str | Path] = [
        *VERILATE,
        "-CFLAGS",
        f"{COMPILE} {sizes}",
        "--build-jobs",
        str(os.cpu_count() or 1),
        "--Mdir",
        scratch,
    ]
    arguments += [*design_options(dut), "--top-module", NAME, *dut.sources, wrapper, HARNESS, "-o", scratch / "dut.so"]
    simulators.elaborate(simulator, arguments, folder=scratch, what=f"the DUT {dut.name}")


# Run -------------------------------------------------------------------------------------------------------------------


def _load(library: Path) -> ctypes.CDLL:
    if sys.byteorder != "little":
        raise RtlError("engine 'fast' runs on little-endian machines only; use selfcheck or cocotb")
    try:
        loaded = ctypes.CDLL(str(library))
    except OSError as error:
        raise RtlError(f"{library} cannot be loaded ({error}); remove it to have it built again") from error
    handle, count = ctypes.c_void_p, ctypes.c_uint64
    signatures: dict[str, tuple[object, list[object]]] = {
        "mg_open": (handle, [ctypes.POINTER(_Settings), ctypes.c_char_p, ctypes.c_uint32]),
        "mg_run": (ctypes.c_int, [handle, count]),
        "mg_tail": (ctypes.c_int, [handle]),
        "mg_cycles": (count, [handle]),
        "mg_error": (ctypes.c_char_p, [handle]),
        "mg_failures": (ctypes.c_uint32, [handle, ctypes.POINTER(ctypes.POINTER(_Failure))]),
        "mg_close": (None, [handle]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def _settings(job: Job, words: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8], received: npt.NDArray[np.uint8]) -> _Settings:
    dut, traffic = job.dut, job.traffic.on(job.dut)
    return _Settings(
        words.ctypes.data,
        out.ctypes.data,
        received.ctypes.data,
        len(words),
        traffic.seed,
        int(traffic.idle * 2**32),
        int(traffic.backpressure * 2**32),
        traffic.resets,
        dut.reset.cycles if dut.reset else 4,
        job.timeout_cycles,
    )


def _drive(
    job: Job,
    path: Path,
    words: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    received: npt.NDArray[np.uint8],
    progress: Progress | None,
) -> tuple[int, list[ProtocolFailure]]:
    """Sends all vectors, a chunk at a time, and returns the cycles and the failures."""
    library = _load(path)
    settings = _settings(job, words, out, received)
    message = ctypes.create_string_buffer(400)
    harness = _call(library.mg_open, ctypes.byref(settings), message, len(message))
    if not harness:
        raise _ended(job, message.value, 0)
    try:
        status = DONE
        for target in [*range(CHUNK, len(words), CHUNK), len(words)]:
            while (status := _call(library.mg_run, harness, target)) == MORE:
                pass  # a slow unit: the loop gives Ctrl-C a chance
            if status:
                break
            if progress:
                progress(target, len(words))
        if status == DONE:
            status = _call(library.mg_tail, harness)
        cycles = int(library.mg_cycles(harness))
        if status == ENDED:
            raise _ended(job, library.mg_error(harness), cycles)
        return cycles, _failures(library, harness)
    finally:
        _call(library.mg_close, harness)


def _call(function: Callable[..., Any], *arguments: object) -> Any:
    """Calls the library, in which the DUT may print."""
    with _stdout_to_stderr():
        return function(*arguments)


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Sends what C code prints to stderr: the $display of a DUT must not get into the JSON on stdout."""
    libc = ctypes.CDLL(None)
    libc.fflush(None)
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
        libc.fflush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _ended(job: Job, message: bytes, cycle: int) -> RtlError:
    return RtlError(f"the DUT {job.dut.name} ended the simulation in cycle {cycle}: {message.decode(errors='replace')}")


def _failures(library: ctypes.CDLL, harness: int) -> list[ProtocolFailure]:
    listed = ctypes.POINTER(_Failure)()
    count = library.mg_failures(harness, ctypes.byref(listed))
    return [_failure(listed[index]) for index in range(count)]


def _failure(raw: _Failure) -> ProtocolFailure:
    pins = (str(raw.pins >> bit & 1) for bit in range(len(PINS)))
    return failure(raw.kind, raw.cycle, raw.vector, pins, raw.in_flight)
