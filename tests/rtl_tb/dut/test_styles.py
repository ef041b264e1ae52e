"""Drafts for modules in the styles of public repositories: each maps its ports as a person would, is read by
the loader and fits the module; what a name does not say is marked."""

# ruff: noqa: E501
from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from rtl_tb.dut.description import load_dut
from rtl_tb.dut.init import draft
from rtl_tb.dut.wrapper import write_wrapper

HEAD = "shape: {k: %d}\nformats: {a: f32, %sd: f32}\n%ssteps:\n"
ROUND = "round: {of: total, rounding: nearest_even, overflow: ieee, zero: signed}"
ADD = "sum: {of: [products, c], to: total}"
UNITS = {
    "add": HEAD % (1, "c: f32, ", "") + f"  - sum: {{of: [a, c], to: total}}\n  - {ROUND}\n",
    "mul": HEAD % (1, "b: f32, ", "")
    + f"  - multiply: {{to: products}}\n  - {ROUND.replace('total', 'products')}\n",
    "fma": HEAD % (1, "b: f32, c: f32, ", "") + f"  - multiply: {{to: products}}\n  - {ADD}\n  - {ROUND}\n",
    "dot4": HEAD % (4, "b: f32, c: f32, ", "") + f"  - multiply: {{to: products}}\n  - {ADD}\n  - {ROUND}\n",
    "fma modes": (
        HEAD % (1, "b: f32, c: f32, ", "") + f"  - multiply: {{to: products}}\n  - {ADD}\n  - {ROUND}\n"
    )
    .replace(
        "steps",
        "modes: {rnd: [nearest_even, toward_zero, down, up, nearest_away], sub: [none, product]}\nsteps",
    )
    .replace("nearest_even, overflow", "$rnd, overflow")
    .replace("to: products}", "to: products, negate: $sub}")
    .replace("to: total}", "to: total, rounding: $rnd}"),
    "acc": HEAD % (1, "b: f32, ", "accumulator: state\n")
    + f"  - multiply: {{to: products}}\n  - {ADD}\n  - {ROUND}\n",
}


@dataclass
class Style:
    """A port list, the unit that it is, and what its draft must say: `ports`, keys of the handshake, others."""

    ports: str
    unit: str
    maps: dict[str, Any]
    shake: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)
    guess: str = ""
    """What a GUESS must name."""


I32, O32 = "input [31:0] ", "output [31:0] "
AB = {"a": "a", "b": "b", "d": "d"}
STYLES = {
    "bluespec": Style(
        f"input CLK, input RST_N, {I32}start_a, {I32}start_b, {I32}start_s, input EN_start, output RDY_start, "
        f"input EN_get_result, {O32}get_result, output RDY_get_result",
        "fma",
        {"a": "start_a", "b": "start_b", "c": "start_s", "d": "get_result"},
        {
            "kind": "valid_ready",
            "input": {"valid": {"port": "EN_start", "only_if": "ready"}, "ready": "RDY_start"},
            "output": {"valid": "RDY_get_result", "ready": {"port": "EN_get_result", "only_if": "valid"}},
        },
    ),
    "bluespec value method": Style(
        f"input CLK, input RST_N, {I32}put_x, {I32}put_y, input EN_put, output RDY_put, {O32}result, output RDY_result",
        "mul",
        {"a": "put_x", "b": "put_y", "d": "result"},
        {
            "input": {"valid": {"port": "EN_put", "only_if": "ready"}, "ready": "RDY_put"},
            "output": {"valid": "RDY_result"},
        },
    ),
    "bluespec operands": Style(
        f"input CLK, input RST_N, {I32}server_core_request_put_op1, {I32}server_core_request_put_op2, "
        f"input EN_server_core_request_put, output RDY_server_core_request_put, input EN_server_core_response_get, "
        f"{O32}server_core_response_get, output RDY_server_core_response_get",
        "add",
        {
            "a": "server_core_request_put_op1",
            "c": "server_core_request_put_op2",
            "d": "server_core_response_get",
        },
        {
            "output": {
                "valid": "RDY_server_core_response_get",
                "ready": {"port": "EN_server_core_response_get", "only_if": "valid"},
            }
        },
    ),
    "bluespec, a method for each operand": Style(
        f"input CLK, input RST_N, {I32}get_A_a, input EN_get_A, output RDY_get_A, {I32}get_B_b, input EN_get_B, "
        f"output RDY_get_B, input EN_out_AB, {O32}out_AB, output RDY_out_AB",
        "mul",
        {"a": "get_A_a", "b": "get_B_b", "d": "out_AB"},
        {
            "input": [
                {
                    "operands": [name.lower()],
                    "valid": {"port": f"EN_get_{name}", "only_if": "ready"},
                    "ready": f"RDY_get_{name}",
                }
                for name in "AB"
            ],
            "output": {"valid": "RDY_out_AB", "ready": {"port": "EN_out_AB", "only_if": "valid"}},
        },
    ),
    "bluespec always ready": Style(
        f"input CLK, input RST_N, input put_args_x_is_signed, {I32}put_args_x, {I32}put_args_y, input EN_put_args, "
        "output result_valid, output [63:0] result_value",
        "mul",
        {"a": "put_args_x", "b": "put_args_y", "d": {"port": "result_value", "partial": True}},
        {"kind": "valid", "input": {"valid": "EN_put_args"}, "output": {"valid": "result_valid"}},
        {"constants": {"put_args_x_is_signed": 0}},
        guess="64 bits, but the operand has 1 x 32",
    ),
    "axi stream": Style(
        f"input aclk, input aresetn, input s_axis_tvalid, output s_axis_tready, {I32}s_axis_a_tdata, "
        f"{I32}s_axis_b_tdata, output m_axis_result_tvalid, input m_axis_result_tready, {O32}m_axis_result_tdata",
        "mul",
        {"a": "s_axis_a_tdata", "b": "s_axis_b_tdata", "d": "m_axis_result_tdata"},
        {
            "input": {"valid": "s_axis_tvalid", "ready": "s_axis_tready"},
            "output": {"valid": "m_axis_result_tvalid", "ready": "m_axis_result_tready"},
        },
        {"clock": "aclk"},
    ),
    "axi stream, a channel each": Style(
        f"input aclk, input aresetn, input s_axis_a_tvalid, output s_axis_a_tready, {I32}s_axis_a_tdata, "
        f"input s_axis_b_tvalid, output s_axis_b_tready, {I32}s_axis_b_tdata, output m_axis_result_tvalid, "
        f"input m_axis_result_tready, {O32}m_axis_result_tdata",
        "mul",
        {"a": "s_axis_a_tdata", "b": "s_axis_b_tdata", "d": "m_axis_result_tdata"},
        {
            "input": [
                {"operands": ["a"], "valid": "s_axis_a_tvalid", "ready": "s_axis_a_tready"},
                {"operands": ["b"], "valid": "s_axis_b_tvalid", "ready": "s_axis_b_tready"},
            ]
        },
    ),
    "open hardware suffixes": Style(
        f"input clk_i, input rst_ni, input valid_i, output ready_o, {I32}op_a_i, {I32}op_b_i, {I32}op_c_i, "
        f"output valid_o, input ready_i, {O32}result_o",
        "fma",
        {"a": "op_a_i", "b": "op_b_i", "c": "op_c_i", "d": "result_o"},
        {
            "input": {"valid": "valid_i", "ready": "ready_o"},
            "output": {"valid": "valid_o", "ready": "ready_i"},
        },
        {"reset": {"port": "rst_ni", "active": "low", "synchronous": True, "cycles": 4}},
    ),
    "stb and ack": Style(
        f"{I32}input_a, {I32}input_b, input input_a_stb, input input_b_stb, input output_z_ack, input clk, input rst, "
        f"{O32}output_z, output output_z_stb, output input_a_ack, output input_b_ack",
        "add",
        {"a": "input_a", "c": "input_b", "d": "output_z"},
        {
            "kind": "valid_ready",
            "input": [
                {"operands": ["a"], "valid": "input_a_stb", "ready": "input_a_ack"},
                {"operands": ["c"], "valid": "input_b_stb", "ready": "input_b_ack"},
            ],
            "output": {"valid": "output_z_stb", "ready": "output_z_ack"},
        },
    ),
    "chisel decoupled": Style(
        f"input clock, input reset, output io_in_ready, input io_in_valid, {I32}io_in_bits_a, {I32}io_in_bits_b, "
        f"{I32}io_in_bits_c, input io_out_ready, output io_out_valid, {O32}io_out_bits",
        "fma",
        {"a": "io_in_bits_a", "b": "io_in_bits_b", "c": "io_in_bits_c", "d": "io_out_bits"},
        {
            "input": {"valid": "io_in_valid", "ready": "io_in_ready"},
            "output": {"valid": "io_out_valid", "ready": "io_out_ready"},
        },
        {"reset": {"port": "reset", "active": "high", "synchronous": True, "cycles": 4}},
    ),
    "chisel plain": Style(
        f"input clock, input reset, {I32}io_x, {I32}io_y, {O32}io_out",
        "mul",
        {"a": "io_x", "b": "io_y", "d": "io_out"},
        {"kind": "latency", "latency": "measure"},
    ),
    "hardfloat": Style(
        f"input control, {I32}a, {I32}b, {I32}c, input [2:0] roundingMode, {O32}out, output [4:0] exceptionFlags",
        "fma",
        {"a": "a", "b": "b", "c": "c", "d": "out"},
        {"kind": "combinational"},
        {"constants": {"control": 0, "roundingMode": 0}},
    ),
    "fpnew": Style(
        "input clk_i, input rst_ni, input [2:0][31:0] operands_i, input [2:0] rnd_mode_i, input [3:0] op_i, "
        "input op_mod_i, input in_valid_i, output in_ready_o, input flush_i, output [31:0] result_o, "
        "output [4:0] status_o, output extension_bit_o, output out_valid_o, input out_ready_i, output busy_o",
        "fma",
        {
            "a": {"port": "operands_i", "array": "packed", "first": 0},
            "b": {"port": "operands_i", "array": "packed", "first": 1},
            "c": {"port": "operands_i", "array": "packed", "first": 2},
            "d": "result_o",
        },
        {
            "input": {"valid": "in_valid_i", "ready": "in_ready_o"},
            "output": {"valid": "out_valid_o", "ready": "out_ready_i"},
        },
        guess="GUESS: operands in the order of the entries",
    ),
    "fpnew, two of three": Style(
        "input clk_i, input rst_ni, input [2:0][31:0] operands_i, output [31:0] result_o, input in_valid_i, "
        "output out_valid_o",
        "mul",
        {
            "a": {"port": "operands_i", "array": "packed", "first": 0, "partial": True},
            "b": {"port": "operands_i", "array": "packed", "first": 1, "partial": True},
            "d": "result_o",
        },
        {"kind": "valid", "input": {"valid": "in_valid_i"}},
        guess="GUESS: operands in the order of the entries",
    ),
    "flopoco": Style(
        f"input clk, input rst, {I32}X, {I32}Y, {O32}R",
        "add",
        {"a": "X", "c": "Y", "d": "R"},
        {"kind": "latency"},
    ),
    "flopoco with exception bits": Style(
        "input clk, input [33:0] X, input [33:0] Y, output [33:0] R",
        "mul",
        {"a": {"port": "X", "partial": True}, "b": {"port": "Y", "partial": True}},
        guess="GUESS: 34 bits, but the operand has 1 x 32",
    ),
    "start, done, busy": Style(
        f"input clk, input rst, input start, {I32}a, {I32}b, output busy, output done, {O32}product",
        "mul",
        {"a": "a", "b": "b", "d": "product"},
        {
            "kind": "valid_ready",
            "input": {"valid": "start", "ready": {"port": "busy", "active": "low"}},
            "output": {"valid": "done"},
        },
    ),
    "start, ready": Style(
        f"input clk_i, {I32}opa_i, {I32}opb_i, input [2:0] fpu_op_i, input [1:0] rmode_i, {O32}output_o, "
        "input start_i, output ready_o, output ine_o, output overflow_o",
        "add",
        {"a": "opa_i", "c": "opb_i", "d": "output_o"},
        guess="ready_o",
    ),
    "go and done": Style(
        f"input clk, input reset_n, input go, {I32}multiplicand, {I32}multiplier, output finish, {O32}result",
        "mul",
        {"a": "multiplicand", "b": "multiplier", "d": "result"},
        {"kind": "valid", "input": {"valid": "go"}, "output": {"valid": "finish"}},
    ),
    "student adder": Style(
        f"{I32}a, {I32}b, {O32}sum, output overflow, output underflow",
        "add",
        {"a": "a", "c": "b", "d": "sum"},
    ),
    "student numbers": Style(
        f"{I32}num1, {I32}num2, {O32}result", "add", {"a": "num1", "c": "num2", "d": "result"}
    ),
    "numbered inputs": Style(f"{I32}in0, {I32}in1, {O32}out", "mul", {"a": "in0", "b": "in1", "d": "out"}),
    "three sources": Style(
        f"input clk, input en, {I32}src1, {I32}src2, {I32}src3, {O32}dst",
        "fma",
        {"a": "src1", "b": "src2", "c": "src3", "d": "dst"},
        {"kind": "latency", "enable": "en"},
    ),
    "capitals": Style(
        f"input CLK, input RSTn, {I32}A, {I32}B, {O32}S",
        "add",
        {"a": "A", "c": "B", "d": "S"},
        rest={"clock": "CLK"},
    ),
    "vendor": Style(
        f"input clock, input clk_en, {I32}dataa, {I32}datab, {O32}result",
        "mul",
        {"a": "dataa", "b": "datab", "d": "result"},
        {"enable": "clk_en"},
    ),
    "operands with affixes": Style(
        f"input i_clk, input i_rst_n, input i_valid, {I32}i_lhs, {I32}i_rhs, output o_valid, {O32}o_res",
        "mul",
        {"a": "i_lhs", "b": "i_rhs", "d": "o_res"},
        {"input": {"valid": "i_valid"}, "output": {"valid": "o_valid"}},
    ),
    "camel case": Style(
        f"input clk, input rst, input inValid, output outValid, {I32}opA, {I32}opB, {I32}opC, {O32}dataOut",
        "fma",
        {"a": "opA", "b": "opB", "c": "opC", "d": "dataOut"},
        {"kind": "valid", "input": {"valid": "inValid"}, "output": {"valid": "outValid"}},
    ),
    "two valids": Style(
        f"input clk, input rst, {I32}a, input a_valid, {I32}b, input b_valid, {O32}y, output y_valid",
        "mul",
        {"a": "a", "b": "b", "d": "y"},
        {"kind": "valid", "input": {"valid": ["a_valid", "b_valid"]}, "output": {"valid": "y_valid"}},
    ),
    "accumulating pe": Style(
        f"input clk, input rst, input en, input clear, {I32}a_in, {I32}b_in, {O32}a_out, {O32}b_out, {O32}c_out",
        "acc",
        {"a": "a_in", "b": "b_in", "clear": "clear", "d": "c_out"},
        {"kind": "latency", "input": {"valid": "en"}},
    ),
    "systolic cell": Style(
        f"input clk, input rst_n, input valid_in, input acc_clr, {I32}activation, {I32}weight, {O32}acc_out, "
        "output valid_out",
        "acc",
        {"a": "activation", "b": "weight", "clear": "acc_clr", "d": "acc_out"},
        {"kind": "valid", "input": {"valid": "valid_in"}},
    ),
    "partial sums": Style(
        f"input clk, input rst_n, {I32}act_i, {I32}wgt_i, {I32}psum_i, {O32}psum_o, {O32}act_o",
        "fma",
        {"a": "act_i", "b": "wgt_i", "c": "psum_i", "d": "psum_o"},
    ),
    "a port for each element": Style(
        "input clk, " + ", ".join(f"{I32}a{i}, {I32}b{i}" for i in range(4)) + f", {I32}c, {O32}out",
        "dot4",
        {"a": ["a0", "a1", "a2", "a3"], "b": ["b0", "b1", "b2", "b3"], "c": "c", "d": "out"},
    ),
    "arrays of elements": Style(
        "input clk, input valid, input [31:0] vec_a [0:3], input [3:0][31:0] vec_b, input [31:0] acc_in, "
        "output ready_out, output [31:0] acc_out",
        "dot4",
        {
            "a": {"port": "vec_a", "array": "unpacked"},
            "b": {"port": "vec_b", "array": "packed"},
            "c": "acc_in",
            "d": "acc_out",
        },
    ),
    "one bus": Style(
        "input clk, input in_valid, input [95:0] operands, output out_valid, output [31:0] result",
        "fma",
        {
            "a": {"port": "operands", "lsb": 0},
            "b": {"port": "operands", "lsb": 32},
            "c": {"port": "operands", "lsb": 64},
            "d": "result",
        },
        guess="GUESS: operands in the order of the entries",
    ),
    "active low": Style(
        f"input clk, input nrst, input in_valid_n, output out_valid_n, {I32}a, {I32}b, {O32}d",
        "mul",
        AB,
        {
            "input": {"valid": {"port": "in_valid_n", "active": "low"}},
            "output": {"valid": {"port": "out_valid_n", "active": "low"}},
        },
    ),
    "request and reply": Style(
        f"input clk, input rst, input req_valid, output req_ready, {I32}req_a, {I32}req_b, output resp_valid, "
        f"input resp_ready, {O32}resp_result, input [3:0] req_tag, output [3:0] resp_tag",
        "mul",
        {"a": "req_a", "b": "req_b", "d": "resp_result"},
        {
            "input": {"valid": "req_valid", "ready": "req_ready"},
            "output": {"valid": "resp_valid", "ready": "resp_ready"},
        },
        {"constants": {"req_tag": 0}},
    ),
    "yumi": Style(
        f"input clk_i, input reset_i, input en_i, input v_i, {I32}a_i, {I32}b_i, output ready_and_o, output v_o, "
        f"{O32}z_o, input yumi_i",
        "mul",
        {"a": "a_i", "b": "b_i", "d": "z_o"},
        {
            "kind": "valid_ready",
            "input": {"valid": "v_i", "ready": "ready_and_o"},
            "output": {"valid": "v_o", "ready": {"port": "yumi_i", "only_if": "valid"}},
        },
        {"constants": {"en_i": 1}},
    ),
    "sources and destination": Style(
        f"input clk, input resetn, input pcpi_valid, {I32}pcpi_rs1, {I32}pcpi_rs2, {O32}pcpi_rd, output pcpi_ready",
        "mul",
        {"a": "pcpi_rs1", "b": "pcpi_rs2", "d": "pcpi_rd"},
        {"kind": "valid", "input": {"valid": "pcpi_valid"}, "output": {"valid": "pcpi_ready"}},
        guess="pcpi_ready",
    ),
    "one bus of three, named by its kind": Style(
        "input clk_i, input in_valid_i, output out_valid_o, input [95:0] operands_i, input [2:0] rnd_mode_i, "
        "input op_mod_i, output [31:0] result_o",
        "fma modes",
        {
            "a": {"port": "operands_i", "lsb": 0},
            "mode": {"rnd": "rnd_mode_i", "sub": "op_mod_i"},
        },
    ),
    "mode bits of their own": Style(
        f"input clk, {I32}A, {I32}B, {I32}C, input [2:0] RndMode, input negate, {O32}R",
        "fma modes",
        {"a": "A", "b": "B", "c": "C", "mode": {"rnd": "RndMode", "sub": "negate"}, "d": "R"},
        guess="negate",
    ),
    "too narrow a port": Style(
        f"input clk, {I32}a, {I32}b, output [23:0] product, {O32}other",
        "mul",
        {"a": "a", "b": "b", "d": "other"},
        guess="product",
    ),
    "nothing but the reset clears": Style(
        f"input clk, input rst, input valid, {I32}a, {I32}b, {O32}acc, output done",
        "acc",
        {"clear": {"port": "rst", "given": "before_operands"}, "d": "acc"},
        {"kind": "valid"},
        {"reset": None},
        guess="rst",
    ),
    "indices next to operands": Style(
        f"input clk, input ce, input [4:0] op_ra_idx, input [4:0] op_rb_idx, {I32}op_ra_operand, "
        f"{I32}op_rb_operand, {O32}result",
        "mul",
        {"a": "op_ra_operand", "b": "op_rb_operand", "d": "result"},
        {},
        {"constants": {"op_ra_idx": 0, "op_rb_idx": 0}},
    ),
    "new data": Style(
        f"input clk, input ce, input nd, {I32}a, {I32}b, output rdy, {O32}result",
        "mul",
        {"a": "a", "b": "b", "d": "result"},
        guess="rdy",
    ),
}
VHDL = {
    "std_logic_vector": Style(
        "clk, rst, start : in std_logic; a, b : in std_logic_vector(31 downto 0); "
        "q : out std_logic_vector(31 downto 0); done : out std_logic",
        "mul",
        {"a": "a", "b": "b", "d": "q"},
        {"kind": "valid", "input": {"valid": "start"}, "output": {"valid": "done"}},
    ),
    "flopoco in VHDL": Style(
        "clk : in std_logic; X : in std_logic_vector(31 downto 0); Y : in std_logic_vector(31 downto 0); "
        "R : out std_logic_vector(31 downto 0)",
        "add",
        {"a": "x", "c": "y", "d": "r"},
        {"kind": "latency"},
    ),
}


def checked(folder: Path, source: Path, style: Style) -> None:
    (folder / "unit.yaml").write_text(f"unit: unit\n{UNITS[style.unit]}")
    text = draft([source], instruction=str(folder / "unit.yaml"), folder=folder)
    (folder / "dut.yaml").write_text(text)
    said = yaml.safe_load(text)
    assert {role: said["ports"].get(role) for role in style.maps} == style.maps, text
    assert {key: said["handshake"].get(key) for key in style.shake} == style.shake, text
    assert {key: said.get(key) for key in style.rest} == style.rest, text
    assert style.guess in "".join(line for line in text.splitlines() if "GUESS" in line), text
    dut = load_dut(folder / "dut.yaml")
    write_wrapper(dut, folder / "out")
    assert text == draft([source], instruction=str(folder / "unit.yaml"), folder=folder)


@pytest.mark.parametrize("name", STYLES)
def test_ports_as_others_write_them(name: str, tmp_path: Path) -> None:
    source = tmp_path / "top.sv"
    source.write_text(f"module top ({STYLES[name].ports});\nendmodule\n")
    checked(tmp_path, source, STYLES[name])


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed: apt install ghdl")
@pytest.mark.parametrize("name", VHDL)
def test_entities_as_others_write_them(name: str, tmp_path: Path) -> None:
    source = tmp_path / "top.vhd"
    source.write_text(
        f"library ieee; use ieee.std_logic_1164.all;\nentity top is port ({VHDL[name].ports}); end entity;\n"
        "architecture rtl of top is begin end architecture;\n"
    )
    checked(tmp_path, source, VHDL[name])
