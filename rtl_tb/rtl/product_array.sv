// The front half of a fused dot-add: K exact products, c decoded, special values found (MMA-Sim IV-C, step 1). Combinational.

module product_array #(
    parameter int K          = 16,
    parameter int A_EXP      = 5,  // parameters of the formats: fp_decode.sv
    parameter int A_FRAC     = 10,
    parameter int A_DROP     = 0,
    parameter int A_BIAS     = 15,
    parameter int A_SPECIALS = 1,
    parameter int B_EXP      = 5,
    parameter int B_FRAC     = 10,
    parameter int B_DROP     = 0,
    parameter int B_BIAS     = 15,
    parameter int B_SPECIALS = 1,
    parameter int C_EXP      = 8,  // c: an IEEE format
    parameter int C_FRAC     = 23,
    parameter int EXP_W      = 9   // bits of all exponents, signed
) (
    input  logic [K*(1+A_EXP+A_FRAC+A_DROP)-1:0] a,
    input  logic [K*(1+B_EXP+B_FRAC+B_DROP)-1:0] b,
    input  logic [C_EXP+C_FRAC:0]                c,
    output logic [K-1:0]                         live,           // the product is not zero
    output logic [K-1:0]                         sign,
    output logic [K*EXP_W-1:0]                   exponent,
    output logic [K*(A_FRAC+B_FRAC+2)-1:0]       significand,    // 2 integer bits each: a product is below 4
    output logic                                 c_sign,
    output logic [EXP_W-1:0]                     c_exponent,
    output logic [C_FRAC:0]                      c_significand,  // 1 integer bit
    output logic [2:0]                           special         // {result is NaN, result is infinite, sign of the infinity}
);

    localparam int AW    = 1 + A_EXP + A_FRAC + A_DROP;
    localparam int BW    = 1 + B_EXP + B_FRAC + B_DROP;
    localparam int SIG_W = A_FRAC + B_FRAC + 2;

    logic [K-1:0] is_nan, is_inf;
    logic         c_nan, c_inf, plus_inf, minus_inf;
    genvar        g;

    generate
        for (g = 0; g < K; g = g + 1) begin : g_product
            logic             p_sign, p_nan, p_inf;
            logic [EXP_W-1:0] p_exponent;
            logic [SIG_W-1:0] p_significand;

            fp_product #(
                .A_EXP(A_EXP), .A_FRAC(A_FRAC), .A_DROP(A_DROP), .A_BIAS(A_BIAS), .A_SPECIALS(A_SPECIALS),
                .B_EXP(B_EXP), .B_FRAC(B_FRAC), .B_DROP(B_DROP), .B_BIAS(B_BIAS), .B_SPECIALS(B_SPECIALS),
                .EXP_W(EXP_W)
            ) u_product (
                .a(a[g*AW+:AW]), .b(b[g*BW+:BW]),
                .sign(p_sign), .exponent(p_exponent), .significand(p_significand), .is_nan(p_nan), .is_inf(p_inf)
            );

            // Not connected directly: Icarus takes a long time over a net that many instances drive in parts.
            always_comb begin
                live[g]   = p_significand != 0;
                sign[g]   = p_sign;
                is_nan[g] = p_nan;
                is_inf[g] = p_inf;
                exponent[g*EXP_W+:EXP_W]    = p_exponent;
                significand[g*SIG_W+:SIG_W] = p_significand;
            end
        end
    endgenerate

    fp_decode #(
        .EXP(C_EXP), .FRAC(C_FRAC), .BIAS((1 << (C_EXP - 1)) - 1), .SPECIALS(1), .EXP_W(EXP_W)
    ) u_c (
        .code(c), .sign(c_sign), .exponent(c_exponent), .significand(c_significand), .is_nan(c_nan), .is_inf(c_inf)
    );

    // NaN: a NaN anywhere, infinity times zero (in is_nan), or infinities of both signs.
    assign plus_inf  = |(is_inf & ~sign) || (c_inf && !c_sign);
    assign minus_inf = |(is_inf & sign) || (c_inf && c_sign);
    assign special   = {|is_nan || c_nan || (plus_inf && minus_inf), plus_inf || minus_inf, minus_inf};

endmodule
