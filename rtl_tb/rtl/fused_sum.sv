// The back half of a fused dot-add: aligns TERMS terms and c to their largest exponent, truncates them to F fraction bits,
// sums them exactly and rounds once (MMA-Sim IV-C, steps 2 to 5; spec/algorithms/fda.yaml).
//
// Pipeline: 1 largest exponent, 2 alignment, 3 sum, 4 rounding; one result a cycle.
// Widths, for `T` the largest term's significand and c below 2:
//   aligned addend   1 sign + INT + F        INT integer bits of a term (FDA: 2, a product is below 4)
//   sum              1 sign + SUM_INT + F    SUM_INT = bits of floor(TERMS * T) + 2, so that nothing can overflow
// FLOOR is the exponent that zeros hold: e_min(D) - SUM_INT in all units measured so far.

module fused_sum #(
    parameter int TERMS    = 16,
    parameter int INT      = 2,    // integer bits of a term's significand
    parameter int FRAC     = 20,   // fraction bits of a term's significand
    parameter int SUM_INT  = 7,    // integer bits of the magnitude of the sum of all terms and c
    parameter int EXP_W    = 10,   // bits of the exponents, signed
    parameter int F        = 25,   // fraction bits kept after the alignment
    parameter int FLOOR    = -133, // least exponent to align to
    parameter int C_FRAC   = 23,   // fraction bits of c
    parameter int D_EXP    = 8,
    parameter int D_FRAC   = 23,
    parameter int D_KEEP   = D_FRAC,  // fraction bits of the result (E8M13: 13), the others are 0
    parameter int NEAREST  = 0,       // rounding of the result. 0: toward zero; 1: to nearest, ties to even
    parameter int NAN_WORD = 32'h7FFFFFFF  // the only NaN that comes out
) (
    input  logic                        clk,
    input  logic                        rst_n,
    input  logic                        in_valid,
    output logic                        in_ready,
    input  logic [TERMS-1:0]            live,           // the term takes part in the maximum (it is not a zero)
    input  logic [TERMS-1:0]            sign,
    input  logic [TERMS*EXP_W-1:0]      exponent,
    input  logic [TERMS*(INT+FRAC)-1:0] significand,
    input  logic                        c_sign,
    input  logic [EXP_W-1:0]            c_exponent,
    input  logic [C_FRAC:0]             c_significand,
    input  logic [2:0]                  special,        // {result is NaN, result is infinite, sign of the infinity}
    output logic                        out_valid,
    input  logic                        out_ready,
    output logic [D_EXP+D_FRAC:0]       d
);

    localparam int SIG_W   = INT + FRAC;
    localparam int ADD_W   = INT + F;          // magnitude of an aligned term
    localparam int C_ADD_W = 1 + F;            // magnitude of the aligned c, 1 integer bit
    localparam int SUM_W   = 1 + SUM_INT + F;  // two's complement
    localparam int TOP_W   = EXP_W + 1;        // the sum's top bit weighs up to 2**(largest exponent + SUM_INT - 1)

    genvar g;

    // Stage 1: the largest exponent. c comes as one term more.
    logic signed [EXP_W-1:0] maximum;

    max_exponent #(
        .TERMS(TERMS + 1), .EXP_W(EXP_W), .FLOOR(FLOOR)
    ) u_max (
        .live({c_significand != 0, live}), .exponents({c_exponent, exponent}), .maximum(maximum)
    );

    logic                    valid1, ready1;
    logic [TERMS-1:0]        sign1;
    logic [TERMS*EXP_W-1:0]  exponent1;
    logic [TERMS*SIG_W-1:0]  significand1;
    logic                    c_sign1;
    logic [EXP_W-1:0]        c_exponent1, maximum1;
    logic [C_FRAC:0]         c_significand1;
    logic [2:0]              special1;

    assign in_ready = !valid1 || ready1;

    always_ff @(posedge clk) begin
        if (!rst_n) valid1 <= 1'b0;
        else if (in_ready) valid1 <= in_valid;
        if (in_valid && in_ready) begin
            sign1          <= sign;
            exponent1      <= exponent;
            significand1   <= significand;
            c_sign1        <= c_sign;
            c_exponent1    <= c_exponent;
            c_significand1 <= c_significand;
            maximum1       <= maximum;
            special1       <= special;
        end
    end

    // Stage 2: alignment and truncation, in sign and magnitude.
    logic [TERMS*ADD_W-1:0] aligned;
    logic [C_ADD_W-1:0]     c_aligned;

    generate
        for (g = 0; g < TERMS; g = g + 1) begin : g_align
            logic [ADD_W-1:0] addend;

            align_shift #(
                .INT(INT), .IN_FRAC(FRAC), .OUT_FRAC(F), .EXP_W(EXP_W)
            ) u_align (
                .magnitude(significand1[g*SIG_W+:SIG_W]), .exponent(exponent1[g*EXP_W+:EXP_W]),
                .maximum(maximum1), .aligned(addend)
            );

            always_comb aligned[g*ADD_W+:ADD_W] = addend;  // see product_array.sv
        end
    endgenerate

    align_shift #(
        .INT(1), .IN_FRAC(C_FRAC), .OUT_FRAC(F), .EXP_W(EXP_W)
    ) u_align_c (
        .magnitude(c_significand1), .exponent(c_exponent1), .maximum(maximum1), .aligned(c_aligned)
    );

    logic                   valid2, ready2;
    logic [TERMS-1:0]       sign2;
    logic [TERMS*ADD_W-1:0] aligned2;
    logic                   c_sign2;
    logic [C_ADD_W-1:0]     c_aligned2;
    logic [EXP_W-1:0]       maximum2;
    logic [2:0]             special2;

    assign ready1 = !valid2 || ready2;

    always_ff @(posedge clk) begin
        if (!rst_n) valid2 <= 1'b0;
        else if (ready1) valid2 <= valid1;
        if (valid1 && ready1) begin
            sign2      <= sign1;
            aligned2   <= aligned;
            c_sign2    <= c_sign1;
            c_aligned2 <= c_aligned;
            maximum2   <= maximum1;
            special2   <= special1;
        end
    end

    // Stage 3: the exact sum, in two's complement.
    logic [SUM_W-1:0] sum;
    integer           i;

    always_comb begin
        sum = c_sign2 ? SUM_W'(0) - SUM_W'(c_aligned2) : SUM_W'(c_aligned2);
        for (i = 0; i < TERMS; i = i + 1) begin
            if (sign2[i]) sum = sum - SUM_W'(aligned2[i*ADD_W+:ADD_W]);
            else sum = sum + SUM_W'(aligned2[i*ADD_W+:ADD_W]);
        end
    end

    logic             valid3, ready3;
    logic [SUM_W-1:0] sum3;
    logic [EXP_W-1:0] maximum3;
    logic [2:0]       special3;

    assign ready2 = !valid3 || ready3;

    always_ff @(posedge clk) begin
        if (!rst_n) valid3 <= 1'b0;
        else if (ready2) valid3 <= valid2;
        if (valid2 && ready2) begin
            sum3     <= sum;
            maximum3 <= maximum2;
            special3 <= special2;
        end
    end

    // Stage 4: back to sign and magnitude, one rounding, special results.
    logic                    negative;
    logic [SUM_W-2:0]        magnitude;
    logic signed [TOP_W-1:0] top_exponent;
    logic [D_EXP+D_FRAC:0]   rounded, result;

    assign negative     = sum3[SUM_W-1];
    assign magnitude    = negative ? -sum3[SUM_W-2:0] : sum3[SUM_W-2:0];  // below 2**(SUM_INT + F), so one bit less holds it
    assign top_exponent = TOP_W'($signed(maximum3)) + TOP_W'(SUM_INT - 1);

    fp_round #(
        .MAG(SUM_W - 1), .EXP_W(TOP_W), .MIN_TOP(FLOOR + SUM_INT - 1),
        .D_EXP(D_EXP), .D_FRAC(D_FRAC), .KEEP(D_KEEP), .NEAREST(NEAREST)
    ) u_round (
        .sign(negative), .top_exponent(top_exponent), .magnitude(magnitude), .result(rounded)
    );

    assign result = special3[2] ? NAN_WORD[D_EXP+D_FRAC:0]
                  : special3[1] ? {special3[0], {D_EXP{1'b1}}, {D_FRAC{1'b0}}}
                  : rounded;

    assign ready3 = !out_valid || out_ready;

    always_ff @(posedge clk) begin
        if (!rst_n) out_valid <= 1'b0;
        else if (ready3) out_valid <= valid3;
        if (valid3 && ready3) begin
            d <= result;
        end
    end

endmodule
