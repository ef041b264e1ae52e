# ruff: noqa: E501  (a case a line)
"""The generated wrapper in both simulators: every arrangement of operands, every kind of handshake, and what
does not fit.

The expected bits are written out by hand: a[i] is 0xaNaN with N = i, b[i] 0xbNbN, c 0xc0c1c2c3, so the
hexadecimal text of a port shows at a glance where each element lies.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from golden.errors import SpecError
from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.wrapper import write_wrapper
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.simulators import simulators

UNIT = """
unit: small
title: for tests
source: tests
shape: {m: 2, n: 2, k: %d}
formats: {a: %s, b: %s, c: f32, d: f32%s
steps:
  - multiply: {to: products}
  - special_values: {of: [products, c%s], nan: 0x7FFFFFFF}
%s
  - align: {of: [products, c], fraction_bits: 25, rounding: toward_zero}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: nearest_even, overflow: infinity, zero: positive}
"""
UNITS = {
    "f16": UNIT % (4, "f16", "f16", "}", "", ""),
    "e3m2": UNIT % (4, "e3m2", "f16", "}", "", ""),
    "scaled": UNIT
    % (
        16,
        "e4m3",
        "e4m3",
        ", scale_a: ue8m0, scale_b: ue8m0}\nscale_block: 8",
        ", scales",
        "  - scale: {of: products}",
    ),
}
A, B, C = 0xA3A3A2A2A1A1A0A0, 0xB3B3B2B2B1B1B0B0, 0xC0C1C2C3
"""The fields of an operand word: element 0 in the least significant bits."""


def write(folder: Path, name: str, rtl: str, yaml: str) -> Dut:
    """Writes <name>.sv, <name>.yaml and the units, and loads the description."""
    for unit, text in UNITS.items():
        (folder / f"{unit}.yaml").write_text(text)
    (folder / f"{name}.sv").write_text(rtl)
    head = f"top: {name}\nsources: {name}.sv\n" + (
        "" if "unit:" in yaml or "instruction:" in yaml else "unit: f16.yaml\n"
    )
    (folder / f"{name}.yaml").write_text(head + yaml)
    return load_dut(folder / f"{name}.yaml")


def renamed_wrapper(dut: Dut, folder: Path) -> Path:
    """The DUT's wrapper as module wrap_<top>, so that one bench can hold many."""
    path = write_wrapper(dut, folder / dut.top)
    text = path.read_text().replace("mmagold_dut", f"wrap_{dut.top}")
    target = folder / f"wrap_{dut.top}.sv"
    target.write_text(text)
    return target


def simulate(name: str, folder: Path, files: list[Path]) -> list[str]:
    """Compiles and runs the module `bench` without a warning in `wrap_*`;
    returns the lines that it printed."""
    sim = simulators.find(name)
    if name == "icarus":
        said = simulators.run(
            [sim.compiler, "-g2012", "-Wall", "-Wno-timescale", "-s", "bench", "-o", "bench.vvp", *files],
            folder=folder, env=sim.env, log=folder / "icarus.log",
        )  # fmt: skip
        command = [sim.runtime, "-n", "bench.vvp"]
    else:
        # --flatten: one C++ file instead of one for each of the many modules.
        flags = [
            "--binary",
            "--timing",
            "-Wall",
            "-Wno-fatal",
            "--flatten",
            "-CFLAGS",
            "-O0",
            "--Mdir",
            "obj",
            "--top-module",
            "bench",
        ]
        said = simulators.run(
            [sim.compiler, *flags, *files], folder=folder, env=sim.env, log=folder / "verilator.log"
        )
        command = [folder / "obj" / "Vbench"]
    assert [line for line in said.splitlines() if "wrap_" in line and "arning" in line] == []
    return simulators.run(command, folder=folder, env=sim.env, log=folder / "run.log").splitlines()


# Where the elements lie -------------------------------------------------------------------------------------


@dataclass
class Case:
    """One arrangement: the DUT's port declarations, its `ports` section,
    and what each expression must show."""

    name: str
    declare: str
    ports: str
    expect: dict[str, str]
    drive: str = "assign d = 32'hd3d2d1d0;"
    more: str = ""
    word: str = field(default="{64'ha3a3a2a2a1a1a0a0, 64'hb3b3b2b2b1b1b0b0, 32'hc0c1c2c3}")
    result: str = "d3d2d1d0"

    @property
    def rtl(self) -> str:
        return f"module {self.name} ({self.declare});\n    {self.drive}\nendmodule\n"

    @property
    def yaml(self) -> str:
        return f"handshake: {{kind: combinational}}\nports: {{{self.ports}}}\n{self.more}"


BCD = "input wire [63:0] b, input wire [31:0] c, output wire [31:0] d"
REST = "b: b, c: c, d: d"


def only_a(name: str, declare: str, ports: str, *expect: str) -> Case:
    """A case in which only a's arrangement is of interest; `expect` gives the entries of p (or p alone)."""
    names = ["p"] if len(expect) == 1 else [f"p[{i}]" for i in range(len(expect))]
    return Case(name, f"{declare}, {BCD}", f"a: {ports}, {REST}", dict(zip(names, expect, strict=True)))


CASES = [
    Case("plain", f"input wire [63:0] a, {BCD}", f"a: a, {REST}", {"a": f"{A:x}", "b": f"{B:x}", "c": f"{C:x}"}),
    only_a("descending", "input wire [63:0] p", "{port: p, order: descending}", "a0a0a1a1a2a2a3a3"),
    only_a("ascending_range", "input wire [0:63] p", "p", "a3a3a2a2a1a1a0a0"),
    only_a("offset", "input wire [79:0] p", "{port: p, lsb: 8, partial: true}", "00a3a3a2a2a1a1a0a000"),
    Case(
        "tied_in_part", f"input wire [79:0] p, {BCD}", f"a: {{port: p, lsb: 8, partial: true}}, {REST}",
        {"p": "c3a3a3a2a2a1a1a0a05a"}, more="constants: {p: 0xc300000000000000005a}\n",
    ),
    only_a("extended", "input wire [127:0] p", "{port: p, stride: 32, partial: true, unused: sign}", "ffffa3a3ffffa2a2ffffa1a1ffffa0a0"),
    only_a("gaps", "input wire [127:0] p", "{port: p, stride: 32}", "0000a3a30000a2a20000a1a10000a0a0"),
    only_a("words", "input wire [79:0] p", "{port: p, word: {bits: 40, elements: 2}}", "00a3a3a2a200a1a1a0a0"),
    only_a("in_word", "input wire [63:0] p", "{port: p, word: {elements: 2, order: descending}}", "a2a2a3a3a0a0a1a1"),
    only_a("words_down", "input wire [63:0] p", "{port: p, order: descending, word: {elements: 2}}", "a1a1a0a0a3a3a2a2"),
    only_a("word_gaps", "input wire [79:0] p", "{port: p, word: {elements: 2, stride: 20}}", "0a3a30a2a20a1a10a0a0"),
    only_a("far_words", "input wire [127:0] p", "{port: p, stride: 64, word: {elements: 2}}", "00000000a3a3a2a200000000a1a1a0a0"),
    only_a("unpacked", "input wire [15:0] p [0:3]", "{port: p, array: unpacked}", "a0a0", "a1a1", "a2a2", "a3a3"),
    only_a("unpacked_size", "input wire [15:0] p [4]", "{port: p, array: unpacked}", "a0a0", "a1a1", "a2a2", "a3a3"),
    only_a("unpacked_down", "input wire [15:0] p [3:0]", "{port: p, array: unpacked}", "a0a0", "a1a1", "a2a2", "a3a3"),
    only_a(
        "unpacked_order", "input wire [15:0] p [3:0]", "{port: p, array: unpacked, order: descending}",
        "a3a3", "a2a2", "a1a1", "a0a0",
    ),
    only_a(
        "unpacked_words", "input wire [31:0] p [0:1]", "{port: p, array: unpacked, word: {elements: 2}}", "a1a1a0a0", "a3a3a2a2",
    ),
    only_a(
        "unpacked_part", "input wire [23:0] p [0:5]", "{port: p, array: unpacked, first: 1, lsb: 4, "
                                                      "partial: true}",
        "000000", "0a0a00", "0a1a10", "0a2a20", "0a3a30", "000000",
    ),
    Case(
        "unpacked_from_1", f"input wire [15:0] p [1:4], {BCD}", f"a: {{port: p, array: unpacked}}, {REST}",
        {"p[1]": "a0a0", "p[4]": "a3a3"},
    ),
    only_a("packed_down", "input wire [3:0][15:0] p", "{port: p, array: packed}", "a3a3a2a2a1a1a0a0"),
    only_a("packed_up", "input wire [0:3][15:0] p", "{port: p, array: packed}", "a0a0a1a1a2a2a3a3"),
    only_a("packed_words", "input wire [0:1][1:0][15:0] p", "{port: p, array: packed, word: {elements: 2}}", "a1a1a0a0a3a3a2a2"),
    Case(
        "one_port_each", f"input wire [15:0] a0, a1, a2, a3, {BCD}", f"a: [a0, a1, a2, a3], {REST}",
        {"a0": "a0a0", "a1": "a1a1", "a2": "a2a2", "a3": "a3a3"},
    ),
    Case(
        "listed_words", f"input wire [31:0] lo, hi, {BCD}",
        f"a: {{port: [lo, hi], order: descending, word: {{elements: 2}}}}, {REST}", {"lo": "a3a3a2a2", "hi": "a1a1a0a0"},
    ),
    Case(
        "interleaved", "input wire [127:0] ab, input wire [31:0] c, output wire [31:0] d",
        "a: {port: ab, stride: 32}, b: {port: ab, lsb: 16, stride: 32}, c: c, d: d", {"ab": "b3b3a3a3b2b2a2a2b1b1a1a1b0b0a0a0"},
    ),
    Case(
        "bus", "input wire [159:0] abc, output wire [31:0] d", "a: {port: abc, lsb: 96}, b: {port: abc, "
                                                               "lsb: 32}, c: abc, d: d",
        {"abc": f"{A:x}{B:x}{C:x}"},
    ),
    Case(
        "shared_entries", "input wire [31:0] p [0:3], input wire [31:0] c, output wire [31:0] d",
        "a: {port: p, array: unpacked}, b: {port: p, array: unpacked, lsb: 16}, c: c, d: d",
        {"p[0]": "b0b0a0a0", "p[3]": "b3b3a3a3"},
    ),
    Case(
        "result_part", "input wire [63:0] a, b, input wire [31:0] c, output wire [39:0] d",
        "a: a, b: b, c: c, d: {port: d, lsb: 4, partial: true}", {}, "assign d = 40'h1122334455;", result="12233445",
    ),
    Case(
        "constants", f"input wire [63:0] a, {BCD}, input wire [2:0] mode, input wire mask, output wire busy, "
        "input wire [7:0] bias [0:1]", f"a: a, {REST}",
        {"mode": "5", "mask": "1", "bias[0]": "5a", "bias[1]": "5a"}, "assign d = 32'hd3d2d1d0, busy = 1'b1;",
        more="constants: {mode: 0b101, mask: 1, bias: 0x5a}\n",
    ),
    Case(
        "six_bits", f"input wire [23:0] p, {BCD}", f"a: p, {REST}", {"p": f"{0b000100_000011_000010_000001:06x}"},
        more="unit: e3m2.yaml\n", word="{6'd4, 6'd3, 6'd2, 6'd1, 64'hb3b3b2b2b1b1b0b0, 32'hc0c1c2c3}",
    ),
    Case(
        "six_in_bytes", f"input wire [31:0] p, {BCD}", f"a: {{port: p, stride: 8}}, {REST}", {"p": "04030201"},
        more="unit: e3m2.yaml\n", word="{6'd4, 6'd3, 6'd2, 6'd1, 64'hb3b3b2b2b1b1b0b0, 32'hc0c1c2c3}",
    ),
    # Matrices. Row by row b is 00 01 / 10 11 / 20 21 / 30 31 (row, column); column by column 00 10 20 30,
    # then 01 11 21 31.
    Case(
        "tile", "input wire [127:0] a, b, c, output wire [31:0] d [0:3]",
        "a: a, b: {port: b, major: column}, c: {port: c, major: column}, d: {port: d, array: unpacked, "
        "major: column}",
        {
            "a": "a7a7a6a6a5a5a4a4a3a3a2a2a1a1a0a0", "b": "b031b021b011b001b030b020b010b000",
            "c": "c0000011c0000001c0000010c0000000",
        },
        "assign d[0] = 32'hd0000000, d[1] = 32'hd0000010, d[2] = 32'hd0000001, d[3] = 32'hd0000011;", "level: tile\n",
        "{128'ha7a7a6a6a5a5a4a4a3a3a2a2a1a1a0a0, 128'hb031b030b021b020b011b010b001b000, "
        "128'hc0000011c0000010c0000001c0000000}",
        "d0000011d0000010d0000001d0000000",
    ),
    # Four products of 2:4 sparse data with scales: fields narrower than a byte, and three more operands.
    Case(
        "all_operands", "input wire [127:0] a, b, input wire [31:0] c, input wire [15:0] sa, sb, output "
                        "wire [31:0] d",
        "a: a, b: b, c: c, d: d, scale_a: {port: sa, order: descending}, scale_b: sb", {"sa": "e0e1", "sb": "f1f0"},
        more="unit: scaled.yaml\n",
        word="{128'd0, 128'd0, 32'd0, 16'he1e0, 16'hf1f0}",
    ),
    Case(
        "sparse", "input wire [127:0] a, input wire [255:0] b, input wire [31:0] c, input wire [15:0] e, "
                  "output wire [31:0] d",
        "a: a, b: b, c: c, d: d, metadata: {port: e, order: descending}", {"e": "49ed"},
        more="instruction: 'hopper:mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32'\n",
        word="{128'd0, 256'd0, 32'd0, 16'hde94}",
    ),
]  # fmt: skip


def echo_bench(cases: list[Case], duts: list[Dut]) -> str:
    """Instantiates every wrapper and prints `<case> <expression> <hex>` for everything that is expected."""
    declare, show = [], []
    for case, dut in zip(cases, duts, strict=True):
        name = case.name
        declare.append(f"wire [{dut.layout.operand_width - 1}:0] i_{name} = {case.word};")
        declare.append(f"wire [{dut.layout.result_width - 1}:0] o_{name};")
        pins = (
            f".in_data(i_{name}), .out_data(o_{name}), .clk(1'b0), .rst_n(1'b1), .out_ready(1'b1), "
            ".in_valid(1'b1)"
        )
        declare.append(f"wrap_{name} w_{name} ({pins}, .in_ready(), .out_valid());")
        show += [f'$display("{name} {text} %h", w_{name}.u_dut.{text});' for text in case.expect]
        show.append(f'$display("{name} result %h", o_{name});')
    return (
        "module bench;\n"
        + "\n".join(declare)
        + "\ninitial begin\n#5;\n"
        + "\n".join(show)
        + "\n$finish;\nend\nendmodule\n"
    )


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """All cases generated into one folder, with the files in compile order."""
    folder = tmp_path_factory.mktemp("echo")
    duts = [write(folder, case.name, case.rtl, case.yaml) for case in CASES]
    files = [folder / f"{case.name}.sv" for case in CASES] + [renamed_wrapper(dut, folder) for dut in duts]
    (folder / "bench.sv").write_text(echo_bench(CASES, duts))
    return folder, [*files, folder / "bench.sv"]


@pytest.mark.parametrize("simulator", ["icarus", pytest.param("verilator", marks=pytest.mark.long)])
def test_every_element_reaches_its_place(simulator: str, echo: tuple[Path, list[Path]]) -> None:
    printed = simulate(simulator, *echo)
    wanted = [
        f"{case.name} {text} {value}"
        for case in CASES
        for text, value in (case.expect | {"result": case.result}).items()
    ]
    assert [line for line in printed if line.split(" ")[0] in {case.name for case in CASES}] == wanted


# Handshakes -------------------------------------------------------------------------------------------------

PORTS = "ports: {a: a, b: b, c: c, d: d}\n"
CLOCKED = "clock: clk\nreset: {port: rst_n, active: low}\n" + PORTS
OPERANDS = "input wire [63:0] a, b, input wire [31:0] c, output wire [31:0] d"
CLOCK = "input wire clk, input wire rst_n"
PIPE = "reg [31:0] s1, s2, s3; assign d = s3;"
STEP = "begin s1 <= c + a[31:0]; s2 <= s1; s3 <= s2; end"


@dataclass
class Flow:
    """A DUT that computes c + a[1:0], and what is known about its timing by construction."""

    name: str
    rtl: str
    yaml: str
    stall_output: bool
    latency: int | None = None
    lag: int = 0
    gap: int = 1


def flow(name: str, declare: str, body: str, yaml: str, **known: object) -> Flow:
    rtl = f"module {name} ({declare}, {OPERANDS});\n    {body}\nendmodule\n"
    return Flow(name, rtl, yaml, **known)  # type: ignore[arg-type]


HALF_BUFFER = """
    reg full; reg [31:0] sum; assign d = sum, out_valid = full, in_ready = !full || out_ready;
    always @(posedge clk) if (!rst_n) full <= 0; else if (in_ready) begin full <= in_valid; sum <= c + a[31:0]; end"""
ITERATIVE = """
    reg [1:0] busy; reg [31:0] sum; assign d = sum, out_valid = busy == 1, in_ready = busy == 0;
    always @(posedge clk)
        if (!rst_n) busy <= 0;
        else if (busy != 0) busy <= busy - 1;
        else if (in_valid) begin busy <= 3; sum <= c + a[31:0]; end"""
VALID_PIPE = """
    reg [31:0] s1, s2; reg v1, v2; assign d = s2, out_valid = v2;
    always @(posedge clk or posedge reset)
        if (reset) begin v1 <= 0; v2 <= 0; end else begin s1 <= c + a[31:0]; v1 <= in_valid; s2 <= s1; v2 <= v1; end"""
FRAGILE = """
    // Operands that come while it works spoil the sum.
    reg [1:0] busy; reg [31:0] sum; assign d = sum;
    always @(posedge clk)
        if (!rst_n) busy <= 0;
        else %sif (busy != 0) begin busy <= busy - 1; if (start) sum <= 32'hbad; end
        else if (start) begin busy <= 3; sum <= c + a[31:0]; end"""
FLOWS = [
    flow(
        "half_buffer", f"{CLOCK}, input wire in_valid, out_ready, output wire in_ready, out_valid", HALF_BUFFER,
        CLOCKED + "handshake: {kind: valid_ready, input: {valid: in_valid, ready: in_ready},"
        " output: {valid: out_valid, ready: out_ready}}\n", stall_output=True, latency=1,
    ),
    flow(
        "iterative", f"{CLOCK}, input wire in_valid, output wire in_ready, out_valid", ITERATIVE,
        CLOCKED + "handshake: {kind: valid_ready, input: {valid: in_valid, ready: in_ready}, output: "
                  "{valid: out_valid}}\n",
        stall_output=False, latency=3, gap=4,
    ),
    flow(
        "valid_pipe", "input wire clk, input wire reset, input wire in_valid, output wire out_valid", VALID_PIPE,
        "clock: clk\nreset: {port: reset, active: high, synchronous: false}\n" + PORTS +
        "handshake: {kind: valid, input: {valid: in_valid}, output: {valid: out_valid}}\n",
        stall_output=False, latency=2,
    ),
    flow(
        "valid_every_5", "input wire clk, input wire reset, input wire in_valid, output wire out_valid", VALID_PIPE,
        "clock: clk\nreset: {port: reset, active: high}\n" + PORTS +
        "handshake: {kind: valid, input: {valid: in_valid}, output: {valid: out_valid}, interval: 5}\n",
        stall_output=False, latency=2, gap=5,
    ),
    flow(
        "free_pipe", "input wire clk", f"{PIPE} always @(posedge clk) {STEP}",
        "clock: clk\nhandshake: {kind: latency, latency: 3}\n" + PORTS, stall_output=False, latency=3,
    ),
    flow(
        "one_register", "input wire clk", "reg [31:0] s; assign d = s; always @(posedge clk) s <= c + "
                                          "a[31:0];",
        "clock: clk\nhandshake: {kind: latency, latency: 1}\n" + PORTS, stall_output=False, latency=1,
    ),
    flow(
        "measured", "input wire clk", f"{PIPE} always @(posedge clk) {STEP}",
        "clock: clk\nhandshake: {kind: latency, latency: measure}\n" + PORTS, stall_output=False,
        latency=0, lag=3,
    ),
    flow(
        "enabled_pipe", "input wire clk, input wire en", f"{PIPE} always @(posedge clk) if (en) {STEP}",
        "clock: clk\nhandshake: {kind: latency, latency: 3, enable: en}\n" + PORTS, stall_output=True,
        latency=3,
    ),
    flow(
        "enabled_through", "input wire clk, input wire en", "assign d = c + a[31:0];",
        "clock: clk\nhandshake: {kind: latency, latency: measure, enable: en}\n" + PORTS, stall_output=True,
        latency=0,
    ),
    flow(
        "every_4", f"{CLOCK}, input wire start", FRAGILE % "", CLOCKED +
        "handshake: {kind: latency, latency: 2, interval: 4, input: {valid: start}}\n", stall_output=False,
        latency=2, gap=4,
    ),
    flow(
        "enabled_every_4", f"{CLOCK}, input wire start, en", FRAGILE % "if (en) ", CLOCKED +
        "handshake: {kind: latency, latency: 4, interval: 4, input: {valid: start}, enable: en}\n", stall_output=True, latency=4, gap=4,
    ),
    Flow(
        "combinational", f"module combinational ({OPERANDS}); assign d = c + a[31:0]; endmodule\n",
        "handshake: {kind: combinational}\n" + PORTS, stall_output=True, latency=0,
    ),
]  # fmt: skip

DRIVER = """
module drive_@NAME@;
    // Drives at the falling edge, looks at the rising edge. Even phases run at full speed, odd ones with random pauses.
    reg clk = 0, rst_n = 0, in_valid = 0, out_ready = 1;
    wire in_ready, out_valid;
    wire [31:0] out_data;
    integer sent = 0, got = 0, bad = 0, cycle = 0, gap = 1000, last = -1000, delay = -1, first = -1;
    reg [31:0] dice = 32'h1234567;
    wire steady = @LAG@ != 0;
    wire slow = got >= 40 && !steady;
    wire [31:0] operand = sent;
    wire [159:0] in_data = {32'd0, operand * 32'd3, 64'd0, operand};
    wrap_@NAME@ w (.*);
    always #5 clk = !clk;
    always @(negedge clk) begin
        dice <= {dice[30:0], dice[31] ^ dice[21] ^ dice[1] ^ dice[0]};
        rst_n <= !(cycle < 3 || ((cycle == 300 || cycle == 301) && !steady));
        in_valid <= cycle > 5 && sent < 150 && (steady || (cycle != 299 && cycle != 300)) && (!slow || dice[3]);
        out_ready <= !(@STALL@ && slow && dice[7]);
    end
    always @(posedge clk) begin
        cycle <= cycle + 1;
        if (rst_n && in_valid && in_ready) begin
            sent <= sent + 1;
            if (first < 0) first <= cycle;
            if (cycle - last < gap) gap <= cycle - last;
            last <= cycle;
        end
        if (rst_n && out_valid && out_ready) begin
            got <= got + 1;
            if (delay < 0) delay <= cycle - (first < 0 ? cycle : first);
            if (got >= @LAG@ && out_data !== (got - @LAG@) * 4) bad <= bad + 1;
        end
        // What was in flight is lost: send it again.
        if (!rst_n) sent <= got;
        if (cycle == 1400) $display("@NAME@ got %0d bad %0d delay %0d gap %0d", got, bad, delay, gap);
    end
endmodule
"""


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """All handshakes generated into one folder, with the files in compile order."""
    folder = tmp_path_factory.mktemp("flows")
    files, bench = [], ""
    for case in FLOWS:
        dut = write(folder, case.name, case.rtl, case.yaml)
        assert dut.can_stall_output == case.stall_output, case.name
        dut = dut.with_latency(0) if dut.handshake.measured else dut
        files += [folder / f"{case.name}.sv", renamed_wrapper(dut, folder)]
        words = {"@NAME@": case.name, "@STALL@": f"1'b{case.stall_output:d}", "@LAG@": str(case.lag)}
        text = DRIVER
        for word, value in words.items():
            text = text.replace(word, value)
        bench += text
    instances = "\n".join(f"    drive_{case.name} d_{case.name} ();" for case in FLOWS)
    (folder / "bench.sv").write_text(
        f"{bench}\nmodule bench;\n{instances}\n    initial #20000 $finish;\nendmodule\n"
    )
    return folder, [*files, folder / "bench.sv"]


@pytest.mark.parametrize("simulator", ["icarus", pytest.param("verilator", marks=pytest.mark.long)])
def test_every_handshake_loses_and_invents_nothing(simulator: str, flows: tuple[Path, list[Path]]) -> None:
    """150 vectors each, at full speed, then with pauses on both sides, with a reset in mid-flight: all
    come back in order."""
    printed = set(simulate(simulator, *flows))
    wanted = {f"{case.name} got 150 bad 0 delay {case.latency} gap {case.gap}" for case in FLOWS}
    assert wanted - printed == set(), sorted(printed)


# What does not fit ------------------------------------------------------------------------------------------

FITTING = "input wire [63:0] a, b, input wire [31:0] c, output wire [31:0] d"
MISFITS = [
    ("input wire [47:0] a, " + BCD, "a: a", "port 'a' has 48 bits, operand a of f16.yaml needs 4 x 16 = 64"),
    ("input wire [63:0] aa, " + BCD, "a: a", "misfit has no port 'a'; nearest: aa"),
    ("output wire [63:0] a, " + BCD, "a: a", "port 'a' of misfit is an output, expected an input"),
    ("input wire [127:0] a, " + BCD, "a: a", "64 of the 128 bits of port 'a'; if that is meant, add "
                                             "'partial: true'"),
    ("input wire [63:0] a, " + BCD, "a: {port: a, stride: 24}", "operand a of f16.yaml as arranged here "
                                                                "needs 88"),
    ("input wire [15:0] a [0:3], " + BCD, "a: a", "port 'a' is an unpacked array; write {port: a, array: "
                                                  "unpacked}"),
    ("input wire [63:0] a, " + BCD, "a: {port: a, array: unpacked}", "port 'a' is a vector of 64 bits, not "
                                                                     "an unpacked array"),
    ("input wire [63:0] a, " + BCD, "a: {port: a, array: packed}", "not a packed array of two dimensions"),
    ("input wire [15:0] a [0:2], " + BCD, "a: {port: a, array: unpacked}", "'a' has 3 entries, operand a of "
                                                                           "f16.yaml as"),
    ("input wire [7:0] a [0:3], " + BCD, "a: {port: a, array: unpacked}", "each entry of port 'a' has 8 bits"),
    ("input wire [15:0] a [0:4], " + BCD, "a: {port: a, array: unpacked}", "a takes only 4 of the 5 entries "
                                                                           "of port 'a'"),
    ("input wire [7:0] a [0:1][0:3], " + BCD, "a: {port: a, array: unpacked}", "has 2 unpacked dimensions, "
                                                                               "expected at most one"),
    ("input real a, " + BCD, "a: a", "port 'a' of misfit is of type real, expected bits"),
    ("input wire [79:0] a, " + BCD, "a: {port: a, partial: true}; a: 1", "the constant 0x1 of port 'a' sets bits in 15:0"),
    ("input wire [63:0] a, input wire m, s, " + BCD, "a: a", "nothing drives the inputs m, s of misfit"),
    ("input wire [63:0] a, input wire [1:0] mode, " + BCD, "a: a; mode: 4", "port 'mode' has 2 bits, too "
                                                                            "few for the constant 4"),
]  # fmt: skip


@pytest.mark.parametrize(("declare", "entry", "said"), MISFITS)
def test_misfits(tmp_path: Path, declare: str, entry: str, said: str) -> None:
    entry, _, constant = entry.partition("; ")
    tie = f"constants: {{{constant}}}\n" if constant else ""
    yaml = f"handshake: {{kind: combinational}}\nports: {{{entry}, {REST}}}\n{tie}"
    dut = write(tmp_path, "misfit", f"module misfit({declare}); assign d = c; endmodule\n", yaml)
    with pytest.raises(SpecError) as caught:
        write_wrapper(dut, tmp_path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/misfit.yaml:")


def test_wide_control_port(tmp_path: Path) -> None:
    yaml = "handshake: {kind: latency, latency: 1}\nclock: clk\n" + PORTS
    dut = write(
        tmp_path, "misfit", f"module misfit(input wire [1:0] clk, {FITTING}); assign d = c; endmodule\n", yaml
    )
    with pytest.raises(SpecError, match=r"misfit.yaml:5: port 'clk' has 2 bits, expected 1 bit"):
        write_wrapper(dut, tmp_path)


def test_rtl_that_does_not_elaborate(tmp_path: Path) -> None:
    """The simulator's own message, once, with the designer's file and line."""
    rtl = f"module broken({FITTING});\n    assign d = c +;\nendmodule\n"
    dut = write(tmp_path, "broken", rtl, "handshake: {kind: combinational}\n" + PORTS)
    with pytest.raises(ElaborationError) as caught:
        write_wrapper(dut, tmp_path)
    assert str(caught.value).count("broken.sv:2:") == 1
    assert "syntax error" in str(caught.value) and "\n" not in str(caught.value)


def test_parameters_defines_and_includes_reach_the_design(tmp_path: Path) -> None:
    """Widths are those after elaboration: K comes from the file, the width of c from an include,
    d from a define."""
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "w.svh").write_text("`define CW 32\n")
    rtl = """`include "w.svh"
module tuned #(parameter int K = 1, parameter NAME = "x") (
    input wire [K*16-1:0] a, b, input wire [`CW-1:0] c, output wire [`DW-1:0] d);
    assign d = c; if (NAME != "long name") wrong_name u ();
endmodule
"""
    more = (
        'include: inc\ndefines: {DW: 32}\nparameters: {K: 4, NAME: "long name"}\nhandshake: {kind: '
        "combinational}\n"
    )
    text = write_wrapper(write(tmp_path, "tuned", rtl, more + PORTS), tmp_path).read_text()
    assert 'tuned #(.K (4), .NAME ("long name")) u_dut (' in text


STRANGE = [
    'x"), .BIAS(1), .OTHER("y',
    "back\\slash\\",
    "two\nlines\t",
    "%d `include $finish // */",
    "Überlauf 溢出",
]


VALUES: list[int | str] = [*STRANGE, 1 << 40, -(1 << 40), -1, (1 << 31), "9" * 20]


@pytest.mark.parametrize("sim", ["icarus", pytest.param("verilator", marks=pytest.mark.long)])
def test_parameters_arrive_as_they_are(tmp_path: Path, sim: str) -> None:
    """Whatever the text holds, it is the value of one parameter; numbers keep all their bits."""
    declared, wrong = ["parameter BIAS = 0", "parameter OTHER = 0"], ["BIAS != 0", "OTHER != 0"]
    for number, value in enumerate(VALUES):
        name = f"VALUE{number}"
        if isinstance(value, str):
            bits, given, size = 8 * len(value.encode()), value.encode(), ""
            compared = f"{name} === {bits}'h{given.hex()}"
        else:
            bits, given, size = 48, value.to_bytes(6, "big", signed=True), "signed [47:0] "
            compared = f"{name} == $signed({bits}'h{given.hex()})"
        declared.append(f"parameter {size}{name} = 0")
        wrong += [f"$bits({name}) != {bits}", f"!({compared})"]
    rtl = f"""module strange #({", ".join(declared)}) ({FITTING});
    assign d = {{{32 - len(wrong)}'d0, {", ".join(wrong)}}};
endmodule
"""
    text = json.dumps({f"VALUE{number}": value for number, value in enumerate(VALUES)})
    dut = write(tmp_path, "strange", rtl, f"parameters: {text}\nhandshake: {{kind: combinational}}\n" + PORTS)
    vectors = default_set(dut.instruction, 2)
    actual = engines.run("selfcheck", Job(dut, tmp_path / "build", vectors, sim)).actual
    assert [f"{code:032b}" for code in actual.tolist()] == ["0" * 32] * 2


def test_names_of_files_stay_in_their_comment(tmp_path: Path) -> None:
    """Neither a line break nor a backslash at the end of a comment lets the text around it become code."""
    dut = write(
        tmp_path,
        "named",
        f"module named({FITTING}); assign d = c; endmodule\n",
        "handshake: {kind: combinational}\n" + PORTS,
    )
    strange = tmp_path / "x\nmodule evil; endmodule\\"
    (tmp_path / "named.yaml").rename(strange)
    dut = dataclasses.replace(dut, file=strange, instruction_name="a\nb\\")
    lines = write_wrapper(dut, tmp_path / "out").read_text().splitlines()
    assert not [line for line in lines if line.startswith(("module evil", "b"))]
    assert not [line for line in lines if line.startswith("//") and line.endswith("\\")]


def test_unknown_parameter(tmp_path: Path) -> None:
    rtl = f"module misfit #(parameter WIDTH = 1) ({FITTING}); localparam WITHD = 2; assign d = c; endmodule\n"
    dut = write(tmp_path, "misfit", rtl, "parameters: {WITHD: 3}\nhandshake: {kind: combinational}\n" + PORTS)
    with pytest.raises(SpecError, match=r"misfit\.yaml:4: misfit has no parameter 'WITHD'; nearest: WIDTH"):
        write_wrapper(dut, tmp_path)


def test_unchanged_wrapper_keeps_its_time(tmp_path: Path) -> None:
    dut = write(
        tmp_path,
        "same",
        f"module same({FITTING}); assign d = c; endmodule\n",
        "handshake: {kind: combinational}\n" + PORTS,
    )
    before = write_wrapper(dut, tmp_path / "out").stat().st_mtime_ns
    assert write_wrapper(dut, tmp_path / "out").stat().st_mtime_ns == before


@pytest.fixture
def no_verilator(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> simulators.Simulator:
        raise SimulatorMissing("Verilator was not found")

    monkeypatch.setattr(simulators, "verilator", missing)


@pytest.mark.usefixtures("no_verilator")
def test_icarus_alone(tmp_path: Path) -> None:
    """Without Verilator the same wrapper comes out, but that ranges of packed arrays are refused instead
    of guessed."""
    rtl = f"module alone #(parameter K = 1) (input wire [15:0] a [0:K-1], {BCD}); sub u (.c, .d); endmodule\n"
    rtl += "module sub(input wire [31:0] c, output wire [31:0] d); assign d = c; endmodule\n"
    yaml = (
        f"handshake: {{kind: combinational}}\nparameters: {{K: 4}}\nports: {{a: {{port: a, array: "
        f"unpacked}}, {REST}}}\n"
    )
    text = write_wrapper(write(tmp_path, "alone", rtl, yaml), tmp_path).read_text()
    assert "assign p_a[3][15:0] = in_data[159:144];  // a[3]" in text and "u_dut" in text
    rtl = f"module alone(input wire [0:3][15:0] a, {BCD}); assign d = c; endmodule\n"
    yaml = f"handshake: {{kind: combinational}}\nports: {{a: {{port: a, array: packed}}, {REST}}}\n"
    with pytest.raises(SpecError, match="only Verilator reports them"):
        write_wrapper(write(tmp_path, "alone", rtl, yaml), tmp_path)


@pytest.mark.usefixtures("no_verilator")
def test_no_simulator_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulators, "icarus", simulators.verilator)
    dut = write(
        tmp_path,
        "none",
        f"module none({FITTING}); assign d = c; endmodule\n",
        "handshake: {kind: combinational}\n" + PORTS,
    )
    with pytest.raises(SimulatorMissing, match="Verilator was not found"):
        write_wrapper(dut, tmp_path)
