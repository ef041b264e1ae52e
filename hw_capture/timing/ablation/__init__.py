"""What asynchronous copies and permuted shared memory are worth: whole matrix products in a ladder of
kernels, after W. Sun et al., appendix A, and with the copy engine and wgmma of Hopper."""
