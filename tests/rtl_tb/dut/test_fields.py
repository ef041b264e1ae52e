"""Structures, unions and enumerations as ports, mapped by their fields."""

from __future__ import annotations

import re

import pytest
import yaml

from golden.errors import SpecError
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.init import draft
from rtl_tb.dut.wrapper import wrapper_of

UNIT = "unit: bus\nshape: {k: 4}\nformats: {a: s8, b: u8, c: s32, d: s32}\nprogram: [integer_dot_add: {}]\n"
RTL = """
package bus_types;
    typedef enum logic [1:0] {NEGATE = 1, PLAIN = 2} op_e;
    typedef struct packed { logic signed [7:0] a; logic [2:0] tag; logic [7:0] b; } pair_t;
    typedef union packed { logic [31:0] word; struct packed { logic [15:0] high, low; } halves; } c_t;
    typedef struct packed { logic valid; op_e op; pair_t [0:3] pairs; c_t c; } request_t;
    typedef struct packed { logic [5:0] id; logic valid; logic signed [31:0] d; } response_t;
endpackage
module bus_unit import bus_types::*; (input logic clk, rst, input request_t request,
        output response_t response);
    always_ff @(posedge clk) begin
        automatic logic signed [31:0] total = request.c.word;
        for (int i = 0; i < 4; i++) total += 32'(request.pairs[i].a) * $signed(32'(request.pairs[i].b));
        response.id <= '1;
        response.valid <= request.valid && !rst;
        response.d <= request.op == PLAIN ? total : -total;
        if (request.pairs[2].tag != 0) response.d <= 0;
    end
endmodule
"""
DUT = {
    "top": "bus_unit",
    "sources": ["bus.sv"],
    "unit": "unit.yaml",
    "clock": "clk",
    "reset": {"port": "rst", "active": "high"},
    "handshake": {
        "kind": "valid",
        "input": {"valid": "request.valid"},
        "output": {"valid": "response.valid"},
    },
    "ports": {
        "a": {"port": "request.pairs.a", "array": "packed"},
        "b": {"port": "request.pairs.b", "array": "packed"},
        "c": "request.c",
        "d": "response.d",
    },
    "constants": {"request.op": "PLAIN", "request.pairs.tag": 0},
}


def write(folder, rtl=RTL, **changes):
    text = yaml.safe_load(yaml.safe_dump(DUT))
    for key, value in changes.items():
        text[key] = text[key] | value if isinstance(value, dict) else value
    (folder / "bus.sv").write_text(rtl)
    (folder / "unit.yaml").write_text(UNIT)
    (folder / "dut.yaml").write_text(yaml.safe_dump(text))
    return folder / "dut.yaml"


def checked(file, folder, engine="fast", simulator="verilator", count=500):
    options = Options(engine, simulator, count=count, build=folder / "build", failures=None, explain=False)
    return check(file, options)


UNPACKED = (
    ("pair_t [0:3] pairs; c_t c;", "c_t c;"),
    ("input request_t request,", "input request_t request, input pair_t pairs [3:0],"),
    ("request.pairs[", "pairs["),
)


def changed(rtl, *changes):
    for old, new in changes:
        assert old in rtl
        rtl = rtl.replace(old, new)
    return rtl


@pytest.mark.parametrize("simulator", ["verilator", pytest.param("icarus", marks=pytest.mark.long)])
@pytest.mark.parametrize("unpacked", [False, True])
def test_a_unit_whose_ports_are_structures_is_what_it_is(tmp_path, unpacked, simulator):
    engine = "fast" if simulator == "verilator" else "selfcheck"
    if not unpacked:
        assert checked(write(tmp_path), tmp_path, engine, simulator).passed
        return
    ports = {name: {"port": f"pairs.{name}", "array": "unpacked"} for name in "ab"}
    file = write(tmp_path, changed(RTL, *UNPACKED), ports=ports)
    text = file.read_text().replace("request.pairs.tag", "pairs.tag")
    file.write_text(text)
    assert checked(file, tmp_path, engine, simulator).passed


WRONG = {
    "a and b swapped": {
        "ports": {
            "a": {"port": "request.pairs.b", "array": "packed"},
            "b": {"port": "request.pairs.a", "array": "packed"},
        }
    },
    "one of them in the other order": {
        "ports": {"a": {"port": "request.pairs.a", "array": "packed", "order": "descending"}}
    },
    "another name of the enumeration": {"constants": {"request.op": "NEGATE"}},
    "another tag": {"constants": {"request.pairs.tag": 4}},
}


@pytest.mark.parametrize("what", [pytest.param(each, marks=pytest.mark.long) for each in WRONG])
def test_a_field_in_the_wrong_place_fails(tmp_path, what):
    assert not checked(write(tmp_path, **WRONG[what]), tmp_path).passed


def test_every_bit_lies_where_the_language_puts_it(tmp_path):
    """By the rules of IEEE 1800-2017, 7.2.1: the first field of a structure is the highest. The union is 32
    bits, a pair 19, of which [0:3] puts entry 0 highest."""
    text = wrapper_of(load_dut(write(tmp_path)))
    placed = {comment: int(lsb) for lsb, comment in re.findall(r"p_request\[\d+:(\d+)\] = .*?// (.*)", text)}
    wanted = {"c": 0, "request.op": 32 + 4 * 19, "request.valid": 32 + 4 * 19 + 2}
    for entry in range(4):
        low = 32 + (3 - entry) * 19
        wanted |= {f"b[{entry}]": low, f"a[{entry}]": low + 8 + 3}
    assert placed == wanted | {"request.pairs.tag": 32 + 3 * 19 + 8} | {
        comment: lsb for comment, lsb in placed.items() if comment == "request.pairs.tag"
    }
    assert "2'h2;  // request.op" in text


ERRORS = {
    r"request has the fields valid, op, pairs, c, expected 'pair'; nearest: pairs": {
        "ports": {"a": {"port": "request.pair.a", "array": "packed"}}
    },
    "clk has no fields": {"clock": "clk.x"},
    "'request.pairs.a' lies in each entry of an array; write .port: request.pairs.a, array: packed.": {
        "ports": {"a": "request.pairs.a"}
    },
    "'request.c(.halves.low)?' and 'request.c(.halves.low)?' share bit 0": {
        "constants": {"request.c.halves.low": 0}
    },
    "'request.pairs.tag' and 'request' share bit 79": {
        "ports": {"c": {"port": "request", "lsb": 79, "partial": True}}
    },
    "'request.op' is 'PLANE', expected one of NEGATE, PLAIN": {"constants": {"request.op": "PLANE"}},
    "'request.pairs.tag' is 'ZERO', expected a number": {"constants": {"request.pairs.tag": "ZERO"}},
    "too few for the constant 8": {"constants": {"request.pairs.tag": 8}},
    "'response.id' of bus_unit is an output, expected an input": {"ports": {"c": "response.id"}},
    "expected a port or port.field": {"clock": "clk..x"},
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_name_the_field(tmp_path, message):
    with pytest.raises(SpecError, match=message):
        wrapper_of(load_dut(write(tmp_path, **ERRORS[message])))


@pytest.mark.parametrize("name", ["request.op", "request.pairs.tag"])
def test_a_field_that_nobody_drives_is_an_error(tmp_path, name):
    file = write(tmp_path)
    text = yaml.safe_load(file.read_text())
    del text["constants"][name]
    file.write_text(yaml.safe_dump(text))
    with pytest.raises(SpecError, match=f"nothing drives the input {name} of bus_unit"):
        wrapper_of(load_dut(file))


def test_init_maps_the_fields(tmp_path):
    write(tmp_path)
    text = draft([tmp_path / "bus.sv"], instruction=str(tmp_path / "unit.yaml"), folder=tmp_path)
    drafted = yaml.safe_load(text)
    for key in ("ports", "handshake"):
        assert drafted[key] == DUT[key]
    assert "request.op: NEGATE  # GUESS: one of NEGATE, PLAIN" in text


def test_a_type_that_is_a_parameter_is_read(tmp_path):
    rtl = changed(
        RTL,
        ("import bus_types::*; (", "import bus_types::*; #(parameter type R = request_t) ("),
        ("input request_t", "input R"),
    )
    assert "p_request" in wrapper_of(load_dut(write(tmp_path, rtl)))
