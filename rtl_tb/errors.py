"""The exceptions of the RTL side. All derive from golden.errors.MmagoldError: one line at the command
line, exit status 2."""

from __future__ import annotations

from golden.errors import MmagoldError


class RtlError(MmagoldError, RuntimeError):
    """A run of a DUT could not be done as requested."""


class SimulatorMissing(RtlError):
    """A simulator is not installed; the message says how to install it."""


class SimulatorTooOld(RtlError):
    """A simulator was found, but its version is older than what works."""


class ElaborationError(RtlError):
    """The simulator refused the design; the message is the simulator's own, once."""


class MachineError(RtlError):
    """A tool broke off for a cause of the machine (killed, no memory, no room on the disk): it says nothing
    of the design."""


class DutTimeout(RtlError):
    """The DUT stopped answering."""
