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
from long_run import long_after
from random_operands import as_dots
from tiles import CLASSES, Tiles

import golden
from golden import stimuli
from golden.model import engine, reference
from golden.model.instruction import Instruction

ARCHITECTURES = golden.architectures()
PER_KIND = 1
MANY = 24
FEW = 16
LANES = 32
"""Of the widest block."""
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
    """The instructions of an architecture whose arithmetic no earlier one has."""
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


@pytest.mark.parametrize("kind", long_after(2, stimuli.KINDS))
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_reference_general_and_lanes_agree(architecture: str, kind: str) -> None:
    for ins in representatives(architecture):
        operands = stimuli.generate(ins, kind, PER_KIND, rng_for(architecture, ins.name, kind))
        wanted = np.array([ins.reference_dot(**one(operands, i)) for i in range(PER_KIND)], dtype=np.uint64)
        fail(ins, operands, general(ins, operands), wanted, "general interpreter and reference")
        fail(ins, operands, ins.dot(**operands), wanted, "fast form and reference")


@pytest.mark.parametrize("architecture", long_after(3, ARCHITECTURES))
def test_lanes_and_general_agree_on_many(architecture: str) -> None:
    """One kind in four for each instruction, the next ones for the next."""
    for i, ins in enumerate(ins for ins in representatives(architecture) if ins.engine.fast):
        for kind in stimuli.KINDS[i % 4 :: 4]:
            operands = stimuli.generate(ins, kind, MANY, rng_for("many", architecture, ins.name, kind))
            fail(
                ins,
                operands,
                ins.dot(**operands),
                general(ins, operands),
                f"fast form and general, {kind}",
            )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_hard_lane_among_easy_ones(architecture: str) -> None:
    """What is asked of all lanes at once, as whether a sum lost bits, is seen wherever the lane stands."""
    easy = ~np.eye(LANES, dtype=bool).ravel()
    for ins in representatives(architecture)[::3]:
        for kind in ("deep_cancellation", "random_bits"):
            hard = stimuli.generate(ins, kind, LANES, rng_for("alone", architecture, ins.name, kind))
            operands = {name: np.repeat(array, LANES, axis=0) for name, array in hard.items()}
            for name in {"a", "c"} & operands.keys():
                operands[name][easy] = 0
            fail(ins, hard, ins.dot(**operands)[~easy], general(ins, hard), f"{kind} alone and general")


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


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_matrices_are_dots(architecture: str) -> None:
    for ins in representatives(architecture)[::4]:
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


@pytest.mark.parametrize(
    "architecture",
    [name if name == "hopper" else pytest.param(name, marks=pytest.mark.long) for name in ARCHITECTURES],
)
def test_tiles_and_general_agree_at_every_level(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices, whose tiles are decoded once, and the same as dot products, each in a lane of its own."""
    at = instruction_sets()
    for i, ins in enumerate(shapes(architecture)):
        tiles = Tiles(ins, rng_for("tiles", architecture, ins.name))
        for what in CLASSES[i % 4 :: 4]:
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
