"""The library for cocotb: agents, scoreboard, test benches."""
