// IEEE adder with two paths, RNE, subnormals in and out.
//   CLOSE: effective subtraction with |d| <= 1: cancellation, LZC, long left shift, at most one bit to round
//   FAR  : all the rest: long right shift, at most one bit of normalisation
// Parameter EW: exponent width; FW: fraction width.
module fadd_2p #(parameter EW = 5, FW = 10) (
  input  logic [EW+FW:0] OPA, OPB,
  output logic [EW+FW:0] RES
);
  localparam MW = FW + 1;
  localparam logic [EW+FW:0] QNAN = {1'b0, {EW{1'b1}}, 1'b1, {(FW-1){1'b0}}};

  // --- swap, so that X is the larger magnitude
  logic            SWAP, EFF_SUB, SX, SY;
  logic [EW+FW-1:0] X, Y;
  logic [EW-1:0]   EX, EY, EXD, D;
  logic [MW-1:0]   MX, MY;
  assign SWAP = OPB[EW+FW-1:0] > OPA[EW+FW-1:0];
  assign X    = SWAP ? OPB[EW+FW-1:0] : OPA[EW+FW-1:0];
  assign Y    = SWAP ? OPA[EW+FW-1:0] : OPB[EW+FW-1:0];
  assign SX   = SWAP ? OPB[EW+FW] : OPA[EW+FW];
  assign SY   = SWAP ? OPA[EW+FW] : OPB[EW+FW];
  assign EFF_SUB = SX ^ SY;
  assign MX   = {|X[EW+FW-1:FW], X[FW-1:0]};
  assign MY   = {|Y[EW+FW-1:FW], Y[FW-1:0]};
  assign EX   = X[EW+FW-1:FW] + {{(EW-1){1'b0}}, ~MX[FW]};
  assign EY   = Y[EW+FW-1:FW] + {{(EW-1){1'b0}}, ~MY[FW]};
  assign D    = EX - EY;
  assign EXD  = EX - 1'b1;

  // --- close path
  logic [MW:0]    C_DIFF, C_NORM;
  logic [EW-1:0]  C_LZ, C_SH, C_EXP;
  logic           C_UP;
  logic [EW+FW-1:0] C_RES;
  assign C_DIFF = {MX, 1'b0} - (D[0] ? {1'b0, MY} : {MY, 1'b0});
  always_comb begin
    C_LZ = EW'(MW + 1);
    for (int I = 0; I <= MW; I++) if (C_DIFF[I]) C_LZ = EW'(MW - I);
  end
  assign C_SH   = (C_LZ > EXD) ? EXD : C_LZ;                 // do not shift below the least exponent
  assign C_NORM = C_DIFF << C_SH;
  assign C_EXP  = C_NORM[MW] ? EX - C_SH : '0;
  assign C_UP   = C_NORM[0] & C_NORM[1];
  assign C_RES  = {C_EXP, C_NORM[MW-1:1]} + {{(EW+FW-1){1'b0}}, C_UP};

  // --- far path: two bits below the last place, and a sticky bit
  logic [MW+2:0]  F_Y;                                        // mantissa, guard, round, sticky
  logic [2*MW+2:0] F_WIDE;
  logic [MW+3:0]  F_SUM, F_NORM;
  logic [EW:0]    F_EXP;
  logic           F_UP;
  logic [EW+FW:0] F_RES;
  assign F_WIDE = {MY, {(MW+3){1'b0}}} >> ((D > EW'(MW + 2)) ? EW'(MW + 2) : D);
  assign F_Y    = {F_WIDE[2*MW+2 -: MW+2], |F_WIDE[MW:0]};
  assign F_SUM  = EFF_SUB ? {1'b0, MX, 3'b000} - {1'b0, F_Y} : {1'b0, MX, 3'b000} + {1'b0, F_Y};
  always_comb
    if (F_SUM[MW+3]) begin                                    // carry
      F_NORM = {1'b0, F_SUM[MW+3:2], F_SUM[1] | F_SUM[0]};
      F_EXP  = EX + 1'b1;
    end else if (F_SUM[MW+2]) begin
      F_NORM = F_SUM;
      F_EXP  = {1'b0, EX};
    end else if (EFF_SUB) begin                               // one bit lost, EX > 1 here
      F_NORM = F_SUM << 1;
      F_EXP  = {1'b0, EXD};
    end else begin                                            // both subnormal
      F_NORM = F_SUM;
      F_EXP  = '0;
    end
  assign F_UP   = F_NORM[2] & (F_NORM[3] | F_NORM[1] | F_NORM[0]);
  assign F_RES  = {F_EXP, F_NORM[MW+1:3]} + {{(EW+FW){1'b0}}, F_UP};

  // --- select
  logic CLOSE, XINF, XNAN, YINF, OVF;
  assign CLOSE = EFF_SUB && D <= 1;
  assign XNAN  = &X[EW+FW-1:FW] && |X[FW-1:0];                // the larger one holds any NaN
  assign XINF  = &X[EW+FW-1:FW];
  assign YINF  = &Y[EW+FW-1:FW];
  assign OVF   = F_RES[EW+FW:FW] >= {1'b0, {EW{1'b1}}};
  always_comb
    if (XNAN || (XINF && YINF && EFF_SUB)) RES = QNAN;
    else if (XINF)                         RES = {SX, X};
    else if (CLOSE)                        RES = {SX & |C_DIFF, C_RES};
    else if (OVF)                          RES = {SX, {EW{1'b1}}, {FW{1'b0}}};
    else                                   RES = {SX, F_RES[EW+FW-1:0]};
endmodule
