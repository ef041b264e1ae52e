"""golden/model/device_text.py: the scalar C text of an instruction, compiled and held against the core
over every stimulus kind."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from random_units import accepted, draw_dots, kernel_unit, load

import golden
from golden import stimuli
from golden.errors import CoreError
from golden.model import device_text

FAMILIES = [
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
    "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16",
    "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2",
    "wgmma.mma_async.sync.aligned.m64n64k32.f16.e5m2.e4m3",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
    "mma.sync.aligned.m16n8k64.row.col.satfinite.s32.u4.s4.s32",
    "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc",
    "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
    "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64.rz",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32",
]
ENTRY = """
void dots(int64_t count, const uint64_t *a, const uint64_t *b, const uint64_t *c, uint64_t *d);
void dots(int64_t count, const uint64_t *a, const uint64_t *b, const uint64_t *c, uint64_t *d) {
    for (int64_t i = 0; i < count; i++) {
        unit_element x[K], y[K];
        for (int k = 0; k < K; k++) x[k] = unit_decode_a(a[i * K + k]), y[k] = unit_decode_b(b[i * K + k]);
        d[i] = unit_dot(x, y, c[i]);
    }
}
"""
CC = shutil.which("gcc") or shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


def source(ins, faults=None):
    return device_text.source(ins.program, ins, faults)


def supported(ins):
    return device_text.supported(ins.program, ins)


def compiled(ins, folder, faults=None):
    """The unit as a function of the operands that `ins.dot` takes."""
    unit, library = folder / "unit.c", folder / "unit.so"
    unit.write_text(source(ins, faults) + ENTRY.replace("K", str(ins.stored_k)))
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-frounding-math", "-shared", "-fPIC"]
    subprocess.run([CC, *flags, "-o", library, unit, "-lm"], check=True)
    run = ctypes.CDLL(str(library)).dots

    def dot(a, b, c, metadata=None):
        if metadata is not None:
            b = np.take_along_axis(b, ins.pattern.columns(metadata), axis=1)
        codes = [np.ascontiguousarray(operand.astype(np.uint64)) for operand in (a, b, c)]
        d = np.zeros(len(c), np.uint64)
        run(ctypes.c_int64(len(c)), *(ctypes.c_void_p(array.ctypes.data) for array in (*codes, d)))
        return d.astype(ins.formats["d"].dtype)

    return dot


def differences(ins, dot, count):
    """Kind by kind, how many of `count` results differ."""
    found = {}
    for i, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, count, np.random.default_rng([7, i]))
        found[kind] = int((dot(**operands) != ins.dot(**operands)).sum())
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_device_arithmetic_is_the_golden_core(name, tmp_path):
    ins = golden.instruction("hopper", name)
    wrong = {kind: count for kind, count in differences(ins, compiled(ins, tmp_path), 400).items() if count}
    assert not wrong


@pytest.mark.parametrize(
    "name, fault",
    [
        (FAMILIES[0], {"fraction_bits": 24}),
        (FAMILIES[0], {"rounding": "nearest_even"}),
        (FAMILIES[2], {"floor": -126}),
        (FAMILIES[6], {"result_fraction_bits": 12}),
        (FAMILIES[9], {"saturate": 0}),
        (FAMILIES[13], {"rounding": "up"}),
        (FAMILIES[15], {"fraction_bits": 24}),
        (FAMILIES[16], {"fraction_bits": 24}),
    ],
)
def test_a_planted_fault_is_another_unit(name, fault, tmp_path):
    ins = golden.instruction("hopper", name)
    assert sum(differences(ins, compiled(ins, tmp_path, fault), 400).values()) > 0


def test_a_fault_that_the_unit_does_not_have_is_refused():
    with pytest.raises(CoreError, match="no parameter 'floors', expected one of chunk"):
        source(golden.instruction("hopper", FAMILIES[0]), {"floors": 1})


@pytest.mark.parametrize(
    "key, value, said", [("combine", "nand", "product or and or xor"), ("saturate", "x", "an integer")]
)
def test_a_fault_of_another_value_is_refused(key, value, said):
    with pytest.raises(CoreError, match=f"{key} is '{value}', expected {said}"):
        source(golden.instruction("hopper", FAMILIES[8]), {key: value})


def test_arithmetic_without_a_device_form_is_refused():
    ins = golden.instruction("cdna3", "v_mfma_f32_32x32x8_f16")
    assert not supported(ins)
    with pytest.raises(CoreError, match="no device form"):
        source(ins)


OWN = """
unit: own
shape: {{k: 2}}
{define}formats: {{a: {a}, b: {a}, c: {c}, d: {d}}}
{program}
"""
DOUBLE = {"define": "", "a": "f64", "c": "f64", "d": "f64"}
WIDE = (
    "define_formats: {w: {kind: float, storage: 32, exponent_bits: 2, fraction_bits: 26, bias: 1, "
    "specials: ieee}}\n"
)
NO_ZERO = (
    "define_formats: {n: {kind: float, storage: 8, exponent_bits: 5, fraction_bits: 2, bias: 9, "
    "specials: none, zero: false}}\n"
)
FDA = "program: [{fda: {fraction_bits: 20, rounding: nearest_even, nan: 1}}]"


@pytest.mark.parametrize(
    "unit",
    [
        DOUBLE | {"program": "steps: [{fma: {to: d, rounding: nearest_even, zero_times_infinity: zero}}]"},
        {"define": WIDE, "a": "f16", "c": "f32", "d": "w", "program": FDA},  # exponents past 32 bits
        {"define": NO_ZERO, "a": "n", "c": "f32", "d": "f32", "program": FDA},
    ],
)
def test_what_the_text_cannot_say_has_no_device_form(unit):
    assert not supported(load(OWN.format(**unit)))


@pytest.mark.parametrize("seed", range(100_000, 100_036))
def test_units_with_a_device_form_are_the_core(seed, tmp_path):
    """Random units near the bounds of the kernels; most have one."""
    text, ins = accepted(kernel_unit, seed)
    if supported(ins):
        operands = draw_dots(ins, 300, np.random.default_rng(seed))
        assert np.array_equal(compiled(ins, tmp_path)(**operands), ins.dot(**operands)), text
