// IEEE 754 fused multiply-add d = a * b + c of one binary format, rounded to nearest even. Combinational.
//
// Subnormals are numbers like any other. Source: MMA-Sim section IV-A, Algorithm 1; spec/algorithms/sfma.yaml.
// NaN words: with HAND_ON = 1 the first NaN among b, c, a is handed on, quieted (measured for DMMA on an H200); a NaN made
// from numbers, and with HAND_ON = 0 every NaN, is the default quiet NaN with the sign NAN_SIGN.
//
// Everything is added in one window of W bits; p = FRAC + 1 is the precision:
//
//     | c: p | gap: 2 | product: 2p | extra: 3 |
//
// The product stays, c comes from the left and moves right as far as the exponents say; what leaves on the right goes into
// the last bit (sticky). A c that would stand farther left stays at the left edge: the product is then below a quarter of
// c's last place and matters only as "not zero". A c below the product loses bits only where they are below the round bit:
// the product has a leading one at bit p - 1 or above (one of its factors is normal if c is so far below), a result of p
// bits after one leading zero ends one bit below the product, and the round bit is the next.

module fp_fma #(
    parameter int EXP      = 8,   // exponent bits
    parameter int FRAC     = 23,  // fraction bits
    parameter int HAND_ON  = 0,
    parameter int NAN_SIGN = 0
) (
    input  logic [EXP+FRAC:0] a,
    input  logic [EXP+FRAC:0] b,
    input  logic [EXP+FRAC:0] c,
    output logic [EXP+FRAC:0] d
);

    localparam int BIAS    = (1 << (EXP - 1)) - 1;
    localparam int MIN_EXP = 1 - BIAS;
    localparam int EXP_W   = EXP + 2;       // signed: products reach 2 * (1 - BIAS), distances from c three times BIAS
    localparam int PROD    = 2 * FRAC + 2;  // 2p: the product with two integer bits
    localparam int W       = PROD + FRAC + 6;

    // 1. Multiply exactly, decode c.
    wire                    p_sign, c_sign, p_nan, c_nan, p_inf, c_inf;
    wire signed [EXP_W-1:0] p_exponent, c_exponent;
    wire [PROD-1:0]         p_significand;
    wire [FRAC:0]           c_significand;

    fp_product #(
        .A_EXP(EXP), .A_FRAC(FRAC), .A_BIAS(BIAS), .B_EXP(EXP), .B_FRAC(FRAC), .B_BIAS(BIAS), .EXP_W(EXP_W)
    ) u_product (
        .a(a), .b(b), .sign(p_sign), .exponent(p_exponent), .significand(p_significand), .is_nan(p_nan), .is_inf(p_inf)
    );
    fp_decode #(.EXP(EXP), .FRAC(FRAC), .BIAS(BIAS), .EXP_W(EXP_W)) u_c (
        .code(c), .sign(c_sign), .exponent(c_exponent), .significand(c_significand), .is_nan(c_nan), .is_inf(c_inf)
    );

    // 2. Align. At the left edge c is FRAC + 4 places higher than next to a product of its own exponent.
    wire                    p_zero   = p_significand == 0;
    wire                    c_zero   = c_significand == 0;
    wire signed [EXP_W-1:0] distance = p_exponent - c_exponent + EXP_W'(FRAC + 4);
    wire                    at_edge  = p_zero || (!c_zero && distance < 0);
    wire [EXP_W-1:0]        shift    = at_edge ? '0 : distance;  // a zero c may shift by anything
    wire [W-1:0]            c_edge   = {c_significand, {(PROD + 5){1'b0}}};
    wire [W-1:0]            c_lost   = c_edge & ~({W{1'b1}} << shift);
    wire [W-1:0]            c_kept   = c_edge >> shift;
    wire [W-1:0]            c_placed = c_kept | W'(c_lost != 0);
    wire [W-1:0]            p_placed = {{(FRAC + 3){1'b0}}, p_significand, 3'b0};

    // 3. Add, with a carry bit, into sign and magnitude. `top` is the weight of the carry bit.
    wire                    differ    = p_sign != c_sign;
    wire signed [EXP_W-1:0] top       = (at_edge ? c_exponent : p_exponent + EXP_W'(FRAC + 4)) + EXP_W'(1);
    wire                    p_larger  = p_placed > c_placed;
    wire [W:0]              larger    = {1'b0, p_larger ? p_placed : c_placed};
    wire [W:0]              smaller   = {1'b0, p_larger ? c_placed : p_placed};
    wire [W:0]              magnitude = differ ? larger - smaller : larger + smaller;
    wire                    sign      = p_larger ? p_sign : c_sign;

    // 4. Round. A window that ends below the least normal exponent first moves down to it, again with a sticky bit.
    wire                    low     = top < EXP_W'(MIN_EXP);
    wire [EXP_W-1:0]        below   = low ? EXP_W'(MIN_EXP) - top : '0;
    wire [W:0]              m_lost  = magnitude & ~({(W+1){1'b1}} << below);
    wire [W:0]              m_kept  = magnitude >> below;
    wire [EXP+FRAC:0]       rounded;

    fp_round #(
        .MAG(W + 2), .EXP_W(EXP_W), .MIN_TOP(MIN_EXP), .D_EXP(EXP), .D_FRAC(FRAC), .NEAREST(1), .SIGNED_ZERO(1)
    ) u_round (
        .sign(sign), .top_exponent(low ? EXP_W'(MIN_EXP) : top), .magnitude({m_kept, m_lost != 0}), .result(rounded)
    );

    // 5. Special values, and zeros: x - x is +0, two zeros of one sign keep it (IEEE 754 section 6.3).
    localparam logic [EXP+FRAC:0] QUIET   = (EXP + FRAC + 1)'(1) << (FRAC - 1);
    localparam logic [EXP+FRAC:0] DEFAULT = {NAN_SIGN != 0, {EXP{1'b1}}, QUIET[FRAC-1:0]};
    wire a_nan     = &a[FRAC+:EXP] && a[FRAC-1:0] != 0;
    wire b_nan     = &b[FRAC+:EXP] && b[FRAC-1:0] != 0;
    wire is_nan    = p_nan || c_nan || (p_inf && c_inf && differ);
    wire cancelled = magnitude == 0 && differ;

    wire [EXP+FRAC:0] nan_word = HAND_ON == 0 ? DEFAULT : b_nan ? b | QUIET : c_nan ? c | QUIET : a_nan ? a | QUIET : DEFAULT;

    assign d = is_nan ? nan_word
             : p_inf || c_inf ? {p_inf ? p_sign : c_sign, {EXP{1'b1}}, {FRAC{1'b0}}}
             : cancelled ? {(EXP+FRAC+1){1'b0}}
             : rounded;

endmodule
