"""Engines: three ways to run a DUT on the same vectors, with the same verdict.

`fast` (verilated shared library driven from NumPy), `selfcheck` (generated plain SystemVerilog testbench) and
`cocotb_engine` (cocotb testbench). Each has `run(job, progress=None) -> Outcome`; see rtl_tb/engines/job.py.
"""
