"""Proof, not search: two circuits are equal for all operands, or operands show that they are not."""
