"""File lists as simulators take them, libraries, and packages in any order."""

import os
import re
from pathlib import Path

import pytest
from changed_unit import DUT, OWN
from long_run import long_after

from golden.errors import SpecError
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.source_text import SIMULATORS, read
from rtl_tb.dut import slang
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.given import Given
from rtl_tb.dut.init import draft
from rtl_tb.dut.ports import Design
from rtl_tb.dut.sources import check_sizes, packages_first, read_list
from rtl_tb.dut.translated import to_verilog
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines.builds import files_read
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators

PACKAGE = "package widths;\n    localparam int Elements = 4;\nendpackage\n"
ADDER = "module adder (input logic [35:0] x, y, output logic [35:0] z);\n    assign z = x + y;\nendmodule\n"


@pytest.fixture
def design(tmp_path, monkeypatch):
    """The example unit in parts: a package, a library cell, an include folder and a macro, named by lists."""
    text = (OWN / "mac4.sv").read_text(encoding="utf-8")
    text = text.replace("k < 4;", "k < widths::Elements;").replace("36'(x * w);", "36'(x * w) + `ZERO;")
    text = text.replace("sum[31:0];", "total[31:0];").replace("sum[35", "total[35")
    text = text.replace(
        "logic signed [35:0] sum;", "logic signed [35:0] sum, total;\n    adder add (sum, 36'd0, total);"
    )
    for name, content in {
        "rtl/a_mac4.sv": '`include "zero.svh"\n' + text,
        "rtl/widths.sv": PACKAGE,
        "cells/adder.sv": ADDER,
        "inc/zero.svh": "`define ZERO `NOTHING\n",
        "rtl/files.f": "// the unit\n$UNIT_RTL/a_mac4.sv widths.sv /* in any\norder */ -D NOTHING=36'd0\n",
        "all.f": "-f rtl/files.f  # and the rest\n+incdir+inc\n-y cells +libext+.v+.sv\n",
        "mac4.yaml": (OWN / "mac4.yaml").read_text(encoding="utf-8"),
        "dut.yaml": DUT.replace("sources: [mac4.sv]", "filelist: all.f"),
    }.items():
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(content, encoding="utf-8")
    monkeypatch.setenv("UNIT_RTL", str(tmp_path / "rtl"))
    return tmp_path


@pytest.mark.parametrize("simulator", long_after(1, ["icarus", "verilator"]))
def test_a_unit_in_lists_passes(design, simulator):
    engine = "fast" if simulator == "verilator" else "selfcheck"
    options = Options(engine=engine, simulator=simulator, count=500, failures=None, build=design / "build")
    assert check(design / "dut.yaml", options).passed


def test_what_the_lists_say(design):
    dut = load_dut(design / "dut.yaml")
    assert [path.name for path in dut.sources] == ["widths.sv", "a_mac4.sv"]
    assert [path.name for path in dut.include] == ["inc"]
    assert [path.name for path in dut.libraries] == ["inc", "cells"]  # in Verilator's order
    assert dut.defines == {"NOTHING": "36'd0"}


def test_a_draft_from_a_list(design, monkeypatch):
    monkeypatch.chdir(design)
    text = draft([], "mac4", "mac4.yaml", None, Given([Path("all.f")]))
    assert "filelist: [all.f]" in text and "sources" not in text.replace("# ", "")
    (design / "drafted.yaml").write_text(text, encoding="utf-8")
    assert load_dut(design / "drafted.yaml").ports.keys() == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("missing.sv", "missing.sv is no file"),
        ("+incdir+nowhere", "nowhere is no folder"),
        ("$NO_SUCH_VARIABLE/a.sv", "the environment has no variable 'NO_SUCH_VARIABLE'"),
        ("-f all.f", "holds itself"),
        ("-bogus", "unknown option '-bogus'"),
        ("-I", "option -I has no value"),
        ('"a', "a double quote is not closed"),
    ],
)
def test_what_is_wrong_in_a_list(tmp_path, text, message):
    (tmp_path / "all.f").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=re.escape(message)):
        read_list(tmp_path / "all.f")


def test_packages_stand_behind_those_that_they_use(tmp_path):
    texts = {
        "a.sv": "module a; import c_pkg::*; endmodule",
        "b.sv": "package b_pkg; localparam int X = c_pkg::Y; endpackage",
        "c.sv": "// package of_no_use;\npackage c_pkg;\n localparam int Y = 1; endpackage",
        "d.sv": "package d_pkg; endpackage",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ordered = packages_first([tmp_path / name for name in texts])
    assert [path.name for path in ordered] == ["c.sv", "b.sv", "d.sv", "a.sv"]


def test_a_unit_in_two_languages_is_refused_in_one_line(tmp_path):
    for name in ("dot.vhd", "part.sv"):
        (tmp_path / name).write_text("")
    (tmp_path / "dut.yaml").write_text(
        "top: dot\nsources: [dot.vhd, part.sv]\ninstruction: hopper:HMMA.16816.F32\n"
        "handshake: {kind: combinational}\nports: {a: a, b: b, c: c, d: d}\n"
    )
    with pytest.raises(SpecError, match=r"dut.yaml:2: dot.vhd is VHDL and part.sv is not"):
        load_dut(tmp_path / "dut.yaml")
    with pytest.raises(SpecError, match=r"dot.vhd is VHDL and part.sv is not"):
        draft([tmp_path / "dot.vhd", tmp_path / "part.sv"], "dot")


# Lists that somebody else wrote -----------------------------------------------------------------------------


def test_a_list_that_is_no_file_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.f")
    (tmp_path / "zero.f").symlink_to("/dev/zero")
    for name in ("pipe.f", "zero.f", "."):
        with pytest.raises(SpecError, match="cannot be read: it is no file"):
            read_list(tmp_path / name)
    with (tmp_path / "large.f").open("wb") as file:
        file.truncate(8 << 30)
    with pytest.raises(SpecError, match="larger than"):
        read_list(tmp_path / "large.f")
    with pytest.raises(SpecError, match="has 8589934592 bytes, expected a source of at most"):
        check_sizes([tmp_path / "large.f"])


def test_lists_in_lists_are_read_once_each(tmp_path: Path) -> None:
    """Forty lists that name the next one twice would be 2**40; as many as that one in the other are an
    error."""
    (tmp_path / "a.sv").touch()
    for n in range(40):
        (tmp_path / f"{n}.f").write_text(f"-f {n + 1}.f -f {n + 1}.f +define+N={n}\n")
    (tmp_path / "40.f").write_text("a.sv\n")
    found = read_list(tmp_path / "0.f")
    assert list(found.files) == [tmp_path / "a.sv"] and found.defines == {"N": "0"}
    for n in range(100):
        (tmp_path / f"{n}.f").write_text(f"-f {n + 1}.f\n")
    with pytest.raises(SpecError, match="in 64 others"):
        read_list(tmp_path / "0.f")


def test_comments_without_an_end(tmp_path: Path) -> None:
    """A million openings of comments: read once, not once for each."""
    (tmp_path / "a.f").write_text("/* " * 1_000_000)
    assert not read_list(tmp_path / "a.f").files
    (tmp_path / "b.f").write_text("-" + "x" * 1_000_000)
    with pytest.raises(SpecError, match=r"unknown option '-x+[.][.][.]'$"):
        read_list(tmp_path / "b.f")


@pytest.fixture
def spread(tmp_path):
    """The example unit with a header in its folder that includes another of the same folder, and with a
    module in an include folder."""
    text = (OWN / "mac4.sv").read_text(encoding="utf-8").replace("36'(x * w);", "36'(x * w) + `ZERO;")
    text = text.replace("sum[31:0];", "total[31:0];").replace("sum[35", "total[35")
    text = text.replace(
        "logic signed [35:0] sum;", "logic signed [35:0] sum, total;\n    adder add (sum, 36'd0, total);"
    )
    for name, content in {
        "rtl/mac4.sv": '`include "more/zero.svh"\n' + text,
        "rtl/more/zero.svh": '`include "nothing.svh"\n`define ZERO `NOTHING\n',
        "rtl/more/nothing.svh": "`define NOTHING 36'd0\n// synopsys translate_off\nlocalparam GONE = 1;\n// "
        "synopsys translate_on\n",
        "cells/adder.sv": ADDER,
        "mac4.yaml": (OWN / "mac4.yaml").read_text(encoding="utf-8"),
        "dut.yaml": DUT.replace("[mac4.sv]", "[rtl/mac4.sv]\ninclude: [cells]"),
    }.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
    return tmp_path


def test_every_reader_finds_the_same_files(spread):
    dut = load_dut(spread / "dut.yaml")
    design = Design(dut.sources, dut.top, dut.include, dut.defines, libraries=dut.libraries)
    headers = ["mac4.sv", "nothing.svh", "zero.svh"]
    for simulator, modules in ((simulators.verilator(), ["adder.sv"]), (simulators.icarus(), [])):
        files = files_read(dut, simulator)  # of Icarus what its preprocessor reads
        assert sorted(path.name for path in files if path.is_relative_to(spread)) == modules + headers
    assert slang.read_ports(design).name == "mac4"
    assert "adder" not in to_verilog(dut, wrapper_of(dut)).split("endmodule")[0]
    for pragmas in (False, True):
        reading = read(dut, SIMULATORS["verilator"], pragmas)
        assert reading is not None and "36'(x * w) + 36'd0" in reading.text and "adder" in reading.text
        assert ("GONE" in reading.text) == (not pragmas)
    given = Given(include=[spread / "cells"])
    assert "x_i" in draft([spread / "rtl" / "mac4.sv"], folder=spread, given=given)


@pytest.mark.parametrize(("engine", "simulator"), [("fast", "verilator"), ("selfcheck", "icarus")])
def test_a_spread_unit_passes_with_all_that_is_asked_of_it(spread, engine, simulator):
    options = Options(
        engine=engine, simulator=simulator, count=200, build=spread / "build", failures=None, holes="warn"
    )
    result = check(spread / "dut.yaml", options)
    assert result.passed and not [note for note in result.notes if "refused" in note], result.notes


@pytest.mark.parametrize(("engine", "simulator"), [("fast", "verilator"), ("selfcheck", "icarus")])
def test_a_module_of_a_folder_must_not_reach_into_the_checker(spread, engine, simulator):
    cell = spread / "cells" / "adder.sv"
    cell.write_text(ADDER.replace("assign", "wire mmagold_tb = 0; assign"))
    with pytest.raises(RtlError, match="names mmagold_tb"):
        check(
            spread / "dut.yaml",
            Options(engine=engine, simulator=simulator, count=20, build=spread / "build", failures=None),
        )
