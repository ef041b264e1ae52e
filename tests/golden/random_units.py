"""Random custom units: any mix of primitive steps that the schema accepts.

A unit is YAML text, so that a failure message is the unit itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import yaml_text

from golden import yamlfile
from golden.catalog import unit_files
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.number.rounding import FLOAT_OVERFLOWS, INTEGER_OVERFLOWS, MODES, OVERFLOWS

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

WIDE_FORMATS = ("f64", "f64", "f64", "f32", "bf16", "e5m2")
"""Of units whose numbers need significands of two words."""


def wide_format(rng: random.Random) -> dict[str, Any]:
    """A float of 64 bits of storage and odd widths."""
    exponent_bits = rng.randint(2, 10)
    return {
        "kind": "float",
        "storage": 64,
        "exponent_bits": exponent_bits,
        "fraction_bits": rng.randint(20, 52),
        "bias": (1 << exponent_bits - 1) + rng.randint(-3, 3),
        "specials": rng.choice(("ieee", "ieee", "none", "all_ones_nan", "negative_zero_nan")),
        "signed": True,
        "zero": True,
    }


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
        """Draws of their own: the draws of the other keys stay what they were."""
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
        """Up to three steps on the register of products or sums; returns the one that holds them then."""
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


def wide_unit(rng: random.Random) -> str:
    """A random unit of floats, most of them wide."""
    return random_unit(rng, wide=True)


def random_unit(rng: random.Random, wide: bool = False) -> str:
    """YAML text of a unit with one to three operations of random steps; the loader may refuse it."""
    k = rng.randint(1, 40) if rng.random() < 0.3 else rng.randint(1, 9)
    own_format, operands, out_formats = (
        (wide_format, WIDE_FORMATS, WIDE_FORMATS) if wide else (local_format, OPERAND_FORMATS, RESULT_FORMATS)
    )
    local = {f"x{i}": own_format(rng) for i in range(3)} if rng.random() < 0.4 else {}
    names = [*local, *local, *operands] if local else list(operands)
    results = [*local, *out_formats]
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
    is_float = {
        name: name[0] not in "sbu" or name.startswith("ue") or name == "bf16" for name in (*results, "f16")
    }
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


def load(text: str) -> Instruction:
    return unit_files.build_instruction(yamlfile.parse(text))


def accepted(make: Callable[[random.Random], str], seed: int) -> tuple[str, Instruction]:
    """The first unit after `seed` that the loader accepts."""
    rng = random.Random(seed)
    while True:
        text = make(rng)
        try:
            return text, load(text)
        except SpecError:
            continue
