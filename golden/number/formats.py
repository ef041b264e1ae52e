"""Number formats: field widths, special codes, and exact decoding of one code to integers.

Source: spec/formats/formats.yaml. `decode` is the scalar truth in exact integers; `to_float`/`from_float`
convert whole arrays, through ml_dtypes where it has the format.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import yamlfile
from golden.errors import OperandError, UnknownNameError, nearest
from golden.number.arrays import codes as codes_of
from golden.number.arrays import plain, wrong_dtype
from golden.number.frozen import hashed_once
from golden.paths import spec_folder
from golden.values import Choice, Flag, Integer, Key, Mapping, Variants

SPECIALS = ("ieee", "all_ones_nan", "negative_zero_nan", "none")


class Kind(IntEnum):
    """What a number is. ZERO is kept apart from FINITE because zeros do not take part in alignment."""

    ZERO = 0
    FINITE = 1
    INFINITY = 2
    NAN = 3


@dataclass(frozen=True)
class Number:
    """One exact number: (-1)**sign * significand * 2**(exponent - fraction_bits).

    `exponent` is the one that alignment compares: the operand's unbiased exponent (a subnormal keeps the
    format's minimum exponent and a significand below 1), the sum of two exponents for a product.
    """

    kind: Kind
    sign: int = 0
    significand: int = 0
    exponent: int = 0
    fraction_bits: int = 0
    payload: int = 0
    """The fraction of a NaN, aligned left in 64 bits, for units that hand payloads on to other formats."""
    sticky: int = 0
    """1 where bits below the significand were cut and their OR is carried along (`cut: sticky_or`)."""

    @property
    def lsb_exponent(self) -> int:
        """Exponent of the significand's least significant bit."""
        return self.exponent - self.fraction_bits

    @property
    def value(self) -> Fraction:
        """The exact value. Raises OperandError for infinities and NaNs."""
        if self.kind >= Kind.INFINITY:
            raise OperandError(f"{self.kind.name.lower()} has no rational value")
        signed, shift = -self.significand if self.sign else self.significand, self.lsb_exponent
        return Fraction(signed << shift) if shift >= 0 else Fraction(signed, 1 << -shift)


@hashed_once
@dataclass(frozen=True)
class Format:
    """One number format. Widths in bits; `storage` is the width of the NumPy unsigned integer that carries
    a code."""

    name: str
    is_float: bool
    storage: int
    exponent_bits: int = 0
    fraction_bits: int = 0
    bias: int = 0
    specials: str = "none"
    signed: bool = True
    has_zero: bool = True
    ignored_low: int = 0
    ignored_high: int = 0
    integer_bits: int = 0
    subnormals: bool = True

    def __hash__(self) -> int:
        """Of two fields, as `==` compares all."""
        return hash((self.name, self.storage))

    @cached_property
    def bits(self) -> int:
        """Width of one element as the registers hold it (tf32 fills 32 bits; ue4m3 fills 8)."""
        if not self.is_float:
            return self.integer_bits
        return (
            int(self.signed) + self.exponent_bits + self.fraction_bits + self.ignored_low + self.ignored_high
        )

    @cached_property
    def ignored(self) -> int:
        """The bits of a code that do not count: a register has them in addition to the format's own."""
        if not self.is_float:
            return 0
        own = (1 << (self.bits - self.ignored_high)) - (1 << self.ignored_low)
        return (1 << self.bits) - 1 & ~own

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of raw codes."""
        return np.dtype(f"u{self.storage // 8}")

    @property
    def has_negative_zero(self) -> bool:
        """Whether a code means -0."""
        return self.is_float and self.signed and self.has_zero and self.specials != "negative_zero_nan"

    @cached_property
    def has_subnormals(self) -> bool:
        """Whether exponent field 0 means numbers without a hidden bit; without, every code but that of a zero
        has one."""
        return self.has_zero and self.subnormals

    @property
    def lone_zero(self) -> bool:
        """Whether code 0 is a zero and all others of exponent field 0 are normal numbers, so that the power
        of two which the code would be is none."""
        return self.has_zero and not self.subnormals

    @cached_property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number (and of every subnormal)."""
        return (1 if self.has_subnormals else 0) - self.bias

    @cached_property
    def max_exponent(self) -> int:
        """Exponent of the largest finite number."""
        top = (1 << self.exponent_bits) - 1
        if self.specials == "ieee" or (self.specials == "all_ones_nan" and self.fraction_bits == 0):
            top -= 1
        return top - self.bias

    @cached_property
    def sign_shift(self) -> int:
        """Bit position of the sign, or -1 for a format without one."""
        return (
            self.exponent_bits + self.fraction_bits + self.ignored_low
            if self.signed and self.is_float
            else -1
        )

    @cached_property
    def infinity(self) -> int | None:
        """Code of +infinity, or None where the format has none."""
        if self.specials != "ieee":
            return None
        return ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.ignored_low)

    @cached_property
    def largest(self) -> int:
        """Code of the largest finite number."""
        if not self.is_float:
            return (1 << (self.integer_bits - int(self.signed))) - 1
        top = 1 << (self.exponent_bits + self.fraction_bits)
        codes = {"ieee": top - (1 << self.fraction_bits) - 1, "all_ones_nan": top - 2}
        return codes.get(self.specials, top - 1) << self.ignored_low

    @property
    def least(self) -> int:
        """Code of the least number of an integer format: the most negative one, or zero."""
        return 1 << (self.integer_bits - 1) if self.signed else 0

    @cached_property
    def nan(self) -> int | None:
        """Code of the default quiet NaN (positive), or None where the format has none."""
        if self.specials == "ieee":
            quiet = (((1 << self.exponent_bits) - 1) << self.fraction_bits) | (
                1 << max(self.fraction_bits - 1, 0)
            )
            return quiet << self.ignored_low
        if self.specials == "all_ones_nan":
            return ((1 << (self.exponent_bits + self.fraction_bits)) - 1) << self.ignored_low
        return 1 << self.sign_shift if self.specials == "negative_zero_nan" else None

    def decode(self, code: int) -> Number:
        """Decodes one raw code (a Python integer of `storage` bits) exactly.
        Ignored bits are dropped first."""
        if not self.is_float:
            return self._decode_integer(code)
        sign = (code >> self.sign_shift) & 1 if self.signed else 0
        fields = (code >> self.ignored_low) & ((1 << (self.exponent_bits + self.fraction_bits)) - 1)
        exponent, fraction = fields >> self.fraction_bits, fields & ((1 << self.fraction_bits) - 1)
        kind = self._special_kind(sign, fields)
        if kind is not None:
            return Number(
                kind, sign, payload=fraction << (64 - self.fraction_bits) if self.fraction_bits else 0
            )
        if exponent == 0 and (self.has_subnormals or (fraction == 0 and self.has_zero)):
            kind = Kind.FINITE if fraction else Kind.ZERO
            return Number(kind, sign, fraction, self.min_exponent, self.fraction_bits)
        significand = fraction | 1 << self.fraction_bits
        return Number(Kind.FINITE, sign, significand, exponent - self.bias, self.fraction_bits)

    def _decode_integer(self, code: int) -> Number:
        value = code & ((1 << self.integer_bits) - 1)
        if self.signed and value >> (self.integer_bits - 1):
            value -= 1 << self.integer_bits
        return Number(Kind.FINITE if value else Kind.ZERO, int(value < 0), abs(value))

    def _special_kind(self, sign: int, fields: int) -> Kind | None:
        all_ones = (1 << (self.exponent_bits + self.fraction_bits)) - 1
        if self.specials == "ieee" and fields >> self.fraction_bits == (1 << self.exponent_bits) - 1:
            return Kind.NAN if fields & ((1 << self.fraction_bits) - 1) else Kind.INFINITY
        if self.specials == "all_ones_nan" and fields == all_ones:
            return Kind.NAN
        if self.specials == "negative_zero_nan" and sign and fields == 0:
            return Kind.NAN
        return None

    @property
    def library_name(self) -> str | None:
        """The type of ml_dtypes whose bits are the codes; None where there is none, or it has other numbers
        (ue4m3 drops a bit that float8_e4m3fn has)."""
        known = self == _formats().get(self.name) and not self.ignored_high  # no unit's own bf16
        return _ML_DTYPES.get(self.name) if known else None

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Whether an array of that type holds numbers of the format, bit for bit."""
        numpys = self.name in ("f16", "f32", "f64") and dtype == np.dtype(f"f{self.storage // 8}")
        return numpys or dtype.name == self.library_name

    def check(self, codes: npt.NDArray[Any], argument: str) -> None:
        """Refuses arrays of another dtype and codes with bits outside a 1-, 4- or 6-bit format.

        Raises:
            DTypeError: the array is not of the format's unsigned integer dtype.
            OperandError: an element has bits above the format's width; the message gives its index.
        """
        if codes.dtype != self.dtype:
            raise wrong_dtype(codes, self, argument)
        if self.bits < self.storage and codes.size and codes.max() >> self.bits:
            index = tuple(int(i) for i in np.argwhere(codes >> self.bits)[0])
            raise OperandError(
                f"argument '{argument}'{list(index)} is {int(codes[index]):#x}, "
                f"expected a {self.bits}-bit {self.name} code below {1 << self.bits:#x}"
            )


@lru_cache(maxsize=1)
def _formats() -> dict[str, Format]:
    document = yamlfile.read(spec_folder() / "formats" / "formats.yaml")
    document.take("source", str)
    table = document.take("formats", yamlfile.Section)
    document.done()
    return {name: build_format(name, table.take(name, yamlfile.Section)) for name in table}


_STORAGE = Key("storage", Choice((8, 16, 32, 64)), "bits of the NumPy integer that holds a code")
_SIGNED = Key("signed", Flag(), "whether it has a sign; without one, a negative result loses its sign", True)
FORMAT = Variants(
    "kind",
    "a floating-point number or an integer",
    {
        "float": Mapping(
            (
                _STORAGE,
                _SIGNED,
                Key("exponent_bits", Integer(1, 11), "floats: the width of e"),
                Key("fraction_bits", Integer(0, 52), "floats: the width of f"),
                Key("bias", Integer(-64, 1087), "floats: the exponent bias"),
                Key(
                    "specials",
                    Choice(SPECIALS),
                    "floats: `ieee` (infinities and NaNs), `all_ones_nan` (a NaN if all exponent and "
                    "fraction bits are 1), `negative_zero_nan` (the code of -0 is the NaN), or "
                    "`none` (every code is a number)",
                ),
                Key(
                    "zero",
                    Flag(),
                    "floats: `false` if there is no zero and no subnormal number, as in ue8m0; smaller "
                    "results then become code 0",
                    True,
                ),
                Key(
                    "ignored_low",
                    Integer(0, 32),
                    "floats: how many low bits of a code the unit does not read",
                    0,
                ),
                Key("ignored_high", Integer(0, 8), "floats: the same for high bits", 0),
                Key(
                    "subnormals",
                    Flag(),
                    "floats: `false` if numbers with exponent field 0 have the hidden bit too; code 0 is "
                    "still zero (and, with a sign, the code of -0)",
                    True,
                ),
            )
        ),
        "integer": Mapping(
            (
                _STORAGE,
                _SIGNED,
                Key("bits", Integer(1, 64), "integers: the width; at most 32 for a factor (a, b), 63 for c"),
            )
        ),
    },
)
"""What a file says about a number format."""


def build_format(name: str, section: yamlfile.Section) -> Format:
    """Builds a Format from its YAML mapping; raises SpecError for unknown keys,
    wrong types and impossible widths."""
    given = FORMAT.check(section, section.error)
    storage, signed, is_float = given["storage"], given["signed"], given["kind"] == "float"
    if is_float:
        built = Format(
            name,
            True,
            storage,
            given["exponent_bits"],
            given["fraction_bits"],
            given["bias"],
            given["specials"],
            signed,
            given["zero"],
            given["ignored_low"],
            given["ignored_high"],
            subnormals=given["subnormals"],
        )
    else:
        built = Format(name, False, storage, signed=signed, integer_bits=given["bits"])
    if built.specials in ("ieee", "negative_zero_nan") and not (
        signed and (built.fraction_bits or built.specials != "ieee")
    ):
        raise section.error(
            f"specials '{built.specials}' need a sign, and 'ieee' a fraction bit to tell infinity from NaN",
            "specials",
        )
    if not (built.subnormals or built.has_zero):
        raise section.error(
            "key 'subnormals' is false, but a format without a zero has none anyway", "subnormals"
        )
    if built.bits > storage:
        raise section.error(f"format '{name}' needs {built.bits} bits, more than its storage of {storage}")
    return built


def formats() -> tuple[str, ...]:
    """Returns the names of every format."""
    return tuple(_formats())


def get_format(name: str) -> Format:
    """Returns the format called `name`; raises UnknownNameError naming near ones."""
    try:
        return _formats()[name]
    except KeyError:
        raise UnknownNameError(f"unknown format '{name}'{_meant(name)}") from None


def _meant(name: str) -> str:
    """What somebody meant who wrote the name of no format: the end of a message."""
    from golden.number.format_words import format_word  # it reads formats itself

    word = format_word(name)
    return nearest(name, _formats()) if word is None else f", here it is called {word}"


_ML_DTYPES = {
    "bf16": "bfloat16",
    "e5m2": "float8_e5m2",
    "e4m3": "float8_e4m3fn",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e3m2": "float6_e3m2fn",
    "e2m3": "float6_e2m3fn",
    "e2m1": "float4_e2m1fn",
    "ue8m0": "float8_e8m0fnu",
    "ue4m3": "float8_e4m3fn",
}


def library_names() -> dict[str, str]:
    """The names that ml_dtypes has for formats, each with its format here."""
    return {library: name for name, library in reversed(_ML_DTYPES.items())}  # of two formats the plainer


def native_dtype(fmt: Format) -> np.dtype[Any] | None:
    """The dtype of NumPy or ml_dtypes whose bits are codes of the format (tf32: float32); None where there is
    none except that of the codes."""
    if fmt.name in ("f64", "f32", "f16"):
        return np.dtype(f"f{fmt.storage // 8}")
    if fmt.name == "tf32":
        return np.dtype("f4")
    if not fmt.is_float:
        return np.dtype(f"i{fmt.storage // 8}") if fmt.signed and fmt.bits == fmt.storage else None
    if fmt.name not in _ML_DTYPES:
        return None
    import ml_dtypes  # imported here: it doubles the start-up time and only conversions need it

    native: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[fmt.name]))
    return native


def to_float(fmt: Format | str, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Returns the values of raw codes as float64. They are exact, except in a format of your own with more
    bits than float64, whose values are rounded to nearest even (too large ones to infinity). NaN payloads are
    not kept."""
    fmt = get_format(fmt) if isinstance(fmt, str) else fmt
    raw = codes_of(codes, fmt, "codes")
    if not fmt.is_float:
        unused = np.uint64(64 - fmt.integer_bits)
        high = raw.astype(np.uint64) << unused if fmt.integer_bits else np.zeros_like(raw, np.uint64)
        whole = high.view(np.int64) >> unused.astype(np.int64) if fmt.signed else high >> unused
        return np.asarray(whole, dtype=np.float64)
    raw = raw & fmt.dtype.type((1 << fmt.bits) - 1 & ~fmt.ignored)
    if fmt.name in _ML_DTYPES or fmt.name in ("f64", "f32", "tf32", "f16"):
        with np.errstate(invalid="ignore"):
            return np.asarray(raw.view(native_dtype(fmt)).astype(np.float64))
    # Fraction bits up to which a double holds every significand.
    doubles_fraction = 52
    if fmt.fraction_bits <= doubles_fraction:
        return _doubles(fmt, raw.astype(np.uint64))
    different, place = np.unique(raw, return_inverse=True)
    values = np.array([_float_value(fmt.decode(int(code))) for code in different], np.float64)
    return np.asarray(values[place.reshape(raw.shape)])


def _doubles(fmt: Format, codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """The values of `Format.decode` as doubles, all at once: significands are exact, and the one rounding is
    that of ldexp where a value lies beyond the normal doubles."""
    one, point = np.uint64(1), np.uint64(fmt.fraction_bits)
    every = np.uint64((1 << fmt.exponent_bits + fmt.fraction_bits) - 1)
    fields = codes >> np.uint64(fmt.ignored_low) & every
    exponents, fractions = fields >> point, fields & ((one << point) - one)
    least = (exponents == 0) & (fmt.has_subnormals | ((fractions == 0) & fmt.has_zero))
    significands = np.where(least, fractions, fractions | one << point)
    places = np.where(least, fmt.min_exponent, exponents.astype(np.int32) - fmt.bias) - fmt.fraction_bits
    with np.errstate(over="ignore", under="ignore"):
        values = np.ldexp(significands.astype(np.float64), places.astype(np.int32))
    negative = (codes >> np.uint64(max(fmt.sign_shift, 0)) & one).astype(np.bool_) & fmt.signed
    if fmt.specials == "ieee":
        values[exponents == every >> point] = np.inf
        values[(exponents == every >> point) & (fractions != 0)] = np.nan
    elif fmt.specials == "all_ones_nan":
        values[fields == every] = np.nan
    elif fmt.specials == "negative_zero_nan":
        values[negative & (fields == 0)] = np.nan
    return np.asarray(np.where(negative & ~np.isnan(values), -values, values))


def _float_value(number: Number) -> float:
    if number.kind == Kind.NAN:
        return float("nan")
    try:
        magnitude = float("inf") if number.kind == Kind.INFINITY else float(abs(number.value))
    except OverflowError:  # it rounds to beyond the largest double
        magnitude = float("inf")
    return -magnitude if number.sign else magnitude


def from_float(fmt: Format | str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Rounds floats to nearest-even codes of `fmt` (integers: to nearest, must be in range).

    Overflow does what ml_dtypes and NumPy do for the format. tf32 keeps 10 fraction bits,
    the low 13 are zero.

    Raises:
        OperandError: an integer format cannot hold a value,
            or an unsigned float format is given a negative one.
    """
    fmt = get_format(fmt) if isinstance(fmt, str) else fmt
    wide = plain(values, "values").astype(np.float64)
    if not fmt.is_float:
        return _integers_from_float(fmt, wide)
    if not fmt.signed and (wide < 0).any():
        raise OperandError(f"{fmt.name} has no sign, but a value is {float(wide[wide < 0].flat[0])}")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if fmt.name in ("f64", "f32", "f16"):
            return np.asarray(wide.astype(native_dtype(fmt))).view(fmt.dtype)
        if fmt.name == "tf32":
            return _round_tf32(_round_to_odd_f32(wide))
        if fmt.name in _ML_DTYPES:
            return np.asarray(_round_to_odd_f32(wide).astype(native_dtype(fmt))).view(
                np.uint8 if fmt.storage == 8 else fmt.dtype
            )
    from golden.number.rounding import encode_fraction

    return np.array([encode_fraction(fmt, float(v)) for v in wide.ravel()], dtype=fmt.dtype).reshape(
        wide.shape
    )


def _integers_from_float(fmt: Format, wide: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    low, high = (-(1 << (fmt.bits - 1)), fmt.largest) if fmt.signed else (0, fmt.largest)
    rounded = np.rint(wide)
    if not ((rounded >= low) & (rounded <= high)).all():
        raise OperandError(f"a value is outside {fmt.name}'s range {low}..{high}")
    if fmt.bits > 53:  # more than a float resolves: its ends are beyond int64
        mask, top = (1 << fmt.bits) - 1, fmt.largest
        return np.array([min(int(x), top) & mask for x in rounded.ravel()], fmt.dtype).reshape(wide.shape)
    return np.asarray((rounded.astype(np.int64) & ((1 << fmt.bits) - 1)).astype(fmt.dtype))


def _round_to_odd_f32(wide: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """float64 to float32 rounding to odd, so that a second rounding to fewer bits is the same
    as a single one."""
    near = wide.astype(np.float32)
    exact = near.astype(np.float64)
    bits = near.view(np.uint32).copy()
    inexact = np.isfinite(wide) & (exact != wide)
    bits[...] = np.where(inexact & (np.abs(exact) > np.abs(wide)), bits - 1, bits)
    bits[...] = np.where(inexact, bits | 1, bits)
    return bits.view(np.float32)


def _round_tf32(single: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    bits = single.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0xFFF + ((bits >> np.uint64(13)) & np.uint64(1))) & np.uint64(0xFFFFE000)
    quiet = (bits & np.uint64(0x80000000)) | np.uint64(0x7FC00000)
    return np.where(np.isnan(single), quiet, rounded).astype(np.uint32)
