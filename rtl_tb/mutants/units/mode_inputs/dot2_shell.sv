// dot2_modes with its three mode inputs on one port, the rounding in the low bits.
module dot2_shell (
    input  [3:0]  mode,
    input  [15:0] x0, x1, y0, y1, z,
    output [15:0] r
);
    dot2_modes core (
        .rm(mode[1:0]), .ftz(mode[2]), .sat(mode[3]),
        .x0(x0), .x1(x1), .y0(y0), .y1(y1), .z(z), .r(r)
    );
endmodule
