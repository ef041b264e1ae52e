// Fused dot-add with block scales: d = round(c + 2**(scale_a + scale_b) * sum of a[k] * b[k]), as fda.sv otherwise.
//
// Source: MMA-Sim (arXiv 2511.10909) section IV-C "Scale factor"; spec/algorithms/scaled_fda.yaml. The MXFP8, MXFP6 and MXFP4
// instructions `kind::mxf8f6f4`: 32 elements of each operand share one ue8m0 scale (a power of two).
//
// The scales' exponents are added to each product's exponent before the maximum is taken; significands do not change. A NaN
// scale (0xFF) makes the result NaN even if all data are zero. c and d are f32, the result is truncated.
//
// Latency 5 cycles, one dot product a cycle: 1 multiplication and scaling, then the four stages of fused_sum.sv.
// Widths for e4m3 and F = 25: product 2 + 6, exponent 11, aligned addend 1 + 2 + 25, sum 1 + 7 + 25 bits.

module scaled_fda #(
    parameter int K          = 32,  // products, all under one pair of scales
    // Formats of a and b: spec/formats/formats.yaml. SPECIALS: see fp_decode.sv.
    parameter int A_EXP      = 4,
    parameter int A_FRAC     = 3,
    parameter int A_SPECIALS = 2,
    parameter int B_EXP      = A_EXP,
    parameter int B_FRAC     = A_FRAC,
    parameter int B_SPECIALS = A_SPECIALS,
    parameter int F          = 25,    // fraction bits kept after the alignment
    parameter int FLOOR      = -133,  // exponent that zeros hold
    parameter int NAN_WORD   = 32'h7FFFFFFF
) (
    input  logic                          clk,
    input  logic                          rst_n,
    input  logic                          in_valid,
    output logic                          in_ready,
    input  logic [K*(1+A_EXP+A_FRAC)-1:0] a,
    input  logic [K*(1+B_EXP+B_FRAC)-1:0] b,
    input  logic [31:0]                   c,
    input  logic [7:0]                    scale_a,
    input  logic [7:0]                    scale_b,
    output logic                          out_valid,
    input  logic                          out_ready,
    output logic [31:0]                   d
);

    localparam int C_FRAC  = 23;
    // A product's exponent lies in -126..126 at most (EXP below 7), two ue8m0 scales add -254..254: 10 bits.
    // c needs 9 bits. fused_sum.sv adds one bit where it needs more.
    localparam int EXP_W   = 10;
    localparam int FRAC    = A_FRAC + B_FRAC;
    localparam int SIG_W   = FRAC + 2;
    // K products of all-ones significands, in whole units, and c below 2, rounded up.
    localparam int LARGEST = ((K * ((2 << A_FRAC) - 1) * ((2 << B_FRAC) - 1)) >> FRAC) + 3;
    localparam int SUM_INT = $clog2(LARGEST);

    // Stage 1: decode and multiply, add the scales' exponents.
    logic [K-1:0]            live, sign;
    logic [K*EXP_W-1:0]      exponent, scaled;
    logic [K*SIG_W-1:0]      significand;
    logic                    c_sign, a_nan, b_nan;
    logic [EXP_W-1:0]        c_exponent;
    logic signed [EXP_W-1:0] a_scale, b_scale;
    logic [C_FRAC:0]         c_significand;
    logic [2:0]              special;
    integer                  i;

    product_array #(
        .K(K), .C_EXP(8), .C_FRAC(C_FRAC), .EXP_W(EXP_W),
        .A_EXP(A_EXP), .A_FRAC(A_FRAC), .A_BIAS((1 << (A_EXP - 1)) - 1), .A_SPECIALS(A_SPECIALS),
        .B_EXP(B_EXP), .B_FRAC(B_FRAC), .B_BIAS((1 << (B_EXP - 1)) - 1), .B_SPECIALS(B_SPECIALS)
    ) u_products (
        .a(a), .b(b), .c(c),
        .live(live), .sign(sign), .exponent(exponent), .significand(significand),
        .c_sign(c_sign), .c_exponent(c_exponent), .c_significand(c_significand), .special(special)
    );

    // The significand of a ue8m0 scale is 1.
    logic a_one, b_one;

    fp_scale #(
        .EXP(8), .FRAC(0), .EXP_W(EXP_W)
    ) u_scale_a (
        .code(scale_a), .exponent(a_scale), .significand(a_one), .is_nan(a_nan)
    );

    fp_scale #(
        .EXP(8), .FRAC(0), .EXP_W(EXP_W)
    ) u_scale_b (
        .code(scale_b), .exponent(b_scale), .significand(b_one), .is_nan(b_nan)
    );

    wire unused = &{1'b0, a_one, b_one};

    always_comb begin
        for (i = 0; i < K; i = i + 1) scaled[i*EXP_W+:EXP_W] = exponent[i*EXP_W+:EXP_W] + a_scale + b_scale;
    end

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
            exponent1      <= scaled;
            significand1   <= significand;
            c_sign1        <= c_sign;
            c_exponent1    <= c_exponent;
            c_significand1 <= c_significand;
            special1       <= special | {a_nan || b_nan, 2'b00};
        end
    end

    fused_sum #(
        .TERMS(K), .INT(2), .FRAC(FRAC), .SUM_INT(SUM_INT), .EXP_W(EXP_W), .F(F), .FLOOR(FLOOR),
        .C_FRAC(C_FRAC), .D_EXP(8), .D_FRAC(C_FRAC), .NAN_WORD(NAN_WORD)
    ) u_sum (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid1), .in_ready(ready1),
        .live(live1), .sign(sign1), .exponent(exponent1), .significand(significand1),
        .c_sign(c_sign1), .c_exponent(c_exponent1), .c_significand(c_significand1), .special(special1),
        .out_valid(out_valid), .out_ready(out_ready), .d(d)
    );

endmodule
