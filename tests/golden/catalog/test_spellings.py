"""`.satfinite` is found at both places where ptxas takes it, and nowhere else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import golden
from golden.catalog import architectures
from golden.cli import app

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
    [
        WGMMA + ".satfinite",
        moved(WGMMA) + ".satfinite",
        WGMMA.replace(".satfinite", "").replace(".s8.s8", ".s8.satfinite.s8"),
        WGMMA.replace(".satfinite", "").replace("m64", "satfinite.m64"),
        "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc.satfinite",
        "wgmma.mma_async.sync.aligned.m64n8k256.satfinite.s32.b1.b1.and.popc",
        "wgmma.mma_async.sync.aligned.m64n8k32.satfinite.f32.e4m3.e4m3",
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3.satfinite",
        "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
        moved(WGMMA).replace("n8", "n40"),
        moved(WGMMA).replace("k32", "k64"),
        "satfinite.s32.s8",
        "",
    ],
)
def test_nothing_else_is_an_instruction(name: str) -> None:
    with pytest.raises(golden.errors.UnknownNameError):
        golden.instruction("hopper", name)


@pytest.mark.parametrize(
    "arguments", [["show"], ["explain"], ["export"], ["vectors", "--count", "3", "--out", "v.hex"]]
)
def test_commands_take_both(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (
        CliRunner().invoke(app.app, [arguments[0], f"hopper:{name}", *arguments[1:]])
        for name in (WGMMA, moved(WGMMA))
    )
    assert first.exit_code == second.exit_code == 0 and first.stdout == second.stdout


def test_the_list_finds_both() -> None:
    found = [CliRunner().invoke(app.app, ["list", name, "--json"]).stdout for name in (WGMMA, moved(WGMMA))]
    assert found[0] == found[1] and [row["name"] for row in json.loads(found[0])] == [WGMMA]


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
