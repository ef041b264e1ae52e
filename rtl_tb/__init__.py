"""rtl_tb: checks a designer's dot-product unit bit for bit against the golden model, in Icarus Verilog and Verilator.

A unit under test (DUT) is described by a `dut.yaml` (docs/dut.md). `rtl_tb.dut.load_dut` reads it and
`rtl_tb.wrapper.write_wrapper` generates the SystemVerilog around it, so that every test bench sees the same ports.
"""
