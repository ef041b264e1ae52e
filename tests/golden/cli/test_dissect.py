"""`mmagold dissect`: status, what it writes, and one line for what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.identify.blackbox import dissecting

BOXES = Path(__file__).parents[1] / "identify" / "black_boxes"
FORMATS = ("--formats", "a=f16,b=f16,c=f32,d=f32", "--k", "4")


def mmagold(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mmagold", "dissect", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_yaml_report_and_json_are_written(tmp_path: Path) -> None:
    out, report = tmp_path / "unit.yaml", tmp_path / "report.md"
    box = f"python:{BOXES / 'ieee.py'}:backward"
    done = mmagold(box, *FORMATS, "--asks", "9000", "--out", out, "--report", report, "--json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert reported["explains"] and reported["wrong"] == 0 and reported["compared"] > 5000
    assert out.read_text("utf-8") == reported["yaml"]
    assert golden.load_instruction(out).k == 4
    assert "0 of" in report.read_text("utf-8")


def test_a_unit_that_cannot_be_written_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the report, with status 2, on standard error."""
    monkeypatch.setattr(dissecting, "unit_text", lambda *given, **more: None)
    out = tmp_path / "unit.yaml"
    words = ("ampere:mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "--asks", "600", "--out", out)
    done = CliRunner().invoke(app, ["dissect", *map(str, words)])
    assert done.exit_code == 2 and "is explained" in done.stdout and not out.exists()
    assert "unit.yaml is not written: the schema of units has no words" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.long
def test_a_box_that_nothing_explains_ends_with_status_1() -> None:
    done = mmagold(f"python:{BOXES / 'ieee.py'}:outside", *FORMATS, "--asks", "3000", "--seconds", "8")
    assert done.returncode == 1, done.stderr
    assert "nearest candidate" in done.stdout and "simplest difference" in done.stdout


def test_a_box_with_two_answers_is_reported(tmp_path: Path) -> None:
    """Nothing is said of what it computes: status 2, with the question in the report, too."""
    report = tmp_path / "report.html"
    words = (f"python:{BOXES / 'ieee.py'}:crowded", *FORMATS, "--report", report, "--json")
    done = CliRunner().invoke(app, ["dissect", *map(str, words)])
    assert done.exit_code == 2 and "depends on the number of queries in the batch" in done.stderr
    reported = json.loads(done.stdout)["changed"]
    assert reported["first"] != reported["again"] and len(reported["operands"]["a"]) == 4
    assert "depends on the number of queries in the batch" in report.read_text("utf-8")


def test_wrong_calls_end_with_status_2_and_one_line() -> None:
    for words in (
        (f"python:{BOXES / 'ieee.py'}:moody", *FORMATS),
        (f"python:{BOXES / 'ieee.py'}:backward",),
        (f"python:{BOXES / 'missing.py'}:f", *FORMATS),
        ("hopper:HMMA.16816.F33",),
        ("program:no-such-program", *FORMATS),
        (f"python:{BOXES / 'ieee.py'}:backward", *FORMATS, "--report", "unit.htm"),
        ("recording:missing.npz", *FORMATS),
        ("captured:hopper", *FORMATS),
    ):
        done = CliRunner().invoke(app, ["dissect", *map(str, words)])
        assert done.exit_code == 2, (words, done.output)
        assert len(done.stderr.strip().splitlines()) == 1 and done.stdout == "", done.stderr
