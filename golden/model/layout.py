"""Steps as the C core's plain structs: enums, members and values, all from what the step classes declare.

`python -m golden.model.layout` writes golden/core/mg_steps.h, the C side of it; a test holds the committed
file to this module, so that neither can move alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from golden.number.formats import SPECIALS, Format
from golden.program import keys
from golden.program.keys import (
    Candidates,
    Causes,
    Choice,
    Flag,
    FormatName,
    Grouping,
    Integer,
    Key,
    Names,
    Registers,
    Roundings,
    Rules,
    Target,
    Vocabulary,
    Widths,
    Word,
    declared,
    modes_of,
)
from golden.program.steps import KINDS, Step
from golden.yamlfile import MISSING

HEADER = Path(__file__).resolve().parents[1] / "core" / "mg_steps.h"
MOST_REGISTERS = 4
"""Registers that one step can read."""
NOT_GIVEN = -(1 << 31)
"""What stands in a table for a register without a value (MG_NOT_GIVEN)."""
SPECIAL_CODES = Vocabulary("specials", SPECIALS)
_i32, _u64 = ctypes.c_int32, ctypes.c_uint64


class FormatStruct(ctypes.Structure):
    """mg_format; see golden/number/formats.py for the meaning of each member."""

    _fields_ = [
        *(
            (name, _i32)
            for name in (
                *("is_float", "storage", "bits", "exponent_bits", "fraction_bits", "bias", "specials"),
                *("is_signed", "has_zero", "ignored_low", "min_exponent", "max_exponent", "sign_shift"),
                *("has_infinity", "has_nan", "lone_zero"),
            )
        ),
        *((name, _u64) for name in ("infinity", "largest", "nan")),
    ]


@lru_cache(maxsize=256)
def lower_format(fmt: Format) -> FormatStruct:
    """Returns the format as the core's struct mg_format, to be copied; searches ask for it often."""
    infinity, nan = fmt.infinity, fmt.nan
    return FormatStruct(
        fmt.is_float,
        fmt.storage,
        fmt.bits,
        fmt.exponent_bits,
        fmt.fraction_bits,
        fmt.bias,
        number(SPECIAL_CODES, fmt.specials),
        fmt.signed,
        fmt.has_subnormals,
        fmt.ignored_low,
        fmt.min_exponent,
        fmt.max_exponent,
        fmt.sign_shift,
        infinity is not None,
        nan is not None,
        fmt.lone_zero,
        infinity or 0,
        fmt.largest,
        nan or 0,
    )


def number(vocabulary: Vocabulary, word: str | None) -> int:
    """The value of a word in the core's enum; where a word may be missing, 0 stands for none."""
    if vocabulary in _MAY_BE_MISSING:
        return 0 if word is None else 1 + vocabulary.words.index(word)
    assert word is not None
    return vocabulary.words.index(word)


_MAY_BE_MISSING = (keys.GROUP, keys.LEFT_OUT)


def _vocabularies() -> Iterator[Vocabulary]:
    """Every vocabulary of keys.py, and what else the core has to know by name."""
    yield from (value for value in vars(keys).values() if isinstance(value, Vocabulary))
    yield SPECIAL_CODES
    yield Vocabulary("step", tuple(_snake(kind) for kind in KINDS))


def _snake(kind: type) -> str:
    name = kind.__name__
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


# Members ----------------------------------------------------------------------------------------------------


def _members(name: str, key: Key, optional: bool) -> list[tuple[str, Any]]:
    """The members of struct mg_step that hold one field."""
    match key:
        case Registers():
            return [(f"{name}_count", _i32), (name, _i32 * MOST_REGISTERS)]
        case Target() | Choice() | Flag():
            return [(name, _i32)]
        case Integer():
            return [(f"has_{name}", _i32), (name, _i32)] if optional else [(name, _i32)]
        case Widths() | Rules():
            return [(name, _i32 * MOST_REGISTERS)]
        case Roundings():
            return [(f"{name}s", _i32 * MOST_REGISTERS)]
        case Grouping():
            return [(name, _i32), (f"{name}_size", _i32)]
        case Names(allowed=allowed):
            return [(f"{name}_count", _i32), (name, _i32 * len(allowed))]
        case FormatName():
            return [(f"has_{name}", _i32), (name, FormatStruct)]
        case Word():
            return [(f"has_{name}", _i32), (name, _u64)]
        case Candidates(most=most):
            flags = [
                (f"{name}_{part}", _i32 * most) for part in ("of", "leading", "plus", "has_least", "least")
            ]
            return [(f"{name}_count", _i32), *flags]
        case Causes(causes=causes):
            size = len(causes)
            return [
                (f"{name}_count", _i32),
                (f"{name}_cause", _i32 * size),
                (f"{name}_payload", _i32 * size),
                (name, _u64 * size),
            ]
        case _:
            raise AssertionError(f"no C members for {type(key).__name__}")


@lru_cache(maxsize=1)
def step_members() -> dict[str, Any]:
    """All members of struct mg_step, 32-bit ones first: the fields of all kinds of steps, each name once."""
    found: dict[str, Any] = {"op": _i32, "of_count": _i32, "of": _i32 * MOST_REGISTERS, "to": _i32}
    for kind in KINDS:
        for name, key, default in declared(kind):
            for member, ctype in _members(name, key, default is None):
                if found.setdefault(member, ctype) is not ctype:
                    raise AssertionError(f"member {member} of mg_step has two types")
    order = (_i32, _u64, FormatStruct)
    return dict(sorted(found.items(), key=lambda member: order.index(_element(member[1]))))


def _element(ctype: Any) -> Any:
    return ctype._type_ if issubclass(ctype, ctypes.Array) else ctype


class StepStruct(ctypes.Structure):
    """mg_step: one primitive step; `of` lists registers in order, per-register values stand at the same
    index."""

    _fields_ = list(step_members().items())


@lru_cache(maxsize=4096)
def lower_step(step: Step) -> StepStruct:
    """Returns the step as the core's struct mg_step, to be copied; members that it does not have are 0."""
    kind: Any = type(step)
    low = StepStruct.from_buffer_copy(_blank(kind, step.of))
    low.to = number(keys.REGISTER, step.to) if step.to else 0
    for name, key, default in declared(step):
        value = getattr(step, name)
        if value is not default and value != default:
            _set(low, name, key, value, step.of, default is None)
    return low


@lru_cache(maxsize=256)
def _blank(kind: Any, of: tuple[str, ...]) -> bytes:
    """A step of these registers of which nothing is said that has a default."""
    low = StepStruct(op=KINDS.index(kind))
    _set_registers(low, "of", of)
    for name, key, default in declared(kind):
        if default is not MISSING:
            _set(low, name, key, default, of, default is None)
    return bytes(low)


@lru_cache(maxsize=256)
def lower_steps(steps: tuple[Step, ...]) -> ctypes.Array[StepStruct]:
    """Returns steps as an array of the core's struct mg_step, to be read alone."""
    return (StepStruct * len(steps)).from_buffer_copy(b"".join(bytes(lower_step(step)) for step in steps))


def _set_registers(low: StepStruct, name: str, registers: tuple[str, ...]) -> None:
    numbers = [number(keys.REGISTER, register) for register in registers]
    setattr(low, f"{name}_count", len(numbers))
    setattr(low, name, (_i32 * MOST_REGISTERS)(*numbers))


def _set(low: StepStruct, name: str, key: Key, value: Any, of: tuple[str, ...], optional: bool) -> None:
    match key:
        case Registers():
            _set_registers(low, name, value)
        case Target():
            pass  # lower_step has written it
        case Choice(vocabulary=vocabulary):
            setattr(low, name, number(vocabulary, value))
        case Flag():
            setattr(low, name, int(value))
        case Integer() | Word() if optional or isinstance(key, Word):
            setattr(low, f"has_{name}", int(value is not None))
            setattr(low, name, value or 0)
        case Integer():
            setattr(low, name, value)
        case Widths():
            table = dict(value)
            setattr(low, name, (_i32 * MOST_REGISTERS)(*(table.get(register, NOT_GIVEN) for register in of)))
        case Roundings():
            modes = (number(keys.ROUNDING, mode) for _, mode in modes_of(value, of))
            setattr(low, f"{name}s", (_i32 * MOST_REGISTERS)(*modes))
        case Rules(vocabulary=vocabulary):
            table = dict(value)
            rules = (number(vocabulary, table.get(register)) for register in of)
            setattr(low, name, (_i32 * MOST_REGISTERS)(*rules))
        case Grouping():
            kind, size = value or (None, 0)
            setattr(low, name, number(keys.GROUP, kind))
            setattr(low, f"{name}_size", size)
        case Names(allowed=allowed):
            setattr(low, f"{name}_count", len(value))
            setattr(low, name, (_i32 * len(allowed))(*(allowed.index(one) for one in value)))
        case Candidates():
            setattr(low, f"{name}_count", len(value))
            for i, one in enumerate(value):
                getattr(low, f"{name}_of")[i] = sum(1 << of.index(register) for register in one.of)
                getattr(low, f"{name}_leading")[i] = int(one.leading)
                getattr(low, f"{name}_plus")[i] = one.plus
                getattr(low, f"{name}_has_least")[i] = int(one.least is not None)
                getattr(low, f"{name}_least")[i] = one.least or 0
        case Causes():
            setattr(low, f"{name}_count", len(value))
            for i, (cause, word) in enumerate(value):
                getattr(low, f"{name}_cause")[i] = number(keys.CAUSE, cause)
                getattr(low, f"{name}_payload")[i] = int(word is None)
                getattr(low, name)[i] = word or 0
        case FormatName():
            setattr(low, f"has_{name}", int(value is not None))
            if value is not None:
                setattr(low, name, lower_format(value))
        case _:
            raise AssertionError(f"no C value for {type(key).__name__}")


# The header -------------------------------------------------------------------------------------------------

_HEAD = """/* Steps, formats and their words for the C core.
 *
 * Written by `python -m golden.model.layout` from the step classes in golden/program/steps.py, which say what
 * each member means; not edited by hand.
 */
#ifndef MG_STEPS_H
#define MG_STEPS_H

#include <stdint.h>

/* In a table with one value for each register: none. */
#define MG_NOT_GIVEN INT32_MIN
"""


def header_text() -> str:
    """The text of golden/core/mg_steps.h."""
    enums = [_enum(vocabulary) for vocabulary in _vocabularies()]
    return "\n".join(
        [
            _HEAD,
            *enums,
            "/* A number format; see golden/number/formats.py for the meaning of each field. */",
            _struct("mg_format", FormatStruct._fields_),
            "/* One primitive step; `of` lists registers in order, per-register values stand at the same "
            "index. A",
            " * member that the step's kind does not have is 0; so is, of enums with a NONE, what is not "
            "given. */",
            _struct("mg_step", StepStruct._fields_),
            "#endif\n",
        ]
    )


def _enum(vocabulary: Vocabulary) -> str:
    prefix = f"MG_{vocabulary.name.upper()}"
    words = [*(["none"] if vocabulary in _MAY_BE_MISSING else []), *vocabulary.words]
    names = [f"{prefix}_{word.upper()}" for word in words] + [f"{prefix}_COUNT"]
    lines = _wrapped(f"enum mg_{vocabulary.name}_word {{", names, "};")
    return lines + "\n"


def _wrapped(head: str, items: list[str], tail: str) -> str:
    one = f"{head} {', '.join(items)} {tail}"
    width = 112
    if len(one) <= width:
        return one
    lines, line = [head], "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line, tail])


_C_TYPES = {_i32: "int32_t", _u64: "uint64_t", FormatStruct: "mg_format"}


def _struct(name: str, members: Any) -> str:
    text = ["typedef struct {"]
    for member, ctype in members:
        length = f"[{ctype._length_}]" if issubclass(ctype, ctypes.Array) else ""
        text.append(f"    {_C_TYPES[_element(ctype)]} {member}{length};")
    return "\n".join([*text, f"}} {name};\n"])


if __name__ == "__main__":
    from golden.files.output import write_text

    write_text(HEADER, header_text())
