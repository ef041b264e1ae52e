"""A full disk: one line and status 2 from every command that writes, the earlier file as it was, nothing
left next to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

from golden.cli.app import app
from golden.errors import FileFormatError
from golden.files import output
from golden.vectors import captured
from hw_capture.campaign import report as campaign_report
from hw_capture.campaign.run import Outcome
from hw_capture.campaign.source import COUNTS
from hw_capture.cli.timing_run import Run
from hw_capture.gpu import device
from hw_capture.kernels import toolchain
from hw_capture.timing import bench as timing_bench
from hw_capture.timing import report as timing_report
from hw_capture.timing.bench import Result, Timing
from hw_capture.timing.records import Conditions
from hw_capture.timing.subjects import matrix_subjects

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
FullDisk = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    """Within it, files are made, but what is written to them meets the kernel's own ENOSPC."""

    fdopen = os.fdopen

    def nowhere(handle: int, mode: str) -> Any:
        if mode == "rb":
            return fdopen(handle, mode)
        os.close(handle)
        return open("/dev/full", mode.replace("+", ""))

    @contextmanager
    def full() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(output.os, "fdopen", nowhere)
            yield

    return full


def outcome(tiles: int) -> Outcome:
    name, counts = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", dict.fromkeys(COUNTS[2:], 0)
    return Outcome(
        name, "hopper", ("HMMA",), 1, "all", 0, tiles, 128 * tiles, 0, 1.0, counts | {"other": 128 * tiles}
    )


def refused(arguments: list[str], path: Path) -> None:
    """The command ends with one line that names `path`, and status 2."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.output == f"mmagold: {path}: cannot be written: No space left on device\n"


def test_merged_campaign_reports(tmp_path: Path, full_disk: FullDisk) -> None:
    facts = {"name": "NVIDIA Test"}
    out, page = tmp_path / "report.json", tmp_path / "report.md"
    for path, tiles in ((out, 1), (tmp_path / "other.json", 9)):
        campaign_report.Report(facts, "13.0", [outcome(tiles)]).write(path)
    page.write_text("earlier")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    merge = ["campaign", "--out", str(out), "--markdown", str(page), "--merge", str(tmp_path / "other.json")]
    with full_disk():
        refused(merge, out)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert CliRunner().invoke(app, merge).exit_code == 0 and json.loads(out.read_text())["dots"] == 9 * 128


def test_a_campaign_report(tmp_path: Path, full_disk: FullDisk) -> None:
    pages = campaign_report.Report({}, "13.0", [outcome(1)])
    pages.write(tmp_path / "report.json")
    before = (tmp_path / "report.json").read_bytes()
    pages.add(outcome(2))
    with full_disk(), pytest.raises(FileFormatError, match="No space left"):
        pages.write(tmp_path / "report.json")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert (tmp_path / "report.json").read_bytes() == before


@pytest.mark.parametrize("name", ["ours.yaml", "points.csv"])
def test_bench_gpu_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_disk: FullDisk, name: str
) -> None:
    (subject,) = (one for one in matrix_subjects("hopper") if one.label == "ldmatrix.x1")
    timings = [Timing(subject, "c", 1, 1, operands, 29.0, 29.0, 29.0) for operands in ("random", "zeros")]
    card = {"name": "NVIDIA Test", "compute_capability": "9.0"}
    result = Result(Conditions(card, {}), loops={subject.label: {}}, timings=timings)
    monkeypatch.setattr(toolchain, "require", lambda *tools: "nvcc")
    monkeypatch.setattr(toolchain, "version", lambda tool: "13.0.88")
    facts = {"name": "NVIDIA Test", "compute_capability": "9.0"}
    monkeypatch.setattr(device, "open", lambda index: nullcontext(SimpleNamespace(facts=lambda: facts)))
    monkeypatch.setattr(timing_bench, "build", lambda *given: (item for item in ()))
    monkeypatch.setattr(timing_bench, "measure", lambda *given: result)
    path = tmp_path / name
    path.write_text("earlier")
    with full_disk():
        refused(
            ["bench-gpu", "--only", "ldmatrix.x1", "--csv" if path.suffix == ".csv" else "--out", str(path)],
            path,
        )
    assert path.read_text() == "earlier" and list(tmp_path.iterdir()) == [path]
    Run("hopper", 0, 5, None, path).write("", timing_report.csv_text(result))
    assert path.read_text().startswith("instruction,")


def test_pictures(tmp_path: Path, full_disk: FullDisk) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "ldmatrix.x4.svg"
    path.write_text("earlier")
    with full_disk():
        refused(["timing", "plot", "--out", str(tmp_path), "--only", "ldmatrix.x4"], path)
    assert path.read_text() == "earlier" and list(tmp_path.iterdir()) == [path]


def test_captured_vectors(tmp_path: Path, full_disk: FullDisk) -> None:
    arrays = {name: np.zeros((1, 8, 8), np.uint8) for name in "abcd"}
    with full_disk(), pytest.raises(FileFormatError, match="No space left"):
        captured.save(tmp_path, "mma", arrays, "stimuli", [0])
    with full_disk(), pytest.raises(FileFormatError, match="No space left"):
        captured.write_manifest(tmp_path, {"instructions": {}})
    assert not list(tmp_path.iterdir())


def test_the_cache_of_kernels_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_disk: FullDisk
) -> None:
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path))
    with full_disk():
        assert toolchain.cached("a.cubin", lambda: b"code") == b"code"
    assert not list(tmp_path.iterdir())


def test_the_files_of_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc's own complaint, and a unit that cannot be written."""
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(
        "#!/bin/sh\ncase $1 in --version) echo V13.0.88;; *) echo 'unit.ii: No space left on device' >&2; "
        "exit 1;; esac\n"
    )
    nvcc.chmod(0o755)
    (tmp_path / "nvdisasm").write_text("#!/bin/sh\necho V13.0.85\n")
    (tmp_path / "nvdisasm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    command = ["--compile-only", "--arch", "hopper", "--only", "m16n8k16.row.col.f32.f16"]
    for name in ("capture", "bench-gpu"):
        result = CliRunner().invoke(app, [name, *command])
        assert result.exit_code == 2 and result.output.endswith(
            "nvcc cannot write there: No space left on device\n"
        )
        assert len(result.output.splitlines()) == 1
    monkeypatch.setattr(
        Path, "write_text", lambda self, text, encoding: Path("/dev/full").write_bytes(b"x") and None
    )
    result = CliRunner().invoke(app, ["capture", *command])
    assert result.exit_code == 2 and result.output.endswith("cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    "command",
    long_after(
        1,
        [
            ["timing", "show", "sun_a100", "--json"],
            ["timing", "compare"],
            ["profile", "--samples", "8", "--chains", "1", "--length", "1", "--json"],
            ["verify", str(captured.vectors_folder()), "--only", "m8n8k16.row.col.s32.s8.s8.s32$"],
            ["campaign", "--help"],
        ],
    ),
)
def test_output_that_cannot_be_written_is_one_line(command: list[str]) -> None:
    """`mmagold verify ... > file`: not status 1, which would mean that results differ."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from golden.cli.app import main; main()", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2 and done.stderr == "mmagold: the output: No space left on device\n"
