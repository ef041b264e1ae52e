"""SASS listings read and held against the spec;
the listings are cut from nvdisasm's and cuobjdump's output."""

from __future__ import annotations

import pytest

import golden
from hw_capture.errors import SassError
from hw_capture.kernels import sass

CUOBJDUMP = """
		Function : run
	.headerflags	@"EF_CUDA_ACCELERATORS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                              /* 0x00000a00ff017b82 */
                                                                                       /* 0x000ff00000000800 */
        /*0010*/                   HFMA2.MMA R5, -RZ, RZ, 0, 5.9604644775390625e-08 ;  /* 0x00000001ff057435 */
        /*0020*/              @!P0 HMMA.16816.F32 R4, R4, R18, R8 ;                    /* 0x0000000502007986 */
        /*0030*/                   BRA 0x60;                                           /* 0xfffffffc00fc7947 */
"""  # noqa: E501
NVDISASM = """
	.section	.text.run_1,"ax",@progbits
	.sectioninfo	@"SHI_REGISTERS=32"
.text.run_1:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   HMMA.16816.F32 R4, R4.reuse, R22, R12 ;
        /*0020*/                   HMMA.16816.F32 R8, R4, R20, R8 ;
	.section	.text.run_0,"ax",@progbits
        /*0000*/                   IMMA.16816.S8.S8.SAT R4, R4.ROW, R22.COL, R12 ;
        /*1010*/                   EXIT ;
	.section	.nv.info.run_0,"",@"SHT_CUDA_INFO"
        /*0000*/ 	.byte	0x04, 0x2f
"""
HMMA = golden.instruction("hopper", "HMMA.16816.F32")
FP8 = golden.instruction("hopper", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
HMMA884 = golden.instruction("turing", "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16")


def test_both_disassemblers_are_read() -> None:
    assert list(sass.functions(CUOBJDUMP)) == ["run"]
    found = sass.functions(NVDISASM)
    assert {name: len(lines) for name, lines in found.items() if lines} == {"run_1": 3, "run_0": 2}
    assert found["run_1"][2] == "HMMA.16816.F32 R8, R4, R20, R8"


def test_matrix_instructions_are_counted_and_hfma2_is_none() -> None:
    assert sass.matrix_instructions(CUOBJDUMP) == ["HMMA.16816.F32"]
    assert sass.counted(sass.matrix_instructions(NVDISASM)) == "2 x HMMA.16816.F32, 1 x IMMA.16816.S8.S8.SAT"


def test_the_right_instruction_passes() -> None:
    assert sass.check(HMMA, CUOBJDUMP) == ["@!P0 HMMA.16816.F32 R4, R4, R18, R8"]
    steps = [
        "HMMA.884.F16.F16.STEP0 R4, R2.reuse.ROW, R8.COL, R6",
        "HMMA.884.F16.F16.STEP1 R4, R2.ROW, R8.COL, R6",
    ]
    assert sass.check_body(HMMA884, steps) == steps


@pytest.mark.parametrize(
    "body",
    [
        [],
        ["EXIT"],
        ["HMMA.16816.F16 R4, R4, R18, R8"],
        ["HMMA.16816.F32.BF16 R4, R4, R18, R8"],
        ["HMMA.1688.F32 R4, R4, R18, R8"],
        ["HMMA.16816.F32 R4, R4, R18, R8", "HMMA.1688.F32 R4, R4, R18, R8"],
        ["HMMA.16816.F32 R4, R4, R18, R8", "IMMA.16816.S8.S8 R4, R4, R18, R8"],
    ],
)
def test_anything_else_fails(body: list[str]) -> None:
    with pytest.raises(SassError, match=r"the spec says HMMA\.16816\.F32$"):
        sass.check_body(HMMA, body)


EMULATED = ["F2FP.F16.E4M3.UNPACK_B R8, R18", "HMMA.16816.F32 R4, R4, R8, RZ", "FADD R5, R14, R5"]


def test_an_emulated_instruction_needs_all_its_parts() -> None:
    assert sass.check_body(FP8, [*EMULATED, "EXIT"]) == EMULATED
    for i in range(3):
        with pytest.raises(SassError):
            sass.check_body(FP8, EMULATED[:i] + EMULATED[i + 1 :])
    with pytest.raises(SassError, match="1 x QGMMA"):
        sass.check_body(FP8, [*EMULATED, "QGMMA.64x8x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24"])


def test_more_than_one_kernel_is_refused() -> None:
    with pytest.raises(SassError, match="holds 2 kernels, expected 1"):
        sass.check(HMMA, "\n".join(line for line in NVDISASM.splitlines() if "nv.info" not in line))
