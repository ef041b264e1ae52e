"""Kernels that are asked: their sum trees, and the plans behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from long_run import long_after

import golden
from golden.kernels.sum_tree import Node, meeting_sizes, text

HMMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F32 = {"a": "f32", "b": "f32", "d": "f32"}


def kernel(plan: golden.Plan) -> Callable[[Any, Any], Any]:
    return lambda a, b: golden.gemm(a, b, plan)


def formats(plan: golden.Plan) -> dict[str, str]:
    return {name: plan.formats[name].name for name in "abd"}


def in_order(order: Callable[[list[Any]], Any]) -> Callable[[Any, Any], Any]:
    """A kernel that adds f32 products as a function does: the truth that trees are held against."""

    def run(a: Any, b: Any) -> Any:
        x, y = a.view(np.float32), b.view(np.float32)
        with np.errstate(over="ignore"):
            return order([np.multiply.outer(x[:, k], y[k]) for k in range(x.shape[1])])

    return run


def one_by_one(terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def in_halves(terms: list[Any]) -> Any:
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [terms[i] + terms[i + half] for i in range(half)]
    return terms[0]


ORDERS: list[tuple[Callable[[list[Any]], Any], int, str]] = [
    (one_by_one, 40, "k 0-39: 40 products, one after the other"),
    (lambda terms: one_by_one(terms[::-1]), 40, "k 38-39, 37, 36, ..., 0"),
    (lambda terms: in_halves([one_by_one(terms[i::8]) for i in range(8)]), 64, "8 sums, added in halves"),
    (
        lambda terms: one_by_one([one_by_one(terms[i : i + 12]) for i in range(0, 60, 12)]),
        60,
        "5 sums, added one after the other",
    ),
]


@pytest.mark.parametrize(("order", "k", "words"), ORDERS)
def test_the_tree_of_a_function(order: Callable[[list[Any]], Any], k: int, words: str) -> None:
    tree = golden.sum_tree(in_order(order), (4, 8, k), F32)
    assert tree is not None and tree.terms == tuple(range(k))
    assert words in str(tree)


def test_pairs_meet_where_the_tree_says() -> None:
    """((0 + 1) + (2 + 3)) + 4 and a node of three."""
    tree = Node((Node((Node((0, 1)), Node((2, 3)))), 4, 5))
    assert meeting_sizes(tree, [(0, 1), (0, 2), (3, 1), (4, 5), (5, 0)]) == [2, 4, 4, 6, 6]
    assert "6 products" in text(tree)


def test_a_step_is_a_node() -> None:
    """Hopper adds 16 products of f16 at once, Ampere 8."""
    for architecture, words in (("hopper", "3 steps of 16"), ("ampere", "6 steps of 8")):
        plan = golden.plan(architecture, HMMA)
        assert words in str(golden.sum_tree(kernel(plan), (16, 16, 48), formats(plan)))


ASKED: list[tuple[str, str, int, dict[str, Any], tuple[int, int]]] = [
    ("hopper", "cublas_f16.f16.f32", 208, {"part": 128}, (16, 24)),
    ("hopper", "cublas_f64", 320, {"slices": 3, "tile_k": 96}, (16, 16)),
    (
        *("hopper", "cublas_f64", 640),
        *({"slices": 9, "tile_k": 288, "reduce": [0, 5, 8, [1, 6], [2, 7], 3, 4]}, (16, 16)),
    ),
    ("hopper", "cublas_f16.f16.f32", 416, {"parts": [128, 64, 192, 32], "reduce": "tree"}, (16, 24)),
    ("hopper", "cublas_tf32", 208, {"part": 12}, (24, 16)),
    ("hopper", "cublas_f16.f16.f16", 704, {"part": 192, "reduce": "descending"}, (16, 24)),
    ("hopper", "triton_dot.e4m3.mma_sync", 96, {}, (16, 24)),
    ("hopper", "cublas_fp8_precise.e4m3.e4m3.bf16", 640, {"part": 384}, (32, 32)),
    ("ampere", HMMA, 512, {"slices": 4, "tile_k": 128, "split_k": 2}, (16, 24)),
]


@pytest.mark.parametrize(
    ("architecture", "name", "k", "options", "shape"),
    long_after(2, ASKED),
)
def test_the_plan_of_a_kernel(
    architecture: str, name: str, k: int, options: dict[str, Any], shape: tuple[int, int]
) -> None:
    """Found by questions, with parts that no list of candidates has; it holds on data that nobody saw."""
    plan = golden.plan(architecture, name, **options)
    found = golden.find_plan(kernel(plan), arch=architecture, formats=formats(plan), shape=(*shape, k))
    assert found is not None
    rng = np.random.default_rng(k)
    a, b = (
        golden.from_float(plan.formats[x].name, rng.standard_normal(size) * 2.0 ** rng.integers(-5, 6, size))
        for x, size in (("a", (20, k)), ("b", (k, 20)))
    )
    assert np.array_equal(golden.gemm(a, b, found), golden.gemm(a, b, plan))


def test_a_kernel_may_work_in_place() -> None:
    """One that overwrites its operands and answers in the same buffer each time has the plan that it has."""
    plan, buffer = golden.plan("hopper", "cublas_f16.f16.f32"), np.zeros((8, 24), np.uint32)

    def product(a: Any, b: Any) -> Any:
        buffer[...] = golden.gemm(a, b, plan)
        a[...], b[...] = 0, 0
        return buffer

    found = golden.find_plan(product, arch="hopper", formats=formats(plan), shape=(8, 24, 64))
    assert found is not None and found.name == plan.name


@pytest.mark.parametrize("shape", [(1, 1, 8), pytest.param((2, 2, 4), marks=pytest.mark.long)])
def test_a_few_elements_are_no_evidence(shape: tuple[int, int, int]) -> None:
    """A kernel of small products is asked for more of them: no instruction sums in f64 and rounds once."""

    def product(a: Any, b: Any) -> Any:
        exact = a.view(np.float16).astype(np.float64) @ b.view(np.float16).astype(np.float64)
        return exact.astype(np.float32).view(np.uint32)

    f16 = {"a": "f16", "b": "f16", "d": "f32"}
    assert golden.find_plan(product, arch="hopper", formats=f16, shape=shape) is None


def test_a_kernel_without_a_tree() -> None:
    """Random answers are no counts, and integers have no order."""
    f16 = {"a": "f16", "b": "f16", "d": "f16"}
    noise = np.random.default_rng(0)

    def random(a: Any, b: Any) -> Any:
        return noise.integers(0, 1 << 16, (len(a), b.shape[1]), np.uint16)

    assert golden.sum_tree(random, (8, 8, 20), f16) is None
    assert golden.sum_tree(lambda a, b: a @ b, (8, 8, 20), {"a": "s8", "b": "s8", "d": "s32"}) is None


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"shape": None}, "'shape' is missing"),
    ({"shape": (4, 4)}, r"shape is \(4, 4\), expected \(M, N, K\)"),
    ({"shape": 8}, r"shape is 8, expected \(M, N, K\)"),
    ({"formats": {"a": "f16"}}, "expected a, b and d"),
    ({"formats": [1]}, r"formats is \[1\], expected a dict such as"),
    ({"formats": np.zeros(3)}, r"formats is array\(\[0., 0., 0.\]\), expected a dict such as"),
    ({"shape": np.array(3)}, r"shape is array\(3\), expected \(M, N, K\)"),
    (
        {"shape": np.ones((3, 3))},
        r"shape is array\(\[\[1., 1., 1.\], \[1., 1., 1.\], .*, expected \(M, N, K\)",
    ),
    ({"shape": (10**30, 1, 1)}, r"shape is \(10{30}, 1, 1\), expected \(M, N, K\)"),
    ({"arch": None}, "'arch' is missing"),
    ({"B": np.zeros((2, 2))}, "together with a kernel"),
]


@pytest.mark.parametrize(("more", "message"), WRONG)
def test_wrong_arguments_are_one_line(more: dict[str, Any], message: str) -> None:
    known: dict[str, Any] = {
        "arch": "hopper",
        "formats": {"a": "f16", "b": "f16", "d": "f32"},
        "shape": (4, 4, 16),
    }
    with pytest.raises(golden.OperandError, match=message):
        golden.find_plan(lambda a, b: a, **{**known, **more})


@pytest.mark.parametrize("arch", ["hoper", 5, ["hopper"], b"hopper"])
def test_an_unknown_architecture_is_reported_before_the_kernel_is_asked(arch: Any) -> None:
    with pytest.raises(golden.UnknownNameError, match="unknown architecture '"):
        golden.find_plan(lambda a, b: 1 // 0, arch=arch, formats={"a": "f16"}, shape=(4, 4, 16))


def test_what_is_no_product_is_an_error() -> None:
    with pytest.raises(golden.OperandError, match="the kernel did not answer, it raised ZeroDivisionError"):
        golden.sum_tree(lambda a, b: 1 // 0, (4, 4, 16), {"a": "f16", "b": "f16", "d": "f16"})
    with pytest.raises(golden.ShapeError, match=r"D has shape \(4, 16\), expected \(4, 4\)"):
        golden.sum_tree(lambda a, b: a, (4, 4, 16), {"a": "f16", "b": "f16", "d": "f16"})
