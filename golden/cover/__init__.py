"""Functional coverage: what the vectors of a unit reach inside its datapath."""
