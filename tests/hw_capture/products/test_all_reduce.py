"""What two H200 gave through NCCL, by orders and plans: vectors/kernels/all_reduce_h200.json."""

from __future__ import annotations

import json
from pathlib import Path

import all_reduce as campaign
import numpy as np
import pytest
from all_reduce import orders, predicted, replayed
from all_reduce_ranks import LARGE, MODES, operand

from golden.kernels import all_reduce

RECORD = Path(__file__).parents[3] / "vectors" / "kernels" / "all_reduce_h200.json"
GIVEN = json.loads(RECORD.read_text())
BY_NAME = {mode.name: mode for mode in MODES}


def test_every_recorded_bit_is_predicted() -> None:
    found = list(replayed(RECORD, every=900))
    assert [one.name for one in found if not one.right] == []
    assert len(found) > 5


@pytest.mark.long
def test_every_recorded_bit_of_every_sum_is_predicted() -> None:
    found = list(replayed(RECORD))
    assert all(one.right for one in found)
    assert sum(one.elements for one in found) == 4_159_247_404


def test_few_stretches_explain_an_array() -> None:
    """NCCL cuts an array by channels, turns of the ring and ranks: not element by element."""
    entries = [one for one in GIVEN["sums"] if "runs" in one]
    assert len(entries) > 50
    for one in entries:
        ranks = BY_NAME[one["mode"]].ranks
        assert len(one["runs"]) <= 4 * ranks and one["runs"][0][0] == 0
    mode = BY_NAME["hosts4"]
    held = [operand("bf16", 5000, 4, rank, GIVEN["seed"]) for rank in range(4)]
    sums = [all_reduce.added(held, "bf16", order) for order in orders(mode, "Ring")]
    assert all(np.mean(one != other) > 0.2 for i, one in enumerate(sums) for other in sums[:i])


def test_another_order_has_other_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(
        one for one in GIVEN["sums"]
        if (one["mode"], one["setting"], one["size"]) == ("hosts4", "Ring-Simple-1", 5000)
    )  # fmt: skip
    right = predicted(BY_NAME["hosts4"], entry, GIVEN["seed"])
    monkeypatch.setattr(campaign.all_reduce, "ring", lambda ranks, chunk: tuple(range(ranks)))
    assert np.mean(predicted(BY_NAME["hosts4"], entry, GIVEN["seed"]) != right) > 0.1


def test_the_record_says_what_it_covers() -> None:
    plans = [answer["plan"] for entry in GIVEN["layers"] for answer in entry["answers"]]
    assert (len(plans), sum(plan is None for plan in plans)) == (180, 4)
    assert all(answer["same"] for entry in GIVEN["layers"] for answer in entry["answers"])
    assert {one["mode"] for one in GIVEN["sums"]} == set(BY_NAME)
    assert any(one["size"] == LARGE for one in GIVEN["sums"])
