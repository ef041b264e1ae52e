"""Scalar PTX instructions, timed in chains and beside each other, with the SASS of each loop checked."""
