"""All-reduces of NCCL, and layers whose K lies on two GPUs: recorded, and predicted in every bit?

python campaigns/all_reduce.py --record FOLDER
python campaigns/all_reduce.py --keep FOLDER --out FILE.json
python campaigns/all_reduce.py --compare FILE.json [--every 4]

The first needs two GPUs and PyTorch, the others neither. For docs/reports/all-reduce-h200.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from golden.errors import OperandError
from golden.files.inputs import read_json
from hw_capture.products.all_reduce import MODES, record
from hw_capture.products.all_reduce_kept import keep, replayed

_PORT = 29500
_SECONDS = 120
"""Of one mode: communicators of eight processes took seven seconds on an H200, imports ten."""


def main() -> int:
    """Exit status 1: a bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--seed", type=int, default=54)
    parser.add_argument("--every", type=int, default=1, help="compare each N-th sum")
    given = parser.parse_args()
    if given.record:
        return _record(given.record, given.seed)
    if given.keep and given.out:
        keep(given.keep, given.out, given.seed, read_json(given.keep / "about.json"))
        return 0
    if given.compare:
        return _compare(given.compare, given.every)
    parser.error("expected --record, --keep with --out, or --compare")


def _record(folder: Path, seed: int) -> int:
    for number, mode in enumerate(MODES):
        if not record(mode, folder, seed, _PORT + number, _SECONDS):
            raise OperandError(f"{mode.name}: a process failed or took too long; {folder} has its messages")
    return 0


def _compare(path: Path, every: int) -> int:
    elements, answers, wrong = Counter[str](), Counter[str](), 0
    for one in replayed(path, every):
        mode = one.name.split()[0]
        what = mode if mode in {known.name for known in MODES} or mode == "chain" else "layers"
        elements[what] += one.elements
        answers[what] += 1
        if not one.right:
            wrong += 1
            print("differs:", one.name)
    for what in elements:
        print(f"{what}: {answers[what]} answers, {elements[what]:,} elements")
    print(f"{wrong} answers differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
