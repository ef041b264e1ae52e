"""golden.invariance on recordings whose plans are known, and on an order that no plan has."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden.errors import FileFormatError, OperandError
from golden.kernels import layers
from golden.kernels.layers import CANCELLING, COLUMNS, KINDS, NORMAL, ROWS, Answer, Layer, Recorded, Recording
from golden.kernels.plan import Plan
from golden.number.formats import get_format

CHAIN = golden.plan("hopper", "cublas_f16.bf16.bf16")
MM = Layer(256, 512, "bf16", "bf16")
LINEAR = Layer(256, 512, "bf16", "bf16", "linear")


def answer(layer: Layer, batches: list[int], plan: Plan) -> Answer:
    """What a kernel with this plan gives."""
    rows = min(max(batches), ROWS)
    given = {kind: layers.operands(layer, kind) for kind in KINDS}
    d = {
        kind: golden.gemm(one["a"], one["b"], plan, bias=one.get("bias"))[:rows]
        for kind, one in given.items()
    }
    return Answer(tuple(batches), d[CANCELLING], layers.digest(d[NORMAL]))


def gemv(layer: Layer) -> Answer:
    """The answer of one row by f32 sums of every second product, in turn: no matrix unit adds so."""
    made = {}
    for kind in KINDS:
        given = layers.operands(layer, kind)
        a, b = (golden.to_float("bf16", given[name]).astype(np.float32) for name in "ab")
        total = np.zeros(COLUMNS, np.float32)
        for k in [*range(0, layer.k, 2), *range(1, layer.k, 2)]:
            total = total + a[0, k] * b[k]
        made[kind] = golden.from_float("bf16", total)[None]
    return Answer((1,), made[CANCELLING], layers.digest(made[NORMAL]))


def recording() -> Recording:
    split = CHAIN.but(part=192)
    first = Recorded(
        MM,
        (gemv(MM), answer(MM, [2, 3, 4, 8], split), answer(MM, [5, 6, 7, 9, 64], CHAIN)),
        {1: ("gemv2T_kernel",)} | dict.fromkeys((2, 3, 4, 8), ("nvjet_splitK", "splitKreduce"))
        | dict.fromkeys((5, 6, 7, 9, 64), ("nvjet",)),
        {1: 1e-5},
    )  # fmt: skip
    columns = CHAIN.but(bias="columns", part=256)
    rounded = columns.but(reduce_format="bf16")
    second = Recorded(
        LINEAR,
        (answer(LINEAR, [1, 2], columns), answer(LINEAR, [3], rounded)),
        {1: ("x",), 2: ("x",), 3: ("y",)},
    )  # fmt: skip
    return Recording("2026-11-29", {"name": "a GPU", "torch": "1"}, (first, second))


def test_every_batch_size_has_its_plan() -> None:
    mm, linear = golden.invariance(recording())
    assert (mm.batches, mm.predicted, mm.invariant) == (10, 9, False)
    plans = mm.plans
    assert plans[0] is None and plans[1] is not None and plans[2] is not None
    assert (plans[1].given["part"], "part" in plans[2].given) == (192, False)
    assert [(run.first, run.last, run.answer) for run in mm.runs] == [
        (1, 1, 0),
        (2, 4, 1),
        (5, 7, 2),
        (8, 8, 1),
        (9, 64, 2),
    ]
    assert [(change.before, change.begins) for change in mm.changes] == [(1, (2,)), (4, (5, 9)), (7, (8,))]
    assert "GEMV" in mm.changes[0].cause
    assert mm.changes[1].cause == "K in 3 parts of 192 added in f32, then in one part"
    assert (linear.predicted, linear.batches) == (3, 3)
    (change,) = linear.changes
    assert change.cause == "K in 2 parts of 256 added in f32, then in 2 parts of 256 added in bf16"


def test_a_change_is_shown_by_its_sums() -> None:
    mm, _ = golden.invariance(recording())
    change = mm.changes[1]
    parts, whole = change.sums
    assert [part[:2] for part in parts] == [(0, 191), (192, 383), (384, 511)]
    total = np.float32(0)
    for _, _, value in parts:
        total = total + np.float32(value)
    assert golden.from_float("bf16", total) == golden.from_float("bf16", change.values[0])
    assert golden.from_float("bf16", whole[0][2]) == golden.from_float("bf16", change.values[1])
    d = [mm.recorded.answers[i].d for i in (1, 2)]
    assert change.share[0] == np.mean(d[0] != d[1]) > 0.5


@pytest.mark.parametrize("fmt", ["f16", "bf16", "e4m3"])
def test_the_exact_sums_of_operands_that_cancel_are_zero(fmt: str) -> None:
    layer = Layer(128, 98, fmt, "bf16")
    given = layers.operands(layer, CANCELLING)
    a, b = (golden.to_float(get_format(fmt), given[name]) for name in "ab")
    for row, column in ((0, 0), (3, 127)):
        products = [Fraction(x) * Fraction(y) for x, y in zip(a[row], b[:, column], strict=True)]
        assert any(products) and sum(products) == 0
    other = layers.operands(layer, CANCELLING, seed=7)
    assert not np.array_equal(given["a"], other["a"])


def test_a_plan_has_to_give_the_operands_that_it_was_not_found_on() -> None:
    one = recording().layers[0]
    chain = one.answers[2]
    for wrong in (replace(chain, normal="0" * 16), replace(chain, alike=False)):
        (found,) = golden.invariance(Recording("", {}, (replace(one, answers=(wrong,)),)))
        assert found.plans[0] is not None and found.predicted == 0


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    given, path = replace(recording(), seed=layers.SEED, refused={"x": "why"}), tmp_path / "layers.json"
    layers.write(given, path)
    found = layers.read(path)
    assert (found.date, found.device, found.refused, found.seed) == (
        "2026-11-29",
        given.device,
        {"x": "why"},
        54,
    )
    for one, other in zip(given.layers, found.layers, strict=True):
        assert (one.layer, one.kernels, one.seconds) == (other.layer, other.kernels, other.seconds)
        for x, y in zip(one.answers, other.answers, strict=True):
            assert (x.batches, x.normal, x.alike) == (y.batches, y.normal, y.alike)
            assert np.array_equal(x.d, y.d)


@pytest.mark.parametrize(
    "changed", [{"schema": 2}, {"layers": [{"layer": {}}]}, {"layers": 3}, {"kernels": []}, {"seed": "x"}]
)
def test_no_recording_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "layers.json"
    layers.write(recording(), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(FileFormatError, match=r"layers\.json: "):
        layers.read(path)


DAMAGES: tuple[tuple[tuple[str | int, ...], Any, str], ...] = (
    (("layers", 0, "answers", 1, "m", 0, 1), 10**30, "M from 1 to 2"),
    (("layers", 0, "answers", 1, "m", 0, 0), 0, "M from 1 to 2"),
    (("layers", 0, "answers", 1, "m", 0, 0), "2", "M from 1 to 2"),
    (("layers", 0, "answers", 1, "m"), [[2, 4], [3, 8]], "ranges of M in ascending order"),
    (("layers", 0, "answers", 1, "m"), [], "an M"),
    (("layers", 0, "answers", 1, "m"), [[5, 5]], "one answer for each M"),
    (("layers", 0, "answers"), [], "one answer for each M"),
    (("layers", 0, "answers", 1, "d"), "AAAA", "recording of layers"),
    (("layers", 0, "answers", 1, "d"), "", "4 rows of results"),
    (("layers", 0, "kernels"), [[1, 8, 0]], "the kernels of each M"),
    (("layers", 0, "kernels", 0, 1), 10**30, "M from 1 to 2"),
    (("layers", 0, "kernels", 0, 2), -1, "the number of a kernel"),
    (("layers", 0, "kernels", 0, 2), 99, "the number of a kernel"),
    (("layers", 0, "seconds"), {"1": -1.0}, "seconds of 0 or more"),
    (("layers", 0, "seconds"), {"one": 1.0}, "recording of layers"),
    (("layers", 0, "layer", "k"), 1 << 40, "N and K from 1 to 2"),
    (("layers", 0, "layer", "n"), -4, "N and K from 1 to 2"),
    (("layers", 0, "layer", "call"), "conv", "a call, one of mm, linear"),
    (("layers", 0, "layer", "a"), "s8", "formats of floats"),
    (("layers", 0, "layer", "a"), "bf17", "bf17"),
    (("layers", 0, "layer", "options"), [1], "options and models"),
    (("layers", 1, "layer", "call"), "mm", "each layer once"),
    (("kernels", 0), [3], "names of kernels"),
    (("device",), {"name": 5}, "texts"),
    (("refused",), [], "recording of layers"),
    (("seed",), -1, "a seed of 0 or more"),
    (("seed",), 1.5, "a seed of 0 or more"),
)  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), DAMAGES)
def test_a_damaged_recording_is_refused_where_it_is_read(
    path: tuple[str | int, ...], value: Any, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "layers.json"
    layers.write(recording(), file)
    content = json.loads(file.read_text())
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file.write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=rf"layers\.json: .*{message}"):
        layers.read(file)


def test_words_that_no_layer_has_are_named() -> None:
    with pytest.raises(
        OperandError, match=r"no layer of the recording is '7x7', expected .* 256x512 bf16 mm"
    ):
        golden.invariance(recording(), "7x7")


def test_the_sums_of_several_gpus_are_added_as_the_plan_says() -> None:
    rng = np.random.default_rng(4)
    a, b = (golden.from_float("bf16", rng.standard_normal(shape)) for shape in ((8, 512), (512, 16)))
    ranks = [golden.gemm(a[:, i : i + 128], b[i : i + 128], CHAIN) for i in range(0, 512, 128)]

    def added(
        x: Any, y: Any
    ) -> Any:  # f32 holds the exact sum of two bf16 numbers of like size: one rounding
        return golden.from_float("bf16", golden.to_float("bf16", x) + golden.to_float("bf16", y))

    for chunk in range(4):
        total = ranks[(chunk + 1) % 4]
        for step in range(2, 5):
            total = added(total, ranks[(chunk + step) % 4])
        plan = golden.tensor_parallel(CHAIN, 512, 4, "ring", chunk)
        assert np.array_equal(golden.gemm(a, b, plan), total)
    # NCCL's trees of four: 0 - 2 - (1, 3), and its mirror image.
    first = added(ranks[0], added(added(ranks[2], ranks[1]), ranks[3]))
    second = added(ranks[3], added(added(ranks[1], ranks[2]), ranks[0]))
    for chunk, tree in enumerate((first, second)):
        plan = golden.tensor_parallel(CHAIN, 512, 4, "tree", chunk)
        assert np.array_equal(golden.gemm(a, b, plan), tree)
    alone = golden.tensor_parallel(CHAIN, 512, 1, "tree")
    assert np.array_equal(golden.gemm(a, b, alone), golden.gemm(a, b, CHAIN))
    for refused in (
        (500, 4, "ring"),
        (512, 3, "ring"),
        (512, 4, "star"),
        (512, 4, "ring", 4),
        (512, 4, "tree", 2),
    ):
        with pytest.raises(OperandError):
            golden.tensor_parallel(CHAIN, *refused)
    with pytest.raises(OperandError, match="parts of its own"):
        golden.tensor_parallel(CHAIN.but(part=64), 512, 4)
