// A fused dot-add that shares no structure with rtl_tb/rtl/fda.sv: exponents without a sign, a knock-out tree for
// the largest of them, a shifter whose amount saturates, one's complement with its carries counted, a carry-save
// array, a leading-zero count by halves, and a right shift for subnormals. Two registers, no reset.

module other_fda #(
    parameter int K     = 16,
    parameter int E     = 5,     // exponent bits of x and y
    parameter int M     = 10,    // fraction bits
    parameter int F     = 25,
    parameter int FLOOR = -133
) (
    input  logic               clk,
    input  logic [K*(1+E+M)-1:0] x, y,
    input  logic [31:0]        acc,
    output logic [31:0]        q
);
    localparam int W = 1 + E + M, BIAS = (1 << (E - 1)) - 1;
    localparam int ZERO = 512;                       // an exponent e is held as e + ZERO
    localparam int PF = 2 * M;
    localparam int SI = $clog2(((K * ((2 << M) - 1) * ((2 << M) - 1)) >> PF) + 3);
    localparam int SW = 1 + SI + F;                  // two's complement
    localparam int TW = 25 + (F > PF ? F : PF);      // a term before it is cut

    typedef struct packed {
        logic        sign, live;
        logic [9:0]  exponent;
        logic [TW-1:0] term;                         // fraction bits: TW - 2
    } term_t;

    term_t       t [0:K], r [0:K];
    logic [K:0]  is_nan, is_inf, is_minus;
    logic        nan1, inf1, minus1;

    for (genvar k = 0; k < K; k++) begin : g_product
        wire [W-1:0] u = x[k*W+:W], v = y[k*W+:W];
        wire [E-1:0] eu = u[M+:E], ev = v[M+:E];
        wire [M:0]   su = {eu != 0, u[M-1:0]}, sv = {ev != 0, v[M-1:0]};
        wire [PF+1:0] product = (PF + 2)'(su) * (PF + 2)'(sv);
        wire u_top = &eu, v_top = &ev, u_frac = |u[M-1:0], v_frac = |v[M-1:0];
        wire infinite = (u_top && !u_frac) || (v_top && !v_frac);
        assign t[k].sign     = u[W-1] != v[W-1];
        assign t[k].live     = su != 0 && sv != 0;
        assign t[k].exponent = 10'(eu) + 10'(ev) + 10'(eu == 0) + 10'(ev == 0) + 10'(ZERO - 2 * BIAS);
        assign t[k].term     = {product, (TW - PF - 2)'(0)};
        assign is_nan[k]     = (u_top && u_frac) || (v_top && v_frac) || (infinite && !t[k].live);
        assign is_inf[k]     = infinite;
        assign is_minus[k]   = infinite && t[k].sign;
    end
    assign t[K].sign     = acc[31];
    assign t[K].live     = acc[30:0] != 0;
    assign t[K].exponent = 10'(acc[30:23]) + 10'(acc[30:23] == 0) + 10'(ZERO - 127);
    assign t[K].term     = {1'b0, acc[30:23] != 0, acc[22:0], (TW - 25)'(0)};
    assign is_nan[K]     = &acc[30:23] && |acc[22:0];
    assign is_inf[K]     = &acc[30:23] && !(|acc[22:0]);
    assign is_minus[K]   = is_inf[K] && acc[31];

    // Round by round the larger of two neighbours stays.
    localparam int N = $clog2(K + 2);
    logic [9:0] field [0:N][0:(1<<N)-1];
    logic [9:0] top1;
    always_comb begin
        for (int i = 0; i < (1 << N); i++)
            field[0][i] = i <= K && t[i < K ? i : K].live ? t[i < K ? i : K].exponent : 10'(ZERO + FLOOR);
        for (int n = 1; n <= N; n++)
            for (int i = 0; i < (1 << N); i++)
                if (i < (1 << (N - n)))
                    field[n][i] = field[n-1][2*i+1] > field[n-1][2*i] ? field[n-1][2*i+1] : field[n-1][2*i];
                else field[n][i] = '0;
    end

    always_ff @(posedge clk) begin
        r      <= t;
        top1   <= field[N][0];
        nan1   <= |is_nan || (|(is_inf & ~is_minus) && |is_minus);
        inf1   <= |is_inf;
        minus1 <= |is_minus;
    end

    // Carry-save: save and carry add up to all terms so far.
    logic [SW-1:0] save, carry, next, addend, signs;
    logic [9:0]    distance;
    logic [TW-1:0] moved;
    always_comb begin
        save = '0; carry = '0; signs = '0;
        for (int k = 0; k <= K; k++) begin
            distance = top1 - r[k].exponent;
            moved    = r[k].live ? r[k].term >> (distance > 10'd63 ? 6'd63 : distance[5:0]) : '0;
            addend   = SW'(moved[TW-1:TW-2-F]) ^ {SW{r[k].sign}};
            signs    = signs + SW'(r[k].sign);
            next     = save ^ carry ^ addend;
            carry    = {((save & carry) | (save & addend) | (carry & addend)), 1'b0};
            save     = next;
        end
    end
    wire [SW-1:0] sum  = save + carry + signs;
    wire          down = sum[SW-1];
    wire [SW-2:0] size = (sum[SW-2:0] ^ {(SW-1){down}}) + (SW - 1)'(down);

    // Leading zeros, half by half.
    logic [63:0] left;
    logic [5:0]  zeros;
    always_comb begin
        left  = {size, (64 - SW + 1)'(0)};
        zeros = '0;
        for (int s = 5; s >= 0; s--)
            if (left >> (64 - (1 << s)) == 0) begin
                left = left << (1 << s);
                zeros[s] = 1'b1;
            end
    end
    // The leading one stands at 2**(top - ZERO + SI - 1 - zeros).
    wire signed [11:0] lead = $signed({2'b0, top1}) - 12'(ZERO) + 12'(SI - 1) - $signed({6'b0, zeros});
    wire signed [11:0] lack = -12'sd126 - lead;
    wire        tiny     = lead < -12'sd126;
    wire [63:0] held     = tiny ? left >> (lack > 12'sd63 ? 6'd63 : lack[5:0]) : left;
    wire        infinite = inf1 || (lead > 12'sd127 && size != 0);
    wire [7:0]  exponent = tiny || size == 0 ? 8'(held[63]) : 8'(lead + 12'sd127);
    wire        zero     = held[63:40] == 0;

    always_ff @(posedge clk)
        q <= nan1 ? 32'h7fffffff
            : infinite ? {inf1 ? minus1 : down, 31'h7f800000}
            : {down && !zero, exponent, held[62:40]};
endmodule
