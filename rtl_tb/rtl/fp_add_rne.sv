// IEEE 754 addition z = x + y of one binary format, rounded to nearest even. Combinational.
//
// FLUSH = 1 replaces a subnormal sum by zero of its sign (CDNA2: spec/algorithms/gps.yaml). A subnormal sum is exact,
// because all its bits lie on the grid of the operands, so flushing before or after rounding is the same.
// Subnormal operands are numbers like any other; who must not see them flushes them first.
// Every NaN result is the default quiet NaN: which payload AMD hardware gives is not known.

module fp_add_rne #(
    parameter int EXP   = 8,   // exponent bits
    parameter int FRAC  = 23,  // fraction bits
    parameter int FLUSH = 0
) (
    input  logic [EXP+FRAC:0] x,
    input  logic [EXP+FRAC:0] y,
    output logic [EXP+FRAC:0] z
);

    localparam int BIAS  = (1 << (EXP - 1)) - 1;
    localparam int EXP_W = EXP + 2;   // signed exponents, one above the format's largest and distances included
    localparam int W     = FRAC + 5;  // carry, significand (FRAC + 1), guard, round and sticky bit

    // 1. The larger magnitude becomes `p`: codes without their sign order like numbers, a NaN above infinity.
    wire                    swap = x[EXP+FRAC-1:0] < y[EXP+FRAC-1:0];
    wire                    p_sign, q_sign, p_nan, q_nan, p_inf, q_inf;
    wire signed [EXP_W-1:0] p_exponent, q_exponent;
    wire [FRAC:0]           p_significand, q_significand;

    fp_decode #(.EXP(EXP), .FRAC(FRAC), .BIAS(BIAS), .EXP_W(EXP_W)) u_p (
        .code(swap ? y : x), .sign(p_sign), .exponent(p_exponent), .significand(p_significand), .is_nan(p_nan), .is_inf(p_inf)
    );
    fp_decode #(.EXP(EXP), .FRAC(FRAC), .BIAS(BIAS), .EXP_W(EXP_W)) u_q (
        .code(swap ? x : y), .sign(q_sign), .exponent(q_exponent), .significand(q_significand), .is_nan(q_nan), .is_inf(q_inf)
    );

    // 2. Align q. Guard, round and sticky bit are enough: a shift of one loses nothing, and after a shift of two or more
    //    a difference has one leading zero at most.
    wire [EXP_W-1:0] distance = p_exponent - q_exponent;
    wire [W-1:0]     p_placed = {1'b0, p_significand, 3'b0};
    wire [W-1:0]     q_placed = {1'b0, q_significand, 3'b0};
    wire [W-1:0]     lost     = q_placed & ~({W{1'b1}} << distance);
    wire [W-1:0]     q_kept   = q_placed >> distance;
    wire [W-1:0]     aligned  = q_kept | W'(lost != 0);

    // 3. Add or subtract magnitudes (p is not the smaller), then normalise and round once.
    wire              differ = p_sign != q_sign;
    wire [W-1:0]      total  = differ ? p_placed - aligned : p_placed + aligned;
    wire [EXP+FRAC:0] rounded;

    fp_round #(
        .MAG(W), .EXP_W(EXP_W), .MIN_TOP(2 - BIAS), .D_EXP(EXP), .D_FRAC(FRAC), .NEAREST(1), .SIGNED_ZERO(1)
    ) u_round (
        .sign(p_sign), .top_exponent(p_exponent + EXP_W'(1)), .magnitude(total), .result(rounded)
    );

    // 4. Special values and zeros: x - x is +0, two zeros of one sign keep it (IEEE 754 section 6.3).
    wire is_nan    = p_nan || q_nan || (p_inf && q_inf && differ);
    wire cancelled = total == 0 && differ;
    wire to_zero   = FLUSH != 0 && rounded[FRAC+:EXP] == 0;

    assign z = is_nan ? {1'b0, {EXP{1'b1}}, 1'b1, {(FRAC-1){1'b0}}}
             : p_inf ? {p_sign, {EXP{1'b1}}, {FRAC{1'b0}}}
             : cancelled ? {(EXP+FRAC+1){1'b0}}
             : to_zero ? {p_sign, {(EXP+FRAC){1'b0}}}
             : rounded;

endmodule
