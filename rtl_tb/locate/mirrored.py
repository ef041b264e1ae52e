"""Operands that may be missing: those of an expression, with their names changed as others are named.

    nan = nan || &x[6:0];                   // and `|| &y[6:0]`?
    place = bias + x_exp + x_sub + y_exp;   // and `+ y_sub`?

A unit treats its operands alike, so a test or a term that was forgotten for one of them mostly stands there
for another one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from rtl_tb.locate.scopes import name_parts

OPERATORS = ("+", "|", "&", "||", "&&")
_NAME = re.compile(r"(?<![\w.'$])[A-Za-z_]\w*")
_LONGEST = 120
"""Characters of an operand that is tried."""
SHORT = 2
"""Characters by which names of operands differ: a and b, x0 and x1."""
_WAYS = 3
"""Exchanges of names that are tried in one operand."""


def mirrored(operand: str, alike: Mapping[str, Iterable[str]], names: Collection[str]) -> Iterator[str]:
    """An operand with its names exchanged, `a` for `b` in all of them, for each way to do it.

    Args:
        alike: of each signal in it those that may stand for it.
        names: all signals that there are.
    """
    if len(operand) > _LONGEST:
        return
    ways = [name_parts(name, other) for name in _NAME.findall(operand) for other in alike.get(name, ())]
    short = [each for each in dict.fromkeys(ways) if all(0 < len(part) <= SHORT for part in each)]
    for one, two in short[:_WAYS]:
        found = _NAME.sub(lambda at, x=one, y=two: _exchanged(at[0], x, y, names), operand)  # type: ignore[misc]
        if found != operand:
            yield found


def _exchanged(name: str, one: str, two: str, names: Collection[str]) -> str:
    """A name with one part in the place of another, either way round, where there is such a signal."""
    for before, after in ((one, two), (two, one)):
        for at in (at.start() for at in re.finditer(re.escape(before), name)):
            other = name[:at] + after + name[at + len(before) :]
            if other in names:
                return other
    return name
