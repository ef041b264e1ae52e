"""The action and the examples for a CI and a container: what they run exists, and a wrong unit fails it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from golden.cli.app import app

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return found


def filled(text: str) -> str:
    """A value of the action with its inputs' defaults."""
    return re.sub(r"\$\{\{ inputs\.(\w+) }}", lambda match: action()["inputs"][match[1]]["default"], text)


STEPS = {step["name"]: step for step in action()["runs"]["steps"]}


def commands() -> list[list[str]]:
    """Every call of mmagold in the action and the examples, as words."""
    lines = [step["run"] for step in STEPS.values() if "run" in step]
    lines.append(json.loads((EXAMPLES / "devcontainer.json").read_text())["postCreateCommand"])
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [shlex.split(part)[1:] for part in parts if part.startswith("mmagold ")]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_commands_of_the_examples_exist(words: list[str]) -> None:
    options = [word for word in words if word.startswith("--")]
    names = words[: 2 if words[0] == "rtl" else 1]
    said = CliRunner().invoke(app, [*names, "--help"], env={"COLUMNS": "200"})
    assert said.exit_code == 0 and all(option in said.stdout for option in options)


def test_the_example_calls_the_action_with_inputs_that_it_has() -> None:
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())
    (step,) = [one for one in workflow["jobs"]["regress"]["steps"] if "/mmagold@" in one["uses"]]
    assert step["with"].keys() <= action()["inputs"].keys()


@pytest.mark.long
def test_a_wrong_unit_fails_the_step_and_leaves_what_the_action_keeps(tmp_path: Path) -> None:
    """Run as a runner does: bash -e in the workspace, the inputs as variables."""
    command = tmp_path / "bin" / "mmagold"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mmagold "$@"\n')
    command.chmod(0o755)
    plan = {
        "units": [str(ROOT / "rtl_tb" / "examples" / "wrong_f" / "dut.yaml")],
        "engines": [{"engine": "fast", "count": 200}],
    }
    (tmp_path / "regress.yaml").write_text(yaml.safe_dump(plan))
    step = STEPS["Check the units"]
    given = {key: filled(value) for key, value in step["env"].items()}
    path = {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env=os.environ | given | path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    kept = STEPS["Keep the report and the capsules"]
    assert kept["if"] == "always()"
    for line in filled(kept["with"]["path"]).split():
        assert list(tmp_path.glob(line)), line
    assert given["OUT"] == filled(STEPS["Keep results and builds"]["with"]["path"])
