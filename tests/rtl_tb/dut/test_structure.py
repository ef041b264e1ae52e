"""What a draft says of clock enables, valids and resets: what the registers of the unit do, whatever its
ports are called. And which names it takes from the text."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rtl_tb.dut.description import load_dut
from rtl_tb.dut.given import Given
from rtl_tb.dut.init import draft
from rtl_tb.dut.ports import Design, read_ports
from rtl_tb.dut.structure import Reset, Structure, structure_of
from rtl_tb.dut.wrapper import write_wrapper
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.simulators import translators

PRODUCT = (
    "unit: product\nshape: {k: 1}\nformats: {a: s8, b: s8, d: s16}\nsteps:\n"
    "  - multiply: {to: products}\n"
    "  - round: {of: products, rounding: toward_zero, overflow: saturate, zero: positive}\n"
)
MAC = (
    "unit: mac\nshape: {k: 1}\nformats: {a: s8, b: s8, d: s32}\naccumulator: state\nclear: alone\nsteps:\n"
    "  - multiply: {to: products}\n"
    "  - sum: {of: [products, c], to: total}\n"
    "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}\n"
)


def drafted(
    folder: Path, rtl: str, unit: str = PRODUCT, top: str | None = None
) -> tuple[str, dict[str, object]]:
    """The draft for a text: the whole and its values."""
    (folder / "u.sv").write_text(rtl, encoding="utf-8")
    (folder / "unit.yaml").write_text(unit, encoding="utf-8")
    text = draft([folder / "u.sv"], top, str(folder / "unit.yaml"), folder)
    return text, yaml.safe_load(text)


def line(text: str, key: str) -> str:
    return next(each for each in text.splitlines() if each.lstrip().startswith(f"{key}:"))


RESETS = {
    "asynchronous, low": ("posedge clk or negedge rst", "!rst", Reset(True, False)),
    "asynchronous, high": ("posedge clk or posedge rst", "rst", Reset(False, False)),
    "synchronous, low by a comparison": ("posedge clk", "rst == 0", Reset(True, True)),
    "synchronous, high by a comparison": ("posedge clk", "rst === 1'b1", Reset(False, True)),
    "synchronous, with another cause": ("posedge clk", "~rst | a[0]", Reset(True, True)),
}


@pytest.mark.parametrize(("edges", "condition", "expected"), RESETS.values(), ids=RESETS)
def test_the_kind_and_the_polarity_of_a_reset(
    edges: str, condition: str, expected: Reset, tmp_path: Path
) -> None:
    text, values = drafted(
        tmp_path,
        "module u (input clk, rst, input signed [7:0] a, b, output logic signed [15:0] d);\n"
        f"always_ff @({edges}) if ({condition}) d <= 0; else d <= a * b;\nendmodule\n",
    )
    reset = values["reset"]
    assert isinstance(reset, dict)
    assert Reset(reset["active"] == "low", reset["synchronous"]) == expected
    assert "GUESS" not in line(text, "reset")


def test_a_reset_behind_a_synchroniser_and_an_inverter(tmp_path: Path) -> None:
    (tmp_path / "u.sv").write_text(
        "module u (input clk, rst_n, input [7:0] a, output logic [7:0] d);\n"
        "logic one, two; always_ff @(posedge clk) begin one <= ~rst_n; two <= one; end\n"
        "always_ff @(posedge clk) if (two) d <= 0; else d <= a;\nendmodule\n"
    )
    design = Design([tmp_path / "u.sv"], "u")
    structure = structure_of(design)
    assert isinstance(structure, Structure)
    assert structure is not None
    assert structure.reset(read_ports(design).ports["rst_n"]) == Reset(True, True)


PIPE = """module u (input clk, rst_n, {names}, input signed [7:0] a, b, output logic signed [15:0] d{out});
logic signed [15:0] p; {more}
always_ff @(posedge clk) {pipe}
endmodule
"""
STOPPED = "if (!rst_n) d <= 0; else if ({}) begin p <= a * b; d <= p; end"


@pytest.mark.parametrize("name", ["en", "clk_en", "start", "valid"])
def test_what_stops_every_register_is_an_enable(name: str, tmp_path: Path) -> None:
    rtl = PIPE.format(names=f"input {name}", out="", more="", pipe=STOPPED.format(name))
    text, values = drafted(tmp_path, rtl)
    assert values["handshake"] == {"kind": "latency", "latency": "measure", "enable": name}
    assert "GUESS" not in line(text, "enable")


GATES = {
    "a gate": "wire gated = clk & en;",
    "a latch before a gate": "logic on; always_latch if (!clk) on = en; wire gated = clk & on;",
}


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
def test_what_gates_the_clock_is_an_enable(gate: str, tmp_path: Path) -> None:
    rtl = PIPE.format(names="input en", out="", more=gate, pipe="begin p <= a * b; d <= p; end")
    text, _ = drafted(tmp_path, rtl.replace("posedge clk", "posedge gated"))
    assert line(text, "enable") == "  enable: en"


@pytest.mark.parametrize(
    ("name", "end"), [("en", "ready"), ("ce", "done"), ("clk_en", "q"), ("start", "ready"), ("valid", "done")]
)
def test_what_travels_to_an_output_is_a_valid(name: str, end: str, tmp_path: Path) -> None:
    rtl = PIPE.format(
        names=f"input {name}",
        out=f", output logic {end}",
        more="logic v;",
        pipe=f"begin p <= a * b; d <= p; v <= {name} & rst_n; {end} <= v & rst_n; end",
    )
    _, values = drafted(tmp_path, rtl)
    assert values["handshake"] == {"kind": "valid", "input": {"valid": name}, "output": {"valid": end}}


def test_a_pulse_of_any_name_that_travels_to_the_valid(tmp_path: Path) -> None:
    rtl = PIPE.format(
        names="input quick, input flush, input do_mul",  # what drops results is no valid
        out=", output logic valid",
        more="logic v;",
        pipe="begin p <= a * b; d <= p; v <= do_mul & rst_n & ~flush; valid <= v & rst_n; end",
    ).replace("a * b", "quick ? a * b : 16'd1")
    text, values = drafted(tmp_path, rtl)
    assert values["handshake"]["input"] == {"valid": "do_mul"}
    assert "GUESS: it comes to valid through registers" in line(text, "input")
    assert values["constants"] == {"quick": 1, "flush": 0}  # without quick an operand has no effect


@pytest.mark.parametrize(("edge", "low"), [("posedge", False), ("negedge", True)])
def test_a_text_that_yosys_refuses_says_how_its_reset_acts(edge: str, low: bool, tmp_path: Path) -> None:
    rtl = (
        "module u (input clk, rst, in_valid, input signed [7:0] a, b, output logic signed [15:0] d, "
        "output logic out_valid);\nlogic signed [15:0] p;\n"
        "always_comb begin p = 0; p <= a * b; end // @(posedge rst) of a comment\n"
        f"always_ff @(posedge clk, {edge} rst) if ({'!' * low}rst) out_valid <= 0;\n"
        "else out_valid <= in_valid;\n"
        "always_ff @(posedge clk) d <= p;\nendmodule\n"
    ).replace("@(posedge rst) of", f"@({'posedge' if low else 'negedge'} rst) of")
    text, values = drafted(tmp_path, rtl)
    assert values["reset"] | {"cycles": 4} == {
        "port": "rst",
        "active": "low" if low else "high",
        "synchronous": False,
        "cycles": 4,
    }
    assert "GUESS" not in line(text, "reset")
    assert "# Its registers are not known, and names decide: Yosys" in text


def test_without_registers_clock_and_reset_are_tied(tmp_path: Path) -> None:
    """As in modules that a generator gives both, whatever they hold."""
    rtl = (
        "module u (input clock, reset, input signed [7:0] a, b, output signed [15:0] d);\n"
        "assign d = a * b;\nendmodule\n"
    )
    _, values = drafted(tmp_path, rtl)
    assert values["handshake"] == {"kind": "combinational"}
    assert values["constants"] == {"clock": 1, "reset": 0} and "clock" not in values


def test_a_clock_enable_also_stops_the_valid(tmp_path: Path) -> None:
    rtl = PIPE.format(
        names="input ce, in_valid",
        out=", output logic out_valid",
        more="logic v;",
        pipe="if (!rst_n) {v, out_valid} <= 0; else if (ce) begin p <= a * b; d <= p; v <= in_valid; "
        "out_valid <= v; end",
    )
    _, values = drafted(tmp_path, rtl)
    assert values["constants"] == {"ce": 1}
    assert values["handshake"] == {
        "kind": "valid",
        "input": {"valid": "in_valid"},
        "output": {"valid": "out_valid"},
    }


def test_one_register_does_not_say_whether_it_is_an_enable(tmp_path: Path) -> None:
    rtl = PIPE.format(names="input en", out="", more="", pipe="if (en) d <= a * b;")
    assert "GUESS: or input: {valid: en}" in line(drafted(tmp_path, rtl)[0], "enable")


ACCUMULATOR = """module u (input clk, rst_n, {first}, {second}, clr, input signed [7:0] a, b,
    output logic signed [31:0] acc);
always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) acc <= 0;
    else if ({first_name}) begin if (clr) acc <= 0; else if ({second_name}) acc <= acc + 32'(a * b); end
endmodule
"""


@pytest.mark.parametrize(
    ("stops", "counts"), [("clk_en", "en"), ("en", "clk_en"), ("en", "valid"), ("valid", "ce")]
)
def test_the_enable_of_an_accumulator_stops_its_clear_as_well(
    stops: str, counts: str, tmp_path: Path
) -> None:
    rtl = ACCUMULATOR.format(first=f"input {stops}", second=counts, first_name=stops, second_name=counts)
    _, values = drafted(tmp_path, rtl, MAC)
    assert values["handshake"] == {
        "kind": "latency",
        "latency": 1,  # with a clear in a cycle of its own it cannot be measured
        "input": {"valid": counts},
        "enable": stops,
    }


def test_an_accumulator_that_shows_its_sum_at_once_counts_by_its_enable(tmp_path: Path) -> None:
    rtl = (
        "module u (input clk, rst_n, enable, clr, input signed [7:0] a, b, output signed [31:0] acc);\n"
        "reg signed [31:0] held; assign acc = enable ? held + a * b : held;\n"
        "always @(posedge clk) if (!rst_n) held <= 0; else if (clr) held <= 0; else held <= acc;\nendmodule\n"
    )
    _, values = drafted(tmp_path, rtl, MAC)
    assert values["handshake"] == {"kind": "latency", "latency": 0, "input": {"valid": "enable"}}


CLEARS = {
    "alone, and drops the operands": ("if (clr) acc <= 0; else if (en) acc <= acc + p;", "before_operands"),
    "alone, and keeps the operands": (
        "if (clr | en) acc <= (clr ? 0 : acc) + (en ? p : 0);",
        "with_operands",
    ),
    "with valid alone": ("if (en) acc <= (clr ? 0 : acc) + p;", None),
}


@pytest.mark.parametrize(("body", "given"), CLEARS.values(), ids=CLEARS)
def test_a_clear_that_acts_without_valid(body: str, given: str | None, tmp_path: Path) -> None:
    _, values = drafted(
        tmp_path,
        "module u (input clk, rst, en, clr, input signed [7:0] a, b, output logic signed [31:0] acc);\n"
        f"wire signed [31:0] p = a * b; always_ff @(posedge clk) if (rst) acc <= 0; else begin {body} end\n"
        "endmodule\n",
        MAC,
    )
    ports = values["ports"]
    assert isinstance(ports, dict)
    assert ports["clear"] == ({"port": "clr", "given": given} if given else "clr")


def test_a_further_reset_is_no_valid_and_a_clear_may_act_with_0(tmp_path: Path) -> None:
    text, values = drafted(
        tmp_path,
        "module u (input clk, rst, start, en, clr_n, input signed [7:0] a, b,\n"
        "output logic signed [31:0] acc, output logic signed [7:0] a_o);\n"
        "always_ff @(posedge clk) if (rst | start) begin acc <= 0; a_o <= 0; end\n"
        "else if (en) begin a_o <= a; acc <= clr_n ? acc + a * b : 0; end endmodule\n",
        MAC,
    )
    assert values["handshake"] == {"kind": "latency", "latency": "measure", "input": {"valid": "en"}}
    assert values["constants"] == {"start": 0} and "start: 0  # GUESS: a reset as well" in text
    assert isinstance(values["ports"], dict)
    assert values["ports"]["clear"] == {"port": "clr_n", "active": "low"}


def test_request_and_acknowledge(tmp_path: Path) -> None:
    """The only signal that the unit gives says when it answers."""
    _, values = drafted(
        tmp_path,
        "module u (input clk, rst, req, input signed [7:0] a, b, output logic ack, output logic [15:0] d);\n"
        "always_ff @(posedge clk) if (rst) ack <= 0; else begin ack <= req; d <= a * b; end endmodule\n",
    )
    assert values["handshake"] == {"kind": "valid", "input": {"valid": "req"}, "output": {"valid": "ack"}}


def test_a_combinational_path_has_no_pipeline_to_stop(tmp_path: Path) -> None:
    _, values = drafted(
        tmp_path,
        "module u (input clk, enable_i, input signed [7:0] a, b, output signed [15:0] d,\n"
        "output logic busy); assign d = a * b; always_ff @(posedge clk) busy <= enable_i;\nendmodule\n",
    )
    assert values["handshake"] == {"kind": "latency", "latency": 0}
    assert values["constants"] == {"enable_i": 1}


def test_without_yosys_names_decide_and_the_draft_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> translators.Translator:
        raise SimulatorMissing("none")

    monkeypatch.setattr(translators, "yosys", none)
    rtl = PIPE.format(names="input en", out="", more="", pipe=STOPPED.format("en"))
    text, _ = drafted(tmp_path, rtl)
    assert "GUESS: polarity by name" in line(text, "reset")
    assert "GUESS: by its name; or input: {valid: ...}" in line(text, "enable")


CHANNELS = """module u (input clk, rst_n, {a}, {b}, {d});
logic full; wire go = {av} & {bv} & (!full | {dr});
assign {ar} = go, {br} = go, {dv} = full;
always_ff @(posedge clk) if (!rst_n) full <= 0; else begin
    if (go) begin full <= 1; {dz} <= {az} * {bz}; end else if ({dr}) full <= 0; end
endmodule
"""
STYLES = {
    "Catapult": (
        "chn_{}_rsc_z",
        ("chn_{}_rsc_vz", "chn_{}_rsc_lz"),
        ("chn_{}_rsc_lz", "chn_{}_rsc_vz"),
        "a b o",
    ),
    "Catapult's newer names": ("{}_rsc_dat", *[("{}_rsc_vld", "{}_rsc_rdy")] * 2, "a b z"),
    "one without a word of its own": ("{}", *[("{}_valid", "{}_ready")] * 2, "data_in weight data_out"),
}


@pytest.mark.parametrize(("data", "given", "taken", "names"), STYLES.values(), ids=STYLES)
def test_every_channel_keeps_its_ready(
    data: str, given: tuple[str, str], taken: tuple[str, str], names: str, tmp_path: Path
) -> None:
    a, b, d = names.split()
    (av, ar), (bv, br), (dv, dr) = (
        [each.format(name) for each in pair] for name, pair in ((a, given), (b, given), (d, taken))
    )
    az, bz, dz = (data.format(name) for name in (a, b, d))
    rtl = CHANNELS.format(
        a=f"input signed [7:0] {az}, input {av}, output {ar}",
        b=f"input signed [7:0] {bz}, input {bv}, output {br}",
        d=f"output logic signed [15:0] {dz}, output {dv}, input {dr}",
        **{"av": av, "ar": ar, "bv": bv, "br": br, "dv": dv, "dr": dr, "az": az, "bz": bz, "dz": dz},
    )
    _, values = drafted(tmp_path, rtl)
    assert values["handshake"] == {
        "kind": "valid_ready",
        "input": [
            {"operands": ["a"], "valid": av, "ready": ar},
            {"operands": ["b"], "valid": bv, "ready": br},
        ],
        "output": {"valid": dv, "ready": dr},
    }
    assert values["ports"] == {"a": az, "b": bz, "d": dz}


def test_names_with_two_underscores_stay_as_they_are(tmp_path: Path) -> None:
    text, values = drafted(
        tmp_path,
        "typedef struct packed {logic signed [7:0] x__1, y;} s_t;\n"
        "module my__unit #(parameter int W__D = 16) (input s_t in__1, output logic signed [W__D-1:0] r__d);\n"
        "assign r__d = in__1.x__1 * in__1.y;\nendmodule\n",
    )
    assert "___05F" not in text
    assert (values["top"], values["ports"]) == ("my__unit", {"a": "in__1.x__1", "b": "in__1.y", "d": "r__d"})
    (tmp_path / "dut.yaml").write_text(text, encoding="utf-8")
    write_wrapper(load_dut(tmp_path / "dut.yaml"), tmp_path / "out")


def test_a_module_without_ports_is_not_the_top(tmp_path: Path) -> None:
    _, values = drafted(
        tmp_path,
        "module u #(parameter W = 8) (input signed [W-1:0] a, b, output signed [2*W-1:0] d);\n"
        "assign d = a * b;\nendmodule\n"
        "module u__abstract (); if (0) begin : unused u u1 (); end endmodule\n"
        "module tb; u u1 (); endmodule\n",
    )
    assert values["top"] == "u"


def test_parameters_without_a_default_are_named_with_their_option(tmp_path: Path) -> None:
    rtl = (
        "module u #(parameter int E, parameter M, parameter Z = 1) (input [E+M-1:0] a, output [E+M-1:0] d);\n"
        "assign d = a;\nendmodule\n"
    )
    with pytest.raises(ElaborationError, match=r"-G E=VALUE -G M=VALUE of rtl init"):
        drafted(tmp_path, rtl)


def test_a_mac_without_valid_gets_zeros(tmp_path: Path) -> None:
    rtl = (
        "module u (input clk, rst, clr, input signed [7:0] a, b, output logic signed [31:0] acc);\n"
        "always_ff @(posedge clk) if (rst | clr) acc <= 0; else acc <= acc + 32'(a * b);\nendmodule\n"
    )
    (tmp_path / "dut.yaml").write_text(drafted(tmp_path, rtl, MAC)[0], encoding="utf-8")
    dut = load_dut(tmp_path / "dut.yaml")
    assert dut.handshake.idle_zero and dut.ports["clear"].given == "before_operands"


def test_an_input_of_one_bit_that_is_left_may_say_what_counts(tmp_path: Path) -> None:
    rtl = (
        "module u (input clk, rst, more, input signed [7:0] a, b, output logic signed [31:0] acc);\n"
        "always_ff @(posedge clk) if (rst) acc <= 0; else if (more) acc <= acc + 32'(a * b);\nendmodule\n"
    )
    _, values = drafted(tmp_path, rtl, MAC)
    assert values["handshake"]["input"] == {"valid": "more"}  # type: ignore[index]
    assert "constants" not in values


def test_an_enable_without_which_the_sum_is_zero_clears_it(tmp_path: Path) -> None:
    rtl = (
        "module u (input clk, rst_n, ena, input signed [7:0] a, b, output logic signed [31:0] acc);\n"
        "  wire signed [31:0] next = ena ? acc + 32'(a * b) : 0;\n"
        "  always_ff @(posedge clk or negedge rst_n) if (!rst_n) acc <= 0; else acc <= next;\nendmodule\n"
    )
    (tmp_path / "dut.yaml").write_text(drafted(tmp_path, rtl, MAC)[0], encoding="utf-8")
    dut = load_dut(tmp_path / "dut.yaml")
    at = dut.ports["clear"]
    assert (at.ports, at.active_low, at.given) == (("ena",), True, "before_operands")
    assert dut.handshake.idle_zero


CELL = """module u (input clk, rst_n, load, en, clr, shift, input signed [7:0] x, w, input signed [31:0] psum,
    output logic shift_d, output logic signed [31:0] d);
  logic signed [7:0] kept, xq;
  logic signed [31:0] c;
"""
WITH_C = (
    "unit: mac\nshape: {k: 1}\nformats: {a: s8, b: s8, c: s32, d: s32}\nsteps:\n"
    "  - multiply: {to: products}\n"
    "  - sum: {of: [products, c], to: total}\n"
    "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}\n"
)


def test_a_control_that_goes_to_a_neighbour_is_no_valid(tmp_path: Path) -> None:
    """It leaves one register early. What clears a weight is not what loads it, and an enable that does not
    stop the whole cell is tied."""
    rtl = (
        CELL
        + "  always_ff @(posedge clk) if (!rst_n) {kept, xq, d, shift_d} <= 0; else begin shift_d <= shift;\n"
        + "    if (clr) kept <= 0; else if (load) kept <= w;\n"
        + "    if (shift) xq <= x; if (en) d <= psum + xq * kept;\n"
        + "  end\nendmodule\n"
    )
    _, values = drafted(tmp_path, rtl, WITH_C)
    assert values["handshake"] == {"kind": "latency", "latency": "measure"}
    assert values["constants"] == {"load": 1, "clr": 0, "en": 1, "shift": 1}
    assert values["ports"]["c"] == {"port": "psum", "later": 1}  # type: ignore[index]


def test_what_stands_still_while_a_weight_is_loaded_comes_later(tmp_path: Path) -> None:
    rtl = (
        CELL
        + "  assign d = c + x * kept; assign shift_d = 0;\n"
        + "  always_ff @(posedge clk) if (!rst_n) begin kept <= 0; c <= 0; end\n"
        + "    else if (load) kept <= w; else if (en) c <= psum;\nendmodule\n"
    )
    _, values = drafted(tmp_path, rtl, WITH_C)
    assert values["handshake"]["input"] == {"valid": "load"}  # type: ignore[index]
    later = {name: at["later"] for name, at in values["ports"].items() if isinstance(at, dict)}  # type: ignore[attr-defined]
    assert later == {"a": 2, "c": 1} and values["constants"]["en"] == 1  # type: ignore[index]


def test_operands_of_which_the_ports_have_room_for_a_part(tmp_path: Path) -> None:
    """They come in several transfers, of which an input marks the last."""
    rtl = (
        "module u (input clk, rst, tvalid, tlast, input signed [15:0] act, wgt,\n"
        "    output logic ok, output logic signed [31:0] d);\n  logic signed [31:0] sum;\n"
        "  wire signed [31:0] next = sum + $signed(act[7:0]) * $signed(wgt[7:0])\n"
        "    + $signed(act[15:8]) * $signed(wgt[15:8]);\n"
        "  always_ff @(posedge clk) if (rst) {ok, sum, d} <= 0; else begin ok <= tvalid & tlast; d <= next;\n"
        "    if (tvalid) sum <= tlast ? 0 : next; end\nendmodule\n"
    )
    text, values = drafted(
        tmp_path, rtl, WITH_C.replace("{k: 1}", "{k: 8}").replace(" c: s32,", "").replace(", c]", "]")
    )
    assert values["handshake"]["input"] == {"valid": "tvalid", "beats": 4, "last": "tlast"}  # type: ignore[index]
    assert values["ports"] == {"a": "act", "b": "wgt", "d": "d"} and "GUESS: a and b have room" in text
    (tmp_path / "dut.yaml").write_text(text, encoding="utf-8")
    write_wrapper(load_dut(tmp_path / "dut.yaml"), tmp_path / "out")


def test_files_that_the_top_does_not_need_are_left_out(tmp_path: Path) -> None:
    """Such as an old copy of a module, which no simulator takes together with the new one."""
    rtl = "module cell (input [7:0] a, b, output [15:0] d); assign d = a * b; endmodule\n"
    (tmp_path / "u.sv").write_text(rtl.replace("cell", "u"), encoding="utf-8")
    for name in ("old", "new"):
        (tmp_path / f"{name}.sv").write_text(f"module frame;\n  u i ();  // {name}\nendmodule\n")
    text = draft([tmp_path / f"{name}.sv" for name in ("old", "u", "new")], "u", None, tmp_path)
    assert yaml.safe_load(text)["sources"] == ["u.sv"]
    assert "# Without files that the top does not need: else " in text


def test_a_file_that_defines_nothing_and_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "u.v").write_text(
        "module u (input [7:0] a, b, output [15:0] d); assign d = a * b; endmodule\n"
    )
    (tmp_path / "bad.v").write_text("no Verilog\n")
    text = draft([tmp_path / "u.v", tmp_path / "bad.v"], "u", None, tmp_path)
    assert yaml.safe_load(text)["sources"] == ["u.v"]
    (tmp_path / "e.vhd").write_text(
        "library ieee; use ieee.std_logic_1164.all;\n"
        "entity e is port (a, b: in std_logic; d: out std_logic); end;\n"
        "architecture r of e is begin d <= a and b; end;\n"
    )
    (tmp_path / "empty.vhd").write_text("")
    text = draft([tmp_path / "e.vhd", tmp_path / "empty.vhd"], "e", None, tmp_path)
    assert yaml.safe_load(text)["sources"] == ["e.vhd"]


def test_files_that_are_missing_are_looked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All at once, though a reader names the next one only where it has the one before."""
    for name, text in {
        "core/u.sv": '`include "widths.svh"\nmodule u import p::*; (input [`W:0] a, output [p::N:0] d);\n'
        "  inner i (a, d);\nendmodule\n",
        "lib/cells.sv": "module inner (input [7:0] a, output [7:0] d); assign d = a; endmodule\n",
        "lib/p.sv": "package p; localparam N = 7; endpackage\n",
        "inc/widths.svh": "`define W 7\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    u, inc, given = tmp_path / "core" / "u.sv", tmp_path / "inc", Given(include=[tmp_path / "inc"])
    with pytest.raises(ElaborationError) as refused:
        draft([u], "u")
    for found in (f"-I {inc} (has widths.svh)", "lib/p.sv (has p)", "lib/cells.sv (has inner)"):
        assert found in str(refused.value)
    with pytest.raises(ElaborationError, match=r"mport package not found: 'p'.*lib/p\.sv \(has p\)"):
        draft([u], "u", given=given)
    with pytest.raises(ElaborationError, match="expected u"):
        draft([u, tmp_path / "lib" / "p.sv", tmp_path / "lib" / "cells.sv"], "v", given=given)
    assert capfd.readouterr().err == ""  # slang says there that it got no file


def test_names_that_begin_with_a_dollar_are_read(tmp_path: Path) -> None:
    """As in what Yosys wrote itself, for example for Amaranth."""
    names = "".join(f"  wire [15:0] \\${at} ;\n  assign \\${at} = a * b;\n" for at in range(1, 9))
    text, values = drafted(
        tmp_path,
        "module m(input clk, input rst, input [7:0] a, input [7:0] b, output reg [15:0] d);\n"
        f"{names}  always @(posedge clk) if (!rst) d <= 0; else d <= \\$1 + \\$8 ;\nendmodule\n",
    )
    assert "registers are not known" not in text
    assert values["reset"] == {"port": "rst", "active": "low", "synchronous": True, "cycles": 4}


def test_a_unit_that_takes_tiles_from_one_bus(tmp_path: Path) -> None:
    """A matrix times a column."""
    unit = PRODUCT.replace("{k: 1}", "{k: 4, m: 2, n: 1}").replace(
        "  - round: {of: products", "  - sum: {of: products, to: total}\n  - round: {of: total"
    )
    _, values = drafted(
        tmp_path, "module m(input [95:0] bus, output [31:0] y); assign y = bus[31:0]; endmodule\n", unit
    )
    assert values["level"] == "tile"
    assert values["ports"] == {"a": {"port": "bus", "lsb": 0}, "b": {"port": "bus", "lsb": 64}, "d": "y"}
