"""Whole products that libraries computed on an H100 (vectors/kernels) and on an H200 (its held_out), against
golden.gemm."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import dot_kernel
import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.errors import FileFormatError
from golden.kernels.candidates import DEALT_SUMS
from golden.kernels.reductions import in_halves
from hw_capture.products import explain, record
from hw_capture.products.cases import Case, cases, held_out, triton_types

FOLDER = Path(__file__).resolve().parents[3] / "vectors" / "kernels"
RECORDED = {one.case.name: one for one in record.load(FOLDER)}
HELD_OUT = {one.case.name: one for one in record.load(FOLDER / "held_out")}
H100 = {one.case.name: one for one in record.load_digests(FOLDER / "held_out" / "h100.json")}
"""Held-out products of an H100, their results as digests."""
BLOCKS_OF_SCALES = {
    one.case.name: one for one in record.load_digests(FOLDER / "held_out" / "h100_blocks.json")
}
"""The same of fp8 with scales of blocks, and of convolutions."""
TRITON, MORE_OF_TRITON, AFTERWARDS = (
    {one.case.name: one for one in record.load_digests(FOLDER / "held_out" / f"h100_{name}.json")}
    for name in ("triton", "triton_more", "parts")
)
"""The same of tl.dot in the types of `triton_types`: its shapes, and others. And of all these, recorded when
every rule stood."""
DIGESTS = H100 | BLOCKS_OF_SCALES | TRITON | MORE_OF_TRITON | AFTERWARDS
FMA = """unit: fma
shape: {k: 1}
formats: {a: f32, b: f32, c: f32, d: f32}
steps:
  - fma: {start: c, to: d, rounding: nearest_even}
"""
SHORT = 1024
"""K up to which products are replayed in the short run; of held-out products any K where D is small."""
FEW = 7000
VECTORS = [one for one in HELD_OUT.values() if one.case.a == "f32"]
BLOCKS = {(20000, False): 124, (20000, True): 64, (65536, False): 128, (65536, True): 124}
"""Blocks of dot_kernel for a long K, by whether B lies row by row: a profiler's, on an H200."""


def of(call: str, k: int, **options: object) -> record.Recorded:
    return next(
        one
        for one in RECORDED.values()
        if (one.case.call, one.case.k) == (call, k) and options.items() <= one.case.options.items()
    )


def test_cases_are_those_that_were_recorded() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
    assert set(RECORDED) == set(names)
    assert [case.name for case in held_out()] == list(HELD_OUT)
    assert [case.name for case in triton_types()] == list(TRITON)
    more = triton_types(20261126, ((192, 96, 640), (80, 64, 1408)), 3)
    assert [case.name for case in more] == list(MORE_OF_TRITON)


def test_shapes_that_are_convolutions_have_them() -> None:
    """Others, as none of SHAPES, have not; the plan's order has every place of K once."""
    found = [
        case for case in cases(5, ((96, 144, 1728), (96, 140, 1728), (96, 144, 1600))) if case.call == "conv"
    ]
    assert [(case.a, case.n, case.k) for case in found] == [
        (name, 144, 1728) for name in ("f16", "bf16", "f32")
    ]
    for case in found:
        plan = explain.plan_of(case)
        assert plan is not None and sorted(plan.options.order or ()) == list(range(1728))


@pytest.mark.parametrize(
    "name",
    [
        name if k <= SHORT or (name in HELD_OUT and few) else pytest.param(name, marks=pytest.mark.long)
        for name, one in (RECORDED | HELD_OUT).items()
        if one.plan
        for k, few in [(one.case.k, one.d.size <= FEW)]
    ],
)
def test_the_plan_gives_what_the_library_gave(name: str) -> None:
    """Every bit of every element, from operands that are drawn again."""
    one = (RECORDED | HELD_OUT)[name]
    operands = one.case.operands()
    assert record.digest(operands) == one.operands
    assert one.plan is not None
    assert np.array_equal(explain.replayed(one.plan, one.case, operands), one.d)


@pytest.mark.parametrize(
    "name",
    [
        name if one.case.k <= SHORT else pytest.param(name, marks=pytest.mark.long)
        for name, one in DIGESTS.items()
        if one.plan
    ],
)
def test_the_plan_has_the_digest_of_what_an_h100_gave(name: str) -> None:
    one = DIGESTS[name]
    operands = one.case.operands()
    assert record.digest(operands) == one.operands
    assert one.plan is not None
    assert record.digest({"d": explain.replayed(one.plan, one.case, operands)}) == one.answer


GEMVX = {"f64": 16, "f32": 32}
"""Chains of cuBLAS's gemvx by format, for these shapes: each takes every 16th or 32nd element."""
SIMT: dict[int, dict[str, Any]] = {
    3200: {"part": 192},
    336: {"slices": 5, "tile_k": 40},
    12160: {"part": 96},
}
"""How f32 without tensor cores cuts K: in parts, or in tiles of 8 dealt out to five blocks."""


@pytest.mark.parametrize("name", [name for name, one in H100.items() if not one.plan])
def test_what_no_plan_gives_an_h100_made_of_fused_multiply_adds(name: str, tmp_path: Path) -> None:
    (tmp_path / "fma.yaml").write_text(FMA)
    one = H100[name]
    operands, fmt = one.case.operands(), one.case.a
    chain = (
        golden.plan("hopper", "cublas_f64")
        if fmt == "f64"
        else golden.plan(golden.load_instruction(tmp_path / "fma.yaml"))
    )
    if min(one.case.m, one.case.n) > 1:
        found = golden.gemm(operands["a"], operands["b"], chain.but(**SIMT[one.case.k]))
    else:
        each = [slice(first, None, GEMVX[fmt]) for first in range(GEMVX[fmt])]
        sums = [golden.gemm(operands["a"][:, few], operands["b"][few], chain) for few in each]
        numbers = np.stack(sums, axis=-1).view(np.float64 if fmt == "f64" else np.float32)
        found = in_halves(numbers, -1).view(sums[0].dtype)
    assert record.digest({"d": found}) == one.answer


IEEE = [name for name, one in (TRITON | MORE_OF_TRITON | AFTERWARDS).items() if not one.plan]


@pytest.mark.parametrize("name", IEEE)
def test_ieee_of_triton_is_a_chain_of_fused_multiply_adds(name: str, tmp_path: Path) -> None:
    """No matrix unit: K ascending, one rounding an element."""
    (tmp_path / "fma.yaml").write_text(FMA)
    one = DIGESTS[name]
    operands, chain = one.case.operands(), golden.plan(golden.load_instruction(tmp_path / "fma.yaml"))
    assert one.case.options["precision"] == "ieee" and record.digest(operands) == one.operands
    assert record.digest({"d": golden.gemm(operands["a"], operands["b"], chain)}) == one.answer


@pytest.mark.parametrize("k", [1536, 2560])
def test_scales_of_blocks_of_one_column_come_one_after_the_other(k: int) -> None:
    """The sum is multiplied by A's, rounded, and by B's as it is added; by their product, as for 128 columns,
    4 of 49,152 and 1 of 24,576 elements differ."""
    one = next(
        x for x in BLOCKS_OF_SCALES.values() if (x.case.k, x.case.options.get("blocks")) == (k, "1x128")
    )
    assert one.plan is not None and one.plan == explain.plan_of(one.case)
    operands = one.case.operands()
    found = explain.replayed(one.plan, one.case, operands)
    other = explain.replayed(one.plan.but(scale_order="product"), one.case, operands)
    assert record.digest({"d": found}) == one.answer
    assert np.count_nonzero(found != other) == {1536: 4, 2560: 1}[k]


def test_digests_are_those_of_the_recording(tmp_path: Path) -> None:
    record.write_digests(FOLDER / "held_out", tmp_path / "kept.json")
    kept = record.load_digests(tmp_path / "kept.json")
    assert [one.answer for one in kept] == [record.digest({"d": one.d}) for one in HELD_OUT.values()]
    assert [(one.case, one.plan) for one in kept] == [(one.case, one.plan) for one in HELD_OUT.values()]


def test_what_is_not_explained_is_known() -> None:
    """Vectors times matrices, and f32 without tensor cores."""
    left = {
        (one.case.call, one.case.a, min(one.case.m, one.case.n), one.case.k)
        for one in RECORDED.values()
        if not one.plan
    }
    plain = {key for key in left if key[1] == "f32" and RECORDED}
    assert left - plain == {("mm", "f64", 1, 2048), ("mm", "f64", 1, 1024)}
    tf32 = {one.case.k for one in RECORDED.values() if one.case.options.get("tf32") and not one.plan}
    assert tf32 == {2048, 1024}
    assert {one.case.a for one in HELD_OUT.values() if not one.plan} == {"f32"}


@pytest.mark.parametrize(("k", "chains"), [(1024, [slice(i, i + 32) for i in range(0, 1024, 32)]),
                                           (2048, [slice(i, None, 16) for i in range(16)])])  # fmt: skip
def test_f64_with_one_row_or_column(k: int, chains: list[slice]) -> None:
    """cuBLAS's gemvx, no matrix unit: chains of fused multiply-adds, added in halves."""
    one = next(x for x in RECORDED.values() if (x.case.a, x.case.k, min(x.d.shape)) == ("f64", k, 1))
    operands, fma = one.case.operands(), golden.plan("hopper", "cublas_f64")
    sums = [
        golden.gemm(operands["a"][:, which], operands["b"][which], fma).view(np.float64) for which in chains
    ]
    assert np.array_equal(in_halves(np.stack(sums, axis=-1), -1).view(np.uint64), one.d)


def test_f32_with_one_row_times_b_row_by_row() -> None:
    """cuBLAS's gemvx, 1 x 64 x 777: 32 chains that take every 32nd element, added in halves, as questions
    with 1 x 192 x 4096 showed."""
    one = next(x for x in VECTORS if "gemvx" in "".join(x.kernels))
    operands = one.case.operands()
    assert record.digest(operands) == one.operands
    a, b = operands["a"].T.view(np.float32), operands["b"].view(np.float32)
    sums = np.zeros((32, one.case.n), np.float32)
    for first in range(0, one.case.k, 32):
        taken = slice(first, min(first + 32, one.case.k))
        into = sums[: taken.stop - first]
        # 64 bits of a significand hold a product of two f32.
        into[...] = a[taken].astype(np.longdouble) * b[taken] + into
    assert np.array_equal(in_halves(sums, 0)[None].view(np.uint32), one.d)


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize("k", [1024, 2048])
def test_f32_with_one_row_or_column(k: int, tf32: bool) -> None:
    """cuBLAS's dot_kernel and reduce_1Block_kernel, no matrix unit; the rule was found on one of these."""
    one = next(
        x
        for x in RECORDED.values()
        if (x.case.a, x.case.k, min(x.d.shape), x.case.options) == ("f32", k, 1, {"tf32": tf32})
    )
    assert any("dot_kernel<float, 128, 0" in kernel for kernel in one.kernels)
    assert np.array_equal(of_dot_kernel(one).view(np.uint32), one.d)


@pytest.mark.parametrize(
    "one", [x for x in VECTORS if "dot_kernel" in "".join(x.kernels)], ids=lambda one: one.case.name
)
def test_f32_with_one_row_or_column_of_other_shapes(one: record.Recorded) -> None:
    """Of 777 with B row by row gemvx runs."""
    assert record.digest(one.case.operands()) == one.operands
    assert np.array_equal(of_dot_kernel(one).view(np.uint32), one.d)


def test_the_number_of_blocks_is_seen() -> None:
    one = next(x for x in VECTORS if x.case.k == 20000 and not x.case.b_rows)
    assert (of_dot_kernel(one, 64).view(np.uint32) != one.d).sum() > one.d.size // 2


def of_dot_kernel(one: record.Recorded, blocks: int | None = None) -> np.ndarray:
    """D by the rule, of 16 blocks or 31 where K is short: what they hold beyond K is zero."""
    operands, rows = one.case.operands(), one.case.b_rows
    a, b = operands["a"].view(np.float32), operands["b"].view(np.float32)
    many = blocks or BLOCKS.get((one.case.k, rows), 31 if rows else 16)
    return dot_kernel.dot(a[:, None], b.T[None], many, 1 if rows else 2)


def test_f64_that_is_dealt_out_to_nine_blocks() -> None:
    """448 x 128 x 3200: the blocks' sums are added as golden.sum_tree showed on an H200; no order in words
    gives these bits."""
    one = next(x for x in HELD_OUT.values() if (x.case.a, x.case.k) == ("f64", 3200))
    found = explain.explain(one.case, one.case.operands(), one.d)
    assert found is not None and one.plan is not None and found.options == one.plan.options
    assert found.options.reduce == DEALT_SUMS[found.options.slices]


@pytest.mark.parametrize(("call", "k", "options"), [("mm", 4096, {}), ("scaled_mm", 8192, {"fast": True})])
def test_a_split_is_found(call: str, k: int, options: dict[str, object]) -> None:
    one = of(call, k, **options)
    found = explain.explain(one.case, one.case.operands(), one.d)
    assert found is not None and found.options.part == one.plan.options.part > 0  # type: ignore[union-attr,operator]


def test_parts_of_a_sparse_product_are_as_questions_showed() -> None:
    """f16 of 160 x 64 x 6016 and of 448 x 128 x 3200 on an H200, in elements of the sparse A."""
    expected = {6016: [352, 352, 384, 384, 384, 384, 384, 384], 3200: [384, 384, 416, 416]}
    for k, lengths in expected.items():
        case = Case("sparse_mm", "f16", "f16", "f16", 64, 64, k)
        base = explain.plan_of(case)
        assert base is not None
        tried = [plan.options.parts for plan in explain.splits(base, case)]
        assert base.options.reduce == "tree" and tuple(2 * length for length in lengths) in tried


def test_another_plan_is_not_taken_for_the_right_one() -> None:
    one = of("scaled_mm", 1024, fast=False)
    operands = one.case.operands()
    fast = golden.plan("hopper", "cublas_fp8_fast.e4m3.e4m3.bf16")
    assert np.mean(explain.replayed(fast, one.case, operands) != one.d) > 0.05
    wrong = one.d.copy()
    wrong[-1, -1] ^= 1
    assert explain.explain(one.case, operands, wrong) is None


def test_every_named_plan_was_seen_here() -> None:
    manifests = (FOLDER / record.MANIFEST, FOLDER / "held_out" / "h100_triton.json")
    seen = {
        entry["plan"]["name"]
        for path in manifests
        for entry in json.loads(path.read_text())["cases"].values()
        if entry["plan"]
    }
    plans = golden.plans("hopper")
    assert seen == {plan.name for plan in plans}
    assert {plan.evidence.kind for plan in plans} == {"captured"}


def test_every_named_plan_has_a_product_that_was_held_out() -> None:
    """Triton's of TRITON were read from its compiler's output before; the rule of scales of one column was
    found on its two."""
    kept = [*HELD_OUT.values(), *DIGESTS.values()]
    names = {explain.name_of(one.case) for one in kept if one.plan}
    assert names == {plan.name for plan in golden.plans("hopper")}


def test_sparse_operands_are_two_of_four() -> None:
    case = Case("sparse_mm", "f16", "f16", "f16", 32, 16, 64)
    assert (np.count_nonzero(case.operands()["a"].reshape(32, 16, 4), axis=-1) == 2).all()


def test_results_of_another_recording_are_refused(tmp_path: Path) -> None:
    (tmp_path / record.MANIFEST).write_bytes((FOLDER / record.MANIFEST).read_bytes())
    (tmp_path / record.RESULTS).write_bytes((FOLDER / record.RESULTS).read_bytes()[:-1])
    with pytest.raises(FileFormatError, match="its SHA-256 is not that of"):
        record.load(tmp_path)


def test_without_pytorch_there_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = CliRunner().invoke(app, ["capture-products", "--out", str(tmp_path / "new")])
    assert done.exit_code == 2 and "PyTorch is not installed" in done.output
    assert not (tmp_path / "new").exists()
    no_folder = ["--markdown", str(tmp_path / "no" / "table.md")]
    done = CliRunner().invoke(app, ["capture-products", "--out", str(tmp_path / "new"), *no_folder])
    assert done.exit_code == 2 and "table.md: cannot be written" in done.stderr
    done = CliRunner().invoke(app, ["capture-products", "--out", str(tmp_path), "--only", "nothing"])
    assert done.exit_code == 2 and "no product matches 'nothing'" in done.output
