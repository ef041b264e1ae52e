"""Qualifiers are found at every place where ptxas takes them, a scale vector under all its names, and
nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from long_run import long_after

import golden
from golden.catalog import architectures

LISTED = [name for name in architectures.get_architecture("hopper").names() if "satfinite" in name]
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8.satfinite"


def moved(name: str) -> str:
    """The other place of the word, made without the package."""
    bare = name.replace(".satfinite", "")
    return f"{bare}.satfinite" if ".satfinite." in name else bare.replace(".s32", ".satfinite.s32", 1)


def test_every_saturating_instruction_has_two_spellings() -> None:
    assert (
        len({re.sub(r"n\d+k", "k", name) for name in LISTED}) > 20
        and sum(".sp." in name for name in LISTED) > 60
    )
    for name in LISTED:
        assert moved(name) != name
        assert golden.instruction("hopper", moved(name)) is golden.instruction("hopper", name), name


@pytest.mark.parametrize(
    "name",
    long_after(
        5,
        [
            WGMMA + ".satfinite",
            moved(WGMMA) + ".satfinite",
            "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc.satfinite",
            "wgmma.mma_async.sync.aligned.m64n8k256.satfinite.s32.b1.b1.and.popc",
            "wgmma.mma_async.sync.aligned.m64n8k32.satfinite.f32.e4m3.e4m3",
            "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3.satfinite",
            "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
            moved(WGMMA).replace("n8", "n40"),
            moved(WGMMA).replace("k32", "k64"),
            "satfinite.s32.s8",
            WGMMA.replace("s32.s8.s8", "s8.s32.s8"),
            "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32",
            "",
        ],
    ),
)
def test_nothing_else_is_an_instruction(name: str) -> None:
    with pytest.raises(golden.errors.UnknownNameError):
        golden.instruction("hopper", name)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize("sparse", [False, True])
def test_ptxas_takes_both(sparse: bool, tmp_path: Path) -> None:
    rest = "%d0, %d1, %r5, 0, %p0" if sparse else "%d0, %d1, %p0"
    name = WGMMA.replace("async.", "async.sp.").replace("k32", "k64") if sparse else WGMMA
    lines = [f"{spelled} {{%r0, %r1, %r2, %r3}}, {rest};" for spelled in (name, moved(name))]
    head = ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
    registers = ".reg .b32 %r<8>; .reg .b64 %d<2>; .reg .pred %p<1>;\n"
    (tmp_path / "k.ptx").write_text(head + registers + "\n".join(lines) + "\nret; }\n")
    subprocess.run(["ptxas", "-arch=sm_90a", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k")], check=True)
    assert golden.instruction("hopper", moved(name)).name == name


TCGEN05 = "tcgen05.mma.cta_group::1.kind::"
BLOCKS = {"1": ".block32", "2": ".block32", "4": ".block16"}
"""What PTX ISA 8.8 and later call the scale vectors of tcgen05."""


def scaled() -> list[tuple[str, str]]:
    return [
        (arch, name)
        for arch in ("blackwell", "rtx_blackwell")
        for name in architectures.get_architecture(arch).names()
        if ".block_scale." in name
    ]


def test_a_scale_vector_is_found_under_all_its_names() -> None:
    """mxf8f6f4 and mxf4 have a default; tcgen05 has a second name for each."""
    seen = 0
    for arch, name in scaled():
        vector = re.search(r"\.scale_vec::(\d)X", name)
        assert vector
        spelled = [name.replace(vector[0], BLOCKS[vector[1]])] if name.startswith("tcgen05") else []
        spelled += [name.replace(vector[0], "")] if "kind::mxf4nvf4" not in name else []
        seen += len(spelled)
        for other in spelled:
            assert golden.instruction(arch, other) is golden.instruction(arch, name), other
    assert seen > 2000


def test_no_other_scale_vector_is_an_instruction() -> None:
    wrong = {
        f"{TCGEN05}mxf4nvf4.block_scale.m128n8k64.f32.e2m1.e2m1.ue4m3",
        f"{TCGEN05}mxf4nvf4.block_scale.block32.m128n8k64.f32.e2m1.e2m1.ue4m3",
        f"{TCGEN05}mxf4.block_scale.block16.m128n8k64.f32.e2m1.e2m1.ue8m0",
        f"{TCGEN05}mxf8f6f4.block_scale.block16.m128n8k32.f32.e4m3.e4m3.ue8m0",
    }
    assert not wrong & {
        spelling
        for entry in architectures.get_architecture("blackwell").entries
        for variables in entry.variants()
        for spelling in entry.family.spellings(variables)
    }
    with pytest.raises(golden.errors.UnknownNameError):
        golden.instruction("blackwell", min(wrong))


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize(
    ("kind", "vectors", "refused"),
    [
        ("mxf8f6f4", ["", ".scale_vec::1X", ".block32"], ".block16"),
        ("mxf4", ["", ".scale_vec::2X", ".block32"], ".block16"),
        ("mxf4nvf4", [".scale_vec::2X", ".block32", ".scale_vec::4X", ".block16"], ""),
    ],
)
def test_ptxas_takes_these_scale_vectors(kind: str, vectors: list[str], refused: str, tmp_path: Path) -> None:
    head = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"
    registers = ".reg .b32 %r<2>; .reg .b64 %d<1>; .reg .pred %p<1>;\n"

    def assembles(words: list[str]) -> bool:
        lines = [
            f"{TCGEN05}{kind}.block_scale{word} [%r0], %d0, %d0, %r1, [%r0], [%r0], %p0;" for word in words
        ]
        (tmp_path / "k.ptx").write_text(head + registers + "\n".join(lines) + "\nret; }\n")
        command = ["ptxas", "-arch=sm_100a", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k")]
        return subprocess.run(command, capture_output=True).returncode == 0

    assert assembles(vectors) and not assembles([refused])
