// One pipeline register with valid/ready handshake on both sides.
//
// A word moves in when in_valid and in_ready, out when out_valid and out_ready. The register takes a new word in the cycle
// in which the old one leaves, so a chain of stages runs at one word a cycle and closes its bubbles under backpressure.
// Only the valid bit is reset (synchronous, active low): data without valid mean nothing.

module pipe_stage #(
    parameter int WIDTH = 1
) (
    input  logic             clk,
    input  logic             rst_n,
    input  logic             in_valid,
    output logic             in_ready,
    input  logic [WIDTH-1:0] in_data,
    output logic             out_valid,
    input  logic             out_ready,
    output logic [WIDTH-1:0] out_data
);

    assign in_ready = !out_valid || out_ready;

    always_ff @(posedge clk) begin
        if (!rst_n) out_valid <= 1'b0;
        else if (in_ready) out_valid <= in_valid;
    end

    always_ff @(posedge clk) begin
        if (in_valid && in_ready) out_data <= in_data;
    end

endmodule
