# ruff: noqa: E501  (each unit is one YAML text)
"""Units by hand: each one once made the models disagree, or one of them fail. The loader may as well refuse them."""

from __future__ import annotations

# The core once shifted by more than 128 bits, and saturated a zero.
EXACT_CASES = (
    (
        "flush after a wide sum",
        (0x42B0000000000000, 0x42B0000000000000),
        (0x42B0000000000000, 0xC2B0000000000000),
        0x10000000000000,
        0,
    ),
    ("saturate a zero of large exponent", (0x7F00, 0xFF00), (0x3F80, 0x3F80), 0, 0),
)

TRICKY = {
    "fda s8 ints": "{unit: u, shape: {k: 8}, formats: {a: s8, b: s8, c: f32, d: f32}, steps: [{multiply: {to: products}}, "
    "{special_values: {of: [products, c]}}, {align: {of: [products, c], fraction_bits: 20, rounding: toward_zero}}, {sum: "
    "{of: [products, c], to: total}}, {round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}}]}",
    "fda no scale step in scaled unit": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}, scale_block: 4, "
    "steps: [{multiply: {to: products}}, {special_values: {of: [products, c]}}, {align: {of: [products, c], fraction_bits: "
    "20, rounding: toward_zero}}, {sum: {of: [products, c], to: total}}, {round: {of: total, rounding: toward_zero, "
    "overflow: infinity, zero: positive}}]}",
    "integer in scaled unit": "{unit: u, shape: {k: 4}, formats: {a: s8, b: s8, c: s32, d: s32, scale_a: ue8m0, scale_b: ue8m0}, scale_block: 4, "
    "steps: [{multiply: {to: products}}, {sum: {of: [products, c], to: total}}, {round: {of: total, rounding: toward_zero, "
    "overflow: wrap, zero: positive}}]}",
    "fma in scaled unit": "{unit: u, shape: {k: 4}, formats: {a: f32, b: f32, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}, scale_block: 4, "
    "steps: [{fma: {to: d, rounding: nearest_even, start: c}}]}",
    "fda two scales at front": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}, scale_block: 4, "
    "steps: [{multiply: {to: products}}, {scale: {of: products}}, {scale: {of: products}}, {special_values: {of: "
    "[products, c, scales]}}, {align: {of: [products, c], fraction_bits: 20, rounding: toward_zero}}, {sum: {of: "
    "[products, c], to: total}}, {round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}}]}",
    "fda scale + later scale of total": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}, scale_block: 4, "
    "steps: [{multiply: {to: products}}, {scale: {of: products}}, {special_values: {of: [products, c, scales]}}, {align: "
    "{of: [products, c], fraction_bits: 20, rounding: toward_zero}}, {sum: {of: [products, c], to: total}}, {scale: {of: "
    "total}}, {round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}}]}",
    "fda signed scale format": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: sc, scale_b: sc}, define_formats: {sc: "
    "{kind: float, storage: 8, exponent_bits: 5, fraction_bits: 0, bias: 15, specials: none}}, scale_block: 4, steps: "
    "[{multiply: {to: products}}, {scale: {of: products}}, {special_values: {of: [products, c, scales]}}, {align: {of: "
    "[products, c], fraction_bits: 20, rounding: toward_zero}}, {sum: {of: [products, c], to: total}}, {round: {of: total, "
    "rounding: toward_zero, overflow: infinity, zero: positive}}]}",
    "fda s8 scales": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: s8, scale_b: s8}, scale_block: 4, "
    "steps: [{multiply: {to: products}}, {scale: {of: products}}, {special_values: {of: [products, c, scales]}}, {align: "
    "{of: [products, c], fraction_bits: 20, rounding: toward_zero}}, {sum: {of: [products, c], to: total}}, {round: {of: "
    "total, rounding: toward_zero, overflow: infinity, zero: positive}}]}",
    "integer and on s8": "{unit: u, shape: {k: 4}, formats: {a: s8, b: s8, c: s32, d: s32}, steps: [{multiply: {to: products, operation: and}}, "
    "{sum: {of: [products, c], to: total}}, {round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}}]}",
    "integer round format u8": "{unit: u, shape: {k: 4}, formats: {a: s8, b: s8, c: s32, d: s32}, steps: [{multiply: {to: products}}, {sum: {of: "
    "[products, c], to: total}}, {round: {of: total, format: u8, rounding: toward_zero, overflow: saturate, zero: "
    "positive}}]}",
    "out unsigned ieee": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: uf}, define_formats: {uf: {kind: float, storage: 16, "
    "exponent_bits: 5, fraction_bits: 10, bias: 15, specials: ieee, signed: false}}, steps: [{multiply: {to: products}}, "
    "{special_values: {of: [products, c]}}, {align: {of: [products, c], fraction_bits: 20, rounding: toward_zero}}, {sum: "
    "{of: [products, c], to: total}}, {round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}}]}",
    "out no zero": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: nz}, define_formats: {nz: {kind: float, storage: 16, "
    "exponent_bits: 5, fraction_bits: 10, bias: 15, specials: ieee, zero: false}}, steps: [{multiply: {to: products}}, "
    "{special_values: {of: [products, c]}}, {align: {of: [products, c], fraction_bits: 20, rounding: toward_zero}}, {sum: "
    "{of: [products, c], to: total}}, {round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}}]}",
    "shadow f32 fma": "{unit: u, shape: {k: 4}, formats: {a: f32, b: f32, c: f32, d: f32}, define_formats: {f32: {kind: float, storage: 32, "
    "exponent_bits: 5, fraction_bits: 20, bias: 15, specials: ieee}}, steps: [{fma: {to: d, rounding: nearest_even, start: "
    "c}}]}",
    "shadow e2m1 gdfs": "{unit: u, shape: {k: 16}, formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale_a: ue4m3, scale_b: ue4m3}, "
    "define_formats: {e2m1: {kind: float, storage: 8, exponent_bits: 3, fraction_bits: 1, bias: 3, specials: none}}, "
    "scale_block: 16, program: [{gdfs: {fraction_bits: 35}}]}",
    "gdfs final of groups": "{unit: u, shape: {k: 16}, formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale_a: ue4m3, scale_b: ue4m3}, scale_block: "
    "16, steps: [{multiply: {to: products}}, {special_values: {of: [products, c, scales]}}, {sum: {of: products, to: "
    "groups, group: {contiguous: 16}, exponent: 0}}, {scale: {of: groups}}, {align: {of: [groups, c], fraction_bits: 35, "
    "rounding: toward_zero}}, {sum: {of: [groups, c], to: total}}, {round: {of: groups, rounding: toward_zero, overflow: "
    "infinity, zero: positive}}]}",
    "fda k none then gdfs": "{unit: u, shape: {k: 16}, formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale_a: ue4m3, scale_b: ue4m3}, scale_block: "
    "16, program: [{k: none, fda: {fraction_bits: 24}}, {gdfs: {fraction_bits: 35}}]}",
    "integer half then fda half": "{unit: u, shape: {k: 8}, formats: {a: s8, b: s8, c: s32, d: f32}, program: [{k: {from: 0, to: 3}, integer_dot_add: "
    "{}, out: s32}, {k: {from: 4, to: 7}, seed: zero, fda: {fraction_bits: 24}}]}",
    "fdrda product_overflow 0": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: f32}, program: [{fdrda: {product_overflow: 0}}]}",
    "fdrda product_overflow -20": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: f32}, program: [{fdrda: {product_overflow: -20}}]}",
    "fdrda product_overflow -100000": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: f32}, program: [{fdrda: {product_overflow: -100000}}]}",
    "same to twice": "{unit: u, shape: {k: 6}, formats: {a: f16, b: f16, c: f32, d: f32}, program: [{k: {modulo: 3, residues: [0]}, fda: "
    "{fraction_bits: 24}, to: acc}, {k: {modulo: 3, residues: [1]}, fda: {fraction_bits: 24}, to: acc}, {k: {modulo: 3, "
    "residues: [2]}, fda: {fraction_bits: 24}, to: acc}]}",
    "to: c": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: f32}, program: [{k: {from: 0, to: 1}, fda: "
    "{fraction_bits: 24}, to: c}, {k: {from: 2, to: 3}, fda: {fraction_bits: 24}}]}",
    "scale of scales, products": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: e4m3, scale_b: e4m3}, scale_block: 2, "
    "steps: [{multiply: {to: products}}, {scale: {of: [scales, products]}}, {sum: {of: [products, c], to: total}}, {round: "
    "{of: total, rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "scales without formats": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32}, steps: [{multiply: {to: products}}, {scale: "
    "{of: products}}, {sum: {of: [products, c], to: total}}, {round: {of: total, rounding: nearest_even, overflow: "
    "infinity, zero: positive}}]}",
    "special_values scales without formats": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32}, steps: [{multiply: {to: products}}, "
    "{special_values: {of: [products, scales]}}, {sum: {of: [products, c], to: total}}, {round: {of: total, rounding: "
    "nearest_even, overflow: infinity, zero: positive}}]}",
    "interleaved larger than register": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: f32}, steps: [{multiply: {to: products}}, {sum: {of: "
    "products, to: groups, group: {contiguous: 4}}}, {sum: {of: groups, to: dot, group: {interleaved: 2}, order: "
    "sequential, format: f32, rounding: nearest_even}}, {sum: {of: [dot, c], to: d, order: sequential, format: f32, "
    "rounding: nearest_even}}]}",
    "interleaved tree empty": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: f32}, steps: [{multiply: {to: products}}, {sum: {of: "
    "products, to: groups, group: {contiguous: 4}}}, {sum: {of: groups, to: dot, group: {interleaved: 2}, order: tree, "
    "format: f32, rounding: nearest_even}}, {sum: {of: [dot, c], to: d, order: sequential, format: f32, rounding: "
    "nearest_even}}]}",
    "fma start product k none": "{unit: u, shape: {k: 1}, formats: {a: f16, b: f16, c: f32, d: f32}, program: [{k: none, steps: [{fma: {to: d, "
    "rounding: nearest_even, start: product}}]}, {fda: {fraction_bits: 24}}]}",
    "fma contiguous k none": "{unit: u, shape: {k: 1}, formats: {a: f16, b: f16, c: f32, d: f32}, program: [{k: none, steps: [{fma: {to: d, "
    "rounding: nearest_even, start: c, group: {contiguous: 1}}}]}, {fda: {fraction_bits: 24}}]}",
    "multiply to d": "{unit: u, shape: {k: 1}, formats: {a: f16, b: f16, c: f32, d: f32}, steps: [{multiply: {to: d}}]}",
    "round of empty": "{unit: u, shape: {k: 1}, formats: {a: f16, b: f16, c: f32, d: f32}, program: [{k: none, steps: [{multiply: {to: "
    "products}}, {round: {of: products, rounding: nearest_even, overflow: infinity, zero: positive}}]}, {fda: "
    "{fraction_bits: 24}}]}",
    "sum of a to a, multiply": "{unit: u, shape: {k: 4}, formats: {a: f16, b: f16, c: f32, d: f32}, steps: [{sum: {of: b, to: b}}, {multiply: {to: "
    "products}}, {sum: {of: [products, c], to: total}}, {round: {of: total, rounding: nearest_even, overflow: infinity, "
    "zero: positive}}]}",
    "align a,b then multiply": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f32, d: f32}, steps: [{align: {of: [a, b], fraction_bits: 72, "
    "rounding: toward_zero}}, {multiply: {to: products}}, {sum: {of: [products, c], to: total}}, {round: {of: total, "
    "rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "normalize a,b then multiply": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f32, d: f32}, steps: [{normalize: {of: [a, b], fraction_bits: "
    "72, rounding: toward_zero}}, {multiply: {to: products}}, {sum: {of: [products, c], to: total}}, {round: {of: total, "
    "rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "scale x10": "{unit: u, shape: {k: 2}, formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: e4m3, scale_b: e4m3}, scale_block: 2, "
    "steps: [{multiply: {to: products}}, {align: {of: products, fraction_bits: 72, rounding: toward_zero}}, {scale: {of: "
    "products}}, {scale: {of: products}}, {scale: {of: products}}, {scale: {of: products}}, {scale: {of: products}}, "
    "{scale: {of: products}}, {scale: {of: products}}, {scale: {of: products}}, {sum: {of: [products, c], to: total}}, "
    "{round: {of: total, rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "sum exponent -1000 then align": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f32, d: f32}, steps: [{multiply: {to: products}}, {sum: {of: "
    "products, to: groups, group: {contiguous: 1}, exponent: -1000}}, {align: {of: groups, fraction_bits: 20, rounding: "
    "toward_zero}}, {sum: {of: [groups, c], to: total}}, {round: {of: total, rounding: nearest_even, overflow: infinity, "
    "zero: positive}}]}",
    "sum exponent then flush": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f32, d: f32}, steps: [{multiply: {to: products}}, {sum: {of: "
    "products, to: groups, group: {contiguous: 1}, exponent: -1000}}, {flush: {of: groups, sign: positive}}, {round: {of: "
    "groups, rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "sum then flush wide": "{unit: u, shape: {k: 2}, formats: {a: f64, b: f64, c: f64, d: f64}, steps: [{multiply: {to: products}}, {sum: {of: "
    "[products, c], to: total}}, {flush: {of: total, sign: positive}}, {round: {of: total, rounding: nearest_even, "
    "overflow: infinity, zero: positive}}]}",
    "wide bias accumulator": "{unit: u, shape: {k: 2}, formats: {a: w, b: w, c: f64, d: f64}, define_formats: {w: {kind: float, storage: 16, "
    "exponent_bits: 11, fraction_bits: 4, bias: -1023, specials: none}}, steps: [{multiply: {to: products}}, {sum: {of: "
    "[products, c], to: total}}, {round: {of: total, rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "wide bias accumulator 2": "{unit: u, shape: {k: 2}, formats: {a: w, b: w, c: v, d: f64}, define_formats: {w: {kind: float, storage: 16, "
    "exponent_bits: 11, fraction_bits: 4, bias: -1023, specials: none}, v: {kind: float, storage: 64, exponent_bits: 11, "
    "fraction_bits: 52, bias: 2047, specials: none}}, steps: [{multiply: {to: products}}, {sum: {of: [products, c], to: "
    "total}}, {round: {of: total, rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "f64 scaled twice span": "{unit: u, shape: {k: 2}, formats: {a: f64, b: f64, c: f64, d: f64, scale_a: ue8m0, scale_b: ue8m0}, scale_block: 1, "
    "steps: [{multiply: {to: products}}, {scale: {of: products}}, {scale: {of: products}}, {scale: {of: products}}, {sum: "
    "{of: [products, c], to: total}}, {round: {of: total, rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "sum format f32 to d f16": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f16, d: f16}, steps: [{multiply: {to: products}}, {sum: {of: "
    "[products, c], to: d, order: sequential, format: f32, rounding: nearest_even}}]}",
    "fma format f32 to d f16": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f16, d: f16}, steps: [{fma: {to: d, format: f32, rounding: "
    "nearest_even}}]}",
    "round format f32 to d f16": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f16, d: f16}, steps: [{multiply: {to: products}}, {sum: {of: "
    "[products, c], to: total}}, {round: {of: total, format: f32, rounding: nearest_even, overflow: infinity, zero: "
    "positive}}]}",
    "fma nan_order f64->f16": "{unit: u, shape: {k: 2}, formats: {a: f64, b: f64, c: f64, d: f16}, steps: [{fma: {to: d, rounding: nearest_even, "
    "nan_order: [a, b, c]}}]}",
    "fma nan_order ue8m0 format": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f16, d: f16}, steps: [{fma: {to: dot, format: ue8m0, rounding: "
    "nearest_even, nan_order: [a, b, c]}}, {round: {of: dot, rounding: nearest_even, overflow: infinity, zero: positive}}]}",
    "fnuz out": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f32, d: e4m3fnuz}, steps: [{multiply: {to: products}}, "
    "{special_values: {of: [products, c]}}, {sum: {of: [products, c], to: total}}, {round: {of: total, rounding: "
    "nearest_even, overflow: infinity, zero: positive}}]}",
    "unsigned fnuz": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f32, d: uz}, define_formats: {uz: {kind: float, storage: 8, "
    "exponent_bits: 4, fraction_bits: 3, bias: 7, specials: negative_zero_nan, signed: false}}, steps: [{multiply: {to: "
    "products}}, {sum: {of: [products, c], to: total}}, {round: {of: total, rounding: nearest_even, overflow: infinity, "
    "zero: positive}}]}",
    "e5m0 ieee": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f32, d: q}, define_formats: {q: {kind: float, storage: 8, "
    "exponent_bits: 5, fraction_bits: 0, bias: 15, specials: ieee}}, steps: [{multiply: {to: products}}, {special_values: "
    "{of: [products, c]}}, {sum: {of: [products, c], to: total}}, {round: {of: total, rounding: nearest_even, overflow: "
    "infinity, zero: positive}}]}",
    "operand_format on k none": "{unit: u, shape: {k: 4}, formats: {a: e4m3, b: e4m3, c: f32, d: f32}, program: [{k: none, operands: f16, fda: "
    "{fraction_bits: 24}}, {fda: {fraction_bits: 4}}]}",
    "s8 operands f16 fda": "{unit: u, shape: {k: 4}, formats: {a: s8, b: s8, c: f32, d: f32}, program: [{operands: f16, fda: {fraction_bits: "
    "24}}]}",
    "s8 operands f16 integer": "{unit: u, shape: {k: 4}, formats: {a: s8, b: s8, c: s32, d: s32}, program: [{operands: f16, integer_dot_add: {}}]}",
    "addends c": "{unit: u, shape: {k: 2}, formats: {a: f16, b: f16, c: f16, d: f32}, program: [{fda: {fraction_bits: 24}}, {k: none, "
    "addends: c, ieee_add: {}}]}",
    "compressed aligned sum cancels": "{unit: u, shape: {k: 1}, formats: {a: s32, b: s32, c: f64, d: f64}, program: [{k: none, steps: [{sum: {of: c, to: "
    "d}}], out: f64, to: r}, {seed: zero, addends: r, steps: [{multiply: {to: products}}, {align: {of: [products, "
    "addends], fraction_bits: 50, rounding: toward_zero}}, {sum: {of: [products, addends], to: total}}, {sum: {of: [total, "
    "products], to: d}}]}]}",
    "flush after a wide sum": "{unit: u, shape: {k: 2}, formats: {a: f64, b: f64, c: f64, d: f64}, steps: [{multiply: {to: products}}, {sum: {of: "
    "[products, c], to: total}}, {flush: {of: total, sign: positive}}, {round: {of: total, rounding: nearest_even, "
    "overflow: infinity, zero: positive}}]}",
    "saturate a zero of large exponent": "{unit: u, shape: {k: 2}, formats: {a: bf16, b: bf16, c: f32, d: u8}, steps: [{multiply: {to: products}}, {align: {of: "
    "products, fraction_bits: 0, rounding: toward_zero}}, {sum: {of: products, to: total}}, {round: {of: total, rounding: "
    "toward_zero, overflow: saturate, zero: positive}}]}",
    "wrap after a wide sum": "{unit: u, shape: {k: 1}, formats: {a: b1, b: b1, c: f32, d: s32}, steps: [{multiply: {to: products}}, {sum: {of: "
    "[products, c], to: total}}, {round: {of: total, rounding: nearest_even, overflow: wrap, zero: positive}}]}",
    "subnormal times large, product_overflow 1": "{unit: u, shape: {k: 8}, formats: {a: bf16, b: bf16, c: f32, d: f32}, program: [{fdrda: {product_overflow: 1}}]}",
}
