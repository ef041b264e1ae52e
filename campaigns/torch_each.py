"""erf, exp, gelu, sigmoid, silu and tanh of PyTorch over all words, on a GPU and by golden: equal bits?

python campaigns/torch_each.py --record FILE.json
python campaigns/torch_each.py --compare FILE.json

The first needs a GPU and PyTorch. All words of f16 and bf16, and `--blocks` of 2^16 words of f32.
f16 and bf16 have one digest each. A block of f32 has the sum of its results times odd weights, modulo
2^64, so that one wrong result cannot hide. For docs/reports/torch-h200.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.files.inputs import read_json
from golden.files.output import write_text
from golden.kernels import torch_ops
from hw_capture.products.record import digest

Bits = npt.NDArray[Any]
FUNCTIONS: dict[str, Callable[..., Bits]] = {
    "erf": torch_ops.erf,
    "exp": torch_ops.exp,
    "gelu": torch_ops.gelu,
    "gelu tanh": lambda x, fmt=None: torch_ops.gelu(x, approximate="tanh", fmt=fmt),
    "sigmoid": torch_ops.sigmoid,
    "silu": torch_ops.silu,
    "tanh": torch_ops.tanh,
}
SMALL = ("f16", "bf16")
_LOW = np.arange(1 << 16, dtype=np.uint32)
_WEIGHTS = (_LOW.astype(np.uint64) * np.uint64(2654435761) + np.uint64(1)) | np.uint64(1)


def blocks(count: int, seed: int = 9) -> list[int]:
    """The upper halves of the words of f32 that are compared, drawn by a seed."""
    return [int(one) for one in np.random.default_rng(seed).permutation(1 << 16)[:count]]


def words(block: int) -> Bits:
    """The words of a block."""
    return (np.uint32(block) << np.uint32(16)) | _LOW


def block_sum(results: Bits) -> str:
    """The sum of a block's results."""
    with np.errstate(over="ignore"):
        return f"{int((results.astype(np.uint64) * _WEIGHTS).sum(dtype=np.uint64)):016x}"


def record(count: int) -> dict[str, Any]:
    """What the GPU of this machine gives, for a number of blocks of f32."""
    import torch

    functional = torch.nn.functional
    on_gpu: dict[str, Callable[[Any], Any]] = {
        "gelu": functional.gelu,
        "gelu tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
    }
    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}

    def run(name: str, codes: Bits, fmt: str) -> Bits:
        function = on_gpu.get(name) or getattr(torch, name)
        given = torch.from_numpy(codes.view(f"i{codes.itemsize}")).cuda().view(types[fmt])
        found = function(given).view(torch.int16 if codes.itemsize == 2 else torch.int32).cpu().numpy()
        return np.asarray(found).view(codes.dtype)

    about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    return {"about": about, **_answers(run, count)}


def _answers(run: Callable[[str, Bits, str], Bits], count: int) -> dict[str, Any]:
    small = {
        f"{name} {fmt}": digest({"d": run(name, _LOW.astype(np.uint16), fmt)})
        for name in FUNCTIONS
        for fmt in SMALL
    }
    large = {
        name: {str(block): block_sum(run(name, words(block), "f32")) for block in blocks(count)}
        for name in FUNCTIONS
    }
    return {"small": small, "f32": large}


def differences(given: dict[str, Any], count: int) -> Iterator[str]:
    """The names of what differs between the model and a record; of f32 the first `count` of its blocks."""

    def model(name: str, codes: Bits, fmt: str) -> Bits:
        return FUNCTIONS[name](codes, fmt=fmt)

    recorded = min(map(len, given["f32"].values()), default=0)
    found = _answers(model, min(count, recorded))
    yield from (name for name, answer in found["small"].items() if given["small"][name] != answer)
    for name, sums in found["f32"].items():
        yield from (f"{name} f32 block {one}" for one, s in sums.items() if given["f32"][name][one] != s)


def main() -> int:
    """Exit status 1: a bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--blocks", type=int, default=256)
    given = parser.parse_args()
    if given.record:
        write_text(given.record, json.dumps(record(given.blocks)) + "\n")
        return 0
    if given.compare:
        found = list(differences(read_json(given.compare), given.blocks))
        print("\n".join(found) or "no bit differs")
        return 1 if found else 0
    parser.error("expected --record or --compare")


if __name__ == "__main__":
    raise SystemExit(main())
