"""One-line mutants that nobody chose: every small change of a SystemVerilog text, of which a seed draws some.

    changes = find_changes("fda.sv", text)
    mutant = planted(unit, dut, draw(changes, random.Random(1)), "mutant_1")

The kinds of change come from rtl_tb/locate/kinds.py, and the search for a fault tries them as well. The text
is read only with pyslang's parser: no parameter, no top and no other file is needed, and comments and
strings are no places. Every place has the same chance, and at a place every text that may stand there. Lines
of handshakes and of ports are left alone: what they do is another question than the arithmetic.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtl_tb.dut.description import Dut
from rtl_tb.dut.slang import GET_PYSLANG
from rtl_tb.dut.text import in_ascii, read
from rtl_tb.engines.job import Traffic
from rtl_tb.errors import SimulatorMissing
from rtl_tb.locate import kinds
from rtl_tb.locate.sources import Sources
from rtl_tb.qualify.mutants import Mutant, Patch

KINDS = tuple(kinds.KINDS)
HANDSHAKE = re.compile(r"valid|ready|\brst|reset|clk|clock|enable|\bce\b|_v\b|stall|advance", re.IGNORECASE)


@dataclass(frozen=True)
class Change:
    """One place of a source: `before`, from `column` of the line `line` on (both from 0), becomes `after`."""

    kind: str
    file: str
    line: int
    column: int
    before: str
    after: str

    @property
    def place(self) -> tuple[str, int, int, str]:
        """What is changed."""
        return self.file, self.line, self.column, self.before

    def applied(self, text: str) -> str:
        """The text with the change."""
        lines = text.split("\n")
        line = lines[self.line]
        lines[self.line] = line[: self.column] + self.after + line[self.column + len(self.before) :]
        return "\n".join(lines)


def find_changes(name: str, text: str) -> list[Change]:
    """Every change of the text of a source that is called `name`, none twice, in the order of the places.

    Raises:
        SimulatorMissing: pyslang is not installed.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"pyslang reads the sources that are changed; install it: {GET_PYSLANG}")
    tree = importlib.import_module("pyslang.syntax").SyntaxTree.fromText(in_ascii(text), name)
    file, lines = Path(name), text.split("\n")
    sources = Sources(tree.sourceManager, {file: text}, only=file)
    found: dict[Change, None] = {}
    for one in kinds.changes_of(tree.root, sources, visits=_is_inside):
        line = sources.line(one.place) - 1
        column = one.place.start - (text.rfind("\n", 0, one.place.start) + 1)
        several = "\n" in one.before or "\n" in one.after
        if not several and not HANDSHAKE.search(lines[line].split("//")[0]):
            found[Change(one.kind, name, line, column, one.before, one.after)] = None
    whole = sorted(found, key=lambda one: (one.line, one.column, -len(one.before)))
    kept: dict[str, Change] = {}
    for change in whole:  # two kinds may make one text
        kept.setdefault(f"{change.line} {change.applied(text)}", change)
    return list(kept.values())


def _is_inside(node: Any) -> bool:
    """Whether a node is no port of a module."""
    kind = str(node.kind.name)
    return kind == "ModuleHeader" or not kind.endswith(("Port", "ModuleHeader", "PortDeclaration"))


def changes_of(dut: Dut, wanted: Sequence[str] = KINDS) -> list[Change]:
    """Every change, of some kinds, of a unit's sources."""
    every = (find_changes(path.name, read(path)) for path in dut.sources)
    return [change for found in every for change in found if change.kind in wanted]


def draw(changes: Sequence[Change], rng: random.Random) -> Change:
    """A change at one of all places, each of which has the same chance."""
    places = dict.fromkeys(change.place for change in changes)
    place = rng.choice(list(places))
    return rng.choice([change for change in changes if change.place == place])


def planted(unit: Path, dut: Dut, change: Change, name: str) -> Mutant:
    """The mutant with a change; the text that is replaced is unique because whole lines around it belong
    to it."""
    text = read(next(one for one in dut.sources if one.name == change.file))
    old, new = text.split("\n"), change.applied(text).split("\n")
    first, last = change.line, change.line + 1
    while text.count("\n".join(old[first:last])) > 1:
        first = max(first - 1, 0)
        last = min(last + 1, len(old))
    patch = Patch(change.file, "\n".join(old[first:last]), "\n".join(new[first:last]))
    fault = f"{old[change.line].strip()}  ->  {new[change.line].strip()}"
    where = f"{change.file}:{change.line + 1}"
    return Mutant(name, unit, fault, "arithmetic", (patch,), {}, None, Traffic(), where)


def together(mutants: Sequence[Mutant]) -> Mutant:
    """One mutant with the changes of several of one unit."""
    first = mutants[0]
    patches = tuple(patch for mutant in mutants for patch in mutant.patches)
    fault, where = (
        "  AND  ".join(getattr(mutant, name) for mutant in mutants) for name in ("fault", "where")
    )
    return replace(first, fault=fault, where=where, patches=patches)
