"""On a machine with an NVIDIA GPU and PyCUDA: kernels run and give what the model says; elsewhere skipped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

import golden
from golden.catalog import architectures
from golden.cli.app import app
from golden.errors import OperandError
from golden.vectors import captured
from hw_capture.errors import DeviceError, HwError
from hw_capture.gpu import device
from hw_capture.gpu.device import Device
from hw_capture.kernels import buffers, kernels, tiles, toolchain
from hw_capture.record import runner
from hw_capture.record.verify import verify

pytestmark = pytest.mark.usefixtures("nvcc")
Bits = npt.NDArray[Any]
TRAP = 'extern "C" __global__ void run() { asm volatile("trap;"); }'
FAULT = f"""
from hw_capture.errors import DeviceError
from hw_capture.gpu import device
from hw_capture.kernels import toolchain
with device.open() as gpu:
    number = "".join(map(str, gpu.compute_capability))
    kernel = gpu.load(toolchain.compile({TRAP!r}, f"sm_{{number}}")).get("run")
    try:
        kernel(grid=1, block=32)
    except DeviceError as error:
        print("caught:", error)
"""


@pytest.fixture
def gpu() -> Iterator[Device]:
    try:
        opened = device.open()
    except HwError as error:
        pytest.skip(f"no GPU to run on: {error}")
    with opened:
        yield opened


def architecture(gpu: Device) -> tuple[str, str]:
    """The spec's architecture of the GPU and its target."""
    number = "sm_" + "".join(map(str, gpu.compute_capability))
    for name in architectures.architectures():
        for target in architectures.get_architecture(name).targets:
            if target.rstrip("af") == number:
                return name, target
    pytest.skip(f"no architecture of the spec is {number}")


def test_the_facts_name_no_serial_number(gpu: Device) -> None:
    facts = gpu.facts()
    assert facts["sm_count"] > 0 and facts["driver"] != "unknown"
    assert not {"uuid", "serial", "pci", "host"} & {key.lower() for key in facts}


@pytest.mark.parametrize(
    "family", ["mma_f16", "mma_sp_f16", "mma_m8n8k4_f16", "mma_s8", "wmma_f16", "wgmma_f16", "wgmma_sp_s8"]
)
def test_a_kernel_gives_what_the_model_says(gpu: Device, family: str) -> None:
    name, target = architecture(gpu)
    found = [
        ins
        for ins in golden.instructions(name)
        if ins.family == family and (ins.layout != "wgmma" or ins.n == 24)
    ]
    if not found:
        pytest.skip(f"{name} has no {family}")
    operands, _, _ = tiles.draw(found[0], 11)
    for form in kernels.forms(found[0]):
        module = gpu.load(toolchain.compile(kernels.source(found[0], form), target))
        for fill in runner.INITIAL_BYTES:
            d = runner.execute(gpu, module, "run", found[0], form, operands, fill)
            assert runner.differing(d, found[0](**operands), form) == 0


@pytest.mark.parametrize("selector", [1, 2, 3])
@pytest.mark.parametrize(
    ("family", "k"),
    [
        ("mma_sp_f16", 16),
        ("mma_sp_f16", 32),
        ("mma_sp_bf16", 16),
        ("mma_sp_tf32", 8),
        ("mma_sp_tf32", 16),
        ("mma_sp_s8", 32),
        ("mma_sp_s4", 64),
        ("wgmma_sp_f16", 32),
        ("wgmma_sp_tf32", 16),
    ],
)
def test_another_selector_takes_the_metadata_of_other_lanes(
    gpu: Device, monkeypatch: pytest.MonkeyPatch, family: str, k: int, selector: int
) -> None:
    """The lanes that the selector does not name hold other metadata, which must not be read."""
    name, target = architecture(gpu)
    found = [ins for ins in golden.instructions(name) if (ins.family, ins.k) == (family, k) and ins.n <= 24]
    if not found:
        pytest.skip(f"{name} has no {family} of K = {k}")
    ins = found[-1]
    plain = kernels.fragments(ins).metadata
    try:
        chosen = plain.select(selector=selector)
    except OperandError:
        pytest.skip(f"{ins.name} has no selector {selector}")
    form = kernels.forms(ins)[0]
    given = buffers.for_kernel(ins, form)
    operands, _, _ = tiles.draw(ins, 48 + selector)

    def pack(metadata: Bits) -> Bits:
        unread = np.roll(metadata, 1, axis=0)  # valid, and of another tile
        return np.asarray(chosen.pack(metadata) | plain.pack(unread))

    given["metadata"] = replace(given["metadata"], pack=pack)
    monkeypatch.setattr(buffers, "for_kernel", lambda *_: given)
    text = kernels.source(ins, form)
    text, changed = re.subn(r"(%\d+), (0x0|0)(?=[,;])", rf"\1, {selector}", text, count=1)
    assert changed == 1
    module = gpu.load(toolchain.compile(text, target))
    d = runner.execute(gpu, module, "run", ins, form, operands, runner.INITIAL_BYTES[0])
    assert runner.differing(d, ins(**operands), form) == 0


def test_too_much_memory_is_one_error(gpu: Device) -> None:
    with pytest.raises(DeviceError, match="not enough free memory"):
        gpu.empty(1 << 50)
    assert gpu.download(gpu.upload(np.arange(4, dtype=np.uint32)), (4,), np.uint32).tolist() == [0, 1, 2, 3]


def test_there_is_no_gpu_99(gpu: Device) -> None:
    with pytest.raises(DeviceError, match="there is no GPU 99"):
        device.open(99)


def test_a_kernel_that_traps_is_one_error(gpu: Device) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=120, check=False
    )
    assert "caught: kernel run: " in done.stdout, done.stderr


def test_another_architecture_is_refused(gpu: Device, tmp_path: Path) -> None:
    other = "ampere" if architecture(gpu)[0] != "ampere" else "hopper"
    result = CliRunner().invoke(app, ["capture", "--arch", other, "--out", str(tmp_path / "x")])
    assert result.exit_code == 2 and "name its architecture with --arch" in result.output
    assert not (tmp_path / "x").exists()


def test_ctrl_c_leaves_valid_files_and_the_next_call_goes_on(gpu: Device, tmp_path: Path) -> None:
    name, _ = architecture(gpu)
    folder = tmp_path / name
    command = [
        sys.executable,
        "-m",
        "golden.cli.app",
        "capture",
        "--arch",
        name,
        "--only",
        "^mma",
        "--jobs",
        "2",
        "--out",
        str(folder),
    ]
    running = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"MMAGOLD_CACHE": str(tmp_path)}
    )
    deadline = time.monotonic() + 120
    while len(list(folder.glob("*.npz"))) < 20 and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    assert "interrupted" in running.communicate(timeout=60)[1] and running.returncode == 130
    before = len(captured.read_manifest(name, tmp_path)["instructions"])
    assert before >= 16 and verify(tmp_path).passed
    again = CliRunner().invoke(app, ["capture", "--arch", name, "--only", "^mma", "--out", str(folder)])
    assert again.exit_code == 0 and f"{before} already there" in again.output
    assert verify(tmp_path).passed
