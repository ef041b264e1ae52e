"""Names as people write them: any order of qualifiers, compilers' and libraries' names, machine code, chips;
each is found, or refused with what is near."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.catalog.qualifiers import difference, key_of
from golden.catalog.resolver import resolver
from golden.cli import app
from golden.errors import UnknownNameError

MMA = "mma.sync.aligned"


def refusal(chip: str, name: str) -> str:
    with pytest.raises(UnknownNameError) as caught:
        golden.instruction(chip, name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("chip", "written", "listed"),
    [
        # CUTLASS: kind, block scale and scale vector before the shape, dense and sparse
        (
            "rtx5090",
            f"{MMA}.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32",
            f"{MMA}.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32",
        ),
        (
            "rtx5090",
            f"{MMA}.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e3m2.f32.ue8m0",
            f"{MMA}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e3m2.f32.ue8m0",
        ),
        (
            "rtx5090",
            f"{MMA}.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
            f"{MMA}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        ),
        (
            "rtx5090",
            "mma.sync.aligned.kind::f8f6f4.sp::ordered_metadata.m16n8k64.row.col.f32.e2m1.e3m2.f32",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32",
        ),
        (
            "hopper",
            "wgmma.mma_async.sync.aligned.satfinite.m64n8k32.s32.s8.s8",
            "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8.satfinite",
        ),
        # compilers
        ("rdna3", "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32", "v_wmma_f32_16x16x16_f16_w32"),
        ("rdna4", "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12", "v_wmma_f32_16x16x16_f16_w32"),
        ("rdna3", "__builtin_amdgcn_wmma_bf16_16x16x16_bf16_tied_w64", "v_wmma_bf16_16x16x16_bf16_w64"),
        ("rdna3", "__builtin_amdgcn_fdot2", "v_dot2_f32_f16"),
        ("rdna4", "llvm.amdgcn.dot4.f32.fp8.bf8", "v_dot4_f32_fp8_bf8"),
        ("cdna1", "__builtin_amdgcn_mfma_f32_32x32x8f16", "v_mfma_f32_32x32x8f16"),
        ("cdna2", "__builtin_amdgcn_mfma_f32_32x32x8bf16_1k", "v_mfma_f32_32x32x8bf16_1k"),
        ("cdna3", "__builtin_amdgcn_mfma_f32_32x32x8bf16_1k", "v_mfma_f32_32x32x8_bf16"),
        ("cdna3", "llvm.amdgcn.mfma.f32.16x16x32.fp8.bf8", "v_mfma_f32_16x16x32_fp8_bf8"),
        ("cdna3", "v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x16_f16"),
        ("spr", "_mm512_dpbf16_ps", "vdpbf16ps"),
        ("spr", "_mm512_maskz_dpbusds_epi32", "vpdpbusds"),
        ("spr", "__builtin_ia32_vpdpwssd512", "vpdpwssd"),
        ("spr", "_tile_dpbf16ps", "tdpbf16ps"),
        ("gnr", "__builtin_ia32_tdpfp16ps_internal", "tdpfp16ps"),
        ("arm", "vbfdotq_f32", "bfdot.4s"),
        ("arm", "vsudotq_laneq_s32", "sudot.4s"),
        ("cdna3", "V_DOT4_I32_I8_E64", "v_dot4_i32_i8"),
        ("arm", "vusmmlaq_s32", "usmmla.4s"),
        ("arm", "svmopa_za32_s8_m", "smopa.s"),
        ("hopper", "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32"),
        ("hopper", "@llvm.nvvm.mma.m16n8k8.row.col.tf32", f"{MMA}.m16n8k8.row.col.f32.tf32.tf32.f32"),
        (
            "ampere",
            "int_nvvm_mma_m16n8k16_row_col_satfinite_s8_u8",
            f"{MMA}.m16n8k16.row.col.satfinite.s32.s8.u8.s32",
        ),
        (
            "ampere",
            "llvm.nvvm.mma.xor.popc.m8n8k128.row.col.b1",
            f"{MMA}.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
        ),
        # CUTLASS's atoms
        ("h100", "SM80_16x8x16_F32BF16BF16F32_TN", f"{MMA}.m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("h100", "SM90_64x64x16_F32F16F16_SS", "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"),
        # machine code
        ("hopper", "HGMMA.64x8x16.F32", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"),
        ("hopper", "QGMMA.64x8x32.F32.E4M3.E4M3", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"),
        ("hopper", "IGMMA.SP.64x256x64.S8.U8.SAT", "wgmma.mma_async.sp.sync.aligned.m64n256k64.s32.s8.u8.satfinite"),  # noqa: E501
        ("rtx5090", "QMMA.16832.F32.E4M3.E5M2", f"{MMA}.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
        (
            "rtx5090",
            "OMMA.SF.16864.F32.E2M1.E2M1.E8",
            f"{MMA}.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
        ),
    ],
)  # fmt: skip
def test_it_is_found(chip: str, written: str, listed: str) -> None:
    found = golden.instruction(chip, written)
    assert found.name == listed and found is golden.instruction(f"{chip}:{listed}")
    assert golden.instruction(f"{chip}:{written}") is found


def test_the_two_ptx_spellings_of_a_machine_instruction_compute_the_same() -> None:
    """Which of the two stands for QMMA does not matter: their programs are one."""
    plain, kind = (
        golden.instruction("rtx5090", f"{MMA}.m16n8k32.row.col{kind}.f32.e4m3.e4m3.f32")
        for kind in ("", ".kind::f8f6f4")
    )
    assert plain.program == kind.program and plain.formats == kind.formats and plain.layout == kind.layout


@pytest.mark.parametrize(
    ("chip", "written", "said"),
    [
        ("rdna3", "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32", "names 4 instructions of rdna3: .*u8.s8"),
        ("rdna3", "llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16", "names 2 .*_w32, .*_w64$"),
        ("hopper", "__hmma_m16n16k16_mma_f32f32", "names 4 instructions of hopper: wmma"),
        ("rdna4", "V_WMMA_F32_16X16X16_F16", "names 2 instructions of rdna4: .*_w32, .*_w64$"),
        ("b200", "tcgen05.mma.cta_group::2.kind::tf32", "names 32 instructions of blackwell: .*k8.f32.tf32"),
        ("arm", "vmmlaq_f32_f16", "newer than the sources at hand"),
        ("b200", "UTCHMMA", "names 192 instructions .*; mmagold list blackwell UTCHMMA lists them"),
        ("cdna4", "__builtin_amdgcn_mfma_f32_16x16x32_bf16", "its arithmetic is unknown"),
        ("cdna2", "v_mfma_f32_16x16x16_f16", r"here v_mfma_f32_16x16x16f16 \(written so here\)"),
        ("cdna3", "v_mfma_f32_32x32x4bf16", r"exists on cdna1, cdna2; here v_mfma_f32_32x32x8_bf16 \(32x32x8 for"),  # noqa: E501
        ("spr", "_mm256_dpbf16_ps", "nearest: vdpbf16ps"),
        ("hopper", f"{MMA}.m16n8k32.row.col.f32.bf16.bf16.f32", r"nearest: \S*m16n8k16\S*bf16.bf16.f32 \(m16n8k16 for m16n8k32\)"),  # noqa: E501
        ("hopper", f"{MMA}.m16n8k16.row.col.f32.f16.bf16.f32", r"nearest: \S+ \(f16 for bf16\), \S+ \(bf16 for f16\)"),  # noqa: E501
        ("hopper", "HGMMA.64x12x16.F32", r"nearest: HGMMA.64x8x16.F32 \(64x8x16 for 64x12x16\)"),
    ],
)  # fmt: skip
def test_it_is_refused_with_what_is_meant(chip: str, written: str, said: str) -> None:
    assert re.search(said, refusal(chip, written))


@pytest.mark.parametrize(
    "chip", long_after(3, ["hopper", "cdna2", "turing", "rtx_blackwell", "blackwell", "rdna4"])
)
def test_a_suggestion_never_changes_a_type_in_silence(chip: str) -> None:
    """Names with one wrong qualifier: where the types of a suggestion are others, it says which."""
    draw = random.Random(5)
    for name in draw.sample([ins.name for ins in golden.instructions(chip)], 12):
        words = re.split(r"([._])", name)
        place = draw.randrange(2, len(words), 2)
        words[place] = draw.choice(["f64", "m16n8k99", "row", "e9m9", "xyz", "u8"])
        wrong = "".join(words)
        for known, text in re.findall(r"(\S+) \(([^)]*)\)", resolver().near(wrong, [chip])):
            apart = difference(wrong, known)
            assert apart is not None and apart.text == text
            assert sorted(key_of(wrong)[1]) == sorted(key_of(known)[1]) or apart.types or "_" in known, text


CHIPS = {
    "rdna3": ["gfx1151", "Strix Halo", "w7900", "Radeon Pro W7900", "7900 xtx"],
    "cdna3": ["mi308x", "AMD Instinct MI300X"],
    "ampere": ["a6000", "RTX A6000", "nvidia a100"],
    "ada": ["4090", "GeForce RTX 4090", "geforce-rtx-4090", "6000 Ada"],
    "rtx_blackwell": ["5090", "rtx5090"],
    "armv9": ["neoverse", "grace", "Neoverse V2"],
    "sapphire_rapids": ["Xeon 8480", "spr"],
}


@pytest.mark.parametrize(("name", "word"), [(name, word) for name, all_ in CHIPS.items() for word in all_])
def test_a_chip_is_found(name: str, word: str) -> None:
    assert resolver().called(word) == name


@pytest.mark.parametrize(
    ("word", "relative"),
    [
        *((word, "blackwell") for word in ("sm_103", "b300", "gb300", "jetson thor", "NVIDIA B300")),
        *((word, "rtx_blackwell") for word in ("sm_121", "gb10", "dgx spark")),
        ("gfx1150", "rdna3"),
        ("gfx1250", "rdna4"),
        *((word, "sapphire_rapids") for word in ("zen4", "zen5", "EPYC")),
    ],
)
def test_a_relative_is_refused_and_says_what_is_not_known(word: str, relative: str) -> None:
    said = refusal(word, "HMMA.16816.F32")
    assert f"unknown architecture '{word}': " in said and re.search(f"nearest: .*{relative}", said)
    assert re.search("nobody (has|does)|no source shows that", said)


@pytest.mark.parametrize(
    ("word", "several"),
    [("amx", 3), ("avx512", 3), ("AVX-512", 3), ("vnni", 3), ("xeon", 3), ("radeon", 2), ("nvidia", 7)],
)
def test_a_word_for_several_asks_which(word: str, several: int) -> None:
    said = refusal(word, "tdpbf16ps")
    assert said.startswith(f"'{word}' is no one architecture, it is on ") and said.count(", ") == several


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("4090", {"ada"}),
        ("amx", {"sapphire_rapids", "granite_rapids", "diamond_rapids"}),
        ("gb300", {"blackwell"}),
        ("zen4", {"sapphire_rapids"}),
        ("xeon vnni", {"sapphire_rapids", "granite_rapids", "diamond_rapids"}),
        ("strix halo", {"rdna3"}),
    ],
)
def test_list_finds_what_the_words_mean(text: str, found: set[str]) -> None:
    """The same words as in the site's finder, whose index comes of the same object."""
    listed = {(one, full) for one in golden.architectures() for full in resolver().search(one, text)}
    assert {one for one, _ in listed} == found
    assert not any("tdp" in full for _, full in listed if "zen" in text or "vnni" in text)
    done = CliRunner().invoke(app.app, ["list", *text.split()])
    assert done.exit_code == 0 and "instruction" in done.stdout
    assert ("no source shows that" in done.stderr) == (text in ("gb300", "zen4"))


def test_a_chip_without_any_of_them_says_why() -> None:
    done = CliRunner().invoke(app.app, ["list", "gfx1250"])
    assert done.stdout == "" and "arithmetic nobody has published" in done.stderr


PTX = {
    "sm_120a": [
        (f"{MMA}.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32", 4),
        (f"{MMA}.f32.e4m3.e4m3.f32.row.m16n8k32.col.kind::f8f6f4", 4),
        ("mma.sync.aligned.kind::f8f6f4.sp::ordered_metadata.m16n8k64.row.col.f32.e2m1.e3m2.f32", 8),
        (f"{MMA}.row.m16n8k16.f32.f16.col.f16.f32", 4),
    ]
}


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
def test_ptxas_takes_these_orders(tmp_path: Path) -> None:
    """Also between the types, and layouts apart from each other."""
    sums = "{%f0,%f1,%f2,%f3}"
    for target, names in PTX.items():
        lines = [
            f"{name} {sums},{{%r0,%r1,%r2,%r3}},{{{','.join(f'%r{i}' for i in range(b // 2))}}},{sums}"
            f"{', %r8, 0' if b == 8 else ''};"
            for name, b in names
        ]
        head = f".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k() {{\n"
        (tmp_path / "k.ptx").write_text(
            head + ".reg .b32 %r<9>; .reg .f32 %f<4>;\n" + "\n".join(lines) + "\nret; }\n"
        )
        command = ["ptxas", f"-arch={target}", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k")]
        subprocess.run(command, check=True)
        for name, _ in names:
            assert golden.instruction(target, name)


def test_every_instruction_is_found_with_its_qualifiers_in_any_order() -> None:
    """Types and layouts stay in their order among themselves."""
    draw = random.Random(1)
    for chip in golden.architectures():
        for ins in draw.sample(golden.instructions(chip), min(len(golden.instructions(chip)), 25)):
            head, *rest = ins.name.split(".")
            draw.shuffle(rest)
            ordered = iter([word for word in ins.name.split(".")[1:] if word in key_of(ins.name)[1]])
            layouts = iter(key_of(ins.name)[2])
            mixed = [
                next(ordered) if word in key_of(ins.name)[1]
                else next(layouts) if word in ("row", "col")
                else word
                for word in rest
            ]  # fmt: skip
            assert golden.instruction(chip, ".".join([head, *mixed])) is ins, mixed


# What is in no list -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chip", "name", "said"),
    [
        ("hopper", "dp4a.s32.s32", "no matrix unit"),
        ("blackwell", "tcgen05.mma.sp.cta_group::1.kind::f16", "no results of it"),
        ("volta", "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32", "which differ"),
        ("rdna3", "v_dot4_i32_iu8.s8.s8.clamp", "whether the clamp works once"),
        ("cdna3", "v_dot2_f32_f16", "no results of it"),
        ("arm", "BMOPA.S", "popcount"),
        ("dmr", "vdpphps", "roundings was not at hand"),
        ("riscv", "vfbdota.vv", "not at hand"),
    ],
)
def test_every_other_matrix_instruction_says_why_it_is_not_here(chip: str, name: str, said: str) -> None:
    assert re.search(said, refusal(chip, name))
