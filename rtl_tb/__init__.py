"""rtl_tb: checks a designer's dot-product unit bit for bit against the golden model,
in Icarus Verilog and Verilator.

A unit under test (DUT) is described by a `dut.yaml` (docs/dut.md). `rtl_tb.dut.description.load_dut` reads it
and `rtl_tb.dut.wrapper.write_wrapper` generates the SystemVerilog around it, so that every test bench sees
the same ports.

For tests of your own with cocotb (docs/cocotb.md): Source, Sink, Monitor, Channel, Bus, Clocked, Scoreboard,
Bench and DotProductTB. They are imported when they are first used,
so that everything else works without cocotb.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtl_tb.tb.agents import Bus, Channel, Clocked, Monitor, Sink, Source
    from rtl_tb.tb.scoreboard import Scoreboard
    from rtl_tb.tb.testbench import Bench, DotProductTB

__all__ = ["Bench", "Bus", "Channel", "Clocked", "DotProductTB", "Monitor", "Scoreboard", "Sink", "Source"]

_MODULES = dict.fromkeys(("Bus", "Channel", "Clocked", "Monitor", "Sink", "Source"), "rtl_tb.tb.agents")
_MODULES |= {
    "Scoreboard": "rtl_tb.tb.scoreboard",
    "Bench": "rtl_tb.tb.testbench",
    "DotProductTB": "rtl_tb.tb.testbench",
}


def __getattr__(name: str) -> Any:
    """Imports the class of that name."""
    if name not in _MODULES:
        raise AttributeError(f"module 'rtl_tb' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)
