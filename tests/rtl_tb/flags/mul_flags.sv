// IEEE 754 multiplication of f16 with status flags {NV, OF, UF, NX}; five roundings. Combinational.
//
// FAULT plants a mistake: 1 forgets underflow where the result is zero, 2 that overflow is inexact, 3 raises invalid for quiet
// NaNs too, 4 leaves NV unknown where a NaN comes, 5 gives another NaN word (and right flags), 6 gets d wrong (and right
// flags), 7 asks for tininess before rounding.
module mul_flags #(
    parameter integer FAULT = 0
) (
    input  wire [15:0] a,
    input  wire [15:0] b,
    input  wire [2:0]  rnd,
    output wire [15:0] d,
    output wire [3:0]  flags,
    output wire        nv,
    output wire        of,
    output wire        uf,
    output wire        nx
);
    localparam [2:0] NEAREST_EVEN = 0, DOWN = 2, UP = 3, NEAREST_AWAY = 4;

    wire sign = a[15] ^ b[15];
    wire a_nan = a[14:0] > 15'h7c00, b_nan = b[14:0] > 15'h7c00;
    wire a_inf = a[14:0] == 15'h7c00, b_inf = b[14:0] == 15'h7c00;
    wire a_zero = a[14:0] == 0, b_zero = b[14:0] == 0;
    wire signals = (a_nan && !a[9]) || (b_nan && !b[9]);
    wire invalid = (a_inf && b_zero) || (a_zero && b_inf);

    // The exact product, its leading one in bit 21, which is worth 2^(exponent - 50).
    wire [4:0] a_exponent = a[14:10] == 0 ? 5'd1 : a[14:10];
    wire [4:0] b_exponent = b[14:10] == 0 ? 5'd1 : b[14:10];
    reg [21:0] product;
    reg signed [7:0] exponent;
    integer i;
    always @* begin
        product = {11'd0, a[14:10] != 0, a[9:0]} * {11'd0, b[14:10] != 0, b[9:0]};
        exponent = $signed({3'b0, a_exponent}) + $signed({3'b0, b_exponent}) - 8'sd29;
        for (i = 0; i < 22; i = i + 1)
            if (!product[21]) begin
                product = product << 1;
                exponent = exponent - 8'sd1;
            end
    end

    function up(input [2:0] mode, input negative, input odd, input guard, input rest);
        up = mode == NEAREST_EVEN ? guard && (rest || odd)
           : mode == NEAREST_AWAY ? guard
           : mode == DOWN ? negative && (guard || rest)
           : mode == UP ? !negative && (guard || rest)
           : 1'b0;
    endfunction

    // Eleven bits are kept, fewer below 2^-14.
    wire low = exponent < -8'sd14;
    wire [7:0] shift = low ? -8'sd14 - exponent : 8'd0;
    wire [63:0] aligned = {product, 42'd0} >> shift;
    wire inexact = aligned[52:0] != 0;
    wire [11:0] rounded = {1'b0, aligned[63:53]} + {11'd0, up(rnd, sign, aligned[53], aligned[52], aligned[51:0] != 0)};
    wire [16:0] base = low ? 17'd0 : {3'b0, exponent[5:0] + 6'd14, 8'd0} << 2;
    wire [16:0] magnitude = base + {5'd0, rounded};
    wire overflow = magnitude >= 17'h07c00;
    wire to_infinity = rnd == NEAREST_EVEN || rnd == NEAREST_AWAY || rnd == (sign ? DOWN : UP);

    // Tiny after rounding: with eleven bits and any exponent it would be below 2^-14.
    wire carries = &product[21:11] && up(rnd, sign, product[11], product[10], product[9:0] != 0);
    wire tiny = low && (FAULT == 7 || !(exponent == -8'sd15 && carries));

    wire special = a_nan || b_nan || a_inf || b_inf;
    wire zero = a_zero || b_zero;
    wire is_nan = a_nan || b_nan || invalid;
    wire number = !special && !zero;

    assign d = is_nan ? (FAULT == 5 ? 16'hfe01 : 16'h7e00)
             : special ? {sign, 15'h7c00}
             : zero ? {sign, 15'd0}
             : overflow ? {sign, to_infinity ? 15'h7c00 : 15'h7bff}
             : {sign, magnitude[14:0]} ^ {15'd0, FAULT == 6 && inexact};
    assign nv = FAULT == 4 && is_nan ? 1'bx : signals || invalid || (FAULT == 3 && (a_nan || b_nan));
    assign of = number && overflow;
    assign nx = number && (inexact || (overflow && FAULT != 2)) && !(FAULT == 2 && overflow);
    assign uf = number && inexact && tiny && !(FAULT == 1 && magnitude == 0);
    assign flags = {nv, of, uf, nx};
endmodule
