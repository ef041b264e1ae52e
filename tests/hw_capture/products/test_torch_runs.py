"""PyTorch's operations by their model, bit for bit what an H200 gave: vectors/kernels/torch_h200.json, a
held-out seed of campaigns/torch_ops.py. Every N-th call of each kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_ops import Run, calls, on_cpu

from golden.errors import OperandError
from hw_capture.products.record import digest

RECORDED = Path(__file__).parents[3] / "vectors" / "kernels" / "torch_h200.json"
CALLS = json.loads(RECORDED.read_text())["calls"]
MOST = 1 << 22
"""Pairs of a query and a key of an attention, and elements of any other call, that a quick test takes."""


def work(run: Run) -> int:
    """Elements, or pairs of a query and a key."""
    return (
        int(np.prod(run.shape[:3])) * run.options["keys"]
        if run.op == "attention"
        else int(np.prod(run.shape))
    )


QUICK = [one for one in CALLS if work(Run.of(one["run"])) <= MOST][::5]


@pytest.mark.parametrize("one", QUICK, ids=lambda one: Run.of(one["run"]).name)
def test_an_h200_gave_these_bits(one: dict[str, Any]) -> None:
    run = Run.of(one["run"])
    assert digest({"d": on_cpu(run)}) == one["answer"]


@pytest.mark.long
@pytest.mark.parametrize("one", CALLS, ids=lambda one: Run.of(one["run"]).name)
def test_all_of_them(one: dict[str, Any]) -> None:
    test_an_h200_gave_these_bits(one)


def test_the_recording_has_every_operation() -> None:
    kinds = {(one["run"]["op"], one["run"]["options"].get("backend")) for one in QUICK}
    assert len(kinds) == 10 and len(QUICK) > 80
    kernels = {name for one in CALLS for name in one["kernels"]}
    assert {"flash_fwd_kernel", "flash_fwd_splitkv_kernel", "softmax_warp_forward"} <= kernels


def test_a_bit_more_would_be_seen() -> None:
    """The digest is of every element, and the operands are the drawn ones."""
    one = next(one for one in QUICK if one["run"]["op"] == "softmax")
    d = on_cpu(Run.of(one["run"])).copy()
    d.reshape(-1)[-1] ^= 1
    assert digest({"d": d}) != one["answer"]


def test_drawn_calls() -> None:
    runs = list(calls(3, 4))
    assert len({run.name for run in runs}) == len(runs) == 40
    assert [run.json() for run in runs] == [run.json() for run in calls(3, 4)]
    assert sum(bool(run.options.get("special")) for run in runs) == 10
    with pytest.raises(OperandError):
        on_cpu(Run("attention", "f32", (1, 1, 40, 64), {"keys": 40, "causal": False, "backend": "math"}))
