"""Variables that hold nothing at a call: which they are, and that a unit which needs them to be 0 fails."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from changed_unit import DUT, OWN, PASSING

from golden.vectors.vectorset import VectorSet
from rtl_tb.check.check import Options, check
from rtl_tb.check.fills import Hole, ask_fills, filled, find_open
from rtl_tb.check.open_values import may_have_any
from rtl_tb.check.readings import SIMULATORS, as_run, read
from rtl_tb.check.starts import Unset
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job, Outcome
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.runs.verdict import Verdict, judge
from rtl_tb.simulators import simulators

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
    "a turn that ends early": (
        "logic [7:0] t; do begin if (x[0]) continue; t = x; end while (0); return t;",
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


def list_holes(dut: Dut, file: Path) -> list[Hole]:
    return list(find_open(dut, file).holes.values())


@pytest.mark.parametrize(("body", "names"), HOLES.values(), ids=HOLES)
def test_which_variables_hold_nothing(tmp_path: Path, body: str, names: list[str]) -> None:
    extra = f"{OUT}\n{FUNCTION.format(body)}"
    dut = load_dut(unit(tmp_path, extra if "out(" in body else extra.partition("\n")[2], "32'(f(sum[7:0]))"))
    holes = list_holes(dut, dut.sources[0])
    assert sorted(hole.place.rpartition(" ")[2] for hole in holes) == names
    assert all(one != other for one, other in (hole.given for hole in holes))


@pytest.mark.parametrize(
    ("around", "call"),
    [
        ("package P; {} endpackage", "P::f"),
        ("virtual class P #(int W = 4); static {} endclass", "P#(6)::f(sum[5:0]) ^ P#(8)::f"),
    ],
    ids=["package", "class"],
)
def test_functions_of_packages_and_of_classes_as_they_are_used(
    tmp_path: Path, around: str, call: str
) -> None:
    wide = "[W-1:0]" if "W" in around else "[7:0]"
    function = FUNCTION.format("logic [7:0] t; if (x[0]) t = x; return t;").replace("[7:0]", wide)
    dut = load_dut(unit(tmp_path, around.format(function), f"32'({call}(sum[7:0]))"))
    (hole,) = list_holes(dut, dut.sources[0])
    assert hole.place == "mac4.sv:3: t"
    assert hole.given[0].startswith(" = 8'h")


def test_what_lasts_by_default_is_no_register(tmp_path: Path) -> None:
    """Nor the result, whatever its name."""
    body = "static logic [7:0] s; logic [7:0] t; if (x[0]) t = x; if (x[1]) \\f+g = s ^ t;"
    function = FUNCTION.format(body).replace("automatic ", "").replace(" f(", " \\f+g (")
    dut = load_dut(unit(tmp_path, function, "32'(\\f+g (sum[7:0]))"))
    found, text = find_open(dut, dut.sources[0]), dut.sources[0].read_text()
    assert [hole.place for hole in found.holes.values()] == ["mac4.sv:3: t", "mac4.sv:3: f+g"]
    assert re.search(r"logic \[7:0\] t; +\\t = 8'h\w+; +\\f\+g = 8'h\w+; if", filled(text, found.holes, 0))


def test_a_variable_of_a_block(tmp_path: Path) -> None:
    block = "begin automatic logic t; logic s; y = t ^ s; end"
    text = f"module other; wire #1 d; logic y; always_comb {block} endmodule"
    dut = load_dut(unit(tmp_path, text, "sum[31:0]"))
    file = dut.sources[0]
    file.write_text(file.read_text().replace("assign rdy_o", "other other();\nassign rdy_o"))
    assert [hole.place for hole in list_holes(dut, file)] == ["mac4.sv:3: t"]


def test_a_variable_of_a_block_in_what_lasts_by_default(tmp_path: Path) -> None:
    body = "begin : b reg [7:0] t; reg q [$]; if (x[0]) t = x; f = t; end"
    loop = "for (int i = 0; i < 2; i++) begin : c reg u; if (i == 0) u = x[0]; f[i] = u; end"
    function = FUNCTION.format(f"{body} {loop}").replace("automatic ", "")
    dut = load_dut(unit(tmp_path, function, "32'(f(sum[7:0]))"))
    (hole,) = list_holes(dut, dut.sources[0])
    assert hole.place == "mac4.sv:3: t"
    assert hole.at == dut.sources[0].read_text().index("if (x[0])")


def test_verilator_takes_what_is_written_into_them(tmp_path: Path) -> None:
    bodies = [body for body, names in HOLES.values() if names]
    functions = [re.sub(r"\bf\b", f"f{at}", FUNCTION.format(body)) for at, body in enumerate(bodies)]
    calls = " ^ ".join(f"f{at}(sum[7:0])" for at in range(len(bodies)))
    dut = load_dut(unit(tmp_path, "\n".join([OUT, *functions]), f"32'({calls})"))
    holes, text = list_holes(dut, dut.sources[0]), dut.sources[0].read_text()
    assert len(holes) > len(bodies) > 7
    for number in (0, 1):
        (tmp_path / "filled.sv").write_text(filled(text, find_open(dut, dut.sources[0]).holes, number))
        words = ["--lint-only", "-Wno-lint", "-Wno-fatal", "--top-module", "mac4", "filled.sv"]
        simulators.elaborate(simulators.verilator(), words, folder=tmp_path, what="mac4")


RARE = "logic [31:0] t; if (x != 32'd3) t = 0; return x ^ t;"
"""Icarus, which tries the first vectors, has no such sum."""


def replaced(folder: Path, body: str) -> Path:
    """The dut.yaml of mac4 with `f`, called with the sum, in the place of its result."""
    return unit(folder, FUNCTION.format(body).replace("[7:0]", "[31:0]"), "f(sum[31:0])")


def asked(folder: Path, body: str) -> tuple[Unset | None, Job, Verdict, str]:
    """What comes of mac4 with `f` for c = 0, 1, 2, 3."""
    dut = load_dut(replaced(folder, body))
    operands = {"a": np.zeros((4, 4), np.uint8), "b": np.zeros((4, 4), np.uint8)}
    c = np.arange(4, dtype=np.uint32)
    vectors = VectorSet(dut.instruction, "dot", operands | {"c": c}, c, np.zeros(4, np.uint8), 1)
    job = Job(dut, folder / "build", vectors)
    right = Outcome("fast", "verilator", "", c, np.ones(4, bool), np.zeros(4, bool))
    return ask_fills(job, judge(vectors, right, dut.compare), as_run(job))


def test_a_unit_that_needs_zeros_fails(tmp_path: Path) -> None:
    unset, mine, verdict, _ = asked(tmp_path, RARE)
    assert unset is not None
    assert (unset.wrong, unset.suspects) == ({"as simulated": 0, "a pattern": 1}, ("mac4.sv:3: t",))
    assert verdict.failed.tolist() == [False, False, False, True]
    assert mine.dut.sources[0].parent.name == "texts"


@pytest.mark.parametrize(
    ("body", "failed", "suspect"),
    [
        (
            "f = x; unique if (x[0]) f = x; else if (x[1]) f = x ^ x[0];",
            [0, 3],
            "if, of which several conditions match",
        ),
        pytest.param(
            "f = x; unique if (x[0]) if (x[1]) f = x;",
            [0, 2],
            "if, where nothing matches",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "unique case (1'b1) x[0]: return x; x[1]: return x ^ x[0]; default: return x; endcase",
            [3],
            "case, of which several items match",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "f = x; unique case (1'b1) ~x[0]: f = x; x[1]: f = x; {1'b0, x[0]}: f = x ^ x[1];"
            "default: f = x; endcase",
            [3],
            "case, of which several items match",
            marks=pytest.mark.long,
        ),
        (
            "unique casez ($signed(x[1:0])) 4'sb001?: return x; 2'b1?: return x ^ x[0]; default: return x;"
            "endcase",
            [2, 3],
            "case, of which several items match",
        ),
        (
            "f = x; for (int i = 0; i < 1; i++) begin unique case (1'b1) x[0]: break; x[1]: continue;"
            "default: continue; endcase f = 0; end",
            [3],
            "case, of which several items match",
        ),
    ],
    ids=["several", "none", "returned", "wide", "wide with open bits", "jumps"],
)
def test_a_unit_that_needs_the_first_branch_or_none_fails(
    tmp_path: Path, body: str, failed: list[int], suspect: str
) -> None:
    unset, _, verdict, _ = asked(tmp_path, body)
    assert unset is not None and unset.suspects[-1] == f"mac4.sv:3: {suspect}"
    assert np.flatnonzero(verdict.failed).tolist() == failed


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
    unset, _, verdict, _ = asked(tmp_path, OPEN)
    assert unset is not None
    assert np.flatnonzero(verdict.failed).tolist() == [0, 2, 3]
    assert unset.suspects == (
        "mac4.sv:3: m[{x[1:0], 1'b1}]",
        "mac4.sv:3: n[{x[1:0], 2'b11} -: 10]",
        "mac4.sv:3: x / x[1:0]",
        "mac4.sv:3: n[{x[0], 2'b10} +: 3]",
        "mac4.sv:3: 2'bx0",
    )


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


@pytest.mark.parametrize(("body", "names"), VALUES.values(), ids=VALUES)
def test_which_values_are_open(tmp_path: Path, body: str, names: list[str]) -> None:
    out = OUT.replace("logic [7:0] s", "logic s").replace("s = q", "s = q[0]")
    dut = load_dut(unit(tmp_path, f"{out}\n{FUNCTION.format(body)}", "32'(f(sum[7:0]))"))
    found = find_open(dut, dut.sources[0]).values
    text = dut.sources[0].read_text()
    assert list(dict.fromkeys(hole.place for hole in found.values())) == [
        f"mac4.sv:4: {name}" for name in names
    ]
    assert may_have_any(text) or not names
    for number in (0, 1) if names else ():
        (tmp_path / "filled.sv").write_text(filled(text, found, number))
        words = ["--lint-only", "-Wno-lint", "-Wno-fatal", "--top-module", "mac4", "filled.sv"]
        simulators.elaborate(simulators.verilator(), words, folder=tmp_path, what="mac4")


def test_of_modules_with_several_widths_values_are_left_alone(tmp_path: Path) -> None:
    wires = "wire [W-1:0] m = W'(x); wire y = m[x[1:0]]; wire z = x[x];"
    text = f"module other #(W = 3) (input [3:0] x); {wires} endmodule"
    dut = load_dut(unit(tmp_path, text, "sum[31:0]"))
    file = dut.sources[0]
    file.write_text(
        file.read_text().replace(
            "assign rdy_o", "other #(2) p(.x(x_i[3:0]));\nother q(.x(x_i[3:0]));\nassign rdy_o"
        )
    )
    assert {hole.place for hole in find_open(dut, file).values.values()} == {"mac4.sv:3: x[x]"}


CHOICES = {
    "unique": ("unique case (1'b1) x[0]: f = 1; x[1]: begin f = 2; end endcase", 1, 1),
    "a pragma": ("case (x) // synthesis full_case parallel_case\nx[0]: f = 1; 1: f = 2; endcase", 1, 1),
    "constants that differ": ("unique case (x) 0: f = 1; 1: f = 2; endcase", 1, 0),
    "all constants": ("unique case (x[1:0]) 0, 1: f = 1; 2: f = 2; 3: f = 3; endcase", 0, 0),
    "one constant twice": ("unique case (x[0]) 0, 1: f = 1; 1: f = 2; endcase", 0, 1),
    "priority": ("priority if (x[0]) f = 1; else if (x[1]) f = 2;", 1, 0),
    "a pragma of more words": (
        "case (x) // synopsys infer_mux full_case, foo\n0: f = 1; 1: f = 2; endcase",
        1,
        0,
    ),
    "an attribute": ("(* parallel_case *) casez (x) 8'b1???????: f = 1; 8'b?1??????: f = 2; endcase", 0, 1),
    "with the rest": ("unique case (x) 0: f = 1; default: f = 2; endcase", 0, 0),
    "with else": ("unique if (x[0]) f = 1; else f = 2;", 0, 0),
    "an if of several": ("unique if (x[0]) f = 1; else if (x[1]) f = 2; else f = 3;", 0, 1),
    "unique0": ("unique0 if (x[0]) f = 1; else if (x[1]) f = 2;", 0, 1),
    "returns": ("unique case (1'b1) x[0]: return 1; x[1]: return 2; endcase return 0;", 1, 1),
    "sets": ("unique case (x) inside [1:3], 9: f = 1; 2: f = 2; endcase", 1, 1),
    "a branch that is an if": ("unique if (x[0]) if (x[1]) f = 1;", 1, 0),
    "one in the other": ("unique if (x[0]) unique if (x[1]) f = 1; else if (x[2]) f = 2;", 2, 1),
    "an item that is one": (
        "unique case (1'b1) x[0]: unique if (x[2]) f = 1; x[1]: foo: unique0 if (x[3]) f = 2;"
        "else if (x[4]) begin f = 3; end endcase",
        2,
        2,
    ),
    "nothing declared": ("case (x) 0: f = 1; 1: f = 2; endcase", 0, 0),
    "attributes that say no": (
        "(* full_case = 0, parallel_case = 0 *) case (x) x[0]: f = 1; 1: f = 2; endcase",
        0,
        0,
    ),
    "an attribute among others": (
        "(* parallel_case, foo = 0 *) case (x) x[0]: f = 1; 1: f = 2; endcase",
        0,
        1,
    ),
    "a name like a pragma": ("begin bit full_case; case (full_case) 1: f = 1; endcase end", 0, 0),
    "jumps alone": ("for (int i = 0; i < 2; i++) unique if (x[0]) break; else if (x[i]) continue;", 1, 1),
    "a jump within": ("unique if (x[0]) for (int i = 0; i < 2; i++) break; else if (x[1]) x = x;", 1, 1),
    "nothing but loops": ("unique0 if (x[0]) for (;;) break; else if (x[1]) for (;;) break;", 0, 0),
}
"""Choices, how many are full and are not, and how many have items whose order is open."""


@pytest.mark.parametrize(("body", "full", "parallel"), CHOICES.values(), ids=CHOICES)
def test_which_choices_are_open(tmp_path: Path, body: str, full: int, parallel: int) -> None:
    dut = load_dut(unit(tmp_path, FUNCTION.format(f"f = 0; {body}"), "32'(f(sum[7:0]))"))
    text = read(dut, SIMULATORS["verilator"], pragmas=False)
    assert text is not None
    (tmp_path / "text.sv").write_text(text.text)
    found = find_open(dut, tmp_path / "text.sv")
    what = [what for _, what in found.holes]
    assert (what.count("rest"), what.count("overlap")) == (full, parallel)
    for number in (0, 1) if found.holes else ():
        (tmp_path / "filled.sv").write_text(filled(text.text, found.holes, number))
        words = ["--lint-only", "-Wno-lint", "-Wno-fatal", "--top-module", "mac4", "filled.sv"]
        simulators.elaborate(simulators.verilator(), words, folder=tmp_path, what="mac4")


ASSIGNED = {
    "an array": ("logic [7:0] m[2]; unique case (x) 0: m = '{1, 2}; 1: m[0] = 3; endcase", ["m", "m[0]"]),
    "in two states": ("bit [7:0] b; unique case (x) 0: b = 1; endcase", ["b"]),
    "a bit that a loop chooses": (
        "unique case (x) 0: for (int i = 0; i < 8; i++) f[i] = x[i]; endcase",
        ["f"],
    ),
    "a bit that a loop around it chooses": (
        "for (int i = 0; i < 8; i++) unique case (x) 0: f[i] = x[i]; endcase",
        ["f[i]"],
    ),
    "by one": ("unique case (x) 0: f++; 1: --f; endcase", ["f"]),
    "a stream": ("unique case (x) 0: {<<{f}} = x; endcase", ["f"]),
    "by a call": ("unique case (x) 0: out(f, x); endcase", ["f"]),
    "what is no hardware": ('string s; unique case (x) 0: s = "0"; endcase', []),
}


@pytest.mark.parametrize(("body", "names"), ASSIGNED.values(), ids=ASSIGNED)
def test_what_a_choice_assigns(tmp_path: Path, body: str, names: list[str]) -> None:
    dut = load_dut(unit(tmp_path, f"{OUT}\n{FUNCTION.format(body)}", "32'(f(sum[7:0]))"))
    found = find_open(dut, dut.sources[0])
    (hole,) = (hole for hole in found.holes.values() if "case" in hole.place)
    assert re.findall(r"(?:begin|;) (\S+) = ", hole.given[0]) == names
    assert "'0" not in hole.given[0]
    (tmp_path / "filled.sv").write_text(filled(dut.sources[0].read_text(), found.holes, 0))
    words = ["--lint-only", "-Wno-lint", "-Wno-fatal", "--top-module", "mac4", "filled.sv"]
    simulators.elaborate(simulators.verilator(), words, folder=tmp_path, what="mac4")


def test_a_task_sets_what_is_around_it(tmp_path: Path) -> None:
    task = "logic y; task put(input logic v); logic u; u = v; y = u; endtask\n"
    text = f"{task}always_comb unique case (sum[0]) 1: put(1); endcase"
    dut = load_dut(unit(tmp_path, "", "sum[31:0]"))
    file = dut.sources[0]
    file.write_text(file.read_text().replace("assign rdy_o", f"{text}\nassign rdy_o"))
    (hole,) = list_holes(dut, file)
    assert re.fullmatch(r" default: begin y = 1'h[01]; end ", hole.given[0])


def test_what_cannot_be_looked_at_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dut = load_dut(unit(tmp_path, "", "sum[31:0]"))
    (tmp_path / "text.sv").write_text("module mac4;", encoding="utf-8")
    with pytest.raises(ElaborationError, match="slang refused the module"):
        find_open(dut, tmp_path / "text.sv")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(SimulatorMissing, match="pip install"):
        find_open(dut, dut.sources[0])


INITIAL = {
    "a signal": ("logic [7:0] y = 8'h1d;", ["mac4.sv:3: y"]),
    "of two states, in a structure": ("pair_t y = '{1, 2};", ["mac4.sv:3: y"]),
    "a memory": (
        "reg [7:0] y[3]; integer i; initial for (i = 0; i < 3; i++) y[i] = 1;",
        ["mac4.sv:3: initial"],
    ),
    "a constant": ("const logic [7:0] y = 8'h1d; localparam P = 3;", []),
    "a wire": ("wire [7:0] y = 8'h1d;", []),
}


@pytest.mark.parametrize(("text", "places"), INITIAL.values(), ids=INITIAL)
def test_which_initial_values_there_are(tmp_path: Path, text: str, places: list[str]) -> None:
    dut = load_dut(unit(tmp_path, f"module other; {text} endmodule", "sum[31:0]"))
    file = dut.sources[0]
    file.write_text(file.read_text().replace("assign rdy_o", "other other();\nassign rdy_o"))
    found = find_open(dut, file)
    assert list(dict.fromkeys(hole.place for hole in found.initials.values())) == places
    for number in (0, 1) if places else ():
        (tmp_path / "filled.sv").write_text(filled(file.read_text(), found.initials, number))
        words = ["--lint-only", "-Wno-lint", "-Wno-fatal", "--top-module", "mac4", "filled.sv"]
        simulators.elaborate(simulators.verilator(), words, folder=tmp_path, what="mac4")
        assert "'h1d" not in re.sub(r"/\*.*?\*/", "", (tmp_path / "filled.sv").read_text())


@pytest.mark.long
@pytest.mark.parametrize(("body", "passes"), [(RARE, False), (RARE.replace("x ^ t", "x"), True)])
def test_the_check_fails_by_what_depends_on_them_alone(tmp_path: Path, body: str, passes: bool) -> None:
    options = Options(count=3_000, explain=False, failures=None, build=tmp_path / "build")
    result = check(replaced(tmp_path, body), options)
    assert result.passed == passes == (result.unset is None)
    if result.unset is not None:
        assert "bits that the text leaves open" in result.as_dict()["unset"]["sentence"]
