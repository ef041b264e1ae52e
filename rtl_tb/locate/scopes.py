"""The names of a scope, of which a few may stand for another one: in a generated text a module has thousands,
and to compare each with all would take longer than all else.

Of a scope with more than _COMPARED of a kind those alone are compared that are declared beside a name, or
that are written as it but for their numbers.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

_COMPARED = 96
"""Names that are compared with one by difflib, which takes 20 microseconds for each, and 200 where they are
long."""
_BESIDE = 8
"""Names on either side of one, of which more are not looked at."""
_NUMBER = re.compile(r"\d+")


def name_parts(one: str, two: str) -> tuple[str, str]:
    """What is left of two names without what they begin and end with alike."""
    start = 0
    while start < min(len(one), len(two)) and one[start] == two[start]:
        start += 1
    one, two, end = one[start:], two[start:], 0
    while end < min(len(one), len(two)) and one[-1 - end] == two[-1 - end]:
        end += 1
    return one[: len(one) - end], two[: len(two) - end]


class Names:
    """Names in the order of their declaration, which may stand for each other."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(dict.fromkeys(names))
        self.large = len(self.names) > _COMPARED
        self._at: dict[str, int] = {}
        self._shapes: dict[str, list[int]] = {}
        if self.large:
            for at, name in enumerate(self.names):
                self._at[name] = at
                self._shapes.setdefault(_NUMBER.sub("0", name), []).append(at)

    def alike(self, word: str, most: int, least: float = 0.0) -> list[str]:
        """So many names, the most similar ones first; the word itself is none.

        Args:
            least: how similar at least, from 0 to 1.
        """
        if self.large:
            ranked = sorted((_unlike(word, name), at) for at, name in self._few(word) if name != word)
            return [self.names[at] for unlike, at in ranked[:most] if 1 - unlike >= least]
        names = [name for name in self.names if name != word]
        return difflib.get_close_matches(word, names, most, least) if names else []

    def _few(self, word: str) -> Iterator[tuple[int, str]]:
        """The names to compare with a word, and their numbers."""
        at = self._at.get(word)
        places = set[int]() if at is None else set(_around(len(self.names), at))
        same = self._shapes.get(_NUMBER.sub("0", word), [])
        places.update(same[place] for place in _around(len(same), bisect_left(same, at or 0)))
        return ((place, self.names[place]) for place in places)


def _unlike(one: str, two: str) -> float:
    """The share of two names that is left without what they begin and end with alike."""
    return sum(map(len, name_parts(one, two))) / max(len(one) + len(two), 1)


def _around(count: int, at: int) -> range:
    """The places beside one, of so many."""
    return range(max(at - _BESIDE, 0), min(at + _BESIDE + 1, count))


class Scopes:
    """What stands in each scope of a design, read once."""

    def __init__(self) -> None:
        self._listed: dict[Any, list[Any]] = {}
        self._names: dict[Any, frozenset[str]] = {}
        self._offsets: dict[Any, list[int]] = {}

    def of(self, scope: Any) -> list[Any]:
        """The symbols that are declared there."""
        if scope not in self._listed:
            self._listed[scope] = list(scope)
        return self._listed[scope]

    def names(self, scope: Any) -> frozenset[str]:
        """Their names."""
        if scope not in self._names:
            self._names[scope] = frozenset(each.name for each in self.of(scope))
        return self._names[scope]

    def near(self, scope: Any, places: Iterable[int]) -> Iterator[Any]:
        """All of them; where they are many, those that are declared beside some places, as bytes of the
        text."""
        every = self.of(scope)
        if len(every) <= _COMPARED:
            yield from every
            return
        if scope not in self._offsets:
            self._offsets[scope] = [each.location.offset for each in every]
        offsets = self._offsets[scope]
        found = {near for place in places for near in _around(len(every), bisect_left(offsets, place))}
        yield from (every[at] for at in sorted(found))
