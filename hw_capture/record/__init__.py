"""Recorded results: capture on a GPU, replay without one."""
