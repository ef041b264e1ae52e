"""What README.md shows is what happens: its Python code runs, its commands run, and the output shown is the output."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import golden

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")
# A fenced block and, for Python, the fenced block of output that follows it at once.
BLOCK = re.compile(r"^```(?P<kind>python|console)\n(?P<body>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.M | re.S)
BLOCKS = list(BLOCK.finditer(TEXT))
CODE = [block for block in BLOCKS if block["kind"] == "python"]
COMMANDS = [
    (line, output)
    for block in BLOCKS
    if block["kind"] == "console"
    for line, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block["body"], re.M)
]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


def tidy(text: str) -> str:
    """Without spaces at line ends and empty lines at either end."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def same(shown: str, got: str) -> bool:
    """Whether the output is the one shown, in which "..." stands for anything."""
    return doctest.OutputChecker().check_output(tidy(shown), tidy(got), doctest.ELLIPSIS)


@pytest.mark.parametrize("block", CODE, ids=[f"line{TEXT.count(chr(10), 0, block.start()) + 1}" for block in CODE])
def test_python_block(block: re.Match[str], tmp_path: Path) -> None:
    done = run([sys.executable, "-c", block["body"]], tmp_path)
    assert done.returncode == 0, done.stderr
    if block["output"] is not None:
        assert same(block["output"], done.stdout), done.stdout


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_command(command: str, shown: str, tmp_path: Path) -> None:
    words = shlex.split(command)
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text("utf-8")
        assert all(re.search(rf"^{target}:", makefile, re.M) for target in words[1:])
        return
    (tmp_path / "rtl_tb").symlink_to(ROOT / "rtl_tb")
    done = run(words, tmp_path)
    assert done.returncode == (1 if shown.startswith("FAIL") else 0), done.stdout + done.stderr
    if shown.strip():
        assert same(shown, done.stdout), done.stdout


def test_readme_shows_code_and_commands() -> None:
    assert CODE and COMMANDS


def test_table_of_architectures_is_the_catalog() -> None:
    """Names in order, with the number of instructions of each."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", TEXT, re.M)
    assert rows == [(name, str(len(golden.instructions(name)))) for name in golden.architectures()]
