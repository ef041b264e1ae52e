"""The changes of a unit's text that a search tries: each kind of kinds.py, wherever it applies.

A *choice* is made while the unit runs, at its *site*: an expression that holds the change, or a place for a
statement. One build holds all choices (rtl_tb/locate/selector.py). A *constant* is fixed before that
(parameters, widths, bounds of loops), and costs a build of its own.
"""

from __future__ import annotations

import importlib.util
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

from golden.budget import Budget
from rtl_tb.dut.description import Dut
from rtl_tb.dut.slang import GET_PYSLANG, elaborated
from rtl_tb.dut.text import read
from rtl_tb.engines.builds import design_of
from rtl_tb.errors import SimulatorMissing
from rtl_tb.locate.elaboration import Elaboration, elaboration_of
from rtl_tb.locate.flow import Flow
from rtl_tb.locate.kinds import PROBE, Change, changes_of
from rtl_tb.locate.policy import DEFAULT, SearchPolicy
from rtl_tb.locate.scopes import Scope
from rtl_tb.locate.sources import Place, Sources, by_file

_HAS_MODULE = re.compile(r"^\s*module\b", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"(?<![\w$'.])[A-Za-z_][\w$]*")
_ASSIGNED = re.compile(r"([A-Za-z_][\w$]*)\s*(?:\[[^\]]*\]\s*|\.\w+\s*)*<?=\s*\(*\Z")
"""The target of an assignment, up to its value."""
_TARGET = 120
"""Characters before a value in which its target stands."""
_SELECTED = 40
"""Characters with which a text is selected."""
_UNUSED = ("ModuleDeclaration", "FunctionDeclaration", "TaskDeclaration")
_LEFT_OUT = (*_UNUSED, "GenerateBlock", "EqualsValueClause")
"""Syntax that a design may leave out; the first ones, if nothing uses them."""


@dataclass(frozen=True)
class Choice:
    """A change at the site where it can be made while the unit runs.

    Attributes:
        site: an expression, or the place of a statement that may be added.
        text: what stands at the site with the change; of one of a family its pattern, see Change.
        bits, signed: of the expression.
        root: the whole value or condition that the site is a part of, by which sites are ranked.
        copies: how often a simulator may write it out.
    """

    change: Change
    site: Place
    text: str
    bits: int = 0
    signed: bool = False
    root: Place | None = None
    copies: int = 1

    @property
    def size(self) -> int:
        """Characters that it adds to a build, about; a probe inverts the text that is there."""
        own = 0 if self.change.kind == PROBE else len(self.change.term or self.text)
        return self.copies * (_SELECTED + own)


@dataclass
class _Listed:
    choices: list[Choice] = field(default_factory=list)
    constants: list[Change] = field(default_factory=list)
    known: set[tuple[Place, str, str]] = field(default_factory=set)

    def note(self, choice: Choice) -> None:
        """Adds a choice, unless another one makes the same text of the same place."""
        key = (choice.site, choice.text, choice.change.form or choice.change.term)
        if key not in self.known:
            self.known.add(key)
            self.choices.append(choice)


@dataclass
class Changes:
    """The changes that can be tried in a design.

    Attributes:
        probes: for each root its complement: whether another value there changes the results.
        texts: the sources.
        not_read: what could not be read in them, as "file:line", or why.
        trees: the syntax, with the names that each file declares.
    """

    sources: Sources
    policy: SearchPolicy = DEFAULT
    probes: list[Choice] = field(default_factory=list)
    not_read: dict[str, None] = field(default_factory=dict)
    placer: _Placer | None = None
    trees: list[tuple[Any, Scope]] = field(default_factory=list)

    @cached_property
    def everywhere(self) -> _Listed:
        """The changes of the kinds that are tried everywhere."""
        return self._found()

    @property
    def choices(self) -> list[Choice]:
        """Those that are made while the unit runs."""
        return self.everywhere.choices

    @property
    def constants(self) -> list[Change]:
        """Those with a build of their own."""
        return self.everywhere.constants

    def at(self, wanted: Callable[[Place], bool]) -> list[Choice]:
        """The choices at some places, `wanted` says which places have one: a large text is read for a few."""
        return self._found(wanted).choices

    def constants_at(self, wanted: Callable[[Place], bool]) -> list[Change]:
        """The constants at some places."""
        return self._found(wanted).constants

    def missing(self, wanted: Callable[[Place], bool]) -> list[Choice]:
        """Texts that may be missing at some places: a term, a statement."""
        return self._found(wanted, missing=True).choices

    @property
    def flow(self) -> Flow | None:
        """Which signals are made from which ones without a register."""
        return None if self.placer is None else self.placer.readings.types.flow

    def neighbours(self, place: Place) -> list[Place]:
        """The roots whose assignments make a signal that is read at a place, or read the signal that is made
        there."""
        made: dict[str, list[Place]] = {}
        for root in (one.site for one in self.probes):
            made.setdefault(self._target(root), []).append(root)
        own = next((root for each in made.values() for root in each if place.lies_in(root)), place)
        read = set(_NAME.findall(self.sources.text(own) or ""))
        found = [root for name in read for root in made.get(name, ())]
        target = re.compile(rf"(?<![\w$.]){re.escape(self._target(own) or ' ')}(?![\w$])")
        users = [one.site for one in self.probes if target.search(self.sources.text(one.site) or "")]
        return list(dict.fromkeys([*found, *users]))

    def _target(self, root: Place) -> str:
        """The signal that gets the value of a root; "" of a condition."""
        before = self.sources.texts[root.file][max(root.start - _TARGET, 0) : root.start]
        found = _ASSIGNED.search(before)
        return "" if found is None else found[1]

    def statement(self, root: Place) -> Place:
        """The assignment that a root is a part of, or else the root."""
        return (self.placer and self.placer.statement(root)) or root

    def _found(self, wanted: Callable[[Place], bool] | None = None, missing: bool = False) -> _Listed:
        found = _Listed()
        if (placer := self.placer) is None:
            return found
        types, names = placer.readings.types, self.policy.names
        try:
            for tree, scope in self.trees:
                for change in changes_of(
                    tree.root, self.sources, types, names, placer.visits, wanted, scope, missing
                ):
                    placer.add(change, found)
        except _Ended:
            self.not_read["the rest of the text, for want of time"] = None
        return found

    @property
    def several(self) -> list[str]:
        """Modules of which the design has several instances."""
        return [] if self.placer is None else sorted(self.placer.readings.several)

    @property
    def texts(self) -> dict[Path, str]:
        """The text of each source."""
        return dict(self.sources.texts)

    def line(self, change: Change) -> int:
        """The number of the line of a change, from 1."""
        return self.sources.line(change.place)

    def applied(self, chosen: Iterable[Change]) -> dict[Path, str]:
        """The texts of the changed files, with the changes."""
        found: dict[Path, str] = {}
        for one in sorted(chosen, key=lambda one: one.place.start, reverse=True):
            place, text = one.place, found.get(one.place.file, self.sources.texts[one.place.file])
            found[place.file] = text[: place.start] + one.written + text[place.end :]
        return found


class _Ended(Exception):
    """The time to look for changes is over."""


def find_changes(dut: Dut, budget: Budget | None = None, policy: SearchPolicy = DEFAULT) -> Changes:
    """The changes of a DUT's sources, which are looked for when they are needed. Changes in text that could
    not be read (`not_read`), or not within the budget, are left out.

    Raises:
        SimulatorMissing: pyslang is not installed. ElaborationError: it cannot read the design.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"pyslang reads the sources that are changed; install it: {GET_PYSLANG}")
    design = design_of(dut)
    compilation, top = elaborated(design, in_dead_text=True)
    manager = compilation.sourceManager
    sources = Sources(manager, {path.resolve(): read(path) for path in design.sources})
    sources.texts |= _included(manager, sources.texts)

    def look() -> None:
        if budget is not None and budget.over():
            raise _Ended

    found = Changes(sources, policy)
    try:
        readings = elaboration_of(compilation, top, sources, look)
        readings.types.flow = Flow(top, look)
    except _Ended:
        found.not_read["the rest of the text, for want of time"] = None
        return found
    found.not_read = readings.not_read
    found.placer = _Placer(sources, readings, look)
    trees = compilation.getSyntaxTrees()
    found.trees = [(tree, Scope.of_packages(tree.root, sources, readings.types.declared)) for tree in trees]
    found.probes = found.placer.probes()
    return found


def _included(manager: Any, texts: Mapping[Path, str]) -> dict[Path, str]:
    """The files with modules that sources include. A header of macros may stand in several texts, and of two
    files with one name a simulator may take the other one."""
    files = {Path(str(manager.getFullPath(each))).resolve() for each in manager.getAllBuffers()}
    others = {file: read(file) for file in sorted(files - texts.keys()) if file.is_file()}
    names = Counter(file.name for file in others)
    alone = {file: text for file, text in others.items() if names[file.name] == 1}
    return {file: text for file, text in alone.items() if _HAS_MODULE.search(text)}


class _Placer:
    """Finds the site of each change: the expressions of a file as a forest of intervals."""

    def __init__(self, sources: Sources, readings: Elaboration, look: Callable[[], None]) -> None:
        self.sources, self.readings, self.look = sources, readings, look
        self.places = by_file(sorted(readings.read, key=lambda one: (one.file, one.start, -one.end)))
        self.starts = {file: [one.start for one in places] for file, places in self.places.items()}
        self.selects, self.statements, self.calls = (
            by_file(sorted(each)) for each in (readings.bounds, readings.statements, readings.calling)
        )
        self.above: dict[Place, Place | None] = {}
        for places in self.places.values():
            path: list[Place] = []
            for place in places:
                while path and not place.lies_in(path[-1]):
                    path.pop()
                self.above[place] = path[-1] if path else None
                path.append(place)

    def probes(self) -> list[Choice]:
        """The complement of each root."""
        found = []
        for root in self.readings.roots:
            bits, signed = self.readings.read[root]
            if root in self.readings.mixed or not bits:
                continue
            text = self._one_line(self.sources.text(root) or "")
            after = f"!({text})" if bits == 1 else f"~({text})"
            copies = self.readings.copies.get(root, 1)
            found.append(Choice(Change(PROBE, root, text, after), root, after, bits, signed, root, copies))
        return sorted(found, key=lambda one: one.size)

    def statement(self, place: Place) -> Place | None:
        """The assignment that a place is a part of."""
        places = self.statements.get(place.file, [])
        at = bisect_right(places, place.start, key=lambda one: one.start) - 1
        return places[at] if at >= 0 and place.lies_in(places[at]) else None

    def add(self, change: Change, found: _Listed) -> None:
        """Records a change at its site; not if no instance has the text."""
        if self._leaves(change):
            return
        if any(change.place.lies_in(function) for function in self.readings.fixed):
            if not change.adds:
                found.constants.append(change)
        elif change.form:
            found.note(self._whole(change, change.place, change.after))
        elif (choice := self._choice(change)) is not None:
            found.note(choice)
        elif change.kind != "missing term":
            found.constants.append(change)

    def _choice(self, change: Change) -> Choice | None:
        if change.kind in ("statement", "missing condition"):  # a whole statement, at its own place
            if not change.after:
                return None
            return self._whole(change, change.place, self._one_line(change.after))
        path = list(self._around(change.place))
        if not path or not self.readings.mixed.isdisjoint(path):  # a statement has no bits of its own
            return self._of_statement(change, bool(path))
        root = path[-1]
        site = path[0]
        named = change.kind == "name" and change.wide
        if change.kind == "range" or named or (change.kind == "constant" and site != change.place):
            # The select may get another width, which counts up to the first expression of another width.
            around = [*self._as_wide(path)]
            if (
                around == path
                and root in self.readings.assigned
                and self.readings.modular.issuperset(path[1:])
            ):
                around = path[:1]  # what is above its bits is lost in any case
            else:
                around = [*self._around_width(path)]
        else:  # as far as its bits or its sign may matter
            around = path if change.wide else path[:1]
        site = next((place for place in around[::-1] if not self._calls(place)), site)
        bits, signed = self.readings.read[site]
        if not bits and change.kind != "name":  # of an enumeration or a structure
            return None
        text = change.pattern or change.after
        whole = self.sources.texts[site.file]
        said = whole[site.start : change.place.start] + text + whole[change.place.end : site.end]
        said = self._one_line(said)
        return Choice(change, site, said, bits, signed, root, self.readings.copies.get(site, 1))

    def _as_wide(self, path: Sequence[Place]) -> Iterable[Place]:
        """The first expressions of a path that are as wide as its first one, and have the same sign."""
        own = self.readings.read[path[0]]
        return takewhile(lambda place: self.readings.read[place] == own, path)

    def _around_width(self, path: Sequence[Place]) -> Iterable[Place]:
        """The first expressions of a path, up to one whose width does not depend on that of the first one: a
        concatenation is as wide as its parts together."""
        at = 0
        while at < len(path):
            same = [*self._as_wide(path[at:])]
            yield from same
            at += len(same)
            if at < len(path) and not (self.sources.text(path[at]) or "").startswith("{"):
                yield path[at]
                break

    def _of_statement(self, change: Change, read: bool) -> Choice | None:
        """A change of an assignment's target, or of what it reads, as another statement in its place."""
        if (
            (site := self.statement(change.place)) is None
            or not (read or change.kind in ("name", "range", "constant"))
            or self._calls(site)  # each text of it would hold all choices of what it calls
        ):
            return None
        whole = self.sources.texts[site.file]
        said = whole[site.start : change.place.start] + change.after + whole[change.place.end : site.end]
        return self._whole(change, site, self._one_line(said))

    def _whole(self, change: Change, site: Place, text: str) -> Choice:
        """A choice of a whole statement or of an added text."""
        root = change.decided or self._root(site)
        copies = 1 if root is None else self.readings.copies.get(root, 1)
        return Choice(change, site, text, root=root, copies=copies)

    def _calls(self, place: Place) -> bool:
        calls = self.calls.get(place.file, [])
        start, end = (bisect_left(calls, at, key=lambda one: one.start) for at in (place.start, place.end))
        return any(one.lies_in(place) for one in calls[start:end])

    def _around(self, place: Place) -> Iterable[Place]:
        """The expressions around a place, the innermost first."""
        places = self.places.get(place.file, [])
        at = bisect_right(self.starts.get(place.file, []), place.start) - 1
        one: Place | None = places[at] if at >= 0 else None
        while one is not None:
            if place.lies_in(one):
                yield one
            one = self.above[one]

    def _root(self, place: Place) -> Place | None:
        """The expression that a statement begins with, or the next one after it."""
        places, starts = self.places.get(place.file, []), self.starts.get(place.file, [])
        at = bisect_right(starts, place.start)
        near = places[at] if at < len(places) else places[-1] if places else None
        while near is not None and (above := self.above[near]) is not None:
            near = above
        return near

    def visits(self, node: Any) -> bool:
        """Whether some instance has a text: a module without instances, or a branch that all leave out, is
        skipped."""
        self.look()
        kind = node.kind.name
        if kind not in _LEFT_OUT:
            return True
        if (place := self.sources.place(node)) is None or place in self.readings.used:
            return True
        return kind not in _UNUSED and place not in self.readings.idle

    def _leaves(self, change: Change) -> bool:
        """Whether a bound is beyond its vector: bits there may have any value."""
        if change.kind not in ("range", "constant", "name"):
            return False
        selects = self.selects.get(change.place.file, [])
        at = bisect_right(selects, change.place.start, key=lambda one: one.start)
        near = [one for one in selects[max(at - 4, 0) : at] if change.place.lies_in(one)]
        if not near:
            return False
        select = min(near, key=lambda one: one.end - one.start)
        low, high = self.readings.bounds[select]
        text = self.sources.text(select) or ""
        index = change.place.start - select.start > text.find("[")
        values = [self.readings.types.numbers.get(one) for one in (change.before, change.after)]
        if index and values[0] is not None and values[1] is not None:  # a vector of 2^31 bits takes hours
            return abs(values[1] - values[0]) > high - low
        said = [one.strip() for one in re.split(r":", change.after)]
        return index and any(one.isdigit() and not low <= int(one) <= high for one in said)

    def _one_line(self, text: str) -> str:
        """The text in one line, so that later lines keep their numbers."""
        return " ".join(_COMMENT.sub(" ", text).split()) if "\n" in text or "//" in text else text
