"""Bank conflicts of the ablation kernels with mma.sync: a GPU's count against the count from addresses.

    ncu --clock-control none --metrics smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum \\
        --csv python campaigns/bank_conflicts.py --launch > counted.txt
    python campaigns/bank_conflicts.py --counted counted.txt --out docs/timing/bank_conflicts_h200.csv

The first needs PyCUDA, nvcc, Nsight Compute and a GPU; products of 2048. The second ends with status 1 where
one differs.
"""

from __future__ import annotations

import argparse
import csv
import io
from contextlib import closing
from pathlib import Path

from hw_capture.gpu import device
from hw_capture.record.capture import target_for
from hw_capture.timing.ablation import machine_code, run
from hw_capture.timing.ablation.machine_code import of_product
from hw_capture.timing.ablation.variants import all_variants

SIZE = 2048
COUNTER = "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum"
VARIANTS = [variant for variant in all_variants("hopper") if not variant.warpgroups]


def launch() -> None:
    """Launches each kernel once."""
    with device.open() as gpu:
        target = target_for("hopper", gpu.facts())
        with closing(machine_code.build(VARIANTS, target)) as built:
            kernels = list(built)
        product = run.Product(gpu, SIZE, 1)
        launchers = [run.Launcher(product, one) for one in kernels]  # ncu fails where a kernel is unloaded
        for launcher in launchers:
            launcher.launch()
            gpu.wait(launcher.name)


def counted(text: str) -> list[int]:
    """What the GPU counted of each, from ncu's table."""
    rows = csv.DictReader(io.StringIO(text[text.index('"ID"') :]))
    return [int(row["Metric Value"].replace(",", "")) for row in rows if row["Metric Name"] == COUNTER]


def main() -> None:
    """Writes and prints a line for each kernel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counted", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--launch", action="store_true")
    given = parser.parse_args()
    if given.launch or not given.counted:
        launch()
        return
    lines, wrong = ["kernel,size,counter,counted,derived"], 0
    for variant, found in zip(VARIANTS, counted(given.counted.read_text()), strict=True):
        derived = of_product(variant, SIZE)[1].conflicts
        lines.append(f"{variant.label},{SIZE},{COUNTER},{found},{derived}")
        wrong += found != derived
    print("\n".join(lines))
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
