# ruff: noqa: E501  (the units at the end of the generators are one YAML text each)
"""Random custom units, operands for them, and where their models differ; tests/golden/catalog/test_fuzz.py runs them.

`random_unit` draws any mix of primitive steps that the schema accepts; `kernel_unit` draws the families that have lane
kernels, near the bounds of golden/model/kernels.py. A unit is YAML text, so that a failure message is the unit itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml_text

from golden import yamlfile
from golden.catalog import unit_files
from golden.errors import SpecError
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.number.rounding import FLOAT_OVERFLOWS, INTEGER_OVERFLOWS, MODES, OVERFLOWS

Bits = npt.NDArray[Any]
Operands = dict[str, Bits]
ORDER = ("a", "b", "c", "metadata", "scale_a", "scale_b")
SHAPES = ((1, 1), (3, 5), (1, 17), (3, 8), (2, 16), (2, 24), (1, 32), (2, 40), (5, 3), (17, 1), (16, 8))
OPERAND_FORMATS = (
    "f64",
    "f32",
    "tf32",
    "bf16",
    "f16",
    "e5m2",
    "e4m3",
    "e5m2fnuz",
    "e4m3fnuz",
    "e3m2",
    "e2m3",
    "e2m1",
    "ue8m0",
    "ue4m3",
    "s8",
    "u8",
    "s4",
    "u4",
    "b1",
    "s32",
)
IEEE_FORMATS = ("f32", "f16", "bf16", "f64", "e4m3", "e5m2", "tf32")
RESULT_FORMATS = (
    "f64",
    "f32",
    "f32",
    "f32",
    "f16",
    "f16",
    "bf16",
    "tf32",
    "e4m3",
    "e5m2",
    "e4m3fnuz",
    "e5m2fnuz",
    "e2m1",
    "s32",
    "s8",
    "u8",
)


# Units -------------------------------------------------------------------------------------------------------------------


def local_format(rng: random.Random) -> dict[str, Any]:
    """A format of odd widths."""
    if rng.random() < 0.25:
        bits = rng.choice((rng.randint(1, 16), rng.randint(1, 32)))
        storage = rng.choice([n for n in (8, 16, 32, 64) if n >= bits])
        return {"kind": "integer", "storage": storage, "bits": bits, "signed": rng.random() < 0.5}
    storage = rng.choice((8, 16, 32))
    exponent_bits = rng.randint(1 if rng.random() < 0.2 else 2, 6 if storage == 8 else 9)
    specials = rng.choice(("none", "ieee", "all_ones_nan", "negative_zero_nan"))
    fraction_bits = rng.randint(
        int(specials == "ieee" or rng.random() < 0.8), min(storage - 1 - exponent_bits, 26)
    )
    signed = specials == "negative_zero_nan" or rng.random() < 0.8
    fmt = {
        "kind": "float",
        "storage": storage,
        "exponent_bits": exponent_bits,
        "fraction_bits": fraction_bits,
        "bias": rng.randint(-3, 1 << exponent_bits),
        "specials": specials,
        "signed": signed,
        "zero": rng.random() < 0.9,
    }
    spare = storage - 1 - exponent_bits - fraction_bits
    if spare and rng.random() < 0.4:
        fmt["ignored_low"] = rng.randint(0, spare)
    return fmt


class UnitWriter:
    """Draws the steps of one operation, keeping track of how many terms each register holds."""

    def __init__(self, rng: random.Random, k: int, scaled: bool, addends: int) -> None:
        self.rng, self.k = rng, k
        self.steps: list[Any] = []
        self.count = (
            {"a": k, "b": k, "c": 1}
            | ({"scales": k} if scaled and k else {})
            | ({"addends": addends} if addends else {})
        )
        self.scaled_once = False

    def add(self, op: str, **keys: Any) -> None:
        self.steps.append({op: {key: value for key, value in keys.items() if value is not None}})

    def maybe(self, chance: float, value: Any) -> Any:
        return value if self.rng.random() < chance else None

    def mode(self) -> str:
        return self.rng.choice(MODES)

    def group(self, register: str) -> dict[str, int] | None:
        terms = min(self.count[register], max(self.k, 1))
        return (
            self.maybe(0.4, {self.rng.choice(("contiguous", "interleaved")): self.rng.randint(1, terms)})
            if terms
            else None
        )

    def groups(self, register: str, group: dict[str, int] | None) -> int:
        if not group:
            return 1
        kind, size = next(iter(group.items()))
        return size if kind == "interleaved" else -(-self.count[register] // size)

    def ieee(self) -> dict[str, Any]:
        return {
            "format": self.rng.choice((*IEEE_FORMATS, *IEEE_FORMATS, "s32", "s8", "u8")),
            "rounding": self.mode(),
            "flush": self.maybe(0.4, self.rng.choice(("signed", "positive"))),
        }

    def sum_overflow(self) -> str | None:
        """For integers; the loader refuses it elsewhere."""
        return self.maybe(0.2, self.rng.choice(("saturate", "saturate", "ieee")))

    def aside(self) -> random.Random:
        """Draws of their own: those of the other keys stay what they were."""
        return random.Random(str(self.rng.getstate()[1][-8:]))

    def multiply(self) -> None:
        rounded = self.ieee() if self.rng.random() < 0.2 else {}
        operation = self.maybe(0.05, self.rng.choice(("and", "xor")))
        negate = self.aside().choice((None,) * 6 + ("product", "c", "both"))
        self.add(
            "multiply",
            to="products",
            operation=operation,
            negate=negate if operation is None else None,
            **rounded,
            normalize=self.maybe(0.2, True),
            overflow_exponent=self.maybe(0.15, self.rng.choice((-20, 0, 8, 16, 128))),
        )
        self.count["products"] = self.k

    def align(self, registers: list[str]) -> None:
        bits = self.rng.choice((0, 1, 5, 13, 24, 25, 31, 40, 60, 72))
        table = (
            {name: max(0, bits - self.rng.randint(0, 8)) for name in registers}
            if self.rng.random() < 0.3
            else bits
        )
        self.add(
            "align",
            of=registers,
            fraction_bits=table,
            rounding=self.mode(),
            cut=self.maybe(0.4, self.rng.choice(("sticky_added", "sticky_or"))),
            floor=self.maybe(0.4, self.rng.choice((-150, -126, -20, 0, 10, 60, -100000, 100000))),
            window=self.maybe(0.2, {registers[-1]: self.rng.randint(0, 30)}),
            group=self.group(registers[0]) if len(registers) == 1 else None,
        )

    def total(self, registers: list[str], to: str) -> None:
        group = self.group(registers[0]) if len(registers) == 1 else None
        if self.rng.random() < 0.35:
            order = self.rng.choice(("tree", "sequential"))
            self.add(
                "sum",
                of=registers,
                to=to,
                group=group,
                order=order,
                overflow=self.sum_overflow(),
                **self.ieee(),
            )
        else:
            exponent = self.maybe(0.1, self.rng.choice((0, -30, 20, -100000, 100000)))
            self.add(
                "sum",
                of=registers,
                to=to,
                group=group,
                rounding=self.maybe(0.3, self.mode()),
                exponent=exponent,
            )
        self.count[to] = self.groups(registers[0], group)

    def middle(self, register: str) -> str:
        """One to three steps on the register of products or sums; returns the register that holds them then."""
        for _ in range(self.rng.randint(0, 3)):
            pick = self.rng.randrange(6)
            if pick == 0:
                self.align([register])
            elif pick == 1 and self.count[register] > 1:
                to = self.rng.choice(("groups", "dot", "partial"))
                self.total([register], to)
                register = to
            elif pick == 2:
                self.add(
                    "normalize",
                    of=register,
                    fraction_bits=self.rng.choice((0, 3, 20, 31, 52)),
                    rounding=self.mode(),
                    min_exponent=self.maybe(0.4, self.rng.choice((-126, -14, 0, 40, 100000))),
                )
            elif (
                pick == 3
                and "scales" in self.count
                and not self.scaled_once
                and self.count[register] <= self.k
            ):
                self.add("scale", of=register)
                self.scaled_once = True
            elif pick == 4:
                self.add(
                    "round",
                    of=register,
                    to="partial",
                    format=self.rng.choice(("f32", "f16", "bf16", "s32", "u8")),
                    rounding=self.mode(),
                    overflow=self.rng.choice(OVERFLOWS),
                    zero=self.rng.choice(("positive", "signed")),
                    flush=self.maybe(0.3, self.rng.choice(("signed", "positive"))),
                )
                self.count["partial"] = self.count[register]
                register = "partial"
            elif pick == 5:
                self.add("flush", of=register, sign=self.rng.choice(("signed", "positive")))
        return register

    def start(self) -> str:
        if not self.k:
            return "c"
        if self.rng.random() < 0.2:
            group = self.group("a")
            self.add(
                "fma",
                to="dot",
                start=self.rng.choice(("c", "zero", "product")),
                group=group,
                **self.ieee(),
                nan_order=self.maybe(0.5, self.rng.sample(["a", "b", "c"], self.rng.randint(1, 3))),
            )
            self.count["dot"] = self.groups("a", group)
            return "dot"
        self.multiply()
        return "products"

    def write(self, out_is_float: bool) -> list[Any]:
        if self.rng.random() < 0.3:
            self.add(
                "flush",
                of=self.rng.choice((["a", "b"], ["a", "b", "c"], "c")) if self.k else "c",
                sign=self.rng.choice(("signed", "positive")),
            )
        register = self.start()
        if "scales" in self.count and self.rng.random() < 0.6 and register == "products":
            self.add("scale", of=register)
            self.scaled_once = True
        known = [name for name in ("products", "dot", "c", "addends", "scales") if name in self.count]
        if self.rng.random() < 0.7:
            self.add("special_values", of=known[:4])
        register = self.middle(register) if register != "c" else "c"
        last = (
            [register]
            + ["c"] * (register != "c" and self.rng.random() < 0.8)
            + ["addends"] * ("addends" in self.count)
        )
        if self.rng.random() < 0.6:
            self.align(last)
        if self.rng.random() < 0.2:
            order, overflow = self.rng.choice(("tree", "sequential")), self.sum_overflow()
            self.add("sum", of=last, to="d", order=order, rounding=self.mode(), overflow=overflow)
            return self.steps
        self.total(last, "total")
        if self.count["total"] == 1 and self.rng.random() < 0.2:
            self.add(
                "normalize",
                of="total",
                fraction_bits=31,
                rounding=self.mode(),
                min_exponent=self.maybe(0.5, -126),
            )
        usual = FLOAT_OVERFLOWS if out_is_float else INTEGER_OVERFLOWS
        overflow = usual if self.rng.random() < 0.9 else OVERFLOWS
        self.add(
            "round",
            of="total",
            rounding=self.mode(),
            overflow=self.rng.choice(overflow),
            zero=self.rng.choice(("positive", "signed")),
            flush=self.maybe(0.2, self.rng.choice(("signed", "positive"))),
            fraction_bits=self.maybe(0.1, 1) if out_is_float else None,
        )
        return self.steps


def shape(rng: random.Random, k: int) -> dict[str, int]:
    m, n = rng.choice(SHAPES)
    return {"k": k, "m": m, "n": n}


def random_unit(rng: random.Random) -> str:
    """YAML text of a unit with one to three operations of random steps (it may still be refused by the loader)."""
    k = rng.randint(1, 40) if rng.random() < 0.3 else rng.randint(1, 9)
    local = {f"x{i}": local_format(rng) for i in range(3)} if rng.random() < 0.4 else {}
    names = [*local, *local, *OPERAND_FORMATS] if local else list(OPERAND_FORMATS)
    results = [*local, *RESULT_FORMATS]
    formats = {
        "a": rng.choice(names),
        "b": rng.choice(names),
        "c": rng.choice(results),
        "d": rng.choice(results),
    }
    if rng.random() < 0.4:
        formats["b"] = formats["a"]
    scaled = rng.random() < 0.3
    unit: dict[str, Any] = {"unit": "fuzz", "shape": shape(rng, k), "formats": formats}
    if local:
        unit["define_formats"] = local
    if scaled:
        formats |= {
            "scale_a": rng.choice(("ue8m0", "ue4m3", "e4m3")),
            "scale_b": rng.choice(("ue8m0", "ue4m3", "e4m3")),
        }
        unit["scale_block"] = rng.choice([i for i in range(1, k + 1) if k % i == 0])
    is_float = {name: name[0] not in "sbu" or name.startswith("ue") or name == "bf16" for name in results}
    is_float |= {name: fmt["kind"] == "float" for name, fmt in local.items()}
    count = rng.choice((1, 1, 2, 3))
    program: list[Any] = []
    for i in range(count):
        out = formats["d"] if i == count - 1 else rng.choice(("f32", "f16", formats["d"]))
        addends = [f"r{j}" for j in range(i) if program[j]["out"] == out and rng.random() < 0.4]
        subset = {"modulo": count, "residues": [i]}
        steps = UnitWriter(rng, len([x for x in range(k) if x % count == i]), scaled, len(addends)).write(
            is_float[out]
        )
        operation: dict[str, Any] = {
            "k": subset,
            "out": out,
            "to": "d" if i == count - 1 else f"r{i}",
            "steps": steps,
        }
        if addends:
            operation["addends"] = addends
        if i and rng.random() < 0.3:
            operation["seed"] = rng.choice(("c", "zero", *(f"r{j}" for j in range(i))))
        program.append(operation)
    unit["program"] = program
    return yaml_text.written(unit)


NARROW = ("e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz", "e3m2", "e2m3", "e2m1")
FLOATS = ("f16", "bf16", "tf32", *NARROW)


def _fda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    a, c, d = (
        rng.choice(FLOATS),
        rng.choice(("f32", "f32", "f16", "bf16")),
        rng.choice(("f32", "f32", "f16", "bf16")),
    )
    b = a if rng.random() < 0.6 else rng.choice(FLOATS)
    widest = {"f32": 23, "f16": 10, "bf16": 7}[d]
    body: dict[str, Any] = {
        "fraction_bits": rng.randint(1, 28),
        "rounding": rng.choice(("toward_zero", "nearest_even")),
        "nan": rng.choice((0, 0x7FFF)),
    }
    if rng.random() < 0.5:
        body["exponent_floor"] = rng.choice((-149, -139, -133, -126, -24, 0, 40, -100000, 100000))
    if rng.random() < 0.4:
        body["result_fraction_bits"] = rng.randint(0, widest)
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


def _gdfs_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    floor = {} if rng.random() < 0.5 else {"exponent_floor": rng.choice((-139, -133, 0))}
    scale = rng.choice(("ue8m0", "ue4m3"))
    body = {
        "fraction_bits": rng.randint(23, 35),
        "group": rng.choice([i for i in (1, 2, 4, 8, 16, 32, 64) if k % i == 0]),
        "nan": 1,
    }
    return {"a": "e2m1", "b": "e2m1", "c": "f32", "d": "f32", "scale_a": scale, "scale_b": scale}, [
        {"gdfs": body | floor}
    ]


def _fdrda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    a = rng.choice(FLOATS)
    b = a if rng.random() < 0.6 else rng.choice(FLOATS)
    kept = rng.choice((23, 24))
    dot = rng.randint(kept, 40)
    body: dict[str, Any] = {
        "fraction_bits": kept,
        "dot_fraction_bits": dot,
        "sum_fraction_bits": rng.randint(0, dot),
        "nan": 0x7FC0,
    }
    if rng.random() < 0.5:
        return {"a": a, "b": b, "c": "f32", "d": "f32"}, [{"gfdrda": body | {"c_window": rng.randint(0, 40)}}]
    body["product_overflow"] = rng.choice((128, 128, 16, -20, 1))
    name = {"fdrda": body} if rng.random() < 0.5 else {"cofdrda": body | {"products": rng.randint(1, k)}}
    return {
        "a": a,
        "b": b,
        "c": rng.choice(("f32", "f16", "bf16")),
        "d": rng.choice(("f32", "f16", "bf16")),
    }, [name]


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


KERNEL_UNITS: tuple[Callable[[random.Random, int], tuple[dict[str, Any], list[Any]]], ...] = (
    _fda_unit,
    _odd_fda_unit,
    _scaled_fda_unit,
    _gdfs_unit,
    _fdrda_unit,
    _fdrda_unit,
    _fma_unit,
    _integer_unit,
    _two_passes_unit,
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
        group = program[0].get("gdfs", {}).get("group", 1)
        unit["scale_block"] = rng.choice([i for i in range(group, k + 1, group) if k % i == 0])
    return yaml_text.written(unit)


# Units by hand: each one once made the models disagree, or one of them fail. The loader may as well refuse them.
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


# Operands ----------------------------------------------------------------------------------------------------------------


def draw_codes(fmt: Format, size: tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Codes of one format: random bits, near exponents, the ends of the exponent range, special codes and zeros."""
    bits = rng.integers(0, 1 << 64, size, dtype=np.uint64, endpoint=False) & np.uint64((1 << fmt.bits) - 1)
    if fmt.is_float:
        top, low = (1 << fmt.exponent_bits) - 1, np.uint64(fmt.fraction_bits + fmt.ignored_low)
        middle = int(rng.integers(0, top + 1))
        near = np.clip(middle + rng.integers(-4, 5, size), 0, top)
        fields = {
            0: rng.integers(0, top + 1, size),
            1: near,
            2: rng.integers(0, min(3, top) + 1, size),
            3: top - rng.integers(0, min(3, top) + 1, size),
            4: near,
        }[int(rng.integers(0, 5))].astype(np.uint64)
        mask = np.uint64(top) << low
        bits = (bits & ~mask) | (fields << low)
        if rng.random() < 0.4:  # few significant bits: ties and exact cancellation
            bits &= ~np.uint64((1 << int(low)) - 1) | np.uint64(1 << max(int(low) - 1, 0))
    codes = [
        0,
        fmt.largest,
        *((fmt.infinity,) if fmt.infinity is not None else ()),
        *((fmt.nan,) if fmt.nan is not None else ()),
    ]
    codes += [1, 1 << fmt.sign_shift] if fmt.is_float and fmt.signed else [1]
    rare = rng.choice((0.0, 0.0, 0.05, 0.3))
    special = rng.random(size) < rare
    chosen = rng.choice(np.array(codes[:2] if rng.random() < 0.5 else codes, dtype=np.uint64), size)
    if fmt.is_float and fmt.signed:
        chosen |= rng.integers(0, 2, size, dtype=np.uint64) << np.uint64(fmt.sign_shift)
    return np.asarray(np.where(special, chosen, bits).astype(fmt.dtype))


def draw_dots(ins: Instruction, count: int, rng: np.random.Generator) -> Operands:
    """Operands of `count` dot products; in some, neighbouring products cancel, in some c cancels the result for c = 0."""
    operands = {
        name: draw_codes(ins.formats[name], (count, *size), rng)
        for name, size in ins.operand_shapes(matrices=False).items()
    }
    a = ins.formats["a"]
    if rng.random() < 0.4 and ins.k > 1 and a.is_float and a.signed:
        pairs = ins.k // 2 * 2
        rows = rng.random(count) < 0.6
        operands["a"][rows, 1:pairs:2] = operands["a"][rows, 0:pairs:2] ^ a.dtype.type(1 << a.sign_shift)
        operands["b"][rows, 1:pairs:2] = operands["b"][rows, 0:pairs:2]
    c = ins.formats["c"]
    if rng.random() < 0.4 and c == ins.formats["d"] and c.is_float and c.signed:
        zero = np.zeros_like(operands["c"])
        d = ins.engine.dots(
            operands["a"],
            operands["b"],
            zero,
            None,
            operands.get("scale_a"),
            operands.get("scale_b"),
            general=True,
        )
        rows = rng.random(count) < 0.5
        operands["c"] = np.where(
            rows,
            (d ^ c.dtype.type(1 << c.sign_shift)) + rng.integers(0, 2, count).astype(c.dtype),
            operands["c"],
        )
        operands["c"] &= c.dtype.type((1 << c.bits) - 1)
    return operands


def draw_matrices(ins: Instruction, batch: int, rng: np.random.Generator) -> Operands:
    """Operands of whole products, with columns drawn on their own; b and c lie transposed or reversed in memory."""
    rows, columns, points = (draw_dots(ins, batch * count, rng) for count in (ins.m, ins.n, ins.m * ins.n))
    operands = {
        "a": rows["a"].reshape(batch, ins.m, ins.k),
        "b": columns["b"].reshape(batch, ins.n, ins.k).swapaxes(-1, -2),
        "c": points["c"].reshape(batch, ins.m, ins.n),
    }
    if "scale_a" in rows:
        operands["scale_a"] = rows["scale_a"].reshape(batch, ins.m, -1)
        operands["scale_b"] = columns["scale_b"].reshape(batch, ins.n, -1).swapaxes(-1, -2)
    for name in operands:
        pick = rng.integers(0, 4)
        if pick == 0:
            operands[name] = np.ascontiguousarray(operands[name])
        elif pick == 1:
            operands[name] = np.ascontiguousarray(operands[name][:, ::-1, ::-1])[:, ::-1, ::-1]
        elif pick == 2:
            operands[name] = np.repeat(operands[name], 2, axis=-1)[..., ::2]
    return operands


def as_dots(operands: Operands) -> Operands:
    """The same products for the broadcasting of `dot`: rows (m, 1, k) against columns (1, n, k)."""
    views = {}
    for name, array in operands.items():
        if name in ("b", "scale_b"):
            views[name] = array.swapaxes(-1, -2)[..., None, :, :]
        else:
            views[name] = array if name == "c" else array[..., :, None, :]
    return views


# Checks ------------------------------------------------------------------------------------------------------------------


def load(text: str) -> Instruction:
    return unit_files.build_instruction(yamlfile.parse(text))


def general(ins: Instruction, operands: Operands, matrices: bool = False) -> Bits:
    run = ins.engine.matrices if matrices else ins.engine.dots
    return run(*(operands.get(name) for name in ORDER), general=True)


def shown(operands: Operands, i: int) -> str:
    return ", ".join(
        f"{name}: {' '.join(f'{int(x):x}' for x in np.atleast_1d(array[i]))}"
        for name, array in operands.items()
    )


def differences(ins: Instruction, count: int, seed: int) -> list[str]:
    """Every way in which the models of one unit disagree on random operands, with one example each."""
    rng = np.random.default_rng(seed)
    operands = draw_dots(ins, count, rng)
    dots = [{name: array[i] for name, array in operands.items()} for i in range(count)]
    wanted = np.array([ins.reference_dot(**dot) for dot in dots], dtype=np.uint64)
    found = []
    for what, got in (
        ("general", general(ins, operands)),
        ("dot", ins.dot(**operands)),
    ):
        wrong = np.flatnonzero(got != wanted)
        if wrong.size:
            i = int(wrong[0])
            found.append(
                f"{what} {int(got[i]):x}, reference {int(wanted[i]):x} ({wrong.size} wrong) for {shown(operands, i)}"
            )
    many = draw_dots(ins, 16 * count + 1, rng)
    slow, got = general(ins, many), ins.dot(**many)
    wrong = np.flatnonzero(got != slow)
    if wrong.size:
        first = int(wrong[0])
        found.append(f"dot {int(got[first]):x}, general {int(slow[first]):x} for {shown(many, first)}")
    blocks = draw_matrices(ins, 2, rng)
    product, single = ins(**blocks), general(ins, as_dots(blocks))
    if not np.array_equal(product, single):
        found.append(f"matrices differ from dots at {np.argwhere(product != single)[:4].tolist()}")
    if not np.array_equal(general(ins, blocks, matrices=True), single):
        found.append("general matrices differ from general dots")
    return found


def accepted(make: Callable[[random.Random], str], seed: int) -> tuple[str, Instruction]:
    """The first unit after `seed` that the loader accepts."""
    rng = random.Random(seed)
    while True:
        text = make(rng)
        try:
            return text, load(text)
        except SpecError:
            continue
