"""Options of the command whose functions other tests cover: here the command itself takes them, and prints
what they ask for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.cli import app

ROOT = Path(__file__).parents[3]
HMMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"


def call(*arguments: object, status: int = 0) -> Any:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app.app, [str(argument) for argument in arguments])
    assert done.exit_code == status, (done.output, done.exception)
    return done


def test_list_all_has_a_row_for_each_n() -> None:
    names = {
        ins.name
        for ins in golden.instructions("hopper")
        if "k32.f32.e4m3.e4m3" in ins.name and ins.name.startswith("wgmma")
    }
    folded, every = (
        call("list", "k32.f32.e4m3.e4m3", "--arch", "hopper", *more).stdout for more in ([], ["--all"])
    )
    assert all(name in every for name in names)
    assert sum(name in folded for name in names) <= 1 < len(names)


def test_arch_stands_for_the_prefix(tmp_path: Path) -> None:
    """Of every command that takes it: hopper's own answer, not that of the others that have the name."""
    full, apart = f"hopper:{HMMA}", [HMMA, "--arch", "hopper"]
    assert (
        call("explain", full, "--a", "1", "--json").stdout
        == call("explain", *apart, "--a", "1", "--json").stdout
    )
    assert call("export", full).stdout == call("export", *apart).stdout
    operands = ["--dot"]
    for name, shape in (("a", 16), ("b", 16), ("c", 1)):
        (tmp_path / f"{name}.hex").write_text("1 " * shape)
        operands += [f"--{name}", str(tmp_path / f"{name}.hex")]
    assert call("run", full, *operands).stdout == call("run", *apart, *operands).stdout
    made = [
        call("vectors", *name, "--count", 3, "--out", tmp_path / "v.hex", "--json").stdout
        for name in ([full], apart)
    ]
    assert json.loads(made[0])["sha256"] == json.loads(made[1])["sha256"]
    call("vectors", "--check", tmp_path / "v.hex", *apart)
    assert "exists on ampere, ada, hopper" in call("explain", "HMMA.16816.F32", status=2).stderr


def test_scales_of_both_operands(tmp_path: Path) -> None:
    name = f"rtx_blackwell:{SCALED}"
    answer = json.loads(
        call("explain", name, "--a", "3", "--b", "2", "--scale-a", "4", "--scale-b", "0.5", "--json").stdout
    )
    assert answer["d_value"] == "12.0"
    ins = golden.instruction("rtx_blackwell", SCALED)
    scale = {
        "a": golden.from_float("ue4m3", np.full((1, 4), 4.0)),
        "b": golden.from_float("ue4m3", np.full((1, 4), 0.5)),
    }
    words = {"a": [0x5] + 63 * [0], "b": [0x4] + 63 * [0], "c": [0]}
    options = ["--dot", "--out", tmp_path / "d.npy"]
    for key, codes in words.items():
        (tmp_path / f"{key}.hex").write_text(" ".join(f"{code:x}" for code in codes))
        options += [f"--{key}", tmp_path / f"{key}.hex"]
    for key, codes in scale.items():
        np.save(tmp_path / f"scale_{key}.npy", codes)
        options += [f"--scale-{key}", tmp_path / f"scale_{key}.npy"]
    call("run", name, *options)
    assert golden.to_float(ins.formats["d"].name, np.load(tmp_path / "d.npy")).tolist() == [12.0]


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    row = SimpleNamespace(required=True, ok=True, as_dict=lambda: {"name": "Verilator"})
    monkeypatch.setattr("rtl_tb.doctor.doctor", lambda progress: [row])
    assert json.loads(call("doctor", "--json").stdout) == [{"name": "Verilator"}]


def test_docs_build_takes_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        "golden.publish.site.build", lambda out, jobs, progress, vectors: given.append((out, jobs)) or 7
    )
    said = call("docs", "build", "--out", tmp_path, "--jobs", 3).stderr
    assert said.startswith(f"{tmp_path / 'index.html'}: 7 pages\n")
    assert given == [(tmp_path, 3)]


# Any text, any locale ---------------------------------------------------------------------------------------

LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"},
]
WORDS = "積和 מכפלה 🙂"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """A unit whose title is of the whole world, in a file whose name is no text in any locale."""
    text = (ROOT / "spec" / "examples" / "late_c.yaml").read_text("utf-8")
    path = tmp_path / "積\udce9.yaml"
    path.write_bytes(
        "\n".join(
            f"title: {WORDS}" if line.startswith("title:") else line for line in text.splitlines()
        ).encode()
    )
    return path


@pytest.mark.parametrize("environment", long_after(1, LOCALES))
def test_any_text_in_any_locale(environment: dict[str, str], unit: Path) -> None:
    commands: list[list[str | Path]] = [
        ["spec", "check", unit],
        ["show", unit],
        ["explain", unit, "--a", "1"],
        ["compare", unit, unit, "--budget", "20"],
        ["export", unit],
        ["export", unit, "--out", unit.with_suffix(".md")],
        ["vectors", unit, "--count", "5", "--out", unit.with_suffix(".jsonl")],
        ["vectors", "--check", unit.with_suffix(".jsonl"), unit],
        ["docs", "export", unit, "--format", "html"],
        ["docs", "export", unit, "--format", "pdf", "--out", unit.with_suffix(".pdf")],
        ["study", "product-overflow", "--samples", "20"],
    ]
    code = (
        "import os, sys\nfrom golden.cli import app\n"
        "for words in eval(sys.stdin.buffer.read().decode('ascii')):\n"
        "    sys.argv = ['mmagold', *map(os.fsdecode, words)]\n"
        "    try:\n        app.main()\n"
        "    except SystemExit as end:\n        print('status', end.code, flush=True)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        input=ascii([[os.fsencode(word) for word in words] for words in commands]).encode(),
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert said.stdout.count(b"status 0") == len(commands), (said.stdout[-2000:], said.stderr)
    assert said.stderr == b"" or b"internal error" not in said.stderr
    assert WORDS in unit.with_suffix(".md").read_text("utf-8")
