"""Vectors through a DUT: the verdict on its answers, its latency, and the smallest operands that fail."""
