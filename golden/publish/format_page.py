"""Pages on the number formats of spec/formats: bit fields, ranges, special codes, every code of the short
ones, users.

Everything comes from `golden.formats`: values are decoded code by code, in exact integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

from golden import yamlfile
from golden.catalog import architectures
from golden.explain.markdown import figure, link
from golden.explain.numbers import both_text, code_text, decimal_text, power_text, short_text
from golden.number.formats import Format, Kind, Number, formats, get_format
from golden.paths import spec_folder
from golden.publish.families import Group, groups
from golden.publish.pictures.formats import bit_fields, number_line
from golden.publish.templating import Page, render

LISTED_BITS = 8
"""Formats up to this width get a table of all codes."""
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
    rows = [_index_row(get_format(name)) for name in formats()]
    return render("formats", rows=rows, source=_source(), specials=_SPECIALS)


def _index_row(fmt: Format) -> list[object]:
    largest = short_text(fmt.decode(fmt.largest))
    if not fmt.is_float:
        fields = ("signed" if fmt.signed else "unsigned") + " integer"
        return [format_link(fmt.name), fmt.bits, fmt.storage, fields, "", largest, "", 1, ""]
    low = [short_text(fmt.decode(code)) for code in (_least_normal(fmt), _least(fmt))]
    fields = f"{int(fmt.signed)} + {fmt.exponent_bits} + {fmt.fraction_bits}"
    special = fmt.specials if fmt.specials != "none" else "none: all codes are numbers"
    return [format_link(fmt.name), fmt.bits, fmt.storage, fields, fmt.bias, largest, *low, special]


def markdown(name: str) -> str:
    """Returns the page of one format.

    Raises:
        UnknownNameError: no such format.
    """
    fmt = get_format(name)
    listed = fmt.bits <= LISTED_BITS
    pictured = listed and fmt.is_float and fmt.name != "ue8m0"
    # From this width on the table is a grid of 16 columns, and the list of all codes is folded away.
    grid_bits = 7
    return render(
        "format",
        fmt=fmt,
        source=_source(),
        specials=_SPECIALS,
        read_bits=fmt.bits - fmt.ignored_low - fmt.ignored_high,
        bit_fields=figure(bit_fields(fmt, f"bits-{name}"), f"The bits of one {name} code."),
        ranges=list(_range_rows(fmt)),
        special_codes=list(_special_codes(fmt)) if fmt.is_float else [],
        default_nan=code_text(fmt, fmt.nan) if fmt.nan is not None else "",
        ignored_low=_ignored_low(fmt) if fmt.ignored_low else [],
        ignored_high=_ignored_high(fmt) if fmt.ignored_high else [],
        number_line=figure(number_line(fmt, f"line-{name}"), f"The numbers of {name}.") if pictured else "",
        codes=list(_code_rows(fmt)) if listed else [],
        grid=list(_grid(fmt)) if listed and fmt.bits >= grid_bits else [],
        grid_head=["", *(f"`_{low:x}`" for low in range(16))],
        users=_users(fmt),
    )


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


def _special_codes(fmt: Format) -> Iterator[list[str]]:
    for what, codes in _zero_and_infinity(fmt):
        yield [what, ", ".join(code_text(fmt, code) for code in codes)]
    if nans := _nan_text(fmt):
        yield ["NaN", nans]


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


def _ignored_low(fmt: Format) -> list[list[str]]:
    """Codes that differ in bits that the unit drops, as the register holds them and as the unit reads
    them."""
    low, infinity, wide = fmt.ignored_low, fmt.infinity or 0, get_format("f32")
    codes = [_one(fmt) | (1 << low) - 1, infinity | 1, infinity | (1 << low) - 1, infinity | 1 << low]
    return [[code_text(fmt, code), *(both_text(each.decode(code)) for each in (wide, fmt))] for code in codes]


def _ignored_high(fmt: Format) -> list[list[str]]:
    top = 1 << (fmt.bits - 1)
    codes = [_one(fmt), _one(fmt) | top, top]
    return [[code_text(fmt, code), both_text(fmt.decode(code))] for code in codes]


# Every code -------------------------------------------------------------------------------------------------


def _grid(fmt: Format) -> Iterator[list[str]]:
    """The values in 16 columns, by the low half of the code."""
    for high in range(16):
        yield [f"**`{high:x}_`**", *(short_text(fmt.decode(high << 4 | low)) for low in range(16))]


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


def _users(fmt: Format) -> list[list[str]]:
    """One row for the groups of one name and role, with a link for each architecture that has it."""
    found: dict[tuple[str, str], list[Group]] = {}
    for architecture in architectures.architectures():
        for group in groups(architecture):
            if roles := _roles(group, fmt):
                found.setdefault((group.slug, roles), []).append(group)
    return [
        [
            same[0].title,
            roles,
            ", ".join(link(architectures.get_architecture(g.architecture).title, g.path) for g in same),
        ]
        for (_, roles), same in found.items()
    ]


def _roles(group: Group, fmt: Format) -> str:
    """The operands that have the format in some variant of a group: "a, b"."""
    operands = group.representative.formats
    found = [name for name in operands if any(ins.formats[name].name == fmt.name for ins in group.variants)]
    return ", ".join(found)
