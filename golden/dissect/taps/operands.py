"""Faults in how operands and block scales are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from golden.dissect.datapath.signals import (
    OperandSignals,
    ScaleSignals,
    Tap,
)
from golden.dissect.taps.steps import (
    OTHERS,
)
from golden.instruction import Instruction


def faults(ins: Instruction) -> Iterator[Tap]:
    """The exponents of subnormal numbers, and block scales."""
    if ins.scale_block is not None:
        yield from _scales(ins)
    floats = [n for n in "abc" if n not in ins.absent and ins.formats[n].is_float]
    for name in floats:
        half = "its exponent is read as 0 where 1 is right"
        yield Tap(
            f"{name}-subnormal-half",
            f"subnormal {name} counts half ({half})",
            "operands",
            lambda s, n=name: s.move(n, -s.subnormal(n).astype(np.int64)),
        )
        yield Tap(
            f"{name}-subnormal-huge",
            f"the exponent of a subnormal {name} wraps around to the largest",
            "operands",
            lambda s, n=name: _wrap_subnormal(s, n),
        )
    if "a" in floats and "b" in floats:
        for name, other in OTHERS.items():
            yield Tap(
                f"{name}-subnormal-by-{other}",
                f"the exponent of {name} gets the correction for subnormal numbers where {other} is one",
                "operands",
                lambda s, n=name, o=other: s.move(
                    n, s.subnormal(o).astype(np.int64) - s.subnormal(n).astype(np.int64)
                ),
            )
    if len(floats) == 3:
        yield Tap(
            "subnormal-half",
            "every subnormal operand counts half (its exponent is read as 0 where 1 is right)",
            "operands",
            _halve_all,
        )


def _scales(ins: Instruction) -> Iterator[Tap]:
    """Block scales that count for more or less, and those of another block."""
    for by, word in ((-1, "half"), (1, "twice"), (-2, "a quarter"), (2, "four times")):
        sign = "minus" if by < 0 else "plus"
        yield Tap(
            f"scale-exponent-{sign}-{abs(by)}",
            f"the scales of a product count {word} of what they should",
            "scales",
            lambda s, n=by: _move_scales(s, "a", n),
            weight=1.0,
        )
    for name in "ab":
        if ins.formats[f"scale_{name}"].has_zero:
            yield Tap(
                f"scale-{name}-subnormal-half",
                f"subnormal scale_{name} counts half (its exponent is read as 0 where 1 is right)",
                "scales",
                lambda s, n=name: _move_scales(s, n, -1, subnormal=True),
            )
    blocks = ins.operand_shapes(False)["scale_a"][0]
    for slug, text, order in _orders(blocks):
        for names in ("ab", "a", "b"):
            scales = " and ".join(f"scale_{name}" for name in names)
            yield Tap(
                f"{'scales' if len(names) > 1 else f'scale-{names}'}-{slug}",
                f"{scales} of {text}",
                "scales",
                lambda s, n=names, o=order: _reorder(s, n, o),
            )


def _orders(blocks: int) -> Iterator[tuple[str, str, list[int]]]:
    """For each block the one whose scale it gets."""
    every = range(blocks)
    if blocks < 2:
        return
    yield "reversed", "the blocks in reverse order", list(reversed(every))
    yield "late-by-one-block", "the block before", [(i - 1) % blocks for i in every]
    if blocks > 2:
        yield "early-by-one-block", "the block behind", [(i + 1) % blocks for i in every]
    for block in every:
        yield f"of-block-{block}-everywhere", f"block {block} for all blocks", [block] * blocks


def _move_scales(s: ScaleSignals, name: str, by: int, subnormal: bool = False) -> None:
    fmt, scales = (s.format_a, s.a) if name == "a" else (s.format_b, s.b)
    there = scales.significand < 1 << fmt.fraction_bits if subnormal else np.ones_like(scales.finite)
    moved = replace(scales, exponent=scales.exponent + by * there, lsb=scales.lsb + by * there)
    s.a, s.b = (moved, s.b) if name == "a" else (s.a, moved)


def _reorder(s: ScaleSignals, names: str, order: list[int]) -> None:
    s.a = s.a[order] if "a" in names else s.a
    s.b = s.b[order] if "b" in names else s.b


def _halve_all(s: OperandSignals) -> None:
    for name in s.numbers:
        s.move(name, -s.subnormal(name).astype(np.int64))


def _wrap_subnormal(s: OperandSignals, name: str) -> None:
    fmt = s.formats[name]
    s.move(name, np.where(s.subnormal(name), (2 << fmt.exponent_bits) - 1, 0))
