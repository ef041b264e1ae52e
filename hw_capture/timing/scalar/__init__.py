"""Scalar PTX instructions, timed in chains and independently, with the SASS of each loop checked."""
