"""How a field of a step is written in YAML: its key, what it may hold, its default, and what it means.

A step class (golden/program/steps.py) declares each of its fields with one of the functions below. Everything
that has to know the keys of steps reads these declarations: golden/program/reading.py and writing.py (YAML),
golden/model/layout.py (the C structs), and, through `mapping_of`, the JSON Schema, the page of keys and the
messages (golden/values.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from golden.number.frozen import hashed_once
from golden.number.rounding import MODES, OVERFLOWS
from golden.values import MISSING, Either, Many, Mapping, Schema, Table, Text, Value
from golden.values import Choice as OneOf
from golden.values import Flag as TrueOrFalse
from golden.values import Integer as Whole
from golden.values import Key as YamlKey


@dataclass(frozen=True)
class Vocabulary:
    """A closed set of words; the C core has an enum of the same name and order."""

    name: str
    words: tuple[str, ...]


ROUNDING = Vocabulary("rounding", MODES)
OVERFLOW = Vocabulary("overflow", OVERFLOWS)
FLUSH = Vocabulary("flush", ("none", "signed", "positive"))
OPERATION = Vocabulary("operation", ("product", "and", "xor"))
NEGATE = Vocabulary("negate", ("none", "product", "c", "both"))
ORDER = Vocabulary("order", ("tree", "sequential"))
START = Vocabulary("start", ("c", "zero", "product"))
ZEROS = Vocabulary("zeros", ("ignored", "maximum", "sticky"))
HIDDEN_ZEROS = Vocabulary("hidden_zeros", ("kept", "set"))
CUT = Vocabulary("cut", ("dropped", "sticky_added", "sticky_or"))
STICKY = Vocabulary("sticky", ("seen", "left_out"))
TINY = Vocabulary("tiny", ("subnormal_result", "unbounded", "before_rounding"))
LEFT_OUT = Vocabulary("left_out", ("dropped", "unshifted"))
PLACE = Vocabulary("place", ("carried", "leading"))
COMPLEMENT = Vocabulary("complement", ("none", "c"))
CANCELLED = Vocabulary("cancelled", ("keeps_exponent", "zero"))
ZERO_TIMES_INFINITY = Vocabulary("zero_times_infinity", ("nan", "infinity", "zero"))
OPPOSITE = Vocabulary("opposite", ("nan", "first", "last", "positive", "negative"))
ZERO_RULE = Vocabulary("zero", ("positive", "signed", "signed_underflow"))
SIDE = Vocabulary("side", ("both", "a", "b"))
CAUSE = Vocabulary(
    "cause",
    ("a", "b", "factor", "c", "invalid_product", "opposite_products", "opposite_infinities"),
)
CARRY = Vocabulary("carry", ("kept", "lost"))
GROUP = Vocabulary("group", ("contiguous", "interleaved"))
STATUS = Vocabulary("status", ("invalid", "overflow", "underflow", "inexact", "divide_by_zero"))
REGISTER = Vocabulary(
    "register",
    ("a", "b", "c", "products", "groups", "dot", "total", "partial", "addends", "scales", "d"),
)
MOST_EXPONENT = 100_000
"""Bound of exponents in YAML, past the exponents of every format (16,383 of quadruple precision) and
product."""
TARGETS = ("products", "groups", "dot", "total", "partial")
"""Registers that a step may write; the operands keep what they hold."""
FORMAT_NAME = Text(what="a format", ref="format_name")
"""A format that the file names; it may be one of its own (`define_formats`)."""
OPERAND_WORD = Whole(0, (1 << 64) - 1, what="a code")
"""A code of any format: how many bits it has, its format says."""
_VARIABLE: Schema = {"type": "string", "pattern": r"^\$\w+$"}
"""A field of `modes`, or a parameter of an algorithm, can stand for any word or number of a step."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """What all kinds of keys have.

    Attributes:
        name: the key in YAML; empty: the field's name.
        meaning: for the reader of the schema, Markdown.
        fault: whether no sound datapath sets it (docs/diagnosis.md).
        needed: whether YAML has to say it although the field has a default (which then means nothing).
        when: the field of the same step, and its values, without which the key is unknown; no values: any but
            its default.
        with_flags: whether the key is also known, without `when`, to a step with a format of a unit that has
            status flags.
    """

    name: str = ""
    meaning: str
    fault: bool = False
    needed: bool = False
    when: tuple[str, ...] = ()
    with_flags: bool = False

    @property
    def value(self) -> Value:
        """What the key may hold, as far as the key alone says it."""
        raise NotImplementedError

    @property
    def follows_a_mode(self) -> bool:
        """Whether a field of `modes` may stand for the value."""
        return False


@dataclass(frozen=True, kw_only=True)
class Registers(Key):
    """`most` different registers out of `allowed`: a word or a list."""

    most: int
    allowed: tuple[str, ...]

    @property
    def value(self) -> Value:
        """See Key."""
        return Many(OneOf(self.allowed), 1, self.most, different=True, alone=True)


@dataclass(frozen=True, kw_only=True)
class Target(Key):
    """One register that the step can write."""

    allowed: tuple[str, ...]

    @property
    def value(self) -> Value:
        """See Key."""
        return OneOf(self.allowed)


@dataclass(frozen=True, kw_only=True)
class Choice(Key):
    """One word of a vocabulary, or of the part that this step knows."""

    vocabulary: Vocabulary
    words: tuple[str, ...]
    old: tuple[tuple[str, str], ...] = ()
    """Earlier spellings and the words that they are read as."""

    @property
    def value(self) -> Value:
        """See Key."""
        return OneOf(self.words, what="a rounding" if self.words == MODES else "")

    @property
    def follows_a_mode(self) -> bool:
        """See Key."""
        return True


Modes = str | tuple[tuple[str, str], ...]
"""A rounding: one for all registers of a step, or one for each of them, which are not all the same."""


@dataclass(frozen=True, kw_only=True)
class Roundings(Key):
    """A rounding, or a mapping with one for each register of `of`."""

    @property
    def value(self) -> Value:
        """See Key."""
        each = OneOf(MODES, what="a rounding")
        return Either(each, Table(each, OneOf(REGISTER.words)))

    @property
    def follows_a_mode(self) -> bool:
        """See Key."""
        return True


@dataclass(frozen=True, kw_only=True)
class Integer(Key):
    """An integer from low to high; None where it may be left out."""

    low: int
    high: int

    @property
    def value(self) -> Value:
        """See Key."""
        return Whole(self.low, self.high)

    @property
    def follows_a_mode(self) -> bool:
        """See Key."""
        return True


@dataclass(frozen=True, kw_only=True)
class Flag(Key):
    """true or false."""

    @property
    def value(self) -> Value:
        """See Key."""
        return TrueOrFalse()

    @property
    def follows_a_mode(self) -> bool:
        """See Key."""
        return True


@dataclass(frozen=True, kw_only=True)
class Widths(Key):
    """An integer for each register of `of`: a mapping, or, where every register needs one, one integer for
    all."""

    low: int
    high: int
    for_all: bool

    @property
    def value(self) -> Value:
        """See Key."""
        each = Table(Whole(self.low, self.high), OneOf(REGISTER.words))
        return Either(each.one, each) if self.for_all else each

    @property
    def follows_a_mode(self) -> bool:
        """See Key."""
        return True


@dataclass(frozen=True, kw_only=True)
class Rules(Key):
    """A word for some registers of `of`."""

    vocabulary: Vocabulary

    @property
    def value(self) -> Value:
        """See Key."""
        return Table(OneOf(self.vocabulary.words), OneOf(REGISTER.words))


@dataclass(frozen=True, kw_only=True)
class Grouping(Key):
    """`{contiguous: n}` or `{interleaved: n}`."""

    high: int

    @property
    def value(self) -> Mapping:
        """See Key."""
        meanings = ("this many neighbours are a group", "this many groups: every n-th place is of one group")
        keys = (
            YamlKey(word, Whole(1, self.high), text) for word, text in zip(GROUP.words, meanings, strict=True)
        )
        return Mapping(tuple(keys), one_of=(GROUP.words,))


@dataclass(frozen=True, kw_only=True)
class FormatName(Key):
    """A number format; `or_out`: without the key it is that of the operation's result."""

    or_out: bool

    @property
    def value(self) -> Value:
        """See Key."""
        return FORMAT_NAME


@dataclass(frozen=True, kw_only=True)
class Word(Key):
    """A code of the step's format (of the result's, where the step has none); by default the format's NaN."""

    @property
    def value(self) -> Value:
        """See Key."""
        return OPERAND_WORD

    @property
    def follows_a_mode(self) -> bool:
        """See Key."""
        return True


@dataclass(frozen=True, kw_only=True)
class Names(Key):
    """Different ones of a few names, in order."""

    allowed: tuple[str, ...]

    @property
    def value(self) -> Value:
        """See Key."""
        return Many(OneOf(self.allowed), 0, len(self.allowed), different=True)


@dataclass(frozen=True, kw_only=True)
class Causes(Key):
    """A mapping from causes of a NaN, the winning ones first, to the word that each gives, or `payload`."""

    causes: tuple[str, ...]

    @property
    def value(self) -> Value:
        """See Key."""
        word = Either(OPERAND_WORD, OneOf(("payload",)))
        keys = (YamlKey(cause, word, "", None) for cause in self.causes)
        return Mapping(tuple(keys))


@hashed_once
@dataclass(frozen=True)
class Candidate:
    """What the exponent of an alignment is the largest of.

    Attributes:
        of: the registers whose numbers (not zeros) are looked at.
        leading: whether the place of the leading one counts, or the exponent that the number carries.
        plus: added to it.
        least: the candidate is at least this (before `plus`), also where there is no number.
    """

    of: tuple[str, ...]
    leading: bool
    plus: int
    least: int | None


@dataclass(frozen=True, kw_only=True)
class Candidates(Key):
    """A list of `{of: products, exponent: carried or leading, plus: n, least: n}`."""

    most: int

    @property
    def value(self) -> Value:
        """See Key."""
        exponent = Whole(-MOST_EXPONENT, MOST_EXPONENT)
        keys = (
            YamlKey("of", Many(OneOf(REGISTER.words), 1, alone=True), "whose numbers are looked at"),
            YamlKey("exponent", OneOf(PLACE.words), "the exponent carried, or the place of the leading one"),
            YamlKey("plus", exponent, "added to it", 0),
            YamlKey("least", exponent, "the candidate is at least this, before `plus`", None),
        )
        return Many(Mapping(keys), 0, self.most)


def declare(kind: Key, default: Any = MISSING) -> Any:
    """A dataclass field that is written as `kind` says; without a default the key is needed."""
    if default is MISSING:
        return field(kw_only=True, metadata={"key": kind})
    return field(kw_only=True, default=default, metadata={"key": kind})


def declared(step: Any) -> Iterator[tuple[str, Key, Any]]:
    """Yields (field, key, default, or MISSING where the key is needed), in the order of declaration."""
    yield from _declared(step if isinstance(step, type) else type(step))


@cache
def _declared(kind: type) -> tuple[tuple[str, Key, Any], ...]:
    found = []
    for one in fields(kind):
        key: Key = one.metadata["key"]
        needed = key.needed or one.default is dataclasses.MISSING
        found.append((one.name, key, MISSING if needed else one.default))
    return tuple(found)


def key_name(name: str, key: Key) -> str:
    """How the key of a field is spelt."""
    return key.name or name


def mapping_of(step: Any) -> Mapping:
    """The keys of a kind of step, for the page, the JSON Schema and messages."""
    keys = []
    for name, key, default in declared(step):
        conditional = f"needed with `{key.when[0]}`" if default is MISSING and key.when else ""
        optional = isinstance(key, FormatName) or bool(conditional)
        keys.append(
            _StepKey(
                key_name(name, key),
                key.value,
                key.meaning,
                None if default is MISSING and optional else default,
                instead=conditional,
                follows_a_mode=key.follows_a_mode,
            )
        )
    return Mapping(tuple(keys))


@dataclass(frozen=True)
class _StepKey(YamlKey):
    """A key of a step, for whose value a field of `modes` may stand."""

    follows_a_mode: bool = False

    def schema(self) -> Schema:
        """See YamlKey."""
        found = super().schema()
        if not self.follows_a_mode:
            return found
        own = self.value.schema()
        return {"anyOf": [*own.get("anyOf", [own]), _VARIABLE]} | {
            k: v for k, v in found.items() if k not in own
        }


def applies(key: Key, values: dict[str, Any], defaults: dict[str, Any], flags: bool = False) -> bool:
    """Whether a step that holds these values, as far as they are read, knows the key; `flags`: in a unit
    with status flags."""
    if not key.when or (flags and key.with_flags and values.get("format") is not None):
        return True
    other, *wanted = key.when
    value = values.get(other)
    return value in wanted if wanted else value != defaults.get(other)


def one_or_each(modes: tuple[tuple[str, str], ...]) -> Modes:
    """The rounding of all registers where it is the same, else that of each."""
    first = modes[0][1]
    return first if all(mode == first for _, mode in modes) else modes


def modes_of(rounding: Modes, registers: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(register, rounding) for each register of a step."""
    return tuple((name, rounding) for name in registers) if isinstance(rounding, str) else rounding
