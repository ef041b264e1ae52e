"""The command `mmagold`, and `python -m mmagold`: golden.cli.app behind a guard for installations that are
not whole. `mmagold.torch` is the door to PyTorch, `mmagold.triton` that to Triton (golden/tensors), and every
public name of `golden` is one of `mmagold`, too.

Python itself ends with status 1 where an import fails, and status 1 means "not equal" here. This module
stands outside of the other packages, because importing any of them imports NumPy, and needs nothing but the
standard library.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, NoReturn


def main() -> NoReturn:
    """Entry point of the console command; ends the program. golden/boundary.py says with what status."""
    try:
        from golden.cli.app import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    except BaseException as error:
        if os.environ.get("MMAGOLD_TRACEBACK"):
            traceback.print_exc()
        line = " ".join(f"mmagold: cannot start: {type(error).__name__}: {error}".split())
        print(
            f"{line}; is it installed completely? MMAGOLD_TRACEBACK=1 prints the traceback", file=sys.stderr
        )
        sys.exit(2)
    command()


def __getattr__(name: str) -> Any:
    """A public name of `golden`, which is imported at the first one."""
    if not name.startswith("_"):
        import golden

        if name in golden.__all__:
            return getattr(golden, name)
    raise AttributeError(f"module 'mmagold' has no attribute '{name}'")
