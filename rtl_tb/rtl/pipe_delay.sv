// STAGES pipeline registers (pipe_stage.sv) in series: holds words back while another pipeline works; STAGES is 1 or more.

module pipe_delay #(
    parameter int WIDTH  = 1,
    parameter int STAGES = 1
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

    // Between stages: link s goes into stage s.
    logic [STAGES:0]             valid, ready;
    logic [(STAGES+1)*WIDTH-1:0] data;
    genvar                       s;

    assign valid[0]        = in_valid;
    assign in_ready        = ready[0];
    assign data[WIDTH-1:0] = in_data;

    generate
        for (s = 0; s < STAGES; s = s + 1) begin : g_stage
            pipe_stage #(
                .WIDTH(WIDTH)
            ) u_stage (
                .clk(clk), .rst_n(rst_n),
                .in_valid(valid[s]), .in_ready(ready[s]), .in_data(data[s*WIDTH+:WIDTH]),
                .out_valid(valid[s+1]), .out_ready(ready[s+1]), .out_data(data[(s+1)*WIDTH+:WIDTH])
            );
        end
    endgenerate

    assign out_valid     = valid[STAGES];
    assign ready[STAGES] = out_ready;
    assign out_data      = data[STAGES*WIDTH+:WIDTH];

endmodule
