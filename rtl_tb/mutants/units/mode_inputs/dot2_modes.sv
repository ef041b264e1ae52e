// r = x0*y0 + x1*y1 + z in f16, one rounding. Nothing is clocked.
//   rm   00 to nearest, ties to even   01 to zero   10 down   11 up
//   ftz  a subnormal result becomes a zero of its sign
//   sat  too large becomes the largest number instead of what IEEE 754 says
module dot2_modes (
    input  [1:0]  rm,
    input         ftz,
    input         sat,
    input  [15:0] x0, x1, y0, y1, z,
    output [15:0] r
);

    // 2^-48 is the last place of the smallest product.
    localparam WIDTH = 84;

    function automatic is_nan(input [15:0] v);
        is_nan = (v[14:10] == 5'h1f) && (v[9:0] != 0);
    endfunction

    function automatic is_inf(input [15:0] v);
        is_inf = v[14:0] == 15'h7c00;
    endfunction

    function automatic is_zero(input [15:0] v);
        is_zero = v[14:0] == 15'h0;
    endfunction

    function automatic [10:0] sig(input [15:0] v);
        sig = {v[14:10] != 0, v[9:0]};
    endfunction

    // distance of the last place to that of the subnormal numbers
    function automatic [5:0] lift(input [15:0] v);
        lift = (v[14:10] == 0) ? 6'd0 : {1'b0, v[14:10]} - 6'd1;
    endfunction

    function automatic signed [WIDTH-1:0] fixed(input negative, input [21:0] m, input [6:0] by);
        reg [WIDTH-1:0] t;
        begin
            t     = {{(WIDTH-22){1'b0}}, m} << by;
            fixed = negative ? -t : t;
        end
    endfunction

    function automatic [21:0] times(input [10:0] p, input [10:0] q);
        times = {11'b0, p} * {11'b0, q};
    endfunction

    // Rounds; {overflow, exponent, fraction}
    function automatic [16:0] rounded(input negative, input [WIDTH-1:0] m, input [1:0] how);
        reg [6:0]       lead;
        reg [WIDTH-1:0] s;
        reg             any, up;
        integer         i;
        begin
            lead = 7'd34;                      // 2^-14, the least normal number
            for (i = 35; i < WIDTH; i = i + 1)
                if (m[i]) lead = i[6:0];
            s   = m << (7'd83 - lead);
            any = |s[72:0];
            case (how)
                2'b00:   up = s[72] && (s[73] || |s[71:0]);
                2'b01:   up = 1'b0;
                2'b10:   up = negative && any;
                default: up = !negative && any;
            endcase
            rounded = {lead - 7'd34, 10'b0} + {6'b0, s[83:73]} + {16'b0, up};
        end
    endfunction

    wire n0 = x0[15] ^ y0[15];
    wire n1 = x1[15] ^ y1[15];

    wire inf0 = is_inf(x0) | is_inf(y0);
    wire inf1 = is_inf(x1) | is_inf(y1);
    wire infz = is_inf(z);
    wire pos_inf = (inf0 & ~n0) | (inf1 & ~n1) | (infz & ~z[15]);
    wire neg_inf = (inf0 &  n0) | (inf1 &  n1) | (infz &  z[15]);
    wire invalid = (is_inf(x0) & is_zero(y0)) | (is_zero(x0) & is_inf(y0))
                 | (is_inf(x1) & is_zero(y1)) | (is_zero(x1) & is_inf(y1));
    wire nan = is_nan(x0) | is_nan(x1) | is_nan(y0) | is_nan(y1) | is_nan(z) | invalid | (pos_inf & neg_inf);

    wire signed [WIDTH-1:0] sum = fixed(n0, times(sig(x0), sig(y0)), {1'b0, lift(x0)} + {1'b0, lift(y0)})
                                + fixed(n1, times(sig(x1), sig(y1)), {1'b0, lift(x1)} + {1'b0, lift(y1)})
                                + fixed(z[15], {11'b0, sig(z)}, {1'b0, lift(z)} + 7'd24);

    wire all_minus = n0 & n1 & z[15];
    wire all_plus  = ~n0 & ~n1 & ~z[15];
    wire neg  = sum[WIDTH-1];
    wire zero = sum == 0;
    wire [16:0] q = rounded(neg, neg ? -sum : sum, rm);
    wire too_large = q[16:10] >= 7'd31;
    wire to_largest = sat | (rm == 2'b01) | (rm == 2'b10 & ~neg) | (rm == 2'b11 & neg);
    wire subnormal = q[16:10] == 7'd0;

    reg [15:0] answer;
    always @* begin
        answer = {neg, q[14:0]};
        if (too_large) answer = {neg, to_largest ? 15'h7bff : 15'h7c00};
        if (subnormal & ftz) answer = {neg, 15'h0};
        if (zero) answer = {all_minus | (rm == 2'b10 & ~all_plus), 15'h0};
        if (pos_inf | neg_inf) answer = {neg_inf, 15'h7c00};
        if (nan) answer = 16'h7e00;
    end

    assign r = answer;

endmodule
