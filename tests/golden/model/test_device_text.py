"""golden/model/device_text.py: the C text of an instruction, compiled and held against the core over every
stimulus kind."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from kernel_units import kernel_unit
from long_run import long_after
from random_operands import draw_dots
from random_units import accepted, load, random_unit

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
GENERAL = [
    ("hopper", FAMILIES[0]),
    ("hopper", FAMILIES[8]),
    ("hopper", FAMILIES[12]),
    ("hopper", "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"),
    ("hopper", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"),
    ("cdna1", "v_mfma_f32_32x32x8f16"),
    ("cdna2", "v_mfma_f32_32x32x8bf16_1k"),
    ("cdna3", "v_mfma_f32_32x32x8_f16"),
    ("cdna3", "v_mfma_f32_16x16x32_fp8_fp8"),
    *(
        ("rtx_blackwell", f"mma.{kind}block_scale.{rest}")
        for kind, rest in (
            ("sync.aligned.m16n8k64.row.col.kind::mxf4.", "scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"),
            ("sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.", "scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"),
            ("sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.", "scale_vec::1X.f32.e5m2.e2m3.f32.ue8m0"),
            (
                "sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.",
                "scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
            ),
        )
    ),
]
"""What the interpreter runs: because it has no quick form, or because the test asks for it."""
QUICK = [("cdna2", "v_mfma_f64_16x16x4f64"), *GENERAL[7:]]
"""Quick forms in addition to FAMILIES: no order of NaNs, sums rounded down, scales."""
EXAMPLES = sorted((Path(__file__).parents[3] / "spec" / "examples").glob("*.yaml"))
ENTRY = """
#define AND ,
void dots(int64_t count, const uint64_t *a, const uint64_t *b, const uint64_t *c, const uint64_t *scale_a,
          const uint64_t *scale_b, uint64_t *d, uint32_t *raised);
void dots(int64_t count, const uint64_t *a, const uint64_t *b, const uint64_t *c, const uint64_t *scale_a,
          const uint64_t *scale_b, uint64_t *d, uint32_t *raised) {
    (void)scale_a, (void)scale_b, (void)raised;
    for (int64_t i = 0; i < count; i++) {
        unit_element x[K], y[K];
        for (int k = 0; k < K; k++) x[k] = unit_decode_a(a[i * K + k]), y[k] = unit_decode_b(b[i * K + k]);
        d[i] = unit_dot(x, y, c[i] MORE);
    }
}
"""
CC = shutil.which("gcc") or shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


def source(ins, faults=None, quick=True):
    return device_text.source(ins.program, ins, faults, quick)


def is_quick(ins):
    return device_text.is_quick(ins.program, ins)


def compiled(ins, folder, faults=None, quick=True):
    """The unit as a function of the operands that `ins.dot` takes; with status flags their bits come, too."""
    unit, library = folder / "unit.c", folder / "unit.so"
    scales = ins.operand_shapes(False)["scale_a"][-1] if ins.scale_block else 0
    more = f"AND scale_a + i * {scales} AND scale_b + i * {scales}" if scales else ""
    more += " AND &raised[i]" if ins.status else ""
    unit.write_text(source(ins, faults, quick) + ENTRY.replace("K", str(ins.stored_k)).replace("MORE", more))
    # gnu11: __int128
    flags = ["-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror", "-frounding-math", "-shared", "-fPIC"]
    subprocess.run([CC, *flags, "-o", library, unit, "-lm"], check=True)
    run = ctypes.CDLL(str(library)).dots

    def dot(**given):
        operands = ins.complete(given)
        if "metadata" in operands:
            columns = ins.pattern.columns(operands["metadata"])
            operands["b"] = np.take_along_axis(operands["b"], columns, axis=1)
        nothing = np.zeros(1)
        names = ("a", "b", "c", "scale_a", "scale_b")
        codes = [np.ascontiguousarray(operands.get(name, nothing).astype(np.uint64)) for name in names]
        d, raised = np.zeros(len(codes[2]), np.uint64), np.zeros(len(codes[2]), np.uint32)
        run(ctypes.c_int64(len(d)), *(ctypes.c_void_p(array.ctypes.data) for array in (*codes, d, raised)))
        results = d.astype(ins.formats["d"].dtype)
        return (results, raised) if ins.status else results

    return dot


def differences(ins, dot, count):
    """Kind by kind, how many of `count` results differ."""
    found = {}
    for i, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, count, np.random.default_rng([7, i]))
        found[kind] = int((dot(**operands) != ins.dot(**operands)).sum())
    return found


@pytest.mark.parametrize(
    "architecture, name", long_after(3, [*(("hopper", name) for name in FAMILIES), *QUICK])
)
def test_device_arithmetic_is_the_golden_core(architecture, name, tmp_path):
    ins = golden.instruction(architecture, name)
    assert is_quick(ins)
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


@pytest.mark.parametrize("architecture, name", long_after(3, GENERAL))
def test_the_interpreter_in_a_text_is_the_golden_core(architecture, name, tmp_path):
    ins = golden.instruction(architecture, name)
    found = differences(ins, compiled(ins, tmp_path, quick=False), 100)
    assert not {kind: count for kind, count in found.items() if count}


@pytest.mark.parametrize("path", long_after(3, EXAMPLES, [path.stem for path in EXAMPLES]))
def test_units_of_files_have_a_text(path, tmp_path):
    whole = golden.load_instruction(path)
    units = [whole.stateless] if whole.state else whole.mode_units.values() if whole.modes else [whole]
    for i, ins in enumerate(units):
        folder = tmp_path / str(i)
        folder.mkdir()
        operands = stimuli.generate(ins, "random_bits", 400, np.random.default_rng(5))
        found, expected = compiled(ins, folder)(**operands), ins.dot(**operands)
        if ins.status:
            found, raised = found
            bits = np.array([[mask >> i & 1 for i in range(4)] for mask in raised])
            shown = ins.flags(**operands)
            words = ["invalid", "overflow", "underflow", "inexact"]
            for at, name in enumerate(ins.status):
                assert np.array_equal(bits[:, words.index(name)], shown >> at & 1), name
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    "name, fault",
    [(FAMILIES[0], {"fraction_bits": 24}), (FAMILIES[2], {"floor": -126}), (FAMILIES[0], {"zero": "signed"})],
)
def test_a_fault_planted_in_steps_is_another_unit(name, fault, tmp_path):
    ins = golden.instruction("hopper", name)
    assert sum(differences(ins, compiled(ins, tmp_path, fault, quick=False), 400).values()) > 0


def test_a_key_that_no_step_has_is_refused():
    ins = golden.instruction("cdna3", "v_mfma_f32_32x32x8_f16")
    with pytest.raises(CoreError, match=r"no parameter 'floors', expected one of .*fraction_bits, "):
        source(ins, {"floors": 1})
    with pytest.raises(CoreError, match="rounding is 'x', expected toward_zero or nearest_even or"):
        source(ins, {"rounding": "x"})


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
def test_what_the_quick_form_cannot_say_is_left_to_the_interpreter(unit, tmp_path):
    ins = load(OWN.format(**unit))
    assert not is_quick(ins)
    operands = draw_dots(ins, 300, np.random.default_rng(1))
    assert np.array_equal(compiled(ins, tmp_path)(**operands), ins.dot(**operands))


@pytest.mark.parametrize("seed", long_after(2, range(100_000, 100_010)))
def test_random_units_near_the_bounds_of_the_quick_form_are_the_core(seed, tmp_path):
    text, ins = accepted(kernel_unit, seed)
    operands = draw_dots(ins, 300, np.random.default_rng(seed))
    assert np.array_equal(compiled(ins, tmp_path)(**operands), ins.dot(**operands)), text


@pytest.mark.parametrize("seed", long_after(1, range(200_000, 200_008)))
def test_random_units_are_the_core(seed, tmp_path):
    """Any mix of steps."""
    text, ins = accepted(random_unit, seed)
    operands = draw_dots(ins, 300, np.random.default_rng(seed))
    assert np.array_equal(compiled(ins, tmp_path)(**operands), ins.dot(**operands)), text
