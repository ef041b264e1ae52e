"""The first draft of a dut.yaml: drafts of usual modules load, fit their ports, and say what was guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from golden.cli.app import app
from golden.errors import SpecError, UnknownNameError
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.given import Given, parameter_value
from rtl_tb.dut.init import draft
from rtl_tb.dut.wrapper import write_wrapper
from rtl_tb.errors import ElaborationError

K16 = "hopper:mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def drafted(
    folder: Path, ports: str, name: str = "my_dot", instruction: str | None = None
) -> tuple[str, Dut]:
    """Drafts for a module with these ports, writes the draft, loads it, and generates its wrapper."""
    (folder / "rtl").mkdir(exist_ok=True)
    source = folder / "rtl" / f"{name}.sv"
    source.write_text(f"module {name} ({ports});\nendmodule\n")
    text = draft([source], instruction=instruction, folder=folder)
    (folder / "dut.yaml").write_text(text)
    dut = load_dut(folder / "dut.yaml")
    write_wrapper(dut, folder / "out")
    return text, dut


def test_valid_ready(tmp_path: Path) -> None:
    text, dut = drafted(
        tmp_path,
        "input logic clk_i, rst_ni, in_valid_i, output logic in_ready_o, input logic [255:0] a_i, b_i, "
        "input logic [31:0] c_i, input logic [2:0] rnd_mode_i, output logic out_valid_o, input logic "
        "out_ready_i, output logic [31:0] result_o, output logic [4:0] flags_o",
    )
    assert "sources: [rtl/my_dot.sv]" in text
    assert f"instruction: {K16}  # GUESS" in text
    assert "#   hopper:mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" in text
    assert (dut.clock, dut.reset and dut.reset.port, dut.reset and dut.reset.active_low) == (
        "clk_i",
        "rst_ni",
        True,
    )
    shake = dut.handshake
    assert (shake.kind, shake.in_valid, shake.in_ready) == ("valid_ready", "in_valid_i", "in_ready_o")
    assert (shake.out_valid, shake.out_ready) == ("out_valid_o", "out_ready_i")
    assert {name: at.ports for name, at in dut.ports.items()} == {
        "a": ("a_i",),
        "b": ("b_i",),
        "c": ("c_i",),
        "d": ("result_o",),
    }
    assert dut.constants == {"rnd_mode_i": 0}
    assert "rnd_mode_i: 0  # GUESS" in text and "flags_o" in text


def test_valid_only_with_arrays(tmp_path: Path) -> None:
    _, dut = drafted(
        tmp_path,
        "input wire clock, input wire reset, input wire vld_in, input wire [15:0] op_a [0:15], input wire "
        "[15:0][15:0] op_b, input wire [31:0] acc, output wire vld_out, output wire [31:0] sum",
    )
    assert (dut.handshake.kind, dut.handshake.in_valid, dut.handshake.out_valid) == (
        "valid",
        "vld_in",
        "vld_out",
    )
    assert dut.reset is not None and not dut.reset.active_low
    assert (dut.ports["a"].array, dut.ports["b"].array, dut.ports["c"].ports) == (
        "unpacked",
        "packed",
        ("acc",),
    )


def test_names_that_say_active_low(tmp_path: Path) -> None:
    text, dut = drafted(
        tmp_path,
        "input logic clk, in_valid_n, output logic in_ready_no, input logic [255:0] a, b, input logic [31:0] "
        "c, output logic out_nvalid, input logic out_ready_in, output logic [31:0] d",
    )
    assert dut.handshake.active_low == {"in_valid_n", "in_ready_no", "out_nvalid"}
    assert text.count("# GUESS: polarity by name") == 2
    ports = "input logic clk, cen, input logic [255:0] a, b, input logic [31:0] c, output logic [31:0] d"
    _, dut = drafted(tmp_path, ports, "other")
    assert (dut.handshake.enable, dut.handshake.active_low) == ("cen", {"cen"})
    assert not drafted(tmp_path, ports.replace("cen", "en"), "third")[1].handshake.active_low


def test_latency_with_enable_words_and_a_list(tmp_path: Path) -> None:
    ports = ", ".join(f"input wire [63:0] a{i}" for i in range(4))
    text, dut = drafted(
        tmp_path,
        f"input wire clk, ce, {ports}, input wire [31:0] b [0:7], input wire [31:0] c, output wire [31:0] d",
        instruction="hopper:HMMA.16816.F32",
    )
    assert "instruction: hopper:HMMA.16816.F32\n" in text
    assert (dut.handshake.kind, dut.handshake.measured, dut.handshake.enable) == ("latency", True, "ce")
    assert (dut.ports["a"].ports, dut.ports["a"].word_elements) == (("a0", "a1", "a2", "a3"), 4)
    assert (dut.ports["b"].array, dut.ports["b"].word_elements) == ("unpacked", 2)


def test_combinational_with_scales(tmp_path: Path) -> None:
    instruction = "rtx_blackwell:mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"  # noqa: E501
    _, dut = drafted(
        tmp_path,
        "input wire [255:0] a, b, input wire [31:0] c, input wire [7:0] scale_a, scale_b, output wire "
        "[31:0] d",
        instruction=instruction,
    )
    assert dut.handshake.kind == "combinational" and dut.clock is None
    assert dut.ports["scale_b"].ports == ("scale_b",)


def test_a_unit_of_ones_own(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "spec" / "examples" / "exact_pair.yaml"
    unit = tmp_path / "pair.yaml"
    unit.write_text(example.read_text())
    text, dut = drafted(
        tmp_path, "input wire [31:0] a, b, input wire [31:0] c, output wire [31:0] d", instruction=str(unit)
    )
    assert "unit: pair.yaml\n" in text and dut.instruction.name == "exact_pair"


def test_what_cannot_be_guessed_is_marked(tmp_path: Path) -> None:
    source = tmp_path / "odd.sv"
    source.write_text("module odd (input wire clk, input wire [6:0] foo, output wire [2:0] bar); endmodule\n")
    text = draft([source], folder=tmp_path)
    assert "instruction: architecture:name  # GUESS" in text
    assert "a: foo  # GUESS: by what is left" in text
    assert "foo: 0" not in text and "d: bar" in text
    (tmp_path / "dut.yaml").write_text(text)
    line = 1 + next(at for at, row in enumerate(text.splitlines()) if row.startswith("instruction"))
    with pytest.raises(SpecError, match=f"replace `architecture:name` in line {line}"):
        load_dut(tmp_path / "dut.yaml")


def test_several_tops(tmp_path: Path) -> None:
    source = tmp_path / "two.sv"
    source.write_text("module one (input wire x); endmodule\nmodule two (input wire x); endmodule\n")
    with pytest.raises(ElaborationError, match="expected one top module, found one, two"):
        draft([source])
    assert "top: two" in draft([source], top="two")
    with pytest.raises(ElaborationError, match="is 'three', expected one or two"):
        draft([source], top="three")


def test_a_source_that_is_no_file(tmp_path: Path) -> None:
    """One line of ours, and not what a simulator makes of it."""
    with pytest.raises(SpecError, match=r"source '.*nofile\.sv' is no file; looked for it at /"):
        draft([tmp_path / "nofile.sv"])


def test_unknown_instruction(tmp_path: Path) -> None:
    source = tmp_path / "m.sv"
    source.write_text("module m (input wire x); endmodule\n")
    with pytest.raises(UnknownNameError, match="HMMA"):
        draft([source], instruction="hopper:HMMA.1")


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("4", 4),
        ("-1", -1),
        ("8'h3f", 63),
        ("'b10", 2),
        ("4'd1_0", 10),
        ('"4"', "4"),
        ("fast", "fast"),
        ("4'b2", "4'b2"),
    ],
)
def test_a_number_on_the_command_line_is_no_text(given: str, value: int | str, tmp_path: Path) -> None:
    """A text in the place of a number is one, too, for SystemVerilog: "4" is 52."""
    source = tmp_path / "my_dot.sv"
    source.write_text("module my_dot #(parameter K = 16) (input [K-1:0] a); endmodule\n")
    assert parameter_value(given) == value
    lines = Given(parameters={"K": parameter_value(given)}).lines(tmp_path)
    assert yaml.safe_load("\n".join(lines)) == {"parameters": {"K": value}}


def test_a_parameter_that_the_top_lacks_is_refused(tmp_path: Path) -> None:
    ports = "(input [W-1:0] a, c, output [W-1:0] d)"
    text = f"module plus #(parameter W = 8) {ports}; assign d = a + c; endmodule"
    (tmp_path / "plus.sv").write_text(text)
    with pytest.raises(SpecError, match="-G: plus has no parameter 'WW'; nearest: W"):
        draft([tmp_path / "plus.sv"], None, None, given=Given(parameters={"WW": 9}))


def test_widths_that_a_parameter_on_the_command_line_decides(tmp_path: Path) -> None:
    source, out = tmp_path / "my_dot.sv", tmp_path / "dut.yaml"
    source.write_text(
        "module my_dot #(parameter K = 16) (input clk, in_valid, input [16*K-1:0] a, b, input [31:0] c,\n"
        "  output out_valid, output [31:0] d); endmodule\n"
    )
    result = CliRunner().invoke(app, ["rtl", "init", str(source), "-G", "K=8", "--out", str(out)])
    assert result.exit_code == 0, result.output
    dut = load_dut(out)
    assert dut.parameters == {"K": 8} and dut.instruction.k == 8


def test_the_command_drafts_from_files_named_relative_to_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "pass.sv").write_text(
        "module pass (input [31:0] a, input [31:0] b, output [31:0] d); assign d = a ^ b; endmodule\n"
    )
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(app, ["rtl", "init", "pass.sv", "--out", "dut.yaml"])
    assert run.exit_code == 0, run.output
    assert "sources: [pass.sv]" in (tmp_path / "dut.yaml").read_text()
    (tmp_path / "checks").mkdir()
    assert CliRunner().invoke(app, ["rtl", "init", "pass.sv", "--out", "checks/dut.yaml"]).exit_code == 0
    assert "sources: [../pass.sv]" in (tmp_path / "checks" / "dut.yaml").read_text(), (
        "paths are relative to the file"
    )
    refused = CliRunner().invoke(app, ["rtl", "init", "absent.sv"])
    assert refused.exit_code == 2 and "absent.sv" in refused.output


def test_a_draft_is_the_same_on_every_machine(tmp_path: Path) -> None:
    """A path of this installation in it would be wrong on the next."""
    text, _ = drafted(tmp_path, "input [255:0] a, b, input [31:0] c, output [31:0] d")
    assert "yaml-language-server" not in text and str(Path(__file__).parents[3]) not in text


@pytest.mark.parametrize(
    ("name", "language"), [("mac4.sv", "SystemVerilog"), ("mac4.v", "Verilog"), ("mac4.vhd", "VHDL")]
)
def test_sources_in_the_place_of_a_description(name: str, language: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("module mac4 (input a); endmodule\n")
    run = CliRunner().invoke(app, ["rtl", "check", str(tmp_path / name)])
    assert run.exit_code == 2
    assert f"is {language}, not a description; run `mmagold rtl init {tmp_path / name}` first" in run.output


def test_sources_without_a_module(tmp_path: Path) -> None:
    (tmp_path / "only_pkg.sv").write_text("package only_pkg; parameter int W = 3; endpackage\n")
    with pytest.raises(ElaborationError, match="expected one top module, found none"):
        draft([tmp_path / "only_pkg.sv"])


def test_what_synthesis_leaves_out_refuses_no_unit(tmp_path: Path) -> None:
    """It may name what is in the author's test bench alone; that it was left out is said."""
    ports = "input [15:0] a, b, output [31:0] z"
    bench = "// synopsys translate_off\nalways @(test.fail) $display(test.u0.x);\n// synopsys translate_on\n"
    (tmp_path / "m.v").write_text(f'`include "w.vh"\nmodule m ({ports});\n{bench}endmodule\n')
    (tmp_path / "w.vh").write_text("`define W 1\n")
    text = draft([tmp_path / "m.v"], folder=tmp_path)
    assert "sources: [m.v]" in text and "a: a" in text
    (remark,) = [line for line in text.splitlines() if line.startswith("# Read without")]
    assert "'test'" in remark
    (tmp_path / "m.v").write_text(f"module m ({ports});\n{bench}wire x = missing.y;\nendmodule\n")
    with pytest.raises(ElaborationError, match="'test'"):
        draft([tmp_path / "m.v"], folder=tmp_path)


def test_a_unit_in_the_place_of_a_dut_says_what_to_write() -> None:
    with pytest.raises(SpecError, match=r"this is a unit.*expected a dut\.yaml.*rtl init"):
        load_dut(Path(__file__).parents[3] / "rtl_tb" / "examples" / "own_unit" / "mac4.yaml")


def ports_of(text: str) -> dict[str, str]:
    """The ports and constants of a draft."""
    data = yaml.safe_load(text)
    return {**(data.get("constants") or {}), **data["ports"]}


def test_the_only_input_is_the_operand(tmp_path: Path) -> None:
    """A converter names its input by its direction alone."""
    (tmp_path / "cvt.v").write_text(
        "module cvt (input clk, input [31:0] in, output reg [31:0] out, output reg overflow); endmodule\n"
    )
    text = draft([tmp_path / "cvt.v"])
    assert "a: in  # GUESS: by what is left" in text and "in: 0" not in text
    assert "inputs left: none" in text


def test_names_that_differ_in_their_last_letter(tmp_path: Path) -> None:
    (tmp_path / "mult.v").write_text(
        "module mult (input i_clk, input i_multa_ns, input i_multb_ns, input [17:0] i_multa, "
        "input [17:0] i_multb, output reg [35:0] o_product); endmodule\n"
    )
    found = ports_of(draft([tmp_path / "mult.v"]))
    assert found == {"a": "i_multa", "b": "i_multb", "d": "o_product", "i_multa_ns": 0, "i_multb_ns": 0}


def test_an_operand_without_a_name_is_what_fits(tmp_path: Path) -> None:
    """By its width; other inputs of several bits are named with their widths."""
    (tmp_path / "unit.yaml").write_text(
        "unit: mul\nshape: {k: 1}\nformats: {a: s8, b: s8, d: s16}\nsteps:\n  - multiply: {to: products}\n"
        "  - round: {of: products, rounding: toward_zero, overflow: wrap, zero: positive}\n"
    )
    (tmp_path / "m.v").write_text(
        "module m (input clk, input [2:0] zone, input [7:0] mantle, input [7:0] crust, input [15:0] tuft, "
        "output reg [15:0] out); endmodule\n"
    )
    text = draft([tmp_path / "m.v"], instruction=str(tmp_path / "unit.yaml"))
    assert ports_of(text) == {"a": "mantle", "b": "crust", "d": "out", "zone": 0, "tuft": 0}
    assert "a: mantle  # GUESS" in text and "tuft: 0  # GUESS: 16 bits" in text


def test_a_valid_of_something_else_is_not_joined(tmp_path: Path) -> None:
    (tmp_path / "f.v").write_text(
        "module f (input clk, input [15:0] opa_i, input [15:0] opb_i, input s0_vld_i, input fma_vld_i, "
        "output [15:0] res_o); endmodule\n"
    )
    text = draft([tmp_path / "f.v"])
    assert "input: {valid: s0_vld_i}  # GUESS: or fma_vld_i" in text
    assert "fma_vld_i: 0  # GUESS" in text


# Controls by their registers --------------------------------------------------------------------------------

_MAC = (
    "unit: mac\nshape: {k: 1}\nformats: {a: s8, b: s8, c: s32, d: s32}\nSTATEsteps:\n"
    "  - multiply: {to: products}\n"
    "  - sum: {of: [products, c], to: total}\n"
    "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}\n"
)


def drafted_unit(folder: Path, text: str, state: str = "", multiply: str = "to: products") -> str:
    unit = _MAC.replace("STATE", state).replace("to: products", multiply)
    (folder / "unit.yaml").write_text(unit)
    (folder / "m.sv").write_text(text)
    return draft([folder / "m.sv"], instruction=str(folder / "unit.yaml"), folder=folder)


def test_the_clock_and_the_reset_are_those_of_the_registers(tmp_path: Path) -> None:
    """A generator hands on a clock and a reset of another domain; c joins behind the only register."""
    text = drafted_unit(
        tmp_path,
        "module m (input clka, input rstn_a, input valid, input signed [7:0] a, b, "
        "input signed [31:0] psum_in, output [31:0] psum_out, output reg done, input clk, input resetn);\n"
        "  reg signed [15:0] p;\n  assign psum_out = p + psum_in;\n"
        "  always @(posedge clk or negedge resetn)\n    if (!resetn) begin p <= 0; done <= 0; end\n"
        "    else begin done <= valid; if (valid) p <= a * b; end\nendmodule\n",
    )
    assert "clock: clk\n" in text and "reset: {port: resetn, active: low, synchronous: false" in text
    assert "  clka: 1  # GUESS: a clock without a register\n" in text and "  rstn_a: 0  # GUESS" in text
    assert "  c: {port: psum_in, later: 1}  # GUESS" in text


def test_a_reset_and_an_enable_without_a_name(tmp_path: Path) -> None:
    """Tied to 0 they would hold the unit for ever."""
    text = drafted_unit(
        tmp_path,
        "module m (input clk, input zap, input moves, input signed [7:0] a, b, input signed [31:0] c, "
        "output reg [31:0] d);\n  reg signed [31:0] p;\n  always @(posedge clk or negedge zap)\n"
        "    if (!zap) begin p <= 0; d <= 0; end\n"
        "    else if (moves) begin p <= a * b + c; d <= p; end\nendmodule\n",
    )
    assert "reset: {port: zap, active: low, synchronous: false" in text
    assert "  enable: moves  # GUESS: it stops every register" in text and "constants" not in text


def test_the_port_of_the_only_mode_is_named_after_it(tmp_path: Path) -> None:
    """Other inputs of one bit come before it; a second reset is tied so that it lets the unit run."""
    text = drafted_unit(
        tmp_path,
        "module m (input clk_i, input sync_rst_ni, input acc_flag_i, input acc_sub_i, "
        "input signed [7:0] op1_i, op2_i, input signed [31:0] acc_i, output signed [31:0] res_o);\n"
        "  assign res_o = acc_sub_i ? acc_i - op1_i * op2_i : acc_i + op1_i * op2_i;\nendmodule\n",
        "modes: {sub: [none, product]}\n",
        "to: products, negate: $sub",
    )
    assert "  mode: acc_sub_i\n" in text
    assert "  acc_flag_i: 0  # GUESS\n" in text and "sync_rst_ni: 1  # GUESS: a reset" in text


def test_a_reset_without_a_clock_is_tied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, to the level at which the unit runs, without Yosys, too, as its valid; sources may be a
    pattern."""
    monkeypatch.setattr("rtl_tb.dut.init.structure_of", lambda *_: "no Yosys")
    drafted_unit(
        tmp_path,
        "module m (input rst_l, start, input signed [7:0] a, b, input signed [31:0] c, "
        "output signed [31:0] d, output done);\n  assign d = rst_l ? c + a * b : 0;\n  assign done = start;\n"
        "endmodule\n",
    )
    text = draft([tmp_path / "[lm].sv"], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path)
    assert 'sources: ["[lm].sv"]' in text and "reset:" not in text
    assert "  rst_l: 1  # GUESS: a reset without a clock\n" in text
    assert "  kind: combinational" in text and "  start: 1  # GUESS: a valid that is always there\n" in text


def test_a_status_flag_that_the_unit_s_file_does_not_have(tmp_path: Path) -> None:
    text = drafted_unit(
        tmp_path,
        "module m (input signed [7:0] a, b, input signed [31:0] c, output signed [31:0] d, output ovf, busy);"
        "\n  assign {ovf, d} = c + a * b, busy = 0;\nendmodule\n",
    )
    assert "by their names, not compared without flags: [overflow] in the unit's file: ovf\n" in text


def test_a_weight_that_registers_keep(tmp_path: Path) -> None:
    """What lets them take the weight is tied so, also where either of two does; the operands that meet it
    come two cycles later. A packed array of one entry is a vector."""
    text = drafted_unit(
        tmp_path,
        "module m (input mclk, nrst, en, set_w, swap, swap_all, input signed [7:0] x, input [0:0][7:0] w, "
        "input signed [31:0] psum_in, output reg signed [31:0] psum_out);\n  reg signed [7:0] next, kept;\n"
        "  always @(posedge mclk or negedge nrst) if (!nrst) begin next <= 0; kept <= 0; psum_out <= 0; end\n"
        "    else if (en) begin if (set_w) next <= w; if (swap || swap_all) kept <= next;\n"
        "      psum_out <= psum_in + x * kept; end\nendmodule\n",
    )
    assert "clock: mclk\nreset: {port: nrst, active: low, synchronous: false" in text
    assert (
        "  a: {port: x, later: 2}  # GUESS: it reaches the result through 2 registers fewer than b\n" in text
    )
    assert "  b: w\n  c: {port: psum_in, later: 2}  # GUESS" in text
    for name in ("set_w", "swap", "swap_all"):
        assert f"  {name}: 1  # GUESS: a register takes an operand with it\n" in text


def test_a_weight_whose_load_stops_the_sum(tmp_path: Path) -> None:
    """Its load is a valid of two cycles, also with a reset at the clock's edge; what else lets the sum move
    is tied to 1."""
    text = drafted_unit(
        tmp_path,
        "module m (input clk, rst, compute, load_n, input signed [7:0] x, w, input signed [31:0] psum_in, "
        "output reg signed [31:0] psum_out);\n  reg signed [7:0] kept;\n"
        "  always @(posedge clk) if (rst) begin kept <= 0; psum_out <= 0; end\n"
        "    else if (!load_n) kept <= w; else if (compute) psum_out <= psum_in + x * kept;\nendmodule\n",
    )
    assert "  input: {valid: {port: load_n, active: low}}  # GUESS: it loads an operand" in text
    assert "\n  interval: 2\n" in text and "  compute: 1  # GUESS: a register takes" in text
    assert "  a: {port: x, later: 1}" in text and "  b: w\n" in text and "load_n: " not in text


def test_streams_that_are_interfaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The valid and the ready of each lie in the interface of their operand."""
    monkeypatch.setattr("rtl_tb.dut.init.structure_of", lambda *_: "no Yosys")
    (tmp_path / "m.sv").write_text(
        "interface stream (input logic clk); logic valid, ready; logic [7:0] data; logic [0:0] strb;\n"
        "  modport sink (input valid, data, strb, output ready);\n"
        "  modport source (output valid, data, strb, input ready);\nendinterface\n"
        "module m (input logic clk_i, rst_ni, stream.sink a_i, stream.sink b_i, stream.source d_o);\n"
        "  assign a_i.ready = d_o.ready, b_i.ready = d_o.ready, d_o.data = a_i.data * b_i.data;\nendmodule\n"
    )
    text = draft([tmp_path / "m.sv"], top="m")
    shake = yaml.safe_load(text)["handshake"]
    assert shake["input"] == [
        {"operands": [name], "valid": f"{name}_i.valid", "ready": f"{name}_i.ready"} for name in "ab"
    ]
    assert shake["output"] == {"valid": "d_o.valid", "ready": "d_o.ready"}
    assert "a_i.clk: " not in text, "it is that of the unit"


def test_an_element_in_ports_of_one_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft says how many bits each port has, and ties what says that the factors are signed."""
    monkeypatch.setattr("rtl_tb.dut.init.structure_of", lambda *_: "no Yosys")
    bits = ", ".join(f"{name}{at}" for name in "ab" for at in range(8))
    text = drafted_unit(
        tmp_path,
        f"module m (input {bits}, is_signed, input signed [31:0] c, output signed [31:0] d);\n"
        "  assign d = c;\nendmodule\n",
    )
    (tmp_path / "dut.yaml").write_text(text)
    assert load_dut(tmp_path / "dut.yaml").ports["a"].bits == (1,) * 8
    assert "  is_signed: 1  # GUESS: a and b are signed\n" in text


def test_floats_in_ports_of_sign_exponent_and_fraction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Called in front or behind, for operands in the order of the ports; a sign alone is none."""
    monkeypatch.setattr("rtl_tb.dut.init.structure_of", lambda *_: "no Yosys")
    (tmp_path / "unit.yaml").write_text(
        "unit: m\nshape: {k: 1}\nformats: {a: bf16, b: bf16, d: bf16}\nsteps:\n  - multiply: {to: products}\n"
        "  - round: {of: products, rounding: toward_zero, overflow: ieee, zero: signed}\n"
    )
    (tmp_path / "m.sv").write_text(
        "module m (input sa_i, input [7:0] ea_i, input [6:0] ma_i, input y_sign, input [7:0] y_exp, "
        "input [6:0] y_frac, input sel, output s_o, output [7:0] e_o, output [6:0] m_o);\n"
        "  assign s_o = sa_i ^ y_sign, e_o = ea_i + y_exp, m_o = ma_i * y_frac;\nendmodule\n"
    )
    text = draft([tmp_path / "m.sv"], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path)
    (tmp_path / "dut.yaml").write_text(text)
    dut = load_dut(tmp_path / "dut.yaml")
    write_wrapper(dut, tmp_path)
    assert {name: at.ports for name, at in dut.ports.items()} == {
        "a": ("ma_i", "ea_i", "sa_i"),
        "b": ("y_frac", "y_exp", "y_sign"),
        "d": ("m_o", "e_o", "s_o"),
    }
    assert dut.constants == {"sel": 0}


def test_a_processing_element(tmp_path: Path) -> None:
    """The valids that it hands on are none of its sum; what moves its operands on is tied to 1, and a latency
    that cannot be measured is counted."""
    text = drafted_unit(
        tmp_path,
        "module m (input clk, input rstn, input clr, input shift_en, input signed [7:0] a_in, b_in, "
        "input a_v_in, b_v_in, output reg signed [7:0] a_out, b_out, output reg a_v_out, b_v_out, "
        "output reg signed [31:0] c_out);\n  always @(posedge clk or negedge rstn)\n"
        "    if (!rstn) begin c_out <= 0; a_out <= 0; b_out <= 0; a_v_out <= 0; b_v_out <= 0; end\n"
        "    else begin\n      if (clr) c_out <= 0;\n"
        "      else if (a_v_in && b_v_in) c_out <= c_out + a_in * b_in;\n"
        "      if (shift_en) begin a_out <= a_in; b_out <= b_in; a_v_out <= a_v_in; b_v_out <= b_v_in; end\n"
        "    end\nendmodule\n",
        "accumulator: state\nclear: alone\n",
    )
    assert "  kind: latency" in text and "  latency: 1  # GUESS: 1 register" in text
    assert "  input: {valid: [a_v_in, b_v_in]}" in text
    assert ports_of(text) == {
        "a": "a_in",
        "b": "b_in",
        "clear": {"port": "clr", "given": "before_operands"},
        "d": "c_out",
        "shift_en": 1,
    }


def test_a_method_that_takes_no_operand_is_tied(tmp_path: Path) -> None:
    """The enable of a fourth method of Bluespec is driven, too."""
    (tmp_path / "m.v").write_text(
        "module m (input CLK, input RST_N, input [7:0] get_A_a, input EN_get_A, output RDY_get_A, "
        "input [7:0] get_B_b, input EN_get_B, output RDY_get_B, input get_kind_of_it_x, "
        "input EN_get_kind_of_it, output RDY_get_kind_of_it, "
        "output [15:0] result, output RDY_result); endmodule\n"
    )
    found = ports_of(draft([tmp_path / "m.v"]))
    assert {name: found[name] for name in ("get_kind_of_it_x", "EN_get_kind_of_it")} == {
        "get_kind_of_it_x": 0,
        "EN_get_kind_of_it": 1,
    }


def test_a_method_of_bluespec_may_have_the_name_of_its_operand(tmp_path: Path) -> None:
    """Each operand then is a channel; none of the enables is tied."""
    sides = "".join(f"input [7:0] {name}, input EN_{name}, output RDY_{name}, " for name in "ab")
    (tmp_path / "m.v").write_text(
        f"module m (input CLK, input RST_N, {sides}output [15:0] d, output RDY_d); endmodule\n"
    )
    document = yaml.safe_load(draft([tmp_path / "m.v"]))
    channels = document["handshake"]["input"]
    assert [(each["operands"], each["valid"]["port"], each["ready"]) for each in channels] == [
        ([name], f"EN_{name}", f"RDY_{name}") for name in "ab"
    ]
    assert "constants" not in document


def test_a_package_that_several_files_include_refuses_nothing(tmp_path: Path) -> None:
    """Two packages of one name that are two texts do."""
    package = "package p; typedef logic [7:0] byte_t; endpackage\n"
    ports = "(input p::byte_t a, b, output logic [15:0] d)"
    (tmp_path / "p.svh").write_text(package)
    (tmp_path / "mul.sv").write_text(f'`include "p.svh"\nmodule mul {ports}; assign d = a * b; endmodule\n')
    (tmp_path / "top.sv").write_text(f'`include "p.svh"\nmodule top {ports}; mul m (.*); endmodule\n')
    files = [tmp_path / "mul.sv", tmp_path / "top.sv"]
    text = draft(files)
    assert "top: top" in text and "refused" not in text  # by none of the readers
    (tmp_path / "mul.sv").write_text(f"{package}module mul {ports}; assign d = a * b; endmodule\n")
    with pytest.raises(ElaborationError, match="Duplicate declaration of package: 'p'"):
        draft(files)


def test_registers_before_the_sum_make_an_enable(tmp_path: Path) -> None:
    """What stops the product as well as the sum says nothing of which cycles count; what empties the sum is
    found whatever it is called, and the registers give the latency."""
    text = drafted_unit(
        tmp_path,
        "module m (input clk, input rst_n, input ce, input fresh, input signed [7:0] a, b, "
        "output reg signed [31:0] y);\n  reg signed [7:0] x, w;\n  reg signed [15:0] p;\n"
        "  always @(posedge clk or negedge rst_n)\n"
        "    if (!rst_n) begin x <= 0; w <= 0; p <= 0; y <= 0; end\n"
        "    else if (ce) begin x <= a; w <= b; p <= x * w; y <= fresh ? 0 : y + p; end\nendmodule\n",
        "accumulator: state\n",
    )
    assert "  enable: ce\n" in text and "  latency: 3  # GUESS" in text and "  idle: zero" in text
    assert "  clear: {port: fresh, given: before_operands}\n" in text


def test_what_stops_a_sum_says_which_cycles_count(tmp_path: Path) -> None:
    """It is active low, as its register shows, and another input comes before it."""
    text = drafted_unit(
        tmp_path,
        "module m (input clk, input rst, input put, input [31:0] start_in, input wait_now, "
        "input signed [7:0] left_in, top_in, output reg signed [31:0] y);\n"
        "  always @(posedge clk) if (rst) y <= 0; else if (put) y <= start_in; "
        "else if (!wait_now) y <= y + left_in * top_in;\nendmodule\n",
        "accumulator: state\n",
    )
    assert "  input: {valid: {port: wait_now, active: low}}  # GUESS: it stops every register\n" in text
    assert "  put: 0" in text


@pytest.mark.parametrize("edges", ["posedge clk", "posedge clk or posedge clear"])
def test_words_of_an_array_are_registers(edges: str, tmp_path: Path) -> None:
    """A product that moves through an array of three meets c later, by as many cycles as there are words; all
    of them are cleared at once."""
    text = drafted_unit(
        tmp_path,
        "module m (input clk, input clear, input signed [7:0] a, b, input signed [31:0] c, "
        "output reg signed [31:0] d);\n  reg signed [31:0] p [0:2];\n  integer i;\n"
        f"  always @({edges})\n    if (clear) for (i = 0; i < 3; i = i + 1) p[i] <= 0;\n    else begin\n"
        "    p[0] <= a * b;\n    for (i = 1; i < 3; i = i + 1) p[i] <= p[i-1];\n    d <= p[2] + c;\n  end\n"
        "endmodule\n",
    )
    assert "  c: {port: c, later: 3}  # GUESS" in text


def test_an_enable_and_what_lets_the_sum_out_take_operands_in_beats(tmp_path: Path) -> None:
    unit = _MAC.replace("c: s32, ", "").replace("STATE", "").replace(", c]", "]").replace("mac\n", "mac\n")
    (tmp_path / "unit.yaml").write_text(unit.replace("shape: {k: 1}", "shape: {k: 4}"))
    (tmp_path / "m.sv").write_text(
        "module m (input clk, input rst, input go, input over, input signed [7:0] a, b, "
        "output reg signed [31:0] y);\n  reg signed [31:0] s;\n"
        "  always @(posedge clk) if (rst) begin s <= 0; y <= 0; end\n"
        "    else if (go) begin s <= over ? 0 : s + a * b; if (over) y <= s + a * b; end\nendmodule\n"
    )
    text = draft([tmp_path / "m.sv"], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path)
    assert "  input: {valid: go, beats: 4, last: over}" in text
    assert "  latency: 1  # GUESS" in text


@pytest.mark.parametrize(
    ("body", "held"),
    [
        # A count that starts over without `go`; d is there as long as it is given.
        (
            "logic [1:0] n; assign done = n == 3; assign d = p + (a[7] ? 0 : 0) + c;\n"
            "  always @(posedge clk) begin p <= a * b; n <= !go ? 0 : n == 3 ? n : n + 1; end",
            True,
        ),
        # Pulses that are cleared on their way.
        (
            "logic v; assign d = q + c;\n  always @(posedge clk) begin\n"
            "    if (!go) begin v <= 0; done <= 0; p <= 0; q <= 0; end\n"
            "    else begin v <= 1; done <= v; p <= a * b; q <= p; end\n  end",
            True,
        ),
        # A pipeline, through which pulses travel.
        (
            "logic v; assign d = q + c;\n  always @(posedge clk) begin\n"
            "    v <= go; done <= v; p <= a * b; q <= p; end",
            False,
        ),
    ],
)
def test_a_start_that_must_stay(body: str, held: bool, tmp_path: Path) -> None:
    """A result of which a part comes without a register is no combinational one."""
    text = drafted_unit(
        tmp_path,
        "module m (input clk, input go, input signed [7:0] a, b, input signed [31:0] c, "
        f"output logic done, output signed [31:0] d);\n  logic signed [31:0] p, q;\n  {body}\nendmodule\n",
    )
    assert ("  input: {valid: go, hold: released}  # GUESS: done needs it" in text) == held
    assert ("  output: {valid: {port: done, level: true}}" in text) == held
    assert ("  input: {valid: go}" in text) != held


def test_two_operands_in_one_port(tmp_path: Path) -> None:
    """A bias lies above the weights."""
    text = drafted_unit(
        tmp_path,
        "module m (input signed [7:0] a, input [39:0] w, output signed [31:0] y);\n"
        "  assign y = a * $signed(w[7:0]) + $signed(w[39:8]);\nendmodule\n",
    )
    assert "  b: {port: w, partial: true}  # GUESS" in text
    assert "  c: {port: w, partial: true, lsb: 8}  # GUESS" in text


def test_a_result_in_two_ports(tmp_path: Path) -> None:
    text = drafted_unit(
        tmp_path,
        "module m (input signed [7:0] a, b, input signed [31:0] c, output [15:0] upper, rest);\n"
        "  assign {upper, rest} = a * b + c;\nendmodule\n",
    )
    assert "  d: {port: [rest, upper], bits: [16, 16]}  # GUESS" in text


def test_a_signal_of_vhdl_with_a_value_at_the_start_hides_no_register(tmp_path: Path) -> None:
    (tmp_path / "e.vhd").write_text(
        "library ieee; use ieee.std_logic_1164.all; use ieee.numeric_std.all;\n"
        "entity e is port (clk: std_logic; a, b: signed(7 downto 0); d: out signed(15 downto 0)); end;\n"
        "architecture r of e is signal p: signed(15 downto 0) := (others => '0'); begin\n"
        "p <= a * b; process (clk) begin if rising_edge(clk) then d <= p; end if; end process; end;\n"
    )
    text = draft([tmp_path / "e.vhd"], folder=tmp_path)
    assert "registers are not known" not in text and "  b: b\n" in text


def drafted_alone(folder: Path, text: str) -> str:
    """A draft without a unit's file."""
    (folder / "m.sv").write_text(text)
    return draft([folder / "m.sv"], folder=folder)


def test_clock_and_reset_without_a_register(tmp_path: Path) -> None:
    """As Chisel gives them to every module, whatever the ports are called."""
    text = drafted_alone(
        tmp_path,
        "module m (input clock, reset, input [7:0] io_a, io_b, output [15:0] io_out);\n"
        "  assign io_out = io_a * io_b;\nendmodule\n",
    )
    assert "  kind: combinational  # there is no register" in text and "  d: io_out\n" in text
    assert "  reset: 0  # GUESS: a reset without a register" in text


_SERIAL = """
module m (input clk, rst, start, input [7:0] a, b, output reg done, output reg [15:0] result);
  reg busy; reg [3:0] n; reg [15:0] x; reg [7:0] y;
  always @(posedge clk) if (rst) begin busy <= 0; done <= 0; end else begin
    done <= DONE;
    if (!busy) begin if (start) begin busy <= 1; n <= 0; x <= a; y <= b; result <= 0; done <= 0; end end
    else begin
      if (y[0]) result <= result + x;
      x <= x << 1; y <= y >> 1; n <= n + 1;
      if (LAST) begin busy <= 0; done <= 1; end
    end
  end
endmodule
"""


@pytest.mark.parametrize(
    ("done", "last", "taken", "lines"),
    [
        ("0", "n == 7", "x <= a", ["  input: {valid: start}", "  interval: 9"]),
        ("done", "n == 7", "x <= a", ["  input: {valid: start}", "valid: {port: done, level: true}}"]),
        (
            "0",
            "y == 0",
            "x <= a",
            ["  input: {valid: start, hold: operands}  # GUESS: how many cycles it takes may depend on"],
        ),
        ("0", "n == 7", "x <= 0", ["  input: {valid: start, hold: operands}  # registers read them until"]),
    ],
)
def test_a_unit_that_ignores_a_start_while_it_is_busy(
    done: str, last: str, taken: str, lines: list[str], tmp_path: Path
) -> None:
    text = _SERIAL.replace("DONE", done).replace("LAST", last).replace("x <= a", taken)
    late = text.replace("result + x", "result + a") if taken == "x <= 0" else text
    found = drafted_alone(tmp_path, late)
    assert all(line in found for line in lines)
    assert "accumulator: state" not in found  # a start clears what it adds to


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("if (rst) s <= 0; else if (en) s <= s + a * b;", True),
        ("if (rst) s <= 0; else begin p <= a * b; if (en) s <= s + p; end", True),
        ("if (rst) s <= 0; else if (en) s <= a * b;", False),
        ("begin p <= a * b; if (rst) s <= 0; else s <= p; end", False),
    ],
)
def test_a_unit_that_keeps_its_sum(body: str, kept: bool, tmp_path: Path) -> None:
    text = drafted_alone(
        tmp_path,
        "module m (input clk, rst, en, input [7:0] a, b, output [31:0] s_out);\n  reg [31:0] s, p;\n"
        f"  assign s_out = s;\n  always @(posedge clk) {body}\nendmodule\n",
    )
    assert ("accumulator: state" in text) == kept


@pytest.mark.parametrize(("operation", "certain"), [("+", False), ("*", True)])
def test_the_second_operand_of_an_adder_may_be_c(operation: str, certain: bool, tmp_path: Path) -> None:
    text = drafted_alone(
        tmp_path,
        "module m (input clk, input [15:0] in_a, in_b, output reg [15:0] sum);\n"
        f"  always @(posedge clk) sum <= in_a {operation} in_b;\nendmodule\n",
    )
    assert ("  b: in_b  # GUESS: or c, if the unit adds\n" in text) != certain
    assert ("  b: in_b\n" in text) == certain


def test_a_valid_is_what_brings_a_result(tmp_path: Path) -> None:
    """A bit of a configuration is none, whatever it is called."""
    text = drafted_alone(
        tmp_path,
        "module m (input clk, rst, run_mult, valid_cfg, input [7:0] a, b, output valid_o, output [15:0] d);\n"
        "  reg [1:0] n;\n  assign valid_o = run_mult & (valid_cfg ? n == 2 : n == 1);\n  assign d = a * b;\n"
        "  always @(posedge clk) if (rst) n <= 0; else n <= !run_mult || valid_o ? 0 : n + 1;\nendmodule\n",
    )
    assert "  input: {valid: run_mult, hold: released}  # GUESS" in text


def test_a_result_and_an_operand_that_are_parts_of_others(tmp_path: Path) -> None:
    """An output of fewer bits than the operands is no result if one of their width depends on all of them,
    nor is one bit an operand."""
    text = drafted_alone(
        tmp_path,
        "module m (input clk, input [31:0] x, input y_b, input [31:0] w, output reg [7:0] res_exp, "
        "output [31:0] early, output reg [31:0] zr);\n  reg [31:0] s;\n  assign early = s;\n"
        "  always @(posedge clk) begin res_exp <= x[30:23] + w[30:23]; s <= x + w; zr <= s ^ y_b; end\n"
        "endmodule\n",
    )
    assert "  a: x\n  b: w  # GUESS" in text
    assert "  d: zr  # GUESS: or early" in text
