"""Clock, power and temperature of a GPU: read before and after a measurement, never set."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hw_capture.errors import DeviceError, HwError
from hw_capture.gpu import processes
from hw_capture.gpu.device import Device, Kernel
from hw_capture.kernels import kernels, toolchain
from hw_capture.timing.programs import template
from hw_capture.timing.records import Conditions, Progress

Item = TypeVar("Item")
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
CLOCKS = 16 * 32 * 256
"""Bytes for the two clock readings of 32 warps in many runs."""
POWER_LIMIT = 0x04
_SLOW = {
    POWER_LIMIT: "the power limit",
    0x08: "a hardware slowdown",
    0x20: "the temperature",
    0x40: "the temperature (hardware)",
    0x80: "a power brake",
}
"""Bits of nvidia-smi's reasons that hold a clock down."""
_STEADY = 0.01  # share by which the SM clock may change while something is measured


def elapsed(name: str, clocks: npt.NDArray[Any]) -> list[int]:
    """max(stop) - min(start) over the warps of each run; raises DeviceError where a clock was not written."""
    if not ((clocks[..., 0] > 0) & (clocks[..., 1] > clocks[..., 0])).all():
        raise DeviceError(f"kernel {name}: it gave no time for some of its {clocks.shape[1]} warps")
    return [int(run[:, 1].max() - run[:, 0].min()) for run in clocks]


class Launches:
    """Launches of one block whose warps read the clock before and after; `sink` takes what nobody reads."""

    def __init__(self, gpu: Device, sink: Any) -> None:
        self.gpu, self.sink = gpu, sink
        self.clocks = gpu.empty(CLOCKS)
        self._uploaded: dict[Hashable, Any] = {}

    def held(self, key: Hashable, make: Callable[[], npt.NDArray[Any]]) -> Any:
        """The buffer of some operands, which are made and uploaded once."""
        if key not in self._uploaded:
            self._uploaded[key] = self.gpu.upload(make())
        return self._uploaded[key]

    def cycles(self, kernel: Kernel, operands: Any, warps: int, repeats: int, *numbers: int) -> list[int]:
        """Cycles of each of `repeats` launches, after one that does not count.

        Args:
            numbers: what the kernel takes after operands, clocks and sink, 32 bits each.

        Raises:
            DeviceError: a warp gave no time.
        """
        size = 16 * warps
        # Emptied: the clocks of earlier launches would pass for clocks of these.
        self.gpu.fill(self.clocks, size * (repeats + 1), 0)
        for run in range(repeats + 1):
            place = np.uint64(int(self.clocks) + size * run)
            kernel.launch(operands, place, self.sink, *map(np.uint32, numbers), grid=1, block=32 * warps)
        self.gpu.wait(kernel.name)
        found = self.gpu.download(self.clocks, (repeats + 1, warps, 2), np.uint64)
        return elapsed(kernel.name, found)[1:]


def clock_rate(gpu: Device, kernel: Kernel) -> float:
    """MHz of a multiprocessor at work: cycles by nanoseconds, the median of runs after warm-up."""
    out = gpu.empty(16, 0)
    rates = []
    calibrations = 40
    for _ in range(calibrations):
        kernel(out, np.uint64(2_000_000), grid=1, block=1)  # cycles that it waits
        cycles, nanoseconds = (int(x) for x in gpu.download(out, (2,), np.uint64))
        if cycles <= 0 or nanoseconds <= 0:
            raise DeviceError("kernel clock_rate: it measured no time")
        rates.append(1000 * cycles / nanoseconds)
    return statistics.median(rates[calibrations // 2 :])


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


def check_unthrottled(found: dict[str, str], but: int = 0) -> None:
    """Raises DeviceError where the clock is held down, but for reasons of the bits `but`; found: `state`."""
    bits = int(found.get("clocks_event_reasons.active", "0") or "0", 16) & ~but
    if reasons := [text for bit, text in _SLOW.items() if bits & bit]:
        raise DeviceError(
            f"the SM clock is throttled by {' and '.join(reasons)} ({found.get('clocks.sm', '?')} of "
            f"{found.get('clocks.max.sm', '?')}): nothing is recorded; wait, and measure again"
        )


def check_steady(before: dict[str, str], after: dict[str, str], rates: tuple[float, float]) -> None:
    """Holds a measurement against a clock that was throttled or changed.

    Args:
        before, after: `state`, empty where nvidia-smi cannot be run. rates: MHz at work, at both times.

    Raises:
        DeviceError: the clock was held down; or the two rates differ by more than 1 % and nvidia-smi does not
            read one clock at both times that neither falls short of. (Rates are by the GPU's timer of
            nanoseconds, by which two H100s at 1980 MHz ran at up to 2099 for a while.)
    """
    for found in (before, after):
        check_unthrottled(found)
    if abs(rates[1] / rates[0] - 1) > _STEADY and not _vouched(before, after, min(rates)):
        raise DeviceError(
            f"the SM clock changed from {rates[0]:.0f} to {rates[1]:.0f} MHz while measuring: nothing is "
            "recorded; measure again"
        )


def _vouched(before: dict[str, str], after: dict[str, str], rate: float) -> bool:
    """Whether nvidia-smi reads the same clock of the multiprocessors at both times, no faster than `rate`."""
    found = [re.fullmatch(r"(\d+) MHz", state.get("clocks.sm", "")) for state in (before, after)]
    clocks = {int(one.group(1)) for one in found if one}
    return all(found) and len(clocks) == 1 and rate >= (1 - _STEADY) * clocks.pop()


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

    def each(
        self, built: Iterable[Item | tuple[Any, str]], name: Callable[[Any], str], progress: Progress | None
    ) -> Iterator[Item]:
        """Yields what was built, to be measured; of the rest, (what, reason), it notes why it is left out.
        At the end it reads the state again, as `close`.

        Args:
            name: of a built item, or of what could not be built.
        """
        everything = list(built)
        for done, item in enumerate(everything):
            if isinstance(item, tuple):
                self.conditions.left_out[name(item[0])] = item[1]
                continue
            if progress:
                progress(name(item), done, len(everything))
            yield item
        self.close()


def _target(gpu: Device) -> str:
    return "sm_{}{}".format(*gpu.compute_capability)
