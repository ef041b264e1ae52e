"""Top modules with interfaces or types as parameters: the generated wrapper declares and connects them."""

from __future__ import annotations

import importlib.util

import pytest
import yaml

from golden.errors import SpecError
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.dut import slang
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.given import Given
from rtl_tb.dut.init import draft
from rtl_tb.dut.ports import Design, read_ports
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines.builds import warnings_of
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.locate.changes import find_changes

UNIT = "unit: bus\nshape: {k: 4}\nformats: {a: s8, b: u8, c: s32, d: s32}\nprogram: [integer_dot_add: {}]\n"
RTL = """
package types;
    typedef enum logic [1:0] {PLUS = 1, MINUS = 2} op_t;
    typedef struct packed { op_t op; logic [3:0][7:0] a; logic [3:0][7:0] b; logic [31:0] c; } request_t;
endpackage
interface dot_if #(parameter int W = 32) (input logic clk);
    logic valid, ready, done;
    types::request_t request;
    logic [W-1:0] d;
    modport slave(input valid, request, clk, output ready, done, d);
    modport master(output valid, request, input ready, done, d, clk);
endinterface
module unit #(parameter int K = 2) (input logic clk, rst, dot_if.slave bus);
    assign bus.ready = 1;
    always_ff @(posedge bus.clk) begin
        automatic logic signed [31:0] total = bus.request.c;
        for (int i = 0; i < K; i++) total += 32'(signed'(bus.request.a[i])) * 32'(bus.request.b[i]);
        bus.d <= bus.request.op == types::MINUS ? -total : total;
    end
    always_ff @(posedge clk) bus.done <= bus.valid && !rst;
endmodule
"""
DUT = {
    "top": "unit",
    "sources": ["unit.sv"],
    "parameters": {"K": 4},
    "unit": "unit.yaml",
    "clock": "clk",
    "reset": {"port": "rst", "active": "high"},
    "handshake": {
        "kind": "valid_ready",
        "input": {"valid": "bus.valid", "ready": "bus.ready"},
        "output": {"valid": "bus.done"},
    },
    "ports": {"a": "bus.request.a", "b": "bus.request.b", "c": "bus.request.c", "d": "bus.d"},
    "constants": {"bus.request.op": "PLUS"},
}


def write(folder, *changes, **description):
    rtl = RTL
    for old, new in changes:
        assert old in rtl
        rtl = rtl.replace(old, new)
    files = {"unit.sv": rtl, "unit.yaml": UNIT, "dut.yaml": yaml.safe_dump(DUT | description)}
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder / "dut.yaml"


def checked(file, engine="fast", simulator="verilator"):
    build = file.parent / "build"
    return check(file, Options(engine, simulator, count=300, build=build, failures=None, explain=False))


@pytest.fixture
def with_slang():
    pytest.importorskip("pyslang")


@pytest.mark.usefixtures("with_slang")
@pytest.mark.parametrize(
    ("engine", "simulator"),
    [("fast", "verilator"), pytest.param("selfcheck", "icarus", marks=pytest.mark.long)],
)
def test_a_unit_behind_an_interface_passes(tmp_path, engine, simulator):
    assert checked(write(tmp_path), engine, simulator).passed


WRONG = {
    "operands swapped": {"ports": DUT["ports"] | {"a": "bus.request.b", "b": "bus.request.a"}},
    "another operation": {"constants": {"bus.request.op": "MINUS"}},
    "a parameter is not set": {"parameters": {}},
}


@pytest.mark.usefixtures("with_slang")
@pytest.mark.parametrize("what", [pytest.param(each, marks=pytest.mark.long) for each in WRONG])
def test_what_is_connected_wrongly_fails(tmp_path, what):
    assert not checked(write(tmp_path, **WRONG[what])).passed


@pytest.mark.usefixtures("with_slang")
def test_a_result_that_the_unit_never_drives_fails(tmp_path):
    result = checked(write(tmp_path, ("bus.d <= bus", "if (rst && bus.valid) bus.d <= bus")))
    assert not result.passed


NO_MODPORT = ("dot_if.slave bus", "dot_if bus")
ERRORS = {
    "nothing drives the input bus.gain of unit": [
        ("(input logic clk);", "(input logic clk, input logic [1:0] gain);")
    ],
    "nothing drives the input bus.mode of unit": [
        ("logic valid, ready", "logic mode, valid, ready"),
        ("slave(input valid", "slave(input mode, valid"),
    ],
    "slang refused the module unit: .*missing": [("= bus.request.c;", "= bus.request.missing;")],
}


@pytest.mark.usefixtures("with_slang")
@pytest.mark.parametrize("message", ERRORS)
def test_errors_say_what_to_do(tmp_path, message):
    with pytest.raises((SpecError, ElaborationError), match=message):
        wrapper_of(load_dut(write(tmp_path, *ERRORS[message])))


@pytest.mark.usefixtures("with_slang")
def test_init_reads_the_signals_of_the_interface(tmp_path):
    write(tmp_path)
    drafted = yaml.safe_load(draft([tmp_path / "unit.sv"], "unit", str(tmp_path / "unit.yaml"), tmp_path))
    for key in ("clock", "handshake"):
        assert drafted[key] == DUT[key]
    found = {name: at["port"] if isinstance(at, dict) else at for name, at in drafted["ports"].items()}
    assert found == DUT["ports"]
    assert set(drafted["constants"]) == {"bus.request.op"}


GENERIC = [
    ("#(parameter int W = 32)", "#(parameter int W = 8, parameter type R = logic)"),
    ("types::request_t request;", "R request;"),
    ("logic valid, ready", "logic never, valid, ready"),
    ("#(parameter int K = 2)", "#(parameter int K = 2, parameter type T)"),
    ("-total : total;", "-T'(total) : T'(total);"),
]
GIVEN = Given(
    parameters={"K": 4, "bus.W": 32}, types={"bus.R": "types::request_t", "T": "logic signed [31:0]"}
)


@pytest.mark.usefixtures("with_slang")
@pytest.mark.parametrize(
    ("changes", "given"),
    [
        pytest.param([*GENERIC, NO_MODPORT], GIVEN, id="plain and generic"),
        pytest.param(GENERIC, GIVEN, id="modport and generic", marks=pytest.mark.long),
        pytest.param([NO_MODPORT], Given(parameters={"K": 4}), id="plain", marks=pytest.mark.long),
    ],
)
def test_what_init_writes_is_checked_at_once(tmp_path, changes, given):
    """A unit that names a signal in no way has none to drive."""
    file = write(tmp_path, *changes)
    file.write_text(draft([tmp_path / "unit.sv"], None, str(tmp_path / "unit.yaml"), tmp_path, given))
    assert load_dut(file).types == dict(given.types)
    assert "never" not in file.read_text()
    assert checked(file).passed


def test_without_pyslang_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        slang.importlib.util, "find_spec", lambda name: (name != "pyslang" and found(name)) or None
    )
    with pytest.raises(
        SimulatorMissing, match=r"a port is an interface, and pyslang reads those; .*pip install"
    ):
        wrapper_of(load_dut(write(tmp_path)))


TYPED = """
package types;
    typedef struct packed { logic [3:0][7:0] a; logic [3:0][7:0] b; logic [31:0] c; } request_t;
    typedef struct packed { logic [3:0][7:0] b; logic [3:0][7:0] a; logic [31:0] c; } swapped_t;
endpackage
module typed #(parameter type T = logic, parameter int K = 2, parameter type R = logic [3:0])
        (input logic clk, input T ops, output R d);
    wire types::request_t request = ops;
    always_ff @(posedge clk) begin
        automatic logic signed [31:0] total = request.c;
        for (int i = 0; i < K; i++) total += 32'(signed'(request.a[i])) * 32'(request.b[i]);
        d <= total;
    end
endmodule
"""


def typed(folder, **types):
    text = {key: DUT[key] for key in ("sources", "parameters", "unit", "clock")}
    text |= {"top": "typed", "handshake": {"kind": "latency", "latency": 1}}
    text["types"] = {"T": "types::request_t", "R": "logic signed [31:0]"} | types
    text["ports"] = {"a": "ops.a", "b": "ops.b", "c": "ops.c", "d": "d"}
    for name, content in {"unit.sv": TYPED, "unit.yaml": UNIT, "dut.yaml": yaml.safe_dump(text)}.items():
        (folder / name).write_text(content)
    return folder / "dut.yaml"


@pytest.mark.long
def test_types_are_given_as_parameters(tmp_path):
    assert checked(typed(tmp_path)).passed


def test_lint_reads_the_unit_with_its_types(tmp_path):
    """With T = logic, the default, it would warn of the width of ops."""
    dut = load_dut(typed(tmp_path))
    (tmp_path / "unit.sv").write_text(TYPED.replace("d <= total;", "d <= total[7:0];"))
    warned = warnings_of(dut, ("WIDTH",))
    assert warned
    assert not any("'ops'" in text for text in warned)


def test_the_fields_are_those_of_the_type_that_was_given(tmp_path):
    """The unit reads request_t whatever it is given."""
    assert not checked(typed(tmp_path, T="types::swapped_t")).passed


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"T": "1 + 1"}, "key 'T' is '1 [+] 1', expected a type such as bus_pkg::request_t"),
        ({"T": "types::request_u"}, "request_u"),
        ({"S": "logic"}, "Parameter not found: 'S'"),
    ],
)
def test_types_that_are_none(tmp_path, types, message):
    with pytest.raises((SpecError, ElaborationError), match=message):
        wrapper_of(load_dut(typed(tmp_path, **types)))


ASKED = "say which type it gets, with types: {T: types::request_t} in dut.yaml or --type T=types::request_t"


@pytest.mark.usefixtures("with_slang")
@pytest.mark.parametrize(
    ("old", "new", "parameter"),
    [
        ("parameter type T = logic,", "parameter type T,", r"T \(no default\)"),
        ("wire types::request_t request = ops;", "wire T request = ops;", "T = logic"),
    ],
)
def test_init_says_which_type_to_give_and_takes_it(tmp_path, old, new, parameter):
    typed(tmp_path)
    assert old in TYPED
    (tmp_path / "unit.sv").write_text(TYPED.replace(old, new))
    with pytest.raises(ElaborationError, match=f"typed has the type parameter {parameter}: {ASKED}"):
        draft([tmp_path / "unit.sv"], folder=tmp_path)
    types = {"T": "types::request_t", "R": "logic [31:0]"}
    drafted = yaml.safe_load(draft([tmp_path / "unit.sv"], folder=tmp_path, given=Given(types=types)))
    assert drafted["types"] == types
    assert drafted["ports"] == {
        "a": {"port": "ops.a", "array": "packed"},
        "b": {"port": "ops.b", "array": "packed"},
        "c": "ops.c",
        "d": "d",
    }


def test_a_default_that_serves_needs_no_word(tmp_path):
    typed(tmp_path)
    drafted = yaml.safe_load(draft([tmp_path / "unit.sv"], folder=tmp_path))
    assert "types" not in drafted


@pytest.mark.usefixtures("with_slang")
def test_a_type_that_an_interface_lacks_is_named_with_its_port(tmp_path):
    changes = [GENERIC[0], GENERIC[1]]
    with pytest.raises(ElaborationError, match=r"unit has the type parameter bus[.]R = logic: say which"):
        draft([write(tmp_path, *changes).with_name("unit.sv")], folder=tmp_path)


def test_the_text_of_a_unit_behind_an_interface_is_searched(tmp_path):
    """The interface's own parameter has no value where a module alone is read."""
    found = find_changes(load_dut(write(tmp_path)))
    assert any(one.change.before == "types::MINUS" or "-total" in one.change.before for one in found.choices)


def test_an_interface_within_the_module_hides_none_of_its_ports(tmp_path):
    """Verilator then leaves the ports out."""
    (tmp_path / "u.sv").write_text(
        "interface word; logic [7:0] data; modport in (input data); modport out (output data); endinterface\n"
        "module sub (word.in x, word.out y); assign y.data = ~x.data; endmodule\n"
        "module u (word.in a, word.out d, input clock); word t(); sub s1 (.x(a), .y(t)); "
        "sub s2 (.x(t), .y(d)); endmodule\n"
    )
    ports = read_ports(Design([tmp_path / "u.sv"], "u")).ports
    assert {name: (port.direction, port.width) for name, port in ports.items()} == {
        "a.data": ("input", 8),
        "d.data": ("output", 8),
        "clock": ("input", 1),
    }
