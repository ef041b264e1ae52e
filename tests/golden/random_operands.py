"""Random operands of any instruction: dot products, whole matrices, and the same products as dot products."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.model.instruction import Instruction
from golden.number.formats import Format

Bits = npt.NDArray[Any]
Operands = dict[str, Bits]


def draw_codes(fmt: Format, size: tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Codes of one format: random bits, near exponents, ends of the exponent range, special codes, zeros."""
    bits = rng.integers(0, 1 << 64, size, dtype=np.uint64, endpoint=False) & np.uint64((1 << fmt.bits) - 1)
    if fmt.is_float:
        top, low = (1 << fmt.exponent_bits) - 1, np.uint64(fmt.fraction_bits + fmt.ignored_low)
        middle = int(rng.integers(0, top + 1))
        near = np.clip(middle + rng.integers(-4, 5, size), 0, top)
        fields = {
            0: rng.integers(0, top + 1, size),
            1: near,
            2: rng.integers(0, min(3, top) + 1, size),
            3: top - rng.integers(0, min(3, top) + 1, size),
            4: near,
        }[int(rng.integers(0, 5))].astype(np.uint64)
        mask = np.uint64(top) << low
        bits = (bits & ~mask) | (fields << low)
        if rng.random() < 0.4:  # few significant bits: ties and exact cancellation
            bits &= ~np.uint64((1 << int(low)) - 1) | np.uint64(1 << max(int(low) - 1, 0))
    codes = [
        0,
        fmt.largest,
        *((fmt.infinity,) if fmt.infinity is not None else ()),
        *((fmt.nan,) if fmt.nan is not None else ()),
    ]
    codes += [1, 1 << fmt.sign_shift] if fmt.is_float and fmt.signed else [1]
    rare = rng.choice((0.0, 0.0, 0.05, 0.3))
    special = rng.random(size) < rare
    chosen = rng.choice(np.array(codes[:2] if rng.random() < 0.5 else codes, dtype=np.uint64), size)
    if fmt.is_float and fmt.signed:
        chosen |= rng.integers(0, 2, size, dtype=np.uint64) << np.uint64(fmt.sign_shift)
    return np.asarray(np.where(special, chosen, bits).astype(fmt.dtype))


def draw_dots(ins: Instruction, count: int, rng: np.random.Generator) -> Operands:
    """Operands of `count` dot products.

    In some, neighbouring products cancel; in some, c cancels the result for c = 0.
    """
    operands = {
        name: draw_codes(ins.formats[name], (count, *size), rng)
        for name, size in ins.operand_shapes(matrices=False).items()
    }
    a = ins.formats["a"]
    if rng.random() < 0.4 and ins.k > 1 and a.is_float and a.signed:
        pairs = ins.k // 2 * 2
        rows = rng.random(count) < 0.6
        operands["a"][rows, 1:pairs:2] = operands["a"][rows, 0:pairs:2] ^ a.dtype.type(1 << a.sign_shift)
        operands["b"][rows, 1:pairs:2] = operands["b"][rows, 0:pairs:2]
    c = ins.formats["c"]
    if rng.random() < 0.4 and c == ins.formats["d"] and c.is_float and c.signed:
        zero = np.zeros_like(operands["c"])
        d = ins.engine.dots(
            operands["a"],
            operands["b"],
            zero,
            None,
            operands.get("scale_a"),
            operands.get("scale_b"),
            general=True,
        )
        rows = rng.random(count) < 0.5
        operands["c"] = np.where(
            rows,
            (d ^ c.dtype.type(1 << c.sign_shift)) + rng.integers(0, 2, count).astype(c.dtype),
            operands["c"],
        )
        operands["c"] &= c.dtype.type((1 << c.bits) - 1)
    return operands


def draw_matrices(ins: Instruction, batch: int, rng: np.random.Generator) -> Operands:
    """Operands of whole products, columns drawn on their own; b and c lie transposed or reversed."""
    rows, columns, points = (draw_dots(ins, batch * count, rng) for count in (ins.m, ins.n, ins.m * ins.n))
    operands = {
        "a": rows["a"].reshape(batch, ins.m, ins.k),
        "b": columns["b"].reshape(batch, ins.n, ins.k).swapaxes(-1, -2),
        "c": points["c"].reshape(batch, ins.m, ins.n),
    }
    if "scale_a" in rows:
        operands["scale_a"] = rows["scale_a"].reshape(batch, ins.m, -1)
        operands["scale_b"] = columns["scale_b"].reshape(batch, ins.n, -1).swapaxes(-1, -2)
    for name in operands:
        pick = rng.integers(0, 4)
        if pick == 0:
            operands[name] = np.ascontiguousarray(operands[name])
        elif pick == 1:
            operands[name] = np.ascontiguousarray(operands[name][:, ::-1, ::-1])[:, ::-1, ::-1]
        elif pick == 2:
            operands[name] = np.repeat(operands[name], 2, axis=-1)[..., ::2]
    return operands


def as_dots(operands: Operands) -> Operands:
    """The same products for the broadcasting of `dot`: rows (m, 1, k) against columns (1, n, k)."""
    views = {}
    for name, array in operands.items():
        if name in ("b", "scale_b"):
            views[name] = array.swapaxes(-1, -2)[..., None, :, :]
        else:
            views[name] = array if name == "c" else array[..., :, None, :]
    return views
