// The largest exponent of the live terms, but at least FLOOR (MMA-Sim IV-C, step 2). Combinational.
//
// Zeros are not live: they hold the maximum at FLOOR and take no other part (spec/algorithms/fda.yaml, exponent_floor).
// Taking the floor always, not only when there is a zero, is the same function: without a zero c the maximum is at
// least the least exponent of c's format, which lies above every floor in use.

module max_exponent #(
    parameter int TERMS = 2,
    parameter int EXP_W = 10,
    parameter int FLOOR = -133
) (
    input  logic        [TERMS-1:0]       live,
    input  logic        [TERMS*EXP_W-1:0] exponents,  // signed, EXP_W bits each
    output logic signed [EXP_W-1:0]       maximum
);

    integer i;

    always_comb begin
        maximum = EXP_W'(FLOOR);
        for (i = 0; i < TERMS; i = i + 1) begin
            if (live[i] && $signed(exponents[i*EXP_W+:EXP_W]) > maximum) maximum = exponents[i*EXP_W+:EXP_W];
        end
    end

endmodule
