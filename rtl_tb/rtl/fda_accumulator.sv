// A fused dot-add that keeps its accumulator: c is the result before, +0 where `clear` is high and after a reset.
//
// The unit of spec/examples/accumulator.yaml. The next dot product needs the result of the one before, so one is in flight at
// a time: in_ready is low from the edge at which operands are taken until their result has left. A unit that gives a result
// every cycle has to add in one cycle.
//
// Latency 5 cycles, one dot product in 6. `held` follows the handshake alone: neither idle cycles nor a result that waits
// change it. Parameters that are not explained here: fda.sv.

module fda_accumulator #(
    parameter int K      = 4,
    parameter int A_EXP  = 5,
    parameter int A_FRAC = 10,
    parameter int D_EXP  = 8,
    parameter int D_FRAC = 23,
    parameter int F      = 24,
    parameter int FLOOR  = -131
) (
    input  logic                        clk,
    input  logic                        rst_n,
    input  logic                        in_valid,
    output logic                        in_ready,
    input  logic [K*(1+A_EXP+A_FRAC)-1:0] a,
    input  logic [K*(1+A_EXP+A_FRAC)-1:0] b,
    input  logic                        clear,
    output logic                        out_valid,
    input  logic                        out_ready,
    output logic [D_EXP+D_FRAC:0]       d
);

    logic                  busy, step_ready;
    logic [D_EXP+D_FRAC:0] held;
    wire                   take  = in_valid && in_ready;
    wire                   leave = out_valid && out_ready;

    assign in_ready = step_ready && !busy;

    always_ff @(posedge clk) begin
        if (!rst_n) busy <= 1'b0;
        else if (take) busy <= 1'b1;
        else if (leave) busy <= 1'b0;
    end

    always_ff @(posedge clk) begin
        if (!rst_n) held <= '0;
        else if (leave) held <= d;
    end

    fda #(
        .K(K), .A_EXP(A_EXP), .A_FRAC(A_FRAC), .D_EXP(D_EXP), .D_FRAC(D_FRAC), .F(F), .FLOOR(FLOOR)
    ) u_fda (
        .clk(clk), .rst_n(rst_n),
        .in_valid(in_valid && !busy), .in_ready(step_ready),
        .a(a), .b(b), .c(clear ? '0 : held),
        .out_valid(out_valid), .out_ready(out_ready), .d(d)
    );

endmodule
