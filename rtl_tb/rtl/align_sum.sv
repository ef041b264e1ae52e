// Aligns products to the largest exponent among them, cut toward zero at F fraction bits, and adds them exactly.
// Combinational. Source: MMA-Sim section IV-F, steps 2 and 3; spec/algorithms/fdrda.yaml.
//
// Zero products (not live) take no part in the maximum. A sum that cancels keeps the exponent of its products.

module align_sum #(
    parameter int TERMS   = 8,
    parameter int IN_FRAC = 20,               // fraction bits of a product, which has 2 integer bits
    parameter int F       = 24,
    parameter int EXP_W   = 10,
    parameter int LOWEST  = -252,             // least exponent of a product
    parameter int SUM_W   = 3 + $clog2(TERMS) + F  // sign, 2 integer bits, carries, fraction
) (
    input  logic        [TERMS-1:0]             live,
    input  logic        [TERMS-1:0]             sign,
    input  logic        [TERMS*EXP_W-1:0]       exponent,
    input  logic        [TERMS*(2+IN_FRAC)-1:0] significand,
    output logic signed [EXP_W-1:0]             maximum,
    output logic signed [SUM_W-1:0]             sum
);

    logic [TERMS*(2+F)-1:0] aligned;
    genvar                  g;
    integer                 i;

    max_exponent #(
        .TERMS(TERMS), .EXP_W(EXP_W), .FLOOR(LOWEST)
    ) u_maximum (
        .live(live), .exponents(exponent), .maximum(maximum)
    );

    generate
        for (g = 0; g < TERMS; g = g + 1) begin : g_term
            align_shift #(
                .INT(2), .IN_FRAC(IN_FRAC), .OUT_FRAC(F), .EXP_W(EXP_W)
            ) u_align (
                .magnitude(significand[g*(2+IN_FRAC)+:2+IN_FRAC]), .exponent(exponent[g*EXP_W+:EXP_W]),
                .maximum(maximum), .aligned(aligned[g*(2+F)+:2+F])
            );
        end
    endgenerate

    always_comb begin
        sum = 0;
        for (i = 0; i < TERMS; i = i + 1) begin
            if (sign[i]) sum = sum - SUM_W'(aligned[i*(2+F)+:2+F]);
            else sum = sum + SUM_W'(aligned[i*(2+F)+:2+F]);
        end
    end

endmodule
