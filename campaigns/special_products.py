"""Whole products with infinities, NaNs and any other words among the operands, compared with their plans.

    python campaigns/special_products.py --seed 1 --out special.md

Needs PyTorch with CUDA, and Triton. Of each call its plan is found on finite operands first, as
`mmagold capture-products` finds it. Then a share of the elements of A and B, five shares in turn, becomes
words of a pool (infinities, NaNs, largest and subnormal numbers) or any words, and the results are held
against `golden.gemm`, every bit, NaN words too. Scales stay.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from golden.number.formats import get_format
from hw_capture.errors import DeviceError
from hw_capture.products.calls import Torch
from hw_capture.products.cases import Case, cases, triton_types
from hw_capture.products.explain import explain, name_of, replayed

Bits = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Count:
    """What was compared of one plan."""

    products: int = 0
    elements: int = 0
    nans: int = 0
    infinities: int = 0
    differ: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


def pool(name: str) -> Bits:
    """Words of a format that are special, or nearly."""
    fmt = get_format(name)
    top = 1 << fmt.sign_shift
    words = {fmt.largest, fmt.largest - 1, 0, 1, 2}
    words |= {word for word in (fmt.infinity, fmt.nan) if word is not None}
    if fmt.infinity is not None:
        words |= {fmt.infinity + 1, top - 1}
    return np.array(sorted({word | sign for word in words for sign in (0, top)}), fmt.dtype)


def sprinkled(rng: np.random.Generator, codes: Bits, name: str, share: float) -> Bits:
    """A share of the elements from the pool, as many any words."""
    kind = rng.random(codes.shape)
    words = rng.integers(0, 1 << get_format(name).bits, codes.shape, np.uint64).astype(codes.dtype)
    chosen = rng.choice(pool(name), codes.shape)
    return np.where(kind < share, chosen, np.where(kind < 2 * share, words, codes))


def compare(case: Case, torch: Torch, seed: int, count: Count) -> str | None:
    """Runs one call with each share; says why not, where it cannot."""
    operands = case.operands()
    try:
        d, _ = torch.run(case, operands)
    except DeviceError as error:
        return str(error)
    plan = explain(case, operands, d)
    if plan is None:
        return "no plan"
    shares = (0.0002, 0.001, 0.005, 0.02, 0.3)
    for number, share in enumerate(shares):
        rng = np.random.default_rng([seed, number, case.m, case.n, case.k])
        given = dict(operands)
        for name in ("a", "b"):
            given[name] = sprinkled(rng, operands[name], case.formats[name], share)
        if case.call == "sparse_mm":  # of four two stay zero, and no others, of either sign, become so
            zero = (given["a"] << 1 == 0) | (operands["a"] == 0)
            given["a"] = np.where(zero, operands["a"], given["a"])
        d, _ = torch.run(case, given)
        with np.errstate(all="ignore"):
            wanted = replayed(plan, case, given)
        bad = d != wanted
        count.products += 1
        count.elements += d.size
        count.differ += int(bad.sum())
        fmt = get_format(case.d)
        if fmt.is_float and fmt.infinity is not None:
            magnitude = wanted & fmt.dtype.type((1 << fmt.sign_shift) - 1)
            count.nans += int((magnitude > fmt.infinity).sum())
            count.infinities += int((magnitude == fmt.infinity).sum())
        for row, column in np.argwhere(bad)[:2]:
            count.examples.append(
                {"case": case.name, "share": share, "row": int(row), "column": int(column),
                 "gpu": hex(int(d[row, column])), "model": hex(int(wanted[row, column]))}
            )  # fmt: skip
    return None


def table(counts: dict[str, Count], refused: dict[str, str]) -> str:
    """Markdown."""
    lines = [
        "| Plan | Products | Elements | NaN | Infinite | Differences |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, one in counts.items():
        numbers = one.products, one.elements, one.nans, one.infinities, one.differ
        lines.append(f"| `{name}` | {' | '.join(f'{number:,}' for number in numbers)} |")
    lines += ["", *(f"- `{name}`: {why}" for name, why in refused.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch = Torch()
    counts: dict[str, Count] = defaultdict(Count)
    refused: dict[str, str] = {}
    shapes = ((128, 128, 512), (64, 144, 1152))
    for case in (*cases(given.seed, shapes), *triton_types(given.seed, shapes)):
        name = name_of(case)
        if name is not None and get_format(case.a).is_float:
            why = compare(case, torch, given.seed, counts[name])
            if why is not None:
                refused[case.name] = why
            print(case.name, name, counts[name].differ, flush=True)
    text = table(counts, refused)
    given.out.write_text(text, encoding="utf-8")
    print(text)
    if given.json is not None:
        found = {name: one.examples for name, one in counts.items() if one.examples}
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
