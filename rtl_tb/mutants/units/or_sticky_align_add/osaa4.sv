// osaa4: d = c + a0*b0 + a1*b1 + a2*b2 + a3*b3, bf16 factors, f32 addend and result.
//
// S1  decode, multiply (8x8), find the largest exponent
// S2  right shift to it, 24 bits below the point stay, everything else goes into ONE sticky flop; add
// S3  count leading zeros, shift, round to nearest even
//
// No stall input. A NaN is always 7FC00000. A zero result is always +0.

module osaa4 (
  i_clk, i_rst_n,
  i_vld, i_a, i_b, i_c,
  o_vld, o_d
);
  parameter N  = 4;
  parameter F  = 24;                    // bits below the point that survive the alignment
  localparam MW = F + 2;                // aligned magnitude: products lie in [0, 4)
  localparam SW = MW + 4;               // two's complement sum of N + 1 terms

  input              i_clk, i_rst_n, i_vld;
  input  [N*16-1:0]  i_a, i_b;
  input  [31:0]      i_c;
  output             o_vld;
  output [31:0]      o_d;

  // ---------------------------------------------------------------- S1
  // Exponents are kept as e + 254, so that none is negative: the least product is 2^-252.
  wire        [N:0]  sgn, nz, t_nan, t_inf;
  wire       [MW-1:0] mag [0:N];
  wire        [9:0]  ex  [0:N];

  genvar g;
  generate
    for (g = 0; g < N; g = g + 1) begin : lane
      wire [15:0] a = i_a[g*16 +: 16];
      wire [15:0] b = i_b[g*16 +: 16];
      wire a_top = &a[14:7], b_top = &b[14:7];
      wire a_fr  = |a[6:0],  b_fr  = |b[6:0];
      wire a_sub = ~|a[14:7], b_sub = ~|b[14:7];
      wire a_zero = a_sub & ~a_fr, b_zero = b_sub & ~b_fr;
      wire [15:0] prod = {8'd0, ~a_sub, a[6:0]} * {8'd0, ~b_sub, b[6:0]};

      assign sgn[g]   = a[15] ^ b[15];
      assign mag[g]   = {prod, {(MW-16){1'b0}}};
      assign ex[g]    = {2'd0, a[14:7]} + {9'd0, a_sub} + {2'd0, b[14:7]} + {9'd0, b_sub};
      assign nz[g]    = ~a_zero & ~b_zero;
      assign t_nan[g] = (a_top & a_fr) | (b_top & b_fr) | (a_top & b_zero) | (b_top & a_zero);
      assign t_inf[g] = a_top | b_top;
    end
  endgenerate

  wire c_sub = ~|i_c[30:23];
  assign sgn[N]   = i_c[31];
  assign mag[N]   = {1'b0, ~c_sub, i_c[22:0], {(MW-25){1'b0}}};
  assign ex[N]    = {2'd0, i_c[30:23]} + {9'd0, c_sub} + 10'd127;
  assign nz[N]    = |i_c[30:0];
  assign t_nan[N] = &i_c[30:23] & |i_c[22:0];
  assign t_inf[N] = &i_c[30:23];

  reg [9:0] top_ex;
  integer j;
  always @* begin
    top_ex = 10'd0;
    for (j = 0; j <= N; j = j + 1)
      if (nz[j] && ex[j] > top_ex) top_ex = ex[j];
  end

  reg              s1_v, s1_nan, s1_pinf, s1_ninf;
  reg     [N:0]    s1_sgn;
  reg    [MW-1:0]  s1_mag [0:N];
  reg     [9:0]    s1_sh  [0:N];
  reg     [9:0]    s1_ex;

  integer i;
  always @(posedge i_clk) begin
    s1_nan  <= |t_nan;
    s1_pinf <= |(t_inf & ~sgn);
    s1_ninf <= |(t_inf & sgn);
    s1_sgn  <= sgn;
    s1_ex   <= top_ex;
    for (i = 0; i <= N; i = i + 1) begin
      s1_mag[i] <= mag[i];
      s1_sh[i]  <= top_ex - ex[i];      // a zero may wrap around; it stays a zero
    end
  end

  // ---------------------------------------------------------------- S2
  reg [2*MW-1:0]       wide;
  reg signed [SW-1:0]  acc;
  reg                  stk;
  integer m;
  always @* begin
    acc = {SW{1'b0}};
    stk = 1'b0;
    wide = {(2*MW){1'b0}};
    for (m = 0; m <= N; m = m + 1) begin
      if (s1_sh[m] < MW) wide = {s1_mag[m], {MW{1'b0}}} >> s1_sh[m];
      else               wide = {{MW{1'b0}}, s1_mag[m]};
      stk = stk | (|wide[MW-1:0]);
      acc = s1_sgn[m] ? acc - $signed({4'd0, wide[2*MW-1:MW]}) : acc + $signed({4'd0, wide[2*MW-1:MW]});
    end
  end

  reg           s2_v, s2_nan, s2_pinf, s2_ninf, s2_neg;
  reg [SW-1:0]  s2_mag;                 // the sticky bit is its last bit
  reg  [9:0]    s2_ex;
  always @(posedge i_clk) begin
    s2_nan  <= s1_nan | (s1_pinf & s1_ninf);
    s2_pinf <= s1_pinf;
    s2_ninf <= s1_ninf;
    s2_neg  <= acc[SW-1];
    s2_mag  <= {acc[SW-1] ? ~acc[SW-2:0] + 1'b1 : acc[SW-2:0], stk};
    s2_ex   <= s1_ex;
  end

  // ---------------------------------------------------------------- S3
  // The leading one goes to bit SW-1, which stands for 2^(SW-2-F) in units of the largest exponent.
  reg  [4:0]    lz;
  integer n;
  always @* begin
    lz = 5'd0;
    for (n = 0; n < SW; n = n + 1)
      if (s2_mag[n]) lz = SW - 1 - n;
  end
  wire        [SW-1:0] nrm   = s2_mag << lz;
  wire signed [11:0]   e_b   = $signed({2'b00, s2_ex}) - 12'sd127 + (SW-2-F) - $signed({7'd0, lz});   // biased
  wire                 denor = e_b < 12'sd1;
  wire signed [11:0]   dsh0  = 12'sd1 - e_b;
  wire        [5:0]    dsh   = !denor ? 6'd0 : (dsh0 > 12'sd40) ? 6'd40 : dsh0[5:0];
  wire [2*SW-1:0]      dn    = {nrm, {SW{1'b0}}} >> dsh;
  wire [23:0]          keep  = dn[2*SW-1 -: 24];
  wire                 half  = dn[2*SW-25];
  wire                 rest  = |dn[2*SW-26:0];
  wire                 inc   = half & (rest | keep[0]);
  // the hidden bit adds one to the exponent field
  wire [31:0]          fin   = {8'd0, keep} + {(denor ? 9'd0 : e_b[8:0] - 9'd1), 23'd0} + {31'd0, inc};
  wire                 ovf   = (!denor && e_b > 12'sd254) || (fin[31:23] >= 9'd255);

  reg        s3_v;
  reg [31:0] s3_d;
  always @(posedge i_clk)
    if (s2_nan)                 s3_d <= 32'h7FC00000;
    else if (s2_pinf | s2_ninf) s3_d <= {s2_ninf, 8'hFF, 23'd0};
    else if (~|s2_mag)          s3_d <= 32'd0;
    else if (ovf)               s3_d <= {s2_neg, 8'hFF, 23'd0};
    else if (~|fin)             s3_d <= 32'd0;
    else                        s3_d <= {s2_neg, fin[30:0]};

  always @(posedge i_clk or negedge i_rst_n)
    if (!i_rst_n) {s3_v, s2_v, s1_v} <= 3'b000;
    else          {s3_v, s2_v, s1_v} <= {s2_v, s1_v, i_vld};

  assign o_vld = s3_v;
  assign o_d   = s3_d;
endmodule
