"""The special-function unit on a GPU: the machine code that the spec states, and a GPU that answers wrong."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from golden.cli.app import app
from golden.functions.functions import functions
from golden.functions.recorded import GROUPS, digest, recorded
from hw_capture.campaign import functions as measured
from hw_capture.errors import DeviceError
from hw_capture.gpu import device
from hw_capture.kernels import sass, toolchain

_SHOWN = re.compile(r"(@!?P\d )?(MUFU\.\S+|FMUL\S*|FADD\S*|FSEL\S*|FSETP\S*) ([^;\n]*)")


@pytest.mark.usefixtures("nvcc")
def test_ptxas_makes_what_the_spec_states() -> None:
    """Operations, constants, magnitudes and predicates of every function, in whatever registers."""
    names = measured.names("hopper")
    cubin = toolchain.compile(measured.source("hopper", names), "sm_90a")
    bodies = sass.functions(toolchain.disassemble(cubin))
    for name in names:
        body = "\n".join(bodies["answer_" + measured.c_name(name).removeprefix("mg_")])
        found = Counter(_shape(*match) for match in _SHOWN.findall(body))
        lines = "\n".join(functions("hopper")[name].sass)
        stated = Counter(_shape(*match) for match in _SHOWN.findall(lines))
        if functions("hopper")[name].packed:  # once for each half
            stated = Counter({key: 2 * count for key, count in stated.items()})
        assert found == stated, name


def _shape(predicate: str, name: str, operands: str) -> tuple[bool, str, tuple[str, ...]]:
    """An instruction without its registers."""
    kept = []
    for operand in operands.split(", "):
        operand = operand.strip().removesuffix(".reuse").replace(".reuse", "").removesuffix(".H1")
        kept.append(re.sub(r"R\d+", "R", re.sub(r"P\d", "P", operand)))
    return bool(predicate), name, tuple(kept)


class _Buffer:
    def __init__(self, data: np.ndarray) -> None:
        self.data = data


class _Gpu:
    """Answers with the model; `wrong`: codes for which one bit differs; `lost`: codes that it leaves out."""

    def __init__(self, wrong: tuple[int, ...] = (), lost: int = 0) -> None:
        self.wrong, self.lost = wrong, lost

    def __enter__(self) -> _Gpu:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def facts(self) -> dict[str, Any]:
        return {"name": "a GPU", "compute_capability": "9.0"}

    def load(self, cubin: bytes) -> _Gpu:
        assert cubin
        return self

    def get(self, name: str) -> Any:
        kind, _, own = name.partition("_")
        function = next(f for n, f in functions("hopper").items() if measured.c_name(n) == f"mg_{own}")

        def compare(found: _Buffer, digests: _Buffer, grid: int, block: int) -> None:
            assert grid * (1 << 18) >= 1 << function.width and block
            found.data[0] = (1 << function.width) - self.lost
            found.data[1] = len(self.wrong)
            found.data[2 : 2 + len(self.wrong)] = self.wrong
            codes = np.arange(4, dtype=np.uint32)
            digests.data[0] = digest(codes, codes)

        def answer(codes: _Buffer, results: _Buffer, count: int, grid: int, block: int) -> None:
            assert count == codes.data.size and grid and block
            results.data[:] = function(codes.data.astype(f"uint{function.width}"))

        return compare if kind == "compare" else answer

    def empty(self, nbytes: int, fill: int | None = None) -> _Buffer:
        kind = np.uint32 if fill is None else np.uint64
        return _Buffer(np.zeros(nbytes // np.dtype(kind).itemsize, kind))

    def upload(self, data: np.ndarray) -> _Buffer:
        return _Buffer(data.copy())

    def download(self, buffer: _Buffer, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        assert buffer.data.shape == shape and buffer.data.dtype == dtype
        return buffer.data


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "compile", lambda source, target: source.encode())
    monkeypatch.setattr(toolchain, "require", lambda tool: tool)
    monkeypatch.setattr(toolchain, "version", lambda tool: "13.0")


def _run(monkeypatch: pytest.MonkeyPatch, gpu: _Gpu, *arguments: str) -> Any:
    monkeypatch.setattr(device, "open", lambda index=0: gpu)
    return CliRunner().invoke(app, ["capture-functions", "--only", "tanh", *arguments])


@pytest.mark.usefixtures("no_compiler")
def test_an_archive_holds_what_the_gpu_answered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "unit.npz"
    done = _run(monkeypatch, _Gpu(), "--out", str(path))
    assert done.exit_code == 0, done.output
    assert "tanh.approx.f32: 0 of 4,294,967,296 results differ" in done.stdout
    assert "tanh.approx.bf16: 0 of 65,536 results differ" in done.stdout
    found = recorded(path)
    assert found.digests.keys() == {"tanh.approx.f32", "tanh.approx.f16x2", "tanh.approx.bf16x2"}
    assert all(len(digests) == GROUPS for digests in found.digests.values())
    assert (
        found.codes["tanh.approx.f16"].size == 1 << 16 and found.codes["tanh.approx.f32"].size == 8 * GROUPS
    )
    manifest = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert manifest["device"]["name"] == "a GPU" and manifest["functions"].keys() == found.words.keys()


@pytest.mark.usefixtures("no_compiler")
def test_a_difference_ends_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    done = _run(monkeypatch, _Gpu(wrong=(0x3F800000, 7)))
    assert done.exit_code == 1
    assert "2 of 4,294,967,296 results differ, the first at 0x3f800000, 0x7" in done.stdout


@pytest.mark.usefixtures("no_compiler")
def test_a_code_that_was_not_compared_is_an_error() -> None:
    with pytest.raises(DeviceError, match=r"compared 4294967295 codes, expected 4294967296"):
        measured.sweep(_Gpu(lost=1), "hopper", "tanh.approx.f32", "sm_90a")  # type: ignore[arg-type]


def test_a_pattern_without_a_function_is_refused() -> None:
    done = CliRunner().invoke(app, ["capture-functions", "--only", "sinh"])
    assert done.exit_code == 2 and "no function of hopper matches 'sinh'" in (done.output + done.stderr)
