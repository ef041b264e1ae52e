// Chain of fused dot-adds: K products in slices of STEP; each slice's result, rounded to d's format, is the next one's c.
//
// Source: MMA-Sim (arXiv 2511.10909) section IV-D, Equation 6; spec/algorithms/cofda.yaml. This is how instructions whose K
// exceeds the products of one step work, for example Ampere's HMMA.16816 (two steps of eight).
//
// Latency 5 cycles a slice, one dot product a cycle. Slice s of a and b waits 5 * s cycles for the result before it. The
// waiting registers hold as many words as the steps before them, so that backpressure never costs throughput.
// c has d's format. Parameters that are not explained here: fda.sv.

module fda_chain #(
    parameter int K          = 16,  // products, a multiple of STEP
    parameter int STEP       = 8,   // products of one step
    parameter int A_EXP      = 5,
    parameter int A_FRAC     = 10,
    parameter int A_DROP     = 0,
    parameter int A_SPECIALS = 1,
    parameter int B_EXP      = A_EXP,
    parameter int B_FRAC     = A_FRAC,
    parameter int B_DROP     = A_DROP,
    parameter int B_SPECIALS = A_SPECIALS,
    parameter int D_EXP      = 8,
    parameter int D_FRAC     = 23,
    parameter int F          = 24,
    parameter int FLOOR      = -132,
    parameter int D_KEEP     = D_FRAC,
    parameter int NEAREST    = D_EXP == 5 ? 1 : 0,
    parameter int NAN_WORD   = D_EXP == 5 ? 32'h00007FFF : 32'h7FFFFFFF
) (
    input  logic                                 clk,
    input  logic                                 rst_n,
    input  logic                                 in_valid,
    output logic                                 in_ready,
    input  logic [K*(1+A_EXP+A_FRAC+A_DROP)-1:0] a,
    input  logic [K*(1+B_EXP+B_FRAC+B_DROP)-1:0] b,
    input  logic [D_EXP+D_FRAC:0]                c,
    output logic                                 out_valid,
    input  logic                                 out_ready,
    output logic [D_EXP+D_FRAC:0]                d
);

    localparam int STEPS   = K / STEP;
    localparam int LATENCY = 5;                                     // of fda.sv
    localparam int A_W     = STEP * (1 + A_EXP + A_FRAC + A_DROP);  // a slice of a
    localparam int B_W     = STEP * (1 + B_EXP + B_FRAC + B_DROP);
    localparam int D_W     = 1 + D_EXP + D_FRAC;

    // Link s goes into step s, the last one out: the running c.
    logic [STEPS:0]           c_valid;
    logic [(STEPS+1)*D_W-1:0] c_data;
    // The slice of a and b for step s is there; the waiting line for it has room; step s, and what follows it, has room.
    logic [STEPS-1:0]         slice_valid, take_ready, step_ready, next_ready;
    genvar                    s;

    // An input is taken when the first step and every waiting line have room.
    assign in_ready        = &take_ready;
    assign c_valid[0]      = in_valid && in_ready;
    assign c_data[D_W-1:0] = c;

    generate
        for (s = 0; s < STEPS; s = s + 1) begin : g_step
            logic [A_W-1:0] a_slice;
            logic [B_W-1:0] b_slice;

            if (s == 0) begin : g_direct
                assign take_ready[0]  = step_ready[0];
                assign slice_valid[0] = c_valid[0];
                assign a_slice        = a[A_W-1:0];
                assign b_slice        = b[B_W-1:0];
            end else begin : g_wait
                pipe_delay #(
                    .WIDTH(A_W + B_W), .STAGES(LATENCY * s)
                ) u_wait (
                    .clk(clk), .rst_n(rst_n),
                    .in_valid(c_valid[0]), .in_ready(take_ready[s]), .in_data({a[s*A_W+:A_W], b[s*B_W+:B_W]}),
                    .out_valid(slice_valid[s]), .out_ready(step_ready[s] && c_valid[s]),
                    .out_data({a_slice, b_slice})
                );
                assign next_ready[s-1] = step_ready[s] && slice_valid[s];
            end

            // The step starts when c and the slice are both there.
            fda #(
                .K(STEP), .A_EXP(A_EXP), .A_FRAC(A_FRAC), .A_DROP(A_DROP), .A_SPECIALS(A_SPECIALS),
                .B_EXP(B_EXP), .B_FRAC(B_FRAC), .B_DROP(B_DROP), .B_SPECIALS(B_SPECIALS),
                .D_EXP(D_EXP), .D_FRAC(D_FRAC), .F(F), .FLOOR(FLOOR), .D_KEEP(D_KEEP), .NEAREST(NEAREST), .NAN_WORD(NAN_WORD)
            ) u_fda (
                .clk(clk), .rst_n(rst_n),
                .in_valid(c_valid[s] && slice_valid[s]), .in_ready(step_ready[s]),
                .a(a_slice), .b(b_slice), .c(c_data[s*D_W+:D_W]),
                .out_valid(c_valid[s+1]), .out_ready(next_ready[s]), .d(c_data[(s+1)*D_W+:D_W])
            );
        end
    endgenerate

    assign next_ready[STEPS-1] = out_ready;
    assign out_valid           = c_valid[STEPS];
    assign d                   = c_data[STEPS*D_W+:D_W];

endmodule
