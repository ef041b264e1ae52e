// A row of a systolic array that stays where it is: activations and weights enter skewed, partial sums travel east, and the
// accumulator sits behind the last cell. One dot product of K enters in every cycle.
//
//   x[0] ->[cell 0]-> x[1] -z->[cell 1]-> ... ->[cell K-1]-> (+) <-> acc

module pe #(
    parameter int DataWidth = 8,
    parameter int SumWidth  = 18
) (
    input  logic                        clk_i,
    input  logic signed [DataWidth-1:0] act_i,
    input  logic signed [DataWidth-1:0] wgt_i,
    input  logic signed [SumWidth-1:0]  psum_i,
    output logic signed [SumWidth-1:0]  psum_o
);
  always_ff @(posedge clk_i) psum_o <= psum_i + SumWidth'(act_i * wgt_i);
endmodule

// Delays a word by Depth cycles.
module skew #(
    parameter int Width = 8,
    parameter int Depth = 1
) (
    input  logic             clk_i,
    input  logic [Width-1:0] d_i,
    output logic [Width-1:0] q_o
);
  if (Depth == 0) begin : gen_wire
    assign q_o = d_i;
  end else begin : gen_flops
    logic [Depth-1:0][Width-1:0] pipe_q;
    always_ff @(posedge clk_i) begin
      pipe_q[0] <= d_i;
      for (int s = 1; s < Depth; s++) pipe_q[s] <= pipe_q[s-1];
    end
    assign q_o = pipe_q[Depth-1];
  end
endmodule

module systolic_row #(
    parameter int K         = 4,
    parameter int DataWidth = 8,
    parameter int AccWidth  = 32
) (
    input  logic                        clk_i,
    input  logic                        rst_ni,
    input  logic                        push_i,
    input  logic                        clr_i,
    input  logic [K-1:0][DataWidth-1:0] act_i,
    input  logic [K-1:0][DataWidth-1:0] wgt_i,
    output logic                        valid_o,
    output logic signed [AccWidth-1:0]  acc_o
);
  localparam int SumWidth = 2 * DataWidth + $clog2(K);

  logic signed [SumWidth-1:0] psum [0:K];
  logic push_q, clr_q;

  assign psum[0] = '0;

  for (genvar k = 0; k < K; k++) begin : gen_cell
    logic [DataWidth-1:0] act, wgt;

    skew #(.Width(2 * DataWidth), .Depth(k)) u_skew (
        .clk_i,
        .d_i({act_i[k], wgt_i[k]}),
        .q_o({act, wgt})
    );

    pe #(.DataWidth(DataWidth), .SumWidth(SumWidth)) u_pe (
        .clk_i,
        .act_i (act),
        .wgt_i (wgt),
        .psum_i(psum[k]),
        .psum_o(psum[k+1])
    );
  end

  // The two control bits take as many cycles as the sum takes through the row.
  logic [K-1:0] push_sr, clr_sr;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) push_sr <= '0;
    else push_sr <= {push_sr[K-2:0], push_i};
  end
  always_ff @(posedge clk_i) clr_sr <= {clr_sr[K-2:0], clr_i};
  assign push_q = push_sr[K-1];
  assign clr_q  = clr_sr[K-1];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_o <= 1'b0;
      acc_o   <= '0;
    end else begin
      valid_o <= push_q;
      if (push_q) acc_o <= (clr_q ? '0 : acc_o) + AccWidth'(psum[K]);
    end
  end
endmodule
