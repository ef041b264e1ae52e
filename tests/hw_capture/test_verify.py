"""The replay of captured vectors: the committed ones pass, one wrong bit is found, and a wrong model is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden import captured
from golden.cli import app
from golden.errors import FileFormatError
from hw_capture.verify import dot_of, verify

HMMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
IMMA = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"


def copy(folder: Path, names: tuple[str, ...], change: dict[str, np.ndarray] | None = None) -> Path:
    """A folder with some committed vectors; `change` gives other results to some."""
    manifest = captured.read_manifest("hopper")
    old = manifest["instructions"]
    target = folder / "hopper"
    target.mkdir()
    manifest["instructions"] = {}
    for name in names:
        vector = captured.load_one("hopper", name)
        d = (change or {}).get(name, vector.d)
        entry = captured.save(target, name, {**vector.operands, "d": d}, old[name]["class_set"], old[name]["classes"])
        manifest["instructions"][name] = entry
    captured.write_manifest(target, manifest)
    return folder


def test_every_committed_vector_replays() -> None:
    report = verify(captured.vectors_folder())
    assert report.passed, [item.sentence() for item in report.differences]
    recorded = [m for a in captured.architectures() for m in captured.read_manifest(a)["instructions"].values()]
    assert report.instructions == len(recorded) and report.results == sum(entry["dots"] for entry in recorded)
    assert report.reference_results == sum(entry["tiles"] for entry in recorded)


def test_one_architecture_folder_will_do(tmp_path: Path) -> None:
    folder = copy(tmp_path, (HMMA,))
    assert verify(folder / "hopper").instructions == verify(folder).instructions == 1


@pytest.mark.parametrize("name", [HMMA, SPARSE, IMMA])
def test_one_wrong_bit_is_found_and_placed(tmp_path: Path, name: str) -> None:
    d = captured.load_one("hopper", name).d
    d[2, 5, 3] ^= 1
    report = verify(copy(tmp_path, (HMMA, SPARSE, IMMA), {name: d}), explain=0)
    assert {item.model for item in report.differences} >= {"fast core", "general core"}
    assert all((item.wrong, item.tile, item.row, item.column) == (1, 2, 5, 3) for item in report.differences[:2])
    assert name in report.differences[0].sentence() and f"{int(d[2, 5, 3]):#010x}" in report.differences[0].sentence()


def test_the_reference_sees_every_place_when_asked(tmp_path: Path) -> None:
    d = captured.load_one("hopper", IMMA).d
    d[0, 7, 0] ^= 1
    report = verify(copy(tmp_path, (IMMA,), {IMMA: d}), reference=0, explain=0)
    assert [item.model for item in report.differences] == ["fast core", "general core", "reference"]
    assert report.reference_results == report.results


def test_the_step_to_blame_is_named(tmp_path: Path) -> None:
    """Results of a unit with two alignment bits fewer: the first step that differs is its alignment."""
    ampere = golden.instruction("ampere", HMMA)
    d = ampere(**captured.load_one("hopper", HMMA).operands)
    report = verify(copy(tmp_path, (HMMA,), {HMMA: d}))
    first = report.differences[0]
    assert "align" in first.blame and "explains the hardware" in first.blame
    assert "align" in first.trace


def test_a_dot_product_of_a_tile_is_the_instructions_own() -> None:
    vector, ins = captured.load_one("hopper", SPARSE), golden.instruction("hopper", SPARSE)
    dot = dot_of(vector.operands, 4, 11, 6)
    assert int(ins.dot(**dot)) == int(vector.d[4, 11, 6])


def test_the_command_passes_and_fails(tmp_path: Path) -> None:
    good = CliRunner().invoke(app, ["verify", str(copy(tmp_path, (IMMA,)))])
    assert good.exit_code == 0 and "no difference" in good.output
    d = captured.load_one("hopper", IMMA).d
    d[0] ^= 1
    shutil.rmtree(tmp_path / "hopper")
    bad = CliRunner().invoke(app, ["verify", str(copy(tmp_path, (IMMA,), {IMMA: d})), "--json"])
    assert bad.exit_code == 1 and json.loads(bad.output)["differences"][0]["wrong"] == 64


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_damaged_files_are_one_line_and_status_2(tmp_path: Path, damage: str) -> None:
    folder = copy(tmp_path, (IMMA,))
    path = folder / "hopper" / captured.file_name(IMMA)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    result = CliRunner().invoke(app, ["verify", str(folder)])
    assert result.exit_code == 2 and len(result.output.strip().splitlines()) == 1


def test_a_folder_without_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"no manifest\.json"):
        verify(tmp_path)
