"""A signal that is active the other way is named, and nothing is built on what came of it."""

from pathlib import Path

import pytest
from changed_unit import DUT, OWN, PASSING
from long_run import long_after

from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.runs.polarity import choices, turned_over

SHELL = """
module mac4 (
    input logic clock, reset, vld_i, rdy_i, input logic [31:0] x_i, w_i, acc_i,
    output logic rdy_o, vld_o, output logic [31:0] acc_o);
    logic ready, valid;
    assign rdy_o = {rdy_o}ready, vld_o = {vld_o}valid;
    inner i (.clock, .reset ({reset}reset), .vld_i ({vld_i}vld_i), .rdy_o (ready), .vld_o (valid),
             .rdy_i ({rdy_i}rdy_i), .x_i, .w_i, .acc_i, .acc_o);
endmodule
"""
FIXED = """
module mac4 (
    input logic clk, rst, en, vi, input logic [31:0] x, w, acc, output logic vo, output logic [31:0] q);
    logic [31:0] x1, w1, a1;
    logic v1;
    logic signed [35:0] sum;
    always_comb begin
        sum = 36'(signed'(a1));
        for (int k = 0; k < 4; k++) sum += 36'(signed'(x1[8*k +: 8]) * 16'(signed'(w1[8*k +: 8])));
    end
    always_ff @(posedge clk)
        if ({rst}rst) {{v1, vo, q}} <= '0;
        else if ({en}en) begin
            v1 <= {vi}vi;
            vo <= v1;
            if ({vi}vi) {{x1, w1, a1}} <= {{x, w, acc}};
            if (v1) q <= sum > 36'sh7fffffff ? 32'h7fffffff : sum < -36'sh80000000 ? 32'h80000000 : sum[31:0];
        end
endmodule
"""
VALID = ("kind: valid, input: {valid: vi}, output: {valid: vo}", "en")
LATENCY = ("kind: latency, latency: 2, enable: en, input: {valid: vi}", "")
LATENCY_LOW = ("kind: latency, latency: 2, enable: {port: en, active: low}, input: {valid: vi}", "")
MEASURED = ("kind: latency, latency: measure, enable: en, input: {valid: vi}", "")
ICARUS = {"engine": "selfcheck", "simulator": "icarus"}


def found(folder: Path, rtl: str, dut: str, **options: object):
    (folder / "mac4.sv").write_text(rtl, encoding="utf-8")
    (folder / "mac4.yaml").write_bytes((OWN / "mac4.yaml").read_bytes())
    (folder / "dut.yaml").write_text(dut, encoding="utf-8")
    given = {
        "count": 400,
        "failures": None,
        "build": folder / "build",
        "timeout_cycles": 200,
        "synthesis": "off",
    }
    given |= {"build": folder / "build"} | options
    return check(folder / "dut.yaml", Options(**given))  # type: ignore[arg-type]


def shelled(folder: Path, *ports: str, dut: str = DUT, **options: object):
    """The example unit with these ports inverted."""
    names = ("reset", "vld_i", "rdy_o", "vld_o", "rdy_i")
    shell = SHELL.format(**{name: "!" * (name in ports) for name in names})
    return found(folder, PASSING.replace("module mac4", "module inner") + shell, dut, **options)


def fixed(folder: Path, shake: tuple[str, str], *ports: str, **options: object):
    """A unit of fixed latency with these ports inverted."""
    inverted = {name: "!" * (name in ports) for name in ("rst", "en", "vi")}
    tied = f"constants: {{{shake[1]}: 1}}\n" * bool(shake[1])
    dut = (
        "unit: mac4.yaml\ntop: mac4\nsources: [mac4.sv]\nclock: clk\nreset: {port: rst, active: high}\n"
        f"handshake: {{{shake[0]}}}\nports: {{a: x, b: w, c: acc, d: q}}\n{tied}"
    )
    return found(folder, FIXED.format(**inverted), dut, **options)


def named(result, *sentences: str) -> None:
    assert not result.passed
    assert len(result.hints) == 1 and all(sentence in result.hints[0] for sentence in sentences), result.hints
    assert "all of the first 200 vectors are right" in result.hints[0]
    nothing = (result.diagnosis, result.example, result.unset)
    assert nothing == (None, None, None), "nothing is built on what came of it"


SIGNALS = {
    "reset": "the reset 'reset' is active low, not high",
    "vld_i": "the input valid 'vld_i' is active low, not high",
    "rdy_o": "the input ready 'rdy_o' is active low, not high",
    "vld_o": "the output valid 'vld_o' is active low, not high",
    "rdy_i": "the output ready 'rdy_i' is active low, not high",
}


@pytest.mark.parametrize(
    "ports", [*((name,) for name in SIGNALS), ("vld_i", "vld_o"), ("rdy_i", "rdy_o"), tuple(SIGNALS)[1:]]
)
def test_each_signal_of_a_handshake(tmp_path, ports):
    named(shelled(tmp_path, *ports, **ICARUS), *(SIGNALS[name] for name in ports))


@pytest.mark.parametrize("name", long_after(0, list(SIGNALS)))
def test_at_full_throughput(tmp_path, name):
    named(shelled(tmp_path, name), SIGNALS[name])


def test_what_the_description_has_wrong(tmp_path):
    wrong = DUT.replace("output: {valid: vld_o", "output: {valid: {port: vld_o, active: low}")
    result = shelled(tmp_path, dut=wrong, **ICARUS)
    named(result, "the output valid 'vld_o' is active high, not low", "write active: high in dut.yaml")


def test_a_unit_whose_signals_are_active_low_passes(tmp_path):
    low = DUT
    for name in ("vld_i", "rdy_o", "vld_o", "rdy_i"):
        low = low.replace(f": {name}", f": {{port: {name}, active: low}}")
    assert shelled(tmp_path, "vld_i", "rdy_o", "vld_o", "rdy_i", dut=low, **ICARUS).passed


@pytest.mark.parametrize(
    ("shake", "port", "sentence"),
    long_after(
        3,
        [
            (LATENCY, "rst", "the reset 'rst' is active low"),
            (VALID, "en", "the input 'en' is tied to 1"),
            (VALID, "vi", "the input valid 'vi' is active low"),
            (LATENCY, "en", "the enable 'en' is active low"),
            (LATENCY, "vi", "the input valid 'vi' is active low"),
            (VALID, "rst", "the reset 'rst' is active low"),
            (LATENCY_LOW, "", "the enable 'en' is active high"),
        ],
    ),
)
def test_units_of_fixed_latency(tmp_path, shake, port, sentence):
    named(fixed(tmp_path, shake, port, **ICARUS), sentence)


def test_an_enable_that_is_active_low_passes(tmp_path):
    assert fixed(tmp_path, LATENCY_LOW, "en", **ICARUS).passed


@pytest.mark.parametrize(
    ("port", "name"), long_after(1, [("rst", "reset"), ("vi", "input valid"), ("en", "enable")])
)
def test_a_latency_that_is_measured_with_it_turned_over(tmp_path, port, name):
    """The unit fails, as it does if its latency is given."""
    result = fixed(tmp_path, MEASURED, port, **ICARUS)
    assert not result.passed and result.verdict.failed.any()
    (hint,) = (each for each in result.hints if each.startswith("the latency, 2 cycles, was measured"))
    assert f"the {name} '{port}' is active low" in hint


def test_a_wrong_result_is_no_polarity(tmp_path):
    """Nor is a unit tried for one that keeps its handshake."""
    wrong = PASSING.replace("acc_o <= sum[31:0];", "acc_o <= sum[31:0] | 32'd4;")
    result = found(tmp_path, wrong, DUT, **ICARUS)
    assert result.diagnosis.every_fault[0][1].slug == "result-bit-2-high"
    assert not any("active" in hint for hint in result.hints)


def test_a_unit_that_never_answers_whatever_is_turned_over(tmp_path):
    dead = PASSING.replace("else if (rdy_o) vld_o <= vld_i;", "else vld_o <= 1'b0;")
    result = found(tmp_path, dead, DUT, **ICARUS)
    assert result.hints[0].startswith("400 of 400 vectors were never answered, nor are they with its reset")
    assert result.diagnosis is None


def test_every_choice_is_another(tmp_path):
    """What is turned over is turned back by the same."""
    (tmp_path / "mac4.sv").write_text(PASSING, encoding="utf-8")
    (tmp_path / "mac4.yaml").write_bytes((OWN / "mac4.yaml").read_bytes())
    (tmp_path / "dut.yaml").write_text(DUT, encoding="utf-8")
    dut = load_dut(tmp_path / "dut.yaml")
    duts = [turned_over(dut, signals) for signals in choices(dut)]
    states = [(each.reset.active_low, each.handshake.active_low) for each in duts]
    assert len(set(states)) == len(states) == 8
    for signals in choices(dut):
        back = turned_over(turned_over(dut, signals), signals)
        assert (back.reset, back.handshake) == (dut.reset, dut.handshake)
