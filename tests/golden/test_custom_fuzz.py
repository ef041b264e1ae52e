"""Random custom units: the reference model, the general interpreter and the lane kernels agree on every one.

`random_unit` draws any mix of primitive steps that the schema accepts; `kernel_unit` draws the families that have lane
kernels, near the bounds of golden/lanes.py. A unit is YAML text, so that a failure message is the unit itself.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import yaml
from golden import custom, yamlfile
from golden.errors import CoreError, SpecError
from golden.formats import Format
from golden.instruction import Instruction
from golden.rounding import MODES

Bits = npt.NDArray[Any]
Operands = dict[str, Bits]
ORDER = ("a", "b", "c", "metadata", "scale_a", "scale_b")
SHAPES = ((1, 1), (3, 5), (1, 17), (3, 8), (2, 16), (2, 24), (1, 32), (2, 40), (5, 3), (17, 1), (16, 8))
OPERAND_FORMATS = ("f64", "f32", "tf32", "bf16", "f16", "e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz", "e3m2", "e2m3", "e2m1", "ue8m0", "ue4m3",
                   "s8", "u8", "s4", "u4", "b1", "s32")
RESULT_FORMATS = ("f64", "f32", "f32", "f32", "f16", "f16", "bf16", "tf32", "e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e2m1", "s32", "s8", "u8")


# Units -------------------------------------------------------------------------------------------------------------------


def local_format(rng: random.Random) -> dict[str, Any]:
    """A format of odd widths. Left out: codes without meaning (one exponent bit, a NaN code without a sign bit)."""
    if rng.random() < 0.2:
        bits = rng.randint(2, 16)
        return {"kind": "integer", "storage": 8 if bits <= 8 else 16, "bits": bits, "signed": rng.random() < 0.5}
    storage = rng.choice((8, 16, 32))
    exponent_bits = rng.randint(2, 6 if storage == 8 else 9)
    fraction_bits = rng.randint(1, min(storage - 1 - exponent_bits, 26))
    specials = rng.choice(("none", "ieee", "all_ones_nan", "negative_zero_nan"))
    signed = specials == "negative_zero_nan" or rng.random() < 0.8
    fmt = {"kind": "float", "storage": storage, "exponent_bits": exponent_bits, "fraction_bits": fraction_bits,
           "bias": rng.randint(-3, 1 << exponent_bits), "specials": specials, "signed": signed, "zero": rng.random() < 0.9}
    spare = storage - 1 - exponent_bits - fraction_bits
    if spare and rng.random() < 0.4:
        fmt["ignored_low"] = rng.randint(0, spare)
    return fmt


class UnitWriter:
    """Draws the steps of one operation, keeping track of how many terms each register holds."""

    def __init__(self, rng: random.Random, k: int, scaled: bool, addends: int, integer_out: bool) -> None:
        self.rng, self.k, self.steps, self.integer_out = rng, k, [], integer_out  # type: tuple[Any, ...]
        self.count = {"a": k, "b": k, "c": 1} | ({"scales": k} if scaled and k else {}) | ({"addends": addends} if addends else {})
        self.scaled_once = False

    def add(self, op: str, **keys: Any) -> None:
        self.steps.append({op: {key: value for key, value in keys.items() if value is not None}})

    def maybe(self, chance: float, value: Any) -> Any:
        return value if self.rng.random() < chance else None

    def mode(self) -> str:
        return self.rng.choice(MODES)

    def group(self, register: str) -> dict[str, int] | None:
        terms = min(self.count[register], max(self.k, 1))
        return self.maybe(0.4, {self.rng.choice(("contiguous", "interleaved")): self.rng.randint(1, terms)}) if terms else None

    def groups(self, register: str, group: dict[str, int] | None) -> int:
        if not group:
            return 1
        kind, size = next(iter(group.items()))
        return size if kind == "interleaved" else -(-self.count[register] // size)

    def ieee(self) -> dict[str, Any]:
        return {"format": self.rng.choice(("f32", "f16", "bf16", "f64", "e4m3", "e5m2", "tf32")), "rounding": self.mode(),
                "flush": self.maybe(0.4, self.rng.choice(("signed", "positive")))}

    def multiply(self) -> None:
        rounded = self.ieee() if self.rng.random() < 0.2 else {}
        self.add("multiply", to="products", **rounded, normalize=self.maybe(0.2, True),
                 overflow_exponent=self.maybe(0.15, self.rng.choice((-20, 0, 8, 16, 128))))
        self.count["products"] = self.k

    def align(self, registers: list[str]) -> None:
        bits = self.rng.choice((0, 1, 5, 13, 24, 25, 31, 40, 60, 72))
        table = {name: max(0, bits - self.rng.randint(0, 8)) for name in registers} if self.rng.random() < 0.3 else bits
        self.add("align", of=registers, fraction_bits=table, rounding=self.mode(), cut=self.maybe(0.3, "sticky"),
                 floor=self.maybe(0.4, self.rng.choice((-150, -126, -20, 0, 10))),
                 window=self.maybe(0.2, {registers[-1]: self.rng.randint(0, 30)}),
                 group=self.group(registers[0]) if len(registers) == 1 else None)

    def total(self, registers: list[str], to: str) -> None:
        group = self.group(registers[0]) if len(registers) == 1 else None
        if self.rng.random() < 0.35:
            self.add("sum", of=registers, to=to, group=group, order=self.rng.choice(("tree", "sequential")), **self.ieee())
        else:
            self.add("sum", of=registers, to=to, group=group, rounding=self.maybe(0.3, self.mode()))
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
                self.add("normalize", of=register, fraction_bits=self.rng.choice((0, 3, 20, 31, 52)), rounding=self.mode(),
                         min_exponent=self.maybe(0.4, self.rng.choice((-126, -14, 0))))
            elif pick == 3 and "scales" in self.count and not self.scaled_once and self.count[register] <= self.k:
                self.add("scale", of=register)
                self.scaled_once = True
            elif pick == 4:
                self.add("round", of=register, to="partial", format=self.rng.choice(("f32", "f16", "bf16")), rounding=self.mode(),
                         overflow=self.rng.choice(("infinity", "largest", "ieee")), zero=self.rng.choice(("positive", "signed")),
                         flush=self.maybe(0.3, self.rng.choice(("signed", "positive"))))
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
            self.add("fma", to="dot", start=self.rng.choice(("c", "zero", "product")), group=group, **self.ieee(),
                     nan_order=self.maybe(0.5, self.rng.sample(["a", "b", "c"], self.rng.randint(1, 3))))
            self.count["dot"] = self.groups("a", group)
            return "dot"
        self.multiply()
        return "products"

    def write(self, out_is_float: bool) -> list[Any]:
        if self.rng.random() < 0.3:
            self.add("flush", of=self.rng.choice((["a", "b"], ["a", "b", "c"], "c")) if self.k else "c",
                     sign=self.rng.choice(("signed", "positive")))
        register = self.start()
        if "scales" in self.count and self.rng.random() < 0.6 and register == "products":
            self.add("scale", of=register)
            self.scaled_once = True
        known = [name for name in ("products", "dot", "c", "addends", "scales") if name in self.count]
        if self.rng.random() < 0.7:
            self.add("special_values", of=known[:4])
        register = self.middle(register) if register != "c" else "c"
        last = [register] + ["c"] * (register != "c" and self.rng.random() < 0.8) + ["addends"] * ("addends" in self.count)
        if self.rng.random() < 0.6:
            self.align(last)
        if out_is_float and self.rng.random() < 0.2:
            self.add("sum", of=last, to="d", order=self.rng.choice(("tree", "sequential")), rounding=self.mode())
            return self.steps
        self.total(last, "total")
        if self.count["total"] == 1 and self.rng.random() < 0.2:
            self.add("normalize", of="total", fraction_bits=31, rounding=self.mode(), min_exponent=self.maybe(0.5, -126))
        overflow = ("infinity", "largest", "ieee") if out_is_float else ("wrap", "saturate")
        self.add("round", of="total", rounding=self.mode(), overflow=self.rng.choice(overflow),
                 zero=self.rng.choice(("positive", "signed")), flush=self.maybe(0.2, self.rng.choice(("signed", "positive"))),
                 fraction_bits=self.maybe(0.1, 1) if out_is_float else None)
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
    formats = {"a": rng.choice(names), "b": rng.choice(names), "c": rng.choice(results), "d": rng.choice(results)}
    if rng.random() < 0.4:
        formats["b"] = formats["a"]
    scaled = rng.random() < 0.3
    unit: dict[str, Any] = {"unit": "fuzz", "shape": shape(rng, k), "formats": formats}
    if local:
        unit["define_formats"] = local
    if scaled:
        formats |= {"scale_a": rng.choice(("ue8m0", "ue4m3", "e4m3")), "scale_b": rng.choice(("ue8m0", "ue4m3", "e4m3"))}
        unit["scale_block"] = rng.choice([i for i in range(1, k + 1) if k % i == 0])
    is_float = {name: name[0] not in "sbu" or name.startswith("ue") or name == "bf16" for name in results}
    is_float |= {name: fmt["kind"] == "float" for name, fmt in local.items()}
    count = rng.choice((1, 1, 2, 3))
    program = []
    for i in range(count):
        out = formats["d"] if i == count - 1 else rng.choice(("f32", "f16", formats["d"]))
        addends = [f"r{j}" for j in range(i) if program[j]["out"] == out and rng.random() < 0.4]
        subset = {"modulo": count, "residues": [i]}
        steps = UnitWriter(rng, len([x for x in range(k) if x % count == i]), scaled, len(addends), not is_float[out]).write(is_float[out])
        operation: dict[str, Any] = {"k": subset, "out": out, "to": "d" if i == count - 1 else f"r{i}", "steps": steps}
        if addends:
            operation["addends"] = addends
        if i and rng.random() < 0.3:
            operation["seed"] = rng.choice(("c", "zero", *(f"r{j}" for j in range(i))))
        program.append(operation)
    unit["program"] = program
    return str(yaml.safe_dump(unit, sort_keys=False))


NARROW = ("e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz", "e3m2", "e2m3", "e2m1")
FLOATS = ("f16", "bf16", "tf32", *NARROW)


def _fda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    a, c, d = rng.choice(FLOATS), rng.choice(("f32", "f32", "f16", "bf16")), rng.choice(("f32", "f32", "f16", "bf16"))
    b = a if rng.random() < 0.6 else rng.choice(FLOATS)
    widest = {"f32": 23, "f16": 10, "bf16": 7}[d]
    body: dict[str, Any] = {"fraction_bits": rng.randint(1, 28), "rounding": rng.choice(("toward_zero", "nearest_even")),
                            "nan": rng.choice((0, 0x7FFF))}
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


def _scaled_fda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    scale = {"scale_a": "ue8m0", "scale_b": "ue8m0"}
    floor = {} if rng.random() < 0.5 else {"exponent_floor": rng.choice((-139, -133, 0))}
    a, b = rng.choice(NARROW), rng.choice(NARROW)
    return {"a": a, "b": b, "c": "f32", "d": "f32"} | scale, [{"scaled_fda": {"fraction_bits": rng.randint(1, 28), "nan": 0x7FC00000} | floor}]


def _gdfs_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    floor = {} if rng.random() < 0.5 else {"exponent_floor": rng.choice((-139, -133, 0))}
    scale = rng.choice(("ue8m0", "ue4m3"))
    body = {"fraction_bits": rng.randint(23, 35), "group": rng.choice([i for i in (1, 2, 4, 8, 16, 32, 64) if k % i == 0]), "nan": 1}
    return {"a": "e2m1", "b": "e2m1", "c": "f32", "d": "f32", "scale_a": scale, "scale_b": scale}, [{"gdfs": body | floor}]


def _fdrda_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    a = rng.choice(FLOATS)
    b = a if rng.random() < 0.6 else rng.choice(FLOATS)
    kept = rng.choice((23, 24))
    dot = rng.randint(kept, 40)
    body: dict[str, Any] = {"fraction_bits": kept, "dot_fraction_bits": dot, "sum_fraction_bits": rng.randint(0, dot), "nan": 0x7FC0}
    if rng.random() < 0.5:
        return {"a": a, "b": b, "c": "f32", "d": "f32"}, [{"gfdrda": body | {"c_window": rng.randint(0, 40)}}]
    body["product_overflow"] = rng.choice((128, 128, 16, -20, 1))
    name = {"fdrda": body} if rng.random() < 0.5 else {"cofdrda": body | {"products": rng.randint(1, k)}}
    return {"a": a, "b": b, "c": rng.choice(("f32", "f16", "bf16")), "d": rng.choice(("f32", "f16", "bf16"))}, [name]


def _fma_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    fmt = rng.choice(("f32", "f64"))
    return dict.fromkeys("abcd", fmt), [{"sfma": {"nan": 0x7FC00001, "nan_order": rng.choice(([], ["a"], ["b", "c", "a"], ["c"]))}}]


def _integer_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    ints = ("s8", "u8", "s4", "u4")
    if rng.random() < 0.3:
        return {"a": "b1", "b": "b1", "c": "s32", "d": "s32"}, [{"binary_dot_add": {"operation": rng.choice(("and", "xor"))}}]
    return {"a": rng.choice(ints), "b": rng.choice(ints), "c": "s32", "d": "s32"}, [{"integer_dot_add": {"overflow": rng.choice(("wrap", "saturate"))}}]


def _two_passes_unit(rng: random.Random, k: int) -> tuple[dict[str, Any], list[Any]]:
    """Interleaved passes whose results one IEEE addition joins."""
    a, d = rng.choice(("f16", "bf16", "e4m3", "e5m2")), rng.choice(("f32", "f16"))
    body = {"fraction_bits": rng.randint(10, 26), "rounding": rng.choice(("toward_zero", "nearest_even")), "nan": 0x7FFF}
    program: list[Any] = [{"k": {"modulo": 2, "residues": [0]}, "seed": "zero", "out": d, "to": "even", "fda": dict(body)},
                          {"k": {"modulo": 2, "residues": [1]}, "seed": rng.choice(("zero", "even", "c")), "out": d, "to": "odd", "fda": dict(body)},
                          {"k": "none", "seed": "odd", "addends": "even", "out": d, "ieee_add": {}}]
    return {"a": a, "b": a, "c": d, "d": d}, program


KERNEL_UNITS: tuple[Callable[[random.Random, int], tuple[dict[str, Any], list[Any]]], ...] = (
    _fda_unit, _fda_unit, _scaled_fda_unit, _gdfs_unit, _fdrda_unit, _fdrda_unit, _fma_unit, _integer_unit, _two_passes_unit)


def kernel_unit(rng: random.Random) -> str:
    """YAML text of a unit of one of the families that have lane kernels."""
    k = rng.choice((1, 2, 3, 7, 8, 16, 17, 32, 64)) if rng.random() < 0.9 else rng.choice((128, 255, 256))
    formats, program = rng.choice(KERNEL_UNITS)(rng, k)
    unit = {"unit": "fuzz", "shape": shape(rng, k), "formats": formats, "program": program}
    if "scale_a" in formats:
        group = program[0].get("gdfs", {}).get("group", 1)
        unit["scale_block"] = rng.choice([i for i in range(group, k + 1, group) if k % i == 0])
    return str(yaml.safe_dump(unit, sort_keys=False))


# Operands ----------------------------------------------------------------------------------------------------------------


def draw_codes(fmt: Format, size: tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Codes of one format: random bits, near exponents, the ends of the exponent range, special codes and zeros."""
    bits = rng.integers(0, 1 << 64, size, dtype=np.uint64, endpoint=False) & np.uint64((1 << fmt.bits) - 1)
    if fmt.is_float:
        top, low = (1 << fmt.exponent_bits) - 1, np.uint64(fmt.fraction_bits + fmt.ignored_low)
        middle = int(rng.integers(0, top + 1))
        near = np.clip(middle + rng.integers(-4, 5, size), 0, top)
        fields = {0: rng.integers(0, top + 1, size), 1: near, 2: rng.integers(0, min(3, top) + 1, size),
                  3: top - rng.integers(0, min(3, top) + 1, size), 4: near}[int(rng.integers(0, 5))].astype(np.uint64)
        mask = np.uint64(top) << low
        bits = (bits & ~mask) | (fields << low)
        if rng.random() < 0.4:  # few significant bits: ties and exact cancellation
            bits &= ~np.uint64((1 << int(low)) - 1) | np.uint64(1 << max(int(low) - 1, 0))
    codes = [0, fmt.largest, *((fmt.infinity,) if fmt.infinity is not None else ()), *((fmt.nan,) if fmt.nan is not None else ())]
    codes += [1, 1 << fmt.sign_shift] if fmt.is_float and fmt.signed else [1]
    rare = rng.choice((0.0, 0.0, 0.05, 0.3))
    special = rng.random(size) < rare
    chosen = rng.choice(np.array(codes[:2] if rng.random() < 0.5 else codes, dtype=np.uint64), size)
    if fmt.is_float and fmt.signed:
        chosen |= rng.integers(0, 2, size, dtype=np.uint64) << np.uint64(fmt.sign_shift)
    return np.asarray(np.where(special, chosen, bits).astype(fmt.dtype))


def draw_dots(ins: Instruction, count: int, rng: np.random.Generator) -> Operands:
    """Operands of `count` dot products; in some, neighbouring products cancel, in some c cancels the result for c = 0."""
    operands = {name: draw_codes(ins.formats[name], (count, *size), rng) for name, size in ins.operand_shapes(matrices=False).items()}
    a = ins.formats["a"]
    if rng.random() < 0.4 and ins.k > 1 and a.is_float and a.signed:
        pairs = ins.k // 2 * 2
        rows = rng.random(count) < 0.6
        operands["a"][rows, 1:pairs:2] = operands["a"][rows, 0:pairs:2] ^ a.dtype.type(1 << a.sign_shift)
        operands["b"][rows, 1:pairs:2] = operands["b"][rows, 0:pairs:2]
    c = ins.formats["c"]
    if rng.random() < 0.4 and c == ins.formats["d"] and c.is_float and c.signed:
        zero = np.zeros_like(operands["c"])
        d = ins.engine.dots(operands["a"], operands["b"], zero, None, operands.get("scale_a"), operands.get("scale_b"), general=True)
        rows = rng.random(count) < 0.5
        operands["c"] = np.where(rows, (d ^ c.dtype.type(1 << c.sign_shift)) + rng.integers(0, 2, count).astype(c.dtype), operands["c"])
        operands["c"] &= c.dtype.type((1 << c.bits) - 1)
    return operands


def draw_matrices(ins: Instruction, batch: int, rng: np.random.Generator) -> Operands:
    """Operands of whole products, with columns drawn on their own; b and c lie transposed or reversed in memory."""
    rows, columns, points = draw_dots(ins, batch * ins.m, rng), draw_dots(ins, batch * ins.n, rng), draw_dots(ins, batch * ins.m * ins.n, rng)
    operands = {"a": rows["a"].reshape(batch, ins.m, ins.k), "b": columns["b"].reshape(batch, ins.n, ins.k).swapaxes(-1, -2),
                "c": points["c"].reshape(batch, ins.m, ins.n)}
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
    return custom.build_instruction(yamlfile.parse(text))


def general(ins: Instruction, operands: Operands, matrices: bool = False) -> Bits:
    run = ins.engine.matrices if matrices else ins.engine.dots
    return run(*(operands.get(name) for name in ORDER), general=True)


def shown(operands: Operands, i: int) -> str:
    return ", ".join(f"{name}: {' '.join(f'{int(x):x}' for x in np.atleast_1d(array[i]))}" for name, array in operands.items())


def differences(ins: Instruction, count: int, seed: int) -> list[str]:
    """Every way in which the models of one unit disagree on random operands, with one example each."""
    rng = np.random.default_rng(seed)
    operands = draw_dots(ins, count, rng)
    wanted = np.array([ins.reference_dot(**{name: array[i] for name, array in operands.items()}) for i in range(count)], dtype=np.uint64)
    found = []
    for what, got in (("general", general(ins, operands)), ("lanes" if ins.engine.fast else "dot", ins.dot(**operands))):
        wrong = np.flatnonzero(got != wanted)
        if wrong.size:
            i = int(wrong[0])
            found.append(f"{what} {int(got[i]):x}, reference {int(wanted[i]):x} ({wrong.size} of {count}) for {shown(operands, i)}")
    many = draw_dots(ins, 16 * count + 1, rng)
    if ins.engine.fast:
        slow, got = general(ins, many), ins.dot(**many)
        wrong = np.flatnonzero(got != slow)
        if wrong.size:
            found.append(f"lanes {int(got[wrong[0]]):x}, general {int(slow[wrong[0]]):x} for {shown(many, int(wrong[0]))}")
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


@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("make", [random_unit, kernel_unit])
def test_models_agree_on_random_units(make: Callable[[random.Random], str], block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        text, ins = accepted(make, seed)
        found = differences(ins, 6, seed)
        assert not found, "\n".join([f"seed {seed}", *found, text])
