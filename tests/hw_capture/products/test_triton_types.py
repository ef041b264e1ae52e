"""Triton's tl.dot in the types that `cases` lacks: the cases, and the plans that are tried on them.
What a GPU answers is made here by golden.gemm, or by hand; test_products.py has a recording."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from hw_capture import products
from hw_capture.errors import DeviceError
from hw_capture.products import calls, explain, record
from hw_capture.products.cases import IN_PARTS, Case, cases, triton_types

CASES = list(triton_types())
Codes = npt.NDArray[Any]
SHORT = [case for case in CASES if case.k == 256]


def test_cases_are_new_and_each_once() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert not set(names) & {case.name for case in cases()}
    formats = {(case.a, case.b, case.d) for case in CASES}
    assert formats == {("e5m2", "e5m2", "f32"), ("e4m3", "e5m2", "f32"), ("e5m2", "e4m3", "f32"),
                     ("s8", "s8", "s32"), ("f16", "f16", "f16"), ("f64", "f64", "f64"),
                     ("f32", "f32", "f32")}  # fmt: skip
    assert not list(triton_types(shapes=((64, 64, 192), (64, 24, 256))))


def test_every_case_has_a_named_plan_but_those_of_no_matrix_unit() -> None:
    named = {plan.name for plan in golden.plans("hopper")}
    assert {explain.name_of(case) for case in CASES} - named == {None}
    assert {case.options["precision"] for case in CASES if explain.name_of(case) is None} == {"ieee"}


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
def test_results_are_explained_and_others_are_not(case: Case) -> None:
    """The results are finite, and one bit of one of them makes it another product."""
    plan, operands = explain.plan_of(case), case.operands()
    if plan is None:
        assert case.options["precision"] == "ieee"
        return
    d = explain.replayed(plan, case, operands)
    assert np.isfinite(golden.to_float(golden.get_format(case.d), d)).all()
    found = explain.explain(case, operands, d)
    assert found is not None and found.options == plan.options
    wrong = d.copy()
    wrong[-1, -1] ^= 1
    assert explain.explain(case, operands, wrong) is None


def test_plans_of_one_type_differ() -> None:
    """A recording shows which plan it was: it separates sums in f16 from sums rounded to f16 at the end,
    promotions after 32 elements from promotions after 128 and none, and the precisions from each other."""
    groups: dict[tuple[str, str], dict[str, npt.NDArray[Any]]] = {}
    drawn = {(case.a, case.b): case.operands() for case in SHORT}
    for case in SHORT:
        plan = explain.plan_of(case)
        if plan is not None:
            answer = explain.replayed(plan, case, drawn[case.a, case.b])
            groups.setdefault((case.a, case.b), {})[plan.name] = answer
    late = golden.plan("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", out="f16")
    f16 = drawn["f16", "f16"]
    groups["f16", "f16"]["rounded at last"] = golden.gemm(f16["a"], f16["b"], late)
    assert sorted(map(len, groups.values())) == [1, 1, 2, 3, 3, 3, 3]
    for answers in groups.values():
        assert len({answer.tobytes() for answer in answers.values()}) == len(answers)


WILD = (0x7F800000, 0xFF800000, 0x7FC00001, 0x7F800001, 0xFF801FFF, 0x7F7FFFFF, 0xFF7FFFFF)
WRITTEN_OUT = {
    "tf32x3": "low high, high low, high high",
    "bf16x3": "low high, high low, high high",
    "bf16x6": "low low, last high, high last, low high, high low, high high",
}
"""The products of a tile of K in the order of Triton's code for sm_90, each with the sum before as its c."""


def parts_of(codes: npt.NDArray[Any], precision: str) -> dict[str, npt.NDArray[np.float32]]:
    """By the bits: ties away from zero for tf32, where a NaN is cut, and to even for bf16."""

    def rounded(numbers: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        bits = numbers.view(np.uint32).astype(np.uint64)
        if precision == "tf32x3":
            half = np.where(np.isnan(numbers), 0, 0x1000).astype(np.uint64)
            return ((bits + half) & 0xFFFFE000).astype(np.uint32).view(np.float32)
        nearest = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
        return np.where(np.isnan(numbers), np.float32(np.nan), nearest)

    number = codes.view(np.float32)
    high = rounded(number)
    if precision == "tf32x3":
        return {"high": high, "low": number - high}
    low = rounded(number - high)
    return {"high": high, "low": low, "last": rounded(number - high - low)}


def written_out(a: Codes, b: Codes, precision: str, name: str) -> npt.NDArray[np.float32]:
    """D by whole products of parts, tile by tile; zeros fill the last one."""
    one = golden.plan("hopper", name, a="f32", b="f32", c="seed",
                      convert="none" if precision == "tf32x3" else "nearest_even")  # fmt: skip
    of_a, of_b = parts_of(a, precision), parts_of(b, precision)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for first in range(0, a.shape[1], 64):
        tile = slice(first, first + 64)
        chain = np.zeros(total.shape, np.uint32)
        for words in WRITTEN_OUT[precision].split(", "):
            x, y = words.split()
            if words == "high high":
                chain = np.where(np.isnan(chain.view(np.float32)), np.uint32(0), chain)
            chain = golden.gemm(of_a[x][:, tile].view(np.uint32), of_b[y][tile].view(np.uint32), one, chain)
        total = total + chain.view(np.float32)
    return total


@pytest.mark.parametrize("precision", IN_PARTS)
@pytest.mark.parametrize("wild", [False, True])
def test_products_of_parts_are_those_written_out(precision: str, wild: bool) -> None:
    """Wild: with infinities, NaNs, numbers that round to infinity, and a K that tiles do not divide."""
    case = next(case for case in SHORT if case.options.get("precision") == precision)
    operands, plan = case.operands(), explain.plan_of(case)
    assert plan is not None
    a, b = operands["a"][:16], operands["b"]
    if wild:
        rng = np.random.default_rng(1)
        a, b = a[:, :200].copy(), b[:200].copy()
        for codes, count in ((a, 12), (b, 40)):
            places = rng.choice(codes.size, count, replace=False)
            codes.flat[places] = rng.choice(
                [0x7F800000, 0xFF800000, 0x7FC00001, 0x7F7FFFFF, 0xFF7FFFFF], count
            )
    with np.errstate(all="ignore"):
        wanted = written_out(a, b, precision, plan.instruction.name)
    found = golden.gemm(a, b, plan)
    nans = np.isnan(wanted)
    assert nans.any() == wild and (not wild or (np.isinf(wanted).any() and np.isfinite(wanted).any()))
    assert np.array_equal(np.isnan(found.view(np.float32)), nans)
    assert np.array_equal(found[~nans], wanted.view(np.uint32)[~nans])


def test_tf32_in_parts_is_nearer_than_tf32() -> None:
    case = next(case for case in SHORT if case.options.get("precision") == "tf32x3")
    operands, plan = case.operands(), explain.plan_of(case)
    assert plan is not None
    a, b = (operands[name].view(np.float32).astype(np.float64) for name in "ab")
    plain = golden.gemm(operands["a"], operands["b"], golden.plan("hopper", "triton_dot.f32"))
    error, rough = (
        np.abs(found.view(np.float32) - a @ b).max()
        for found in (explain.replayed(plan, case, operands), plain)
    )
    assert error < rough / 100


class OneRefused:
    """A GPU that answers what the plans say, and whose compiler refuses f64."""

    def about(self) -> dict[str, str]:
        return {"name": "none"}

    def run(self, case: Case, operands: dict[str, npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], list[str]]:
        plan = explain.plan_of(case)
        if plan is None or case.a == "f64":
            raise DeviceError("Triton: CompilationError: no")
        return explain.replayed(plan, case, operands), ["product"]


def test_what_is_refused_is_listed_and_the_rest_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(record, "Torch", OneRefused)
    words = ["capture-products", "--triton-types", "--shape", "64x32x128", "--out", str(tmp_path)]
    words += ["--digests", str(tmp_path / "x.json"), "--markdown", str(tmp_path / "x.md")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "22 products recorded" in done.output and "22 of them equal" in done.output
    assert "4 refused" in done.output and "Triton: CompilationError: no" in done.output
    kept = record.load_digests(tmp_path / "x.json")
    assert len(kept) == 22 and all(one.plan is not None for one in kept)
    assert len(json.loads((tmp_path / record.MANIFEST).read_text())["refused"]) == 4
    assert "`triton_dot.f32.bf16x6`" in (tmp_path / "x.md").read_text()


def test_a_kernel_that_does_not_compile_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of the compiler's, in the error that `Torch.run` lists as refused."""

    def launch(*given: object) -> None:
        raise AssertionError("at 11:4:\ndef product(\nonly int8 supported!\n")

    kernels = types.ModuleType("triton_dot")
    kernels.launch = launch  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hw_capture.products.triton_dot", kernels)
    monkeypatch.setattr(products, "triton_dot", kernels, raising=False)
    torch: Any = types.SimpleNamespace(
        torch=types.SimpleNamespace(empty=lambda *shape, **more: None), dtype=str
    )
    with pytest.raises(RuntimeError, match=r"^Triton: AssertionError only int8 supported!$"):
        calls.CALLS["triton_dot"](torch, SHORT[0], {"a": None, "b": None})


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    words = ["capture-products", "--out", str(tmp_path), "--triton-types"]
    done = CliRunner().invoke(app, [*words, "--held-out"])
    assert done.exit_code == 2 and "cannot be combined with --held-out" in done.output
    done = CliRunner().invoke(app, [*words, "--shape", "8x8x8"])
    assert done.exit_code == 2 and "no call can compute the shape" in done.output
