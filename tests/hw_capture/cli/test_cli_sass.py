"""`mmagold sass`: what it prints and how it fails."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from golden.catalog import sass
from golden.catalog.sass import Table
from golden.cli.app import app
from hw_capture.kernels import isolate, toolchain

RUN = CliRunner(env={"COLUMNS": "200"})


def test_one_instruction() -> None:
    text = RUN.invoke(app, ["sass", "min.s32"])
    assert text.exit_code == 0 and "IMNMX" in text.stdout and "sm_75 to sm_89, sm_110a" in text.stdout
    (found,) = json.loads(RUN.invoke(app, ["sass", "min.s32", "--arch", "hopper", "--json"]).stdout)
    assert found["targets"]["sm_90a"]["operands"]["rr"] == {"sass": {"VIMNMX": 1}, "calls": {}}
    (found,) = json.loads(RUN.invoke(app, ["sass", "mul.lo.u32", "--arch", "sm_80", "--json"]).stdout)
    assert found["targets"]["sm_80"]["operands"]["rz"] == {"constant": True}
    assert "refused: Feature" in RUN.invoke(app, ["sass", "add.f32x2", "--arch", "turing"]).stdout


def test_the_list_and_the_paper() -> None:
    assert "Video, one value" in RUN.invoke(app, ["sass"]).stdout
    assert "mad.lo.u32" in json.loads(RUN.invoke(app, ["sass", "--json"]).stdout)["Integer multiplication"]
    text = RUN.invoke(app, ["sass", "--paper"]).stdout
    assert "4. many PTX instructions" in text and "several, as printed" in text
    assert len(json.loads(RUN.invoke(app, ["sass", "--paper", "--json"]).stdout)["table V"]) == 110


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mad.lo.u31"], "no scalar PTX instruction 'mad.lo.u31'; nearest: mad.lo.u32"),
        (["mad.lo.u32", "--arch", "sm_91"], "no SASS recorded for 'sm_91', expected one of sm_75"),
        (["mad.lo.u32", "--arch", "hoper"], "unknown architecture 'hoper'"),
    ],
)
def test_what_does_not_exist_is_one_line(arguments: list[str], said: str) -> None:
    result = RUN.invoke(app, ["sass", *arguments])
    assert result.exit_code == 2 and said in result.stderr and result.stderr.count("\n") == 1


def test_ways_that_do_not_go_together() -> None:
    result = RUN.invoke(app, ["sass", "mad.lo.u32", "--check"])
    assert result.exit_code == 2 and "a name and --check cannot be combined" in result.stderr
    result = RUN.invoke(app, ["sass", "--out", "folder"])
    assert result.exit_code == 2 and "can be used only with --rebuild" in result.stderr


def test_without_a_compiler_check_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find", lambda tool: None)
    result = RUN.invoke(app, ["sass", "--check", "--arch", "sm_90a"])
    assert result.exit_code == 2 and "ptxas not found on PATH" in result.stderr


def _compiler(monkeypatch: pytest.MonkeyPatch, fresh: Table) -> None:
    """A compiler that makes `fresh`."""
    monkeypatch.setattr(isolate, "translate", lambda listed, target: replace(fresh, target=target))


def test_check_is_1_for_a_difference_and_0_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    table = sass.load("sm_90a")
    _compiler(monkeypatch, table)
    same = RUN.invoke(app, ["sass", "--check", "--arch", "sm_90a"])
    assert same.exit_code == 0 and f"sm_90a: {len(table.rows)} rows, none differ" in same.stdout
    rows = dict(table.rows)
    rows["mad.lo.u32", "rrr"] = replace(rows["mad.lo.u32", "rrr"], sass="FFMA")
    _compiler(monkeypatch, replace(table, rows=rows, ptxas="14.1.2"))
    other = RUN.invoke(app, ["sass", "--check", "--arch", "sm_90a"])
    assert other.exit_code == 1
    assert "ptxas is 14.1.2, the table was made with 13.0.88" in other.stdout
    assert "mad.lo.u32 (rrr): IMAD was recorded, now FFMA" in other.stdout


def test_rebuild_writes_to_the_given_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _compiler(monkeypatch, sass.load("sm_90a"))
    result = RUN.invoke(app, ["sass", "--rebuild", "--arch", "sm_90a", "--out", str(tmp_path)])
    assert result.exit_code == 0 and "ptxas 13.0.88" in result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sm_90a.csv", "sm_90a.yaml"]
    shutil.rmtree(tmp_path)
    (tmp_path).write_text("a file", "utf-8")
    result = RUN.invoke(app, ["sass", "--rebuild", "--arch", "sm_90a", "--out", str(tmp_path)])
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
