"""Faults of a datapath that no key of the schema says: every tap of golden/identify/datapath that the
diagnosis tries on an instruction.

Each module names faults of one part of a datapath, with numbers in the ranges that its widths suggest. None
knows a particular unit; docs/diagnosis.md lists the names.
"""

from golden.identify.datapath.running import runs
from golden.identify.datapath.signals import Tap
from golden.identify.taps import codes, operands, products, roundings, shifts, specials, totals
from golden.instruction import Instruction

_MODULES = (operands, products, specials, shifts, totals, roundings, codes)


def taps(ins: Instruction) -> list[Tap]:
    """Every fault of the datapath that `ins` can have; none where its steps do not run there."""
    if not runs(ins):
        return []
    return [tap for module in _MODULES for tap in module.faults(ins)]
