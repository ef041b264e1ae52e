"""The data path of a unit as arrays of exact numbers, with places at which a fault changes a signal.

A fault of RTL often has no key in the schema of units: a shift amount that wraps, a negation without its
one, an adder that forgets a bit when it carries. The steps of a program run here literally, for many dot
products at once, and at each place of `PLACES` a fault may change what the step holds. Without faults the
results are those of the core.

codes = results(ins, faults, operands)

The IEEE steps (`sum` with an order, `multiply` with a format, `fma`) run in the form that their RTL has:
align, sum, round. A fault therefore means the same in them as in a program of align, sum and round.
"""

from golden.identify.diagnose.datapath.codes import decoded
from golden.identify.diagnose.datapath.running import inexact, results, runs
from golden.identify.diagnose.datapath.signals import PLACES, Faulty

__all__ = ["PLACES", "Faulty", "decoded", "inexact", "results", "runs"]
