"""The replay of captured vectors: the committed ones pass, one wrong bit is found,
and a wrong model is named."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.errors import FileFormatError, MmagoldError
from golden.vectors import captured
from hw_capture.record.verify import dot_of, unlisted, verify

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
        entry = captured.save(
            target, name, {**vector.operands, "d": d}, old[name]["class_set"], old[name]["classes"]
        )
        manifest["instructions"][name] = entry
    captured.write_manifest(target, manifest)
    return folder


def few_widths(names: list[str]) -> set[str]:
    """Instructions of every kind; of instructions that differ only in n one, another n for each kind."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(re.sub(r"m64n\d+", "m64n*", name), []).append(name)
    return {alike[i % len(alike)] for i, alike in enumerate(kinds.values())}


def test_every_committed_file_has_a_manifest() -> None:
    assert unlisted(captured.vectors_folder()) == []


@pytest.mark.parametrize("part", long_after(1, range(48)))
def test_committed_vectors_of_every_kind_replay(part: int) -> None:
    """As `mmagold verify` does with all of them; each kind runs with another width."""
    names = {a: captured.read_manifest(a)["instructions"] for a in captured.architectures()}
    every = {name for entries in names.values() for name in few_widths(list(entries))}
    chosen = set(sorted(every)[part::48])
    report = verify(captured.vectors_folder(), matching=chosen.__contains__)
    assert report.passed, [item.sentence() for item in report.differences]
    recorded = [entry for entries in names.values() for name, entry in entries.items() if name in chosen]
    assert report.instructions == len(recorded) > 6
    assert report.results == sum(entry["dots"] for entry in recorded)
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
    assert all(
        (item.wrong, item.tile, item.row, item.column) == (1, 2, 5, 3) for item in report.differences[:2]
    )
    assert (
        name in report.differences[0].sentence()
        and f"{int(d[2, 5, 3]):#010x}" in report.differences[0].sentence()
    )


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


def test_a_bit_that_no_unit_explains_is_blamed_on_the_last_step(tmp_path: Path) -> None:
    d = captured.load_one("hopper", HMMA).d
    d[2, 5, 3] ^= 1
    blame = verify(copy(tmp_path, (HMMA,), {HMMA: d})).differences[0].blame
    codes = f"d[0] is {int(d[2, 5, 3]):#010x}, expected {int(d[2, 5, 3]) ^ 1:#010x}"
    assert blame.startswith(f"step 5 (round): {codes}; no change of a single step explains it (")


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


def rewritten(folder: Path, content: bytes, **entry: object) -> None:
    """Another content of IMMA's file, with the hash of it in the manifest."""
    manifest = captured.read_manifest_file(folder / "hopper" / "manifest.json")
    (folder / "hopper" / captured.file_name(IMMA)).write_bytes(content)
    manifest["instructions"][IMMA] |= {"sha256": hashlib.sha256(content).hexdigest(), **entry}
    captured.write_manifest(folder / "hopper", manifest)


def test_a_broken_file_with_the_right_hash_is_one_error(tmp_path: Path) -> None:
    folder = copy(tmp_path, (IMMA,))
    good = (folder / "hopper" / captured.file_name(IMMA)).read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(60):
        content = bytearray(good)
        for place in rng.integers(0, len(good), 3):
            content[place] ^= int(rng.integers(1, 256))
        rewritten(folder, bytes(content))
        try:
            verify(folder, explain=0)
        except FileFormatError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint64, np.int8])
def test_results_of_another_type_are_refused(tmp_path: Path, dtype: type) -> None:
    folder, vector = copy(tmp_path, (IMMA,)), captured.load_one("hopper", IMMA)
    arrays = {**vector.operands, "d": vector.d.astype(dtype)}
    dtypes = {name: str(codes.dtype) for name, codes in arrays.items()}
    rewritten(folder, captured.pack(arrays), dtypes=dtypes)
    with pytest.raises(FileFormatError, match=r"array 'd' is .*, expected .*uint32"):
        verify(folder)


def test_damaged_manifests_are_one_error(tmp_path: Path) -> None:
    folder = copy(tmp_path, (IMMA,))
    path = folder / "hopper" / "manifest.json"
    good = json.loads(path.read_text())
    for key in (*good, *good["instructions"][IMMA]):
        for value in (None, True, -1, "../x", [], {}, [None], {"a": 1}):
            manifest = json.loads(json.dumps(good))
            holder = manifest if key in manifest else manifest["instructions"][IMMA]
            holder[key] = value
            path.write_text(json.dumps(manifest))
            try:
                verify(folder, explain=0)
            except MmagoldError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize("option", [[], ["--layouts"]])
def test_a_filter_that_chooses_nothing_is_refused(tmp_path: Path, option: list[str]) -> None:
    folder = copy(tmp_path, (IMMA,))
    result = CliRunner().invoke(app, ["verify", str(folder), "--only", "m8n8k17.*s8", *option])
    assert result.exit_code == 2 and result.output.endswith(f" matches 'm8n8k17.*s8'; nearest: {IMMA}\n")
    manifest = captured.read_manifest_file(folder / "hopper" / "manifest.json")
    captured.write_manifest(folder / "hopper", {**manifest, "instructions": {}})
    empty = CliRunner().invoke(app, ["verify", str(folder), *option])
    assert empty.exit_code == 2 and "there are none" in empty.output


def test_a_file_that_the_manifest_does_not_name_is_reported(tmp_path: Path) -> None:
    folder = copy(tmp_path, (IMMA,))
    (folder / "hopper" / "extra.npz").write_bytes(b"")
    result = CliRunner().invoke(app, ["verify", str(folder)])
    assert result.exit_code == 0 and "extra.npz: its manifest does not name it" in result.stderr


def test_a_folder_without_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"holds no captured vectors, expected manifest\.json"):
        verify(tmp_path)
    with pytest.raises(FileFormatError, match=r"none: there is no such folder, expected one that mmagold"):
        verify(tmp_path / "none")
