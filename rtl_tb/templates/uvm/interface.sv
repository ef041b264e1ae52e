// The ports that every unit has: those of mmagold_dut, the wrapper of {{ top }}. {{ made }}
interface {{ p }}_if (
    input logic clk,
    input logic rst_n
);
  logic in_valid, in_ready, out_valid, out_ready;
  logic [{{ in_bits - 1 }}:0] in_data;
  logic [{{ out_bits - 1 }}:0] out_data;

  clocking driver_cb @(posedge clk);
    default input #1step output #0;
    output in_valid, in_data, out_ready;
    input in_ready, out_valid;
  endclocking

  clocking monitor_cb @(posedge clk);
    default input #1step;
    input in_valid, in_ready, in_data, out_valid, out_ready, out_data;
  endclocking
endinterface
