// Chain of fused multiply-adds in the order of k: d = fma(a[K-1], b[K-1], ... fma(a[0], b[0], c)), each rounded to nearest even.
//
// Source: MMA-Sim section IV-A, Algorithm 1 (SFMA); spec/algorithms/sfma.yaml. DMMA (NVIDIA f64) and the f32 and f64 MFMA
// of AMD. One multiply-add a stage: latency K cycles, one dot product a cycle. a, b, c and d have one format.

module fma_chain #(
    parameter int K       = 4,
    parameter int EXP     = 8,   // exponent bits
    parameter int FRAC    = 23,  // fraction bits
    parameter int HAND_ON = 0,   // NaN words: see fp_fma.sv
    parameter int NAN_SIGN = 0
) (
    input  logic            clk,
    input  logic            rst_n,
    input  logic            in_valid,
    output logic            in_ready,
    input  logic [K*(1+EXP+FRAC)-1:0] a,
    input  logic [K*(1+EXP+FRAC)-1:0] b,
    input  logic [EXP+FRAC:0] c,
    output logic            out_valid,
    input  logic            out_ready,
    output logic [EXP+FRAC:0] d
);

    localparam int AW = 1 + EXP + FRAC;
    localparam int W  = (2 * K + 1) * AW;  // word of a stage: the a and b that are still to come, and the running sum

    wire         valid [0:K];
    wire         ready [0:K];
    wire [W-1:0] word  [0:K];  // word[k] goes into stage k

    assign valid[0]  = in_valid;
    assign in_ready  = ready[0];
    assign out_valid = valid[K];
    assign ready[K]  = out_ready;
    assign word[0]   = {a, b, c};
    assign d         = word[K][AW-1:0];

    generate
        for (genvar k = 0; k < K; k = k + 1) begin : g_stage
            wire [K*AW-1:0] a_left  = word[k][W-1-:K*AW];
            wire [K*AW-1:0] b_left  = word[k][AW+:K*AW];
            wire [AW-1:0]   running = word[k][AW-1:0];
            wire [AW-1:0]   total;

            fp_fma #(.EXP(EXP), .FRAC(FRAC), .HAND_ON(HAND_ON), .NAN_SIGN(NAN_SIGN)) u_fma (
                .a(a_left[AW-1:0]), .b(b_left[AW-1:0]), .c(running), .d(total)
            );
            pipe_stage #(.WIDTH(W)) u_stage (
                .clk(clk), .rst_n(rst_n),
                .in_valid(valid[k]), .in_ready(ready[k]), .in_data({a_left >> AW, b_left >> AW, total}),
                .out_valid(valid[k+1]), .out_ready(ready[k+1]), .out_data(word[k+1])
            );
        end
    endgenerate

endmodule
