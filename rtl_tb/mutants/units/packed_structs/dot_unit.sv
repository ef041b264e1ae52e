// Four-lane dot product of halves with a single-precision addend. Terms are two's complement numbers and are cut as such
// (toward minus infinity) when they are aligned. Two stages, valid/ready on both sides; a stage moves whenever the one behind it
// is empty or moves.

module dot_unit
  import fp_types_pkg::*;
(
    input  logic      clk,
    input  logic      rst,
    input  logic      in_valid,
    output logic      in_ready,
    input  half_vec_t in_a,
    input  half_vec_t in_b,
    input  single_t   in_c,
    output logic      out_valid,
    input  logic      out_ready,
    output single_t   out_d
);

  // ---------------------------------------------------------------- first stage: products and the largest exponent
  stage1_t s1_next, s1;
  logic    s1_valid, s1_move, s2_move;

  assign s2_move  = !out_valid || out_ready;
  assign s1_move  = !s1_valid || s2_move;
  assign in_ready = s1_move;

  always_comb begin : multiply
    half_t       x, y;
    logic        x_zero, y_zero, x_top, y_top, negative;
    logic [21:0] product;
    fixed_t      magnitude;
    s1_next = '0;
    for (int l = 0; l < LANES; l++) begin
      x        = in_a[l];
      y        = in_b[l];
      x_zero   = {x.exponent, x.fraction} == '0;
      y_zero   = {y.exponent, y.fraction} == '0;
      x_top    = x.exponent == '1;
      y_top    = y.exponent == '1;
      negative = x.sign != y.sign;
      product  = {11'b0, x.exponent != '0, x.fraction} * {11'b0, y.exponent != '0, y.fraction};
      magnitude = {1'b0, product, 5'b0};

      s1_next.special.nan |= (x_top && (x.fraction != '0 || y_zero)) || (y_top && (y.fraction != '0 || x_zero));
      if (x_top || y_top) begin
        if (negative) s1_next.special.neg_inf = 1'b1;
        else          s1_next.special.pos_inf = 1'b1;
      end

      s1_next.terms[l].fixed    = negative ? -magnitude : magnitude;
      s1_next.terms[l].exponent = 9'd96 + 9'(x.exponent) + 9'(x.exponent == '0) + 9'(y.exponent) + 9'(y.exponent == '0);
      if (!x_zero && !y_zero && s1_next.terms[l].exponent > s1_next.largest) s1_next.largest = s1_next.terms[l].exponent;
    end

    magnitude = {2'b0, in_c.exponent != '0, in_c.fraction, 2'b0};
    s1_next.terms[LANES].fixed    = in_c.sign ? -magnitude : magnitude;
    s1_next.terms[LANES].exponent = in_c.exponent == '0 ? 9'd0 : {1'b0, in_c.exponent} - 9'd1;
    if (s1_next.terms[LANES].fixed != '0 && s1_next.terms[LANES].exponent > s1_next.largest)
      s1_next.largest = s1_next.terms[LANES].exponent;
    if (in_c.exponent == '1) begin
      if (in_c.fraction != '0) s1_next.special.nan     = 1'b1;
      else if (in_c.sign)      s1_next.special.neg_inf = 1'b1;
      else                     s1_next.special.pos_inf = 1'b1;
    end
    if (s1_next.special.pos_inf && s1_next.special.neg_inf) s1_next.special.nan = 1'b1;
  end

  // ---------------------------------------------------------------- second stage: align, add, round
  sum_t    total;
  single_t d_next;

  always_comb begin : align_and_add
    exponent_t shift;
    fixed_t    aligned;
    total = '0;
    for (int l = 0; l <= LANES; l++) begin
      shift   = s1.largest - s1.terms[l].exponent;
      aligned = $signed(s1.terms[l].fixed) >>> (shift > 9'(FIXED_W) ? 9'(FIXED_W) : shift);
      total   = total + SUM_W'(aligned);
    end
  end

  always_comb begin : round
    logic [SUM_W-1:0]   magnitude, normal;
    logic [4:0]         zeros;
    logic signed [10:0] biased;
    logic [2*SUM_W-1:0] place;
    logic [31:0]        word;
    logic               up;
    magnitude = total < 0 ? SUM_W'(-total) : SUM_W'(total);
    zeros     = '0;
    for (int i = 0; i < SUM_W; i++) if (magnitude[i]) zeros = 5'(SUM_W - 1 - i);
    normal    = magnitude << zeros;
    biased    = $signed({2'b0, s1.largest}) + 11'(SUM_W - FRAC_KEPT) - $signed({6'b0, zeros});
    place     = {normal, {SUM_W{1'b0}}};
    if (biased < 11'sd1) place = place >> (biased < -11'sd30 ? 11'sd31 : 11'sd1 - biased);
    up        = place[2*SUM_W-25] && (place[2*SUM_W-24] || place[2*SUM_W-26:0] != '0);
    word      = {biased < 11'sd1 ? 9'd0 : biased[8:0] - 9'd1, 23'b0} + 32'(place[2*SUM_W-1-:24]) + 32'(up);
    d_next    = '{sign: total < 0, exponent: word[30:23], fraction: word[22:0]};
    if (magnitude == '0 || word == '0)     d_next = '0;
    else if (word[31:23] >= 9'd255)        d_next = single_inf(total < 0);
    if (s1.special.pos_inf || s1.special.neg_inf) d_next = single_inf(s1.special.neg_inf);
    if (s1.special.nan)                    d_next = SINGLE_NAN;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      s1_valid  <= 1'b0;
      out_valid <= 1'b0;
    end else begin
      if (s1_move) s1_valid  <= in_valid;
      if (s2_move) out_valid <= s1_valid;
    end
    if (s1_move && in_valid) s1    <= s1_next;
    if (s2_move && s1_valid) out_d <= d_next;
  end

endmodule
