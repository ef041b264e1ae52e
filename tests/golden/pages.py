"""Runs the code of a Markdown page: what the page shows is what happens.

The blocks of a page run in order in one temporary folder that sees the repository's folders, so that a
tutorial can build on the step before. What the word after the fence means:

    ```python             runs; all blocks of a page share their names. A ```text block right below shows what it prints
    ```console            lines "$ command" run in bash, the lines below show what it prints; status 0, or 1 where that begins
                          with FAIL; ```console status=2 says another for the last command
    ```console slow       takes longest: run in `make test-all` alone; else as if it were no-run
    ```console no-run     needs a GPU, a tool that CI lacks, or minutes: the command and its options exist
    ```python no-run      compiles, and what it imports exists
    ```yaml file=NAME     is saved under that name (any language); ```yaml without a name has to be YAML
    ```text, ```systemverilog, ```c  are shown

In output "..." stands for anything.
"""  # noqa: E501

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
import traceback
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from golden.errors import DocsError, ToolMissing
from golden.publish.guides import Block, blocks, commands

ROOT = Path(__file__).resolve().parents[2]
SHARED = ("rtl_tb", "spec", "vectors", "docs", "Makefile")
SHOWN = ("text", "systemverilog", "c")
# Other people's commands: not checked.
OUTSIDE = ("apt-get", "cd", "git", "iverilog", "ln", "python3", "source", "testfloat_gen")


class PageError(AssertionError):
    """A block that does not do what the page says; the message begins with file and line."""


def tidy(text: str) -> str:
    """Without spaces at line ends and empty lines at either end."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def same(shown: str, got: str) -> bool:
    """Whether the output is the one shown, in which "..." stands for anything."""
    return doctest.OutputChecker().check_output(tidy(shown), tidy(got), doctest.ELLIPSIS)


TERMINAL = (
    "CI",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LANGUAGE",
    "LINES",
    "PY_COLORS",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)
"""Variables that would have commands print for a terminal, or in another language."""


def environment() -> dict[str, str]:
    """120 columns, no colours, English in UTF-8, this Python's commands first,
    the repository's packages importable."""
    values = {name: value for name, value in os.environ.items() if name not in TERMINAL}
    values |= {
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "LC_ALL": "C",
        "PYTHONUTF8": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    values["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{values['PATH']}"
    values["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return values


@dataclass
class PageRun:
    """One page and the folder that its blocks share."""

    name: str
    text: str
    folder: Path
    slow: bool = True
    """Whether blocks that are slow are run, too."""
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    ran: int = 0

    def run(self) -> None:
        """Runs every block.

        Raises:
            PageError: the first block that fails, prints something else, or is of an unknown kind.
        """
        for name in SHARED:
            (self.folder / name).symlink_to(ROOT / name)
        found = list(blocks(self.text))
        for index, block in enumerate(found):
            after = found[index + 1] if index + 1 < len(found) and found[index + 1].below else None
            try:
                self._block(block, after.body if after is not None and after.language == "text" else None)
            except (DocsError, PageError) as error:
                raise PageError(f"{self.name}:{block.line}: {error}") from None

    def _block(self, block: Block, output: str | None) -> None:
        if (name := block.flag("file")) is not None:
            (self.folder / name).write_text(block.body, "utf-8")
        if block.language == "python":
            check_python(block.body) if "no-run" in block.flags else self._python(block, output)
        elif block.language == "console":
            found, left = commands(block), {"no-run"} if self.slow else {"no-run", "slow"}
            for command, shown in found:
                status = block.flag("status") if command == found[-1][0] else None
                check_command(command) if left & set(block.flags) else self._command(command, shown, status)
        elif block.language == "yaml":
            list(yaml.safe_load_all(block.body))
        elif block.language not in SHOWN:
            raise PageError(
                f"a block of '{block.language}', expected python, console, yaml, {', '.join(SHOWN)}"
            )

    def _python(self, block: Block, shown: str | None) -> None:
        self.ran += 1
        printed = io.StringIO()
        code = compile("\n" * block.line + block.body, self.name, "exec")
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
                exec(code, self.names)
        except Exception:
            raise PageError(traceback.format_exc()) from None
        if shown is not None and not same(shown, printed.getvalue()):
            raise PageError(f"prints\n{printed.getvalue()}\nthe page shows\n{shown}")

    def _command(self, command: str, shown: str, status: str | None) -> None:
        self.ran += 1
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=environment(),
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        expected = int(status) if status is not None else int(shown.startswith("FAIL"))
        if done.returncode != expected:
            raise PageError(f"$ {command}\nhas status {done.returncode}, expected {expected}:\n{done.stdout}")
        if shown.strip() and not same(shown, done.stdout):
            raise PageError(f"$ {command}\nprints\n{done.stdout}\nthe page shows\n{shown}")


# Blocks that are not run ------------------------------------------------------------------------------------


def check_python(code: str) -> None:
    """The code compiles, and everything that it imports from this repository's packages exists."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for module, name in modules:
            if module.split(".")[0] not in ("golden", "rtl_tb", "hw_capture", "mmagold"):
                continue
            try:
                loaded = importlib.import_module(module)
            except ToolMissing:  # an optional package, which another run of the tests has
                continue
            if name is not None and not hasattr(loaded, name):
                importlib.import_module(f"{module}.{name}")


def check_command(command: str) -> None:
    """The command and all of its options exist; nothing is run."""
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words.pop(0)
    program, *arguments = words
    if program == "mmagold":
        _check_mmagold(arguments)
    elif program == "make":
        _check_make(arguments)
    elif program.endswith("pip"):
        _check_pip(arguments)
    elif program.endswith(("python", "pytest")):
        _check_python_call(arguments)
    elif program not in OUTSIDE:
        raise PageError(f"$ {command}\nnobody knows how to check '{program}'")


def _check_mmagold(arguments: list[str]) -> None:
    import typer.main

    from golden.cli.app import app

    command: Any = typer.main.get_command(app)
    name = "mmagold"
    while hasattr(command, "commands"):
        if not arguments or arguments[0] not in command.commands:
            if arguments == ["--help"]:
                return
            raise PageError(
                f"'{name}' has no command '{' '.join(arguments[:1])}', only {', '.join(command.commands)}"
            )
        word, *arguments = arguments
        command, name = command.commands[word], f"{name} {word}"
    try:
        copy(command).make_context(name, arguments)  # it keeps the help option of the context it made
    except Exception as error:  # click's, or typer's copy of it
        message = error.format_message() if hasattr(error, "format_message") else error
        raise PageError(f"{name} {' '.join(arguments)}: {message}") from None


def _check_make(arguments: list[str]) -> None:
    folder = ROOT
    if arguments[:1] == ["-C"]:
        folder, arguments = ROOT / arguments[1], arguments[2:]
    makefile = (folder / "Makefile").read_text("utf-8")
    for target in (word for word in arguments if "=" not in word):
        if not re.search(rf"^{re.escape(target)}:", makefile, re.M):
            raise PageError(f"{folder / 'Makefile'} has no target '{target}'")


def _check_pip(arguments: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in re.findall(r"\[(\w+)\]", " ".join(arguments)):
        if extra not in project["optional-dependencies"]:
            raise PageError(f"pyproject.toml has no extra '{extra}'")


def _check_python_call(arguments: list[str]) -> None:
    if arguments[:1] == ["-m"]:
        if arguments[1] not in ("venv", "pip"):
            importlib.import_module(arguments[1])
        return
    for path in (word.split("::")[0] for word in arguments if word.endswith(".py")):
        if not (ROOT / path).exists():
            raise PageError(f"there is no {path}")
