// Normalises a magnitude and rounds it once to a floating-point format (MMA-Sim IV-C, step 5). Combinational.
//
// magnitude * 2**(top_exponent - MAG + 1): `top_exponent` is the weight of the most significant bit. Results below the
// normal range are subnormal, those beyond the largest number infinite whatever the rounding, zero is +0 unless SIGNED_ZERO.
// A cut that an earlier step made can be passed on as a sticky bit: append it to the magnitude as its last bit.

module fp_round #(
    parameter int MAG         = 33,      // bits of the magnitude
    parameter int EXP_W       = 11,      // bits of top_exponent, signed; must also hold the exponents of the result
    parameter int MIN_TOP     = -127,    // least top_exponent that comes
    parameter int D_EXP       = 8,       // result: exponent bits (IEEE bias and specials)
    parameter int D_FRAC      = 23,      // result: fraction bits
    parameter int KEEP        = D_FRAC,  // of these the bits that are kept; those below are 0 (E8M13: 13 of 23)
    parameter int NEAREST     = 0,       // 0: toward zero; 1: to nearest, ties to even
    parameter int SIGNED_ZERO = 0        // 0: a zero result is +0; 1: it keeps the sign
) (
    input  logic                         sign,
    input  logic signed [EXP_W-1:0]      top_exponent,
    input  logic        [MAG-1:0]        magnitude,
    output logic        [D_EXP+D_FRAC:0] result
);

    localparam int BIAS    = (1 << (D_EXP - 1)) - 1;
    localparam int MIN_EXP = 1 - BIAS;
    // Zeros above, so that the MSB never weighs less than 2**MIN_EXP: then subnormals too only need shifts to the left.
    localparam int ABOVE   = MIN_TOP < MIN_EXP ? MIN_EXP - MIN_TOP : 0;
    // Zeros below, so that there are a leading digit, KEEP fraction bits, a round bit and a sticky bit at least.
    localparam int BELOW   = ABOVE + MAG < KEEP + 3 ? KEEP + 3 - ABOVE - MAG : 0;
    localparam int W       = ABOVE + MAG + BELOW;
    localparam int STEPS   = $clog2(W);

    // Shift left by the leading zeros, but no further than to 2**MIN_EXP. Greedy in powers of two, largest first.
    logic        [W-1:0]     norm;
    logic signed [EXP_W-1:0] exponent;
    integer                  i;

    always_comb begin
        norm     = W'(magnitude) << BELOW;
        exponent = top_exponent + EXP_W'(ABOVE);
        for (i = STEPS - 1; i >= 0; i = i - 1) begin
            if ((norm >> (W - (1 << i))) == 0 && exponent >= EXP_W'(MIN_EXP + (1 << i))) begin
                norm     = norm << (1 << i);
                exponent = exponent - EXP_W'(1 << i);
            end
        end
    end

    wire leading   = norm[W-1];
    wire round_bit = norm[W-2-KEEP];
    wire sticky    = |norm[W-3-KEEP:0];
    wire up        = NEAREST != 0 && round_bit && (sticky || norm[W-1-KEEP]);

    // Exponent field above the fraction: a carry out of the fraction moves into it, from subnormal to normal too.
    wire        [EXP_W-1:0]      field   = leading ? EXP_W'(exponent + EXP_W'(BIAS)) : EXP_W'(0);
    wire        [EXP_W+KEEP-1:0] rounded = {field, norm[W-2-:KEEP]} + (EXP_W + KEEP)'(up);
    wire                         zero    = rounded == 0;
    wire                         beyond  = rounded[EXP_W+KEEP-1:KEEP] >= EXP_W'((1 << D_EXP) - 1);
    wire        [D_EXP+KEEP-1:0] finite  = rounded[D_EXP+KEEP-1:0];

    wire [D_EXP+D_FRAC-1:0] infinity = {{D_EXP{1'b1}}, {D_FRAC{1'b0}}};
    wire [D_EXP+D_FRAC-1:0] number   = (D_EXP + D_FRAC)'(finite) << (D_FRAC - KEEP);

    assign result = {sign && !(zero && SIGNED_ZERO == 0), beyond ? infinity : number};

endmodule
