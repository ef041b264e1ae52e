"""Tests that send a signal must also work where it is ignored, as SIGINT is in every job that a shell starts
in the background, and SIGHUP below nohup."""

from __future__ import annotations

import signal


def hears_signals() -> None:
    """For `preexec_fn`: a child inherits an ignored signal, and Python then raises no KeyboardInterrupt."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
