"""Changes of instructions that the default vectors hardly show: what a fault could hide in.

    .venv/bin/python campaigns/rare_changes.py [--count 200000] [--rare 5] [NAME ...]

Every change that the diagnosis knows (golden/identify/diagnose/mutations) is made to one instruction of each
of twelve families, or to those that are named, and run on the default set of vectors. Of those that fewer
than --rare results show, operands of every kind, aimed at the instruction and at the changed
one, say whether they can be seen at all. A change that can, and hardly is, is printed: stimuli should aim
there.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from golden import stimuli
from golden.catalog.lookup import resolve
from golden.errors import MmagoldError
from golden.identify.diagnose.mutations import of_program
from golden.model.instruction import Instruction
from golden.vectors import default_set

MMA = "mma.sync.aligned.m16n8k"
NAMES = (
    ("volta", "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"),
    ("hopper", f"{MMA}16.row.col.f32.f16.f16.f32"),
    ("hopper", f"{MMA}16.row.col.f16.f16.f16.f16"),
    ("ampere", f"{MMA}8.row.col.f32.bf16.bf16.f32"),
    ("ampere", f"{MMA}4.row.col.f32.tf32.tf32.f32"),
    ("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2"),
    ("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3"),
    ("cdna2", "v_mfma_f32_16x16x16f16"),
    ("cdna3", "v_mfma_f32_16x16x16_f16"),
    ("cdna3", "v_mfma_f32_16x16x32_bf8_fp8"),
    ("rdna3", "v_wmma_f32_16x16x16_f16_w32"),
    (
        "rtx_blackwell",
        f"{MMA}64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
)


def told(one: Instruction, changed: Instruction) -> Counter[str]:
    """By kind, results that differ."""
    found: Counter[str] = Counter()
    for kind in stimuli.KINDS:
        for aimed in (one, changed):
            # Operands of each kind, aimed at either, for a change that the vectors hardly show.
            each = 2000
            operands = stimuli.generate(aimed, kind, each, np.random.default_rng(3))
            found[kind] += int((changed.dot(**operands) != one.dot(**operands)).sum())
    return +found


def examine(ins: Instruction, count: int, rare: int) -> tuple[int, int]:
    """How many changes were made, and how many of them are rare and can be seen; prints these."""
    vectors = default_set(ins, count, seed=1)
    made = hidden = 0
    for change in of_program(ins):
        try:
            changed = change.program(ins) if change.program is not None else None
        except MmagoldError:
            continue
        if changed is None:
            continue
        made += 1
        shown = int((changed.dot(**vectors.operands) != vectors.d).sum())
        if shown < rare and (kinds := told(ins, changed)):
            hidden += 1
            print(f"  {change.slug}: {shown} of {count:,}; {dict(kinds.most_common(3))}", flush=True)
    return made, hidden


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="instructions or unit files in place of the twelve")
    parser.add_argument("--count", type=int, default=200_000, help="vectors of the default set")
    parser.add_argument("--rare", type=int, default=5, help="what fewer results show is rare")
    given = parser.parse_args()
    sums = np.zeros(2, int)
    names = given.names or [f"{architecture}:{name}" for architecture, name in NAMES]
    for name in names:
        found = examine(resolve(name), given.count, given.rare)
        print(f"{name}: {found[0]} changes, {found[1]} rare", flush=True)
        sums += found
    print(f"{sums[0]:,} changes of {len(names)} instructions, {sums[1]} of them rare")


if __name__ == "__main__":
    main()
