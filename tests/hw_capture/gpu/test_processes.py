"""Tools that hang, spawn, die and babble: nothing of them is left, whatever ends the wait, and no output
is a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from interrupts import hears_signals
from long_run import long_after

from hw_capture.errors import HwError
from hw_capture.gpu import processes

ROOT = Path(__file__).parents[3]
SPAWNS = '#!/bin/sh\nsleep 60 &\necho $! > "$0.child"\nmv "$0.child" "$0.pid"\nwait\n'
"""As nvcc does: the work is done by a program that it starts."""


def tool(folder: Path, text: str) -> str:
    path = folder / "tool"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def appears(path: Path) -> int:
    for _ in range(2400):
        if path.exists():
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{path} never appeared")


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie that waits for init has."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_what_a_tool_prints_is_text(tmp_path: Path) -> None:
    done = processes.run(
        [tool(tmp_path, "#!/bin/sh\nprintf '\\351'; printf '積' >&2; exit 3\n")], 10, HwError
    )
    assert (done.status, done.output, done.errors) == (3, "\\xe9", "積")
    assert (
        processes.run([tool(tmp_path, "#!/bin/sh\nkill -SEGV $$\n")], 10, HwError).status
        == 128 + signal.SIGSEGV
    )


def test_a_tool_reads_nothing_and_gets_its_arguments_whole(tmp_path: Path) -> None:
    said = tool(tmp_path, '#!/bin/sh\ncat\nfor word in "$@"; do echo "<$word>"; done\n')
    assert processes.run([said, "a b", "", "$(x) '*'"], 10, HwError).output == "<a b>\n<>\n<$(x) '*'>\n"


def test_what_cannot_be_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(HwError, match="nothing cannot be run: "):
        processes.run([str(tmp_path / "nothing")], 10, HwError)


def test_a_tool_that_hangs_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    with pytest.raises(HwError, match=r"^tool gave no answer within 1 s and was stopped$"):
        processes.run([tool(tmp_path, SPAWNS)], 1, HwError)
    assert gone(appears(tmp_path / "tool.pid"))


def test_another_thread_can_stop_a_tool(tmp_path: Path) -> None:
    found: list[int] = []
    path = tool(tmp_path, SPAWNS)
    thread = threading.Thread(target=lambda: found.append(processes.run([path], 60, HwError).status))
    thread.start()
    child = appears(tmp_path / "tool.pid")
    processes.stop_all()
    thread.join(10)
    assert found == [-signal.SIGKILL] and gone(child)


@pytest.mark.parametrize("number", long_after(1, [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP]))
def test_nothing_outlives_the_command(tmp_path: Path, number: int) -> None:
    """`mmagold capture` while nvcc works in one of its threads; SIGKILL leaves it no time to clean up."""
    nvcc = '#!/bin/sh\ncase "$*" in *--version*) echo V13.0.88; exit;; esac\n' + SPAWNS[len("#!/bin/sh\n") :]
    for name in ("nvcc", "nvdisasm"):
        os.rename(tool(tmp_path, nvcc), tmp_path / name)
    (tmp_path / "tmp").mkdir()
    environment = os.environ | {
        "CUDA_HOME": "",
        "MMAGOLD_CACHE": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    environment["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    code = "from golden.cli.app import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "capture",
        "--arch",
        "hopper",
        "--compile-only",
        "--only",
        "m16n8k8.row.col.f32.f16",
    ]
    pipes: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "preexec_fn": hears_signals}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as running:
        child = appears(tmp_path / "nvcc.pid")
        running.send_signal(number)
        _, said = running.communicate(timeout=20)
    assert gone(child)
    if number == signal.SIGKILL:
        return
    assert running.returncode == 128 + number and len(said.splitlines()) == 1
    assert not list((tmp_path / "tmp").iterdir())
