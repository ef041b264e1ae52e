"""Capture and campaign on a CPU: a stand-in that answers as the model does, planted faults, the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden.cli import app
from golden.errors import FileFormatError
from golden.vectors import captured
from hw_capture.campaign.run import Plan, run
from hw_capture.cpu import campaign, machine
from hw_capture.cpu.machine import capture
from hw_capture.errors import DeviceError, ToolMissing
from hw_capture.record.capture import Options

PAIR = golden.instruction("sapphire_rapids", "vdpbf16ps")
TILE = golden.instruction("sapphire_rapids", "tdpbssd")


class StandIn:
    """A CPU that answers as the model does, but for `wrong` results at the front; it lacks `lacks`."""

    def __init__(self, wrong: int = 0, lacks: str = "", unstable: bool = False) -> None:
        self.wrong, self.lacks, self.unstable, self.name = wrong, lacks, unstable, "A CPU"

    def facts(self) -> dict[str, str]:
        return {"name": self.name, "cpuid": "0x1", "system": "Linux 6", "compiler": "cc 1"}

    def missing(self, ins: golden.Instruction) -> str:
        return f"this CPU has no {ins.name}" if ins.name == self.lacks else ""

    def matrices(self, ins: golden.Instruction, operands: Any) -> Any:
        found = ins(**operands)
        found.reshape(-1)[: self.wrong] ^= 1
        self.wrong += self.unstable
        return found

    def crossed(self, ins: golden.Instruction, a: Any, b: Any, state: Any) -> None:
        """Of the words of an AMX tile, and of AVX-512 with a word of A a row."""
        layouts, size = ins.fragments, len(state)
        assert layouts is not None and layouts.a and layouts.b
        rows, columns = layouts.a.unpack(a), layouts.b.unpack(b)
        if ins.blocks > 1:
            rows, columns = rows[:, :, 0], columns[..., 0].swapaxes(1, 2)
        state[:] = ins.engine_of_one.tiles({"a": rows, "b": columns, "c": state.copy()}, 16, 16)
        state.reshape(-1)[: self.wrong] ^= 1
        assert size == len(rows)


def recorded(folder: Path, stand_in: StandIn) -> Any:
    return capture(stand_in, [PAIR, TILE], folder, Options(3))  # type: ignore[arg-type]


def test_capture_and_what_is_wrong_with_it(tmp_path: Path) -> None:
    report = recorded(tmp_path, StandIn(lacks="tdpbssd"))
    assert (report.recorded, report.differ, report.failed) == (
        1,
        [],
        [("tdpbssd", "this CPU has no tdpbssd")],
    )
    report = recorded(tmp_path, StandIn())
    manifest = captured.read_manifest_file(tmp_path / "manifest.json", "sapphire_rapids")
    assert list(manifest["instructions"]) == ["vdpbf16ps", "tdpbssd"] and report.recorded == 2
    for vector in captured.load_entries(manifest, tmp_path):
        assert np.array_equal(golden.instruction("sapphire_rapids", vector.name)(**vector.operands), vector.d)
    assert recorded(tmp_path, StandIn(wrong=2)).differ == [("vdpbf16ps", 2), ("tdpbssd", 2)]
    shaky = recorded(tmp_path, StandIn(unstable=True))
    assert shaky.recorded == 0 and "differ between two runs" in shaky.failed[0][1]
    other = StandIn()
    other.name = "Another"
    with pytest.raises(FileFormatError, match=r"recorded on A CPU .CPUID 0x1.*this is Another"):
        recorded(tmp_path, other)


@pytest.mark.parametrize("ins", [PAIR, TILE], ids=lambda ins: ins.name)
def test_campaign_counts_and_finds(ins: golden.Instruction) -> None:
    plan = Plan(9000, 60.0, seed=5)
    fine = run(campaign.Bench(StandIn(), ins), plan)  # type: ignore[arg-type]
    assert fine.dots >= 9000 and fine.mismatches == 0 and sum(fine.results.values()) == fine.dots
    bad = run(campaign.Bench(StandIn(wrong=1), ins), plan)  # type: ignore[arg-type]
    assert bad.mismatches > 0 and bad.results != {} and len(bad.records) == min(bad.mismatches, 100)
    one = bad.records[0]
    a, b = (np.array([int(code, 16) for code in one[name]], ins.formats[name].dtype) for name in "ab")
    assert int(ins.dot(a, b, ins.formats["c"].dtype.type(int(one["c"], 16)))) == int(one["expected"], 16)
    assert int(one["d"], 16) == int(one["expected"], 16) ^ 1
    with pytest.raises(DeviceError, match="has no"):
        campaign.Bench(StandIn(lacks=ins.name), ins)  # type: ignore[arg-type]


def test_a_campaign_goes_on_with_other_operands() -> None:
    """Operands depend on seed and tile: two halves are the whole, another seed is something else."""

    def results(first: int, tiles: int, seed: int) -> dict[str, int]:
        bench = campaign.Bench(StandIn(), PAIR)  # type: ignore[arg-type]
        bench.launch(seed, first, tiles, -1)
        return bench.counts()

    halves = [results(0, 3000, 1), results(3000, 3000, 1)]
    assert {name: sum(half[name] for half in halves) for name in halves[0]} == results(0, 6000, 1)
    assert results(0, 6000, 1) != results(0, 6000, 2)
    assert halves[0] != halves[1]


@pytest.mark.parametrize("wanted", [1, 7, 64])
def test_parts_are_every_tile_once(wanted: int) -> None:
    """Cut at the ends of chunks, in order, none empty."""
    first, tiles = 3 * 256 * 256 - 500, 2 * 256 * 256 + 77
    parts = list(campaign.parts_of(5, first, tiles, -1, wanted))
    ends = [part.first + part.tiles for part in parts]
    assert [part.first for part in parts] == [first, *ends[:-1]] and ends[-1] == first + tiles
    assert all(part.tiles > 0 and part.first >> 16 == part.first + part.tiles - 1 >> 16 for part in parts)
    assert wanted <= len(parts) <= wanted + 4


def test_a_part_is_the_same_alone_and_among_others() -> None:
    """A tile's number decides its operands, not how a launch was cut; every turn brings others together."""
    cpu: Any = StandIn(wrong=1)
    whole = campaign.compare(cpu, PAIR, campaign.Part(1, 0, 254, 260))
    parts = [
        campaign.compare(cpu, PAIR, campaign.Part(1, 0, *cut)) for cut in ((254, 2), (256, 256), (512, 2))
    ]
    assert whole.counts == {name: sum(part.counts[name] for part in parts) for name in whole.counts}
    assert whole.records == [record for part in parts for record in part.records]
    assert [record["tile"] for record in whole.records] == [254, 256, 512]
    turns = [
        campaign.compare(cpu, PAIR, campaign.Part(1, 0, 256 * turn, 1)).records[0] for turn in (0, 1, 255)
    ]
    assert len({str(turn["b"]) for turn in turns}) == len({turn["c"] for turn in turns}) == 3
    assert len({str(turn["a"]) for turn in turns}) == 1


@pytest.mark.long
def test_workers_count_what_one_process_counts() -> None:
    """On the CPU in this machine, where it has the instruction."""
    ins = golden.instruction("sapphire_rapids", "vpdpbusd")
    try:
        cpu = machine.open()
        alone = campaign.Bench(cpu, ins)
    except (DeviceError, ToolMissing) as error:
        pytest.skip(str(error))
    alone.launch(3, 100, 20 * 256, -1)
    with campaign.Workers(2) as workers:
        shared = campaign.Bench(cpu, ins, workers)
        shared.launch(3, 100, 20 * 256, -1)
    assert shared.counts() == alone.counts() and alone.counts()["dots"] == 20 * 65536
    assert alone.counts()["mismatches"] == 0


def command(*arguments: str, status: int) -> Any:
    result = CliRunner().invoke(app.app, list(arguments), prog_name="mmagold")
    assert result.exit_code == status, (result.output, result.exception)
    return result


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "open", StandIn)
    out, report = tmp_path / "vectors", tmp_path / "report.json"
    arch = ("--arch", "sapphire_rapids")
    command("capture", *arch, "--only", "vdpbf16ps", "--out", str(out), status=0)
    command("verify", str(out), status=0)
    for _ in range(2):
        command("campaign", "vdpbf16ps", *arch, "--dots", "5000", "--out", str(report), status=0)
    assert json.loads(report.read_text())["device"]["name"] == "A CPU"
    monkeypatch.setattr(machine, "open", lambda: StandIn(wrong=1))
    command("capture", *arch, "--only", "vdpbf16ps", "--out", str(out), status=1)
    command("campaign", "vdpbf16ps", *arch, "--dots", "5000", status=1)
    monkeypatch.setattr(machine, "open", lambda: StandIn(lacks="vdpbf16ps"))
    assert "has no vdpbf16ps" in command("campaign", "vdpbf16ps", *arch, status=2).stderr
    assert (
        "has no vdpbf16ps"
        in command("capture", *arch, "--only", "vdpbf16ps", "--out", str(out), status=2).output
    )
    assert "no faults" in command("campaign", "vdpbf16ps", *arch, "--fault", "rounding=down", status=2).stderr
    assert "has no --compile-only and no --n" in command("capture", *arch, "--compile-only", status=2).stderr
    assert "missing, expected a folder" in command("capture", *arch, status=2).stderr
