// Decodes one floating-point code: sign, exponent, significand with its leading digit, class. Combinational.
//
// code, from MSB to LSB: sign, EXP exponent bits, FRAC fraction bits, DROP ignored bits. The ignored bits are dropped before
// the code is classified: a tf32 NaN with payload in them alone is an infinity (MMA-Sim IV-C, "TF32 truncation").
// A subnormal keeps the format's least exponent and a leading digit 0; it is not normalised, which the alignment of the
// NVIDIA units sees (MMA-Sim IV-C).
// Formats and their parameters: spec/formats/formats.yaml.

module fp_decode #(
    parameter int EXP      = 5,       // exponent bits
    parameter int FRAC     = 10,      // fraction bits, at least 1
    parameter int DROP     = 0,       // low bits of the container that the unit ignores (tf32: 13)
    parameter int BIAS     = 15,
    parameter int SPECIALS = 1,       // codes that are no numbers. 0: none; 1: IEEE 754; 2: all ones is NaN; 3: -0 is NaN
    parameter int EXP_W    = EXP + 1  // bits of the signed exponent: 1-BIAS .. 2**EXP-1-BIAS fits in EXP + 1
) (
    input  logic        [EXP+FRAC+DROP:0] code,
    output logic                          sign,
    output logic signed [EXP_W-1:0]       exponent,
    output logic        [FRAC:0]          significand,  // 1 integer bit and FRAC fraction bits
    output logic                          is_nan,
    output logic                          is_inf
);

    wire [EXP-1:0]  field    = code[DROP+FRAC+:EXP];
    wire [FRAC-1:0] fraction = code[DROP+:FRAC];
    wire            normal   = field != 0;
    wire            ones     = &field;

    assign sign        = code[DROP+FRAC+EXP];
    assign exponent    = $signed(EXP_W'(field)) + EXP_W'(normal ? -BIAS : 1 - BIAS);
    assign significand = {normal, fraction};
    assign is_inf      = SPECIALS == 1 && ones && fraction == 0;
    assign is_nan      = (SPECIALS == 1 && ones && fraction != 0)
                      || (SPECIALS == 2 && ones && &fraction)
                      || (SPECIALS == 3 && sign && !normal && fraction == 0);

    generate
        if (DROP > 0) begin : g_drop
            // The ignored bits end here.
            wire unused = &{1'b0, code[DROP-1:0]};
        end
    endgenerate

endmodule
