// Group-dot fused sum: d = round(c + sum over groups of scale_a * scale_b * (exact dot product of 16 e2m1 pairs)).
//
// Source: MMA-Sim (arXiv 2511.10909) section IV-E; spec/algorithms/gdfs.yaml. The FP4 instructions `kind::mxf4` and
// `kind::mxf4nvf4`: NVFP4 (ue4m3 scales for 16 elements, BLOCK 16) and MXFP4 (ue8m0 for 32, BLOCK 32, so that two groups
// share a scale).
//
// A group's term is (its sum) * (the scales' significands), exact; its exponent for the alignment is that of the two
// scales alone. A group whose products cancel keeps that exponent and may push others out of the window; a group whose
// products are all zero, or with a zero scale, does not take part (`live`). A NaN scale makes the result NaN.
//
// Latency 6 cycles, one dot product a cycle: 1 group sums, 2 scaling, then the four stages of fused_sum.sv.
// Widths for NVFP4 with F = 35: group sum 1 + 10 + 2, scaled 11 + 8, aligned 1 + 11 + 35, sum 1 + 13 + 35 bits.

module gdfs #(
    parameter int K        = 64,    // products
    parameter int GROUP    = 16,    // products of one group
    parameter int BLOCK    = 16,    // elements under one scale, a multiple of GROUP
    parameter int S_EXP    = 4,     // scales: ue4m3 (4, 3) or ue8m0 (8, 0)
    parameter int S_FRAC   = 3,
    parameter int F        = 35,    // fraction bits kept after the alignment
    parameter int FLOOR    = -139,  // exponent that zeros hold
    parameter int NAN_WORD = 32'h7FFFFFFF
) (
    input  logic                 clk,
    input  logic                 rst_n,
    input  logic                 in_valid,
    output logic                 in_ready,
    input  logic [K*4-1:0]       a,          // e2m1
    input  logic [K*4-1:0]       b,
    input  logic [31:0]          c,          // f32
    input  logic [K/BLOCK*8-1:0] scale_a,
    input  logic [K/BLOCK*8-1:0] scale_b,
    output logic                 out_valid,
    input  logic                 out_ready,
    output logic [31:0]          d
);

    localparam int GROUPS = K / GROUP;
    localparam int BLOCKS = K / BLOCK;
    localparam int C_FRAC = 23;
    // Exponents: two scales of S_EXP + 1 bits each add up in S_EXP + 2; c needs 9.
    localparam int EXP_W  = S_EXP + 2 > 9 ? S_EXP + 2 : 9;

    localparam int SUM_W  = 9 + $clog2(GROUP);           // a group's sum in quarters, two's complement
    localparam int S_W    = S_FRAC + 1;
    localparam int FRAC   = 2 + 2 * S_FRAC;              // quarters, times two significands
    localparam int UNIT   = ((2 << S_FRAC) - 1) * ((2 << S_FRAC) - 1);
    localparam int TERM   = (GROUP * 144 * UNIT) >> FRAC;  // largest term in whole units, rounded down
    localparam int INT    = $clog2(TERM + 1);
    localparam int SIG_W  = INT + FRAC;
    localparam int LARGEST = ((GROUPS * GROUP * 144 * UNIT) >> FRAC) + 3;  // all terms, and c below 2
    localparam int SUM_INT = $clog2(LARGEST);

    genvar g;

    // Stage 1: exact group sums; c and the scales decoded.
    logic [GROUPS*SUM_W-1:0] group_sum;
    logic [GROUPS-1:0]       group_live;
    logic [BLOCKS*EXP_W-1:0] a_exponent, b_exponent;
    logic [BLOCKS*S_W-1:0]   a_scale, b_scale;
    logic [BLOCKS-1:0]       a_nan, b_nan;
    logic                    c_sign, c_nan, c_inf;
    logic [EXP_W-1:0]        c_exponent;
    logic [C_FRAC:0]         c_significand;
    logic [2:0]              special;

    generate
        for (g = 0; g < GROUPS; g = g + 1) begin : g_group
            group_dot #(
                .N(GROUP), .SUM_W(SUM_W)
            ) u_dot (
                .a(a[g*GROUP*4+:GROUP*4]), .b(b[g*GROUP*4+:GROUP*4]),
                .sum(group_sum[g*SUM_W+:SUM_W]), .live(group_live[g])
            );
        end
        for (g = 0; g < BLOCKS; g = g + 1) begin : g_scale
            fp_scale #(
                .EXP(S_EXP), .FRAC(S_FRAC), .EXP_W(EXP_W)
            ) u_a (
                .code(scale_a[g*8+:8]), .exponent(a_exponent[g*EXP_W+:EXP_W]), .significand(a_scale[g*S_W+:S_W]),
                .is_nan(a_nan[g])
            );
            fp_scale #(
                .EXP(S_EXP), .FRAC(S_FRAC), .EXP_W(EXP_W)
            ) u_b (
                .code(scale_b[g*8+:8]), .exponent(b_exponent[g*EXP_W+:EXP_W]), .significand(b_scale[g*S_W+:S_W]),
                .is_nan(b_nan[g])
            );
        end
    endgenerate

    fp_decode #(
        .EXP(8), .FRAC(C_FRAC), .BIAS(127), .SPECIALS(1), .EXP_W(EXP_W)
    ) u_c (
        .code(c), .sign(c_sign), .exponent(c_exponent), .significand(c_significand), .is_nan(c_nan), .is_inf(c_inf)
    );

    // Neither e2m1 nor the scales have infinities.
    assign special = {c_nan || |a_nan || |b_nan, c_inf, c_sign};

    logic                    valid1, ready1;
    logic [GROUPS*SUM_W-1:0] group_sum1;
    logic [GROUPS-1:0]       group_live1;
    logic [BLOCKS*EXP_W-1:0] a_exponent1, b_exponent1;
    logic [BLOCKS*S_W-1:0]   a_scale1, b_scale1;
    logic                    c_sign1;
    logic [EXP_W-1:0]        c_exponent1;
    logic [C_FRAC:0]         c_significand1;
    logic [2:0]              special1;

    assign in_ready = !valid1 || ready1;

    always_ff @(posedge clk) begin
        if (!rst_n) valid1 <= 1'b0;
        else if (in_ready) valid1 <= in_valid;
        if (in_valid && in_ready) begin
            group_sum1     <= group_sum;
            group_live1    <= group_live;
            a_exponent1    <= a_exponent;
            b_exponent1    <= b_exponent;
            a_scale1       <= a_scale;
            b_scale1       <= b_scale;
            c_sign1        <= c_sign;
            c_exponent1    <= c_exponent;
            c_significand1 <= c_significand;
            special1       <= special;
        end
    end

    // Stage 2: each group in sign and magnitude, times its scales.
    logic [GROUPS-1:0]       live, sign;
    logic [GROUPS*EXP_W-1:0] exponent;
    logic [GROUPS*SIG_W-1:0] significand;
    logic [SUM_W-2:0]        one_sum;  // magnitude: at most 144 * GROUP
    logic [S_W-1:0]          one_a, one_b;
    integer                  i, block;

    always_comb begin
        for (i = 0; i < GROUPS; i = i + 1) begin
            block   = i * GROUP / BLOCK;
            one_a   = a_scale1[block*S_W+:S_W];
            one_b   = b_scale1[block*S_W+:S_W];
            sign[i] = group_sum1[i*SUM_W+SUM_W-1];
            one_sum = sign[i] ? -group_sum1[i*SUM_W+:SUM_W-1] : group_sum1[i*SUM_W+:SUM_W-1];
            live[i] = group_live1[i] && one_a != 0 && one_b != 0;
            exponent[i*EXP_W+:EXP_W]    = a_exponent1[block*EXP_W+:EXP_W] + b_exponent1[block*EXP_W+:EXP_W];
            significand[i*SIG_W+:SIG_W] = SIG_W'(one_sum) * SIG_W'(one_a) * SIG_W'(one_b);
        end
    end

    logic                    valid2, ready2;
    logic [GROUPS-1:0]       live2, sign2;
    logic [GROUPS*EXP_W-1:0] exponent2;
    logic [GROUPS*SIG_W-1:0] significand2;
    logic                    c_sign2;
    logic [EXP_W-1:0]        c_exponent2;
    logic [C_FRAC:0]         c_significand2;
    logic [2:0]              special2;

    assign ready1 = !valid2 || ready2;

    always_ff @(posedge clk) begin
        if (!rst_n) valid2 <= 1'b0;
        else if (ready1) valid2 <= valid1;
        if (valid1 && ready1) begin
            live2          <= live;
            sign2          <= sign;
            exponent2      <= exponent;
            significand2   <= significand;
            c_sign2        <= c_sign1;
            c_exponent2    <= c_exponent1;
            c_significand2 <= c_significand1;
            special2       <= special1;
        end
    end

    fused_sum #(
        .TERMS(GROUPS), .INT(INT), .FRAC(FRAC), .SUM_INT(SUM_INT), .EXP_W(EXP_W), .F(F), .FLOOR(FLOOR),
        .C_FRAC(C_FRAC), .D_EXP(8), .D_FRAC(C_FRAC), .NAN_WORD(NAN_WORD)
    ) u_sum (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid2), .in_ready(ready2),
        .live(live2), .sign(sign2), .exponent(exponent2), .significand(significand2),
        .c_sign(c_sign2), .c_exponent(c_exponent2), .c_significand(c_significand2), .special(special2),
        .out_valid(out_valid), .out_ready(out_ready), .d(d)
    );

endmodule
