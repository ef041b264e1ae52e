"""Reading YAML specs so that every complaint can name file, line, key and what was expected.

`read(path)` returns nested `Section` and list objects. A `Section` is consumed key by key with `take...`;
`done()` refuses keys that were not read, so a misspelt key is an error instead of a silent default.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml

from golden.errors import FileFormatError, SpecError, nearest
from golden.files.inputs import MAX_DIGITS, MAX_HEX, MAX_NESTING, read_text
from golden.values import MISSING as MISSING
from golden.values import Choice, Integer, Line, Many, Text, Value, shown

T = TypeVar("T")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TWO_WAYS = re.compile(r"[-+]?(0[0-9_]+|.*:.*)", re.ASCII)
"""Numbers that versions of YAML read differently: 010 is 8 or 10, 1:30 is 90 or a text."""
MAX_BYTES = 16 << 20
_TOO_DEEP = f"nested too deeply (more than {MAX_NESTING} levels)"


class Section(dict[str, Any]):
    """A YAML mapping that remembers its file and the line of every key."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file, self.line = file, line
        self.lines: dict[str, int] = {}
        self._taken: set[str] = set()

    def error(self, message: str, key: str | None = None) -> SpecError:
        """Returns a SpecError that points at `key` (or at the start of this mapping)."""
        line = self.lines.get(key, self.line) if key else self.line
        return SpecError(f"{self.file}:{line}: {message}")

    def need(self, keys: Collection[str]) -> None:
        """Refuses a mapping that lacks several of these keys, all in one message."""
        lacking = [key for key in keys if key not in self]
        if len(lacking) > 1:
            named = [f"'{key}'" for key in lacking]
            near = next(filter(None, (nearest(key, self.keys() - set(keys)) for key in lacking)), "")
            raise self.error(f"keys {', '.join(named[:-1])} and {named[-1]} are missing{near}")

    def take(self, key: str, kind: type[T] | tuple[type, ...], default: Any = MISSING) -> Any:
        """Returns the value of `key`, which must be of type `kind`; without a default the key is required."""
        self._taken.add(key)
        if key not in self or (self[key] is None and default is not MISSING):
            if default is MISSING:
                raise self.error(f"key '{key}' is missing{nearest(key, self)}")
            return default
        value = self[key]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            expected = " or ".join(_KIND_NAMES.get(k, k.__name__) for k in kinds)
            raise self.error(f"key '{key}' is {shown(value)}, expected {expected}", key)
        return value

    def take_value(self, key: str, value: Value, default: Any = MISSING) -> Any:
        """Returns what `key` holds, checked and as code takes it (see golden.values)."""
        given = self.take(key, (object, bool), default)
        if given is default and (key not in self or self[key] is None):
            return default
        return value.check(given, lambda message: self.error(f"key '{key}' {message}", key))

    def take_choice(self, key: str, choices: Iterable[str], default: Any = MISSING) -> Any:
        """Returns the value of `key`, which must be one of `choices`."""
        return self.take_value(key, Choice(tuple(choices)), default)

    def take_int(self, key: str, low: int, high: int, default: Any = MISSING) -> Any:
        """Returns the integer value of `key`, which must lie in low..high."""
        return self.take_value(key, Integer(low, high), default)

    def take_ints(self, key: str, low: int, high: int) -> tuple[int, ...]:
        """Returns a list of different integers in low..high."""
        found: tuple[int, ...] = self.take_value(key, Many(Integer(low, high), different=True))
        return found

    def take_name(self, key: str, default: Any = MISSING) -> Any:
        """Returns a name: text that can stand in one line of a table, a comment or a message."""
        return self.take_value(key, Line(), default)

    def take_names(self, key: str, default: Any = MISSING) -> Any:
        """Returns a list of strings; a single string counts as a list of one."""
        found = self.take_value(key, Many(Text(), alone=True), default)
        return found if found is default else list(found)

    def done(self, known: Iterable[str] = ()) -> None:
        """Raises SpecError for the first key that was never taken."""
        self.refuse_others(self._taken, known)

    def refuse_others(self, keys: Iterable[str], known: Iterable[str] = ()) -> None:
        """Raises SpecError for the first key that is not of `keys`; `known`: more that a message names."""
        keys = set(keys)
        expected = sorted(keys | set(known))
        for key in self:
            if key not in keys:
                raise self.error(
                    f"unknown key '{key}', expected one of {', '.join(expected)}{nearest(key, expected)}", key
                )


_KIND_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    Section: "a mapping",
    dict: "a mapping",
    float: "a number",
}


def read(path: str | Path) -> Section:
    """Reads a YAML file whose top level is a mapping.

    Raises:
        SpecError: the file cannot be read, is not UTF-8 YAML, repeats a key, or does not hold a mapping.
    """
    try:
        text = read_text(path, MAX_BYTES)
    except FileFormatError as error:
        raise SpecError(str(error)) from None
    return parse(text, str(path))


def parse(text: str, name: str = "<text>") -> Section:
    """Parses YAML text whose top level is a mapping; `name` stands in messages for the file."""
    try:
        value = _Builder(yaml.parse(text, Loader=_LOADER), name).document()
    except yaml.YAMLError as error:
        mark, position = getattr(error, "problem_mark", None), getattr(error, "position", 0)
        line = mark.line + 1 if mark else text.count("\n", 0, position) + 1
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        if "nesting depth" in problem:  # libyaml's own limit, far above ours, is met first: it reads ahead
            raise SpecError(f"{name}:{line}: {_TOO_DEEP}") from None
        if (text.splitlines()[line - 1 : line] or [""])[0].lstrip(" ").startswith("\t"):
            problem = "the line begins with a tab, expected spaces"
        raise SpecError(f"{name}:{line}: not valid YAML: {' '.join(problem.split())}") from None
    if not isinstance(value, Section):
        raise SpecError(f"{name}:1: the file holds {shown(value)}, expected a mapping of keys")
    return value


class _Builder:
    """Makes values of the parser's events, one by one: limits hold before anything recurses or multiplies.

    (PyYAML's own composer recurses in C as deep as the text nests,
    and hands the same node on for every alias.)
    """

    def __init__(self, events: Iterator[Any], name: str) -> None:
        self.events, self.name = events, name
        self.anchors: dict[str, tuple[Any, int] | None] = {}
        self.values = 0
        self.plain: Any = yaml.SafeLoader("")
        self.scalars: dict[tuple[str, str | None, tuple[bool, bool]], Any] = {}
        """What each text stands for, by its tag and whether it is quoted: tables repeat numbers and words,
        and two thirds of the time went into making them."""

    def document(self) -> Any:
        """The one document of the stream; None where it is empty."""
        next(self.events)  # the stream starts
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return None
        value = self._value(next(self.events), 0)
        next(self.events)  # the document ends
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._error(event, "not valid YAML: a second document")
        return value

    def _error(self, event: Any, message: str) -> SpecError:
        return SpecError(f"{self.name}:{event.start_mark.line + 1}: {message}")

    def _value(self, event: Any, depth: int) -> Any:
        if depth > MAX_NESTING:
            raise self._error(event, _TOO_DEEP)
        self._count(event, 1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self.values
        if event.anchor is not None:
            if event.anchor in self.anchors:
                raise self._error(event, f"not valid YAML: anchor '{event.anchor}' stands twice")
            self.anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            key = event.value, event.tag, event.implicit
            if key not in self.scalars:
                self.scalars[key] = self._scalar(event)
            value = self.scalars[key]
        elif event.tag not in (None, "!", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"):
            raise self._error(event, f"tag '{event.tag}' is not known")
        elif isinstance(event, yaml.SequenceStartEvent):
            value = []
            while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                value.append(self._value(item, depth + 1))
        else:
            value = self._mapping(event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = value, self.values - before + 1
        return value

    def _count(self, event: Any, values: int) -> None:
        self.values += values
        # Values of one file, so that aliases of aliases cannot fill the memory.
        max_values = 1_000_000
        if self.values > max_values:
            raise self._error(event, f"more than {max_values} values, those that aliases repeat counted")

    def _alias(self, event: Any) -> Any:
        """A copy of what the anchor names: whoever takes the keys of one leaves the other alone."""
        if event.anchor not in self.anchors:
            raise self._error(event, f"not valid YAML: alias '{event.anchor}' without an anchor before it")
        found = self.anchors[event.anchor]
        if found is None:
            raise self._error(
                event, f"nested too deeply: alias '{event.anchor}' in the value that it repeats"
            )
        self._count(event, found[1])
        return _copy(found[0])

    def _mapping(self, event: Any, depth: int) -> Section:
        section = Section(self.name, event.start_mark.line + 1)
        while not isinstance(key_event := next(self.events), yaml.MappingEndEvent):
            key = self._value(key_event, depth + 1)
            if isinstance(key, bool) or not isinstance(key, (str, int)):
                raise self._error(key_event, f"key {shown(key)} is not a name")
            if str(key) in section:
                raise self._error(key_event, f"key '{key}' appears twice")
            section.lines[str(key)] = key_event.start_mark.line + 1
            section[str(key)] = self._value(next(self.events), depth + 1)
        return section

    def _scalar(self, event: Any) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self.plain.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == "tag:yaml.org,2002:str" or (tag == "tag:yaml.org,2002:timestamp" and event.tag is None):
            return event.value
        most = MAX_HEX if event.value.startswith("0x") else MAX_DIGITS
        if len(event.value) > most and tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
            raise self._error(event, f"a number of {len(event.value)} characters, expected at most {most}")
        if tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float") and _TWO_WAYS.fullmatch(event.value):
            raise self._error(
                event,
                f"value {event.value[:60]!r} is octal or of base 60 in YAML 1.1 and not in 1.2: "
                "write it as a decimal number, or as 0x...",
            )
        try:
            return self.plain.construct_object(yaml.ScalarNode(tag, event.value, event.start_mark))
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            problem = getattr(error, "problem", error)
            raise self._error(event, f"value {event.value[:60]!r} cannot be read: {problem}") from None


def _copy(value: Any) -> Any:
    if isinstance(value, list):
        return [_copy(item) for item in value]
    if not isinstance(value, Section):
        return value
    section = Section(value.file, value.line)
    section.lines = dict(value.lines)
    for key in value:
        section[key] = _copy(value[key])
    return section
