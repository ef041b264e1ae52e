"""Texts that others wrote, and generators: none is refused for its style, none makes the check crash, and a
verdict never waits for what explains it."""

from __future__ import annotations

import time
from pathlib import Path

import engine_dut
import generated_text
import integer_dot
import pytest
from long_run import long_after
from typer.testing import CliRunner

from golden.cli.app import app
from golden.identify.minimising import minimise
from golden.vectors.vectorset import default_set
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.record import VERDICT
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.ports import Design, read_ports
from rtl_tb.errors import ElaborationError
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.changes import find_changes
from rtl_tb.locate.scopes import Names

# Macros that a library defines twice, a timescale in one of two files, a type parameter: all legal. An enum
# without a cast is not, but only Verilator refuses it.
LIBRARY = """`timescale 1ns/1ps
`define SUM(x, y) ((x) + (y))
`define SUM(x, y) ((y) + (x))
module adder #(parameter type T = logic [31:0], localparam type U = T) (input T x, y, output U s);
  assign s = `SUM(x, y);
endmodule
"""
TOP = """module dot4 (input logic clk, rst_n, in_valid, out_ready, input logic [31:0] a, b, c,
            output logic in_ready, out_valid, output logic [31:0] d);
  logic signed [31:0] p [4];
  logic [31:0] s0, s1;
  typedef enum logic [1:0] {IDLE, BUSY} state_t;
  state_t state;
  assign state = {1'b0, in_valid};  // a number for an enum, without a cast
  logic signed [31:0] sum, next;
  for (genvar i = 0; i < 4; i++) begin : g_products
    assign p[i] = $signed(a[8*i +: 8]) * $signed(b[8*i +: 8]);
  end
  adder low (.x(p[0]), .y(p[1]), .s(s0));
  adder #(.T(logic signed [31:0])) high (.x(p[2]), .y(p[3]), .s(s1));
  assign sum = s0 + s1;
  function automatic logic signed [31:0] plus(input logic signed [31:0] x, y);
    logic signed [31:0] r;
    r = x + y;
    return r;
  endfunction
  assign next = plus(sum, c);
  assign in_ready = !out_valid || out_ready;
  always_ff @(posedge clk)
    if (!rst_n) out_valid <= 1'b0;
    else if (in_ready) begin out_valid <= in_valid; d <= next; end
endmodule
"""


def foreign(folder: Path, *changes: tuple[str, str]) -> Path:
    dut = integer_dot.planted(folder, 4, TOP, *changes)
    (folder / "lib.sv").write_text(LIBRARY)
    text = dut.file.read_text().replace("sources: [dot4.sv]", "sources: [lib.sv, dot4.sv]")
    dut.file.write_text(text)
    return dut.file


def options(folder: Path, **more: object) -> Options:
    return Options(failures=None, build=folder / "build", **{"count": 500} | more)  # type: ignore[arg-type]


def test_style_refuses_nothing_and_all_is_looked_at(tmp_path: Path) -> None:
    """A right unit passes, and nothing that looks at its text says that it could not."""
    result = check(foreign(tmp_path), options(tmp_path))
    assert result.passed and not [note for note in result.notes if "not known" in note], result.notes


@pytest.mark.long
def test_the_verdict_comes_before_what_explains_it(tmp_path: Path) -> None:
    wrong = ("assign sum = s0 + s1;", "assign sum = s0 - s1;")
    heard: list[tuple[str, bool]] = []
    check(
        foreign(tmp_path, wrong),
        options(tmp_path, budget=1, repair=0),
        None,
        lambda found, stage: heard.append((stage, found.example is not None)),
    )
    assert heard[0] == (VERDICT, False) and all(known for _, known in heard[1:])


# Most of what a package, a module and an interface may hold, as libraries of floating-point units do.
ZOO = Path(__file__).with_name("every_construct.sv")


def test_every_construct_is_looked_at(tmp_path: Path) -> None:
    """Nothing of it is left out, for want of an attribute that some kind of symbol has not."""
    (tmp_path / "zoo.sv").write_text(ZOO.read_text())
    dut = integer_dot.planted(tmp_path, 4, TOP)
    text = dut.file.read_text().replace("[dot4.sv]", "[zoo.sv]").replace("top: dot4", "top: zoo")
    dut.file.write_text(text)
    found = find_changes(load_dut(dut.file))
    assert not found.not_read
    assert {"x", "v", "FP32", "f.m"} <= {found.sources.text(one.change.place) for one in found.choices}


def test_what_no_one_foresaw_is_left_out_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a text that breaks what looks at it is named; the rest is looked at."""
    dut = integer_dot.planted(tmp_path, 4, TOP.replace("adder", "other") + LIBRARY.replace("adder", "other"))
    whole = find_changes(dut)
    from rtl_tb.locate import elaboration

    before = elaboration._Walk._bounds

    def broken(finder: object, node: object) -> None:
        if "8*i" in str(node.syntax):  # type: ignore[attr-defined]
            raise AttributeError("no attribute 'value'")
        before(finder, node)  # type: ignore[arg-type]

    monkeypatch.setattr(elaboration._Walk, "_bounds", broken)
    found = find_changes(dut)
    line = TOP[: TOP.index("8*i")].count("\n") + 1
    assert [place.rpartition("/")[2] for place in found.not_read] == [f"dot4.sv:{line}"]
    sites = [{each.sources.text(one.site) for one in each.choices} for each in (whole, found)]
    left = sites[0] - sites[1]
    assert left and all("a[" in str(text) or "b[" in str(text) or not str(text).strip("8*i") for text in left)


ARRAYS = """module times (input logic [31:0] x, w, output logic signed [15:0] p [4]);
  for (genvar i = 0; i < 4; i++) assign p[i] = $signed(x[8*i +: 8]) * $signed(w[8*i +: 8]);
endmodule
module total (input logic signed [15:0] p [4], output logic [31:0] y);
  assign y = 32'(p[0]) + 32'(p[1]) + 32'(p[2]) + 32'(p[3]);
endmodule
module dot4 (input PORT a [4], input PORT b [4], input logic [31:0] c, output logic [31:0] d);
  logic signed [15:0] p [4];
  logic [31:0] x, w, y;
  assign x = {a[3], a[2], a[1], a[0]};
  assign w = {b[3], b[2], b[1], b[0]};
  times m (.x, .w, .p);
  total s (.p, .y);
  assign d = y + c;
endmodule
"""


def of_arrays(folder: Path, port: str, text: str = ARRAYS) -> Path:
    file = integer_dot.planted(folder, 4, text.replace("PORT", port)).file
    kept = file.read_text().split("clock:")[0]
    array = "{{port: {0}, array: unpacked}}".format
    ports = f"ports: {{a: {array('a')}, b: {array('b')}, c: c, d: d}}\n"
    file.write_text(f"{kept}handshake: {{kind: combinational}}\n{ports}")
    return file


@pytest.mark.parametrize("port", long_after(1, ["byte", "logic signed [7:0]", "bit [7:0]"]))
def test_entries_of_arrays_are_of_any_kind(tmp_path: Path, port: str) -> None:
    """With a sign, of two states, or both."""
    assert check(of_arrays(tmp_path, port), options(tmp_path, four_states=False)).passed


def test_x_that_each_reader_has_is_one(tmp_path: Path) -> None:
    """A bit beyond its vector; Verilator has a zero there."""
    pytest.importorskip("pyosys")
    outside_influences = "assign d = (&c[2:0]) ? y + c + {31'd0, x[6'd32 + {5'd0, c[0]}]} : y + c;"
    text = ARRAYS.replace("assign d = y + c;", outside_influences)
    assert text != ARRAYS
    result = check(of_arrays(tmp_path, "logic [7:0]", text), options(tmp_path))
    assert not result.passed


def test_a_parameter_of_no_module_names_the_top(tmp_path: Path) -> None:
    file = tmp_path / "mul.sv"
    file.write_text("module mul (input logic [7:0] a, output logic [7:0] z); assign z = a; endmodule\n")
    with pytest.raises(ElaborationError, match=r"e_p.*the top was taken to be mul: --top") as caught:
        read_ports(Design([file], parameters={"e_p": 5}))
    assert "mul.sv" not in str(caught.value)
    file.write_text(file.read_text() + file.read_text().replace("mul", "add"))
    with pytest.raises(ElaborationError, match=r"are add, mul: --top"):
        read_ports(Design([file], parameters={"e_p": 5}))


# Budgets ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated text of 3,500 flat assignments with a fault: bit 5 of c is bit 4."""
    folder = tmp_path_factory.mktemp("generated")
    return integer_dot.planted(folder, 4, generated_text.dot4(), (" = c[5];", " = c[4];")).file


def test_looking_for_changes_ends_within_a_loop(generated: Path) -> None:
    """The budget is looked at for each part of an expression, not for each module."""
    dut, start = load_dut(generated), time.thread_time()
    found = find_changes(dut, Budget(1.0))
    assert found.choices is found.everywhere.choices and found.not_read and time.thread_time() - start < 8


def test_names_of_a_large_scope_are_not_compared_with_all() -> None:
    """Lines next to a name, and lines that differ in a number; of a small file all."""
    many = Names([f"IF_{n}_THEN_{n}___d{n}" for n in range(5000)] + ["flag"])
    start = time.thread_time()
    for n in range(0, 5000, 10):
        assert many.alike(f"IF_{n}_THEN_{n}___d{n}", 6)
    assert time.thread_time() - start < 3
    few = Names(["alpha", "beta", "alphb"])
    assert few.alike("alpha", 2) == ["alphb", "beta"] and few.alike("alpha", 2, 0.7) == ["alphb"]


def test_minimising_ends_with_its_budget() -> None:
    unit = integer_dot_unit()
    vectors = default_set(unit, 4, 1, "dot")
    one = {name: codes[3] for name, codes in vectors.operands.items()}
    asked = 0

    def fails(batch: dict[str, object]) -> object:
        nonlocal asked
        asked += 1
        import numpy as np

        return np.ones(len(batch["a"]), np.bool_)  # type: ignore[arg-type]

    budget = Budget(60)
    budget.end()
    least = minimise(unit, one, fails, budget=budget)  # type: ignore[arg-type]
    assert asked == 0 and all((least[name] == codes).all() for name, codes in one.items())


def integer_dot_unit():  # type: ignore[no-untyped-def]
    import golden

    return golden.instruction("ampere", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32")


def test_an_error_while_explaining_leaves_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on the screen already, and no word of Python is in the report."""

    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("rtl_tb.check.explain.smallest", broken)
    monkeypatch.setattr("rtl_tb.check.explain.explain_results", broken)
    file = engine_dut.write_small(tmp_path).file
    (tmp_path / "small.sv").write_text(engine_dut.RTL.replace("total = c;", "total = ~c;"))
    words = ["rtl", "check", str(file), "--count", "200", "--repair", "0"]
    words += ["--failures", str(tmp_path / "f"), "--build", str(tmp_path / "build")]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 1 and said.output.startswith("FAIL: small"), said.output
    assert "KeyError" not in said.output and said.output.count("a fault of mmagold itself (") == 2


def test_what_synthesis_leaves_out_refuses_no_unit(tmp_path: Path) -> None:
    """It may name what stands in the author's test bench alone. That it was left out is said."""
    bench = """  // synopsys translate_off
  always @(test.fail) $display("%h", test.u0.x);
  // synopsys translate_on
  assign sum = s0 + s1;"""
    result = check(foreign(tmp_path, ("  assign sum = s0 + s1;", bench)), options(tmp_path))
    assert result.passed
    (hint,) = result.hints
    assert hint.startswith("its text was read without what stands between the pragmas") and "test" in hint
