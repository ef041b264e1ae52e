package fp_types_pkg;

  localparam int LANES     = 4;
  localparam int FRAC_KEPT = 25;             // below the point of the largest exponent

  typedef struct packed {
    logic       sign;
    logic [4:0] exponent;
    logic [9:0] fraction;
  } half_t;

  typedef struct packed {
    logic        sign;
    logic [7:0]  exponent;
    logic [22:0] fraction;
  } single_t;

  typedef half_t [LANES-1:0] half_vec_t;

  typedef struct packed {
    logic nan;
    logic pos_inf;
    logic neg_inf;
  } special_t;

  // A term on its way to the alignment: value = fixed * 2^(exponent - FRAC_KEPT - EXP_OFFSET)
  localparam int EXP_OFFSET = 126;
  localparam int FIXED_W    = FRAC_KEPT + 3; // sign and two integer bits
  localparam int SUM_W      = FIXED_W + 3;

  typedef logic signed [FIXED_W-1:0] fixed_t;
  typedef logic signed [SUM_W-1:0]   sum_t;
  typedef logic [8:0]                exponent_t;

  typedef struct packed {
    exponent_t exponent;
    fixed_t    fixed;
  } term_t;

  typedef struct packed {
    special_t          special;
    exponent_t         largest;
    term_t [LANES:0]   terms;
  } stage1_t;

  localparam single_t SINGLE_NAN = '{sign: 1'b0, exponent: 8'hFF, fraction: 23'h400000};

  function automatic single_t single_inf(logic sign);
    return '{sign: sign, exponent: 8'hFF, fraction: 23'h0};
  endfunction

endpackage
