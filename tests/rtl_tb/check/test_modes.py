"""RTL whose operand port `mode` chooses what it computes."""

from __future__ import annotations

import pytest
import yaml

from golden.errors import SpecError
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.init import draft
from rtl_tb.dut.wrapper import wrapper_of

UNIT = """
unit: mac
shape: {k: 2, m: 2, n: 2}
modes: {sign: [s8, u8], op: [none, null, c]}
formats: {a: $sign, b: s8, c: s32, d: s32}
steps:
  - multiply: {to: products, negate: $op}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""

RTL = """
module mac (
    input clk, input [15:0] a, input [15:0] b, input [31:0] c, input [2:0] mode, output reg [31:0] d
);
  wire signed [8:0] a0 = {!mode[0] & a[7], a[7:0]}, a1 = {!mode[0] & a[15], a[15:8]};
  wire signed [31:0] p = a0 * $signed(b[7:0]) + a1 * $signed(b[15:8]);
  always @(posedge clk) d <= p + (mode[2] CONDITION ? -c : c);
endmodule
"""

DUT = {
    "top": "mac",
    "sources": ["mac.sv"],
    "unit": "unit.yaml",
    "clock": "clk",
    "handshake": {"kind": "latency", "latency": "measure"},
    "ports": {name: name for name in ("a", "b", "c", "mode", "d")},
}


def mac(folder, condition="", **changes):
    (folder / "unit.yaml").write_text(UNIT)
    (folder / "mac.sv").write_text(RTL.replace("CONDITION", condition))
    (folder / "dut.yaml").write_text(yaml.safe_dump(DUT | changes))
    return folder / "dut.yaml"


def icarus(folder):
    return Options(
        engine="selfcheck",
        simulator="icarus",
        count=600,
        failures=folder / "failures",
        build=folder / "build",
    )


def test_a_unit_with_modes_passes(tmp_path):
    assert check(mac(tmp_path), icarus(tmp_path)).passed


def test_a_fault_in_one_mode_is_found_and_said_to_be_in_that_mode(tmp_path):
    result = check(mac(tmp_path, "&& !mode[0]"), icarus(tmp_path))
    assert not result.passed
    failing = result.verdict.vectors.operands["mode"][result.verdict.wrong]
    assert set(failing.tolist()) == {5}, "sign u8 and op c"
    assert result.example is not None and result.example.alone and int(result.example.operands["mode"]) == 5
    assert result.diagnosis is not None
    assert "Results differ in 1 of 4 modes (sign u8, op c)" in result.diagnosis.sentence()


@pytest.mark.long
def test_tiles_have_one_mode(tmp_path):
    """A tile of 2 x 2 made of four of the units; the fault is placed in the tile of its mode."""
    wires = "\n".join(
        f"  mac u{i}{j} (clk, a[{16 * i} +: 16], {{b[{16 + 8 * j} +: 8], b[{8 * j} +: 8]}}, "
        f"c[{32 * (2 * i + j)} +: 32], mode, d[{32 * (2 * i + j)} +: 32]);"
        for i in range(2)
        for j in range(2)
    )
    shell = (
        "module tile (input clk, input [31:0] a, input [31:0] b, input [127:0] c, input [2:0] mode, "
        f"output [127:0] d);\n{wires}\nendmodule\n"
    )
    for condition, passes in (("", True), ("&& !mode[0]", False)):
        file = mac(tmp_path, condition, top="tile", level="tile")
        with (tmp_path / "mac.sv").open("a") as out:
            out.write(shell)
        result = check(file, icarus(tmp_path))
        assert result.passed == passes
        if not passes:
            assert result.example is not None and int(result.example.operands["mode"]) == 5


@pytest.mark.parametrize(("port", "found"), [("mode", True), ("rm_i", True), ("banana", False)])
def test_the_draft_finds_the_port(tmp_path, port, found):
    mac(tmp_path)
    source = tmp_path / "mac.sv"
    source.write_text(
        source.read_text().replace("input [2:0] mode", f"input [2:0] {port}").replace("mode[", f"{port}[")
    )
    text = draft([source], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path)
    assert yaml.safe_load(text)["ports"]["mode"] == port
    assert ("GUESS" in next(row for row in text.splitlines() if row.startswith("  mode:"))) != found


PORTS = ("input [2:0] mode,", "input [1:0] op, input signed_i,")
SPREAD = {"sign": "signed_i", "op": "op"}


def spread(folder, mode, condition=""):
    """The unit with a port for each field of the mode."""
    file = mac(folder, condition, ports=DUT["ports"] | {"mode": mode})
    rtl = (folder / "mac.sv").read_text().replace(*PORTS)
    (folder / "mac.sv").write_text(rtl.replace("mode[0]", "signed_i").replace("mode[2]", "op[1]"))
    return file


def test_a_mode_may_be_spread_over_ports(tmp_path):
    assert check(spread(tmp_path, SPREAD), icarus(tmp_path)).passed
    result = check(spread(tmp_path, SPREAD, "&& !signed_i"), icarus(tmp_path))
    assert not result.passed


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ({"sign": "signed_i"}, "'mode' lacks op: its fields are sign, op"),
        (SPREAD | {"ops": "x"}, "unknown key 'ops', expected one of op, sign"),
        ({"sign": "op", "op": "signed_i"}, "port 'signed_i' has 1 bit, operand mode.op of unit.yaml needs 2"),
        ({"sign": "op", "op": "op"}, "share bit 0"),
    ],
)
def test_errors_name_the_field_of_the_mode(tmp_path, mode, message):
    with pytest.raises(SpecError, match=message):
        wrapper_of(load_dut(spread(tmp_path, mode)))


def test_init_finds_the_ports_of_the_fields(tmp_path):
    spread(tmp_path, SPREAD)
    rtl = tmp_path / "mac.sv"
    rtl.write_text(rtl.read_text().replace("signed_i", "sign_i"))
    drafted = yaml.safe_load(draft([rtl], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path))
    assert drafted["ports"]["mode"] == {"sign": "sign_i", "op": "op"}
    assert "constants" not in drafted
