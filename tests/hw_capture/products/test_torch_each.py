"""PyTorch's functions of each element, all words of f16 and bf16 and blocks of f32: what an H200 gave."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from torch_each import FUNCTIONS, block_sum, blocks, differences, words

from golden.errors import OperandError
from golden.kernels import torch_ops

RECORD = json.loads((Path(__file__).parents[3] / "vectors/kernels/torch_each_h200.json").read_text())
TRUE = {
    "erf": math.erf,
    "gelu": lambda x: x * 0.5 * math.erfc(-x * 0.5**0.5),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "tanh": math.tanh,
}


def test_all_words_of_16_bits_and_some_of_f32_are_those_of_the_gpu() -> None:
    assert list(differences(RECORD, 3)) == []


@pytest.mark.long
def test_all_recorded_words_are_those_of_the_gpu() -> None:
    assert list(differences(RECORD, 256)) == []


def test_one_wrong_result_is_seen() -> None:
    block = blocks(1)[0]
    d = FUNCTIONS["gelu"](words(block), fmt="f32")
    assert block_sum(d) == RECORD["f32"]["gelu"][str(block)]
    d[7] ^= 1
    assert block_sum(d) != RECORD["f32"]["gelu"][str(block)]


@pytest.mark.parametrize("name", TRUE)
def test_the_functions_are_what_their_names_say(name: str) -> None:
    """Against double precision; the results of gelu near its zero lose bits, as the formula in f32 does."""
    x = np.random.default_rng(3).uniform(-4, 4, 2000).astype(np.float32)
    true = np.array([TRUE[name](float(one)) for one in x])
    found = FUNCTIONS[name](x).astype(np.float64)
    assert np.all(np.abs(found - true) <= 3e-7 * np.maximum(np.abs(true), np.abs(x)) + 1e-30)


def test_the_tanh_form_of_gelu_is_near_the_other() -> None:
    x = np.linspace(-5, 5, 999, dtype=np.float32)
    near = torch_ops.gelu(x, approximate="tanh")
    assert 1e-5 < np.max(np.abs(near - torch_ops.gelu(x))) < 1e-3
    with pytest.raises(OperandError, match="approximate is 'erf', expected none or tanh"):
        torch_ops.gelu(x, approximate="erf")
    assert np.isnan(torch_ops.gelu(np.float32(-np.inf))) and torch_ops.gelu(np.float32(np.inf)) == np.inf
