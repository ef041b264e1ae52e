"""The capture without a GPU: a runner that reads the kernels' buffers and answers as the model does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.errors import FileFormatError
from golden.model.instruction import Instruction
from golden.vectors import captured
from hw_capture.errors import DeviceError, HwError
from hw_capture.kernels import buffers, kernels, tiles
from hw_capture.kernels.build import Built
from hw_capture.record.capture import Options, Report, capture, target_for

H200 = {"name": "NVIDIA H200", "compute_capability": "9.0", "cuda": "13.0", "driver": "580.159"}
NAMES = (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
)


class FakeGpu:
    """Computes from the packed buffers what the model says; `broken` names fail, `wrong` ones differ
    between runs."""

    def __init__(self, broken: str = "", wrong: str = "", facts: dict[str, Any] = H200) -> None:
        self.broken, self.wrong, self._facts, self.runs = broken, wrong, facts, 0

    def facts(self) -> dict[str, Any]:
        return self._facts

    def run(self, built: Built, operands: dict[str, np.ndarray], fill: int) -> np.ndarray:
        ins = built.instruction
        if self.broken and self.broken in ins.name:
            raise DeviceError("kernel run_0: an illegal memory access was encountered")
        self.runs += 1
        held = buffers.for_kernel(ins, built.form)
        seen = {name: held[name].unpack(held[name].pack(codes)) for name, codes in operands.items()}
        d = ins(**seen)
        return d ^ d.dtype.type(bool(self.wrong) and self.wrong in ins.name and self.runs % 2)


def built(groups: Sequence[list[tuple[Instruction, str]]], target: str) -> Iterable[list[Built]]:
    assert target == "sm_90a"
    return ([Built(ins, form, b"cubin", "run_0", ("HMMA R0;",)) for ins, form in group] for group in groups)


def chosen(names: Sequence[str] = NAMES) -> list[Instruction]:
    return [golden.instruction("hopper", name) for name in names]


def record(folder: Path, gpu: FakeGpu | None = None, names: Sequence[str] = NAMES, **options: int) -> Report:
    return capture(chosen(names), folder, gpu or FakeGpu(), Options(**options), builder=built)


def test_every_instruction_gets_a_file_that_loads_and_replays(tmp_path: Path) -> None:
    report = record(tmp_path / "hopper")
    assert (report.recorded, report.kept, report.failed, report.differ) == (len(NAMES), 0, [], [])
    found = list(captured.load("hopper", tmp_path))
    assert {vector.name for vector in found} == set(NAMES)
    for vector in found:
        assert (golden.instruction("hopper", vector.name)(**vector.operands) == vector.d).all()


def test_the_manifest_says_how_it_was_made(tmp_path: Path) -> None:
    record(tmp_path / "hopper")
    manifest = captured.read_manifest("hopper", tmp_path)
    assert manifest["schema"] == 2 and manifest["device"]["driver"] == "580.159"
    entry = manifest["instructions"][NAMES[3]]
    assert set(entry["ptx"]) == set(entry["sass"]) == {"registers", "shared"}
    assert entry["emulated"] is False and manifest["instructions"][NAMES[1]]["emulated"] is True
    assert entry["seed"] == 1 and entry["dots"] == 64 * 24 * entry["tiles"]


@pytest.mark.parametrize("name", NAMES)
def test_every_stimulus_kind_is_drawn(name: str) -> None:
    ins = golden.instruction("hopper", name)
    operands, class_set, classes = tiles.draw(ins, 1)
    assert len(operands["c"]) == len(classes) and len(classes) % ins.blocks == 0
    if class_set == tiles.STIMULI:
        assert set(classes) == set(range(len(stimuli.KINDS)))
    else:
        assert min(ins.m, ins.n) * len(classes) >= len(stimuli.KINDS)


def test_mixed_tiles_have_the_dot_products_of_the_set_on_their_diagonal() -> None:
    ins = golden.instruction("hopper", NAMES[3])
    operands, class_set, classes = tiles.draw(ins, 7)
    dots = golden.vectors.default_set(ins, 64 * len(classes), 7)
    assert class_set == tiles.MIXED
    d = ins(**operands)
    for i in range(24):
        assert d[1, i, i] == dots.d[64 + i]


def test_a_second_call_keeps_what_is_there(tmp_path: Path) -> None:
    record(tmp_path, names=NAMES[:2])
    gpu = FakeGpu()
    report = record(tmp_path, gpu)
    assert (report.recorded, report.kept) == (3, 2)
    assert gpu.runs == 2 * 3 + 2


def test_the_same_seed_gives_the_same_files_and_another_seed_others(tmp_path: Path) -> None:
    for folder, seed in (("x", 1), ("y", 1), ("z", 2)):
        record(tmp_path / folder, names=NAMES[:1], seed=seed)
    x, y, z = ((tmp_path / folder / captured.file_name(NAMES[0])).read_bytes() for folder in "xyz")
    assert x == y != z


@pytest.mark.parametrize("damage", ["cut", "deleted", "other seed"])
def test_what_is_not_as_recorded_is_recorded_again(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "hopper"
    record(folder, names=NAMES[:2], seed=2 if damage == "other seed" else 1)
    path = folder / captured.file_name(NAMES[0])
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif damage == "deleted":
        path.unlink()
    assert record(folder, names=NAMES[:2]).recorded == (2 if damage == "other seed" else 1)
    assert len(list(captured.load("hopper", tmp_path))) == 2


class _Interrupted(FakeGpu):
    def run(self, built: Built, operands: dict[str, np.ndarray], fill: int) -> np.ndarray:
        if self.runs == 3:
            raise KeyboardInterrupt
        return super().run(built, operands, fill)


@pytest.mark.parametrize("before", [[], list(NAMES)])
def test_ctrl_c_leaves_valid_files_and_the_next_call_goes_on(tmp_path: Path, before: list[str]) -> None:
    folder = tmp_path / "hopper"
    if before:
        record(folder, names=before, seed=5)
    with pytest.raises(KeyboardInterrupt):
        record(folder, _Interrupted())
    vectors = list(captured.load("hopper", tmp_path))
    assert [vector.name for vector in vectors] == [NAMES[0]]
    report = record(folder)
    assert (report.recorded, report.kept) == (4, 1)
    assert len(list(captured.load("hopper", tmp_path))) == len(NAMES)


def test_a_kernel_that_fails_ends_the_capture_with_valid_files(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="illegal memory access"):
        record(tmp_path / "hopper", FakeGpu(broken="mma.sp"))
    assert len(list(captured.load("hopper", tmp_path))) == 2


def test_results_that_change_from_run_to_run_are_not_recorded(tmp_path: Path) -> None:
    report = record(tmp_path / "hopper", FakeGpu(wrong="m64n24"))
    assert [name for name, _ in report.failed] == [NAMES[3]]
    assert "differ between two runs" in report.failed[0][1]
    assert len(list(captured.load("hopper", tmp_path))) == len(NAMES) - 1


def test_the_limit_on_bytes_stops_with_valid_files(tmp_path: Path) -> None:
    with pytest.raises(HwError, match="would exceed 0 MiB"):
        record(tmp_path / "hopper", most_bytes=1000 << 6)
    loaded = list(captured.load("hopper", tmp_path))
    assert 0 < len(loaded) < len(NAMES)
    assert {path.name for path in (tmp_path / "hopper").glob("*.npz")} == {
        captured.file_name(v.name) for v in loaded
    }


def test_a_full_disk_is_one_error_and_leaves_valid_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "hopper", names=NAMES[:1])

    def full(path: Path, content: bytes) -> None:
        raise FileFormatError(f"{path}: cannot be written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(captured, "_replace", full)
        with pytest.raises(FileFormatError, match="No space left"):
            record(tmp_path / "hopper")
    assert [vector.name for vector in captured.load("hopper", tmp_path)] == [NAMES[0]]


def test_vectors_of_another_gpu_are_not_mixed_in(tmp_path: Path) -> None:
    record(tmp_path, names=NAMES[:1])
    with pytest.raises(
        FileFormatError,
        match=r"recorded on .*driver 580\.159\), this is .*driver 600\.1\)",
    ):
        record(tmp_path, FakeGpu(facts=H200 | {"driver": "600.1"}))


def test_a_schema_1_folder_is_brought_up_to_date(tmp_path: Path) -> None:
    old = captured.read_manifest("hopper")
    name = NAMES[0]
    old["instructions"] = {
        key: old["instructions"][key] for key in (name, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32")
    }
    old["device"] = H200
    folder = tmp_path / "hopper"
    folder.mkdir()
    old["schema"] = 1
    for entry in old["instructions"].values():
        for key in ("ptx", "sass", "emulated", "seed", "per_kind", "date"):
            entry.pop(key, None)
        (folder / entry["file"]).write_bytes(
            (captured.vectors_folder() / "hopper" / entry["file"]).read_bytes()
        )
    (folder / "manifest.json").write_text(json.dumps(old))
    record(folder, names=[name])
    manifest = captured.read_manifest("hopper", tmp_path)
    assert manifest["schema"] == 2 and len(manifest["instructions"]) == 2 == len(
        list(captured.load("hopper", tmp_path))
    )
    assert [name for name, entry in manifest["instructions"].items() if "ptx" in entry] == [name]


@pytest.mark.parametrize(
    ("architecture", "number", "target"),
    [("hopper", "9.0", "sm_90a"), ("ampere", "8.6", "sm_86"), ("rtx_blackwell", "12.0", "sm_120a")],
)
def test_the_target_is_that_of_the_gpu(architecture: str, number: str, target: str) -> None:
    assert target_for(architecture, H200 | {"compute_capability": number}) == target


def test_the_wrong_gpu_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"NVIDIA H200 \(sm_90\), expected NVIDIA Ampere"):
        target_for("ampere", H200)


@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param("turing", marks=pytest.mark.long),
        "hopper",
        pytest.param("rtx_blackwell", marks=pytest.mark.long),
    ],
)
def test_buffers_round_trip(architecture: str) -> None:
    """One instruction of every family and shape: pack then unpack gives the matrices back."""
    seen = set()
    for ins in golden.instructions(architecture):
        key = (ins.family, ins.shape if ins.layout != "wgmma" else ins.n == 24, ins.variables.get("a_layout"))
        if key in seen or not kernels.supported(ins) or (ins.layout == "wgmma" and ins.n not in (8, 24)):
            continue
        seen.add(key)
        drawn = golden.vectors.default_set(ins, 4, 3, "tile", weights={"random_bits": 1.0})
        for form in kernels.forms(ins):
            for name, buffer in buffers.for_kernel(ins, form).items():
                matrix = drawn.d if name == "d" else drawn.operands[name]
                words = buffer.pack(matrix)
                assert words.shape == (4 // ins.blocks, *buffer.shape) and words.dtype == buffer.dtype
                assert (buffer.unpack(words) == matrix).all(), (ins.name, name)
    assert len(seen) > 5


def test_shared_memory_is_core_matrices() -> None:
    """Row r, byte k of a K-major operand lies at (k/16)*128 + (r/8)*stride + (r%8)*16 +
    k%16 (PTX ISA 9.7.15.5.1)."""
    ins = golden.instruction("hopper", "wgmma.mma_async.sp.sync.aligned.m64n16k64.s32.s8.s8")
    rng = np.random.default_rng(1)
    a, b = (
        rng.integers(0, 256, (2, 64, 32), dtype=np.uint8),
        rng.integers(0, 256, (2, 64, 16), dtype=np.uint8),
    )
    held = buffers.for_kernel(ins, "shared")
    image_a, image_b = (held[name].pack(matrix).view(np.uint8) for name, matrix in (("a", a), ("b", b)))
    for r, k in ((0, 0), (9, 17), (15, 31), (63, 5)):
        assert image_a[1, (k // 16) * 128 + (r // 8) * 256 + (r % 8) * 16 + k % 16] == a[1, r, k]
    for n, k in ((0, 0), (9, 17), (15, 63), (7, 40)):
        assert image_b[1, (k // 16) * 128 + (n // 8) * 512 + (n % 8) * 16 + k % 16] == b[1, k, n]
