"""The exported DPI-C models: through ctypes against the C core on many vectors, and in Verilator with the
example testbench."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from long_run import long_after

import golden
from golden.errors import OperandError
from golden.vectors import WordLayout, default_set, dpi
from rtl_tb.simulators import simulators

NAMES = {
    "dense": ("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    "sparse": ("hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"),
    "scaled": (
        "rtx_blackwell",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
    "integer": ("ampere", "mma.sync.aligned.m16n8k64.row.col.satfinite.s32.s4.s4.s32"),
    "double": ("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
    "half": ("ampere", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
}


UNITS = {
    "modes": "spec/examples/fma_modes.yaml",
    "modes and flags": "spec/examples/ieee_fma_flags.yaml",
    "an accumulator": "spec/examples/accumulator.yaml",
}
ROOT = Path(__file__).parents[3]


def unit(kind):
    """An instruction, or a unit of a file; what keeps its accumulator as it is modelled."""
    if kind in UNITS:
        return golden.load_instruction(ROOT / UNITS[kind]).stateless
    return golden.instruction(*NAMES[kind])


def field_words(layout, operands, name):
    """One operand of every vector as the uint32 words that a simulator passes, least significant first."""
    field = next(field for field in layout.operand_fields if field.name == name)
    words = layout.pack_operands(operands)
    bits = np.unpackbits(words, axis=1, bitorder="little")[:, field.lsb : field.lsb + field.width]
    padded = np.pad(bits, ((0, 0), (0, -field.width % 32)))
    return np.packbits(padded, axis=1, bitorder="little").view("<u4")


@pytest.mark.parametrize("kind", long_after(1, [*NAMES, *UNITS]))
def test_the_c_model_answers_as_the_core(kind, tmp_path):
    ins = unit(kind)
    dpi.write(ins, tmp_path, "model")
    strict = ["gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"]
    subprocess.run([*strict, "-o", tmp_path / "model.so", tmp_path / "model_dpi.c", "-lm"], check=True)
    function = ctypes.CDLL(str(tmp_path / "model.so")).model_dpi
    layout, vectors = WordLayout.of(ins), default_set(ins, 400, seed=5)
    inputs = [field_words(layout, vectors.operands, field.name) for field in layout.operand_fields]
    results = {field.name: np.zeros(2, np.uint32) for field in layout.result_fields}
    outputs = [result.ctypes.data_as(ctypes.c_void_p) for result in results.values()]
    for i in range(len(vectors)):
        function(*(words[i].ctypes.data_as(ctypes.c_void_p) for words in inputs), *outputs)
        for name, result in results.items():
            assert int.from_bytes(result.tobytes(), "little") == int(vectors.results[name][i]), f"{name} {i}"


def test_an_accumulator_is_not_the_models(tmp_path):
    with pytest.raises(OperandError, match="keeps its accumulator"):
        dpi.write(golden.load_instruction(ROOT / UNITS["an accumulator"]), tmp_path, "model")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["scaled", pytest.param("sparse", marks=pytest.mark.long)])
def test_the_example_testbench_passes_in_verilator_unless_a_result_is_wrong(kind, tmp_path):
    dpi.write(golden.instruction(*NAMES[kind]), tmp_path, "unit")
    done = subprocess.run(
        ["make", "-C", tmp_path, "verilator", "OPT_FAST=-O0", "OPT_GLOBAL=-O0", "CFLAGS=-O0"],
        env=dict(simulators.verilator().env),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: 56 vectors" in done.stdout
    file = tmp_path / "unit_vectors.hex"
    lines = file.read_text().splitlines()
    lines[7] = lines[7][:-1] + f"{int(lines[7][-1], 16) ^ 1:x}"
    file.write_text("\n".join(lines) + "\n")
    done = subprocess.run(["obj_dir/Vunit_tb"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "vector 7: model" in done.stdout and "FAIL: 1 of 56" in done.stdout + done.stderr


def test_the_core_of_fusesoc_names_files_that_are_there(tmp_path):
    dpi.write(golden.instruction(*NAMES["half"]), tmp_path, "unit")
    head, text = (tmp_path / "unit.core").read_text().split("\n", 1)
    core = yaml.safe_load(text)
    assert (head, core["name"]) == ("CAPI=2:", f"mmagold:dpi:unit:{golden.__version__}")
    named = {name for files in core["filesets"].values() for file in files["files"] for name in file}
    assert named == {"unit_dpi.c", "unit_pkg.sv", "unit_tb.sv", "unit_vectors.hex"}
    assert all((tmp_path / name).is_file() for name in named)
    assert {name for target in core["targets"].values() for name in target["filesets"]} == set(
        core["filesets"]
    )


@pytest.mark.long
def test_fusesoc_runs_the_example(tmp_path):
    if importlib.util.find_spec("fusesoc") is None:
        pytest.skip("fusesoc is not installed")
    dpi.write(golden.instruction(*NAMES["half"]), tmp_path, "unit")
    run = [
        sys.executable,
        "-m",
        "fusesoc.main",
        "--cores-root",
        ".",
        "run",
        "--target",
        "sim",
        "mmagold:dpi:unit",
    ]
    environment = dict(simulators.verilator().env) | {"HOME": str(tmp_path)}
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "PASS: 56 vectors" in done.stdout


def test_two_models_share_no_symbol(tmp_path):
    for name in ("dense", "integer"):
        dpi.write(golden.instruction(*NAMES[name]), tmp_path, name)
        subprocess.run(
            ["gcc", "-std=gnu11", "-c", "-o", tmp_path / f"{name}.o", tmp_path / f"{name}_dpi.c"], check=True
        )
    tables = [
        subprocess.run(
            ["nm", "-g", "--defined-only", tmp_path / f"{name}.o"], capture_output=True, text=True, check=True
        )
        for name in ("dense", "integer")
    ]
    names = [{line.split()[-1] for line in table.stdout.splitlines()} for table in tables]
    assert "dense_dpi" in names[0] and not names[0] & names[1]


def test_a_prefix_that_is_no_identifier_is_refused(tmp_path):
    with pytest.raises(OperandError, match="argument 'prefix' is '9x', expected an identifier"):
        dpi.write(golden.instruction(*NAMES["dense"]), tmp_path, "9x")


def test_the_default_prefix_is_the_name():
    assert (
        dpi.default_prefix(golden.instruction("hopper", "HMMA.16816.F32"))
        == "hopper_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32"
    )


def test_the_command_writes_the_files(tmp_path):
    from typer.testing import CliRunner

    from golden.cli.app import app

    run = CliRunner().invoke(
        app, ["export", "dpi", "hopper:HMMA.16816.F32", "--out", str(tmp_path / "new"), "--prefix", "hmma"]
    )
    assert run.exit_code == 0, run.output
    assert {file.name for file in (tmp_path / "new").iterdir()} == {
        *("hmma_dpi.c", "hmma_pkg.sv", "hmma_tb.sv", "hmma_vectors.hex", "hmma.core", "Makefile", "README.md")
    }
    said = CliRunner().invoke(app, ["export", "hopper:HMMA.16816.F32", "x"]).output
    assert "expected one of yaml, sv, c, dpi" in said
    assert CliRunner().invoke(app, ["export", "dpi", "hopper:HMMA.16816.F32"]).exit_code == 2
