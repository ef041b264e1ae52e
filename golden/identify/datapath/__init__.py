"""The datapath of a unit as arrays of exact numbers, with taps: places at which a fault changes a signal.

A fault of RTL often has no key in the schema of units: a shift amount that wraps, a negation without its
one, an adder that forgets a bit when it carries. The steps of a program run here literally, for many dot
products at once, and at each place of `PLACES` a tap may change what the step holds. Without taps the results
are those of the core.

codes = results(ins, taps, operands)

The IEEE steps (`sum` with an order, `multiply` with a format, `fma`) run in the form that their RTL has:
align, sum, round. A tap therefore means the same in them as in a program of align, sum and round.
"""

from golden.identify.datapath.codes import decoded
from golden.identify.datapath.running import inexact, results, runs
from golden.identify.datapath.signals import PLACES, Tap

__all__ = ["PLACES", "Tap", "decoded", "inexact", "results", "runs"]
