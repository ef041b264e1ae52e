"""The seconds of each stage that `--timings` gives: the clock's seconds between two names."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from golden.cli import app, progress


def test_a_stage_lasts_until_another_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stage that comes twice has one row, and one that had nothing to do has none."""
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.progress_bar() as bar:
        for seconds, following in ((2.0, "first"), (1.0, "second"), (0.0, "nothing"), (0.0, "first")):
            now += seconds
            bar(following, 0, 0)
        now += 3.0
        bar("first", 1, 2)
        now += 2.0
    assert bar.timings() == [
        {"stage": "preparing", "seconds": 2.0, "share": 0.25},
        {"stage": "first", "seconds": 6.0, "share": 0.75},
    ]
    bar.print_timings(wanted=False)
    assert capsys.readouterr().err == ""
    bar.print_timings(wanted=True)
    lines = [line.split() for line in capsys.readouterr().err.splitlines() if line]
    assert lines[0] == ["stage", "seconds", "share"]
    assert lines[1:] == [
        ["preparing", "2.00", "25%"],
        ["first", "6.00", "75%"],
        ["together", "8.00", "100%"],
    ]


def test_a_command_gives_its_stages_in_json_and_on_stderr() -> None:
    """The report on stdout is the same with and without them."""
    command = ["compare", "hopper:HMMA.16816.F32", "ampere:HMMA.16816.F32", "--budget", "300"]
    plain, timed, text = (
        CliRunner().invoke(app.app, [*command, *more])
        for more in (["--json"], ["--json", "--timings"], ["--timings"])
    )
    assert (plain.exit_code, timed.exit_code, text.exit_code) == (0, 0, 0)
    data = json.loads(timed.stdout)
    stages = data.pop("timings")
    assert data == json.loads(plain.stdout)
    named = [row["stage"] for row in stages if row["stage"] != "preparing"]  # nothing, where specs are read
    assert named == ["searching", "looking for the smallest operands"]
    assert sum(row["share"] for row in stages) == pytest.approx(1.0, abs=0.001)
    assert "together" in text.stderr and "together" not in text.stdout
