"""Every program of the catalog as a kernel on an NVIDIA GPU (golden/tensors), compared with the C core.

    python campaigns/device_forms.py --dots 1e6 --seed 1 --out report.md

Needs PyTorch with CUDA and NVRTC. Instructions that have the same program, formats, K, sparsity and block
scales are one unit here. A unit's operands are of all kinds of golden/stimuli, 64 rows and 64 columns a
matrix: the diagonal is what the kind draws, all other elements meet operands of the same kind. Ends with
status 1 where a result differs.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import runner

import golden
from golden import stimuli
from golden.model import device_text
from golden.model.instruction import Instruction

EDGE = 64
"""Rows and columns of a matrix."""


@dataclass(frozen=True)
class Found:
    """What one unit answered."""

    architecture: str
    name: str
    form: str
    algorithms: str
    dots: int
    differences: int
    compiled: float
    rate: float


def units() -> list[tuple[str, str]]:
    """Architecture and name of the first instruction of every unit."""
    seen: dict[Any, tuple[str, str]] = {}
    for architecture in golden.architectures():
        for ins in golden.instructions(architecture):
            if not device_text.supported(ins):
                continue
            formats = tuple(fmt.name for fmt in ins.formats.values())
            key = repr(ins.program), formats, ins.k, ins.pattern, ins.ordered_metadata, ins.scale_block
            seen.setdefault(key, (architecture, ins.name))
    return list(seen.values())


def operands(ins: Instruction, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Matrices (count, EDGE, k), (count, k, EDGE), (count, EDGE, EDGE) and what goes with A and B."""
    kinds = [stimuli.KINDS[i % len(stimuli.KINDS)] for i in range(count)]
    drawn = [ins.complete(stimuli.generate(ins, kind, EDGE, rng)) for kind in kinds]
    found = {key: np.stack([one[key] for one in drawn]) for key in drawn[0]}
    c = np.stack([rng.choice(one["c"], (EDGE, EDGE)) for one in drawn])
    c[:, range(EDGE), range(EDGE)] = found["c"]
    for key in ("b", "scale_b"):
        if key in found:
            found[key] = found[key].swapaxes(1, 2)
    return found | {"c": c}


def expected(ins: Instruction, given: dict[str, np.ndarray]) -> np.ndarray:
    """D by the core."""
    of_row = {key: given[key][:, :, None] for key in ("a", "metadata", "scale_a") if key in given}
    of_column = {key: given[key].swapaxes(1, 2)[:, None] for key in ("b", "scale_b") if key in given}
    found: np.ndarray = ins.dot(**of_row, **of_column, c=given["c"])
    return found


def check(architecture: str, name: str, dots: int, seed: int) -> Found:
    """One unit on the GPU and on the core."""
    import torch

    from golden.tensors.cuda_chain import CudaChain
    from golden.tensors.cuda_source import machine_code

    os.environ["MMAGOLD_THREADS"] = "1"
    ins = golden.instruction(architecture, name)
    begun = time.perf_counter()
    machine_code(ins, torch.cuda.get_device_capability())
    compiled = time.perf_counter() - begun
    count = -(-dots // EDGE**2)
    given = operands(ins, count, np.random.default_rng([seed, count]))
    tensors = {key: torch.from_numpy(_signed(codes)).cuda() for key, codes in given.items()}
    a, b, c = (tensors.pop(key) for key in "abc")
    chain = CudaChain(ins)
    found = chain(a, b, c, 1, tensors)
    torch.cuda.synchronize()
    begun = time.perf_counter()
    chain(a, b, c, 1, tensors)
    torch.cuda.synchronize()
    took = time.perf_counter() - begun
    wrong = int((found.cpu().numpy() != _signed(expected(ins, given))).sum())
    form = "quick" if device_text.is_quick(ins.program, ins) else "interpreter"
    algorithms = ", ".join(dict.fromkeys(operation.algorithm for operation in ins.program.operations))
    return Found(architecture, name, form, algorithms, found.numel(), wrong, compiled, found.numel() / took)


def _signed(codes: np.ndarray) -> np.ndarray:
    """As PyTorch takes them."""
    size = codes.dtype.itemsize
    return np.ascontiguousarray(codes).view(f"i{size}" if size > 1 else "u1")


def table(found: list[Found], device: str, seed: int) -> str:
    """The report."""
    total, wrong = sum(one.dots for one in found), sum(one.differences for one in found)
    lines = [
        f"# Every program on a GPU, compared with the core: {device}",
        "",
        f"`python campaigns/device_forms.py`, seed {seed}, {runner.made()}: {len(found)} units, "
        f"{total:,} dot products, {wrong} differences. A unit is what instructions of one program, formats, "
        "K, sparsity and block scales have in common; its operands are of all kinds of stimuli.",
        "",
        "| Architecture | Form | Units | Dot products | Differences |",
        "|---|---|---|---|---|",
    ]
    groups = Counter((one.architecture, one.form) for one in found)
    for architecture, form in groups:
        own = [one for one in found if (one.architecture, one.form) == (architecture, form)]
        sums = sum(one.dots for one in own), sum(one.differences for one in own)
        lines.append(f"| {architecture} | {form} | {len(own)} | {sums[0]:,} | {sums[1]} |")
    lines += [
        "",
        *interpreted(found),
        "",
        "The first instruction of each unit:",
        "",
        "| Unit | Form | Differences |",
        "|---|---|---|",
    ]
    lines += [f"| {one.architecture} `{one.name}` | {one.form} | {one.differences} |" for one in found]
    return "\n".join(lines) + "\n"


def interpreted(found: list[Found]) -> list[str]:
    """Which units have no quick form, by the algorithms of their operations."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in found:
        if one.form == "interpreter":
            groups.setdefault((one.architecture, one.algorithms), []).append(one.name)
    lines = [
        f"{sum(map(len, groups.values()))} units run by the interpreter: one of their operations is none of "
        "those that have a [quick form](../campaign.md#what-runs-on-the-gpu) (`golden/model/kernels.py` "
        "decides, by steps and formats; `steps` are a unit's own).",
        "",
        "| Architecture | Algorithm | Units | Such as |",
        "|---|---|---|---|",
    ]
    return lines + [
        f"| {architecture} | `{algorithms}` | {len(names)} | `{names[0]}` |"
        for (architecture, algorithms), names in groups.items()
    ]


def main() -> None:
    """Checks all units and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dots", type=float, default=1e6, help="dot products of each unit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="units whose name has this")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    chosen = [unit for unit in units() if given.only in " ".join(unit)]
    chosen.sort(key=lambda unit: device_text.is_quick(*_program(unit)))  # what compiles long goes first
    found = []
    tasks = [(*unit, int(given.dots), given.seed) for unit in chosen]
    for _, one in runner.results(check, tasks, given.processes):
        found.append(one)
        print(one, flush=True)
    import torch

    text = table(
        sorted(found, key=lambda one: (one.architecture, one.form, one.name)),
        torch.cuda.get_device_name(),
        given.seed,
    )
    runner.write(given.out, text)
    wrong = sum(one.differences for one in found)
    print(f"{len(found)} units, {sum(one.dots for one in found):,} dot products, {wrong} differences")
    raise SystemExit(1 if wrong else 0)


def _program(unit: tuple[str, str]) -> tuple[Any, Instruction]:
    ins = golden.instruction(*unit)
    return ins.program, ins


if __name__ == "__main__":
    main()
