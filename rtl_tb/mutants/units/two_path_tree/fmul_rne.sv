// IEEE multiplier, RNE, subnormals in and out.
module fmul_rne #(parameter EW = 5, FW = 10) (
  input  logic [EW+FW:0] OPA, OPB,
  output logic [EW+FW:0] RES
);
  localparam MW   = FW + 1;
  localparam PW   = 2 * MW;
  localparam BIAS = 2 ** (EW - 1) - 1;

  logic           S, AZ, BZ, ANAN, BNAN, AINF, BINF, UP;
  logic [MW-1:0]  MA, MB;
  logic [PW-1:0]  P, PN;
  logic [2*PW-1:0] PD;
  logic [EW+FW+1:0] R;
  int             LZ, E, SH;
  always_comb begin
    S    = OPA[EW+FW] ^ OPB[EW+FW];
    AZ   = ~|OPA[EW+FW-1:0];
    BZ   = ~|OPB[EW+FW-1:0];
    AINF = &OPA[EW+FW-1:FW] && ~|OPA[FW-1:0];
    BINF = &OPB[EW+FW-1:FW] && ~|OPB[FW-1:0];
    ANAN = &OPA[EW+FW-1:FW] && |OPA[FW-1:0];
    BNAN = &OPB[EW+FW-1:FW] && |OPB[FW-1:0];
    MA   = {|OPA[EW+FW-1:FW], OPA[FW-1:0]};
    MB   = {|OPB[EW+FW-1:FW], OPB[FW-1:0]};
    P    = MA * MB;
    LZ   = 0;
    for (int I = 0; I < PW; I++) if (P[I]) LZ = PW - 1 - I;
    PN   = P << LZ;
    // biased exponent of a product whose leading one is the top bit
    E    = int'(OPA[EW+FW-1:FW]) + int'(!MA[FW]) + int'(OPB[EW+FW-1:FW]) + int'(!MB[FW]) - BIAS + 1 - LZ;
    SH   = (E >= 1) ? 0 : (1 - E > PW) ? PW : 1 - E;
    PD   = {PN, {PW{1'b0}}} >> SH;
    UP   = PD[2*PW-1-MW] & (PD[2*PW-MW] | (|PD[2*PW-2-MW:0]));
    R    = {1'b0, (EW+1)'(E < 1 ? 0 : E), PD[2*PW-2 -: FW]} + (EW+FW+2)'(UP);
    if (ANAN || BNAN || (AINF && BZ) || (BINF && AZ)) RES = {1'b0, {EW{1'b1}}, 1'b1, {(FW-1){1'b0}}};
    else if (AINF || BINF || E >= 2 * BIAS + 1 || R[EW+FW+1:FW] >= 2 * BIAS + 1) RES = {S, {EW{1'b1}}, {FW{1'b0}}};
    else RES = {S, R[EW+FW-1:0]};
    if ((AZ || BZ) && !(ANAN || BNAN || AINF || BINF)) RES = {S, {(EW+FW){1'b0}}};
  end
endmodule
