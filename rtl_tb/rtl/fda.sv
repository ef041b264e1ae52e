// Fused dot-add: d = round(c + sum of a[k] * b[k]), with one common alignment, truncated addends and one rounding.
//
// Source: MMA-Sim (arXiv 2511.10909) section IV-C; spec/algorithms/fda.yaml; parameters of each GPU: spec/architectures/.
// One step of every NVIDIA floating-point matrix instruction from Volta on; f16, bf16, tf32, FP8, FP6 and FP4 differ in
// parameters alone. A unit for K larger than one step is a chain of these (fda_chain.sv).
//
// Latency 5 cycles, one dot product a cycle: here 1 multiplication, then the four stages of fused_sum.sv.
// Element 0 of a and of b is in the least significant bits.
//
// Widths for 16 products of f16 with F = 25 (Hopper): product 2 + 20, aligned addend 1 + 2 + 25, sum 1 + 7 + 25 bits.

module fda #(
    parameter int K          = 16,  // products
    // Formats of a and b: spec/formats/formats.yaml. SPECIALS: see fp_decode.sv. DROP: ignored low bits (tf32: 13).
    parameter int A_EXP      = 5,
    parameter int A_FRAC     = 10,
    parameter int A_DROP     = 0,
    parameter int A_BIAS     = (1 << (A_EXP - 1)) - 1,
    parameter int A_SPECIALS = 1,
    parameter int B_EXP      = A_EXP,
    parameter int B_FRAC     = A_FRAC,
    parameter int B_DROP     = A_DROP,
    parameter int B_BIAS     = (1 << (B_EXP - 1)) - 1,
    parameter int B_SPECIALS = A_SPECIALS,
    // Formats of c and d: f32 (8, 23) or f16 (5, 10).
    parameter int D_EXP      = 8,
    parameter int D_FRAC     = 23,
    parameter int C_EXP      = D_EXP,
    parameter int C_FRAC     = D_FRAC,
    parameter int F          = 25,        // fraction bits kept after the alignment
    parameter int FLOOR      = -133,      // exponent that zeros hold
    parameter int D_KEEP     = D_FRAC,    // fraction bits of the result; 13 of f32's 23 for E8M13
    parameter int NEAREST    = D_EXP == 5 ? 1 : 0,  // f32 is truncated, f16 rounded to nearest even
    parameter int NAN_WORD   = D_EXP == 5 ? 32'h00007FFF : 32'h7FFFFFFF
) (
    input  logic                                 clk,
    input  logic                                 rst_n,
    input  logic                                 in_valid,
    output logic                                 in_ready,
    input  logic [K*(1+A_EXP+A_FRAC+A_DROP)-1:0] a,
    input  logic [K*(1+B_EXP+B_FRAC+B_DROP)-1:0] b,
    input  logic [C_EXP+C_FRAC:0]                c,
    output logic                                 out_valid,
    input  logic                                 out_ready,
    output logic [D_EXP+D_FRAC:0]                d
);

    // Exponents: a product's needs one bit more than the wider operand's EXP + 1; c's and d's need their EXP + 1.
    localparam int P_EXP_W = (A_EXP > B_EXP ? A_EXP : B_EXP) + 2;
    localparam int C_EXP_W = (C_EXP > D_EXP ? C_EXP : D_EXP) + 1;
    localparam int EXP_W   = P_EXP_W > C_EXP_W ? P_EXP_W : C_EXP_W;

    localparam int FRAC    = A_FRAC + B_FRAC;
    localparam int SIG_W   = FRAC + 2;  // two significands below 2: the product is below 4
    // K products of all-ones significands, in whole units, and c below 2, rounded up.
    localparam int LARGEST = ((K * ((2 << A_FRAC) - 1) * ((2 << B_FRAC) - 1)) >> FRAC) + 3;
    localparam int SUM_INT = $clog2(LARGEST);

    // Stage 1: decode and multiply.
    logic [K-1:0]       live, sign;
    logic [K*EXP_W-1:0] exponent;
    logic [K*SIG_W-1:0] significand;
    logic               c_sign;
    logic [EXP_W-1:0]   c_exponent;
    logic [C_FRAC:0]    c_significand;
    logic [2:0]         special;

    product_array #(
        .K(K), .C_EXP(C_EXP), .C_FRAC(C_FRAC), .EXP_W(EXP_W),
        .A_EXP(A_EXP), .A_FRAC(A_FRAC), .A_DROP(A_DROP), .A_BIAS(A_BIAS), .A_SPECIALS(A_SPECIALS),
        .B_EXP(B_EXP), .B_FRAC(B_FRAC), .B_DROP(B_DROP), .B_BIAS(B_BIAS), .B_SPECIALS(B_SPECIALS)
    ) u_products (
        .a(a), .b(b), .c(c),
        .live(live), .sign(sign), .exponent(exponent), .significand(significand),
        .c_sign(c_sign), .c_exponent(c_exponent), .c_significand(c_significand), .special(special)
    );

    logic               valid1, ready1;
    logic [K-1:0]       live1, sign1;
    logic [K*EXP_W-1:0] exponent1;
    logic [K*SIG_W-1:0] significand1;
    logic               c_sign1;
    logic [EXP_W-1:0]   c_exponent1;
    logic [C_FRAC:0]    c_significand1;
    logic [2:0]         special1;

    assign in_ready = !valid1 || ready1;

    always_ff @(posedge clk) begin
        if (!rst_n) valid1 <= 1'b0;
        else if (in_ready) valid1 <= in_valid;
        if (in_valid && in_ready) begin
            live1          <= live;
            sign1          <= sign;
            exponent1      <= exponent;
            significand1   <= significand;
            c_sign1        <= c_sign;
            c_exponent1    <= c_exponent;
            c_significand1 <= c_significand;
            special1       <= special;
        end
    end

    fused_sum #(
        .TERMS(K), .INT(2), .FRAC(FRAC), .SUM_INT(SUM_INT), .EXP_W(EXP_W), .F(F), .FLOOR(FLOOR),
        .C_FRAC(C_FRAC), .D_EXP(D_EXP), .D_FRAC(D_FRAC), .D_KEEP(D_KEEP), .NEAREST(NEAREST), .NAN_WORD(NAN_WORD)
    ) u_sum (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid1), .in_ready(ready1),
        .live(live1), .sign(sign1), .exponent(exponent1), .significand(significand1),
        .c_sign(c_sign1), .c_exponent(c_exponent1), .c_significand(c_significand1), .special(special1),
        .out_valid(out_valid), .out_ready(out_ready), .d(d)
    );

endmodule
