"""Wrong register layouts: the committed results refute them, and results that could not are reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.vectors import captured
from golden.vectors.captured import Captured
from hw_capture.errors import HwError
from hw_capture.kernels import buffers
from hw_capture.record import placement_faults
from hw_capture.record.placement_faults import Faults, Report, numbered, placements, plant_in

HMMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SPARSE_TF32 = "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
VOLTA = "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16"
SLICE = [
    HMMA,
    SPARSE,
    SPARSE_TF32,
    VOLTA,
    WGMMA,
    "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
    "mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32",
    "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
    "mma.sp.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32",
    "mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32",
    "wmma.mma.sync.aligned.row.col.m32n8k16.f32.f16",
    "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc",
    "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2",
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16",
]


@pytest.mark.parametrize("name", long_after(2, SLICE))
def test_the_results_of_an_instruction_refute_every_wrong_layout(name: str) -> None:
    report = Report()
    ins = golden.instruction("hopper", name)
    plant_in(ins, captured.load_one("hopper", name), report)
    assert report.passed and not report.unseen
    assert sum(report.planted.values()) == report.seen + report.undefined
    assert set(report.planted) == set(placements(ins))
    assert ins.sparse or not report.undefined  # what the instruction does not accept refutes nothing


def test_metadata_that_the_instruction_does_not_accept_refutes_nothing() -> None:
    """A fault is seen only where it turns a row of metadata into another one that the instruction accepts."""
    ins, vector = golden.instruction("hopper", SPARSE), captured.load_one("hopper", SPARSE)
    placement, recorded = placements(ins)["metadata"], placement_faults._Recorded(ins, vector)
    faults = Faults.of(placement.fields)
    legal = ins.pattern.legal(ins.ordered_metadata) if ins.pattern else ()
    kinds = set()
    for i in range(len(faults.names)):
        fault = faults.chosen(np.array([i]))
        sources = fault.sources(placement, np.arange(len(placement.address))[None])[0]
        bits = np.where(sources < 0, 0, recorded.flat["metadata"][:, sources])
        moved = recorded.nibbles(bits) != recorded.nibbles(recorded.flat["metadata"])
        accepted = (
            np.isin(recorded.nibbles(bits), legal).reshape(-1, recorded.widths["metadata"] // 4).all(axis=1)
        )
        shown = bool((moved.reshape(len(accepted), -1).any(axis=1) & accepted).any())
        found = (
            placement_faults._exhausted(recorded, "metadata", placement, fault)
            if moved.any()
            else "moves nothing"
        )
        assert found != "seen" or shown, faults.names[i]
        kinds.add(found)
    assert {"seen", "metadata without a meaning"} <= kinds


def test_every_lane_and_every_register_is_swapped_with_its_neighbour() -> None:
    found = placements(golden.instruction("hopper", WGMMA))
    names = Faults.of(found["d"].fields).names
    assert {f"lane {i} and {i + 1}" for i in range(127)} | {"register 0 and 1", "position 0 and 1"} <= set(
        names
    )
    assert "lane bit 0 and lane bit 6" in names and "lane bit 3 and register bit 0" in names
    assert len(names) == 127 + 1 + 1 + 9 * 8 // 2
    metadata = Faults.of(placements(golden.instruction("hopper", SPARSE))["metadata"].fields).names
    assert {"bit 0 and 1", "bit 2-3 and 4-5", "bit 24-27 and 28-31"} <= set(metadata)


@pytest.mark.parametrize(
    "name, operand, piece",
    [
        (HMMA, "a", 16),
        (HMMA, "b", 16),
        (HMMA, "c", 32),
        (VOLTA, "a", 16),
        (VOLTA, "b", 16),
        (VOLTA, "c", 16),
        (SPARSE, "a", 16),
        (SPARSE, "metadata", 1),
        (WGMMA, "a", 16),
        (WGMMA, "b in shared memory", 16),
    ],
)
def test_a_fault_is_what_other_registers_would_give(name: str, operand: str, piece: int) -> None:
    """The words that a kernel reads, pieces of `piece` bits exchanged: the same matrix, and it differs
    where the search says."""
    ins, vector = golden.instruction("hopper", name), captured.load_one("hopper", name)
    placement, recorded, key = (
        placements(ins)[operand],
        placement_faults._Recorded(ins, vector),
        operand.split(" ")[0],
    )
    buffer, faults = buffers.for_kernel(ins)[key], Faults.of(placement.fields)
    words = np.ascontiguousarray(buffer.pack(vector.operands[key]))
    pieces = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(len(words), -1, piece)
    for i in range(0, len(faults.names), 7):
        fault = faults.chosen(np.array([i]))
        moved = pieces[:, fault.partner(np.arange(len(placement.element))[None])[0]]
        registers = np.packbits(moved.ravel(), bitorder="little").view(words.dtype).reshape(words.shape)
        given = {**vector.operands, key: buffer.unpack(registers)}
        sources = fault.sources(placement, np.arange(len(placement.address))[None])[0]
        assert np.array_equal(
            np.where(sources < 0, 0, recorded.flat[key][:, sources]), numbered(ins, given)[key]
        )
        if operand != "metadata":  # the model refuses codes that mean nothing
            differs = bool((ins(**given) != vector.d).any())
            assert (placement_faults._exhausted(recorded, operand, placement, fault) == "seen") == differs


def constant(name: str, operand: str) -> Captured:
    """The committed operands of an instruction with one code everywhere in one of them,
    and the model's results."""
    vector = captured.load_one("hopper", name)
    operands = {**vector.operands, operand: np.full_like(vector.operands[operand], 0x3C)}
    return Captured(name, operands, golden.instruction("hopper", name)(**operands), vector.classes)


@pytest.mark.parametrize("operand", long_after(1, "abc"))
def test_results_that_pin_nothing_are_reported(operand: str) -> None:
    report = Report()
    plant_in(golden.instruction("hopper", HMMA), constant(HMMA, operand), report)
    assert not report.passed
    whys = [item.why for item in report.missed if item.operand == operand]
    assert whys == ["the recorded matrices are the same with it"] * report.planted[operand]


def test_another_shape_of_the_layout_can_refute_what_one_instruction_cannot() -> None:
    report = Report()
    plant_in(golden.instruction("hopper", HMMA), constant(HMMA, "a"), report)
    missed = len(report.missed)
    bf16 = HMMA.replace("f16.f16", "bf16.bf16")
    plant_in(golden.instruction("hopper", bf16), captured.load_one("hopper", bf16), report)
    assert missed and report.passed and len(report.unseen) == missed


def test_results_that_are_wrong_without_a_fault_are_refused() -> None:
    vector = captured.load_one("hopper", HMMA)
    vector.d[3, 2, 1] ^= 1
    with pytest.raises(HwError, match="1 recorded results differ from the model"):
        plant_in(golden.instruction("hopper", HMMA), vector, Report())


def test_the_command(tmp_path: Path) -> None:
    good = CliRunner().invoke(
        app, ["verify", str(captured.vectors_folder()), "--layouts", "--only", f"^{HMMA}$"]
    )
    assert good.exit_code == 0 and "282 refuted by the instruction's own results" in good.output
    manifest = captured.read_manifest("hopper")
    entry, vector = manifest["instructions"][HMMA], constant(HMMA, "b")
    arrays = {**vector.operands, "d": vector.d}
    manifest["instructions"] = {
        HMMA: captured.save(tmp_path, HMMA, arrays, entry["class_set"], entry["classes"])
    }
    captured.write_manifest(tmp_path, manifest)
    bad = CliRunner().invoke(app, ["verify", str(tmp_path), "--layouts"])
    assert bad.exit_code == 1 and "not refuted: hopper:mma.sync" in bad.output
