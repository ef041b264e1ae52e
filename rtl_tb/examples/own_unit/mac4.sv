// Four-way multiply-accumulate of signed bytes, saturated to 32 bits. Reset is active high; latency 1.

module mac4 (
    input  logic        clock,
    input  logic        reset,
    input  logic        vld_i,
    output logic        rdy_o,
    input  logic [31:0] x_i,    // four bytes, the first in the low bits
    input  logic [31:0] w_i,
    input  logic [31:0] acc_i,
    output logic        vld_o,
    input  logic        rdy_i,
    output logic [31:0] acc_o
);

    logic signed [7:0]  x, w;
    logic signed [31:0] acc;
    logic signed [35:0] sum;

    always_comb begin
        acc = acc_i;
        sum = 36'(acc);
        for (int k = 0; k < 4; k++) begin
            x = x_i[8*k+:8];
            w = w_i[8*k+:8];
            sum = sum + 36'(x * w);
        end
    end

    assign rdy_o = !vld_o || rdy_i;

    always_ff @(posedge clock) begin
        if (reset) vld_o <= 1'b0;
        else if (rdy_o) vld_o <= vld_i;
        if (vld_i && rdy_o) begin
            acc_o <= sum[31:0];
            if (sum[35:31] != {5{sum[35]}}) acc_o <= {sum[35], {31{!sum[35]}}};
        end
    end

endmodule
