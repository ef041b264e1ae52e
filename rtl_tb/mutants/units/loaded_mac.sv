// Four products of bytes, added to a register that c can be loaded into: `clear_i` sets it to zero, `load_i` to c, and neither
// adds the products that come with it. One step in every cycle; its result is what the register holds then.

module loaded_mac (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               step_i,
    input  logic               clear_i,
    input  logic               load_i,
    input  logic        [31:0] act_i,
    input  logic        [31:0] wgt_i,
    input  logic signed [31:0] c_i,
    output logic               valid_o,
    output logic signed [31:0] acc_o
);
  logic signed [15:0] product [0:3];
  logic signed [32:0] sum;
  logic signed [31:0] next;

  for (genvar k = 0; k < 4; k++) begin : gen_product
    wire signed [7:0] act = act_i[8*k+:8];
    wire signed [7:0] wgt = wgt_i[8*k+:8];
    assign product[k] = act * wgt;
  end

  assign sum = acc_o + product[0] + product[1] + product[2] + product[3];

  always_comb begin
    if (clear_i) next = '0;
    else if (load_i) next = c_i;
    else if (sum > 33'sd2147483647) next = 32'sh7FFFFFFF;
    else if (sum < -33'sd2147483648) next = 32'sh80000000;
    else next = sum[31:0];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_o <= 1'b0;
      acc_o   <= '0;
    end else begin
      valid_o <= step_i;
      if (step_i) acc_o <= next;
    end
  end
endmodule
