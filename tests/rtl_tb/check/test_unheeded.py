"""What simulators heed and synthesis does not: delays, lists of signals, processes that race."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from changed_unit import DUT, OWN, PASSING, changed

from rtl_tb.check import synthesis
from rtl_tb.check.readings import Reading
from rtl_tb.check.unheeded import as_hardware
from rtl_tb.dut.description import load_dut
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.simulators import simulators

CLOCKED = "always @(posedge clock)"
CASES = {
    "gates and nets": (
        "wire #1 q = x_i[0]; wire r, s; and #(1, 2) g (r, q, x_i[1]); assign #0.5 s = r;",
        "wire q = x_i[0]; wire r, s; and g (r, q, x_i[1]); assign s = r;",
    ),
    "assignments": (
        f"reg t, u; {CLOCKED} begin #1 t <= #2 x_i[0]; u = #3 t; end",
        f"reg t, u; {CLOCKED} begin t <= x_i[0]; u = t; end",
    ),
    "a clock, and what is no hardware": ("reg c; initial #3 c = 0; always #5 c = ~c;", ""),
    "a short list": ("reg t; always @(x_i) t = x_i[0] ^ w_i[0];", "reg t; always @* t = x_i[0] ^ w_i[0];"),
    "an event": (
        f"event e; reg t; {CLOCKED} -> e; always @(e) t <= x_i[0];",
        f"event e; reg t; {CLOCKED} -> e; always @* t <= x_i[0];",
    ),
    "a whole list": (
        "reg t; integer i; always @(x_i or w_i) for (i = 0; i < 2; i = i + 1) t = x_i[i] ^ w_i[i];",
        "",
    ),
    "a register": (
        f"reg t, u; {CLOCKED} t = x_i[0]; {CLOCKED} u <= t;",
        f"reg t, u; {CLOCKED} begin var type(\\t ) N; N = \\t ; N = x_i[0]; \\t <= N; end {CLOCKED} u <= t;",
    ),
    "one that counts, of an enumeration": (
        f"typedef enum logic {{A, B}} k_t; k_t k; wire q = k == A; {CLOCKED} k = k == A ? B : A;",
        f"typedef enum logic {{A, B}} k_t; k_t k; wire q = k == A; {CLOCKED} begin "
        "var type(\\k ) N; N = \\k ; N = N == A ? B : A; \\k <= N; end",
    ),
    "by one, beside a value from the start": (
        f"int \\n+ = 3; wire q = \\n+ > 3; {CLOCKED} \\n+ ++;",
        f"int \\n+ = 3; wire q = \\n+ > 3; {CLOCKED} begin "
        "var type(\\n+ ) N; N = \\n+ ; N ++; \\n+ <= N; end",
    ),
    "two of a memory and a structure, in a generate": (
        "if (1) always_ff @(posedge clock or posedge reset) begin m[x_i[0]] = w_i; s.a = m[1]; end "
        "reg [31:0] m [2]; struct packed {logic a, b;} s; wire q = m[0][0] ^ s.b;",
        "if (1) always_ff @(posedge clock or posedge reset) begin "
        "var type(\\m ) N; var type(\\s ) N; N = \\m ; N = \\s ; begin N[x_i[0]] = w_i; "
        "N.a = N[1]; end \\m <= N; \\s <= N; end "
        "reg [31:0] m [2]; struct packed {logic a, b;} s; wire q = m[0][0] ^ s.b;",
    ),
    "variables of one process": (f"reg t, u; {CLOCKED} begin : b reg v; v = x_i[0]; t = v; u <= t; end", ""),
    "bits of one signal in turns of a generate": (
        f"reg [1:0] t; wire [1:0] q = t; for (genvar i = 0; i < 2; i++) {CLOCKED} t[i] = x_i[i];",
        "",
    ),
    "a loop's variable of two processes": (
        f"integer i; reg [1:0] t, u; {CLOCKED} for (i = 0; i < 2; i = i + 1) t[i] <= x_i[i];"
        "always @* for (i = 0; i < 2; i = i + 1) u[i] = x_i[i];",
        "",
    ),
    "what a function reads": (
        f"reg t; function f(input x); f = x ^ t; endfunction {CLOCKED} t = f(x_i[0]); wire q = t;",
        "",
    ),
}
"""What stands in a module, and what is made of it; nothing where it stays."""


@pytest.mark.parametrize(("text", "made"), CASES.values(), ids=CASES)
def test_what_synthesis_takes(tmp_path: Path, text: str, made: str) -> None:
    (tmp_path / "mac4.sv").write_text(
        whole := PASSING.replace("endmodule", f"{text}\nendmodule"), encoding="utf-8"
    )
    (tmp_path / "mac4.yaml").write_bytes((OWN / "mac4.yaml").read_bytes())
    (tmp_path / "dut.yaml").write_text(DUT, encoding="utf-8")
    found, what = as_hardware(load_dut(tmp_path / "dut.yaml"), tmp_path / "build", Reading(whole))
    one_name = re.sub(r"mmagold_next_\d+", "N", found.text)
    assert " ".join(one_name.split()) == " ".join(
        PASSING.replace("endmodule", f"{made or text}\nendmodule").split()
    )
    assert bool(what) == bool(made)
    assert found.text.count("\n") == whole.count("\n")
    if made:
        (tmp_path / "made.sv").write_text(found.text, encoding="utf-8")
        words = ["--lint-only", "--timing", "-Wno-lint", "-Wno-fatal", "--top-module", "mac4", "made.sv"]
        simulators.elaborate(simulators.verilator(), words, folder=tmp_path, what="mac4")


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
    result = changed(tmp_path, *RACE, count=200)
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


@pytest.mark.long
def test_what_slang_refuses_is_run_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise ElaborationError("slang refused the module")

    monkeypatch.setattr(synthesis, "as_hardware", refused)
    other = ("acc_o <= sum[31:0];", "acc_o <=\n`ifdef VERILATOR\nsum[31:0]\n`else\n~sum[31:0]\n`endif\n;")
    result = changed(tmp_path, other, count=200)
    assert not result.passed
    assert [bool(each.refused) for each in result.synthesis] == [True, False]
    assert "slang refused" in result.not_synthesised[0]


def test_without_slang_nobody_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mac4.sv").write_text(
        text := PASSING.replace("assign rdy_o", "assign #1 rdy_o"), encoding="utf-8"
    )
    (tmp_path / "mac4.yaml").write_bytes((OWN / "mac4.yaml").read_bytes())
    (tmp_path / "dut.yaml").write_text(DUT, encoding="utf-8")
    dut = load_dut(tmp_path / "dut.yaml")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert as_hardware(dut, tmp_path / "build", Reading(PASSING))[1] == ""
    with pytest.raises(SimulatorMissing, match="pip install"):
        as_hardware(dut, tmp_path / "build", Reading(text))
