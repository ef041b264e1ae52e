// The exact product of two floating-point codes, not normalised (MMA-Sim IV-C, step 1). Combinational.
//
// The significand is a[1.A_FRAC] * b[1.B_FRAC]: 2 integer bits, because it is below 4, and A_FRAC + B_FRAC fraction bits.
// The exponent is the plain sum of the operands' exponents. Nothing overflows or underflows here: a product of bf16
// numbers may lie outside the range of f32, only the final result is rounded to it.

module fp_product #(
    parameter int A_EXP      = 5,  // parameters of each format: fp_decode.sv
    parameter int A_FRAC     = 10,
    parameter int A_DROP     = 0,
    parameter int A_BIAS     = 15,
    parameter int A_SPECIALS = 1,
    parameter int B_EXP      = 5,
    parameter int B_FRAC     = 10,
    parameter int B_DROP     = 0,
    parameter int B_BIAS     = 15,
    parameter int B_SPECIALS = 1,
    parameter int EXP_W      = (A_EXP > B_EXP ? A_EXP : B_EXP) + 2  // signed; one bit more than the wider operand's exponent
) (
    input  logic        [A_EXP+A_FRAC+A_DROP:0] a,
    input  logic        [B_EXP+B_FRAC+B_DROP:0] b,
    output logic                                sign,
    output logic signed [EXP_W-1:0]             exponent,
    output logic        [A_FRAC+B_FRAC+1:0]     significand,
    output logic                                is_nan,       // a NaN operand, or infinity times zero
    output logic                                is_inf
);

    localparam int SIG_W = A_FRAC + B_FRAC + 2;

    wire                    a_sign, b_sign, a_nan, b_nan, a_inf, b_inf;
    wire signed [EXP_W-1:0] a_exponent, b_exponent;
    wire        [A_FRAC:0]  a_significand;
    wire        [B_FRAC:0]  b_significand;

    fp_decode #(
        .EXP(A_EXP), .FRAC(A_FRAC), .DROP(A_DROP), .BIAS(A_BIAS), .SPECIALS(A_SPECIALS), .EXP_W(EXP_W)
    ) u_a (
        .code(a), .sign(a_sign), .exponent(a_exponent), .significand(a_significand), .is_nan(a_nan), .is_inf(a_inf)
    );

    fp_decode #(
        .EXP(B_EXP), .FRAC(B_FRAC), .DROP(B_DROP), .BIAS(B_BIAS), .SPECIALS(B_SPECIALS), .EXP_W(EXP_W)
    ) u_b (
        .code(b), .sign(b_sign), .exponent(b_exponent), .significand(b_significand), .is_nan(b_nan), .is_inf(b_inf)
    );

    assign sign        = a_sign ^ b_sign;
    assign exponent    = a_exponent + b_exponent;
    assign significand = SIG_W'(a_significand) * SIG_W'(b_significand);
    // An infinity has a leading digit 1 and so is not zero here.
    assign is_nan      = a_nan || b_nan || (a_inf && b_significand == 0) || (b_inf && a_significand == 0);
    assign is_inf      = (a_inf || b_inf) && !is_nan;

endmodule
