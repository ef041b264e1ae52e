// Integer dot-add: d = c + sum(a[k] * b[k]) in exact integers, then one wrap or one clamp.
//
// Source: PTX ISA, mma with integer types; spec/algorithms/integer_dot_add.yaml. Nothing wraps or saturates before the end,
// so a partial sum may leave the range of d and come back. Latency 2 cycles, one dot product a cycle.

module integer_dot #(
    parameter int K        = 32,  // products
    parameter int AW       = 8,   // bits of an element of a
    parameter int BW       = 8,   // bits of an element of b
    parameter int A_SIGNED = 1,   // 1: two's complement (s8), 0: unsigned (u8)
    parameter int B_SIGNED = 1,
    parameter int CW       = 32,  // bits of c and d, two's complement
    parameter int SATURATE = 0    // 1: clamp the exact total to CW bits (.satfinite), 0: wrap modulo 2**CW
) (
    input  logic            clk,
    input  logic            rst_n,
    input  logic            in_valid,
    output logic            in_ready,
    input  logic [K*AW-1:0] a,
    input  logic [K*BW-1:0] b,
    input  logic [CW-1:0]   c,
    output logic            out_valid,
    input  logic            out_ready,
    output logic [CW-1:0]   d
);

    localparam int PW = AW + BW + 2;                   // a product, with one bit more on each operand for either signedness
    localparam int SW = PW + $clog2(K);                // the sum of K products
    localparam int TW = (SW > CW ? SW : CW) + 1;       // the total: one carry above the wider of the sum and c

    // Stage 1: products and their sum.
    logic signed [AW:0]   x;
    logic signed [BW:0]   y;
    logic signed [PW-1:0] product;
    logic signed [SW-1:0] sum, sum_1;
    logic signed [CW-1:0] c_1;
    logic                 valid_1, ready_1;
    integer               k;

    always_comb begin
        sum = 0;
        for (k = 0; k < K; k = k + 1) begin
            x       = {A_SIGNED != 0 && a[k*AW+AW-1], a[k*AW+:AW]};
            y       = {B_SIGNED != 0 && b[k*BW+BW-1], b[k*BW+:BW]};
            product = x * y;
            sum     = sum + SW'(product);
        end
    end

    pipe_stage #(
        .WIDTH(SW + CW)
    ) u_stage_1 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(in_valid), .in_ready(in_ready), .in_data({sum, c}),
        .out_valid(valid_1), .out_ready(ready_1), .out_data({sum_1, c_1})
    );

    // Stage 2: add c, then wrap or clamp once.
    logic signed [TW-1:0] total;
    logic                 negative, fits;
    logic [CW-1:0]        limit, result;

    assign total    = TW'(sum_1) + TW'(c_1);
    assign negative = total[TW-1];
    assign fits     = total[TW-1:CW-1] == {(TW-CW+1){negative}};  // all bits from CW-1 up are the sign
    assign limit    = {negative, {(CW-1){!negative}}};            // -2**(CW-1) or 2**(CW-1) - 1
    assign result   = SATURATE != 0 && !fits ? limit : total[CW-1:0];

    pipe_stage #(
        .WIDTH(CW)
    ) u_stage_2 (
        .clk(clk), .rst_n(rst_n),
        .in_valid(valid_1), .in_ready(ready_1), .in_data(result),
        .out_valid(out_valid), .out_ready(out_ready), .out_data(d)
    );

endmodule
