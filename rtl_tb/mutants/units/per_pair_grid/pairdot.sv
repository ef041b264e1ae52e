// PairDot8: four pairs of f16 products. A pair is summed exactly (82 bits of fixed point), then cut to its own 13 leading bits;
// the four pairs and, last of all, C go one after the other through one f32 adder.
//
//   cycle 0         LATCH    the four pair sums, cut
//   cycles 1..3     acc <- acc + pair[n]           (pair[0] is loaded)
//   cycle 4         acc <- acc + C
//
// Takes operands every fifth cycle at most. There is no ready: the sender counts.

`define F32_QNAN 32'h7FC00000

module PairCut (
    input  wire [15:0] a0, b0, a1, b1,
    output reg  [31:0] word,                 // of 13 significant bits
    output wire        nan, pinf, ninf
);
    wire s0 = a0[15] ^ b0[15];
    wire s1 = a1[15] ^ b1[15];

    wire [81:0] p0 = product(a0, b0);
    wire [81:0] p1 = product(a1, b1);
    wire [81:0] t  = (s0 ? -p0 : p0) + (s1 ? -p1 : p1);
    wire [81:0] m  = t[81] ? -t : t;

    wire inf0 = &a0[14:10] | &b0[14:10];
    wire inf1 = &a1[14:10] | &b1[14:10];
    assign nan  = bad(a0, b0) | bad(a1, b1);
    assign pinf = (inf0 & !s0) | (inf1 & !s1);
    assign ninf = (inf0 &  s0) | (inf1 &  s1);

    function [81:0] product(input [15:0] x, y);
        reg [5:0] lx, ly;
        begin
            lx = (x[14:10] == 0) ? 0 : x[14:10] - 1;
            ly = (y[14:10] == 0) ? 0 : y[14:10] - 1;
            product = ({71'b0, |x[14:10], x[9:0]} * {71'b0, |y[14:10], y[9:0]}) << (lx + ly);
        end
    endfunction

    function bad(input [15:0] x, y);
        bad = (&x[14:10] & (|x[9:0] | ~|y[14:0])) | (&y[14:10] & (|y[9:0] | ~|x[14:0]));
    endfunction

    integer    i;
    reg [6:0]  lead;
    reg [12:0] top;
    always @* begin
        lead = 0;
        for (i = 1; i < 82; i = i + 1) if (m[i]) lead = i;
        top  = (m << (81 - lead)) >> 69;
        word = {t[81], 8'd79 + {1'b0, lead}, top[11:0], 11'b0};     // bit 0 is 2^-48
        if (m == 0) word = {s0 & s1, 31'b0};
    end
endmodule

module AddF32 (
    input  wire [31:0] x, y,
    output reg  [31:0] z
);
    reg [31:0] big, lit;
    reg [7:0]  eb, el, sh, e, lz;
    reg [49:0] mb, ml;                       // 24 bits, and 26 below them
    reg [50:0] s;
    reg        stk, up;
    reg [32:0] r;
    integer    i;

    always @* begin
        if (x[30:0] >= y[30:0]) begin big = x; lit = y; end
        else                    begin big = y; lit = x; end
        eb = big[30:23] + (big[30:23] == 0);
        el = lit[30:23] + (lit[30:23] == 0);
        mb = {|big[30:23], big[22:0], 26'b0};
        ml = {|lit[30:23], lit[22:0], 26'b0};
        sh = eb - el;
        // The last place takes the sticky bit: 25 places below the rounding nothing else is of interest.
        stk = (sh > 26) & (|lit[30:0]);
        ml  = (sh > 26) ? {49'b0, stk} : (ml >> sh);
        s   = (big[31] ^ lit[31]) ? {1'b0, mb} - {1'b0, ml} : {1'b0, mb} + {1'b0, ml};

        lz = 51;
        for (i = 0; i < 51; i = i + 1) if (s[i]) lz = 50 - i;
        e = eb + 1;                          // of bit 50
        if (lz >= e) begin                   // subnormal: bit 50 is 2^(1 - bias) already, or gets there
            s = s << (e - 1);
            e = 0;
        end else begin
            s = s << lz;
            e = e - lz - 1;                  // the hidden bit adds one
        end
        up = s[26] & (s[27] | (|s[25:0]));
        r  = {2'b0, e, 23'b0} + {9'b0, s[50:27]} + up;
        z  = (r[31:23] >= 255) ? {big[31], 31'h7F800000} : {big[31], r[30:0]};
        if (s == 0) z = {x[31] & y[31], 31'b0};
    end
endmodule

module PairDot8 (
    input  wire         CK,
    input  wire         RESET,
    input  wire         START,
    input  wire [255:0] AB,                  // a0 b0 a1 b1 ... from the right
    input  wire [31:0]  C,
    output reg          DONE,
    output wire [31:0]  D
);
    wire [31:0] cut [0:3];
    wire [3:0]  pnan, ppinf, pninf;
    genvar g;
    generate
        for (g = 0; g < 4; g = g + 1) begin : PAIR
            PairCut u (
                .a0(AB[64*g +: 16]), .b0(AB[64*g+16 +: 16]), .a1(AB[64*g+32 +: 16]), .b1(AB[64*g+48 +: 16]),
                .word(cut[g]), .nan(pnan[g]), .pinf(ppinf[g]), .ninf(pninf[g])
            );
        end
    endgenerate

    wire cnan  = &C[30:23] & (|C[22:0]);
    wire anyp  = (|ppinf) | (C == 32'h7F800000);
    wire anyn  = (|pninf) | (C == 32'hFF800000);

    reg [31:0] acc, queue [0:3];             // pair 1, pair 2, pair 3, C
    reg [3:0]  busy;                         // one-hot, shifts
    reg        fixedResult;
    wire [31:0] next;

    AddF32 adder (.x(acc), .y(queue[0]), .z(next));

    always @(posedge CK) begin
        if (START) begin
            queue[0] <= cut[1];
            queue[1] <= cut[2];
            queue[2] <= cut[3];
            queue[3] <= C;
            fixedResult <= 1'b1;
            if ((|pnan) | cnan | (anyp & anyn)) acc <= `F32_QNAN;
            else if (anyp | anyn)               acc <= {anyn, 31'h7F800000};
            else begin
                acc <= cut[0];
                fixedResult <= 1'b0;
            end
        end else if (|busy) begin
            if (!fixedResult) acc <= next;
            queue[0] <= queue[1];
            queue[1] <= queue[2];
            queue[2] <= queue[3];
        end
        busy <= RESET ? 4'b0 : {busy[2:0], START};
        DONE <= !RESET & busy[3];
    end
    assign D = acc;
endmodule
