"""Commands of other packages: a plug-in that is missing or broken is one line, and costs no other command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
WHOLE = "hw_capture = hw_capture.cli.app:add_commands\nrtl_tb = rtl_tb.cli:add_commands\n"


def with_entry_points(folder: Path, *arguments: str, plugins: str = "") -> subprocess.CompletedProcess[str]:
    """Runs `python -m mmagold` as if the distribution had these entry points: the first of a name counts."""
    about = folder / "mmagold-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mmagold\nVersion: 0\n")
    (about / "entry_points.txt").write_text(f"[mmagold.commands]\n{plugins}")
    return subprocess.run(
        [sys.executable, "-m", "mmagold", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
    )


def test_a_checkout_without_entry_points_says_what_is_missing(tmp_path: Path) -> None:
    done = with_entry_points(tmp_path, "rtl", "check", "dut.yaml")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(
        "mmagold: No such command 'rtl'. The commands of hw_capture and rtl_tb are not"
    )
    assert "python setup.py build_ext --inplace egg_info" in done.stderr


def test_a_broken_plugin_is_named_where_a_command_is_missing(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise ValueError('[/bold]\\nsecond line')\n")
    done = with_entry_points(tmp_path, "wave", plugins=f"{WHOLE}other = broken:add\n")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "other (broken:add) could not be loaded: ValueError: [/bold] second line" in done.stderr
    assert "not registered" not in done.stderr


def test_a_broken_plugin_costs_no_other_command(tmp_path: Path) -> None:
    """Nor the help, which names it. A plug-in that ends the program is broken, too."""
    (tmp_path / "broken.py").write_text("raise SystemExit(1)\n")
    done = with_entry_points(tmp_path, "--help", plugins=f"{WHOLE}other = broken:add\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f" {name} " in done.stdout for name in ("list", "rtl", "capture", "doctor"))
    assert "The commands of other (broken:add) could not be loaded" in " ".join(done.stdout.split())
