"""nvcc and the disassembler found, missing, failing; the cache. Tools are shell scripts where no real one
is needed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from golden.cli.app import app
from hw_capture.errors import CompileError, DeviceError, HwError, ToolMissing
from hw_capture.gpu import device
from hw_capture.kernels import toolchain

KERNEL = 'extern "C" __global__ void run(int *p) { p[0] = 1; }'
NVCC = """#!/bin/sh
case "$*" in *--version*) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit;; esac
echo run >> "$0.log"
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
cp "$1" "$out"
"""


PACKAGE_FOLDERS = toolchain.package_folders


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CUDA_HOME whose nvcc copies its input; nothing else is found."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "package_folders", list)
    monkeypatch.setattr(toolchain, "SYSTEM_FOLDERS", ())
    script(tmp_path, "nvcc", NVCC.replace("cp ", "/bin/cp "))
    toolchain._about.cache_clear()
    return tmp_path


def script(home: Path, name: str, text: str) -> None:
    (home / "bin" / name).write_text(text)
    (home / "bin" / name).chmod(0o755)


def test_a_tool_in_cuda_home_is_found(tools: Path) -> None:
    assert toolchain.find("nvcc") == str(tools / "bin" / "nvcc") and toolchain.find("nvdisasm") is None
    assert toolchain.version(toolchain.require("nvcc")) == "13.0.88"


def test_a_tool_of_a_python_package_is_found(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tools / "site" / "nvidia" / "cu13"
    (package / "bin").mkdir(parents=True)
    script(package, "nvdisasm", "#!/bin/sh\n")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [str(tools / "site")])
        patch.setattr(toolchain, "package_folders", PACKAGE_FOLDERS)
        assert toolchain.find("nvdisasm") == str(package / "bin" / "nvdisasm")


def test_a_missing_tool_says_what_to_install(tools: Path) -> None:
    with pytest.raises(
        ToolMissing, match=r"nvdisasm or cuobjdump not found .* pip install nvidia-cuda-nvdisasm$"
    ):
        toolchain.disassemble(b"")
    (tools / "bin" / "nvcc").unlink()
    result = CliRunner().invoke(app, ["capture", "--arch", "sm_90a", "--compile-only", "--only", "m8n8k4"])
    assert (
        result.exit_code == 2
        and "nvcc not found" in result.output
        and len(result.output.strip().splitlines()) == 1
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--only", "m16n8k17.row.col.f32.f16"],
            "no instruction of hopper matches 'm16n8k17.row.col.f32.f16'; nearest: mma.",
        ),
        (["--only", "^wgmma", "--n", "7"], "no instruction of hopper with a choice of N matches 'n7k'; "),
        (["--arch", "cdna4", "--only", "v_mfma_i32_16x16x64_i8"], "none of the 1 instructions chosen has a "),
        (["--arch", "sm_99"], "no architecture has the target 'sm_99', expected one of sm_70, "),
        (["--arch", "hoper"], "unknown architecture 'hoper'; nearest: hopper"),
        (["--arch", "h200", "--only", "m16n8k17"], "no instruction of hopper matches 'm16n8k17'"),
        (["--arch", "sm_90", "--only", "m16n8k17"], "no instruction of hopper matches 'm16n8k17'"),
        (["--arch", "nvfp4"], "unknown architecture 'nvfp4'; 'nvfp4' is a type"),
    ],
)
def test_a_choice_without_instructions_is_one_line(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["capture", "--compile-only", "--arch", "hopper", *arguments])
    assert (
        result.exit_code == 2
        and result.output.startswith(f"mmagold: {said}")
        and len(result.output.splitlines()) == 1
    )


def test_the_cache_spares_the_second_compilation(tools: Path) -> None:
    log = tools / "bin" / "nvcc.log"
    assert toolchain.compile("one", "sm_90a") == b"one" == toolchain.compile("one", "sm_90a")
    assert log.read_text().count("run") == 1
    toolchain.compile("one", "sm_80")
    toolchain.compile("two", "sm_90a")
    toolchain.compile("two", "sm_90a", ("-DX",))
    assert log.read_text().count("run") == 4


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tools / "file").write_text("")
    monkeypatch.setenv("MMAGOLD_CACHE", str(tools / "file" / "cache"))
    assert toolchain.compile("one", "sm_90a") == b"one"


def test_the_compilers_complaint_is_one_line(tools: Path) -> None:
    script(
        tools,
        "nvcc",
        NVCC.split("echo run")[0]
        + "echo '/tmp/x/unit.cu(3): error: no \"mma\"' >&2; echo more >&2; exit 1\n",
    )
    with pytest.raises(CompileError) as caught:
        toolchain.compile("one", "sm_90a")
    assert str(caught.value) == 'nvcc: unit.cu(3): error: no "mma"'


def test_a_target_must_be_one() -> None:
    with pytest.raises(HwError, match="target is 'hopper', expected sm_"):
        toolchain.compile("", "hopper")


@pytest.mark.usefixtures("nvcc")
def test_a_real_kernel_compiles_and_disassembles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path))
    cubin = toolchain.compile(KERNEL, "sm_90a")
    assert cubin[:4] == b"\x7fELF" and "EXIT" in toolchain.disassemble(cubin)
    with pytest.raises(CompileError, match="identifier"):
        toolchain.compile(KERNEL.replace("p[0]", "q[0]"), "sm_90a")
    with pytest.raises(CompileError, match="Unsupported gpu architecture"):
        toolchain.compile(KERNEL, "sm_70")


# The device -------------------------------------------------------------------------------------------------


class FakeDriver(ModuleType):
    """What PyCUDA's driver is to a machine without a usable GPU."""

    class Error(Exception): ...

    class MemoryError(Error): ...

    def __init__(self, problem: str = "", count: int = 0) -> None:
        super().__init__("pycuda.driver")
        self.problem, self.count = problem, count
        self.Device = self

    def init(self) -> None:
        if self.problem:
            raise self.Error(self.problem)


def pretend(monkeypatch: pytest.MonkeyPatch, driver: ModuleType | None) -> None:
    package = ModuleType("pycuda")
    if driver is not None:
        package.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pycuda", package if driver is not None else None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)


def test_without_pycuda_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, None)
    with pytest.raises(ToolMissing, match='PyCUDA is not installed: pip install "pycuda>='):
        device.open()
    result = CliRunner().invoke(app, ["capture", "--arch", "hopper", "--out", str(tmp_path / "x")])
    assert result.exit_code == 2 and len(result.output.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "problem", ["cuInit failed: no CUDA-capable device is detected", "cuInit failed:\nunknown error"]
)
def test_without_a_usable_gpu_one_line_says_why(monkeypatch: pytest.MonkeyPatch, problem: str) -> None:
    driver = FakeDriver(problem)
    pretend(monkeypatch, driver)
    with pytest.raises(DeviceError, match=f"no NVIDIA GPU can be used: {' '.join(problem.split())}"):
        device.open()
