"""Pages on the number formats of spec/formats: bit fields, ranges, special codes, every code of the short
ones, users.

Everything comes from `golden.formats`: values are decoded code by code, in exact integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

from golden import yamlfile
from golden.catalog import architectures
from golden.explain.markdown import figure, link, table
from golden.explain.numbers import both_text, code_text, counted, decimal_text, power_text, short_text
from golden.number.formats import Format, Kind, Number, formats, get_format
from golden.paths import spec_folder
from golden.publish.families import Group, groups
from golden.publish.page import Page
from golden.publish.pictures.formats import bit_fields, number_line

LISTED_BITS = 8
"""Formats up to this width get a table of all codes."""
_GRID_BITS = 7
"""From this width on the table is a grid of 16 columns, and the list of all codes is folded away."""
_SPECIALS = {
    "ieee": "exponent all ones: fraction 0 is infinity, anything else a NaN",
    "all_ones_nan": "exponent and fraction all ones is the NaN; there is no infinity",
    "negative_zero_nan": "the code that would be -0 is the only NaN; there is no infinity and no -0",
    "none": "every code is a number",
}


def pages() -> list[Page]:
    """The page of every format and their index."""
    found = [Page(f"formats/{name}.md", name, partial(markdown, name)) for name in formats()]
    return [Page("formats/index.md", "Formats", index), *found]


def path_of(name: str) -> str:
    """Where the page of a format lies in the site."""
    return f"formats/{name}.md"


def format_link(name: str) -> str:
    """A link to the page of a format."""
    return link(name, path_of(name))


def index() -> str:
    """Returns the table of all formats."""
    head = [
        "Format",
        "Bits",
        "Stored in",
        "Fields",
        "Bias",
        "Largest",
        "Least normal",
        "Least above zero",
        "Special codes",
    ]
    rows = []
    for fmt in (get_format(name) for name in formats()):
        largest = short_text(fmt.decode(fmt.largest))
        if not fmt.is_float:
            fields = ("signed" if fmt.signed else "unsigned") + " integer"
            rows.append([format_link(fmt.name), fmt.bits, fmt.storage, fields, "", largest, "", 1, ""])
            continue
        low = [short_text(fmt.decode(code)) for code in (_least_normal(fmt), _least(fmt))]
        special = fmt.specials if fmt.specials != "none" else "none: all codes are numbers"
        rows.append(
            [format_link(fmt.name), fmt.bits, fmt.storage, _field_text(fmt), fmt.bias, largest, *low, special]
        )
    return "\n\n".join(
        [
            "# Formats",
            f"The number formats of the matrix units. Source: {_source()}",
            "Fields: sign, exponent and fraction bits, from the most to the least significant. "
            "Stored in: bits of the unsigned integer that carries one raw code in arrays and vector files.",
            table(head, rows),
            "What the words of the last column mean: "
            + "; ".join(f"`{name}`: {text}" for name, text in _SPECIALS.items() if name != "none")
            + ".",
        ]
    )


def markdown(name: str) -> str:
    """Returns the page of one format.

    Raises:
        UnknownNameError: no such format.
    """
    fmt = get_format(name)
    parts = [
        f"# {name}",
        _summary(fmt),
        figure(bit_fields(fmt, f"bits-{name}"), f"The bits of one {name} code."),
    ]
    parts += ["## Range", table(["Property", "Value", "Code"], _range_rows(fmt))]
    if fmt.is_float:
        parts += ["## Special codes", *_special_codes(fmt)]
    if fmt.ignored_low or fmt.ignored_high:
        parts += ["## Ignored bits", *_ignored(fmt)]
    parts += ["## Storage", _storage(fmt)]
    if fmt.bits <= LISTED_BITS:
        parts += ["## Every code", *_every_code(fmt)]
    parts += ["## Instructions", *_users(fmt)]
    return "\n\n".join(parts)


@lru_cache(maxsize=1)
def _source() -> str:
    return str(yamlfile.read(spec_folder() / "formats" / "formats.yaml").take("source", str)).strip()


# Properties -------------------------------------------------------------------------------------------------


def _least_normal(fmt: Format) -> int:
    if fmt.lone_zero:
        return 1 << fmt.ignored_low
    return 0 if not fmt.has_zero else 1 << (fmt.fraction_bits + fmt.ignored_low)


def _least(fmt: Format) -> int:
    """The code of the smallest number above zero."""
    return 1 << fmt.ignored_low if fmt.has_subnormals and fmt.fraction_bits else _least_normal(fmt)


def _one(fmt: Format) -> int:
    return fmt.bias << (fmt.fraction_bits + fmt.ignored_low)


def _field_text(fmt: Format) -> str:
    return f"{int(fmt.signed)} + {fmt.exponent_bits} + {fmt.fraction_bits}"


def _summary(fmt: Format) -> str:
    if not fmt.is_float:
        kind = "two's complement" if fmt.signed else "unsigned"
        return f"A {fmt.bits}-bit {kind} integer. Source: {_source()}"
    sign = "sign, " if fmt.signed else ""
    words = [
        f"A floating-point format of {counted(fmt.bits - fmt.ignored_low - fmt.ignored_high, 'bit')} that "
        f"count: {sign}{counted(fmt.exponent_bits, 'exponent bit')} (bias {fmt.bias}), "
        f"{counted(fmt.fraction_bits, 'fraction bit')}.",
        f"Special codes: {_SPECIALS[fmt.specials]}.",
    ]
    if not fmt.signed:
        words.append("It has no sign.")
    if not fmt.has_zero:
        words.append("It has no zero and no subnormal numbers: code 0 is a power of two as every other.")
    if fmt.lone_zero:
        words.append("It has no subnormal numbers: of exponent field 0, code 0 alone is a zero.")
    return " ".join([*words, f"Source: {_source()}"])


def _range_rows(fmt: Format) -> Iterator[list[str]]:
    if not fmt.is_float:
        least = 1 << (fmt.bits - 1) if fmt.signed else 0
        for what, code in (("largest", fmt.largest), ("least", least)):
            yield [what, both_text(fmt.decode(code)), code_text(fmt, code)]
        return
    named = [
        ("largest finite", fmt.largest),
        ("least normal" if fmt.has_subnormals else "least", _least_normal(fmt)),
    ]
    if fmt.has_subnormals and fmt.fraction_bits:
        named += [
            ("largest subnormal", _least_normal(fmt) - (1 << fmt.ignored_low)),
            ("least subnormal", _least(fmt)),
        ]
    named.append(("one", _one(fmt)))
    for what, code in named:
        yield [what, both_text(fmt.decode(code)), code_text(fmt, code)]
    yield ["epsilon (from 1 to the next number)", both_text(_epsilon(fmt)), ""]
    yield ["exponents of normal numbers", f"{fmt.min_exponent} to {fmt.max_exponent}", ""]


def _epsilon(fmt: Format) -> Number:
    after, one = fmt.decode(_one(fmt) + (1 << fmt.ignored_low)).value, fmt.decode(_one(fmt)).value
    step = after - one
    return Number(Kind.FINITE, 0, step.numerator, 0, step.denominator.bit_length() - 1)


def _special_codes(fmt: Format) -> Iterator[str]:
    rows = [
        [what, ", ".join(code_text(fmt, code) for code in codes)] for what, codes in _zero_and_infinity(fmt)
    ]
    nans = _nan_text(fmt)
    yield table(["What", "Codes"], [*rows, *([["NaN", nans]] if nans else [])]) if rows or nans else "None."
    if fmt.nan is not None and fmt.specials == "ieee":
        yield (
            f"{code_text(fmt, fmt.nan)} is the default quiet NaN. The highest fraction bit of a quiet NaN is "
            "set, of a signalling NaN clear. Which NaN word an instruction answers is not the format's "
            f"matter: see the {link('comparison', 'comparison.md')}."
        )


def _zero_and_infinity(fmt: Format) -> Iterator[tuple[str, list[int]]]:
    sign = 1 << fmt.sign_shift if fmt.signed else 0
    if fmt.has_zero:
        yield "+0" if fmt.signed else "0", [0]
        if fmt.has_negative_zero:
            yield "-0", [sign]
    if fmt.infinity is not None:
        yield "+Inf", [fmt.infinity]
        yield "-Inf", [fmt.infinity | sign]


def _nan_text(fmt: Format) -> str:
    if fmt.bits <= LISTED_BITS:
        return ", ".join(
            code_text(fmt, code) for code in range(1 << fmt.bits) if fmt.decode(code).kind == Kind.NAN
        )
    first, last = (fmt.infinity or 0) + (1 << fmt.ignored_low), (1 << fmt.sign_shift) - 1
    return (
        f"{code_text(fmt, first)} to {code_text(fmt, last)} and the same with the sign bit "
        f"({2 * ((1 << fmt.fraction_bits) - 1):,} words that differ in bits that count)"
    )


def _ignored(fmt: Format) -> Iterator[str]:
    if fmt.ignored_low:
        low = fmt.ignored_low
        yield (
            f"A register holds {fmt.storage} bits, of which the unit drops the {low} lowest before it "
            "classifies the number. They change nothing in a finite number: it is cut, not rounded. In the "
            "codes of infinity and NaN they do:"
        )
        infinity = fmt.infinity or 0
        codes = [_one(fmt) | (1 << low) - 1, infinity | 1, infinity | (1 << low) - 1, infinity | 1 << low]
        wide = get_format("f32")
        yield table(
            ["Code", "Read as f32", f"Read as {fmt.name}"],
            [
                [code_text(fmt, code), both_text(wide.decode(code)), both_text(fmt.decode(code))]
                for code in codes
            ],
        )
        yield "A NaN whose payload lies in the ignored bits alone becomes an infinity."
    if fmt.ignored_high:
        top = 1 << (fmt.bits - 1)
        codes = [_one(fmt), _one(fmt) | top, top]
        yield "The unit drops the highest bit: it is no sign."
        yield table(
            ["Code", "Read as"], [[code_text(fmt, code), both_text(fmt.decode(code))] for code in codes]
        )


def _storage(fmt: Format) -> str:
    text = (
        f"In arrays and vector files one element is one unsigned integer of {fmt.storage} bits "
        f"(`uint{fmt.storage}`)"
    )
    if fmt.bits < fmt.storage:
        text += f"; the code stands in the lowest {counted(fmt.bits, 'bit')}, the others must be zero"
    return text + ". How registers pack them is shown on the pages of the instructions, under fragments."


# Every code -------------------------------------------------------------------------------------------------


def _every_code(fmt: Format) -> Iterator[str]:
    if fmt.is_float and fmt.name != "ue8m0":
        yield figure(number_line(fmt, f"line-{fmt.name}"), f"The numbers of {fmt.name}.")
    if fmt.bits < _GRID_BITS:
        yield table(["Code", "Bits", "Decimal", "m*2^e"], _code_rows(fmt))
        return
    yield "Row: high half of the code; column: low half. Values that would need many digits stand as m*2^e."
    yield table(
        ["", *(f"`_{low:x}`" for low in range(16))],
        (
            [f"**`{high:x}_`**", *(short_text(fmt.decode(high << 4 | low)) for low in range(16))]
            for high in range(16)
        ),
    )
    yield f"<details><summary>All {1 << fmt.bits} codes with their bits and exact values</summary>"
    yield table(["Code", "Bits", "Decimal", "m*2^e"], _code_rows(fmt))
    yield "</details>"


def _code_rows(fmt: Format) -> Iterable[list[str]]:
    for code in range(1 << fmt.bits):
        number = fmt.decode(code)
        yield [code_text(fmt, code), f"`{_spaced(fmt, code)}`", decimal_text(number), power_text(number)]


def _spaced(fmt: Format, code: int) -> str:
    """The bits of a code, a space between the fields."""
    bits = f"{code:0{fmt.bits}b}"
    if not fmt.is_float:
        return bits
    cuts = [fmt.ignored_high, int(fmt.signed), fmt.exponent_bits, fmt.fraction_bits]
    words, start = [], 0
    for width in cuts:
        words.append(bits[start : start + width])
        start += width
    return " ".join(word for word in words if word)


# Users ------------------------------------------------------------------------------------------------------


def _users(fmt: Format) -> Iterator[str]:
    """One row for the groups of one name and role, with a link for each architecture that has it."""
    found: dict[tuple[str, str], list[Group]] = {}
    for architecture in architectures.architectures():
        for group in groups(architecture):
            roles = _roles(group, fmt)
            if roles:
                found.setdefault((group.slug, roles), []).append(group)
    rows = [
        [
            same[0].title,
            roles,
            ", ".join(link(architectures.get_architecture(g.architecture).title, g.path) for g in same),
        ]
        for (_, roles), same in found.items()
    ]
    yield table(["Instructions", "Operands", "On"], rows) if rows else "No catalogued instruction uses it."


def _roles(group: Group, fmt: Format) -> str:
    """The operands that have the format in some variant of a group: "a, b"."""
    operands = group.representative.formats
    found = [name for name in operands if any(ins.formats[name].name == fmt.name for ins in group.variants)]
    return ", ".join(found)
