// One step of GFDRDA (AMD CDNA3, FP8): d = c + the sum of P products in two groups, even and odd k. Each group is aligned
// and cut toward zero by itself, the groups are rounded down where they meet, then the dot product and c as in FDRDA.
//
// Source: MMA-Sim (arXiv 2511.10909) section IV-H; spec/algorithms/gfdrda.yaml and the notes in it. Latency 5 cycles.
// Widths for P = 16 e4m3 products: product 8, aligned 26, group 30, dot 31, total 40 bits, from group on with the sign; the
// analysis is printed by `mmagold show cdna3:v_mfma_f32_32x32x16_fp8_fp8`. Products of FP8 numbers cannot overflow f32.

module gfdrda_step #(
    parameter int P          = 16,  // products, even
    parameter int A_EXP      = 4,  // parameters of the formats: fp_decode.sv
    parameter int A_FRAC     = 3,
    parameter int A_DROP     = 0,
    parameter int A_BIAS     = 8,
    parameter int A_SPECIALS = 3,
    parameter int B_EXP      = A_EXP,
    parameter int B_FRAC     = A_FRAC,
    parameter int B_DROP     = A_DROP,
    parameter int B_BIAS     = A_BIAS,
    parameter int B_SPECIALS = A_SPECIALS,
    parameter int F          = 24,  // fraction bits of the aligned products, groups and of c
    parameter int F2         = 32,  // fraction bits of the dot product when it meets c
    parameter int KEEP       = 31,  // fraction bits of the normalised total
    parameter int C_WINDOW   = 25,  // a c farther below the maximum counts as zero; 0: no such rule
    parameter int TAG        = 1    // bits that accompany the data
) (
    input  logic                                 clk,
    input  logic                                 rst_n,
    input  logic                                 in_valid,
    output logic                                 in_ready,
    input  logic [P*(1+A_EXP+A_FRAC+A_DROP)-1:0] a,
    input  logic [P*(1+B_EXP+B_FRAC+B_DROP)-1:0] b,
    input  logic [31:0]                          c,
    input  logic [TAG-1:0]                       tag_in,   // goes along with the data, unchanged
    output logic                                 out_valid,
    input  logic                                 out_ready,
    output logic [31:0]                          d,
    output logic [TAG-1:0]                       tag_out
);

    // Exponents: products reach -252 .. 254 (bf16), c 127, the total's top bit a few more.
    localparam int EXP_W   = 10;
    localparam int SIG_W   = 2 + A_FRAC + B_FRAC;  // a product of significands is below 4: 2 integer bits
    localparam int LOWEST  = 2 - A_BIAS - B_BIAS;  // least exponent of a product
    localparam int G       = P / 2;                // products of a group
    localparam int GROUP_W = 3 + $clog2(G) + F;    // sign, 2 + log2(G) integer bits (below 4 * G), F fraction bits
    localparam int DOT_W   = GROUP_W + 1;          // two groups
    localparam int TOTAL_W = DOT_W + F2 - F + 1;   // F2 fraction bits, one carry
    localparam int C_W     = 1 + EXP_W + 24;       // c: sign, exponent, significand

    logic [TAG-1:0] tag_1, tag_2, tag_3, tag_4;
    // {result is NaN, result is infinite, sign of the infinity}
    logic [2:0]     special, special_1, special_2, special_3, special_4;
    logic [C_W-1:0] c_0, c_1, c_2, c_3;
    logic           valid_1, valid_2, valid_3, valid_4;
    logic           ready_1, ready_2, ready_3, ready_4;

    // Stage 1: exact products, special values.
    logic [P-1:0]       live, live_1, sign, sign_1;
    logic [P*EXP_W-1:0] exponent, exponent_1;
    logic [P*SIG_W-1:0] significand, significand_1;
    genvar              g, i;

    product_array #(
        .K(P), .A_EXP(A_EXP), .A_FRAC(A_FRAC), .A_DROP(A_DROP), .A_BIAS(A_BIAS), .A_SPECIALS(A_SPECIALS),
        .B_EXP(B_EXP), .B_FRAC(B_FRAC), .B_DROP(B_DROP), .B_BIAS(B_BIAS), .B_SPECIALS(B_SPECIALS), .EXP_W(EXP_W)
    ) u_products (
        .a(a), .b(b), .c(c), .live(live), .sign(sign), .exponent(exponent), .significand(significand),
        .c_sign(c_0[C_W-1]), .c_exponent(c_0[24+:EXP_W]), .c_significand(c_0[23:0]), .special(special)
    );

    pipe_stage #(
        .WIDTH(TAG + 3 + C_W + P * (2 + EXP_W + SIG_W))
    ) u_stage_1 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(in_valid), .in_ready(in_ready), .in_data({tag_in, special, c_0, live, sign, exponent, significand}),
        .out_valid(valid_1), .out_ready(ready_1),
        .out_data({tag_1, special_1, c_1, live_1, sign_1, exponent_1, significand_1})
    );

    // Stage 2: the products of each group to their largest exponent, cut at F fraction bits; the sums of the groups.
    logic [1:0]           group_live, group_live_2;
    logic [2*EXP_W-1:0]   group_exponent, group_exponent_2;
    logic [2*GROUP_W-1:0] group_sum, group_sum_2;

    generate
        for (g = 0; g < 2; g = g + 1) begin : g_group
            logic [G-1:0]       term_live, term_sign;
            logic [G*EXP_W-1:0] term_exponent;
            logic [G*SIG_W-1:0] term_significand;

            for (i = 0; i < G; i = i + 1) begin : g_term  // term i of group g is product 2i + g
                assign term_live[i]                     = live_1[2*i+g];
                assign term_sign[i]                     = sign_1[2*i+g];
                assign term_exponent[i*EXP_W+:EXP_W]    = exponent_1[(2*i+g)*EXP_W+:EXP_W];
                assign term_significand[i*SIG_W+:SIG_W] = significand_1[(2*i+g)*SIG_W+:SIG_W];
            end
            assign group_live[g] = |term_live;

            align_sum #(
                .TERMS(G), .IN_FRAC(A_FRAC + B_FRAC), .F(F), .EXP_W(EXP_W), .LOWEST(LOWEST)
            ) u_sum (
                .live(term_live), .sign(term_sign), .exponent(term_exponent), .significand(term_significand),
                .maximum(group_exponent[g*EXP_W+:EXP_W]), .sum(group_sum[g*GROUP_W+:GROUP_W])
            );
        end
    endgenerate

    pipe_stage #(
        .WIDTH(TAG + 3 + C_W + 2 * (1 + EXP_W + GROUP_W))
    ) u_stage_2 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid_1), .in_ready(ready_1), .in_data({tag_1, special_1, c_1, group_live, group_exponent, group_sum}),
        .out_valid(valid_2), .out_ready(ready_2),
        .out_data({tag_2, special_2, c_2, group_live_2, group_exponent_2, group_sum_2})
    );

    // Stage 3: the groups to the larger exponent, rounded down at F fraction bits; their sum. A group of zero products
    // takes no part in the maximum (and is 0); one that cancelled does.
    logic                    dot_live_3;
    logic signed [EXP_W-1:0] dot_exponent, dot_exponent_3;
    logic signed [DOT_W-1:0] dot, dot_3;
    logic [2*DOT_W-1:0]      group_kept;

    max_exponent #(
        .TERMS(2), .EXP_W(EXP_W), .FLOOR(LOWEST)
    ) u_maximum (
        .live(group_live_2), .exponents(group_exponent_2), .maximum(dot_exponent)
    );

    generate
        for (g = 0; g < 2; g = g + 1) begin : g_kept
            logic signed [GROUP_W-1:0] placed, shifted;
            logic [EXP_W-1:0]          distance;
            assign placed   = group_sum_2[g*GROUP_W+:GROUP_W];
            assign distance = dot_exponent - group_exponent_2[g*EXP_W+:EXP_W];
            assign shifted  = placed >>> distance;
            assign group_kept[g*DOT_W+:DOT_W] = DOT_W'(shifted);
        end
    endgenerate

    assign dot = group_kept[DOT_W-1:0] + group_kept[2*DOT_W-1:DOT_W];

    pipe_stage #(
        .WIDTH(TAG + 3 + C_W + 1 + EXP_W + DOT_W)
    ) u_stage_3 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid_2), .in_ready(ready_2), .in_data({tag_2, special_2, c_2, |group_live_2, dot_exponent, dot}),
        .out_valid(valid_3), .out_ready(ready_3), .out_data({tag_3, special_3, c_3, dot_live_3, dot_exponent_3, dot_3})
    );

    // Stage 4: dot and c to the larger exponent, rounded down; the total.
    logic signed [TOTAL_W-1:0] total, total_4;
    logic signed [EXP_W-1:0]   total_exponent, total_exponent_4;

    round_down_add #(
        .DOT_W(DOT_W), .F(F), .F2(F2), .C_WINDOW(C_WINDOW), .EXP_W(EXP_W)
    ) u_add (
        .dot(dot_3), .dot_exponent(dot_exponent_3), .dot_live(dot_live_3),
        .c_sign(c_3[C_W-1]), .c_exponent(c_3[24+:EXP_W]), .c_significand(c_3[23:0]),
        .total(total), .exponent(total_exponent)
    );

    pipe_stage #(
        .WIDTH(TAG + 3 + TOTAL_W + EXP_W)
    ) u_stage_4 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid_3), .in_ready(ready_3), .in_data({tag_3, special_3, total, total_exponent}),
        .out_valid(valid_4), .out_ready(ready_4), .out_data({tag_4, special_4, total_4, total_exponent_4})
    );

    // Stage 5: normalise, round down at KEEP fraction bits, round to f32.
    logic [31:0] result;

    round_down_result #(
        .TOTAL_W(TOTAL_W), .F2(F2), .KEEP(KEEP), .EXP_W(EXP_W)
    ) u_result (
        .total(total_4), .exponent(total_exponent_4), .special(special_4), .d(result)
    );

    pipe_stage #(
        .WIDTH(TAG + 32)
    ) u_stage_5 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid_4), .in_ready(ready_4), .in_data({tag_4, result}),
        .out_valid(out_valid), .out_ready(out_ready), .out_data({tag_out, d})
    );

endmodule
