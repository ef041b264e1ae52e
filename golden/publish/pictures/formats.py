"""Number formats: bit fields with bit numbers, and all numbers of a small format on a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import log2

from golden.number.formats import Format, Kind, Number
from golden.publish.pictures import bars, svg

_LEFT, _RIGHT = 24.0, svg.WIDTH - 24.0
_SUBNORMAL = {
    "class": "mg-accent-line",
    "fill": "none",
    "stroke": svg.STYLES["accent"]["stroke"],
    "stroke-width": 1.6,
}
_Position = Callable[[Fraction], float]


def bit_fields(fmt: Format, name: str = "bits") -> str:
    """Returns the fields of a format with their bit numbers as SVG; name: prefix of its ids."""
    bit = min(34.0, (_RIGHT - _LEFT) / fmt.bits)
    parts: list[str] = []
    numbers: list[tuple[float, int]] = []
    x, top, high = _LEFT, 22.0, fmt.bits - 1
    for bits, style, words in bars.format_fields(fmt):
        width = bits * bit
        parts.append(svg.rect(x, top, width, 30, style))
        if style == "lost":
            parts.append(bars.hatch(x, top, width, 30))
        ticks = "".join(f"M{svg.number(x + i * bit)} {svg.number(top)}v5" for i in range(1, bits))
        if ticks:
            parts.append(svg.path(ticks, stroke_width=0.6))
        numbers += _bit_numbers(x, bit, bits, high)
        fitting = next((text for text in words if svg.width_of(text, 12) <= width - 4), None)
        if fitting and style != "lost":
            parts.append(svg.text(x + width / 2, top + 21, fitting, anchor="middle", font_size=12))
        x, high = x + width, high - bits
    parts += _apart(numbers, top - 6)
    caption = _field_words(fmt)
    lines = svg.wrap(caption, _RIGHT - _LEFT)
    parts += [svg.text(_LEFT, top + 50 + 15 * i, line, "muted") for i, line in enumerate(lines)]
    label = f"Bit fields of {fmt.name}: {caption}"
    return svg.document(svg.WIDTH, top + 44 + 15 * len(lines), parts, name, label)


def _bit_numbers(x: float, bit: float, bits: int, high: int) -> list[tuple[float, int]]:
    """Places and numbers of the highest and of the lowest bit of a field."""
    ends = (
        [(x + bit / 2, high)]
        if bits == 1
        else [(x + bit / 2, high), (x + (bits - 0.5) * bit, high - bits + 1)]
    )
    return ends[:1] if bits > 1 and bits * bit < 30 else ends


def _apart(numbers: list[tuple[float, int]], y: float) -> list[str]:
    """The numbers of bits, without those that would touch the one before (in f64 the highest of exponent
    and fraction)."""
    found: list[str] = []
    right = 0.0
    for place, number in numbers:
        half = svg.width_of(str(number), 10) / 2
        if place - half > right + 2:
            found.append(svg.text(place, y, str(number), "muted", anchor="middle", font_size=10))
            right = place + half
    return found


def _field_words(fmt: Format) -> str:
    if not fmt.is_float:
        return f"{fmt.bits}-bit integer, " + ("two's complement" if fmt.signed else "unsigned")
    fields = [
        f"{int(fmt.signed)} sign bit" if fmt.signed else "no sign",
        f"{fmt.exponent_bits} exponent bits (bias {fmt.bias})",
    ]
    fields.append(f"{fmt.fraction_bits} fraction bits" if fmt.fraction_bits else "no fraction")
    if fmt.ignored_low:
        fields.append(f"the lowest {fmt.ignored_low} bits are ignored")
    if fmt.ignored_high:
        bits = "bit is" if fmt.ignored_high == 1 else f"{fmt.ignored_high} bits are"
        fields.append(f"the highest {bits} ignored")
    return ", ".join(fields)


# Number lines -----------------------------------------------------------------------------------------------


def number_line(fmt: Format, name: str = "line") -> str:
    """Returns the numbers of a format on lines as SVG: all of them, by powers of two, and those near zero;
    special codes below.

    Formats of more than 8 bits show their range alone. name: prefix of its ids.
    """
    small = fmt.bits <= 8
    numbers = [fmt.decode(code) for code in range(1 << fmt.bits)] if small else []
    finite = sorted({number.value for number in numbers if number.kind <= Kind.FINITE})
    sheet = _Lines(fmt)
    if small and fmt.has_zero:  # powers of two alone would all but one lie at the left end
        _all_numbers(sheet, finite)
    if fmt.is_float:
        _powers(sheet, finite)
        if small and fmt.has_subnormals and fmt.fraction_bits:
            _near_zero(sheet, finite)
    if small:
        _specials(sheet, numbers)
    return svg.document(svg.WIDTH, sheet.y, sheet.parts, name, f"Numbers of {fmt.name}")


class _Lines:
    """The lines drawn so far, from top to bottom."""

    def __init__(self, fmt: Format) -> None:
        self.fmt, self.y = fmt, 8.0
        self.parts: list[str] = []

    @property
    def least_normal(self) -> Fraction:
        return Fraction(2) ** self.fmt.min_exponent

    def line(
        self, title: str, values: Iterable[Fraction], at: _Position, labels: Iterable[tuple[Fraction, str]]
    ) -> None:
        """One axis with a tick for each value, subnormals in their own colour, and labels where they do
        not overlap."""
        axis = self.y + 40
        self.parts.append(svg.text(_LEFT, self.y + 12, title, font_weight="bold"))
        self.parts.append(svg.line([(_LEFT - 8, axis), (_RIGHT + 8, axis)]))
        normal: list[str] = []
        subnormal: list[str] = []
        for value in values:
            is_small = self.fmt.is_float and self.fmt.has_subnormals and 0 < abs(value) < self.least_normal
            (subnormal if is_small else normal).append(f"M{svg.number(at(value))} {svg.number(axis - 9)}v18")
        if normal:
            self.parts.append(svg.path("".join(normal), stroke_width=0.9))
        if subnormal:
            self.parts.append(svg.path("".join(subnormal), None, **_SUBNORMAL))
        self._labels(axis + 24, at, labels)
        self.y = axis + 40

    def _labels(self, y: float, at: _Position, labels: Iterable[tuple[Fraction, str]]) -> None:
        """The labels in order of importance; one that would touch an earlier one is left out."""
        taken: list[tuple[float, float]] = []
        for value, words in labels:
            half = svg.width_of(words, 10) / 2 + 3
            x = min(max(at(value), _LEFT - 16 + half), _RIGHT + 16 - half)
            if all(x + half <= left or x - half >= right for left, right in taken):
                taken.append((x - half, x + half))
                self.parts.append(svg.text(x, y, words, "muted", anchor="middle", font_size=10))


def _linear(low: Fraction, high: Fraction) -> _Position:
    return lambda value: _LEFT + float((value - low) / (high - low)) * (_RIGHT - _LEFT)


def _all_numbers(sheet: _Lines, finite: list[Fraction]) -> None:
    low, high = finite[0], finite[-1]
    ends = [Fraction(0), low, high]
    others = sorted(finite, key=lambda value: (-abs(value), value)) if len(finite) > 40 else finite
    labels = [(value, _plain(value)) for value in [*ends, *others] if low <= value <= high]
    sheet.line(f"All {len(finite)} numbers, linear", finite, _linear(low, high), labels)


def _powers(sheet: _Lines, finite: list[Fraction]) -> None:
    """Positive numbers on a logarithmic axis; of a large format the range alone."""
    fmt = sheet.fmt
    largest = fmt.decode(fmt.largest).value
    least = Fraction(2) ** (fmt.min_exponent - (fmt.fraction_bits if fmt.has_subnormals else 0))
    low, high = log2(least), _log2(largest)

    def at(value: Fraction) -> float:
        return _LEFT + (_log2(value) - low) / max(high - low, 1e-9) * (_RIGHT - _LEFT)

    labels = [
        (least, f"2^{_power(least)}"),
        (largest, _plain(largest)),
        (sheet.least_normal, f"2^{fmt.min_exponent}"),
    ]
    labels += [(Fraction(1), "1")] if least <= 1 <= largest else []
    labels += [(Fraction(2) ** e, f"2^{e}") for e in range(fmt.min_exponent, fmt.max_exponent + 1)]
    labels = [(value, words.replace("-", svg.MINUS)) for value, words in labels]
    shown = [value for value in finite if value > 0]
    sheet.line(
        "Positive numbers, by powers of two" if finite else "Range, by powers of two", shown, at, labels
    )
    if not finite:
        _range_bars(sheet, at, least, largest)


def _range_bars(sheet: _Lines, at: _Position, least: Fraction, largest: Fraction) -> None:
    y, fmt = sheet.y - 46, sheet.fmt
    middle = at(sheet.least_normal)
    if fmt.has_subnormals and fmt.fraction_bits:
        sheet.parts.append(svg.rect(at(least), y, middle - at(least), 12, "accent"))
    sheet.parts.append(svg.rect(middle, y, at(largest) - middle, 12, "block"))
    legend = "green: subnormal numbers, blue: normal numbers"
    sheet.parts.append(svg.text(_RIGHT, y - 18, legend, "muted", anchor="end", font_size=10))


def _power(value: Fraction) -> str:
    """The exponent of a power of two."""
    return str(round(_log2(value)))


def _log2(value: Fraction) -> float:
    """log2 of numbers that do not fit a float."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return shift + log2(value / Fraction(2) ** shift)


def _near_zero(sheet: _Lines, finite: list[Fraction]) -> None:
    edge = min(4 * sheet.least_normal, finite[-1])
    low = -edge if sheet.fmt.signed else Fraction(0)
    shown = [value for value in finite if low <= value <= edge]
    least = min(value for value in shown if value > 0)
    labels = [
        (Fraction(0), "0"),
        (sheet.least_normal, _plain(sheet.least_normal)),
        (edge, _plain(edge)),
        (least, _plain(least)),
    ]
    labels += [(-value, svg.MINUS + words) for value, words in labels[1:]] if sheet.fmt.signed else []
    labels += [(value, _plain(value)) for value in shown]
    sheet.line("Near zero, linear (subnormal numbers in green)", shown, _linear(low, edge), labels)


def _plain(value: Fraction) -> str:
    """A number as readers write it: 448, 0.5, 2^-9, 3 x 2^-9."""
    if value.denominator == 1 and abs(value) < 1_000_000:
        return str(value.numerator).replace("-", svg.MINUS)
    if 1 < value.denominator <= 16:
        return f"{float(value):g}".replace("-", svg.MINUS)
    odd, power = abs(value.numerator), 1 - value.denominator.bit_length()
    while odd % 2 == 0:
        odd, power = odd // 2, power + 1
    words = (
        f"2^{power}"
        if odd == 1
        else f"{odd} {svg.TIMES} 2^{power}"
        if odd < 100
        else f"{float(abs(value)):.3g}"
    )
    words = ("-" if value < 0 else "") + words
    return words.replace("-", svg.MINUS)


def _specials(sheet: _Lines, numbers: list[Number]) -> None:
    """Codes that are no numbers, and zeros, in a line of words."""
    kinds: dict[str, list[int]] = {}
    for code, number in enumerate(numbers):
        sign = svg.MINUS if number.sign else "+"
        words = {Kind.NAN: "NaN", Kind.INFINITY: f"{sign}infinity", Kind.ZERO: f"{sign}0"}.get(number.kind)
        if words and sheet.fmt.is_float:
            kinds.setdefault(words, []).append(code)
    texts = [f"{words}: {_codes(codes, sheet.fmt)}" for words, codes in kinds.items()]
    if texts:
        y = sheet.y + 6
        for line in svg.wrap("Special codes. " + "; ".join(texts), _RIGHT - _LEFT):
            sheet.parts.append(svg.text(_LEFT, y, line))
            y += 15
        sheet.y = y


def _codes(codes: list[int], fmt: Format) -> str:
    digits = (fmt.bits + 3) // 4
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return ", ".join(f"0x{a:0{digits}X}" + ("" if a == b else f" to 0x{b:0{digits}X}") for a, b in runs)
