"""Kernels of an instruction: CUDA from the spec, compiled, disassembled, with the bytes that lanes read."""
