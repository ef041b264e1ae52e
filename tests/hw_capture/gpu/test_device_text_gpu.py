"""On a machine with an NVIDIA GPU and PyCUDA: the text of a program (golden/model/device_text.py) computes
there what the host computes, by the interpreter and by the quick form; elsewhere it is compiled, if there is
nvcc, and not run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import golden
from golden import stimuli
from golden.model import device_text
from golden.model.instruction import Instruction
from hw_capture.errors import HwError
from hw_capture.gpu import device
from hw_capture.kernels import toolchain

pytestmark = pytest.mark.usefixtures("nvcc")
EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
NAMES = {
    "fused": ("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    "integer": ("hopper", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"),
    "f64": ("hopper", "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"),
    "fdrda": ("cdna3", "v_mfma_f32_32x32x8_f16"),
    "gdfs": (
        "rtx_blackwell",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
}
FILES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
KERNEL = """
typedef unsigned long long word;
extern "C" __global__ void __launch_bounds__(128) dots(word count, const uint64_t *a, const uint64_t *b,
    const uint64_t *c, const uint64_t *scale_a, const uint64_t *scale_b, uint64_t *d, uint32_t *raised)
{
    for (word i = (word)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (word)gridDim.x * blockDim.x) {
        unit_element x[UNIT_K], y[UNIT_K];
        for (int k = 0; k < UNIT_K; k++) x[k] = unit_decode_a(a[i * UNIT_K + k]);
        for (int k = 0; k < UNIT_K; k++) y[k] = unit_decode_b(b[i * UNIT_K + k]);
        d[i] = unit_dot(x, y, c[i] UNIT_MORE);
    }
}
"""


def unit(name: str) -> Instruction:
    """An instruction of NAMES, or the unit of a file: in its first mode, without its accumulator."""
    if name in NAMES:
        return golden.instruction(*NAMES[name])
    ins = golden.load_instruction(EXAMPLES / f"{name}.yaml")
    if ins.modes is not None:
        ins = next(iter(ins.mode_units.values()))
    return ins.stateless if ins.state else ins


def compiled(ins: Instruction, quick: bool, target: str) -> bytes:
    scales = ins.operand_shapes(False)["scale_a"][-1] if ins.scale_block else 0
    more = f", scale_a + i * {scales}, scale_b + i * {scales}" if scales else ""
    more += ", &raised[i]" if ins.status else ""
    head = f"#include <cstdint>\n#define UNIT_K {ins.stored_k}\n#define UNIT_MORE {more}\n"
    text = device_text.source(ins.program, ins, quick=quick)
    return toolchain.compile(head + text + KERNEL, target)


@pytest.mark.long
@pytest.mark.parametrize("name", ["gdfs"])
def test_the_interpreter_compiles_for_a_gpu(name: str) -> None:
    assert compiled(unit(name), False, "sm_90a")


@pytest.mark.parametrize(
    "name, quick",
    [*((name, True) for name in (*NAMES, *FILES)), *((name, False) for name in list(NAMES)[:3])],
)
def test_a_gpu_computes_what_the_host_computes(name: str, quick: bool) -> None:
    try:
        gpu = device.open()
    except HwError as error:
        pytest.skip(f"no GPU to run on: {error}")
    ins = unit(name)
    with gpu:
        target = "sm_" + "".join(map(str, gpu.compute_capability))
        kernel = gpu.load(compiled(ins, quick, target)).get("dots")
        rng = np.random.default_rng(11)
        made = [stimuli.generate(ins, kind, 2000, rng) for kind in stimuli.KINDS]
        operands = ins.complete({key: np.concatenate([one[key] for one in made]) for key in made[0]})
        count, nothing = len(operands["c"]), np.zeros(1, np.uint64)
        keys = ("a", "b", "c", "scale_a", "scale_b")
        given = [gpu.upload(operands.get(key, nothing).astype(np.uint64)) for key in keys]
        d, raised = gpu.empty(8 * count, 0), gpu.empty(4 * count, 0)
        start = time.perf_counter()
        kernel(np.uint64(count), *given, d, raised, grid=gpu.sm_count * 4, block=128)
        took = time.perf_counter() - start
        found = gpu.download(d, (count,), np.uint64).astype(ins.formats["d"].dtype)
    form = "quick" if quick and device_text.is_quick(ins.program, ins) else "interpreter"
    print(f"{name}, {form}: {count} dot products, {count / took:.2e} a second with the launch")
    assert np.array_equal(found, ins.dot(**made_dot(ins, operands)))


def made_dot(ins: Instruction, operands: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The operands that the unit takes."""
    return {key: operands[key] for key in ins.operand_shapes(False)}
