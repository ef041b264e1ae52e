"""[tool.mmagold] of pyproject.toml: what it chooses, what it may not say; the command line comes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from golden.cli import app
from golden.errors import FileFormatError
from rtl_tb.engines.settings import Settings, settings


def project(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, "utf-8")


def test_the_nearest_table_above_is_taken(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    project(tmp_path, '[tool.mmagold]\nengine = "cocotb"\nsimulator = "icarus"\n')
    project(inner, '[tool.other]\nengine = "fast"\n')  # no table of ours: the tables above count
    assert settings(inner) == Settings("cocotb", "icarus")
    project(tmp_path / "a", '[tool.mmagold]\nengine = "selfcheck"\n')
    assert settings(inner) == Settings("selfcheck", "verilator")
    project(inner, "[tool.mmagold]\n")
    assert settings(inner) == Settings() == Settings("fast", "verilator")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ('[tool.mmagold]\nengin = "fast"\n', "has 'engin', expected engine or simulator; nearest: engine"),
        ('[tool.mmagold]\nengine = "fats"\n', "engine is 'fats', expected one of fast.*nearest: fast"),
        ('[tool.mmagold]\nsimulator = "modelsim"\n', "simulator is 'modelsim', expected one of verilator"),
        ('[tool.mmagold]\nsimulator = "icarus"\n', "fast"),  # the default engine is not for Icarus
        ("[tool.mmagold]\nengine = 3\n", "engine is 3, expected a string"),
        ("[tool]\nmmagold = 3\n", "tool.mmagold is 3, expected a table"),
        ("[tool.mmagold\n", "not valid TOML"),
    ],
)
def test_a_wrong_table_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reported: str
) -> None:
    project(tmp_path, text)
    with pytest.raises(FileFormatError, match=rf"pyproject\.toml: .*{reported}"):
        settings(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app.app, ["rtl", "check", "dut.yaml"], prog_name="mmagold")
    assert done.exit_code == 2 and done.stderr.count("\n") == 1 and "pyproject.toml" in done.stderr


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ([], ("selfcheck", "icarus")),
        (["--sim", "verilator"], ("selfcheck", "verilator")),
        (["--engine", "cocotb"], ("cocotb", "icarus")),
    ],
)
def test_the_command_line_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], chosen: tuple[str, str]
) -> None:
    project(tmp_path, '[tool.mmagold]\nengine = "selfcheck"\nsimulator = "icarus"\n')
    monkeypatch.chdir(tmp_path)
    asked: list[tuple[str, str]] = []

    def check(file: Path, options: Any, progress: Any, listen: Any) -> Any:
        asked.append((options.engine, options.simulator))
        raise FileFormatError("enough")

    monkeypatch.setattr("rtl_tb.check.check.check", check)
    done = CliRunner().invoke(app.app, ["rtl", "check", "dut.yaml", *given], prog_name="mmagold")
    assert done.exit_code == 2 and asked == [chosen], done.output
