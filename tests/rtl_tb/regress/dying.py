"""Tasks of a worker, in a module of their own that it can import."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def die(mark):
    """A task that kills its worker the first time, and always where `mark` is a folder."""
    if not Path(mark).is_file():
        if not Path(mark).is_dir():
            Path(mark).write_text("was here")
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def double(number):
    return 2 * number
