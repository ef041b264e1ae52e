"""The examples for a CI and a container: they can be read, and what they run exists."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from golden.cli.app import app

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def commands():
    """Every call of mmagold in the examples, as words."""
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())
    lines = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    lines.append(json.loads((EXAMPLES / "devcontainer.json").read_text())["postCreateCommand"])
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [shlex.split(part)[1:] for part in parts if part.startswith("mmagold ")]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_commands_of_the_examples_exist(words):
    options = [word for word in words if word.startswith("--")]
    names = words[: 2 if words[0] == "rtl" else 1]
    said = CliRunner().invoke(app, [*names, "--help"], env={"COLUMNS": "200"})
    assert said.exit_code == 0 and all(option in said.stdout for option in options)


def test_the_workflow_keeps_what_a_failure_needs():
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())
    steps = {step.get("uses", "").partition("@")[0]: step for step in workflow["jobs"]["regress"]["steps"]}
    kept = steps["actions/upload-artifact"]
    assert kept["if"] == "always()" and "regress/failures" in kept["with"]["path"]
    (run,) = [words for words in commands() if words[:2] == ["rtl", "regress"]]
    assert run[run.index("--out") + 1] == steps["actions/cache"]["with"]["path"] == "regress"
