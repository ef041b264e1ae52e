"""RTL of adders, multipliers and converters: units without b, without c, without both."""

from __future__ import annotations

import pytest
import yaml
from long_run import long_after

from golden.errors import SpecError
from golden.vectors.vectorset import default_set
from rtl_tb.check.check import check
from rtl_tb.check.dissection import dissect
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.init import draft
from rtl_tb.engines.job import Job

ROUND = "{round: {of: total, rounding: toward_zero, overflow: saturate, zero: positive}}"
UNITS = {
    "adder": (
        "{a: s8, c: s32, d: s32}",
        f"[{{sum: {{of: [a, c], to: total}}}}, {ROUND}]",
        "input [7:0] a, input [31:0] c",
        "wire signed [32:0] t = $signed(a) + $signed(c);",
        32,
    ),
    "multiplier": (
        "{a: s8, b: s8, d: s8}",
        f"[{{multiply: {{to: total}}}}, {ROUND}]",
        "input [7:0] a, input [7:0] b",
        "wire signed [15:0] t = $signed(a) * $signed(b);",
        8,
    ),
    "converter": (
        "{a: s32, d: s8}",
        f"[{{sum: {{of: a, to: total}}}}, {ROUND}]",
        "input [31:0] a",
        "wire signed [31:0] t = a;",
        8,
    ),
}


def dut(folder, kind, fault="", **ports):
    formats, steps, inputs, total, bits = UNITS[kind]
    names = [word.strip().split()[-1] for word in inputs.split(",")]
    top = f"{{1'b0, {{{bits - 1}{{1'b1}}}}}}"
    (folder / "unit.yaml").write_text(f"unit: u\nshape: {{k: 1}}\nformats: {formats}\nsteps: {steps}\n")
    (folder / "u.sv").write_text(
        f"module u (input clk, {inputs}, output reg [{bits - 1}:0] d);\n"
        f"  {total}\n  localparam signed [{bits - 1}:0] TOP = {top};\n"
        f"  always @(posedge clk) d <= t > TOP ? TOP : t < ~TOP ? ~TOP : t {fault};\nendmodule\n"
    )
    text = {
        "top": "u",
        "sources": ["u.sv"],
        "unit": "unit.yaml",
        "clock": "clk",
        "handshake": {"kind": "latency", "latency": "measure"},
        "ports": {name: name for name in (*names, "d")} | ports,
    }
    (folder / "dut.yaml").write_text(yaml.safe_dump(text))
    return folder / "dut.yaml"


def icarus(folder):
    return Options(
        engine="selfcheck",
        simulator="icarus",
        count=500,
        failures=folder / "failures",
        build=folder / "build",
    )


@pytest.mark.parametrize("kind", UNITS)
def test_a_right_unit_passes(tmp_path, kind):
    assert check(dut(tmp_path, kind), icarus(tmp_path)).passed


@pytest.mark.parametrize("kind", long_after(1, UNITS))
def test_a_wrong_one_fails_with_an_example(tmp_path, kind):
    """The fault sets bit 1 of results whose bit 0 is set."""
    result = check(dut(tmp_path, kind, "| ((t & 1) << 1)"), icarus(tmp_path))
    assert not result.passed and result.example is not None and result.example.alone
    assert result.example.actual == result.example.expected | 2 and result.example.expected & 1
    assert set(result.example.operands) == set(result.verdict.vectors.operands)
    assert (result.capsule / "report.md").is_file()


def test_a_port_of_an_operand_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SpecError, match="unknown key 'b'"):
        check(dut(tmp_path, "adder", b="b"), icarus(tmp_path))


@pytest.mark.parametrize("kind", UNITS)
def test_the_draft_names_the_operands_that_there_are(tmp_path, kind):
    file = dut(tmp_path, kind)
    wanted = yaml.safe_load(file.read_text())["ports"]
    text = draft([tmp_path / "u.sv"], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path)
    assert yaml.safe_load(text)["ports"] == wanted


WRAPS = ("round of total: overflow: wrap instead of saturate",)
SAID = {
    "adder": WRAPS,
    "multiplier": WRAPS,
    "converter": ("bits 8 to 31 of a are not read", "sum of a: width: 8"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", UNITS)
def test_a_faulty_one_is_dissected(tmp_path, kind):
    """It wraps where the unit saturates: found through the operands that there are. A converter to s8 that
    wraps reads the low 8 bits alone."""
    file = dut(tmp_path, kind)
    file.write_text(file.read_text().replace("latency: measure", "latency: 1"))
    text = (tmp_path / "u.sv").read_text()
    (tmp_path / "u.sv").write_text(text.replace("t > TOP ? TOP : t < ~TOP ? ~TOP : t", "t"))
    loaded = load_dut(file)
    job = Job(loaded, tmp_path / "build", default_set(loaded.instruction, 0, 1, loaded.level))
    found = dissect(job, "fast", 120, lambda what, done, of: None)
    assert found.found.explains and len(found.differs) == len(SAID[kind])
    assert all(one.startswith(said) for one, said in zip(found.differs, SAID[kind], strict=True))
    assert found.found.instruction.own_formats == loaded.instruction.own_formats
