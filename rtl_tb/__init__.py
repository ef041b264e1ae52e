"""Runs a dot-product unit in RTL against the golden model; see docs/simulators.md for the tools."""
