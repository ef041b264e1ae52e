"""In which order does a kernel add? Accumulation plans, whole matrix products, and the plan behind given
results.

`golden.plan`, `golden.plans`, `golden.gemm` and `golden.find_plan` are the way in; `golden.gemm` is the
function, so that modules of this folder are imported by name (`from golden.kernels.product import gemm`).
"""
