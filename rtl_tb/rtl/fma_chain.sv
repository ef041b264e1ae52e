// Chain of fused multiply-adds in the order of k: d = fma(a[K-1], b[K-1], ... fma(a[0], b[0], c)), each rounded to nearest
// even. DMMA (NVIDIA f64) and AMD's f32 and f64 MFMA.
//
// Source: MMA-Sim (arXiv 2511.10909) section IV-A, Algorithm 1 (SFMA); spec/algorithms/sfma.yaml. a, b, c and d have one
// format. One multiply-add a stage: latency K cycles, one dot product a cycle.

module fma_chain #(
    parameter int K        = 4,
    parameter int EXP      = 8,   // exponent bits
    parameter int FRAC     = 23,  // fraction bits
    parameter int HAND_ON  = 0,   // NaN words: fp_fma.sv
    parameter int NAN_SIGN = 0
) (
    input  logic                      clk,
    input  logic                      rst_n,
    input  logic                      in_valid,
    output logic                      in_ready,
    input  logic [K*(1+EXP+FRAC)-1:0] a,
    input  logic [K*(1+EXP+FRAC)-1:0] b,
    input  logic [EXP+FRAC:0]         c,
    output logic                      out_valid,
    input  logic                      out_ready,
    output logic [EXP+FRAC:0]         d
);

    localparam int AW = 1 + EXP + FRAC;
    localparam int W  = (2 * K + 1) * AW;  // word of a stage: the a and b that are still to come, and the running sum

    logic [K:0] valid, ready;
    genvar      k;

    assign valid[0]  = in_valid;
    assign in_ready  = ready[0];
    assign out_valid = valid[K];
    assign ready[K]  = out_ready;
    assign d         = g_stage[K-1].word[AW-1:0];

    generate
        for (k = 0; k < K; k = k + 1) begin : g_stage
            logic [K*AW-1:0] a_left, b_left;
            logic [AW-1:0]   running, total;
            logic [W-1:0]    word;  // what the stage holds
            logic            unused;

            if (k == 0) begin : g_first
                assign {a_left, b_left, running} = {a, b, c};
            end else begin : g_next
                assign {a_left, b_left, running} = g_stage[k-1].word;
            end

            assign unused = &{1'b0, word};  // behind the last stage all a and b are used up

            fp_fma #(
                .EXP(EXP), .FRAC(FRAC), .HAND_ON(HAND_ON), .NAN_SIGN(NAN_SIGN)
            ) u_fma (
                .a(a_left[AW-1:0]), .b(b_left[AW-1:0]), .c(running), .d(total)
            );

            pipe_stage #(
                .WIDTH(W)
            ) u_stage (
                .clk(clk), .rst_n(rst_n),
                .in_valid(valid[k]), .in_ready(ready[k]), .in_data({a_left >> AW, b_left >> AW, total}),
                .out_valid(valid[k+1]), .out_ready(ready[k+1]), .out_data(word)
            );
        end
    endgenerate

endmodule
