// The exact dot product of one group of e2m1 (FP4) elements, as an integer of quarters (MMA-Sim IV-E). Combinational.
//
// An e2m1 magnitude is 0, 0.5, 1, 1.5, 2, 3, 4 or 6: 4 bits of halves, at most 12. A product is at most 144 quarters (8 bits);
// N of them are below N * 2**8, so SUM_W = 8 + clog2(N) + 1 bits hold the sum in two's complement (N = 16: 13 bits).

module group_dot #(
    parameter int N     = 16,
    parameter int SUM_W = 9 + $clog2(N)
) (
    input  logic        [N*4-1:0]   a,
    input  logic        [N*4-1:0]   b,
    output logic signed [SUM_W-1:0] sum,
    output logic                    live  // some product is not zero; the sum still may be
);

    // Magnitude in halves.
    function automatic [3:0] halves(input [2:0] code);
        case (code)
            3'd4: halves = 4'd4;
            3'd5: halves = 4'd6;
            3'd6: halves = 4'd8;
            3'd7: halves = 4'd12;
            default: halves = {1'b0, code};  // 0, 0.5 (subnormal), 1, 1.5
        endcase
    endfunction

    logic [7:0] product;
    integer     i;

    always_comb begin
        sum  = 0;
        live = 1'b0;
        for (i = 0; i < N; i = i + 1) begin
            product = 8'(halves(a[4*i+:3])) * 8'(halves(b[4*i+:3]));
            live    = live || product != 0;
            if (a[4*i+3] ^ b[4*i+3]) sum = sum - SUM_W'(product);
            else sum = sum + SUM_W'(product);
        end
    end

endmodule
