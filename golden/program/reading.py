"""Reading one primitive step from YAML, by what its class declares."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, TypeVar, assert_never

from golden.errors import OldWordWarning, UnknownNameError, nearest
from golden.number.formats import Format, Kind, get_format
from golden.number.rounding import FLOAT_OVERFLOWS, INTEGER_OVERFLOWS
from golden.program.keys import (
    Candidate,
    Candidates,
    Causes,
    Choice,
    Flag,
    FormatName,
    Grouping,
    Integer,
    Key,
    Modes,
    Names,
    Registers,
    Roundings,
    Rules,
    Target,
    Widths,
    Word,
    applies,
    declared,
    key_name,
    one_or_each,
)
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Part,
    Replace,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    format_of,
    grouping,
    variants,
)
from golden.values import Fail
from golden.yamlfile import MISSING, Section

T = TypeVar("T")
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
        keys = [*declared(kind)]
        defaults = {name: default for name, _, default in keys}
        given = {name: self.section.get(key_name(name, key), each) for name, key, each in keys}
        needed = [(name, key) for name, key, default in keys if default is MISSING]
        self.section.need([key_name(name, key) for name, key in needed if applies(key, given, defaults)])
        for name, key, default in keys:
            if applies(key, self.values, defaults, self.flags):
                self.values[name] = self._value(key_name(name, key), key, default)
        step = kind(**self.values)
        self.section.done()
        self.check(step)
        return step

    def _variant(self) -> type[Step]:
        """The class of the word; if it stands for two, the key `order` decides."""
        kinds = variants(self.op)
        if len(kinds) == 1:
            return kinds[0]
        order = self.section.take_choice("order", ("exact", *_orders(kinds)), "exact")
        return next(kind for kind in kinds if (kind is Additions) == (order != "exact"))

    def _value(self, name: str, key: Key, default: Any) -> Any:
        section = self.section
        match key:
            case Registers() | Target() | Integer() | Flag() | Names():
                return section.take_value(name, key.value, default)
            case Choice():
                return self._choice(name, key, default)
            case Widths():
                return self._widths(name, key)
            case Roundings():
                return self._roundings(name, key)
            case Rules():
                return self._rules(name, key)
            case Grouping():
                group = section.take_value(name, key.value, None)
                return next(((word, size) for word, size in (group or {}).items() if size is not None), None)
            case FormatName():
                return self._format(name, key)
            case Word():
                return self._word(name)
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
            return self.section.take_value(key, rule.value, default)
        self.section.take(key, str)
        note = self.section.error(f"'{key}: {given}' is now written '{key}: {new}'", key)
        warnings.warn(str(note), OldWordWarning, stacklevel=2)
        return new

    def _widths(self, key: str, rule: Widths) -> tuple[tuple[str, int], ...]:
        of: tuple[str, ...] = self.values["of"]
        found = self.section.take_value(key, rule.value, MISSING if rule.for_all else None)
        if not isinstance(found, dict):
            return tuple((name, found) for name in of) if found is not None else ()
        return self._of_all(key, found) if rule.for_all else self._of_registers(key, found)

    def _roundings(self, key: str, rule: Roundings) -> Modes:
        found = self.section.take_value(key, rule.value)
        if isinstance(found, str):
            return found
        return one_or_each(self._of_all(key, found))

    def _of_all(self, key: str, found: dict[str, T]) -> tuple[tuple[str, T], ...]:
        """The values of a mapping that has one for every register of the step."""
        missing = next((name for name in self.values["of"] if name not in found), None)
        if missing is not None:
            raise self.section[key].error(f"key '{missing}' is missing{nearest(missing, found)}")
        return self._of_registers(key, found)

    def _of_registers(self, key: str, found: dict[str, T]) -> tuple[tuple[str, T], ...]:
        """The values of a mapping in the order of the step's registers; it names no others."""
        of: tuple[str, ...] = self.values["of"]
        for name in found:
            if name not in of:
                raise self.section[key].error(
                    f"unknown key '{name}', expected one of {', '.join(of)}{nearest(name, of)}", name
                )
        return tuple((name, found[name]) for name in of if name in found)

    def _rules(self, key: str, rule: Rules) -> tuple[tuple[str, str], ...]:
        return self._of_registers(key, self.section.take_value(key, rule.value, None) or {})

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
        value = self.section.take_int(key, 0, (1 << 64) - 1, None)
        if value is not None and value >> fmt.bits:
            raise self.section.error(
                f"key '{key}' is {value:#x}, expected a code of {fmt.name}, at most {(1 << fmt.bits) - 1:#x}",
                key,
            )
        return fmt.nan if value is None else int(value)

    def _candidates(self, key: str, rule: Candidates) -> tuple[Candidate, ...]:
        found = tuple(
            Candidate(one["of"], one["exponent"] == "leading", one["plus"], one["least"])
            for one in self.section.take_value(key, rule.value, ())
        )
        known = self.values["of"]
        for item, one in zip(self.section.get(key) or (), found, strict=True):
            wrong = next((name for name in one.of if name not in known), None)
            if wrong is not None:
                raise item.error(
                    f"'{wrong}' is not aligned by this step, expected some of {', '.join(known)}"
                    f"{nearest(wrong, known)}",
                    "of",
                )
        return found

    def _causes(self, key: str, rule: Causes) -> tuple[tuple[str, int | None], ...]:
        found = self.section.take_value(key, rule.value, None) or {}
        section: Any = self.section.get(key) or ()
        table: list[tuple[str, int | None]] = []
        for cause in section:
            word = found[cause]
            if word != "payload":
                table.append((cause, section.take_int(cause, 0, (1 << self.out.bits) - 1)))
            elif cause in WITH_PAYLOAD:
                table.append((cause, None))
            else:
                raise section.error(
                    f"key '{cause}' is 'payload', expected a word: no NaN comes with it", cause
                )
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
            shown = key_name(name, key)
            given = getattr(step, name)
            if isinstance(key, Registers):
                key.value.check(given, self._fail(shown))
            elif len(given) > key.most:
                raise self.section.error(
                    f"key '{shown}' holds {len(given)} items, expected {key.value.expected}", shown
                )
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
            case Replace():
                if step.value == 0:
                    raise self.section.error("key 'value' is 0, expected another number", "value")
            case Flush() | Scale() | SpecialValues() | Normalize() | Fma() | HiddenBit() | Part():
                pass
            case _:
                assert_never(step)

    def _fail(self, key: str) -> Fail:
        return lambda message: self.section.error(f"key '{key}' {message}", key)

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
            remaining = next(name for name in others if getattr(step, name) not in (None, ()))
            raise self.section.error(f"key '{given[0]}' leaves no room for '{remaining}'", remaining)
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
        if step.random_bits is not None:
            self._check_random(step, step.random_bits)
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

    def _check_random(self, step: Round, bits: int) -> None:
        """Stochastic rounding is a rounding of its own, and which flags it raises nobody has said."""
        if step.random >> bits:
            raise self.section.error(
                f"key 'random' is {step.random}, expected less than 2^random_bits = {1 << bits}", "random"
            )
        if step.rounding != "toward_zero":
            raise self.section.error(
                f"key 'rounding' is '{step.rounding}', expected toward_zero with random_bits: what is added "
                "and cut is rounded",
                "rounding",
            )
        if step.sticky_gap or step.sticky == "left_out":
            raise self.section.error("key 'random_bits' leaves no room for sticky bits", "random_bits")
        if self.flags:
            raise self.section.error(
                "key 'random_bits' is in a unit with flags, expected a unit without: no rule says which "
                "flags stochastic rounding raises",
                "random_bits",
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
