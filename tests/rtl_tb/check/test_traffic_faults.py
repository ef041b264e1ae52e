"""Units that are wrong under a condition of the traffic, of time or of their state, and right else: each is
found by the vectors and the traffic of a default check, with a quarter of its vectors, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_traffic import DATA, EFFECTS, TRAFFIC, Fault, planted, switch
from long_run import long_after

import rtl_tb
from golden import paths
from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.check.accumulate import try_long_accumulation
from rtl_tb.check.options import DEFAULT_COUNTS, DEFAULT_TRAFFIC, Options, affordable
from rtl_tb.check.options import TRAFFIC as BUSY
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job
from rtl_tb.runs.verdict import Verdict, judge

RTL = Path(rtl_tb.__file__).parent / "rtl"
FEW = 30_000
COUNTS = [("fast", FEW), *((engine, DEFAULT_COUNTS[engine]) for engine in ("selfcheck", "cocotb"))]


def under_traffic(dut: Dut, engine: str, vectors: VectorSet, folder: Path) -> Verdict:
    """The run of a default check that has traffic."""
    usual = BUSY if engine == "fast" else DEFAULT_TRAFFIC[engine]
    traffic = affordable(Options().traffic(usual, len(vectors)), vectors)
    return judge(
        vectors, engines.run(engine, Job(dut, folder / "build", vectors, traffic=traffic)), dut.compare
    )


FAULTS = [
    Fault(TRAFFIC["after exactly 3 idle cycles"], DATA["saturating or special"], EFFECTS["low bit"]),
    Fault(TRAFFIC["first after a reset"], DATA["any"], EFFECTS["sign"]),
    Fault(TRAFFIC["first after a reset"], DATA["saturating or special"], EFFECTS["sign"]),
    Fault(TRAFFIC["first after a reset in flight"], DATA["any"], EFFECTS["low bit"]),
    Fault(TRAFFIC["first after a reset with nothing in flight"], DATA["any"], EFFECTS["low bit"]),
    Fault(TRAFFIC["b same"], DATA["any"], EFFECTS["old a"]),
    Fault(TRAFFIC["b same alone"], DATA["any"], EFFECTS["old a"]),
    Fault(TRAFFIC["b and c same"], DATA["any"], EFFECTS["old a"]),
    Fault(TRAFFIC["a same"], DATA["saturating or special"], EFFECTS["low bit"]),
    Fault(TRAFFIC["a as two before"], DATA["any"], EFFECTS["low bit"]),
    Fault(TRAFFIC["the result before waited 8 cycles or more"], DATA["zero"], EFFECTS["sign"]),
    Fault(TRAFFIC["after 255 idle cycles or more"], DATA["any"], EFFECTS["old a"]),
    Fault(TRAFFIC["the 100th result that waits since a reset, and later"], DATA["any"], EFFECTS["low bit"]),
    Fault(TRAFFIC["each of the last 12 results waited"], DATA["any"], EFFECTS["low bit"]),
    Fault(TRAFFIC["b same for 200"], DATA["any"], EFFECTS["low bit"]),
    Fault(TRAFFIC["b same but for one bit"], DATA["any"], EFFECTS["old b"]),
]


@pytest.mark.parametrize("engine", long_after(1, [engine for engine, _ in COUNTS]))
def test_conditions_of_traffic_and_of_data_together(tmp_path: Path, engine: str) -> None:
    dut = planted(tmp_path / "shell", "integer_s8_saturate", dict(enumerate(FAULTS, 1)))
    vectors = default_set(dut.instruction, dict(COUNTS)[engine], 1)
    passed = []
    for number in range(len(FAULTS) + 1):
        switch(tmp_path / "shell", number)
        if under_traffic(dut, engine, vectors, tmp_path).passed:
            passed.append(number)
    assert passed == [0], "the right unit alone"


# Units that keep their accumulator -------------------------------------------------------------------------

COUNTED = """logic [7:0] most[0:0];
    initial $readmemh("@FILE@", most);
    logic [9:0] sums;
    always_ff @(posedge clk)
        if (!rst_n) sums <= 0;
        else if (take) sums <= clear ? 10'd1 : sums + 10'(sums != 10'h3ff);
    wire forgets = most[0] != 0 && sums == 10'(most[0]);
    assign in_ready ="""
ACCUMULATOR = """dut: accumulator
top: fda_accumulator
sources: [@SOURCES@, unit.sv]
unit: @UNIT@
clock: clk
reset: {port: rst_n, active: low}
handshake: {kind: valid_ready, input: {valid: in_valid, ready: in_ready}, output: {valid: out_valid, ready: out_ready}}
ports: {a: a, b: b, clear: clear, d: d}
"""  # noqa: E501
FORGETS = (47, 63, 127, 200)


@pytest.mark.parametrize("engine", long_after(1, [engine for engine, _ in COUNTS]))
def test_a_float_accumulator_that_forgets(tmp_path: Path, engine: str) -> None:
    """After so many additions since it was cleared."""
    text = (RTL / "fda_accumulator.sv").read_text()
    text = text.replace("clear ? '0 : held", "clear || forgets ? '0 : held")
    text = text.replace("assign in_ready =", COUNTED.replace("@FILE@", str(tmp_path / "most.hex")))
    (tmp_path / "unit.sv").write_text(text)
    steps = (
        "align_shift",
        "fp_decode",
        "fp_product",
        "fp_round",
        "fused_sum",
        "max_exponent",
        "product_array",
        "fda",
    )
    sources = ", ".join(str(RTL / f"{name}.sv") for name in steps)
    unit = paths.spec_folder() / "examples" / "accumulator.yaml"
    (tmp_path / "dut.yaml").write_text(ACCUMULATOR.replace("@SOURCES@", sources).replace("@UNIT@", str(unit)))
    dut = load_dut(tmp_path / "dut.yaml")
    vectors = default_set(dut.instruction, dict(COUNTS)[engine], 1)
    passed = []
    for most in (0, *FORGETS):
        (tmp_path / "most.hex").write_text(f"{most:02x}\n")
        if under_traffic(dut, engine, vectors, tmp_path).passed:
            passed.append(most)
    assert passed == [0], "the right unit alone"


INTEGER = """module sums (input clk, input rst_n, input in_valid, output in_ready,
    input [127:0] a, input [127:0] b, input clear, output reg out_valid, input out_ready, output [31:0] d);
    reg signed [31:0] held;
    assign d = held;
    assign in_ready = !out_valid || out_ready;
    wire signed [31:0] prior = clear ? 0 : held;
    reg signed [31:0] sum;
    integer k;
    always @* begin
        sum = prior;
        for (k = 0; k < 16; k = k + 1) sum = sum + 32'($signed(a[8*k+:8])) * 32'($signed(b[8*k+:8]));
    end
    always @(posedge clk)
        if (!rst_n) begin
            out_valid <= 0;
            held <= 0;
        end else if (in_ready) begin
            out_valid <= in_valid;
            if (in_valid) held <= @SUM@;
        end
endmodule
"""
INTEGER_UNIT = """unit: sums
title: 16 products of s8, kept in s32
shape: {k: 16}
formats: {a: s8, b: s8, d: s32}
accumulator: state
steps:
  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""


def kept(folder: Path, held: str) -> Dut:
    (folder / "unit.sv").write_text(INTEGER.replace("@SUM@", held))
    (folder / "unit.yaml").write_text(INTEGER_UNIT)
    text = ACCUMULATOR.replace("@SOURCES@, ", "").replace("@UNIT@", "unit.yaml")
    (folder / "dut.yaml").write_text(text.replace("top: fda_accumulator", "top: sums"))
    return load_dut(folder / "dut.yaml")


@pytest.mark.parametrize(
    ("held", "passes"),
    [
        ("sum", True),
        ("{{4{sum[27]}}, sum[27:0]}", False),  # 28 bits of 32
        pytest.param("{{8{sum[23]}}, sum[23:0]}", False, marks=pytest.mark.long),
        (
            "prior[22:0] == 23'h7fffff && sum[22:0] == 0 ? {sum[31:24], 24'd0} : sum",
            False,
        ),  # a carry into bit 23
        pytest.param(
            "prior == -32'sd4194304 && sum < prior ? sum + 4194304 : sum", False, marks=pytest.mark.long
        ),
    ],
)
def test_an_integer_accumulator_in_each_of_its_bits(tmp_path: Path, held: str, passes: bool) -> None:
    """By the usual vectors, or by the climbs to the ends: 2**31 is 8,192 of the largest dot products away."""
    dut = kept(tmp_path, held)
    vectors = default_set(dut.instruction, FEW, 1)
    job = Job(dut, tmp_path / "build", vectors)
    usual, tried = judge(vectors, engines.run("fast", job), dut.compare), try_long_accumulation(job)
    assert tried is not None and (usual.passed and tried[2].passed) == passes
