"""Units of two products in formats of four bits, which together have every kind of step."""

from __future__ import annotations

from golden import yamlfile
from golden.catalog import unit_files
from golden.model.instruction import Instruction

HEAD = """\
unit: tiny
shape: {k: 2}
formats: {a: x, b: x, c: y, d: y}
define_formats:
  x: {kind: float, storage: 8, exponent_bits: 2, fraction_bits: 1, bias: 1, specials: SPECIALS}
  y: {kind: float, storage: 8, exponent_bits: 2, fraction_bits: 1, bias: 1, specials: ieee}
"""
UNITS = {
    "a fused sum": (
        "ieee",
        """\
steps:
- flush: {of: [a, c], sign: signed}
- multiply: {to: products}
- special_values: {of: [products, c], nan: 0x7}
- align: {of: [products, c], fraction_bits: 1, rounding: toward_zero, cut: sticky_or, floor: -1}
- sum: {of: [products, c], to: total}
- normalize: {of: total, fraction_bits: 2, rounding: toward_zero, min_exponent: 0}
- round: {of: total, rounding: nearest_even, overflow: ieee, zero: signed}
""",
    ),
    "parts of significands": (
        "none",
        """\
steps:
- hidden_bit: {of: a}
- part: {of: b, first: 0, bits: 1}
- multiply: {to: products}
- align: {of: [products, c], fraction_bits: 2, rounding: nearest_up, floor: -3}
- sum: {of: [products, c], to: total}
- replace: {of: total, places: 2, value: -1, by: -4}
- round: {of: total, rounding: nearest_away, overflow: largest, zero: positive, flush: positive}
""",
    ),
    "scales": (
        "all_ones_nan",
        """\
steps:
- multiply: {to: products}
- special_values: {of: [products, c], nan: 0x7}
- sum: {of: [products], to: groups, group: {contiguous: 2}, exponent: 0}
- scale: {of: groups, power: -1}
- align: {of: [groups, c], fraction_bits: 2, rounding: up, cut: sticky_added}
- sum: {of: [groups, c], to: total}
- round: {of: total, rounding: toward_zero, overflow: infinity, zero: signed}
""",
    ),
    "IEEE operations": (
        "ieee",
        """\
steps:
- fma: {start: zero, to: dot, format: y, rounding: nearest_even, nan: 0x7, nan_order: []}
- sum: {of: [c, dot], to: d, order: sequential, format: y, rounding: down, nan: 0x7}
""",
    ),
}


def text(name: str) -> str:
    specials, steps = UNITS[name]
    return HEAD.replace("SPECIALS", specials) + steps


def unit(name: str) -> Instruction:
    return unit_files.build_instruction(yamlfile.parse(text(name)))
