"""Kernels for AMD: the text of every instruction, the check of what it became, the compiler where it is."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from hw_capture.errors import CompileError, HwError, NoKernelError, SassError, ToolMissing
from hw_capture.kernels import amd_toolchain, buffers, build, kernels, waves

TARGETS = {
    "cdna1": ["gfx908"],
    "cdna2": ["gfx90a"],
    "cdna3": ["gfx942"],
    "cdna4": ["gfx950"],
    "rdna3": ["gfx1100"],
    "rdna4": ["gfx1200", "gfx1201"],
}
WITHOUT = {"cdna1": 5, "cdna2": 5, "cdna3": 5, "cdna4": 7, "rdna3": 10, "rdna4": 10}
"""Without a kernel: integer dot products of a lane, and the two of CDNA4 whose layout nobody states."""
CLAMP = "v_wmma_i32_16x16x16_iu8_w32.s8.u8.clamp"


@pytest.mark.parametrize("arch", TARGETS)
def test_every_matrix_instruction_has_a_kernel(arch):
    chosen, left = build.select(arch)
    assert len(left) == WITHOUT.get(arch, 0) and len(chosen) + len(left) == len(golden.instructions(arch))
    for ins in chosen:
        text = waves.source(ins)
        layouts = (getattr(ins.fragments, name) for name in "abcd")
        words = [layout.registers * layout.register_bits // 32 for layout in layouts]
        assert [
            int(n)
            for n in re.findall(r"u32 of_a\[(\d+)\], of_b\[(\d+)\], of_c\[(\d+)\], of_d\[(\d+)\]", text)[0]
        ] == words


@pytest.mark.parametrize(
    ("arch", "name", "call"),
    [
        ("cdna1", "v_mfma_f32_32x32x4bf16", "mfma_f32_32x32x4bf16(of_a, of_b, of_c, 0, 0, 0)"),
        ("cdna3", "v_mfma_f32_32x32x4_2b_bf16", "mfma_f32_32x32x4bf16_1k(of_a, of_b, of_c, 0, 0, 0)"),
        ("cdna3", "v_mfma_f64_4x4x4_4b_f64", "mfma_f64_4x4x4f64(of_a, of_b, of_c, 0, 0, 0)"),
        ("cdna3", "v_mfma_i32_32x32x4_2b_i8", "mfma_i32_32x32x4i8(of_a, of_b, of_c, 0, 0, 0)"),
        ("cdna3", "v_mfma_i32_16x16x32_i8", "mfma_i32_16x16x32_i8(of_a, of_b, of_c, 0, 0, 0)"),
        ("rdna3", "v_wmma_f16_16x16x16_f16_w64", "wmma_f16_16x16x16_f16_w64(of_a, of_b, of_c, 0)"),
        ("rdna3", "v_dot2_f16_f16", "fdot2_f16_f16(of_a, of_b, of_c)"),
        ("rdna4", "v_dot2_bf16_bf16", "fdot2_bf16_bf16(of_a, of_b, of_c)"),
        ("cdna3", "v_smfmac_i32_16x16x64_i8", "smfmac_i32_16x16x64_i8(of_a, of_b, of_c, metadata, 0, 0)"),
        ("rdna4", CLAMP, "wmma_i32_16x16x16_iu8_w32_gfx12(1, of_a, 0, of_b, of_c, 1)"),
    ],
)
def test_the_builtin_and_its_modifiers(arch, name, call):
    assert f"__builtin_amdgcn_{call}" in waves.source(golden.instruction(arch, name))


def test_the_compiler_has_no_choice_of_another_dot_product():
    """Of its builtin clang makes v_dual_dot2acc_f32_f16 for gfx1100."""
    ins = golden.instruction("rdna3", "v_dot2_f32_f16")
    assert '__asm__("v_dot2_f32_f16 %0, %1, %2, %3"' in waves.source(ins)
    line = "v_dot2_f16_f16 v2.l, v5, v6, v2.l"
    assert waves.check_body(golden.instruction("rdna3", "v_dot2_f16_f16"), [line]) == [line]
    other = waves.functions("run:\n\tv_dual_dot2acc_f32_f16 v0, s2, s3 :: v_dual_mov_b32 v1, 0\n")["run"]
    with pytest.raises(SassError, match="compiled to v_dual_dot2acc_f32_f16"):
        waves.check_body(ins, other)


def test_a_lane_holds_its_own_dot_product():
    """f16: both products in one register, C and D in its low half (AMD RDNA3 ISA guide, V_DOT2_F16_F16)."""
    ins = golden.instruction("rdna3", "v_dot2_f16_f16")
    held = buffers.for_kernel(ins)
    assert held["a"].pack(np.array([[[0x1234, 0x5678]]], np.uint16)).tolist() == [[[0x56781234]]]
    assert held["b"].pack(np.array([[[0x1234], [0x5678]]], np.uint16)).tolist() == [[[0x56781234]]]
    assert held["c"].pack(np.array([[[0xABCD]]], np.uint16)).tolist() == [[[0xABCD]]]
    assert held["d"].unpack(np.array([[[0xFFFF1234]]], np.uint32)).tolist() == [[[0x1234]]]
    assert kernels.geometry(ins, 300) == (3, 128)


def test_indices_of_a_sparse_a_go_along():
    ins = golden.instruction("cdna3", "v_smfmac_i32_32x32x32_i8")
    assert "u32 metadata)" in waves.source(ins) and "metadata[thread]" in waves.source(ins)
    assert buffers.for_kernel(ins)["metadata"].shape == (64, 1)


LINE = "v_wmma_i32_16x16x16_iu8 v[4:11], v[0:1], v[2:3], v[4:11]"


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ([f"{LINE} neg_lo:[1,0,0] clamp"], ""),
        ([f"{LINE} neg_lo:[1,0,0] clamp"] * 2, ""),
        (
            [f"{LINE} neg_lo:[0,1,0] clamp"],
            "compiled to .*neg_lo:.0,1,0. clamp, the spec says .*neg_lo:.1,0,0. clamp",
        ),
        ([f"{LINE} neg_lo:[1,0,0]"], "compiled to"),
        ([LINE.replace("iu8", "iu4") + " neg_lo:[1,0,0] clamp"], "compiled to v_wmma_i32_16x16x16_iu4"),
        (
            [f"{LINE} neg_lo:[1,0,0] clamp", "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[0:1], v[0:1], 0"],
            "compiled to",
        ),
        ([], "compiled to no matrix instruction"),
    ],
)
def test_what_it_became_is_held_against_the_name(body, reported):
    ins = golden.instruction("rdna4", CLAMP)
    if not reported:
        assert waves.check_body(ins, body) == body
        return
    with pytest.raises(SassError, match=reported):
        waves.check_body(ins, body)


def test_listings_of_both_kinds_are_read():
    assembly = "run_0:   ; @run_0\n\ts_nop 1\n\tv_mfma_f32_32x32x8_f16 v[0:15], v[18:19], v[18:19], v[0:15]\n"
    dump = (
        "0000000000001500 <run_0>:\n"
        "\tv_mfma_f32_32x32x8_f16 v[0:15], v[18:19], v[18:19], v[0:15]// 000000001540: D3CC0000 04022512\n"
    )
    line = "v_mfma_f32_32x32x8_f16 v[0:15], v[18:19], v[18:19], v[0:15]"
    assert waves.functions(assembly) == waves.functions(dump) == {"run_0": [line]}
    assert waves.check_body(golden.instruction("cdna3", "v_mfma_f32_32x32x8_f16"), [line]) == [line]


def test_what_has_no_kernel_says_so():
    with pytest.raises(NoKernelError, match="no kernel for family mfma_long_i8"):
        waves.source(golden.instruction("cdna4", "v_mfma_i32_16x16x64_i8"))


def test_waves_of_two_sizes_are_compiled_apart():
    groups = build.groups(build.select("rdna3")[0])
    assert sum(map(len, groups)) == 28
    assert all(len({ins.traits.lanes for ins, _ in group}) == 1 for group in groups)


def fake(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def only(tmp_path, monkeypatch):
    """A folder that alone holds tools."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(amd_toolchain, "_folders", lambda: [tmp_path])
    monkeypatch.setattr(amd_toolchain, "_zig", lambda: None)
    monkeypatch.setattr(amd_toolchain, "_VERSIONS", ())
    monkeypatch.setattr(
        amd_toolchain.shutil,
        "which",
        lambda name, path=str(tmp_path): str(Path(path, name)) if Path(path, name).exists() else None,
    )
    amd_toolchain.tools.cache_clear()
    yield tmp_path
    amd_toolchain.tools.cache_clear()


CLANG = """case "$*" in
*--print-targets*) echo "  amdgcn - AMD GCN GPUs" ;;
*--version*) echo "clang version 99.1" ;;
*" -S "*) while [ "$1" != -o ]; do shift; done; printf 'run:\\n\\tv_x\\n' > $2 ;;
*) while [ "$1" != -o ]; do shift; done; printf x > $2 ;;
esac"""
LINKER = """while [ "$1" != -o ]; do shift; done; printf '\\177ELF' > $2"""


def test_without_a_compiler_one_line_says_what_to_install(only):
    with pytest.raises(
        ToolMissing, match=r"no clang with the target amdgcn .* install ROCm, or pip install ziglang"
    ):
        amd_toolchain.tools()
    fake(only, "clang", "echo '  x86-64'")
    fake(only, "ld.lld", LINKER)
    with pytest.raises(ToolMissing):
        amd_toolchain.tools()


def test_an_old_disassembler_is_passed_over(only):
    fake(only, "clang", CLANG)
    fake(only, "ld.lld", LINKER)
    assert amd_toolchain.listing("x", "gfx942") == "run:\n\tv_x\n" and amd_toolchain.version() == "clang 99.1"
    fake(
        only,
        "llvm-objdump",
        """case "$*" in *--version*) echo one ;; *) echo "unknown target" >&2; exit 1 ;; esac""",
    )
    amd_toolchain.tools.cache_clear()
    assert amd_toolchain.listing("y", "gfx942") == "run:\n\tv_x\n"


@pytest.mark.parametrize(
    ("tool", "text", "reported"),
    [
        (
            "clang",
            CLANG.replace("printf 'run", "echo 'error: no such builtin' >&2; exit 1; printf 'run"),
            "no such builtin",
        ),
        ("ld.lld", "exit 0", "wrote no code object"),
    ],
)
def test_what_the_tools_complain_of_is_reported(only, tool, text, reported):
    fake(only, "clang", CLANG)
    fake(only, "ld.lld", LINKER)
    fake(only, tool, text)
    with pytest.raises(CompileError, match=reported):
        amd_toolchain.compile("x", "gfx942")
    with pytest.raises(HwError, match="target is 'sm_90', expected gfx"):
        amd_toolchain.compile("x", "sm_90")


@pytest.mark.parametrize(
    ("arch", "target"),
    [
        pytest.param(arch, target, marks=[] if arch == "cdna3" else [pytest.mark.long])
        for arch, targets in TARGETS.items()
        for target in targets
    ],
)
def test_every_kernel_compiles_to_its_instruction(arch, target, tmp_path):
    try:
        amd_toolchain.tools()
    except ToolMissing as error:
        pytest.skip(str(error))
    done = CliRunner().invoke(app, ["capture", "--compile-only", "--arch", target, "--jobs", "2"])
    count = len(golden.instructions(arch)) - WITHOUT.get(arch, 0)
    last = f"{target}: {count} instructions (0 emulated), {count} kernels, 0 not as the spec says\n"
    assert done.exit_code == 0 and done.output.endswith(last), done.output
