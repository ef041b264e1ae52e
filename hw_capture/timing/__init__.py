"""Cycle counts of matrix instructions: published tables, our own microbenchmarks,
and the two side by side."""
