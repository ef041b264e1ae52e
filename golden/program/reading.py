"""Reading one primitive step from YAML: the keys that each step knows, what they may hold, and their
defaults."""

from __future__ import annotations

from typing import Any

from golden.errors import UnknownNameError, nearest
from golden.number.formats import Format, get_format
from golden.number.rounding import FLOAT_OVERFLOWS, INTEGER_OVERFLOWS, MODES, OVERFLOWS
from golden.program.program import MAX_FRACTION_BITS, MAX_K, REGISTERS, Step
from golden.yamlfile import Section

_FLUSHES = ("none", "signed", "positive")
_ZERO_TIMES_INFINITY = ("nan", "infinity", "zero")
_OPPOSITE_INFINITIES = ("nan", "first", "last", "positive", "negative")


class StepReader:
    """Reads one primitive step from its YAML mapping."""

    def __init__(self, op: str, section: Section, out: Format, local_formats: dict[str, Format]) -> None:
        self.op, self.section, self.out, self.local_formats = op, section, out, local_formats

    def registers(self, most: int = 4, never: tuple[str, ...] = ()) -> tuple[str, ...]:
        key = "of"
        names = self.section.take_names(key)
        for name in names:
            if name in never:
                raise self.section.error(f"step '{self.op}' does not work on '{name}'", key)
        if not 1 <= len(names) <= most or len(set(names)) != len(names):
            expected = "1 register" if most == 1 else f"1 to {most} different registers"
            raise self.section.error(
                f"key 'of' names {', '.join(names) or 'nothing'}, expected {expected}", key
            )
        for name in names:
            if name not in REGISTERS:
                raise self.section.error(
                    f"'{name}' is no register, expected one of "
                    f"{', '.join(REGISTERS)}{nearest(name, REGISTERS)}",
                    key,
                )
        return tuple(names)

    def target(self, also: tuple[str, ...] = ()) -> str:
        """The register that the step writes; the operands keep what they hold."""
        name: str = self.section.take("to", str)
        allowed = ("products", "groups", "dot", "total", "partial", *also)
        if name not in allowed:
            raise self.section.error(
                f"step '{self.op}' cannot write '{name}', expected one of {', '.join(allowed)}", "to"
            )
        return name

    def checked_format(self, to: str) -> Format:
        """The step's format; what it writes to d must have d's."""
        fmt = self.format()
        if to == "d" and fmt != self.out:
            raise self.section.error(
                f"d is {self.out.name}, but the step's format is {fmt.name}; let a 'round' write d", "format"
            )
        return fmt

    def group(self, of: tuple[str, ...]) -> tuple[str, int] | None:
        section = self.section.take("group", Section, None)
        if section is None:
            return None
        if len(of) != 1:
            raise self.section.error("a grouped step works on one register", "group")
        if len(section) != 1:
            raise self.section.error("'group' holds one of contiguous, interleaved", "group")
        kind = next(iter(section))
        if kind not in ("contiguous", "interleaved"):
            raise section.error(f"unknown key '{kind}', expected contiguous or interleaved", kind)
        return kind, section.take_int(kind, 1, MAX_K)

    def per_register(
        self, key: str, of: tuple[str, ...], low: int, high: int, required: bool
    ) -> tuple[tuple[str, int], ...]:
        value = self.section.take(key, (int, Section)) if required else self.section.take(key, Section, None)
        if value is None:
            return ()
        if isinstance(value, Section):
            table = tuple((name, value.take_int(name, low, high)) for name in of if name in value or required)
            value.done()
            return table
        self.section.take_int(key, low, high)
        return tuple((name, value) for name in of)

    def format(self) -> Format:
        name = self.section.take("format", str, None)
        if name is None:
            return self.out
        try:
            return self.local_formats.get(name) or get_format(name)
        except UnknownNameError as error:
            raise self.section.error(str(error), "format") from None

    def mode(self, default: Any = None) -> str:
        value: str = (
            self.section.take_choice("rounding", MODES)
            if default is None
            else self.section.take_choice("rounding", MODES, default)
        )
        return value

    def flush(self) -> str:
        value: str = self.section.take_choice("flush", _FLUSHES, "none")
        return value

    def nan(self, fmt: Format) -> int | None:
        value = self.section.take_int("nan", 0, (1 << fmt.bits) - 1, None)
        return fmt.nan if value is None else int(value)

    def nan_order(self) -> tuple[str, ...]:
        names = self.section.take_names("nan_order", [])
        if any(name not in ("a", "b", "c") for name in names) or len(set(names)) != len(names):
            raise self.section.error(
                f"key 'nan_order' is {names}, expected different ones of a, b, c", "nan_order"
            )
        return tuple(names)

    def zero_times_infinity(self) -> str:
        value: str = self.section.take_choice("zero_times_infinity", _ZERO_TIMES_INFINITY, "nan")
        return value

    def left_out(self, of: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Registers that do not enter the maximum exponent, and what happens to their terms above it."""
        section = self.section.take("left_out", Section, None)
        if section is None:
            return ()
        table = tuple(
            (name, section.take_choice(name, ("dropped", "unshifted"))) for name in of if name in section
        )
        section.done(of)
        if len(table) == len(of):
            raise self.section.error("key 'left_out' leaves no register to take the maximum of", "left_out")
        return table

    # One method a step; each names exactly the keys that the step knows.

    def read(self) -> Step:
        step: Step = getattr(self, f"_{self.op}")()
        self.section.done()
        return step

    def _flush(self) -> Step:
        return Step(
            "flush",
            self.registers(never=("scales", "addends")),
            flush=self.section.take_choice("sign", _FLUSHES[1:]),
        )

    def _hidden_bit(self) -> Step:
        of = self.registers(3, never=tuple(name for name in REGISTERS if name not in ("a", "b", "c")))
        zeros = self.section.take_choice("zeros", ("kept", "set"), "kept")
        return Step("hidden_bit", of, zeros="set" if zeros == "set" else "ignored")

    def _multiply(self) -> Step:
        rounds = "format" in self.section
        operation = self.section.take_choice("operation", ("product", "and", "xor"), "product")
        rule = self.zero_times_infinity()
        if rule != "nan" and operation != "product":
            raise self.section.error(
                f"key 'zero_times_infinity' is for products, not for '{operation}'", "zero_times_infinity"
            )
        fmt = self.format() if rounds else None
        return Step(
            "multiply",
            ("a", "b"),
            self.target(),
            format=fmt,
            rounding=self.mode() if rounds else "toward_zero",
            flush=self.flush() if rounds else "none",
            nan=self.nan(fmt) if fmt else None,
            normalize=self.section.take("normalize", bool, False),
            overflow_exponent=self.section.take_int("overflow_exponent", -100000, 100000, None),
            operation=operation,
            zero_times_infinity=rule,
        )

    def _scale(self) -> Step:
        return Step("scale", self.registers(never=("a", "b", "c", "scales", "addends")))

    def _special_values(self) -> Step:
        rule = self.section.take_choice("opposite_infinities", _OPPOSITE_INFINITIES, "nan")
        return Step("special_values", self.registers(), nan=self.nan(self.out), opposite_infinities=rule)

    def _align(self) -> Step:
        of = self.registers(never=("a", "b", "scales"))
        sticky = self.section.take_choice("cut", ("dropped", "sticky"), "dropped") == "sticky"
        zeros = self.section.take_choice("zeros", ("ignored", "maximum", "sticky"), "ignored")
        gap = self.section.take_int("sticky_gap", 0, 64, 0)
        for key, meant in (("zeros", zeros == "sticky"), ("sticky_gap", gap > 0)):
            if meant and not sticky:
                raise self.section.error(
                    f"key '{key}' speaks of a sticky bit, which needs 'cut: sticky'", key
                )
        return Step(
            "align",
            of,
            group=self.group(of),
            fraction_bits=self.per_register("fraction_bits", of, 0, MAX_FRACTION_BITS, True),
            rounding=self.mode(),
            sticky=sticky,
            zeros=zeros,
            sticky_gap=gap,
            shift_limit=self.section.take_int("shift_limit", 0, 10000, None),
            left_out=self.left_out(of),
            floor=self.section.take_int("floor", -100000, 100000, None),
            window=self.per_register("window", of, 0, 10000, False),
        )

    def _sum(self) -> Step:
        of, to, order = (
            self.registers(),
            self.target(("d",)),
            self.section.take_choice("order", ("exact", "tree", "sequential"), "exact"),
        )
        if order == "exact" and to == "d":
            raise self.section.error("an exact sum cannot be d; let a 'round' step write d", "to")
        if order == "exact":
            return Step(
                "sum",
                of,
                to,
                self.group(of),
                exponent=self.section.take_int("exponent", -100000, 100000, None),
                rounding=self.mode("toward_zero"),
                width=self.section.take_int("width", 1, 120, None),
                cancelled=self.section.take_choice("cancelled", ("keeps_exponent", "zero"), "keeps_exponent"),
            )
        fmt = self.checked_format(to)
        return Step(
            "sum",
            of,
            to,
            self.group(of),
            order=order,
            format=fmt,
            rounding=self.mode(),
            flush=self.flush(),
            nan=self.nan(fmt),
            overflow=self.sum_overflow(fmt),
        )

    def sum_overflow(self, fmt: Format) -> str:
        """IEEE 754 for floating point; integers wrap ("ieee") or clamp after every addition."""
        value: str = self.section.take_choice("overflow", ("ieee", "saturate"), "ieee")
        if value == "saturate" and fmt.is_float:
            raise self.section.error(
                f"overflow 'saturate' is for integers, the sum's format is {fmt.name}", "overflow"
            )
        return value

    def _normalize(self) -> Step:
        of = self.registers(never=("a", "b", "scales"))
        return Step(
            "normalize",
            of,
            fraction_bits=self.per_register("fraction_bits", of, 0, MAX_FRACTION_BITS, True),
            rounding=self.mode(),
            min_exponent=self.section.take_int("min_exponent", -100000, 100000, None),
        )

    def _fma(self) -> Step:
        to = self.target(("d",))
        fmt = self.checked_format(to)
        return Step(
            "fma",
            ("a", "b"),
            to,
            self.group(("a",)),
            format=fmt,
            rounding=self.mode(),
            flush=self.flush(),
            start=self.section.take_choice("start", ("c", "zero", "product"), "c"),
            zero_times_infinity=self.zero_times_infinity(),
            nan=self.nan(fmt),
            nan_order=self.nan_order(),
        )

    def _round(self) -> Step:
        to = self.target(("d",)) if "to" in self.section else "d"
        fmt = self.checked_format(to)
        return Step(
            "round",
            self.registers(1),
            to,
            format=fmt,
            rounding=self.mode(),
            overflow=self.round_overflow(fmt),
            flush=self.flush(),
            nan=self.nan(fmt),
            zero=self.section.take_choice("zero", ("positive", "signed", "signed_underflow")),
            subnormal_carry=self.subnormal_carry(fmt),
            sticky_gap=self.rounding_gap(fmt),
            result_fraction_bits=self.section.take_int("fraction_bits", 0, fmt.fraction_bits, None),
        )

    def round_overflow(self, fmt: Format) -> str:
        """Floating point overflows to infinity or to a largest number, integers wrap or clamp; neither
        knows the other's."""
        value: str = self.section.take_choice("overflow", OVERFLOWS)
        allowed = FLOAT_OVERFLOWS if fmt.is_float else INTEGER_OVERFLOWS
        if value not in allowed:
            kind = "a floating-point format" if fmt.is_float else "an integer"
            raise self.section.error(
                f"key 'overflow' is '{value}', but the step rounds to {fmt.name}, {kind}, expected "
                f"{' or '.join(allowed)}",
                "overflow",
            )
        return value

    def rounding_gap(self, fmt: Format) -> int:
        gap: int = self.section.take_int("sticky_gap", 0, 64, 0)
        if gap and not fmt.is_float:
            raise self.section.error(
                f"key 'sticky_gap' is for floating-point results, not {fmt.name}", "sticky_gap"
            )
        return gap

    def subnormal_carry(self, fmt: Format) -> str:
        value: str = self.section.take_choice("subnormal_carry", ("kept", "lost"), "kept")
        if value == "lost" and not (fmt.is_float and fmt.has_zero):
            raise self.section.error(
                f"{fmt.name} has no subnormal numbers that could lose a carry", "subnormal_carry"
            )
        return value


STEPS = tuple(name[1:] for name in vars(StepReader) if name.startswith("_") and not name.startswith("__"))
