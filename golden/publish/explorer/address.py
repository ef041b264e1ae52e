"""Where the explorer stands in a site, and the address under which it shows an instruction with operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from golden.model.instruction import Instruction
from golden.unit import name_of

INDEX = "explorer/index.html"


def address(ins: Instruction, operands: Mapping[str, Any], second: Instruction | None = None) -> str:
    """The path from the site's root, with the operands of one dot product behind the #.

    page/link.js reads it: codes in hex, apart by dots; zeros at the end are left out. `second`: a second
    instruction to compare with.
    """
    parts = [f"i={name_of(ins)}", *([] if second is None else [f"with={name_of(second)}"])]
    parts += [f"{name}={_codes(codes)}" for name, codes in operands.items()]
    return f"{INDEX}#{'&'.join(parts)}"


def _codes(codes: Any) -> str:
    words = [f"{int(code):x}" for code in np.ravel(codes)]
    while words and words[-1] == "0":
        words.pop()
    return ".".join(words)
