// Kulisch accumulator: the register is so long that no bit of any term is ever lost. One product each cycle, then c, then one
// rounding (nearest even). Serial: a dot product takes K + 4 cycles, and the unit is not ready meanwhile.
//
//   bit 0 of the register = 2^-149 (the last bit of f32), bit 277 = 2^128; four more for carries and sign

`default_nettype none

module kulisch_core #(
    parameter int K = 8
) (
    input  wire logic           clk,
    input  wire logic           arst_n,
    input  wire logic           req_valid,
    output logic                req_ready,
    input  wire logic [K*8-1:0] req_a,
    input  wire logic [K*8-1:0] req_b,
    input  wire logic [31:0]    req_c,
    output logic                rsp_valid,
    input  wire logic           rsp_ready,
    output logic      [31:0]    rsp_d
);

    localparam int REG_W = 282;
    localparam int CNT_W = $clog2(K);

    typedef enum logic [2:0] {S_IDLE, S_MACC, S_ADDC, S_SIGN, S_PACK, S_RESP} state_e;

    state_e            state_q, state_d;
    logic [CNT_W-1:0]  cnt_q;
    logic [K*8-1:0]    a_q, b_q;
    logic [31:0]       c_q;
    logic [REG_W-1:0]  acc_q;
    logic              nan_q, neg_q;

    // ------------------------------------------------------------------ control
    always_comb begin
        state_d = state_q;
        unique case (state_q)
            S_IDLE:  if (req_valid)                 state_d = S_MACC;
            S_MACC:  if (cnt_q == CNT_W'(K - 1))    state_d = S_ADDC;
            S_ADDC:                                 state_d = S_SIGN;
            S_SIGN:                                 state_d = S_PACK;
            S_PACK:                                 state_d = S_RESP;
            S_RESP:  if (rsp_ready)                 state_d = S_IDLE;
            default:                                state_d = S_IDLE;
        endcase
    end

    assign req_ready = state_q == S_IDLE;
    assign rsp_valid = state_q == S_RESP;

    always_ff @(posedge clk or negedge arst_n)
        if (!arst_n) state_q <= S_IDLE;
        else         state_q <= state_d;

    // ------------------------------------------------------------------ one product: the operands shift by one element a cycle
    logic [7:0]       x, y;
    logic [7:0]       prod;
    logic [8:0]       place;        // of the product's last bit
    logic [REG_W-1:0] p_term, c_term;
    logic             p_neg;

    assign x     = a_q[7:0];
    assign y     = b_q[7:0];
    assign prod  = {4'b0, |x[6:3], x[2:0]} * {4'b0, |y[6:3], y[2:0]};
    assign place = 9'd129 + 9'(x[6:3]) + 9'(~|x[6:3]) + 9'(y[6:3]) + 9'(~|y[6:3]);
    assign p_neg = x[7] ^ y[7];
    assign p_term = REG_W'(prod) << place;

    assign c_term = REG_W'({|c_q[30:23], c_q[22:0]}) << (|c_q[30:23] ? c_q[30:23] - 8'd1 : 8'd0);

    // ------------------------------------------------------------------ rounding
    logic [8:0]       lead;
    logic [REG_W-1:0] norm;
    logic [31:0]      packed_f32;

    always_comb begin
        lead = 9'd23;               // anything lower is subnormal, and exact
        for (int i = 24; i < REG_W; i++)
            if (acc_q[i]) lead = 9'(i);
    end

    assign norm = acc_q << (9'(REG_W - 1) - lead);

    always_comb begin
        logic up;
        logic [32:0] sum;
        up  = norm[REG_W-25] && (norm[REG_W-24] || |norm[REG_W-26:0]);
        // exponent field lead - 22; the hidden bit brings one of it
        sum = {1'b0, 9'(lead - 9'd23), 23'b0} + 33'(norm[REG_W-1-:24]) + 33'(up);
        if (sum[32:23] >= 10'd255) packed_f32 = {neg_q, 8'hFF, 23'b0};
        else                       packed_f32 = {neg_q, sum[30:0]};
        if (!(|acc_q))             packed_f32 = 32'b0;
        if (&c_q[30:23])           packed_f32 = {c_q[31], 8'hFF, 23'b0};
        if (nan_q)                 packed_f32 = 32'h7FC0_0000;
    end

    // ------------------------------------------------------------------ data
    always_ff @(posedge clk)
        unique case (state_q)
            S_IDLE: begin
                a_q   <= req_a;
                b_q   <= req_b;
                c_q   <= req_c;
                acc_q <= '0;
                cnt_q <= '0;
                nan_q <= &req_c[30:23] && |req_c[22:0];
            end
            S_MACC: begin
                a_q   <= a_q >> 8;
                b_q   <= b_q >> 8;
                acc_q <= p_neg ? acc_q - p_term : acc_q + p_term;
                cnt_q <= cnt_q + 1'b1;
                nan_q <= nan_q || &x[6:0] || &y[6:0];
            end
            S_ADDC: if (!(&c_q[30:23])) acc_q <= c_q[31] ? acc_q - c_term : acc_q + c_term;
            S_SIGN: begin
                neg_q <= acc_q[REG_W-1];
                if (acc_q[REG_W-1]) acc_q <= -acc_q;
            end
            S_PACK: rsp_d <= packed_f32;
            default: ;
        endcase

endmodule

`default_nettype wire
