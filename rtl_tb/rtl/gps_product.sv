// One product of GPS as an f32 code. Combinational.
//
// Operand subnormals and zeros count as +0, the product is rounded to f32, and a subnormal product becomes zero of its sign (MMA-Sim
// section IV-B, Algorithm 3; spec/algorithms/gps.yaml). Nothing is ever rounded: a product has 2*FRAC + 2 bits, 22 for f16
// and 16 for bf16, and f32 holds 24. For the same reason a product below 2**-126 cannot round up to a normal number.

module gps_product #(
    parameter int EXP  = 5,   // exponent bits of a and b
    parameter int FRAC = 10   // fraction bits of a and b, at most 11
) (
    input  logic [EXP+FRAC:0] a,
    input  logic [EXP+FRAC:0] b,
    output logic [31:0]       p
);

    localparam int BIAS  = (1 << (EXP - 1)) - 1;
    localparam int EXP_W = 11;            // f32 exponent fields before clamping: -252+127 .. 256+127 for bf16, signed
    localparam int SIG_W = 2 * FRAC + 2;  // two integer bits

    // 1. Flush the operands; their sign is lost, that of zeros too.
    wire [EXP+FRAC:0] a_flushed = a[FRAC+:EXP] == 0 ? '0 : a;
    wire [EXP+FRAC:0] b_flushed = b[FRAC+:EXP] == 0 ? '0 : b;

    // 2. Multiply.
    wire                    sign, is_nan, is_inf;
    wire signed [EXP_W-1:0] exponent;
    wire [SIG_W-1:0]        significand;

    fp_product #(
        .A_EXP(EXP), .A_FRAC(FRAC), .A_BIAS(BIAS), .B_EXP(EXP), .B_FRAC(FRAC), .B_BIAS(BIAS), .EXP_W(EXP_W)
    ) u_product (
        .a(a_flushed), .b(b_flushed),
        .sign(sign), .exponent(exponent), .significand(significand), .is_nan(is_nan), .is_inf(is_inf)
    );

    // 3. A significand in [2, 4) moves down by one place; the fraction starts below the leading one.
    wire                    high     = significand[SIG_W-1];
    wire signed [EXP_W-1:0] field    = exponent + EXP_W'(127) + EXP_W'(high);
    wire [SIG_W-2:0]        fraction = high ? significand[SIG_W-2:0] : {significand[SIG_W-3:0], 1'b0};

    // 4. Pack. Normal operands have a significand of 1 or more, so a product is zero only if an operand is.
    wire zero     = significand == 0 || field <= 0;
    wire infinite = is_inf || (!zero && field >= 255);
    assign p = is_nan ? 32'h7FC00000
             : infinite ? {sign, 8'hFF, 23'd0}
             : zero ? {sign, 31'd0}
             : {sign, field[7:0], 23'(fraction) << (24 - SIG_W)};

endmodule
