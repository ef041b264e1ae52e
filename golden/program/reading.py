"""Reading one primitive step from YAML, by what its class declares."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, assert_never

from golden.errors import OldWordWarning, UnknownNameError, nearest
from golden.number.formats import Format, Kind, get_format
from golden.number.rounding import FLOAT_OVERFLOWS, INTEGER_OVERFLOWS
from golden.program.keys import (
    PLACE,
    REGISTER,
    Candidate,
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
    Rules,
    Target,
    Widths,
    Word,
    applies,
    declared,
    key_name,
)
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    format_of,
    grouping,
    variants,
)
from golden.yamlfile import MISSING, Section

WITH_PAYLOAD = ("a", "b", "factor", "c")
"""Causes that are a NaN operand, whose payload can be handed on."""


class StepReader:
    """Reads one primitive step from its YAML mapping.

    Args:
        op: the step's word; it is one of golden.program.steps.STEPS.
        out: the format of the operation's result.
        local_formats: formats that the file itself defines.
        flags: whether the unit has status flags.
    """

    def __init__(
        self, op: str, section: Section, out: Format, local_formats: dict[str, Format], flags: bool = False
    ) -> None:
        self.op, self.section, self.out, self.local_formats = op, section, out, local_formats
        self.flags = flags
        self.values: dict[str, Any] = {}

    def read(self) -> Step:
        """Returns the step.

        Raises:
            SpecError: with file, line, key, what was expected and the nearest word.
        """
        kind = self._variant()
        defaults = {name: default for name, _, default in declared(kind)}
        for name, key, default in declared(kind):
            if applies(key, self.values, defaults, self.flags):
                self.values[name] = self._value(key_name(name, key), key, default)
        step = kind(**self.values)
        self.section.done()
        self.check(step)
        return step

    def _variant(self) -> type[Step]:
        """The class of the word; where it stands for two, the key `order` tells which."""
        kinds = variants(self.op)
        if len(kinds) == 1:
            return kinds[0]
        order = self.section.take_choice("order", ("exact", *_orders(kinds)), "exact")
        return next(kind for kind in kinds if (kind is Additions) == (order != "exact"))

    def _value(self, name: str, key: Key, default: Any) -> Any:
        section = self.section
        match key:
            case Registers():
                return self._registers(name, key)
            case Target():
                return self._target(name, key, default)
            case Choice():
                return self._choice(name, key, default)
            case Integer(low=low, high=high):
                return section.take_int(name, low, high, default)
            case Flag():
                return section.take(name, bool, default)
            case Widths():
                return self._widths(name, key)
            case Rules():
                return self._rules(name, key)
            case Grouping():
                return self._group(name, key)
            case FormatName():
                return self._format(name, key)
            case Word():
                return self._word(name)
            case Names():
                return self._names(name, key)
            case Causes():
                return self._causes(name, key)
            case Candidates():
                return self._candidates(name, key)
            case _:
                raise AssertionError(f"no reader of {type(key).__name__}")

    def _choice(self, key: str, rule: Choice, default: Any) -> Any:
        given = self.section.get(key)
        new = dict(rule.old).get(given) if isinstance(given, str) else None
        if new is None:
            return self.section.take_choice(key, rule.words, default)
        self.section.take(key, str)
        note = self.section.error(f"'{key}: {given}' is now written '{key}: {new}'", key)
        warnings.warn(str(note), OldWordWarning, stacklevel=2)
        return new

    def _registers(self, key: str, rule: Registers) -> tuple[str, ...]:
        names = tuple(self.section.take_names(key))
        self._check_registers(names, key, rule)
        return names

    def _check_registers(self, names: tuple[str, ...], key: str, rule: Registers) -> None:
        for name in names:
            if name in REGISTER.words and name not in rule.allowed:
                raise self.section.error(f"step '{self.op}' does not work on '{name}'", key)
        if not 1 <= len(names) <= rule.most or len(set(names)) != len(names):
            expected = "1 register" if rule.most == 1 else f"1 to {rule.most} different registers"
            raise self.section.error(
                f"key '{key}' names {', '.join(names) or 'nothing'}, expected {expected}", key
            )
        for name in names:
            if name not in REGISTER.words:
                known = REGISTER.words
                raise self.section.error(
                    f"'{name}' is no register, expected one of {', '.join(known)}{nearest(name, known)}", key
                )

    def _target(self, key: str, rule: Target, default: Any) -> str:
        name: str = self.section.take(key, str, default)
        if name is not default and name not in rule.allowed:
            raise self.section.error(
                f"step '{self.op}' cannot write '{name}', expected one of {', '.join(rule.allowed)}", key
            )
        return name

    def _widths(self, key: str, rule: Widths) -> tuple[tuple[str, int], ...]:
        of: tuple[str, ...] = self.values["of"]
        if rule.for_all:
            value = self.section.take(key, (int, Section))
        else:
            value = self.section.take(key, Section, None)
        if value is None:
            return ()
        if isinstance(value, Section):
            table = tuple(
                (name, value.take_int(name, rule.low, rule.high))
                for name in of
                if name in value or rule.for_all
            )
            value.done()
            return table
        self.section.take_int(key, rule.low, rule.high)
        return tuple((name, value) for name in of)

    def _rules(self, key: str, rule: Rules) -> tuple[tuple[str, str], ...]:
        section = self.section.take(key, Section, None)
        if section is None:
            return ()
        of: tuple[str, ...] = self.values["of"]
        words = rule.vocabulary.words
        table = tuple((name, section.take_choice(name, words)) for name in of if name in section)
        section.done(of)
        return table

    def _group(self, key: str, rule: Grouping) -> tuple[str, int] | None:
        section = self.section.take(key, Section, None)
        if section is None:
            return None
        if len(section) != 1:
            raise self.section.error("'group' holds one of contiguous, interleaved", key)
        kind = next(iter(section))
        if kind not in ("contiguous", "interleaved"):
            raise section.error(f"unknown key '{kind}', expected contiguous or interleaved", kind)
        return kind, section.take_int(kind, 1, rule.high)

    def _format(self, key: str, rule: FormatName) -> Format | None:
        name = self.section.take(key, str, None)
        if name is None:
            return self.out if rule.or_out else None
        try:
            return self.local_formats.get(name) or get_format(name)
        except UnknownNameError as error:
            raise self.section.error(str(error), key) from None

    def _word(self, key: str) -> int | None:
        fmt = self.values.get("format") or self.out
        value = self.section.take_int(key, 0, (1 << fmt.bits) - 1, None)
        return fmt.nan if value is None else int(value)

    def _names(self, key: str, rule: Names) -> tuple[str, ...]:
        names = self.section.take_names(key, [])
        if any(name not in rule.allowed for name in names) or len(set(names)) != len(names):
            raise self.section.error(
                f"key '{key}' is {names}, expected different ones of {', '.join(rule.allowed)}", key
            )
        return tuple(names)

    def _candidates(self, key: str, rule: Candidates) -> tuple[Candidate, ...]:
        items = self.section.take(key, list, [])
        self._check_candidates(items, all(isinstance(item, Section) for item in items), key, rule)
        return tuple(self._candidate(item) for item in items)

    def _check_candidates(self, items: Sequence[Any], mappings: bool, key: str, rule: Candidates) -> None:
        if len(items) > rule.most or not mappings:
            raise self.section.error(
                f"key '{key}' holds {len(items)} items, expected 1 to {rule.most} mappings such as "
                "'{of: products, exponent: carried}'",
                key,
            )

    def _candidate(self, item: Section) -> Candidate:
        of = tuple(item.take_names("of"))
        known = self.values["of"]
        wrong = next((name for name in of if name not in known), None)
        if wrong is not None or not of:
            raise item.error(
                f"'{wrong or ''}' is not aligned by this step, expected some of {', '.join(known)}"
                f"{nearest(wrong or '', known)}",
                "of",
            )
        leading = item.take_choice("exponent", PLACE.words) == "leading"
        most = 100000
        candidate = Candidate(
            of, leading, item.take_int("plus", -most, most, 0), item.take_int("least", -most, most, None)
        )
        item.done()
        return candidate

    def _causes(self, key: str, rule: Causes) -> tuple[tuple[str, int | None], ...]:
        section = self.section.take(key, Section, None)
        if section is None:
            return ()
        most = (1 << self.out.bits) - 1
        table: list[tuple[str, int | None]] = []
        for cause in section:
            word = section.get(cause)
            if word == "payload" and cause in WITH_PAYLOAD:
                section.take(cause, str)
                table.append((cause, None))
            elif cause in rule.causes:
                expected = " or 'payload'" if cause in WITH_PAYLOAD else ""
                if isinstance(word, str):
                    raise section.error(f"key '{cause}' is '{word}', expected a word{expected}", cause)
                table.append((cause, section.take_int(cause, 0, most)))
        section.done(rule.causes)
        return tuple(table)

    # What two keys of one step have to do with each other ---------------------------------------------------

    def check(self, step: Step) -> None:
        """Refuses registers that the step does not work on, more items than a key takes, and keys that do not
        go together; also of a step that nobody wrote in YAML.

        Raises:
            SpecError: at the step's line.
        """
        kind: Any = type(step)
        for name, key in _with_registers(kind):
            if isinstance(key, Registers):
                self._check_registers(getattr(step, name), key_name(name, key), key)
            else:
                self._check_candidates(getattr(step, name), True, key_name(name, key), key)
        if grouping(step) is not None and not isinstance(step, Fma) and len(step.of) != 1:
            raise self.section.error("a grouped step works on one register", "group")
        fmt = format_of(step)
        if step.to == "d" and fmt is not None and fmt != self.out:
            raise self.section.error(
                f"d is {self.out.name}, but the step's format is {fmt.name}; let a 'round' write d", "format"
            )
        match step:
            case Multiply():
                self._check_multiply(step)
            case Align():
                self._check_align(step)
            case Sum():
                if step.to == "d":
                    raise self.section.error("an exact sum cannot be d; let a 'round' step write d", "to")
            case Additions():
                if step.overflow == "saturate" and step.format.is_float:
                    raise self.section.error(
                        f"overflow 'saturate' is for integers, the sum's format is {step.format.name}",
                        "overflow",
                    )
            case Round():
                self._check_round(step)
            case Flush() | Scale() | SpecialValues() | Normalize() | Fma() | HiddenBit():
                pass
            case _:
                assert_never(step)

    def _check_multiply(self, step: Multiply) -> None:
        for key, default in (("zero_times_infinity", "nan"), ("negate", "none")):
            if getattr(step, key) != default and step.operation != "product":
                raise self.section.error(f"key '{key}' is for products, not for '{step.operation}'", key)

    def _check_align(self, step: Align) -> None:
        for key, meant in (("zeros", step.zeros == "sticky"), ("sticky_gap", step.sticky_gap > 0)):
            if meant and step.cut == "dropped":
                raise self.section.error(
                    f"key '{key}' speaks of a sticky bit, which needs 'cut: sticky_added'", key
                )
        others = ("floor", "left_out", "shift_limit", "zeros")
        given = [name for name in ("exponent", "maximum") if getattr(step, name) not in (None, ())]
        if len(given) > 1:
            raise self.section.error("keys 'exponent' and 'maximum' both say what terms align to", "maximum")
        if given and (step.floor is not None or step.left_out or step.shift_limit is not None):
            beside = next(name for name in others if getattr(step, name) not in (None, ()))
            raise self.section.error(f"key '{given[0]}' leaves no room for '{beside}'", beside)
        if given and step.zeros != "ignored":
            raise self.section.error(f"key '{given[0]}' leaves no room for 'zeros'", "zeros")
        if step.left_out and len(step.left_out) == len(step.of):
            raise self.section.error("key 'left_out' leaves no register to take the maximum of", "left_out")

    def _check_round(self, step: Round) -> None:
        """Floating point overflows to infinity or to a largest number, integers wrap or clamp; neither knows
        the other's."""
        fmt = step.format
        allowed = FLOAT_OVERFLOWS if fmt.is_float else INTEGER_OVERFLOWS
        if step.overflow not in allowed:
            kind = "a floating-point format" if fmt.is_float else "an integer"
            raise self.section.error(
                f"key 'overflow' is '{step.overflow}', but the step rounds to {fmt.name}, {kind}, expected "
                f"{' or '.join(allowed)}",
                "overflow",
            )
        if step.overflow == "nan" and (step.nan is None or fmt.decode(step.nan).kind == Kind.ZERO):
            word = "has no NaN" if step.nan is None else f"has a zero for its NaN {step.nan:#x}"
            raise self.section.error(
                f"key 'overflow' is 'nan', but {fmt.name} {word}, expected the key 'nan' with another word, "
                "or overflow 'largest'",
                "overflow",
            )
        if step.sticky == "left_out" and not fmt.is_float:
            raise self.section.error(f"key 'sticky' is for floating-point results, not {fmt.name}", "sticky")
        if step.sticky_gap and not fmt.is_float:
            raise self.section.error(
                f"key 'sticky_gap' is for floating-point results, not {fmt.name}", "sticky_gap"
            )
        if step.subnormal_carry == "lost" and not (fmt.is_float and fmt.has_subnormals):
            raise self.section.error(
                f"{fmt.name} has no subnormal numbers that could lose a carry", "subnormal_carry"
            )
        kept = step.result_fraction_bits
        if kept is not None and kept > fmt.fraction_bits:
            raise self.section.error(
                f"key 'fraction_bits' is {kept}, expected an integer from 0 to {fmt.fraction_bits}",
                "fraction_bits",
            )


@cache
def _with_registers(kind: Any) -> tuple[tuple[str, Registers | Candidates], ...]:
    """The keys of a kind of steps that name registers."""
    return tuple((name, key) for name, key, _ in declared(kind) if isinstance(key, Registers | Candidates))


def _orders(kinds: tuple[type[Step], ...]) -> tuple[str, ...]:
    return next(
        key.words
        for kind in kinds
        for name, key, default in declared(kind)
        if name == "order" and default is MISSING and isinstance(key, Choice)
    )
