"""Where operands lie: sparsity metadata, register layouts, fragments of a warp."""
