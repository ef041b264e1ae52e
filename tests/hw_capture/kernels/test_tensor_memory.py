"""Kernels of tcgen05.mma: descriptors against CUTLASS's bit fields, buffers, and what nvcc makes of them."""

from collections import Counter

import numpy as np
import pytest
from long_run import long_after

import golden
from hw_capture.errors import NoKernelError
from hw_capture.kernels import buffers, build, kernels, tensor_memory

ONE = "tcgen05.mma.cta_group::1."
PAIR = "tcgen05.mma.cta_group::2."
F16 = f"{ONE}kind::f16.m128n256k16.f32.f16.f16"
PLAIN = (
    f"{ONE}kind::f16.m128n16k16.f16.f16.f16",
    f"{ONE}kind::f16.m64n48k16.f32.bf16.bf16",
    f"{PAIR}kind::tf32.m128n16k8.f32.tf32.tf32",
    f"{PAIR}kind::f8f6f4.m256n16k32.f32.e5m2.e4m3",
    f"{ONE}kind::i8.m128n32k32.s32.s8.u8",
    f"{ONE}kind::f8f6f4.m64n8k32.f16.e3m2.e2m1",
)
SCALED = (
    f"{ONE}kind::mxf8f6f4.block_scale.scale_vec::1X.m128n8k32.f32.e4m3.e2m3.ue8m0",
    f"{PAIR}kind::mxf8f6f4.block_scale.scale_vec::1X.m256n16k32.f32.e2m1.e3m2.ue8m0",
    f"{ONE}kind::mxf4.block_scale.scale_vec::2X.m128n136k64.f32.e2m1.e2m1.ue8m0",
    f"{PAIR}kind::mxf4nvf4.block_scale.scale_vec::4X.m256n256k64.f32.e2m1.e2m1.ue4m3",
)
# From the lowest bit: CUTLASS 4, include/cute/arch/mma_sm100_desc.hpp, union InstrDescriptor.
FIELDS = (("sparse", 3), ("saturate", 1), ("c", 2), ("", 1), ("a", 3), ("b", 3), ("negate", 2), ("major", 2))
FIELDS += (("n", 6), ("", 1), ("m", 5), ("", 3))
# The same file, union InstrDescriptorBlockScaled.
SCALED_FIELDS = (
    ("sparse", 3),
    ("", 1),
    ("scale b at", 2),
    ("", 1),
    ("a", 3),
    ("b", 3),
    ("negate", 2),
    ("major", 2),
)
SCALED_FIELDS += (("n", 6), ("scale", 1), ("m", 5), ("scale a at", 2), ("long k", 1))


def fields(word, known=FIELDS):
    found = {}
    for name, width in known:
        found[name] = word & (1 << width) - 1
        word >>= width
    assert word == 0 and found.pop("") == 0
    return found


@pytest.mark.parametrize(
    ("name", "d", "a", "b", "n"),
    [
        (F16, 1, 0, 0, 32),
        (PLAIN[0], 0, 0, 0, 2),
        (PLAIN[1], 1, 1, 1, 6),
        (PLAIN[2], 1, 2, 2, 2),
        (PLAIN[3], 1, 1, 0, 2),
        (PLAIN[4], 2, 1, 0, 4),
        (PLAIN[5], 0, 4, 5, 1),
    ],
)
def test_descriptors_say_types_and_shape(name, d, a, b, n):
    ins = golden.instruction("blackwell", name)
    reported = fields(tensor_memory.instruction_descriptor(ins))
    plain = {"sparse": 0, "saturate": 0, "negate": 0, "major": 0}
    assert reported == plain | {"c": d, "a": a, "b": b, "n": n, "m": ins.m // 16}


@pytest.mark.parametrize(
    ("name", "a", "b", "scale"),
    [(SCALED[0], 0, 3, 1), (SCALED[1], 5, 4, 1), (SCALED[2], 1, 1, 1), (SCALED[3], 1, 1, 0)],
)
def test_descriptors_with_block_scales(name, a, b, scale):
    ins = golden.instruction("blackwell", name)
    reported = fields(tensor_memory.instruction_descriptor(ins), SCALED_FIELDS)
    plain = {"sparse": 0, "scale b at": 0, "scale a at": 0, "negate": 0, "major": 0, "long k": 0}
    assert reported == plain | {"a": a, "b": b, "scale": scale, "n": ins.n // 8, "m": ins.m // 16}


def test_every_one_has_a_kernel():
    """And A from tensor memory where its elements have 8 bits or more."""
    made = [ins for ins in golden.instructions("blackwell") if ins.traits.kernel == "tcgen05"]
    assert all(build.supported(ins) for ins in made)
    assert all(kernels.forms(ins) == ("shared", "tensor")[: 1 + (ins.formats["a"].bits >= 8)] for ins in made)
    assert Counter(ins.family for ins in made) == {
        "tcgen05_f16": 240, "tcgen05_tf32": 80, "tcgen05_f8f6f4": 4000, "tcgen05_i8": 400,
        "tcgen05_mxf8f6f4": 1200, "tcgen05_mxf4": 192,
    }  # fmt: skip
    wraps, clamps = (ins for ins in made if ".kind::i8.m64n8k32.s32.s8.u8" in ins.name)
    descriptor = tensor_memory.instruction_descriptor
    assert descriptor(wraps) ^ descriptor(clamps) == 1 << 3  # "saturate for integer types"
    with pytest.raises(NoKernelError, match="form is 'tensor', expected shared"):
        tensor_memory.source(golden.instruction("blackwell", SCALED[2]), "tensor")
    with pytest.raises(NoKernelError, match="no kernel for family mma_f16"):
        tensor_memory.source(golden.instruction("blackwell", "HMMA.16816.F32"))


@pytest.mark.parametrize(
    ("name", "a", "scales"),
    [
        (F16, "%1", ""),
        (F16, "[%1]", ""),
        (SCALED[2], "%1", " [%4], [%5],"),
        (SCALED[0], "[%1]", " [%4], [%5],"),
    ],
)
def test_the_instruction(name, a, scales):
    """PTX ISA 9.7.16.10.9: d, a, b, the descriptor, the scales, whether D is added to."""
    ins = golden.instruction("blackwell", name)
    reported = tensor_memory.text(ins, "tensor" if "[" in a else "shared")
    assert reported == f"{name.split('.m128n')[0]} [%0], {a}, %2, %3,{scales} p;"


# Where CUTLASS 4 places the same (include/cute/atom/mma_traits_sm100_frag.hpp, tmem_frg): the address of a
# row and a column of what one CTA holds, lanes counting 1 and columns 128.
ATOMS = {
    (1, 64): lambda row, col, n: row % 16 + 32 * (row // 16) + 128 * col,
    (1, 128): lambda row, col, n: row + 128 * col,
    (2, 128): lambda row, col, n: row + 128 * (col % (n // 2)) + 64 * (col // (n // 2)),
    (2, 256): lambda row, col, n: row + 128 * col,
}


@pytest.mark.parametrize("name", (*PLAIN, SCALED[3], F16))
def test_d_lies_where_cutlass_has_it(name):
    ins = golden.instruction("blackwell", name)
    ctas = int(ins.variables["cta"])
    codes = np.arange(1, 1 + ins.m * ins.n, dtype=np.uint32).reshape(ins.m, ins.n)
    spot = tensor_memory.place(ins, "d")
    words = tensor_memory.pack(spot, codes)
    expected = np.zeros_like(words)
    for row in range(ins.m):
        cta, own = divmod(row, ins.m // ctas)
        for col in range(ins.n):
            address = ATOMS[ctas, ins.m](own, col, ins.n)
            expected[cta, address % 128, address // 128] = codes[row, col]
    assert np.array_equal(words, expected) and words.shape == (ctas, 128, tensor_memory.columns(ins))


def test_a_lies_in_the_lanes_of_its_row():
    """A row of 32 bytes in eight columns; of 128 rows in two CTAs in both halves of the lanes (the same file,
    mode Duplicated), of 64 in the lanes of D."""
    for name, lanes_of in (
        (PLAIN[1], lambda row: [(0, row % 16 + 32 * (row // 16))]),
        (PLAIN[2], lambda row: [(row // 64, row % 64), (row // 64, row % 64 + 64)]),
        (PLAIN[3], lambda row: [(row // 128, row % 128)]),
        (F16, lambda row: [(0, row)]),
    ):
        ins = golden.instruction("blackwell", name)
        codes = np.random.default_rng(1).integers(0, 1 << min(ins.formats["a"].bits, 31), (ins.m, ins.k))
        codes = codes.astype(ins.formats["a"].dtype)
        words = buffers.for_kernel(ins, "tensor")["a"].pack(codes[None])[0]
        rows = np.ascontiguousarray(codes).view(np.uint32)
        seen = set()
        for row in range(ins.m):
            for cta, lane in lanes_of(row):
                assert words[cta, lane].tolist() == rows[row].tolist()
                seen.add((cta, lane))
        rest = [
            words[cta, lane] for cta in range(len(words)) for lane in range(128) if (cta, lane) not in seen
        ]
        assert not np.any(rest)


@pytest.mark.parametrize("name", SCALED)
def test_scales_lie_as_in_the_chunks_that_are_copied(name):
    """A chunk of 128 rows by 4 scales has 512 bytes, a row r at 16 (r % 32) + 4 (r / 32) (CUTLASS 4,
    sm100_blockscaled_layout.hpp, SfKMajorAtom); tcgen05.cp.32x128b.warpx4 writes 16 bytes a lane, to all
    warps."""
    ins = golden.instruction("blackwell", name)
    held, ctas, blocks = (
        buffers.for_kernel(ins, "shared"),
        int(ins.variables["cta"]),
        ins.k // ins.scale_block,
    )
    for key, rows in (("scale_a", ins.m), ("scale_b", ins.n)):
        codes = np.random.default_rng(2).integers(1, 127, (rows, blocks)).astype(np.uint8)
        words = held[key].pack(codes[None] if key == "scale_a" else codes.T[None])[0]
        chunks = -(-rows // 128)
        room = np.zeros((chunks, 512), np.uint8)
        for row in range(rows):
            at = 16 * (row % 32) + 4 * (row % 128 // 32)
            room[row // 128, at : at + blocks] = codes[row]
        columns = room.view(np.uint32).reshape(chunks, 32, 4)
        for cta in range(ctas):
            mine = columns[cta : cta + 1] if key == "scale_a" else columns
            expected = np.tile(mine.transpose(1, 0, 2).reshape(32, -1), (4, 1))
            assert np.array_equal(words[cta], expected), (key, cta)


def test_narrow_elements_lie_padded_in_shared_memory():
    """16 elements in 16 bytes, packed from the front (PTX ISA, .b4x16_p64 and .b6x16_p32)."""
    ins = golden.instruction(
        "blackwell", f"{ONE}kind::f8f6f4.m128n8k32.f32.e3m2.e2m1".replace("m128n8", "m64n8")
    )
    held = buffers.for_kernel(ins, "shared")
    a = np.zeros((1, 64, 32), np.uint8)
    a[0, 0, :3], a[0, 0, 16] = (0x3F, 0x01, 0x20), 0x15
    line = held["a"].pack(a).view(np.uint8)[0]
    assert line[:3].tolist() == [0x7F, 0x00, 0x02] and not line[3:128].any()
    assert line[128] == 0x15 and not line[129:].any()  # the next 16 bytes of K lie a core matrix further
    b = np.zeros((1, 32, 8), np.uint8)
    b[0, :3, 1] = 0xA, 0x5, 0xF
    line = held["b"].pack(b).view(np.uint8)[0]
    assert line[16:18].tolist() == [0x5A, 0x0F] and not np.delete(line, (16, 17)).any()
    for name in ("a", "b"):
        codes = np.random.default_rng(3).integers(
            0, 1 << ins.formats[name].bits, {"a": a, "b": b}[name].shape
        )
        assert np.array_equal(held[name].unpack(held[name].pack(codes.astype(np.uint8))), codes)


@pytest.mark.parametrize("name", (*PLAIN, *SCALED))
def test_buffers_give_back_what_they_took(name):
    """Of every operand, in every form, three executions at once."""
    ins = golden.instruction("blackwell", name)
    for form in kernels.forms(ins):
        held = buffers.for_kernel(ins, form)
        shapes = ins.operand_shapes(True) | {"d": (ins.m, ins.n)}
        assert set(held) == set(shapes)
        for key, shape in shapes.items():
            fmt = ins.formats[key]
            codes = (
                np.random.default_rng(1).integers(0, 1 << min(fmt.bits, 31), (3, *shape)).astype(fmt.dtype)
            )
            words = held[key].pack(codes)
            assert words.shape == (3, *held[key].shape) and words.dtype == held[key].dtype
            back = held[key].unpack(words)
            assert np.array_equal(back, codes) and back.dtype == codes.dtype
    ctas = int(ins.variables["cta"])
    assert kernels.geometry(ins, 7) == (7 * ctas, 128)


@pytest.mark.usefixtures("nvcc")
@pytest.mark.parametrize(
    ("target", "names"),
    long_after(
        1,
        [
            ("sm_100a", SCALED[-1:]),
            ("sm_100a", PLAIN + SCALED),
            ("sm_103a", [name for name in PLAIN + SCALED if "::i8" not in name]),
            ("sm_110a", PLAIN + SCALED),
        ],
    ),
)
def test_they_become_what_the_spec_says(target, names):
    """sm_103a has no integers."""
    chosen = [golden.instruction("blackwell", name) for name in names]
    done = [one for group in build.build(build.groups(chosen), target) for one in group]
    forms = [(ins.name, form, "") for ins in chosen for form in kernels.forms(ins)]
    assert [(one.instruction.name, one.form, one.error) for one in done] == forms
    assert all(len(one.sass) == 1 and "UTC" in one.sass[0] for one in done)
