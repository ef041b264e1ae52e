"""A large text as a generator writes it: d = c + the sum of four s8 products, bit by bit, in thousands of
flat assignments with long names that differ in a number."""

from __future__ import annotations

from collections.abc import Iterator

BITS = 32


def dot4(copies: int = 1) -> str:
    """The unit; `copies`: how often its sums stand there, of which the last one is used."""
    lines = list(_lines(copies))
    wires = [line.split()[1] for line in lines]
    declared = [f"  wire {name};" for name in wires]
    total = [_bit(copies - 1, 4, at) for at in reversed(range(BITS))]
    return "\n".join(
        [
            "module dot4(input clk, input rst_n, input in_valid, input out_ready, input [31:0] a,",
            "  input [31:0] b, input [31:0] c, output in_ready, output reg out_valid, output reg [31:0] d);",
            "  assign in_ready = !out_valid || out_ready;",
            *declared,
            *(f"  {line}" for line in lines),
            f"  wire [31:0] IF_total_RDY_result = {{{', '.join(total)}}};",
            "  always @(posedge clk) if (!rst_n) out_valid <= 1'b0;",
            "    else if (in_ready) begin out_valid <= in_valid; d <= IF_total_RDY_result; end",
            "endmodule",
            "",
        ]
    )


def _bit(copy: int, done: int, at: int) -> str:
    number = 1000 * copy + 32 * done + at
    return f"IF_copy_{copy}_THEN_fifo_dot_products_first_total_after_{done}_BIT_{at}___d{number}"


def _lines(copies: int) -> Iterator[str]:
    for copy in range(copies):
        for at in range(BITS):
            yield f"assign {_bit(copy, 0, at)} = c[{at}];"
        for k in range(4):
            yield from _product(copy, k)
            total = [f"PRODUCT_{copy}_{k}_partial_8_BIT_{at}___h" for at in range(BITS)]
            before = [_bit(copy, k, at) for at in range(BITS)]
            after = [_bit(copy, k + 1, at) for at in range(BITS)]
            yield from _added(f"total_{copy}_{k}", before, total, after)


def _product(copy: int, k: int) -> Iterator[str]:
    """a * b modulo 2^32: eight rows of the extended a, of which that of the sign is taken away."""

    def partial(row: int, at: int) -> str:
        return f"PRODUCT_{copy}_{k}_partial_{row}_BIT_{at}___h"

    for at in range(BITS):
        yield f"assign {partial(0, at)} = 1'b0;"
    for row in range(8):
        terms = []
        for at in range(BITS):
            name = f"ROW_{copy}_{k}_{row}_extended_operand_BIT_{at}___q"
            bit = f"a[{8 * k + min(at - row, 7)}]" if at >= row else "1'b0"
            taken = f"{bit} && b[{8 * k + row}]"
            yield f"assign {name} = {f'!({taken})' if row == 7 else taken};"
            terms.append(name)
        before, after = ([partial(of, at) for at in range(BITS)] for of in (row, row + 1))
        yield from _added(f"row_{copy}_{k}_{row}", before, terms, after, "1'b1" if row == 7 else "1'b0")


def _added(name: str, one: list[str], two: list[str], to: list[str], carry: str = "1'b0") -> Iterator[str]:
    for at in range(BITS):
        nexts = f"CARRY_{name}_adder_stage_BIT_{at}___x"
        yield f"assign {to[at]} = {one[at]} ^ {two[at]} ^ {carry};"
        yield f"assign {nexts} = {one[at]} && {two[at]} || {carry} && ({one[at]} || {two[at]});"
        carry = nexts
