"""Layers of public models with every batch size on this machine's GPU, for docs/reports/batch-sizes.md.

PYTHONPATH=. python campaigns/batch_sizes.py --out FOLDER [--seconds 300] [--only "bf16 mm"] [--seed 54]

Only the shapes are the models'; the weights are drawn.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

from golden.kernels.layers import SEED, Layer, write
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
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
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


if __name__ == "__main__":
    main()
