// FDRDA and its chain CoFDRDA, AMD CDNA3 with f16, bf16 and xf32: MMA-Sim (arXiv 2511.10909) sections IV-F and IV-G;
// spec/algorithms/fdrda.yaml and cofdrda.yaml.
//
// Each of K/P steps of P products takes the f32 result of the one before as its c; with K = P it is the paper's single
// step. Latency 4 * K/P cycles, one dot product a cycle.

module fdrda #(
    parameter int K          = 8,   // products, a multiple of P
    parameter int P          = 8,   // products of one step
    parameter int A_EXP      = 5,  // parameters of the formats: fp_decode.sv
    parameter int A_FRAC     = 10,
    parameter int A_DROP     = 0,
    parameter int A_BIAS     = 15,
    parameter int A_SPECIALS = 1,
    parameter int B_EXP      = A_EXP,
    parameter int B_FRAC     = A_FRAC,
    parameter int B_DROP     = A_DROP,
    parameter int B_BIAS     = A_BIAS,
    parameter int B_SPECIALS = A_SPECIALS,
    parameter int F          = 24,  // fraction bits of the aligned products and of c
    parameter int F2         = 32,  // fraction bits of the dot product when it meets c
    parameter int KEEP       = 31   // fraction bits of the normalised total
) (
    input  logic                                 clk,
    input  logic                                 rst_n,
    input  logic                                 in_valid,
    output logic                                 in_ready,
    input  logic [K*(1+A_EXP+A_FRAC+A_DROP)-1:0] a,
    input  logic [K*(1+B_EXP+B_FRAC+B_DROP)-1:0] b,
    input  logic [31:0]                          c,
    output logic                                 out_valid,
    input  logic                                 out_ready,
    output logic [31:0]                          d
);

    localparam int STEPS = K / P;
    localparam int AW    = 1 + A_EXP + A_FRAC + A_DROP;
    localparam int BW    = 1 + B_EXP + B_FRAC + B_DROP;
    localparam int TAG   = K * (AW + BW);  // {a, b} that wait for later steps; those of the next step are at the bottom

    // Link s goes into step s.
    logic [STEPS:0]           valid, ready;
    logic [(STEPS+1)*TAG-1:0] waiting;
    logic [(STEPS+1)*32-1:0]  running;
    logic                     unused;
    genvar                    s;

    assign valid[0]         = in_valid;
    assign in_ready         = ready[0];
    assign waiting[TAG-1:0] = {a, b};
    assign running[31:0]    = c;
    assign out_valid        = valid[STEPS];
    assign ready[STEPS]     = out_ready;
    assign d                = running[STEPS*32+:32];
    assign unused           = &{1'b0, waiting[STEPS*TAG+:TAG]};  // nothing is left behind the last step

    generate
        for (s = 0; s < STEPS; s = s + 1) begin : g_step
            logic [K*AW-1:0] a_left;
            logic [K*BW-1:0] b_left;
            assign a_left = waiting[s*TAG+K*BW+:K*AW];
            assign b_left = waiting[s*TAG+:K*BW];

            fdrda_step #(
                .P(P), .A_EXP(A_EXP), .A_FRAC(A_FRAC), .A_DROP(A_DROP), .A_BIAS(A_BIAS), .A_SPECIALS(A_SPECIALS),
                .B_EXP(B_EXP), .B_FRAC(B_FRAC), .B_DROP(B_DROP), .B_BIAS(B_BIAS), .B_SPECIALS(B_SPECIALS),
                .F(F), .F2(F2), .KEEP(KEEP), .TAG(TAG)
            ) u_step (
                .clk(clk), .rst_n(rst_n),
                .in_valid(valid[s]), .in_ready(ready[s]),
                .a(a_left[P*AW-1:0]), .b(b_left[P*BW-1:0]), .c(running[s*32+:32]),
                .tag_in({a_left >> (P * AW), b_left >> (P * BW)}),
                .out_valid(valid[s+1]), .out_ready(ready[s+1]), .d(running[(s+1)*32+:32]), .tag_out(waiting[(s+1)*TAG+:TAG])
            );
        end
    endgenerate

endmodule
