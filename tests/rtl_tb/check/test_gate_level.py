"""Gate-level simulation: which texts have undefined bits as gates, and that a unit fails whose answers
hang on them, on an order of processes or branches, or on delays."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from changed_unit import DUT, OWN, PASSING, changed
from rich.console import Console

from golden.vectors.vectorset import VectorSet
from rtl_tb.check.check import check, check_dut
from rtl_tb.check.gate_level import declared, other_choices, synthesise, without_initials
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.check.report import ReportPrinter
from rtl_tb.check.source_text import text_of_run
from rtl_tb.check.synthesis import SynthesisResult, compare_netlists
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.translated import AS_TEXT
from rtl_tb.engines.job import Job, Outcome
from rtl_tb.errors import SimulatorMissing
from rtl_tb.runs.verdict import judge
from rtl_tb.simulators import translators

HEAD = "typedef enum logic [1:0] {A, B, C} kind_t;\ntypedef struct {logic [3:0] x; int y;} pair_t;\n"
FUNCTION = "function automatic logic [7:0] f(input logic [7:0] x); {} endfunction"
HOLES = {
    "a local on one path": ("logic [7:0] t; if (x[0]) t = x; return t;", ["t"]),
    "a local in itself": ("logic [7:0] t; t = t + 8'd1; return t;", ["t"]),
    "a local that adds": ("logic [7:0] t; t += x; return t;", ["t"]),
    "a case without the rest": ("logic [7:0] t; case (x) 0: t = 1; 1: t = 2; endcase return t;", ["t"]),
    "the result on one path": ("if (x[0]) f = x;", ["f"]),
    "an output on one path": ("logic [7:0] t; out(t, x); return t;", ["s", "t"]),
    "of a loop, whose second turn finds nothing": (
        "f = 0; for (int i = 0; i < 8; i++) begin logic u; if (i == 0) u = x[0]; f[i] = u; end",
        ["u"],
    ),
    "an enumeration": ("kind_t k; if (x[0]) k = B; return 8'(k);", ["k"]),
    "a structure, of which a part is 0": ("pair_t p; if (x[0]) p.x = 1; return 8'(p.x) + 8'(p.y);", ["p"]),
    "an array": ("logic [3:0] m [2][3]; m[0][1] = 4'd2; return 8'(m[x[0]][x[2:1]]);", ["m"]),
    "two in one declaration": (
        "logic [7:0] t, u; if (x[0]) begin t = x; u = x; end return t + u;",
        ["t", "u"],
    ),
    "turns of a loop that end early": (
        "logic [7:0] t; bit m[3]; foreach (m[i]) begin if (x[i]) continue; t = x; end return t;",
        ["t"],
    ),
    "set on every path": ("logic [7:0] t; if (x[0]) t = 1; else t = 2; return t;", []),
    "set by loops": ("logic [7:0] t; t = 0; for (int i = 0; i < 8; i++) t = t + 8'(x[i]); return t;", []),
    "of two states": ("bit [7:0] t; int i; if (x[0]) t = 1; return t + 8'(i);", []),
    "left early": ("if (x[0]) return 1; return 2;", []),
}
OUT = "function automatic void out(output logic [7:0] s, input logic [7:0] q); if (q[0]) s = q; endfunction"


def unit(folder: Path, extra: str, result: str) -> Path:
    """The dut.yaml of mac4 with further text before it and another result."""
    assert "acc_o <= sum[31:0];" in PASSING
    text = PASSING.replace("acc_o <= sum[31:0];", f"acc_o <= {result};")
    (folder / "mac4.sv").write_text(f"{HEAD}{extra}\n{text}", encoding="utf-8")
    (folder / "mac4.yaml").write_bytes((OWN / "mac4.yaml").read_bytes())
    (folder / "dut.yaml").write_text(DUT, encoding="utf-8")
    return folder / "dut.yaml"


def vectors_of_sums(folder: Path, body: str) -> tuple[Job, Outcome]:
    """mac4 with `f` for c = 0, 1, 2, 3, and the answers that a simulator gives."""
    dut = load_dut(replaced(folder, body))
    operands = {"a": np.zeros((4, 4), np.uint8), "b": np.zeros((4, 4), np.uint8)}
    c = np.arange(4, dtype=np.uint32)
    vectors = VectorSet(dut.instruction, "dot", operands | {"c": c}, c, np.zeros(4, np.uint8), 1)
    right = Outcome("fast", "verilator", "", c, np.ones(4, bool), np.zeros(4, bool))
    return Job(dut, folder / "build", vectors), right


def asked(folder: Path, body: str) -> SynthesisResult:
    """What gate-level simulation shows of them."""
    job, right = vectors_of_sums(folder, body)
    text = text_of_run(job)
    assert text is not None
    return compare_netlists(job, judge(job.vectors, right, job.dut.compare), text)


VALUES = {
    "an element of five": ("logic [7:0] m[5]; m[x[2:0]] = x; f = m[x[2:0]];", ["m[x[2:0]]"]),
    "an element of eight": ("logic [7:0] m[8]; m[0] = x; f = m[x[2:0]];", []),
    "a bit of an element": ("logic [2:0][3:0] m; m = 12'(x); f = m[x[1:0]][x[2:0]];", ["m[x[1:0]][x[2:0]]"]),
    "a field of an element": (
        "struct packed {logic [3:0] a, b;} m[3]; m[0] = x; f = m[x[1:0]].b;",
        ["m[x[1:0]].b"],
    ),
    "an index within": ("logic [2:0] m; m = 3'(x); f = x[m[x[1:0]]];", ["m[x[1:0]]"]),
    "from a place on, and down from it": (
        "f = {x[x[2:0] +: 4], x[x[2:0] -: 3]};",
        ["x[x[2:0] +: 4]", "x[x[2:0] -: 3]"],
    ),
    "what loops count": (
        "int n; for (int i = 0; i < 4; i++) begin n = i / 2; f[i] = x[n + 1] ^ x[2 * i +: 2]; end",
        [],
    ),
    "an index of one of two constants": ("int n; n = 0; if (x[0]) n = 9; f = x[n];", ["x[n]"]),
    "what a condition counts": ("int n; n = 0; foreach (x[i]) if (x[i]) n++; f = x[n];", ["x[n]"]),
    "where a loop ended": ("int i; for (i = 0; i < 8; i++) if (x[i]) break; f = x[i];", ["x[i]"]),
    "a number that may be negative": ("int n; n = 32'(x); f = x[n];", ["x[n]"]),
    "in two states": ("bit [4:0] m; m = 5'(x); f = m[x[2:0]];", []),
    "quotients": (
        "f = x / 3 + x % x[1:0] + 8'($signed(x) / $signed(x[3:0]));",
        ["x % x[1:0]", "$signed(x) / $signed(x[3:0])"],
    ),
    "literals": (
        "case (x) 0: f = 'x; 1: f = 8'b1x0z; 8'b1x: f = 8'sbx; default: f = x === 8'bx ? 'z : 0; endcase",
        ["'x", "8'b1x0z", "8'sbx"],
    ),
    "names of an enumeration": (
        "enum logic [1:0] {R = 1, S = 2, T = 'x} k; k = x[0] ? R : T; "
        "case (k) T: f = 3; default: f = k === T ? x : 8'(k); endcase",
        ["T"],
    ),
    "what is set": ("logic [4:0] m; m = 0; m[x[2:0]] = 1; out(m[x[2:0]], x); f = m;", []),
}


RARE = "logic [31:0] t; if (x != 32'd3) t = 0; return x ^ t;"
"""Icarus, which tries the first vectors, has no such sum."""


def replaced(folder: Path, body: str) -> Path:
    """The dut.yaml of mac4 with `f`, called with the sum, in the place of its result."""
    return unit(folder, FUNCTION.format(body).replace("[7:0]", "[31:0]"), "f(sum[31:0])")


MORE = {
    *("of two states", "left early"),
    *("an element of eight", "what loops count", "in two states", "what is set"),
}
"""What no result depends on: the flag of an early return, a call that is not made; and unset elements."""
BODIES = {name: (body, bool(names) or name in MORE) for name, (body, names) in (HOLES | VALUES).items()}


@pytest.mark.parametrize(("body", "undefined"), BODIES.values(), ids=BODIES)
def test_which_texts_have_undefined_bits(tmp_path: Path, body: str, undefined: bool) -> None:
    job, _ = vectors_of_sums(tmp_path, "return x;")
    out = OUT
    if "m[x[2:0]], x" in body:
        out = out.replace("logic [7:0] s", "logic s").replace("s = q", "s = q[0]")
    file = unit(tmp_path, f"{out}\n{FUNCTION.format(body)}", "32'(f(sum[7:0]))")
    text = declared((tmp_path / "mac4.sv").read_text(encoding="utf-8"))
    assert synthesise(replace(job, dut=load_dut(file)), text).undefined == undefined


PARTS = """
    logic [3:0][7:0] bytes; logic [31:0] back; logic open;
    bytes = ~x; for (int i = 0; i < 4; i++) bytes[2'(x[1:0] + 2'(i))] = x[2'(x[1:0] + 2'(i)) * 8 +: 8];
    back = 32'(bytes); back[x[4:0] +: 1] = ~back[x[4:0]]; back[x[4:0]] = ~back[x[4:0]];
    if (x != 32'd3) open = 0;
    return back ^ {32{open & ~open}};
"""
"""A function whose result is `x`; its text assigns parts of a vector and has an undefined bit."""


@pytest.mark.long
def test_a_netlist_of_parts_that_are_assigned_runs(tmp_path: Path) -> None:
    """Yosys' $bwmux, of which Verilator knows nothing."""
    found = asked(tmp_path, PARTS.replace("\n", " "))
    assert (found.verdict.passed, found.texts, found.notes) == (True, [], [])


CELLS = """
from pyosys import libyosys
from pathlib import Path
libyosys.run_pass("test_cell -n 1 -s 1 -w cell all")
for cell in Path().glob("cell_*.il"):
    for command in (f"read_rtlil {cell}", *COMMANDS, f"write_verilog -noattr {cell.stem}.v", "design -reset"):
        libyosys.run_pass(command)
"""


def test_every_cell_is_written_as_an_expression(tmp_path: Path) -> None:
    pytest.importorskip("pyosys")
    text = CELLS.replace("COMMANDS", repr(AS_TEXT))
    subprocess.run([sys.executable, "-c", text], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    written = {file.stem: file.read_text(encoding="utf-8") for file in tmp_path.glob("cell_*.v")}
    assert len(written) > 50
    assert [name for name, text in written.items() if r"\$" in text] == []


def test_variables_of_two_states_begin_with_zeros(tmp_path: Path) -> None:
    assert asked(tmp_path, RARE.replace("logic", "bit")).verdict.passed


def test_a_unit_that_needs_zeros_fails(tmp_path: Path) -> None:
    found = asked(tmp_path, RARE)
    assert found.unset is not None
    assert found.unset.wrong == {"as simulated": 0, "zeros": 0, "ones": 1, "random": 1}
    assert found.unset.suspects[0].startswith("mac4.sv:3: ")
    assert found.verdict.failed.tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("body", "failed"),
    [
        ("f = x; unique if (x[0]) f = x; else if (x[1]) f = x ^ x[0];", [3]),
        pytest.param("f = x; unique if (x[0]) if (x[1]) f = x;", [2], marks=pytest.mark.long),
        pytest.param(
            "unique case (1'b1) x[0]: return x; x[1]: return x ^ x[0]; default: return x; endcase",
            [3],
            marks=pytest.mark.long,
        ),
        pytest.param(
            "f = x; unique case (1'b1) ~x[0]: f = x; x[1]: f = x; {1'b0, x[0]}: f = x ^ x[1];"
            "default: f = x; endcase",
            [3],
            marks=pytest.mark.long,
        ),
        (
            "unique casez ($signed(x[1:0])) 4'sb001?: return x; 2'b1?: return x ^ x[0]; default: return x;"
            "endcase",
            [3],
        ),
        pytest.param(
            "f = x; for (int i = 0; i < 1; i++) begin unique case (1'b1) x[0]: break; x[1]: continue;"
            "default: continue; endcase f = 0; end",
            [3],
            marks=pytest.mark.long,
        ),
    ],
    ids=["several", "none", "returned", "wide", "wide with open bits", "jumps"],
)
def test_a_unit_that_needs_the_first_branch_or_none_fails(
    tmp_path: Path, body: str, failed: list[int]
) -> None:
    found = asked(tmp_path, body)
    assert found.unset is not None and found.unset.suspects[0].startswith("mac4.sv:3: ")
    assert np.flatnonzero(found.verdict.failed).tolist() == failed


OPEN = (
    "logic [6:0] m[5], n; m = '{default: 0}; n = 0; f = x ^ m[{x[1:0], 1'b1}];"
    "if (x[1:0] == 3) f = x ^ n[{x[1:0], 2'b11} -: 10];"
    "if (x[1:0] == 0) f = x ^ x / x[1:0]; if (x[1:0] == 1) f = x ^ n[{x[0], 2'b10} +: 3] & 1;"
    "if (x == 4) f = {x[31:2], 2'bx0};"
)
"""Beyond what there is where x is 2, in a part of it where x is 3, by zero where x is 0; where x is 1 only
the bit counts that there is."""


@pytest.mark.long
def test_a_unit_that_needs_what_verilator_takes_beyond_a_vector_fails(tmp_path: Path) -> None:
    found = asked(tmp_path, OPEN)
    assert found.unset is not None
    assert np.flatnonzero(found.verdict.failed).tolist() == [0, 2, 3]


def test_what_is_declared_of_choices_is_said_in_one_way() -> None:
    text = "module t; always_comb {} endmodule"
    chain = "unique if (x[0]) f = 1; else if (x[1:0]) unique0 if (y) f = 2; else f = 3; else f = 4;"
    made = (
        "unique case (1'b1) ((x[0]) ? 1'b1 : 1'b0): f = 1; ((x[1:0]) ? 1'b1 : 1'b0): unique0 case (1'b1) "
        "((y) ? 1'b1 : 1'b0): f = 2; default: f = 3; endcase default: f = 4; endcase"
    )
    assert " ".join(declared(text.format(chain)).split()) == text.format(made)
    pragma = "case (1'b1) /*verilator parallel_case*/ a: f = 1; b: f = 2; endcase"
    assert declared(text.format(pragma)) == text.format(f"(* parallel_case *) {pragma}")
    assert declared(text.format("priority if (x) f = 1;")) == text.format("priority if (x) f = 1;")


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("unique case (1'b1) a: f = 1;\nb: f = 2; default: f = 3; endcase", "b: f = 2; a: f = 1; default"),
        ("(* parallel_case *) case (x) a[0], 1: f = 1; 2: f = 2; endcase", "2: f = 2; a[0], 1: f = 1;"),
        ("unique case (x) A: f = 1; B: f = 2; 3'd4: f = 2; endcase", ""),
        ("case (1'b1) a: f = 1; b: f = 2; endcase", ""),
    ],
    ids=["bits", "an attribute", "constants", "nothing declared"],
)
def test_the_order_of_a_parallel_choice_means_nothing(text: str, turned: str) -> None:
    before = f"module t; always_comb {text} endmodule"
    after = " ".join(other_choices(before).split())
    assert (turned in after) if turned else after == before


INITIAL = {
    "a signal": ("logic [7:0] y = 8'h1d, z;", "logic [7:0] y , z;"),
    "a memory": (
        "reg [7:0] y[3]; integer i; initial for (i = 0; i < 3; i++) y[i] = 1;",
        "reg [7:0] y[3]; integer i;",
    ),
    "in a generate block": ("if (1) begin logic y = 1; end", "if (1) begin logic y ; end"),
    "a constant": ("const logic [7:0] y = 8'h1d; localparam P = 3;", ""),
    "a wire": ("wire [7:0] y = 8'h1d;", ""),
    "of a function": ("function int f(); int k = 3; return k; endfunction", ""),
}


@pytest.mark.parametrize(("text", "made"), INITIAL.values(), ids=INITIAL)
def test_which_initial_values_there_are(text: str, made: str) -> None:
    found, places = without_initials(f"module other;\n{text} endmodule")
    assert " ".join(found.split()) == f"module other; {made or text} endmodule"
    assert bool(places) == bool(made)


def test_where_yosys_is_missing_the_check_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise SimulatorMissing("Yosys was not found")

    monkeypatch.setattr(translators, "yosys", missing)
    found = asked(tmp_path, RARE)
    assert found.verdict.passed
    assert found.notes == ["whether it leaves bits open is not known: Yosys was not found"]


@pytest.mark.long
@pytest.mark.parametrize(("body", "passes"), [(RARE, False), (RARE.replace("x ^ t", "x"), True)])
def test_the_check_fails_by_what_depends_on_them_alone(tmp_path: Path, body: str, passes: bool) -> None:
    options = Options(count=3_000, explain=False, failures=None, build=tmp_path / "build")
    result = check(replaced(tmp_path, body), options)
    assert result.passed == passes == (result.unset is None)
    if result.unset is not None:
        assert "bits that the text leaves open" in result.as_dict()["unset"]["sentence"]


RACE = (
    (
        "    always_ff @(posedge clock) begin",
        "    logic signed [35:0] now;\n    always_ff @(posedge clock) begin",
    ),
    ("acc_o <= sum[31:0];", "acc_o <= now[31:0];"),
    (
        "if (sum[35:31] != {5{sum[35]}}) acc_o <= {sum[35], {31{!sum[35]}}};",
        "if (now[35:31] != {5{now[35]}}) acc_o <= {now[35], {31{!now[35]}}};",
    ),
    ("endmodule", "    always @(posedge clock) if (vld_i && rdy_o) now = sum;\nendmodule"),
)
"""The result is that of the vector before, in hardware; in Verilator it is right."""
DELAY = (
    (
        "    always_ff @(posedge clock) begin",
        "    logic [31:0] q;\n    wire #2 late = clock;\n    always @(posedge late) acc_o <= q;\n"
        "    always_ff @(posedge clock) begin",
    ),
    ("acc_o <= sum[31:0];", "q <= sum[31:0];"),
    ("acc_o <= {sum", "q <= {sum"),
)
"""Two registers at one edge, of which the second takes what the first has taken."""


def test_a_unit_that_needs_one_order_of_its_processes_fails(tmp_path: Path) -> None:
    # With other seeds Verilator chooses the other order, and the unit fails before.
    result = changed(tmp_path, *RACE, count=200, seed=2)
    assert not result.passed
    (read,) = result.synthesis
    assert "processes of one edge race" in read.sentence
    assert read.failed > 100


@pytest.mark.long
def test_a_unit_with_small_delays_passes_without_them(tmp_path: Path) -> None:
    result = changed(
        tmp_path,
        ("acc_o <= sum[31:0];", "acc_o <= #1 sum[31:0];"),
        ("acc_o <= {sum", "acc_o <= #1 {sum"),
        count=200,
    )
    assert result.passed
    (read,) = result.synthesis
    assert "delays left out), as it reads it 200 vectors are right" in read.sentence.replace(";", ",")


@pytest.mark.long
@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
def test_a_unit_that_needs_a_delay_fails(tmp_path: Path, simulator: str) -> None:
    result = changed(tmp_path, *DELAY, count=200, engine="selfcheck", simulator=simulator)
    assert not result.passed
    (read,) = result.synthesis
    assert "delays left out" in read.sentence
    assert read.failed > 100


SLOW_YOSYS = """#!/bin/sh
case "$*" in
*help*) echo "Read SystemVerilog sources" ;;
-V) echo "Yosys 0.99" ;;
*) exec sleep 600 ;;
esac
"""


def slow_yosys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes synthesis take ten minutes."""
    (folder / "yosys").write_text(SLOW_YOSYS, encoding="utf-8")
    (folder / "yosys").chmod(0o755)
    monkeypatch.setenv("MMAGOLD_YOSYS", str(folder / "yosys"))


def test_a_pass_does_not_wait_for_synthesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not synthesised within the budget is a note."""
    slow_yosys(tmp_path, monkeypatch)
    told: list[tuple[str, str]] = []
    story = ReportPrinter(Console(record=True, width=200))

    def listen(found: Check, stage: str) -> None:
        told.append((stage, story.console.export_text(clear=False)))
        story.print_up_to(found.as_dict(), stage)

    dut = load_dut(replaced(tmp_path, "f = x;"))
    options = Options(count=100, budget=1.0, four_states=False, failures=None, build=tmp_path / "build")
    start = time.monotonic()
    found = check_dut(dut, options, listen=listen)
    assert found.passed
    assert [stage for stage, _ in told] == ["verdict", "end"]
    assert told[1][1].startswith("PASS: mac4")
    (note,) = (one for one in found.as_dict()["notes"] if "did not finish" in one)
    assert "Yosys 0.99 did not finish in time (1 s)" in note and "--budget" in note
    assert note in story.console.export_text().replace("\n", "")
    assert time.monotonic() - start < 300


def test_a_run_that_is_ended_says_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_yosys(tmp_path, monkeypatch)
    told: list[Check] = []

    def ended(what: str, _done: int, _total: int) -> None:
        if what.startswith("checking the netlist"):
            raise KeyboardInterrupt

    dut = load_dut(replaced(tmp_path, "f = x;"))
    options = Options(count=100, four_states=False, failures=None, build=tmp_path / "build")
    with pytest.raises(KeyboardInterrupt):
        check_dut(dut, options, ended, lambda found, _stage: told.append(found))
    assert told[-1].passed
    assert "the run was ended" in told[-1].as_dict()["notes"][-1]
