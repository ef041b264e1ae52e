"""Proof, not vectors: a unit held against the circuit of its specification, for all operands."""
