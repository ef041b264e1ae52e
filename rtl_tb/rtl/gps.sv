// Group pairwise sum (AMD CDNA2): products in f32, a pairwise tree over each group of G, then c plus the groups in turn,
// every operation rounded to f32 (nearest even) with subnormal results flushed to zero of their sign.
//
// Source: MMA-Sim section IV-B, Algorithms 2 and 3; spec/algorithms/gps.yaml. G is 4 for f16 and bf16_1k, 2 for bf16.
// Latency 1 + log2(G) + K/G cycles, one dot product a cycle.

module gps #(
    parameter int K    = 16,  // products, a multiple of G
    parameter int G    = 4,   // products in one tree, a power of two
    parameter int EXP  = 5,   // exponent bits of a and b
    parameter int FRAC = 10   // fraction bits of a and b
) (
    input  logic            clk,
    input  logic            rst_n,
    input  logic            in_valid,
    output logic            in_ready,
    input  logic [K*(1+EXP+FRAC)-1:0] a,
    input  logic [K*(1+EXP+FRAC)-1:0] b,
    input  logic [31:0]     c,
    output logic            out_valid,
    input  logic            out_ready,
    output logic [31:0]     d
);

    localparam int AW     = 1 + EXP + FRAC;
    localparam int LEVELS = $clog2(G);
    localparam int STAGES = 1 + LEVELS + K / G;
    localparam int W      = (K + 1) * 32;  // word of a stage: the terms that are left, above them c and what was added to it

    wire         valid [0:STAGES];
    wire         ready [0:STAGES];
    wire [W-1:0] next  [0:STAGES-1];  // what a stage takes
    wire [W-1:0] word  [0:STAGES];    // word[s+1] is what stage s holds

    assign valid[0]      = in_valid;
    assign in_ready      = ready[0];
    assign out_valid     = valid[STAGES];
    assign ready[STAGES] = out_ready;
    assign word[0]       = '0;
    assign d             = word[STAGES][31:0];

    generate
        for (genvar s = 0; s < STAGES; s = s + 1) begin : g_stage
            wire [31:0]  running = word[s][31:0];
            wire [W-33:0] terms  = word[s][W-1:32];
            // The word is as wide in every stage; above the terms that are left stand zeros, which nobody reads.
            wire unused = &{1'b0, running, terms};

            if (s == 0) begin : g_multiply
                // A subnormal c counts as +0.
                wire [K*32-1:0] products;
                for (genvar k = 0; k < K; k = k + 1) begin : g_product
                    gps_product #(.EXP(EXP), .FRAC(FRAC)) u_product (
                        .a(a[k*AW+:AW]), .b(b[k*AW+:AW]), .p(products[k*32+:32])
                    );
                end
                assign next[s] = {products, c[30:23] == 0 && c[22:0] != 0 ? 32'b0 : c};
            end else if (s <= LEVELS) begin : g_tree
                // One level of all trees: neighbours are added, half as many terms are left.
                localparam int LEFT = K >> s;
                wire [LEFT*32-1:0] sums;
                for (genvar i = 0; i < LEFT; i = i + 1) begin : g_pair
                    fp_add_rne #(.FLUSH(1)) u_add (
                        .x(terms[2*i*32+:32]), .y(terms[(2*i+1)*32+:32]), .z(sums[i*32+:32])
                    );
                end
                assign next[s] = W'({sums, running});
            end else begin : g_chain
                // c + group 0, + group 1, ...: the groups that are still to come move down.
                wire [31:0] total;
                fp_add_rne #(.FLUSH(1)) u_add (.x(running), .y(terms[31:0]), .z(total));
                assign next[s] = W'({terms >> 32, total});
            end

            pipe_stage #(.WIDTH(W)) u_stage (
                .clk(clk), .rst_n(rst_n),
                .in_valid(valid[s]), .in_ready(ready[s]), .in_data(next[s]),
                .out_valid(valid[s+1]), .out_ready(ready[s+1]), .out_data(word[s+1])
            );
        end
    endgenerate

endmodule
