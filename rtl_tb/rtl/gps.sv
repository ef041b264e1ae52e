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

    // A stage's word: in the lowest 32 bits c and what was added to it (`running`), above it the terms that are left, f32
    // codes too. It is as wide in every stage; the places of terms that are used up hold zeros.
    localparam int TERMS_W = K * 32;
    localparam int W       = TERMS_W + 32;

    logic [STAGES:0] valid, ready;
    genvar           s, k;

    assign valid[0]      = in_valid;
    assign in_ready      = ready[0];
    assign out_valid     = valid[STAGES];
    assign ready[STAGES] = out_ready;
    assign d             = g_stage[STAGES-1].word[31:0];

    generate
        for (s = 0; s < STAGES; s = s + 1) begin : g_stage
            logic [W-1:0]       next, word;  // what the stage takes, what it holds
            logic [31:0]        running;     // of the stage before
            logic [TERMS_W-1:0] terms;
            logic               unused;

            assign unused = &{1'b0, running, terms, word};  // the zeros of used up terms, and everything in stage 0

            if (s == 0) begin : g_multiply
                assign {terms, running} = '0;

                for (k = 0; k < K; k = k + 1) begin : g_product
                    gps_product #(
                        .EXP(EXP), .FRAC(FRAC)
                    ) u_product (
                        .a(a[k*AW+:AW]), .b(b[k*AW+:AW]), .p(next[32+k*32+:32])
                    );
                end

                assign next[31:0] = c[30:23] == 0 && c[22:0] != 0 ? 32'd0 : c;  // a subnormal c counts as +0
            end else if (s <= LEVELS) begin : g_tree
                // One level of all trees: neighbours are added, half as many terms are left.
                localparam int LEFT = K >> s;
                logic [LEFT*32-1:0] sums;

                assign {terms, running} = g_stage[s-1].word;

                for (k = 0; k < LEFT; k = k + 1) begin : g_pair
                    fp_add_rne #(
                        .FLUSH(1)
                    ) u_add (
                        .x(terms[2*k*32+:32]), .y(terms[(2*k+1)*32+:32]), .z(sums[k*32+:32])
                    );
                end

                assign next = {TERMS_W'(sums), running};
            end else begin : g_chain
                // c + group 0, + group 1, ...: the groups that are still to come move down.
                logic [31:0] total;

                assign {terms, running} = g_stage[s-1].word;

                fp_add_rne #(
                    .FLUSH(1)
                ) u_add (
                    .x(running), .y(terms[31:0]), .z(total)
                );

                assign next = {terms >> 32, total};
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
