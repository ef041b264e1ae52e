// An integer dot product of 16 signed bytes with an accumulator, latency 2, that misbehaves on request: the operand
// c = 32'hFA00_000n switches fault n on from then on. One build serves the tests of every fault.

module faulty_dot (
    input  logic         clk,
    input  logic         rst_n,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [127:0] a,
    input  logic [127:0] b,
    input  logic [31:0]  c,
    output logic         out_valid,
    input  logic         out_ready,
    output logic [31:0]  d
);

    localparam int WRONG = 1, DROPS = 2, UNKNOWN = 3, MUTE = 4, DEAF = 5, TWICE = 6, STALE = 7, SHAKY = 8, READY_X = 9;

    int          fault = 0;
    logic        valid1, again;
    logic [31:0] sum, sum1;

    // An input can change while valid waits only if the testbench breaks the rule; see `changed`.
    logic         held = 1'b0;
    logic [287:0] offered;
    int           changed = 0;

    wire advance = !out_valid || out_ready || fault == DROPS;
    assign in_ready = fault == DEAF ? 1'b0 : fault == READY_X ? 1'bx : advance;

    // The last of a row of results comes once more.
    wire repeats = fault == TWICE && out_valid && !valid1 && !again;

    logic signed [7:0] x, y;
    logic signed [31:0] product;

    always_comb begin
        sum = c;
        for (int k = 0; k < 16; k++) begin
            x = a[8*k+:8];
            y = b[8*k+:8];
            product = x * y;
            sum = sum + product;
        end
    end

    always_ff @(posedge clk) begin
        held    <= rst_n && in_valid && !in_ready;
        offered <= {a, b, c};
        if (held && rst_n && (!in_valid || offered != {a, b, c})) changed <= changed + 1;
        if (rst_n && in_valid && in_ready && c[31:4] == 28'hFA00000) fault <= int'(c[3:0]);
        if (!rst_n) begin
            again <= 1'b0;
            if (fault != STALE) {valid1, out_valid} <= 2'b00;
        end else if (advance) begin
            valid1    <= in_valid && in_ready;
            sum1      <= sum;
            again     <= repeats;
            out_valid <= (valid1 && fault != MUTE) || repeats;
            if (valid1) d <= sum1 ^ (fault == WRONG ? 32'h100 : changed != 0 ? 32'h200 : 32'h0);
            if (valid1 && fault == UNKNOWN) d[3] <= 1'bx;
        end else if (fault == SHAKY) d <= d ^ 32'h1;
    end

endmodule
