"""The registers that the core shows equal the reference's, number by number, for every field of every
step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_steps import mutants, operands_for, step_lists
from faulty_units import any_unit, faulty_unit, known_unit
from kernel_units import kernel_unit
from long_run import long_after
from random_operands import draw_dots
from random_units import accepted, load, random_unit
from witnesses import FIELDS, differences

import golden
from golden.errors import CoreError
from golden.model import registers
from golden.model.instruction import Instruction
from golden.model.registers import NOT_RUN, Registers, decode, number_type
from golden.number.formats import Kind, Number
from golden.program.keys import declared
from golden.program.program import Program
from golden.program.steps import KINDS, Additions, Align

HMMA = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
EXAMPLES = Path(__file__).resolve().parents[3] / "spec" / "examples"
ROWS = 2
KEYS = [
    {},
    {"align": ", shift_limit: 12"},
    {"align": ", shift_limit: 0"},
    {"align": ", zeros: maximum"},
    {"align": ", cut: sticky_added, zeros: sticky"},
    {"align": ", cut: sticky_added, sticky_gap: 1"},
    {"align": ", cut: sticky_or"},
    {"align": ", left_out: {c: dropped}"},
    {"align": ", left_out: {c: unshifted}"},
    {"align": ", left_out: {products: dropped}, zeros: maximum"},
    {"sum": ", width: 2"},
    {"sum": ", width: 9"},
    {"sum": ", cancelled: zero"},
    {"multiply": ", zero_times_infinity: zero"},
    {"multiply": ", zero_times_infinity: infinity"},
    {"special": ", opposite_infinities: first"},
    {"special": ", opposite_infinities: negative"},
    {"round": ", subnormal_carry: lost"},
    {"round": ", sticky_gap: 1"},
    {"before": "  - hidden_bit: {of: a}\n"},
    {"before": "  - hidden_bit: {of: [a, b, c], zeros: set}\n"},
    {"before": "  - hidden_bit: {of: [a, b], zeros: set}\n", "align": ", zeros: maximum"},
    {"before": "  - flush: {of: [a, b], sign: positive}\n  - hidden_bit: {of: c}\n"},
]
"""What a faulty datapath does besides, key by key."""
INTEGERS = """\
unit: integers
shape: {{k: 5}}
formats: {{a: s8, b: s8, c: s32, d: s32}}
steps:
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total, order: tree, format: q16, rounding: up, overflow: {overflow}}}
  - round: {{of: total, rounding: nearest_even, overflow: saturate, zero: positive}}
define_formats: {{q16: {{kind: integer, storage: 16, bits: 16, signed: true}}}}
"""


def some(operands: dict[str, Any], seed: int, count: int = ROWS) -> dict[str, Any]:
    """A few of the dot products."""
    picked = np.random.default_rng(seed).choice(len(operands["c"]), count, replace=False)
    return {name: codes[picked] for name, codes in operands.items()}


def special_dots(ins: Instruction) -> dict[str, Any]:
    """Zeros, subnormal numbers, infinities and NaNs against each other, besides random numbers."""
    rng = np.random.default_rng(7)
    words = [0, 0x8000, 1, 0x8001, 0x03FF, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E01]
    few = rng.choice(np.array(words, np.uint16), (2, 120, ins.k))
    c = rng.choice(np.array([0, 1 << 31, 1, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00001], np.uint32), 120)
    drawn = draw_dots(ins, 40, rng)
    return {
        "a": np.concatenate([few[0], drawn["a"]]),
        "b": np.concatenate([few[1], drawn["b"]]),
        "c": np.concatenate([c, drawn["c"]]),
    }


# The witnesses against each other ---------------------------------------------------------------------------


@cache
def units() -> dict[str, Instruction]:
    """Every list of steps that is shipped, the examples, and one of each kind that neither has."""
    found = {path.stem: golden.load_instruction(path) for path in sorted(EXAMPLES.glob("*.yaml"))}
    examples = {name: ins.stateless for name, ins in found.items()}
    plain = {name: ins for name, ins in examples.items() if ins.modes is None}
    hidden = {"hidden": known_unit(before="  - hidden_bit: {of: a}\n")}
    return {
        **step_lists(),
        **plain,
        **hidden,
        "stochastic": examples["stochastic"].mode_units[9],
        "integers": load(INTEGERS.format(overflow="ieee")),
    }


@pytest.mark.parametrize("name", long_after(7, units()))
def test_every_field_of_every_step(name: str) -> None:
    """Changed one at a time, each register, maximum, cut and rounding is the reference's."""
    ins = units()[name]
    operands = operands_for(ins, 3)
    assert list(differences(ins, some(operands, 1, 8))) == []
    for i, (what, changed) in enumerate(mutants(ins)):
        assert list(differences(changed, some(operands, i))) == [], what


def test_no_field_is_left_out() -> None:
    """What the mutants above change; where numbers go and to which format, the random units below draw."""
    changed = set()
    for ins in units().values():
        for _, mutant in mutants(ins):
            for before, after in zip(ins.program.operations, mutant.program.operations, strict=True):
                for x, y in zip(before.steps, after.steps, strict=True):
                    names = {name for name, *_ in declared(x) if getattr(x, name) != getattr(y, name)}
                    changed |= {(type(x), name) for name in names}
    structure = {"of", "to", "format"}
    # No unit here has an addition that hands its first NaN on; tests/golden/program/test_signalling.py has.
    own = {(Align, "exponent"), (Additions, "quieted")}
    every = {(kind, name) for kind in KINDS for name, *_ in declared(kind) if name not in structure}
    assert every - changed == own


def test_the_exponent_of_a_fixed_point_register() -> None:
    ins = golden.load_instruction(EXAMPLES / "fixed_point.yaml")
    (operation,) = ins.program.operations
    operands = some(operands_for(ins, 2), 2, 12)
    for exponent in (-20, 0, 7):
        steps = (replace(s, exponent=exponent) if isinstance(s, Align) else s for s in operation.steps)
        program = Program((replace(operation, steps=tuple(steps)),))
        assert list(differences(replace(ins, program=program), operands)) == []


@pytest.mark.parametrize("make", [random_unit, kernel_unit, faulty_unit, any_unit])
def test_random_units(make: Callable[[Any], str]) -> None:
    for seed in range(4000, 4015):
        text, ins = accepted(make, seed)
        found = list(differences(ins, draw_dots(ins, 6, np.random.default_rng(seed))))
        assert not found, "\n".join([f"seed {seed}", *found[:4], text])


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: " ".join(keys.values()).strip(", -\n") or "sound")
def test_what_a_faulty_datapath_does(keys: dict[str, str]) -> None:
    ins = known_unit(**keys)
    assert list(differences(ins, special_dots(ins))) == []


@pytest.mark.parametrize("overflow", ["ieee", "saturate"])
def test_integer_additions(overflow: str) -> None:
    ins = load(INTEGERS.format(overflow=overflow))
    assert list(differences(ins, draw_dots(ins, 60, np.random.default_rng(1)))) == []


# What is shown ----------------------------------------------------------------------------------------------


def test_a_field_of_a_number_has_one_name() -> None:
    """A field that the core's number has is one of the reference's, so that both are compared."""
    assert set(FIELDS) == {field.name for field in fields(Number)}
    assert number_type().itemsize % 16 == 0


def test_codes_are_decoded_as_the_formats_say() -> None:
    for ins in step_lists().values():
        for fmt in ins.formats.values():
            codes = np.random.default_rng(1).integers(0, 1 << min(fmt.bits, 63), 40, np.uint64, True)
            numbers = decode(fmt, codes[:, None])
            assert [numbers.number(i, 0) for i in range(40)] == [fmt.decode(int(code)) for code in codes]


def hmma_rows() -> dict[str, Any]:
    """One dot product of ones, one with a NaN, one of zeros."""
    a = np.zeros((3, 16), np.uint16)
    a[0], a[1, 3] = 0x3C00, 0x7E00
    return {"a": a, "b": np.full((3, 16), 0x3C00, np.uint16), "c": np.zeros(3, np.uint32)}


def test_what_an_operation_does_not_run_is_marked() -> None:
    (block,) = Registers(HMMA.engine).blocks(hmma_rows())
    steps = {seen.step.op: seen for seen in block.steps()}
    total = steps["sum"].written["total"]
    assert total.kind[:, 0].tolist() == [Kind.FINITE, NOT_RUN, Kind.ZERO]
    assert total.number(0, 0) == Number(Kind.FINITE, 0, 16 << 25, 0, 25)
    assert total.number(1, 0) is None
    assert steps["multiply"].written["products"].kind[1].max() == Kind.NAN
    maxima = steps["align"].maxima
    assert maxima is not None and maxima.ran[:, 0].tolist() == [True, False, True]
    assert block.result(0).payload[:, 0].tolist() == HMMA.dot(**hmma_rows()).tolist() == block.d.tolist()


def test_registers_before_a_step_are_those_that_were_written_last() -> None:
    (block,) = Registers(HMMA.engine).blocks(hmma_rows())
    seen = {step.step.op: step for step in block.steps()}
    before, after = seen["align"].before["products"], seen["align"].written["products"]
    assert before.number(0, 0) == seen["multiply"].written["products"].number(0, 0)
    assert seen["sum"].terms.number(0, 0) == after.number(0, 0)
    assert seen["align"].owners == ("products",) * 16 + ("c",)


def shown(registers: Registers, operands: dict[str, Any]) -> Iterator[list[Number | None]]:
    """All numbers of every dot product, whatever the blocks."""
    for block in registers.blocks(operands):
        steps = list(block.steps())
        for row in range(len(block.d)):
            written = [numbers for seen in steps for numbers in seen.written.values()]
            yield [numbers.number(row, i) for numbers in written for i in range(numbers.count)]


def test_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    operands = operands_for(HMMA, 1)
    whole = list(shown(Registers(HMMA.engine), operands))
    assert len(whole) == len(operands["c"])
    monkeypatch.setattr(
        registers, "_BLOCK_BYTES", 5 * Registers(HMMA.engine).records * number_type().itemsize
    )
    assert Registers(HMMA.engine).block_rows == 5
    assert list(shown(Registers(HMMA.engine), operands)) == whole
    many = {name: np.concatenate([codes] * 20) for name, codes in operands.items()}
    results = []
    for threads in ("1", "4"):
        monkeypatch.setattr(registers, "_BLOCK_BYTES", 1 << 30)
        monkeypatch.setenv("MMAGOLD_THREADS", threads)
        (block,) = Registers(HMMA.engine).blocks(many)
        assert len(block.d) > 2048
        names = ("kind", "sign", "significand_low", "exponent")
        results.append([block.records[name].tobytes() for name in names])
    assert results[0] == results[1]


def test_nothing_and_a_single_dot_product() -> None:
    operands = hmma_rows()
    assert list(Registers(HMMA.engine).blocks({name: codes[:0] for name, codes in operands.items()})) == []
    (block,) = Registers(HMMA.engine).blocks({name: codes[:1] for name, codes in operands.items()})
    assert block.d.tolist() == [0x41800000]


def test_a_buffer_of_another_size_is_refused() -> None:
    registers = Registers(HMMA.engine)
    for rows in (registers.records - 1, registers.records + 1):
        with pytest.raises(CoreError, match="made other records of this program than it said"):
            HMMA.engine.observe(hmma_rows(), np.empty((rows, 3), number_type()))  # type: ignore[union-attr]
