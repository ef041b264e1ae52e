"""Matrices of operands by classes, which decide the way that a tile takes through the core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import golden
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.stimuli.codes import corner_codes, negate, special_codes

Operands = dict[str, Any]


class Tiles:
    """Matrices of one class each: what a tile as a whole looks like decides which way it takes."""

    def __init__(
        self, ins: Instruction, rng: np.random.Generator, m: int = 0, n: int = 0, batch: int = 0
    ) -> None:
        """`m`, `n`: of the matrices, where they differ from the instruction's; `batch`: how many."""
        self.ins, self.rng = ins, rng
        batch = batch or (2 if ins.m * ins.n <= 256 and not m else 1)
        rows = ins if not m else replace(ins, m=m, n=n)
        self.shapes = {n: (batch, *shape) for n, shape in rows.operand_shapes(matrices=True).items()}

    def codes(self, name: str) -> Any:
        """Random codes of an operand."""
        fmt, shape = self.ins.formats[name], self.shapes[name]
        return self.rng.integers(0, 1 << fmt.bits, shape, np.uint64, endpoint=False).astype(fmt.dtype)

    def rounded(self, name: str, scale: float = 1.0) -> Any:
        """Numbers of a normal distribution as codes."""
        fmt = self.ins.formats[name]
        values = self.rng.standard_normal(self.shapes[name]) * scale
        values = values if fmt.is_float else np.clip(np.rint(values * 8), *integers(fmt))
        return golden.from_float(fmt, np.abs(values) if not fmt.signed else values)

    def chosen(self, name: str, codes: Any) -> Any:
        """Codes drawn from a list, of either sign."""
        fmt = self.ins.formats[name]
        drawn = self.rng.choice(np.asarray(codes, fmt.dtype), self.shapes[name])
        drawn &= fmt.dtype.type((1 << fmt.bits) - 1)
        return np.where(self.rng.random(self.shapes[name]) < 0.5, drawn, negate(fmt, drawn))

    def finite(self, name: str) -> Any:
        """Random codes, none of them special."""
        codes = self.codes(name)
        return np.where(is_special(self.ins.formats[name], codes), codes.dtype.type(0), codes)

    def each(self, make: Any) -> Operands:
        """Operands of every name, metadata that is legal."""
        legal = self.ins.pattern.legal(self.ins.ordered_metadata) if self.ins.pattern else ()
        return {
            name: self.rng.choice(np.array(legal, np.uint8), shape) if name == "metadata" else make(name)
            for name, shape in self.shapes.items()
        }

    def normal(self) -> Operands:
        return self.each(self.rounded)

    def random_bits(self) -> Operands:
        return self.each(self.codes)

    def finite_bits(self) -> Operands:
        return self.each(self.finite)

    def tiny(self) -> Operands:
        """The smallest numbers of every format; c just above and below its least normal number, with rows
        of zeros."""
        given = self.each(lambda name: self.chosen(name, [0, 1, 2, 3, 1 << self.fraction(name)]))
        given["a"][..., ::2, :] = 0
        near = self.codes("c") & given["c"].dtype.type((2 << self.fraction("c")) - 1)
        given["c"] = np.where(self.rng.random(near.shape) < 0.5, near, negate(self.ins.formats["c"], near))
        return given

    def zeros(self) -> Operands:
        """Three of four elements are a zero."""
        given = self.normal()
        for name in ("a", "b", "c"):
            zero = self.chosen(name, [0])
            given[name] = np.where(self.rng.random(zero.shape) < 0.75, zero, given[name])
        return given

    def zero_tiles(self) -> Operands:
        """Whole operands are zero."""
        given = self.normal()
        for name in ("a", "b", "c"):
            given[name][:1] = self.chosen(name, [0])[:1]
        return given

    def cancelling(self) -> Operands:
        """Every second product undoes the one before it, or all but its last bit."""
        given = self.finite_bits() | {"c": self.chosen("c", [0, 1])}
        pairs = given["a"].shape[-1] // 2 * 2
        given["a"][..., 1:pairs:2] = negate(self.ins.formats["a"], given["a"][..., :pairs:2])
        pairs = given["b"].shape[-2] // 2 * 2
        given["b"][..., 1:pairs:2, :] = given["b"][..., :pairs:2, :] ^ (self.rng.random() < 0.5)
        return given

    def overflowing(self) -> Operands:
        """The largest numbers, most of one sign: sums beyond 32 bits, results beyond the format."""
        largest = {name: self.ins.formats[name].largest for name in self.shapes if name != "metadata"}
        given = self.each(
            lambda name: np.full(self.shapes[name], largest[name], self.ins.formats[name].dtype)
        )
        for name in ("a", "b", "c"):
            other = self.rng.random(given[name].shape) < 0.05
            given[name] = np.where(other, negate(self.ins.formats[name], given[name]), given[name])
        c, product = self.ins.formats["c"], 1.0
        for name in ("a", "b"):
            product *= abs(float(golden.to_float(self.ins.formats[name], given[name]).flat[0]))
        if c.is_float and product < float(golden.to_float(c, c.largest)) / 4:  # c as large as a product
            near = golden.from_float(c, product * self.rng.uniform(-c.signed, 4, given["c"].shape))
            given["c"] = np.where(self.rng.random(near.shape) < 0.5, near, given["c"])
        return given

    def big_c(self) -> Operands:
        """c lies far above the products, or about as far as they are cut."""
        return self.normal() | {"c": self.rounded("c", 2.0 ** int(self.rng.integers(8, 40)))}

    def specials(self) -> Operands:
        """One element in sixty-four is an infinity, a NaN or a corner of its format."""
        given = self.normal()
        for name in ("a", "b", "c"):
            fmt = self.ins.formats[name]
            codes = special_codes(fmt) if fmt.is_float else corner_codes(fmt)
            codes = codes if len(codes) else corner_codes(fmt)
            few = self.rng.random(given[name].shape) < 1 / 64
            given[name] = np.where(few, self.rng.choice(codes, few.shape), given[name]).astype(fmt.dtype)
        return given

    def ties(self) -> Operands:
        """Few significant bits at few exponents: sums half a unit above a result."""
        given = self.each(lambda name: self.rounded(name, 1.0) & ~self.mask(name) | 0)
        given["c"] = self.rounded("c", 2.0 ** int(self.rng.integers(0, 24)))
        return given

    def fraction(self, name: str) -> int:
        """Fraction bits of an operand's format, 0 of an integer."""
        return int(self.ins.formats[name].fraction_bits) if self.ins.formats[name].is_float else 0

    def mask(self, name: str) -> Any:
        """All fraction bits but the highest."""
        return self.ins.formats[name].dtype.type((1 << max(self.fraction(name) - 1, 0)) - 1)


def integers(fmt: Format) -> tuple[int, int]:
    """The least and the largest number of an integer format."""
    return (-(1 << (fmt.bits - 1)), (1 << (fmt.bits - 1)) - 1) if fmt.signed else (0, (1 << fmt.bits) - 1)


def is_special(fmt: Format, codes: Any) -> Any:
    """Which codes are an infinity or a NaN."""
    return ~np.isfinite(golden.to_float(fmt, codes)) if fmt.is_float else np.zeros(codes.shape, np.bool_)


CLASSES = (
    "normal",
    "random_bits",
    "finite_bits",
    "tiny",
    "zeros",
    "zero_tiles",
    "cancelling",
    "overflowing",
    "big_c",
    "specials",
    "ties",
)
