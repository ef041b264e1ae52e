`define OP(a, b) ((a) ^ (b))
`define FFL(q, d, en, rst) always_ff @(posedge clk or negedge rst_n) begin if (!rst_n) q <= rst; else q <= (en) ? (d) : (q); end
package pk;
  typedef enum logic [2:0] {FP32, FP64, FP16} fmt_e;
  typedef enum {A, B} plain_e;
  typedef struct packed { int unsigned exp_bits; int unsigned man_bits; } enc_t;
  localparam int unsigned N = 3;
  localparam enc_t [0:N-1] ENC = '{'{8, 23}, '{11, 52}, '{5, 10}};
  localparam real R = 1.5;
  localparam string S = "hello";
  typedef logic [N-1:0] mask_t;
  typedef struct packed { logic sign; logic [7:0] e; logic [22:0] m; } fp_t;
  typedef union packed { fp_t f; logic [31:0] b; } fpu_t;
  typedef struct { logic [7:0] x; int y; } un_t;
  function automatic int unsigned width(fmt_e f); return ENC[f].exp_bits + ENC[f].man_bits + 1; endfunction
  function automatic int unsigned maximum(int unsigned a, int unsigned b); return a > b ? a : b; endfunction
  function automatic int unsigned widest(mask_t cfg);
    automatic int unsigned r = 0;
    for (int unsigned i = 0; i < N; i++) if (cfg[i]) r = unsigned'(maximum(r, width(fmt_e'(i))));
    return r;
  endfunction
  class box #(type T = int); static function T twice(T x); return x + x; endfunction endclass
endpackage
interface bus #(parameter int W = 8, parameter type T = logic [W-1:0]) (input logic clk);
  T data; logic valid, ready;
  modport src (output data, valid, input ready);
  modport dst (input data, valid, output ready);
endinterface
module stage import pk::*; #(parameter fmt_e F = FP32, parameter type T = logic, parameter string NAME = "x", parameter real Q = 0.5, localparam type U = logic [width(F)-1:0], localparam int unsigned W = width(F)) (
  input logic clk, rst_n, input U a, output U y, bus.dst i, bus.src o, input T tag, output T tago);
  typedef struct packed { U x; T t; } in_t;
  in_t [0:1] pipe;
  wire w1; tri0 w2; 
  assign pipe[0] = '{x: a, t: tag};
  `FFL(pipe[1], pipe[0], 1'b1, '0)
  assign y = pipe[1].x; assign tago = pipe[1].t;
  assign o.data = i.data; assign o.valid = i.valid; assign i.ready = o.ready;
  and g1 (w1, a[0], a[1]);
  buf #(1) (w2, w1);
  real rr; initial rr = Q * 2.0;
  string ss; initial ss = {NAME, "y"};
  event ev; int q[$]; int dyn[]; int assoc[string];
  virtual bus vif;
  un_t un; 
  always_comb begin un.x = a[7:0]; un.y = 3; end
  initial begin
    fork #1; #2; join_none
    -> ev; q.push_back(3); dyn = new[4]; assoc["k"] = 5;
    foreach (dyn[k]) dyn[k] = k;
    repeat (3) #1; while (0) #1; do #1; while (0);
    wait (1); 
    $display("%s %f %m", NAME, Q);
  end
  property p; @(posedge clk) a[0] |-> ##1 y[0]; endproperty
  assert property (p) else $error("x");
  covergroup cg @(posedge clk); coverpoint a[1:0]; endgroup
  cg c = new;
endmodule
primitive udp (output o, input a, b); table 0 0 : 0; 0 1 : 1; 1 0 : 1; 1 1 : 0; endtable endprimitive
module leaf #(parameter W = 4) (input [W-1:0] a, output [W-1:0] y); assign y = ~a; specify (a => y) = 1; endspecify endmodule
module zoo import pk::*; #(parameter int W = 32, parameter fmt_e FMT = FP32, parameter pk::mask_t CFG = '1) (
  input logic clk, rst_n, input logic [31:0] x, w, output logic [31:0] y);
  fpu_t u; fp_t f; localparam int WW = widest(CFG); localparam type L = logic [WW-1:0];
  L ll;
  bus #(.W(8)) b0 (.clk), b1 (.clk);
  logic [31:0] s; logic [3:0] tg;
  stage #(.F(FMT), .T(logic [3:0]), .NAME("st"), .Q(2.5)) st (.clk, .rst_n, .a(x), .y(s), .i(b0), .o(b1), .tag(x[3:0]), .tago(tg));
  leaf lf [7:0] (.a(w), .y(ll[31:0]));
  wire ux; udp u1 (ux, x[0], w[0]);
  assign u.b = x; assign f = u.f;
  logic [31:0] acc; logic [7:0] arr [4][2]; 
  for (genvar i = 0; i < 4; i++) begin : gen
    if (i % 2 == 0) begin : even
      localparam int unsigned KK = i + 1;
      always_comb arr[i][0] = x[8*i +: 8] + KK;
      assign arr[i][1] = '0;
    end else begin : odd
      typedef logic [7:0] t8; t8 v;
      assign v = `OP(x[8*i +: 8], w[8*i +: 8]);
      assign arr[i][0] = v; assign arr[i][1] = box#(t8)::twice(v);
    end
    case (i) 0: begin : c0 end 1: wire q; default: ; endcase
  end
  let mx(a, b) = a > b ? a : b;
  always_comb begin
    acc = 0;
    foreach (arr[i, j]) acc += arr[i][j];
    unique case (x[1:0]) inside 2'b0?: acc = acc + 1; [2:3]: acc -= 1; endcase
    casez (w[2:0]) 3'b1??: acc = {<<8{acc}}; 3'b01?: {acc[3:0], acc[7:4]} = acc[7:0]; default: acc = acc; endcase
    if (x inside {1, [3:5]}) acc++;
    for (int i = 0, k = 3; i < 4; i++, k--) begin if (i == 3) break; acc = acc + 32'(k); continue; end
    acc = mx(acc, 32'd1) + 32'(f.m) + {'0, tg} + 32'($signed(f.e)) + 32'($countones(x)) + 32'($clog2(W)) + (FMT == FP32 ? 1 : 0);
    acc = acc + gen[0].even.KK + st.pipe[0].x;
    begin : nm automatic logic [3:0] z = 4'(x); acc += z; end
  end
  function automatic void voidf(input logic a, output logic o); o = a; endfunction
  task automatic tsk(input logic a); if (a) return; endtask
  logic vo; always_comb voidf(x[0], vo);
  assign y = acc ^ s ^ {31'b0, ux} ^ ll[31:0];
  if (W < 8) $error("bad");
  final $display("bye");
  enum {I1, I2} st_e; always_ff @(posedge clk) st_e <= st_e == I1 ? I2 : I1;
  wire [7:0] al1, al2; 
endmodule
