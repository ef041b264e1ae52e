// One step of FDRDA (AMD CDNA3): d = c + the sum of P products, cut toward zero among themselves, rounded down where they
// meet c.
//
// Source: MMA-Sim (arXiv 2511.10909) section IV-F; spec/algorithms/fdrda.yaml and the notes in it. Latency 4 cycles.
// Widths for P = 8 f16 products: product 22, aligned 26, dot 30, total 39 bits, from dot on with the sign; the analysis is
// printed by `mmagold show cdna3:v_mfma_f32_32x32x8_f16`.

module fdrda_step #(
    parameter int P          = 8,   // products
    parameter int A_EXP      = 5,  // parameters of the formats: fp_decode.sv
    parameter int A_FRAC     = 10,
    parameter int A_DROP     = 0,
    parameter int A_BIAS     = 15,
    parameter int A_SPECIALS = 1,
    parameter int B_EXP      = A_EXP,
    parameter int B_FRAC     = A_FRAC,
    parameter int B_DROP     = A_DROP,
    parameter int B_BIAS     = A_BIAS,
    parameter int B_SPECIALS = A_SPECIALS,
    parameter int F          = 24,  // fraction bits of the aligned products and of c
    parameter int F2         = 32,  // fraction bits of the dot product when it meets c
    parameter int KEEP       = 31,  // fraction bits of the normalised total
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
    localparam int DOT_W   = 3 + $clog2(P) + F;    // sign, 2 + log2(P) integer bits (below 4 * P), F fraction bits
    localparam int TOTAL_W = DOT_W + F2 - F + 1;   // F2 fraction bits, one carry
    localparam int C_W     = 1 + EXP_W + 24;       // c: sign, exponent, significand

    logic [TAG-1:0] tag_1, tag_2, tag_3;
    logic [2:0]     special, special_1, special_2, special_3;  // {result is NaN, result is infinite, sign of the infinity}
    logic [C_W-1:0] c_0, c_1, c_2;
    logic           valid_1, valid_2, valid_3;
    logic           ready_1, ready_2, ready_3;

    // Stage 1: exact products, special values.
    logic [P-1:0]       live, live_1, sign, sign_1;
    logic [P*EXP_W-1:0] exponent, exponent_1;
    logic [P*SIG_W-1:0] significand, significand_1;
    logic [P-1:0]       overflow;
    logic [2:0]         operands_special;
    logic               plus_inf, minus_inf;
    genvar              g;

    product_array #(
        .K(P), .A_EXP(A_EXP), .A_FRAC(A_FRAC), .A_DROP(A_DROP), .A_BIAS(A_BIAS), .A_SPECIALS(A_SPECIALS),
        .B_EXP(B_EXP), .B_FRAC(B_FRAC), .B_DROP(B_DROP), .B_BIAS(B_BIAS), .B_SPECIALS(B_SPECIALS), .EXP_W(EXP_W)
    ) u_products (
        .a(a), .b(b), .c(c), .live(live), .sign(sign), .exponent(exponent), .significand(significand),
        .c_sign(c_0[C_W-1]), .c_exponent(c_0[24+:EXP_W]), .c_significand(c_0[23:0]), .special(operands_special)
    );

    // A product of 2**128 or more counts as infinite. Only normal operands reach so far: the exponent decides, and at 127
    // the significand's upper integer bit.
    generate
        for (g = 0; g < P; g = g + 1) begin : g_overflow
            logic signed [EXP_W-1:0] e;
            assign e           = exponent[g*EXP_W+:EXP_W];
            assign overflow[g] = e > 127 || (e == 127 && significand[g*SIG_W+SIG_W-1]);
        end
    endgenerate

    assign plus_inf  = |(overflow & ~sign) || (operands_special[1] && !operands_special[0]);
    assign minus_inf = |(overflow & sign) || (operands_special[1] && operands_special[0]);
    assign special   = {operands_special[2] || (plus_inf && minus_inf), plus_inf || minus_inf, minus_inf};

    pipe_stage #(
        .WIDTH(TAG + 3 + C_W + P * (2 + EXP_W + SIG_W))
    ) u_stage_1 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(in_valid), .in_ready(in_ready), .in_data({tag_in, special, c_0, live, sign, exponent, significand}),
        .out_valid(valid_1), .out_ready(ready_1),
        .out_data({tag_1, special_1, c_1, live_1, sign_1, exponent_1, significand_1})
    );

    // Stage 2: the products to their largest exponent, cut at F fraction bits; their sum.
    logic                    dot_live_2;
    logic signed [EXP_W-1:0] dot_exponent, dot_exponent_2;
    logic signed [DOT_W-1:0] dot, dot_2;

    align_sum #(
        .TERMS(P), .IN_FRAC(A_FRAC + B_FRAC), .F(F), .EXP_W(EXP_W), .LOWEST(LOWEST)
    ) u_dot (
        .live(live_1), .sign(sign_1), .exponent(exponent_1), .significand(significand_1),
        .maximum(dot_exponent), .sum(dot)
    );

    pipe_stage #(
        .WIDTH(TAG + 3 + C_W + 1 + EXP_W + DOT_W)
    ) u_stage_2 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid_1), .in_ready(ready_1), .in_data({tag_1, special_1, c_1, |live_1, dot_exponent, dot}),
        .out_valid(valid_2), .out_ready(ready_2), .out_data({tag_2, special_2, c_2, dot_live_2, dot_exponent_2, dot_2})
    );

    // Stage 3: dot and c to the larger exponent, rounded down; the total.
    logic signed [TOTAL_W-1:0] total, total_3;
    logic signed [EXP_W-1:0]   total_exponent, total_exponent_3;

    round_down_add #(
        .DOT_W(DOT_W), .F(F), .F2(F2), .C_WINDOW(0), .EXP_W(EXP_W)
    ) u_add (
        .dot(dot_2), .dot_exponent(dot_exponent_2), .dot_live(dot_live_2),
        .c_sign(c_2[C_W-1]), .c_exponent(c_2[24+:EXP_W]), .c_significand(c_2[23:0]),
        .total(total), .exponent(total_exponent)
    );

    pipe_stage #(
        .WIDTH(TAG + 3 + TOTAL_W + EXP_W)
    ) u_stage_3 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid_2), .in_ready(ready_2), .in_data({tag_2, special_2, total, total_exponent}),
        .out_valid(valid_3), .out_ready(ready_3), .out_data({tag_3, special_3, total_3, total_exponent_3})
    );

    // Stage 4: normalise, round down at KEEP fraction bits, round to f32.
    logic [31:0] result;

    round_down_result #(
        .TOTAL_W(TOTAL_W), .F2(F2), .KEEP(KEEP), .EXP_W(EXP_W)
    ) u_result (
        .total(total_3), .exponent(total_exponent_3), .special(special_3), .d(result)
    );

    pipe_stage #(
        .WIDTH(TAG + 32)
    ) u_stage_4 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid_3), .in_ready(ready_3), .in_data({tag_3, result}),
        .out_valid(out_valid), .out_ready(out_ready), .out_data({tag_out, d})
    );

endmodule
