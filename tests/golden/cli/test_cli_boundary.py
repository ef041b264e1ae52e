"""The edge of the command: whatever goes wrong inside, it is one line and a status, and never one that
looks like a verdict."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from interrupts import hears_signals
from long_run import long_after
from typer.testing import CliRunner

from golden import boundary
from golden.cli import app

ROOT = Path(__file__).parents[3]
HMMA = "hopper:HMMA.16816.F32"


def planted(fault: str, *arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own after the statements `fault`."""
    return subprocess.run(
        script(fault, *arguments), capture_output=True, text=True, check=False, cwd=ROOT, **settings
    )


def script(fault: str, *arguments: str) -> list[str]:
    code = (
        f"{fault}\nimport sys\nsys.argv = ['mmagold', *sys.argv[1:]]\nfrom golden.cli.app import main\nmain()"
    )
    return [sys.executable, "-c", code, *arguments]


def raising(error: BaseException) -> Any:
    def function(*_args: Any, **_given: Any) -> Any:
        raise error

    return function


# Exceptions -------------------------------------------------------------------------------------------------

FOREIGN = [
    AttributeError("'NoneType' object has no attribute 'bits'"),
    RecursionError("maximum recursion depth exceeded"),
    AssertionError(),
    EOFError("Ran out of input"),
    BrokenPipeError(32, "Broken pipe"),
    SystemExit(0),
    SystemExit(1),
    SystemExit(None),
    GeneratorExit(),
    KeyError("a"),
    UnicodeEncodeError("ascii", "積", 0, 1, "ordinal not in range"),
    RuntimeWarning("overflow encountered in cast"),
    StopIteration(),
    BaseException("two\nlines"),
]


@pytest.mark.parametrize("error", long_after(3, FOREIGN), ids=lambda error: type(error).__name__)
def test_no_internal_error_looks_like_a_verdict(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golden.cli.lists.print_overview", raising(error))
    done = CliRunner().invoke(app.app, ["list"])
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith("mmagold: internal error: ") and len(done.stderr.splitlines()) == 1
    assert "MMAGOLD_TRACEBACK=1" in done.stderr and "(golden/cli/app.py:" in done.stderr


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "mmagold: interrupted\n"),
        (typer.Abort(), 130, "mmagold: interrupted\n"),
        (
            MemoryError("Unable to allocate 7 TiB"),
            2,
            "mmagold: not enough memory: Unable to allocate 7 TiB\n",
        ),
        (
            FileNotFoundError(2, "No such file or directory", "x.json"),
            2,
            "mmagold: x.json: No such file or directory\n",
        ),
        (OSError(28, "No space left on device"), 2, "mmagold: the output: No space left on device\n"),
    ],
    ids=str,
)
def test_what_is_foreseen_has_its_own_line(
    error: BaseException, status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golden.cli.lists.print_overview", raising(error))
    done = CliRunner().invoke(app.app, ["list"])
    assert (done.exit_code, done.stdout, done.stderr) == (status, "", said)


@pytest.mark.parametrize(
    ("place", "arguments"),
    long_after(
        8,
        [
            ("golden.catalog.architectures.architectures", ["list"]),
            ("golden.yamlfile.read", ["spec", "check", "spec/examples/late_c.yaml"]),
            ("golden.catalog.lookup.load_instruction", ["show", "spec/examples/late_c.yaml"]),
            ("golden.vectors.operand_files.from_text", ["explain", HMMA, "--a", "1"]),
            ("golden.model.engine.Engine.dots", ["compare", HMMA, HMMA, "--budget", "10"]),
            ("golden.explain.specification.specification", ["show", HMMA, "--json"]),
            ("golden.vectors.files.write_stream", ["vectors", HMMA, "--out", "never.hex"]),
            ("golden.studies.run", ["study", "cdna3-rounding"]),
            ("golden.publish.stale.changes", ["docs", "check", "site"]),
            (
                "hw_capture.record.verify.verify",
                ["verify", "vectors", "--only", "m8n8k16.row.col.s32.s8.s8.s32$"],
            ),
            ("hw_capture.record.placement_faults.plant", ["verify", "vectors", "--layouts"]),
            ("golden.identify.probe.numeric_profile.profile", ["profile"]),
            ("hw_capture.timing.compare.pairs", ["timing", "compare"]),
            ("rtl_tb.check.check.check", ["rtl", "check", "rtl_tb/rtl/duts/fda_hopper_f16.yaml"]),
            ("rtl_tb.qualify.qualification.qualify", ["rtl", "qualify"]),
            ("rtl_tb.doctor.doctor", ["doctor"]),
        ],
    ),
)
def test_a_fault_in_any_layer_is_status_2(
    place: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    errors = (AttributeError("planted"), SystemExit(1)) if arguments == ["list"] else (SystemExit(1),)
    for error in errors:
        monkeypatch.setattr(place, raising(error))
        done = CliRunner().invoke(app.app, arguments)
        assert done.exit_code == 2 and done.stderr.startswith("mmagold: internal error: "), (
            done.output,
            done.exception,
        )


def test_a_warning_that_is_an_error_is_no_verdict() -> None:
    fault = (
        "import warnings, golden.cli.lists as lists\nlists.print_overview = lambda: warnings.warn('planted')"
    )
    done = planted(fault, "list", env=os.environ | {"PYTHONWARNINGS": "error::UserWarning"})
    assert (
        done.returncode == 2 and "UserWarning: planted" in done.stderr and len(done.stderr.splitlines()) == 1
    )


def test_the_traceback_is_there_for_who_asks() -> None:
    fault = "import golden.cli.lists\ngolden.cli.lists.print_overview = lambda: 1 / 0"
    short = planted(fault, "list")
    long = planted(fault, "list", env=os.environ | {boundary.TRACEBACK: "1"})
    assert short.returncode == long.returncode == 2
    assert len(short.stderr.splitlines()) == 1 and long.stderr.startswith("Traceback (most recent call last)")
    assert long.stderr.endswith(short.stderr)


def test_an_exception_while_the_command_line_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, status in ((EOFError(), 2), (SystemExit(1), 2), (KeyboardInterrupt(), 130)):
        monkeypatch.setattr("golden.cli.app._Group.parse_args", raising(error))
        assert CliRunner().invoke(app.app, ["list"]).exit_code == status


def test_what_a_command_returns_is_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app._Group.__mro__[1], "invoke", lambda *_: 1)
    assert CliRunner().invoke(app.app, ["list"]).exit_code == 0


def test_completion_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"_MMAGOLD_COMPLETE": "complete_bash", "COMP_WORDS": "mmagold docs ", "COMP_CWORD": "2"}
    done = planted("", env=os.environ | asked)
    assert (done.returncode, done.stdout.split()) == (0, ["build", "check", "explorer", "export", "notebook"])


# An installation that is not whole --------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["numpy", "typer", "yaml"])
def test_a_package_that_cannot_be_imported_is_status_2(package: str, tmp_path: Path) -> None:
    """Python itself ends with status 1 there."""
    (tmp_path / f"{package}.py").write_text(
        "raise ImportError('libfoo.so.3: cannot open shared object file')"
    )
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import mmagold; mmagold.main()",
        tmp_path,
    ]
    done = subprocess.run([*command, "list"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2 and done.stdout == ""
    assert (
        done.stderr.startswith("mmagold: cannot start: ImportError: libfoo.so.3")
        and len(done.stderr.splitlines()) == 1
    )


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mmagold", "show", "x"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 2 and done.stderr.startswith("mmagold: unknown instruction 'x'")
    entry = 'mmagold = "mmagold:main"'
    assert entry in (ROOT / "pyproject.toml").read_text("utf-8")


# Signals ----------------------------------------------------------------------------------------------------

WRITES = """
import golden.cli.lists, os, time
from golden.files.output import write_whole
def fill(stream):
    stream.write(b"half")
    stream.flush()
    print("ready", flush=True)
    time.sleep(60)
golden.cli.lists.print_overview = lambda: write_whole("whole.txt", fill)
"""


def signalled(number: int, folder: Path, fault: str = WRITES, before: str = "") -> tuple[int, str]:
    """Status and stderr of a command that gets a signal while it writes a file."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    pipes |= {"cwd": folder, "env": environment, "preexec_fn": hears_signals}
    with subprocess.Popen(script(before + fault, "list"), **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        return process.returncode, said


@pytest.mark.parametrize(
    ("number", "status", "said"),
    long_after(
        1,
        [
            (signal.SIGTERM, 143, "terminated"),
            (signal.SIGHUP, 129, "hung up"),
            (signal.SIGINT, 130, "interrupted"),
        ],
    ),
)
def test_signals_clean_up(number: int, status: int, said: str, tmp_path: Path) -> None:
    assert signalled(number, tmp_path) == (status, f"mmagold: {said}\n")
    assert not list(tmp_path.iterdir())


def test_nohup_stays_nohup(tmp_path: Path) -> None:
    ignored = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    fault = ignored + WRITES.replace("time.sleep(60)", "time.sleep(0.5)")
    assert signalled(signal.SIGHUP, tmp_path, fault) == (0, "")
    assert (tmp_path / "whole.txt").read_bytes() == b"half"


def test_a_second_signal_does_not_stop_the_cleaning_up(tmp_path: Path) -> None:
    slow = WRITES.replace(
        "    time.sleep(60)", "    try:\n        time.sleep(60)\n    finally:\n        again()"
    )
    again = (
        "import os, signal\ndef again():\n    os.kill(os.getpid(), signal.SIGTERM)\n    print('cleaned')\n"
    )
    assert signalled(signal.SIGTERM, tmp_path, again + slow) == (143, "mmagold: terminated\n")
    assert not list(tmp_path.iterdir())


def test_a_forked_child_dies_of_its_signal(tmp_path: Path) -> None:
    """multiprocessing ends its workers with SIGTERM: no clean-up of the parent's in them, no traceback."""
    fault = """
import golden.cli.lists, os, signal, time
def work():
    child = os.fork()
    if not child:
        time.sleep(60)
    time.sleep(0.5)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
golden.cli.lists.print_overview = work
"""
    done = planted(fault, "list", timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "-15\n", "")


# Standard streams -------------------------------------------------------------------------------------------


def in_shell(command: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of shell in which "$@" is the command."""
    words = ["bash", "-c", command, "bash", *script("", *arguments)]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | environment
    )


@pytest.mark.parametrize(
    "arguments",
    long_after(
        1, [["show", HMMA], ["timing", "compare"], ["--help"], ["list"], ["list", "--json"], ["formats"]]
    ),
)
def test_a_reader_that_goes_is_no_verdict(arguments: list[str]) -> None:
    """`mmagold list | head`: click would end with status 1, rich as well."""
    done = in_shell('exec 3> >(exec true); sleep 0.2; "$@" >&3', *arguments)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_broken_pipe_to_another_program_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golden.cli.lists.print_overview", raising(BrokenPipeError(32, "Broken pipe")))
    assert "internal error: BrokenPipeError" in CliRunner().invoke(app.app, ["list"]).stderr


@pytest.mark.parametrize(
    "arguments",
    long_after(1, [["--version"], ["show", HMMA, "--json"], ["list"], ["list", "--json"], ["formats"]]),
)
def test_closed_and_full_output_is_an_error(arguments: list[str]) -> None:
    closed, full = in_shell('"$@" >&-', *arguments), in_shell('"$@" >/dev/full', *arguments)
    assert (closed.returncode, closed.stderr) == (2, "mmagold: the output: Bad file descriptor\n")
    assert (full.returncode, full.stderr) == (2, "mmagold: the output: No space left on device\n")


def test_a_closed_stream_gives_its_number_to_no_file(tmp_path: Path) -> None:
    """A file that is opened while 1 is free gets number 1, and with it whatever is printed."""
    out = tmp_path / "unit.yaml"
    for closed in (">&-", "<&- >&- 2>&-"):
        assert in_shell(f'"$@" {closed}', "export", "yaml", HMMA, "--out", str(out)).returncode == 0
        assert out.read_text("utf-8").startswith("unit: mma_sync")
    assert in_shell('"$@" 2>&- >&-', "show", "nothing").returncode == 2


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}


def test_a_stream_takes_any_text() -> None:
    """Characters that the terminal lacks, and bytes of a file name that are no text."""
    done = in_shell('"$@" "$(printf "caf\\351.yaml")"', "show", **ASCII)
    assert (done.returncode, done.stderr) == (
        2,
        "mmagold: caf\\udce9.yaml: cannot be read: No such file or directory\n",
    )


# Programs next to the command -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "place", "error", "said"),
    [
        (
            "golden.vectors.captured",
            "golden.files.inputs.parse_json",
            "golden.errors.FileFormatError('x.md: is none')",
            "x.md: is none\n",
        ),
        ("golden.publish.schema", "golden.paths.docs_folder", "KeyError('x')", "internal error: KeyError"),
    ],
)
def test_programs_that_write_files_of_the_checkout_end_with_a_line(
    module: str, place: str, error: str, said: str
) -> None:
    code = (
        f"import runpy, golden.errors, unittest.mock\n"
        f"unittest.mock.patch('{place}', side_effect={error}).start()\n"
        f"import sys; sys.argv = ['x', '--check'][: 1 + {module.endswith('captured')}]\n"
        f"runpy.run_module('{module}', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"{module}: {said}")
