// Group pairwise sum (AMD CDNA2): products in f32, a pairwise tree over each group of G, then c plus the groups in turn,
// every operation rounded to f32 (nearest even) with subnormal results flushed to zero of their sign.
//
// Source: MMA-Sim (arXiv 2511.10909) section IV-B, Algorithms 2 and 3; spec/algorithms/gps.yaml. G is 4 for f16 and bf16_1k,
// 2 for bf16. Latency 1 + log2(G) + K/G cycles, one dot product a cycle.

module gps #(
    parameter int K    = 16,  // products, a multiple of G
    parameter int G    = 4,   // products in one tree, a power of two
    parameter int EXP  = 5,   // exponent bits of a and b
    parameter int FRAC = 10   // fraction bits of a and b
) (
    input  logic                      clk,
    input  logic                      rst_n,
    input  logic                      in_valid,
    output logic                      in_ready,
    input  logic [K*(1+EXP+FRAC)-1:0] a,
    input  logic [K*(1+EXP+FRAC)-1:0] b,
    input  logic [31:0]               c,
    output logic                      out_valid,
    input  logic                      out_ready,
    output logic [31:0]               d
);

    localparam int AW     = 1 + EXP + FRAC;
    localparam int LEVELS = $clog2(G);
    localparam int STAGES = 1 + LEVELS + K / G;

    logic [STAGES:0] valid, ready;
    genvar           s, k;

    assign valid[0]      = in_valid;
    assign in_ready      = ready[0];
    assign out_valid     = valid[STAGES];
    assign ready[STAGES] = out_ready;
    assign d             = g_stage[STAGES-1].word;

    generate
        for (s = 0; s < STAGES; s = s + 1) begin : g_stage
            // A stage's word: in the lowest 32 bits c and what was added to it, above it the terms that are left, f32 too.
            localparam int LEFT = s <= LEVELS ? K >> s : STAGES - 1 - s;
            localparam int W    = 32 * (LEFT + 1);

            logic [W-1:0] next, word;  // what the stage takes, what it holds

            if (s == 0) begin : g_multiply
                assign next[31:0] = c[30:23] == 0 ? 32'd0 : c;  // a subnormal or zero c counts as +0

                for (k = 0; k < K; k = k + 1) begin : g_product
                    gps_product #(
                        .EXP(EXP), .FRAC(FRAC)
                    ) u_product (
                        .a(a[k*AW+:AW]), .b(b[k*AW+:AW]), .p(next[32*(k+1)+:32])
                    );
                end
            end else if (s <= LEVELS) begin : g_tree
                // One level of all trees: neighbours are added, half as many terms are left.
                assign next[31:0] = g_stage[s-1].word[31:0];

                for (k = 0; k < LEFT; k = k + 1) begin : g_pair
                    fp_add_rne #(
                        .FLUSH(1)
                    ) u_add (
                        .x(g_stage[s-1].word[32*(2*k+1)+:32]), .y(g_stage[s-1].word[32*(2*k+2)+:32]), .z(next[32*(k+1)+:32])
                    );
                end
            end else begin : g_chain
                // c + group 0, + group 1, ...: the groups that are still to come move down.
                logic [31:0] total;

                fp_add_rne #(
                    .FLUSH(1)
                ) u_add (
                    .x(g_stage[s-1].word[31:0]), .y(g_stage[s-1].word[63:32]), .z(total)
                );

                assign next = W'({g_stage[s-1].word >> 64, total});
            end

            pipe_stage #(
                .WIDTH(W)
            ) u_stage (
                .clk(clk), .rst_n(rst_n),
                .in_valid(valid[s]), .in_ready(ready[s]), .in_data(next),
                .out_valid(valid[s+1]), .out_ready(ready[s+1]), .out_data(word)
            );
        end
    endgenerate

endmodule
