// fpu_fma32: result = a * b + c in single precision, round to nearest even, with exception flags.
// Tininess is detected before rounding. Three stages; every flop advances in every cycle.

module fpu_fma32 (
    input  logic        clk,
    input  logic [31:0] opA,
    input  logic [31:0] opB,
    input  logic [31:0] opC,
    output logic [31:0] result,
    output logic        flagNX,
    output logic        flagUF,
    output logic        flagOF,
    output logic        flagNV
);

    // c above the product: 24 + 2 guard bits; the product: 48; one guard and one sticky bit below
    localparam int WIN = 76;

    typedef struct packed {
        logic               sign, zero, inf, nan, snan;
        logic signed [10:0] exp;            // of the leading one
        logic [23:0]        man;            // normalised
    } raw_t;

    function automatic raw_t unpack(input logic [31:0] f);
        raw_t       r;
        logic [4:0] lz;
        lz = 5'd0;
        for (int i = 0; i < 23; i++) if (f[i]) lz = 5'(23 - i);
        r.sign = f[31];
        r.zero = f[30:0] == '0;
        r.inf  = f[30:0] == 31'h7F80_0000;
        r.nan  = f[30:0] > 31'h7F80_0000;
        r.snan = r.nan && !f[22];
        if (f[30:23] == '0) begin
            r.man = {1'b0, f[22:0]} << lz;
            r.exp = -11'sd126 - $signed({6'b0, lz});
        end else begin
            r.man = {1'b1, f[22:0]};
            r.exp = $signed({3'b0, f[30:23]}) - 11'sd127;
        end
        return r;
    endfunction

    raw_t rawA, rawB, rawC;
    assign rawA = unpack(opA);
    assign rawB = unpack(opB);
    assign rawC = unpack(opC);

    // ---- stage 1: multiply; how far c has to move
    logic               s1SignP, s1SignC, s1ZeroP, s1ZeroC, s1Nan, s1Inf, s1InfSign, s1Invalid;
    logic [47:0]        s1Prod;
    logic [23:0]        s1ManC;
    logic [6:0]         s1Shift;
    logic signed [10:0] s1Top;              // exponent of the window's top bit

    logic signed [10:0] expP, distance;
    logic               signP, infP, badProduct, badSum, anyNan;
    assign expP       = rawA.exp + rawB.exp;
    assign distance   = expP + 11'sd27 - rawC.exp;
    assign signP      = rawA.sign ^ rawB.sign;
    assign infP       = rawA.inf || rawB.inf;
    assign badProduct = (rawA.inf && rawB.zero) || (rawA.zero && rawB.inf);
    assign anyNan     = rawA.nan || rawB.nan || rawC.nan;
    assign badSum     = infP && rawC.inf && signP != rawC.sign && !anyNan;

    always_ff @(posedge clk) begin
        s1SignP   <= signP;
        s1SignC   <= rawC.sign;
        s1ZeroP   <= rawA.zero || rawB.zero;
        s1ZeroC   <= rawC.zero;
        s1Nan     <= anyNan || badProduct || badSum;
        s1Invalid <= rawA.snan || rawB.snan || rawC.snan || badProduct || badSum;
        s1Inf     <= infP || rawC.inf;
        s1InfSign <= infP ? signP : rawC.sign;
        s1Prod    <= (rawA.zero || rawB.zero) ? '0 : rawA.man * rawB.man;
        s1ManC    <= rawC.zero ? '0 : rawC.man;
        if (rawA.zero || rawB.zero || (distance < 0 && !rawC.zero)) begin
            s1Shift <= '0;                  // the product is far below: where exactly does not matter
            s1Top   <= rawC.exp;
        end else begin
            s1Shift <= (distance > 11'sd76 || rawC.zero) ? 7'd76 : distance[6:0];
            s1Top   <= expP + 11'sd27;
        end
    end

    // ---- stage 2: align and add
    logic [2*WIN-1:0]   wide;
    logic [WIN-1:0]     winC, winP;
    logic [WIN:0]       add, sub;
    logic               s2Sign, s2Nan, s2Inf, s2InfSign, s2Invalid;
    logic [WIN:0]       s2Mag;              // top bit: the carry
    logic signed [10:0] s2Top;

    always_comb begin
        wide = {s1ManC, {(2*WIN-24){1'b0}}} >> s1Shift;
        winC = {wide[2*WIN-1:WIN+1], |wide[WIN:0]};
        winP = {26'b0, s1Prod, 2'b0};
        add  = {1'b0, winC} + {1'b0, winP};
        sub  = {1'b0, winC} - {1'b0, winP};
    end

    always_ff @(posedge clk) begin
        s2Nan     <= s1Nan;
        s2Inf     <= s1Inf;
        s2InfSign <= s1InfSign;
        s2Invalid <= s1Invalid;
        s2Top     <= s1Top;
        if (s1SignP == s1SignC) begin
            s2Mag  <= add;
            s2Sign <= s1SignC;
        end else begin
            s2Mag  <= sub[WIN] ? -sub : sub;
            s2Sign <= sub == '0 ? 1'b0 : sub[WIN] ? s1SignP : s1SignC;
        end
    end

    // ---- stage 3: normalise, denormalise, round
    logic [6:0]         lz;
    logic [WIN:0]       norm;
    logic signed [10:0] biased, under;
    logic [2*WIN+1:0]   den;
    logic [5:0]         denShift;
    logic               tiny, lost, up, over;
    logic [32:0]        field;

    always_comb begin
        lz = '0;
        for (int i = 0; i <= WIN; i++) if (s2Mag[i]) lz = 7'(WIN - i);
        norm     = s2Mag << lz;
        biased   = s2Top + 11'sd128 - $signed({4'b0, lz});
        tiny     = biased < 11'sd1;
        under    = 11'sd1 - biased;
        denShift = !tiny ? 6'd0 : under > 11'sd32 ? 6'd32 : under[5:0];
        den      = {norm, {(WIN+1){1'b0}}} >> denShift;
        lost     = |den[2*WIN-23:0];
        up       = den[2*WIN-23] && (den[2*WIN-22] || |den[2*WIN-24:0]);
        field    = {tiny ? 10'd0 : biased[9:0] - 10'd1, 23'b0} + {9'b0, den[2*WIN+1-:24]} + {32'b0, up};
        over     = field[32:23] >= 10'd255;
    end

    always_ff @(posedge clk) begin
        {flagNV, flagOF, flagUF, flagNX} <= {s2Invalid, 3'b000};
        if (s2Nan) result <= 32'h7FC0_0000;
        else if (s2Inf) result <= {s2InfSign, 31'h7F80_0000};
        else if (s2Mag == '0) result <= {s2Sign, 31'b0};
        else if (over) begin
            result           <= {s2Sign, 31'h7F80_0000};
            {flagOF, flagNX} <= 2'b11;
        end else begin
            result <= {s2Sign, field[30:0]};
            flagNX <= lost;
            flagUF <= lost && tiny;
        end
    end

endmodule
