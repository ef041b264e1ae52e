"""What a key of a YAML file, or a keyword argument, may hold: declared once, read everywhere.

A `Value` has four faces, and nothing else says any of them a second time: `check` is the reader, `expected`
stands in its messages, `takes` on the page of keys, and `schema()` is the JSON Schema that editors load. A
`Mapping` is a value made of `Key`s: name, value, default, meaning, and the keys that it excludes or needs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from golden.errors import counted, nearest

Schema = dict[str, Any]
Fail = Callable[[str], Exception]
"""Makes the error of a complaint, "is 5, expected an integer from 1 to 4"; whoever makes it knows the key."""
MISSING: Any = object()
"""Stands for the default of a key that a mapping must have."""
MAX_NAME = 200
"""Characters of a name: it stands in one line of a table, a comment or a message."""


def shown(value: Any) -> str:
    """A value as a message shows it, in one line of at most 80 characters."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} nested too deeply to show"
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass(frozen=True)
class Value:
    """What all kinds of values have. types: the Python types of which a value of this kind can be."""

    types: ClassVar[tuple[type, ...]] = (object,)

    @property
    def expected(self) -> str:
        """What a message says after "expected"."""
        return self._expected()

    @property
    def takes(self) -> str:
        """What the page says, in Markdown."""
        return self._takes()

    def check(self, value: Any, fail: Fail, verb: str = "is") -> Any:
        """Returns the value as code takes it; raises what `fail` makes of the complaint. `verb`: "holds" for
        an item of a list."""
        return self._check(value, fail, verb)

    def schema(self) -> Schema:
        """JSON Schema of the value."""
        raise NotImplementedError

    def _expected(self) -> str:
        raise NotImplementedError

    def _takes(self) -> str:
        return self._expected()

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        raise NotImplementedError

    def fits(self, value: Any) -> bool:
        """Whether the value is of one of `types`; true and false are no integers."""
        return isinstance(value, self.types) and not (isinstance(value, bool) and bool not in self.types)

    def refusal(self, value: Any, verb: str) -> str:
        """The complaint about a value that is not what is expected."""
        return f"{verb} {shown(value)}, expected {self.expected}"


@dataclass(frozen=True)
class Text(Value):
    """Text, all of which matches `pattern` where there is one; `what`: what it is, in words; `ref`: the
    definition of the JSON Schema that says more."""

    pattern: str = ""
    what: str = "a string"
    ref: str = ""
    types: ClassVar[tuple[type, ...]] = (str,)

    def _expected(self) -> str:
        return self.what

    def schema(self) -> Schema:
        """See Value."""
        if self.ref:
            return {"$ref": f"#/$defs/{self.ref}"}
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"} if self.pattern else {"type": "string"}

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not isinstance(value, str):
            raise fail(self.refusal(value, verb))
        if self.pattern and not re.fullmatch(self.pattern, value, re.ASCII):
            raise fail(f"{verb} {value[:60]!a}, expected {self.what}")
        return value


WORD = Text(r"[A-Za-z][\w.+-]{0,59}", "a word: a letter, then at most 59 letters, digits, _ . + -")
"""Names in tables, pictures and generated code."""


@dataclass(frozen=True)
class Line(Value):
    """Text that can stand in one line: at most MAX_NAME printable characters."""

    types: ClassVar[tuple[type, ...]] = (str,)

    def _expected(self) -> str:
        return f"1 to {MAX_NAME} printable characters in one line"

    def _takes(self) -> str:
        return "a line of text"

    def schema(self) -> Schema:
        """See Value."""
        return {"type": "string", "minLength": 1, "maxLength": MAX_NAME}

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not isinstance(value, str):
            raise fail(f"{verb} {shown(value)}, expected a string")
        if not value.strip() or not value.isprintable() or len(value) > MAX_NAME:
            raise fail(
                f"{verb} {value if len(value) <= 60 else value[:57] + '...'!a}, expected {self.expected}"
            )
        return value


@dataclass(frozen=True)
class Integer(Value):
    """An integer from `low` to `high`, any without them; `what`: what the page says instead."""

    low: int | None = None
    high: int | None = None
    what: str = ""
    types: ClassVar[tuple[type, ...]] = (int,)

    def _expected(self) -> str:
        return (
            "an integer" if self.low is None else f"an integer from {_bound(self.low)} to {_bound(self.high)}"
        )

    def _takes(self) -> str:
        return self.what or (
            "an integer" if self.low is None else f"{_bound(self.low)} to {_bound(self.high)}"
        )

    def schema(self) -> Schema:
        """See Value; bounds past 64 bits are the reader's alone."""
        bounds = {"minimum": self.low, "maximum": self.high}
        return {"type": "integer"} | {
            name: bound for name, bound in bounds.items() if bound is not None and bound < _SPELT_OUT
        }

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        low, high = (value if bound is None else bound for bound in (self.low, self.high))
        if not self.fits(value) or not low <= value <= high:
            raise fail(self.refusal(value, verb))
        return value


_SPELT_OUT = 1 << 64
"""Bounds from here on are written as powers of two, where they are."""


def _bound(bound: int | None) -> str:
    """A bound in words: long ones as 2**n - 1."""
    assert bound is not None
    power = (bound + 1).bit_length() - 1
    return f"2**{power} - 1" if bound >= _SPELT_OUT and bound + 1 == 1 << power else str(bound)


@dataclass(frozen=True)
class Number(Value):
    """A finite number, not below `low` where that is given."""

    low: float | None = None
    types: ClassVar[tuple[type, ...]] = (int, float)

    def _expected(self) -> str:
        return "a finite number" if self.low is None else f"a number of {self.low:g} or more"

    def schema(self) -> Schema:
        """See Value."""
        return {"type": "number"} | ({} if self.low is None else {"minimum": self.low})

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not self.fits(value) or not math.isfinite(value) or (self.low is not None and value < self.low):
            raise fail(self.refusal(value, verb))
        return float(value)


@dataclass(frozen=True)
class Flag(Value):
    """true or false."""

    types: ClassVar[tuple[type, ...]] = (bool,)

    def _expected(self) -> str:
        return "true or false"

    def schema(self) -> Schema:
        """See Value."""
        return {"type": "boolean"}

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not isinstance(value, bool):
            raise fail(self.refusal(value, verb))
        return value


@dataclass(frozen=True)
class Choice(Value):
    """One of a few words or numbers. `known`: called for the words if they are known only later, as formats
    are; `what` names them on the page."""

    words: tuple[Any, ...] = ()
    known: Callable[[], Iterable[Any]] | None = None
    what: str = ""
    types: ClassVar[tuple[type, ...]] = (str, int)

    @property
    def all(self) -> tuple[Any, ...]:
        """The words."""
        return tuple(self.known()) if self.known else self.words

    def _expected(self) -> str:
        return f"one of {', '.join(map(str, self.all))}"

    def _takes(self) -> str:
        return self.what or ", ".join(dict.fromkeys(f"`{word}`" for word in self.all))

    def schema(self) -> Schema:
        """See Value."""
        return {"enum": list(self.all)}

    def fits(self, value: Any) -> bool:
        """See Value."""
        return type(value) in {type(word) for word in self.all}

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not self.fits(value) or value not in self.all:
            text = f"'{value}'" if isinstance(value, str) and len(value) <= 60 else shown(value)
            near = nearest(value, map(str, self.all)) if isinstance(value, str) else ""
            raise fail(f"{verb} {text}, expected {self.expected}{near}")
        return value


@dataclass(frozen=True)
class Many(Value):
    """A list of `least` to `most` items of one kind; `different`: none twice; `alone`: one item may stand
    without a list; `what`: what the list is, in words."""

    one: Value
    least: int = 0
    most: int | None = None
    different: bool = False
    alone: bool = False
    what: str = ""

    def _expected(self) -> str:
        alone = f"{self.one.expected}, or " if self.alone else ""
        return self.what or f"{alone}a list{self._count}, each item {self.one.expected}"

    @property
    def _count(self) -> str:
        if self.most is None:
            return f" of {self.least} or more" if self.least > 1 else ""
        if self.least == self.most:
            return f" of {self.least}"
        return f" of at most {self.most}" if self.least <= 1 else f" of {self.least} to {self.most}"

    def _takes(self) -> str:
        item = self.one.takes
        if self.what:
            return self.what
        if isinstance(self.one, Choice) and self.most is not None:
            return (
                f"{self.least} to {self.most} of {item}"
                if self.most > self.least
                else f"{self.most} of {item}"
            )
        if self.alone:
            return f"{item}, or a list"
        return "a list of strings" if item == "a string" else f"a list{self._count}, each item {item}"

    def schema(self) -> Schema:
        """See Value."""
        bounds = {"minItems": self.least, "maxItems": self.most, "uniqueItems": self.different}
        many = {"type": "array", "items": self.one.schema()} | {key: n for key, n in bounds.items() if n}
        return {"anyOf": [self.one.schema(), many]} if self.alone else many

    def fits(self, value: Any) -> bool:
        """See Value."""
        return isinstance(value, (list, tuple)) or (self.alone and self.one.fits(value))

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not self.fits(value):
            raise fail(self.refusal(value, verb))
        items = value if isinstance(value, (list, tuple)) else [value]
        if len(items) < self.least or (self.most is not None and len(items) > self.most):
            held = "is an empty list" if not items else f"holds {counted(len(items), 'item')}"
            expected = self.what or f"a list{self._count or ' that is not empty'}"
            raise fail(f"{held}, expected {expected}")
        found = tuple(self.one.check(item, fail, "is" if value is item else "holds") for item in items)
        twice = (
            next((item for i, item in enumerate(found) if item in found[:i]), None)
            if self.different
            else None
        )
        if twice is not None:
            raise fail(f"holds {twice} twice")
        return found


@dataclass(frozen=True)
class Either(Value):
    """A value of one of several kinds, which differ in their types."""

    kinds: tuple[Value, ...]

    def __init__(self, *kinds: Value) -> None:
        object.__setattr__(self, "kinds", kinds)

    def _expected(self) -> str:
        return " or ".join(kind.expected for kind in self.kinds)

    def _takes(self) -> str:
        return ", or ".join(kind.takes for kind in self.kinds)

    def schema(self) -> Schema:
        """See Value."""
        return {"anyOf": [kind.schema() for kind in self.kinds]}

    def fits(self, value: Any) -> bool:
        """See Value."""
        return any(kind.fits(value) for kind in self.kinds)

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        fitting = next((kind for kind in self.kinds if kind.fits(value)), None)
        if fitting is None:
            raise fail(self.refusal(value, verb))
        if isinstance(value, str) and isinstance(fitting, Choice) and value not in fitting.all:
            raise fail(f"{self.refusal(value, verb)}{nearest(value, map(str, fitting.all))}")
        return fitting.check(value, fail, verb)


@dataclass(frozen=True)
class Table(Value):
    """A mapping whose keys are free, each a `name`, and whose values are of one kind; `empty`: what stands
    for a value that is left out."""

    one: Value
    name: Value = field(default_factory=Text)
    empty: Any = MISSING
    types: ClassVar[tuple[type, ...]] = (dict,)

    def _expected(self) -> str:
        return "a mapping"

    def _takes(self) -> str:
        return "a mapping" if self.one.takes == "anything" else f"a mapping, each value {self.one.takes}"

    def schema(self) -> Schema:
        """See Value."""
        names = self.name.schema()
        restricted = {} if names == {"type": "string"} else {"propertyNames": names}
        one = self.one.schema() if self.empty is MISSING else {"anyOf": [self.one.schema(), {"type": "null"}]}
        return {"type": "object", **restricted, "additionalProperties": one}

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not self.fits(value):
            raise fail(self.refusal(value, verb))
        for name in value:
            self.name.check(name, _key_error(value, name))
        return {name: value.take_value(name, self.one, self.empty) for name in value}


def _key_error(section: Any, name: str) -> Fail:
    """Makes the error of a name that is no key here."""
    return lambda message: section.error(f"key {message.removeprefix('is ')}", name)


@dataclass(frozen=True)
class Anything(Value):
    """What another reader looks at: `what` in words, `of` the types that it can have, `json` its schema."""

    what: str = "anything"
    of: tuple[type, ...] = (object,)
    json: AnyMapping[str, Any] = field(default_factory=dict)

    def _expected(self) -> str:
        return self.what

    def schema(self) -> Schema:
        """See Value."""
        return dict(self.json)

    def fits(self, value: Any) -> bool:
        """See Value."""
        return isinstance(value, self.of) and (
            not isinstance(value, bool) or not {object, bool}.isdisjoint(self.of)
        )

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if value is None or not self.fits(value):
            raise fail(self.refusal(value, verb))
        return value


# Keys -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """One key of a mapping.

    Attributes:
        name: as YAML writes it.
        value: what it may hold.
        meaning: for the reader of the page, Markdown, in a sentence.
        default: what holds without it; MISSING: the key is needed.
        excludes, needs: keys of the same mapping with which it cannot be used, and without which it has no
            meaning.
        instead: what the page says about the default where the value does not show it.
    """

    name: str
    value: Value
    meaning: str
    default: Any = MISSING
    excludes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    instead: str = ""

    @property
    def default_text(self) -> str:
        """What the page says about the default."""
        if self.instead:
            return self.instead
        if self.default is MISSING:
            return "needed"
        return "none" if self.default in (None, "", (), [], {}) else f"`{spelt(self.default)}`"

    def schema(self) -> Schema:
        """JSON Schema of the value, with meaning and default."""
        found = {**self.value.schema(), "description": self.meaning}
        if self.default not in (MISSING, None, "", (), [], {}):
            found["default"] = list(self.default) if isinstance(self.default, tuple) else self.default
        return found


def spelt(value: Any) -> str:
    """A value as YAML spells it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(spelt, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


Row = tuple[str, str, str, str]
"""Of the page: key, takes, default, meaning."""


@dataclass(frozen=True)
class Mapping(Value):
    """A mapping of declared keys and no others; `one_of`: groups of keys of which exactly one stands;
    `what`: what messages expect."""

    keys: tuple[Key, ...]
    one_of: tuple[tuple[str, ...], ...] = ()
    what: str = "a mapping"
    types: ClassVar[tuple[type, ...]] = (dict,)

    def __getitem__(self, name: str) -> Key:
        return next(key for key in self.keys if key.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the keys, in order."""
        return tuple(key.name for key in self.keys)

    def _expected(self) -> str:
        return self.what

    def _takes(self) -> str:
        required = [f"`{name}`" for name in self._required()]
        required += [" or ".join(f"`{name}`" for name in group) for group in self.one_of]
        return f"a mapping with {' and '.join(required)}" if required else "a mapping"

    def schema(self) -> Schema:
        """See Value."""
        return {
            **object_of({key.name: key.schema() for key in self.keys}, [*self._required()]),
            **self._relations(),
        }

    def _required(self) -> Iterator[str]:
        grouped = {name for group in self.one_of for name in group}
        yield from (key.name for key in self.keys if key.default is MISSING and key.name not in grouped)

    def _relations(self) -> Schema:
        rules: list[Schema] = [{"oneOf": [{"required": [name]} for name in group]} for group in self.one_of]
        rules += [{"not": {"required": [key.name, other]}} for key in self.keys for other in key.excludes]
        needs = {key.name: list(key.needs) for key in self.keys if key.needs}
        return ({"dependentRequired": needs} if needs else {}) | ({"allOf": rules} if rules else {})

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not self.fits(value):
            raise fail(self.refusal(value, verb))
        return self.read(value)

    def read(self, section: Any) -> dict[str, Any]:
        """The values by key, of a Section; raises SpecError for the first key that is wrong, missing or
        unknown, or does not go with the others."""
        for group in self.one_of:
            if not any(name in section for name in group):
                section.refuse_others(self.names)  # a misspelt key says more than one that is missing
            if sum(name in section for name in group) != 1:
                either = "either" if len(group) == 2 else "one of"
                raise section.error(f"expected {either} {' or '.join(map(repr, group))}")
        grouped = {name for group in self.one_of for name in group}
        section.need([*self._required()])
        found = {}
        for key in self.keys:
            default = None if key.name in grouped and key.default is MISSING else key.default
            found[key.name] = section.take_value(key.name, key.value, default)
        section.done()
        self.check_relations(section)
        return found

    def check_relations(self, section: Any) -> None:
        """Refuses keys that exclude each other, or that lack another; raises SpecError at the line of the
        key."""
        for key in self.keys:
            for other in key.excludes if key.name in section else ():
                if other in section:
                    raise section.error(f"key '{key.name}' cannot be used with key '{other}'", key.name)
            for other in key.needs if key.name in section else ():
                if other not in section:
                    raise section.error(f"key '{key.name}' needs key '{other}'", key.name)

    def rows(self) -> list[Row]:
        """The rows of the page."""
        return merged({"": self})

    def default_of(self, key: Key) -> str:
        """What the page says about a key's default."""
        others = [name for group in self.one_of if key.name in group for name in group if name != key.name]
        return f"needed without `{'`, `'.join(others)}`" if others else key.default_text


@dataclass(frozen=True)
class Variants(Value):
    """A mapping whose other keys follow from the word under `tag`."""

    tag: str
    meaning: str
    kinds: AnyMapping[str, Mapping]
    types: ClassVar[tuple[type, ...]] = (dict,)

    def _expected(self) -> str:
        return "a mapping"

    def _takes(self) -> str:
        return f"a mapping with `{self.tag}`"

    def _key(self) -> Key:
        return Key(self.tag, Choice(tuple(self.kinds)), self.meaning)

    def _whole(self, word: str) -> Mapping:
        tag = replace(self._key(), value=Choice((word,)))
        return replace(self.kinds[word], keys=(tag, *self.kinds[word].keys))

    def schema(self) -> Schema:
        """See Value."""
        return {
            "type": "object",
            "properties": {self.tag: self._key().schema()},
            "required": [self.tag],
            "oneOf": [self._whole(word).schema() for word in self.kinds],
        }

    def _check(self, value: Any, fail: Fail, verb: str) -> Any:
        if not self.fits(value):
            raise fail(self.refusal(value, verb))
        return self._whole(value.take_value(self.tag, self._key().value)).read(value)

    def rows(self) -> list[Row]:
        """The rows of the page: keys of several kinds once."""
        return [(self.tag, self._key().value.takes, "needed", self.meaning), *merged(self.kinds)]


def merged(kinds: AnyMapping[str, Mapping]) -> list[Row]:
    """The rows of several kinds of mapping, by the words that distinguish them, in one table: each key
    once."""
    uses: dict[str, list[tuple[str, Key]]] = {}
    for word, kind in kinds.items():
        for key in kind.keys:
            uses.setdefault(key.name, []).append((word, key))
    return [
        (
            name,
            "; ".join(dict.fromkeys(key.value.takes for _, key in used)),
            _default_of([(word, kinds[word].default_of(key)) for word, key in used], len(kinds)),
            "; ".join(dict.fromkeys(key.meaning for _, key in used)),
        )
        for name, used in uses.items()
    ]


def _default_of(said: list[tuple[str, str]], kinds: int) -> str:
    """The default of a key that only some of `kinds` kinds have, or with another default in each."""
    needed = [word for word, default in said if default == "needed"]
    if len(needed) == kinds:
        return "needed"
    conditions = [f"needed with `{'`, `'.join(needed)}`"] if needed else []
    return ", ".join([*dict.fromkeys(default for _, default in said if default != "needed"), *conditions])


def object_of(properties: Schema, required: list[str]) -> Schema:
    """A mapping of these keys and no others, as JSON Schema."""
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": required} if required else {})
