"""An AMD GPU through hip-python: a stand-in for its module, whose kernels answer as the model does."""

import ctypes
import enum
import sys
import types

import numpy as np
import pytest

import golden
from golden.vectors import captured
from hw_capture.errors import DeviceError, ToolMissing
from hw_capture.gpu import hip_device
from hw_capture.kernels import buffers
from hw_capture.kernels.build import Built
from hw_capture.record.capture import Options, capture, target_for
from hw_capture.record.runner import GpuRunner
from hw_capture.record.verify import verify

NAMES = (
    "v_mfma_f32_16x16x16_f16",
    "v_mfma_f32_4x4x4_16b_bf16",
    "v_mfma_f64_16x16x4_f64",
    "v_mfma_i32_16x16x32_i8",
)


class Error(enum.IntEnum):
    hipSuccess = 0
    hipErrorInvalidImage = 200
    hipErrorIllegalAddress = 700


class Copy(enum.IntEnum):
    hipMemcpyHostToDevice = 1
    hipMemcpyDeviceToHost = 2


class FakeHip(types.ModuleType):
    """Memory are bytearrays; a code object is the name of an instruction of CDNA3."""

    def __init__(self, arch=b"gfx942:sramecc+:xnack-", fails=""):
        super().__init__("hip.hip")
        self.hipError_t, self.hipMemcpyKind, self.arch, self.fails = Error, Copy, arch, fails
        self.live = 0

    def hipDeviceProp_t(self):
        return types.SimpleNamespace(
            name=b"AMD Instinct MI300X",
            gcnArchName=self.arch,
            multiProcessorCount=304,
            totalGlobalMem=192 << 30,
        )

    def __getattr__(self, name):
        if not name.startswith("hip"):
            raise AttributeError(name)
        return lambda *given, **named: self.answer(name, given, named)

    def answer(self, name, given, named):
        if name == self.fails:
            return (Error.hipErrorIllegalAddress,)
        return (Error.hipSuccess, *getattr(self, f"do_{name}", lambda *_, **__: ())(*given, **named))

    def do_hipGetDeviceCount(self):
        return (1,)

    def do_hipRuntimeGetVersion(self):
        return (60_342_134,)

    def do_hipMalloc(self, nbytes):
        self.live += 1
        return (bytearray(nbytes),)

    def do_hipFree(self, _):
        self.live -= 1
        return ()

    def do_hipMemset(self, buffer, value, nbytes):
        buffer[:nbytes] = bytes([value]) * nbytes
        return ()

    def do_hipMemcpy(self, to, source, nbytes, kind):
        assert kind in Copy and nbytes == memoryview(source).nbytes
        memoryview(to).cast("B")[:] = memoryview(source).cast("B")
        return ()

    def do_hipModuleLoadData(self, code):
        return (code,)

    def do_hipModuleGetFunction(self, module, name):
        return ((module, name),)

    def do_hipModuleLaunchKernel(self, function, *sizes, extra, **named):
        assert function[1] == b"run_0" and named["kernelParams"] is None and sizes[1:] == (1, 1, 128, 1, 1)
        ins = golden.instruction("cdna3", function[0].decode())
        a, b, c, *rest, d, count = extra
        assert [type(x) for x in rest] == [ctypes.c_uint64] * 3 and sizes[0] * 2 >= count.value
        held = buffers.for_kernel(ins)
        tiles = {}
        for name, memory in zip("abc", (a, b, c), strict=True):
            words = np.frombuffer(memory, held[name].dtype).reshape(count.value, *held[name].shape)
            tiles[name] = held[name].unpack(words)
        d[:] = held["d"].pack(ins(**tiles)).tobytes()
        return ()


@pytest.fixture
def hip(monkeypatch):
    def install(**given):
        fake = FakeHip(**given)
        package = types.ModuleType("hip")
        package.hip = fake
        monkeypatch.setitem(sys.modules, "hip", package)
        return fake

    return install


def built(groups, target):
    assert target == "gfx942"
    return (
        [Built(ins, form, ins.name.encode(), "run_0", ("v_mfma",)) for ins, form in group] for group in groups
    )


def test_what_it_answers_is_recorded_and_replays(hip, tmp_path):
    fake = hip()
    chosen = [golden.instruction("cdna3", name) for name in NAMES]
    with hip_device.open() as gpu:
        report = capture(chosen, tmp_path / "cdna3", GpuRunner(gpu), Options(), builder=built)
        assert fake.live == 0, "memory is given back after every execution"
        again = capture(chosen, tmp_path / "cdna3", GpuRunner(gpu), Options(), builder=built)
    assert (report.recorded, report.failed, report.differ, again.kept) == (4, [], [], 4)
    device = captured.read_manifest_file(tmp_path / "cdna3" / "manifest.json", "cdna3")["device"]
    assert (device["target"], device["hip"], device["name"]) == ("gfx942", "6.3.42134", "AMD Instinct MI300X")
    assert captured.device_text(device).startswith("AMD Instinct MI300X (gfx942, HIP 6.3.42134, driver ")
    assert verify(tmp_path).passed


def test_another_card_is_refused(hip):
    hip(arch=b"gfx90a:sramecc+")
    with (
        hip_device.open() as gpu,
        pytest.raises(DeviceError, match=r"AMD Instinct MI300X \(gfx90a\), expected AMD CDNA3"),
    ):
        target_for("cdna3", gpu.facts())


@pytest.mark.parametrize(
    ("fails", "reported"),
    [
        ("hipGetDeviceCount", "looking for a GPU: hipErrorIllegalAddress"),
        ("hipModuleLoadData", "loading the kernels: hipErrorIllegalAddress"),
        ("hipModuleGetFunction", "kernel run_0: "),
        ("hipModuleLaunchKernel", "kernel run_0: "),
        ("hipDeviceSynchronize", "kernel run_0: hipErrorIllegalAddress"),
        ("hipMalloc", "bytes on the GPU: "),
        ("hipMemcpy", "to the GPU: "),
    ],
)
def test_what_fails_is_reported_in_one_line(hip, fails, reported):
    hip(fails=fails)
    ins = golden.instruction("cdna3", NAMES[0])
    operands = {
        name: np.zeros((1, *shape), ins.formats[name].dtype)
        for name, shape in ins.operand_shapes(True).items()
    }
    with pytest.raises(DeviceError, match=reported), hip_device.open() as gpu:
        GpuRunner(gpu).run(Built(ins, "registers", ins.name.encode(), "run_0"), operands, 0)


def test_no_such_card(hip):
    hip()
    with pytest.raises(DeviceError, match="no AMD GPU 1, this machine has 1"):
        hip_device.open(1)


def test_without_hip(hip, monkeypatch):
    monkeypatch.setitem(sys.modules, "hip", None)
    with pytest.raises(ToolMissing, match=r"hip-python is not installed: pip install .*hip-python"):
        hip_device.open()
    fake = hip()

    def absent(*_):
        raise RuntimeError("failed to dlopen 'libamdhip64.so'")

    fake.answer = absent
    with pytest.raises(DeviceError, match=r"looking for a GPU: failed to dlopen 'libamdhip64.so'"):
        hip_device.open()
