"""What several tests of hw_capture share."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw_capture.kernels import toolchain


@pytest.fixture(scope="session")
def _kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def nvcc(_kernel_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where kernels cannot be compiled and disassembled; the cache is new."""
    if not toolchain.find("nvcc"):
        pytest.skip("nvcc is not installed: no kernel is compiled")
    if not (toolchain.find("nvdisasm") or toolchain.find("cuobjdump")):
        pytest.skip("neither nvdisasm nor cuobjdump is installed: no kernel is disassembled")
    monkeypatch.setenv("MMAGOLD_CACHE", str(_kernel_cache))
