"""The kernel generator: PTX text known by heart, every instruction of the spec,
and a slice of them compiled."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import golden
from golden.catalog import architectures
from golden.cli.app import app
from golden.model.instruction import Instruction
from hw_capture.errors import HwError, NoKernelError
from hw_capture.kernels import build, kernels, sass, toolchain
from hw_capture.kernels.build import Built

NVIDIA = ("turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell")
SP = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"


def test_the_ptx_of_a_dense_product() -> None:
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    assert kernels.ptx(ins) == f"{ins.name} {{%0,%1,%2,%3}}, {{%4,%5,%6,%7}}, {{%8,%9}}, {{%10,%11,%12,%13}};"


def test_the_ptx_of_a_sparse_product_takes_metadata_and_selector() -> None:
    assert kernels.ptx(golden.instruction("hopper", SP)).endswith(
        "{%4,%5}, {%6,%7}, {%8,%9,%10,%11}, %12, 0x0;"
    )


def test_the_ptx_of_a_block_scaled_product_takes_two_scales() -> None:
    ins = golden.instruction("rtx_blackwell", "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X")
    assert kernels.ptx(ins).endswith("{%10,%11,%12,%13}, {%14}, {0, 0}, {%15}, {0, 0};")


@pytest.mark.parametrize(
    ("name", "form", "operands"),
    [
        (WGMMA, "shared", "{%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;"),
        (WGMMA, "registers", "{%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p, 1, 1, 0;"),
        ("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8.satfinite", "shared", "{%0,%1,%2,%3}, %4, %5, p;"),
        (
            "wgmma.mma_async.sp.sync.aligned.m64n8k64.f16.e4m3.e4m3",
            "shared",
            "{%0,%1}, %2, %3, %4, 0, p, 1, 1;",
        ),
    ],
)
def test_the_ptx_of_wgmma(name: str, form: str, operands: str) -> None:
    assert kernels.ptx(golden.instruction("hopper", name), form) == f"{name} {operands}"


@pytest.mark.parametrize("architecture", NVIDIA)
def test_every_instruction_has_a_kernel_but_those_of_tcgen05(architecture: str) -> None:
    for name in architectures.get_architecture(architecture).names():
        if name.startswith("tcgen05"):
            assert architecture == "blackwell"
            continue
        ins = golden.instruction(architecture, name)
        assert kernels.supported(ins), name


def _one_of_each(architecture: str) -> list[Instruction]:
    found: dict[tuple[str, ...], Instruction] = {}
    for ins in golden.instructions(architecture):
        if kernels.supported(ins) and (ins.layout != "wgmma" or ins.n in (8, 24)):
            found.setdefault((ins.family, ins.formats["d"].name, str(ins.m)), ins)
    return list(found.values())


@pytest.mark.parametrize("architecture", NVIDIA)
def test_operands_are_numbered_without_a_gap(architecture: str) -> None:
    """Every %i of the PTX is bound: as many inputs and outputs as the text names."""
    for ins in _one_of_each(architecture):
        for form in kernels.forms(ins):
            code = kernels.inline(ins, form)
            numbers = {int(number) for number in re.findall(r"%(\d+)", code)}
            bound = len(re.findall(r'"[=+]?[rldf]"\(', code))
            assert numbers == set(range(bound)), ins.name


def test_a_kernel_is_a_whole_unit_and_a_module_has_many() -> None:
    ins = golden.instruction("hopper", WGMMA)
    assert kernels.source(ins, "shared").count('extern "C" __global__') == 1
    code = kernels.module(
        [(ins, "registers"), (ins, "shared"), (golden.instruction("hopper", SP), "registers")]
    )
    assert [f"run_{i}(" in code for i in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("architecture", "name", "form", "message"),
    [
        ("cdna3", "v_mfma_f32_32x32x8_f16", "registers", "no kernel for family"),
        ("hopper", SP, "shared", "expected registers"),
        ("hopper", WGMMA, "memory", "expected registers or shared"),
    ],
)
def test_what_has_no_kernel_says_so(architecture: str, name: str, form: str, message: str) -> None:
    with pytest.raises(NoKernelError, match=message):
        kernels.source(golden.instruction(architecture, name), form)


@pytest.mark.parametrize(("count", "blocks"), [(1, 1), (4, 1), (5, 2), (10**6, 1056)])
def test_warps_fill_blocks(count: int, blocks: int) -> None:
    assert kernels.geometry(golden.instruction("hopper", SP), count) == (blocks, 128)


def test_targets_belong_to_architectures() -> None:
    assert build.architecture_of("sm_90a") == "hopper" and build.architecture_of("sm_86") == "ampere"
    with pytest.raises(HwError, match="no architecture has the target 'sm_91', expected one of sm_70"):
        build.architecture_of("sm_91")


# Compiled ---------------------------------------------------------------------------------------------------


def _built(architecture: str, target: str, chosen: list[Instruction]) -> list[Built]:
    ready = [ins for ins in chosen if not build.too_new(ins)]
    return [one for group in build.build(build.groups(ready), target) for one in group]


@pytest.mark.usefixtures("nvcc")
@pytest.mark.parametrize(
    ("architecture", "target"),
    [
        pytest.param("turing", "sm_75", marks=pytest.mark.long),
        pytest.param("ampere", "sm_80", marks=pytest.mark.long),
        pytest.param("ampere", "sm_86", marks=pytest.mark.long),
        pytest.param("ada", "sm_89", marks=pytest.mark.long),
        pytest.param("hopper", "sm_90a", marks=pytest.mark.long),
        pytest.param("blackwell", "sm_100a", marks=pytest.mark.long),
        pytest.param("rtx_blackwell", "sm_120a", marks=pytest.mark.long),
    ],
)
def test_a_slice_compiles_to_the_sass_of_the_spec(architecture: str, target: str) -> None:
    built = _built(architecture, target, _one_of_each(architecture))
    assert [(one.instruction.name, one.error) for one in built if one.error] == []
    assert all(one.sass for one in built)


@pytest.mark.long
@pytest.mark.usefixtures("nvcc")
def test_an_emulated_instruction_shows_what_it_became() -> None:
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
    (one,) = _built("hopper", "sm_90a", [ins])
    names = [sass.mnemonic(line) for line in one.sass]
    assert ins.emulated and names.count("HMMA.16816.F32") == 2 and names.count("FADD") == 4


@pytest.mark.usefixtures("nvcc")
def test_a_spec_that_is_wrong_is_found() -> None:
    """Ada's FP8 instruction compiled for Hopper is not the QMMA that Ada's spec names."""
    ins = golden.instruction("ada", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
    (one,) = _built("ada", "sm_90a", [ins])
    assert "compiled to 2 x HMMA.16816.F32, the spec says QMMA.16832.F32.E4M3.E4M3" in one.error


@pytest.mark.long
@pytest.mark.usefixtures("nvcc")
def test_one_kernel_that_ptxas_refuses_does_not_spoil_the_others() -> None:
    names = (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        WGMMA,
        "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",
    )
    built = _built("hopper", "sm_80", [golden.instruction("hopper", name) for name in names])
    assert [bool(one.error) for one in built] == [False, True, True, False]
    assert "ptxas" in built[1].error and len(built[1].error.splitlines()) == 1


@pytest.mark.usefixtures("nvcc")
def test_a_target_that_this_nvcc_does_not_know_is_one_line() -> None:
    result = CliRunner().invoke(app, ["capture", "--arch", "sm_70", "--compile-only"])
    assert result.exit_code == 2
    assert result.output.strip() == "mmagold: nvcc: nvcc fatal : Unsupported gpu architecture 'compute_70'"


@pytest.mark.usefixtures("nvcc")
def test_compile_only_counts_and_fails(tmp_path: Path) -> None:
    good = CliRunner().invoke(
        app,
        [
            "capture",
            "--arch",
            "sm_90a",
            "--compile-only",
            "--only",
            r"m16n8k16\.row\.col\.f32\.bf16",
            "--json",
        ],
    )
    assert good.exit_code == 0
    assert {row["sass"] for row in json.loads(good.output)["kernels"]} == {
        "1 x HMMA.16816.F32.BF16",
        "1 x HMMA.SP.16816.F32.BF16",
    }
    late = CliRunner().invoke(
        app, ["capture", "--arch", "sm_120a", "--compile-only", "--only", r"^mma\.sync.*vec::4X.*ue8m0$"]
    )
    if toolchain.version(toolchain.require("nvcc")).startswith("13.0"):
        assert "needs CUDA 13.1" in late.output
