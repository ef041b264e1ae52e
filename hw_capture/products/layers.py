"""Layers with every batch size M on this machine's GPU: which bits, which kernels, how long a call takes.

The operands are periodic (golden.kernels.layers); the GPU compares all of D with its first period, of which
alone the bits are kept.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError
from golden.kernels.layers import (
    CANCELLING,
    COLUMNS,
    KINDS,
    NORMAL,
    ROWS,
    SEED,
    Answer,
    Layer,
    Recorded,
    Recording,
    digest,
    operands,
)
from hw_capture.errors import DeviceError, ToolMissing
from hw_capture.products.calls import Torch

Bits = npt.NDArray[Any]
DEVICE = "cuda"
BATCHES = (*range(1, 513), *(64 * n for n in (9, 10, 12, 16, 24, 32, 48, 64, 128)))
"""Every M that is called by default: all up to 512, and further ones to 8192."""
_MARK = "bitwise_not"
"""Part of the name of a kernel that stands between the calls when they are profiled."""
_OTHER_EVENTS = re.compile(r"^Mem(set|cpy)|Activity Buffer|^cu(da)?[A-Z]")
"""What the profiler lists in addition to a call's kernels."""
_CUBLAS = ("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12")
_DRIVER = Path("/proc/driver/nvidia/version")
Progress = Callable[[str, int, int], None]


def record(
    layers: Sequence[Layer],
    batches: Sequence[int] = BATCHES,
    timed: Sequence[int] = (1, 8, 32, 128, 512),
    progress: Progress = lambda what, done, total: None,
    seconds: float | None = None,
    seed: int = SEED,
) -> Recording:
    """Calls each layer with each M.

    Args:
        progress: called with the name of each layer before it runs, the number done, and their total.
        seconds: after which no further layer begins; those left are refused with this reason.
        seed: of the operands.

    Raises:
        ToolMissing: PyTorch is not installed.
        DeviceError: it finds no GPU.
    """
    torch, begun = Torch(), time.monotonic()
    found: list[Recorded] = []
    refused: dict[str, str] = {}
    for done, layer in enumerate(layers):
        progress(layer.name, done, len(layers))
        if seconds is not None and time.monotonic() - begun > seconds:
            refused[layer.name] = "not called: the time was over"
            continue
        try:
            found.append(_Layer(torch, layer, seed).recorded(sorted(set(batches)), timed))
        except DeviceError as error:
            refused[layer.name] = str(error)
        torch.torch.cuda.empty_cache()
    return Recording(datetime.now(UTC).date().isoformat(), _about(torch), tuple(found), refused, seed)


def _about(torch: Torch) -> dict[str, str]:
    """GPU and versions: the library's choice of a kernel may change with each of them."""
    found = torch.about()
    for name in _CUBLAS:
        try:
            found["cublas"] = metadata.version(name)
            break
        except metadata.PackageNotFoundError:
            continue
    if _DRIVER.exists():
        words = re.search(r"\b(\d{3}\.\d[\d.]*)", _DRIVER.read_text())
        found["driver"] = words.group(1) if words else ""
    try:
        import triton

        found["triton"] = triton.__version__
    except ImportError:
        pass
    found["multiprocessors"] = str(torch.torch.cuda.get_device_properties(0).multi_processor_count)
    return found


@dataclass
class _Seen:
    """What the calls gave: `blocks` (calls, ROWS, COLUMNS), of which the first min(M, ROWS) rows are filled,
    and for each whether all of D is copies of them."""

    blocks: Bits
    alike: Bits


class _Layer:
    """One layer on the GPU."""

    def __init__(self, torch: Torch, layer: Layer, seed: int) -> None:
        if layer.n % COLUMNS:
            raise OperandError(f"a layer has {layer.n} columns, expected a multiple of {COLUMNS}")
        self.torch, self.layer, self.t, self.seed = torch, layer, torch.torch, seed
        self.call = _CALLS[layer.call]

    def recorded(self, batches: Sequence[int], timed: Sequence[int]) -> Recorded:
        """All answers.

        Raises:
            DeviceError: PyTorch refuses a call.
        """
        try:
            with _Settings(self.torch, self.layer):
                seen = {kind: self._seen(kind, batches) for kind in KINDS}
                kernels = self._kernels(batches)
                seconds = self._seconds([m for m in timed if m in set(batches)])
        except (RuntimeError, ValueError, NotImplementedError, TypeError) as error:
            raise DeviceError(" ".join(str(error).split())[:300]) from None
        ran = dict(zip(batches, kernels, strict=True))
        return Recorded(self.layer, tuple(_answers(batches, seen)), ran, seconds)

    def _given(self, kind: str, most: int) -> dict[str, Any]:
        """Periodic operands on the GPU: x (most, k), w (n, k), bias (n), and a scale of one."""
        few, many = operands(self.layer, kind, self.seed), self.layer.n // COLUMNS
        given = {
            "x": self._periodic(few["a"], self.layer.a, -(-most // ROWS), 1),
            "w": self._periodic(few["b"].T, self.layer.a, many, 1),
            "one": self.t.ones((), device=DEVICE),
        }
        if "bias" in few:
            given["bias"] = self._periodic(few["bias"], self.layer.d, many)
        return given

    def _periodic(self, codes: Bits, fmt: str, *times: int) -> Any:
        bits = np.ascontiguousarray(codes).view(f"i{codes.itemsize}")
        return self.t.from_numpy(bits).to(DEVICE).repeat(*times).view(self.torch.dtype(fmt))

    def _run(self, given: dict[str, Any], m: int) -> Any:
        return self.call(self.torch, self.layer, given | {"x": given["x"][:m]})

    def _seen(self, kind: str, batches: Sequence[int]) -> _Seen:
        """The first elements of D for each M, and whether all others are copies of them."""
        t, given = self.t, self._given(kind, max(batches))
        place = t.arange(max(batches), device=DEVICE) % ROWS
        code = t.int16 if self.torch.dtype(self.layer.d).itemsize == 2 else t.int32
        blocks = t.zeros((len(batches), ROWS, COLUMNS), dtype=code, device=DEVICE)
        alike = t.ones(len(batches), dtype=t.bool, device=DEVICE)
        for i, m in enumerate(batches):
            d = self._run(given, m).view(code).view(m, self.layer.n // COLUMNS, COLUMNS)
            rows = min(m, ROWS)
            blocks[i, :rows] = d[:rows, 0]
            alike[i] = (d == blocks[i][place[:m]][:, None, :]).all()
        found = blocks.cpu().numpy()
        return _Seen(found.view(f"u{found.itemsize}"), alike.cpu().numpy())

    def _kernels(self, batches: Sequence[int]) -> list[tuple[str, ...]]:
        """The names of the kernels that run for each M, in their order; none where the profiler lost some."""
        found = self._profiled(batches, 1)
        return [names for names, _ in found] if len(found) == len(batches) else [()] * len(batches)

    def _seconds(self, timed: Sequence[int]) -> dict[int, float]:
        """Of the kernels of one call, by M: the median of calls whose operands have left the cache."""
        times = 11  # odd, so that a median is one of them
        every = [m for m in timed for _ in range(times)]
        # 32-bit words that are written between timed calls: more than any cache holds.
        flushed = 1 << 26
        found = [seconds for _, seconds in self._profiled(every, flushed)] if every else []
        if len(found) != len(every):
            return {}
        return {m: float(np.median(found[i * times : (i + 1) * times])) for i, m in enumerate(timed)}

    def _profiled(self, batches: Sequence[int], between: int) -> list[tuple[tuple[str, ...], float]]:
        """The names of the kernels that run for each M, in their order, and their seconds; between the calls
        a kernel goes through this many words."""
        t, given = self.t, self._given(NORMAL, max(batches))
        mark = t.zeros(between, dtype=t.int32, device=DEVICE)
        for m in dict.fromkeys(batches):  # what is compiled or chosen with the first call
            self._run(given, m)
        mark.bitwise_not_()
        t.cuda.synchronize()
        with t.profiler.profile(activities=[t.profiler.ProfilerActivity.CUDA]) as profile:
            for m in batches:
                mark.bitwise_not_()
                self._run(given, m)
            t.cuda.synchronize()
        events = sorted(
            (event.time_range.start, event.name, event.time_range.elapsed_us())
            for event in profile.events()
            if event.device_type == t.autograd.DeviceType.CUDA and not _OTHER_EVENTS.match(event.name)
        )
        calls: list[tuple[list[str], list[float]]] = []
        for _, name, microseconds in events:
            if _MARK in name:
                calls.append(([], []))
            elif calls:
                calls[-1][0].append(_short(name))
                calls[-1][1].append(microseconds)
        return [(tuple(names), sum(times) / 1e6) for names, times in calls]


def _answers(batches: Sequence[int], seen: dict[str, _Seen]) -> Iterable[Answer]:
    """The answers, equal bits only once. Answers with fewer rows than ROWS are equal if these rows are."""
    found: list[tuple[int, list[int]]] = []
    # The largest batch first: a smaller one is compared on the rows that both have.
    for i in sorted(range(len(batches)), key=lambda i: -batches[i]):
        rows = min(batches[i], ROWS)
        for first, members in found:
            if all(
                np.array_equal(one.blocks[i, :rows], one.blocks[first, :rows])
                and one.alike[i] == one.alike[first]
                for one in seen.values()
            ):
                members.append(i)
                break
        else:
            found.append((i, [i]))
    for first, members in found:
        rows = min(batches[first], ROWS)
        yield Answer(
            tuple(sorted(batches[i] for i in members)),
            seen[CANCELLING].blocks[first, :rows],
            digest(seen[NORMAL].blocks[first, :rows]),
            all(bool(one.alike[first]) for one in seen.values()),
        )


def _short(name: str) -> str:
    """A kernel's name without its return type and its arguments."""
    # Names of kernels can be pages long.
    longest = 160
    return name.removeprefix("void ").partition("(")[0][:longest]


class _Settings:
    """Sets PyTorch's settings for a layer, then restores the earlier ones."""

    def __init__(self, torch: Torch, layer: Layer) -> None:
        self.matmul, self.cuda = torch.torch.backends.cuda.matmul, torch.torch.backends.cuda
        self.whole = layer.options.get("split_k") is False

    def __enter__(self) -> None:
        if self.whole:
            self.cuda.preferred_blas_library("cublaslt")
            self._allow((False, False))

    def __exit__(self, *error: object) -> None:
        if self.whole:
            self.cuda.preferred_blas_library("default")
            self._allow(True)

    def _allow(self, value: Any) -> None:
        self.matmul.allow_fp16_reduced_precision_reduction = value
        self.matmul.allow_bf16_reduced_precision_reduction = value


def _mm(torch: Torch, layer: Layer, given: dict[str, Any]) -> Any:
    return torch.torch.mm(given["x"], given["w"].t())


def _linear(torch: Torch, layer: Layer, given: dict[str, Any]) -> Any:
    return torch.torch.nn.functional.linear(given["x"], given["w"], given["bias"])


def _scaled_mm(torch: Torch, layer: Layer, given: dict[str, Any]) -> Any:
    return torch.torch._scaled_mm(
        given["x"],
        given["w"].t(),
        scale_a=given["one"],
        scale_b=given["one"],
        out_dtype=torch.dtype(layer.d),
        use_fast_accum=bool(layer.options["fast"]),
    )


def _triton(torch: Torch, layer: Layer, given: dict[str, Any]) -> Any:
    try:
        from hw_capture.products import triton_dot
    except ImportError:
        raise ToolMissing("Triton is not installed: pip install triton") from None
    x, w = given["x"], given["w"]
    d = torch.torch.empty((x.shape[0], w.shape[0]), dtype=torch.dtype(layer.d), device=DEVICE)
    triton_dot.launch_rows(x, w.t(), d)
    return d


_CALLS: dict[str, Callable[[Torch, Layer, dict[str, Any]], Any]] = {
    "mm": _mm,
    "linear": _linear,
    "scaled_mm": _scaled_mm,
    "triton": _triton,
}
"""The calls of golden.kernels.layers.Layer."""
