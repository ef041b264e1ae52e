"""Whole matrix products of libraries, recorded on a GPU: which bits cuBLAS, cuSPARSELt and Triton answer."""
