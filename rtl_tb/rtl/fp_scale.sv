// Decodes a block scale, an unsigned number in 8 bits. Combinational.
//
// ue8m0 (EXP 8, FRAC 0): 2**(code - 127), no zero, no subnormals; 0x00 is 2**-127 and 0xFF is NaN.
// ue4m3 (EXP 4, FRAC 3): e4m3 whose bit 7 is ignored, so 0x7F and 0xFF are NaN; 0x00 is zero, subnormals keep exponent -6
// (MMA-Sim IV-E, "UE4M3 truncation").

module fp_scale #(
    parameter int EXP   = 4,
    parameter int FRAC  = 3,
    parameter int EXP_W = 9  // bits of the signed exponent, more than EXP
) (
    input  logic        [7:0]       code,
    output logic signed [EXP_W-1:0] exponent,
    output logic        [FRAC:0]    significand,  // 1 integer bit
    output logic                    is_nan
);

    generate
        if (FRAC == 0) begin : g_power
            assign exponent    = $signed(EXP_W'(code)) - EXP_W'(127);
            assign significand = 1'b1;
            assign is_nan      = &code;
        end else begin : g_number
            logic ignored_sign, no_infinity;

            fp_decode #(
                .EXP(EXP), .FRAC(FRAC), .BIAS((1 << (EXP - 1)) - 1), .SPECIALS(2), .EXP_W(EXP_W)
            ) u_decode (
                .code(code), .sign(ignored_sign), .exponent(exponent), .significand(significand),
                .is_nan(is_nan), .is_inf(no_infinity)
            );

            wire unused = &{1'b0, ignored_sign, no_infinity};
        end
    endgenerate

endmodule
