"""Tests that send Ctrl-C must also work where SIGINT is ignored, as it is in every job that a shell starts
in the background."""

from __future__ import annotations

import signal


def hears_interrupts() -> None:
    """For `preexec_fn`: a child inherits an ignored signal, and Python then raises no KeyboardInterrupt."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
