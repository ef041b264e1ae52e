// STAGES pipeline registers in series: holds words back while another pipeline works. STAGES is 1 or more.
//
// Valid/ready on both sides. A stage takes a word when it is empty or passes its own on, so bubbles close under backpressure
// and STAGES words find room. Only the valid bits are reset (synchronous, active low).

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

    // Stage 0 is the first; its data are in the least significant bits.
    logic [STAGES-1:0]       valid, offered, takes;
    logic [STAGES*WIDTH-1:0] data;
    logic                    ready;  // of the stage above, while the loop runs down
    integer                  s, t;

    always_comb begin
        ready = out_ready;
        for (s = STAGES - 1; s >= 0; s = s - 1) begin
            takes[s] = !valid[s] || ready;
            ready    = takes[s];
        end
    end

    assign offered   = STAGES'({valid, in_valid});  // a word waits before the stage
    assign in_ready  = takes[0];
    assign out_valid = valid[STAGES-1];
    assign out_data  = data[STAGES*WIDTH-1-:WIDTH];

    always_ff @(posedge clk) begin
        valid <= rst_n ? (valid & ~takes) | (offered & takes) : '0;
        if (offered[0] && takes[0]) data[WIDTH-1:0] <= in_data;
        for (t = 1; t < STAGES; t = t + 1) begin
            if (offered[t] && takes[t]) data[t*WIDTH+:WIDTH] <= data[(t-1)*WIDTH+:WIDTH];
        end
    end

endmodule
