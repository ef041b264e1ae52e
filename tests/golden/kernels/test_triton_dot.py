"""tl.dot by its rule: what Triton 3.6.0 compiles for sm_90, what H100s answered, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden.errors import OperandError, ShapeError, UnknownNameError
from golden.kernels.drawing import drawn
from golden.kernels.triton_dot import NO_LIMIT, Dot, added, dot, packed_order, steps_of
from hw_capture.products import record

VECTORS = Path(__file__).parents[3] / "vectors" / "kernels"
COMPILED = [
    # A, B, D, M, N, K, warps, max_num_imprecise_acc, loaded bits, release: the instruction in the PTX
    ("f16", "f16", "f32", 64, 64, 64, 4, 0, None, (3, 6), "wgmma m64n128k16.f32.f16.f16"),
    ("f16", "f16", "f32", 64, 64, 16, 4, 0, None, (3, 6), "wgmma m64n128k16.f32.f16.f16"),
    ("f16", "f16", "f32", 64, 64, 64, 8, 0, None, (3, 6), "wgmma m64n128k16.f32.f16.f16"),
    ("f16", "f16", "f32", 64, 64, 64, 2, 0, None, (3, 6), "mma m16n8k16.row.col.f32.f16.f16.f32"),
    ("f16", "f16", "f32", 32, 64, 64, 4, 0, None, (3, 6), "mma m16n8k16.row.col.f32.f16.f16.f32"),
    ("f16", "f16", "f32", 1, 16, 32, 4, 0, None, (3, 6), "mma m16n8k16.row.col.f32.f16.f16.f32"),
    ("f16", "f16", "f32", 64, 8, 32, 4, 0, None, (3, 6), "mma m16n8k16.row.col.f32.f16.f16.f32"),
    ("f16", "f16", "f32", 64, 8, 32, 4, 0, None, (3, 7), "mma m16n8k16.row.col.f32.f16.f16.f32"),
    ("f16", "f16", "f32", 64, 8, 32, 4, 0, None, (3, 8), "wgmma m64n128k16.f32.f16.f16"),
    ("bf16", "bf16", "f32", 16, 16, 16, 4, 0, None, (3, 6), "mma m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("f32", "f32", "f32", 64, 64, 32, 4, 0, None, (3, 6), "wgmma m64n128k8.f32.tf32.tf32"),
    ("f32", "f32", "f32", 16, 16, 16, 4, 0, None, (3, 6), "mma m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("f64", "f64", "f64", 64, 64, 32, 4, 0, None, (3, 7), "mma m16n8k16.row.col.f64.f64.f64.f64"),
    ("f64", "f64", "f64", 64, 64, 32, 4, 0, None, (3, 9), "mma m8n8k4.row.col.f64.f64.f64.f64"),
    ("s8", "s8", "s32", 64, 64, 64, 4, 0, None, (3, 6), "wgmma m64n128k32.s32.s8.s8"),
    ("s8", "s8", "s32", 16, 16, 32, 4, 0, None, (3, 6), "mma m16n8k32.row.col.satfinite.s32.s8.s8.s32"),
    ("e4m3", "e4m3", "f32", 64, 64, 128, 4, NO_LIMIT, None, (3, 6), "wgmma m64n128k32.f32.e4m3.e4m3"),
    ("e4m3", "e4m3", "f32", 64, 64, 128, 4, 0, None, (3, 6), "mma m16n8k16.row.col.f32.f16.f16.f32"),
    ("e4m3", "e4m3", "f32", 64, 64, 128, 4, 31, None, (3, 6), "mma m16n8k16.row.col.f32.f16.f16.f32"),
    ("e4m3", "e4m3", "f32", 64, 64, 128, 4, 32, None, (3, 6), "wgmma m64n128k32.f32.e4m3.e4m3"),
    ("e4m3", "e5m2", "f32", 64, 64, 128, 4, NO_LIMIT, None, (3, 6), "wgmma m64n128k32.f32.e4m3.e5m2"),
    ("e5m2", "e5m2", "f32", 32, 64, 128, 4, NO_LIMIT, None, (3, 6), "mma m16n8k16.row.col.f32.f16.f16.f32"),
    ("f16", "f16", "f32", 64, 64, 32, 4, 0, 8, (3, 6), "wgmma m64n128k16.f32.f16.f16"),
    ("f16", "f16", "f32", 16, 64, 32, 4, 0, 8, (3, 6), "mma m16n8k16.row.col.f32.f16.f16.f32"),
]
"""Read from the PTX of small kernels that Triton 3.6.0, 3.7.1, 3.8.0 and 3.9.0 compiled, with the columns of
wgmma written as 128."""


def asked(a: str, b: str, d: str, m: int, n: int, k: int, warps: int, most: int, loaded: Any, to: Any) -> Dot:
    return Dot(a=a, b=b, d=d, m=m, n=n, k=k, warps=warps, imprecise=most, loaded=loaded, release=to)


@pytest.mark.parametrize("row", COMPILED, ids=lambda row: " ".join(map(str, row[:-1])))
def test_the_instruction_is_that_of_the_compiler(row: Any) -> None:
    kind, _, rest = row[-1].partition(" ")
    found = steps_of(asked(*row[:-1])).plan.instruction.name
    assert found == f"{'wgmma.mma_async' if kind == 'wgmma' else 'mma'}.sync.aligned.{rest}"


@pytest.mark.parametrize(
    ("fmt", "taken", "neighbours"), [("f16", 2, 4), ("f16", 2, 8), ("tf32", 1, 2), ("tf32", 1, 4)]
)
def test_packed_order_is_what_the_registers_hold(fmt: str, taken: int, neighbours: int) -> None:
    """Each lane loads `neighbours` elements that stand side by side in a row of A, for each of the two halves
    of its registers; instructions take them in turn. spec/layouts says which k of an instruction a register
    of a lane is."""
    k = 16 if fmt == "f16" else 8
    unit = golden.plan("hopper", f"mma.sync.aligned.m16n8k{k}.row.col.f32.{fmt}.{fmt}.f32").instruction
    fragments = unit.fragments
    layout = (fragments() if callable(fragments) else fragments).a
    places = layout.coordinates()
    order = {}
    for lane in range(4):  # the lanes of row 0
        row, col = (places[name][lane] for name in ("row", "col"))
        own = sorted(int(c) for c in col[row == 0].ravel())
        for half in range(2):
            held = own[half * taken : (half + 1) * taken]  # its k in one instruction
            for turn in range(neighbours // taken):
                for place, at in enumerate(held):
                    order[turn * k + at] = (half * 4 + lane) * neighbours + turn * taken + place
    assert packed_order(neighbours, taken) == tuple(order[at] for at in range(len(order)))


RECORDED = {
    one.case.name: (one.case, {"d": one.d})
    for one in record.load(VECTORS)
    if one.case.call == "triton_dot" and one.case.k < 16384
} | {
    one.case.name: (one.case, one.answer)
    for name in ("h100_triton", "h100_triton_more")
    for one in record.load_digests(VECTORS / "held_out" / f"{name}.json")
    if one.case.call == "triton_dot" and one.case.k <= 2048
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_loop_of_dots_gives_what_an_h100_answered(name: str) -> None:
    """The kernel of hw_capture/products/triton_dot.py, block by block of K."""
    case, answer = RECORDED[name]
    operands, options = case.operands(), case.options
    warps = options.get("warps", 4)
    tile = 64 if warps == 4 and case.m % 64 == 0 else 16
    step = 128 if golden.get_format(case.a).storage == 8 else 64
    a = operands["a"].reshape(-1, tile, case.k)
    d = np.zeros((a.shape[0], tile, case.n), golden.get_format(case.d).dtype)
    most = options.get("imprecise")
    for k in range(0, case.k, step):
        one = Dot(
            a=case.a, b=case.b, d=case.d, m=tile, n=case.n, k=step, warps=warps,
            precision=options.get("precision") or "tf32", imprecise=NO_LIMIT if most is None else most,
        )  # fmt: skip
        d = dot(one, a[..., k : k + step], operands["b"][k : k + step], d)
    d = d.reshape(case.m, case.n)
    if isinstance(answer, str):
        assert record.digest({"d": d}) == answer
    else:
        np.testing.assert_array_equal(d, answer["d"])


def test_partial_sums_are_added_as_soon_as_they_are_long_enough() -> None:
    """48 products allowed are 64, whole instructions; the last partial sum has what is left."""
    rng, fmt = np.random.default_rng(3), golden.get_format("e4m3")
    a, b = drawn(rng, fmt, (64, 160), 4), drawn(rng, fmt, (160, 16), 4)
    c = drawn(rng, golden.get_format("f32"), (64, 16), 4)
    one = Dot(a="e4m3", b="e4m3", d="f32", m=64, n=16, k=160, imprecise=48)
    unit = golden.plan("hopper", "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3").instruction
    expected = c.view(np.float32)
    for stretch in ((0, 32), (64, 96), (128,)):
        part = np.zeros((64, 16), np.uint32)
        for k in stretch:
            left, right = a[:, None, k : k + 32], b.T[None, :, k : k + 32]
            part = unit.dot(*np.broadcast_arrays(left, right), part)
        expected = expected + part.view(np.float32)
    np.testing.assert_array_equal(dot(one, a, b, c), expected.view(np.uint32))


def test_a_sum_has_one_word_for_every_nan() -> None:
    x = np.array([0x7F800000, 0x7FC00001, 0x80000000, 0x3F800000], np.uint32)
    y = np.array([0xFF800000, 0x3F800000, 0x80000000, 0x33800000], np.uint32)
    np.testing.assert_array_equal(added(x, y), np.array([0x7FFFFFFF, 0x7FFFFFFF, 0x80000000, 0x3F800000]))


def test_what_has_no_rule_is_refused_by_name() -> None:
    with pytest.raises(OperandError, match="pull request 11691"):
        steps_of(Dot(a="f16", b="f16", d="f32", m=16, n=16, k=16, loaded=8))
    with pytest.raises(OperandError, match="f64 operands that were loaded in 16 bits"):
        steps_of(Dot(a="f64", b="f64", d="f64", m=16, n=16, k=16, loaded=16))
    with pytest.raises(OperandError, match=r"bf16x3 by mma\.sync"):
        steps_of(Dot(a="f32", b="f32", d="f32", m=16, n=16, k=32, loaded=8, precision="bf16x3"))
    with pytest.raises(UnknownNameError, match=r"tf32x2.*nearest.*tf32"):
        steps_of(Dot(a="f32", b="f32", d="f32", m=16, n=16, k=16, precision="tf32x2"))
    with pytest.raises(ShapeError, match="expected"):
        one = Dot(a="f16", b="f16", d="f32", m=16, n=16, k=16)
        dot(one, np.zeros((16, 32), np.uint16), np.zeros((16, 16), np.uint16), np.zeros((16, 16), np.uint32))
