"""Kernels of tcgen05.mma: descriptors against CUTLASS's bit fields, buffers, and what nvcc makes of them."""

from collections import Counter

import numpy as np
import pytest
from long_run import long_after

import golden
from hw_capture.errors import NoKernelError
from hw_capture.kernels import buffers, build, kernels, tensor_memory

ONE = "tcgen05.mma.cta_group::1."
F16 = f"{ONE}kind::f16.m128n256k16.f32.f16.f16"
PLAIN = (
    f"{ONE}kind::f16.m128n16k16.f16.f16.f16",
    f"{ONE}kind::f16.m128n48k16.f32.bf16.bf16",
    f"{ONE}kind::tf32.m128n16k8.f32.tf32.tf32",
    f"{ONE}kind::f8f6f4.m128n16k32.f32.e5m2.e4m3",
    f"{ONE}kind::i8.m128n32k32.s32.s8.u8",
)
# From the lowest bit: CUTLASS 4, include/cute/arch/mma_sm100_desc.hpp, union InstrDescriptor.
FIELDS = (("sparse", 3), ("saturate", 1), ("c", 2), ("", 1), ("a", 3), ("b", 3), ("negate", 2), ("major", 2))
FIELDS += (("n", 6), ("", 1), ("m", 5), ("", 3))


def fields(word):
    found = {}
    for name, width in FIELDS:
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
    ],
)
def test_descriptors_say_types_and_shape(name, d, a, b, n):
    told = fields(tensor_memory.instruction_descriptor(golden.instruction("blackwell", name)))
    plain = {"sparse": 0, "saturate": 0, "negate": 0, "major": 0}
    assert told == plain | {"c": d, "a": a, "b": b, "n": n, "m": 8}


def test_which_have_a_kernel():
    made = [ins for ins in golden.instructions("blackwell") if tensor_memory.supported(ins)]
    assert Counter(ins.family for ins in made) == {
        "tcgen05_f16": 48, "tcgen05_tf32": 16, "tcgen05_f8f6f4": 128, "tcgen05_i8": 64,
    }  # fmt: skip
    for name in (
        "tcgen05.mma.cta_group::2.kind::f16.m128n256k16.f32.f16.f16",
        f"{ONE}kind::f16.m64n256k16.f32.f16.f16",
        f"{ONE}kind::f8f6f4.m128n256k32.f32.e2m1.e4m3",
    ):
        ins = golden.instruction("blackwell", name)
        assert not build.supported(ins)
        with pytest.raises(NoKernelError, match="no kernel for this variant of tcgen05_f"):
            tensor_memory.source(ins)


def test_tensor_memory_holds_every_kind_of_result():
    for name in PLAIN:
        ins = golden.instruction("blackwell", name)
        held = buffers.for_kernel(ins, "shared")
        tiles = {
            key: np.random.default_rng(1)
            .integers(0, 1 << min(ins.formats[key].bits, 31), (3, *shape))
            .astype(ins.formats[key].dtype)
            for key, shape in (ins.operand_shapes(True) | {"d": (ins.m, ins.n)}).items()
        }
        for key, codes in tiles.items():
            words = held[key].pack(codes)
            assert words.shape == (3, *held[key].shape) and words.dtype == held[key].dtype
            assert (
                np.array_equal(held[key].unpack(words), codes)
                and held[key].unpack(words).dtype == codes.dtype
            )
        assert held["d"].shape == (128, ins.n) and kernels.geometry(ins, 7) == (7, 128)
        assert kernels.forms(ins) == ("shared",)


@pytest.mark.usefixtures("nvcc")
@pytest.mark.parametrize(
    ("target", "names"),
    long_after(1, [("sm_100a", PLAIN[:1]), ("sm_100a", PLAIN), ("sm_103a", PLAIN[:-1]), ("sm_110a", PLAIN)]),
)
def test_they_become_what_the_spec_says(target, names):
    """sm_103a has no integers."""
    chosen = [golden.instruction("blackwell", name) for name in names]
    done = [one for group in build.build(build.groups(chosen), target) for one in group]
    assert [(one.instruction.name, one.error) for one in done] == [(ins.name, "") for ins in chosen]
    assert all(len(one.sass) == 1 and one.sass[0].startswith("UTC") for one in done)
