// Clock, reset, the unit in its wrapper, and the UVM test. {{ made }}
module {{ p }}_tb;
  import uvm_pkg::*;
  import {{ p }}_uvm_pkg::*;

  logic clk = 1'b0;
  logic rst_n = 1'b0;
  {{ p }}_if bus (clk, rst_n);

  mmagold_dut dut (
      .clk(clk),
      .rst_n(rst_n),
      .in_valid(bus.in_valid),
      .in_ready(bus.in_ready),
      .in_data(bus.in_data),
      .out_valid(bus.out_valid),
      .out_ready(bus.out_ready),
      .out_data(bus.out_data)
  );

  always #5ns clk = ~clk;

  initial begin
    repeat ({{ reset_cycles }}) @(posedge clk);
    rst_n <= 1'b1;
  end

  initial begin
    uvm_config_db#(virtual {{ p }}_if)::set(null, "*", "vif", bus);
    run_test("{{ p }}_test");
  end
endmodule
