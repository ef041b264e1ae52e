"""Layers with every batch size, recorded on an H200 (vectors/kernels/layers): the command, and the recorder's
grouping of answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.kernels import layers, plan_files, torch_ops
from golden.kernels.invariance import confirmed
from golden.kernels.layers import CANCELLING, COLUMNS, NORMAL, ROWS
from hw_capture.products.cases import Case
from hw_capture.products.layers import _answers, _Seen

RECORDING = Path(__file__).parents[3] / "vectors" / "kernels" / "layers" / "h200.json"
SECOND = RECORDING.parent / "h200_second.json"
"""Of the same kind of GPU an hour later, with other operands, and no time for 46 of the layers."""
SUMS = RECORDING.parent / "sums_h200.npz"
RUN = CliRunner(env={"COLUMNS": "200"})
FEW = (
    "3584x3584 f16 mm",
    "512x3584 e4m3 scaled_mm fast=True",
    "1024x4096 bf16 linear",
    "4096x4096 bf16 triton",
)


@pytest.mark.parametrize("name", FEW)
def test_every_bit_of_a_recorded_layer_is_predicted(name: str) -> None:
    (found,) = golden.invariance(RECORDING, name)
    assert found.predicted == found.batches == 521


@pytest.mark.long
def test_every_bit_of_all_recorded_layers_is_predicted() -> None:
    maps = golden.invariance(RECORDING)
    assert (len(maps), sum(one.batches for one in maps), sum(one.predicted for one in maps)) == (
        154,
        80_234,
        80_234,
    )
    reported = confirmed(maps, layers.read(SECOND))
    assert [sum(counts) for counts in zip(*reported.values(), strict=True)] == [56_268, 56_268]


def test_the_command_on_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "few.json"
    given = layers.read(RECORDING)
    few = [
        one
        for one in given.layers
        if one.layer.name in ("3584x3584 bf16 mm", "512x3584 bf16 mm split_k=False")
    ]
    layers.write(layers.Recording(given.date, given.device, tuple(few)), path)
    files = [str(tmp_path / name) for name in ("a.svg", "a.html")]
    ran = RUN.invoke(app, ["invariance", "--from", str(path), "--svg", files[0], "--html", files[1]])
    assert ran.exit_code == 0
    assert "M 40 to 41: K in 2 parts of 1792 added in f32, then in one part (and at 49, 57, 73)" in ran.stdout
    assert ran.stdout.count("predicted in every bit: 521 of 521 M") == 2
    assert all(Path(name).stat().st_size > 1000 for name in files)
    arguments = ["--only", "3584x3584 bf16 mm", "--against", str(SECOND), "--json"]
    ran = RUN.invoke(app, ["invariance", "--from", str(path), *arguments])
    assert ran.exit_code == 0 and "the plans give every bit of 521 of 521 M" in ran.stderr
    (reported,) = json.loads(ran.stdout)["layers"]
    assert (reported["predicted"], reported["invariant"]) == (521, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected either layers such as 4096x4096, or --from"),
        (["4096"], "'4096' is not a layer, expected NxK such as 4096x4096"),
        (["64x64", "--call", "conv"], "'conv', expected mm, linear, scaled_mm, triton"),
        (["64x64", "--type", "e4m3"], "mm takes bf16, f16, not 'e4m3'"),
        (["64x64", "--m", "0-3"], "'0-3' is not a batch size, expected sizes such as 1-512"),
        (["64x64", "--from", str(RECORDING)], "or --from"),
        (["--from", str(RECORDING), "--m", "1-3"], "--m: cannot be combined with --from"),
        (["--from", str(RECORDING), "--m", "1-x"], "--m: cannot be combined with --from"),
        (["--from", str(RECORDING), "--no-split-k"], "--split-k: cannot be combined with --from"),
        (["--from", str(RECORDING), "--type", "bf16"], "--type: cannot be combined with --from"),
        (["--from", str(RECORDING), "--only", "7x7"], "no layer of the recording is '7x7'"),
    ],
)
def test_arguments_that_are_refused(arguments: list[str], said: str) -> None:
    ran = RUN.invoke(app, ["invariance", *arguments])
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.replace("│", " ").split())


def test_batch_sizes_with_the_same_bits_are_one_answer() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.integers(0, 1 << 16, (2, ROWS, COLUMNS), np.uint16)
    batches = [1, 2, 4, 5, 6]
    blocks = np.stack([one, one, one, other, one])
    blocks[0, 1:], blocks[1, 2:] = 0, 0  # rows that M does not have
    seen = {
        CANCELLING: _Seen(blocks, np.ones(5, bool)),
        NORMAL: _Seen(blocks, np.array([True, True, True, True, False])),
    }
    found = {answer.batches: answer for answer in _answers(batches, seen)}
    assert set(found) == {(1, 2, 4), (5,), (6,)}
    assert np.array_equal(found[1, 2, 4].d, one) and np.array_equal(found[5,].d, other)
    assert [found[key].alike for key in ((1, 2, 4), (5,), (6,))] == [True, True, False]


@pytest.mark.parametrize(
    ("n", "k", "out", "answer"),
    [
        (1024, 4096, "bf16", "6ce7332725bc7298"),
        (1024, 4096, "f32", "ad5ea96d5787249b"),
        (512, 3584, "f32", "c8a04bd161a9f7c6"),
        (1024, 5120, "f32", "330e7985c22fc391"),
    ],
)
def test_a_vector_times_a_matrix_without_the_matrix_unit(n: int, k: int, out: str, answer: str) -> None:
    """gemv2T_kernel_val of PyTorch 2.11 and CUDA 13.0 without split K: digests of D."""
    given = Case("mm", "bf16", "bf16", out, 1, n, k, seed=54).operands()
    assert layers.digest(golden.gemm(given["a"], given["b"], plan_files.gemv("bf16", out))) == answer


@pytest.mark.parametrize("k", [128, 1000, 1024, 4096, 5120, 8192])
@pytest.mark.parametrize("what", ["sum", "mean"])
def test_sums_of_rows(k: int, what: str) -> None:
    """32 rows of each length, each of them 32 times: the number of rows is part of the order."""
    rng = np.random.default_rng(k)
    a = np.ldexp(rng.standard_normal((32, k)), rng.integers(-9, 10, (32, k))).astype(np.float32)
    d = getattr(torch_ops, what)(np.repeat(a, 32, axis=0), -1).reshape(32, 32)
    recorded = np.load(SUMS)[f"{what} {k}"]
    assert np.array_equal(d.view(np.uint32), recorded)
