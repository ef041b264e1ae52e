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
from golden.kernels import layers
from golden.kernels.layers import CANCELLING, COLUMNS, NORMAL, ROWS
from hw_capture.products.layers import _answers, _Seen

RECORDING = Path(__file__).parents[3] / "vectors" / "kernels" / "layers" / "h200.json"
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
def test_every_bit_of_all_recorded_layers_but_three_vectors_is_predicted() -> None:
    maps = golden.invariance(RECORDING)
    assert (len(maps), sum(one.batches for one in maps), sum(one.predicted for one in maps)) == (
        154,
        80_234,
        80_231,
    )
    for one in maps:
        for answer, right in zip(one.recorded.answers, one.right, strict=True):
            if not right:
                assert answer.batches == (1,) and "gemv2T" in one.recorded.kernels[1][0]


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
    assert ran.exit_code == 1  # one M has no plan
    assert "M 40 to 41: K in 2 parts of 1792 added in f32, then in one part (and at 49, 57, 73)" in ran.stdout
    assert "predicted in every bit: 520 of 521 M" in ran.stdout
    assert all(Path(name).stat().st_size > 1000 for name in files)
    arguments = ["--only", "3584x3584 bf16 mm", "--against", str(path), "--json"]
    ran = RUN.invoke(app, ["invariance", "--from", str(path), *arguments])
    assert ran.exit_code == 0 and "the plans give every bit of 521 of 521 M" in ran.stderr
    (told,) = json.loads(ran.stdout)["layers"]
    assert (told["predicted"], told["invariant"]) == (521, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected layers such as 4096x4096, or --from a recording"),
        (["4096"], "'4096' is no layer, expected NxK such as 4096x4096"),
        (["64x64", "--call", "conv"], "'conv', expected mm, linear, scaled_mm, triton"),
        (["64x64", "--type", "e4m3"], "mm takes bf16, f16, not 'e4m3'"),
        (["64x64", "--m", "0-3"], "'0-3' is no batch size, expected such as 1-512"),
        (["64x64", "--from", str(RECORDING)], "or --from a recording"),
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
