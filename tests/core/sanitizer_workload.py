"""Pushes every algorithm of every architecture through the C core;
tests/core/test_sanitizers.py runs it as a script, with the names of the instructions on standard input.

One instruction per sequence of steps and width of the elements, or of each (architecture, family, sequence of
algorithms), a batch of three matrices of random bits:
once contiguous; again through transposed and broadcast views, so that every stride is in use, the batch's
at odd addresses, too; then on the general interpreter (with status flags, too); then as dot products; then
with every register observed. Prints what it did as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import golden
from golden import stimuli, yamlfile
from golden.catalog.unit_files import build_instruction
from golden.model import engine
from golden.model.instruction import Instruction
from golden.model.registers import Registers
from golden.program.keys import STATUS

Bits = npt.NDArray[Any]
BATCH = 3
ROOT = Path(__file__).resolve().parents[2]
OWN = (*sorted((ROOT / "spec" / "examples").glob("*.yaml")), ROOT / "bench" / "interpreted.yaml")
UNSIGNED = """
unit: unsigned
title: multiply-adds of numbers without a sign
shape: {k: 2}
define_formats:
  own: {kind: float, storage: 8, exponent_bits: 4, fraction_bits: 3, bias: 64, signed: false, specials: none}
formats: {a: own, b: own, c: f32, d: f32}
steps:
  - fma: {to: d, start: c, rounding: nearest_even, nan: 0x7FC00000}
"""
"""Steps in doubles that read codes without a sign bit."""


def operands(ins: Instruction, rng: np.random.Generator) -> dict[str, Bits]:
    """Random codes of every operand, with a leading batch."""
    given: dict[str, Bits] = {}
    for name, shape in ins.operand_shapes(matrices=True).items():
        if name == "metadata":
            assert ins.pattern is not None
            given[name] = rng.choice(
                np.array(ins.pattern.legal(ins.ordered_metadata), np.uint8), (BATCH, *shape)
            )
        else:
            fmt = ins.formats[name]
            given[name] = rng.integers(0, 1 << fmt.bits, (BATCH, *shape), dtype=np.uint64).astype(fmt.dtype)
    return given


def call(ins: Instruction, given: dict[str, Bits]) -> Bits:
    """ins(A, B, C, ...) from a dict."""
    rest = {name: array for name, array in given.items() if name not in "abc"}
    return ins(given["a"], given["b"], given["c"], **rest)


def strided(array: Bits) -> Bits:
    """The same elements with rows and columns swapped in memory."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


def misplaced(array: Bits) -> Bits:
    """The same elements at an odd address."""
    room = np.ndarray(array.shape, array.dtype, np.zeros(array.nbytes + 1, np.uint8), offset=1)
    room[...] = array
    return room


def observe(ins: Instruction, given: dict[str, Bits], wanted: Bits) -> None:
    """Reads every register of every step, in blocks of one dot product and in one whole."""
    registers = Registers(ins.engine)
    for part in ({name: codes[:1] for name, codes in given.items()}, given):
        d = np.concatenate([block.d for block in registers.blocks(part)])
        assert np.array_equal(d, wanted[: len(d)]), f"{ins.architecture} {ins.name}: observed results differ"
        for block in registers.blocks(part):
            for seen in block.steps():
                numbers = [*seen.before.values(), *seen.written.values(), seen.maxima, seen.cuts]
                assert all(one is None or one.kind.shape[0] == len(block.d) for one in numbers)


def with_flags(ins: Instruction, given: dict[str, Bits], wanted: Bits, matrices: bool) -> None:
    """The status flags that the results would raise, were the unit asked for them."""
    answers = replace(ins, status=STATUS.words).answers(given, matrices)
    assert np.array_equal(answers["d"], wanted), f"{ins.architecture} {ins.name}: d differs with flags"
    assert answers["flags"].shape == wanted.shape


def main() -> None:
    """Runs all of it."""
    rng, count, elements = np.random.default_rng(1), 0, 0
    for architecture, name in json.load(sys.stdin):
        ins = golden.instruction(architecture, name)
        given = operands(ins, rng)
        d = call(ins, given)
        assert d.shape == (BATCH, ins.m, ins.n) and d.dtype == ins.formats["d"].dtype, ins.name
        same = call(ins, {name: strided(array) for name, array in given.items()})
        assert np.array_equal(d, same), f"{ins.architecture} {ins.name}: result depends on the strides"
        one = call(
            ins, {name: np.broadcast_to(misplaced(array[0]), array.shape) for name, array in given.items()}
        )
        assert np.array_equal(one, np.broadcast_to(d[0], d.shape)), (
            f"{ins.architecture} {ins.name}: result depends on the batch"
        )
        names = ("a", "b", "c", "metadata", "scale_a", "scale_b")
        general = ins.engine.matrices(*(given.get(name) for name in names), general=True)
        with_flags(ins, given, d, matrices=True)
        assert np.array_equal(d, general), (
            f"{ins.architecture} {ins.name}: fast form and general interpreter differ"
        )
        rows = {name: array[:, 0] for name, array in given.items() if name in ("a", "metadata", "scale_a")}
        columns = {name: array[:, :, 0] for name, array in given.items() if name in ("b", "scale_b")}
        rest = {name: array for name, array in (rows | columns).items() if name not in "ab"}
        dots = ins.dot(rows["a"], columns["b"], given["c"][:, 0, 0], **rest)
        assert np.array_equal(dots, d[:, 0, 0]), f"{ins.architecture} {ins.name}: dot and matrix call differ"
        observe(ins, {**rows, **columns, "c": given["c"][:, 0, 0]}, dots)
        count, elements = count + 1, elements + 4 * d.size + dots.size
    units = [golden.load_instruction(file) for file in OWN]
    for unit in (
        *units,
        build_instruction(yamlfile.parse(UNSIGNED)),
    ):  # steps and keys that nothing shipped has
        unit = unit.stateless
        for one in unit.mode_units.values() if unit.modes is not None else [unit]:
            drawn = stimuli.generate(one, "random_bits", 600, rng)
            observe(one, drawn, one.dot(**drawn))
            with_flags(one, drawn, one.dot(**drawn), matrices=False)
    print(json.dumps({"instructions": count, "elements": elements, "simd": engine.simd()}))


if __name__ == "__main__":
    main()
