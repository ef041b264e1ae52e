"""Holds the C core against exact rational arithmetic for as long as you like,
on fresh operands of every kind.

    python campaigns/exact_rationals.py --minutes 60 --seed 7

The oracle is tests/golden/exact.py (fractions only, nothing of golden); the rows come from
tests/golden/model/test_reference.py. Prints how many dot products were compared and every difference; the
exit status is 1 when there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import golden
from golden import stimuli

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "golden"), str(ROOT / "tests" / "golden" / "model")]
from test_reference import ROWS  # noqa: E402


def main() -> int:
    """Runs rows and kinds round and round until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng, end = np.random.default_rng(arguments.seed), time.monotonic() + 60 * arguments.minutes
    count = wrong = 0
    batch = 64
    while time.monotonic() < end:
        for architecture, name, oracle in ROWS:
            ins = golden.instruction(architecture, name)
            for kind in stimuli.KINDS:
                operands = stimuli.generate(ins, kind, batch, rng)
                results = ins.dot(**operands).tolist()
                rows = {key: value.tolist() for key, value in operands.items()}
                for i in range(batch):
                    expected = oracle(**{key: codes[i] for key, codes in rows.items()})
                    count += 1
                    if expected != results[i]:
                        wrong += 1
                        shown = {key: codes[i] for key, codes in rows.items()}
                        print(f"{architecture} {name} {kind}: {results[i]:#x}, exact {expected:#x}: {shown}")
            if time.monotonic() > end:
                break
    print(f"{count} dot products against exact rationals, {wrong} differ (seed {arguments.seed})")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
