"""The catalogue: names and where they resolve, every instruction builds, and the rows of the paper's
Tables III and IV."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.catalog import architectures
from golden.errors import UnknownArithmeticError, UnknownNameError
from golden.model.instruction import Instruction
from golden.program.algorithms import algorithms, get_algorithm
from golden.program.steps import Additions, Align, Part

MMA = "mma.sync.aligned."
ARCHITECTURES = [
    "volta",
    "turing",
    "ampere",
    "ada",
    "hopper",
    "blackwell",
    "rtx_blackwell",
    "cdna1",
    "cdna2",
    "cdna3",
    "cdna4",
    "rdna3",
    "rdna4",
    "sapphire_rapids",
    "granite_rapids",
    "diamond_rapids",
    "armv9",
    "riscv",
    "tensix_wormhole",
    "tensix_blackhole",
]
SM80 = ("ampere", "ada", "hopper", "blackwell", "rtx_blackwell")
RTX, HOPPER, BLACKWELL = ("rtx_blackwell",), ("hopper",), ("blackwell",)

LEGAL = [
    (f"{MMA}m8n8k4.row.col.f32.f16.f16.f32", ("volta", "turing", *SM80)),
    (f"{MMA}m16n8k8.row.col.f32.f16.f16.f32", ("turing", *SM80)),
    (f"{MMA}m16n8k16.row.col.f32.f16.f16.f32", SM80),
    (f"{MMA}m16n8k16.row.col.f16.f16.f16.f16", SM80),
    (f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32", SM80),
    (f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32", SM80),
    (f"{MMA}m8n8k4.row.col.f64.f64.f64.f64", SM80),
    (f"{MMA}m16n8k16.row.col.f64.f64.f64.f64", ("hopper", "blackwell", "rtx_blackwell")),
    (f"{MMA}m16n8k32.row.col.f32.e4m3.e5m2.f32", ("ada", "hopper", "blackwell", "rtx_blackwell")),
    (f"{MMA}m16n8k16.row.col.f16.e5m2.e5m2.f16", ("ada", "hopper", "blackwell", "rtx_blackwell")),
    (f"{MMA}m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", RTX),
    (f"{MMA}m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", RTX),
    (f"{MMA}m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m3.f32.ue8m0", RTX),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", SM80),
    (f"{MMA}m16n8k64.row.col.satfinite.s32.s4.s4.s32", SM80),
    (f"{MMA}m16n8k256.row.col.s32.b1.b1.s32.xor.popc", SM80),
    (f"{MMA}m8n8k16.row.col.s32.s8.u8.s32", ("turing", *SM80)),
    (f"{MMA}m8n8k32.row.col.s32.u4.u4.s32", ("turing", *SM80)),
    ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", HOPPER),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2", HOPPER),
    ("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32", HOPPER),
    ("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", HOPPER),
    ("tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.bf16.bf16", BLACKWELL),
    (
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3",
        BLACKWELL,
    ),
    ("v_mfma_f32_32x32x4bf16", ("cdna1", "cdna2")),
    ("v_mfma_f32_16x16x32_fp8_bf8", ("cdna3",)),
    ("v_mfma_f32_32x32x8_f16", ("cdna3",)),
    ("v_mfma_f32_16x16x8_xf32", ("cdna3",)),
    ("v_dot2_f32_f16", ("rdna3", "rdna4")),
    ("v_wmma_f32_16x16x16_f16_w32", ("rdna3", "rdna4")),
    ("v_wmma_bf16_16x16x16_bf16_w64", ("rdna3", "rdna4")),
    ("v_wmma_i32_16x16x32_iu4_w32.s4.u4.clamp", ("rdna4",)),
    ("v_dot4_f32_fp8_bf8", ("rdna4",)),
    ("tdpbf16ps", ("sapphire_rapids", "granite_rapids", "diamond_rapids")),
    ("tdpfp16ps", ("granite_rapids", "diamond_rapids")),
    ("vpdpbusds", ("sapphire_rapids", "granite_rapids", "diamond_rapids")),
]


def test_architectures_in_order() -> None:
    assert golden.architectures() == ARCHITECTURES


@pytest.mark.parametrize(
    ("older", "name"),
    [
        ("v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x16_f16"),
        ("v_mfma_f32_32x32x8bf16_1k", "v_mfma_f32_32x32x8_bf16"),
        ("v_mfma_f64_4x4x4f64", "v_mfma_f64_4x4x4_4b_f64"),
        ("v_mfma_f32_16x16x8xf32", "v_mfma_f32_16x16x8_xf32"),
        ("v_mfma_i32_4x4x4i8", "v_mfma_i32_4x4x4_16b_i8"),
        ("v_mfma_i32_32x32x16i8", "v_mfma_i32_32x32x16_i8"),
    ],
)
def test_cdna3_takes_the_older_spelling_as_its_assembler_does(older: str, name: str) -> None:
    """LLVM 19's assembler takes both on gfx942, with one encoding."""
    assert golden.instruction("cdna3", older) is golden.instruction("cdna3", name)


@pytest.mark.parametrize("older", ["v_mfma_f32_16x16x32f16", "v_mfma_f32_4x4x4bf16_1k"])
def test_cdna4_knows_the_older_spelling_of_what_is_unknown(older: str) -> None:
    """LLVM 22's assembler takes both on gfx950; nobody has published their arithmetic."""
    with pytest.raises(UnknownArithmeticError, match=f"has the instruction '{older}'"):
        golden.instruction("cdna4", older)


@pytest.mark.parametrize(("name", "where"), LEGAL)
def test_a_name_resolves_exactly_where_the_chip_has_it(name: str, where: tuple[str, ...]) -> None:
    for architecture in ARCHITECTURES:
        if architecture in where:
            ins = golden.instruction(architecture, name)
            assert (ins.name, ins.architecture) == (name, architecture)
            continue
        unknown = name in architectures.get_architecture(architecture).unknown_names()
        message = "its arithmetic is unknown: .*dissect" if unknown else "it exists on " + ", ".join(where)
        with pytest.raises(UnknownNameError, match=message):
            golden.instruction(architecture, name)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_instruction_builds_once_and_says_why_it_is_believed(architecture: str) -> None:
    instructions = golden.instructions(architecture)
    assert instructions and len({ins.name for ins in instructions}) == len(instructions)
    for ins in instructions:
        assert golden.instruction(architecture, ins.name) is ins
        assert (
            min(ins.shape) > 0
            and ins.blocks >= 1
            and ins.evidence.source
            and ins.evidence.kind in ("captured", "published", "derived")
        )
        used = sorted(k for operation in ins.program.operations for k in operation.k_index)
        passes = len(ins.program.operations) if ins.program.steps_of(Part) else 1
        assert used == sorted([*range(ins.stored_k)] * passes), ins
        assert (ins.scale_block is not None) == ("scale_a" in ins.formats) and (
            ins.pattern is not None
        ) == ins.sparse
        assert (ins.sass and all(name and "{" not in name for name in ins.sass)) or (
            architectures.get_architecture(architecture).maker.machine is None
        ), ins


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_kind_of_instruction_runs(architecture: str) -> None:
    done = set()
    for ins in golden.instructions(architecture):
        if ins.family not in done:
            done.add(ins.family)
            operands = stimuli.generate(ins, "narrow", 3, np.random.default_rng(1))
            assert ins.dot(**operands).dtype == ins.formats["d"].dtype


def test_wgmma_and_tcgen05_have_every_legal_n() -> None:
    for n in range(8, 257, 8):
        ins = golden.instruction("hopper", f"wgmma.mma_async.sync.aligned.m64n{n}k16.f16.f16.f16")
        assert ins.shape == (64, n, 16)
        assert (
            golden.instruction("blackwell", f"tcgen05.mma.cta_group::1.kind::f16.m64n{n}k16.f32.f16.f16").n
            == n
        )
    for n in (4, 12, 264):
        with pytest.raises(UnknownNameError):
            golden.instruction("hopper", f"wgmma.mma_async.sync.aligned.m64n{n}k16.f16.f16.f16")


# SASS names and mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "sass", "name"),
    [
        ("hopper", "HMMA.16816.F32", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32"),
        ("hopper", "HMMA.16816.F16", f"{MMA}m16n8k16.row.col.f16.f16.f16.f16"),
        ("ampere", "HMMA.16816.F32.BF16", f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("ada", "HMMA.1688.F32.TF32", f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("turing", "HMMA.1688.F32", f"{MMA}m16n8k8.row.col.f32.f16.f16.f32"),
        ("ampere", "DMMA.884", f"{MMA}m8n8k4.row.col.f64.f64.f64.f64"),
        ("ada", "QMMA.16832.F32.E4M3.E5M2", f"{MMA}m16n8k32.row.col.f32.e4m3.e5m2.f32"),
        ("hopper", "DMMA.16x8x16", f"{MMA}m16n8k16.row.col.f64.f64.f64.f64"),
        ("hopper", "hmma.16816.f32", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32"),
        ("ampere", "IMMA.16832.S8.S8", f"{MMA}m16n8k32.row.col.s32.s8.s8.s32"),
        ("ampere", "IMMA.16832.S8.U8.SAT", f"{MMA}m16n8k32.row.col.satfinite.s32.s8.u8.s32"),
        (
            "rtx_blackwell",
            "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
            f"{MMA}m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        ),
    ],
)
def test_sass_names(architecture: str, sass: str, name: str) -> None:
    ins = golden.instruction(architecture, sass)
    assert ins.name == name


@pytest.mark.parametrize(
    ("architecture", "name", "words"),
    [
        (
            "hopper",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f23",
            r"nearest: .*mma\.sync\.aligned\.m16n8k16",
        ),
        ("hoper", "HMMA.16816.F32", "unknown architecture 'hoper'; nearest: hopper"),
        ("cdna3", "v_mfma_f32_32x32x4bf16", "cdna1, cdna2"),
        ("volta", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32", "it exists on ampere"),
        ("hopper", "", "unknown instruction ''"),
        ("hopper", "HMMA.16816.F31", "unknown instruction"),
        (
            "hopper",
            "mxf4nvf4",
            "'mxf4nvf4' is in the names or types of .*blackwell:tcgen05.*rtx_blackwell:mma",
        ),
        ("ampere", "QMMA.16832.F32.E4M3.E4M3", "unknown instruction"),
    ],
)
def test_a_wrong_name_says_what_is_near(architecture: str, name: str, words: str) -> None:
    with pytest.raises(UnknownNameError, match=words) as caught:
        golden.instruction(architecture, name)
    assert "\n" not in str(caught.value)


# The paper's tables -----------------------------------------------------------------------------------------


def fused(ins: Instruction) -> tuple[int, int]:
    """(F, steps in the chain) of a program of fused dot-adds."""
    assert set(ins.program.algorithms) <= {"fda", "scaled_fda", "gdfs"}, ins
    widths = {dict(step.fraction_bits)["c"] for step in ins.program.steps_of(Align)}
    return widths.pop(), len(ins.program.operations)


HMMA_ROWS = [  # name, then (F, steps) by architecture; Turing's m8n8k4 has Volta's numerics (2.1.1)
    (f"{MMA}m8n8k4.row.col.f32.f16.f16.f32", {"volta": (23, 1), "turing": (23, 1)}),
    (f"{MMA}m8n8k4.row.col.f32.f16.f16.f16", {"volta": (23, 1), "turing": (23, 1)}),
    (f"{MMA}m8n8k4.row.col.f16.f16.f16.f16", {"volta": (23, 1), "turing": (23, 1)}),
    *(
        (
            f"{MMA}m16n8k8.row.col.{d}.f16.f16.{d}",
            dict.fromkeys(("turing", "ampere", "ada"), (24, 1)) | dict.fromkeys(SM80[2:], (25, 1)),
        )
        for d in ("f32", "f16")
    ),
    *(
        (
            f"{MMA}m16n8k16.row.col.{d}.f16.f16.{d}",
            dict.fromkeys(SM80[:2], (24, 2)) | dict.fromkeys(SM80[2:], (25, 1)),
        )
        for d in ("f32", "f16")
    ),
    (
        f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32",
        dict.fromkeys(SM80[:2], (24, 2)) | dict.fromkeys(SM80[2:], (25, 1)),
    ),
    (
        f"{MMA}m16n8k8.row.col.f32.bf16.bf16.f32",
        dict.fromkeys(SM80[:2], (24, 1)) | dict.fromkeys(SM80[2:], (25, 1)),
    ),
    (
        f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32",
        dict.fromkeys(SM80[:2], (24, 2)) | dict.fromkeys(SM80[2:], (25, 1)),
    ),
    (
        f"{MMA}m16n8k4.row.col.f32.tf32.tf32.f32",
        dict.fromkeys(SM80[:2], (24, 1)) | dict.fromkeys(SM80[2:], (25, 1)),
    ),
    *(
        (f"{MMA}m16n8k{k}.row.col.{d}.{a}.{b}.{d}", {"ada": (13, k // 16), "rtx_blackwell": (25, 1)})
        for k in (16, 32)
        for d in ("f32", "f16")
        for a in ("e4m3", "e5m2")
        for b in ("e4m3", "e5m2")
    ),
    *(
        (f"wgmma.mma_async.sync.aligned.m64n8k{k}.{d}.{t}.{t}", {"hopper": (f, 1)})
        for k, d, t, f in (
            (8, "f32", "tf32", 25),
            (16, "f32", "f16", 25),
            (16, "f16", "f16", 25),
            (16, "f32", "bf16", 25),
            (32, "f32", "e4m3", 13),
            (32, "f16", "e5m2", 13),
        )
    ),
    *(
        (f"{MMA}m16n8k32.row.col.kind::f8f6f4.{d}.{a}.{b}.{d}", {"rtx_blackwell": (25, 1)})
        for d in ("f32", "f16")
        for a in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
        for b in ("e4m3", "e2m1")
    ),
    *(
        (
            f"{MMA}m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.{a}.e5m2.f32.ue8m0",
            {"rtx_blackwell": (25, 1)},
        )
        for a in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
    ),
    (
        f"{MMA}m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
        {"rtx_blackwell": (35, 1)},
    ),
    (
        f"{MMA}m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        {"rtx_blackwell": (35, 1)},
    ),
    *(
        (f"tcgen05.mma.cta_group::1.kind::{kind}", {"blackwell": (f, 1)})
        for kind, f in (
            ("f16.m64n8k16.f32.f16.f16", 25),
            ("tf32.m64n8k8.f32.tf32.tf32", 25),
            ("f8f6f4.m64n8k32.f32.e4m3.e2m1", 25),
            ("mxf4.block_scale.scale_vec::2X.m128n8k64.f32.e2m1.e2m1.ue8m0", 35),
            ("mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3", 35),
        )
    ),
]


@pytest.mark.parametrize(("name", "cells"), HMMA_ROWS)
def test_table_iii(name: str, cells: dict[str, tuple[int, int]]) -> None:
    for architecture, wanted in cells.items():
        assert fused(golden.instruction(architecture, name)) == wanted, architecture


def test_table_iii_dmma() -> None:
    for architecture in SM80:
        assert golden.instruction(
            architecture, f"{MMA}m8n8k4.row.col.f64.f64.f64.f64"
        ).program.algorithms == ("sfma",)
    for shape in ("m16n8k4", "m16n8k8", "m16n8k16"):
        assert golden.instruction("hopper", f"{MMA}{shape}.row.col.f64.f64.f64.f64").program.algorithms == (
            "sfma",
        )


TABLE_IV = [  # CDNA2 name, its algorithm, CDNA3 name, its algorithm and steps
    ("f64_16x16x4f64", "sfma", "f64_16x16x4_f64", ("sfma", 1)),
    ("f64_4x4x4f64", "sfma", "f64_4x4x4_4b_f64", ("sfma", 1)),
    ("f32_32x32x1f32", "sfma", "f32_32x32x1_2b_f32", ("sfma", 1)),
    ("f32_16x16x1f32", "sfma", "f32_16x16x1_4b_f32", ("sfma", 1)),
    ("f32_4x4x1f32", "sfma", "f32_4x4x1_16b_f32", ("sfma", 1)),
    ("f32_32x32x2f32", "sfma", "f32_32x32x2_f32", ("sfma", 1)),
    ("f32_16x16x4f32", "sfma", "f32_16x16x4_f32", ("sfma", 1)),
    (None, "", "f32_16x16x8_xf32", ("fdrda", 2)),
    (None, "", "f32_32x32x4_xf32", ("fdrda", 1)),
    ("f32_32x32x4f16", "gps4", "f32_32x32x4_2b_f16", ("fdrda", 1)),
    ("f32_16x16x4f16", "gps4", "f32_16x16x4_4b_f16", ("fdrda", 1)),
    ("f32_4x4x4f16", "gps4", "f32_4x4x4_16b_f16", ("fdrda", 1)),
    ("f32_32x32x8f16", "gps4", "f32_32x32x8_f16", ("fdrda", 1)),
    ("f32_16x16x16f16", "gps4", "f32_16x16x16_f16", ("fdrda", 2)),
    *((f"f32_{s}bf16", "gps2", None, ("", 0)) for s in ("32x32x2", "16x16x2", "4x4x2", "32x32x4", "16x16x8")),
    ("f32_32x32x4bf16_1k", "gps4", "f32_32x32x4_2b_bf16", ("fdrda", 1)),
    ("f32_16x16x4bf16_1k", "gps4", "f32_16x16x4_4b_bf16", ("fdrda", 1)),
    ("f32_4x4x4bf16_1k", "gps4", "f32_4x4x4_16b_bf16", ("fdrda", 1)),
    ("f32_32x32x8bf16_1k", "gps4", "f32_32x32x8_bf16", ("fdrda", 1)),
    ("f32_16x16x16bf16_1k", "gps4", "f32_16x16x16_bf16", ("fdrda", 2)),
    *(
        (None, "", f"f32_{shape}_{a}_{b}", ("gfdrda", steps))
        for shape, steps in (("16x16x32", 2), ("32x32x16", 1))
        for a in ("bf8", "fp8")
        for b in ("bf8", "fp8")
    ),
]


@pytest.mark.parametrize(("cdna2", "algorithm2", "cdna3", "cell3"), TABLE_IV)
def test_table_iv(cdna2: str | None, algorithm2: str, cdna3: str | None, cell3: tuple[str, int]) -> None:
    if cdna2 is not None:
        program = golden.instruction("cdna2", f"v_mfma_{cdna2}").program
        trees = [step.group for step in program.steps_of(Additions) if step.order == "tree"]
        found = f"gps{trees[0][1]}" if trees and trees[0] else program.operations[0].algorithm
        assert found == algorithm2 and len(program.operations) == 1
    if cdna3 is not None:
        program = golden.instruction("cdna3", f"v_mfma_{cdna3}").program
        assert (program.operations[0].algorithm, len(program.operations)) == cell3
        assert len(program.algorithms) == 1


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("sfma", "fma_chain"),
        ("gps", "ftz_addmul"),
        ("fda", "t_fdpa"),
        ("cofda", None),
        ("gdfs", "gst_fdpa"),
        ("fdrda", "tr_fdpa"),
        ("cofdrda", None),
        ("gfdrda", "gtr_fdpa"),
        ("cogfdrda", None),
        ("scaled_fda", "st_fdpa"),
        ("exact_dot_add", "e_fdpa"),
    ],
)
def test_the_papers_algorithms_are_there_under_both_names(name: str, alias: str | None) -> None:
    assert get_algorithm(name).name == name and name in algorithms()
    assert alias is None or get_algorithm(alias).name == name


def test_an_unknown_algorithm_names_near_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"nearest: .*fda"):
        get_algorithm("fdaa")
