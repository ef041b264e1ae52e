"""PyTorch's operations around the products: against exact ones within their error, and what is refused. That
every bit is a GPU's: tests/hw_capture/products/test_torch_runs.py."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from golden.errors import DTypeError, MmagoldError, OperandError, ShapeError
from golden.kernels import torch_ops
from golden.kernels.torch_attention import splits
from golden.kernels.torch_ops import Card, Layout, Shares

RNG = np.random.default_rng(54)
X = RNG.standard_normal((6, 5, 200)).astype(np.float32)


@pytest.mark.parametrize("dim", [None, 0, 1, -1, (0, 2), (1, 2)])
def test_sums_and_means(dim: Any) -> None:
    exact = X.astype(np.float64).sum(axis=dim)
    assert np.allclose(torch_ops.sum(X, dim), exact, atol=1e-4)
    assert np.allclose(torch_ops.mean(X, dim), X.astype(np.float64).mean(axis=dim), atol=1e-6)
    assert torch_ops.sum(X, dim).shape == exact.shape


def test_the_number_of_rows_changes_a_row() -> None:
    """200,000 numbers: with few rows, more threads and blocks share each."""
    x = np.ldexp(RNG.standard_normal((64, 20_000)), RNG.integers(-9, 10, (64, 20_000))).astype(np.float32)
    assert (torch_ops.sum(x, 1)[:2] != torch_ops.sum(x[:2], 1)).any()


def test_who_adds_what() -> None:
    """The configurations of PyTorch 2.11 on an H200 for rows, columns, and one long row."""
    rows = Shares.of(Layout.of((1024, 1024), (1,)), 4, Card())
    assert (rows.lanes, rows.rows, rows.blocks, rows.vector) == (32, 1, 1, 4)
    columns = Shares.of(Layout.of((4096, 100), (0,)), 4, Card())
    assert (columns.lanes, columns.vector) == (1, 0) and columns.rows > 1
    assert Shares.of(Layout.of((1 << 22,), (0,)), 2, Card()).blocks > 1


@pytest.mark.parametrize("length", [1, 33, 2048, 3000, 9300, 9301])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(length: int, dim: int) -> None:
    x = 3 * RNG.standard_normal((length, 4) if dim == 0 else (4, length)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(axis=dim, keepdims=True))
    exact = powers / powers.sum(axis=dim, keepdims=True)
    assert np.allclose(torch_ops.softmax(x, dim), exact, rtol=2e-6, atol=0)
    assert np.allclose(torch_ops.log_softmax(x, dim), np.log(exact), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("length", [1, 7, 128, 1000])
def test_norms(length: int) -> None:
    x = RNG.standard_normal((3, length)).astype(np.float32)
    weight, bias = RNG.standard_normal((2, length)).astype(np.float32)
    wide = x.astype(np.float64)
    less = wide - wide.mean(axis=1, keepdims=True)
    exact = less / np.sqrt((less**2).mean(axis=1, keepdims=True) + 1e-5)
    assert np.allclose(torch_ops.layer_norm(x, weight, bias), exact * weight + bias, atol=1e-5)
    assert np.allclose(torch_ops.layer_norm(x, bias=bias), exact + bias, atol=1e-5)
    root = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5)
    assert np.allclose(torch_ops.rms_norm(x, weight), root * weight, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("backend", "dtype"), [("flash", np.float16), ("math", np.float16), ("math", np.float32)]
)
def test_attention(causal: bool, backend: str, dtype: Any) -> None:
    q, k, v = RNG.standard_normal((3, 1, 2, 150, 64)).astype(dtype)
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 8
    scores = np.where(np.tri(150, dtype=bool) | (not causal), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    exact = weights / weights.sum(axis=-1, keepdims=True) @ v.astype(np.float64)
    found = torch_ops.attention(q, k, v, causal=causal, backend=backend)
    assert found.dtype == dtype and np.allclose(found, exact, atol=4e-3)


def test_a_row_of_attention_does_not_depend_on_other_queries_unless_keys_are_split() -> None:
    q, k, v = RNG.standard_normal((3, 1, 2, 300, 64)).astype(np.float16)
    assert splits(2 * 5, 300, 64) == 2 and splits(2 * 5, 256, 64) == splits(220, 300, 64) == 1
    many = torch_ops.attention(q, k, v, card=Card(processors=4))
    alone = torch_ops.attention(q[:, :, :7], k, v, card=Card(processors=1))
    assert np.array_equal(many[:, :, :7], alone)
    assert (torch_ops.attention(q, k, v) != many).any()


def test_types_and_codes() -> None:
    x = X[0].astype(ml_dtypes.bfloat16)
    found = torch_ops.softmax(x, -1)
    assert found.dtype == x.dtype
    assert np.array_equal(found.view(np.uint16), torch_ops.softmax(x.view(np.uint16), -1, fmt="bf16"))
    assert torch_ops.sum(X).shape == () and torch_ops.exp(X[0, 0, 0]).shape == ()
    nan = torch_ops.sum(np.array([np.inf, -np.inf], np.float32), 0)
    assert nan.view(np.uint32) == 0x7FFFFFFF


HALF = np.ones((1, 2, 20, 64), np.float16)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch_ops.sum(X, 3), ShapeError, "dim is 3, expected -3 to 2"),
        (lambda: torch_ops.sum(X.astype(np.float64)), DTypeError, "'x' has dtype float64, expected float32"),
        (lambda: torch_ops.sum(X[:0]), ShapeError, "no size of 0"),
        (lambda: torch_ops.softmax(X, -1, fmt="e4m3"), OperandError, "fmt is 'e4m3', expected one of f32"),
        (lambda: torch_ops.layer_norm(X, X[0, 0, :3]), ShapeError, "weight is f32 of the shape (3,)"),
        (lambda: torch_ops.attention(*3 * [HALF[0]]), ShapeError, "expected (batch, heads, queries, head)"),
        (
            lambda: torch_ops.attention(HALF, HALF, HALF, backend="cudnn"),
            OperandError,
            "expected flash or math",
        ),
        (
            lambda: torch_ops.attention(HALF, HALF[..., :9, :], HALF[..., :9, :], causal=True),
            ShapeError,
            "equal numbers",
        ),
        (
            lambda: torch_ops.attention(*3 * [HALF.astype(np.float32)]),
            OperandError,
            "f32, expected f16 or bf16",
        ),
        (
            lambda: torch_ops.attention(*3 * [HALF[:, :, :2]], backend="math"),
            OperandError,
            "expected 17 queries",
        ),
        (lambda: torch_ops.attention(HALF, HALF, HALF.astype(np.float32)), DTypeError, "one format for all"),
    ],
)
def test_what_is_refused(call: Any, error: type[MmagoldError], words: str) -> None:
    with pytest.raises(error) as found:
        call()
    assert words in str(found.value)
