"""Triton's interpreter with a chip's arithmetic: in processes of their own, because Triton reads
TRITON_INTERPRET when it is imported."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORDED = [ROOT / "vectors" / "kernels" / f"triton_{name}h200.json" for name in ("", "sums_")]
pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("triton", "torch")),
    reason="Triton or PyTorch is not installed: pip install 'mmagold[triton]'",
)


def python(*words: str, interpret: bool = True) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    more = {"PYTHONPATH": os.pathsep.join(paths), "TRITON_INTERPRET": "1" if interpret else "0"}
    return subprocess.run(
        [sys.executable, *words], env=os.environ | more, cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_operations() -> None:
    ran = python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__).parent / "interpreted.py")
    )
    assert ran.returncode == 0, ran.stdout[-4000:]


def test_launches_give_what_an_h200_answered() -> None:
    """Every fourth recorded launch: the bits, and the instructions that the compiler took; of kernels with
    `tl.sum` alone the bits."""
    ran = python("campaigns/triton_kernels.py", "--compare", *map(str, RECORDED), "--every", "4")
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


def test_triton_has_to_interpret() -> None:
    ran = python("-c", "from mmagold.triton import emulate\nemulate('hopper').__enter__()", interpret=False)
    assert ran.returncode == 1 and "TRITON_INTERPRET is not set, expected" in ran.stderr
