"""Layers of public models with every batch size on this machine's GPU, for docs/reports/batch-sizes.md.

PYTHONPATH=. python campaigns/batch_sizes.py --out FILE [--seconds 300] [--only "bf16 mm"] [--seed 54]
PYTHONPATH=. python campaigns/batch_sizes.py --report FILE [SECOND] --markdown FILE --svg FILE

Only the shapes are the models'; the weights are drawn.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from golden.files.output import write_text
from golden.kernels.invariance import BatchMap, confirmed, invariance
from golden.kernels.layers import SEED, Layer, read, write
from golden.publish.pictures.plots import batch_picture
from hw_capture.products.layers import record

MODELS: dict[str, dict[str, tuple[int, int]]] = {
    "Llama 3 8B": {
        "q, o": (4096, 4096),
        "k, v": (1024, 4096),
        "qkv": (6144, 4096),
        "gate, up": (14336, 4096),
        "gate and up": (28672, 4096),
        "down": (4096, 14336),
        "head": (128256, 4096),
    },
    "Qwen 2.5 7B": {
        "q, o": (3584, 3584),
        "k, v": (512, 3584),
        "qkv": (4608, 3584),
        "gate, up": (18944, 3584),
        "gate and up": (37888, 3584),
        "down": (3584, 18944),
        "head": (152064, 3584),
    },
    "Mistral NeMo 12B": {
        "q": (4096, 5120),
        "k, v": (1024, 5120),
        "qkv": (6144, 5120),
        "o": (5120, 4096),
        "gate, up": (14336, 5120),
        "gate and up": (28672, 5120),
        "down": (5120, 14336),
        "head": (131072, 5120),
    },
}
"""(N, K) of the linear layers, from the models' public configurations."""


TIMES = (("mm", "the library's choice"), ("mm split_k=False", "no split K"), ("triton", "one Triton kernel"))
"""Calls whose times are compared."""


def layers() -> list[Layer]:
    """Every shape with every call; what answers most questions first."""
    shapes = [
        (n, k, f"{model}: {what}") for model, all_of in MODELS.items() for what, (n, k) in all_of.items()
    ]
    calls: tuple[tuple[str, str, str, dict[str, bool]], ...] = (
        ("bf16", "bf16", "mm", {}),
        ("f16", "f16", "mm", {}),
        ("e4m3", "bf16", "scaled_mm", {"fast": True}),
        ("bf16", "bf16", "triton", {}),
        ("bf16", "bf16", "mm", {"split_k": False}),
        ("bf16", "bf16", "linear", {}),
        ("e4m3", "bf16", "scaled_mm", {"fast": False}),
    )
    return [
        Layer(n, k, a, d, call, dict(options), of) for a, d, call, options in calls for n, k, of in shapes
    ]


def main() -> None:
    """Records what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", type=Path, nargs="+")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    if given.report:
        report(given.report, given.markdown, given.svg)
        return
    words = given.only.split()
    chosen = [one for one in layers() if all(word in one.name.split() for word in words)]

    def progress(what: str, done: int, total: int) -> None:
        print(f"{time.monotonic() - begun:.0f} s: {what}", file=sys.stderr, flush=True)

    begun, all_of = time.monotonic(), None
    for call in dict.fromkeys(_call(one) for one in chosen):  # what is done stays if a later call fails
        left = given.seconds and given.seconds - (time.monotonic() - begun)
        try:
            alike = [one for one in chosen if _call(one) == call]
            found = record(alike, progress=progress, seconds=left, seed=given.seed)
        except Exception:
            traceback.print_exc()
            continue
        if all_of is not None:
            found = replace(
                found, layers=all_of.layers + found.layers, refused=all_of.refused | found.refused
            )
        all_of = found
        write(all_of, given.out)
    if all_of is None:
        raise SystemExit("nothing was recorded")
    print(f"{len(all_of.layers)} layers recorded, {len(all_of.refused)} refused")
    for name, why in all_of.refused.items():
        print(f"  {name}: {why}")


def _call(layer: Layer) -> str:
    return layer.name.partition(" ")[2]


def report(recordings: list[Path], markdown: Path, svg: Path) -> None:
    """Writes the tables of a recording, and of a second one with other operands, and the picture."""
    first, *others = (read(path) for path in recordings)
    maps = invariance(first)
    head = (
        "Call",
        "Layers",
        "M",
        "Predicted in every bit",
        "Same bits for every M",
        "Most results of one row",
    )
    lines = [f"| {' | '.join(head)} |", "|---|---|---|---|---|---|"]
    for call, found in _by_call(maps).items():
        most = max(len(set(one.bits)) for one in found)
        same, batches, right = _totals(found)
        lines.append(f"| {call} | {len(found)} | {batches:,} | {right:,} | {same} | {most} |")
    same, batches, right = _totals(maps)
    lines += [f"| all | {len(maps)} | {batches:,} | {right:,} | {same} | |", ""]
    for other in others:
        counted = confirmed(maps, other)
        equal, shared = (sum(counts[i] for counts in counted.values()) for i in range(2))
        name = f"{other.device['name']}, driver {other.device.get('driver', '?')}, seed {other.seed}"
        lines += ["| Second recording | M | The first one's plans give every bit |", "|---|---|---|"]
        lines += [f"| {name} | {shared:,} | {equal:,} |", ""]
    lines += [*_of_shapes(maps), "", *_of_times(maps), ""]
    write_text(markdown, "\n".join(lines))
    shown = [one for one in maps if _call(one.layer) == "bf16 mm" and not one.invariant]
    write_text(svg, batch_picture(shown) + "\n")


def _totals(maps: Sequence[BatchMap]) -> tuple[int, int, int]:
    """Layers with the same bits for every M; M that were called; M whose every bit is predicted."""
    same = sum(one.invariant for one in maps)
    return same, sum(one.batches for one in maps), sum(one.predicted for one in maps)


def _by_call(maps: Sequence[BatchMap]) -> dict[str, list[BatchMap]]:
    found: dict[str, list[BatchMap]] = {}
    for one in maps:
        found.setdefault(_call(one.layer), []).append(one)
    return found


def _of_shapes(maps: Sequence[BatchMap]) -> list[str]:
    """How many results a row has, by layer and call."""
    calls = list(_by_call(maps))
    lines = [f"| Layer | {' | '.join(calls)} |", "|---|" + "---|" * len(calls)]
    by_name = {one.layer.name: one for one in maps}
    for one in _by_call(maps)[calls[0]]:
        shape = one.layer.name.partition(" ")[0]
        counts = (str(len(set(by_name[f"{shape} {call}"].bits))) for call in calls)
        lines.append(f"| {one.layer.of}, {shape} | {' | '.join(counts)} |")
    return lines


def _of_times(maps: Sequence[BatchMap]) -> list[str]:
    """Times of bf16 against the library's choice: the median over the layers, the least and the most."""
    by_name = {one.layer.name: one.recorded.seconds for one in maps}
    shapes = [name.partition(" ")[0] for name in by_name if name.endswith(" bf16 mm")]
    batches = sorted(by_name[f"{shapes[0]} bf16 mm"])
    lines = [f"| bf16, M | {' | '.join(map(str, batches))} |", "|---|" + "---|" * len(batches)]
    for call, what in TIMES[1:]:
        row = []
        for m in batches:
            ratios = [by_name[f"{shape} bf16 {call}"][m] / by_name[f"{shape} bf16 mm"][m] for shape in shapes]
            row.append(f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.1f})")
        lines.append(f"| {what} | {' | '.join(row)} |")
    return lines


if __name__ == "__main__":
    main()
