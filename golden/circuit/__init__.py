"""A specification as a circuit of words: what is exported as SystemVerilog and what a proof is about."""
