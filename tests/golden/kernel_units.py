"""Random custom units of the families that have a fast form, near the bounds of golden/model/kernels.py."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import yaml_text
from random_units import local_format, shape

from golden.number.formats import get_format

NARROW = ("e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz", "e3m2", "e2m3", "e2m1")
FLOATS = ("f16", "bf16", "tf32", *NARROW)
FRACTIONS = {"f32": 23, "f16": 10, "bf16": 7}


def _fda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    a, c, d = (
        rng.choice(FLOATS),
        rng.choice(("f32", "f32", "f16", "bf16")),
        rng.choice(("f32", "f32", "f16", "bf16")),
    )
    b = a if rng.random() < 0.6 else rng.choice(FLOATS)
    body: dict[str, Any] = {
        "fraction_bits": rng.randint(1, 28),
        "rounding": rng.choice(("toward_zero", "nearest_even")),
        "nan": rng.choice((0, 0x7FFF)),
    }
    if rng.random() < 0.5:
        body["exponent_floor"] = rng.choice((-149, -139, -133, -126, -24, 0, 40, -100000, 100000))
    if rng.random() < 0.4:
        body["result_fraction_bits"] = rng.randint(0, FRACTIONS[d])
    operation: dict[str, Any] = {"fda": body}
    if rng.random() < 0.3:
        operation = {"cofda": body | {"products": rng.randint(1, k)}}
    if a in ("e5m2", "e4m3") and b in ("e5m2", "e4m3") and rng.random() < 0.4:
        operation["operands"] = "f16"
    return {"a": a, "b": b, "c": c, "d": d}, [operation]


def _ieee_format(rng: random.Random, storage: int, most: int) -> dict[str, Any]:
    exponent_bits = rng.randint(2, 9 if storage == 32 else 6)
    return {
        "kind": "float",
        "storage": storage,
        "exponent_bits": exponent_bits,
        "bias": rng.randint(0, 1 << exponent_bits),
        "specials": "ieee",
        "fraction_bits": min(most, rng.randint(1, storage - 1 - exponent_bits)),
    }


def _narrow_format(rng: random.Random) -> dict[str, Any]:
    """An 8-bit format, signed or not, with any rule for special codes."""
    while (fmt := local_format(rng))["storage"] != 8:
        pass
    return fmt


def _odd_fda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    """Formats of odd widths, with products of up to 24 bits."""
    wide = rng.choice((16, 32))
    local = {
        "x0": _ieee_format(rng, wide, 11),
        "x1": _ieee_format(rng, rng.choice((16, 32)), 11),
        "x2": _narrow_format(rng),
        "x3": _ieee_format(rng, rng.choice((16, 32)), 23),
        "x4": _ieee_format(rng, rng.choice((16, 32)), 27),
    }
    formats, program = _fda_unit(rng, k)
    odd = {"a": ("x0", "x2"), "b": ("x1", "x2"), "c": ("x3",), "d": ("x4",)}
    formats = {name: rng.choice((fmt, fmt, rng.choice(odd[name]))) for name, fmt in formats.items()}
    program[0].pop("operands", None)
    for body in program[0].values():
        body.pop("result_fraction_bits", None)
    return formats | {"define": local}, program


def _scaled_fda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    scale = {"scale_a": "ue8m0", "scale_b": "ue8m0"}
    floor = {} if rng.random() < 0.5 else {"exponent_floor": rng.choice((-139, -133, 0))}
    a, b = rng.choice(NARROW), rng.choice(NARROW)
    return {"a": a, "b": b, "c": "f32", "d": "f32"} | scale, [
        {"scaled_fda": {"fraction_bits": rng.randint(1, 28), "nan": 0x7FC00000} | floor}
    ]


def _last_rounding(rng: random.Random, d: str, rounding: Sequence[str]) -> dict[str, Any]:
    """The rounding of `total` to d as _float_frame lets it in, some with fewer bits than d has."""
    kept = {} if rng.random() < 0.6 else {"fraction_bits": rng.randint(0, FRACTIONS[d])}
    zero = rng.choice(("positive", "signed_underflow"))
    rounded = {"of": "total", "rounding": rng.choice(rounding), "overflow": "infinity", "zero": zero}
    return {"round": rounded | kept}


def _gdfs_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    floor = {} if rng.random() < 0.5 else {"floor": rng.choice((-139, -133, 0))}
    c, d = (rng.choice(("f32", "f32", "f16", "bf16")) for _ in "cd")
    scales = [rng.choice(("ue8m0", "ue4m3")) for _ in "ab"]
    scales = scales if rng.random() < 0.5 else scales[:1] * 2
    least = max(FRACTIONS[c], 2 + 3 * scales.count("ue4m3"))
    kept = rng.randint(least, 35) if rng.random() < 0.7 else least
    group = rng.choice([i for i in (1, 2, 4, 8, 16, 32, 64) if k % i == 0])
    total = ["groups", "c"]
    steps = [
        {"multiply": {"to": "products"}},
        {"special_values": {"of": ["products", "c", "scales"], "nan": 1}},
        {"sum": {"of": ["products"], "to": "groups", "group": {"contiguous": group}, "exponent": 0}},
        {"scale": {"of": "groups"}},
        {"align": {"of": total, "fraction_bits": kept, "rounding": "toward_zero"} | floor},
        {"sum": {"of": total, "to": "total"}},
        _last_rounding(rng, d, ("toward_zero", "nearest_even")),
    ]
    formats = {"a": "e2m1", "b": "e2m1", "c": c, "d": d}
    return formats | {"scale_a": scales[0], "scale_b": scales[1]}, [{"steps": steps}]


def _fdrda_sums(rng: random.Random, kept: int) -> tuple[list[Any], dict[str, Any]]:
    """The sum of the products, and what limits c: all at once, or two interleaved groups and a window."""
    cut = {"fraction_bits": kept, "rounding": "toward_zero"}
    if rng.random() < 0.5:
        return [{"align": {"of": ["products"]} | cut}, {"sum": {"of": ["products"], "to": "dot"}}], {}
    halves = {"of": ["products"], "group": {"interleaved": 2}}
    meet = {"of": ["groups"], "fraction_bits": kept, "rounding": "down"}
    steps = [{"align": halves | cut}, {"sum": halves | {"to": "groups"}}, {"align": meet}]
    window = {"window": {"c": rng.randint(0, 40)}}
    return [*steps, {"sum": {"of": ["groups"], "to": "dot"}}], window if rng.random() < 0.8 else {}


def _fdrda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    """Every F that products and c leave, with the widest two, which most units have, most often."""
    a = rng.choice(FLOATS)
    b = a if rng.random() < 0.6 else rng.choice(FLOATS)
    c, d = (rng.choice(("f32", "f16", "bf16")) for _ in "cd")
    least = min(24, max(FRACTIONS[c], sum(get_format(name).fraction_bits for name in (a, b))))
    kept = rng.randint(least, 24) if rng.random() < 0.5 else max(least, rng.choice((23, 24)))
    dot = rng.randint(kept, 40)
    overflow = {}
    if rng.random() < 0.5:
        overflow = {"overflow_exponent": rng.choice((128, 128, 16, -20, 1))}
    sums, window = _fdrda_sums(rng, kept)
    total = {"of": ["dot", "c"], "fraction_bits": {"dot": dot, "c": kept}, "rounding": "down", "floor": -126}
    bits = {"fraction_bits": rng.randint(0, dot), "rounding": "down", "min_exponent": -126}
    steps = [
        {"multiply": {"to": "products"} | overflow},
        {"special_values": {"of": ["products", "c"], "nan": 0x7FC0}},
        *sums,
        {"align": total | window},
        {"sum": {"of": ["dot", "c"], "to": "total"}},
        {"normalize": {"of": "total"} | bits},
        _last_rounding(rng, d, ("nearest_even",)),
    ]
    return {"a": a, "b": b, "c": c, "d": d}, [{"steps": steps}]


def _fdrda_passes_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    """The algorithm itself in passes of a few products, each from the result before."""
    a, c = rng.choice(FLOATS), rng.choice(("f32", "f16", "bf16"))
    kept = rng.choice((23, 24))
    dot = rng.randint(kept, 40)
    body = {"fraction_bits": kept, "dot_fraction_bits": dot, "sum_fraction_bits": rng.randint(0, dot)}
    name, more = rng.choice(
        (("cofdrda", {"product_overflow": rng.choice((128, 16, 1))}), ("cogfdrda", {"c_window": 25}))
    )
    passes = {"nan": 0x7FC0, "products": rng.randint(1, k)}
    return {"a": a, "b": a, "c": c, "d": c}, [{name: body | more | passes}]


def _fma_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    fmt = rng.choice(("f32", "f64"))
    return dict.fromkeys("abcd", fmt), [
        {"sfma": {"nan": 0x7FC00001, "nan_order": rng.choice(([], ["a"], ["b", "c", "a"], ["c"]))}}
    ]


def _integer_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    ints = ("s8", "u8", "s4", "u4")
    if rng.random() < 0.3:
        return {"a": "b1", "b": "b1", "c": "s32", "d": "s32"}, [
            {"binary_dot_add": {"operation": rng.choice(("and", "xor"))}}
        ]
    return {"a": rng.choice(ints), "b": rng.choice(ints), "c": "s32", "d": "s32"}, [
        {"integer_dot_add": {"overflow": rng.choice(("wrap", "saturate"))}}
    ]


def _two_passes_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    """Interleaved passes whose results one IEEE addition joins."""
    a, d = rng.choice(("f16", "bf16", "e4m3", "e5m2")), rng.choice(("f32", "f16"))
    body = {
        "fraction_bits": rng.randint(10, 26),
        "rounding": rng.choice(("toward_zero", "nearest_even")),
        "nan": 0x7FFF,
    }
    program: list[Any] = [
        {"k": {"modulo": 2, "residues": [0]}, "seed": "zero", "out": d, "to": "even", "fda": dict(body)},
        {
            "k": {"modulo": 2, "residues": [1]},
            "seed": rng.choice(("zero", "even", "c")),
            "out": d,
            "to": "odd",
            "fda": dict(body),
        },
        {"k": "none", "seed": "odd", "addends": "even", "out": d, "ieee_add": {}},
    ]
    return {"a": a, "b": a, "c": d, "d": d}, program


_IN_F32 = {"format": "f32", "rounding": "nearest_even"}


def _ieee_addition(rng: random.Random, of: list[str], to: str, **more: Any) -> dict[str, Any]:
    order = rng.choice(("tree", "sequential"))
    body = {"of": of, "to": to, "order": order, "nan": 0x7FC00000 + rng.randint(0, 9), **_IN_F32}
    return {"sum": body | more | rng.choice(({}, {"flush": "signed"}))}


def _ieee_steps(rng: random.Random, flush: list[Any], terms: int) -> list[Any]:
    """Products and additions that round to f32 each, behind what is flushed."""
    steps = [*flush, {"multiply": {"to": "products", **_IN_F32} | rng.choice(({}, {"flush": "signed"}))}]
    last = "products"
    sizes = [size for size in (2, 4, 8, 16) if terms % size == 0]
    if sizes and rng.random() < 0.6:
        group = {rng.choice(("contiguous", "interleaved")): rng.choice(sizes)}
        steps.append(_ieee_addition(rng, [last], "groups", group=group))
        last = "groups"
    if rng.random() < 0.3:
        steps.append(_ieee_addition(rng, [last], "dot"))
        last = "dot"
    return [*steps, _ieee_addition(rng, rng.choice((["c", last], [last, "c"])), "d")]


def _ieee_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    """All of k at once, or even and odd places one after the other, flushed alike or not."""

    def flush() -> list[Any]:
        of = {"of": rng.sample("abc", rng.randint(1, 3)), "sign": rng.choice(("signed", "positive"))}
        return [{"flush": of}][: rng.randint(0, 1)]

    formats = {"a": rng.choice((*FLOATS, "f32")), "b": rng.choice((*FLOATS, "f32")), "c": "f32", "d": "f32"}
    operands = {}
    if {formats["a"], formats["b"]} <= {"e5m2", "e4m3"} and rng.random() < 0.4:
        operands = {"operands": "f16"}
    first = flush()
    if k % 2 or k > 64 or rng.random() < 0.5:
        return formats, [{"steps": _ieee_steps(rng, first, k), **operands}]
    program = []
    for residue, to in enumerate(("even", "odd")):
        half = {"k": {"modulo": 2, "residues": [residue]}, "out": "f32", "to": to, **operands}
        seed = rng.choice(("c", "zero", "even")[: 2 + residue])
        flushed = first if rng.random() < 0.7 else flush()
        program.append({**half, "seed": seed, "steps": _ieee_steps(rng, flushed, k // 2)})
    return formats, program


def _exact_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    """Exact sums of products and c, rounded once; bf16 has sums that two doubles do not hold."""
    a, b = (rng.choice(("f16", "f16", "bf16", *NARROW)) for _ in "ab")
    body = {"nan": rng.choice((0, 0x7FC00000)), "overflow": rng.choice(("ieee", "infinity", "largest"))}
    chain = {"exact_dot_add_chain": body | {"products": rng.randint(1, k)}}
    return {"a": a, "b": b, "c": "f32", "d": "f32"}, [rng.choice(({"exact_dot_add": body}, chain))]


KERNEL_UNITS: tuple[Callable[[random.Random, int], tuple[dict[str, Any], list[Any]]], ...] = (
    _fda_unit,
    _odd_fda_unit,
    _scaled_fda_unit,
    _gdfs_unit,
    _fdrda_unit,
    _fdrda_passes_unit,
    _fma_unit,
    _integer_unit,
    _two_passes_unit,
    _ieee_unit,
    _exact_unit,
)


def kernel_unit(rng: random.Random) -> str:
    """YAML text of a unit of one of the families that have a fast form."""
    k = rng.choice((1, 2, 3, 7, 8, 16, 17, 32, 64)) if rng.random() < 0.9 else rng.choice((128, 255, 256))
    formats, program = rng.choice(KERNEL_UNITS)(rng, k)
    local = formats.pop("define", {})
    unit = {
        "unit": "fuzz",
        "shape": shape(rng, k),
        "define_formats": local,
        "formats": formats,
        "program": program,
    }
    if not local:
        del unit["define_formats"]
    if "scale_a" in formats:
        sums = (step["sum"] for step in program[0].get("steps", ()) if "sum" in step)
        group = next((part["group"]["contiguous"] for part in sums if "group" in part), 1)
        unit["scale_block"] = rng.choice([i for i in range(group, k + 1, group) if k % i == 0])
    return yaml_text.written(unit)
