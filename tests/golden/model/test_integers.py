"""Products of integers: every format, layout and shape beside NumPy's integers, at every instruction set.

The fast form brings codes of 8 bits to pairs of 16; what it may get wrong lies in strides, in the ends of
rows and at the ends of formats and of 32 bits.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from instruction_sets import instruction_sets
from random_units import load

from golden.instruction import Instruction

SHAPES = ((16, 8), (4, 16), (8, 24), (12, 40), (3, 8), (4, 5), (1, 1), (16, 256))
FORMATS = (("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8"), ("s4", "u4"), ("u4", "s4"), ("b1", "b1"))
LEAST, MOST = -(1 << 31), (1 << 31) - 1


def unit(
    a: str, b: str, k: int, overflow: str = "wrap", operation: str = "product", **more: Any
) -> Instruction:
    """c + the sum of a[i] times b[i], or of another operation on bits."""
    steps = [
        {"multiply": {"to": "products", "operation": operation}},
        {"sum": {"of": ["products", "c"], "to": "total"}},
        {"round": {"of": "total", "rounding": "toward_zero", "overflow": overflow, "zero": "positive"}},
    ]
    given = {"unit": "integers", "shape": {"k": k}, "formats": {"a": a, "b": b, "c": "s32", "d": "s32"}}
    made = load(json.dumps(given | {"steps": steps} | more))
    assert made.engine_of_one.fast
    return made


def integers(fmt: Any, codes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """What codes mean: two's complement, or no sign."""
    values = codes.astype(np.int64)
    return values - ((values >> (fmt.bits - 1) & 1) << fmt.bits) if fmt.signed else values


def drawn(ins: Instruction, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Codes, half of them at the ends of the format."""
    fmt = ins.formats[name]
    codes = rng.integers(0, 1 << fmt.bits, shape, np.uint64)
    half = 1 << (fmt.bits - 1)
    ends = rng.choice(np.array([0, half, half - 1, 2 * half - 1], np.uint64), shape)
    return np.where(rng.random(shape) < 0.5, ends, codes).astype(fmt.dtype)


def wanted(
    ins: Instruction, a: Any, b: Any, c: Any, overflow: str = "wrap", operation: str = "product"
) -> Any:
    """The sum in 64 bits, wrapped or clamped once."""
    x, y = (integers(ins.formats[name], codes) for name, codes in (("a", a), ("b", b)))
    both = x[..., :, :, None], y[..., None, :, :]
    terms = {"product": np.multiply, "and": np.bitwise_and, "xor": np.bitwise_xor}[operation](*both)
    total = terms.sum(-2) + c.astype(np.uint32).view(np.int32)
    return (np.clip(total, LEAST, MOST) if overflow == "saturate" else total).astype(np.uint32)


def check(ins: Instruction, given: dict[str, Any], m: int, n: int, **how: str) -> None:
    got = ins.engine.tiles({**given, "c": given["c"]}, m, n)  # type: ignore[union-attr]
    assert np.array_equal(got.view(np.uint32), wanted(ins, given["a"], given["b"], given["c"], **how)), (m, n)


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("formats", FORMATS, ids="-".join)
@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
def test_every_shape_and_depth(
    formats: tuple[str, str], overflow: str, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(1)
    for k in (1, 2, 3, 16, 18, 32, 33, 64):
        for operation in (
            ("product", "and", "xor") if formats[0] == "b1" and overflow == "wrap" else ("product",)
        ):
            ins = unit(*formats, k, overflow, operation)
            for m, n in SHAPES:
                given = {"a": drawn(ins, "a", (2, m, k), rng), "b": drawn(ins, "b", (2, k, n), rng)}
                given["c"] = drawn(ins, "c", (2, m, n), rng)
                check(ins, given, m, n, overflow=overflow, operation=operation)


def test_the_largest_sums_at_both_ends_of_32_bits() -> None:
    """Every product -128 * -128, or -128 * 127, and c at the very ends."""
    for overflow in ("wrap", "saturate"):
        ins = unit("s8", "s8", 256, overflow)
        for code in (0x80, 0x7F):
            given = {"a": np.full((16, 256), 0x80, np.uint8), "b": np.full((256, 8), code, np.uint8)}
            for c in (0x7FFFFFFF, 0x80000000, 0x7FFFFFFF - 256 * 128 * 128, 0x80000000 + 256 * 128 * 127):
                for off in (-1, 0, 1):
                    given["c"] = np.full((16, 8), (c + off) % (1 << 32), np.uint32)
                    check(ins, given, 16, 8, overflow=overflow)


LAYOUTS = {
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
    "every second": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "rows apart": lambda x: np.repeat(x, 3, -2)[..., ::3, :],
    "one row": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    "one column": lambda x: np.broadcast_to(x[..., :, :1], x.shape),
    "one element": lambda x: np.broadcast_to(x[..., :1, :1], x.shape),
    "rows overlap": lambda x: overlapping(x),
    "one byte off": lambda x: one_off(x),
}


def overlapping(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows that begin one element after each other."""
    strides = (*x.strides[:-2], x.itemsize, x.itemsize)
    return np.lib.stride_tricks.as_strided(np.ascontiguousarray(x), x.shape, strides, writeable=False)


def one_off(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """At an odd address, where nothing may be written and nothing lies behind it."""
    raw = np.empty(x.nbytes + 1, np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("formats", [("s8", "s8"), ("s4", "u4"), ("b1", "b1")], ids="-".join)
def test_every_layout(
    formats: tuple[str, str], layout: str, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each operand alone, and of all at once. Strides of zero are strides, too."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(2)
    for k, m, n in ((32, 16, 8), (16, 4, 16), (34, 8, 24), (5, 4, 8), (32, 5, 7)):
        ins = unit(*formats, k)
        given = {"a": drawn(ins, "a", (3, m, k), rng), "b": drawn(ins, "b", (3, k, n), rng)}
        given["c"] = drawn(ins, "c", (3, m, n), rng)
        moved = {name: LAYOUTS[layout](codes) for name, codes in given.items()}
        for names in ("a", "b", "c", "abc"):
            check(ins, given | {name: moved[name] for name in names}, m, n)


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
def test_sums_in_turn_and_sums_without_c(overflow: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each saturates by itself; one that starts from zero leaves c alone."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(3)
    steps = unit("s8", "s8", 8, overflow).program.operations[0].steps
    step = {"integer_dot_add": {"overflow": overflow}}
    for k, n in ((8, 8), (6, 16), (4, 3)):
        half = k // 2
        formats = dict(zip("abcd", ("s8", "s8", "s32", "s32"), strict=True))
        for program, uses_c in (
            ([step | {"k": {"from": 0, "to": half - 1}}, step | {"k": {"from": half, "to": k - 1}}], True),
            ([step | {"seed": "zero"}], False),
        ):
            text = json.dumps({"unit": "turns", "shape": {"k": k}, "formats": formats, "program": program})
            ins = load(text)
            assert ins.engine_of_one.fast
            assert ins.program.operations[0].steps == steps
            a, b = drawn(ins, "a", (8, k), rng), drawn(ins, "b", (k, n), rng)
            c = drawn(ins, "c", (8, n), rng)
            total = c if uses_c else np.zeros_like(c)
            cuts = (slice(0, half), slice(half, k)) if uses_c else (slice(0, k),)
            for cut in cuts:
                total = wanted(ins, a[:, cut], b[cut], total, overflow)
            assert np.array_equal(ins.engine.tiles({"a": a, "b": b, "c": c}, 8, n).view(np.uint32), total)
