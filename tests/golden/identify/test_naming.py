"""The YAML of a found unit names what it is: the instruction, the algorithm with its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli, yamlfile
from golden.catalog.unit_files import build_instruction
from golden.catalog.unit_text import unit_text
from golden.identify.blackbox.candidates import Candidate, candidate_of
from golden.identify.blackbox.naming import nearest, with_names
from golden.model.instruction import Instruction
from golden.unit import signature_of

CDNA3 = "cdna3:v_mfma_f32_16x16x16_f16"


def unit(operation: str) -> Instruction:
    """One fused dot-add of eight products of f16, written as steps: as a dissection finds it."""
    formats = "{a: f16, b: f16, c: f32, d: f32}"
    text = f"unit: mine\nshape: {{k: 8}}\nformats: {formats}\nprogram: [{operation}]\n"
    return as_found(build_instruction(yamlfile.parse(text)))


def as_found(ins: Instruction) -> Instruction:
    made: Candidate = candidate_of(signature_of(ins), ins)
    return made.instruction


def named(ins: Instruction, known: tuple[str, ...] = (), near: Any = None) -> str:
    plain = unit_text(ins, "dissected", "title", editor=False)
    assert plain is not None and "steps:" in plain
    return with_names(ins, plain, "title", known, near)


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        ("{fda: {fraction_bits: 24, exponent_floor: -132}}", {"fraction_bits": 24, "exponent_floor": -132}),
        ("{fda: {fraction_bits: 21}}", {"fraction_bits": 21}),
        (
            "{fda: {fraction_bits: 21, rounding: nearest_even}}",
            {"fraction_bits": 21, "rounding": "nearest_even"},
        ),
    ],
)
def test_steps_of_an_algorithm_are_written_by_its_name(
    operation: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    ins = unit(operation)
    near = nearest(ins, {})
    assert near is not None
    text = named(ins, near=near)
    assert text.startswith(f"# It is {near[0]} but for ") and "schema" not in text
    (written,) = yamlfile.parse(text)["program"]
    assert "steps" not in written and dict(written["fda"]) == parameters
    (tmp_path / "unit.yaml").write_text(text, "utf-8")
    again = golden.load_instruction(tmp_path / "unit.yaml")
    sample = stimuli.generate(ins, "wide", 200, np.random.default_rng(1))
    assert (again.dot(**sample) == ins.dot(**sample)).all()


def test_a_unit_that_answers_as_instructions_do_says_which() -> None:
    found = as_found(golden.instruction(*CDNA3.split(":")))
    text = named(found, known=(CDNA3, *(f"a:{one}" for one in "BCDEF")))
    assert text.startswith(
        f"# The answers to all recorded questions are also those of {CDNA3}, a:B, a:C, a:D and 2 more.\n"
    )
    operations = yamlfile.parse(text)["program"]
    assert len(operations) == 2 and all("fdrda" in one for one in operations)


def test_a_unit_in_another_arithmetic_is_not_named() -> None:
    ieee = as_found(golden.instruction("cdna2", "v_mfma_f32_16x16x16bf16_1k"))
    assert "steps:" in named(ieee, near=(CDNA3, ("this: 1 instead of 2",)))


def test_steps_that_were_moved_are_said_in_order() -> None:
    """Pairs of bytes that saturate at 16 bits, where the instruction adds all four and c at once."""
    formats = "{a: u8, b: s8, c: s32, d: s32}"
    pairs = "sum: {of: [products], to: dot, group: {contiguous: 2}, width: 16, overflow: saturate}"
    end = "round: {of: total, rounding: nearest_even, overflow: wrap, zero: positive}"
    steps = f"[multiply: {{to: products}}, {pairs}, sum: {{of: [dot, c], to: total}}, {end}]"
    text = f"unit: mine\nshape: {{k: 4}}\nformats: {formats}\nsteps: {steps}\n"
    near = nearest(as_found(build_instruction(yamlfile.parse(text))), {})
    assert near is not None and near[0] == "rdna3:v_dot4_i32_iu8.u8.s8"  # as vpdpbusd, the first of both
    *_, said = near[1]
    assert said.startswith(
        "its steps, in order: (1) products = a * b, exact; (2) dot = sum of products in groups"
    )
    assert "put in" not in said and "(3) total = sum of dot and c" in said
