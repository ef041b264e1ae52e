"""Circuits answer what the reference model answers, and hold what they call facts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from circuits import outputs
from faulty_units import any_unit
from random_operands import draw_dots
from random_units import accepted
from step_kinds import UNITS, unit

import golden
from golden import stimuli, yamlfile
from golden.catalog import unit_files
from golden.circuit.specification import HELD, circuit_of
from golden.circuit.words import CircuitError, Words, evaluate
from golden.model.instruction import Instruction
from golden.paths import spec_folder
from golden.program.steps import STEPS

NAMES = (
    "volta:mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "hopper:HMMA.16816.F32",
    "hopper:mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "hopper:mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "hopper:mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
    "hopper:mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    "hopper:mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.u8.s32",
    "hopper:mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
    "hopper:mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
    "ampere:mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
    "ampere:mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16",
    "ampere:mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "blackwell:tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3",
    "blackwell:tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X.m128n8k32.f32.e4m3.e4m3.ue8m0",
    "cdna1:v_mfma_f32_16x16x16f16",
    "cdna2:v_mfma_f32_16x16x16f16",
    "cdna3:v_mfma_f32_16x16x16_f16",
    "cdna3:v_mfma_f32_16x16x32_fp8_bf8",
    "rdna3:v_dot2_f32_f16",
    "rdna3:v_dot2_bf16_bf16",
    "rdna4:v_dot2_f32_f16",
    "tensix_wormhole:mvmul.f32.bf16.bf16.phase3",
    "tensix_blackhole:mvmul.bf16.bf16.bf16.hifi2",
    "tensix_blackhole:mvmul.s32.s8.s8.phase2",
)
"""Every algorithm and every step that a catalogued instruction has."""
EXAMPLES = tuple(sorted(file.name for file in (spec_folder() / "examples").glob("*.yaml")))


def differences(ins: Instruction, count: int, seed: int, slow: bool) -> list[str]:
    """Dot products of every kind of stimuli to which the circuit has another answer than the model: the
    reference (slow), or the core."""
    one, rng = ins.stateless, np.random.default_rng(seed)
    kinds = stimuli.KINDS
    each = -(-count // len(kinds))
    parts = [stimuli.generate(one, kind, each, rng) for kind in kinds]
    operands = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if slow:
        picked = rng.permutation(each * len(kinds))[:count]
        operands = {name: codes[picked] for name, codes in operands.items()}
    total = len(next(iter(operands.values())))
    got = outputs(one, operands, total)
    if slow:
        rows = [{name: codes[i] for name, codes in operands.items()} for i in range(total)]
        want = {"d": np.array([one.reference_dot(**row) for row in rows], object)}
        if one.status:
            want["flags"] = np.array([one.trace(**row).flags for row in rows], object)
    else:
        want = one.answers(one.check_named(operands))
    return [
        f"{one.name}: {name} of case {i} is {got[name][i]:#x}, expected {int(answer):#x}"
        for name, answers in want.items()
        for i, answer in enumerate(answers)
        if got[name][i] != int(answer)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_instructions_answer_as_the_reference(name: str) -> None:
    assert not differences(golden.instruction(*name.split(":", 1)), 60, 1, slow=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_answer_as_the_reference(name: str) -> None:
    assert not differences(golden.load_instruction(spec_folder() / "examples" / name), 60, 2, slow=True)


@pytest.mark.parametrize("seed", range(40))
def test_units_with_any_keys_answer_as_the_reference(seed: int) -> None:
    """A unit that has no circuit says which step and which key."""
    text, ins = accepted(any_unit, seed + 1000)
    rng = np.random.default_rng(seed)
    try:
        circuit_of(ins, Words())
    except CircuitError as error:
        assert "has no circuit with key" in str(error), text
        return
    operands = draw_dots(ins, 30, rng)
    got = outputs(ins, operands, 30)
    shapes = ins.operand_shapes(matrices=False)
    rows = {name: np.broadcast_to(codes, (30, *shapes[name])) for name, codes in operands.items()}
    want = [ins.reference_dot(**{name: codes[i] for name, codes in rows.items()}) for i in range(30)]
    assert got["d"] == want, text


def test_every_kind_of_step_is_here() -> None:
    used = {step.op for name in UNITS for part in unit(name).program.operations for step in part.steps}
    assert used == set(STEPS)


@pytest.mark.parametrize("every_c", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", UNITS)
def test_every_operand_of_tiny_formats(name: str, every_c: bool) -> None:
    """All pairs of a and b, each with every c or with one."""
    ins = unit(name)
    circuit = circuit_of(ins, Words())
    conditions = [condition for _, condition in circuit.facts + circuit.assumed]
    pairs = np.arange(1 << 16, dtype=np.uint64)
    codes = {"a": pairs & 255, "b": pairs >> 8}
    operands = {each: np.stack([codes[each] & 15, codes[each] >> 4], 1).astype(np.uint8) for each in "ab"}
    for shift in range(16 if every_c else 1):
        codes["c"] = (pairs * 7 + pairs // 16 + shift) % 16
        operands["c"] = codes["c"].astype(np.uint8)
        values = evaluate([circuit.outputs["d"], *conditions], codes)
        assert all(values[condition].all() for condition in conditions)
        got = values[circuit.outputs["d"]]
        assert np.array_equal(got, ins.dot(**operands))
        for i in range(0, len(pairs), 509):  # the core is held to the reference here, too
            assert got[i] == ins.reference_dot(**{each: row[i] for each, row in operands.items()})


FLAGS = """\
unit: flags
shape: {{k: 1}}
formats: {{a: x, b: x, c: y, d: y}}
flags: [inexact, underflow, overflow, invalid]
define_formats:
  x: {{kind: float, storage: 8, exponent_bits: 3, fraction_bits: 2, bias: 3, specials: ieee}}
  y: {{kind: float, storage: 8, exponent_bits: 3, fraction_bits: 2, bias: {bias}, specials: ieee{format}}}
steps:
  - multiply: {{to: products}}
  - special_values: {{of: [products, c], nan: 0x1e}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: {rounding}, overflow: ieee, zero: signed, tiny: {tiny}{more}}}
"""


@pytest.mark.parametrize("format_", ["", ", subnormals: false"])
@pytest.mark.parametrize("tiny", ["subnormal_result", "unbounded", "before_rounding"])
@pytest.mark.parametrize(
    ("bias", "rounding", "more"),
    [(3, "nearest_even", ""), (1, "up", ", flush: signed"), (3, "to_odd", ", sticky_gap: 1")],
)
def test_flags_of_every_sum_near_the_least_number(
    bias: int, rounding: str, more: str, tiny: str, format_: str
) -> None:
    text = FLAGS.format(bias=bias, rounding=rounding, more=more, tiny=tiny, format=format_)
    ins = unit_files.build_instruction(yamlfile.parse(text))
    codes = np.array(list(itertools.product(range(64), range(0, 64, 5), range(64))), np.uint8)
    operands = {"a": codes[:, :1], "b": codes[:, 1:2], "c": codes[:, 2]}
    got, want = outputs(ins, operands, len(codes)), ins.answers(operands)
    for name in ("d", "flags"):
        assert np.array_equal(np.array(got[name]), want[name]), text


def test_a_unit_that_holds_its_accumulator_takes_what_it_holds() -> None:
    ins = golden.load_instruction(spec_folder() / "examples" / "accumulator.yaml")
    circuit = circuit_of(ins, Words())
    assert set(circuit.inputs) == {"a", "b", "clear", HELD}
    rng = np.random.default_rng(3)
    operands = draw_dots(ins.stateless, 1, rng)
    one = {name: codes[0] for name, codes in operands.items()}
    packed = {name: [sum(int(code) << 16 * i for i, code in enumerate(one[name]))] for name in "ab"}
    for clear, held in ((0, int(one["c"])), (1, 0)):
        values = evaluate(circuit.outputs.values(), packed | {"clear": [clear], HELD: [int(one["c"])]})
        want = ins.stateless.reference_dot(one["a"], one["b"], np.uint32(held))
        assert int(values[circuit.outputs["d"]][0]) == want


def test_points_are_those_of_the_data_path() -> None:
    circuit = circuit_of(golden.instruction("hopper", "HMMA.16816.F32"), Words())
    widths = {name: word.width for name, word in circuit.points.items()}
    # Hopper's unit: products 2 + 20 bits, addends 2 + 25, a sum of 1 + 7 + 25 bits.
    assert (widths["product[15]"], widths["aligned[15]"], widths["aligned[c]"], widths["sum"]) == (
        22,
        27,
        26,
        33,
    )
    assert list(circuit.points).index("emax") < list(circuit.points).index("aligned[0]")


@pytest.mark.long
def test_every_catalogued_program_answers_as_the_core() -> None:
    """2,000 dot products each of every program; instructions that share one are tried once."""
    seen: set[str] = set()
    for architecture in golden.architectures():
        for ins in golden.instructions(architecture):
            arithmetic = [one.arithmetic for one in ins.program.operations]
            key = repr((arithmetic, sorted(ins.formats.items()), ins.k, ins.pattern, ins.scale_block))
            if key not in seen:
                seen.add(key)
                assert not differences(ins, 2000, len(seen), slow=False)[:3]
