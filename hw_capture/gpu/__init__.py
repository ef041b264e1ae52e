"""The GPU and the tools around it."""
