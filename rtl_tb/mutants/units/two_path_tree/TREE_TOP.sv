// Eight products and a binary tree of adders, a register behind every level, an adder for C at the end.
// CE stops everything. Latency: 1 + log2(8) + 1 = 5.
module TREE_TOP #(parameter N = 8, EW = 5, FW = 10, localparam W = 1 + EW + FW) (
  input  logic         CLK,
  input  logic         CE,
  input  logic [W-1:0] A [0:N-1],
  input  logic [W-1:0] B [0:N-1],
  input  logic [W-1:0] C,
  output logic [W-1:0] D
);
  localparam LEVELS = $clog2(N);

  // NODE[1] is the root, NODE[N] .. NODE[2N-1] are the leaves; every node has its register.
  logic [W-1:0] NODE [1:2*N-1];
  logic [W-1:0] C_PIPE [0:LEVELS];

  for (genvar L = 0; L < N; L++) begin : LEAF
    logic [W-1:0] P;
    fmul_rne #(.EW(EW), .FW(FW)) MUL (.OPA(A[L]), .OPB(B[L]), .RES(P));
    always_ff @(posedge CLK) if (CE) NODE[N+L] <= P;
  end

  for (genvar I = 1; I < N; I++) begin : INNER
    logic [W-1:0] S;
    fadd_2p #(.EW(EW), .FW(FW)) ADD (.OPA(NODE[2*I]), .OPB(NODE[2*I+1]), .RES(S));
    always_ff @(posedge CLK) if (CE) NODE[I] <= S;
  end

  always_ff @(posedge CLK)
    if (CE) begin
      C_PIPE[0] <= C;
      for (int T = 1; T <= LEVELS; T++) C_PIPE[T] <= C_PIPE[T-1];
    end

  logic [W-1:0] SUM;
  fadd_2p #(.EW(EW), .FW(FW)) LAST (.OPA(NODE[1]), .OPB(C_PIPE[LEVELS]), .RES(SUM));
  always_ff @(posedge CLK) if (CE) D <= SUM;
endmodule
