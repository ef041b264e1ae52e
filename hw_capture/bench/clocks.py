"""Clock, power and temperature of a GPU: read before and after a measurement, never set."""

from __future__ import annotations

import re

import numpy as np

from hw_capture.bench.programs import template
from hw_capture.bench.records import Conditions
from hw_capture.errors import DeviceError, HwError
from hw_capture.gpu import processes
from hw_capture.gpu.device import Device, Kernel
from hw_capture.kernels import kernels, toolchain

_STATE = (
    "pstate",
    "clocks.sm",
    "clocks.mem",
    "clocks.max.sm",
    "power.draw",
    "enforced.power.limit",
    "temperature.gpu",
    "clocks_event_reasons.active",
)
_CALIBRATION = 2_000_000
_SLOW = {
    0x04: "the power limit",
    0x08: "a hardware slowdown",
    0x20: "the temperature",
    0x40: "the temperature (hardware)",
    0x80: "a power brake",
}
"""Bits of nvidia-smi's reasons that hold a clock down."""
_STEADY = 0.01


def clock_rate(gpu: Device, kernel: Kernel) -> float:
    """MHz of a multiprocessor that works: cycles by nanoseconds, after a first run that wakes it."""
    out = gpu.empty(16, 0)
    for _ in range(20):
        kernel(out, np.uint64(_CALIBRATION), grid=1, block=1)
    cycles, nanoseconds = (int(x) for x in gpu.download(out, (2,), np.uint64))
    if cycles <= 0 or nanoseconds <= 0:
        raise DeviceError("kernel clock_rate: it measured no time")
    return 1000 * cycles / nanoseconds


def state() -> dict[str, str]:
    """Clocks, power and temperature as nvidia-smi reads them; empty where it cannot be run."""
    try:
        done = processes.run(
            ["nvidia-smi", f"--query-gpu={','.join(_STATE)}", "--format=csv,noheader"], 30, HwError
        )
    except HwError:
        return {}
    values = [re.sub(r"\s+", " ", value).strip() for value in done.output.split("\n")[0].split(",")]
    return dict(zip(_STATE, values, strict=True)) if done.status == 0 and len(values) == len(_STATE) else {}


def check_steady(before: dict[str, str], after: dict[str, str], rates: tuple[float, float]) -> None:
    """Holds a measurement against a clock that was throttled or changed.

    Args:
        before, after: `state`, empty where nvidia-smi cannot be run. rates: MHz at work, at both times.

    Raises:
        DeviceError: the clock was held down, or the two differ by more than 1 %.
    """
    for found in (before, after):
        bits = int(found.get("clocks_event_reasons.active", "0") or "0", 16)
        if reasons := [text for bit, text in _SLOW.items() if bits & bit]:
            raise DeviceError(
                f"the SM clock is throttled by {' and '.join(reasons)} ({found.get('clocks.sm', '?')} of "
                f"{found.get('clocks.max.sm', '?')}): nothing is recorded; wait, and measure again"
            )
    if abs(rates[1] / rates[0] - 1) > _STEADY:
        raise DeviceError(
            f"the SM clock changed from {rates[0]:.0f} to {rates[1]:.0f} MHz while measuring: nothing is "
            "recorded; measure again"
        )


class Watch:
    """Reads the state of a GPU at the beginning and, with `close`, at the end of a measurement."""

    def __init__(self, gpu: Device) -> None:
        self._gpu = gpu
        source = kernels.prelude() + template("prelude").render()
        self._kernel = gpu.load(toolchain.compile(source, _target(gpu))).get("clock_rate")
        rate = clock_rate(gpu, self._kernel)
        self.conditions = Conditions(gpu.facts(), state(), sm_mhz=rate)

    def close(self) -> None:
        """Reads the state again; raises DeviceError where the clock was throttled or changed."""
        found = self.conditions
        found.state_after = state()
        after = clock_rate(self._gpu, self._kernel)
        check_steady(found.state_before, found.state_after, (found.sm_mhz, after))


def _target(gpu: Device) -> str:
    return "sm_{}{}".format(*gpu.compute_capability)
