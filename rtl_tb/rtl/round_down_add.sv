// Meets the dot product with c: both are aligned to the larger exponent (at least -126), rounded down (toward minus
// infinity), and added exactly. Combinational. Source: MMA-Sim section IV-F, step 4, with the changes that
// spec/algorithms/fdrda.yaml notes: the dot product keeps F2 fraction bits, c keeps F.
//
// Rounding down is an arithmetic shift in two's complement: a negative number, however small, leaves -1 in the last place.
// That is why GFDRDA drops a c that is more than C_WINDOW binades below the maximum (spec/algorithms/gfdrda.yaml).

module round_down_add #(
    parameter int DOT_W    = 30,  // bits of the dot product, two's complement, F of them fraction
    parameter int F        = 24,  // fraction bits of c; at least 23
    parameter int F2       = 32,  // fraction bits of the dot product
    parameter int C_WINDOW = 0,   // 0: no window
    parameter int EXP_W    = 10,
    parameter int TOTAL_W  = DOT_W + F2 - F + 1  // one carry
) (
    input  logic signed [DOT_W-1:0]   dot,
    input  logic signed [EXP_W-1:0]   dot_exponent,
    input  logic                      dot_live,       // 0: all products are zero
    input  logic                      c_sign,
    input  logic signed [EXP_W-1:0]   c_exponent,
    input  logic        [23:0]        c_significand,  // 1 integer bit
    output logic signed [TOTAL_W-1:0] total,
    output logic signed [EXP_W-1:0]   exponent        // of total's bit F2
);

    max_exponent #(
        .TERMS(2), .EXP_W(EXP_W), .FLOOR(-126)
    ) u_maximum (
        .live({dot_live, c_significand != 0}), .exponents({dot_exponent, c_exponent}), .maximum(exponent)
    );

    // Distances are not negative but for zeros, which may shift by anything.
    wire [EXP_W-1:0] dot_distance = exponent - dot_exponent;
    wire [EXP_W-1:0] c_distance   = exponent - c_exponent;
    wire             c_in_window  = C_WINDOW == 0 || c_distance <= EXP_W'(C_WINDOW);

    wire signed [TOTAL_W-1:0] dot_placed  = TOTAL_W'(dot) <<< (F2 - F);
    wire signed [F+1:0]       c_magnitude = (F + 2)'(c_significand) << (F - 23);
    wire signed [F+1:0]       c_placed    = c_sign ? -c_magnitude : c_magnitude;
    wire signed [TOTAL_W-1:0] dot_kept    = dot_placed >>> dot_distance;
    wire signed [F+1:0]       c_kept      = c_placed >>> c_distance;

    assign total = dot_kept + (c_in_window ? TOTAL_W'(c_kept) <<< (F2 - F) : TOTAL_W'(0));

endmodule
