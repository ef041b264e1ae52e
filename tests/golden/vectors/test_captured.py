"""Every committed captured vector replayed through the three models:
not one bit may differ, NaN payloads included."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import golden
from golden import paths, yamlfile
from golden.catalog import architectures, evidence_file
from golden.errors import FileFormatError, SpecError, UnknownNameError
from golden.paths import spec_folder
from golden.vectors import captured
from golden.vectors.captured import Captured

ORDER = ("a", "b", "c", "metadata", "scale_a", "scale_b")
REFERENCE_DOTS = 32
MANIFEST = captured.read_manifest("hopper")
COMMITTED = list(MANIFEST["instructions"])
SAMPLE = sorted(np.random.default_rng(5).choice(COMMITTED, 60, replace=False).tolist())
"""Some instructions; tests/hw_capture/record/test_verify.py replays some of every kind."""


def sample() -> Iterator[Captured]:
    yield from captured.load_entries(MANIFEST, captured.vectors_folder() / "hopper", SAMPLE)


def first_difference(vector: Captured, got: np.ndarray) -> str:
    wrong = np.argwhere(got != vector.d)
    if not len(wrong):
        return ""
    tile, row, column = (int(i) for i in wrong[0])
    return (
        f"{vector.name}: {len(wrong)} of {vector.d.size} differ, tile {tile} ({vector.classes[tile]}), row "
        f"{row}, col {column}: {int(got[tile, row, column]):#x}, the hardware gave "
        f"{int(vector.d[tile, row, column]):#x}"
    )


def test_both_paths_give_what_the_hardware_gave() -> None:
    for vector in sample():
        ins = golden.instruction("hopper", vector.name)
        assert vector.d.size > 0
        assert not first_difference(vector, ins(**vector.operands))
        assert not first_difference(
            vector, ins.engine.matrices(*(vector.operands.get(key) for key in ORDER), general=True)
        )


def test_the_reference_gives_what_the_hardware_gave() -> None:
    """Dot products from anywhere in the tiles, so of every operand class."""
    rng = np.random.default_rng(3)
    for vector in sample():
        ins = golden.instruction("hopper", vector.name)
        for i in range(REFERENCE_DOTS):
            tile, row, column = i % len(vector.d), int(rng.integers(ins.m)), int(rng.integers(ins.n))
            dot = {
                "a": vector.operands["a"][tile, row],
                "b": vector.operands["b"][tile, :, column],
                "c": vector.operands["c"][tile, row, column],
            }
            if ins.sparse:
                dot["metadata"] = vector.operands["metadata"][tile, row]
            got, wanted = ins.reference_dot(**dot), int(vector.d[tile, row, column])
            where = f"{vector.name} tile {tile} row {row} column {column}"
            assert got == wanted, f"{where}: {got:#x}, the hardware gave {wanted:#x}"


def test_every_instruction_of_hopper_is_captured() -> None:
    assert set(captured.read_manifest("hopper")["instructions"]) == set(
        architectures.get_architecture("hopper").names()
    )


def test_every_operand_class_is_there() -> None:
    for name, entry in MANIFEST["instructions"].items():
        assert set(entry["classes"]) == set(range(len(MANIFEST["operand_classes"][entry["class_set"]]))), name
        assert len(entry["classes"]) == entry["tiles"]


def test_the_replay_would_see_one_wrong_bit() -> None:
    name = COMMITTED[0]
    vector = captured.load_one("hopper", name)
    vector.d[3, 2, 1] ^= 1
    assert "1 of" in first_difference(vector, golden.instruction("hopper", name)(**vector.operands))


# Files ------------------------------------------------------------------------------------------------------


def test_the_evidence_file_is_the_one_the_manifest_gives() -> None:
    for architecture in captured.architectures():
        path = spec_folder() / "evidence" / f"{architecture}.yaml"
        assert path.read_text() == captured.evidence(architecture), "run 'python -m golden.vectors.captured'"


def test_the_evidence_file_names_what_is_captured() -> None:
    document = yamlfile.read(spec_folder() / "evidence" / "hopper.yaml")
    assert document["device"] == "NVIDIA H200" and document["driver"] == "580.159.04"
    manifest = captured.read_manifest("hopper")
    assert document["captured"] == {name: entry["dots"] for name, entry in manifest["instructions"].items()}
    found = architectures.captures("hopper").vectors
    assert set(found) == set(document["captured"])
    assert all((captured.vectors_folder().parent / path).is_file() for path in found.values())


def test_every_committed_file_is_in_the_manifest_and_small() -> None:
    files = [path for path in captured.vectors_folder().rglob("*") if path.is_file()]
    recorded = {
        captured.vectors_folder() / architecture / entry["file"]
        for architecture in captured.architectures()
        for entry in captured.read_manifest(architecture)["instructions"].values()
    }
    assert recorded <= set(files)
    assert {
        path for path in files if path.suffix == ".npz" and path.parent.name in captured.architectures()
    } == recorded
    assert sum(path.stat().st_size for path in files) <= 48 << 20  # of which held-out products take 1.3


def test_packing_is_the_same_bytes_every_time() -> None:
    name = COMMITTED[0]
    vector = captured.load_one("hopper", name)
    entry = captured.read_manifest("hopper")["instructions"][name]
    content = captured.pack({**vector.operands, "d": vector.d})
    assert content == captured.pack({"d": vector.d, **vector.operands})
    with zipfile.ZipFile(captured.vectors_folder() / "hopper" / entry["file"]) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.fixture
def copied(tmp_path: Path) -> tuple[Path, Path, str]:
    """A folder with one instruction's vectors, the path of its file, and its name."""
    name = min(COMMITTED, key=lambda name: MANIFEST["instructions"][name]["dots"])
    manifest = captured.read_manifest("hopper")
    entry = manifest["instructions"][name]
    manifest["instructions"] = {name: entry}
    (tmp_path / "hopper").mkdir()
    (tmp_path / "hopper" / "manifest.json").write_text(json.dumps(manifest))
    shutil.copy(captured.vectors_folder() / "hopper" / entry["file"], tmp_path / "hopper")
    return tmp_path, tmp_path / "hopper" / entry["file"], name


def test_a_copied_folder_loads(copied: tuple[Path, Path, str]) -> None:
    folder, _, name = copied
    assert [vector.name for vector in captured.load("hopper", folder)] == [name]


def damaged(content: bytes) -> dict[str, bytes]:
    middle = len(content) // 2
    return {
        "truncated": content[:-100],
        "empty": b"",
        "edited": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }


@pytest.mark.parametrize("damage", ["truncated", "empty", "edited", "missing"])
def test_a_damaged_file_is_refused(copied: tuple[Path, Path, str], damage: str) -> None:
    folder, path, _ = copied
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(damaged(content)[damage])
    with pytest.raises(FileFormatError, match=path.name):
        list(captured.load("hopper", folder))


def test_a_file_that_matches_its_hash_but_is_no_archive_is_refused(copied: tuple[Path, Path, str]) -> None:
    folder, path, name = copied
    for content in (b"PK\x03\x04 not really", b"", path.read_bytes()[:-50]):
        path.write_bytes(content)
        change_entry(folder, name, sha256=captured.hashlib.sha256(content).hexdigest())
        with pytest.raises(FileFormatError, match="truncated or"):
            list(captured.load("hopper", folder))


def change_entry(folder: Path, name: str, **changes: object) -> None:
    path = folder / "hopper" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["instructions"][name].update(changes)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "changes",
    [
        {"dots": 7},
        {"tiles": 1},
        {"sha256": "00"},
        {"shapes": {}},
        {"classes": [99]},
        {"classes": []},
        {"dtypes": {"a": "uint8"}},
        {"file": "../x.npz"},
        {"class_set": "none"},
        {"dots": "many"},
    ],
)
def test_a_manifest_that_does_not_fit_its_file_is_refused(
    copied: tuple[Path, Path, str], changes: dict[str, object]
) -> None:
    folder, _, name = copied
    change_entry(folder, name, **changes)
    with pytest.raises(FileFormatError):
        list(captured.load("hopper", folder))


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m.update(schema=99),
        lambda m: m.pop("device"),
        lambda m: m["device"].pop("driver"),
        lambda m: m.update(architecture="ada"),
        lambda m: m.update(instructions=[]),
        lambda m: m.update(seed="1"),
    ],
)
def test_a_wrong_manifest_is_refused(
    copied: tuple[Path, Path, str], edit: Callable[[dict[str, object]], object]
) -> None:
    folder, _, _ = copied
    path = folder / "hopper" / "manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(FileFormatError, match=r"manifest\.json"):
        captured.read_manifest("hopper", folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00", "[" * 100000])
def test_a_manifest_that_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "hopper").mkdir()
    (tmp_path / "hopper" / "manifest.json").write_text(text)
    with pytest.raises(FileFormatError, match=r"manifest\.json"):
        list(captured.load("hopper", tmp_path))


def test_an_architecture_or_instruction_without_vectors_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="nothing is recorded of"):
        captured.read_manifest("volta", tmp_path)
    with pytest.raises(UnknownNameError, match=r"nearest: mma\.sync"):
        captured.load_one("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f3")


@pytest.mark.long
def test_the_command_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert captured.main(["--check"]) == 0
    assert "hopper" in capsys.readouterr().out


def test_the_command_refuses_other_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert captured.main(["--force"]) == 2
    assert "usage" in capsys.readouterr().err


# Edits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("device: NVIDIA H200", "device: NVIDIA H100"),
        ("2026-", "2025-"),
        (": 2048\n", ": 2049\n"),
        ('  "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32": 2048\n', ""),
        ("captured:", "captured:\n  mma.never: 1"),
        ("digest: ", "digest: 0"),
        ("digest: ", "# digest: "),
    ],
)
def test_an_edited_evidence_file_is_refused(
    old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(spec_folder(), tmp_path / "spec")
    path = tmp_path / "spec" / "evidence" / "hopper.yaml"
    monkeypatch.setenv("MMAGOLD_SPEC", str(tmp_path / "spec"))
    assert evidence_file.read("hopper") is not None
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(SpecError, match=r"hopper\.yaml: edited"):
        evidence_file.read("hopper")


@pytest.mark.parametrize(
    "line", ['"seed": 1', '"date": "', '"driver": "5', '"class_set": "stimuli"', '"emulated": false']
)
def test_an_edited_manifest_is_refused(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hopper").mkdir()
    text = (captured.vectors_folder() / "hopper" / "manifest.json").read_text()
    assert line in text
    (tmp_path / "hopper" / "manifest.json").write_text(text.replace(line, line[:-1] + "7", 1))
    monkeypatch.setattr(captured, "vectors_folder", lambda: tmp_path)
    with pytest.raises(FileFormatError, match="edited: its SHA-256"):
        captured.read_manifest("hopper")


def test_campaign_reports_are_those_that_the_evidence_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = paths.docs_folder() / "campaigns"
    reports = [path for path in folder.iterdir() if path.suffix in (".json", ".md")]
    assert len(reports) >= 4 and all(evidence_file.check_report(path) == path for path in reports)
    assert (spec_folder() / "evidence" / "campaigns.yaml").read_text() == captured.campaign_evidence()
    shutil.copytree(folder, tmp_path / "campaigns")
    monkeypatch.setattr(evidence_file, "docs_folder", lambda: tmp_path)
    edited = tmp_path / "campaigns" / "hopper_h200.json"
    edited.write_text(edited.read_text().replace('"mismatches": 0', '"mismatches": 1', 1))
    with pytest.raises(SpecError, match="not the report"):
        evidence_file.check_report(edited)
