"""Exported SystemVerilog reads without a warning, and is the instruction that it was exported from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import golden
from golden.circuit import systemverilog
from golden.circuit.words import CircuitError
from golden.model.instruction import Instruction
from golden.paths import spec_folder
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.simulators import simulators

UNITS = (
    ("hopper:HMMA.16816.F32", ""),
    ("hopper:HMMA.16816.F32", "align,sum,round"),
    ("volta:mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "multiply"),
    ("ampere:mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "special_values"),
    ("sapphire_rapids:vpdpwssd", "sum"),
    ("cdna1:v_mfma_f32_32x32x2bf16", ""),
    ("cdna2:v_mfma_f32_32x32x2bf16", "sum"),
    ("cdna3:v_mfma_f32_32x32x4_2b_f16", "normalize"),
    ("rdna3:v_dot2_f16_f16", "align,sum"),
    ("rdna4:v_dot2_bf16_bf16", ""),
    ("block_scaled.yaml", "scale,align"),
    ("ieee_fma_flags.yaml", "fma"),
    ("fma_modes.yaml", ""),
    ("sticky_rne.yaml", "round"),
    ("accumulator.yaml", ""),
    ("cdna1:v_mfma_f32_32x32x2f32", ""),
    ("stochastic.yaml", ""),
)


def exported(folder: Path, name: str, pipeline: str) -> Path:
    """The dut.yaml of a unit."""
    file = spec_folder() / "examples" / name if name.endswith(".yaml") else None
    ins = golden.instruction(*name.split(":", 1)) if file is None else golden.load_instruction(file)
    steps = tuple(filter(None, pipeline.split(",")))
    systemverilog.write(ins, folder, "unit", steps, file)
    return folder / "dut.yaml"


@pytest.mark.parametrize(("name", "pipeline"), UNITS)
def test_verilator_and_icarus_read_it_without_a_warning(name: str, pipeline: str, tmp_path: Path) -> None:
    exported(tmp_path, name, pipeline)
    verilator, icarus = simulators.verilator(), simulators.icarus()
    for tool, arguments in (
        (verilator, ["--lint-only", "-Wall", "unit.sv"]),
        (icarus, ["-g2012", "-Wall", "-o", "/dev/null", "unit.sv"]),
    ):
        run = subprocess.run(
            [*tool.start, *arguments], cwd=tmp_path, env=dict(tool.env), capture_output=True, text=True
        )
        said = run.stdout + run.stderr
        assert run.returncode == 0 and "arning" not in said and "rror" not in said, said


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [one if i == 13 else pytest.param(*one, marks=pytest.mark.long) for i, one in enumerate(UNITS)],
)
def test_it_is_the_instruction(name: str, pipeline: str, tmp_path: Path) -> None:
    options = Options(
        engine="selfcheck",
        simulator="icarus",
        count=400,
        failures=tmp_path / "failures",
        build=tmp_path / "build",
    )
    result = check(exported(tmp_path, name, pipeline), options)
    assert result.passed, result


def test_sections_and_signals_are_those_of_the_steps() -> None:
    text = systemverilog.module(golden.instruction("hopper", "HMMA.16816.F32"), "hmma")
    steps = re.findall(r"// step (\d): (\w+) -", text)
    assert steps == [
        ("1", "multiply"), ("2", "special_values"), ("3", "align"), ("4", "sum"), ("5", "round"),
    ]  # fmt: skip
    assert "// align: {of: [products, c], fraction_bits: 25, rounding: toward_zero, floor: -133}" in text
    for declared in ("[15:0] [21:0] product;", "[15:0] [26:0] aligned;", "[32:0] sum;", "[10:0] emax;"):
        assert f"logic {declared}" in text
    assert "for (genvar k = 0; k < 16; k = k + 1) begin : g_aligned" in text


@pytest.mark.parametrize(
    ("unit", "pipeline", "says"),
    [
        ("sticky_rne.yaml", "scale", "pipeline names 'scale', expected steps of sticky_rne: "),
        ("accumulator.yaml", "sum", "a unit that keeps its accumulator needs its result in the next cycle"),
    ],
)
def test_registers_that_cannot_be_are_refused(unit: str, pipeline: str, says: str) -> None:
    ins: Instruction = golden.load_instruction(spec_folder() / "examples" / unit)
    with pytest.raises(CircuitError, match=re.escape(says)):
        systemverilog.module(ins, "unit", (pipeline,))


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CircuitError, match="prefix is '8x', expected letters, digits and '_'"):
        systemverilog.write(golden.instruction("hopper", "HMMA.16816.F32"), tmp_path, "8x")
