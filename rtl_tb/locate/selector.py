"""One build that holds every choice: at run time each site selects its text.

    wire up = (mmagold_change::is[7] ? (r || s) : (r && s));

The numbers of one or two changes come from the environment, so that trying them costs a run and no build.
Only for Verilator: C++ reads the numbers.

A module with several instances is not inlined, so that its choices are compiled once for all of them.

Each text stands on a line of its own, since a compiler says on which line it refuses one. The columns that
it says do not help: Verilator counts them after it has expanded macros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtl_tb.dut.description import Dut
from rtl_tb.dut.text import write
from rtl_tb.locate.changes import Changes, Choice
from rtl_tb.locate.kinds import PROBE, TERM
from rtl_tb.locate.sources import Place, ended

VARIABLES = ("MMAGOLD_CHANGE", "MMAGOLD_CHANGE_TOO")
"""The environment variables with one number each; 0 is no change."""
PACKAGE = "mmagold_change"
_STATEMENT_END = re.compile(r"(;|\bend)\s*\Z")
"""The last token of a statement or a block of them; no expression ends so."""
_DEFINE = re.compile(r"\s*`define\b")
_MADE = re.compile(rf"{PACKAGE}::is\[(\d+)\]")
_TEXT = """package {package};
    function automatic bit [{last}:0] chosen();
        chosen = '0;
{bits}    endfunction
    bit [{last}:0] is = chosen();
endpackage
"""


def numbers(*chosen: int) -> dict[str, str]:
    """The variables of the environment for the changes of these numbers, two at most."""
    return {name: str(number) for name, number in zip(VARIABLES, (*chosen, 0, 0), strict=False)}


def _package(count: int) -> str:
    """The package that returns which of `count` numbers are chosen."""
    read = [f'std::getenv(\\"{variable}\\")' for variable in VARIABLES]
    bits = [f'        chosen[$c32("({each} ? std::atoi({each}) : 0)")] = 1;\n' for each in read]
    return _TEXT.format(package=PACKAGE, last=count, bits="".join(bits))


@dataclass
class _Site:
    """A place with its choices, and the sites within it."""

    place: Place
    numbers: list[int]
    within: list[_Site]


def with_selector(dut: Dut, changes: Changes, listed: Sequence[Choice], folder: Path) -> Dut:
    """Writes the sources of a DUT with every listed choice; choice i has the number i + 1."""
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"{PACKAGE}.sv"
    package.write_text(_package(len(listed)), encoding="utf-8")
    sources = [package]
    if changes.several:
        apart = "".join(f'no_inline -module "{name}"\n' for name in changes.several)
        sources.insert(0, folder / f"{PACKAGE}.vlt")
        sources[0].write_text(f"`verilator_config\n{apart}", encoding="utf-8")
    own = {path.resolve() for path in dut.sources}
    included = folder / "included"  # is searched before the folder of the file that it replaces
    others = [file for file in changes.texts if file not in own]
    for index, path in enumerate([*dut.sources, *others]):
        file = path.resolve()
        if file not in changes.texts:
            sources.append(path)
            continue
        here = [(one.site, number) for number, one in enumerate(listed, 1) if one.site.file == file]
        writer = _Writer(changes.texts[file], listed)
        target = folder / f"{index}_{path.name}" if file in own else included / path.name
        target.parent.mkdir(exist_ok=True)
        write(target, writer.written(_nested(here)))
        sources += [target] if file in own else []
    folders = dict.fromkeys(path.resolve().parent for path in dut.sources)  # where `include finds a neighbour
    first = (included,) if others else ()
    return replace(dut, sources=tuple(sources), include=(*first, *dut.include, *folders))


def _nested(here: Sequence[tuple[Place, int]]) -> list[_Site]:
    """The sites of a file as a forest. Of two overlapping ones the first stays."""
    numbers: dict[Place, list[int]] = {}
    for place, number in here:
        numbers.setdefault(place, []).append(number)
    roots: list[_Site] = []
    path: list[_Site] = []
    for place in sorted(numbers, key=lambda one: (one.start, -one.end)):
        while path and path[-1].place.end <= place.start:
            path.pop()
        if path and place.end > path[-1].place.end:
            continue
        site = _Site(place, numbers[place], [])
        (path[-1].within if path else roots).append(site)
        path.append(site)
    return roots


@dataclass(frozen=True)
class _Writer:
    text: str
    listed: Sequence[Choice]

    def written(self, sites: Sequence[_Site], start: int = 0, end: int = -1) -> str:
        """The text from `start` to `end` with its sites written as choices."""
        text, written, at = self.text, [], start
        for site in sites:
            place = site.place
            written.append(text[at : place.start])
            at = place.end
            own = ended(self.written(site.within, place.start, place.end))
            if place.start == place.end:
                written.append(self._added(site))
            elif _STATEMENT_END.search(own):
                written.append(self._statement(site, own))
            elif len(site.numbers) == 1 and self.listed[site.numbers[0] - 1].change.kind == PROBE:
                written.append(self._probe(site, own))
            else:
                written.append(f"({''.join(self._choices(site))}{self.own_line(site)}({own}))")
        return "".join([*written, text[at : len(text) if end < 0 else end]])

    def own_line(self, site: _Site) -> str:
        """What begins a line at a site: nothing in the body of a macro, which is one line."""
        start = self.text.rfind("\n", 0, site.place.start) + 1
        while self.text[:start].endswith("\\\n"):
            start = self.text.rfind("\n", 0, start - 1) + 1
        return "" if _DEFINE.match(self.text, start) else "\n"

    def _choices(self, site: _Site) -> Iterator[str]:
        """Each choice of an expression; choices of one pattern as one, with the terms that are selected."""
        families: dict[str, list[int]] = {}
        for number in site.numbers:
            choice = self.listed[number - 1]
            if choice.change.term:
                families.setdefault(choice.text, []).append(number)
            else:
                yield f"{self.own_line(site)}{_made(number)} ? {_alike(choice, choice.text)} : "
        for pattern, numbers in families.items():
            first = self.listed[numbers[0] - 1]
            line = self.own_line(site)
            *others, last = ((each, self.listed[each - 1].change.term) for each in numbers)
            terms = "".join(f"{line}{_made(each)} ? {term} : " for each, term in others)
            text = pattern.replace(TERM, f"({terms}{line}/*{_made(last[0])}*/ {last[1]})")
            yield f"{line}({' || '.join(map(_made, numbers))}) ? {_alike(first, text)} : "

    def _probe(self, site: _Site, own: str) -> str:
        """An expression and its complement, written once: that halves what the compiler has to read."""
        choice, line = self.listed[site.numbers[0] - 1], self.own_line(site)
        mask = f"{{{choice.bits}{{{_made(site.numbers[0])}}}}}"
        flipped = f"{choice.bits}'({ended(own)}) ^ {mask}"
        return f"({line}$signed({flipped}){line})" if choice.signed else f"({line}{flipped}{line})"

    def _statement(self, site: _Site, own: str) -> str:
        """A statement that may be left out or replaced."""
        line = self.own_line(site)
        instead = (f"{line}if ({_made(at)}) {self.listed[at - 1].text} else " for at in site.numbers)
        return f"begin {''.join(instead)}{line}{own} {line}end"

    def _added(self, site: _Site) -> str:
        """Values that may be added to an item of a case."""
        line = self.own_line(site)
        every = ((number, self.listed[number - 1]) for number in site.numbers)
        labels = (f", ({line}{_made(at)} ? {one.text} : {one.change.term})" for at, one in every)
        return f"{''.join(labels)}{line} "


def _alike(choice: Choice, text: str) -> str:
    """A text with the bits and the sign of the expression at its site. Without that, the values of a choice
    are made as wide as the widest, and unsigned if one is, so that a text that is not chosen would change the
    chosen one."""
    sized = f"{choice.bits}'({ended(text)})" if choice.bits else f"({ended(text)})"
    return f"$signed({sized})" if choice.signed else sized


def numbers_at(text: str, line: int) -> set[int]:
    """The numbers of the choices on a line of a text, lines from 1; else on the nearest line before it."""
    for one in reversed(text.split("\n")[:line]):
        if found := _MADE.findall(one):
            return set(map(int, found))
    return set()


def _made(number: int) -> str:
    return f"{PACKAGE}::is[{number}]"
