"""Recordings as black boxes: what explains them is found without a question; what stays open is reported."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.errors import FileFormatError, OperandError, UnknownNameError
from golden.identify.blackbox import policy, recordings
from golden.identify.blackbox.recordings import Recording, open_recording
from golden.identify.blackbox.report import Found
from golden.identify.blackbox.sources import open_box
from golden.program.signature import Operands
from golden.unit import signature_of
from golden.vectors import files

F16 = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}
VOLTA = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
BOXES = Path(__file__).parent / "black_boxes"


def asked(unit: Any, kinds: Any, each: int) -> Operands:
    """Operands of some kinds, drawn from the formats alone, with the unit's answers as d."""
    takes = signature_of(unit)
    parts = [
        stimuli.generate(takes, kind, each, np.random.default_rng([4, i])) for i, kind in enumerate(kinds)
    ]
    operands = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return operands | {"d": unit.dot(**operands)}


def opened(path: Path, arrays: Operands, k: int, formats: dict[str, str] = F16) -> Recording:
    np.savez(path, **arrays)
    found = open_recording(f"recording:{path}", formats, k)
    assert found is not None
    return found


def assert_rivals(found: Found, arrays: Operands) -> None:
    """The operands shown decide: the candidate's model gives the reported answer, the rival another one."""
    assert found.instruction is not None
    for rival in found.rivals:
        if rival.operands is not None:
            assert int(found.instruction.dot(**rival.operands)) == rival.candidate != rival.rival
    given = {name: codes for name, codes in arrays.items() if name != "d"}
    assert (found.instruction.dot(**given) == arrays["d"]).all()


def test_an_archive_of_dot_products_is_explained(tmp_path: Path) -> None:
    arrays = asked(VOLTA, stimuli.KINDS, 40)
    found = golden.dissect(opened(tmp_path / "r.npz", arrays, 4), seconds=100)
    assert found.explains and found.recorded and found.asked == 0
    assert found.compared == len(arrays["d"]) > found.fresh > 400
    assert "held back from the search" in found.sentence() and "it could not be queried" in found.report
    assert_rivals(found, arrays)


def test_what_a_recording_does_not_decide_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small integers show no rounding: units of every width explain them."""
    monkeypatch.setattr(recordings, "RECORDINGS", replace(policy.RECORDINGS, compared=4000, values=2))
    rng = np.random.default_rng(1)
    values = {
        "a": rng.integers(-8, 8, (300, 4)),
        "b": rng.integers(-8, 8, (300, 4)),
        "c": rng.integers(-8, 8, 300),
    }
    arrays = {n: golden.from_float(golden.get_format(F16[n]), v.astype(float)) for n, v in values.items()}
    arrays["d"] = VOLTA.dot(**arrays)
    found = golden.dissect(opened(tmp_path / "r.npz", arrays, 4), seconds=100)
    assert found.explains
    names = [rival.name.partition(":")[0] for rival in found.rivals]
    assert {"ampere", "cdna1", "cdna2"} <= set(names)
    assert all(rival.operands is not None for rival in found.rivals)
    assert "align of products and c: fraction_bits" in found.alternatives
    assert (
        "## What else explains the recording" in found.report
        and f"{len(found.rivals)} others" in found.sentence()
    )
    json.dumps(found.as_dict())
    assert_rivals(found, arrays)


@pytest.mark.long
def test_a_unit_that_is_no_instruction_is_found_in_its_recording(tmp_path: Path) -> None:
    formats = {"a": "bf16", "b": "bf16", "c": "f32", "d": "f32"}
    unit = open_box(f"python:{BOXES}/datapaths.py:guards_and_even", formats, 8)
    arrays = asked(unit, stimuli.KINDS, 120)
    found = golden.dissect(opened(tmp_path / "r.npz", arrays, 8, formats), seconds=300)
    assert found.explains and found.yaml is not None and "fraction_bits: 25" in found.yaml
    assert_rivals(found, arrays)


def test_what_was_recorded_twice_is_not_held_back_from_a_search_that_saw_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one dot product nothing is left to hold a candidate against, however often it was recorded."""
    short = replace(policy.RECORDINGS, compared=400, rivals=0, weighing=0)
    monkeypatch.setattr(recordings, "RECORDINGS", short)
    arrays = asked(VOLTA, ("narrow",), 5)
    one = {name: np.repeat(codes[:1], 50, axis=0) for name, codes in arrays.items()}
    found = golden.dissect(opened(tmp_path / "one.npz", one, 4), seconds=20)
    assert found.wrong == 0 and found.fresh == 0 and not found.explains
    fifth = {name: np.repeat(codes, 50, axis=0) for name, codes in arrays.items()}
    found = golden.dissect(opened(tmp_path / "five.npz", fifth, 4), seconds=20)
    assert found.fresh == 100 and found.compared == 250
    assert "of 250 recorded dot products 5 are different" in found.report


def test_what_no_candidate_explains_is_said(tmp_path: Path) -> None:
    arrays = asked(VOLTA, ("narrow", "wide"), 120)
    arrays["d"] = np.where(arrays["d"].view(np.float32) < 0, 0, arrays["d"]).astype(np.uint32)
    found = golden.dissect(opened(tmp_path / "r.npz", arrays, 4), seconds=1)
    assert not found.explains and found.wrong > 0 and found.example is not None
    assert (
        "the nearest candidate" in found.sentence() and "no candidate explains all 240" in found.undecided[0]
    )
    assert any("the candidate's result is negative" in one for one in found.undecided)


def test_one_dot_product_with_two_results_is_reported(tmp_path: Path) -> None:
    arrays = asked(VOLTA, ("narrow",), 60)
    arrays = {name: np.concatenate([codes, codes[:3]]) for name, codes in arrays.items()}
    arrays["d"][61] ^= 1
    found = golden.dissect(opened(tmp_path / "r.npz", arrays, 4), seconds=0.2)
    assert found.changed is not None and not found.explains
    assert all(np.array_equal(found.changed.operands[name], arrays[name][1]) for name in "abc")
    assert (found.changed.first, found.changed.again) == (arrays["d"][1], arrays["d"][1] ^ 1)
    said = "the same operands were recorded with two results: of 3 that were recorded more than once 1"
    assert said in found.report


def test_tiles_are_their_dot_products(tmp_path: Path) -> None:
    """Captured vectors, vector files and archives of tiles hold the same dot products."""
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    captured = open_recording("captured:hopper:HMMA.16816.F32")
    assert captured is not None and len(captured) == 3968
    assert (ins.dot(**captured.operands) == captured.answers).all()
    rng = np.random.default_rng(2)
    shapes = ins.operand_shapes(matrices=True).items()
    tiles = {n: rng.integers(0, 0x3C00, (2, *shape)).astype(ins.formats[n].dtype) for n, shape in shapes}
    archive = opened(tmp_path / "t.npz", tiles | {"d": ins(**tiles)}, 16)
    assert len(archive) == 2 * 16 * 8 and (ins.dot(**archive.operands) == archive.answers).all()
    files.write_stream(tmp_path / "v.hex", ins, 64, seed=3)
    written = open_recording(f"recording:{tmp_path}/v.hex")
    assert written is not None and len(written) == 64 and written.takes.k == 16
    assert (ins.dot(**written.operands) == written.answers).all()


def test_wrong_recordings_are_refused(tmp_path: Path) -> None:
    arrays = asked(VOLTA, ("narrow",), 5)
    path = tmp_path / "r.npz"
    np.savez(path, **{name: codes for name, codes in arrays.items() if name != "d"})
    with pytest.raises(FileFormatError, match="lacks d"):
        open_recording(f"recording:{path}", F16, 4)
    np.savez(path, **(arrays | {"a": arrays["a"][:, :3]}))
    with pytest.raises(FileFormatError, match=r"\[a\] has shape \(5, 3\), expected \(5, 4\)"):
        open_recording(f"recording:{path}", F16, 4)
    for d in (np.uint32(0), np.zeros((5, 2), np.uint32)):
        np.savez(path, **(arrays | {"d": d}))
        with pytest.raises(FileFormatError, match="expected one dimension, or three of tiles"):
            open_recording(f"recording:{path}", F16, 4)
    with pytest.raises(OperandError, match="holds no dot product"):
        opened(path, {name: codes[:0] for name, codes in arrays.items()}, 4)
    with pytest.raises(OperandError, match="does not say what it takes"):
        open_recording(f"recording:{path}")
    with pytest.raises(OperandError, match="no manifest next to it"):
        open_recording(f"recording:{tmp_path}/r.hex", F16, 4)
    with pytest.raises(OperandError, match="formats and K of its own"):
        open_recording("captured:hopper:HMMA.16816.F32", F16, 4)
    with pytest.raises(UnknownNameError):
        open_recording("captured:hopper:HMMA.1684.F32")
    assert open_recording("hopper:HMMA.16816.F32") is None
    few = opened(path, arrays, 4)
    with pytest.raises(OperandError, match=r"not continued: argument .resume. .option --continue."):
        golden.dissect(few, resume=tmp_path / "kept.npz")
    with pytest.raises(OperandError, match=r"is a recording: argument .near. .option --near. is for units"):
        golden.dissect(few, near=golden.instruction("hopper", "HMMA.16816.F32"))
