"""The campaign of bench/cores.py, with this build as the other one: what its options may be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def cores(*options: str) -> subprocess.CompletedProcess[str]:
    core = ROOT / "golden" / "libmmagold_core.so"
    words = [sys.executable, ROOT / "bench" / "cores.py", core, "--jobs", "1", *options]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_without_random_units() -> None:
    done = cores("--units", "0", "--dots", "1", "--only", "no way at all")
    assert done.returncode == 0 and "0 differing" in done.stdout, done.stderr


@pytest.mark.parametrize("option", [("--dots", "0")], ids=" ".join)
def test_what_cannot_be(option: tuple[str, str]) -> None:
    done = cores(*option)
    assert done.returncode == 2 and f"argument {' is '.join(option)}, expected" in done.stderr
