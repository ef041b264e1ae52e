"""Modes of a unit: an operand that chooses a rounding, a format or a sign for each dot product.

A unit's file names the fields of the operand `mode` and what each code of a field stands for:

    modes: {rnd: [nearest_even, toward_zero, down, up], neg: [none, product, c, both]}

The fields lie in the operand from its least significant bit up, in the order of the file; a field of n codes
takes the bits that hold n - 1. `$rnd` stands for the word wherever the file's formats and steps take one, so
that every mode is a program of its own. A code that the list does not reach, or where it holds null, is not
used: it has no program, and its use is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError
from golden.number.formats import Format
from golden.program.algorithms import substitute
from golden.values import WORD, Anything, Table
from golden.yamlfile import Section

MOST_MODES = 256
"""Each is a program: more than a designer writes down, fewer than would take long to compile."""
Value = str | int | bool
MODES = Table(Anything("a list", (list,), {"type": "array", "minItems": 1}), WORD)
"""The key `modes`: what each code of a field stands for."""


@dataclass(frozen=True)
class ModeField:
    """One field: its name and the value of each code, None where a code is not used."""

    name: str
    values: tuple[Value | None, ...]

    @property
    def bits(self) -> int:
        """Bits of the field."""
        return max((len(self.values) - 1).bit_length(), 1)


@dataclass(frozen=True)
class Modes:
    """The fields of the operand `mode`, the lowest first."""

    fields: tuple[ModeField, ...]

    @property
    def bits(self) -> int:
        """Bits of the operand."""
        return sum(field.bits for field in self.fields)

    @property
    def format(self) -> Format:
        """The operand's codes: plain unsigned integers."""
        storage = next(size for size in (8, 16) if self.bits <= size)
        return Format("mode", False, storage, signed=False, integer_bits=self.bits)

    def codes(self) -> Iterator[tuple[int, dict[str, Value]]]:
        """Yields every code that is used, ascending, with the value of each field."""
        used = [
            [(code, value) for code, value in enumerate(field.values) if value is not None]
            for field in self.fields
        ]
        for picked in product(*reversed(used)):
            code, table = 0, {}
            for field, (own, value) in zip(reversed(self.fields), picked, strict=True):
                code = code << field.bits | own
                table[field.name] = value
            yield code, {field.name: table[field.name] for field in self.fields}

    def texts(self) -> dict[int, str]:
        """Each used code in words, and with the code where several codes mean the same: no two are equal."""
        words = {code: mode_text(values) for code, values in self.codes()}
        count = Counter(words.values())
        return {
            code: text if count[text] == 1 else f"{text} (code {code:#x})" for code, text in words.items()
        }

    def check(self, codes: npt.NDArray[Any]) -> None:
        """Refuses codes that are not used.

        Raises:
            OperandError: with the place, the code and the field that has no such value.
        """
        known = np.array([code for code, _ in self.codes()])
        wrong = np.argwhere(~np.isin(codes, known))
        if not len(wrong):
            return
        place = tuple(int(i) for i in wrong[0])
        code = int(codes[place])
        shown = f"argument 'mode'{list(place) if place else ''} is {code:#x}"
        raise OperandError(f"{shown}: {self._complaint(code)}")

    def _complaint(self, code: int) -> str:
        for field in self.fields:
            own = code & ((1 << field.bits) - 1)
            if own >= len(field.values) or field.values[own] is None:
                used = ", ".join(f"{i} {v}" for i, v in enumerate(field.values) if v is not None)
                return f"the unit does not use code {own} of field {field.name}, expected one of {used}"
            code >>= field.bits
        return f"expected a code of {self.bits} bits"


def mode_text(values: dict[str, Value]) -> str:
    """A mode in words: "rnd down, neg none"."""
    return ", ".join(f"{name} {spelt(value)}" for name, value in values.items())


def spelt(value: Value) -> str:
    """A value as YAML spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def take_modes(document: Section) -> Modes | None:
    """Reads the key `modes` of a unit's file.

    Raises:
        SpecError: a field without values, a value that is no word, number, true, false or null, too many
            modes.
    """
    found = document.take_value("modes", MODES, None)
    if found is None:
        return None
    fields = tuple(ModeField(name, _values(document["modes"], name)) for name in found)
    if not fields:
        raise document.error("key 'modes' names no field, expected {rnd: [nearest_even, down]}", "modes")
    modes, count = Modes(fields), 1
    for field in fields:
        count *= sum(value is not None for value in field.values)
    if count > MOST_MODES or modes.bits > 16:
        raise document.error(
            f"key 'modes' gives {count} modes of {modes.bits} bits, expected at most {MOST_MODES} of 16",
            "modes",
        )
    return modes


def _values(table: Section, name: str) -> tuple[Value | None, ...]:
    values = table[name]
    if not all(value is None or isinstance(value, (str, int)) for value in values):
        raise table.error(
            f"field '{name}' holds something that is no word, number, true, false or null", name
        )
    known = [value for value in values if value is not None]
    if not known:
        raise table.error(f"field '{name}' has no value, expected a list such as [nearest_even, down]", name)
    if len(values) > MOST_MODES:
        raise table.error(f"field '{name}' has {len(values)} codes, expected at most {MOST_MODES}", name)
    return tuple(values)


def fill(value: Any, values: dict[str, Value], where: Section) -> Any:
    """`$name` replaced by the field's value, in a list or mapping of the unit's file."""
    return substitute(value, dict(values), where)


def names_used(value: Any) -> set[str]:
    """The fields that a list or mapping names."""
    if isinstance(value, str):
        return {value[1:]} if value.startswith("$") else set()
    items = value.values() if isinstance(value, Section) else value if isinstance(value, list) else ()
    return set().union(*map(names_used, items))
