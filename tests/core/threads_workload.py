"""Calls of several threads at once, whose threads of the core come and go, and forks between them.

Prints the results that differ from the results of one thread, and from a child process: none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import golden
from golden import stimuli

NAMES = (
    ("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    ("ampere", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"),
    ("cdna3", "v_mfma_f32_16x16x16_f16"),
)
COUNTS = (1 << 12, 40_001, 1 << 17)


def case(architecture: str, name: str, count: int) -> Callable[[int], int]:
    """Results of a unit's dot that differ from calls too short for a second thread, over some calls."""
    ins = golden.instruction(architecture, name)
    operands = stimuli.generate(ins, "random_bits", count, np.random.default_rng(count))
    parts = ({x: codes[i : i + 1000] for x, codes in operands.items()} for i in range(0, count, 1000))
    wanted = np.concatenate([ins.dot(**part) for part in parts])
    return lambda repeats: sum(int((ins.dot(**operands) != wanted).sum()) for _ in range(repeats))


def in_child(wrong: Callable[[int], int]) -> int:
    """The same of a child process, which has none of the threads that help here."""
    child = os.fork()
    if child == 0:
        os._exit(min(255, wrong(2)))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(repeats: int, forks: int) -> None:
    """Every name and count in a thread of its own, and forks meanwhile."""
    cases = [case(*name, count) for name in NAMES for count in COUNTS]
    with ThreadPoolExecutor(len(cases)) as pool:
        jobs = [pool.submit(wrong, repeats) for wrong in cases]
        print(sum(in_child(cases[-1]) for _ in range(forks)) + sum(job.result() for job in jobs))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
