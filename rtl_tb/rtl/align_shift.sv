// Shifts one magnitude right to the common exponent and truncates it toward zero (MMA-Sim IV-C, step 3). Combinational.
//
// IN_FRAC fraction bits come in, OUT_FRAC = F go out; the integer bits stay. The shifter holds the larger of both, so
// that only bits below 2**(maximum - F) are cut. `maximum` must not be below `exponent` unless the magnitude is zero.

module align_shift #(
    parameter int INT      = 2,   // integer bits of the magnitude
    parameter int IN_FRAC  = 20,
    parameter int OUT_FRAC = 25,
    parameter int EXP_W    = 10
) (
    input  logic        [INT+IN_FRAC-1:0]  magnitude,
    input  logic signed [EXP_W-1:0]        exponent,
    input  logic signed [EXP_W-1:0]        maximum,
    output logic        [INT+OUT_FRAC-1:0] aligned
);

    localparam int FRAC = IN_FRAC > OUT_FRAC ? IN_FRAC : OUT_FRAC;
    localparam int W    = INT + FRAC;

    // One bit more than an exponent; never negative where it matters. Shifts of W and more leave nothing.
    wire [EXP_W:0] distance = (EXP_W + 1)'(maximum) - (EXP_W + 1)'(exponent);
    wire [W-1:0]   placed   = W'(magnitude) << (FRAC - IN_FRAC);
    wire [W-1:0]   shifted  = placed >> distance;

    assign aligned = shifted[W-1-:INT+OUT_FRAC];

    generate
        if (FRAC > OUT_FRAC) begin : g_cut
            // Truncation: the bits below the window end here.
            wire unused = &{1'b0, shifted[FRAC-OUT_FRAC-1:0]};
        end
    endgenerate

endmodule
