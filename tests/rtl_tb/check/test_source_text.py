"""What a tool reads of a unit: macros of simulators, pragmas of synthesis, places, and what a result may
depend on besides its operands."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from engine_dut import write_small

from rtl_tb.check.capsule import read_by_any
from rtl_tb.check.outside_influences import outside_influences
from rtl_tb.check.source_text import SIMULATORS, SYNTHESIS, SourceText, read
from rtl_tb.errors import ElaborationError
from rtl_tb.regress.fingerprints import unit_state
from rtl_tb.simulators import simulators

IFDEF = """module top;
`ifdef VERILATOR
wire of_verilator;
`elsif __ICARUS__
wire of_icarus;
`elsif YOSYS
wire of_yosys;
`elsif SYNTHESIS
wire of_synthesis;
`endif
endmodule
"""


def reading(folder: Path, text: str, options: tuple[str, ...], pragmas: bool = False) -> SourceText:
    file = folder / "top.sv"
    file.write_text(text, encoding="utf-8")
    found = read(replace(write_small(folder), sources=(file,)), options, pragmas)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        (SIMULATORS["verilator"], "wire of_verilator;", 3),
        (SIMULATORS["icarus"], "wire of_icarus;", 5),
        (SYNTHESIS["Yosys"], "wire of_yosys;", 7),
        (SYNTHESIS["synthesis"], "wire of_synthesis;", 9),
    ],
)
def test_each_tool_has_its_own_macros(tmp_path: Path, options: tuple[str, ...], code: str, line: int) -> None:
    lines = reading(tmp_path, IFDEF, options).lines()
    assert lines == [("module top;", "top.sv:1"), (code, f"top.sv:{line}"), ("endmodule", "top.sv:11")]


@pytest.mark.parametrize(
    ("off", "on"),
    [
        ("// synopsys translate_off", "// synopsys translate_on"),
        ("/* pragma translate_off */", "/* synthesis translate_on */"),
        ("(* synthesis, translate_off *)", "(* synthesis, translate_on *)"),
        ("// rtl_synthesis off", "// rtl_synthesis on"),
        ("// ambit synthesis off", "// ambit synthesis on"),
    ],
)
def test_pragmas_count_for_synthesis_alone(tmp_path: Path, off: str, on: str) -> None:
    """Not those in strings, and not a word that only begins so; the lines behind keep their numbers."""
    kept = f'wire kept; // synthesis off-chip\ninitial $display("{off}");\nendmodule\n'
    text = f"module top;\n{off}\nwire gone;\n{on}\n{kept}"
    simulated = reading(tmp_path, text, ())
    synthesised = reading(tmp_path, text, (), pragmas=True)
    assert ("wire gone;", "top.sv:3") in simulated.lines()
    assert [place for _, place in synthesised.lines()] == ["top.sv:1", "top.sv:5", "top.sv:6", "top.sv:7"]
    assert simulated.differs(synthesised) == "top.sv:3"
    assert not simulated.differs(simulated)


def test_comments_and_spaces_are_no_difference(tmp_path: Path) -> None:
    one = reading(tmp_path, "module top; // one\n/* two\nlines */ wire  a ;\nendmodule\n", ())
    other = reading(tmp_path, "module top;\n\n wire a ;\n\nendmodule\n", ())
    assert not one.differs(other)
    longer = reading(tmp_path, "module top;\nwire a ;\nendmodule\nmodule more; endmodule\n", ())
    assert one.differs(longer) == "top.sv:4"


def test_what_defines_itself_in_simulators_alone_is_not_defined_in_synthesis() -> None:
    """Verilator says what it defines, so that a new version shows here."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "empty.v").write_text("\n")
        words = ["-E", "--dump-defines", "--timing", "empty.v"]
        said = simulators.elaborate(simulators.verilator(), words, folder=Path(name), what="nothing")
    own = set(re.findall(r"`define (\w+)", said))
    assert {"VERILATOR", "VERILATOR_TIMING", "SV_COV_START"} <= own
    for options, kept in ((SYNTHESIS["synthesis"], {"SYSTEMVERILOG"}), (SYNTHESIS["Yosys"], set())):
        assert own - {option[2:] for option in options if option.startswith("-U")} == kept
    assert {f"-U{name}" for name in own} <= set(SIMULATORS["icarus"])
    assert SIMULATORS["verilator"] == ("--timing",)


def test_a_comment_in_a_macro_hides_nothing_behind_its_use(tmp_path: Path) -> None:
    text = "`define W 8 // width\nmodule top;\n// synopsys translate_off\nwire gone;\n"
    text += "// synopsys translate_on\nwire [`W-1:0] a = 1;\nendmodule\n"
    for pragmas in (False, True):
        assert ("wire [8-1:0] a = 1;", "top.sv:6") in reading(tmp_path, text, (), pragmas).lines()


def test_a_quote_in_a_name_and_long_strings_hide_no_pragma(tmp_path: Path) -> None:
    text = 'module top;\nwire \\" ; // synopsys translate_off "\nwire gone;\n// synopsys translate_on "\n'
    lines = reading(tmp_path, text + "wire kept;\nendmodule\n", (), pragmas=True).lines()
    assert [code for code, _ in lines] == ["module top;", 'wire \\" ;', "wire kept;", "endmodule"]
    text = 'module top;\ninitial $display("""\n// synopsys translate_off\n""");\nwire kept;\nendmodule\n'
    assert "wire kept;" in [code for code, _ in reading(tmp_path, text, (), pragmas=True).lines()]


def test_a_time_scale_is_no_difference(tmp_path: Path) -> None:
    text = "// synopsys translate_off\n`timescale 1ns/1ps\n// synopsys translate_on\nmodule top; endmodule\n"
    assert not reading(tmp_path, text, ()).differs(reading(tmp_path, text, (), pragmas=True))


def test_pragmas_count_in_headers(tmp_path: Path) -> None:
    folder = tmp_path / "headers"
    folder.mkdir()
    hidden = "wire kept_{0};\n// synopsys translate_off\nwire gone_{0};\n// synopsys translate_on\n"
    (folder / "far.vh").write_text(hidden.format("far"))
    (folder / "near.vh").write_text(hidden.format("near"))
    file = tmp_path / "top.sv"
    pragma = "/* synopsys translate_off */ wire gone; /* synopsys translate_on */"
    file.write_text(f'module top; {pragma}\n`include "far.vh"\n`include "headers/near.vh"\nendmodule\n')
    dut = replace(write_small(tmp_path), sources=(file,), include=(folder, tmp_path))
    found = read(dut, (), pragmas=True)
    assert found is not None
    assert [code for code, _ in found.lines()] == [
        *("module top;", "wire kept_far;", "wire kept_near;", "endmodule")
    ]
    assert found.lines()[1][1] == "far.vh:1"
    assert str(folder / "far.vh") in found.text  # what a build depends on


@pytest.mark.parametrize("name", ["cell_x.v", "cell_x.vg"])
def test_modules_of_libraries_and_files_of_any_name_are_read(tmp_path: Path, name: str) -> None:
    """Each as the tool sees it."""
    cell = "module cell_x;\n`ifdef VERILATOR\nwire simulated;\n`else\nwire made;\n`endif\nendmodule\n"
    folder = tmp_path / "cells"
    folder.mkdir()
    (folder / name).write_text(cell)
    dut = write_small(tmp_path)
    file = tmp_path / "small.sv"
    file.write_text(file.read_text().replace("reg v1", "cell_x cell_x (); reg v1", 1))
    library = name.endswith(".v")
    sources = (file,) if library else (file, folder / name)
    dut = replace(dut, sources=sources, libraries=(folder,) if library else ())
    for options, wire in ((SIMULATORS["verilator"], "simulated"), (SYNTHESIS["synthesis"], "made")):
        found = read(dut, options, pragmas=True)
        assert found is not None
        assert (f"wire {wire};", f"{name}:{3 if wire == 'simulated' else 5}") in found.lines()


def test_text_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ElaborationError, match="no_such"):
        reading(tmp_path, '`include "no_such.vh"\n', ())


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("assign a = b ^ {31'd0, $urandom == 0};", "draws random numbers ($urandom at top.sv:2)"),
        ("initial ok = std::randomize(a);", "draws random numbers (randomize at top.sv:2)"),
        ('initial if ($test$plusargs("x")) a = 1;', "command line ($test$plusargs at top.sv:2)"),
        ("initial n = $fgets(s, f);", "reads files"),
        ("initial force a = 1;", "forces signals"),
        ("wire [63:0] t = $time;", "asks how long it has run ($time at top.sv:2)"),
        ('always @(posedge a) if (b) $error("%m at %0t", $realtime);', ""),
        ('import "DPI-C" function int f();', 'calls C (import "" at top.sv:2)'),
        ("always @(a) begin wait (b); c = 1; end", "no hardware (wait at top.sv:2)"),
        ("always @(a) -> e;", "no hardware (-> e; at top.sv:2)"),
        ("wire c = a -> b;", ""),
        ("property p; @(posedge a) b |-> c; endproperty assert property (p);", ""),
        ("always @(posedge a or negedge a) b <= c;", "no register is: of both edges"),
        ("always @(posedge a or negedge b) b <= c;", ""),
        ("always begin @(posedge a); b <= c; end", "or that wait within (always begin at top.sv:2)"),
        ("real r; always @(a) r = $itor(a);", "real numbers, which are no hardware (real r; at top.sv:2)"),
        ("parameter real R = 0.5; localparam N = 3;", ""),
        ("localparam int W = $rtoi($pow(2, 4)); wire [W-1:0] q;", ""),
        ("function int f(int n); real r; f = $rtoi(r); endfunction\nlocalparam W = f(3);", ""),
        ("function int f(int n); real r; f = $rtoi(r); endfunction\nassign a = f(b);", "real r; at top.sv:2"),
        ("sub #(.W(3)) s (); localparam W = 3; wire [3:0] q = $rtoi(a * 1.5);", "($rtoi at top.sv:2)"),
        ("(* anyconst *) logic a;", "takes no logic from it ((* anyconst at top.sv:2)"),
        ("(* keep *) logic anyconst;", ""),
        ('initial $display("force $random");', ""),
        ("wire reinforce, force_a; // force", ""),
        ("initial begin f = $fopen(n); $fdisplay(f, a); end", ""),
    ],
)
def test_what_a_result_may_depend_on(tmp_path: Path, code: str, said: str) -> None:
    found = outside_influences(reading(tmp_path, f"module top;\n{code}\nendmodule\n", ()))
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_what_synthesis_alone_reads_is_in_capsules_and_tells_results_apart(tmp_path: Path) -> None:
    dut = write_small(tmp_path)
    file, header = tmp_path / "small.sv", tmp_path / "made.vh"
    file.write_text('`ifdef SYNTHESIS\n`include "made.vh"\n`endif\n' + file.read_text())
    header.write_text("`define MADE 1\n")
    dut = replace(dut, include=(tmp_path,))
    assert header in read_by_any(dut)
    before = unit_state(dut, "verilator")
    header.write_text("`define MADE 2\n")
    assert unit_state(dut, "verilator").digest != before.digest
