"""What a vendor calls things (spec/vendors): the machine code, lanes and registers, modifiers of names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from golden import yamlfile
from golden.paths import spec_folder
from golden.values import Choice
from golden.yamlfile import Section


@dataclass(frozen=True)
class Constants:
    """Inline constants by selector: integers, and words of f32."""

    integers: Mapping[int, int]
    floats: Mapping[int, int]


@dataclass(frozen=True)
class Vendor:
    """The words of one vendor.

    machine: what the machine's names of instructions are called, None where an instruction's own name is the
    machine's. compiler: the program that makes code for an architecture's targets. lane,
    register: a letter for pictures and what it stands for. modifiers: by variable, the word for each value.
    words: {WORD} in machine names: the variable that it follows, and the text for each value. nan: by format,
    the word of a NaN that additions, multiplications and conversions outside matrix units make; empty where
    nothing is known. constants: values of the selectors of a source that name no register: integers and words
    of f32. brands: words before the number of a card that say nothing (GeForce). writings: what compilers and
    libraries call instructions: a pattern, and the name that it means, with \\1 for its groups and * for what
    arguments decide.
    """

    name: str
    machine: str | None
    compiler: str | None
    lane: tuple[str, str]
    register: tuple[str, str]
    modifiers: Mapping[str, Mapping[str, str]]
    words: Mapping[str, tuple[str, Mapping[str, str]]]
    nan: Mapping[str, int]
    constants: Constants
    brands: tuple[str, ...] = ()
    writings: tuple[tuple[re.Pattern[str], str], ...] = ()

    @property
    def heading(self) -> str:
        """The heading of a column of machine names."""
        return self.machine or f"{self.name} name"


@lru_cache(maxsize=1)
def vendors() -> dict[str, Vendor]:
    """Every vendor by name. Raises SpecError with file, line, key and what was expected."""
    found = (_load(yamlfile.read(path)) for path in sorted((spec_folder() / "vendors").glob("*.yaml")))
    return {vendor.name: vendor for vendor in found}


VENDOR = Choice(known=vendors, what="a vendor")
"""The name of a vendor."""


def _load(document: Section) -> Vendor:
    name = document.take_name("vendor")
    document.take("source", str)
    labels = document.take("labels", Section)
    vendor = Vendor(
        name,
        document.take_name("machine", None),
        document.take_name("compiler", None),
        _label(labels, "lane"),
        _label(labels, "register"),
        _modifiers(document.take("modifiers", Section, None)),
        _words(document.take("words", Section, None)),
        _nan(document.take("nan", Section, None)),
        _constants(document.take("constants", Section, None)),
        tuple(document.take_names("brands", [])),
        tuple(_writing(one) for one in document.take("writings", list, [])),
    )
    labels.done()
    document.done()
    return vendor


def _nan(table: Section | None) -> dict[str, int]:
    return {fmt: table.take_int(fmt, 0, 2**64 - 1) for fmt in table} if table else {}


def _constants(table: Section | None) -> Constants:
    if table is None:
        return Constants({}, {})
    integers: dict[int, int] = {}
    for run in table.take("integers", list):
        if not isinstance(run, Section):
            raise table.error(f"key 'integers' holds {run!r}, expected {{from, to, first, step}}", "integers")
        selectors = range(run.take_int("from", 0, 511), run.take_int("to", 0, 511) + 1)
        first, step = run.take_int("first", -64, 64), run.take_int("step", -1, 1)
        run.done()
        integers |= {selector: first + step * index for index, selector in enumerate(selectors)}
    floats = table.take("floats", Section)
    wrong = next((key for key in floats if not re.fullmatch("[0-9]{1,3}", key)), None)
    if wrong is not None:
        raise floats.error(f"key '{wrong}' is no selector, expected 0 to 511", wrong)
    found = Constants(integers, {int(key): floats.take_int(key, 0, 2**32 - 1) for key in floats})
    table.done()
    return found


def _writing(item: Section) -> tuple[re.Pattern[str], str]:
    text, name = item.take("pattern", str), item.take("name", str)
    item.done()
    try:
        pattern = re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise item.error(f"key 'pattern' is no regular expression: {error}", "pattern") from None
    return pattern, name


def _label(labels: Section, key: str) -> tuple[str, str]:
    words = labels.take_names(key)
    if len(words) != 2:
        raise labels.error(f"key '{key}' must be a letter and what it stands for", key)
    return words[0], words[1]


def _modifiers(table: Section | None) -> dict[str, dict[str, str]]:
    return {key: _texts(table, key) for key in table} if table else {}


def _words(table: Section | None) -> dict[str, tuple[str, Mapping[str, str]]]:
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    for key in table or ():
        assert table is not None
        word = table.take(key, Section)
        found[key] = word.take("variable", str), _texts(word, "values")
        word.done()
    return found


def _texts(section: Section, key: str) -> dict[str, str]:
    """A mapping of values to texts."""
    table = section.take(key, Section)
    return {value: table.take(value, str) for value in table}
