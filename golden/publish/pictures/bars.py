"""Registers drawn as bars of bits: sign, integer bits, fraction bits, the sticky bit and what is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from golden.errors import counted
from golden.number.formats import Format
from golden.program.widths import Node
from golden.publish.pictures import svg

_TAIL = 5
"""Bits' worth of hatching for a tail of unknown length."""


@dataclass(frozen=True)
class Segment:
    """A run of bits: how many, its style ("lost" is hatched) and the words in it,
    the longest that fits is shown."""

    bits: float
    style: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scale:
    """Where a register's binary point stands and how wide one bit is, in pixels;
    one for all bars of a picture."""

    point: float
    bit: float

    @classmethod
    def fitting(cls, nodes: Sequence[Node], left: float, right: float) -> Scale:
        """The largest scale (at most 9 px a bit) at which all nodes, with sign and a tail, fit between
        left and right."""
        integer = max((int(node.signed) + node.integer_bits for node in nodes), default=1)
        fraction = max((node.fraction_bits for node in nodes), default=0) + _TAIL
        bit = min(9.0, (right - left) / (integer + fraction))
        return cls(left + integer * bit, bit)


def bar(scale: Scale, y: float, above: int, segments: Sequence[Segment]) -> list[str]:
    """Segments from left to right, the first one `above` bits left of the binary point."""
    x, parts = scale.point - above * scale.bit, []
    for segment in segments:
        width = segment.bits * scale.bit
        if width > 0:
            parts += _segment(x, y, width, segment, scale.bit)
        x += width
    return parts


def _segment(x: float, y: float, width: float, segment: Segment, bit: float) -> list[str]:
    height = 16  # pixels of a bar
    parts = [svg.rect(x, y, width, height, segment.style)]
    if segment.style == "lost":
        parts.append(hatch(x, y, width, height))
    elif bit >= 4:
        ticks = "".join(
            f"M{svg.number(x + i * bit)} {svg.number(y)}v3" for i in range(1, round(segment.bits))
        )
        if ticks:
            parts.append(svg.path(ticks, stroke_width=0.6))
    fitting = next((words for words in segment.words if svg.width_of(words, 10) <= width - 1), None)
    if fitting is not None and segment.style != "lost":
        parts.append(svg.text(x + width / 2, y + 12, fitting, anchor="middle", font_size=10))
    return parts


def hatch(x: float, y: float, width: float, height: float) -> str:
    """Diagonal lines inside a rectangle, without a pattern (and its id)."""
    lines, step = "", 5.0
    start = x - height + step
    while start < x + width:
        x0, x1 = max(start, x), min(start + height, x + width)
        lines += (
            f"M{svg.number(x0)} {svg.number(y + height - (x0 - start))}L{svg.number(x1)} "
            f"{svg.number(y + height - (x1 - start))}"
        )
        start += step
    return svg.path(
        lines, None, **{"class": "mg-lost-line", "stroke": svg.STYLES["lost"]["stroke"], "fill": "none"}
    )


def register(scale: Scale, y: float, node: Node, style: str = "paper") -> list[str]:
    """The bar of a register: sign, integer and fraction bits."""
    return bar(scale, y, int(node.signed) + node.integer_bits, _known(node, style))


def aligned(scale: Scale, y: float, node: Node, sticky: bool, cuts: bool) -> list[str]:
    """The bar of an aligned register (its last fraction bit is the sticky one, if any) and of what
    alignment cuts off."""
    fraction = node.fraction_bits - int(sticky)
    segments = [*_known(node, "paper")[:2], _fraction(fraction, "paper")]
    segments += [Segment(1, "accent", ("S",))] if sticky else []
    segments += [Segment(_TAIL, "lost")] if cuts else []
    return bar(scale, y, int(node.signed) + node.integer_bits, segments)


def _known(node: Node, style: str) -> list[Segment]:
    sign = Segment(1, "block2", ("±", "s")) if node.signed else Segment(0, "block2")
    count = node.integer_bits
    integer = Segment(count, "accent", (f"{count} integer bits", f"{count} integer", str(count)))
    return [sign, integer, _fraction(node.fraction_bits, style)]


def _fraction(bits: int, style: str) -> Segment:
    return Segment(bits, style, (f"{bits} fraction bits", f"{bits} fraction", str(bits)))


def fields(x: float, y: float, width: float, fmt: Format) -> list[str]:
    """A format's fields, scaled to a width: sign, exponent, fraction, ignored bits."""
    parts, left = [], x
    scale = width / fmt.bits
    for bits, style, words in format_fields(fmt):
        parts += _segment(left, y, bits * scale, Segment(bits, style, words), 0)
        left += bits * scale
    return parts


def format_fields(fmt: Format) -> list[tuple[int, str, tuple[str, ...]]]:
    """(bits, style, names from long to short) of a format's fields from the most significant bit down;
    empty ones left out."""
    if not fmt.is_float:
        kind = "two's complement" if fmt.signed else "unsigned"
        bits = counted(fmt.bits, "bit")
        return [(fmt.bits, "paper", (f"{bits}, {kind}", bits, str(fmt.bits)))]
    e, f = fmt.exponent_bits, fmt.fraction_bits
    found = [
        (fmt.ignored_high, "lost", ("ignored",)),
        (int(fmt.signed), "block2", ("s",)),
        (e, "accent", (f"exponent {e}", f"exp {e}", f"e {e}", f"e{e}", str(e))),
        (f, "paper", (f"fraction {f}", f"f {f}", f"f{f}", str(f))),
        (fmt.ignored_low, "lost", (f"ignored {fmt.ignored_low}",)),
    ]
    return [field for field in found if field[0]]
