// Normalises the total of a CDNA3 unit, rounds it down at KEEP fraction bits and then to f32 to nearest even, or gives
// the special value. Combinational. Source: MMA-Sim section IV-F, step 5; spec/algorithms/fdrda.yaml, normalize and round.

module round_down_result #(
    parameter int TOTAL_W = 39,
    parameter int F2      = 32,  // fraction bits of total
    parameter int KEEP    = 31,  // fraction bits of the normalised total
    parameter int EXP_W   = 10
) (
    input  logic signed [TOTAL_W-1:0] total,
    input  logic signed [EXP_W-1:0]   exponent,  // weight of total's bit F2, at least -126
    input  logic [2:0]                special,   // {result is NaN, result is infinite, sign of the infinity}
    output logic [31:0]               d
);

    localparam int MAG   = TOTAL_W - 1;  // |total| is below 2**MAG: the carry bit is there for the sum's sake
    localparam int STEPS = $clog2(MAG);
    localparam int CUT   = MAG - 1 - KEEP;

    wire           sign      = total[TOTAL_W-1];
    wire [MAG-1:0] magnitude = MAG'(sign ? -total : total);

    // 1. Leading one to the top, but the top not below 2**-126. Greedy in powers of two, largest first.
    reg        [MAG-1:0]   normal;
    reg signed [EXP_W-1:0] top;
    integer                i;

    always_comb begin
        normal = magnitude;
        top    = exponent + EXP_W'(MAG - 1 - F2);
        for (i = STEPS - 1; i >= 0; i = i - 1) begin
            if ((normal >> (MAG - (1 << i))) == 0 && top >= EXP_W'((1 << i) - 126)) begin
                normal = normal << (1 << i);
                top    = top - EXP_W'(1 << i);
            end
        end
    end

    // 2. Round down: the magnitude of a negative number goes up if anything is cut. One more bit for the carry.
    wire [KEEP+1:0] kept = {1'b0, normal[MAG-1-:KEEP+1]} + (KEEP + 2)'(sign && normal[CUT-1:0] != 0);

    // 3. Round to f32. A zero total is +0; a negative one is never rounded down to zero, and keeps its sign if it underflows.
    wire [31:0] rounded;
    fp_round #(
        .MAG(KEEP + 2), .EXP_W(EXP_W), .MIN_TOP(-125), .NEAREST(1), .SIGNED_ZERO(1)
    ) u_round (
        .sign(sign), .top_exponent(top + EXP_W'(1)), .magnitude(kept), .result(rounded)
    );

    // The payload of a NaN on the hardware is not known: the default quiet NaN stands for any.
    assign d = special[2] ? 32'h7FC00000 : special[1] ? {special[0], 8'hFF, 23'd0} : rounded;

endmodule
