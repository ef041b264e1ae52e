"""Faults that take a condition of the traffic and one of the data together, planted around reference units.

A shell watches the ports of a right unit, and where both conditions hold it exchanges an operand or the
result. One build holds all faults: a file says which is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

import rtl_tb
from rtl_tb.dut.description import Dut, load_dut

DUTS = Path(rtl_tb.__file__).parent / "rtl" / "duts"


@dataclass(frozen=True)
class Fault:
    """Expressions of the shell: what holds when a vector is taken, what holds of its result, and what the
    fault does to it."""

    when: str
    of: str
    effect: str


TRAFFIC: dict[str, str] = {
    **{f"after exactly {n} idle cycles": f"gap == {n}" for n in (1, 2, 3, 4, 5, 8, 16, 33)},
    **{f"after {n} idle cycles or more": f"gap >= {n}" for n in (3, 9, 64, 255)},
    "first after a reset": "since == 0 && resets != 0",
    "second after a reset": "since == 1 && resets != 0",
    "first after a reset in flight": "since == 0 && lost",
    "first after a reset with nothing in flight": "since == 0 && resets != 0 && !lost",
    "offered at once after a reset": "since == 0 && resets != 0 && gap == 0",
    "a same": "a == pa && any",
    "b same": "b == pb && any",
    "c same": "c == pc && any",
    "a same alone": "a == pa && b != pb && c != pc && any",
    "b same alone": "b == pb && a != pa && c != pc && any",
    "b same but for one bit": "$onehot(b ^ pb) && any",
    "b and c same": "b == pb && c == pc && a != pa && any",
    "all same": "a == pa && b == pb && c == pc && any",
    "a as two before": "a == ppa && a != pa && any",
    "b same for four": "bruns >= 3 && any",
    "b same for 200": "bruns >= 199 && any",
    "taken while a result waits": "out_valid && !out_ready",
    "the result before waited 3 cycles": "waits == 3",
    "the result before waited 8 cycles or more": "waits >= 8",
    "each of the last 12 results waited": "waited == 12'hfff",
    "the 100th result that waits since a reset, and later": "stalls >= 100",
    "full speed for 20 cycles": "row >= 20",
    "b same after 3 idle cycles": "b == pb && any && gap == 3",
}
DATA: dict[str, str] = {
    "any": "1'b1",
    "saturating or special": "SPECIAL",
    "zero": "ZERO",
    "negative": "d0[31]",
    "c is zero": "mc",
    "first element of a is zero": "ma",
}
EFFECTS: dict[str, str] = {
    "old a": "a",
    "old b": "b",
    "old c": "c",
    "low bit": "d0 ^ 32'h1",
    "sign": "d0 ^ 32'h80000000",
    "result before": "pd",
    "zero": "32'h0",
}
SHELL = """// Faults around a right unit; FILE says which.
module shell #(parameter AW = 1, parameter BW = 1, parameter EW = 8) (
    input logic clk, input logic rst_n, input logic in_valid, output logic in_ready,
    input logic [AW-1:0] a, input logic [BW-1:0] b, input logic [31:0] c,
    output logic out_valid, input logic out_ready, output logic [31:0] d
);
    logic [7:0] chosen[0:0];
    initial $readmemh("@FILE@", chosen);
    wire [7:0] fault = chosen[0];
    logic [AW-1:0] pa, ppa, ua;
    logic [BW-1:0] pb, ub;
    logic [31:0] pc, uc, pd, d0;
    logic [15:0] gap, since, resets = 0, waiting, waits, stalls, row, bruns;
    logic any = 0, lost = 0, was = 1;
    logic [11:0] waited;
    logic [7:0] head, tail;
    logic [2:0] marks[0:255];
    logic when, of;
    wire take = in_valid && in_ready, leave = out_valid && out_ready;
    wire mc = marks[tail][1], ma = marks[tail][2];
    always_ff @(posedge clk) begin
        was <= rst_n;
        if (was && !rst_n) begin
            lost <= head != tail;
            if (since != 0 || any) resets <= resets + 1;
        end
        if (!rst_n) begin
            {gap, since, waiting, waits, stalls, row, waited, head, tail} <= 0;
        end else begin
            gap <= take ? 0 : in_valid ? gap : gap + 1;
            row <= !in_valid ? 0 : take ? row + 1 : row;
            if (take) begin
                since <= since + 1;
                head <= head + 1;
                marks[head] <= {a[EW-1:0] == 0, c == 0, when};
            end
            if (leave) begin
                tail <= tail + 1;
                pd <= d;
                waits <= waiting;
                waited <= {waited[10:0], waiting != 0};
            end
            waiting <= out_valid && !out_ready ? waiting + 1 : 0;
            stalls <= stalls + 16'(out_valid && !out_ready && waiting == 0);
        end
        if (rst_n && take) begin
            any <= 1;
            {pa, ppa, pb, pc} <= {a, pa, b, c};
            bruns <= b == pb ? bruns + 1 : 0;
        end
    end
    always_comb begin
        {ua, ub, uc} = {a, b, c};
        case (fault)
@WHEN@
            default: when = 1'b0;
        endcase
        if (when) case (fault)
@INPUT@
            default: ;
        endcase
        case (fault)
@OF@
            default: of = 1'b0;
        endcase
        d = d0;
        if (marks[tail][0] && of) case (fault)
@OUTPUT@
            default: ;
        endcase
    end
    @UNIT@ #(@PARAMETERS@) u_unit (.clk, .rst_n, .in_valid, .in_ready, .a(ua), .b(ub), .c(uc), .out_valid, .out_ready, .d(d0));
endmodule
"""  # noqa: E501
CLASSES = {
    "float": {"SPECIAL": "(&d0[30:23])", "ZERO": "(d0[30:0] == 0)"},
    "integer": {"SPECIAL": "(d0 == 32'h7fffffff || d0 == 32'h80000000)", "ZERO": "(d0 == 0)"},
}


def planted(folder: Path, reference: str, faults: Mapping[int, Fault]) -> Dut:
    """A reference unit of rtl_tb/rtl/duts in the shell, with all faults by number, none of which is on."""
    given = yaml.safe_load((DUTS / f"{reference}.yaml").read_text())
    right = load_dut(DUTS / f"{reference}.yaml")
    formats, words = right.instruction.formats, CLASSES["integer"]
    if formats["d"].is_float:
        words = CLASSES["float"]
    fields = {field.name: field for field in right.layout.operand_fields}
    named = lambda rows: "\n".join(f"            {number}: {row}" for number, row in rows if row)  # noqa: E731
    inputs, outputs = {}, {}
    for number, fault in faults.items():
        if fault.effect in "abc":
            inputs[number] = f"u{fault.effect} = p{fault.effect};"
        else:
            outputs[number] = f"d = {fault.effect};"
    of = {number: f"of = {words.get(fault.of, fault.of)};" for number, fault in faults.items()}
    text = SHELL
    for mark, filling in {
        "FILE": str(folder / "fault.hex"),
        "WHEN": named((number, f"when = {fault.when};") for number, fault in faults.items()),
        "INPUT": named(inputs.items()),
        "OF": named(of.items()),
        "OUTPUT": named(outputs.items()),
        "UNIT": given["top"],
        "PARAMETERS": ", ".join(f".{name}({value})" for name, value in given.get("parameters", {}).items()),
    }.items():
        text = text.replace(f"@{mark}@", filling)
    folder.mkdir(exist_ok=True)
    (folder / "shell.sv").write_text(text)
    switch(folder, 0)
    sources = [str((DUTS / source).resolve()) for source in given["sources"]]
    widths = {"AW": fields["a"].width, "BW": fields["b"].width, "EW": fields["a"].bits}
    (folder / "dut.yaml").write_text(
        yaml.safe_dump(
            given | {"dut": "shell", "top": "shell", "sources": [*sources, "shell.sv"], "parameters": widths}
        )
    )
    return load_dut(folder / "dut.yaml")


def switch(folder: Path, number: int) -> None:
    """Turns one of the faults on; 0: none."""
    (folder / "fault.hex").write_text(f"{number:02x}\n")
