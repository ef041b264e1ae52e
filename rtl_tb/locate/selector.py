"""One build that holds every choice: each place asks, while the unit runs, which text stands there.

    wire up = (mmagold_change::is[7] ? (r || s) : (r && s));

The numbers of one or two changes come from the environment, so that trying them costs a run and no build.
Verilator alone: the numbers are read by C++.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtl_tb.dut.description import Dut
from rtl_tb.locate.changes import Change, Changes, Place, write
from rtl_tb.locate.missing import ASSIGN, CLOSED, ELSE, GUARD, ITEM, OPENED, STATEMENT
from rtl_tb.locate.terms import TERM

VARIABLES = ("MMAGOLD_CHANGE", "MMAGOLD_CHANGE_TOO")
"""The environment variables that hold a number each; 0 is no change."""
PACKAGE = "mmagold_change"
_TEXT = """package {package};
    function automatic bit [{last}:0] chosen();
        chosen = '0;
{bits}    endfunction
    bit [{last}:0] is = chosen();
endpackage
"""


def _text(count: int) -> str:
    """The package that knows which of so many numbers are chosen."""
    read = [f'std::getenv(\\"{variable}\\")' for variable in VARIABLES]
    bits = [f'        chosen[$c32("({each} ? std::atoi({each}) : 0)")] = 1;\n' for each in read]
    return _TEXT.format(package=PACKAGE, last=count, bits="".join(bits))


def numbers(*chosen: int) -> dict[str, str]:
    """The variables of the environment for the changes of these numbers, two at most."""
    return {name: str(number) for name, number in zip(VARIABLES, (*chosen, 0, 0), strict=False)}


@dataclass
class _Site:
    """A place with its changes, and the places within it."""

    place: Place
    numbers: list[int]
    within: list[_Site]
    beside: str = ""
    """What is added there in any case."""


def with_selector(
    dut: Dut, changes: Changes, listed: Sequence[Change], folder: Path, made: Sequence[Change] = ()
) -> Dut:
    """Writes the sources of a DUT with every listed change to choose from; change i has the number i + 1.

    Args:
        made: constants that stand there in any case.
    """
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"{PACKAGE}.sv"
    package.write_text(_text(len(listed)), encoding="utf-8")
    sources = [package]
    for index, path in enumerate(dut.sources):
        file = path.resolve()
        if file not in changes.texts:
            sources.append(path)
            continue
        here = [
            (place, number)
            for number, change in enumerate(listed, 1)
            for place in change.choices
            if place.file == file
        ]
        beside = dict.fromkeys(piece for one in listed for piece in one.beside if piece[0].file == file)
        target = folder / f"{index}_{path.name}"
        fixed = {one.place: one.after for one in made if one.place.file == file}
        here += [(place, 0) for place in fixed]
        writer = _Writer(changes.texts[file], listed, fixed, changes.types)
        write(target, writer.written(_nested(here, beside)))
        sources.append(target)
    return replace(dut, sources=tuple(sources), include=(*dut.include, *_folders(dut)))


def _folders(dut: Dut) -> Iterator[Path]:
    """Where `include finds a neighbour of a source that has moved."""
    yield from dict.fromkeys(path.resolve().parent for path in dut.sources)


def _nested(here: Sequence[tuple[Place, int]], beside: Iterable[tuple[Place, str]] = ()) -> list[_Site]:
    """The places of a file as a forest. Two that overlap come of one text that was read in two ways; the
    first stays."""
    numbers: dict[Place, list[int]] = {}
    for place, number in here:
        numbers.setdefault(place, []).append(number)
    always: dict[Place, str] = {}
    for place, text in beside:
        numbers.setdefault(place, [])
        always[place] = always.get(place, "") + text
    roots: list[_Site] = []
    path: list[_Site] = []
    for place in sorted(numbers, key=lambda one: (one.start, -one.end)):
        while path and path[-1].place.end <= place.start:
            path.pop()
        if path and place.end > path[-1].place.end:
            continue
        site = _Site(place, numbers[place], [], always.get(place, ""))
        (path[-1].within if path else roots).append(site)
        path.append(site)
    return roots


@dataclass(frozen=True)
class _Writer:
    """A text with the changes to choose from, and what stands at some places in any case."""

    text: str
    listed: Sequence[Change]
    fixed: Mapping[Place, str]
    types: Mapping[Place, tuple[int, bool]]

    def written(self, sites: Sequence[_Site], start: int = 0, end: int = -1) -> str:
        """The text from `start` to `end` with its sites written as choices."""
        text, written, at = self.text, [], start
        for site in sites:
            place = site.place
            written.append(text[at : place.start])
            at = place.end
            if place in self.fixed:
                written.append(self.fixed[place])
            elif place.start == place.end:
                written.append(_added(site, self.listed))
            else:
                own = self.written(site.within, place.start, place.end)
                written.append(f"({''.join(self._choices(site))}({own}))")
        return "".join([*written, text[at : len(text) if end < 0 else end]])

    def _choices(self, site: _Site) -> Iterator[str]:
        """Each choice of a place; those of one pattern as one, with the terms that are chosen."""
        families: dict[str, list[int]] = {}
        for number in site.numbers:
            change = self.listed[number - 1]
            if change.term:
                families.setdefault(change.pattern, []).append(number)
            else:
                yield f"{_made(number)} ? {self._alike(site.place, change.choices[site.place])} : "
        for pattern, numbers in families.items():
            terms = ", ".join(self.listed[number - 1].term for number in numbers)
            made = f"{{{', '.join(map(_made, numbers))}}}"
            if numbers == list(range(numbers[0], numbers[-1] + 1)):
                terms = ", ".join(self.listed[number - 1].term for number in reversed(numbers))
                made = f"{PACKAGE}::is[{numbers[-1]}:{numbers[0]}]"
            text = pattern.replace(TERM, f"(|({{{terms}}} & {made}))")
            yield f"(|{made}) ? {self._alike(site.place, text)} : "

    def _alike(self, place: Place, text: str) -> str:
        """A text with the bits and the sign of what stands at a place: the values of a choice are made as
        wide as the widest, and without a sign where one has none, so that what is not chosen would change
        what is."""
        bits, signed = self.types.get(place, (0, False))
        sized = f"{bits}'({text})" if bits else f"({text})"
        return f"$signed({sized})" if signed else sized


def _added(site: _Site, listed: Sequence[Change]) -> str:
    """What may be added at a place, each under the condition that it is chosen."""
    forms: dict[str, list[tuple[str, Change]]] = {}
    for number in site.numbers:
        change = listed[number - 1]
        forms.setdefault(change.form, []).append((_made(number), change))
    branches = [f"else if ({made}) {change.after}" for made, change in forms.get(ELSE, [])]
    statements = [f"if ({made}) {change.after}" for made, change in forms.get(STATEMENT, [])]
    items = [
        f"if (({made}) && ({change.when or 1})) begin {change.after.partition(': ')[2]} end else"
        for made, change in forms.get(ITEM, [])
    ]
    if any(change.rest is None for _, change in forms.get(ITEM, [])):
        items = ["default:", *items, ";"]
    assigned: dict[str, list[str]] = {}
    for made, change in forms.get(ASSIGN, []):
        target, _, value = change.after.removesuffix(";").partition(" = ")
        assigned.setdefault(target, ["'0;"]).insert(-1, f"({made}) ? ({value}) :")
    guards = " && ".join(f"(!{made} || ({change.after}))" for made, change in forms.get(GUARD, []))
    closed = CLOSED if CLOSED in site.beside else ""
    return " ".join(
        [
            closed,
            *branches,
            site.beside.replace(CLOSED, ""),
            *statements,
            *items,
            *(f"{target} = {' '.join(texts)}" for target, texts in assigned.items()),
            OPENED.format(guards) if guards else "",
        ]
    )


def _made(number: int) -> str:
    return f"{PACKAGE}::is[{number}]"
