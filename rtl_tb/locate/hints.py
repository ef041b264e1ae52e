"""Lines of a unit's text that look wrong by themselves: a width, a bound or a name that does not fit.

A wrong constant often leaves a signal a bit short, or selects missing bits. Verilator's lint reports that;
such lines are tried first, and nothing more is concluded from them.
"""

from __future__ import annotations

import re
from pathlib import Path

from rtl_tb.dut.description import Dut
from rtl_tb.engines.builds import warnings_of
from rtl_tb.locate.changes import Changes

_KINDS = ("WIDTH", "SELRANGE", "ASCRANGE", "UNUSED", "UNDRIVEN", "UNSIGNED", "CMPCONST", "PINCONNECTEMPTY")
_MOST = 30
"""Lines; if the lint warns of more, the unit was not written for it, and its warnings are ignored."""
_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+):\d+: ")
_NAME = re.compile(r"'(?:\w+\.)*([A-Za-z_][\w$]*)'")
_DECLARES = r"^[^/\n]*\b(?:logic|wire|reg|int|bit|localparam|parameter|input|output)\b[^;\n]*\b{}\b"


def suspicious_lines(dut: Dut, changes: Changes) -> set[tuple[Path, int]]:
    """File and line of each lint warning, and of the declarations of the signals that it names."""
    found: set[tuple[Path, int]] = set()
    for warning in warnings_of(dut, _KINDS):
        place = _PLACE.match(warning)
        file = None if place is None else Path(place["file"]).resolve()
        if place is None or file not in changes.texts:
            continue
        found.add((file, int(place["line"])))
        if len(found) > _MOST:
            break
        for name in _NAME.findall(warning):
            for declared in re.finditer(_DECLARES.format(name), changes.texts[file], re.MULTILINE):
                found.add((file, changes.texts[file].count("\n", 0, declared.end()) + 1))
    return found if len(found) <= _MOST else set()
