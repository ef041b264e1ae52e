"""Products of integers: every format, layout and shape against NumPy's integers, at every instruction set.

The fast form brings codes of 8 bits to pairs of 16, or multiplies four bytes at once; what it may get wrong
lies in strides, in the ends of rows and at the ends of formats and of 32 bits.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from instruction_sets import instruction_sets
from random_units import load

from golden.model.instruction import Instruction
from golden.number.formats import get_format

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


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("formats", list(product(("s8", "u8"), repeat=2)), ids="-".join)
def test_the_largest_sums_at_both_ends_of_32_bits(
    formats: tuple[str, str], simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every product that of two codes at the ends, and c where the sum just leaves 32 bits, and where not."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    for k, overflow, n in product((4, 6, 252), ("wrap", "saturate"), (8, 16)):
        ins = unit(*formats, k, overflow)
        for codes in product((0x80, 0x7F, 0xFF), repeat=2):
            given = {"a": np.full((16, k), codes[0], np.uint8), "b": np.full((k, n), codes[1], np.uint8)}
            total = k * np.prod([integers(ins.formats[name], given[name][0, 0]) for name in "ab"])
            for c, off in product((MOST, LEAST, MOST - total, LEAST - total), (-1, 0, 1)):
                given["c"] = np.full((16, n), int(c + off) % (1 << 32), np.uint32)
                check(ins, given, 16, n, overflow=overflow)


@pytest.mark.parametrize("formats", list(product(("s8", "u8", "s4", "u4"), repeat=2)), ids="-".join)
def test_bytes_moved_by_128_give_every_product(formats: tuple[str, str]) -> None:
    """docs/core.md on bytes without a sign by bytes with one, for all codes: not every machine multiplies
    them."""
    of_a, of_b = map(get_format, formats)
    a, b = np.meshgrid(*(integers(f, np.arange(1 << f.bits)) for f in (of_a, of_b)), indexing="ij")
    moved = of_a.signed if of_b.signed else formats[0] == "u8"
    begin = (-128 if of_b.signed else 128) * moved * b
    if of_b.signed:
        plain, signed = a + 128 * moved, b
    else:
        plain, signed = b, a - 128 * moved
    assert plain.min() >= 0 and plain.max() < 256 and signed.min() >= -128 and signed.max() < 128
    assert np.array_equal((a ^ 0x80) & 0xFF if moved else a & 0xFF, (plain if of_b.signed else signed) & 0xFF)
    assert np.array_equal(begin + plain * signed, a * b)


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
