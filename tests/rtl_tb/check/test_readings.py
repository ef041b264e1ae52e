"""What a tool reads of a unit: macros of simulators, pragmas of synthesis, places, and what a result may
depend on beside its operands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from engine_dut import write_small

from rtl_tb.check.beyond import beyond
from rtl_tb.check.readings import SIMULATORS, SYNTHESIS, Reading, read
from rtl_tb.errors import ElaborationError

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


def reading(folder: Path, text: str, options: tuple[str, ...], pragmas: bool = False) -> Reading:
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
    ],
)
def test_pragmas_count_for_synthesis_alone(tmp_path: Path, off: str, on: str) -> None:
    """Not those in strings, and not a word that only begins so; the lines behind keep their numbers."""
    kept = f'wire kept; // synthesis\ninitial $display("{off}");\nendmodule\n'
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
        ('initial $display("force $random");', ""),
        ("wire reinforce, force_a; // force", ""),
        ("initial begin f = $fopen(n); $fdisplay(f, a); end", ""),
    ],
)
def test_what_a_result_may_depend_on(tmp_path: Path, code: str, said: str) -> None:
    found = beyond(reading(tmp_path, f"module top;\n{code}\nendmodule\n", ()))
    assert len(found) == bool(said)
    assert said in "".join(found)
