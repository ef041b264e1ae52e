"""Number formats: bit fields and number lines."""

from __future__ import annotations

from golden.docs.pictures import svg
from golden.formats import Format


def bit_fields(fmt: Format, name: str = "bits") -> str:
    """Returns the fields of a format with their bit numbers as SVG; name: prefix of its ids."""
    return svg.document(760, 60, [svg.text(20, 30, fmt.name)], name, f"Bit fields of {fmt.name}")


def number_line(fmt: Format, name: str = "line") -> str:
    """Returns all numbers of a format of at most 8 bits on a line, and those near zero, as SVG; name: prefix of its ids."""
    return svg.document(760, 60, [svg.text(20, 30, fmt.name)], name, f"Numbers of {fmt.name}")
