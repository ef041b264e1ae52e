"""The three ways to compute one dot product agree: reference model, general interpreter and fast form.

The reference runs for one representative of every (operand formats, K, program), whatever the architecture:
both models are given nothing else. The two paths of the C core, which are fast, run for every instruction.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest
from instruction_sets import instruction_sets

import golden
from golden import stimuli
from golden.instruction import Instruction
from golden.model import engine, reference
from golden.number.formats import Format
from golden.stimuli.codes import corner_codes, negate, special_codes

ARCHITECTURES = golden.architectures()
PER_KIND = 1
MANY = 60
FEW = 32
Operands = dict[str, Any]
ORDER = ("a", "b", "c", "metadata", "scale_a", "scale_b")


def rng_for(*names: str) -> np.random.Generator:
    return np.random.default_rng([1, *(zlib.crc32(name.encode()) for name in names)])


def identity(ins: Instruction) -> tuple[Any, ...]:
    formats = tuple((name, fmt.name) for name, fmt in ins.formats.items())
    return ins.k, ins.sparse, ins.scale_block, formats, repr(ins.program)


@cache
def all_representatives() -> dict[tuple[Any, ...], Instruction]:
    chosen: dict[tuple[Any, ...], Instruction] = {}
    for architecture in ARCHITECTURES:
        for ins in golden.instructions(architecture):
            chosen.setdefault(identity(ins), ins)
    return chosen


def representatives(architecture: str) -> list[Instruction]:
    """Those that no earlier architecture has."""
    return [ins for ins in all_representatives().values() if ins.architecture == architecture]


def general(ins: Instruction, operands: Operands) -> Any:
    return ins.engine.dots(*(operands.get(name) for name in ORDER), general=True)


def one(operands: Operands, i: int) -> Operands:
    return {name: array[i] for name, array in operands.items()}


def fail(ins: Instruction, operands: Operands, got: Any, wanted: Any, what: str) -> None:
    """Compares; the message holds one complete dot product that disagrees."""
    wrong = np.flatnonzero(got != wanted)
    if wrong.size:
        i = int(wrong[0])
        shown = {name: array[i].tolist() for name, array in operands.items()}
        pytest.fail(
            f"{ins!r}: {wrong.size} of {wanted.size} differ ({what}): {int(got[i]):#x} and "
            f"{int(wanted[i]):#x} for {shown}"
        )


@pytest.mark.parametrize("kind", stimuli.KINDS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_reference_general_and_lanes_agree(architecture: str, kind: str) -> None:
    for ins in representatives(architecture):
        operands = stimuli.generate(ins, kind, PER_KIND, rng_for(architecture, ins.name, kind))
        wanted = np.array([ins.reference_dot(**one(operands, i)) for i in range(PER_KIND)], dtype=np.uint64)
        fail(ins, operands, general(ins, operands), wanted, "general interpreter and reference")
        fail(ins, operands, ins.dot(**operands), wanted, "fast form and reference")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_lanes_and_general_agree_on_many(architecture: str) -> None:
    for ins in representatives(architecture):
        if not ins.engine.fast:
            continue
        for kind in stimuli.KINDS:
            operands = stimuli.generate(ins, kind, MANY, rng_for("many", architecture, ins.name, kind))
            fail(
                ins,
                operands,
                ins.dot(**operands),
                general(ins, operands),
                f"fast form and general, {kind}",
            )


def spread(instructions: list[Instruction]) -> Iterable[Instruction]:
    """Every instruction; of the thousands that differ in M and N alone, every seventh."""
    for i, ins in enumerate(instructions):
        if ins.layout not in ("wgmma", None) or i % 7 == 0:
            yield ins


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_instruction_runs_the_same_on_both_paths(architecture: str) -> None:
    for ins in spread(golden.instructions(architecture)):
        for kind in ("random_bits", "narrow"):
            operands = stimuli.generate(ins, kind, FEW, rng_for("all", architecture, ins.name, kind))
            fail(
                ins,
                operands,
                ins.dot(**operands),
                general(ins, operands),
                f"fast form and general, {kind}",
            )


def matrices(ins: Instruction, batch: int, rng: np.random.Generator) -> Operands:
    """Random matrices whose rows and columns come from different dot products of one kind."""
    operands: Operands = {}
    rows = stimuli.generate(ins, "narrow", batch * ins.m, rng)
    columns = stimuli.generate(ins, "wide", batch * ins.n, rng)
    points = stimuli.generate(ins, "narrow", batch * ins.m * ins.n, rng)
    for name in ("a", "metadata", "scale_a"):
        if name in rows:
            operands[name] = rows[name].reshape(batch, ins.m, -1)
    for name in ("b", "scale_b"):
        if name in columns:
            operands[name] = columns[name].reshape(batch, ins.n, -1).swapaxes(-1, -2)
    operands["c"] = points["c"].reshape(batch, ins.m, ins.n)
    return operands


def as_dots(operands: Operands) -> Operands:
    """The same products through the broadcasting of the dot API: rows (…, m, 1, k) against columns (…, 1,
    n, k)."""
    views = {}
    for name, array in operands.items():
        if name in ("b", "scale_b"):
            views[name] = array.swapaxes(-1, -2)[..., None, :, :]
        else:
            views[name] = array if name == "c" else array[..., :, None, :]
    return views


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_matrices_are_dots(architecture: str) -> None:
    for ins in representatives(architecture):
        if ins.m * ins.n > 2048:
            continue
        operands = matrices(ins, 2, rng_for("matrices", architecture, ins.name))
        got, wanted = ins(**operands), ins.dot(**as_dots(operands))
        assert got.shape == wanted.shape == (2, ins.m, ins.n)
        assert np.array_equal(got, wanted), ins
        slow = ins.engine.matrices(*(operands.get(name) for name in ORDER), general=True)
        assert np.array_equal(slow, wanted), ins


# Tiles ------------------------------------------------------------------------------------------------------


def shapes(architecture: str) -> Iterable[Instruction]:
    """An instruction for every form that the fast form takes: parameters, formats, and how rows and columns
    divide into vectors."""
    found: dict[Any, Instruction] = {}
    for ins in golden.instructions(architecture):
        if not ins.engine.fast:
            continue
        kernels = repr(engine.select_kernels(ins.program.operations, ins))
        formats = tuple(fmt.name for fmt in ins.formats.values())
        width = next((lanes for lanes in (16, 8, 4) if ins.n % lanes == 0 and ins.m % 4 == 0), 1)
        key = kernels, formats, ins.sparse, ins.scale_block, ins.k, width
        if key not in found or ins.m * ins.n < found[key].m * found[key].n:
            found[key] = ins
    return found.values()


class Tiles:
    """Matrices of one class each: what a tile as a whole looks like decides which way it takes."""

    def __init__(self, ins: Instruction, rng: np.random.Generator) -> None:
        self.ins, self.rng = ins, rng
        batch = 2 if ins.m * ins.n <= 256 else 1
        self.shapes = {n: (batch, *shape) for n, shape in ins.operand_shapes(matrices=True).items()}

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
        """The smallest numbers of every format; c just above and below its least normal number, beside rows
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
            near = golden.from_float(c, product * self.rng.uniform(-1, 4, given["c"].shape))
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


@pytest.mark.parametrize(
    "architecture",
    [
        name if name in ("hopper", "cdna3") else pytest.param(name, marks=pytest.mark.long)
        for name in ARCHITECTURES
    ],
)
def test_tiles_and_general_agree_at_every_level(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices, whose tiles are decoded once, and the same as dot products, each in a lane of its own."""
    at = instruction_sets()
    for ins in shapes(architecture):
        tiles = Tiles(ins, rng_for("tiles", architecture, ins.name))
        for what in CLASSES:
            operands = getattr(tiles, what)()
            wanted = ins.engine.matrices(*(operands.get(name) for name in ORDER), general=True)
            for level in at:
                monkeypatch.setenv("MMAGOLD_SIMD", level)
                got = ins(**operands)
                assert np.array_equal(got, wanted), f"{ins!r}, {level}, tiles, {what}"
                if ins.m * ins.n <= 256:
                    got = ins.dot(**as_dots(operands))
                    assert np.array_equal(got, wanted), f"{ins!r}, {level}, lanes, {what}"
            monkeypatch.delenv("MMAGOLD_SIMD")


@pytest.mark.parametrize("architecture", ["ampere", "hopper", "blackwell", "rtx_blackwell"])
def test_a_sparse_dot_is_the_dense_one_over_the_selected_elements(architecture: str) -> None:
    """Against a selection written out here from the PTX text, not golden.registers.sparsity."""
    for ins in representatives(architecture):
        if not ins.sparse:
            continue
        operands = stimuli.generate(ins, "random_bits", 4, rng_for("sparse", ins.name))
        for i in range(4):
            dot = one(operands, i)
            b = [
                int(dot["b"][column])
                for column in selected(ins.formats["a"].name, ins.k, dot["metadata"].tolist())
            ]
            scales = None
            if ins.scale_block:
                scales = dot["scale_a"].tolist(), dot["scale_b"].tolist(), ins.scale_block // 2
            wanted = reference.evaluate(ins.program, ins.formats, dot["a"].tolist(), b, int(dot["c"]), scales)
            assert int(ins.dot(**dot)) == wanted, (ins, dot)


def selected(fmt: str, k: int, nibbles: list[int]) -> list[int]:
    """Logical columns of the stored elements: 1:2 for tf32, pairs of 4:8 for 4-bit containers, else 2:4."""
    columns: list[int] = []
    chunk = k // len(nibbles)
    for i, nibble in enumerate(nibbles):
        if fmt == "tf32":
            columns.append(i * chunk + (0 if nibble == 0x4 else 1))
            continue
        width = chunk // 4
        for index in (nibble & 3, nibble >> 2):
            columns += [i * chunk + index * width + j for j in range(width)]
    return columns
